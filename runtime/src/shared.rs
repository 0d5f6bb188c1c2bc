//! State that stays on a device.

/// Where the shared state of a simulation lies on a device.
pub(crate) struct Shared {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) buffer: wgpu::Buffer,
}
