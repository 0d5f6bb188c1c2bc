//! What a walk sees of other hosts: values go out here.

use super::{Exchange, lock};
use crate::cluster::values;
use crate::engine::{Arrivals, Border, Haste, Outbox};
use crate::error::Result;
use std::cell::Cell;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the results of a task may wait for the next, so that both go out as one message: where other hosts may wait for them, and
/// where they have time. Each message costs a turn of the network here and one where it arrives.
const HURRY: Duration = Duration::from_micros(50);
const LEISURE: Duration = Duration::from_micros(500);
/// Bytes of a message that waits for nothing more: far from what a transport takes.
const LARGE: usize = 1 << 20;
/// How often a thread that walks looks for packets.
const LOOK: Duration = Duration::from_micros(50);
/// How long a walk waits at most before it looks again.
const NAP: Duration = Duration::from_millis(1);

impl Border for Exchange {
    fn begin(&self, walk: Arc<dyn Arrivals>, epochs: Range<u64>) -> Result<()> {
        let mut ghosts = lock(&self.ghosts);
        let links = self.links.get();
        let due = links.map_or(0, |links| links.ghosts()) as u64 * (epochs.end - epochs.start);
        self.overlap.begin(due, self.time.now());
        self.moves.fetch_add(1, Ordering::Relaxed);
        self.overlap.arrive(ghosts.begin(walk, epochs, links)?, || self.time.now());
        self.check()
    }

    fn is_read(&self, t: u32) -> bool {
        self.links.get().is_some_and(|links| !links.sent[t as usize].is_empty())
    }

    fn pack(&self, outbox: &mut Outbox, t: u32, epoch: u64, gather: &dyn Fn(&[u32], &mut Vec<u8>)) {
        let links = self.links.get().expect("a walk has a share");
        let name = links.name(t);
        outbox.epoch = epoch;
        if outbox.messages.is_empty() {
            outbox.begun = self.time.now();
        }
        for (host, slots) in &links.sent[t as usize] {
            let known = outbox.messages.iter().position(|(to, _)| to == host);
            let known = known.unwrap_or_else(|| {
                outbox.messages.push((*host, values::begin(epoch)));
                outbox.messages.len() - 1
            });
            values::add(&mut outbox.messages[known].1, name, |bits| gather(slots, bits));
        }
    }

    fn post(&self, outbox: &mut Outbox, haste: Haste) {
        if outbox.messages.is_empty() {
            return;
        }
        let now = self.time.now();
        let waits = match haste {
            Haste::Now => false,
            Haste::Soon => now < outbox.sent + HURRY,
            Haste::Later => now < outbox.begun + LEISURE,
        };
        if waits && outbox.messages.iter().all(|(_, message)| message.len() < LARGE) {
            return;
        }
        let packing = &self.links.get().expect("a walk has a share").packing;
        for (to, message) in outbox.messages.drain(..) {
            let rate = || self.transport().traffic(to).rate;
            let (message, said) = packing.prepare(to, message, rate, || self.time.now());
            self.send(to, message);
            if let Some(said) = said {
                let _ = writeln!(std::io::stderr(), "host {} {said}", self.transport().host());
            }
        }
        outbox.sent = now;
        self.time.news();
        self.transport().turn();
    }

    fn look(&self) {
        thread_local! {
            /// When this thread last looked.
            static LAST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
        }
        let now = self.time.now();
        if now > LAST.get() + LOOK {
            LAST.set(now);
            self.transport().turn();
        }
    }

    fn is_cut_off(&self) -> bool {
        self.loss.is_any()
    }

    fn rest(&self) {
        thread_local! {
            /// What was news when this thread last looked.
            static SEEN: Cell<u64> = const { Cell::new(u64::MAX) };
        }
        let count = self.time.count();
        if SEEN.replace(count) == count {
            let (start, is_outstanding) = (self.time.now(), self.overlap.is_outstanding());
            Exchange::rest(self, count, NAP);
            self.overlap.wait(self.time.now() - start, is_outstanding);
        }
    }

    fn end(&self) -> Result<()> {
        lock(&self.ghosts).end();
        self.check()
    }
}
