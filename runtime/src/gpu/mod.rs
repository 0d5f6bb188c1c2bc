//! The GPU engine: the same programs and schedules on any adapter that wgpu reaches.
//!
//! - [`device`] lists adapters and opens one; what goes wrong with it becomes an error there.
//! - [`plan`] says what a device will be asked to do, as plain data: chunks of arrays, and dispatches.
//! - [`records`] lays dispatches out, [`queue`] hands them over and receives what comes back.
//! - [`engine`] interprets the plan.
//! - [`probe`] measures the memory of a device.
//! - [`text`] writes a program's shaders down without a device.
//!
//! The layout is that of the CPU's engine, with groups as wide as the device runs in lockstep. What orders updates is the
//! same too: dispatches one after the other where the CPU has phases, barriers of a workgroup where a CPU's thread has
//! runs. No workgroup ever waits for another: WebGPU promises no progress to one that spins.

mod device;
mod engine;
mod plan;
mod probe;
mod queue;
mod records;
#[cfg(test)]
mod tests;
mod text;

pub use device::{Adapter, AdapterKind, adapters};
pub(crate) use engine::Gpu;
pub use probe::copy_bandwidth;
pub use queue::Counters;
pub use text::Shader;
pub(crate) use text::shaders;
