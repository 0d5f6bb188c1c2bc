//! Values of ghosts that came before the walk could take them.
//!
//! A ghost may advance once its neighbors here do not lag behind. Those that are own tasks never do when its values come: its host
//! has used theirs, and they are sent after the tasks have advanced. So only two things let a walk take what waits: that it
//! begins, and that another ghost has advanced. What waits is looked at then, and no sooner: the work is linear in what comes.

use crate::engine::{AHEAD, Arrivals};
use crate::error::Result;
use std::collections::BTreeMap;
use std::ops::Range;

/// What came before its turn.
#[derive(Default)]
pub(super) struct Early {
    /// For each ghost of which something waits, epochs and bits.
    waiting: BTreeMap<u32, Vec<(u64, Vec<u8>)>>,
}

impl Early {
    /// Keeps the values of ghost `t` at `epoch`. Returns whether there was room for them.
    pub(super) fn put(&mut self, t: u32, epoch: u64, bits: &[u8]) -> bool {
        let waiting = self.waiting.entry(t).or_default();
        let has_room = waiting.len() < AHEAD;
        if has_room {
            waiting.push((epoch, bits.to_vec()));
        }
        has_room
    }

    /// The ghosts of which something waits, ascending.
    pub(super) fn ghosts(&self) -> Vec<u32> {
        self.waiting.keys().copied().collect()
    }

    /// Hands a walk over `epochs` what it can take by now of the ghosts in `looks`, and of those that this lets advance. Returns how many
    /// values that is. `around`: the ghosts around a ghost.
    ///
    /// # Errors
    /// Values that the walk refuses.
    pub(super) fn take<'a>(
        &mut self,
        walk: &dyn Arrivals,
        epochs: &Range<u64>,
        mut looks: Vec<u32>,
        around: impl Fn(u32) -> &'a [u32],
    ) -> Result<u64> {
        let mut taken = 0;
        while let Some(t) = looks.pop() {
            let Some(waiting) = self.waiting.get_mut(&t) else { continue };
            let is_due = |epoch: u64| epochs.start < epoch && epoch <= epochs.end && walk.is_due(t, epoch);
            let Some(due) = waiting.iter().position(|&(epoch, _)| is_due(epoch)) else { continue };
            let (epoch, bits) = waiting.remove(due);
            if waiting.is_empty() {
                self.waiting.remove(&t);
            }
            walk.arrive(t, epoch, &bits)?;
            taken += 1;
            looks.extend_from_slice(around(t));
            looks.push(t);
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Lag;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Ghosts in a line, each of which may advance once the one before it is ahead.
    struct Line {
        epochs: Vec<AtomicU64>,
        looks: AtomicU64,
    }

    impl Line {
        fn new(ghosts: usize) -> Line {
            Line { epochs: (0..ghosts).map(|_| AtomicU64::new(0)).collect(), looks: AtomicU64::new(0) }
        }

        fn epoch(&self, t: usize) -> u64 {
            self.epochs[t].load(Ordering::Relaxed)
        }
    }

    impl Arrivals for Line {
        fn tasks(&self) -> Range<u32> {
            0..self.epochs.len() as u32
        }

        fn is_due(&self, t: u32, epoch: u64) -> bool {
            self.looks.fetch_add(1, Ordering::Relaxed);
            let t = t as usize;
            self.epoch(t) + 1 == epoch && (t == 0 || self.epoch(t - 1) >= epoch)
        }

        fn arrive(&self, t: u32, epoch: u64, bits: &[u8]) -> Result<()> {
            assert_eq!(bits, epoch.to_le_bytes());
            self.epochs[t as usize].store(epoch, Ordering::Relaxed);
            Ok(())
        }

        fn lags(&self) -> (u64, Vec<Lag>) {
            (0, Vec::new())
        }
    }

    #[test]
    fn what_waits_is_looked_at_a_bounded_number_of_times() {
        const GHOSTS: u32 = 20_000;
        let (line, mut early) = (Line::new(GHOSTS as usize), Early::default());
        let around: Vec<Vec<u32>> =
            (0..GHOSTS).map(|t| [t.checked_sub(1), Some(t + 1)].into_iter().flatten().collect()).collect();
        let mut taken = 0;
        // The last come first, so all wait for all before them; the third round is one of the next walk.
        for t in (0..GHOSTS).rev() {
            for epoch in [2, 1, 3] {
                assert!(early.put(t, epoch, &u64::to_le_bytes(epoch)));
                taken += early.take(&line, &(0..2), vec![t], |t| &around[t as usize]).unwrap();
            }
        }
        assert_eq!(taken, 2 * u64::from(GHOSTS));
        let all = early.ghosts();
        assert_eq!(all.len() as u32, GHOSTS);
        taken += early.take(&line, &(2..3), all, |t| &around[t as usize]).unwrap();
        assert_eq!(taken, 3 * u64::from(GHOSTS));
        assert!(early.ghosts().is_empty() && (0..GHOSTS as usize).all(|t| line.epoch(t) == 3));
        let looks = line.looks.load(Ordering::Relaxed);
        assert!(looks <= 3 * 9 * u64::from(GHOSTS), "{looks} looks for {taken} values");
    }

    #[test]
    fn a_ghost_that_is_rounds_ahead_finds_no_room() {
        let mut early = Early::default();
        assert!((0..AHEAD as u64).all(|epoch| early.put(7, epoch, &[])));
        assert!(!early.put(7, 9, &[]) && early.put(8, 9, &[]));
    }
}
