//! Messages that wait until the host's own thread asks for them.

use super::lock;
use crate::cluster::message::DRIVER;
use meshweft_net::Host;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Bytes of one host that may wait, at most, besides what is known to come.
const MOST: usize = 64 << 20;

/// Messages and their senders, in the order in which they came.
#[derive(Default)]
pub(super) struct Mail(Mutex<Letters>);

#[derive(Default)]
struct Letters {
    waiting: VecDeque<(Host, Vec<u8>)>,
    /// Of each host, bytes that wait.
    bytes: Vec<usize>,
    /// What is known to come of one.
    more: usize,
}

impl Mail {
    /// From here on as many more bytes of each host may wait.
    pub(super) fn expect(&self, more: usize) {
        lock(&self.0).more = more;
    }

    /// Keeps a message of the driver.
    pub(super) fn put_all(&self, message: Vec<u8>) {
        let mut mail = lock(&self.0);
        mail.waiting.push_back((DRIVER, message));
    }

    /// Keeps a message. Returns whether there is room for it.
    pub(super) fn put(&self, from: Host, message: Vec<u8>) -> bool {
        let mut mail = lock(&self.0);
        let (place, most) = (from as usize, MOST + mail.more);
        let hosts = mail.bytes.len().max(place + 1);
        mail.bytes.resize(hosts, 0);
        let has_room = mail.bytes[place] + message.len() <= most;
        if has_room {
            mail.bytes[place] += message.len();
            mail.waiting.push_back((from, message));
        }
        has_room
    }

    /// The first that is asked for.
    pub(super) fn take(&self, mut wants: impl FnMut(Host, &[u8]) -> bool) -> Option<(Host, Vec<u8>)> {
        let mut mail = lock(&self.0);
        let i = mail.waiting.iter().position(|(from, message)| wants(*from, message))?;
        let (from, message) = mail.waiting.remove(i)?;
        if let Some(bytes) = mail.bytes.get_mut(from as usize) {
            *bytes = bytes.saturating_sub(message.len());
        }
        Some((from, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_of_a_host_is_bounded_and_of_others_too() {
        let mail = Mail::default();
        let piece = || vec![1; 1 << 20];
        assert!((0..64).all(|_| mail.put(2, piece())));
        assert!(!mail.put(2, vec![1]) && mail.put(1, piece()));
        mail.take(|from, _| from == 2).unwrap();
        assert!(mail.put(2, piece()) && !mail.put(2, vec![1]));
        mail.expect(3);
        assert!(mail.put(2, vec![1; 3]) && !mail.put(2, vec![1]));
    }
}
