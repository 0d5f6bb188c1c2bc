//! The threads of this machine.

mod cells;
mod quiet;
#[cfg(test)]
mod stress;
mod table;
mod team;
mod tile;
mod walk;

pub(crate) use tile::Visit;
pub(super) use tile::{map_tile, measure_tile, update_tile};

use super::compiled::Code;
use super::interpreter::{Host, Pass};
use super::{Audit, Facts, reduce};
use crate::error::{Error, Result};
use crate::layout::{Layout, State, View, ViewMut};
use crate::number::{Lanes, Number};
use crate::program::Uniform;
use crate::schedule::Rule;
use cells::Memory;
use quiet::Quiet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use team::{Job, Team, Wait};
use walk::{Ground, Policy, Walk};

/// Vertices of a mesh from which more than one thread takes part: below, to share the work takes longer than to do it. Tests
/// share small ones too.
const WORTH_SHARING: usize = if cfg!(test) { 2 } else { 4096 };

/// Walks the task graph on a team of threads.
pub(crate) struct Cpu<T> {
    ground: Arc<Ground<T>>,
    team: Team,
    quiet: Quiet<T>,
    /// Which array holds the shared state.
    current: usize,
}

impl<T: Number> Cpu<T> {
    /// A team of `threads`; 0 takes one for each core.
    ///
    /// # Errors
    /// More threads than the system has.
    pub(crate) fn new(
        threads: usize,
        layout: Arc<Layout<T>>,
        audit: Option<Arc<Audit>>,
        state: State<T>,
    ) -> Result<Cpu<T>> {
        /// More are a slip of the keyboard; each costs a stack.
        const MOST: usize = 4096;
        let wanted = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        if wanted > MOST {
            return Err(Error::Invalid(format!("{wanted} threads are more than {MOST}")));
        }
        let team = Team::new(wanted).map_err(|e| {
            Error::Invalid(format!(
                "cannot start {wanted} threads: {e}; ask for fewer, or raise the limit of processes"
            ))
        })?;
        let policy = Policy::new(&layout.schedule, wanted);
        let quiet = Quiet::new(layout.schedule.graph().len());
        let ground = Arc::new(Ground { layout, memory: Memory::new(state), policy, audit });
        Ok(Cpu { ground, team, quiet, current: 0 })
    }

    /// Whether to do without helpers this time.
    fn is_alone(&mut self) -> bool {
        self.team.threads() == 1
            || self.ground.layout.schedule.permutation().len() < WORTH_SHARING
            || self.team.is_alone()
    }

    /// Runs `each(i)` for all `i` below `count`, in any order.
    fn each(&mut self, count: usize, each: impl Fn(usize) + Send + Sync + 'static) {
        if self.is_alone() {
            return (0..count).for_each(each);
        }
        let [next, done, last] = [0, 0, count].map(AtomicUsize::new);
        let (stopped, held_up) = (AtomicBool::new(false), AtomicBool::new(false));
        let spin = self.team.spin();
        self.team.run(Arc::new(Each { count, next, done, last, stopped, held_up, spin, each }));
    }
}

/// Many small pieces of work.
struct Each<F> {
    count: usize,
    next: AtomicUsize,
    done: AtomicUsize,
    /// How many are to be done: fewer than all once one panicked.
    last: AtomicUsize,
    stopped: AtomicBool,
    held_up: AtomicBool,
    spin: Duration,
    each: F,
}

impl<F: Fn(usize) + Send + Sync> Job for Each<F> {
    fn work(&self, worker: usize) {
        // The caller waits for all pieces that somebody has in hand, also when its own panicked: they write to what it owns.
        let _wait = (worker == 0).then_some(WaitForAll(self));
        loop {
            let i = self.next.fetch_add(1, Ordering::AcqRel);
            if i >= self.count {
                break;
            }
            let _done = Counted(self);
            (self.each)(i);
        }
    }

    fn was_held_up(&self) -> bool {
        self.held_up.load(Ordering::Relaxed)
    }

    fn has_failed(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// Counts a piece as done, whether it ends or panics.
struct Counted<'a, F>(&'a Each<F>);

impl<F> Drop for Counted<'_, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Nobody takes another one from here on.
            let taken = self.0.next.swap(self.0.count, Ordering::AcqRel);
            self.0.last.fetch_min(taken, Ordering::AcqRel);
            self.0.stopped.store(true, Ordering::Release);
        }
        self.0.done.fetch_add(1, Ordering::Release);
    }
}

struct WaitForAll<'a, F>(&'a Each<F>);

impl<F> Drop for WaitForAll<'_, F> {
    fn drop(&mut self) {
        let (each, mut wait) = (self.0, Wait::new(self.0.spin));
        while each.done.load(Ordering::Acquire) < each.last.load(Ordering::Acquire) {
            if wait.rest() {
                each.held_up.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl<T: Number> Host<T> for Cpu<T> {
    fn pass(&mut self, passes: Vec<Pass<T>>) -> bool {
        let alone = self.is_alone();
        let threads = if alone { 1 } else { self.team.threads() };
        let watch = self.quiet.begin(&passes);
        let walk = Arc::new(Walk::new(self.ground.clone(), (passes, watch), self.current, threads, self.team.spin()));
        if alone {
            walk.alone();
        } else {
            self.team.run(walk.clone());
        }
        self.current = walk.target();
        walk.is_finite()
    }

    fn measure(&mut self, code: Code<T>, uniform: Uniform<T>) -> f64 {
        let Code::Measure { how, tile, .. } = code else { unreachable!("only measures measure") };
        let (ground, source) = (self.ground.clone(), self.current);
        self.each(ground.layout.tiles.len(), move |i| {
            let tile = tile[usize::from(ground.layout.width == T::Full::WIDTH)];
            let Ground { layout, memory, .. } = &*ground;
            tile(
                &Visit { layout, memory, uniform: &uniform, audit: None, rule: Rule::Alone, round: 0, source },
                &layout.tiles[i],
            );
        });
        let ground = self.ground.clone();
        let leaves = reduce::leaves(&ground.layout);
        let sums: Arc<[AtomicU64]> = (0..leaves).map(|_| AtomicU64::new(0)).collect();
        let found = sums.clone();
        self.each(leaves, move |leaf| {
            let values = ground.memory.values();
            let sum = reduce::leaf(how, &ground.layout, &|slot| values[slot].to_f64(), leaf);
            found[leaf].store(sum.to_bits(), Ordering::Release);
        });
        reduce::pairs(how, sums.iter().map(|sum| f64::from_bits(sum.load(Ordering::Acquire))).collect())
    }

    fn view(&self) -> View<'_, T> {
        self.ground.memory.view(self.current)
    }

    fn change(&mut self, change: &mut dyn FnMut(ViewMut<'_, T>)) {
        self.quiet.forget();
        self.ground.memory.edit(self.current, change);
    }

    fn facts(&self) -> Facts {
        Facts {
            threads: self.team.threads(),
            stalls: self.team.stalls,
            left_out: self.quiet.left_out(),
            ..Facts::default()
        }
    }
}
