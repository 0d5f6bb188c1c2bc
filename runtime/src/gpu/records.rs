//! Dispatches as they are launched: each with its record of facts in one uniform buffer.

use super::plan::{END, FIRST, PARITY, Plan, ROUNDS, Visit, What};
use meshweft_shaders::Entry;
use std::sync::Arc;

/// One dispatch of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispatch {
    pub(super) chunk: usize,
    pub(super) entry: Entry,
    pub(super) groups: [u32; 2],
    /// Where its `Range` lies in the uniform buffer.
    pub(super) range: u32,
}

/// The records of all dispatches, one after the other.
pub(super) struct Records<'a> {
    plan: &'a Plan,
    /// Bytes from one record to the next.
    stride: u64,
    /// Workgroups of a dispatch in one dimension.
    most: u32,
    pub(super) bytes: Vec<u8>,
}

impl Records<'_> {
    pub(super) fn new(plan: &Plan, stride: u64, most: u32) -> Records<'_> {
        Records { plan, stride, most, bytes: Vec::new() }
    }

    fn push(&mut self, mut facts: Vec<u32>, change: &[(usize, u32)]) -> u32 {
        change.iter().for_each(|&(i, word)| facts[i] = word);
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(bytemuck::cast_slice(&facts));
        self.bytes.resize(offset + self.stride as usize, 0);
        offset as u32
    }

    /// Dispatches for visits. `rounds`: what `Range.rounds` says.
    pub(super) fn list(&mut self, visits: &[Visit], rounds: u32) -> Arc<[Dispatch]> {
        let harness = self.plan.harness;
        let dispatch = |visit: &Visit| {
            let (entry, range, groups) = match &visit.what {
                What::Slots(slots) => (Entry::Phase, slots, (slots.end - slots.start).div_ceil(harness.phase_size)),
                What::Tasks(tasks) => (Entry::Tasks, tasks, tasks.end - tasks.start),
            };
            let facts = self.plan.chunks[visit.chunk].facts.clone();
            let range = self.push(facts, &[(FIRST, range.start), (END, range.end), (ROUNDS, rounds)]);
            Dispatch { chunk: visit.chunk, entry, groups: grid(groups, self.most), range }
        };
        visits.iter().map(dispatch).collect()
    }

    /// The record of a wave: where it lies.
    pub(super) fn wave(&mut self, parity: u32) -> u32 {
        let Some(chunk) = self.plan.chunks.first() else { return 0 };
        self.push(chunk.facts.clone(), &[(END, self.plan.tasks), (PARITY, parity)])
    }
}

/// Workgroups in two dimensions, none above `most`.
pub(super) fn grid(groups: u32, most: u32) -> [u32; 2] {
    let rows = groups.div_ceil(most).max(1);
    [groups.div_ceil(rows).max(1), rows]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_hold_all_groups_and_few_more() {
        for groups in [0, 1, 2, 65_535, 65_536, 100_003, u32::MAX / 64] {
            for most in [3, 1000, 65_535] {
                let [x, y] = grid(groups, most);
                let total = u64::from(x) * u64::from(y);
                assert!(x <= most && total >= u64::from(groups) && total < u64::from(groups) + u64::from(y) + 1);
            }
        }
    }
}
