//! Messages that wait until the host's own thread asks for them.

use super::lock;
use meshweft_net::Host;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Messages and their senders, in the order in which they came.
#[derive(Default)]
pub(super) struct Mail(Mutex<VecDeque<(Host, Vec<u8>)>>);

impl Mail {
    pub(super) fn put(&self, from: Host, message: Vec<u8>) {
        lock(&self.0).push_back((from, message));
    }

    /// The first that is asked for.
    pub(super) fn take(&self, mut wants: impl FnMut(Host, &[u8]) -> bool) -> Option<(Host, Vec<u8>)> {
        let mut mail = lock(&self.0);
        let i = mail.iter().position(|(from, message)| wants(*from, message))?;
        mail.remove(i)
    }
}
