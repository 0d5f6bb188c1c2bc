//! How long something still takes, from how it went so far.
//!
//! The time of a step is that of the later half of all steps so far: a slow start is soon forgotten, and what changes on the way is
//! noticed. Saving comes every so many steps and would make that jump, so it is kept apart: the time left is that of the steps left
//! and of the savings left.

/// Observations that are kept: when there are more, every second goes, and of those to come only so many are kept.
const MOST: usize = 256;

/// What was done by when.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    done: u64,
    /// Seconds since the start without those of savings, and of savings.
    steps_s: f64,
    savings_s: f64,
}

/// The pace of a run.
#[derive(Debug)]
pub(super) struct Pace {
    total: u64,
    /// Steps from one saving to the next. The first is before the first step, and one more may follow the last.
    every: u64,
    /// The first is the start; by time, one of so many.
    seen: Vec<Seen>,
    one_of: u64,
    /// How many observations there were, and the last one.
    count: u64,
    last: Seen,
}

impl Pace {
    /// The pace of `total` steps, with a saving every so many. Nothing is done yet.
    pub(super) fn new(total: u64, every: u64) -> Pace {
        Pace { total, every: every.max(1), seen: vec![Seen::default()], one_of: 1, count: 0, last: Seen::default() }
    }

    /// Takes note that `done` steps are done after `passed_s` seconds, of which `savings_s` went to saving.
    pub(super) fn see(&mut self, done: u64, passed_s: f64, savings_s: f64) {
        self.last = Seen { done, steps_s: passed_s - savings_s, savings_s };
        self.count += 1;
        if !self.count.is_multiple_of(self.one_of) {
            return;
        }
        if self.seen.len() == MOST {
            self.seen = self.seen.iter().step_by(2).copied().collect();
            self.one_of *= 2;
        }
        self.seen.push(self.last);
    }

    /// Steps a second of the later half, without savings; `None` before the first.
    pub(super) fn rate(&self) -> Option<f64> {
        let half = self.half();
        let seconds = self.last.steps_s - half.steps_s;
        (self.last.done > half.done && seconds > 0.0).then(|| (self.last.done - half.done) as f64 / seconds)
    }

    /// So many steps are to be done in all.
    pub(super) fn expect(&mut self, total: u64) {
        self.total = total;
    }

    /// Seconds that are left; `None` before the first step.
    pub(super) fn left(&self) -> Option<f64> {
        let (half, last) = (self.half(), self.last);
        let steps_left = self.total.saturating_sub(last.done) as f64;
        let savings = |done: u64| done / self.every;
        let recent = savings(last.done) - savings(half.done);
        let saving_s = match recent {
            // That before the first step is all that is known.
            0 => last.savings_s / (savings(last.done) + 1) as f64,
            recent => (last.savings_s - half.savings_s) / recent as f64,
        };
        let savings_left = self.total.div_ceil(self.every).saturating_sub(savings(last.done)) as f64;
        Some(steps_left / self.rate()? + savings_left * saving_s)
    }

    /// What was seen when half of what is done now was done.
    fn half(&self) -> Seen {
        let after = self.seen.partition_point(|seen| seen.done <= self.last.done / 2);
        self.seen[after.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goes through a run whose steps and savings take so many seconds, and checks that what is said to be left is right within a
    /// share of it and the time of the longest step, after each step from one on.
    fn check(every: u64, total: u64, from: u64, share: f64, step_s: impl Fn(u64) -> f64, saving_s: f64) {
        let is_saved = |step: u64| step.is_multiple_of(every) || step == total;
        let all: f64 = (1..=total).map(|step| step_s(step) + if is_saved(step) { saving_s } else { 0.0 }).sum();
        let longest = (from..=total).map(&step_s).fold(1e-9, f64::max);
        let (mut pace, mut passed, mut savings) = (Pace::new(total, every), saving_s, saving_s);
        pace.see(0, passed, savings);
        assert_eq!((pace.left(), pace.rate()), (None, None));
        for step in 1..total {
            passed += step_s(step);
            if is_saved(step) {
                (passed, savings) = (passed + saving_s, savings + saving_s);
            }
            pace.see(step, passed, savings);
            let (said, left) = (pace.left().unwrap(), all + saving_s - passed);
            assert!(
                step < from || (said - left).abs() <= share * left + longest,
                "{said} for {left} s after step {step}"
            );
        }
    }

    #[test]
    fn a_steady_pace_is_told_from_the_first_step_on_with_any_savings() {
        check(7, 1000, 1, 1e-6, |_| 0.1, 0.0);
        check(50, 1000, 1, 1e-6, |_| 0.01, 5.0);
        check(1, 1000, 1, 1e-6, |_| 0.01, 0.3);
        check(5000, 1000, 1, 1e-6, |_| 0.01, 3.0);
    }

    #[test]
    fn a_slow_start_is_forgotten_and_a_change_of_pace_noticed() {
        check(100, 1000, 10, 0.05, |step| if step <= 3 { 10.0 } else { 0.1 }, 0.5);
        check(100, 4000, 2000, 0.05, |step| if step <= 1000 { 0.1 } else { 0.2 }, 0.5);
    }

    #[test]
    fn uneven_steps_are_averaged() {
        // A GPU answers only where a state is saved.
        check(20, 2000, 100, 0.25, |step| if step.is_multiple_of(20) { 2.0 } else { 0.001 }, 0.2);
    }

    #[test]
    fn a_long_run_is_seen_without_holding_all_of_it() {
        let mut pace = Pace::new(1_000_000, 10);
        (1..=100_000).for_each(|step| pace.see(step, step as f64 * 0.5, 0.0));
        assert!(pace.seen.len() <= MOST);
        assert!((pace.left().unwrap() / 450_000.0 - 1.0).abs() < 1e-9 && (pace.rate().unwrap() - 2.0).abs() < 1e-9);
    }
}
