//! The performance model: how long a step takes, and why, before it runs.
//!
//! Three things go in, all of them plain data, and none of them guessed:
//!
//! - a [`Workload`], what a step asks for: states and bytes that tasks read, which tasks wait for which, what hosts send each other
//!   (`AnySimulation::workload` of the runtime);
//! - a [`Machine`], what this machine can do: how fast memory of some size is read, in order and at random, and what a link carries;
//! - [`Costs`], what the program's own kernels cost on it, from a [`Trial`] on a mesh that fits into the cache.
//!
//! A [`Prediction`] comes out: seconds of each [`Cost`], one term for each, whose sum is the step. Each says its formula and its source.
//! Nothing here reads a clock; who measures is the `meshweft` command.
//!
//! # The formula
//!
//! ```text
//! step = rounds × (compute + gather + memory + tasks) + wait + latency + network
//! ```
//!
//! It is TOTEM's makespan, `max over partitions of |E_p| / r + |E_b| / c` (α is the share of a partition, β that of its border), with
//! two changes. What overlaps is not added: messages go out while updates go on, so what they cost is how much longer the walk of all
//! tasks becomes, which is found by walking them in virtual time. And `r` is no constant: it is what a kernel takes in a cache, and
//! what bytes cost that come from elsewhere. The four limits of the multi-FPGA model (compute, memory, interface, network) are the same
//! terms; where it takes (n − 1) / n of all messages to leave a host, the real cut is at hand. Where a GPU works beside the cores
//! ([`HybridCosts`]) the maximum over partitions is there as it is written, and the share is the one at which both are equal.

#![forbid(unsafe_code)]

mod gpu;
mod hybrid;
mod machine;
mod prediction;
mod trial;
mod walk;
mod workload;

pub use gpu::GpuCosts;
pub use hybrid::{HybridCosts, LEAST_SHARE};
pub use machine::{Costs, Link, Machine, Packed, Rate};
pub use prediction::{Cost, Place, Prediction};
pub use trial::Trial;
pub use workload::{FarReads, HostLoad, Load, Passes, Workload};
