//! One round of a search, in either direction.

use super::bitmap::slots;
use super::frontier::rows;
use super::search::{Search, seen};
use super::taker::Taker;
use crate::number::Number;
use crate::number::lanes::prefetch;
use crate::program::{Kernels, PrivateOf, Record, Relax, SharedOf, Star, less};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Words whose slots are fetched ahead while one is looked at.
const AHEAD: usize = 4;
/// Slots named one by one that are fetched ahead of one.
const FAR: usize = 16;
/// Vertices of the frontier that push as one piece of work.
const PIECE: usize = 256;

/// A round of it.
pub(super) struct Round<P: Kernels, T: Number, K: Relax<P>> {
    pub(super) search: Arc<Search<P, T, K>>,
    /// Which of the bitmaps is the frontier.
    pub(super) now: usize,
    /// The frontier as lists, if it pushes.
    pub(super) lists: Vec<Vec<u32>>,
    /// The least and the greatest offer, if known.
    pub(super) offers: Option<[K::Key<T>; 2]>,
}

impl<P: Kernels, T: Number, K: Relax<P>> Round<P, T, K> {
    /// Each vertex of a tile that may still take something looks for neighbors in the frontier.
    pub(super) fn pull(&self, t: usize) {
        let Search { ground, frontier, .. } = &*self.search;
        let tile = &ground.domain.tiles[t];
        let (rows, _) = rows(tile, Search::<P, T, K>::STAR);
        let len = <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN;
        let (offsets, others, data) = (&*rows.columns, &*rows.others, rows.data.numbers::<T>());
        let [now, next] = [&frontier.bits[self.now], &frontier.bits[1 - self.now]];
        let least = self.least();
        let mut taker = Taker::new(&self.search, least);
        let own = tile.own();
        let row = |slot: u32| {
            let row = slot as usize - own.start;
            offsets[row] as usize..offsets[row + 1] as usize
        };
        let (mut winners, mut from) = (Vec::with_capacity(64), [0; 64]);
        for w in own.start / 64..own.end.div_ceil(64) {
            let closed = frontier.closed.0[w].load(Relaxed);
            let (mut taken, mut closing) = (0, 0);
            winners.clear();
            if let Some(ahead) = frontier.closed.0.get(w + AHEAD) {
                for slot in slots(w + AHEAD, !ahead.load(Relaxed)) {
                    prefetch(&frontier.first, slot as usize);
                    taker.cells.prefetch::<SharedOf<P, T>, PrivateOf<P, T>>(slot as usize);
                }
            }
            // Who wins is found for a word of slots at once: a search goes on while the one before it is still waiting for memory.
            match self.offers {
                // All offer the same.
                Some([least, most]) if !less(least, most) => {
                    // The first neighbors without a branch, which a processor would guess wrong half of the time.
                    let mut hits = 0;
                    for slot in slots(w, !closed) {
                        let first = frontier.first[slot as usize];
                        from[slot as usize % 64] = first;
                        hits |= u64::from(now.has(first)) << (slot % 64);
                    }
                    for slot in slots(w, !closed & !hits) {
                        if let Some(&u) = others[row(slot)].iter().skip(1).find(|&&u| now.has(u)) {
                            from[slot as usize % 64] = u;
                            hits |= 1 << (slot % 64);
                        }
                    }
                    for slot in slots(w, hits) {
                        taker.cells.prefetch_shared::<SharedOf<P, T>>(from[slot as usize % 64] as usize);
                    }
                    winners.extend(slots(w, hits).map(|slot| (slot, least, from[slot as usize % 64])));
                }
                _ => {
                    for slot in slots(w, !closed) {
                        let held = K::held(&seen::<P, T>(&taker.cells, slot as usize));
                        if least.is_some_and(|least| !less(least, held)) {
                            closing |= u64::from(taker.closes(held)) << (slot % 64);
                            continue;
                        }
                        let mut best = None;
                        for e in row(slot).filter(|&e| now.has(others[e])) {
                            let offer = taker.offer(others[e], Record::build(|k| data[e * len + k]));
                            if best.is_none_or(|(_, least, _)| less(offer, least)) {
                                best = Some((slot, offer, others[e]));
                                if least.is_some_and(|least| !less(least, offer)) {
                                    break;
                                }
                            }
                        }
                        winners.extend(best);
                    }
                }
            }
            let (mine, edges) = (now.0[w].load(Relaxed), frontier.degrees[w] as usize);
            for &(slot, offer, from) in &winners {
                if taker.take(slot, mine >> (slot % 64) & 1 == 1, offer, from, edges) {
                    taken |= 1 << (slot % 64);
                    closing |= u64::from(taker.closes(offer)) << (slot % 64);
                }
            }
            next.0[w].store(taken, Relaxed);
            if closing != 0 {
                frontier.closed.0[w].store(closed | closing, Relaxed);
            }
        }
        taker.finish(Vec::new());
    }

    /// The least offer, if it is known.
    fn least(&self) -> Option<K::Key<T>> {
        self.offers.map(|[least, _]| least)
    }

    /// The frontier in pieces.
    pub(super) fn pieces(&self) -> Vec<(usize, Range<usize>)> {
        let of_list = |(i, list): (usize, &Vec<u32>)| {
            let len = list.len();
            (0..len).step_by(PIECE).map(move |start| (i, start..len.min(start + PIECE)))
        };
        self.lists.iter().enumerate().flat_map(of_list).collect()
    }

    /// Some vertices of the frontier offer along their edges. Lists the vertices that had no offer before.
    pub(super) fn push(&self, (list, piece): (usize, Range<usize>)) {
        let Search { ground, frontier, .. } = &*self.search;
        let taker = Taker::new(&self.search, self.least());
        let best = frontier.best.get().expect("a push is prepared");
        let mut touched = Vec::new();
        for &from in &self.lists[list][piece] {
            let (rows, row) = frontier.outs(&ground.domain, Search::<P, T, K>::STAR, from);
            let others = &rows.others[rows.row(row)];
            for (e, &v) in others.iter().enumerate() {
                if let Some(&ahead) = others.get(e + FAR) {
                    prefetch(best, ahead as usize);
                }
                if frontier.closed.has(v) {
                    continue;
                }
                let own = u64::from(from + 1) << 32 | e as u64;
                let mut offer = None;
                let mut known = best[v as usize].load(Relaxed);
                loop {
                    if known != 0 {
                        let offer = *offer.get_or_insert_with(|| taker.offered(own));
                        let other = taker.offered(known);
                        if less(other, offer) || (!less(offer, other) && known <= own) {
                            break;
                        }
                    }
                    match best[v as usize].compare_exchange_weak(known, own, Relaxed, Relaxed) {
                        Ok(0) => break touched.push(v),
                        Ok(_) => break,
                        Err(newer) => known = newer,
                    }
                }
            }
        }
        taker.finish(touched);
    }

    /// Some vertices look at the best that they were offered.
    pub(super) fn apply(&self, touched: &[u32]) {
        let frontier = &self.search.frontier;
        let mut taker = Taker::new(&self.search, self.least());
        let best = frontier.best.get().expect("a push is prepared");
        let (mut taken, now) = (Vec::new(), &frontier.bits[self.now]);
        for (i, &slot) in touched.iter().enumerate() {
            if let Some(&ahead) = touched.get(i + FAR) {
                taker.cells.prefetch::<SharedOf<P, T>, PrivateOf<P, T>>(ahead as usize);
            }
            let known = best[slot as usize].swap(0, Relaxed);
            let (offer, edges) = (taker.offered(known), frontier.degrees[slot as usize / 64] as usize);
            if taker.take(slot, now.has(slot), offer, (known >> 32) as u32 - 1, edges) {
                taken.push(slot);
                if taker.closes(offer) {
                    frontier.closed.set(slot);
                }
            }
        }
        taker.finish(taken);
    }
}
