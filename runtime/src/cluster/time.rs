//! How a host knows the time, and how its threads wait for news.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time, and news: anything that a thread may wait for.
pub(crate) trait Time: Send + Sync {
    /// Time since some start.
    fn now(&self) -> Duration;

    /// There is something new.
    fn news(&self);

    /// How often there was.
    fn count(&self) -> u64;

    /// Waits until there is more than `count` says, and no longer than `nap`.
    fn rest(&self, count: u64, nap: Duration);
}

/// Real time.
pub(crate) struct Clock {
    start: Instant,
    count: AtomicU64,
    sleepers: AtomicUsize,
    bed: Mutex<()>,
    woken: Condvar,
}

impl Default for Clock {
    fn default() -> Clock {
        let (bed, woken) = (Mutex::new(()), Condvar::new());
        Clock { start: Instant::now(), count: AtomicU64::new(0), sleepers: AtomicUsize::new(0), bed, woken }
    }
}

impl Time for Clock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn news(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        // A thread that is about to sleep has either seen the new count, or is counted.
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.bed.lock().unwrap_or_else(PoisonError::into_inner));
            self.woken.notify_all();
        }
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    fn rest(&self, count: u64, nap: Duration) {
        let bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == count {
            drop(self.woken.wait_timeout(bed, nap));
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
