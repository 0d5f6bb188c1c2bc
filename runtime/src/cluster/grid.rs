//! A host's links to the others of its column and its row.
//!
//! What a host has found for the vertices of its row goes to their owners in a reduction that halves what is left at each step: the
//! hosts of a group part in the middle of their numbers, and so of the ids that they own; each sends one of the other half what it has
//! for that half, and merges what comes for its own. A group of n parts into ⌈n/2⌉ and ⌊n/2⌋, whatever n is:
//!
//! ```text
//!  hosts of a row      0   1   2 │ 3   4        0 ⇄ 3, 1 ⇄ 4, 2 → 4
//!  after a step        0   1 │ 2   3 │ 4        0 ⇄ 2, 1 → 2, 3 ⇄ 4
//!  after two           0 │ 1   2   3   4        0 ⇄ 1
//! ```
//!
//! Each host sends about as much as it has found, in ⌈log₂ n⌉ steps, and offers for one vertex become one on the way.
//!
//! Source: Rabenseifner, "A new optimized MPI reduce algorithm", 1997.

use super::agreement::{PATIENCE, vote};
use super::exchange::Exchange;
use super::frontier::{Packer, Sent, To};
use super::kind::SEARCH;
use super::packing::Compress;
use crate::engine::{Folding, Less, Offers, Sides};
use crate::error::{Error, Result};
use crate::layout::{Blocks, Domain, Share, View};
use crate::number::Number;
use meshweft_net::Host;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a piece of a message: far from what a transport takes.
const PIECE: usize = 4 << 20;
/// Bytes a second that a network is taken to carry until that was measured: a search has few messages, and the first are as long as any.
const GIGABIT: f64 = 125e6;
/// What stands before each piece: its kind, what it is a piece of, and whether it is the last.
const HEAD: usize = 3;

/// What a message is about.
#[derive(Clone, Copy)]
enum About {
    Frontier,
    Offers,
    Border,
}

/// The links of a host.
pub(super) struct Lines {
    exchange: Arc<Exchange>,
    packer: Packer<Box<dyn Fn() -> Duration + Send + Sync>>,
    /// Hosts of its column and which of them it is; of its row.
    column: (Vec<Host>, usize),
    row: (Vec<Host>, usize),
    /// Where the vertices of each start, and the end.
    starts: [Vec<u32>; 2],
    /// Vertices of the whole mesh, and reals that neighbors see of each.
    vertices: u32,
    reals: usize,
}

impl Lines {
    pub(super) fn new(exchange: &Arc<Exchange>, blocks: &Blocks, domain: &Domain, compress: Compress) -> Lines {
        let [rows, columns] = blocks.grid;
        let share = exchange.transport().host() - 1;
        let (row, column) = (share / columns, share % columns);
        let clock = exchange.clone();
        Lines {
            exchange: exchange.clone(),
            packer: Packer::new(compress, Box::new(move || clock.now())),
            column: ((0..rows).map(|row| 1 + row * columns + column).collect(), row as usize),
            row: ((0..columns).map(|column| 1 + row * columns + column).collect(), column as usize),
            starts: [blocks.column.clone(), blocks.row.clone()],
            vertices: domain.vertices() as u32,
            reals: domain.shape.shared,
        }
    }

    /// What was sent so far.
    pub(super) fn sent(&self) -> Sent {
        self.packer.sent
    }

    /// Where a message to some hosts goes.
    fn to(&self, hosts: &[Host]) -> To {
        let transport = self.exchange.transport();
        let rates = hosts.iter().filter_map(|&host| transport.traffic(host).rate);
        let rate = rates.min_by(f64::total_cmp).or((!hosts.is_empty()).then_some(GIGABIT));
        To { hosts: hosts.len(), rate }
    }

    fn send(&self, to: Host, about: About, message: &[u8]) {
        let mut pieces = message.chunks(PIECE).peekable();
        // Nothing is a message too.
        let mut piece = pieces.next().unwrap_or_default();
        loop {
            let next = pieces.next();
            self.exchange.send(to, [&[SEARCH, about as u8, next.is_none().into()], piece].concat());
            match next {
                Some(next) => piece = next,
                None => return,
            }
        }
    }

    /// Waits for what a host sends. `most`: bytes that it may have.
    fn receive(&self, from: Host, about: About, most: usize) -> Result<Vec<u8>> {
        let wants = |sender: Host, message: &[u8]| sender == from && message.first() == Some(&SEARCH);
        let mut whole = Vec::new();
        loop {
            // Whether there is anything to wait for is the driver's business.
            let Some((_, piece)) = self.exchange.receive(PATIENCE, wants)? else { continue };
            if piece.len() < HEAD || piece[1] != about as u8 || whole.len() + piece.len() > most + HEAD {
                return Err(malformed(from));
            }
            whole.extend_from_slice(&piece[HEAD..]);
            if piece[2] == 1 {
                return Ok(whole);
            }
        }
    }

    /// The vertices of some hosts of the row.
    fn range(&self, group: &Range<usize>) -> Range<u32> {
        self.starts[1][group.start]..self.starts[1][group.end]
    }

    /// Parts a group of hosts of the row in the middle, and sends the other half what is for it.
    fn part<T: Number>(&mut self, offers: Offers<T>, group: Range<usize>) -> Folding<T> {
        if group.len() < 2 {
            return Folding { offers, halves: None };
        }
        let (own, middle) = (self.row.1, group.start + group.len().div_ceil(2));
        let [low, high] = offers.split(self.starts[1][middle]);
        let halves = [group.start..middle, middle..group.end];
        let (kept, given, [mine, theirs]) = match (own < middle, halves) {
            (true, halves) => (low, high, halves),
            (false, [low_half, high_half]) => (high, low, [high_half, low_half]),
        };
        let to = self.row.0[partner(own, &mine, &theirs)];
        let message = self.packer.offers(&given.shrunk(), self.range(&theirs), self.vertices, self.to(&[to]));
        self.send(to, About::Offers, &message);
        Folding { offers: kept, halves: Some([mine, theirs]) }
    }

    /// Tells other hosts what they read of this one's vertices, along stars that are not cut in blocks, and hears what this one reads of
    /// theirs: places in the shared state, and what is there now.
    ///
    /// # Errors
    /// A host was lost, or sends more or less.
    pub(super) fn border<T: Number>(&self, domain: &Domain, view: View<T>) -> Result<Vec<(usize, T)>> {
        let Share { ghosts, links, .. } = domain.share.as_ref().expect("a worker has a share");
        let (shape, reals) = (view.shape, self.reals);
        for link in links.iter().filter(|link| !link.sent.is_empty()) {
            let slots = link.sent.iter().flat_map(|(_, slots)| slots);
            let values: Vec<T> = slots.flat_map(|&slot| (0..reals).map(move |k| view.real(slot as usize, k))).collect();
            self.send(link.with + 1, About::Border, bytemuck::cast_slice(&values));
        }
        let mut changed = Vec::new();
        for link in links.iter().filter(|link| !link.received.is_empty()) {
            let slots = link.received.iter().flat_map(|&t| {
                let (own, end) = (&ghosts[t as usize], ghosts[t as usize].end.next_multiple_of(domain.width as u32));
                own.clone().map(move |slot| slot..if slot + 1 == own.end { end } else { slot + 1 })
            });
            let slots: Vec<Range<u32>> = slots.collect();
            let bytes = slots.len() * reals * T::BYTES;
            let values = self.receive(link.with + 1, About::Border, bytes)?;
            if values.len() != bytes {
                return Err(malformed(link.with + 1));
            }
            let values: Vec<T> = bytemuck::pod_collect_to_vec(&values);
            for (i, slots) in slots.into_iter().enumerate() {
                // A ghost's last vertex has the padding behind it.
                for slot in slots {
                    changed.extend((0..reals).map(|k| (shape.shared_index(slot as usize, k), values[i * reals + k])));
                }
            }
        }
        Ok(changed)
    }
}

/// Whom a host of one half of a group gives to in the other.
fn partner(i: usize, from: &Range<usize>, to: &Range<usize>) -> usize {
    to.start + (i - from.start).min(to.len() - 1)
}

fn malformed(from: Host) -> Error {
    Error::Cluster(format!("host {from} sent a malformed part of a search"))
}

/// Bytes that some vertices take at most, with so many reals each.
fn most<T: Number>(vertices: u32, reals: usize) -> usize {
    (vertices as usize + 512) * (8 + 2 * (reals + 1) * T::BYTES)
}

impl<T: Number> Sides<T> for Lines {
    fn expand(&mut self, ids: &[u32], states: &[T], known: &mut [T]) -> Result<Vec<u32>> {
        let (hosts, own) = (&self.column.0, self.column.1);
        let starts = self.starts[0].clone();
        let reals = self.reals;
        let of = |i: usize| starts[i]..starts[i + 1];
        let others: Vec<Host> = hosts.iter().enumerate().filter(|(i, _)| *i != own).map(|(_, &host)| host).collect();
        let place = |i: usize, id: u32| (starts[i] + id) as usize * reals;
        if !others.is_empty() {
            let mut before = Vec::with_capacity(states.len());
            ids.iter().for_each(|&id| before.extend_from_slice(&known[place(own, id)..][..reals]));
            let to = self.to(&others);
            let message = self.packer.frontier(ids, of(own).len() as u32, states, &before, to);
            others.iter().for_each(|&to| self.send(to, About::Frontier, &message));
        }
        let mut changed = Vec::new();
        for (i, host) in self.column.0.clone().into_iter().enumerate() {
            let end = of(i).len() as u32;
            let theirs;
            let (ids, states) = if i == own {
                (ids, states)
            } else {
                let message = self.receive(host, About::Frontier, most::<T>(end, reals))?;
                let is_known = |id: u32, k: usize| known[place(i, id) + k];
                theirs = self.packer.read_frontier(&message, end, reals, is_known).ok_or_else(|| malformed(host))?;
                (&theirs.0[..], &theirs.1[..])
            };
            for (n, &id) in ids.iter().enumerate() {
                known[place(i, id)..][..reals].copy_from_slice(&states[n * reals..][..reals]);
            }
            changed.extend(ids.iter().map(|id| starts[i] + id));
        }
        Ok(changed)
    }

    fn begin_fold(&mut self, offers: Offers<T>) -> Folding<T> {
        self.part(offers, 0..self.row.0.len())
    }

    fn end_fold(&mut self, mut folding: Folding<T>, less: Less<T>) -> Result<Offers<T>> {
        let own = self.row.1;
        while let Some([mine, theirs]) = folding.halves {
            let mut offers = folding.offers;
            for i in theirs.clone().filter(|&i| partner(i, &theirs, &mine) == own) {
                let (range, from) = (self.range(&mine), self.row.0[i]);
                let most = most::<T>(range.len() as u32, 1) + most::<T>(self.vertices, self.reals);
                let message = self.receive(from, About::Offers, most)?;
                let theirs = self.packer.read_offers(&message, range, self.vertices, self.reals);
                offers = offers.merged(theirs.ok_or_else(|| malformed(from))?, less);
            }
            folding = self.part(offers, mine);
        }
        let start = self.starts[1][own];
        folding.offers.ids.iter_mut().for_each(|id| *id -= start);
        Ok(folding.offers)
    }

    fn any(&mut self, own: bool) -> Result<bool> {
        vote(&self.exchange, own)
    }
}
