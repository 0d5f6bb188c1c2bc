//! What asks a command to stop, and how it is heard.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What asks a command to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C, SIGINT.
    Interrupt,
    /// SIGTERM: what schedulers send before they kill.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

impl Signal {
    /// The exit code of a command that it ended, as shells know it: 128 and the number of the signal.
    pub fn code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
            Signal::HangUp => 129,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            Signal::Interrupt => "Ctrl-C",
            Signal::Terminate => "SIGTERM",
            Signal::HangUp => "SIGHUP",
        })
    }
}

/// The signals that a command was sent.
#[derive(Debug, Default)]
pub struct Signals {
    /// In the order in which they came.
    received: Mutex<Vec<Signal>>,
    /// Whether there is a run to stop in good order; otherwise a signal ends the command at once.
    stoppable: AtomicBool,
}

impl Signals {
    /// Takes note of a signal. Returns whether the command is to end at once: it has nothing to finish, or was asked for the
    /// second time, which is meant. Nothing that matters is lost then either, since files are whole at any moment.
    pub fn receive(&self, signal: Signal) -> bool {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.push(signal);
        received.len() == 2 || !self.stoppable.load(Ordering::Relaxed)
    }

    /// The one that came first.
    pub(super) fn first(&self) -> Option<Signal> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).first().copied()
    }

    /// How many came. One ends the steps of a run.
    pub(super) fn count(&self) -> usize {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there is a run to stop in good order.
    #[cfg(feature = "cluster")]
    pub(super) fn is_stoppable(&self) -> bool {
        self.stoppable.load(Ordering::Relaxed)
    }

    /// From now on there is a run to stop in good order.
    pub(super) fn make_stoppable(&self) {
        self.stoppable.store(true, Ordering::Relaxed);
    }
}

/// Has a thread call `told` for each signal that the process is sent from now on, except those that its parent wants ignored,
/// as `nohup` does.
///
/// # Errors
/// What the system says.
#[cfg(unix)]
pub(super) fn watch(told: impl Fn(Signal) + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    const ALL: [(i32, Signal); 3] =
        [(SIGINT, Signal::Interrupt), (SIGTERM, Signal::Terminate), (SIGHUP, Signal::HangUp)];
    let ignored = super::system::ignored_signals();
    let heard = ALL.map(|(number, _)| number).into_iter().filter(|number| ignored >> (number - 1) & 1 == 0);
    let mut signals = signal_hook::iterator::Signals::new(heard)?;
    let listen = move || {
        for number in &mut signals.forever() {
            ALL.iter().filter(|known| known.0 == number).for_each(|known| told(known.1));
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(listen).map(drop)
}

/// Has a thread call `told` at each Ctrl-C.
///
/// # Errors
/// What the system says.
#[cfg(not(unix))]
pub(super) fn watch(told: impl Fn(Signal) + Send + 'static) -> std::io::Result<()> {
    ctrlc::set_handler(move || told(Signal::Interrupt)).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_signal_ends_a_run_at_once_and_the_first_any_other_command() {
        let signals = Signals::default();
        signals.make_stoppable();
        assert_eq!(signals.first(), None);
        let ends = [Signal::Terminate, Signal::Interrupt].map(|signal| signals.receive(signal));
        assert_eq!(ends, [false, true]);
        assert_eq!((signals.first(), signals.count()), (Some(Signal::Terminate), 2));
        assert!(Signals::default().receive(Signal::HangUp));
    }
}
