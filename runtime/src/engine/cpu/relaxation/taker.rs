//! Vertices that take offers.

use super::found::Tally;
use super::search::{Search, seen};
use crate::engine::cpu::memory::Cells;
use crate::number::Number;
use crate::program::{Given, Kernels, PrivateOf, Record, Relax, SharedOf, Star, Vertex, check_shape, less};
use std::sync::atomic::Ordering::Relaxed;

/// Takes offers in a round.
pub(super) struct Taker<'a, P: Kernels, T: Number, K: Relax<P>> {
    search: &'a Search<P, T, K>,
    given: Given<P, T>,
    /// The state as it is read, and as vertices of the frontier are written.
    pub(super) cells: Cells<'a, T>,
    /// As others are.
    in_place: Cells<'a, T>,
    /// The least offer of the round, if who takes it takes no other any more.
    last: Option<K::Key<T>>,
    tally: Tally<K::Key<T>>,
    /// Vertices of the frontier that were written.
    moved: Vec<u32>,
}

impl<'a, P: Kernels, T: Number, K: Relax<P>> Taker<'a, P, T, K> {
    /// `least`: the least offer of the round, if it is known.
    #[expect(unsafe_code, reason = "opens the state for what the schedule allows")]
    pub(super) fn new(search: &'a Search<P, T, K>, least: Option<K::Key<T>>) -> Self {
        let Search { ground, source, closes, .. } = search;
        check_shape::<T, 1, K::Along>(ground.domain.stars[Search::<P, T, K>::STAR].lengths());
        // SAFETY: a round reads the frontier alone, which is written to the other array; any other vertex is read and written by the one
        // thread that has its tile, or that it is listed by.
        let open = |in_place| unsafe { ground.memory.open(*source, in_place) };
        let (given, last) = (search.given(), least.filter(|_| closes.load(Relaxed)));
        Taker { search, given, cells: open(false), in_place: open(true), last, tally: Tally::NONE, moved: Vec::new() }
    }

    /// What a slot of the frontier offers.
    #[inline(always)]
    pub(super) fn offer(&self, from: u32, edge: <K::Along as Star<1>>::Data<T>) -> K::Key<T> {
        K::offer(&self.given, seen::<P, T>(&self.cells, from as usize), edge)
    }

    /// The offer that [`Frontier::best`] stands for.
    #[inline(always)]
    pub(super) fn offered(&self, best: u64) -> K::Key<T> {
        let (from, e) = ((best >> 32) as u32 - 1, best as u32 as usize);
        let Search { ground, frontier, .. } = self.search;
        let (rows, row) = frontier.outs(&ground.domain, Search::<P, T, K>::STAR, from);
        let (at, len) = (rows.row(row).start + e, <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN);
        self.offer(from, Record::build(|k| rows.data.numbers::<T>()[at * len + k]))
    }

    /// Whether a vertex that holds this takes nothing any more: no offer is less, now or later.
    #[inline(always)]
    pub(super) fn closes(&self, held: K::Key<T>) -> bool {
        self.last.is_some_and(|least| !less(least, held))
    }

    /// Hands over what was found out. `list`: vertices that changed, unless they are a bitmap.
    pub(super) fn finish(self, list: Vec<u32>) {
        self.search.add(self.tally, list, self.moved);
    }

    /// Updates a slot by an offer of another, unless it holds no more than that. `is_moved`: whether it is in the frontier itself;
    /// `edges`: about as many as it has.
    #[inline(always)]
    pub(super) fn take(&mut self, slot: u32, is_moved: bool, offer: K::Key<T>, from: u32, edges: usize) -> bool {
        let (shared, private) = self.in_place.look::<SharedOf<P, T>, PrivateOf<P, T>>(slot as usize);
        if !less(offer, K::held(&shared)) {
            return false;
        }
        let cells = if is_moved { &self.cells } else { &self.in_place };
        let from = seen::<P, T>(&self.cells, from as usize);
        let (shared, private) = K::take(&self.given, Vertex::join(shared, private), offer, from).split();
        self.tally.is_finite &= (shared.probe() + private.probe()).finite();
        cells.put(slot as usize, shared, private);
        if is_moved {
            self.moved.push(slot);
        }
        Search::<P, T, K>::note(&mut self.tally, &self.given, edges, &shared);
        true
    }
}
