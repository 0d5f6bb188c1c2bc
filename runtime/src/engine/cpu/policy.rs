//! How ready tasks are found: see [`walk`](super::walk).

use crate::layout::Domain;
use std::ops::Range;

/// Vertices of a task, in the mean, from which it is worth a neighborhood of its own.
const LARGE: usize = 1024;

/// Layers of a share of a mesh.
const LAYERS: usize = 4;

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

/// Tasks for each thread. All are sorted by part, the longest chain of predecessors, then by number, and the threads share the
/// tasks of each part and length of chain in equal runs. Of a share of a mesh each thread has a sequence for each [layer](layers), the one at the
/// border first, which it prefers, so that its results are on their way early. While that waits for another host, the layers behind it
/// go on, each about one task of the chain further than the one before: the deeper they are, the longer a host may stay silent.
///
/// So every thread has the same tasks in every round, whose state its caches may still hold, and, where numbers follow a
/// curve, has them in one region. Chains are those of the whole mesh, so of all tasks of all hosts that are left the first by
/// round and length of chain can run: no hosts wait in a ring.
fn sequences(domain: &Domain, threads: usize) -> Vec<Vec<u32>> {
    let depth = |t: u32| (domain.part_of(t), domain.depths[t as usize]);
    let layer = layers(domain);
    let mut own: Vec<u32> = (0..domain.graph.len() as u32).filter(|&t| !domain.is_ghost(t)).collect();
    own.sort_by_cached_key(|&t| (layer[t as usize], depth(t), t));
    let of_thread = |tasks: &[u32], i: usize| {
        let same = tasks.chunk_by(|&t, &u| depth(t) == depth(u));
        same.flat_map(|same| &same[same.len() * i / threads..same.len() * (i + 1) / threads]).copied().collect()
    };
    let mut kinds: Vec<&[u32]> = own.chunk_by(|&t, &u| layer[t as usize] == layer[u as usize]).collect();
    if kinds.is_empty() {
        // A host may have no task.
        kinds.push(&[]);
    }
    (0..threads).flat_map(|i| kinds.iter().map(move |tasks| of_thread(tasks, i))).collect()
}

/// How far each own task is from the border, in edges of the task graph, at most [`LAYERS`] - 1: those at the border have 0. All have 0
/// where there is none.
fn layers(domain: &Domain) -> Vec<usize> {
    let graph = &domain.graph;
    let tasks = 0..graph.len() as u32;
    let is_border = |t: u32| domain.share.is_none() || graph.neighbors(t).iter().any(|&u| domain.is_ghost(u));
    let mut layer: Vec<usize> = tasks.clone().map(|t| if is_border(t) { 0 } else { LAYERS - 1 }).collect();
    for next in 1..LAYERS - 1 {
        for t in tasks.clone() {
            if layer[t as usize] > next && graph.neighbors(t).iter().any(|&u| layer[u as usize] == next - 1) {
                layer[t as usize] = next;
            }
        }
    }
    layer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::stress::Case;
    use crate::layout::Shares;
    use meshweft_schedule::Order;

    #[test]
    fn a_share_is_drawn_layer_by_layer_from_the_border_inwards() {
        // A path in 40 tasks: the second host has none.
        let case = Case::new(400, (1..400).map(|v| [v - 1, v]).collect(), Order::BLOCKED, 10);
        let (layout, _) = case.laid_out(8);
        let tasks = case.schedule.graph().len() as u32;
        let is_first = |t: u32| layout.vertex_at(case.schedule.tasks()[t as usize]) < 250;
        let owners: Vec<u32> = (0..tasks).map(|t| if is_first(t) { 0 } else { 2 }).collect();
        let first = (0..tasks).filter(|&t| is_first(t)).count();
        let shares = Shares::new(&layout, &owners, 3, None);
        for (host, own) in [(0, first), (1, 0), (2, tasks as usize - first)] {
            let domain = shares.domain(host);
            let graph = &domain.graph;
            // How far a task is from a ghost, the slow way.
            let mut reach: Vec<u32> = (0..graph.len() as u32).filter(|&t| domain.is_ghost(t)).collect();
            let mut far = vec![usize::MAX; graph.len()];
            for distance in 0..graph.len() {
                reach.iter().for_each(|&t| far[t as usize] = far[t as usize].min(distance));
                reach = reach
                    .iter()
                    .flat_map(|&t| graph.neighbors(t))
                    .copied()
                    .filter(|&u| far[u as usize] == usize::MAX)
                    .collect();
            }
            for threads in [1, 3] {
                let sequences = sequences(&domain, threads);
                let each = sequences.len() / threads;
                assert!(each == if own == 0 { 1 } else { LAYERS } && sequences.len() == each * threads, "{each}");
                let mut all: Vec<u32> = sequences.concat();
                for (s, tasks) in sequences.iter().enumerate() {
                    assert!(tasks.iter().all(|&t| (far[t as usize] - 1).min(LAYERS - 1) == s % each), "{s}");
                    assert!(tasks.is_sorted_by_key(|&t| (domain.depths[t as usize], t)));
                }
                all.sort_unstable();
                assert!(all.len() == own && all.is_sorted_by(|a, b| a < b) && all.iter().all(|&t| !domain.is_ghost(t)));
            }
        }
    }
}
