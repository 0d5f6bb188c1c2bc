//! How soon values go out, and how often a thread that has work looks for those that have come.
//!
//! Results of tasks that follow each other share a message for a part of a round ([`Link::sharing_s`]), as long as rounds have taken.

use meshweft_model::Link;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long this host may keep values back.
#[derive(Default)]
pub(super) struct Patience {
    /// Nanoseconds that a round of the last walk took.
    round: AtomicU64,
}

impl Patience {
    /// Takes note of a walk of some rounds.
    pub(super) fn note(&self, rounds: u64, took: Duration) {
        self.round.store(took.as_nanos() as u64 / rounds.max(1), Ordering::Relaxed);
    }

    /// How long something may wait. The least, until a walk has shown how long rounds take.
    pub(super) fn get(&self) -> Duration {
        Duration::from_secs_f64(Link::sharing_s(self.round.load(Ordering::Relaxed) as f64 * 1e-9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_the_rounds_of_the_last_walk_within_its_limits() {
        let patience = Patience::default();
        assert_eq!(patience.get(), Duration::from_micros(50), "nothing is known yet");
        for (rounds, took, expected) in [(10, 64, 100), (1, 1, 50), (0, 64, 400), (1, 1000, 400), (5, 64, 200)] {
            patience.note(rounds, Duration::from_millis(took));
            assert_eq!(patience.get(), Duration::from_micros(expected), "{rounds} rounds in {took} ms");
        }
    }
}
