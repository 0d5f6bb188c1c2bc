//! What the memory of a device can do.

use super::device::Device;
use crate::error::Result;
use meshweft_shaders::COPY;
use std::time::Instant;
use wgpu::BufferUsages as Usage;

/// Bytes a second that GPU `adapter` of [`adapters`](crate::adapters) moves in a plain copy: those read and those written.
///
/// The best of several copies of an array of a gigabyte, which no cache holds, or the largest that a kernel can see. Takes about a
/// second, more in software.
///
/// # Errors
/// No such adapter, or one that fails.
pub fn copy_bandwidth(adapter: usize) -> Result<f64> {
    /// Larger than any cache, and small for any memory.
    const BYTES: u64 = 1 << 30;
    /// Copies in one go: long beside the way there and back.
    const COPIES: u32 = 4;
    const TRIALS: u32 = 5;
    let device = Device::open(adapter)?;
    let about = &device.about;
    let software = about.kind == crate::adapter::AdapterKind::Software;
    let wanted = if software { BYTES / 16 } else { BYTES };
    let bytes = wanted.min(about.binding_bytes).min(about.buffer_bytes) & !0xff;
    let source = device.buffer("source", bytes, Usage::STORAGE)?;
    let target = device.buffer("target", bytes, Usage::STORAGE)?;
    let (pipeline, group) = device.kernel(COPY, &[&source, &target])?;
    // Enough groups for any device to be full, each with a few quads an invocation.
    let groups = (bytes / 16 / 256 / 4).clamp(1, u64::from(about.workgroups.min(1 << 15))) as u32;
    let mut best = 0.0f64;
    for trial in 0..=TRIALS {
        let clock = Instant::now();
        let submission = device.guard(|| {
            let mut encoder = device.device.create_command_encoder(&Default::default());
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            (0..COPIES).for_each(|_| pass.dispatch_workgroups(groups, 1, 1));
            drop(pass);
            device.queue.submit([encoder.finish()])
        })?;
        device.wait(Some(submission))?;
        // The first one touches the memory.
        if trial > 0 {
            best = best.max((2 * bytes * u64::from(COPIES)) as f64 / clock.elapsed().as_secs_f64());
        }
    }
    Ok(best)
}
