//! The GPU engine: the same programs and schedules on any adapter that wgpu reaches.
//!
//! - `device` lists adapters and opens one; what goes wrong with it becomes an error there.
//! - [`plan`] says what a device will be asked to do, as plain data: chunks of arrays, and dispatches wave after wave.
//! - `queue` hands dispatches over and receives what comes back.
//! - [`kernels`] are a program's kernels as they were traced; `pipelines` compiles them for a device.
//! - `engine` interprets steps.
//! - `probe` measures the memory of a device.
//! - [`text`] writes a program's shaders down without a device.
//! - `absent` stands for all that needs a device in a build without the feature `gpu`.
//!
//! The layout is that of the CPU's engine, with groups as wide as the device runs in lockstep. What orders updates is the
//! same inequality too ([`is_ready`](meshweft_schedule::is_ready)), solved when a walk is planned: a wave is a dispatch of tasks
//! that are ready together, and inside of a task barriers of the workgroup stand where a CPU's thread has runs. No workgroup
//! ever waits for another: WebGPU promises no progress to one that spins.
//!
//! Globals, and whether a loop goes on, stay on the device. The host asks for iterations of a loop in batches that double, and
//! looks between them; the kernels of an iteration that must not run return at once.

#[cfg(not(feature = "gpu"))]
mod absent;
#[cfg(feature = "gpu")]
mod device;
#[cfg(feature = "gpu")]
mod engine;
mod kernels;
#[cfg(feature = "gpu")]
mod pipelines;
#[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "without a device, plans are made to write shaders alone"))]
mod plan;
#[cfg(feature = "gpu")]
mod probe;
#[cfg(feature = "gpu")]
mod queue;
#[cfg(all(test, feature = "gpu"))]
mod tests;
mod text;

#[cfg(all(feature = "cluster", not(feature = "gpu")))]
pub(crate) use absent::share;
#[cfg(not(feature = "gpu"))]
pub(crate) use absent::{Device, engine};
#[cfg(not(feature = "gpu"))]
pub use absent::{adapters, copy_bandwidth};
#[cfg(feature = "gpu")]
pub(crate) use device::Device;
#[cfg(feature = "gpu")]
pub use device::adapters;
#[cfg(feature = "gpu")]
#[cfg(all(test, feature = "cluster"))]
pub(crate) use device::{MEMORY, Memory};
#[cfg(feature = "gpu")]
pub(crate) use engine::engine;
#[cfg(all(feature = "cluster", feature = "gpu"))]
pub(crate) use engine::share;
pub(crate) use kernels::{scalar, sources};
#[cfg(feature = "cluster")]
pub(crate) use plan::shared_bytes;
#[cfg(feature = "gpu")]
pub use probe::copy_bandwidth;
pub use text::Shader;
pub(crate) use text::shaders;
