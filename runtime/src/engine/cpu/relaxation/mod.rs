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

mod bitmap;
mod found;
mod frontier;
mod round;
mod search;
mod taker;
#[cfg(test)]
mod tests;

use super::ground::Ground;
use crate::engine::store::Store;
use crate::number::Number;
use crate::program::{Kernels, Record, Relax, Star, Uniform};
use bitmap::slots;
use found::{Found, Tally};
pub(super) use frontier::Frontier;
use meshweft_schedule::Rule;
use round::Round;
use search::{Search, lock};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A round pulls once the frontier has more than one of so many of the edges that were not looked at yet, and until it is less than
/// one of so many of the vertices and shrinks. The source has 15 and 18; a push costs more here, since offers are compared
/// (docs/perf/decisions/searches.md).
const PULL: usize = 60;
const PUSH: usize = 18;
/// A round pushes along fewer edges than one for so many vertices: less than a pull takes to find out who is left.
const FEW: usize = 128;
/// The same for edges with data, of which a pull looks at all.
const PULL_DATA: usize = 3;

/// Rounds that pushed and that pulled in all tests of this process.
#[cfg(test)]
static ROUNDS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Where a relaxation works.
pub(in crate::engine) struct Place<T> {
    pub(in crate::engine::cpu) ground: Arc<Ground<T>>,
    pub(in crate::engine::cpu) frontier: Arc<Frontier>,
    /// Which array holds the shared state.
    pub(in crate::engine::cpu) source: usize,
}

/// Runs rounds of a relaxation until one changes nothing, `most` at most: how many, and whether all came out finite. `threads`: those
/// that do the work.
pub(in crate::engine) fn fixpoint<P: Kernels, T: Number, K: Relax<P>>(
    threads: &mut dyn Store<T>,
    Place { ground, frontier, source }: Place<T>,
    uniform: &Uniform<T>,
    most: u32,
) -> (u32, bool) {
    ground.memory.forget_marks();
    frontier.closed.copy(&frontier.excluded);
    let search = Arc::new(Search::<P, T, K> {
        ground: ground.clone(),
        frontier: frontier.clone(),
        uniform: uniform.clone(),
        source,
        found: Mutex::new(Found::NOTHING),
        closes: AtomicBool::new(true),
        kernel: PhantomData,
    });
    let has_data = <<K::Along as Star<1>>::Data<T> as Record<T>>::LEN > 0;
    let first = search.clone();
    let tiles = ground.domain.tiles.len();
    let kind = fixpoint::<P, T, K> as *const () as u64;
    threads.each(kind, tiles, Arc::new(move |t| first.begin(t)));
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
            frontier.closed.copy(&frontier.excluded);
        }
        let stays = pulls && (vertices >= last || vertices > frontier.vertices / PUSH);
        pulls = match has_data {
            true => edges > frontier.edges / PULL_DATA,
            false => stays || edges > (left / PULL).max(frontier.vertices / FEW),
        };
        #[cfg(test)]
        ROUNDS[usize::from(pulls)].fetch_add(1, Relaxed);
        left = left.saturating_sub(edges);
        last = vertices;
        let listed = match (lists.take(), pulls) {
            (_, true) => Vec::new(),
            (Some(known), false) => known,
            (None, false) => listed(threads, kind, &frontier, now),
        };
        let this = Arc::new(Round { search: search.clone(), now, lists: listed, offers });
        if pulls {
            let work = this.clone();
            threads.each(kind + 1, tiles, Arc::new(move |t| work.pull(t)));
            found = search.take();
            now = 1 - now;
        } else {
            frontier.best.get_or_init(|| (0..ground.domain.slots()).map(|_| AtomicU64::new(0)).collect());
            let pieces: Vec<(usize, Range<usize>)> = this.pieces();
            let work = this.clone();
            threads.each(kind + 2, pieces.len(), Arc::new(move |i| work.push(pieces[i].clone())));
            let touched = search.take().lists;
            let work = this.clone();
            threads.each(kind + 3, touched.len(), Arc::new(move |i| work.apply(&touched[i])));
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

/// The slots of a bitmap, as lists.
fn listed<T: Number>(threads: &mut dyn Store<T>, kind: u64, frontier: &Arc<Frontier>, now: usize) -> Vec<Vec<u32>> {
    const WORDS: usize = 1 << 10;
    let (bits, lists): (_, Arc<Mutex<Vec<Vec<u32>>>>) = (frontier.clone(), Arc::default());
    let (pieces, all) = (bits.bits[now].0.len().div_ceil(WORDS), lists.clone());
    let list = move |i: usize| {
        let words = bits.bits[now].0.chunks(WORDS).nth(i).unwrap_or_default();
        let of_word = |(w, word): (usize, &AtomicU64)| slots(i * WORDS + w, word.load(Relaxed));
        let list: Vec<u32> = words.iter().enumerate().flat_map(of_word).collect();
        if !list.is_empty() {
            lock(&all).push(list);
        }
    };
    threads.each(kind + 4, pieces, Arc::new(list));
    std::mem::take(&mut lock(&lists))
}
