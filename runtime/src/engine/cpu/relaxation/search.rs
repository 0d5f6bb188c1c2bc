//! A fixed point that is being searched for.

use super::found::{Found, Tally};
use super::frontier::{Frontier, rows};
use crate::engine::cpu::ground::Ground;
use crate::engine::cpu::memory::Cells;
use crate::layout::shared_stride;
use crate::number::Number;
use crate::program::{Given, Kernels, PrivateOf, Record, Relax, SharedOf, Star, Uniform, less};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A fixed point that is being searched for.
pub(super) struct Search<P: Kernels, T: Number, K: Relax<P>> {
    pub(super) ground: Arc<Ground<T>>,
    pub(super) frontier: Arc<Frontier>,
    pub(super) uniform: Uniform<T>,
    /// Which array holds the shared state.
    pub(super) source: usize,
    /// What is found out in the round.
    pub(super) found: Mutex<Found<K::Key<T>>>,
    /// Whether vertices that hold the least of all offers take nothing any more.
    pub(super) closes: AtomicBool,
    pub(super) kernel: PhantomData<fn(P, K)>,
}

pub(super) fn lock<A>(mutex: &Mutex<A>) -> MutexGuard<'_, A> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Kernels, T: Number, K: Relax<P>> Search<P, T, K> {
    pub(super) const STAR: usize = <K::Along as Star<1>>::INDEX;

    /// What was found out.
    pub(super) fn take(&self) -> Found<K::Key<T>> {
        std::mem::replace(&mut lock(&self.found), Found::NOTHING)
    }

    pub(super) fn given(&self) -> Given<P, T> {
        self.uniform.given(0, 0)
    }

    /// Who holds something in a tile: the first frontier.
    #[expect(unsafe_code, reason = "opens the state for what the schedule allows")]
    pub(super) fn begin(&self, t: usize) {
        let Ground { domain, memory, .. } = &*self.ground;
        let tile = &domain.tiles[t];
        let (_, vertices) = rows(tile, Self::STAR);
        // SAFETY: each tile is looked at by one thread, and nobody writes.
        let cells = unsafe { memory.open(self.source, true) };
        let (given, bits) = (self.given(), &self.frontier.bits[0]);
        let mut tally = Tally::NONE;
        let own = tile.own();
        for first in own.clone().step_by(64) {
            let mut word = 0u64;
            for slot in first..(own.start + vertices).min(first + 64) {
                let shared = seen::<P, T>(&cells, slot);
                if less(K::held(&shared), K::nothing::<T>()) {
                    word |= 1 << (slot % 64);
                    Self::note(&mut tally, &given, self.frontier.degrees[slot / 64] as usize, &shared);
                }
            }
            bits.0[first / 64].store(word, Relaxed);
        }
        self.add(tally, Vec::new(), Vec::new());
    }

    /// Padding has the state of the vertex before it.
    #[expect(unsafe_code, reason = "opens the state for what the schedule allows")]
    pub(super) fn finish(&self) {
        // SAFETY: the last round is done, and this thread alone writes.
        let cells = unsafe { self.ground.memory.open(self.source, true) };
        for tile in &self.ground.domain.tiles {
            let (_, vertices) = rows(tile, Self::STAR);
            let (last, end) = (tile.own().start + vertices - 1, tile.own().end);
            if last + 1 < end {
                let (shared, private) = cells.load::<SharedOf<P, T>, PrivateOf<P, T>>(last);
                cells.store(last, last + 1..end, shared, private);
            }
        }
    }

    /// Counts a vertex of the next frontier, with so many edges.
    #[inline(always)]
    pub(super) fn note(tally: &mut Tally<K::Key<T>>, given: &Given<P, T>, edges: usize, shared: &SharedOf<P, T>) {
        tally.vertices += 1;
        tally.edges += edges;
        if <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN == 0 {
            let offer = K::offer(given, *shared, Record::build(|_| unreachable!("edges have no data")));
            tally.is_monotone &= !less(offer, K::held(shared));
            tally.offer(offer, offer);
        }
    }

    /// Adds what a piece of work has found out.
    pub(super) fn add(&self, tally: Tally<K::Key<T>>, list: Vec<u32>, moved: Vec<u32>) {
        let found = &mut *lock(&self.found);
        let all = &mut found.tally;
        all.vertices += tally.vertices;
        all.edges += tally.edges;
        all.is_monotone &= tally.is_monotone;
        all.is_finite &= tally.is_finite;
        if let Some([least, most]) = tally.offers {
            all.offer(least, most);
        }
        found.lists.extend((!list.is_empty()).then_some(list));
        found.moved.extend((!moved.is_empty()).then_some(moved));
    }
}

/// The shared state of a slot as the round before left it.
#[inline(always)]
pub(super) fn seen<P: Kernels, T: Number>(cells: &Cells<T>, slot: usize) -> SharedOf<P, T> {
    let stride = shared_stride(<SharedOf<P, T>>::LEN);
    Record::build(|k| cells.leaf(slot * stride + k, stride))
}
