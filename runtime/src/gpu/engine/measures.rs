//! One number of all vertices, combined on the device.

use super::{Gpu, Trace};
use crate::engine::pairs;
use crate::error::Result;
use crate::gpu::device::STAGING;
use crate::gpu::records::grid;
use crate::program::{Combine, Number, Program, Reduce};
use crate::trace;
use meshweft_shaders::{LEAF, REDUCE, Scalar};
use std::any::TypeId;
use wgpu::BufferUsages as Usage;

/// What combines the values of all slots.
pub(super) struct Measures {
    reduce: (wgpu::ComputePipeline, wgpu::BindGroup),
    /// Number of slots, and how to combine.
    facts: wgpu::Buffer,
    leaves: wgpu::Buffer,
    staging: wgpu::Buffer,
}

impl Gpu {
    /// Combines one number of every vertex: leaves of 4,096 slots on the device, in 32 bits, the rest here, in 64.
    pub(crate) fn measure<P: Program, T: Number, K: Reduce<P>>(
        &mut self,
        parameters: &P::Parameters<T>,
    ) -> Result<f64> {
        self.set_parameters::<P, T>(parameters)?;
        self.combined((TypeId::of::<K>(), K::NAME), K::COMBINE, &trace::measure::<P, K>)
    }

    /// The values of a kernel that measures, combined.
    fn combined(&mut self, kernel: (TypeId, &str), how: Combine, body: Trace) -> Result<f64> {
        if self.slots == 0 {
            return Ok(how.empty());
        }
        let leaves = self.slots.div_ceil(LEAF);
        if self.measures.is_none() {
            self.queue.settle(&self.device)?;
            let bytes = 4 * leaves as u64;
            self.values = self.device.buffer("values", 4 * self.slots as u64, Usage::STORAGE | Usage::COPY_SRC)?;
            let facts = self.device.buffer("count", 16, Usage::UNIFORM | Usage::COPY_DST)?;
            let leaves = self.device.buffer("leaves", bytes, Usage::STORAGE | Usage::COPY_SRC)?;
            let staging = self.device.buffer("staging", bytes, Usage::MAP_READ | Usage::COPY_DST)?;
            let reduce = self.device.kernel(REDUCE, &[&facts, &self.values, &leaves])?;
            self.measures = Some(Measures { reduce, facts, leaves, staging });
            self.bind()?;
        }
        let list = if how == Combine::Sum { self.lists.all.clone() } else { self.lists.clones.clone() };
        self.run(kernel, &list, 1, false, body)?;
        if self.physics.scalar == Scalar::I32 {
            // Sums of whole numbers are exact, which they would not be in 32 bits.
            return Ok(pairs(how, self.values_here()?));
        }
        let number = [Combine::Sum, Combine::Min, Combine::Max].iter().position(|&one| one == how).unwrap_or(0);
        let Some(Measures { reduce: (pipeline, group), facts, leaves: sums, staging }) = &self.measures else {
            return Ok(how.empty());
        };
        let words: [u32; 4] = [self.slots as u32, number as u32, 0, 0];
        self.device.guard(|| self.device.queue.write_buffer(facts, 0, bytemuck::cast_slice(&words)))?;
        let [x, y] = grid(leaves as u32, self.device.about.workgroups);
        self.queue.dispatch(&self.device, |pass| {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(x, y, 1);
        })?;
        self.queue.settle(&self.device)?;
        let mut found = vec![0f32; leaves];
        self.device.read(staging, sums, bytemuck::cast_slice_mut(&mut found))?;
        Ok(pairs(how, found.into_iter().map(f64::from).collect()))
    }

    /// Reads back the whole numbers of all slots.
    fn values_here(&mut self) -> Result<Vec<f64>> {
        self.queue.settle(&self.device)?;
        let bytes = (4 * self.slots as u64).min(STAGING);
        let staging = self.device.buffer("staging", bytes, Usage::MAP_READ | Usage::COPY_DST)?;
        let mut values = vec![0i32; self.slots];
        self.device.read(&staging, &self.values, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values.into_iter().map(f64::from).collect())
    }
}
