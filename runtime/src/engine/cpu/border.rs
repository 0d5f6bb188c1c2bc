//! What lies beyond the tasks of a domain that is one of several.

use crate::error::Result;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Values of one ghost that may wait for their turn, at most: neighbors are never more than one round apart, and nobody else is ahead by more
/// than these (`Cpu::project`).
pub(crate) const AHEAD: usize = 4;

/// What one thread has for other hosts, and has not sent yet.
///
/// Small tasks at the border come one after the other, so the results of several of them go out as one message a host.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The epoch of all of it.
    pub(crate) epoch: u64,
    /// Hosts, and what is for them.
    pub(crate) messages: Vec<(u32, Vec<u8>)>,
    /// When the first of this was put in.
    pub(crate) begun: Duration,
    /// When the thread last looked for what has come.
    pub(crate) looked: Duration,
}

/// Carries the results of tasks at the border, and says that something has come from beyond.
///
/// Epochs count the rounds of all walks: what is one walk here may be two elsewhere.
pub(crate) trait Border: Send + Sync {
    /// A walk over some epochs begins: values of ghosts in those go to `walk`, early ones too.
    ///
    /// # Errors
    /// Early values are malformed, or a host was lost.
    fn begin(&self, walk: Arc<dyn Arrivals>, epochs: Range<u64>) -> Result<()>;

    /// Whether own task `t` is read by others.
    fn is_read(&self, t: u32) -> bool;

    /// Own task `t` has done `epoch` rounds: what others are to know of it goes into `outbox`, which holds nothing of another epoch.
    /// `gather` appends the bits of the shared state of some slots of it; none if an update of a quiet kernel has left them as they
    /// were, and others then know them already.
    fn pack(&self, outbox: &mut Outbox, t: u32, epoch: u64, gather: &dyn Fn(&[u32], &mut Vec<u8>));

    /// Sends what is in `outbox`, now that all threads here see the tasks done: an answer may follow at once. It may wait a little if
    /// what the thread does next `adds` to it.
    fn post(&self, outbox: &mut Outbox, adds: bool);

    /// Whether a host was lost, so that nothing more may be waited for.
    fn is_cut_off(&self) -> bool;

    /// Takes what has come, if the thread with this outbox has not looked for it lately.
    fn look(&self, outbox: &mut Outbox);

    /// Waits a little for what may come.
    fn rest(&self);

    /// The walk has ended.
    ///
    /// # Errors
    /// A host was lost meanwhile.
    fn end(&self) -> Result<()>;
}

/// A walk that takes the values of ghosts.
pub(crate) trait Arrivals: Send + Sync {
    /// The numbers of its tasks among those of all domains here.
    fn tasks(&self) -> Range<u32>;

    /// Whether ghost `t` is of this walk, and may advance to `epoch` now: it stands before that, and so do its neighbors here.
    fn is_due(&self, t: u32, epoch: u64) -> bool;

    /// Ghost `t` has advanced to `epoch`, with the bits of the shared state of its vertices; with none after an update of a quiet kernel
    /// that has changed nothing. One call at a time, and only when due.
    ///
    /// # Errors
    /// It is not due, other bits are, or there are none after any other update: nothing is changed then.
    fn arrive(&self, t: u32, epoch: u64, bits: &[u8]) -> Result<()>;

    /// How many tasks were drawn so far, and what the next ones wait for.
    fn lags(&self) -> (u64, Vec<Lag>);
}

/// A task that cannot run yet because of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lag {
    pub(crate) task: u32,
    /// Its next epoch.
    pub(crate) epoch: u64,
    /// The task that lags behind.
    pub(crate) of: u32,
}
