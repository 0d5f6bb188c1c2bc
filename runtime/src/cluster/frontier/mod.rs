//! What hosts of a grid tell each other in a search, in as few bytes as is worth the time.
//!
//! ```text
//! to the column:  ids of vertices that have changed | what neighbors see of them
//! to the row:     ids that something is offered | the offers | numbers of who offers | what neighbors see of them | who offers what
//! ```
//!
//! Lists of ids come in several forms ([`ids`]), of which a sender takes the quickest for the link ([`cost`]); reals ([`reals`]) and who
//! offers what are packed together or not at all, by the rule of all values ([`Balance`]). Who offers something is said once, however
//! many hear of it: each offer then names it by its place among them, in as few bits as there are.
//!
//! Source: Young, Romera, Hauck and Fröning, "Optimizing Communication for a 2D-Partitioned Scalable BFS", 2016.

mod cost;
mod reals;
#[cfg(test)]
mod tests;

use super::packing::{Balance, Compress, Probe};
use crate::engine::Offers;
use crate::number::Number;
use cost::{Costs, Way};
use meshweft_model::Packed;
use meshweft_net::ids::{self, Form, List};
use meshweft_net::wire::Reader;
use reals::Reals;
use std::ops::Range;
use std::time::Duration;

/// Bytes of messages as they would have been, and as they went out.
pub(super) type Bytes = [u64; 2];

/// What was sent in searches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// Vertices that have changed, as often as they were sent.
    pub(super) ids: u64,
    /// Lists of these.
    pub(super) lists: Bytes,
    /// All that went to hosts of the column.
    pub(super) frontiers: Bytes,
    /// Whom something is offered, and what.
    pub(super) offers: Bytes,
    /// Who offers it.
    pub(super) predecessors: Bytes,
}

fn count(bytes: &mut Bytes, plain: usize, sent: usize, times: usize) {
    bytes[0] += (plain * times) as u64;
    bytes[1] += (sent * times) as u64;
}

/// Bytes of the number of a vertex as it is.
const ID: usize = 4;
/// Bytes that stand before a list.
const HEAD: usize = 5;

/// Where a message goes.
#[derive(Clone, Copy)]
pub(super) struct To {
    /// How many hosts get it.
    pub(super) hosts: usize,
    /// Bytes a second of the slowest link to them, if it is known.
    pub(super) rate: Option<f64>,
}

/// Writes and reads messages of searches.
pub(super) struct Packer<C> {
    compress: Compress,
    /// What a clock shows.
    now: C,
    costs: Costs,
    /// Whether reals are packed, on the way to the column and to the row.
    links: [Balance; 2],
    /// Seconds a byte that packed reals took to be read, the last time.
    unpacking: Option<f64>,
    pub(super) sent: Sent,
}

impl<C: Fn() -> Duration> Packer<C> {
    pub(super) fn new(compress: Compress, now: C) -> Packer<C> {
        let (costs, links) = (Costs::new(compress), <[Balance; 2]>::default());
        Packer { compress, now, costs, links, unpacking: None, sent: Sent::default() }
    }

    /// The new states of vertices below `end`. `states`: shape [ids × reals]; `known`: what the others know of them.
    pub(super) fn frontier<T: Number>(&mut self, ids: &[u32], end: u32, states: &[T], known: &[T], to: To) -> Vec<u8> {
        let mut message = Vec::new();
        self.write_ids(ids, end, to, &mut message);
        let listed = message.len();
        let reals = Reals::new(states, states.len().checked_div(ids.len()).unwrap_or(0), Some(known));
        let packs = self.packs(0, reals.bytes(), to, |packs, out| reals.write(packs, out));
        reals.write(packs, &mut message);
        let plain = HEAD + ID * ids.len();
        self.sent.ids += (ids.len() * to.hosts) as u64;
        count(&mut self.sent.lists, plain, listed, to.hosts);
        count(&mut self.sent.frontiers, plain + reals.bytes(), message.len(), to.hosts);
        message
    }

    /// Reads it: ids, and shape [ids × reals] what neighbors see of them. `known`: real `k` of a vertex as it is known. None if it makes
    /// no sense.
    pub(super) fn read_frontier<T: Number>(
        &mut self,
        message: &[u8],
        end: u32,
        reals: usize,
        known: impl Fn(u32, usize) -> T,
    ) -> Option<(Vec<u32>, Vec<T>)> {
        let mut message = Reader(message);
        let ids = self.read_ids(&mut message, end)?;
        let reals = if ids.is_empty() { 0 } else { reals };
        let states =
            self.timed(&mut message, |message| reals::read(message, ids.len(), reals, Some(&|i, k| known(ids[i], k))))?;
        message.end().map(|()| (ids, states))
    }

    /// Offers to vertices of a range. `vertices`: those of the whole mesh.
    pub(super) fn offers<T: Number>(
        &mut self,
        offers: &Offers<T>,
        range: Range<u32>,
        vertices: u32,
        to: To,
    ) -> Vec<u8> {
        let Offers { ids, keys, from, numbers, states } = offers;
        let ids: Vec<u32> = ids.iter().map(|id| id - range.start).collect();
        let mut message = Vec::new();
        self.write_ids(&ids, range.end - range.start, to, &mut message);
        let keys = Reals::new(keys, 1, None);
        let states = Reals::new(states, states.len().checked_div(numbers.len()).unwrap_or(0), None);
        let write_from = |packs: bool, out: &mut Vec<u8>| match packs {
            true => ids::write_numbers(from, out),
            false => out.extend_from_slice(bytemuck::cast_slice(from)),
        };
        let [offered, offering] = [keys.bytes(), states.bytes() + ID * from.len()];
        let packs = self.packs(1, offered + offering, to, |packs, out| {
            keys.write(packs, out);
            states.write(packs, out);
            write_from(packs, out);
        });
        keys.write(packs, &mut message);
        count(&mut self.sent.offers, HEAD + ID * ids.len() + offered, message.len(), to.hosts);
        let start = message.len();
        self.write_ids(numbers, vertices, to, &mut message);
        states.write(packs, &mut message);
        message.push(packs.into());
        write_from(packs, &mut message);
        let plain = HEAD + ID * numbers.len() + offering + 1;
        count(&mut self.sent.predecessors, plain, message.len() - start, to.hosts);
        message
    }

    /// Reads them. `reals`: what neighbors see of a vertex. None if they are malformed.
    pub(super) fn read_offers<T: Number>(
        &mut self,
        message: &[u8],
        range: Range<u32>,
        vertices: u32,
        reals: usize,
    ) -> Option<Offers<T>> {
        let mut message = Reader(message);
        let mut ids = self.read_ids(&mut message, range.end - range.start)?;
        ids.iter_mut().for_each(|id| *id += range.start);
        let keys = self.timed(&mut message, |message| reals::read(message, ids.len(), 1, None))?;
        let numbers = self.read_ids(&mut message, vertices)?;
        let reals = if numbers.is_empty() { 0 } else { reals };
        let states = self.timed(&mut message, |message| reals::read(message, numbers.len(), reals, None))?;
        let mut from = vec![0; ids.len()];
        match message.byte()? {
            0 => {
                let own = message.bytes(ID * from.len())?;
                from.iter_mut().zip(own.as_chunks().0).for_each(|(by, bytes)| *by = u32::from_le_bytes(*bytes));
            }
            1 => ids::read_numbers(&mut message, &mut from)?,
            _ => return None,
        }
        let is_sound = message.end().is_some() && from.iter().all(|&by| (by as usize) < numbers.len());
        is_sound.then_some(Offers { ids, keys, from, numbers, states })
    }

    fn write_ids(&mut self, ids: &[u32], end: u32, to: To, out: &mut Vec<u8>) {
        let start = (self.now)();
        let form = if self.costs.weighs(ids.len(), to.rate) {
            let list = List::new(ids, end);
            let form = self.costs.form(&list, ids.len(), to.rate);
            list.write(form, out);
            form
        } else {
            ids::write_plain(ids, out);
            Form::Plain
        };
        self.costs.note(form, Way::Write, ids.len(), (self.now)() - start);
    }

    fn read_ids(&mut self, message: &mut Reader, end: u32) -> Option<Vec<u32>> {
        let start = (self.now)();
        let (form, ids) = ids::read(message, end)?;
        self.costs.note(form, Way::Read, ids.len(), (self.now)() - start);
        Some(ids)
    }

    /// Reads reals, and takes note of how long that takes where they are packed.
    fn timed<A>(&mut self, message: &mut Reader, read: impl FnOnce(&mut Reader) -> Option<A>) -> Option<A> {
        let (start, before) = ((self.now)(), message.0.len());
        let found = read(message);
        let (took, bytes) = ((self.now)() - start, before - message.0.len());
        if bytes >= Packed::SMALL && !took.is_zero() {
            self.unpacking = Some(took.as_secs_f64() / bytes as f64);
        }
        found
    }

    /// Whether reals of a message, so many bytes, are to be packed. `write`: writes them in either way.
    fn packs(&mut self, line: usize, bytes: usize, to: To, write: impl Fn(bool, &mut Vec<u8>)) -> bool {
        let link = &mut self.links[line];
        match self.compress {
            Compress::Always => return true,
            Compress::Never => return false,
            Compress::Auto if bytes < Packed::SMALL => return false,
            Compress::Auto => {}
        }
        if link.probes() {
            let (mut packed, start) = (Vec::new(), (self.now)());
            write(true, &mut packed);
            let pack = ((self.now)() - start).as_secs_f64() / bytes as f64;
            let unpack = self.unpacking.unwrap_or(pack);
            // The counts tell it.
            let _ = link.decide(Probe { before: bytes, after: packed.len(), pack, unpack }, to.rate);
        }
        link.packs
    }
}
