//! Processes that tests start: with the signals that a terminal gives, for a bounded time, and none is left behind.

use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than any process of a test takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(300);

/// The command.
pub(crate) fn meshweft() -> Command {
    take_signals();
    Command::new(env!("CARGO_BIN_EXE_meshweft"))
}

/// Takes the signals that this process was started to ignore, as `nohup` and jobs of scripts are. What a process ignores its
/// children ignore too; what it handles they have by default.
fn take_signals() {
    #[cfg(target_os = "linux")]
    for signal in [signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        if ignored >> (signal - 1) & 1 == 1 {
            signal_hook::flag::register(signal, std::sync::Arc::default()).unwrap();
        }
    }
}

/// A process that is ended with the test.
pub(crate) struct Process(Option<Child>);

impl Process {
    /// Waits until it ends.
    ///
    /// # Panics
    /// If that takes too long; it is killed then.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LONGEST;
        loop {
            if let Some(status) = self.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "process {} does not end", self.id());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The same, with what it says meanwhile.
    ///
    /// # Panics
    /// As there.
    pub(crate) fn output(mut self) -> Output {
        fn all(stream: Option<impl Read + Send + 'static>) -> impl FnOnce() -> Vec<u8> {
            let reader = stream.map(|mut stream| {
                std::thread::spawn(move || {
                    let mut bytes = Vec::new();
                    stream.read_to_end(&mut bytes).map(|_| bytes).unwrap_or_default()
                })
            });
            || reader.map_or(Vec::new(), |reader| reader.join().unwrap())
        }
        let (stdout, stderr) = (all(self.stdout.take()), all(self.stderr.take()));
        Output { status: self.wait(), stdout: stdout(), stderr: stderr() }
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect("it is there until the end")
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("it is there until the end")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What tests do with commands.
pub(crate) trait Start {
    /// Starts it.
    fn started(&mut self) -> Process;

    /// Runs it to its end, and takes what it says.
    fn ended(&mut self) -> Output;
}

impl Start for Command {
    fn started(&mut self) -> Process {
        Process(Some(self.spawn().unwrap()))
    }

    fn ended(&mut self) -> Output {
        self.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).started().output()
    }
}
