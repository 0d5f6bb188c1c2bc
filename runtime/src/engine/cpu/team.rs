//! A team of threads in which the caller works, and waits for no thread that has not begun.
//!
//! Other programs may want the cores, too: a helper that was put to sleep in the middle of a task holds up all others until
//! its turn comes, milliseconds later. So three things keep the cost of sharing a machine small. The calling thread does all
//! the work that no other thread has taken, so a helper that has not come yet costs nothing. Threads that wait spin for a while
//! and then sleep. And after a run that was held up, the helpers are left out for the next one, the next two, four ... 256 runs,
//! while runs that go well shorten that again.
//!
//! A job outlives the run, because a helper may come late to it: it is shared, not borrowed, and must then find nothing to do.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a thread spins before it sleeps, where there are as many cores as threads.
const SPIN: Duration = Duration::from_micros(150);
/// How long it sleeps then, and again.
const NAP: Duration = Duration::from_micros(50);
/// A wait this long means a descheduled thread: tasks are shorter. It counts if it is a good part of the run.
const STALL: Duration = Duration::from_millis(1);
/// How many such waits would make up a run, at most.
const WAITS: u32 = 4;
/// Runs for which helpers are left out, at most.
const LONGEST_PENALTY: usize = 256;

/// Something that several threads do together.
pub(super) trait Job: Send + Sync {
    /// Works until there is nothing left to do. The caller's own call, as worker 0, returns when all is done, by any thread.
    fn work(&self, worker: usize);

    /// The longest time that a thread waited for another thread.
    fn longest_wait(&self) -> Duration;

    /// Whether a panic ended it.
    fn has_failed(&self) -> bool;
}

/// Threads, the caller included.
pub(super) struct Team {
    board: Arc<Board>,
    helpers: Vec<JoinHandle<()>>,
    /// Runs that helpers are still left out of, and for how many they will be the next time.
    left_out: usize,
    penalty: usize,
    /// Runs that were held up.
    pub(super) stalls: u64,
}

/// Where the caller posts jobs.
struct Board {
    post: Mutex<Post>,
    posted: Condvar,
    /// How many jobs were posted; read without the lock by those that spin.
    number: AtomicU64,
    sleepers: AtomicUsize,
    spin: Duration,
}

#[derive(Default)]
struct Post {
    job: Option<Arc<dyn Job>>,
    number: u64,
    is_over: bool,
    /// The last panic of a helper, and the number of its job.
    panic: Option<(u64, Box<dyn Any + Send>)>,
}

impl Team {
    /// Starts `threads - 1` helpers.
    ///
    /// # Errors
    /// What the system says if it has no thread left.
    pub(super) fn new(threads: usize) -> std::io::Result<Team> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let board = Arc::new(Board {
            post: Mutex::default(),
            posted: Condvar::new(),
            number: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            // Where threads outnumber cores, one that spins keeps the one it waits for from running.
            spin: if threads > cores { Duration::ZERO } else { SPIN },
        });
        let mut team = Team { board, helpers: Vec::new(), left_out: 0, penalty: 1, stalls: 0 };
        for worker in 1..threads {
            let board = team.board.clone();
            let helper = std::thread::Builder::new().name(format!("meshweft-{worker}"));
            team.helpers.push(helper.spawn(move || board.help(worker))?);
        }
        Ok(team)
    }

    /// Number of threads, the caller included.
    pub(super) fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// How long a thread is to spin before it sleeps.
    pub(super) fn spin(&self) -> Duration {
        self.board.spin
    }

    /// Whether the caller is to work alone this time.
    pub(super) fn is_alone(&mut self) -> bool {
        let alone = self.helpers.is_empty() || self.left_out > 0;
        self.left_out = self.left_out.saturating_sub(1);
        alone
    }

    /// Does a job. Returns when it is done.
    ///
    /// # Panics
    /// If the job did, on any thread.
    pub(super) fn run(&mut self, job: Arc<dyn Job>) {
        let posted = {
            let mut post = self.board.lock();
            (post.job, post.number) = (Some(job.clone()), post.number + 1);
            self.board.number.store(post.number, Ordering::Release);
            post.number
        };
        if self.board.sleepers.load(Ordering::SeqCst) > 0 {
            self.board.posted.notify_all();
        }
        let clock = Instant::now();
        let own = catch_unwind(AssertUnwindSafe(|| job.work(0)));
        let took = clock.elapsed();
        self.board.lock().job = None;
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        while job.has_failed() {
            // The helper is about to hand its panic over.
            if let Some(panic) = self.board.lock().panic.take_if(|(number, _)| *number == posted) {
                resume_unwind(panic.1);
            }
            std::thread::yield_now();
        }
        let waited = job.longest_wait();
        if waited > STALL && waited * WAITS > took {
            self.stalls += 1;
            self.left_out = self.penalty;
            self.penalty = (2 * self.penalty).min(LONGEST_PENALTY);
        } else {
            self.penalty = (self.penalty - 1).max(1);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.board.lock().is_over = true;
        self.board.number.fetch_add(1, Ordering::Release);
        self.board.posted.notify_all();
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
    }
}

impl Board {
    fn lock(&self) -> std::sync::MutexGuard<'_, Post> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn help(&self, worker: usize) {
        let mut last = 0;
        while let Some(job) = self.next(&mut last) {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job.work(worker))) {
                self.lock().panic = Some((last, panic));
            }
        }
    }

    /// The next job after number `last`; none when the team is over.
    fn next(&self, last: &mut u64) -> Option<Arc<dyn Job>> {
        loop {
            let mut wait = Wait::new(self.spin);
            while self.number.load(Ordering::Acquire) == *last && wait.spins() {}
            let mut post = self.lock();
            while post.number == *last && !post.is_over {
                self.sleepers.fetch_add(1, Ordering::SeqCst);
                post = self.posted.wait(post).unwrap_or_else(PoisonError::into_inner);
                self.sleepers.fetch_sub(1, Ordering::SeqCst);
            }
            *last = post.number;
            match &post.job {
                _ if post.is_over => return None,
                Some(job) => return Some(job.clone()),
                // Too late: it is done.
                None => {}
            }
        }
    }
}

/// The longest of some waits.
#[derive(Default)]
pub(super) struct Longest(AtomicU64);

impl Longest {
    /// Rests, and notes how long that has taken.
    pub(super) fn rest(&self, wait: &mut Wait) {
        if let Some(waited) = wait.rest() {
            self.0.fetch_max(waited.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// Waits for something that other threads will do soon.
pub(super) struct Wait {
    spin: Duration,
    since: Option<Instant>,
    turns: u32,
}

impl Wait {
    pub(super) fn new(spin: Duration) -> Wait {
        Wait { spin, since: None, turns: 0 }
    }

    /// Spins a little. Tells whether it is still too early to sleep.
    pub(super) fn spins(&mut self) -> bool {
        /// Turns between two looks at the clock.
        const TURNS: u32 = 32;
        std::hint::spin_loop();
        self.turns += 1;
        if !self.turns.is_multiple_of(TURNS) {
            return !self.spin.is_zero();
        }
        self.since.get_or_insert_with(Instant::now).elapsed() < self.spin
    }

    /// Spins, or sleeps once that has taken too long. Tells how long it has taken then.
    pub(super) fn rest(&mut self) -> Option<Duration> {
        if self.spins() {
            return None;
        }
        std::thread::sleep(NAP);
        Some(self.since.get_or_insert_with(Instant::now).elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// Takes numbers until there are none.
    struct Count {
        next: AtomicUsize,
        done: AtomicUsize,
        total: usize,
        fails: bool,
        failed: AtomicBool,
        slow: bool,
    }

    impl Job for Count {
        fn work(&self, worker: usize) {
            while self.next.fetch_add(1, Ordering::AcqRel) < self.total {
                if self.fails && worker > 0 {
                    self.failed.store(true, Ordering::Release);
                    panic!("planted");
                }
                self.done.fetch_add(1, Ordering::AcqRel);
            }
            while worker == 0 && !self.has_failed() && self.done.load(Ordering::Acquire) < self.total {
                std::thread::yield_now();
            }
        }

        fn longest_wait(&self) -> Duration {
            if self.slow { Duration::from_secs(1) } else { Duration::ZERO }
        }

        fn has_failed(&self) -> bool {
            self.failed.load(Ordering::Acquire)
        }
    }

    fn count(total: usize) -> Count {
        let [next, done] = [0, 0].map(AtomicUsize::new);
        Count { next, done, total, fails: false, failed: AtomicBool::new(false), slow: false }
    }

    #[test]
    fn every_job_is_done_once_however_many_threads_there_are() {
        for threads in [1, 2, 8] {
            let mut team = Team::new(threads).unwrap();
            for total in [0, 1, 1000] {
                for _ in 0..50 {
                    let job = Arc::new(count(total));
                    team.run(job.clone());
                    assert_eq!(job.done.load(Ordering::Acquire), total);
                }
            }
        }
    }

    #[test]
    fn helpers_that_hold_up_runs_are_left_out_longer_and_longer() {
        let mut team = Team::new(2).unwrap();
        let slow = || Arc::new(Count { slow: true, ..count(1) });
        let mut alone = Vec::new();
        for _ in 0..4 {
            team.run(slow());
            alone.push((0..).take_while(|_| team.is_alone()).count());
        }
        assert_eq!((alone, team.stalls), (vec![1, 2, 4, 8], 4));
    }

    #[test]
    fn a_panic_of_a_helper_reaches_the_caller_and_the_team_goes_on() {
        let mut team = Team::new(3).unwrap();
        for _ in 0..20 {
            let job = Arc::new(Count { fails: true, ..count(100_000) });
            let outcome = catch_unwind(AssertUnwindSafe(|| team.run(job.clone())));
            assert_eq!(outcome.is_err(), job.has_failed());
        }
        let job = Arc::new(count(1000));
        team.run(job.clone());
        assert_eq!(job.done.load(Ordering::Acquire), 1000);
    }
}
