//! A host's line to the others: what makes messages of frames, and what carries these.

use super::lock;
use meshweft_net::peer::Peer;
use meshweft_net::{Event, Host, Transport};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// A peer and its transport. Time is an argument of whatever may send.
#[derive(Default)]
pub(super) struct Line {
    /// None until it is connected.
    peer: Mutex<Option<Peer>>,
    /// What came before that.
    first: Mutex<Vec<Event>>,
    transport: OnceLock<Arc<dyn Transport>>,
    turn: Mutex<()>,
}

/// What came of a line.
pub(super) struct News {
    pub(super) message: Option<(Host, Vec<u8>)>,
    pub(super) lost: Option<(Host, String)>,
}

impl Line {
    pub(super) fn connect(&self, peer: Peer, transport: Arc<dyn Transport>, now: Duration) {
        assert!(self.transport.set(transport).is_ok(), "an exchange has one transport");
        let mut own = lock(&self.peer);
        *own = Some(peer);
        let first = std::mem::take(&mut *lock(&self.first));
        for event in first {
            self.take(&mut own, event, now);
        }
    }

    pub(super) fn transport(&self) -> &Arc<dyn Transport> {
        self.transport.get().expect("a host that speaks is connected")
    }

    pub(super) fn send(&self, to: Host, message: Vec<u8>, now: Duration) {
        let mut peer = lock(&self.peer);
        let peer = peer.as_mut().expect("a host that speaks is connected");
        peer.send(to, message);
        self.flush(peer, now);
    }

    /// Something has come of the network.
    pub(super) fn event(&self, event: Event, now: Duration) {
        self.take(&mut lock(&self.peer), event, now);
    }

    fn take(&self, peer: &mut Option<Peer>, event: Event, now: Duration) {
        match (peer, event) {
            (None, event) => lock(&self.first).push(event),
            (Some(peer), Event::Message { from, bytes }) => {
                peer.handle(now, from, bytes);
                self.flush(peer, now);
            }
            (Some(peer), Event::Lost { host, why }) => peer.lose(host, why),
        }
    }

    /// Sends what is to go out.
    fn flush(&self, peer: &mut Peer, now: Duration) {
        while let Some((to, frame)) = peer.poll_transmit(now) {
            self.transport().send(to, frame);
        }
    }

    /// While this is held, no other thread hands out what has come: values of a ghost come in order.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// What has come and was not handed out yet; none once that is all.
    pub(super) fn poll(&self) -> Option<News> {
        let mut peer = lock(&self.peer);
        let peer = peer.as_mut()?;
        let (message, lost) = (peer.poll_message(), peer.poll_lost());
        (message.is_some() || lost.is_some()).then_some(News { message, lost })
    }

    /// Time has passed: a peer may have to say something again, or give a host up. Returns when it next does.
    #[cfg(test)]
    pub(super) fn pass_time(&self, now: Duration) -> Option<Duration> {
        let mut peer = lock(&self.peer);
        let peer = peer.as_mut()?;
        peer.handle_timeout(now);
        self.flush(peer, now);
        peer.poll_timeout()
    }
}
