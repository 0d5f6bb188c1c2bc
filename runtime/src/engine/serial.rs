//! The oracle: one thread, one loop, in order. It specifies what every other engine must compute, bit for bit [C1].

use super::compiled::Code;
use super::interpreter::{Host, Pass};
use super::{Facts, reduce};
use crate::layout::{Form, Layout, Row, State, Tile, View, ViewMut};
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
        let (mut finite, mut reals) = (true, Vec::new());
        for Pass { code, rule, rounds, uniform, .. } in passes {
            let Code::Vertex { one, .. } = code else { unreachable!("only updates change vertices") };
            for round in 0..rounds {
                let mut next = (rule == Rule::AtOnce).then(|| self.state.shared.clone());
                self.layout.clone().each_vertex(rule == Rule::Backward, |tile, i| {
                    reals.clear();
                    let slot = tile.own().start + i;
                    finite &= one(&One { tile, i, state: self.state.view(), uniform: &uniform, round }, &mut reals);
                    if tile.fixed(slot..slot + 1).is_none() {
                        self.state.set(slot, &reals, next.as_mut());
                    }
                });
                self.state.shared = next.unwrap_or(std::mem::take(&mut self.state.shared));
            }
        }
        finite
    }

    fn measure(&mut self, code: Code<T>, uniform: Uniform<T>) -> f64 {
        let Code::Measure { how, one: measure, .. } = code else { unreachable!("only measures measure") };
        let mut values = Vec::with_capacity(self.state.len);
        self.layout.each_vertex(false, |tile, i| {
            values.push(measure(&One { tile, i, state: self.state.view(), uniform: &uniform, round: 0 }).to_f64());
        });
        let leaf = |i| reduce::leaf(how, &self.layout, &|slot| values[slot], i);
        reduce::pairs(how, (0..reduce::leaves(&self.layout)).map(leaf).collect())
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
    tile: &'a Tile<T>,
    /// Which vertex of the tile.
    i: usize,
    state: View<'a, T>,
    uniform: &'a Uniform<T>,
    /// Of the stage.
    round: u32,
}

impl<T: Number> One<'_, T> {
    fn slot(&self) -> usize {
        self.tile.own().start + self.i
    }

    fn own<P: Kernels>(&self) -> VertexOf<P, T> {
        let slot = self.slot();
        Vertex::join(self.state.shared::<SharedOf<P, T>>(slot), self.state.private::<PrivateOf<P, T>>(slot))
    }

    fn given<P: Kernels>(&self) -> Given<P, T> {
        let number = self.tile.numbers(self.slot()..self.slot() + 1).first();
        self.uniform.given(number.copied().unwrap_or(0), self.round)
    }

    fn around(&self) -> Row<'_, T, impl Fn(usize) -> T> {
        let Form::Rows { stars, .. } = &self.tile.form else { unreachable!("the oracle's layout consists of rows") };
        Row { row: self.i, stars, leaf: |i: usize| self.state.shared[i] }
    }
}

/// The new reals of one vertex, shared ones first, and whether they are finite.
pub(super) fn update<P: Kernels, T: Number, K: Update<P>>(one: &One<T>, reals: &mut Vec<T>) -> bool {
    push::<P, T>(K::update(&one.given::<P>(), one.own::<P>(), &one.around()), reals)
}

/// The same of a map.
pub(super) fn map<P: Kernels, T: Number, K: Map<P>>(one: &One<T>, reals: &mut Vec<T>) -> bool {
    push::<P, T>(K::map(&one.given::<P>(), one.own::<P>()), reals)
}

/// What a measure says of one vertex.
pub(super) fn measure<P: Kernels, T: Number, K: Reduce<P>>(one: &One<T>) -> T {
    K::measure(&one.given::<P>(), one.own::<P>(), &one.around())
}

/// Takes a vertex apart. Tells whether it is finite.
fn push<P: Kernels, T: Number>(vertex: VertexOf<P, T>, reals: &mut Vec<T>) -> bool {
    let (shared, private) = vertex.split();
    shared.each(|_, x| reals.push(x));
    private.each(|_, x| reals.push(x));
    (shared.probe() + private.probe()).finite()
}
