//! The kernels of a program, compiled for a number type.

use super::code::{Code, Compiled, Relaxation};
use super::cpu::{relaxation, tile};
use super::one;
use crate::number::Number;
use crate::program::{
    Given, Kernel, KernelList, Kernels, Kind, Map, Record, Reduce, Relax, Scalar, Star, Test, Uniform, Update,
};
use std::any::TypeId;
use std::marker::PhantomData;

/// All kernels of a program, in the order in which it names them.
pub(crate) struct Table<T> {
    pub(crate) kernels: Vec<Compiled<T>>,
    /// What each of the globals is.
    pub(crate) globals: Vec<Kind>,
    /// Stars along which something relaxes.
    pub(crate) relaxed: Vec<usize>,
}

impl<T: Number> Table<T> {
    pub(crate) fn of<P: Kernels>() -> Table<T> {
        let globals = (0..<P::Globals<T>>::LEN).map(<P::Globals<T>>::kind).collect();
        let mut list =
            List { table: Table { kernels: Vec::new(), globals, relaxed: Vec::new() }, program: PhantomData::<P> };
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

    fn push_update<K: Update<P>>(&mut self, relax: Option<Relaxation<T>>) {
        let tile = [tile::update::<P, T, K, T::Half>, tile::update::<P, T, K, T::Full>];
        self.push::<K>(None, Code::Vertex { one: one::update::<P, T, K>, tile, is_quiet: K::QUIET, relax });
    }
}

impl<P: Kernels, T: Number> KernelList<P> for List<P, T> {
    fn map<K: Map<P>>(&mut self) {
        let tile = [tile::map::<P, T, K, T::Half>, tile::map::<P, T, K, T::Full>];
        self.push::<K>(None, Code::Vertex { one: one::map::<P, T, K>, tile, is_quiet: false, relax: None });
    }

    fn update<K: Update<P>>(&mut self) {
        self.push_update::<K>(None);
    }

    fn relax<K: Relax<P>>(&mut self) {
        let star = <K::Along as Star<1>>::INDEX;
        self.push_update::<K>(Some(Relaxation {
            star,
            here: relaxation::fixpoint::<P, T, K>,
            #[cfg(feature = "cluster")]
            in_grid: super::grid::fixpoint::<P, T, K>,
        }));
        self.table.relaxed.push(star);
    }

    fn reduce<K: Reduce<P>>(&mut self) {
        let tile = [tile::measure::<P, T, K, T::Half>, tile::measure::<P, T, K, T::Full>];
        let code = Code::Measure { how: K::COMBINE, sight: K::SIGHT, one: one::measure::<P, T, K>, tile };
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
