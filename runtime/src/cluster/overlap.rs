//! How much of the time of messages threads had other work.
//!
//! A walk knows what it will be sent: every ghost once a round. While some of that has not come, messages are *outstanding*. A thread
//! that has work then hides their time; one that waits because nothing is ready does not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The account of a host.
#[derive(Default)]
pub(super) struct Overlap {
    /// How long threads have waited, all together; in nanoseconds, as all times here.
    waited: AtomicU64,
    /// Values of ghosts that the walk under way has not got yet.
    due: AtomicU64,
    /// When it began.
    began: AtomicU64,
    outstanding: AtomicU64,
    exposed: AtomicU64,
}

impl Overlap {
    /// A walk begins that will be sent so many values of ghosts.
    pub(super) fn begin(&self, due: u64, now: Duration) {
        self.began.store(now.as_nanos() as u64, Ordering::Relaxed);
        self.due.store(due, Ordering::Relaxed);
    }

    /// So many have come.
    pub(super) fn arrive(&self, count: u64, now: impl FnOnce() -> Duration) {
        if count > 0 && self.due.fetch_sub(count, Ordering::Relaxed) == count {
            self.outstanding.fetch_add(self.since_begin(now()).as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// How long ago the walk began.
    pub(super) fn since_begin(&self, now: Duration) -> Duration {
        now.saturating_sub(Duration::from_nanos(self.began.load(Ordering::Relaxed)))
    }

    /// Whether some have not come.
    pub(super) fn is_outstanding(&self) -> bool {
        self.due.load(Ordering::Relaxed) > 0
    }

    /// A thread has waited. `was_outstanding`: whether some values had not come when it began to.
    pub(super) fn wait(&self, wait: Duration, was_outstanding: bool) {
        let wait = wait.as_nanos() as u64;
        self.waited.fetch_add(wait, Ordering::Relaxed);
        if was_outstanding {
            self.exposed.fetch_add(wait, Ordering::Relaxed);
        }
    }

    /// How long threads have waited, all together.
    pub(super) fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    /// Seconds in which messages were outstanding, and seconds that threads waited in those, all together.
    pub(super) fn seconds(&self) -> [f64; 2] {
        [&self.outstanding, &self.exposed].map(|time| time.load(Ordering::Relaxed) as f64 * 1e-9)
    }
}

/// The share of the time of messages in which threads had work; none where no messages were outstanding.
pub(super) fn share([outstanding, exposed]: [f64; 2], threads: u32) -> Option<f64> {
    let time = outstanding * f64::from(threads);
    (time > 0.0).then(|| (1.0 - exposed / time).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_count_from_the_start_of_a_walk_to_its_last_message() {
        let (overlap, at) = (Overlap::default(), Duration::from_millis);
        for start in [0, 100] {
            overlap.begin(3, at(start));
            overlap.arrive(2, || panic!("one is outstanding"));
            assert!(overlap.is_outstanding());
            overlap.wait(at(5), overlap.is_outstanding());
            overlap.arrive(1, || at(start + 20));
            assert!(!overlap.is_outstanding());
            overlap.wait(at(1), overlap.is_outstanding());
        }
        assert_eq!(overlap.waited(), at(12));
        let seconds = overlap.seconds();
        assert_eq!(seconds.map(|s| (s * 1e3).round()), [40.0, 10.0]);
        assert_eq!(share(seconds, 1), Some(0.75));
        assert_eq!(share(seconds, 2), Some(0.875));
        assert_eq!(share([0.0, 0.0], 2), None, "nothing to wait for");
    }
}
