//! Values of ghosts on their way into the walk that is under way.

use super::early::Early;
use super::links::{Links, breach};
use crate::cluster::values;
use crate::engine::{Arrivals, Lag};
use crate::error::Result;
use meshweft_net::Host;
use std::ops::Range;
use std::sync::Arc;

/// The walk that is under way, and what came before its turn.
#[derive(Default)]
pub(super) struct Ghosts {
    walk: Option<Arc<dyn Arrivals>>,
    epochs: Range<u64>,
    early: Early,
}

impl Ghosts {
    /// A walk over some epochs begins. Returns how many values it could take at once.
    ///
    /// # Errors
    /// It refuses values that came too early.
    pub(super) fn begin(&mut self, walk: Arc<dyn Arrivals>, epochs: Range<u64>, links: Option<&Links>) -> Result<u64> {
        (self.walk, self.epochs) = (Some(walk), epochs);
        let Some(links) = links else { return Ok(0) };
        self.take(self.early.ghosts(), links)
    }

    /// The walk has ended. Returns how many rounds it had.
    pub(super) fn end(&mut self) -> u64 {
        self.walk = None;
        self.epochs.end - self.epochs.start
    }

    /// Takes in a message of values. Returns how many the walk could take.
    ///
    /// # Errors
    /// They are malformed, or the walk refuses them.
    pub(super) fn arrive(&mut self, from: Host, message: &[u8], links: &Links) -> Result<u64> {
        let Some(epoch) = values::epoch(message) else { return breach("no epoch") };
        let mut named = Vec::new();
        for task in values::tasks(message) {
            let Some((name, bits)) = task else { return breach("cut short") };
            let t = links.ghost(from, name, bits.len())?;
            if !self.early.put(t, epoch, bits) {
                return breach("a task that is rounds ahead");
            }
            named.push(t);
        }
        self.take(named, links)
    }

    fn take(&mut self, looks: Vec<u32>, links: &Links) -> Result<u64> {
        let Some(walk) = &self.walk else { return Ok(0) };
        self.early.take(&**walk, &self.epochs, looks, |t| links.around(t))
    }

    /// How many tasks the walk has drawn, and what the next ones wait for, if one is under way.
    pub(super) fn lags(&self) -> Option<(u64, Vec<Lag>)> {
        self.walk.as_ref().map(|walk| walk.lags())
    }
}
