//! The kernels of a program, compiled for a number type: plain functions, so that engines know no program.

use super::cpu::{self, Visit};
use super::serial::{self, One};
use crate::layout::Tile;
use crate::number::Number;
use crate::program::{
    Combine, Given, Kernel, KernelList, Kernels, Kind, Map, Record, Reduce, Scalar, Test, Uniform, Update,
};
use std::any::TypeId;
use std::marker::PhantomData;

/// One kernel.
pub(crate) struct Compiled<T> {
    pub(crate) name: &'static str,
    pub(crate) id: TypeId,
    /// Label and unit of a measure that is a metric.
    pub(crate) metric: Option<(&'static str, &'static str)>,
    pub(crate) code: Code<T>,
}

/// What updates a tile. Tells whether all came out finite.
type UpdateTile<T> = fn(&Visit<T>, &Tile<T>) -> bool;
/// What measures a tile.
type MeasureTile<T> = fn(&Visit<T>, &Tile<T>);

/// Its functions.
#[derive(Clone, Copy)]
pub(crate) enum Code<T> {
    /// Of a map or an update: for one vertex, the new reals, shared ones first; for a tile at half and full width, whether all
    /// came out finite; whether it may be left out where nothing has changed.
    Vertex { one: fn(&One<T>, &mut Vec<T>) -> bool, tile: [UpdateTile<T>; 2], is_quiet: bool },
    /// Of a measure: how values are combined; that of one vertex; those of a tile.
    Measure { how: Combine, one: fn(&One<T>) -> T, tile: [MeasureTile<T>; 2] },
    /// New globals.
    Scalar(fn(&Uniform<T>) -> Vec<T>),
    /// Whether a test holds.
    Test(fn(&Uniform<T>) -> bool),
}

/// All kernels of a program, in the order in which it names them.
pub(crate) struct Table<T> {
    pub(crate) kernels: Vec<Compiled<T>>,
    /// What each of the globals is.
    pub(crate) globals: Vec<Kind>,
}

impl<T: Number> Table<T> {
    pub(crate) fn of<P: Kernels>() -> Table<T> {
        let globals = (0..<P::Globals<T>>::LEN).map(<P::Globals<T>>::kind).collect();
        let mut list = List { table: Table { kernels: Vec::new(), globals }, program: PhantomData::<P> };
        P::list(&mut list);
        list.table
    }

    /// Whether some globals are finite.
    pub(crate) fn is_finite(&self, globals: &[T]) -> bool {
        globals.iter().zip(&self.globals).all(|(x, &kind)| kind == Kind::Integer || x.finite())
    }

    /// Identities, by number.
    pub(crate) fn ids(&self) -> Vec<TypeId> {
        self.kernels.iter().map(|kernel| kernel.id).collect()
    }
}

struct List<P, T> {
    table: Table<T>,
    program: PhantomData<P>,
}

impl<P: Kernels, T: Number> List<P, T> {
    fn push<K: Kernel>(&mut self, metric: Option<(&'static str, &'static str)>, code: Code<T>) {
        self.table.kernels.push(Compiled { name: K::NAME, id: TypeId::of::<K>(), metric, code });
    }
}

impl<P: Kernels, T: Number> KernelList<P> for List<P, T> {
    fn map<K: Map<P>>(&mut self) {
        let tile = [cpu::map_tile::<P, T, K, T::Half>, cpu::map_tile::<P, T, K, T::Full>];
        self.push::<K>(None, Code::Vertex { one: serial::map::<P, T, K>, tile, is_quiet: false });
    }

    fn update<K: Update<P>>(&mut self) {
        let tile = [cpu::update_tile::<P, T, K, T::Half>, cpu::update_tile::<P, T, K, T::Full>];
        self.push::<K>(None, Code::Vertex { one: serial::update::<P, T, K>, tile, is_quiet: K::QUIET });
    }

    fn reduce<K: Reduce<P>>(&mut self) {
        let tile = [cpu::measure_tile::<P, T, K, T::Half>, cpu::measure_tile::<P, T, K, T::Full>];
        let code = Code::Measure { how: K::COMBINE, one: serial::measure::<P, T, K>, tile };
        self.push::<K>(K::METRIC, code);
    }

    fn scalar<K: Scalar<P>>(&mut self) {
        self.push::<K>(None, Code::Scalar(compute::<P, T, K>));
    }

    fn test<K: Test<P>>(&mut self) {
        self.push::<K>(None, Code::Test(|uniform| K::test(&uniform.given::<P>(0, 0))));
    }
}

fn compute<P: Kernels, T: Number, K: Scalar<P>>(uniform: &Uniform<T>) -> Vec<T> {
    let given: Given<P, T> = uniform.given(0, 0);
    let mut reals = Vec::with_capacity(uniform.globals.len());
    K::compute(&given).each(|_, x| reals.push(x));
    reals
}
