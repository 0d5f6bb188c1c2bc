//! Pieces of work that need nothing of each other, shared among a team.

use super::team::{Job, Longest, Team, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Many small pieces of work.
pub(super) struct Each {
    count: usize,
    next: AtomicUsize,
    done: AtomicUsize,
    /// How many are to be done: fewer than all once one panicked.
    last: AtomicUsize,
    stopped: AtomicBool,
    waited: Longest,
    spin: Duration,
    each: Arc<dyn Fn(usize) + Send + Sync>,
}

impl Each {
    /// Runs `each(i)` for all `i` below `count`, in any order, on any thread of the team.
    ///
    /// # Panics
    /// If `each` did.
    pub(super) fn run(team: &mut Team, count: usize, each: Arc<dyn Fn(usize) + Send + Sync>) {
        let [next, done, last] = [0, 0, count].map(AtomicUsize::new);
        let (stopped, waited) = (AtomicBool::new(false), Longest::default());
        let spin = team.spin();
        team.run(Arc::new(Each { count, next, done, last, stopped, waited, spin, each }));
    }
}

impl Job for Each {
    fn work(&self, worker: usize) {
        // The caller waits for all pieces that a thread has in hand, also when its own panicked: they write to what it owns.
        let _wait = (worker == 0).then(|| WaitForAll(self));
        loop {
            let i = self.next.fetch_add(1, Ordering::AcqRel);
            if i >= self.count {
                break;
            }
            let _done = Counted(self);
            (self.each)(i);
        }
    }

    fn longest_wait(&self) -> Duration {
        self.waited.get()
    }

    fn has_failed(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// Counts a piece as done, whether it ends or panics.
struct Counted<'a>(&'a Each);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // No thread takes another one from here on.
            let taken = self.0.next.swap(self.0.count, Ordering::AcqRel);
            self.0.last.fetch_min(taken, Ordering::AcqRel);
            self.0.stopped.store(true, Ordering::Release);
        }
        self.0.done.fetch_add(1, Ordering::Release);
    }
}

struct WaitForAll<'a>(&'a Each);

impl Drop for WaitForAll<'_> {
    fn drop(&mut self) {
        let (each, mut wait) = (self.0, Wait::new(self.0.spin));
        while each.done.load(Ordering::Acquire) < each.last.load(Ordering::Acquire) {
            each.waited.rest(&mut wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::thread::ThreadId;
    use std::time::Instant;

    #[test]
    fn all_threads_take_pieces() {
        /// Long enough for any thread to come.
        const PATIENCE: Duration = Duration::from_secs(60);
        let mut team = Team::new(3).unwrap();
        let seen: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
        let found = seen.clone();
        // No thread is done with a piece before three threads have one.
        let work = move |_| {
            found.lock().unwrap().push(std::thread::current().id());
            let clock = Instant::now();
            while found.lock().unwrap().len() < 3 && clock.elapsed() < PATIENCE {
                std::thread::yield_now();
            }
        };
        Each::run(&mut team, 3, Arc::new(work));
        let seen = seen.lock().unwrap();
        assert!(seen.len() == 3 && seen[0] != seen[1] && seen[1] != seen[2] && seen[2] != seen[0], "{seen:?}");
    }
}
