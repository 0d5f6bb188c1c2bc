//! What is handed over to a device, and what comes back of it.
//!
//! Dispatches are recorded into one pass and submitted together. After each submission a few status words travel to the
//! host, through a small ring of buffers: the host reads them when they are there, and waits only when the ring is full.

use super::device::{Device, map, mapped};
use crate::adapter::Counters;
use crate::error::Result;
use meshweft_shaders::layout::Status as Words;
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
/// Bytes of the buffer of records: what stages are given.
const RECORDS: u64 = 256 << 10;

/// What a device tells of itself, as it was when the last work that is known to be done was.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    pub(super) words: Words,
    /// How often loops went round.
    pub(super) iterations: Vec<u32>,
    /// The globals, as the words of their numbers.
    pub(super) globals: Vec<u32>,
}

impl Status {
    fn new(words: &[u32]) -> Status {
        let (iterations, globals) = words[Words::ITERATIONS_AT..].split_at(Words::LEVELS);
        Status { words: Words::from_words(words), iterations: iterations.to_vec(), globals: globals.to_vec() }
    }

    /// Whether an update came to something that is not finite.
    pub(super) fn is_non_finite(&self) -> bool {
        self.words.non_finite != 0
    }
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
    longest_s: f64,
    most: usize,
    /// What stages are given: a ring of records, and those that are not on the device yet, with where they go.
    pub(super) records: wgpu::Buffer,
    staged: Vec<u8>,
    staged_at: u64,
    /// Bytes from one record to the next.
    stride: u64,
    /// The last of them.
    last: Vec<u32>,
    /// What the device will say when all that was recorded is done: steps begun.
    canary: u32,
    /// The pass under way, and the first that was not finite.
    mark: usize,
    non_finite: Option<usize>,
    status: Status,
    /// Where timestamps lie in a buffer of the ring.
    stamps_at: u64,
    pub(super) counters: Counters,
}

struct Recording {
    encoder: wgpu::CommandEncoder,
    pass: Option<wgpu::ComputePass<'static>>,
    dispatches: usize,
    /// What is copied after the dispatches: from where, where to, and how many bytes.
    copy: Option<(wgpu::Buffer, wgpu::Buffer, u64)>,
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
    mark: usize,
    mapped: Arc<AtomicU8>,
}

impl Queue {
    /// `globals`: as the words of their numbers. `record_bytes`: of what a stage is given, at most.
    pub(super) fn new(device: &Device, globals: &[u32], record_bytes: u64) -> Result<Queue> {
        let mut words = vec![0; Words::GLOBALS_AT];
        words.extend(globals);
        let stamps_at = 4 * words.len().next_multiple_of(4) as u64;
        words.resize(stamps_at as usize / 4, 0);
        let status = Status::new(&words[..Words::GLOBALS_AT + globals.len()]);
        let words = device.array("status", bytemuck::cast_slice(&words))?;
        let usage = Usage::MAP_READ | Usage::COPY_DST;
        let ring: Result<Vec<_>> = (0..RING).map(|_| device.buffer("status ring", stamps_at + 16, usage)).collect();
        let alignment = u64::from(device.device.limits().min_uniform_buffer_offset_alignment);
        let stride = record_bytes.next_multiple_of(alignment);
        let records = device.buffer("records", RECORDS.max(4 * stride), Usage::UNIFORM | Usage::COPY_DST)?;
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
            records,
            staged: Vec::new(),
            staged_at: 0,
            stride,
            last: Vec::new(),
            canary: 0,
            mark: 0,
            non_finite: None,
            status,
            stamps_at,
            counters: Counters::default(),
        })
    }

    /// The same on a device that takes long for everything.
    #[cfg(test)]
    pub(super) fn slow(self) -> Queue {
        Queue { longest_s: 0.0, most: 1, ..self }
    }

    /// Starts to count steps from zero, and forgets that updates were not finite: nothing must be under way.
    pub(super) fn reset(&mut self, device: &Device) -> Result<()> {
        device.guard(|| device.queue.write_buffer(&self.words, 0, &[0; 4 * Words::GLOBALS_AT]))?;
        (self.canary, self.status.words) = (0, Words::default());
        Ok(())
    }

    /// Replaces the globals: nothing must be under way.
    pub(super) fn set_globals(&mut self, device: &Device, globals: Vec<u32>) -> Result<()> {
        let at = 4 * Words::GLOBALS_AT as u64;
        device.guard(|| device.queue.write_buffer(&self.words, at, bytemuck::cast_slice(&globals)))?;
        self.status.globals = globals;
        Ok(())
    }

    /// What is known by now.
    pub(super) fn status(&self) -> &Status {
        &self.status
    }

    /// Whether anything may be under way.
    pub(super) fn is_pending(&self) -> bool {
        self.recording.is_some() || !self.pending.is_empty()
    }

    /// Puts down what the following dispatches are given. Tells where it lies; it stays there until many more were put down.
    pub(super) fn record(&mut self, device: &Device, words: Vec<u32>) -> Result<u32> {
        if !self.last.is_empty() && self.last == words {
            return Ok((self.staged_at + self.staged.len() as u64 - self.stride) as u32);
        }
        if self.staged_at + self.staged.len() as u64 + self.stride > self.records.size() {
            // What lies at the start may still be waited for by what was recorded.
            self.submit(device)?;
            self.staged.clear();
            self.staged_at = 0;
        }
        let at = self.staged_at + self.staged.len() as u64;
        self.staged.extend_from_slice(bytemuck::cast_slice(&words));
        self.staged.resize((at - self.staged_at + self.stride) as usize, 0);
        self.last = words;
        Ok(at as u32)
    }

    /// Expects one more step.
    pub(super) fn expect_step(&mut self) {
        self.canary = self.canary.wrapping_add(1);
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
            self.recording = Some(Recording { encoder, pass: None, dispatches: 0, copy: None });
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
            self.submit(device)?;
        }
        self.counters.dispatches += 1;
        let Recording { encoder, pass, dispatches, .. } = self.recording(device)?;
        *dispatches += 1;
        device.guard(|| {
            record(pass.get_or_insert_with(|| encoder.begin_compute_pass(&Default::default()).forget_lifetime()))
        })
    }

    /// Hands over what was recorded with a copy behind it. Tells what to wait for, and whether the copy can be read.
    #[cfg(feature = "cluster")]
    pub(super) fn submit_copy(
        &mut self,
        device: &Device,
        from: &wgpu::Buffer,
        to: &wgpu::Buffer,
        bytes: u64,
    ) -> Result<(wgpu::SubmissionIndex, Arc<AtomicU8>)> {
        self.recording(device)?.copy = Some((from.clone(), to.clone(), bytes));
        self.submit(device)?;
        let submission = self.pending.back().map(|pending| pending.submission.clone());
        let submission = submission.ok_or_else(|| device.fail("what was handed over is lost"))?;
        Ok((submission, device.guard(|| map(to, bytes))?))
    }

    /// Says which of several passes what is recorded from here on belongs to.
    #[cfg(feature = "cluster")]
    pub(super) fn mark(&mut self, device: &Device, pass: usize) -> Result<()> {
        self.submit(device)?;
        self.mark = pass;
        Ok(())
    }

    /// The first pass that was marked, since this was last asked, after which some update was not finite.
    #[cfg(feature = "cluster")]
    pub(super) fn take_non_finite(&mut self) -> Option<usize> {
        self.non_finite.take()
    }

    /// Hands over what was recorded, and asks for the status after it.
    pub(super) fn submit(&mut self, device: &Device) -> Result<()> {
        let Some(recording) = self.recording.take() else { return Ok(()) };
        if !self.staged.is_empty() {
            device.guard(|| device.queue.write_buffer(&self.records, self.staged_at, &self.staged))?;
            self.staged_at += self.staged.len() as u64;
            self.staged.clear();
        }
        if self.pending.len() == RING {
            self.collect_one(device)?;
        }
        let (to, clock) = (&self.ring[self.next], &self.clock);
        let dispatches = recording.dispatches;
        let (submission, mapped) = device.guard(|| {
            drop(recording.pass);
            let mut encoder = recording.encoder;
            if let Some((from, to, bytes)) = &recording.copy {
                encoder.copy_buffer_to_buffer(from, 0, to, 0, Some(*bytes));
            }
            encoder.copy_buffer_to_buffer(&self.words, 0, to, 0, Some(self.stamps_at));
            if let Some(Clock { queries, resolved, .. }) = clock {
                encoder.write_timestamp(queries, 1);
                encoder.resolve_query_set(queries, 0..2, resolved, 0);
                encoder.copy_buffer_to_buffer(resolved, 0, to, self.stamps_at, Some(16));
            }
            let submission = device.queue.submit([encoder.finish()]);
            (submission, map(to, self.stamps_at + 16))
        })?;
        let (buffer, canary, mark) = (self.next, self.canary, self.mark);
        self.pending.push_back(Pending { buffer, submission, dispatches, canary, mark, mapped });
        self.next = (self.next + 1) % RING;
        self.counters.submissions += 1;
        Ok(())
    }

    /// Hands over what was recorded, waits for everything, and tells the status after it.
    pub(super) fn settle(&mut self, device: &Device) -> Result<&Status> {
        self.submit(device)?;
        while !self.pending.is_empty() {
            self.collect_one(device)?;
        }
        device.check()?;
        Ok(&self.status)
    }

    /// Ends a step: hands it over unless the device has enough to do, so that few fat submissions are made when the host is
    /// faster than the device, and none waits when it is not.
    pub(super) fn pace(&mut self, device: &Device) -> Result<()> {
        /// Submissions that keep a device at work while the next one is recorded.
        const AHEAD: usize = 2;
        /// Dispatches that are worth a submission in any case.
        const ENOUGH: usize = 256;
        self.glance(device)?;
        let recorded = self.recording.as_ref().map_or(0, |recording| recording.dispatches);
        if self.pending.len() < AHEAD || recorded >= ENOUGH {
            self.submit(device)?;
        }
        Ok(())
    }

    /// Takes the status so far as it has arrived.
    fn glance(&mut self, device: &Device) -> Result<()> {
        device.guard(|| device.device.poll(wgpu::PollType::Poll).is_ok())?;
        while self.pending.front().is_some_and(|pending| mapped(&pending.mapped).is_some()) {
            self.collect_one(device)?;
        }
        Ok(())
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
        let mut words = vec![0u32; self.stamps_at as usize / 4 + 4];
        device.guard(|| {
            if let Ok(view) = buffer.get_mapped_range(..) {
                bytemuck::cast_slice_mut(&mut words).copy_from_slice(&view);
            }
            buffer.unmap();
        })?;
        let (words, stamps) = words.split_at(self.stamps_at as usize / 4);
        let globals = self.status.globals.len();
        let (non_finite, status) = (self.status.words.non_finite, Status::new(&words[..Words::GLOBALS_AT + globals]));
        let (found, expected) = (status.words.canary, pending.canary);
        if found != expected {
            return Err(device.fail(&format!("it returned the status of step {found} instead of {expected}")));
        }
        self.status = status;
        self.status.words.non_finite |= non_finite;
        if self.status.is_non_finite() {
            self.non_finite = self.non_finite.or(Some(pending.mark));
        }
        if let Some(clock) = &self.clock {
            let stamp = |i: usize| u64::from(stamps[2 * i]) | u64::from(stamps[2 * i + 1]) << 32;
            let busy_s = stamp(1).saturating_sub(stamp(0)) as f64 * clock.period * 1e-9;
            self.counters.busy_s += busy_s;
            if pending.dispatches > 0 && busy_s > 0.0 {
                self.most = ((self.longest_s / busy_s * pending.dispatches as f64) as usize).clamp(1, DISPATCHES);
            }
        }
        Ok(())
    }
}
