//! What an ensemble leaves in its folder.
//!
//! | file | what it is |
//! |---|---|
//! | `NAME.csv` | a row for each copy: what was varied, what was measured at its end, steps a second, digest |
//! | `NAME.history.csv` | what was measured of each copy on the way, if that was asked for |
//! | `NAME.png`, `NAME.gif` | some of the copies side by side, at their end and on the way there |
//!
//! Rows are written in the order of the copies, each when it and all before it are done.

use super::config::{Config, FRAMES};
use super::film::Film;
use super::frame::{Frame, Moment};
use super::history::{Lines, column, line, quoted};
use super::lock::Lock;
use super::{clear, has_place, show};
use crate::Run;
use anyhow::{Context, Result};
use meshweft::Metric;
use std::path::PathBuf;

/// Copies that pictures show, at most: more are specks.
const SHOWN: usize = 36;
/// Vertices that pictures show of all of them, at most.
const SHOWN_VERTICES: usize = 2_000_000;

/// Whether pictures show a copy of so many: they show as many as there is room for, evenly among all.
pub(crate) fn is_shown(copy: usize, copies: usize, vertices: usize) -> bool {
    let most = (SHOWN_VERTICES / vertices.max(1)).clamp(1, SHOWN).min(copies);
    // The first with each of `most` numbers.
    copy == 0 || copy * most / copies != (copy - 1) * most / copies
}

/// What is kept of a copy while it runs.
pub(crate) struct Record {
    film: Option<Film>,
    /// Steps from one frame of the film to the next, and from one line of the history.
    film_every: u64,
    every: Option<u64>,
    history: Vec<String>,
    /// The last steps of which there is a frame, and a line.
    last: [Option<u64>; 2],
}

impl Record {
    /// Of a run that is to take so many steps. `every`: steps from one line of its history to the next, if there is to be one.
    ///
    /// # Errors
    /// A color that the run does not have; a file that cannot be written.
    pub(crate) fn new(config: &Config, run: &Run, shown: bool, every: Option<u64>) -> Result<Record> {
        let film =
            (shown && config.pictures && has_place(run)).then(|| Film::new(config, run, ("", &[]))).transpose()?;
        let film_every = every.unwrap_or_else(|| config.steps.div_ceil(FRAMES)).max(1);
        Ok(Record { film, film_every, every, history: Vec::new(), last: [None; 2] })
    }

    /// Keeps what is due after a step; at the end, of any step.
    ///
    /// # Errors
    /// A film that cannot be kept.
    pub(crate) fn look(&mut self, run: &mut Run, is_end: bool) -> Result<()> {
        let moment = Moment { step: run.steps(), time: run.time() };
        let is_due =
            |every: u64, last: Option<u64>| (is_end || moment.step.is_multiple_of(every)) && last != Some(moment.step);
        if let Some(film) = self.film.as_mut().filter(|_| is_due(self.film_every, self.last[0])) {
            show(film, &Frame::of(run, moment, run.state()?)?, run)?;
            self.last[0] = Some(moment.step);
        }
        if self.every.is_some_and(|every| is_due(every, self.last[1])) {
            self.history.push(line(moment, &run.metrics()?));
            self.last[1] = Some(moment.step);
        }
        Ok(())
    }
}

#[cfg(test)]
impl Record {
    /// The film alone.
    pub(super) fn into_film(self) -> Option<Film> {
        self.film
    }
}

/// A copy that is done.
pub(crate) struct Ended {
    /// What was varied.
    pub(crate) values: Vec<String>,
    pub(crate) steps: u64,
    pub(crate) time: f64,
    /// What was measured at the end; not a number where it diverged.
    pub(crate) metrics: Vec<Metric>,
    /// Seconds that its steps took.
    pub(crate) stepped_s: f64,
    pub(crate) digest: String,
    /// What ended it before its time.
    pub(crate) error: Option<String>,
    pub(crate) record: Record,
}

/// The folder of an ensemble while it goes on.
pub(crate) struct Copies {
    config: Config,
    /// Of what is varied.
    names: Vec<String>,
    table: Option<Lines>,
    history: Option<Lines>,
    /// What the first copy measures: the columns of the table.
    metrics: Vec<Metric>,
    films: Vec<Film>,
    /// The number of the first, and how many are done.
    first: usize,
    count: usize,
    /// Until all is written.
    _lock: Lock,
}

impl Copies {
    /// Makes the folder, locks it, and removes what an earlier run of the same name left in it. `first`: the number of the first copy.
    ///
    /// # Errors
    /// A folder that cannot be made or written to, or belongs to another run.
    pub(crate) fn create(config: Config, names: Vec<String>, first: usize) -> Result<Copies> {
        let folder = &config.folder;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let lock = Lock::take(folder)?;
        clear(&config, &lock, false, |_| false)?;
        let (metrics, films) = (Vec::new(), Vec::new());
        Ok(Copies { config, names, table: None, history: None, metrics, films, first, count: 0, _lock: lock })
    }

    fn path(&self, end: &str) -> PathBuf {
        self.config.folder.join(format!("{}.{end}", self.config.name))
    }

    /// Writes the row of the next copy.
    ///
    /// # Errors
    /// A file that cannot be written. The rows before stay.
    pub(crate) fn push(&mut self, ended: Ended) -> Result<()> {
        let Ended { values, steps, time, metrics, stepped_s, digest, error, record } = ended;
        let copy = self.first + self.count;
        if self.table.is_none() {
            self.metrics = metrics.clone();
            let names: String = self.names.iter().map(|name| format!(",{}", quoted(name))).collect();
            let columns: String = metrics.iter().map(|metric| format!(",{}", column(metric))).collect();
            let head = format!("copy{names},steps,time_s{columns},steps_per_s,digest,error");
            self.table = Some(Lines::new(self.path("csv"), &head)?);
            if record.every.is_some() {
                self.history = Some(Lines::new(self.path("history.csv"), &format!("copy,step,time_s{columns}"))?);
            }
        }
        // Programs that differ by copy may measure other things.
        let value =
            |wanted: &Metric| metrics.iter().find(|metric| metric.name == wanted.name).map(|metric| metric.value);
        let numbers = self.metrics.iter().map(|metric| value(metric).map_or(String::new(), |x| x.to_string()));
        let rate = if stepped_s > 0.0 { steps as f64 / stepped_s } else { 0.0 };
        let cells = [copy.to_string()].into_iter().chain(values.iter().map(|value| quoted(value)));
        let cells = cells.chain([steps.to_string(), time.to_string()]).chain(numbers);
        let end = [format!("{rate:.6}"), digest, quoted(&error.unwrap_or_default())];
        let row: Vec<String> = cells.chain(end).collect();
        self.table.as_mut().expect("it was just made").push(&row.join(","))?;
        if let Some(history) = self.history.as_mut().filter(|_| !record.history.is_empty()) {
            let lines: Vec<String> = record.history.iter().map(|line| format!("{copy},{line}")).collect();
            history.push(&lines.join("\n"))?;
        }
        self.films.extend(record.film);
        self.count += 1;
        Ok(())
    }

    /// Draws the pictures, and returns all files. `copies`: how many there were to be; `goes_on` is asked after each picture, and once it says
    /// no, the film is left out.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn finish(mut self, copies: usize, goes_on: &mut dyn FnMut() -> bool) -> Result<Vec<PathBuf>> {
        let tables = [self.table.take(), self.history.take()];
        let mut paths: Vec<PathBuf> = tables.into_iter().flatten().map(|lines| lines.path().to_owned()).collect();
        let films = std::mem::take(&mut self.films);
        let name = match films.len() {
            n if n == copies => format!("{}, {copies} copies", self.config.name),
            n => format!("{}, {n} of {copies} copies", self.config.name),
        };
        if let Some(film) = Film::side_by_side(&self.config, name, films)? {
            let [picture, animation] = ["png", "gif"].map(|end| self.path(end));
            let is_whole = film.draw(&picture, &animation, self.config.threads, goes_on)?;
            paths.push(picture);
            paths.extend(is_whole.then_some(animation));
        }
        Ok(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_are_shown_lie_evenly_among_all() {
        let shown = |copies, vertices| (0..copies).filter(|&copy| is_shown(copy, copies, vertices)).collect::<Vec<_>>();
        assert_eq!(shown(5, 900), [0, 1, 2, 3, 4]);
        assert_eq!(shown(1000, 900).len(), SHOWN);
        assert_eq!(shown(1000, 900)[..3], [0, 28, 56]);
        assert_eq!(shown(10, 1_000_000), [0, 5]);
        assert_eq!(shown(10, 9_000_000), [0]);
    }
}
