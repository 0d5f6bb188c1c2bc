//! When a run writes checkpoints, and what it notes in them: all that another process needs to go on as if nothing had happened.

use super::changes::Change;
use super::console::Console;
use super::{text, with_causes};
use crate::Run;
use crate::output::{Left, Output, checkpoints};
use anyhow::{Context, Result};
use meshweft::{Checkpoint, Metric};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time from one to the next, unless it is stated.
const USUAL: Duration = Duration::from_secs(60);
/// Share of the time of a run that checkpoints may take, unless it is stated.
const SHARE: f64 = 0.02;
/// Checkpoints in a row that may fail.
const MISSES: u32 = 3;
/// Bytes a second of a slow disk, for the time that the first checkpoint will take.
const SLOW: f64 = 200e6;

/// From one checkpoint to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Every {
    Never,
    Steps(u64),
    Time(Duration),
    /// As often as takes such a share of the time of the run.
    Share(f64),
}

impl FromStr for Every {
    type Err = String;

    fn from_str(word: &str) -> Result<Every, String> {
        let read = || {
            let word = word.trim();
            if word == "never" {
                return Some(Every::Never);
            }
            let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
            let (number, unit) = (&word[..end], word[end..].trim());
            let amount: f64 = number.parse().ok().filter(|x| *x > 0.0)?;
            let seconds = |each: f64| Duration::try_from_secs_f64(amount * each).ok().map(Every::Time);
            match unit {
                "" | "step" | "steps" => number.parse().ok().map(Every::Steps),
                "s" => seconds(1.0),
                "min" => seconds(60.0),
                "h" => seconds(3600.0),
                "%" if amount <= 50.0 => Some(Every::Share(amount / 100.0)),
                _ => None,
            }
        };
        read().ok_or_else(|| "take a time as in 60s, 5min or 1h, a number of steps as in 1000, a share of the run's time as in 2%, or never".into())
    }
}

/// What a run notes in its checkpoints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    /// The arguments of `meshweft run`, but those that say where and how to show it.
    pub(super) arguments: Vec<String>,
    /// The measured quantities before the first step.
    pub(super) first: Vec<f64>,
    /// The settings that were changed on the way.
    #[serde(default)]
    pub(super) changes: Vec<Change>,
    pub(super) left: Left,
}

/// A run that is gone on with.
pub(super) struct Resumed {
    pub(super) from: Checkpoint,
    pub(super) note: Note,
}

impl Resumed {
    /// What is in the folder of a run.
    ///
    /// # Errors
    /// No whole checkpoint, or one that is not of this command.
    pub(super) fn find(folder: &Path) -> Result<Resumed> {
        let from = Checkpoint::newest(&checkpoints(folder))
            .with_context(|| format!("cannot go on with the run in {}", folder.display()))?;
        let note = serde_json::from_str(from.note());
        let note = note.with_context(|| format!("{} is not of `meshweft run`", checkpoints(folder).display()))?;
        Ok(Resumed { from, note })
    }
}

/// Writes the checkpoints of a run.
pub(super) struct Checkpoints {
    folder: PathBuf,
    every: Option<Every>,
    arguments: Vec<String>,
    first: Vec<f64>,
    pub(super) changes: Vec<Change>,
    /// Bytes of a state.
    bytes: f64,
    writer: Option<Writer>,
    /// When the last one was done, and at which step it was taken.
    since: Instant,
    step: u64,
    /// What one takes of the time of the run, at most.
    cost: Duration,
    misses: u32,
    /// Files that a checkpoint which failed would have seen to the disk.
    owed: Vec<PathBuf>,
    /// Those that were written, the step of the newest, whether by this process or another, and how long the run was held up.
    pub(super) written: usize,
    pub(super) newest: Option<u64>,
    pub(super) spent: Duration,
}

/// A checkpoint that is being written.
struct Writer {
    thread: JoinHandle<Result<()>>,
    step: u64,
    begun: Instant,
    files: Vec<PathBuf>,
}

impl Checkpoints {
    /// Of a run that writes to a folder, and goes on from a checkpoint if there is one.
    pub(super) fn new(
        folder: &Path,
        every: Option<Every>,
        arguments: &[String],
        run: &Run,
        first: &[Metric],
        resumed: Option<&Resumed>,
    ) -> Checkpoints {
        let reals: usize = run.fields().iter().map(|part| part.components).sum();
        let bytes = (reals * run.mesh().points().len() * if run.precision() == "f64" { 8 } else { 4 }) as f64;
        Checkpoints {
            folder: folder.to_owned(),
            every,
            arguments: arguments.to_vec(),
            first: first.iter().map(|metric| metric.value).collect(),
            changes: resumed.map(|resumed| resumed.note.changes.clone()).unwrap_or_default(),
            bytes,
            writer: None,
            since: Instant::now(),
            step: run.steps(),
            cost: Duration::from_secs_f64(0.01 + bytes / SLOW),
            misses: 0,
            owed: Vec::new(),
            written: 0,
            newest: resumed.map(|resumed| resumed.from.steps()),
            spent: Duration::ZERO,
        }
    }

    fn is_due(&self, step: u64) -> bool {
        match self.every {
            Some(Every::Never) => false,
            Some(Every::Steps(steps)) => step >= self.step + steps,
            Some(Every::Time(time)) => self.since.elapsed() >= time,
            Some(Every::Share(share)) => self.since.elapsed() >= self.cost.div_f64(share),
            None => self.since.elapsed() >= USUAL.max(self.cost.div_f64(SHARE)),
        }
    }

    /// Begins a checkpoint after a step if it is time to, and sees to the one that is under way.
    ///
    /// # Errors
    /// The third in a row that fails.
    pub(super) fn look(&mut self, run: &mut Run, output: &mut Output, console: &mut Console) -> Result<()> {
        if self.writer.as_ref().is_some_and(|writer| writer.thread.is_finished()) {
            self.collect(console)?;
        }
        if self.writer.is_none() && self.is_due(run.steps()) {
            self.begin(run, output)?;
        }
        Ok(())
    }

    fn begin(&mut self, run: &mut Run, output: &mut Output) -> Result<()> {
        let begun = Instant::now();
        let (left, mut files) = output.left(run)?;
        files.append(&mut self.owed);
        let fresh = files.clone();
        let (arguments, first, changes) = (self.arguments.clone(), self.first.clone(), self.changes.clone());
        let note = Note { arguments, first, changes, left };
        let note = serde_json::to_string(&note).context("cannot note what a checkpoint needs")?;
        let (snapshot, folder, step) = (run.snapshot()?, checkpoints(&self.folder), run.steps());
        let write = move || {
            for file in fresh {
                let synchronized = File::open(&file).and_then(|file| file.sync_all());
                synchronized.with_context(|| format!("cannot write {}", file.display()))?;
            }
            Ok(snapshot.write(&folder, &note)?)
        };
        self.spent += begun.elapsed();
        self.cost = begun.elapsed();
        self.step = step;
        self.writer = Some(Writer { thread: std::thread::spawn(write), step, begun, files });
        Ok(())
    }

    /// Waits for the one that is being written.
    fn collect(&mut self, console: &mut Console) -> Result<()> {
        let Some(Writer { thread, step, begun, files }) = self.writer.take() else { return Ok(()) };
        let written = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (self.since, self.cost) = (Instant::now(), self.cost.max(begun.elapsed()));
        match written {
            Ok(()) => {
                (self.misses, self.newest) = (0, Some(step));
                self.written += 1;
                if self.written == 1 {
                    let (bytes, folder) = (text::bytes(self.bytes), checkpoints(&self.folder));
                    let _ = writeln!(
                        console.err,
                        "checkpoint: step {step} is in {}, {bytes}; the newest three are kept",
                        folder.display()
                    );
                }
                Ok(())
            }
            Err(error) => {
                self.misses += 1;
                self.owed = files;
                let older = self.newest.map(|step| format!("; that of step {step} stays")).unwrap_or_default();
                let failed = format!("no checkpoint of step {step}");
                if self.misses == MISSES {
                    return Err(error.context(format!("{failed}, the third that failed{older}")));
                }
                let _ = writeln!(console.err, "warning: {failed}: {}{older}", with_causes(error.as_ref()));
                Ok(())
            }
        }
    }

    /// At the end of a run: writes what is left to write, and the last state if the run was `stopped` before its end, or is one that
    /// keeps checkpoints.
    ///
    /// # Errors
    /// A checkpoint that fails.
    pub(super) fn finish(
        &mut self,
        stopped: bool,
        run: &mut Run,
        output: &mut Output,
        console: &mut Console,
    ) -> Result<()> {
        self.collect(console)?;
        let is_wanted = match self.every {
            Some(Every::Never) => false,
            Some(_) => true,
            None => stopped || self.newest.is_some(),
        };
        if is_wanted && self.newest != Some(run.steps()) {
            self.misses = MISSES - 1;
            self.begin(run, output)?;
            self.collect(console)?;
        }
        Ok(())
    }

    /// The command that goes on with the run, if there is one.
    pub(super) fn way_on(&self) -> Option<String> {
        let step = self.newest?;
        let folder = self.folder.display().to_string();
        let folder = if folder.contains(' ') { format!("'{folder}'") } else { folder };
        Some(format!("`meshweft resume {folder}` goes on from step {step}"))
    }

    /// What was written, if anything was.
    pub(super) fn told(&self) -> Option<String> {
        let count = text::counted(self.written, "checkpoint", "checkpoints");
        let (bytes, spent) = (text::bytes(self.bytes), text::seconds(self.spent.as_secs_f64()));
        (self.written > 0)
            .then(|| format!("{count} of {bytes}, {spent} of waiting: {}", self.way_on().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_is_read_from_a_word() {
        for (word, every) in [
            ("never", Every::Never),
            ("1000", Every::Steps(1000)),
            ("20 steps", Every::Steps(20)),
            ("60s", Every::Time(Duration::from_secs(60))),
            ("0.5min", Every::Time(Duration::from_secs(30))),
            ("2 h", Every::Time(Duration::from_secs(7200))),
            ("2%", Every::Share(0.02)),
            ("0.5 %", Every::Share(0.005)),
        ] {
            assert_eq!(word.parse(), Ok(every), "{word}");
        }
        for word in [
            "",
            "0",
            "-1",
            "1.5",
            "1.5 steps",
            "0%",
            "80%",
            "5 days",
            "s",
            "1e9",
            "inf",
            "1.2.3s",
            "99999999999999999999h",
        ] {
            let error = word.parse::<Every>().unwrap_err();
            assert!(error.contains("60s") && error.contains("never"), "{word}: {error}");
        }
    }
}
