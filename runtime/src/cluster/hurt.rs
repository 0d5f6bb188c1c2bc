//! What tests do to workers that are threads of their own process: one is killed at a call, or a bit of its memory changes.

use super::simulated::Crash;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What happens to a worker.
#[derive(Clone)]
pub(crate) enum Hurt {
    /// It is killed when it sends for that time, counted from 1.
    Dies { host: usize, at: u64 },
    /// When it is asked for its state, a bit of what it has of others changes: of that ghost, and of its reals.
    Flips { host: usize, slot: usize, bit: u32 },
}

thread_local! {
    /// For each time that workers begin which this thread has, what happens to one of them; and how often it came to that.
    pub(crate) static HURTS: RefCell<(Vec<Hurt>, Arc<AtomicU64>)> = RefCell::default();
}

/// What happens to one worker.
#[derive(Default)]
pub(crate) struct Patient {
    hurt: OnceLock<(Hurt, Arc<AtomicU64>)>,
    sent: AtomicU64,
}

impl Hurt {
    /// What happens next, if anything does; and to whom.
    pub(crate) fn next() -> Option<(usize, (Hurt, Arc<AtomicU64>))> {
        HURTS.with_borrow_mut(|(hurts, count)| {
            let hurt = if hurts.is_empty() { return None } else { hurts.remove(0) };
            let (Hurt::Dies { host, .. } | Hurt::Flips { host, .. }) = hurt;
            Some((host, (hurt, count.clone())))
        })
    }
}

impl Patient {
    pub(crate) fn is(&self, hurt: (Hurt, Arc<AtomicU64>)) {
        let _ = self.hurt.set(hurt);
    }

    /// A message is about to be sent. `leave`: how it dies.
    pub(crate) fn send(&self, leave: impl FnOnce()) {
        let Some((Hurt::Dies { at, .. }, count)) = self.hurt.get() else { return };
        if self.sent.fetch_add(1, Ordering::Relaxed) + 1 == *at {
            count.fetch_add(1, Ordering::Relaxed);
            leave();
            std::panic::panic_any(Crash);
        }
    }

    /// The ghost slot and the bit that change now, if they do.
    pub(crate) fn flip(&self) -> Option<(usize, u32)> {
        let Some((Hurt::Flips { slot, bit, .. }, count)) = self.hurt.get() else { return None };
        // Once.
        (self.sent.fetch_add(1, Ordering::Relaxed) == 0).then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            (*slot, *bit)
        })
    }
}
