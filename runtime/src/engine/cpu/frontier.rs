//! Relaxations from the vertices that have changed.
//!
//! A round of a [`Relax`] comes to the same whether a vertex hears the offers of all neighbors or of those alone that changed in the
//! round before, the **frontier**: what the others offer it has heard, and holds nothing greater. So a round looks at the edges of the
//! frontier, in one of two directions (Beamer, Asanović and Patterson 2012):
//!
//! - It **pushes** where few have changed: each goes through its edges, and the vertex at the other end keeps the best that it was
//!   offered. The frontier is a list.
//! - It **pulls** where many have: each vertex that may still take something goes through its neighbors and looks which of them are in
//!   the frontier, a bitmap. Where edges have no data, an offer depends on who makes it alone, so the least offer of the round is known
//!   ahead: who finds it looks no further, and who holds no more need not look. Neighbors with many edges come first in the order by
//!   degree, and are the likeliest to have changed.
//!
//! What is read in a round is the frontier's state alone. A vertex outside of it can be written in place; one inside that takes an
//! offer itself is written to the other array, and copied when the round is over. Offers are compared by key, then by the slot of
//! who makes them: so neither direction, nor threads, nor the order in which they come make a difference.

use super::Cpu;
use super::cells::Cells;
use super::walk::Ground;
use crate::engine::code::Pass;
use crate::layout::{Domain, Form, Rows, Tile};
use crate::number::Number;
use crate::number::lanes::prefetch;
use crate::program::{Given, Kernels, PrivateOf, Record, Relax, SharedOf, Star, Uniform, Vertex, check_shape, less};
use crate::schedule::Rule;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A round pulls once the frontier has more than one of so many of the edges that were not looked at yet, and until it is less than
/// one of so many of the vertices and shrinks. The source has 15 and 18; a push costs more here, since offers are compared
/// (docs/perf/notes.md).
const PULL: usize = 60;
const PUSH: usize = 18;
/// The same for edges with data, of which a pull looks at all.
const PULL_DATA: usize = 3;
/// Words whose slots are fetched ahead while one is looked at.
const AHEAD: usize = 4;
/// Vertices of the frontier that push as one piece of work.
const PIECE: usize = 256;

/// Bits by slot, 64 to a word.
struct Bits(Box<[AtomicU64]>);

impl Bits {
    fn new(slots: usize) -> Bits {
        Bits((0..slots.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline(always)]
    fn has(&self, slot: u32) -> bool {
        self.0[slot as usize / 64].load(Relaxed) >> (slot % 64) & 1 == 1
    }

    fn set(&self, slot: u32) {
        self.0[slot as usize / 64].fetch_or(1 << (slot % 64), Relaxed);
    }

    /// Clears the word of a slot.
    fn clear(&self, slot: u32) {
        self.0[slot as usize / 64].store(0, Relaxed);
    }

    fn copy(&self, from: &Bits) {
        self.0.iter().zip(&from.0).for_each(|(word, from)| word.store(from.load(Relaxed), Relaxed));
    }
}

/// The slots of the bits of a word.
fn slots(word: usize, mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let slot = (64 * word) as u32 + bits.trailing_zeros();
        (bits != 0).then(|| {
            bits &= bits - 1;
            slot
        })
    })
}

/// What all relaxations along one star work with.
pub(super) struct Frontier<T> {
    /// Those whose edges are listed by tiles alone if that is `None`: edges from each slot, to whom, and their data as it is seen there.
    outs: Option<Rows<T>>,
    /// The first neighbor of each slot in the order of the curve, the likeliest to be in the frontier: of most vertices nothing else need
    /// be looked at. Any slot where there is none.
    first: Vec<u32>,
    /// For every 64 slots the tile of the first, and how many edges leave one of them in the mean: in an order by degree they hardly
    /// differ.
    tile_of: Vec<u32>,
    degrees: Vec<u32>,
    /// Two bitmaps that take turns as the frontier.
    bits: [Bits; 2],
    /// Vertices that take nothing any more.
    closed: Bits,
    /// Vertices that never do: they have no edge, or are fixed, or padding.
    barren: Bits,
    /// Slots that some vertex is, and the edges to them.
    vertices: usize,
    edges: usize,
    /// Of each slot the best offer so far: one more than the slot that makes it, and which of its edges it comes along; 0 without one.
    best: OnceLock<Box<[AtomicU64]>>,
}

impl<T: Number> Frontier<T> {
    /// None where the layout is none of plain lists in the order of the curve.
    pub(super) fn new(domain: &Domain<T>, star: usize) -> Option<Frontier<T>> {
        let is_plain = |tile: &Tile<T>| matches!(tile.form, Form::Rows { .. }) && tile.slots.start.is_multiple_of(64);
        let fits = domain.share.is_none() && domain.tiles.iter().all(is_plain) && domain.along_curve.is_sorted();
        if !fits {
            return None;
        }
        let slots = domain.slots();
        let (barren, mut vertices, mut edges, mut firsts) = (Bits::new(slots), 0, 0, vec![0; slots]);
        barren.0.iter().for_each(|word| word.store(u64::MAX, Relaxed));
        for tile in &domain.tiles {
            let (rows, count) = rows(tile, star);
            for i in 0..count {
                let slot = tile.slots.start as usize + i;
                firsts[slot] = rows.others[rows.row(i)].first().copied().unwrap_or(0);
                if !rows.row(i).is_empty() && tile.fixed(slot..slot + 1).is_none() {
                    barren.0[slot / 64].fetch_and(!(1 << (slot % 64)), Relaxed);
                    (vertices, edges) = (vertices + 1, edges + rows.row(i).len());
                }
            }
        }
        let mut tile_of = Vec::with_capacity(slots.div_ceil(64));
        for (t, tile) in domain.tiles.iter().enumerate() {
            tile_of.resize((tile.slots.end as usize).div_ceil(64), t as u32);
        }
        let is_listed = !domain.stars[star].is_directed && domain.stars[star].lengths().1 == 0;
        let mut frontier = Frontier {
            outs: (!is_listed).then(|| outs(domain, star)),
            first: firsts,
            tile_of,
            degrees: Vec::new(),
            bits: [Bits::new(slots), Bits::new(slots)],
            closed: Bits::new(slots),
            barren,
            vertices,
            edges,
            best: OnceLock::new(),
        };
        let degree = |slot: u32| {
            let (rows, row) = frontier.outs(domain, star, slot);
            // Padding has no row.
            rows.offsets.get(row + 1).map_or(0, |end| end - rows.offsets[row])
        };
        let words = (0..slots as u32).step_by(64);
        frontier.degrees =
            words.map(|first| (first..slots as u32).take(64).map(degree).sum::<u32>().div_ceil(64)).collect();
        Some(frontier)
    }

    /// The lists that have the edges from a slot, and which row of them it is.
    #[inline(always)]
    fn outs<'a>(&'a self, domain: &'a Domain<T>, star: usize, slot: u32) -> (&'a Rows<T>, usize) {
        match &self.outs {
            Some(outs) => (outs, slot as usize),
            None => {
                let tile = &domain.tiles[self.tile_of[slot as usize / 64] as usize];
                (rows(tile, star).0, (slot - tile.slots.start) as usize)
            }
        }
    }
}

/// The lists of a star in a plain tile, and how many vertices it has.
#[inline(always)]
fn rows<T>(tile: &Tile<T>, star: usize) -> (&Rows<T>, usize) {
    match &tile.form {
        Form::Rows { vertices, stars } => (&stars[star], *vertices as usize),
        Form::Wide { .. } => unreachable!("all tiles are plain"),
    }
}

/// The edges of a star by the slots that they come from. Cost O(slots + edges), on one thread.
fn outs<T: Number>(domain: &Domain<T>, star: usize) -> Rows<T> {
    let len = domain.stars[star].lengths().1;
    let mut offsets = vec![0u32; domain.slots() + 1];
    let lists = || domain.tiles.iter().map(|tile| (tile.slots.start, rows(tile, star)));
    lists().flat_map(|(_, (rows, _))| &*rows.others).for_each(|&from| offsets[from as usize + 1] += 1);
    (0..domain.slots()).for_each(|slot| offsets[slot + 1] += offsets[slot]);
    let edges = offsets[domain.slots()] as usize;
    let mut next = offsets.clone();
    let (mut others, mut data) = (vec![0; edges], vec![T::from_f64(0.0); edges * len]);
    for (first, (rows, count)) in lists() {
        for i in 0..count {
            for e in rows.row(i) {
                let at = &mut next[rows.others[e] as usize];
                others[*at as usize] = first + i as u32;
                data[*at as usize * len..][..len].copy_from_slice(&rows.data[e * len..][..len]);
                *at += 1;
            }
        }
    }
    Rows::of((1, len), offsets, others, data)
}

/// What is known of a frontier.
#[derive(Clone, Copy)]
struct Tally<A> {
    vertices: usize,
    /// Edges from them.
    edges: usize,
    /// The least and the greatest that one of them offers, where that depends on nothing else.
    offers: Option<[A; 2]>,
    /// Whether no one offers less than it holds.
    is_monotone: bool,
    is_finite: bool,
}

impl<A> Tally<A> {
    const NONE: Tally<A> = Tally { vertices: 0, edges: 0, offers: None, is_monotone: true, is_finite: true };
}

/// A fixed point that is being searched for.
struct Search<P: Kernels, T: Number, K: Relax<P>> {
    ground: Arc<Ground<T>>,
    frontier: Arc<Frontier<T>>,
    uniform: Uniform<T>,
    /// Which array holds the shared state.
    source: usize,
    /// What is found out in the round: the next frontier, as a list unless it pulls, vertices that are to be copied, and a tally.
    found: Mutex<Found<K::Key<T>>>,
    /// Whether vertices that hold the least of all offers take nothing any more.
    closes: AtomicBool,
    kernel: PhantomData<fn(P, K)>,
}

struct Found<A> {
    lists: Vec<Vec<u32>>,
    moved: Vec<Vec<u32>>,
    tally: Tally<A>,
}

/// A round of it.
struct Round<P: Kernels, T: Number, K: Relax<P>> {
    search: Arc<Search<P, T, K>>,
    /// Which of the bitmaps is the frontier.
    now: usize,
    /// The frontier as lists, if it pushes.
    lists: Vec<Vec<u32>>,
    /// The least and the greatest offer, if known.
    offers: Option<[K::Key<T>; 2]>,
}

/// Runs rounds of a relaxation until one changes nothing, `most` at most: how many, and whether all came out finite. None where the
/// layout does not allow it.
pub(in crate::engine) fn fixpoint<P: Kernels, T: Number, K: Relax<P>>(
    cpu: &mut Cpu<T>,
    pass: &Pass<T>,
    most: u32,
) -> Option<(u32, bool)> {
    let (star, domain) = (<K::Along as Star<1>>::INDEX, cpu.ground.domain.clone());
    // Taken out, so that what a kernel that panics leaves behind is not used again.
    let known = cpu.frontiers.remove(&star).unwrap_or_else(|| Frontier::new(&domain, star).map(Arc::new));
    let outcome = known.as_ref().map(|frontier| search::<P, T, K>(cpu, frontier, pass, most));
    cpu.frontiers.insert(star, known);
    outcome
}

/// The same where the layout does.
fn search<P: Kernels, T: Number, K: Relax<P>>(
    cpu: &mut Cpu<T>,
    frontier: &Arc<Frontier<T>>,
    pass: &Pass<T>,
    most: u32,
) -> (u32, bool) {
    let ground = cpu.ground.clone();
    cpu.quiet.forget();
    ground.memory.forget_marks();
    frontier.closed.copy(&frontier.barren);
    let search = Arc::new(Search::<P, T, K> {
        ground: ground.clone(),
        frontier: frontier.clone(),
        uniform: pass.uniform.clone(),
        source: cpu.current,
        found: Mutex::new(Found { lists: Vec::new(), moved: Vec::new(), tally: Tally::NONE }),
        closes: AtomicBool::new(true),
        kernel: PhantomData,
    });
    let has_data = <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN > 0;
    let first = search.clone();
    let tiles = ground.domain.tiles.len();
    let kind = fixpoint::<P, T, K> as *const () as u64;
    cpu.each(kind, tiles, move |t| first.begin(t));
    let mut found = search.take();
    // All of it is in the first bitmap.
    let (mut now, mut lists, mut pulls, mut is_finite) = (0, None, false, true);
    let (mut left, mut last) = (frontier.edges, 0);
    for round in 0..most {
        if let Some(audit) = &ground.audit {
            audit.left_out(Rule::AtOnce, 0..ground.domain.along_curve.len());
        }
        let Tally { vertices, edges, offers, is_monotone, .. } = found.tally;
        if vertices == 0 {
            return (1, is_finite); // nobody holds anything
        }
        if !is_monotone && search.closes.swap(false, Relaxed) {
            frontier.closed.copy(&frontier.barren);
        }
        let stays = pulls && (vertices >= last || vertices > frontier.vertices / PUSH);
        pulls = match has_data {
            true => edges > frontier.edges / PULL_DATA,
            false => stays || edges > left / PULL,
        };
        #[cfg(test)]
        ROUNDS[usize::from(pulls)].fetch_add(1, Relaxed);
        left = left.saturating_sub(edges);
        last = vertices;
        if !pulls && lists.is_none() {
            lists = Some(cpu.listed(kind, frontier, now));
        }
        let offers = offers.filter(|_| !has_data);
        let old = lists.take().filter(|_| !pulls);
        let this = Arc::new(Round { search: search.clone(), now, lists: old.unwrap_or_default(), offers });
        if pulls {
            let work = this.clone();
            cpu.each(kind + 1, tiles, move |t| work.pull(t));
            found = search.take();
            now = 1 - now;
        } else {
            frontier.best.get_or_init(|| (0..ground.domain.slots()).map(|_| AtomicU64::new(0)).collect());
            let pieces: Vec<(usize, Range<usize>)> = this.pieces();
            let work = this.clone();
            cpu.each(kind + 2, pieces.len(), move |i| work.push(pieces[i].clone()));
            let touched = search.take().lists;
            let work = this.clone();
            cpu.each(kind + 3, touched.len(), move |i| work.apply(&touched[i]));
            found = search.take();
            let bits = &frontier.bits[now];
            this.lists.iter().flatten().for_each(|&slot| bits.clear(slot));
            found.lists.iter().flatten().for_each(|&slot| bits.set(slot));
            lists = Some(std::mem::take(&mut found.lists));
        }
        // What was in the frontier and has changed again.
        for &slot in found.moved.iter().flatten() {
            ground.memory.keep(slot as usize..slot as usize + 1, 1 - search.source, search.source);
        }
        is_finite &= found.tally.is_finite;
        if found.tally.vertices == 0 {
            search.finish();
            return (round + 1, is_finite);
        }
    }
    search.finish();
    (most, is_finite)
}

impl<T: Number> Cpu<T> {
    /// The slots of a bitmap, as lists.
    fn listed(&mut self, kind: u64, frontier: &Arc<Frontier<T>>, now: usize) -> Vec<Vec<u32>> {
        const WORDS: usize = 1 << 10;
        let (bits, lists): (_, Arc<Mutex<Vec<Vec<u32>>>>) = (frontier.clone(), Arc::default());
        let (pieces, all) = (bits.bits[now].0.len().div_ceil(WORDS), lists.clone());
        self.each(kind + 4, pieces, move |i| {
            let words = bits.bits[now].0.chunks(WORDS).nth(i).unwrap_or_default();
            let of_word = |(w, word): (usize, &AtomicU64)| slots(i * WORDS + w, word.load(Relaxed));
            let list: Vec<u32> = words.iter().enumerate().flat_map(of_word).collect();
            if !list.is_empty() {
                lock(&all).push(list);
            }
        });
        std::mem::take(&mut lock(&lists))
    }
}

fn lock<A>(mutex: &Mutex<A>) -> MutexGuard<'_, A> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Kernels, T: Number, K: Relax<P>> Search<P, T, K> {
    const STAR: usize = <K::Along as Star<1>>::INDEX;

    /// What was found out.
    fn take(&self) -> Found<K::Key<T>> {
        std::mem::replace(&mut lock(&self.found), Found { lists: Vec::new(), moved: Vec::new(), tally: Tally::NONE })
    }

    fn given(&self) -> Given<P, T> {
        self.uniform.given(0, 0)
    }

    /// Who holds something in a tile: the first frontier.
    fn begin(&self, t: usize) {
        let Ground { domain, memory, .. } = &*self.ground;
        let tile = &domain.tiles[t];
        let (_, vertices) = rows(tile, Self::STAR);
        let (cells, given, bits) = (memory.open(self.source, true), self.given(), &self.frontier.bits[0]);
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
    fn finish(&self) {
        let cells = self.ground.memory.open(self.source, true);
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
    fn note(tally: &mut Tally<K::Key<T>>, given: &Given<P, T>, edges: usize, shared: &SharedOf<P, T>) {
        tally.vertices += 1;
        tally.edges += edges;
        if <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN == 0 {
            let offer = K::offer(given, *shared, Record::build(|_| unreachable!("edges have no data")));
            tally.is_monotone &= !less(offer, K::held(shared));
            tally.offer(offer, offer);
        }
    }

    fn add(&self, tally: Tally<K::Key<T>>, list: Vec<u32>, moved: Vec<u32>) {
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

impl<A> Tally<A> {
    #[inline(always)]
    fn offer<R: Number>(&mut self, least: A, most: A)
    where
        A: Record<R>,
    {
        self.offers = Some(match self.offers {
            None => [least, most],
            Some([low, high]) => {
                [if less(least, low) { least } else { low }, if less(high, most) { most } else { high }]
            }
        });
    }
}

/// The shared state of a slot as the round before left it.
#[inline(always)]
fn seen<P: Kernels, T: Number>(cells: &Cells<T>, slot: usize) -> SharedOf<P, T> {
    let stride = crate::layout::shared_stride(<SharedOf<P, T>>::LEN);
    Record::build(|k| cells.leaf(slot * stride + k, stride))
}

impl<P: Kernels, T: Number, K: Relax<P>> Round<P, T, K> {
    /// Each vertex of a tile that may still take something looks for neighbors in the frontier.
    fn pull(&self, t: usize) {
        let Search { ground, frontier, .. } = &*self.search;
        let tile = &ground.domain.tiles[t];
        let (rows, _) = rows(tile, Search::<P, T, K>::STAR);
        let len = <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN;
        let (offsets, others, data) = (&*rows.offsets, &*rows.others, &*rows.data);
        let [now, next] = [&frontier.bits[self.now], &frontier.bits[1 - self.now]];
        let mut taker = Taker::new(self);
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
                Some([least, _]) => {
                    for slot in slots(w, !closed) {
                        if !less(least, K::held(&seen::<P, T>(&taker.cells, slot as usize))) {
                            closing |= 1 << (slot % 64);
                            continue;
                        }
                        let mut best = None;
                        for &u in others[row(slot)].iter().filter(|&&u| now.has(u)) {
                            let offer = taker.offer(u, Record::build(|_| unreachable!("edges have no data")));
                            if best.is_none_or(|(_, least, _)| less(offer, least)) {
                                best = Some((slot, offer, u));
                                if !less(least, offer) {
                                    break;
                                }
                            }
                        }
                        winners.extend(best);
                    }
                }
                None => {
                    for slot in slots(w, !closed) {
                        let mut best = None;
                        for e in row(slot).filter(|&e| now.has(others[e])) {
                            let offer = taker.offer(others[e], Record::build(|k| data[e * len + k]));
                            if best.is_none_or(|(_, least, _)| less(offer, least)) {
                                best = Some((slot, offer, others[e]));
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
            if closing != 0 && taker.closes {
                frontier.closed.0[w].store(closed | closing, Relaxed);
            }
        }
        self.search.add(taker.tally, Vec::new(), taker.moved);
    }

    /// The frontier in pieces.
    fn pieces(&self) -> Vec<(usize, Range<usize>)> {
        let of_list = |(i, list): (usize, &Vec<u32>)| {
            let len = list.len();
            (0..len).step_by(PIECE).map(move |start| (i, start..len.min(start + PIECE)))
        };
        self.lists.iter().enumerate().flat_map(of_list).collect()
    }

    /// Some vertices of the frontier offer along their edges. Lists the vertices that had no offer before.
    fn push(&self, (list, piece): (usize, Range<usize>)) {
        let Search { ground, frontier, .. } = &*self.search;
        let taker = Taker::new(self);
        let best = frontier.best.get().expect("a push is prepared");
        let mut touched = Vec::new();
        for &from in &self.lists[list][piece] {
            let (rows, row) = frontier.outs(&ground.domain, Search::<P, T, K>::STAR, from);
            for (e, &v) in rows.others[rows.row(row)].iter().enumerate() {
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
        self.search.add(Tally::NONE, touched, Vec::new());
    }

    /// Some vertices look at the best that they were offered.
    fn apply(&self, touched: &[u32]) {
        let frontier = &self.search.frontier;
        let mut taker = Taker::new(self);
        let best = frontier.best.get().expect("a push is prepared");
        let (mut taken, now) = (Vec::new(), &frontier.bits[self.now]);
        for &slot in touched {
            let known = best[slot as usize].swap(0, Relaxed);
            let (offer, edges) = (taker.offered(known), frontier.degrees[slot as usize / 64] as usize);
            if taker.take(slot, now.has(slot), offer, (known >> 32) as u32 - 1, edges) {
                taken.push(slot);
                if taker.closes && taker.closes(offer) {
                    frontier.closed.set(slot);
                }
            }
        }
        self.search.add(taker.tally, taken, taker.moved);
    }
}

/// Takes offers in a round.
struct Taker<'a, P: Kernels, T: Number, K: Relax<P>> {
    round: &'a Round<P, T, K>,
    given: Given<P, T>,
    /// The state as it is read, and as vertices of the frontier are written.
    cells: Cells<'a, T>,
    /// As others are.
    in_place: Cells<'a, T>,
    closes: bool,
    /// As in the round.
    offers: Option<[K::Key<T>; 2]>,
    tally: Tally<K::Key<T>>,
    /// Vertices of the frontier that were written.
    moved: Vec<u32>,
}

impl<'a, P: Kernels, T: Number, K: Relax<P>> Taker<'a, P, T, K> {
    fn new(round: &'a Round<P, T, K>) -> Self {
        let Search { ground, source, closes, .. } = &*round.search;
        check_shape::<T, 1, K::Along>(ground.domain.stars[Search::<P, T, K>::STAR].lengths());
        let open = |in_place| ground.memory.open(*source, in_place);
        let (given, closes) = (round.search.given(), closes.load(Relaxed));
        let (tally, offers) = (Tally::NONE, round.offers);
        Taker { round, given, cells: open(false), in_place: open(true), closes, offers, tally, moved: Vec::new() }
    }

    /// What a slot of the frontier offers.
    #[inline(always)]
    fn offer(&self, from: u32, edge: <K::Along as Star<1>>::Data<T>) -> K::Key<T> {
        K::offer(&self.given, seen::<P, T>(&self.cells, from as usize), edge)
    }

    /// The offer that [`Frontier::best`] stands for.
    #[inline(always)]
    fn offered(&self, best: u64) -> K::Key<T> {
        let (from, e) = ((best >> 32) as u32 - 1, best as u32 as usize);
        let Search { ground, frontier, .. } = &*self.round.search;
        let (rows, row) = frontier.outs(&ground.domain, Search::<P, T, K>::STAR, from);
        let (at, len) = (rows.row(row).start + e, <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN);
        self.offer(from, Record::build(|k| rows.data[at * len + k]))
    }

    /// Whether who takes this offer takes no other any more: none is less, now or later.
    #[inline(always)]
    fn closes(&self, offer: K::Key<T>) -> bool {
        self.offers.is_some_and(|[least, _]| !less(least, offer))
    }

    /// Updates a slot by an offer of another, unless it holds no more than that. `is_moved`: whether it is in the frontier itself;
    /// `edges`: about as many as it has.
    #[inline(always)]
    fn take(&mut self, slot: u32, is_moved: bool, offer: K::Key<T>, from: u32, edges: usize) -> bool {
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

/// Rounds that pushed and that pulled in all tests of this process.
#[cfg(test)]
static ROUNDS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::stress::Random;
    use crate::engine::{Engine, Interpreter, Serial, Table};
    use crate::layout::{Layout, Shape, State, data_graph};
    use crate::number::{Int, Integer};
    use crate::program::{Program, Stages, StarPlan, Stars};
    use crate::schedule::{Order, Schedule};
    use crate::step::{Stage, Step};
    use crate::{Mesh, kernels, stars, vertex};
    use meshweft_mesh::Permutation;

    vertex! { struct Place<R> { shared label: R::Int, shared id: R, from: R, times: R::Int } }
    stars! { Roads[1]; Lanes[1]; Miles[1]: R; }

    /// Labels that spread in every way that there is.
    struct Spreading;

    kernels! {
        for Spreading: Place;
        /// The same label everywhere, counted: a level.
        relax Level(Roads: R::Int) {
            held |own| own.label;
            offer |_, from, ()| from.label + R::Int::lit(1);
            take |_, own, label, from| Place { label, from: from.id, times: own.times + R::Int::lit(1), ..own };
        }
        /// Labels as they are, along edges of one direction.
        relax Least(Lanes: R::Int) {
            held |own| own.label;
            offer |_, from, ()| from.label;
            take |_, own, label, from| Place { label, from: from.id + own.from, ..own };
        }
        /// Labels grow by what an edge says, which may be nothing.
        relax Way(Miles: R::Int) {
            held |own| own.label;
            offer |_, from, miles| from.label + miles.to_int();
            take |_, own, label, from| Place { label, from: from.id * R::lit(3.0) + own.from, ..own };
        }
        /// Labels that shrink on the way: nobody is ever done.
        relax Fall(Roads: R::Int) {
            held |own| own.label;
            offer |_, from, ()| from.label - R::Int::lit(3);
            take |_, own, label, from| Place { label, from: from.id, times: own.times + R::Int::lit(1), ..own };
        }
    }

    impl Program for Spreading {
        fn initial(&self, _: &Mesh, _: u32) -> Place<f64> {
            unreachable!("the test fills the state")
        }
        fn step(&self, _: &mut Stages<Self>) {}
    }

    fn plans(edges: &[[u32; 2]], is_plain: bool) -> Vec<StarPlan> {
        let mut stars = Stars::default();
        let of = |i: usize| -> Vec<[u32; 2]> { edges.iter().skip(i).step_by(3 - i.min(1)).copied().collect() };
        stars.add(Roads, of(0), |_| ());
        stars.add_directed(Lanes, Arc::new(of(1)), |_| ());
        stars.add(Miles, of(2), |i| f64::from(i.vertices[0] * 7 % 5 + i.vertices[1] % 3));
        stars.plans.iter_mut().for_each(|plan| plan.is_plain = is_plain);
        stars.plans
    }

    fn check(seed: u64) {
        let random = &mut Random(seed);
        let n = 1 + random.below(3000);
        let edges = random.edges(n);
        let numbers = Permutation::sorted_by_number(n, |v| u64::from(v).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
        let graph = data_graph(&numbers, &plans(&edges, false)).unwrap();
        let schedule = Schedule::new(&graph, Order::JACOBI, 1 + random.below(500) as u32).unwrap();
        let most = if random.below(2) == 0 { 3 } else { n };
        let sources = 1 + random.below(most);
        let labels: Vec<i32> =
            (0..n).map(|_| if random.below(n) < sources { random.below(100) as i32 } else { i32::MAX }).collect();
        let laid_out = |width, is_plain| {
            let shape = Shape { width, shared: 2, private: 2 };
            let mut layout = Layout::<Int>::new(schedule.clone(), &numbers, plans(&edges, is_plain), shape).unwrap();
            layout.fix(|v| v % 13 == 5);
            let state = State::new(layout.slots(), width, |slot| {
                let v = layout.vertex_at(layout.place(slot) as u32) as i32;
                Place { label: Int(labels[v as usize]), id: Int(v), from: Int(-1), times: Int(0) }.split()
            });
            (layout, state)
        };
        let table = Arc::new(Table::of::<Spreading>());
        let (layout, state) = laid_out(random.one_of(&[1, 8, 16]), true);
        let cpu = Cpu::new(1 + random.below(4), layout.domain.clone(), None, state).unwrap();
        let mut cpu = Interpreter::new(cpu, table.clone(), Vec::new());
        let (plain, state) = laid_out(1, false);
        let mut oracle = Interpreter::new(Serial::new(plain.domain.clone(), state), table, Vec::new());
        for number in 0..3 {
            let kernel = random.below(4);
            let most = if kernel == 3 { 1 + random.below(9) as u32 } else { 1 + random.below(2 * n) as u32 };
            let stages = vec![Stage::Fixpoint { kernel, settings: [0.0; 4], most }];
            let step = Step { number, parameters: Vec::new(), stages };
            cpu.step(&step).unwrap();
            oracle.step(&step).unwrap();
            let reals = |layout: &Layout<Int>, engine: &dyn Engine<Int>| -> Vec<[Int; 4]> {
                let view = engine.state().unwrap();
                (0..n as u32).map(|v| [0, 1, 2, 3].map(|k| view.real(layout.slot(v), k))).collect()
            };
            assert_eq!(reals(&layout, &cpu), reals(&plain, &oracle), "after step {number}, kernel {kernel}");
            assert_eq!(cpu.progress(), oracle.progress(), "kernel {kernel}");
        }
    }

    /// `SEED=17 cargo test frontier` repeats one case.
    #[test]
    fn any_graph_direction_and_number_of_threads_has_the_bits_and_rounds_of_the_oracle() {
        let seeds = match std::env::var("SEED") {
            Ok(seed) => seed.parse().map(|seed| seed..seed + 1).expect("SEED is an integer"),
            Err(_) => 0..150,
        };
        for seed in seeds.clone() {
            if let Err(panic) = std::panic::catch_unwind(|| check(seed)) {
                eprintln!("this case again: SEED={seed} cargo test -p meshweft --lib frontier");
                std::panic::resume_unwind(panic);
            }
        }
        let [pushed, pulled] = [0, 1].map(|i| ROUNDS[i].load(Relaxed));
        assert!(seeds.count() == 1 || (pushed > 200 && pulled > 200), "{pushed} pushed, {pulled} pulled");
    }
}
