//! When a task may run: the one inequality that every walker, plan and audit shares.

use meshweft_mesh::Graph;

/// What an update reads of its neighbors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing.
    Alone,
    /// New values of those before it, old values of those after it.
    InOrder,
    /// The same in the reverse of the order.
    Backward,
    /// Old values of all.
    AtOnce,
}

impl Rule {
    /// Whether a neighbor numbered `u` is to be updated before one numbered `t`.
    #[inline(always)]
    pub fn puts_first(self, u: u32, t: u32) -> bool {
        match self {
            Rule::InOrder => u < t,
            Rule::Backward => u > t,
            Rule::Alone | Rule::AtOnce => false,
        }
    }
}

/// Whether task `t` may run its next round under `rule`, given how many rounds (its *epoch*) each task has done in all: no
/// neighbor lags behind it, and those that the rule puts first are a round ahead.
///
/// A neighbor is never more than one round ahead or behind, so what it holds is what the rule asks for: in place, the old or
/// the new value; double-buffered, the old one in the array that it does not write. Cost O(neighbors).
///
/// ```
/// use meshweft_mesh::Graph;
/// use meshweft_schedule::{Rule, is_ready};
/// let row = Graph::from_edges(3, &[[0, 1], [1, 2]])?;
/// let epochs = [1, 0, 0];
/// let ready = |rule| (0..3).filter(|&t| is_ready(&row, t, rule, |u| epochs[u as usize])).collect::<Vec<_>>();
/// assert_eq!(ready(Rule::InOrder), [1]);
/// assert_eq!(ready(Rule::AtOnce), [1, 2]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
#[inline]
pub fn is_ready(graph: &Graph, t: u32, rule: Rule, epoch: impl Fn(u32) -> u32) -> bool {
    let own = epoch(t);
    graph.neighbors(t).iter().all(|&u| epoch(u) >= own + u32::from(rule.puts_first(u, t)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter-based generator: SplitMix64.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Mixes a value with what was read, so that any other order of reads and writes shows.
    fn mix(own: u64, stage: usize, read: impl Iterator<Item = u64>) -> u64 {
        read.fold(own.wrapping_mul(31) + stage as u64, |h, x| h.wrapping_mul(1_000_003).wrapping_add(x))
    }

    /// The plain loop.
    fn oracle(graph: &Graph, stages: &[Rule]) -> Vec<u64> {
        let mut values: Vec<u64> = (1..=graph.len() as u64).collect();
        for (s, &rule) in stages.iter().enumerate() {
            let old = values.clone();
            let mut order: Vec<u32> = (0..graph.len() as u32).collect();
            if rule == Rule::Backward {
                order.reverse();
            }
            for v in order {
                let source = if rule == Rule::AtOnce { &old } else { &values };
                let neighbors = if rule == Rule::Alone { &[][..] } else { graph.neighbors(v) };
                values[v as usize] = mix(old[v as usize], s, neighbors.iter().map(|&u| source[u as usize]));
            }
        }
        values
    }

    /// Runs whatever is ready, in random order, with two arrays of which each task's epoch tells the present one.
    fn walk(graph: &Graph, stages: &[Rule], seed: &mut u64) -> Vec<u64> {
        let n = graph.len();
        let start: Vec<u64> = (1..=n as u64).collect();
        let mut arrays = [start.clone(), start];
        let mut epochs = vec![0u32; n];
        let present = |epoch: u32| stages[..epoch as usize].iter().filter(|&&rule| rule == Rule::AtOnce).count() % 2;
        while let Some(behind) = Some(()).filter(|()| epochs.iter().any(|&e| (e as usize) < stages.len())) {
            let () = behind;
            let ready: Vec<u32> = (0..n as u32)
                .filter(|&t| {
                    let e = epochs[t as usize] as usize;
                    e < stages.len() && is_ready(graph, t, stages[e], |u| epochs[u as usize])
                })
                .collect();
            let t = ready[random(seed) as usize % ready.len()];
            let e = epochs[t as usize];
            let rule = stages[e as usize];
            let from = present(e);
            let to = if rule == Rule::AtOnce { 1 - from } else { from };
            let neighbors = if rule == Rule::Alone { &[][..] } else { graph.neighbors(t) };
            let read = neighbors.iter().map(|&u| arrays[from][u as usize]);
            arrays[to][t as usize] = mix(arrays[from][t as usize], e as usize, read);
            epochs[t as usize] += 1;
        }
        arrays[present(stages.len() as u32)].clone()
    }

    #[test]
    fn whatever_is_ready_may_run_and_the_result_is_that_of_the_plain_loop() {
        let rules = [Rule::Alone, Rule::InOrder, Rule::Backward, Rule::AtOnce];
        for seed in 0..2_000 {
            let mut state = seed;
            let n = 1 + random(&mut state) % 12;
            let edges: Vec<[u32; 2]> = (0..random(&mut state) % (3 * n))
                .map(|_| [random(&mut state) % n, random(&mut state) % n].map(|v| v as u32))
                .collect();
            let graph = Graph::from_edges(n as usize, &edges).unwrap();
            let stages: Vec<Rule> =
                (0..1 + random(&mut state) % 10).map(|_| rules[random(&mut state) as usize % 4]).collect();
            assert_eq!(walk(&graph, &stages, &mut state), oracle(&graph, &stages), "seed {seed}: {stages:?}");
        }
    }
}
