//! What threads did, as a file for viewers of timelines.

use super::any::AnySimulation;
use super::core::Core;
use crate::engine::{Event, NETWORK, Recording, What};
use crate::error::{Error, Result};
use crate::number::Number;
use std::collections::BTreeMap;
use std::io::{self, Write};

impl<T: Number> Core<T> {
    /// See [`AnySimulation::write_timeline`].
    pub(super) fn events(&mut self, out: &mut dyn Write) -> Result<u64> {
        let Some(timeline) = self.timeline.clone() else {
            return Err(Error::Invalid("nothing was written down: build the simulation with `timeline(true)`".into()));
        };
        self.wait()?;
        let recordings = match self.engine.remote() {
            Some(hosts) => hosts.recordings()?,
            None => vec![timeline.recording(1)],
        };
        let kernels: Vec<&str> = self.table.kernels.iter().map(|kernel| kernel.name).collect();
        write_events(&recordings, &kernels, out)
            .map_err(|error| Error::Invalid(format!("cannot write the timeline: {error}")))?;
        Ok(recordings.iter().map(|recording| recording.left_out).sum())
    }
}

/// Writes all events. `kernels`: their names.
fn write_events(recordings: &[Recording], kernels: &[&str], out: &mut dyn Write) -> io::Result<()> {
    let mut sent = BTreeMap::new();
    for Recording { host, events, .. } in recordings {
        for (thread, event) in events {
            if let What::Send { task } = event.what {
                sent.insert((*host, event.round, task), (*thread, event.start));
            }
        }
    }
    let mut flows = 0u64;
    let mut separator = "[\n";
    for recording in recordings {
        for line in head(recording) {
            write!(out, "{separator}{line}")?;
            separator = ",\n";
        }
        let host = recording.host;
        for (thread, event) in &recording.events {
            write!(out, "{separator}{}", complete(host, *thread, event, kernels))?;
            if let What::Receive { from, task } = event.what
                && let Some(&(sender, start)) = sent.get(&(from, event.round, task))
            {
                flows += 1;
                let end = |kind: &str, host: u32, thread: u32, at: u64| {
                    let (at, of) = (microseconds(at), r#""name":"message","cat":"message""#);
                    format!(r#"{{{of},"ph":{kind},"id":{flows},"pid":{host},"tid":{thread},"ts":{at}}}"#)
                };
                write!(out, ",\n{}", end(r#""s""#, from, sender, start))?;
                write!(out, ",\n{}", end(r#""f","bp":"e""#, host, *thread, event.start))?;
            }
        }
    }
    writeln!(out, "\n]")?;
    out.flush()
}

/// Lines that name a host and its threads, and say what was left out.
fn head(recording: &Recording) -> Vec<String> {
    let host = recording.host;
    let line = |what: &str, thread: u32, key: &str, value: &str| {
        format!(r#"{{"name":"{what}","ph":"M","pid":{host},"tid":{thread},"args":{{"{key}":{value}}}}}"#)
    };
    let mut lines = vec![line("process_name", 0, "name", &format!(r#""host {host}""#))];
    if recording.left_out > 0 {
        let label = format!(r#""{} later events were left out""#, recording.left_out);
        lines.push(line("process_labels", 0, "labels", &label));
    }
    for thread in recording.events.chunk_by(|a, b| a.0 == b.0).map(|events| events[0].0) {
        let name = if thread == NETWORK { r#""network""#.into() } else { format!(r#""thread {}""#, thread + 1) };
        lines.push(line("thread_name", thread, "name", &name));
        lines.push(line("thread_sort_index", thread, "sort_index", &thread.to_string()));
    }
    lines
}

/// An event with its length.
fn complete(host: u32, thread: u32, event: &Event, kernels: &[&str]) -> String {
    let round = event.round;
    let (name, kind, facts) = match event.what {
        What::Update { kernel, tasks } => {
            let name = kernels.get(kernel as usize).copied().unwrap_or("another kernel");
            (name, "update", format!(r#""round":{round},"tasks":{tasks}"#))
        }
        What::Wait => ("wait", "wait", String::new()),
        What::Send { task } => ("send", "message", format!(r#""round":{round},"task":{task}"#)),
        What::Receive { from, task } => {
            ("receive", "message", format!(r#""round":{round},"task":{task},"from":{from}"#))
        }
    };
    let (start, length) = (microseconds(event.start), microseconds(event.end - event.start));
    format!(
        r#"{{"name":"{name}","cat":"{kind}","ph":"X","pid":{host},"tid":{thread},"ts":{start},"dur":{length},"args":{{{facts}}}}}"#
    )
}

/// Nanoseconds as a number of microseconds.
fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
