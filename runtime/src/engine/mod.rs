//! Engines: ways to walk a schedule.
//!
//! [`serial`] is the oracle: the loop that defines every result. [`cpu`] walks the task graph on a team of threads, and the
//! GPU's engine stands beside them. Each keeps the state of all vertices, takes whole steps ([`Step`]), plain data, and knows
//! neither files, clocks nor networks. An engine decides when an update runs, never what it computes: all call the same
//! kernels.

mod audit;
mod code;
mod compiled;
pub(crate) mod cpu;
mod epochs;
#[cfg(feature = "cluster")]
mod grid;
mod interpreter;
mod iterations;
mod legs;
#[cfg(feature = "jit")]
mod native;
mod one;
mod reduce;
mod remote;
mod serial;
mod store;
mod taped;
mod timeline;
mod touches;

pub(crate) use audit::Audit;
pub(crate) use compiled::Table;
pub(crate) use cpu::{Cpu, waves};
pub(crate) use interpreter::Interpreter;
pub use iterations::Iterations;
pub(crate) use iterations::Loops;
#[cfg(feature = "gpu")]
pub(crate) use reduce::pairs;
pub use remote::HostReport;
pub(crate) use remote::{Promise, Remote};
pub(crate) use serial::Serial;
#[cfg(all(feature = "gpu", feature = "cluster"))]
pub(crate) use timeline::Pen;
pub(crate) use timeline::{Event, MOST, NETWORK, Recording, Timeline, What};
#[cfg(feature = "cluster")]
pub(crate) use {
    code::{Code, Measure, Pass, is_built},
    cpu::{AHEAD, Arrivals, Border, Lag, Outbox},
    grid::{Folding, Grid, Less, Offers, Sides},
    interpreter::{Walker, fixpoint as round_by_round},
    reduce::Reduction,
    store::Store,
};
#[cfg(all(feature = "gpu", feature = "cluster"))]
pub(crate) use {epochs::Epochs, legs::Legs};

use crate::adapter::{Adapter, Counters};
use crate::error::Result;
use crate::layout::{Domain, Edit, View};
use crate::number::Number;
#[cfg(feature = "gpu")]
use crate::shared::Shared;
use crate::step::{Settings, Step};
use std::sync::Arc;

/// What runs the steps of a simulation and keeps its state.
pub(crate) trait Engine<T: Number>: Send + Sync {
    /// Takes a step, or asks a device for it and goes on.
    fn step(&mut self, step: &Step<T>) -> Result<()>;

    /// Waits until all steps are done, and tells how far they got.
    fn settle(&mut self) -> Result<Progress>;

    /// How far it is, as far as is known without waiting.
    fn progress(&self) -> Progress;

    /// Measures every vertex and combines the values in the fixed tree. `kernel`: its number in the table; `step`: steps taken.
    fn measure(&mut self, kernel: usize, settings: &Settings, parameters: &[T], step: u32) -> Result<f64>;

    /// The state after all steps.
    fn state(&self) -> Result<View<'_, T>>;

    /// Changes the state.
    fn edit(&mut self, edit: &mut Edit<T>) -> Result<()>;

    /// The state of the elements of a star after all steps. Only an engine whose backend was found to project them is asked.
    fn elements(&self, _star: usize) -> Result<View<'_, T>> {
        unreachable!("a backend that projects no elements is refused when a simulation is built");
    }

    /// Changes it.
    fn edit_elements(&mut self, _star: usize, _edit: &mut Edit<T>) -> Result<()> {
        unreachable!("a backend that projects no elements is refused when a simulation is built");
    }

    /// The globals after all steps.
    fn globals(&self) -> Result<Vec<T>>;

    /// Replaces the globals.
    fn set_globals(&mut self, globals: &[T]) -> Result<()>;

    /// Goes on with other elements of changing stars, after a change of the state if there is one to make. Only an engine whose backend was
    /// found to be able to is asked.
    fn renew(&mut self, _domain: Arc<Domain>, _begin: Option<&mut Edit<T>>) -> Result<()> {
        unreachable!("a backend that has no changing stars is refused when a simulation is built");
    }

    /// Where the shared state lies on a device after all steps, if it does.
    #[cfg(feature = "gpu")]
    fn shared(&mut self) -> Result<Option<Shared>> {
        Ok(None)
    }

    /// What there is to know of it.
    fn facts(&self) -> Facts;

    /// The hosts that keep its state, if those are others.
    fn remote(&mut self) -> Option<&mut dyn Remote<T>> {
        None
    }
}

/// How far an engine is, counted from its start or from the last change of its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Steps taken, the one that was not finite included.
    pub(crate) steps: u64,
    /// Rounds that updated every vertex from its neighbors, and how many of them an order bound.
    pub(crate) rounds: u64,
    pub(crate) swept: u64,
    /// How often loops went round.
    pub(crate) loops: Loops,
    /// Whether some update of the last of those steps was not finite.
    pub(crate) non_finite: bool,
    /// Whether more of them may be under way.
    pub(crate) is_pending: bool,
}

/// What there is to know of an engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) threads: usize,
    /// Walks that were held up by a thread that did not run.
    pub(crate) stalls: u64,
    /// Updates of vertices that were left out, because nothing that they read had changed.
    pub(crate) left_out: u64,
    /// Bytes that a round must move at least, beyond what the layout tells, if the engine has an account of its own.
    pub(crate) round_bytes: Option<usize>,
    pub(crate) gpu: Option<(Adapter, Counters)>,
    /// What each host has done, if there are several.
    pub(crate) hosts: Vec<HostReport>,
}
