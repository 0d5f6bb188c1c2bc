//! The block of a host: what its edges offer in a round.

use super::Offers;
use crate::engine::store::Store;
use crate::layout::{Blocks, Ell};
use crate::number::Number;
use crate::program::{Given, Kernels, Record, Relax, SharedOf, Star, Uniform, check_shape, key_real, less};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A round looks at the edges to each vertex once the frontier has more than one of so many of all edges, and else at those from the
/// frontier, on one thread; where edges have data, of which a look at a vertex reads all, more.
const PULL: usize = 60;
const PULL_DATA: usize = 10;
/// Vertices that are looked at as one piece of work.
const PIECE: usize = 1 << 12;
/// No vertex.
const NONE: u32 = u32::MAX;

/// The edges of a block by where they come from.
pub(super) struct Block {
    /// Edges from vertex `u` of the column: `offsets[u]..offsets[u + 1]`.
    offsets: Vec<u32>,
    /// The vertex of the row that each leads to, and which of the edges of the block it is.
    ends: Vec<[u32; 2]>,
}

impl Block {
    /// `sources`: vertices of the column. Cost O(vertices + edges).
    pub(super) fn new(rows: &Ell<u32>, sources: usize) -> Block {
        let mut offsets = vec![0u32; sources + 1];
        rows.others.iter().for_each(|&u| offsets[u as usize + 1] += 1);
        (0..sources).for_each(|u| offsets[u + 1] += offsets[u]);
        let (mut next, mut ends) = (offsets.clone(), vec![[0; 2]; rows.others.len()]);
        for v in 0..rows.columns.len() - 1 {
            for e in rows.row(v) {
                let at = &mut next[rows.others[e] as usize];
                ends[*at as usize] = [v as u32, e as u32];
                *at += 1;
            }
        }
        Block { offsets, ends }
    }

    fn edges(&self, u: u32) -> &[[u32; 2]] {
        &self.ends[self.offsets[u as usize] as usize..self.offsets[u as usize + 1] as usize]
    }
}

/// A search along the edges of a block.
pub(super) struct Search<P: Kernels, T: Number, K: Relax<P>> {
    blocks: Arc<Blocks>,
    block: Arc<Block>,
    uniform: Uniform<T>,
    round: RwLock<Round<P, T, K>>,
    kernel: PhantomData<fn(P, K)>,
}

/// What a round works with.
struct Round<P: Kernels, T: Number, K: Relax<P>> {
    /// The least that this block has offered to each vertex of the row.
    offered: Vec<K::Key<T>>,
    /// Which of the frontier a vertex of the column is, along the curve; none if it is not in it.
    ranks: Vec<u32>,
    /// What neighbors see of the frontier.
    states: Vec<SharedOf<P, T>>,
    /// The least and the greatest offer, where they are known.
    offers: Option<[K::Key<T>; 2]>,
}

/// An offer to a vertex of the row, and who of the frontier makes it.
type Offer<A> = (u32, A, u32);
/// Those of each piece of work.
type Found<A> = Vec<Mutex<Vec<Offer<A>>>>;

impl<P: Kernels, T: Number, K: Relax<P>> Search<P, T, K> {
    const HAS_DATA: bool = <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN > 0;

    pub(super) fn new(blocks: Arc<Blocks>, block: Arc<Block>, uniform: Uniform<T>) -> Search<P, T, K> {
        let (sources, targets) = (blocks.numbers.len(), blocks.row[blocks.row.len() - 1] as usize);
        let round = Round {
            offered: vec![K::nothing::<T>(); targets],
            ranks: vec![NONE; sources],
            states: Vec::new(),
            offers: None,
        };
        Search { blocks, block, uniform, round: RwLock::new(round), kernel: PhantomData }
    }

    fn rows(&self) -> &Ell<u32> {
        let rows = self.blocks.star(<K::Along as Star<1>>::INDEX).expect("the star is cut in blocks");
        check_shape::<T, 1, K::Along>(rows.shape);
        rows
    }

    /// What vertices of the column offer that have changed. `known`: what neighbors see of all of them.
    pub(super) fn relax(self: &Arc<Self>, host: &mut dyn Store<T>, changed: Vec<u32>, known: &[T]) -> Offers<T> {
        let reals = <SharedOf<P, T>>::LEN;
        let numbers = &self.blocks.numbers;
        let edges: usize = changed.iter().map(|&u| self.block.edges(u).len()).sum();
        let mut frontier = changed;
        // Few runs that ascend already.
        frontier.sort_by_key(|&u| numbers[u as usize]);
        {
            let (given, mut guard) = (self.given(), self.round.write().unwrap_or_else(PoisonError::into_inner));
            let round = &mut *guard;
            round.states.clear();
            round.offers = None;
            for (rank, &u) in (0..).zip(&frontier) {
                round.ranks[u as usize] = rank;
                let state = SharedOf::<P, T>::build(|k| known[u as usize * reals + k]);
                round.states.push(state);
                if !Self::HAS_DATA {
                    let offer = K::offer(&given, state, Record::build(|_| unreachable!("edges have no data")));
                    let [low, high] = round.offers.unwrap_or([offer; 2]);
                    round.offers = Some([
                        if less(offer, low) { offer } else { low },
                        if less(high, offer) { offer } else { high },
                    ]);
                }
            }
        }
        let share = if Self::HAS_DATA { PULL_DATA } else { PULL };
        let mut offers = match edges > self.block.ends.len() / share {
            true => self.pulled(host),
            false => self.pushed(&frontier),
        };
        let round = &mut *self.round.write().unwrap_or_else(PoisonError::into_inner);
        frontier.iter().for_each(|&u| round.ranks[u as usize] = NONE);
        offers.retain(|&(v, offer, _)| {
            let before = &mut round.offered[v as usize];
            let is_less = less(offer, *before);
            if is_less {
                *before = offer;
            }
            is_less
        });
        let mut states = Vec::with_capacity(frontier.len() * reals);
        frontier.iter().for_each(|&u| states.extend_from_slice(&known[u as usize * reals..][..reals]));
        Offers {
            ids: offers.iter().map(|offer| offer.0).collect(),
            keys: offers.iter().map(|offer| key_real(offer.1)).collect(),
            from: offers.iter().map(|offer| offer.2).collect(),
            numbers: frontier.iter().map(|&u| numbers[u as usize]).collect(),
            states,
        }
    }

    fn given(&self) -> Given<P, T> {
        self.uniform.given(0, 0)
    }

    #[inline(always)]
    fn offer(given: &Given<P, T>, state: SharedOf<P, T>, rows: &Ell<u32>, e: usize) -> K::Key<T> {
        let len = <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN;
        K::offer(given, state, Record::build(|k| rows.data.numbers::<T>()[e * len + k]))
    }

    /// Each vertex of the row looks for the best offer of the frontier.
    fn pulled(self: &Arc<Self>, host: &mut dyn Store<T>) -> Vec<Offer<K::Key<T>>> {
        let targets = self.rows().columns.len() - 1;
        let pieces: Vec<Range<usize>> =
            (0..targets).step_by(PIECE).map(|start| start..targets.min(start + PIECE)).collect();
        let found: Arc<Found<K::Key<T>>> = Arc::new(pieces.iter().map(|_| Mutex::default()).collect());
        let (search, all) = (self.clone(), found.clone());
        let count = pieces.len();
        let work = move |i: usize| {
            let offers = search.pull(pieces[i].clone());
            *all[i].lock().unwrap_or_else(PoisonError::into_inner) = offers;
        };
        host.each(Self::pull as *const () as u64, count, Arc::new(work));
        found
            .iter()
            .flat_map(|piece| std::mem::take(&mut *piece.lock().unwrap_or_else(PoisonError::into_inner)))
            .collect()
    }

    fn pull(&self, vertices: Range<usize>) -> Vec<Offer<K::Key<T>>> {
        let (rows, given) = (self.rows(), self.given());
        let round = &*self.round.read().unwrap_or_else(PoisonError::into_inner);
        let least = round.offers.map(|[least, _]| least);
        let is_same = round.offers.is_some_and(|[least, most]| !less(least, most));
        let mut found = Vec::new();
        for v in vertices {
            let offered = round.offered[v];
            if least.is_some_and(|least| !less(least, offered)) {
                continue;
            }
            let others = &rows.others[rows.row(v)];
            if let (true, Some(least)) = (is_same, least) {
                let first = others.iter().map(|&u| round.ranks[u as usize]).find(|&rank| rank != NONE);
                found.extend(first.map(|rank| (v as u32, least, rank)));
                continue;
            }
            let mut best: Option<Offer<K::Key<T>>> = None;
            for e in rows.row(v) {
                let rank = round.ranks[rows.others[e] as usize];
                if rank == NONE {
                    continue;
                }
                let offer = Self::offer(&given, round.states[rank as usize], rows, e);
                if best.is_none_or(|(_, best, _)| less(offer, best)) {
                    best = Some((v as u32, offer, rank));
                    if least.is_some_and(|least| !less(least, offer)) {
                        break;
                    }
                }
            }
            found.extend(best.filter(|best| less(best.1, offered)));
        }
        found
    }

    /// The frontier goes through its edges, the first along the curve first.
    fn pushed(&self, frontier: &[u32]) -> Vec<Offer<K::Key<T>>> {
        let (rows, given) = (self.rows(), self.given());
        let round = &*self.round.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<Offer<K::Key<T>>> = Vec::new();
        for (rank, &u) in (0..).zip(frontier) {
            let state = round.states[rank as usize];
            for &[v, e] in self.block.edges(u) {
                let offer = Self::offer(&given, state, rows, e as usize);
                if less(offer, round.offered[v as usize]) {
                    found.push((v, offer, rank));
                }
            }
        }
        // The best of each: a sort that is stable keeps the first along the curve, and the first of its edges, in front.
        found.sort_by_key(|offer| offer.0);
        let mut best: Vec<Offer<K::Key<T>>> = Vec::new();
        for offer in found {
            match best.last_mut() {
                Some(last) if last.0 == offer.0 => {
                    if less(offer.1, last.1) {
                        *last = offer;
                    }
                }
                _ => best.push(offer),
            }
        }
        best
    }
}
