//! Whether work is worth sharing: found by trying.
//!
//! To hand a task from core to core takes some hundred nanoseconds, more on some machines and beside other programs. Where tasks
//! are small that may cost more than a second thread brings. So short work is done both ways, in the way that was quicker from
//! then on, and now and then in the other again. No result depends on it.

use std::collections::BTreeMap;
use std::time::Duration;

/// Work that takes longer is always shared: to try it alone would cost more than it could bring.
const SHORT: Duration = Duration::from_millis(20);
/// Times after which the slower way is tried again, at most.
const LONGEST: u32 = 256;

/// How long each kind of work took either way.
#[derive(Default)]
pub(super) struct Pace(BTreeMap<u64, Times>);

/// Times of one kind of work: shared, and alone.
#[derive(Default)]
struct Times {
    seconds: [Option<f64>; 2],
    /// How often it is still done in the quicker way before the other is tried, and how often the next time.
    left: u32,
    wait: u32,
}

impl Pace {
    /// Whether to do work alone. `kind` tells it from other work.
    pub(super) fn is_alone(&mut self, kind: u64) -> bool {
        let times = self.0.entry(kind).or_default();
        let [Some(shared), alone] = times.seconds else { return false };
        if shared > SHORT.as_secs_f64() {
            return false;
        }
        let Some(alone) = alone else { return true };
        let quicker = alone < shared;
        if times.left > 0 {
            times.left -= 1;
            return quicker;
        }
        times.wait = (2 * times.wait).clamp(1, LONGEST);
        times.left = times.wait;
        !quicker
    }

    /// Notes how long it took.
    pub(super) fn note(&mut self, kind: u64, alone: bool, took: Duration) {
        let known = &mut self.0.entry(kind).or_default().seconds[usize::from(alone)];
        let took = took.as_secs_f64();
        // What disturbed one of them did not make the machine slower; but it may have become so.
        *known = Some(known.map_or(took, |known| if took < known { took } else { 0.75 * known + 0.25 * took }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often of a hundred times work is done alone that takes so many microseconds shared and alone.
    fn alone(times: [u64; 2]) -> usize {
        let mut pace = Pace::default();
        let mut work = || {
            let alone = pace.is_alone(7);
            pace.note(7, alone, Duration::from_micros(times[usize::from(alone)]));
            alone
        };
        (0..100).filter(|_| work()).count()
    }

    #[test]
    fn short_work_is_done_in_the_quicker_way_and_long_work_always_shared() {
        assert!(alone([100, 50]) > 90);
        assert!((1..10).contains(&alone([50, 100])));
        assert_eq!(alone([30_000, 10]), 0);
    }

    #[test]
    fn a_machine_that_changes_is_noticed() {
        let mut pace = Pace::default();
        let mut alone = Vec::new();
        for i in 0..4000 {
            let shared_takes = if i < 1000 { 100 } else { 20 };
            let is_alone = pace.is_alone(7);
            pace.note(7, is_alone, Duration::from_micros(if is_alone { 50 } else { shared_takes }));
            alone.push(is_alone);
        }
        let share = |range: std::ops::Range<usize>| alone[range].iter().filter(|&&alone| alone).count();
        assert!(share(100..1000) > 850 && share(2000..4000) < 200, "{} {}", share(100..1000), share(2000..4000));
    }
}
