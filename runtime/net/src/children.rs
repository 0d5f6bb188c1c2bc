//! Processes that a driver started as its workers.

use crate::error::{Error, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The variable that tells a process that it was started as a worker, and where to listen.
pub const WORKER: &str = "MESHWEFT_WORKER";
/// How long a process may take to end once the run is over.
pub const FAREWELL: Duration = Duration::from_secs(5);
/// Bytes of a line of a worker that are shown.
const LONGEST_LINE: u64 = 4096;

/// Processes that were started here. They end with the run, and are ended if they do not.
pub struct Children(Vec<Started>);

/// How often a process that was killed is started again before the run begins.
const LIVES: u32 = 20;
/// How often one that ended by itself.
const TRIES: u32 = 3;
/// How long one may be stopped by then: as long as one of a run may be silent.
const STOPPED: Duration = Duration::from_secs(10);

struct Started {
    command: Command,
    token: String,
    child: Child,
    /// How often it was started again since it was last in the run.
    revived: u32,
    /// Since when it is known to be stopped.
    stopped: Option<Instant>,
    /// Whether it was told that this one has ended.
    is_told: bool,
    /// The name that is shown with what it says, and that.
    voice: Option<(String, Voice)>,
}

/// Shows what a process writes to its standard error.
struct Voice {
    last: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

/// Makes the command of this very program as a worker that listens there.
///
/// # Errors
/// This process is such a worker itself.
pub fn this_program(listen: SocketAddr) -> Result<Command> {
    if std::env::var_os(WORKER).is_some() {
        return Err(Error::Invalid(
            "this process was started as a worker, and starts workers itself: begin `main` with `Worker::from_env`"
                .into(),
        ));
    }
    let program = std::env::current_exe().map_err(|error| failed("this program", error))?;
    let mut command = Command::new(program);
    command.env(WORKER, listen.to_string());
    Ok(command)
}

impl Children {
    /// Makes a list of no processes.
    pub fn none() -> Children {
        Children(Vec::new())
    }

    /// Starts a worker that reads the token from its standard input, and ends when that does. `name`: what to show before each
    /// line of its standard error, which is this process's otherwise.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn start(&mut self, mut command: Command, name: Option<&str>, token: &str) -> Result<()> {
        // Ctrl-C is for the driver alone, which ends its workers in good order.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        if name.is_some() {
            command.stderr(Stdio::piped()).stdout(Stdio::null());
        }
        self.0.push(Started::new(command, name.map(str::to_string), token.to_string())?);
        Ok(())
    }

    /// Starts each process again that has ended, but those that have left the run in good order, or end again and again. One that is
    /// stopped, so that it was lost, is ended first.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn revive(&mut self) -> Result<()> {
        for Started { child, .. } in self.0.iter_mut().filter(|started| is_stopped(started.child.id())) {
            let _ = child.kill();
            let _ = child.wait();
        }
        let ended = |started: &mut Started| match started.child.try_wait() {
            Ok(Some(status)) if status.code().is_some() => !status.success() && started.revived < TRIES,
            Ok(status) => status.is_some() && started.revived < LIVES,
            Err(_) => false,
        };
        self.0.iter_mut().filter_map(|started| ended(started).then_some(started)).try_for_each(Started::again)
    }

    /// Notes that the run has begun: whatever becomes of those that are in it has nothing to do with how often they were started before.
    pub fn have_come(&mut self) {
        for started in &mut self.0 {
            if matches!(started.child.try_wait(), Ok(None)) {
                started.revived = 0;
            }
        }
    }

    /// Starts each process again that was killed, or stopped (SIGSTOP) for long: what ends by itself would do so again.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn revive_killed(&mut self) -> Result<()> {
        let killed = |started: &mut Started| {
            if started.is_stopped_for(STOPPED) {
                // That it is over is seen the next time.
                let _ = started.child.kill();
            }
            let status = started.child.try_wait().ok().flatten();
            status.is_some_and(|status| status.code().is_none()) && started.revived < LIVES
        };
        self.0.iter_mut().filter_map(|started| killed(started).then_some(started)).try_for_each(Started::again)
    }

    /// Says of a process that has ended, other than in good order, which it is, and why: once of each, and only if it must have been one of
    /// the `workers` of the run. One that was started again and never came is none of them.
    pub fn failed(&mut self, workers: usize) -> Option<String> {
        let running = |started: &mut Started| matches!(started.child.try_wait(), Ok(None));
        let living = self.0.iter_mut().filter_map(|started| running(started).then_some(())).count();
        let what = self.ended("", |status| !status.success())?;
        (living < workers).then_some(what)
    }

    /// The same of one whose end is meant. `when`: what to add.
    fn ended(&mut self, when: &str, is_meant: impl Fn(std::process::ExitStatus) -> bool) -> Option<String> {
        self.0.iter_mut().zip(1..).filter(|(started, _)| !started.is_told).find_map(|(started, number)| {
            let Started { child, voice, is_told, .. } = started;
            let status = child.try_wait().ok()?.filter(|&status| is_meant(status))?;
            *is_told = true;
            Some(match voice {
                Some((name, voice)) => format!("the worker on {name} ended{when}: {}", voice.reason(status)),
                None => format!("worker process {number} ended{when} with {status}"),
            })
        })
    }

    /// Returns the error of a process that has ended before the run began; one that was killed is started again.
    pub fn fault(&mut self) -> Option<Error> {
        if let Err(error) = self.revive_killed() {
            return Some(error);
        }
        let has_names = self.0.iter().any(|started| started.voice.is_some());
        let hint = if has_names { "" } else { ": does `main` begin with `Worker::from_env`?" };
        Some(Error::Hosts(format!("{}{hint}", self.ended(" before the run began", |_| true)?)))
    }
}

impl Started {
    fn new(mut command: Command, name: Option<String>, token: String) -> Result<Started> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(|error| failed(&program, error))?;
        // The secret goes where no other process can read it. The pipe stays open: its end tells the worker that the driver is gone.
        if let Some(stdin) = &mut child.stdin {
            // A process that does not read it has ended already, which `ended` reports with its reason.
            let _ = writeln!(stdin, "{token}");
        }
        let voice = name.zip(child.stderr.take());
        let voice = voice.map(|(name, stderr)| (name.clone(), Voice::show(name, stderr)));
        Ok(Started { command, token, child, revived: 0, stopped: None, is_told: false, voice })
    }

    /// Whether it is stopped, and was whenever this was asked for that long.
    fn is_stopped_for(&mut self, time: Duration) -> bool {
        self.stopped = is_stopped(self.child.id()).then(|| self.stopped.unwrap_or_else(Instant::now));
        self.stopped.is_some_and(|since| since.elapsed() > time)
    }

    fn again(&mut self) -> Result<()> {
        let command = std::mem::replace(&mut self.command, Command::new(""));
        let name = self.voice.take().map(|(name, _)| name);
        let started = Started::new(command, name, std::mem::take(&mut self.token))?;
        *self = Started { revived: self.revived + 1, ..started };
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let deadline = Instant::now() + FAREWELL;
        // All are told before any is waited for.
        self.0.iter_mut().for_each(|started| drop(started.child.stdin.take()));
        for Started { child, .. } in &mut self.0 {
            while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(2));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Voice {
    fn show(label: String, stderr: ChildStderr) -> Voice {
        let last = Arc::<Mutex<String>>::default();
        let heard = last.clone();
        let reader = std::thread::spawn(move || {
            let mut lines = BufReader::new(stderr);
            let mut line = Vec::new();
            while (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                let text: String = String::from_utf8_lossy(&line).chars().filter(|c| !c.is_control()).collect();
                if !text.trim().is_empty() {
                    // Nothing can be done if even that cannot be written.
                    let _ = writeln!(std::io::stderr(), "{label}: {text}");
                    *heard.lock().unwrap_or_else(PoisonError::into_inner) = text;
                }
                line.clear();
            }
        });
        Voice { last, reader }
    }

    /// Why a process ended: what it said last, or else its status.
    fn reason(&self, status: std::process::ExitStatus) -> String {
        // Its last line may still be on the way. A process of its own that lives on may keep the stream open.
        let deadline = Instant::now() + Duration::from_millis(500);
        while !self.reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        match &*self.last.lock().unwrap_or_else(PoisonError::into_inner) {
            last if last.is_empty() => status.to_string(),
            last => last.clone(),
        }
    }
}

/// Whether a process is stopped, as far as the system says so: its state in `/proc`, behind its name in parentheses.
fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

fn failed(program: &str, error: std::io::Error) -> Error {
    Error::Hosts(format!("cannot start {program} for a worker: {error}"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_stopped_is_told_from_one_that_waits() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut started = Started::new(command, None, String::new()).unwrap();
        assert!(!started.is_stopped_for(Duration::ZERO));
        let kill = |signal: &str| {
            let id = started.child.id().to_string();
            assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        };
        kill("-STOP");
        while !is_stopped(started.child.id()) {
            std::thread::yield_now();
        }
        assert!(!started.is_stopped_for(Duration::from_secs(3600)), "it has only just begun");
        std::thread::sleep(Duration::from_millis(1));
        assert!(started.is_stopped_for(Duration::ZERO));
        started.child.kill().unwrap();
        started.child.wait().unwrap();
    }
}
