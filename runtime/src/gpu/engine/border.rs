//! What travels between a device and other hosts: boundary values, packed and unpacked where they are.

use super::Work;
use crate::error::Result;
use crate::gpu::device::{Device, mapped};
use crate::layout::{Domain, shared_stride};
use meshweft_shaders::{PACK, UNPACK};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use wgpu::BufferUsages as Usage;

/// The arrays that values of some slots go through.
pub(super) struct Boundary {
    /// For each task, its slots that other hosts read, ascending.
    sent: Vec<Vec<u32>>,
    /// Numbers of a slot, and words from one to the next.
    reals: usize,
    stride: usize,
    pack: Transfer,
    unpack: Transfer,
    /// Where the host reads what was packed.
    staging: wgpu::Buffer,
}

/// One direction: slots by name, and a row of their values.
struct Transfer {
    pipeline: wgpu::ComputePipeline,
    list: wgpu::Buffer,
    slots: wgpu::Buffer,
    row: wgpu::Buffer,
    /// For each of the two arrays of shared state.
    groups: Vec<wgpu::BindGroup>,
}

/// Values on their way to the host.
pub(super) struct Packed {
    slots: Vec<u32>,
    submission: wgpu::SubmissionIndex,
    mapped: Arc<AtomicU8>,
}

/// Values of some slots.
pub(super) struct Row {
    slots: Vec<u32>,
    words: Vec<u32>,
    reals: usize,
    stride: usize,
}

impl Row {
    /// Appends the bits of some of the slots.
    pub(super) fn gather(&self, slots: &[u32], bits: &mut Vec<u8>) {
        for slot in slots {
            let i = self.slots.binary_search(slot).expect("what a task sends was packed");
            bits.extend_from_slice(bytemuck::cast_slice(&self.words[i * self.stride..i * self.stride + self.reals]));
        }
    }
}

impl Transfer {
    /// Of so many slots at most.
    fn new(device: &Device, pipeline: wgpu::ComputePipeline, slots: usize, stride: usize) -> Result<Transfer> {
        let usage = Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC;
        Ok(Transfer {
            pipeline,
            list: device.buffer("list", 16, Usage::UNIFORM | Usage::COPY_DST)?,
            slots: device.buffer("slots of a list", 4 * slots as u64, usage)?,
            row: device.buffer("row of values", (4 * slots * stride) as u64, usage)?,
            groups: Vec::new(),
        })
    }

    fn bind(&mut self, device: &Device, shared: &[wgpu::Buffer; 2]) -> Result<()> {
        let group = |shared: &wgpu::Buffer| device.bind(&self.pipeline, &[&self.list, &self.slots, shared, &self.row]);
        self.groups = shared.iter().map(group).collect::<Result<_>>()?;
        Ok(())
    }

    /// Says which slots it is about, and copies those of one array. What was recorded of it before must have been handed over.
    fn run(&self, work: &mut Work, array: usize, slots: &[u32], row: Option<&[u8]>, stride: usize) -> Result<()> {
        let Work { device, queue, .. } = work;
        device.guard(|| {
            device.queue.write_buffer(&self.list, 0, bytemuck::cast_slice(&[slots.len() as u32, stride as u32, 0, 0]));
            device.queue.write_buffer(&self.slots, 0, bytemuck::cast_slice(slots));
            row.iter().for_each(|row| device.queue.write_buffer(&self.row, 0, row));
        })?;
        let [x, y] = super::grid((slots.len() as u32).div_ceil(PACK.workgroup_size), device.about.workgroups);
        queue.dispatch(device, |pass| {
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.groups[array], &[]);
            pass.dispatch_workgroups(x, y, 1);
        })
    }
}

impl Boundary {
    pub(super) fn new(device: &Device, domain: &Domain) -> Result<Boundary> {
        let compile = |kernel: meshweft_shaders::Kernel| device.compile(kernel.name, kernel.source, kernel.name, None);
        Boundary::with(device, domain, [compile(PACK)?, compile(UNPACK)?])
    }

    /// The same of a domain with other elements of changing stars.
    pub(super) fn renewed(&self, device: &Device, domain: &Domain) -> Result<Boundary> {
        Boundary::with(device, domain, [&self.pack, &self.unpack].map(|transfer| transfer.pipeline.clone()))
    }

    fn with(device: &Device, domain: &Domain, [pack, unpack]: [wgpu::ComputePipeline; 2]) -> Result<Boundary> {
        let (reals, stride) = (domain.shape.shared, shared_stride(domain.shape.shared));
        let mut sent = vec![Vec::new(); domain.graph.len()];
        let share = domain.share.iter();
        share.clone().flat_map(|share| &share.links).flat_map(|link| &link.sent).for_each(|(t, slots)| {
            sent[*t as usize].extend_from_slice(slots);
        });
        for slots in &mut sent {
            slots.sort_unstable();
            slots.dedup();
        }
        let out: usize = sent.iter().map(Vec::len).sum();
        let ghosts: usize = share.flat_map(|share| &share.ghosts).map(|ghost| ghost.len()).sum();
        let staging = device.buffer("staging", (4 * out * stride) as u64, Usage::MAP_READ | Usage::COPY_DST)?;
        let (pack, unpack) =
            (Transfer::new(device, pack, out, stride)?, Transfer::new(device, unpack, ghosts, stride)?);
        Ok(Boundary { sent, reals, stride, pack, unpack, staging })
    }

    /// Takes the arrays of shared state as they are now.
    pub(super) fn bind(&mut self, work: &Work) -> Result<()> {
        let shared = work.arrays.both();
        self.pack.bind(&work.device, shared)?;
        self.unpack.bind(&work.device, shared)
    }

    /// Packs what others read of some tasks out of one array, and hands everything over. None if nobody reads anything.
    pub(super) fn pack(&self, work: &mut Work, tasks: &[u32], array: usize) -> Result<Option<Packed>> {
        let mut slots: Vec<u32> = tasks.iter().flat_map(|&t| &self.sent[t as usize]).copied().collect();
        slots.sort_unstable();
        if slots.is_empty() {
            return Ok(None);
        }
        if self.stride == 0 {
            // There is nothing to read, but others wait for word of it.
            work.queue.submit(&work.device)?;
        } else {
            self.pack.run(work, array, &slots, None, self.stride)?;
        }
        let bytes = (4 * slots.len() * self.stride).max(16) as u64;
        let (submission, mapped) = work.queue.submit_copy(&work.device, &self.pack.row, &self.staging, bytes)?;
        Ok(Some(Packed { slots, submission, mapped }))
    }

    /// Waits for what was packed.
    pub(super) fn read(&self, work: &mut Work, packed: Packed) -> Result<Row> {
        let Packed { slots, submission, mapped: arrived } = packed;
        let device = &work.device;
        device.wait(Some(submission))?;
        if mapped(&arrived) != Some(true) {
            return Err(device.fail("boundary values could not be read back"));
        }
        let mut words = vec![0; slots.len() * self.stride];
        device.guard(|| {
            if let Ok(view) = self.staging.get_mapped_range(..4 * words.len() as u64) {
                bytemuck::cast_slice_mut(&mut words).copy_from_slice(&view);
            }
            self.staging.unmap();
        })?;
        Ok(Row { slots, words, reals: self.reals, stride: self.stride })
    }

    /// Brings the values of ghosts into one array: tasks, and the bits of all of their slots.
    pub(super) fn unpack_into(
        &self,
        work: &mut Work,
        domain: &Domain,
        array: usize,
        values: &[(u32, &[u8])],
    ) -> Result<()> {
        let Some(share) = domain.share.as_ref().filter(|_| self.stride > 0) else { return Ok(()) };
        let (mut slots, mut row) = (Vec::new(), Vec::new());
        for &(t, bits) in values {
            slots.extend(share.ghosts[t as usize].clone());
            for bits in bits.chunks(4 * self.reals) {
                row.extend_from_slice(bits);
                row.resize(row.len() + 4 * (self.stride - self.reals), 0);
            }
        }
        work.queue.submit(&work.device)?;
        self.unpack.run(work, array, &slots, Some(&row), self.stride)
    }
}
