//! Hosts that keep the state of an engine.

use super::Recording;
use crate::error::Result;
use crate::layout::State;
use crate::number::Number;
use crate::piece::Frame;
use meshweft_mesh::Mesh;
use std::ops::Range;
use std::sync::Arc;

/// What hosts do that keep the state of an engine, and that is done here where the state is.
///
/// All of it is an error once a host was lost.
pub(crate) trait Remote<T: Number> {
    /// Has the state after all steps so far copied and sent here, while hosts take the next steps; none if it is known here.
    fn snapshot(&mut self) -> Result<Option<Promise<T>>>;

    /// Has each host write its piece of the mesh, and waits until all have. Returns how many did, numbered from 1.
    ///
    /// # Errors
    /// A host that could not write.
    fn write_pieces(&mut self, mesh: &Mesh, frame: &Frame) -> Result<Range<u32>>;

    /// The host that has each vertex of the mesh.
    fn owners(&mut self) -> Vec<u32>;

    /// What their threads did, by the clock of this host; nothing if that is not recorded.
    fn recordings(&mut self) -> Result<Vec<Recording>>;
}

/// Waits for a state that is on its way.
pub(crate) type Promise<T> = Box<dyn FnOnce() -> Result<Arc<State<T>>> + Send>;

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
    /// Steps that it was asked for and had not done.
    pub behind: u64,
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
