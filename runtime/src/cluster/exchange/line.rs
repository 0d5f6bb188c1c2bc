//! A host's line to the others: what carries messages, and what has come of it.

use super::lock;
use meshweft_net::{Event, Host, Transport};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// A transport, and what it has handed in.
#[derive(Default)]
pub(super) struct Line {
    transport: OnceLock<Arc<dyn Transport>>,
    /// What has come and was not handed out yet.
    events: Mutex<VecDeque<Event>>,
    turn: Mutex<()>,
}

impl Line {
    pub(super) fn connect(&self, transport: Arc<dyn Transport>) {
        assert!(self.transport.set(transport).is_ok(), "an exchange has one transport");
    }

    pub(super) fn transport(&self) -> &Arc<dyn Transport> {
        self.transport.get().expect("a host that speaks is connected")
    }

    pub(super) fn send(&self, to: Host, message: Vec<u8>) {
        self.transport().send(to, message);
    }

    /// Something has come of the network.
    pub(super) fn event(&self, event: Event) {
        lock(&self.events).push_back(event);
    }

    /// While this is held, no other thread hands out what has come: values of a ghost come in order.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// What has come and was not handed out yet, once it is connected; none once that is all.
    pub(super) fn poll(&self) -> Option<Event> {
        self.transport.get()?;
        lock(&self.events).pop_front()
    }
}
