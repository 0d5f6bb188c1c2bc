//! How far the tasks of a walk are.

use meshweft_mesh::Graph;
use meshweft_schedule::{Rule, is_ready};
use std::sync::atomic::{AtomicU32, Ordering};

/// The rounds that each task of a walk has done. Who sees that a task has done one sees what it wrote, too.
pub(crate) struct Epochs(Vec<AtomicU32>);

impl Epochs {
    /// Of so many tasks, none of which has done any.
    pub(crate) fn new(tasks: usize) -> Epochs {
        Epochs((0..tasks).map(|_| AtomicU32::new(0)).collect())
    }

    /// Tasks, ghosts included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn of(&self, t: u32) -> u32 {
        self.0[t as usize].load(Ordering::Acquire)
    }

    /// A task has done so many rounds: from here on neighbors may run.
    #[inline]
    pub(crate) fn set(&self, t: u32, rounds: u32) {
        self.0[t as usize].store(rounds, Ordering::Release);
    }

    /// Whether a task has done `epoch` rounds and may do the next.
    #[inline]
    pub(crate) fn is_ready(&self, graph: &Graph, rule: Rule, t: u32, epoch: u32) -> bool {
        self.of(t) == epoch && is_ready(graph, t, rule, |u| self.of(u))
    }

    /// Neighbors that a task waits for, which has done `epoch` rounds.
    pub(crate) fn slow<'a>(
        &'a self,
        graph: &'a Graph,
        rule: Rule,
        t: u32,
        epoch: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        let least = move |u: u32| epoch + u32::from(rule.puts_first(u, t));
        graph.neighbors(t).iter().copied().filter(move |&u| self.of(u) < least(u))
    }

    /// How many of the tasks from `seen` on follow each other that have done so many rounds.
    pub(crate) fn done(&self, seen: usize, rounds: u32) -> usize {
        self.0[seen..].iter().take_while(|epoch| epoch.load(Ordering::Acquire) == rounds).count()
    }
}
