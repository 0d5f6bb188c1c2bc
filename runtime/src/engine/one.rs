//! A vertex by itself: what the oracle calls for each.

use super::taped::{Machine, Single, Taped};
use crate::layout::{Changing, Ell, Form, OpenEll, Opened, Row, Tile, View};
use crate::number::Number;
use crate::program::{
    Corners, Given, Kernels, Map, PrivateOf, Project, Record, Reduce, SharedOf, StateOf, Uniform, Update, Vertex,
    VertexOf, hold,
};

/// What the update of one vertex reads.
pub(crate) struct One<'a, T> {
    pub(super) tile: &'a Tile,
    /// Which vertex of the tile.
    pub(super) i: usize,
    pub(super) state: View<'a, T>,
    /// That of all vertices: another, if it is an element that is updated.
    pub(super) vertices: View<'a, T>,
    pub(super) uniform: &'a Uniform<T>,
    /// Of the stage.
    pub(super) round: u32,
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

    fn run<'k>(&self, kernel: &'k Taped) -> Machine<'k, T, 1> {
        let (opened, slot) = (self.opened(), self.slot());
        let vertex = hold(self.tile.numbers(slot..slot + 1).first().copied().unwrap_or(0));
        let own = |k| self.state.real(slot, k);
        let site = Single { row: self.around(&opened), own, shared: kernel.shared, vertex };
        let mut machine = Machine::new(&kernel.listing, self.uniform, self.round, |x| x);
        machine.visit(&site);
        machine
    }

    /// Its stars, and those that change.
    fn opened(&self) -> [Opened<OpenEll<'_, u32, T>>; 2] {
        let Form::Rows { stars, .. } = &self.tile.form else { unreachable!("the oracle's layout consists of rows") };
        [Ell::open(stars), Changing::open(&self.tile.changing)]
    }

    fn around<'a>(
        &'a self,
        [stars, changing]: &'a [Opened<OpenEll<'a, u32, T>>; 2],
    ) -> Row<'a, T, impl Fn(usize) -> T> {
        Row { row: self.i, stars: stars.stars(), changing: changing.stars(), leaf: |i: usize| self.state.shared[i] }
    }
}

/// The new reals of one vertex, shared ones first, and whether they are finite.
pub(super) fn update<P: Kernels, T: Number, K: Update<P>>(one: &One<T>, reals: &mut Vec<T>) -> bool {
    push::<P, T>(K::update(&one.given::<P>(), one.own::<P>(), &one.around(&one.opened())), reals)
}

/// The same of a map.
pub(super) fn map<P: Kernels, T: Number, K: Map<P>>(one: &One<T>, reals: &mut Vec<T>) -> bool {
    push::<P, T>(K::map(&one.given::<P>(), one.own::<P>()), reals)
}

/// The new shared reals of the corners of one element, then its own, and whether they are finite.
pub(super) fn project<P: Kernels, T: Number, K: Project<P>>(one: &One<T>, reals: &mut Vec<T>) -> bool {
    let [opened, _] = one.opened();
    let star = &opened.stars()[0];
    let corners = Corners::build(|k| one.vertices.shared::<SharedOf<P, T>>(star.others(one.i, k, 1)[0] as usize));
    let own = one.state.private::<StateOf<K::Along, T>>(one.slot());
    let data = Record::build(|k| star.data(one.i, k, 1)[0]);
    let (corners, own) = K::project(&one.given::<P>(), corners, own, data);
    corners.as_ref().iter().for_each(|corner| corner.each(|_, x| reals.push(x)));
    own.each(|_, x| reals.push(x));
    corners.as_ref().iter().fold(own.probe(), |probe, corner| probe + corner.probe()).finite()
}

/// What a measure says of one vertex.
pub(super) fn measure<P: Kernels, T: Number, K: Reduce<P>>(one: &One<T>) -> T {
    K::measure(&one.given::<P>(), one.own::<P>(), &one.around(&one.opened()))
}

/// The new reals of one vertex by a tape.
pub(super) fn taped_update<T: Number>(kernel: &Taped, one: &One<T>, reals: &mut Vec<T>) -> bool {
    let machine = one.run(kernel);
    reals.extend((0..kernel.kinds.len()).map(|k| machine.real(k)[0]));
    kernel.are_finite(reals)
}

/// What a measure that is a tape says of one vertex.
pub(super) fn taped_measure<T: Number>(kernel: &Taped, one: &One<T>) -> T {
    one.run(kernel).real(0)[0]
}

/// Takes a vertex apart. Tells whether it is finite.
fn push<P: Kernels, T: Number>(vertex: VertexOf<P, T>, reals: &mut Vec<T>) -> bool {
    let (shared, private) = vertex.split();
    shared.each(|_, x| reals.push(x));
    private.each(|_, x| reals.push(x));
    (shared.probe() + private.probe()).finite()
}
