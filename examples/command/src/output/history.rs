//! Measured quantities over time, as a CSV file.

use super::frame::Moment;
use anyhow::{Context, Result};
use meshweft::Metric;
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

/// What was measured at some steps of a run.
pub(super) struct History(Lines);

impl History {
    /// Starts the file of the run `name`, with the names and units of `metrics`.
    pub(super) fn new(folder: &Path, name: &str, metrics: &[Metric]) -> Result<History> {
        let columns: String = metrics.iter().map(|metric| format!(",{}", column(metric))).collect();
        Lines::new(folder.join(format!("{name}.csv")), &format!("step,time_s{columns}")).map(History)
    }

    /// Goes on behind the first so many bytes of the file of a run that was stopped; none if they are not there any more.
    pub(super) fn resume(folder: &Path, name: &str, bytes: u64) -> Option<History> {
        let path = folder.join(format!("{name}.csv"));
        let found = symlink_metadata(&path).ok()?;
        if bytes == 0 || !found.is_file() || found.len() < bytes {
            return None;
        }
        let mut file = File::options().write(true).open(&path).ok()?;
        file.set_len(bytes).and_then(|()| file.seek(SeekFrom::Start(bytes))).ok()?;
        Some(History(Lines { path, file, bytes }))
    }

    /// Length of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Adds a line.
    pub(super) fn push(&mut self, moment: Moment, metrics: &[Metric]) -> Result<()> {
        self.0.push(&line(moment, metrics))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
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
