//! Workers that may join a run, and for which there is no place yet.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A worker that has not asked for so long has gone.
const GONE: Duration = Duration::from_secs(2);
/// How soon a worker asks again.
pub(super) const AGAIN: Duration = Duration::from_millis(300);
/// Workers that are known, at most.
const MOST: usize = 256;

/// Who has asked lately, by the address that a worker asks from.
#[derive(Default)]
pub(super) struct Knocks(Mutex<BTreeMap<SocketAddr, Instant>>);

impl Knocks {
    /// One asks, and has shown that it may join.
    pub(super) fn note(&self, address: SocketAddr) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, last| last.elapsed() < GONE);
        if all.len() < MOST {
            all.insert(address, Instant::now());
        }
    }

    /// Where those are that are waiting.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(_, last)| last.elapsed() < GONE).map(|(&address, _)| address).collect()
    }

    /// How many are waiting.
    pub(super) fn count(&self) -> u32 {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().filter(|last| last.elapsed() < GONE).count() as u32
    }
}
