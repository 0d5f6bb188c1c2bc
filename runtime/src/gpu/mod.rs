//! The GPU engine: the same programs and schedules on any adapter that wgpu reaches.
//!
//! - [`device`] lists adapters and opens one; what goes wrong with it becomes an error there.
//! - [`plan`] says what a device will be asked to do, as plain data: chunks of arrays, and dispatches wave after wave.
//! - [`queue`] hands dispatches over and receives what comes back.
//! - [`kernels`] compiles a program's kernels for a device.
//! - [`engine`] interprets steps.
//! - [`probe`] measures the memory of a device.
//! - [`text`] writes a program's shaders down without a device.
//!
//! The layout is that of the CPU's engine, with groups as wide as the device runs in lockstep. What orders updates is the
//! same inequality too ([`is_ready`](crate::schedule::is_ready)), solved when a walk is planned: a wave is a dispatch of tasks
//! that are ready together, and inside of a task barriers of the workgroup stand where a CPU's thread has runs. No workgroup
//! ever waits for another: WebGPU promises no progress to one that spins.
//!
//! Globals, and whether a loop goes on, stay on the device. The host asks for iterations of a loop in batches that double, and
//! looks between them; the kernels of an iteration that must not run return at once.

mod device;
mod engine;
mod kernels;
mod plan;
mod probe;
mod queue;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use device::Device;
pub use device::{Adapter, AdapterKind, adapters};
pub(crate) use engine::Gpu;
pub(crate) use kernels::{scalar, sources};
pub use probe::copy_bandwidth;
pub use queue::Counters;
pub use text::Shader;
pub(crate) use text::shaders;
