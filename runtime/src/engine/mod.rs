//! Engines: ways to walk a schedule.
//!
//! [`serial`] is the oracle: the loop that defines every result. [`cpu`] walks phases or task graphs on a pool of
//! threads. Both receive a [`Job`], plain data, and neither knows files, clocks or networks. An engine decides when an
//! update runs, never what it computes: all call the same update through the same [`Row`](crate::layout::Row).

mod audit;
mod cells;
mod cpu;
mod reduce;
mod serial;
mod table;
mod tasks;

pub(crate) use audit::Audit;
pub(crate) use cpu::Cpu;
pub(crate) use reduce::pairs;
pub(crate) use serial::Serial;

use crate::layout::{Layout, State};
use crate::program::{Kernel, Map, Number, Program, Reduce};

/// What an engine works on: parameters, layout and state of one time step.
pub(crate) struct Job<'a, P: Program, T: Number> {
    pub(crate) parameters: P::Parameters<T>,
    pub(crate) layout: &'a Layout<T>,
    pub(crate) state: &'a mut State<T>,
    pub(crate) audit: Option<&'a Audit>,
    /// Cleared when an update returns a value that is not finite.
    pub(crate) finite: bool,
}

/// A way to run the kernels of a step.
pub(crate) trait Engine {
    /// Updates every vertex by itself.
    fn map<P: Program, T: Number, K: Map<P>>(&self, job: &mut Job<P, T>);

    /// Updates every vertex `rounds` times in place, as if one by one in the order of the schedule.
    fn sweep<P: Program, T: Number, K: Kernel<P>>(&self, job: &mut Job<P, T>, rounds: usize);

    /// Updates every vertex `rounds` times from the old values of all neighbors.
    fn jacobi<P: Program, T: Number, K: Kernel<P>>(&self, job: &mut Job<P, T>, rounds: usize);

    /// Combines one number of every vertex in the fixed tree.
    fn measure<P: Program, T: Number, K: Reduce<P>>(&self, job: &Job<P, T>) -> f64;
}

/// Whether all reals of a record are finite.
#[inline(always)]
pub(crate) fn all_finite<T: Number, A: crate::program::Record<T>>(record: &A) -> bool {
    let mut finite = true;
    record.each(|_, x| finite &= x.finite());
    finite
}
