//! Measured quantities over time, as a CSV file.

use super::frame::Moment;
use anyhow::{Context, Result};
use meshweft::Metric;
use std::fs::{File, symlink_metadata};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file, open at its end.
pub(super) struct History {
    path: PathBuf,
    file: File,
    /// Length of the whole lines in it.
    bytes: u64,
}

impl History {
    /// Starts the file of the run `name`, with the names and units of `metrics`.
    pub(super) fn new(folder: &Path, name: &str, metrics: &[Metric]) -> Result<History> {
        let mut header = "step,time_s".to_string();
        for metric in metrics {
            let unit = if metric.unit.is_empty() { String::new() } else { format!(" ({})", metric.unit) };
            header.push_str(&format!(",{}", quoted(&format!("{}{unit}", metric.name))));
        }
        header.push('\n');
        let path = folder.join(format!("{name}.csv"));
        let file = meshweft_mesh::io::replace(&path, |out| out.write_all(header.as_bytes()))?;
        Ok(History { path, file, bytes: header.len() as u64 })
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
        Some(History { path, file, bytes })
    }

    /// Length of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a line. Numbers have all the digits that tell them from their neighbors.
    pub(super) fn push(&mut self, moment: Moment, metrics: &[Metric]) -> Result<()> {
        let mut line = format!("{},{}", moment.step, moment.time);
        metrics.iter().for_each(|metric| line.push_str(&format!(",{}", metric.value)));
        line.push('\n');
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

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}
