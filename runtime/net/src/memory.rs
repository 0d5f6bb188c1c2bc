//! Hosts in one process, which pass messages through memory: for tests of everything else.
//!
//! Every host has an inbox and a thread that empties it into the host's sink, as a host on a network has.

use crate::transport::{Event, Host, Sink, Traffic, Transport, check};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// One of several hosts in this process.
pub struct Memory {
    host: Host,
    hub: Arc<Hub>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
    /// How long a goodbye may take.
    patience: Duration,
}

struct Hub {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    inboxes: Vec<Inbox>,
    /// What went from one host to another: row after row.
    pairs: Vec<Pair>,
}

#[derive(Default)]
struct Inbox {
    events: VecDeque<Event>,
    /// Whether the host still takes part; it said goodbye; its thread is to end.
    here: bool,
    leaving: bool,
}

#[derive(Clone, Default)]
struct Pair {
    sent: Count,
    received: Count,
    /// Bytes that the sink has not taken yet, and messages.
    queued: usize,
    waiting: usize,
}

#[derive(Clone, Copy, Default)]
struct Count {
    messages: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Waits until something is so. Returns false if the deadline passed.
    fn wait(&self, deadline: Instant, mut done: impl FnMut(&State) -> bool) -> bool {
        let mut state = self.state();
        while !done(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).expect("no holder of the lock panics").0;
        }
        true
    }

    /// Takes a host out: the others are told.
    fn remove(&self, host: Host, why: &str) {
        let mut state = self.state();
        if std::mem::take(&mut state.inboxes[host as usize].here) {
            for other in 0..state.inboxes.len() as Host {
                let goodbye = state.inboxes[host as usize].leaving && state.inboxes[other as usize].leaving;
                if other != host && !goodbye {
                    state.inboxes[other as usize].events.push_back(Event::Lost { host, why: why.to_string() });
                }
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl State {
    fn pair(&mut self, from: Host, to: Host) -> &mut Pair {
        let hosts = self.inboxes.len();
        &mut self.pairs[from as usize * hosts + to as usize]
    }

    fn between(&self, from: Host, to: Host) -> &Pair {
        &self.pairs[from as usize * self.inboxes.len() + to as usize]
    }
}

/// Makes a host for every sink, the driver first, and starts a thread for each.
pub fn hosts(sinks: Vec<Sink>) -> Vec<Memory> {
    let inboxes: Vec<_> = sinks.iter().map(|_| Inbox { here: true, ..Inbox::default() }).collect();
    let pairs = vec![Pair::default(); sinks.len() * sinks.len()];
    let hub = Arc::new(Hub { state: Mutex::new(State { inboxes, pairs }), changed: Condvar::new() });
    let host = |(host, sink): (usize, Sink)| {
        let (host, shared) = (host as Host, hub.clone());
        let thread = std::thread::Builder::new().name(format!("meshweft host {host}"));
        let thread = thread.spawn(move || empty(&shared, host, &sink)).expect("threads can be started");
        Memory { host, hub: hub.clone(), thread: Mutex::new(Some(thread)), patience: Duration::from_secs(10) }
    };
    sinks.into_iter().enumerate().map(host).collect()
}

/// Hands events to a host's sink, until it has left.
fn empty(hub: &Hub, host: Host, sink: &Sink) {
    loop {
        let mut state = hub.state();
        let event = loop {
            if !state.inboxes[host as usize].here {
                return;
            }
            match state.inboxes[host as usize].events.pop_front() {
                Some(event) => {
                    // Counted before the sink sees it, as over a network.
                    if let Event::Message { from, bytes } = &event {
                        state.pair(*from, host).received.add(bytes.len());
                    }
                    break event;
                }
                None => state = hub.changed.wait(state).expect("no holder of the lock panics"),
            }
        };
        drop(state);
        let taken = match &event {
            Event::Message { from, bytes } => Some((*from, bytes.len())),
            Event::Lost { .. } => None,
        };
        sink(event);
        if let Some((from, bytes)) = taken {
            let mut state = hub.state();
            let pair = state.pair(from, host);
            pair.queued -= bytes;
            pair.waiting -= 1;
            drop(state);
            hub.changed.notify_all();
        }
    }
}

impl Transport for Memory {
    fn host(&self) -> Host {
        self.host
    }

    fn hosts(&self) -> u32 {
        self.hub.state().inboxes.len() as u32
    }

    fn send(&self, to: Host, message: Vec<u8>) {
        check(self, to, &message);
        let mut state = self.hub.state();
        let this = &state.inboxes[self.host as usize];
        if !state.inboxes[to as usize].here || !this.here || this.leaving {
            return;
        }
        let pair = state.pair(self.host, to);
        pair.sent.add(message.len());
        pair.queued += message.len();
        pair.waiting += 1;
        state.inboxes[to as usize].events.push_back(Event::Message { from: self.host, bytes: message });
        drop(state);
        self.hub.changed.notify_all();
    }

    fn wait_for_room(&self, to: Host, bytes: usize, deadline: Instant) -> bool {
        let lost = |state: &State| !state.inboxes[to as usize].here;
        let done = |state: &State| lost(state) || state.between(self.host, to).queued <= bytes;
        self.hub.wait(deadline, done) && !lost(&self.hub.state())
    }

    fn traffic(&self, with: Host) -> Traffic {
        let state = self.hub.state();
        let (sent, received) = (state.between(self.host, with).sent, state.between(with, self.host).received);
        Traffic {
            sent_messages: sent.messages,
            sent_bytes: sent.bytes,
            received_messages: received.messages,
            received_bytes: received.bytes,
            rate: Some(f64::INFINITY),
        }
    }

    fn close(&self) {
        let mut state = self.hub.state();
        state.inboxes[self.host as usize].leaving = true;
        drop(state);
        self.hub.changed.notify_all();
        let read = |state: &State, other: Host| {
            let inbox = &state.inboxes[other as usize];
            let both = state.between(self.host, other).waiting + state.between(other, self.host).waiting;
            other == self.host || !inbox.here || (inbox.leaving && both == 0)
        };
        let all = |state: &State| (0..state.inboxes.len() as Host).all(|other| read(state, other));
        self.hub.wait(Instant::now() + self.patience, all);
        self.hub.remove(self.host, "it left without waiting for a goodbye");
        if let Some(thread) = self.thread.lock().expect("no holder of the lock panics").take() {
            thread.join().expect("no sink panics");
        }
    }

    fn leave(&self) {
        self.hub.remove(self.host, "it left");
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.hub.remove(self.host, "it was dropped");
    }
}
