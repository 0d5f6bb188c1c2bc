//! How far a run is, for people who wait.

use super::console::Console;
use super::pace::Pace;
use super::text;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::ops::Range;
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
    /// What is counted, in the singular.
    what: &'static str,
    /// What was done at the start, and is to be done in all.
    range: Range<u64>,
    pace: Pace,
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
    /// Shows the way through a range of `what`, in the singular; `every` so many something is saved.
    pub(super) fn new(range: Range<u64>, every: u64, what: &'static str, quiet: bool, console: &Console) -> Progress {
        let how = match (quiet, console.terminal) {
            (true, _) => How::Quiet,
            (false, false) => How::Lines,
            (false, true) => How::Bar(bar(range.end, what)),
        };
        let next = if matches!(how, How::Bar(_)) { Duration::ZERO } else { FIRST_LINE };
        let pace = Pace::new(range.end.saturating_sub(range.start), every);
        Progress { how, what, range, pace, start: Instant::now(), next }
    }

    /// So many are to be done in all, as far as is known now.
    pub(super) fn expect(&mut self, total: u64) {
        self.range.end = total.max(self.range.start);
        self.pace.expect(self.range.end - self.range.start);
        if let How::Bar(bar) = &self.how {
            bar.set_length(self.range.end);
        }
    }

    /// Shows that `done` are done, if it is time to show something, with what else there is to say. `saving`: how much of the time so
    /// far went to saving.
    pub(super) fn reach(&mut self, done: u64, saving: Duration, more: impl FnOnce() -> String, console: &mut Console) {
        let passed = match self.how {
            How::Quiet => return,
            _ => self.start.elapsed(),
        };
        self.pace.see(done - self.range.start, passed.as_secs_f64(), saving.as_secs_f64());
        if passed < self.next && done < self.range.end {
            return;
        }
        let pace = self.pace.rate().zip(self.pace.left()).map(|(rate, left)| {
            let rate = text::number((rate * 100.0).round() / 100.0);
            format!(", {rate} {}/s, {} left", several(self.what), text::seconds(left))
        });
        let Some(pace) = pace else { return };
        let (what, total) = (self.what, self.range.end);
        match &self.how {
            How::Bar(bar) => {
                bar.set_position(done);
                bar.set_message(pace + &more());
                self.next = passed + BAR;
            }
            How::Lines if passed < self.next => {}
            _ => {
                let _ = writeln!(console.err, "{what} {done} of {total}{pace}{}", more());
                self.next = passed + LINE;
            }
        }
    }

    /// Clears the line of the bar.
    pub(super) fn finish(self) {
        if let How::Bar(bar) = self.how {
            bar.finish_and_clear();
        }
    }
}

/// More than one of something.
fn several(what: &str) -> String {
    what.strip_suffix('y').map_or_else(|| format!("{what}s"), |stem| format!("{stem}ies"))
}

fn bar(total: u64, what: &str) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}} of {{len}} {}{{msg}}", several(what));
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style.progress_chars("=> ")).with_finish(ProgressFinish::AndClear)
}
