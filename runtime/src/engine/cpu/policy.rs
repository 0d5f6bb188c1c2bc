//! How ready tasks are found: see [`walk`](super::walk).

use crate::layout::Domain;
use std::ops::Range;

/// Vertices of a task, in the mean, from which it is worth a neighborhood of its own.
const LARGE: usize = 1024;

/// How ready tasks are found.
pub(super) enum Policy {
    /// Tasks of each thread: so many sequences each, the one to prefer first.
    Sequences { tasks: Vec<Vec<u32>>, each: usize },
    /// All tasks in every so-and-so-many-th round, for so many threads.
    Rounds(usize),
    /// For each task, where its wavefront starts and ends.
    Waves(Vec<Range<u32>>),
}

impl Policy {
    pub(super) fn new(domain: &Domain, threads: usize) -> Policy {
        if domain.share.is_some() {
            return Policy::sequences(domain, threads);
        }
        let (graph, tasks) = (&domain.graph, domain.graph.len());
        let waves = domain.waves();
        let reach = |t: u32| graph.neighbors(t).last().map_or(0, |&u| u.saturating_sub(t) as usize);
        let farthest = (0..tasks as u32).map(reach).max().unwrap_or(0);
        // A thread begins its round when the one before is that many tasks ahead.
        if 4 * threads * farthest <= tasks && !domain.is_double_buffered() {
            return Policy::Rounds(threads);
        }
        // Blocks are few a wavefront; pieces of a color or level are many.
        if domain.slots() / tasks.max(1) >= LARGE || waves.len() > tasks / 4 {
            return Policy::sequences(domain, threads);
        }
        Policy::waves(domain)
    }

    /// Tasks for each of the threads.
    pub(super) fn sequences(domain: &Domain, threads: usize) -> Policy {
        let tasks = sequences(domain, threads);
        Policy::Sequences { each: tasks.len() / threads, tasks }
    }

    /// Wavefront after wavefront.
    pub(super) fn waves(domain: &Domain) -> Policy {
        Policy::Waves(domain.waves().windows(2).flat_map(|w| (w[0]..w[1]).map(move |_| w[0]..w[1])).collect())
    }

    /// Sequences of all threads.
    pub(super) fn count(&self) -> usize {
        match self {
            Policy::Sequences { tasks, .. } => tasks.len(),
            Policy::Rounds(threads) => *threads,
            Policy::Waves(_) => 1,
        }
    }

    /// Sequences of a thread.
    #[inline]
    pub(super) fn each(&self) -> usize {
        if let Policy::Sequences { each, .. } = self { *each } else { 1 }
    }
}

/// Tasks for each thread. All are sorted by the longest chain of predecessors, then by number, and the threads share the
/// tasks of each length of chain in equal runs. Of a share of a mesh each thread has two sequences: tasks at the border, which it
/// prefers, so that their results are on their way early, and tasks inside, for while those wait for other hosts.
///
/// So every thread has the same tasks in every round, whose state its caches may still hold, and, where numbers follow a
/// curve, has them in one region. Chains are those of the whole mesh, so of all tasks of all hosts that are left the first by
/// round and length of chain can run: no hosts wait in a ring.
fn sequences(domain: &Domain, threads: usize) -> Vec<Vec<u32>> {
    let depth = |t: u32| domain.depths[t as usize];
    let is_inside = |t: u32| domain.graph.neighbors(t).iter().all(|&u| !domain.is_ghost(u));
    let mut own: Vec<u32> = (0..domain.graph.len() as u32).filter(|&t| !domain.is_ghost(t)).collect();
    own.sort_by_cached_key(|&t| (depth(t), t));
    let (inside, border): (Vec<u32>, Vec<u32>) = own.into_iter().partition(|&t| is_inside(t));
    let kinds = if domain.share.is_some() { vec![border, inside] } else { vec![inside] };
    let of_thread = |tasks: &[u32], i: usize| {
        let same = tasks.chunk_by(|&t, &u| depth(t) == depth(u));
        same.flat_map(|same| &same[same.len() * i / threads..same.len() * (i + 1) / threads]).copied().collect()
    };
    (0..threads).flat_map(|i| kinds.iter().map(move |tasks| of_thread(tasks, i))).collect()
}
