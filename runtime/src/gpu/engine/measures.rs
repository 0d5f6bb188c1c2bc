//! One number of all vertices, combined on the device.

use super::arrays::{Arrays, layouts, storage, uniform};
use super::{Scene, Work, grid, levels};
use crate::engine::pairs;
use crate::error::{Error, Result};
use crate::gpu::device::{Device, STAGING};
use crate::gpu::queue::Queue;
use crate::layout::Domain;
use crate::number::Number;
use crate::program::Combine;
use crate::step::Settings;
use crate::trace::Role;
use meshweft_schedule::Rule;
use meshweft_shaders::layout::Reduction;
use meshweft_shaders::{FINISH, LEAF, REDUCE, Scalar};
use wgpu::BufferUsages as Usage;

/// What combines the values of all slots.
pub(super) struct Measures {
    reduce: wgpu::ComputePipeline,
    finish: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    group: wgpu::BindGroup,
    leaves: wgpu::Buffer,
    scalar: Scalar,
}

impl Measures {
    pub(super) fn new(device: &Device, queue: &Queue, arrays: &Arrays, scalar: Scalar) -> Result<Measures> {
        let entries = [uniform(0, record_bytes()), storage(1, true), storage(2, false), storage(3, false)];
        let (layout, pipeline) = layouts(device, &entries)?;
        let compile = |kernel: meshweft_shaders::Kernel| {
            device.compile(kernel.name, &kernel.source_for(scalar), kernel.name, Some(&pipeline))
        };
        let (group, leaves) = bind(device, queue, arrays, &layout)?;
        Ok(Measures { reduce: compile(REDUCE)?, finish: compile(FINISH)?, layout, group, leaves, scalar })
    }

    /// Goes on with other arrays.
    pub(super) fn renew(&mut self, device: &Device, queue: &Queue, arrays: &Arrays) -> Result<()> {
        (self.group, self.leaves) = bind(device, queue, arrays, &self.layout)?;
        Ok(())
    }
}

/// Bytes of what a reduction is told.
fn record_bytes() -> u64 {
    (4 * Reduction::WORDS as u64).next_multiple_of(16)
}

/// A value a leaf, and it bound with what leaves are made of.
fn bind(
    device: &Device,
    queue: &Queue,
    arrays: &Arrays,
    layout: &wgpu::BindGroupLayout,
) -> Result<(wgpu::BindGroup, wgpu::Buffer)> {
    let leaves_bytes = 4 * arrays.measured.div_ceil(LEAF) as u64;
    let leaves = device.buffer("leaves", leaves_bytes, Usage::STORAGE | Usage::COPY_SRC)?;
    let group = device.guard(|| {
        let size = wgpu::BufferSize::new(record_bytes());
        let record = wgpu::BufferBinding { buffer: &queue.records, offset: 0, size };
        let arrays = [&arrays.values, &leaves, &queue.words].map(wgpu::Buffer::as_entire_binding);
        let resources = std::iter::once(wgpu::BindingResource::Buffer(record)).chain(arrays);
        let entries: Vec<_> =
            (0..).zip(resources).map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource }).collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout, entries: &entries };
        device.device.create_bind_group(&descriptor)
    })?;
    Ok((group, leaves))
}

impl Work {
    /// Combines one number of every vertex of the first part into a global: leaves of 4,096 slots, then pairs of them, in 32 bits. Sums of
    /// integers are exact modulo 2^32.
    pub(super) fn reduce<T: Number>(
        &mut self,
        scene: Scene<T>,
        kernel: usize,
        settings: &Settings,
        into: usize,
    ) -> Result<()> {
        let how = self.values(scene, kernel, settings)?;
        let record = self.reduction(scene, how, into)?;
        self.leaves(record)?;
        let Some(Measures { finish, group, .. }) = &self.measures else { return Err(unmeasured()) };
        self.queue.dispatch(&self.device, |pass| {
            pass.set_pipeline(finish);
            pass.set_bind_group(0, group, &[record]);
            pass.dispatch_workgroups(1, 1, 1);
        })
    }

    /// The same for the host: leaves on the device, in 32 bits, the rest here, in 64.
    pub(super) fn measured<T: Number>(&mut self, scene: Scene<T>, kernel: usize, settings: &Settings) -> Result<f64> {
        let how = self.values(scene, kernel, settings)?;
        if self.arrays.measured == 0 {
            return Ok(how.empty());
        }
        if self.measures.as_ref().is_some_and(|measures| measures.scalar == Scalar::I32) {
            // Sums of integers are exact here, which they would not be in 32 bits.
            let values = self.read::<i32>(&self.arrays.values.clone(), self.arrays.measured)?;
            return Ok(pairs(how, values.into_iter().map(f64::from).collect()));
        }
        let record = self.reduction(scene, how, 0)?;
        self.leaves(record)?;
        let Some(Measures { leaves, .. }) = &self.measures else { return Err(unmeasured()) };
        let leaves = self.read::<f32>(&leaves.clone(), self.arrays.measured.div_ceil(LEAF))?;
        Ok(pairs(how, leaves.into_iter().map(f64::from).collect()))
    }

    /// Measures every slot. Tells how the values are combined.
    fn values<T: Number>(&mut self, scene: Scene<T>, kernel: usize, settings: &Settings) -> Result<Combine> {
        let Role::Measure(how) = self.roles[kernel] else {
            return Err(Error::Internal(format!("kernel {kernel} measures nothing")));
        };
        let given = self.given(scene, settings, false)?;
        self.visit_all(scene.domain, kernel, given)?;
        Ok(how)
    }

    fn visit_all(&mut self, domain: &Domain, kernel: usize, given: u32) -> Result<()> {
        let walk = self.walk(domain, (None, Rule::AtOnce, 1))?;
        self.visit(&walk, kernel, given, false)
    }

    /// What a kernel measures in every slot.
    #[cfg(feature = "cluster")]
    pub(super) fn values_of<T: Number>(&mut self, domain: &Domain, kernel: usize, given: u32) -> Result<Vec<T>> {
        self.visit_all(domain, kernel, given)?;
        self.read::<T>(&self.arrays.values.clone(), self.arrays.slots)
    }

    fn reduction<T: Number>(&mut self, scene: Scene<T>, how: Combine, into: usize) -> Result<u32> {
        let reduction = Reduction {
            count: self.arrays.measured as u32,
            how: match how {
                Combine::Sum => 0,
                Combine::Min => 1,
                Combine::Max => 2,
            },
            into: into as u32,
            levels: levels(scene.depth),
            empty: super::words(&[T::from_f64(how.empty())])[0],
        };
        self.queue.record(&self.device, reduction.words())
    }

    fn leaves(&mut self, record: u32) -> Result<()> {
        let Some(Measures { reduce, group, .. }) = &self.measures else { return Err(unmeasured()) };
        let [x, y] = grid(self.arrays.measured.div_ceil(LEAF) as u32, self.device.about.workgroups);
        self.queue.dispatch(&self.device, |pass| {
            pass.set_pipeline(reduce);
            pass.set_bind_group(0, group, &[record]);
            pass.dispatch_workgroups(x, y, 1);
        })
    }

    /// Reads numbers back, once everything is done.
    fn read<A: bytemuck::Pod>(&mut self, from: &wgpu::Buffer, len: usize) -> Result<Vec<A>> {
        self.queue.settle(&self.device)?;
        let bytes = (4 * len as u64).min(STAGING);
        let staging = self.device.buffer("staging", bytes, Usage::MAP_READ | Usage::COPY_DST)?;
        let mut values = vec![A::zeroed(); len];
        self.device.read(&staging, from, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }
}

fn unmeasured() -> Error {
    Error::Internal("a program without measures measures".into())
}
