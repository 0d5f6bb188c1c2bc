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
#[cfg(feature = "cluster")]
mod grid;
mod interpreter;
mod legs;
mod one;
mod reduce;
mod serial;
mod timeline;

pub(crate) use audit::Audit;
pub(crate) use code::is_built;
pub(crate) use compiled::Table;
pub(crate) use cpu::{Cpu, waves};
pub(crate) use interpreter::Interpreter;
#[cfg(all(feature = "gpu", feature = "cluster"))]
pub(crate) use legs::Legs;
#[cfg(feature = "gpu")]
pub(crate) use reduce::pairs;
pub(crate) use serial::Serial;
#[cfg(all(feature = "gpu", feature = "cluster"))]
pub(crate) use timeline::Pen;
pub(crate) use timeline::{Event, MOST, NETWORK, Recording, Timeline, What};
#[cfg(feature = "cluster")]
pub(crate) use {
    code::{Code, Measure, Pass},
    cpu::{Arrivals, Border, Haste, Lag, Outbox},
    grid::{Folding, Grid, Less, Offers, Sides},
    interpreter::{Host as Walks, fixpoint as round_by_round},
    reduce::Reduction,
};

use crate::error::Result;
#[cfg(feature = "gpu")]
use crate::gpu::Shared;
use crate::gpu::{Adapter, Counters};
use crate::layout::{State, View, ViewMut};
use crate::number::Number;
use crate::piece::Frame;
use crate::step::{Settings, Step};
use meshweft_mesh::Mesh;

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

    /// Has the state after all steps so far copied and sent here, while hosts that hold it take the next steps; none if it is here.
    ///
    /// # Errors
    /// A host that was lost.
    fn snapshot(&mut self) -> Result<Option<Promise<T>>> {
        Ok(None)
    }

    /// Changes the state.
    fn edit(&mut self, edit: &mut dyn FnMut(ViewMut<'_, T>)) -> Result<()>;

    /// The globals after all steps.
    fn globals(&self) -> Result<Vec<T>>;

    /// Replaces the globals.
    fn set_globals(&mut self, globals: &[T]) -> Result<()>;

    /// Where the shared state lies on a device after all steps, if it does.
    #[cfg(feature = "gpu")]
    fn shared(&mut self) -> Result<Option<Shared>> {
        Ok(None)
    }

    /// Has each host that holds a part of the state write its piece of the mesh, and waits until all have.
    /// Returns how many did, numbered from 1; none if the state is here.
    ///
    /// # Errors
    /// A host that was lost, or could not write.
    fn write_pieces(&mut self, _mesh: &Mesh, _frame: &Frame) -> Result<Option<u32>> {
        Ok(None)
    }

    /// What there is to know of it.
    fn facts(&self) -> Facts;

    /// What the threads of other hosts did, by this one's clock, if they write it down.
    ///
    /// # Errors
    /// A host that was lost.
    fn recordings(&mut self) -> Result<Vec<Recording>> {
        Ok(Vec::new())
    }
}

/// Waits for a state that is on its way.
pub(crate) type Promise<T> = Box<dyn FnOnce() -> Result<State<T>> + Send>;

/// How far an engine is, counted from its start or from the last change of its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Steps taken, the one that was not finite included.
    pub(crate) steps: u64,
    /// Rounds that updated every vertex from its neighbors, and how many of them an order bound.
    pub(crate) rounds: u64,
    pub(crate) swept: u64,
    /// Whether some update of the last of those steps was not finite.
    pub(crate) spoilt: bool,
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

/// What one host of a run has of the mesh, and what it has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReport {
    /// Its number: workers count from 1.
    pub host: u32,
    /// Vertices that it updates.
    pub vertices: usize,
    /// Tasks that they lie in.
    pub tasks: usize,
    /// Its vertices that other hosts read.
    pub boundary: usize,
    /// Vertices of other hosts that it reads.
    pub ghosts: usize,
    /// Hosts that it exchanges values with, ascending.
    pub neighbors: Vec<u32>,
    /// The most of the mesh that it can have, of 1, if its GPU is known to hold no more.
    pub most: Option<f64>,
    /// Messages to other workers in a round of updates.
    pub round_messages: u64,
    /// Bytes of state in them; what stands before each comes on top.
    pub round_bytes: u64,
    /// The GPU that updates; empty if threads do.
    pub gpu: String,
    /// Threads that update.
    pub threads: usize,
    /// Seconds that its threads updated, all together.
    pub updating_s: f64,
    /// Seconds that they waited for other hosts, or for each other.
    pub waiting_s: f64,
    /// Share of the time of messages in which its threads had work: one minus their waits while messages were outstanding, over the
    /// time in which some were, for each thread. None if it has got no messages.
    pub overlapped: Option<f64>,
    /// Messages to other workers, and their bytes.
    pub sent_messages: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Bytes of messages of values to other workers, before any were packed.
    pub value_bytes: u64,
    /// Bytes of them as they went out: fewer where they were packed.
    pub value_bytes_sent: u64,
    /// What it has sent in searches on hosts that stand in a grid: bytes as they would have been and as they went out, of lists of
    /// vertices that have changed; of frontiers, which have these lists; of offers; and of who makes them.
    pub search_bytes: [[u64; 2]; 4],
    /// Vertices in those lists, as often as they were sent.
    pub search_ids: u64,
    /// The most memory that its process has held, in bytes; 0 where the system does not tell.
    pub memory_bytes: u64,
}
