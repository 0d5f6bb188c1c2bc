//! What a walk sees of other hosts: values go out here.

use super::{Exchange, lock};
use crate::cluster::values;
use crate::engine::{Arrivals, Border, Outbox};
use crate::error::Result;
use std::cell::Cell;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes of a message that waits for nothing more: far from what a transport takes.
const LARGE: usize = 1 << 20;
/// How long a walk waits at most before it looks again.
const NAP: Duration = Duration::from_millis(1);

impl Border for Exchange {
    fn begin(&self, walk: Arc<dyn Arrivals>, epochs: Range<u64>) -> Result<()> {
        let mut ghosts = lock(&self.ghosts);
        let links = self.links();
        let due = links.as_ref().map_or(0, |links| links.ghosts(walk.tasks())) as u64 * (epochs.end - epochs.start);
        self.overlap.begin(due, self.time.now());
        self.moves.fetch_add(1, Ordering::Relaxed);
        self.overlap.arrive(ghosts.begin(walk, epochs, links.as_deref())?, || self.time.now());
        self.check()
    }

    fn is_read(&self, t: u32) -> bool {
        self.links().is_some_and(|links| !links.sent[t as usize].is_empty())
    }

    fn pack(&self, outbox: &mut Outbox, t: u32, epoch: u64, gather: &dyn Fn(&[u32], &mut Vec<u8>)) {
        let links = self.links().expect("a walk has a share");
        if links.sent[t as usize].is_empty() {
            return;
        }
        let name = links.name(t);
        assert!(outbox.messages.is_empty() || outbox.epoch == epoch, "a message has values of one epoch");
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

    fn post(&self, outbox: &mut Outbox, adds: bool) {
        if outbox.messages.is_empty() {
            return;
        }
        let is_small = outbox.messages.iter().all(|(_, message)| message.len() < LARGE);
        if adds && is_small && self.time.now() < outbox.begun + self.patience.get() {
            return;
        }
        let packing = self.packing.get().expect("a walk has a share");
        for (to, message) in outbox.messages.drain(..) {
            let rate = || self.transport().traffic(to).rate;
            let (message, said) = packing.prepare(to, message, rate, || self.time.now());
            self.send(to, message);
            if let Some(said) = said {
                let _ = writeln!(std::io::stderr(), "host {} {said}", self.transport().host());
            }
        }
        self.time.news();
        self.transport().turn();
    }

    fn look(&self, outbox: &mut Outbox) {
        let now = self.time.now();
        if now > outbox.looked + self.patience.get() {
            outbox.looked = now;
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
        let rounds = lock(&self.ghosts).end();
        self.patience.note(rounds, self.overlap.since_begin(self.time.now()));
        self.check()
    }
}
