//! Names that are known only when a program runs.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The same text for as long as the process lives, as the names of compiled programs are. Each is kept once: memory grows by the names that
/// there are, not by how often they are asked for.
pub(crate) fn lasting(name: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(name) {
        return known;
    }
    let name: &'static str = String::leak(name.into());
    known.insert(name);
    name
}
