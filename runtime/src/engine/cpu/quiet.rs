//! Tasks around which nothing has changed.
//!
//! A kernel that is declared `quiet` gives the same new state whenever it reads the same. So where its last update changed
//! nothing, and nothing that it read has changed since, another one would change nothing either: the task passes its epoch on
//! without work.
//!
//! Ages count the rounds of all walks, from 1. If task `t` last ran a kernel at age `r`, it has read its own state and that of
//! neighbors as they were then: of those that the rule puts first after their own round `r`, of the others before it. All of it
//! is as it was if `t` and those others have not changed from `r` on, and the first ones not after `r`. What a neighbor does in
//! the meantime can only be missed under [`Rule::AtOnce`], where neighbors run side by side; but what they write then is not
//! what is read.

use crate::engine::code::Pass;
use crate::number::Number;
use crate::program::Uniform;
use meshweft_mesh::Graph;
use meshweft_schedule::Rule;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// When tasks last changed, and when kernels last ran on them.
pub(super) struct Quiet<T> {
    /// Rounds of all walks so far.
    age: u64,
    /// When an update last changed each task.
    changed: Arc<[AtomicU64]>,
    kernels: BTreeMap<usize, Kernel<T>>,
    /// Vertices whose updates were left out.
    left_out: Arc<AtomicU64>,
}

/// What is remembered of one kernel.
struct Kernel<T> {
    /// How it ran the last time.
    rule: Rule,
    uniform: Uniform<T>,
    ran: Ran,
}

/// When a kernel last ran on each task; before `since` it ran otherwise, which says nothing.
#[derive(Clone)]
struct Ran {
    since: u64,
    ages: Arc<[AtomicU64]>,
}

fn never(tasks: usize) -> Arc<[AtomicU64]> {
    (0..tasks).map(|_| AtomicU64::new(0)).collect()
}

impl<T: Number> Quiet<T> {
    pub(super) fn new(tasks: usize) -> Quiet<T> {
        Quiet { age: 0, changed: never(tasks), kernels: BTreeMap::new(), left_out: Arc::default() }
    }

    /// Of other tasks, which counts on.
    pub(super) fn of_others(&self, tasks: usize) -> Quiet<T> {
        Quiet { left_out: self.left_out.clone(), ..Quiet::new(tasks) }
    }

    /// Vertices whose updates were left out so far.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Begins a walk over some passes, or tells that none of them can be quiet, nor has been before.
    pub(super) fn begin(&mut self, passes: &[Pass<T>]) -> Option<Watch> {
        if self.kernels.is_empty() && !passes.iter().any(Pass::is_quiet) {
            return None;
        }
        let start = self.age;
        let ran = passes.iter().map(|pass| {
            let since = self.age;
            self.age += u64::from(pass.rounds);
            pass.is_quiet().then(|| self.ran(pass, since))
        });
        let ran = ran.collect();
        Some(Watch { start, changed: self.changed.clone(), ran, left_out: self.left_out.clone() })
    }

    fn ran(&mut self, pass: &Pass<T>, since: u64) -> Ran {
        // A quiet kernel reads neither.
        let uniform = Uniform { step: 0, draw: 0, ..pass.uniform.clone() };
        let (rule, tasks) = (pass.rule, self.changed.len());
        let fresh = || Kernel { rule, uniform: uniform.clone(), ran: Ran { since, ages: never(tasks) } };
        let known = self.kernels.entry(pass.kernel).or_insert_with(fresh);
        if (known.rule, &known.uniform) != (rule, &uniform) {
            (known.rule, known.uniform, known.ran.since) = (rule, uniform, since);
        }
        known.ran.clone()
    }

    /// Whether an update has changed any of some tasks in the last round of the last walk.
    pub(super) fn has_changed(&self, mut tasks: impl Iterator<Item = usize>) -> bool {
        tasks.any(|t| self.changed[t].load(Ordering::Relaxed) == self.age)
    }

    /// Forgets everything: the state was changed from outside.
    pub(super) fn forget(&mut self) {
        self.kernels.clear();
    }
}

/// The same during a walk.
pub(super) struct Watch {
    start: u64,
    changed: Arc<[AtomicU64]>,
    /// Of each pass that is quiet.
    ran: Vec<Option<Ran>>,
    left_out: Arc<AtomicU64>,
}

impl Watch {
    /// Whether task `t` has nothing to do in a pass.
    pub(super) fn is_quiet(&self, pass: usize, graph: &Graph, t: u32, rule: Rule) -> bool {
        let Some(Ran { since, ages }) = &self.ran[pass] else { return false };
        let changed = |u: u32| self.changed[u as usize].load(Ordering::Relaxed);
        let last = ages[t as usize].load(Ordering::Relaxed);
        let is_as_it_was = |&u: &u32| changed(u) < last + u64::from(rule.puts_first(u, t));
        last > *since && changed(t) < last && graph.neighbors(t).iter().all(is_as_it_was)
    }

    /// Notes that task `t` was updated at `epoch` of the walk.
    pub(super) fn note(&self, pass: usize, t: u32, epoch: u32, has_changed: bool) {
        let age = self.start + u64::from(epoch) + 1;
        if has_changed {
            self.changed[t as usize].store(age, Ordering::Relaxed);
        }
        if let Some(ran) = &self.ran[pass] {
            ran.ages[t as usize].store(age, Ordering::Relaxed);
        }
    }

    /// Notes that the update of so many vertices was left out.
    pub(super) fn leave_out(&self, vertices: usize) {
        self.left_out.fetch_add(vertices as u64, Ordering::Relaxed);
    }
}
