//! One simulation on several hosts.
//!
//! # The idea
//!
//! A host is one more walker of the task graph. Every host has a *share*: some tasks, their tiles, and *ghosts*, the tasks of
//! others that its own read. It walks its own tasks by the same inequality as threads do
//! (`schedule::is_ready`), and a ghost is a task whose epoch another host stores: the values that come from another host *are*
//! a neighbor completing. Both directions cross the wire, new values of predecessors and old ones of successors, as epochs of
//! one counter. So every partition, number of hosts and network gives the bits of the oracle [C3].
//!
//! No hosts wait in a ring, because tasks are numbered in the whole mesh: of all that are left, the first by round and
//! length of chain can always run.
//!
//! # Who does what
//!
//! ```text
//!  driver                                   worker 1            worker 2
//!  Simulation ─ Crew (an engine)            Interpreter         Interpreter
//!       │         │                            │  │                │  │
//!       │       Driver   share, state, steps   ▼  │                ▼  │
//!       ▼         │                           Cpu │               Cpu │
//!  host's loop  Exchange ═══════════════════► Exchange ◄═════════► Exchange      values, each epoch once
//! ```
//!
//! The [driver](driver) plans the mesh, sends shares and state, and then says what is to be done without waiting for it: a
//! [worker](worker) that is told of steps in time walks several of them as one. Values go between workers directly. Measures are
//! combined by the first worker in the tree that one host would use.
//!
//! A [`Transport`](meshweft_net::Transport) carries messages, whole, in order and each once. When it tells that a host is lost, the
//! [crew](crew) begins the run again where it has a state, with those that are left or come again.

mod account;
mod agreement;
mod arrival;
mod balance;
mod copies;
mod crew;
mod driver;
mod exchange;
mod frontier;
mod grid;
#[cfg(test)]
mod hurt;
mod kind;
mod launch;
mod message;
mod overlap;
mod packing;
mod partition;
mod pieces;
mod process;
#[cfg(test)]
mod simulated;
mod snapshot;
mod stall;
mod stream;
#[cfg(test)]
mod tests;
mod time;
mod timeline;
mod values;
mod worker;
mod workers;

pub use launch::{Cluster, Gathering};
pub use meshweft_net::RunKey;
#[doc(hidden)]
pub use meshweft_net::{ListCost, list_costs};
pub use packing::Compress;
pub(crate) use packing::tried as try_packing;
pub use partition::Sharing;
pub(crate) use partition::{even, sharing};
pub use process::{Leaver, Worker};
