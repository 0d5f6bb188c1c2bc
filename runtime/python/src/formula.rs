//! A kernel while it is traced: values are numbers of Python.

use crate::error::ProgramError;
use meshweft::Kind;
use meshweft::tapes::{self, Along, Binary, Input, Leaf, Type, Unary, Value};
use pyo3::prelude::*;

/// A kernel that is written down value by value.
#[pyclass(module = "meshweft._meshweft")]
#[derive(Clone, Default)]
pub(crate) struct Formula {
    pub(crate) formula: tapes::Formula,
    values: Vec<Value>,
}

fn raised(why: String) -> PyErr {
    ProgramError::new_err(why)
}

impl Formula {
    fn keep(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len() - 1
    }

    fn keep_all(&mut self, values: Vec<Value>) -> Vec<usize> {
        values.into_iter().map(|value| self.keep(value)).collect()
    }

    fn value(&self, number: usize) -> PyResult<Value> {
        self.values.get(number).copied().ok_or_else(|| raised(format!("value {number} is none of this formula")))
    }

    fn all(&self, numbers: &[usize]) -> PyResult<Vec<Value>> {
        numbers.iter().map(|&number| self.value(number)).collect()
    }
}

#[pymethods]
impl Formula {
    #[new]
    fn new() -> Formula {
        Formula::default()
    }

    fn copy(&self) -> Formula {
        self.clone()
    }

    fn real(&mut self, value: f64) -> usize {
        let value = self.formula.real(value);
        self.keep(value)
    }

    fn integer(&mut self, value: i32) -> usize {
        let value = self.formula.integer(value);
        self.keep(value)
    }

    fn truth(&mut self, value: bool) -> usize {
        let value = self.formula.truth(value);
        self.keep(value)
    }

    fn input(&mut self, input: &str, k: usize) -> PyResult<usize> {
        let input = match input {
            "parameters" => Input::Parameters,
            "globals" => Input::Globals,
            "settings" => Input::Settings,
            "vertex" => Input::Vertex,
            "step" => Input::Step,
            "shared" => Input::Shared,
            "private" => Input::Private,
            other => return Err(raised(format!("there is no input {other}"))),
        };
        let value = self.formula.input(input, k);
        Ok(self.keep(value))
    }

    /// The word for what a value is: `real`, `integer` or `truth`.
    fn type_of(&self, value: usize) -> PyResult<&'static str> {
        Ok(match self.formula.type_of(self.value(value)?).map_err(raised)? {
            Type::Real => "real",
            Type::Integer => "integer",
            Type::Truth => "truth",
        })
    }

    #[pyo3(signature = (op, a, bits = 0))]
    fn unary(&mut self, op: &str, a: usize, bits: u8) -> PyResult<usize> {
        let op = match op {
            "neg" => Unary::Neg,
            "not" => Unary::Not,
            "sqrt" => Unary::Sqrt,
            "abs" => Unary::Abs,
            "floor" => Unary::Floor,
            "exp" => Unary::Exp,
            "log" => Unary::Ln,
            "sin" => Unary::Sin,
            "cos" => Unary::Cos,
            "acos" => Unary::Acos,
            "tanh" => Unary::Tanh,
            "real" => Unary::FromInt,
            "integer" => Unary::ToInt,
            "hold" => Unary::Hold,
            "held" => Unary::Held,
            "shift_left" => Unary::ShiftLeft(bits),
            "shift_right" => Unary::ShiftRight(bits),
            "shift_right_logical" => Unary::ShiftRightLogical(bits),
            other => return Err(raised(format!("there is no function {other}"))),
        };
        let a = self.value(a)?;
        let value = self.formula.unary(op, a).map_err(raised)?;
        Ok(self.keep(value))
    }

    fn binary(&mut self, op: &str, a: usize, b: usize) -> PyResult<usize> {
        let op = match op {
            "add" => Binary::Add,
            "sub" => Binary::Sub,
            "mul" => Binary::Mul,
            "div" => Binary::Div,
            "pow" => Binary::Pow,
            "atan2" => Binary::Atan2,
            "rem" => Binary::Rem,
            "less" => Binary::Less,
            "at_most" => Binary::AtMost,
            "equals" => Binary::Equals,
            "and" => Binary::BitAnd,
            "or" => Binary::BitOr,
            "xor" => Binary::BitXor,
            other => return Err(raised(format!("there is no function {other}"))),
        };
        let (a, b) = (self.value(a)?, self.value(b)?);
        let value = self.formula.binary(op, a, b).map_err(raised)?;
        Ok(self.keep(value))
    }

    fn select(&mut self, mask: usize, yes: usize, no: usize) -> PyResult<usize> {
        let [mask, yes, no] = [self.value(mask)?, self.value(yes)?, self.value(no)?];
        let value = self.formula.select(mask, yes, no).map_err(raised)?;
        Ok(self.keep(value))
    }

    /// `leaves`: name, whether an integer, and start of each number that is gathered.
    fn open(
        &mut self,
        star: usize,
        name: &str,
        others: usize,
        reals: usize,
        leaves: Vec<(String, bool, usize)>,
    ) -> PyResult<Vec<usize>> {
        let leaf = |(name, is_integer, start): (String, bool, usize)| {
            let kind = if is_integer { Kind::Integer } else { Kind::Real };
            Ok(Leaf { name, kind, start: self.value(start)? })
        };
        let leaves = leaves.into_iter().map(leaf).collect::<PyResult<_>>()?;
        let gathered = self.formula.open(Along::new(star, name, others, reals), leaves).map_err(raised)?;
        Ok(self.keep_all(gathered))
    }

    fn other(&mut self, other: usize, k: usize) -> PyResult<usize> {
        let value = self.formula.other(other, k).map_err(raised)?;
        Ok(self.keep(value))
    }

    fn data(&mut self, k: usize) -> PyResult<usize> {
        let value = self.formula.data(k).map_err(raised)?;
        Ok(self.keep(value))
    }

    fn close(&mut self, next: Vec<usize>) -> PyResult<Vec<usize>> {
        let next = self.all(&next)?;
        let results = self.formula.close(next).map_err(raised)?;
        Ok(self.keep_all(results))
    }

    fn finish(&mut self, outputs: Vec<usize>) -> PyResult<()> {
        let outputs = self.all(&outputs)?;
        self.formula.finish(outputs).map_err(raised)
    }

    fn random(&mut self, seed: i32, is_normal: bool) -> usize {
        let value = self.formula.random(seed, is_normal);
        self.keep(value)
    }

    fn dot(&mut self, a: Vec<usize>, b: Vec<usize>) -> PyResult<usize> {
        let (a, b) = (self.all(&a)?, self.all(&b)?);
        let value = self.formula.dot(&a, &b).map_err(raised)?;
        Ok(self.keep(value))
    }

    fn length(&mut self, a: Vec<usize>) -> PyResult<usize> {
        let a = self.all(&a)?;
        let value = self.formula.length(&a).map_err(raised)?;
        Ok(self.keep(value))
    }

    fn cross(&mut self, a: Vec<usize>, b: Vec<usize>) -> PyResult<Vec<usize>> {
        let (a, b) = (self.all(&a)?, self.all(&b)?);
        let made = self.formula.cross(&a, &b).map_err(raised)?;
        Ok(self.keep_all(made))
    }

    fn product(&mut self, rows: usize, a: Vec<usize>, b: Vec<usize>) -> PyResult<Vec<usize>> {
        let (a, b) = (self.all(&a)?, self.all(&b)?);
        let made = self.formula.product(rows, &a, &b).map_err(raised)?;
        Ok(self.keep_all(made))
    }

    fn determinant(&mut self, a: Vec<usize>) -> PyResult<usize> {
        let a = self.all(&a)?;
        let value = self.formula.determinant(&a).map_err(raised)?;
        Ok(self.keep(value))
    }
}
