//! The oracle: one thread, one loop, in order. It specifies what every other engine must compute, bit for bit [C1].

use super::compiled::Code;
use super::interpreter::{Host, Pass};
use super::{Facts, reduce};
use crate::layout::{Layout, Row, State, View, ViewMut};
use crate::number::Number;
use crate::program::{Given, Kernels, Map, PrivateOf, Record, Reduce, SharedOf, Uniform, Update, Vertex, VertexOf};
use crate::schedule::Rule;
use std::sync::Arc;

/// Runs every update by itself, in the order of the schedule.
pub(crate) struct Serial<T> {
    pub(super) layout: Arc<Layout<T>>,
    state: State<T>,
}

impl<T: Number> Serial<T> {
    pub(crate) fn new(layout: Arc<Layout<T>>, state: State<T>) -> Serial<T> {
        Serial { layout, state }
    }
}

impl<T: Number> Host<T> for Serial<T> {
    fn pass(&mut self, passes: Vec<Pass<T>>) -> bool {
        let (mut finite, mut reals, n) = (true, Vec::new(), self.state.len);
        for Pass { code, rule, rounds, uniform } in passes {
            let Code::Vertex { one, .. } = code else { unreachable!("only updates change vertices") };
            for _ in 0..rounds {
                let mut next = (rule == Rule::AtOnce).then(|| self.state.shared.clone());
                for i in 0..n {
                    let v = if rule == Rule::Backward { n - 1 - i } else { i };
                    reals.clear();
                    let visit = One { layout: &self.layout, state: self.state.view(), uniform: &uniform };
                    finite &= one(&visit, v, &mut reals);
                    if self.layout.fixed(v..v + 1).is_none() {
                        self.state.set(v, &reals, next.as_mut());
                    }
                }
                self.state.shared = next.unwrap_or(std::mem::take(&mut self.state.shared));
            }
        }
        finite
    }

    fn measure(&mut self, code: Code<T>, uniform: Uniform<T>) -> f64 {
        let Code::Measure { how, one: measure, .. } = code else { unreachable!("only measures measure") };
        let one = One { layout: &self.layout, state: self.state.view(), uniform: &uniform };
        let value = |v: usize| measure(&one, v).to_f64();
        let leaves = (0..reduce::leaves(&self.layout)).map(|i| reduce::leaf(how, &self.layout, &value, i));
        reduce::pairs(how, leaves.collect())
    }

    fn view(&self) -> View<'_, T> {
        self.state.view()
    }

    fn change(&mut self, change: &mut dyn FnMut(ViewMut<'_, T>)) {
        change(self.state.view_mut());
    }

    fn facts(&self) -> Facts {
        Facts { threads: 1, ..Facts::default() }
    }
}

/// What the update of one vertex reads.
pub(crate) struct One<'a, T> {
    layout: &'a Layout<T>,
    state: View<'a, T>,
    uniform: &'a Uniform<T>,
}

impl<T: Number> One<'_, T> {
    fn own<P: Kernels>(&self, v: usize) -> VertexOf<P, T> {
        Vertex::join(self.state.shared::<SharedOf<P, T>>(v), self.state.private::<PrivateOf<P, T>>(v))
    }

    fn given<P: Kernels>(&self, v: usize) -> Given<P, T> {
        self.uniform.given(self.layout.numbers(v..v + 1).first().copied().unwrap_or(0))
    }

    fn around(&self, v: usize) -> Row<'_, T, impl Fn(usize) -> T> {
        Row { row: v, stars: &self.layout.rows, leaf: |i: usize| self.state.shared[i] }
    }
}

/// The new reals of one vertex, shared ones first, and whether they are finite.
pub(super) fn update<P: Kernels, T: Number, K: Update<P>>(one: &One<T>, v: usize, reals: &mut Vec<T>) -> bool {
    push::<P, T>(K::update(&one.given::<P>(v), one.own::<P>(v), &one.around(v)), reals)
}

/// The same of a map.
pub(super) fn map<P: Kernels, T: Number, K: Map<P>>(one: &One<T>, v: usize, reals: &mut Vec<T>) -> bool {
    push::<P, T>(K::map(&one.given::<P>(v), one.own::<P>(v)), reals)
}

/// What a measure says of one vertex.
pub(super) fn measure<P: Kernels, T: Number, K: Reduce<P>>(one: &One<T>, v: usize) -> T {
    K::measure(&one.given::<P>(v), one.own::<P>(v), &one.around(v))
}

/// Takes a vertex apart. Tells whether it is finite.
fn push<P: Kernels, T: Number>(vertex: VertexOf<P, T>, reals: &mut Vec<T>) -> bool {
    let (shared, private) = vertex.split();
    shared.each(|_, x| reals.push(x));
    private.each(|_, x| reals.push(x));
    (shared.probe() + private.probe()).finite()
}
