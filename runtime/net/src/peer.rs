//! What one host owes another: every message once, in order, whatever the network does in between.
//!
//! A state machine without socket and clock. Time is an argument: seconds since some start, as a [`Duration`]. What comes in goes to
//! [`Peer::send`], [`Peer::handle`] and [`Peer::handle_timeout`]; what is to go out comes from [`Peer::poll_transmit`], what has
//! come from [`Peer::poll_message`], what went wrong from [`Peer::poll_lost`].
//!
//! Each frame carries the run, the incarnation, the sender and a sequence number. Frames of another run or incarnation are
//! dropped: a worker that was frozen, given up and replaced cannot speak any more. Over a network that loses frames
//! ([`Network::Lossy`]) the receiver says up to where it has everything, and what is not acknowledged in time is sent again;
//! one that keeps order and loses nothing ([`Network::Reliable`], such as a QUIC stream) needs neither.

use crate::transport::Host;
use crate::wire::{Reader, Writer};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What a network does to frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// It delivers them in order, each once, or tells the loss of the host.
    Reliable,
    /// It may lose, repeat and reorder them.
    Lossy {
        /// After which time a frame that is not acknowledged is sent again.
        resend: Duration,
        /// After which silence a host is given up.
        dead: Duration,
    },
}

/// A host, and the run in which it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Tells runs apart.
    pub run: u64,
    /// How often the run was started again.
    pub incarnation: u32,
    /// The number of this host.
    pub host: Host,
}

/// One end of all conversations of a host.
pub struct Peer {
    identity: Identity,
    network: Network,
    links: Vec<Link>,
    /// Messages that have come, in order of each sender.
    messages: VecDeque<(Host, Vec<u8>)>,
    lost: VecDeque<(Host, String)>,
}

/// Frames that may be on their way to a host, at most: what was sent beyond that waits.
const WINDOW: u64 = 1024;
/// How often a silent host says that it lives before it is given up. Of four, all are lost once in 600 silences where one frame in
/// five is.
const SIGNS_OF_LIFE: u32 = 20;
/// `MWF1`.
const MAGIC: u32 = 0x3146_574d;
/// Bytes before the message: magic, sender, run, incarnation, kind, sequence number, acknowledgement.
const HEADER: usize = 40;

/// The conversation with one other host.
#[derive(Default)]
struct Link {
    /// The sequence number of the next message.
    next: u64,
    /// Messages that wait for room in the window.
    waiting: VecDeque<Vec<u8>>,
    /// Frames that are not acknowledged, with when they were sent last.
    unacknowledged: VecDeque<(u64, Vec<u8>, Option<Duration>)>,
    /// Everything before this number has come.
    expected: u64,
    /// What came before its turn.
    early: BTreeMap<u64, Vec<u8>>,
    /// Whether the other end is to be told what has come.
    owes: bool,
    /// When something last went there, and came from there.
    sent: Duration,
    heard: Duration,
    is_lost: bool,
}

impl Peer {
    /// Makes one end among `hosts` hosts, at time zero.
    pub fn new(identity: Identity, hosts: u32, network: Network) -> Peer {
        let links = (0..hosts).map(|_| Link::default()).collect();
        Peer { identity, network, links, messages: VecDeque::new(), lost: VecDeque::new() }
    }

    /// Queues a message for another host; one for a host that is lost is dropped.
    pub fn send(&mut self, to: Host, message: Vec<u8>) {
        let link = &mut self.links[to as usize];
        if !link.is_lost {
            link.waiting.push_back(message);
        }
    }

    /// Takes in a frame that has come. One of another run is dropped, one that breaks the protocol loses its sender.
    pub fn handle(&mut self, now: Duration, from: Host, frame: Vec<u8>) {
        let Some(header) = Header::read(&frame) else { return };
        let Identity { run, incarnation, .. } = self.identity;
        if (header.run, header.incarnation, header.from) != (run, incarnation, from) {
            return;
        }
        let network = self.network;
        let Some(link) = self.links.get_mut(from as usize).filter(|link| !link.is_lost) else { return };
        link.heard = now;
        if header.acknowledged > link.next {
            return self.lose(from, "it acknowledges what was never sent".into());
        }
        while link.unacknowledged.front().is_some_and(|frame| frame.0 < header.acknowledged) {
            link.unacknowledged.pop_front();
        }
        if !header.has_message {
            return;
        }
        link.owes = network != Network::Reliable;
        let number = header.number;
        if number < link.expected {
            return; // twice
        }
        if number >= link.expected + WINDOW || (network == Network::Reliable && number != link.expected) {
            let expected = link.expected;
            return self.lose(from, format!("it sends message {number} where {expected} is due"));
        }
        let mut message = frame;
        message.drain(..HEADER);
        link.early.insert(number, message);
        while let Some(message) = link.early.remove(&link.expected) {
            link.expected += 1;
            self.messages.push_back((from, message));
        }
    }

    /// Returns the next frame to send, and to whom.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<(Host, Vec<u8>)> {
        let (identity, network) = (self.identity, self.network);
        for (to, link) in (0..).zip(&mut self.links).filter(|(to, link)| *to != identity.host && !link.is_lost) {
            let frame = match network {
                Network::Reliable => link.waiting.pop_front().map(|message| link.frame(identity, Some(message))),
                Network::Lossy { resend, dead } => link.next_frame(identity, now, resend, dead),
            };
            if let Some(frame) = frame {
                (link.owes, link.sent) = (false, now);
                return Some((to, frame));
            }
        }
        None
    }

    /// Returns the next message that has come, and from whom.
    pub fn poll_message(&mut self) -> Option<(Host, Vec<u8>)> {
        self.messages.pop_front()
    }

    /// Returns the next host that was lost, and why.
    pub fn poll_lost(&mut self) -> Option<(Host, String)> {
        self.lost.pop_front()
    }

    /// Gives up hosts that were silent for too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        let Network::Lossy { dead, .. } = self.network else { return };
        for host in 0..self.links.len() as u32 {
            let link = &self.links[host as usize];
            if host != self.identity.host && !link.is_lost && now >= link.heard + dead {
                self.lose(host, format!("nothing has come from it for {:.1} s", (now - link.heard).as_secs_f64()));
            }
        }
    }

    /// Returns when to call [`Peer::handle_timeout`] next, if at all.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let Network::Lossy { resend, dead } = self.network else { return None };
        let others = (0..).zip(&self.links).filter(|(host, link)| *host != self.identity.host && !link.is_lost);
        let next = |link: &Link| {
            let again = link.unacknowledged.iter().filter_map(|frame| Some(frame.2? + resend)).min();
            let alive = (link.heard + dead).min(link.sent + dead / SIGNS_OF_LIFE);
            again.map_or(alive, |again| again.min(alive))
        };
        others.map(|(_, link)| next(link)).min()
    }

    /// Takes note that a host is gone.
    pub fn lose(&mut self, host: Host, why: String) {
        let link = &mut self.links[host as usize];
        if !link.is_lost {
            *link = Link { is_lost: true, ..Link::default() };
            self.lost.push_back((host, why));
        }
    }
}

impl Link {
    /// What goes next over a network that loses frames: what was not acknowledged in time, then what waits, then a sign of
    /// life.
    fn next_frame(&mut self, identity: Identity, now: Duration, resend: Duration, dead: Duration) -> Option<Vec<u8>> {
        let expected = self.expected;
        let is_due = |sent: Option<Duration>| sent.is_none_or(|sent| now >= sent + resend);
        if let Some((number, message, sent)) = self.unacknowledged.iter_mut().find(|frame| is_due(frame.2)) {
            *sent = Some(now);
            let header = Header::of(identity, Some(*number), expected);
            return Some(header.write(message));
        }
        let room = self.unacknowledged.front().is_none_or(|oldest| self.next < oldest.0 + WINDOW);
        if room && let Some(message) = self.waiting.pop_front() {
            let frame = self.frame(identity, Some(message.clone()));
            self.unacknowledged.push_back((self.next - 1, message, Some(now)));
            return Some(frame);
        }
        (self.owes || now >= self.sent + dead / SIGNS_OF_LIFE).then(|| self.frame(identity, None))
    }

    fn frame(&mut self, identity: Identity, message: Option<Vec<u8>>) -> Vec<u8> {
        let number = message.as_ref().map(|_| self.next);
        self.next += u64::from(message.is_some());
        Header::of(identity, number, self.expected).write(&message.unwrap_or_default())
    }
}

/// What stands before a message.
struct Header {
    from: Host,
    run: u64,
    incarnation: u32,
    has_message: bool,
    number: u64,
    /// Everything before this number has come.
    acknowledged: u64,
}

impl Header {
    fn of(identity: Identity, number: Option<u64>, acknowledged: u64) -> Header {
        let Identity { run, incarnation, host } = identity;
        let (has_message, number) = (number.is_some(), number.unwrap_or(0));
        Header { from: host, run, incarnation, has_message, number, acknowledged }
    }

    fn write(&self, message: &[u8]) -> Vec<u8> {
        let frame = Writer(Vec::with_capacity(HEADER + message.len())).number(MAGIC).number(self.from).long(self.run);
        let frame = frame.number(self.incarnation).number(self.has_message.into());
        frame.long(self.number).long(self.acknowledged).fixed(message).0
    }

    /// None if it is malformed.
    fn read(frame: &[u8]) -> Option<Header> {
        let mut frame = Reader(frame);
        frame.number().filter(|magic| *magic == MAGIC)?;
        Some(Header {
            from: frame.number()?,
            run: frame.long()?,
            incarnation: frame.number()?,
            has_message: frame.number().filter(|count| *count <= 1)? == 1,
            number: frame.long()?,
            acknowledged: frame.long()?,
        })
    }
}
