//! What is more than one operation, in a formula: vectors, matrices and random numbers, done as they are in a program in Rust.

use super::expr::{Expr, put, with_tape};
use super::formula::{Formula, Value};
use super::tape::{Input, Node, Type};
use crate::number::{Integer, Length, Real, random};
use nalgebra::{SMatrix, SVector};

impl Formula {
    /// Lets the arithmetic of symbols write onto this formula. `of`: the values that it takes, which must be reals.
    fn write(&mut self, of: &[Value], work: impl FnOnce() -> Vec<Expr>) -> Result<Vec<Value>, String> {
        for &value in of {
            match self.type_of(value)? {
                Type::Real => {}
                other => return Err(format!("{} in a vector of reals", other.name())),
            }
        }
        with_tape(|tape| std::mem::swap(tape, &mut self.tape));
        let made = work();
        with_tape(|tape| std::mem::swap(tape, &mut self.tape));
        Ok(made.into_iter().map(|made| Value::of(made.0)).collect())
    }

    /// A random number, uniform in [0, 1), as [`Given::uniform`](crate::Given::uniform) has it; normal, if `is_normal`.
    pub fn random(&mut self, seed: i32, is_normal: bool) -> Value {
        let made = self.write(&[], || {
            let held = |input| put(Node::Input(input, 0)).held_int();
            let [vertex, step, draw] = [Input::Vertex, Input::Step, Input::Draw].map(held);
            let counters = [vertex, step, Integer::lit(seed), draw];
            vec![if is_normal { random::normal(counters) } else { random::uniform(counters) }]
        });
        made.expect("nothing is taken")[0]
    }

    /// The scalar product of two vectors of one to four reals.
    ///
    /// # Errors
    /// Other lengths, or values that are no reals.
    pub fn dot(&mut self, a: &[Value], b: &[Value]) -> Result<Value, String> {
        let made = match (a.len(), b.len()) {
            (1, 1) => self.write(&[a, b].concat(), || vec![vector::<1>(a).dot(&vector(b))]),
            (2, 2) => self.write(&[a, b].concat(), || vec![vector::<2>(a).dot(&vector(b))]),
            (3, 3) => self.write(&[a, b].concat(), || vec![vector::<3>(a).dot(&vector(b))]),
            (4, 4) => self.write(&[a, b].concat(), || vec![vector::<4>(a).dot(&vector(b))]),
            (n, m) => return Err(format!("a product of vectors of {n} and {m} reals")),
        };
        Ok(made?[0])
    }

    /// The length of a vector of one to four reals.
    ///
    /// # Errors
    /// As [`Formula::dot`].
    pub fn length(&mut self, a: &[Value]) -> Result<Value, String> {
        let made = match a.len() {
            1 => self.write(a, || vec![vector::<1>(a).length()]),
            2 => self.write(a, || vec![vector::<2>(a).length()]),
            3 => self.write(a, || vec![vector::<3>(a).length()]),
            4 => self.write(a, || vec![vector::<4>(a).length()]),
            n => return Err(format!("the length of a vector of {n} reals")),
        };
        Ok(made?[0])
    }

    /// The vector product of two vectors of three reals.
    ///
    /// # Errors
    /// As [`Formula::dot`].
    pub fn cross(&mut self, a: &[Value], b: &[Value]) -> Result<Vec<Value>, String> {
        if (a.len(), b.len()) != (3, 3) {
            return Err(format!("a vector product of vectors of {} and {} reals", a.len(), b.len()));
        }
        self.write(&[a, b].concat(), || reals(&vector::<3>(a).cross(&vector(b))))
    }

    /// A square matrix of two to four rows times a matrix of as many rows; a vector is one of one column. Reals come column after column.
    ///
    /// # Errors
    /// As [`Formula::dot`].
    pub fn product(&mut self, rows: usize, a: &[Value], b: &[Value]) -> Result<Vec<Value>, String> {
        let all = [a, b].concat();
        if rows <= 4 && a.len() == rows * rows {
            match (rows, b.len()) {
                (2, 2) => return self.write(&all, || reals(&(matrix::<2, 2>(a) * matrix::<2, 1>(b)))),
                (2, 4) => return self.write(&all, || reals(&(matrix::<2, 2>(a) * matrix::<2, 2>(b)))),
                (3, 3) => return self.write(&all, || reals(&(matrix::<3, 3>(a) * matrix::<3, 1>(b)))),
                (3, 9) => return self.write(&all, || reals(&(matrix::<3, 3>(a) * matrix::<3, 3>(b)))),
                (4, 4) => return self.write(&all, || reals(&(matrix::<4, 4>(a) * matrix::<4, 1>(b)))),
                (4, 16) => return self.write(&all, || reals(&(matrix::<4, 4>(a) * matrix::<4, 4>(b)))),
                _ => {}
            }
        }
        Err(format!("a product of matrices of {} and {} reals, {rows} rows each", a.len(), b.len()))
    }

    /// The determinant of a square matrix of two or three rows, column after column.
    ///
    /// # Errors
    /// As [`Formula::dot`].
    pub fn determinant(&mut self, a: &[Value]) -> Result<Value, String> {
        let made = match a.len() {
            4 => self.write(a, || {
                let m = matrix::<2, 2>(a);
                vec![m[(0, 0)] * m[(1, 1)] - m[(1, 0)] * m[(0, 1)]]
            }),
            9 => self.write(a, || {
                let m = matrix::<3, 3>(a);
                let columns = [0, 1, 2].map(|k| m.column(k).into_owned());
                vec![columns[0].dot(&columns[1].cross(&columns[2]))]
            }),
            n => return Err(format!("the determinant of a matrix of {n} reals")),
        };
        Ok(made?[0])
    }
}

fn vector<const N: usize>(values: &[Value]) -> SVector<Expr, N> {
    SVector::from_fn(|i, _| Expr(values[i].id()))
}

fn matrix<const N: usize, const M: usize>(values: &[Value]) -> SMatrix<Expr, N, M> {
    SMatrix::from_fn(|i, j| Expr(values[j * N + i].id()))
}

fn reals<const N: usize, const M: usize>(of: &SMatrix<Expr, N, M>) -> Vec<Expr> {
    of.iter().copied().collect()
}
