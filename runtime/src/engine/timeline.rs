//! What the threads of a host did, and when: for people who look for what a run waits for.
//!
//! A thread writes with a [`Pen`] of its own while it works at a walk, and hands in what it wrote at the end of that. The number of
//! events is bounded: those for which there is no room are counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Events of a host, at most.
pub(crate) const MOST: usize = 200_000;
/// The number of the network among the threads of a host, which are never more.
pub(crate) const NETWORK: u32 = 4096;
/// Waits of less time, in nanoseconds, are no events: a few looks for the next task take as long.
const GAP: u64 = 2_000;

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Updated tasks in a round of a kernel.
    Update {
        /// Number of the kernel.
        kernel: u32,
        tasks: u32,
    },
    /// Waited, because nothing was ready.
    Wait,
    /// Sent the results of a task, by its number in the whole mesh.
    Send { task: u32 },
    /// Took in the results of a task of another host.
    Receive { from: u32, task: u32 },
}

/// Something that a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) what: What,
    /// Of all walks, counted from 1; 0 for a wait.
    pub(crate) round: u64,
    /// Nanoseconds since the timeline began.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// What the threads of a host did.
pub(crate) struct Timeline {
    began: Instant,
    /// Events that there is room for.
    room: AtomicUsize,
    left_out: AtomicU64,
    /// By thread.
    events: Mutex<BTreeMap<u32, Vec<Event>>>,
}

/// The events of a timeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recording {
    /// Hosts count from 1.
    pub(crate) host: u32,
    /// Events that there was no room for.
    pub(crate) left_out: u64,
    /// By thread; those of each one after the other.
    pub(crate) events: Vec<(u32, Event)>,
}

impl Timeline {
    /// One that begins now, with room for so many events.
    pub(crate) fn new(room: usize) -> Timeline {
        let (room, left_out) = (AtomicUsize::new(room), AtomicU64::new(0));
        Timeline { began: Instant::now(), room, left_out, events: Mutex::default() }
    }

    /// Nanoseconds since it began.
    pub(crate) fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Adds an event that ends now.
    pub(crate) fn add(&self, thread: u32, what: What, round: u64, start: u64) {
        let end = self.now();
        if self.has_room() {
            self.events().entry(thread).or_default().push(Event { what, round, start, end });
        }
    }

    /// Its events so far.
    pub(crate) fn recording(&self, host: u32) -> Recording {
        let events = self.events();
        let events = events.iter().flat_map(|(&thread, events)| events.iter().map(move |&event| (thread, event)));
        Recording { host, left_out: self.left_out.load(Ordering::Relaxed), events: events.collect() }
    }

    fn events(&self) -> MutexGuard<'_, BTreeMap<u32, Vec<Event>>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for an event, or counts one that is left out.
    fn has_room(&self) -> bool {
        let less = |room: usize| room.checked_sub(1);
        let has_room = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if !has_room {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }
}

/// What one thread writes with during a walk, if that is recorded. Every call says what the time since the last one was for.
pub(crate) struct Pen<'a> {
    timeline: Option<&'a Timeline>,
    thread: u32,
    /// When it was last called.
    last: u64,
    /// What may go on.
    open: Option<Event>,
    events: Vec<Event>,
}

impl<'a> Pen<'a> {
    /// Of a thread. Without a timeline it writes nothing.
    pub(crate) fn of(timeline: Option<&'a Timeline>, thread: u32) -> Pen<'a> {
        Pen { timeline, thread, last: timeline.map_or(0, Timeline::now), open: None, events: Vec::new() }
    }

    /// Whether what it writes is kept.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.timeline.is_some()
    }

    /// It has found its next task, at once or after a wait.
    #[inline]
    pub(crate) fn found(&mut self, has_waited: bool) {
        let Some(timeline) = self.timeline else { return };
        let now = timeline.now();
        if has_waited && now - self.last > GAP {
            self.put(What::Wait, 0, now);
        }
        self.last = now;
    }

    /// It was updating. Tasks of one round that come one after the other are one event.
    #[inline]
    pub(crate) fn updated(&mut self, kernel: usize, tasks: u32, round: u64) {
        let Some(timeline) = self.timeline else { return };
        let (now, kernel) = (timeline.now(), kernel as u32);
        match &mut self.open {
            Some(Event { what: What::Update { kernel: same, tasks: all }, round: last, end, .. })
                if (*same, *last) == (kernel, round) =>
            {
                (*all, *end) = (*all + tasks, now);
            }
            _ => self.put(What::Update { kernel, tasks }, round, now),
        }
        self.last = now;
    }

    /// It was sending.
    pub(crate) fn sent(&mut self, task: u32, round: u64) {
        let Some(timeline) = self.timeline else { return };
        let now = timeline.now();
        self.put(What::Send { task }, round, now);
        self.last = now;
    }

    fn put(&mut self, what: What, round: u64, end: u64) {
        self.close();
        self.open = Some(Event { what, round, start: self.last, end });
    }

    fn close(&mut self) {
        let has_room = |timeline: &Timeline| timeline.has_room();
        if let Some(event) = self.open.take().filter(|_| self.timeline.is_some_and(has_room)) {
            self.events.push(event);
        }
    }
}

impl Drop for Pen<'_> {
    fn drop(&mut self) {
        self.close();
        if let Some(timeline) = self.timeline.filter(|_| !self.events.is_empty()) {
            timeline.events().entry(self.thread).or_default().append(&mut self.events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn tasks_of_a_round_are_one_event_and_what_finds_no_room_is_counted() {
        let timeline = Timeline::new(4);
        let mut pen = Pen::of(Some(&timeline), 3);
        for (task, round) in [(0, 1), (1, 1), (2, 1), (3, 2)] {
            pen.updated(7, 1, round);
            if task == 1 {
                pen.sent(11, 1);
            }
        }
        for has_waited in [false, true] {
            std::thread::sleep(Duration::from_millis(1));
            pen.found(has_waited);
        }
        pen.updated(7, 1, 2);
        drop(pen);
        let recording = timeline.recording(5);
        let update = |tasks| What::Update { kernel: 7, tasks };
        let whats: Vec<What> = recording.events.iter().map(|(_, event)| event.what).collect();
        assert_eq!(whats, [update(2), What::Send { task: 11 }, update(1), update(1)]);
        assert_eq!((recording.host, recording.left_out), (5, 2), "the wait and what came after it");
        assert!(recording.events.iter().all(|(thread, event)| *thread == 3 && event.start <= event.end));
        assert!(recording.events.windows(2).all(|pair| pair[0].1.end <= pair[1].1.start));
    }
}
