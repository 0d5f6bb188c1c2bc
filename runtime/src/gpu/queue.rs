//! What is handed over to a device, and what comes back of it.
//!
//! Dispatches are recorded into one pass and submitted together. After each submission a few status words travel to the
//! host, through a small ring of buffers: the host reads them when they are there, and waits only when the ring is full.

use super::device::{Device, map, mapped};
use crate::error::Result;
use meshweft_shaders::STATUS_WORDS;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use wgpu::BufferUsages as Usage;

/// Submissions that may be under way before the host waits for the first of them.
const RING: usize = 4;
/// Dispatches of one submission at most: a driver wants to come up for air.
const DISPATCHES: usize = 2048;
/// Those of the first submissions, before it is known how long they take.
const FIRST_DISPATCHES: usize = 128;
/// Seconds that a submission is to take at most: some systems take a device for hung, and reset it, that shows nothing for two.
const LONGEST_S: f64 = 0.05;
/// Where timestamps lie in a buffer of the ring, and its size.
const STAMPS_AT: u64 = 4 * STATUS_WORDS as u64;
const RING_BYTES: u64 = STAMPS_AT + 16;

/// What has been asked of a GPU since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Kernels that were launched.
    pub dispatches: u64,
    /// How often work was handed over.
    pub submissions: u64,
    /// Seconds in which the device was at work on what is known to be done; 0 if it cannot tell the time.
    pub busy_s: f64,
}

/// The status words of a device, as `bindings.wgsl` lays them out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Status {
    /// Steps that were begun before the state was frozen.
    pub(super) steps: u32,
    /// Whether an update came to something that is not finite.
    pub(super) spoilt: bool,
}

/// A queue of work for a device.
pub(super) struct Queue {
    recording: Option<Recording>,
    /// The status words on the device.
    pub(super) words: wgpu::Buffer,
    ring: Vec<wgpu::Buffer>,
    next: usize,
    pending: VecDeque<Pending>,
    clock: Option<Clock>,
    /// Seconds that a submission is to take at most, and the dispatches which that allows.
    pub(super) longest_s: f64,
    pub(super) most: usize,
    /// What the device will say when all that was recorded is done: steps begun, and tasks run in waves.
    canary: u32,
    tasks: u32,
    status: Status,
    pub(super) counters: Counters,
}

struct Recording {
    encoder: wgpu::CommandEncoder,
    pass: Option<wgpu::ComputePass<'static>>,
    dispatches: usize,
}

struct Clock {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    /// Nanoseconds of a tick.
    period: f64,
}

/// Status words on their way to the host.
struct Pending {
    buffer: usize,
    submission: wgpu::SubmissionIndex,
    dispatches: usize,
    canary: u32,
    /// Unless work ends amid waves.
    tasks: Option<u32>,
    mapped: Arc<AtomicU8>,
}

impl Queue {
    pub(super) fn new(device: &Device) -> Result<Queue> {
        let words = device.buffer("status", STAMPS_AT, Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST)?;
        let usage = Usage::MAP_READ | Usage::COPY_DST;
        let ring: Result<Vec<_>> = (0..RING).map(|_| device.buffer("status ring", RING_BYTES, usage)).collect();
        let mut clock = None;
        if device.about.timestamps {
            let resolved = device.buffer("timestamps", 16, Usage::QUERY_RESOLVE | Usage::COPY_SRC)?;
            let kind = wgpu::QueryType::Timestamp;
            let descriptor = wgpu::QuerySetDescriptor { label: None, ty: kind, count: 2 };
            let queries = device.guard(|| device.device.create_query_set(&descriptor))?;
            clock = Some(Clock { queries, resolved, period: f64::from(device.queue.get_timestamp_period()) });
        }
        Ok(Queue {
            recording: None,
            words,
            ring: ring?,
            next: 0,
            pending: VecDeque::new(),
            clock,
            longest_s: LONGEST_S,
            most: FIRST_DISPATCHES,
            canary: 0,
            tasks: 0,
            status: Status::default(),
            counters: Counters::default(),
        })
    }

    /// Starts to count from zero: nothing must be under way.
    pub(super) fn reset(&mut self, device: &Device) -> Result<()> {
        device.guard(|| device.queue.write_buffer(&self.words, 0, &[0; STAMPS_AT as usize]))?;
        (self.canary, self.tasks, self.status) = (0, 0, Status::default());
        Ok(())
    }

    /// Expects one more step.
    pub(super) fn expect_step(&mut self) {
        self.canary = self.canary.wrapping_add(1);
    }

    /// Expects so many more tasks in waves.
    pub(super) fn expect_tasks(&mut self, tasks: u32) {
        self.tasks = self.tasks.wrapping_add(tasks);
    }

    fn recording(&mut self, device: &Device) -> Result<&mut Recording> {
        if self.recording.is_none() {
            let encoder = device.guard(|| {
                let mut encoder = device.device.create_command_encoder(&Default::default());
                if let Some(clock) = &self.clock {
                    encoder.write_timestamp(&clock.queries, 0);
                }
                encoder
            })?;
            self.recording = Some(Recording { encoder, pass: None, dispatches: 0 });
        }
        Ok(self.recording.as_mut().expect("it is there by now"))
    }

    /// Records a dispatch into the open pass; opens one if there is none.
    pub(super) fn dispatch(
        &mut self,
        device: &Device,
        record: impl FnOnce(&mut wgpu::ComputePass<'static>),
    ) -> Result<()> {
        let most = self.most;
        if self.recording.as_ref().is_some_and(|recording| recording.dispatches >= most) {
            self.submit(device, false)?;
        }
        self.counters.dispatches += 1;
        let Recording { encoder, pass, dispatches } = self.recording(device)?;
        *dispatches += 1;
        device.guard(|| {
            record(pass.get_or_insert_with(|| encoder.begin_compute_pass(&Default::default()).forget_lifetime()))
        })
    }

    /// Records a copy, after what was recorded and before what will be.
    pub(super) fn copy(&mut self, device: &Device, from: &wgpu::Buffer, to: &wgpu::Buffer, bytes: u64) -> Result<()> {
        let Recording { encoder, pass, .. } = self.recording(device)?;
        device.guard(|| {
            *pass = None;
            encoder.copy_buffer_to_buffer(from, 0, to, 0, Some(bytes));
        })
    }

    /// Hands over what was recorded, and asks for the status after it. `whole`: whether all tasks of its waves are in it.
    pub(super) fn submit(&mut self, device: &Device, whole: bool) -> Result<()> {
        let Some(recording) = self.recording.take() else { return Ok(()) };
        if self.pending.len() == RING {
            self.collect_one(device)?;
        }
        let (to, clock) = (&self.ring[self.next], &self.clock);
        let dispatches = recording.dispatches;
        let (submission, mapped) = device.guard(|| {
            drop(recording.pass);
            let mut encoder = recording.encoder;
            encoder.copy_buffer_to_buffer(&self.words, 0, to, 0, Some(STAMPS_AT));
            if let Some(Clock { queries, resolved, .. }) = clock {
                encoder.write_timestamp(queries, 1);
                encoder.resolve_query_set(queries, 0..2, resolved, 0);
                encoder.copy_buffer_to_buffer(resolved, 0, to, STAMPS_AT, Some(16));
            }
            let submission = device.queue.submit([encoder.finish()]);
            (submission, map(to, RING_BYTES))
        })?;
        let tasks = whole.then_some(self.tasks);
        self.pending.push_back(Pending {
            buffer: self.next,
            submission,
            dispatches,
            canary: self.canary,
            tasks,
            mapped,
        });
        self.next = (self.next + 1) % RING;
        self.counters.submissions += 1;
        Ok(())
    }

    /// Hands over what was recorded, waits for everything, and tells the status after it.
    pub(super) fn settle(&mut self, device: &Device) -> Result<Status> {
        self.submit(device, true)?;
        while !self.pending.is_empty() {
            self.collect_one(device)?;
        }
        device.check()?;
        Ok(self.status)
    }

    /// Ends a step: hands it over unless the device has enough to do, so that few fat submissions are made when the host is
    /// faster than the device, and none waits when it is not. Tells the status so far as it has arrived.
    pub(super) fn pace(&mut self, device: &Device) -> Result<Status> {
        /// Submissions that keep a device at work while the next one is recorded.
        const AHEAD: usize = 2;
        /// Dispatches that are worth a submission in any case.
        const ENOUGH: usize = 256;
        let status = self.glance(device)?;
        let recorded = self.recording.as_ref().map_or(0, |recording| recording.dispatches);
        if self.pending.len() < AHEAD || recorded >= ENOUGH {
            self.submit(device, true)?;
        }
        Ok(status)
    }

    /// The status so far as it has arrived.
    fn glance(&mut self, device: &Device) -> Result<Status> {
        device.guard(|| device.device.poll(wgpu::PollType::Poll).is_ok())?;
        while self.pending.front().is_some_and(|pending| mapped(&pending.mapped).is_some()) {
            self.collect_one(device)?;
        }
        Ok(self.status)
    }

    fn collect_one(&mut self, device: &Device) -> Result<()> {
        let Some(pending) = self.pending.pop_front() else { return Ok(()) };
        if mapped(&pending.mapped).is_none() {
            device.wait(Some(pending.submission))?;
        }
        if mapped(&pending.mapped) != Some(true) {
            return Err(device.fail("the status could not be read back"));
        }
        let buffer = &self.ring[pending.buffer];
        let mut bytes = [0u8; RING_BYTES as usize];
        device.guard(|| {
            if let Ok(view) = buffer.get_mapped_range(..) {
                bytes.copy_from_slice(&view);
            }
            buffer.unmap();
        })?;
        let (words, stamps) = bytes.split_at(STAMPS_AT as usize);
        let word = |i: usize| u32::from_le_bytes(words[4 * i..4 * i + 4].try_into().expect("four bytes"));
        let (found, expected) = (word(3), pending.canary);
        if found != expected {
            return Err(device.fail(&format!("it returned the status of step {found} instead of {expected}")));
        }
        if let Some(expected) = pending.tasks.filter(|&expected| word(4) != expected) {
            return Err(device.fail(&format!("it ran {} of {expected} tasks", word(4))));
        }
        self.status = Status { steps: word(2), spoilt: self.status.spoilt || word(0) != 0 };
        if let Some(clock) = &self.clock {
            let stamp = |i: usize| u64::from_le_bytes(stamps[8 * i..8 * i + 8].try_into().expect("eight bytes"));
            let busy_s = stamp(1).saturating_sub(stamp(0)) as f64 * clock.period * 1e-9;
            self.counters.busy_s += busy_s;
            if pending.dispatches > 0 && busy_s > 0.0 {
                self.most = ((self.longest_s / busy_s * pending.dispatches as f64) as usize).clamp(1, DISPATCHES);
            }
        }
        Ok(())
    }
}
