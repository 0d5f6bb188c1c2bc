//! What lies beyond the tasks of a domain that is one of several.

use crate::error::Result;
use std::ops::Range;
use std::sync::Arc;

/// Carries what tasks at the border come to, and says that something has come from beyond.
///
/// Epochs count the rounds of all walks: what is one walk here may be two elsewhere.
pub(crate) trait Border: Send + Sync {
    /// A walk over some epochs begins: what ghosts come to in those goes to `walk`, also what came too early.
    ///
    /// # Errors
    /// What came too early makes no sense, or somebody was lost.
    fn begin(&self, walk: Arc<dyn Arrivals>, epochs: Range<u64>) -> Result<()>;

    /// Own task `t` has come to `epoch`: what others are to know of it, and who. `gather` appends the bits of the shared state
    /// of some slots of it.
    fn pack(&self, t: u32, epoch: u64, gather: &dyn Fn(&[u32], &mut Vec<u8>)) -> Vec<(u32, Vec<u8>)>;

    /// Sends it, now that everybody here may know: an answer may follow at once.
    fn post(&self, parcels: Vec<(u32, Vec<u8>)>);

    /// Whether somebody was lost, so that nothing more may be waited for.
    fn is_cut_off(&self) -> bool;

    /// Waits a little for what may come.
    fn rest(&self);

    /// The walk has ended.
    ///
    /// # Errors
    /// Somebody was lost meanwhile.
    fn end(&self) -> Result<()>;
}

/// A walk that takes what ghosts have come to.
pub(crate) trait Arrivals: Send + Sync {
    /// Whether ghost `t` may come to `epoch` now: it stands before that, and so do its neighbors here.
    fn is_due(&self, t: u32, epoch: u64) -> bool;

    /// Ghost `t` has come to `epoch`, with the bits of the shared state of its vertices. One call at a time, and only when due.
    ///
    /// # Errors
    /// It is not due, or other bits are: nothing is changed then.
    fn arrive(&self, t: u32, epoch: u64, bits: &[u8]) -> Result<()>;
}
