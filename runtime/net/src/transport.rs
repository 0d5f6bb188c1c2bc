//! Messages between the hosts of a run.
//!
//! What a [`Transport`] promises: between two hosts messages arrive whole, in the order they were sent, each once. If that cannot
//! be kept any more, the host is told as lost, once, after the last message that did arrive; nothing comes from it
//! afterwards. Between three hosts nothing is promised about order: what A sent to C may come after what B sent to C because of it.
//!
//! What arrives is handed to a [`Sink`], on the thread that moves the network: one of its own, or one that had a moment
//! ([`Transport::turn`]). A sink that takes long holds up every connection
//! of its host, and the other ends then wait with what they send: that bounds memory, and is no way to run. A sink
//! that is stuck for the dead-timeout makes its host a lost one. So a sink files the message and returns.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of a host in a run: 0 is the driver, workers are 1, 2, ...
pub type Host = u32;

/// Bytes of a message at most. Larger things are sent in parts.
pub const MAX_MESSAGE: usize = 8 << 20;

/// What a transport has to tell.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A host sent a message.
    Message {
        /// Its sender.
        from: Host,
        /// The message, whole.
        bytes: Vec<u8>,
    },
    /// A host is gone. It is told once, and nothing comes from that host afterwards.
    Lost {
        /// The host.
        host: Host,
        /// The reason, in words.
        why: String,
    },
}

/// Where events go. It is called on the thread that moves the network, one at a time, so it must be quick, and must not wait for the
/// network.
pub type Sink = Arc<dyn Fn(Event) + Send + Sync>;

/// What went between this host and another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Messages handed to the network.
    pub sent_messages: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Messages handed to the sink.
    pub received_messages: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Bytes a second that the way there carries, measured on what went there: infinity within a process. None: not known yet.
    pub rate: Option<f64>,
}

/// Carries whole messages between the hosts of a run: in order between two hosts, each once, or the loss is told.
pub trait Transport: Send + Sync {
    /// Returns the number of this host.
    fn host(&self) -> Host;

    /// Returns how many hosts there are, the driver included.
    fn hosts(&self) -> u32;

    /// Queues a message and returns at once. After a loss, or a goodbye, it is dropped.
    ///
    /// # Panics
    /// If it is longer than [`MAX_MESSAGE`], or if `to` is this host or none of the run.
    fn send(&self, to: Host, message: Vec<u8>);

    /// Waits until at most `bytes` are queued for `to`. Returns false if that host was lost or the deadline passed.
    fn wait_for_room(&self, to: Host, bytes: usize, deadline: Instant) -> bool;

    /// Lets the calling thread move the network on for a moment, if no other does: sends what is queued, hands what has come to the
    /// sink. Returns whether it did. A network that nobody moves moves itself, at the cost of waking a thread.
    fn turn(&self) -> bool {
        false
    }

    /// The same until `done`, or as long as `most`. Returns at once, and false, where another thread does it.
    fn rest(&self, most: Duration, done: &dyn Fn() -> bool) -> bool {
        let _ = (most, done);
        false
    }

    /// Returns what went between this host and another.
    fn traffic(&self, with: Host) -> Traffic;

    /// Says goodbye: waits until every host that is left has said so too and both sides have read everything, then closes.
    /// After the goodbye's deadline it closes anyway, and hosts that did not say goodbye learn of a loss.
    fn close(&self);

    /// Leaves without a goodbye: the others learn of a loss at once.
    fn leave(&self);
}

/// Refuses what no caller may ask for.
pub(crate) fn check(transport: &dyn Transport, to: Host, message: &[u8]) {
    assert!(to < transport.hosts() && to != transport.host(), "host {to} is another host of the run");
    assert!(message.len() <= MAX_MESSAGE, "a message of {} bytes was cut into parts of {MAX_MESSAGE}", message.len());
}
