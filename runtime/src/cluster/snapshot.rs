//! A state on its way to the driver, while workers go on.
//!
//! A worker that is asked for its state queues a copy and takes the next steps. What it says later comes behind that copy, so a driver
//! that wants to hear it takes the state in first: no answer waits behind a long stream. If a host is lost before all of it is here, the
//! same state can be asked for again, of others.

use super::copies::Agreement;
use super::exchange::Exchange;
use super::stream::Incoming;
use crate::error::{Error, Result};
use crate::layout::{Domain, Layout, State, owners_of_elements};
use crate::number::Number;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The state that all workers were asked for.
pub(super) struct Snapshot<T> {
    layout: Arc<Layout>,
    arrival: Mutex<Arrival<T>>,
}

enum Arrival<T> {
    /// Of workers at this exchange. They have the tasks of these shares.
    Awaited(Arc<Exchange>, Arc<[u32]>),
    /// And how long it took to take in.
    Here(Arc<State<T>>, Duration),
    /// Not all of it was the same everywhere.
    Spoilt(String),
}

impl<T: Number> Snapshot<T> {
    /// Of workers that have just been asked. `owners`: the share of each task.
    pub(super) fn new(exchange: Arc<Exchange>, layout: Arc<Layout>, owners: Arc<[u32]>) -> Snapshot<T> {
        Snapshot { layout, arrival: Mutex::new(Arrival::Awaited(exchange, owners)) }
    }

    fn arrival(&self) -> MutexGuard<'_, Arrival<T>> {
        self.arrival.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it took to take in, if it is here. Whoever is just taking it in is not waited for.
    pub(super) fn took(&self) -> Option<Duration> {
        match *self.arrival.try_lock().ok()? {
            Arrival::Here(_, took) => Some(took),
            _ => None,
        }
    }

    /// Whether it came, and not all of it was the same everywhere.
    pub(super) fn is_spoilt(&self) -> bool {
        self.arrival.try_lock().is_ok_and(|arrival| matches!(*arrival, Arrival::Spoilt(_)))
    }

    /// Others were asked for it.
    pub(super) fn redirect(&self, exchange: Arc<Exchange>, owners: Arc<[u32]>) {
        let mut arrival = self.arrival();
        if !matches!(*arrival, Arrival::Here(..)) {
            *arrival = Arrival::Awaited(exchange, owners);
        }
    }

    /// Waits until it is here.
    ///
    /// # Errors
    /// A worker that was lost.
    pub(super) fn arrive(&self) -> Result<Arc<State<T>>> {
        let mut arrival = self.arrival();
        let (exchange, owners) = match &*arrival {
            Arrival::Here(state, _) => return Ok(state.clone()),
            Arrival::Awaited(exchange, owners) => (exchange, owners),
            Arrival::Spoilt(why) => return Err(Error::Lost(why.clone())),
        };
        let begun = exchange.now();
        let state = self.receive(exchange, owners).map_err(|error| exchange.check().err().unwrap_or(error));
        let (state, agreement) = state?;
        if let Err(Error::Lost(why)) = agreement.check() {
            *arrival = Arrival::Spoilt(why.clone());
            return Err(Error::Lost(why));
        }
        let (state, took) = (Arc::new(state), exchange.now() - begun);
        *arrival = Arrival::Here(state.clone(), took);
        Ok(state)
    }

    fn receive(&self, exchange: &Exchange, owners: &[u32]) -> Result<(State<T>, Agreement)> {
        let layout = &self.layout;
        let (mut state, mut agreement) = (layout.domain.zeros(), Agreement::default());
        let of_elements = owners_of_elements(&layout.domain, owners);
        let workers = exchange.transport().hosts() - 1;
        for host in 1..=workers {
            let mut from = Incoming::new(exchange, host);
            let mut own = |domain: &Domain, owners: &[u32], state: &mut State<T>| {
                let tasks = (0..owners.len()).filter(|&t| owners[t] + 1 == host);
                let mut slots = tasks.map(|t| domain.slots_of_tiles(domain.tiles_of(t..t + 1)));
                slots.try_for_each(|slots| state.read(slots, &mut from))
            };
            own(&layout.domain, owners, &mut state)?;
            for (star, elements) in &mut state.elements {
                own(&layout.elements[star], &of_elements[star], elements)?;
            }
            let read = agreement.read(host - 1, workers, &mut from);
            read.map_err(|error| Error::Cluster(format!("host {host}: {error}")))?;
        }
        Ok((state, agreement))
    }
}
