//! Hosts that were lost.

use crate::error::{Error, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first host that was lost, and why, as long as none may leave.
#[derive(Default)]
pub(super) struct Loss {
    first: OnceLock<Error>,
    /// Whether hosts may leave.
    is_over: AtomicBool,
}

impl Loss {
    /// A host is gone, or says what none says: the error tells which. Returns whether that matters.
    pub(super) fn note(&self, what: Error) -> bool {
        let matters = !self.is_finished();
        if matters {
            let _ = self.first.set(what);
        }
        matters
    }

    /// From here on hosts may leave.
    pub(super) fn finish(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn is_any(&self) -> bool {
        self.first.get().is_some()
    }

    /// # Errors
    /// A host was lost: it says which and why.
    pub(super) fn check(&self) -> Result<()> {
        match self.first.get() {
            None => Ok(()),
            Some(Error::Lost(what)) => Err(Error::Lost(what.clone())),
            Some(breach) => Err(Error::Cluster(breach.to_string().trim_start_matches("cluster: ").into())),
        }
    }
}
