//! Passes in sequence, as the epochs that they take.

use super::code::Pass;
use meshweft_schedule::Rule;

/// A pass, and where it begins.
pub(crate) struct Leg<T> {
    pub(crate) pass: Pass<T>,
    /// Which of the passes it is.
    pub(crate) number: usize,
    /// Rounds of all passes before.
    pub(crate) first: u32,
    /// Which array holds the shared state before it.
    source: usize,
}

impl<T> Leg<T> {
    /// Which array holds the shared state before the round that begins at `epoch`.
    pub(crate) fn source(&self, epoch: u32) -> usize {
        match self.pass.rule {
            Rule::AtOnce => (self.source + (epoch - self.first) as usize) % 2,
            _ => self.source,
        }
    }

    /// Whether its tasks are visited in the reverse of their order.
    pub(crate) fn is_backward(&self) -> bool {
        self.pass.rule == Rule::Backward
    }
}

/// All passes of a walk. The round that begins at epoch `e` is the one after `e` rounds of all passes.
pub(crate) struct Legs<T> {
    legs: Vec<Leg<T>>,
    /// Rounds of all passes.
    pub(crate) rounds: u32,
    /// Rounds of all walks before.
    pub(crate) base: u64,
}

impl<T> Legs<T> {
    /// `source`: which array holds the shared state; `base`: rounds of all walks before.
    pub(crate) fn new(passes: Vec<Pass<T>>, source: usize, base: u64) -> Legs<T> {
        let (mut rounds, mut current) = (0, source);
        let mut legs = Vec::new();
        for (number, pass) in passes.into_iter().enumerate() {
            let leg = Leg { first: rounds, source: current, number, pass };
            rounds += leg.pass.rounds;
            current = leg.source(rounds);
            legs.push(leg);
        }
        Legs { legs, rounds, base }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Leg<T>> {
        self.legs.iter()
    }

    /// The pass whose round begins at `epoch`.
    pub(crate) fn at(&self, epoch: u32) -> &Leg<T> {
        &self.legs[self.legs.partition_point(|leg| leg.first <= epoch) - 1]
    }

    /// Which array holds the shared state after all of them.
    pub(crate) fn target(&self) -> usize {
        self.legs.last().map_or(0, |leg| leg.source(self.rounds))
    }

    /// Rounds of all walks up to their end.
    pub(crate) fn end(&self) -> u64 {
        self.base + u64::from(self.rounds)
    }

    /// Which round of all walks it is that begins at `epoch`, counted from 1.
    pub(crate) fn round(&self, epoch: u32) -> u64 {
        self.base + u64::from(epoch) + 1
    }

    /// The epoch at which round `round` of all walks begins, if it is one of these.
    pub(crate) fn epoch(&self, round: u64) -> Option<u32> {
        let epoch = round.checked_sub(self.base + 1)?;
        u32::try_from(epoch).ok().filter(|&epoch| epoch < self.rounds)
    }
}
