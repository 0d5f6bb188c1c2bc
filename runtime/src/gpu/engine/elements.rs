//! Elements that are projected, on the device: laid out, planned and visited as vertices are, and they see the same shared state.

use super::arrays::Arrays;
use super::{Scene, Work, grid};
use crate::error::{Error, Result};
use crate::gpu::device::Device;
use crate::gpu::plan::{Limits, Plan};
use crate::gpu::queue::Queue;
use crate::layout::{Domain, shared_stride};
use crate::number::Number;
use crate::step::Settings;
use crate::trace::Role;
use meshweft_schedule::Rule;
use meshweft_shaders::PAD;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The elements of one star.
pub(super) struct Elements {
    pub(super) domain: Arc<Domain>,
    pub(super) plan: Plan,
    pub(super) arrays: Arrays,
}

impl Elements {
    /// Those of all stars of a program.
    pub(super) fn of(
        device: &Device,
        queue: &Queue,
        (domain, limits): (&Domain, &Limits),
        record_bytes: u64,
    ) -> Result<BTreeMap<usize, Elements>> {
        let elements = |(&star, domain): (&usize, &Arc<Domain>)| {
            let mut plan = Plan::new(domain, limits)?;
            let arrays = Arrays::new(device, queue, &mut plan, domain, (record_bytes, None))?;
            Ok((star, Elements { domain: domain.clone(), plan, arrays }))
        };
        domain.elements.iter().map(elements).collect()
    }
}

/// Makes padding lanes copies of their vertices again: elements move those and know nothing of them.
pub(super) struct Padding {
    pipeline: wgpu::ComputePipeline,
    count: u32,
    pairs: wgpu::Buffer,
    /// The arrays that it was bound with, each.
    bound: Option<([wgpu::Buffer; 2], [wgpu::BindGroup; 2])>,
}

impl Padding {
    /// None where there is no padding.
    pub(super) fn new(device: &Device, domain: &Domain) -> Result<Option<Padding>> {
        let padding = domain.padding();
        if padding.is_empty() {
            return Ok(None);
        }
        let mut pairs = vec![[padding.len() as u32, shared_stride(domain.shape.shared) as u32]];
        // Lanes of padding follow their vertex.
        for slots in padding.chunk_by(|a, b| a + 1 == *b) {
            pairs.extend(slots.iter().map(|slot| [*slot, slots[0] - 1]));
        }
        let pairs = device.array("padding", bytemuck::cast_slice(&pairs))?;
        let pipeline = device.compile(PAD.name, PAD.source, PAD.name, None)?;
        Ok(Some(Padding { pipeline, count: padding.len() as u32, pairs, bound: None }))
    }

    fn run(&mut self, device: &Device, queue: &mut Queue, arrays: &Arrays) -> Result<()> {
        if self.bound.as_ref().is_none_or(|(bound, _)| bound != arrays.both()) {
            let group = |shared: &wgpu::Buffer| device.bind(&self.pipeline, &[&self.pairs, shared]);
            let [first, second] = arrays.both();
            self.bound = Some((arrays.both().clone(), [group(first)?, group(second)?]));
        }
        let Some((_, groups)) = &self.bound else { return Ok(()) };
        let [x, y] = grid(self.count.div_ceil(PAD.workgroup_size), device.about.workgroups);
        queue.dispatch(device, |pass| {
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &groups[usize::from(arrays.current())], &[]);
            pass.dispatch_workgroups(x, y, 1);
        })
    }
}

impl Work {
    /// Projects all elements of the star of a kernel, `rounds` times.
    pub(super) fn project<T: Number>(
        &mut self,
        scene: Scene<T>,
        kernel: usize,
        settings: &Settings,
        rounds: u32,
    ) -> Result<()> {
        let Role::Project { star } = self.roles[kernel] else {
            return Err(Error::Internal(format!("kernel {kernel} projects nothing")));
        };
        self.rounds(scene, kernel, settings, rounds, |work, rounds, given| {
            let Work { device, queue, pipelines, arrays, elements, .. } = work;
            let elements = elements.get_mut(&star).expect("elements that are projected are laid out");
            let walk = elements.plan.walk(&elements.domain, (None, Rule::InOrder, rounds));
            elements.arrays.take(device, queue, &elements.plan)?;
            elements.arrays.follow(device, queue, arrays)?;
            elements.arrays.visit(device, queue, pipelines, &walk, (kernel, given, false))?;
            Ok(walk.rounds)
        })?;
        let Work { device, queue, arrays, padding, .. } = self;
        padding.as_mut().map_or(Ok(()), |padding| padding.run(device, queue, arrays))
    }
}
