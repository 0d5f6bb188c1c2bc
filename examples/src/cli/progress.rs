//! How far a run is, for people who wait.

use super::{Console, text};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::time::{Duration, Instant};

/// Time between two drawings of the bar: more often than the eye follows would only cost time.
const BAR: Duration = Duration::from_millis(80);
/// Time before the first line: shorter runs need none.
const FIRST_LINE: Duration = Duration::from_secs(1);
/// Time between two lines.
const LINE: Duration = Duration::from_secs(2);

/// A bar on a terminal, a line now and then elsewhere, or nothing.
pub(super) struct Progress {
    how: How,
    total: u64,
    start: Instant,
    /// Time since the start at which something is shown next.
    next: Duration,
}

enum How {
    Bar(ProgressBar),
    Lines,
    Quiet,
}

impl Progress {
    /// Shows the way to `total` steps.
    pub(super) fn new(total: u64, quiet: bool, console: &Console) -> Progress {
        let how = match (quiet, console.terminal) {
            (true, _) => How::Quiet,
            (false, false) => How::Lines,
            (false, true) => How::Bar(bar(total, "{wide_bar} {pos} of {len} steps, {per_sec}, {eta} left")),
        };
        let next = if matches!(how, How::Bar(_)) { Duration::ZERO } else { FIRST_LINE };
        Progress { how, total, start: Instant::now(), next }
    }

    /// Shows that `done` steps are done, if it is time to show something.
    pub(super) fn step(&mut self, done: u64, console: &mut Console) {
        let passed = match self.how {
            How::Quiet => return,
            _ => self.start.elapsed(),
        };
        match &self.how {
            How::Bar(_) if passed < self.next && done < self.total => {}
            How::Bar(bar) => {
                bar.set_position(done);
                self.next = passed + BAR;
            }
            How::Lines if passed < self.next => {}
            _ => {
                let rate = done as f64 / passed.as_secs_f64();
                let left = text::seconds((self.total - done) as f64 / rate);
                let rate = text::number((rate * 100.0).round() / 100.0);
                let _ = writeln!(console.err, "step {done} of {}, {rate} steps/s, {left} left", self.total);
                self.next = passed + LINE;
            }
        }
    }

    /// Ends the bar of the steps and shows that `count` pictures are to be drawn.
    pub(super) fn pictures(self, count: usize, console: &mut Console) -> Progress {
        let how = match self.how {
            How::Bar(steps) => {
                steps.finish_and_clear();
                How::Bar(bar(count as u64, "{wide_bar} {pos} of {len} pictures, {eta} left"))
            }
            How::Lines if self.start.elapsed() > FIRST_LINE => {
                let _ = writeln!(console.err, "drawing {}", text::counted(count, "picture", "pictures"));
                How::Quiet
            }
            _ => How::Quiet,
        };
        Progress { how, total: count as u64, start: Instant::now(), next: Duration::ZERO }
    }

    /// Shows that one more picture is drawn.
    pub(super) fn picture(&self) {
        if let How::Bar(bar) = &self.how {
            bar.inc(1);
        }
    }

    /// Clears the line of the bar.
    pub(super) fn finish(self) {
        if let How::Bar(bar) = self.how {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style.progress_chars("=> ")).with_finish(ProgressFinish::AndClear)
}
