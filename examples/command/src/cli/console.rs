//! What a command talks to.

use super::signals::{Signal, Signals};
use std::io::Write;
use std::sync::Arc;

/// Where a command writes, and how it is interrupted.
pub struct Console<'a> {
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
    /// Whether standard error is a terminal, on which a progress bar can be drawn.
    pub terminal: bool,
    /// The signals that ask a run to stop. It finishes its step and writes what it has; at a second one it ends.
    pub signals: Arc<Signals>,
}

impl<'a> Console<'a> {
    /// A console without a terminal and without signals.
    pub fn new(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Console<'a> {
        Console { out, err, terminal: false, signals: Arc::default() }
    }
}

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All went well.
    Done,
    /// A check found what it must not find.
    Wrong,
    /// A signal stopped it.
    Stopped(Signal),
}
