//! What the threads of all hosts did, by the clock of the driver.
//!
//! Every host writes down what its threads do by its own clock ([`Timeline`]). Before the first step and after the last one the
//! driver asks each worker what its clock shows, several times, and takes the answer that was quickest: it was given half a
//! round trip before it came. Between the two readings clocks are taken to run evenly.

use super::exchange::Exchange;
use super::message::{Control, DRIVER, unexpected};
use super::stream::{Incoming, Outgoing};
use crate::engine::{Event, MOST, NETWORK, Recording, What};
use crate::error::{Error, Result};
use meshweft_net::Host;
use std::io::{Read, Write};
use std::time::Instant;

/// How often a clock is asked for: the quickest of some answers was held up by nothing.
const ASKED: usize = 8;
/// How much faster or slower a clock may run than the driver's, at most: what two readings say beyond that is noise.
const DRIFT: f64 = 1e-3;
/// Bytes of an event in a stream.
const EVENT: usize = 36;

/// What two clocks showed at the same moment, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    here: u64,
    there: u64,
}

/// Waits for the next message of a worker.
type Next<'a> = &'a dyn Fn(Host) -> Result<Control>;

/// The clocks of all workers.
pub(super) struct Clocks {
    began: Instant,
    first: Vec<Reading>,
}

impl Clocks {
    /// Reads all clocks for the first time. `next`: waits for the next message of a worker.
    ///
    /// # Errors
    /// A worker that was lost.
    pub(super) fn start(exchange: &Exchange, next: Next) -> Result<Clocks> {
        let mut clocks = Clocks { began: Instant::now(), first: Vec::new() };
        let workers = 1..exchange.transport().hosts();
        clocks.first = workers.map(|host| clocks.read(exchange, next, host)).collect::<Result<_>>()?;
        Ok(clocks)
    }

    fn read(&self, exchange: &Exchange, next: Next, host: Host) -> Result<Reading> {
        let mut best: Option<(u64, Reading)> = None;
        for _ in 0..ASKED {
            let asked = self.began.elapsed().as_nanos() as u64;
            exchange.send(host, Control::Clock.encode());
            let there = match next(host)? {
                Control::ClockShows(there) => there,
                other => return unexpected(host, &other),
            };
            let took = self.began.elapsed().as_nanos() as u64 - asked;
            if best.is_none_or(|(quickest, _)| took < quickest) {
                best = Some((took, Reading { here: asked + took / 2, there }));
            }
        }
        Ok(best.expect("it was asked").1)
    }

    /// What the threads of all workers did.
    ///
    /// # Errors
    /// A worker that was lost, or sends malformed events.
    pub(super) fn recordings(&self, exchange: &Exchange, next: Next) -> Result<Vec<Recording>> {
        let hosts = exchange.transport().hosts();
        let recording = |(host, &first): (Host, &Reading)| {
            let last = self.read(exchange, next, host)?;
            exchange.send(host, Control::Timeline.encode());
            let mut recording = receive(&mut Incoming::new(exchange, host), hosts)
                .map_err(|error| Error::Cluster(format!("host {host} cannot say what it did: {error}")))?;
            recording.host = host;
            for (_, event) in &mut recording.events {
                (event.start, event.end) = (aligned(first, last, event.start), aligned(first, last, event.end));
            }
            Ok(recording)
        };
        (1..hosts).zip(&self.first).map(recording).collect()
    }
}

/// What the clock here showed when the one there showed `there`, given two readings of both. Never goes back.
fn aligned(first: Reading, last: Reading, there: u64) -> u64 {
    let apart = |later: u64, earlier: u64| later as f64 - earlier as f64;
    let rate = apart(last.here, first.here) / apart(last.there, first.there);
    let rate = if rate.is_finite() { rate.clamp(1.0 - DRIFT, 1.0 + DRIFT) } else { 1.0 };
    // A number below zero becomes zero.
    (first.here as f64 + rate * apart(there, first.there)).round() as u64
}

/// A worker's answer to the driver.
///
/// # Errors
/// Nothing is written down here, or the driver was lost.
pub(super) fn answer(exchange: &Exchange, asked: &Control) -> Result<()> {
    let Some(timeline) = exchange.timeline.get() else {
        return Err(Error::Cluster("nothing is written down here".into()));
    };
    if *asked == Control::Clock {
        exchange.send(DRIVER, Control::ClockShows(timeline.now()).encode());
        return Ok(());
    }
    let mut out = Outgoing::new(exchange, DRIVER);
    send(&timeline.recording(0), &mut out).and_then(|()| out.flush()).map_err(|error| Error::Cluster(error.to_string()))
}

/// Writes a recording, but not whose it is.
fn send(recording: &Recording, out: &mut impl Write) -> std::io::Result<()> {
    out.write_all(&recording.left_out.to_le_bytes())?;
    out.write_all(&(recording.events.len() as u64).to_le_bytes())?;
    for &(thread, Event { what, round, start, end }) in &recording.events {
        let (kind, a, b) = match what {
            What::Update { kernel, tasks } => (0, kernel, tasks),
            What::Wait => (1, 0, 0),
            What::Send { task } => (2, task, 0),
            What::Receive { from, task } => (3, from, task),
        };
        for word in [thread << 8 | kind, a, b] {
            out.write_all(&word.to_le_bytes())?;
        }
        for word in [round, start, end] {
            out.write_all(&word.to_le_bytes())?;
        }
    }
    Ok(())
}

/// Reads what [`send`] wrote, in a run of so many hosts.
fn receive(from: &mut impl Read, hosts: u32) -> std::io::Result<Recording> {
    let malformed = || std::io::Error::other("it sent malformed events");
    let mut long = [0; 8];
    let mut next = |from: &mut dyn Read| from.read_exact(&mut long).map(|()| u64::from_le_bytes(long));
    let (left_out, count) = (next(from)?, next(from)?);
    if count > MOST as u64 {
        return Err(malformed());
    }
    let mut events = Vec::new();
    let mut bytes = [0; EVENT];
    for _ in 0..count {
        from.read_exact(&mut bytes)?;
        let word = |i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four bytes"));
        let long = |i: usize| u64::from(word(i)) | u64::from(word(i + 1)) << 32;
        let what = match word(0) & 0xff {
            0 => What::Update { kernel: word(1), tasks: word(2) },
            1 => What::Wait,
            2 => What::Send { task: word(1) },
            3 if word(1) < hosts => What::Receive { from: word(1), task: word(2) },
            _ => return Err(malformed()),
        };
        let (thread, event) = (word(0) >> 8, Event { what, round: long(3), start: long(5), end: long(7) });
        if thread > NETWORK || event.start > event.end {
            return Err(malformed());
        }
        events.push((thread, event));
    }
    Ok(Recording { host: 0, left_out, events })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_began_apart_and_run_apart_are_aligned() {
        // The clock there began 5 ms later, and runs a little fast.
        let reading = |here: u64| Reading { here, there: ((here - 5_000_000) as f64 * 1.0002) as u64 };
        let (first, last) = (reading(6_000_000), reading(9_000_000_000));
        for here in [6_000_000, 7_654_321, 1_000_000_000, 9_500_000_000u64] {
            assert!(aligned(first, last, reading(here).there).abs_diff(here) <= 2);
        }
        // The same reading twice says nothing of the rate; a moment before all readings is zero.
        assert_eq!(aligned(first, first, first.there + 10), first.here + 10);
        assert_eq!(aligned(Reading { here: 5, there: 100 }, last, 0), 0);
    }

    #[test]
    fn a_recording_arrives_as_it_was_sent_and_nonsense_is_refused() {
        let event = |what, round| Event { what, round, start: 1 << 40, end: (1 << 40) + 7 };
        let events = vec![
            (0, event(What::Update { kernel: 3, tasks: 70_000 }, 1 << 33)),
            (4095, event(What::Wait, 0)),
            (2, event(What::Send { task: u32::MAX }, 9)),
            (NETWORK, event(What::Receive { from: 2, task: 8 }, 9)),
        ];
        let recording = Recording { host: 0, left_out: 12, events };
        let mut sent = Vec::new();
        send(&recording, &mut sent).unwrap();
        assert_eq!(receive(&mut &sent[..], 3).unwrap(), recording);
        assert!(receive(&mut &sent[..], 2).is_err(), "a message of a host that is not in the run");
        assert!(receive(&mut &sent[..sent.len() - 1], 3).is_err(), "cut short");
        let with = |at: usize, byte: u8| {
            let mut other = sent.clone();
            other[at] = byte;
            receive(&mut &other[..], 3)
        };
        assert!(with(12, 1).is_err(), "more events than there may be");
        assert!(with(16, 4).is_err(), "no kind");
        assert!(with(16 + 3, 1).is_err(), "no thread");
        assert!(with(16 + 28 + 5, 0).is_err(), "it ends before it starts");
    }
}
