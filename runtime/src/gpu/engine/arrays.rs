//! The arrays of a simulation on its device, and how kernels see them.

use super::grid;
use crate::error::Result;
use crate::gpu::device::{Device, STAGING};
use crate::gpu::pipelines::Pipelines;
use crate::gpu::plan::{Plan, Walk, shared_bytes};
use crate::gpu::queue::Queue;
use crate::layout::{Domain, State};
use crate::number::Number;
use meshweft_shaders::layout::Range;
use wgpu::BufferUsages as Usage;

/// All arrays, bound for every chunk.
pub(super) struct Arrays {
    shared: [wgpu::Buffer; 2],
    /// Whether the second of them holds all slots.
    is_double: bool,
    /// Whether the second of them holds the state.
    current: bool,
    shared_bytes: u64,
    chunks: Vec<Chunk>,
    /// One number a slot, if anything is measured.
    pub(super) values: wgpu::Buffer,
    pub(super) slots: usize,
    /// The first so many slots are measured.
    pub(super) measured: usize,
    ranges: wgpu::Buffer,
    list: wgpu::Buffer,
    /// How many records and entries of the list are on the device.
    taken: (usize, usize),
    /// Bytes of a record, from one to the next, and of what a stage is given.
    range_bytes: u64,
    stride: u64,
    record_bytes: u64,
    layout: (wgpu::BindGroupLayout, wgpu::PipelineLayout),
    /// By chunk, then by which array holds the state.
    groups: Vec<[wgpu::BindGroup; 2]>,
}

struct Chunk {
    private: wgpu::Buffer,
    private_bytes: u64,
    words: wgpu::Buffer,
    reals: wgpu::Buffer,
}

const STATE: Usage = Usage::STORAGE.union(Usage::COPY_SRC).union(Usage::COPY_DST);

impl Arrays {
    /// Makes the arrays of a plan; the host's copies of what does not change are dropped. `measured`: slots, if anything is.
    pub(super) fn new(
        device: &Device,
        queue: &Queue,
        plan: &mut Plan,
        domain: &Domain,
        (record_bytes, measured): (u64, Option<usize>),
    ) -> Result<Arrays> {
        let range_bytes = 4 * Range::words_with(domain.stars.len()) as u64;
        let alignment = u64::from(device.device.limits().min_uniform_buffer_offset_alignment);
        let shared_bytes = shared_bytes(domain.slots(), domain.shape.shared);
        let chunks = chunks(device, plan, domain)?;
        let mut arrays = Arrays {
            shared: [device.buffer("shared state", shared_bytes, STATE)?, device.buffer("a word", 16, STATE)?],
            is_double: false,
            current: false,
            shared_bytes,
            chunks,
            values: device.buffer("values", 4 * measured.unwrap_or(0) as u64, STATE)?,
            slots: domain.slots(),
            measured: domain.measured_slots(),
            ranges: device.buffer("ranges", range_bytes, Usage::UNIFORM | Usage::COPY_DST)?,
            list: device.buffer("tasks of waves", 16, STATE)?,
            taken: (0, 0),
            range_bytes,
            stride: range_bytes.next_multiple_of(alignment),
            record_bytes,
            layout: bind_group_layout(device, [range_bytes, record_bytes])?,
            groups: Vec::new(),
        };
        arrays.bind(device, queue)?;
        Ok(arrays)
    }

    /// Makes anew what depends on the elements of changing stars, and what depends on the slots if those are others, too: then nothing is
    /// known of the state.
    pub(super) fn renew(&mut self, device: &Device, queue: &Queue, plan: &mut Plan, domain: &Domain) -> Result<()> {
        self.chunks = chunks(device, plan, domain)?;
        self.taken = (0, 0);
        if domain.slots() != self.slots {
            self.shared_bytes = shared_bytes(domain.slots(), domain.shape.shared);
            self.shared =
                [device.buffer("shared state", self.shared_bytes, STATE)?, device.buffer("a word", 16, STATE)?];
            (self.is_double, self.current, self.slots) = (false, false, domain.slots());
            self.measured = domain.measured_slots();
            if self.values.size() > 16 {
                self.values = device.buffer("values", 4 * domain.slots() as u64, STATE)?;
            }
        }
        self.bind(device, queue)
    }

    pub(super) fn pipeline_layout(&self) -> &wgpu::PipelineLayout {
        &self.layout.1
    }

    pub(super) fn group(&self, chunk: usize) -> &wgpu::BindGroup {
        &self.groups[chunk][usize::from(self.current)]
    }

    /// The array that holds the shared state.
    pub(super) fn shared(&self) -> &wgpu::Buffer {
        &self.shared[usize::from(self.current)]
    }

    /// Both arrays of shared state; the second holds no slots before [`make_double`](Arrays::make_double).
    pub(super) fn both(&self) -> &[wgpu::Buffer; 2] {
        &self.shared
    }

    /// Sees the shared state of others.
    pub(super) fn follow(&mut self, device: &Device, queue: &Queue, others: &Arrays) -> Result<()> {
        self.current = others.current;
        if self.shared != others.shared {
            self.shared = others.shared.clone();
            self.bind(device, queue)?;
        }
        Ok(())
    }

    /// Records the dispatches of a walk with a kernel, by what its stage is given and whether it is double-buffered.
    pub(super) fn visit(
        &self,
        device: &Device,
        queue: &mut Queue,
        pipelines: &Pipelines,
        walk: &Walk,
        (kernel, given, double): (usize, u32, bool),
    ) -> Result<()> {
        for dispatch in &walk.dispatches {
            let pipeline = pipelines.get(kernel, dispatch.entry, double)?;
            let (group, range) = (self.group(dispatch.chunk), dispatch.range * self.stride as u32);
            let [x, y] = grid(dispatch.groups, device.about.workgroups);
            queue.dispatch(device, |pass| {
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, group, &[range, given]);
                pass.dispatch_workgroups(x, y, 1);
            })?;
        }
        Ok(())
    }

    /// Whether the second array holds the state.
    pub(super) fn current(&self) -> bool {
        self.current
    }

    pub(super) fn set_current(&mut self, current: bool) {
        self.current = current;
    }

    /// Goes on with the array that was written.
    pub(super) fn swap(&mut self) {
        self.current = !self.current;
    }

    /// Makes room for a second array of shared state.
    pub(super) fn make_double(&mut self, device: &Device, queue: &Queue) -> Result<()> {
        if !self.is_double {
            self.shared[usize::from(!self.current)] = device.buffer("shared state, next", self.shared_bytes, STATE)?;
            self.is_double = true;
            self.bind(device, queue)?;
        }
        Ok(())
    }

    /// Takes over what a plan has more of than before. What was recorded keeps the arrays that it was recorded with.
    pub(super) fn take(&mut self, device: &Device, queue: &Queue, plan: &Plan) -> Result<()> {
        if self.taken == (plan.ranges.len(), plan.list.len()) {
            return Ok(());
        }
        let stride = self.stride as usize;
        let mut bytes = vec![0; plan.ranges.len() * stride];
        for (record, range) in bytes.chunks_mut(stride).zip(&plan.ranges) {
            record[..4 * range.len()].copy_from_slice(bytemuck::cast_slice(range));
        }
        self.ranges = device.buffer("ranges", bytes.len() as u64, Usage::UNIFORM | Usage::COPY_DST)?;
        device.write(&self.ranges, &bytes)?;
        self.list = device.array("tasks of waves", bytemuck::cast_slice(&plan.list))?;
        self.taken = (plan.ranges.len(), plan.list.len());
        self.bind(device, queue)
    }

    /// Binds the arrays of every chunk.
    fn bind(&mut self, device: &Device, queue: &Queue) -> Result<()> {
        let part = |buffer, bytes| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset: 0, size: wgpu::BufferSize::new(bytes) })
        };
        let bind = |chunk: &Chunk, current: usize| {
            let arrays = [
                &self.shared[current],
                &self.shared[1 - current],
                &chunk.private,
                &chunk.words,
                &chunk.reals,
                &queue.words,
                &self.values,
                &self.list,
            ];
            let uniforms = [part(&self.ranges, self.range_bytes), part(&queue.records, self.record_bytes)];
            let resources = uniforms.into_iter().chain(arrays.into_iter().map(wgpu::Buffer::as_entire_binding));
            let entries: Vec<_> =
                (0..).zip(resources).map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource }).collect();
            let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &self.layout.0, entries: &entries };
            device.guard(|| device.device.create_bind_group(&descriptor))
        };
        let groups: Result<Vec<_>> = self.chunks.iter().map(|chunk| Ok([bind(chunk, 0)?, bind(chunk, 1)?])).collect();
        self.groups = groups?;
        Ok(())
    }

    /// Sends the state to the device.
    pub(super) fn upload<T: Number>(&self, device: &Device, state: &State<T>) -> Result<()> {
        device.write(&self.shared[usize::from(self.current)], bytemuck::cast_slice(&state.shared))?;
        let mut private: &[u8] = bytemuck::cast_slice(&state.private);
        for chunk in &self.chunks {
            let (own, rest) = private.split_at(chunk.private_bytes as usize);
            device.write(&chunk.private, own)?;
            private = rest;
        }
        Ok(())
    }

    /// Reads the state back: nothing must be under way.
    pub(super) fn download<T: Number>(&self, device: &Device, domain: &Domain) -> Result<State<T>> {
        let largest = self.chunks.iter().map(|chunk| chunk.private_bytes).fold(self.shared_bytes, u64::max);
        let staging = device.buffer("staging", largest.min(STAGING), Usage::MAP_READ | Usage::COPY_DST)?;
        let mut state = State::zeros(domain.slots(), domain.shape);
        let shared = &self.shared[usize::from(self.current)];
        device.read(&staging, shared, bytemuck::cast_slice_mut(&mut state.shared))?;
        let mut private: &mut [u8] = bytemuck::cast_slice_mut(&mut state.private);
        for chunk in &self.chunks {
            let (own, rest) = private.split_at_mut(chunk.private_bytes as usize);
            device.read(&staging, &chunk.private, own)?;
            private = rest;
        }
        Ok(state)
    }

    /// Bytes that one round must move at least: names and data of stars, shared state in and out, private state in.
    pub(super) fn round_bytes(&self) -> usize {
        let chunk = |chunk: &Chunk| chunk.words.size() + chunk.reals.size() + chunk.private_bytes;
        (self.chunks.iter().map(chunk).sum::<u64>() + 2 * self.shared_bytes) as usize
    }
}

/// Sends the arrays of a plan to the device; the host's copies are dropped.
fn chunks(device: &Device, plan: &mut Plan, domain: &Domain) -> Result<Vec<Chunk>> {
    let chunk = |chunk: &mut crate::gpu::plan::Chunk| {
        let private_bytes = (chunk.groups.len() * domain.width * domain.shape.private * 4) as u64;
        let private = device.buffer("private state", private_bytes, STATE)?;
        let words = device.array("neighbors", bytemuck::cast_slice(&std::mem::take(&mut chunk.words)))?;
        let reals = device.array("data of stars", bytemuck::cast_slice(&std::mem::take(&mut chunk.reals)))?;
        Ok(Chunk { private, private_bytes, words, reals })
    };
    plan.chunks.iter_mut().map(chunk).collect()
}

/// How kernels see the arrays: as `bindings.wgsl` declares them. `bytes`: of the two uniforms.
fn bind_group_layout(device: &Device, bytes: [u64; 2]) -> Result<(wgpu::BindGroupLayout, wgpu::PipelineLayout)> {
    let entry = |binding: u32| match binding {
        0 | 1 => uniform(binding, bytes[binding as usize]),
        _ => storage(binding, matches!(binding, 5 | 6 | 9)),
    };
    let entries: Vec<_> = (0..10).map(entry).collect();
    layouts(device, &entries)
}

/// A uniform with an offset of its own for each dispatch.
pub(super) fn uniform(binding: u32, bytes: u64) -> wgpu::BindGroupLayoutEntry {
    let ty = wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Uniform,
        has_dynamic_offset: true,
        min_binding_size: wgpu::BufferSize::new(bytes),
    };
    wgpu::BindGroupLayoutEntry { binding, visibility: wgpu::ShaderStages::COMPUTE, ty, count: None }
}

pub(super) fn storage(binding: u32, read_only: bool) -> wgpu::BindGroupLayoutEntry {
    let ty = wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Storage { read_only },
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    wgpu::BindGroupLayoutEntry { binding, visibility: wgpu::ShaderStages::COMPUTE, ty, count: None }
}

/// The layout of one bind group, and of a pipeline with nothing else.
pub(super) fn layouts(
    device: &Device,
    entries: &[wgpu::BindGroupLayoutEntry],
) -> Result<(wgpu::BindGroupLayout, wgpu::PipelineLayout)> {
    device.guard(|| {
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries };
        let group = device.device.create_bind_group_layout(&descriptor);
        let pipeline = device.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group)],
            immediate_size: 0,
        });
        (group, pipeline)
    })
}
