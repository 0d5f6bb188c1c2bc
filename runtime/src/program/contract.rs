//! What a program must keep to, checked before it runs.

use super::{
    Kernel, Map, Metrics, Neighbors, Program, Record, Reduce, SharedOf, Stages, Star, StarPlan, Stars, convert,
};
use crate::error::{Error, Result};
use meshweft_mesh::Mesh;
use std::cell::RefCell;

/// The stars that a program adds for a mesh, by their indices. Calls every kernel once on made-up numbers and looks at the
/// folds it makes.
///
/// # Errors
/// Whatever the program says of the mesh; a kernel that folds over a star that was not added, or was added with another
/// number of vertices or reals: it would read rows cut at the wrong places.
pub(crate) fn stars<P: Program>(program: &P, mesh: &Mesh) -> Result<Vec<StarPlan>> {
    let mut stars = Stars::default();
    program.stars(mesh, &mut stars)?;
    let Stars { mut plans } = stars;
    plans.sort_by_key(|plan| plan.index);
    let mut contract = Contract { program, stars: &plans, fault: RefCell::default() };
    program.step(&mut contract);
    program.metrics(&mut contract);
    contract.fault.into_inner().map_or(Ok(plans), |fault| Err(Error::Contract(fault)))
}

struct Contract<'a, P> {
    program: &'a P,
    stars: &'a [StarPlan],
    fault: RefCell<Option<String>>,
}

/// One thing of each star around one vertex of a kernel's.
struct Folds<'a> {
    kernel: &'static str,
    stars: &'a [StarPlan],
    fault: &'a RefCell<Option<String>>,
}

/// All reals a half: no sum, product or quotient of a few of them is special.
fn half<A: Record<f64>>() -> A {
    A::build(|_| 0.5)
}

impl<S: Record<f64>> Neighbors<f64, S> for Folds<'_> {
    fn fold<const N: usize, E: Star<N>, A: Record<f64>>(
        &self,
        _: E,
        init: A,
        f: impl Fn(A, [S; N], E::Data<f64>) -> A,
    ) -> A {
        let wanted = (N, <E::Data<f64> as Record<f64>>::LEN);
        let given = self.stars.iter().find(|plan| plan.index == E::INDEX).map(|plan| (plan.corners - 1, plan.data_len));
        if given != Some(wanted) {
            let kernel = self.kernel;
            let folds =
                format!("kernel {kernel} folds over star {} with {} others and {} reals", E::INDEX, wanted.0, wanted.1);
            self.fault.borrow_mut().get_or_insert(match given {
                None => format!("{folds}, but no such star was added"),
                Some((others, reals)) => format!("{folds}, but it was added with {others} others and {reals} reals"),
            });
        }
        f(init, std::array::from_fn(|_| half()), half())
    }
}

impl<P: Program> Contract<'_, P> {
    fn folds(&self, kernel: &'static str) -> Folds<'_> {
        Folds { kernel, stars: self.stars, fault: &self.fault }
    }

    fn parameters(&self) -> P::Parameters<f64> {
        convert(self.program.parameters(0.0))
    }
}

impl<P: Program> Stages<P> for Contract<'_, P> {
    fn map<K: Map<P>>(&mut self, _: K) {}

    fn sweep<K: Kernel<P>>(&mut self, _: K, _: usize) {
        K::update::<f64>(&self.parameters(), half(), half(), &self.folds(K::NAME));
    }

    fn jacobi<K: Kernel<P>>(&mut self, kernel: K, rounds: usize) {
        self.sweep(kernel, rounds);
    }
}

impl<P: Program> Metrics<P> for Contract<'_, P> {
    fn measure<K: Reduce<P>>(&mut self, _: K) {
        K::measure::<f64>(&self.parameters(), half::<SharedOf<P, f64>>(), half(), &self.folds(K::NAME));
    }
}
