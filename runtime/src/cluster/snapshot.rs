//! A state on its way to the driver, while workers go on.
//!
//! A worker that is asked for its state queues a copy and takes the next steps. What it says later comes behind that copy, so a driver
//! that wants to hear it takes the state in first: no answer waits behind a long stream.

use super::exchange::Exchange;
use super::stream::Incoming;
use crate::error::{Error, Result};
use crate::layout::{Layout, State};
use crate::number::Number;
use std::sync::{Arc, Mutex, PoisonError};

/// The state that all workers were asked for.
pub(super) struct Snapshot<T> {
    exchange: Arc<Exchange>,
    layout: Arc<Layout>,
    /// The share of each task.
    owners: Arc<[u32]>,
    state: Mutex<Arrival<T>>,
}

enum Arrival<T> {
    Awaited,
    Here(Result<State<T>>),
    Taken,
}

impl<T: Number> Snapshot<T> {
    /// Of workers that have just been asked.
    pub(super) fn new(exchange: Arc<Exchange>, layout: Arc<Layout>, owners: Arc<[u32]>) -> Snapshot<T> {
        Snapshot { exchange, layout, owners, state: Mutex::new(Arrival::Awaited) }
    }

    /// Waits until it is here.
    pub(super) fn arrive(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Arrival::Awaited = *state {
            *state = Arrival::Here(self.receive());
        }
    }

    /// Waits for it, and hands it out.
    ///
    /// # Errors
    /// A worker that was lost; a state that was handed out before.
    pub(super) fn take(&self) -> Result<State<T>> {
        self.arrive();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, Arrival::Taken) {
            Arrival::Here(state) => state,
            _ => Err(Error::Internal("a state was asked for once and taken twice".into())),
        }
    }

    fn receive(&self) -> Result<State<T>> {
        let layout = &self.layout;
        let mut state = State::zeros(layout.slots(), layout.shape);
        for host in 1..self.exchange.transport().hosts() {
            let mut from = Incoming::new(&self.exchange, host);
            for t in (0..self.owners.len()).filter(|&t| self.owners[t] + 1 == host) {
                state.read(layout.slots_of_tiles(layout.tiles_of(t..t + 1)), &mut from)?;
            }
        }
        Ok(state)
    }
}
