//! What a program on a mesh asks of a machine.

use meshweft_mesh::Graph;
use meshweft_schedule::{Order, Rule};

/// What a step of a program asks for, on a mesh in an order: plain data, from `AnySimulation::workload` of the runtime.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The order of its sweeps.
    pub order: Order,
    /// Vertices of the mesh: updates of a round.
    pub vertices: usize,
    /// Bytes that rounds go through again and again: layout and state.
    pub resident_bytes: usize,
    /// What each task asks for, in the order: shape `[tasks]`.
    pub loads: Vec<Load>,
    /// Rounds of the sweeps of a step, at least: loops count once.
    pub rounds: u32,
    /// Whether a step has loops that end when a test holds: how many rounds it takes is not known ahead.
    pub is_open: bool,
    /// Whether it looks only at what has changed, so that a round may be next to nothing: what is predicted is one over all vertices.
    pub is_search: bool,
    /// Whether elements of some star come and go: a round may cost more then than where it was measured.
    pub changes: bool,
    /// Whether elements are projected: what hosts tell each other of those is not counted.
    pub projects: bool,
    /// Lines of the state that tiles touch at random places outside of the first-level cache, if they read it without a copy: where
    /// neighbors lie all over it. By the bytes of the smallest part of the state that is touched so often, ascending; the last counts
    /// all.
    pub far_reads: Vec<FarReads>,
    /// Who has what, if several hosts share the mesh.
    pub hosts: Vec<HostLoad>,
    /// What a step goes through between barriers.
    pub walks: Vec<Passes>,
    /// Which tasks wait for each other.
    pub graph: Graph,
    /// How many predecessors each task has in a row, the longest way: shape `[tasks]`.
    pub depths: Vec<u32>,
    /// Where waves of tasks start, and the end, if the engine goes wave by wave on these threads: shape [waves + 1].
    pub waves: Option<Vec<u32>>,
    /// The host of each task: shape `[tasks]`, or empty for one host.
    pub owners: Vec<u32>,
}

/// What a round asks for, of a task or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Vertices that are updated, lanes that are left over included.
    pub updates: f64,
    /// States that are read: of the vertices, of the halo that is copied, and of neighbors, element after element, lanes that are
    /// left over included.
    pub reads: f64,
    /// Bytes between memory and processor, if no cache keeps any.
    pub bytes: f64,
}

/// Lines that are touched in the part of the state that is touched most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarReads {
    /// Bytes of that part.
    pub bytes: f64,
    /// Lines of it that are touched in a round and lie in no first-level cache.
    pub reads: f64,
}

/// What a host does in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostLoad {
    /// Vertices that it updates.
    pub vertices: usize,
    /// Hosts that it sends to.
    pub neighbors: usize,
    /// Messages to them, if none were shared by several tasks.
    pub messages: u64,
    /// Bytes of state in them.
    pub bytes: u64,
}

/// Rounds that follow one another without a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    /// What their updates read of neighbors.
    pub rule: Rule,
    /// How many.
    pub rounds: u32,
}

impl Workload {
    /// All tasks together.
    pub fn load(&self) -> Load {
        self.loads.iter().fold(Load::default(), |all, load| Load {
            updates: all.updates + load.updates,
            reads: all.reads + load.reads,
            bytes: all.bytes + load.bytes,
        })
    }

    /// States that an update reads, in the mean.
    pub fn reads_per_update(&self) -> f64 {
        self.load().reads / self.vertices.max(1) as f64
    }

    /// The most bytes that a host sends in a round.
    pub fn sent_bytes(&self) -> f64 {
        self.hosts.iter().map(|host| host.bytes).max().unwrap_or(0) as f64
    }

    /// Bytes of state in a message between hosts, in the mean.
    pub fn message_bytes(&self) -> f64 {
        let sum = |of: fn(&HostLoad) -> u64| self.hosts.iter().map(of).sum::<u64>() as f64;
        sum(|host| host.bytes) / sum(|host| host.messages).max(1.0)
    }

    /// How many sets of tasks a round takes one after the other, in the mean, if it goes level by level.
    pub fn levels(&self) -> f64 {
        let levels = |rule: Rule| match rule {
            Rule::Alone | Rule::AtOnce => 1.0,
            Rule::InOrder | Rule::Backward => 1.0 + f64::from(self.depths.iter().copied().max().unwrap_or(0)),
        };
        let of = |passes: &Passes| f64::from(passes.rounds) * levels(passes.rule);
        self.walks.iter().map(of).sum::<f64>() / f64::from(self.rounds.max(1))
    }
}
