//! Measured quantities over time, as a CSV file.

use super::frame::Moment;
use crate::Run;
use anyhow::{Context, Result};
use meshweft::Metric;
use meshweft_picture::curves::{Curve, Curves};
use std::fs::{File, symlink_metadata};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that grows by whole lines, open at its end.
pub(super) struct Lines {
    path: PathBuf,
    file: File,
    /// Length of the whole lines in it.
    bytes: u64,
}

impl Lines {
    /// Starts a file with a line.
    pub(super) fn new(path: PathBuf, first: &str) -> Result<Lines> {
        let first = format!("{first}\n");
        let file = meshweft_mesh::io::replace(&path, |out| out.write_all(first.as_bytes()))?;
        Ok(Lines { path, file, bytes: first.len() as u64 })
    }

    /// Adds a line, or several.
    pub(super) fn push(&mut self, line: &str) -> Result<()> {
        let line = format!("{line}\n");
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Half a line would read as a wrong number. If even this fails, the first error is the one to report.
            let _ = self.file.set_len(self.bytes);
            return Err(error).with_context(|| format!("cannot write {}", self.path.display()));
        }
        self.bytes += line.len() as u64;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// What was measured at some steps of a run, and how often its loops went round since the row before.
pub(super) struct History {
    lines: Lines,
    /// Of what was measured: names and units.
    metrics: Vec<[&'static str; 2]>,
    loops: Vec<Loop>,
}

/// A loop that has a column.
struct Loop {
    name: &'static str,
    /// Its iterations when it was looked at last, and those since the last row that were then not known of any more.
    seen: u64,
    before: u64,
}

impl Loop {
    /// Iterations since the last row.
    fn since(&self, run: &Run) -> u64 {
        let found = run.loops().into_iter().find(|(name, _)| *name == self.name);
        found.map_or(0, |(_, found)| found.total).saturating_sub(self.seen) + self.before
    }
}

impl History {
    /// Starts the file of the run `name`, with the names and units of `metrics`.
    pub(super) fn new(folder: &Path, name: &str, metrics: &[Metric], run: &Run) -> Result<History> {
        let loops = loops(run, &[]);
        let heads = metrics.iter().map(column).chain(loops.iter().map(|each| column(&of_loop(each.name, 0))));
        let columns: String = heads.map(|head| format!(",{head}")).collect();
        let lines = Lines::new(folder.join(format!("{name}.csv")), &format!("step,time_s{columns}"))?;
        Ok(History { lines, metrics: names(metrics), loops })
    }

    /// Goes on behind the first so many bytes of the file of a run that was stopped; none if they are not there any more. `iterated`: what
    /// [`History::iterated`] was then.
    pub(super) fn resume(
        folder: &Path,
        name: &str,
        (bytes, iterated): (u64, &[u64]),
        (metrics, run): (&[Metric], &Run),
    ) -> Option<History> {
        let path = folder.join(format!("{name}.csv"));
        let found = symlink_metadata(&path).ok()?;
        if bytes == 0 || !found.is_file() || found.len() < bytes {
            return None;
        }
        let mut file = File::options().write(true).open(&path).ok()?;
        file.set_len(bytes).and_then(|()| file.seek(SeekFrom::Start(bytes))).ok()?;
        let (lines, loops) = (Lines { path, file, bytes }, loops(run, iterated));
        Some(History { lines, metrics: names(metrics), loops })
    }

    /// Length of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.lines.bytes
    }

    /// Iterations of each loop since the last row.
    pub(super) fn iterated(&self, run: &Run) -> Vec<u64> {
        self.loops.iter().map(|each| each.since(run)).collect()
    }

    /// Adds a line.
    pub(super) fn push(&mut self, moment: Moment, metrics: &[Metric], run: &Run) -> Result<()> {
        let mut all = metrics.to_vec();
        for each in &mut self.loops {
            let since = each.since(run);
            all.push(of_loop(each.name, since));
            (each.seen, each.before) = (each.seen + since - each.before, 0);
        }
        self.lines.push(&line(moment, &all))
    }

    pub(super) fn path(&self) -> &Path {
        self.lines.path()
    }

    /// The rows so far, those of a process before included.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn rows(&self) -> Result<Rows> {
        let path = self.path();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let numbers = |line: &str| line.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect();
        // Names may have line ends: rows begin with numbers.
        Ok(text.lines().map(numbers).filter(|row: &Vec<f64>| row[0].is_finite()).collect())
    }

    /// What is not as it should be: energies that [run away](runs_away), residuals that [stall](stalls_at), or in meters are no small share of an
    /// `edge`.
    pub(super) fn troubles<'a>(
        &'a self,
        rows: &'a Rows,
        (edge, precision): (impl Fn() -> f64 + 'a, &'a str),
    ) -> impl Iterator<Item = Trouble> + 'a {
        self.metrics.iter().copied().zip(FIRST..).filter_map(move |([name, unit], k)| {
            let values: Vec<f64> = rows.iter().map(|row| value(row, k)).collect();
            let of = |value| Metric { name, unit, value };
            match (name, unit) {
                ("residual", "m") => {
                    let share = values.last()? / edge();
                    (share > FAR).then_some(Trouble::Unsolved(of(*values.last()?), share))
                }
                ("residual", _) => stalls_at(&values, precision).map(|value| Trouble::Stalls(of(value))),
                _ if name.contains("energy") => runs_away(&values).map(|value| Trouble::Grows(of(value))),
                _ => None,
            }
        })
    }

    /// Draws a curve of each column beside the file. Returns the path; none if there are not two rows.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn draw(&self, title: &str, rows: &Rows) -> Result<Option<PathBuf>> {
        let ([first, second, ..], Some(last)) = (&rows[..], rows.last()) else { return Ok(None) };
        // Of steps that take no time.
        let (at, along) = if first.get(1) < last.get(1) { (1, ["time", "s"]) } else { (0, ["steps", ""]) };
        let curve = |[name, unit]: [&str; 2], points| Curve { name: name.into(), unit: unit.into(), points };
        let metrics = self
            .metrics
            .iter()
            .zip(FIRST..)
            .map(|(&metric, k)| curve(metric, rows.iter().map(|row| [value(row, at), value(row, k)]).collect()));
        // Rows may be farther apart than others.
        let loops = self.loops.iter().zip(FIRST + self.metrics.len()..).map(|(each, k)| {
            let mean = |rows: &[Vec<f64>]| value(&rows[1], k) / (rows[1][0] - rows[0][0]);
            curve(
                [each.name, "iterations a step"],
                rows.windows(2).map(|rows| [value(&rows[1], at), mean(rows)]).collect(),
            )
        });
        let curves = metrics.chain(loops).collect();
        let subtitle = format!("after each {} steps, from {} to {}", second[0] - first[0], first[0], last[0]);
        let curves = Curves { title: title.into(), subtitle, along: along.map(str::to_string), curves };
        let svg = self.path().with_extension("svg");
        meshweft_mesh::io::replace(&svg, |out| out.write_all(curves.draw().svg().as_bytes()))?;
        Ok(Some(svg))
    }
}

/// What is not as it should be in what was measured, with its last value.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// An energy that grows without bound.
    Grows(Metric),
    /// A residual that falls no further.
    Stalls(Metric),
    /// A residual that is how far another sweep would move a vertex, and what share of an edge that is.
    Unsolved(Metric, f64),
}

/// The share of an edge by which another sweep may move a vertex.
const FAR: f64 = 0.01;

/// Rows of the file as numbers.
pub(super) type Rows = Vec<Vec<f64>>;

/// The column of the first quantity, behind step and time.
const FIRST: usize = 2;

fn value(row: &[f64], k: usize) -> f64 {
    row.get(k).copied().unwrap_or(f64::NAN)
}

/// The last of some values that grow tenfold and more in each of the last three quarters, if they do. What falls, is driven or sounds on
/// grows by a power of time, and not even its eighth does so; sweeps that are not stable grow by a factor each step, and so does this.
fn runs_away(values: &[f64]) -> Option<f64> {
    const TENFOLD: f64 = 10.0;
    const FEWEST: usize = 9;
    let last = values.len().checked_sub(1).filter(|&last| last + 1 >= FEWEST)?;
    let quarters = [1, 2, 3, 4].map(|k| values[k * last / 4]);
    let grows = quarters.windows(2).all(|ends| ends[0] > 0.0 && ends[1] >= TENFOLD * ends[0]);
    grows.then_some(quarters[3])
}

/// The last of some residuals, if those of the last quarter come to no less than nine tenths of the least before, nor those of its second half of
/// the least of the first, unless they have come down to rounding.
fn stalls_at(values: &[f64], precision: &str) -> Option<f64> {
    const FEWEST: usize = 16;
    // Over the first that is not 0.
    let solved = if precision == "f64" { 1e-10 } else { 1e-5 };
    let (before, quarter) = values.split_at_checked(values.len() * 3 / 4).filter(|_| values.len() >= FEWEST)?;
    let (third, last) = quarter.split_at(quarter.len() / 2);
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let first = values.iter().copied().find(|x| *x > 0.0)?;
    // It may begin with nothing.
    let start = before.iter().take_while(|x| **x == 0.0).count();
    let falls = least(quarter) <= 0.9 * least(&before[start..]) || least(last) <= 0.9 * least(third);
    (!falls && least(quarter) > solved * first).then(|| values[values.len() - 1])
}

/// The unit of columns of loops.
const ITERATIONS: &str = "iterations";

/// Loops that have a column: those of which every run of the program knows. `before`: iterations of each since the last row that this process
/// has not seen.
fn loops(run: &Run, before: &[u64]) -> Vec<Loop> {
    let found = run.loops().into_iter().enumerate();
    found
        .map(|(i, (name, found))| Loop { name, seen: found.total, before: before.get(i).copied().unwrap_or(0) })
        .collect()
}

fn of_loop(name: &'static str, iterations: u64) -> Metric {
    Metric { name, unit: ITERATIONS, value: iterations as f64 }
}

fn names(metrics: &[Metric]) -> Vec<[&'static str; 2]> {
    metrics.iter().map(|metric| [metric.name, metric.unit]).collect()
}

/// What was measured at a step. Numbers have all the digits that tell them from their neighbors.
pub(super) fn line(moment: Moment, metrics: &[Metric]) -> String {
    let numbers: String = metrics.iter().map(|metric| format!(",{}", metric.value)).collect();
    format!("{},{}{numbers}", moment.step, moment.time)
}

/// The head of the column of a measured quantity, with its unit.
pub(super) fn column(metric: &Metric) -> String {
    let unit = if metric.unit.is_empty() { String::new() } else { format!(" ({})", metric.unit) };
    quoted(&format!("{}{unit}", metric.name))
}

/// A text as a cell.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_by_a_factor_each_step_runs_away_and_what_is_driven_does_not() {
        let of = |value: &dyn Fn(f64) -> f64| runs_away(&(0..61).map(|i| value(f64::from(i))).collect::<Vec<_>>());
        assert!(of(&|t| 1e-9 * 1.2f64.powf(t)).is_some());
        assert!(of(&|t| 1e-9 * 1.3f64.powf(t) * (2.0 + t.sin())).is_some());
        // Falls, is pushed, decays, has saturated, or only just began.
        for calm in [&(|t: f64| t * t) as &dyn Fn(f64) -> f64, &|t| t.powi(6), &|t| (-t).exp(), &|t| 1.0 - (-t).exp()] {
            assert_eq!(of(calm), None);
        }
        assert_eq!(of(&|t| if t > 10.0 { 1e6 } else { 1e-6 }), None);
        assert_eq!(of(&|t| if t == 60.0 { f64::NAN } else { 1.5f64.powf(t) }), None);
        assert_eq!(of(&|t| if t > 50.0 { f64::INFINITY } else { 1.5f64.powf(t) }), Some(f64::INFINITY));
        assert_eq!((runs_away(&[]), runs_away(&[1.0, 1e3, 1e6, 1e9])), (None, None));
    }

    #[test]
    fn residuals_that_fall_no_further_stall_and_those_that_are_down_do_not() {
        let values = |value: &dyn Fn(f64) -> f64| (0..61).map(|i| value(f64::from(i))).collect::<Vec<_>>();
        let of = |value: &dyn Fn(f64) -> f64| stalls_at(&values(value), "f64");
        assert_eq!(of(&|i| (-0.1 * i).exp()), None);
        // It swings about a value from a third of the run on.
        let swings = |i: f64| (-0.3 * i.min(20.0)).exp() * (1.0 + 0.05 * i.sin());
        assert_eq!(of(&swings), Some(swings(60.0)));
        // Down to rounding; from nothing; slowly.
        assert_eq!(of(&|i| (-i).exp().max(1e-16)), None);
        assert_eq!(of(&|_| 0.0), None);
        assert_eq!(of(&|i| 1.0 / (1.0 + i)), None);
        assert_eq!(of(&|i| if i == 0.0 { 0.0 } else { 1.0 }), Some(1.0));
        assert_eq!(stalls_at(&[1.0; 15], "f64"), None);
        // Solved to the last bit in the end; up by a change, and falling again; what is rounding depends on the precision.
        assert_eq!(of(&|i| if i < 40.0 { 1.0 } else { 0.0 }), None);
        assert_eq!(of(&|i| if i < 45.0 { 1e-6 } else { (-0.1 * (i - 45.0)).exp() }), None);
        let floor = values(&|i| (-i).exp().max(1e-7));
        assert_eq!((stalls_at(&floor, "f32"), stalls_at(&floor, "f64")), (None, Some(1e-7)));
    }
}
