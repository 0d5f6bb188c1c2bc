//! The GPU engine: interprets a [`Plan`] on a [`Device`].
//!
//! State stays on the device from step to step. Once an update is not finite the device freezes the state at the end of that
//! step, so the host finds it as it was, however late it looks.

mod measures;
mod parity;
mod steps;
mod waves;

use super::device::{Adapter, Device, STAGING};
use super::plan::{Frontier, Limits, Plan, Round, shared_bytes};
use super::queue::{Counters, Queue};
use super::records::{Dispatch, Records};
use crate::error::{Error, Result};
use crate::layout::{Layout, State};
use crate::program::{Number, Program, Record};
use crate::schedule;
use measures::Measures;
use meshweft_shaders::{Body, Entry, PUBLISH, Physics, TICK, module};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use steps::Steps;
use waves::Waves;
use wgpu::BufferUsages as Usage;

/// What writes the update of a kernel in WGSL.
type Trace<'a> = &'a dyn Fn(&Physics) -> Result<Body>;

/// A program's step on one GPU.
pub(crate) struct Gpu {
    device: Device,
    physics: Physics,
    plan: Plan,
    lists: Lists,
    layouts: Layouts,
    shared: [wgpu::Buffer; 2],
    /// Whether the second of them holds all slots.
    is_double: bool,
    /// Which of them holds the state.
    current: usize,
    shared_bytes: u64,
    chunks: Vec<Chunk>,
    parameters: (wgpu::Buffer, Vec<u8>),
    ranges: wgpu::Buffer,
    values: wgpu::Buffer,
    slots: usize,
    measures: Option<Measures>,
    frontier: Option<Waves>,
    frontier_buffer: wgpu::Buffer,
    /// By chunk, then by which array holds the state.
    groups: Vec<[wgpu::BindGroup; 2]>,
    tick: (wgpu::ComputePipeline, wgpu::BindGroup),
    kernels: BTreeMap<(TypeId, Entry, bool, bool), wgpu::ComputePipeline>,
    /// Updates that somebody wrote in WGSL, by the names of their kernels, and whether they run instead of what is traced.
    written: BTreeMap<String, String>,
    by_hand: bool,
    queue: Queue,
    staging: Option<wgpu::Buffer>,
}

struct Chunk {
    private: wgpu::Buffer,
    private_bytes: u64,
    words: wgpu::Buffer,
    reals: wgpu::Buffer,
}

/// Dispatches that were laid out once.
struct Lists {
    sweep: Option<Arc<[Dispatch]>>,
    all: Arc<[Dispatch]>,
    each: Arc<[Dispatch]>,
    /// As `all`, for measures whose clones count.
    clones: Arc<[Dispatch]>,
    /// Offsets of the two records of waves in the uniform buffer.
    waves: [u32; 2],
}

struct Layouts {
    program: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

impl Gpu {
    /// Opens an adapter and lays a program out on it; `layout` makes a layout for groups of that many vertices.
    pub(crate) fn new<T: Number>(
        number: usize,
        layout: impl FnOnce(usize) -> Result<Layout<T>>,
        physics: Physics,
        written: BTreeMap<String, String>,
    ) -> Result<(Gpu, Layout<T>)> {
        let device = Device::open(number)?;
        let layout = layout(Gpu::width(&device.about))?;
        let gpu = Gpu::with_device::<T>(device, &layout, physics, written, None)?;
        Ok((gpu, layout))
    }

    fn with_device<T: Number>(
        device: Device,
        layout: &Layout<T>,
        physics: Physics,
        written: BTreeMap<String, String>,
        binding_bytes: Option<u64>,
    ) -> Result<Gpu> {
        let about = &device.about;
        let limits = Limits {
            binding_bytes: binding_bytes.unwrap_or(about.binding_bytes.min(about.buffer_bytes)),
            workgroup_bytes: about.workgroup_bytes,
            invocations: about.invocations,
            shared: physics.shared.len(),
            private: physics.private.len(),
        };
        let mut plan = Plan::new(layout, &limits)?;
        let range_bytes = 4 * plan.chunks.first().map_or(64, |chunk| chunk.facts.len() as u64);
        let alignment = u64::from(device.device.limits().min_uniform_buffer_offset_alignment);
        let range_stride = range_bytes.next_multiple_of(16).next_multiple_of(alignment);
        let layouts = Layouts::new(&device, range_bytes)?;
        let slots = layout.slots();
        let shared_bytes = shared_bytes(slots, limits.shared);
        let state = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
        let first = device.buffer("shared state", shared_bytes, state)?;
        let second = device.buffer("a word", 16, state)?;
        let width = plan.harness.width as usize;
        let mut chunks = Vec::new();
        for chunk in &mut plan.chunks {
            let private_bytes = (chunk.groups.len() * width * limits.private * 4) as u64;
            let private = device.buffer("private state", private_bytes, state)?;
            // The host needs them no more.
            let words = device.array("neighbors", bytemuck::cast_slice(&std::mem::take(&mut chunk.words)))?;
            let reals = device.array("data of stars", bytemuck::cast_slice(&std::mem::take(&mut chunk.reals)))?;
            chunks.push(Chunk { private, private_bytes, words, reals });
        }
        let mut records = Records::new(&plan, range_stride, about.workgroups);
        let sweep = match &plan.sweep {
            Round::Visits(visits) => Some(records.list(visits, 0)),
            Round::Waves => None,
        };
        let (all, each, clones) = (records.list(&plan.all, 0), records.list(&plan.each, 0), records.list(&plan.all, 1));
        let waves = [1, 0].map(|parity| records.wave(parity));
        let bytes = records.bytes;
        let ranges = device.buffer("ranges", bytes.len() as u64, Usage::UNIFORM | Usage::COPY_DST)?;
        device.guard(|| device.queue.write_buffer(&ranges, 0, &bytes))?;
        let quads = physics.parameters.len().div_ceil(4).max(1) * 4;
        let parameters = device.buffer("parameters", 4 * quads as u64, Usage::UNIFORM | Usage::COPY_DST)?;
        let queue = Queue::new(&device)?;
        let values = device.buffer("a word", 16, state)?;
        let mut frontier_buffer = device.buffer("a word", 16, state)?;
        let mut frontier = None;
        if let (Round::Waves, schedule::Plan::Tasks { graph, .. }) = (&plan.sweep, layout.schedule.plan())
            && !graph.is_empty()
        {
            let Frontier { words, tasks } = Frontier::new(graph);
            let initial = device.array("ready tasks at first", bytemuck::cast_slice(&words))?;
            frontier_buffer = device.buffer("ready tasks", 4 * words.len() as u64, state)?;
            let indirect = device.buffer("workgroups", 16, Usage::STORAGE | Usage::INDIRECT)?;
            let publish = device.kernel(PUBLISH, &[&frontier_buffer, &indirect])?;
            frontier =
                Some(Waves { initial, bytes: 4 * words.len() as u64, indirect, publish, rounds: 0, waves: 0, tasks });
        }
        let tick = device.kernel(TICK, &[&queue.words])?;
        let mut gpu = Gpu {
            device,
            physics,
            plan,
            lists: Lists { sweep, all, each, clones, waves },
            layouts,
            shared: [first, second],
            is_double: false,
            current: 0,
            shared_bytes,
            chunks,
            parameters: (parameters, Vec::new()),
            ranges,
            values,
            slots,
            measures: None,
            frontier,
            frontier_buffer,
            groups: Vec::new(),
            tick,
            kernels: BTreeMap::new(),
            written,
            by_hand: true,
            queue,
            staging: None,
        };
        gpu.bind()?;
        Ok(gpu)
    }

    /// The adapter it runs on.
    pub(crate) fn about(&self) -> &Adapter {
        &self.device.about
    }

    /// What has been done since the start.
    pub(crate) fn counters(&self) -> Counters {
        self.queue.counters
    }

    /// Bytes that one round must move at least: names and data of stars, shared state in and out, private state in.
    pub(crate) fn round_bytes(&self) -> usize {
        let chunk = |chunk: &Chunk| chunk.words.size() + chunk.reals.size() + chunk.private_bytes;
        (self.chunks.iter().map(chunk).sum::<u64>() + 2 * self.shared_bytes) as usize
    }

    /// Waits until all that was asked for is done.
    pub(crate) fn wait(&mut self) -> Result<bool> {
        Ok(!self.queue.settle(&self.device)?.spoilt)
    }

    /// How many vertices an adapter updates in lockstep, at least: the width of groups.
    pub(crate) fn width(about: &Adapter) -> usize {
        about.subgroup[0].clamp(8, 64).next_power_of_two() as usize
    }

    /// Binds the arrays of every chunk.
    fn bind(&mut self) -> Result<()> {
        let range_bytes = 4 * self.plan.chunks.first().map_or(64, |chunk| chunk.facts.len() as u64);
        let bind = |chunk: &Chunk, current: usize| {
            let range = wgpu::BufferBinding {
                buffer: &self.ranges,
                offset: 0,
                size: wgpu::BufferSize::new(range_bytes.next_multiple_of(16)),
            };
            let arrays = [
                &self.parameters.0,
                &self.shared[current],
                &self.shared[1 - current],
                &chunk.private,
                &chunk.words,
                &chunk.reals,
                &self.queue.words,
                &self.values,
                &self.frontier_buffer,
            ];
            let arrays = (1..).zip(arrays).map(|(binding, array)| (binding, array.as_entire_binding()));
            let entries: Vec<_> = std::iter::once((0, wgpu::BindingResource::Buffer(range)))
                .chain(arrays)
                .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
                .collect();
            let layout = &self.layouts.program;
            let descriptor = wgpu::BindGroupDescriptor { label: None, layout, entries: &entries };
            self.device.guard(|| self.device.device.create_bind_group(&descriptor))
        };
        let groups: Result<Vec<_>> = self.chunks.iter().map(|chunk| Ok([bind(chunk, 0)?, bind(chunk, 1)?])).collect();
        self.groups = groups?;
        Ok(())
    }

    /// Sends the state to the device. Steps count from here.
    pub(crate) fn upload<T: Number>(&mut self, state: &State<T>) -> Result<()> {
        self.queue.settle(&self.device)?;
        self.device.write(&self.shared[self.current], bytemuck::cast_slice(&state.shared))?;
        let mut private: &[u8] = bytemuck::cast_slice(&state.private);
        for chunk in &self.chunks {
            let (own, rest) = private.split_at(chunk.private_bytes as usize);
            self.device.write(&chunk.private, own)?;
            private = rest;
        }
        self.queue.reset(&self.device)
    }

    /// Reads the state back.
    pub(crate) fn download<T: Number>(&mut self, state: &mut State<T>) -> Result<()> {
        self.queue.settle(&self.device)?;
        let staging = match self.staging.take() {
            Some(staging) => staging,
            None => {
                let largest = self.chunks.iter().map(|chunk| chunk.private_bytes).fold(self.shared_bytes, u64::max);
                self.device.buffer("staging", largest.min(STAGING), Usage::MAP_READ | Usage::COPY_DST)?
            }
        };
        self.device.read(&staging, &self.shared[self.current], bytemuck::cast_slice_mut(&mut state.shared))?;
        let mut private: &mut [u8] = bytemuck::cast_slice_mut(&mut state.private);
        for chunk in &self.chunks {
            let (own, rest) = private.split_at_mut(chunk.private_bytes as usize);
            self.device.read(&staging, &chunk.private, own)?;
            private = rest;
        }
        self.staging = Some(staging);
        Ok(())
    }

    /// Runs one step; tells its rounds, how many of them an order bound, and whether all that is known by now was finite.
    pub(crate) fn step<P: Program, T: Number>(
        &mut self,
        program: &P,
        parameters: &P::Parameters<T>,
        layout: &Layout<T>,
    ) -> Result<(u64, u64, bool)> {
        self.set_parameters::<P, T>(parameters)?;
        let (pipeline, group) = (&self.tick.0.clone(), &self.tick.1.clone());
        self.queue.dispatch(&self.device, |pass| {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        })?;
        // Not before: what was recorded until then may have been handed over without it.
        self.queue.expect_step();
        let mut stages = Steps::new(self, &layout.schedule, None);
        program.step(&mut stages);
        let Steps { rounds, swept, result, .. } = stages;
        // Half a step is on the device: nothing can go on from there.
        result.map_err(|error| match error {
            Error::Gpu(_) => error,
            other => self.device.fail(&other.to_string()),
        })?;
        Ok((rounds, swept, !self.queue.pace(&self.device)?.spoilt))
    }

    /// Step after which the state froze because an update was not finite, counted from the last upload.
    pub(crate) fn frozen_at(&mut self) -> Result<Option<u64>> {
        let status = self.queue.settle(&self.device)?;
        Ok(status.spoilt.then_some(u64::from(status.steps)))
    }

    fn set_parameters<P: Program, T: Number>(&mut self, parameters: &P::Parameters<T>) -> Result<()> {
        let mut bytes = Vec::with_capacity(4 * self.physics.parameters.len());
        parameters.each(|_, x| bytes.extend_from_slice(bytemuck::bytes_of(&x)));
        self.write_parameters(bytes)
    }

    fn write_parameters(&mut self, bytes: Vec<u8>) -> Result<()> {
        if bytes != self.parameters.1 {
            // What was recorded with the old ones goes first.
            self.queue.submit(&self.device, true)?;
            let queue = &self.device.queue;
            self.device.guard(|| queue.write_buffer(&self.parameters.0, 0, &bytes))?;
            self.parameters.1 = bytes;
        }
        Ok(())
    }

    /// The pipeline of a kernel: traced and compiled when it is first met.
    fn pipeline(
        &mut self,
        kernel: (TypeId, &str),
        entry: Entry,
        double: bool,
        body: Trace,
    ) -> Result<wgpu::ComputePipeline> {
        let key = (kernel.0, entry, double, self.by_hand);
        if let Some(pipeline) = self.kernels.get(&key) {
            return Ok(pipeline.clone());
        }
        let body = body(&self.physics)?;
        let text = module(&self.physics, &self.plan.harness, &body, entry, double);
        let pipeline = self.device.compile(kernel.1, &text, entry.name(), Some(&self.layouts.pipeline))?;
        self.kernels.insert(key, pipeline.clone());
        Ok(pipeline)
    }

    /// Records a list of dispatches of one kernel.
    fn visit(&mut self, list: &[Dispatch], pipelines: &BTreeMap<Entry, wgpu::ComputePipeline>) -> Result<()> {
        for dispatch in list {
            let group = self.groups[dispatch.chunk][self.current].clone();
            let pipeline = &pipelines[&dispatch.entry];
            self.queue.dispatch(&self.device, |pass| {
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, &group, &[dispatch.range]);
                pass.dispatch_workgroups(dispatch.groups[0], dispatch.groups[1], 1);
            })?;
        }
        Ok(())
    }

    /// Runs a kernel that is visited by `list`, `rounds` times.
    fn run(
        &mut self,
        kernel: (TypeId, &str),
        list: &Arc<[Dispatch]>,
        rounds: usize,
        double: bool,
        body: Trace,
    ) -> Result<()> {
        if double {
            self.make_double()?;
        }
        let mut entries: Vec<Entry> = list.iter().map(|dispatch| dispatch.entry).collect();
        entries.sort();
        entries.dedup();
        let pipelines: Result<BTreeMap<_, _>> =
            entries.into_iter().map(|entry| Ok((entry, self.pipeline(kernel, entry, double, body)?))).collect();
        let pipelines = pipelines?;
        for _ in 0..rounds {
            self.visit(list, &pipelines)?;
            if double {
                self.current = 1 - self.current;
            }
        }
        Ok(())
    }

    /// Makes room for a second array of shared state.
    fn make_double(&mut self) -> Result<()> {
        if !self.is_double {
            let state = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
            self.shared[1 - self.current] = self.device.buffer("shared state, next", self.shared_bytes, state)?;
            self.is_double = true;
            self.bind()?;
        }
        Ok(())
    }

    /// The same on a device that can do less and takes long for it, for tests of what is cut then.
    #[cfg(test)]
    pub(crate) fn limited<T: Number>(
        number: usize,
        layout: &Layout<T>,
        physics: Physics,
        (binding_bytes, workgroups): (u64, u32),
    ) -> Result<Gpu> {
        let mut device = Device::open(number)?;
        device.about.workgroups = workgroups;
        let mut gpu = Gpu::with_device::<T>(device, layout, physics, BTreeMap::new(), Some(binding_bytes))?;
        (gpu.queue.longest_s, gpu.queue.most) = (0.0, 1);
        Ok(gpu)
    }

    /// Makes the device fail, for tests of what happens then.
    #[cfg(test)]
    pub(crate) fn destroy(&self) {
        self.device.destroy();
    }
}

impl Layouts {
    fn new(device: &Device, range_bytes: u64) -> Result<Layouts> {
        use wgpu::{BindGroupLayoutEntry, BindingType, BufferBindingType, ShaderStages};
        let entry = |binding: u32| {
            let ty = match binding {
                0 | 1 => BufferBindingType::Uniform,
                5 | 6 => BufferBindingType::Storage { read_only: true },
                _ => BufferBindingType::Storage { read_only: false },
            };
            let size = if binding == 0 { wgpu::BufferSize::new(range_bytes.next_multiple_of(16)) } else { None };
            let ty = BindingType::Buffer { ty, has_dynamic_offset: binding == 0, min_binding_size: size };
            BindGroupLayoutEntry { binding, visibility: ShaderStages::COMPUTE, ty, count: None }
        };
        let entries: Vec<_> = (0..10).map(entry).collect();
        device.guard(|| {
            let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
            let program = device.device.create_bind_group_layout(&descriptor);
            let pipeline = device.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&program)],
                immediate_size: 0,
            });
            Layouts { program, pipeline }
        })
    }
}
