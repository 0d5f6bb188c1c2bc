//! What relaxations along one star work with.

use super::bitmap::Bitmap;
use crate::layout::{Data, Domain, Ell, Form, Tile};
use crate::number::{Number, with_number};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What all relaxations along one star work with.
pub(in crate::engine::cpu) struct Frontier {
    /// Those whose edges are listed by tiles alone if that is `None`: edges from each slot, to whom, and their data as it is seen there.
    pub(super) outs: Option<Ell<u32>>,
    /// The first neighbor of each slot in the order of the curve, the likeliest to be in the frontier: of most vertices nothing else need
    /// be looked at. Any slot where there is none.
    pub(super) first: Vec<u32>,
    /// For every 64 slots the tile of the first, and how many edges leave one of them in the mean: in an order by degree they hardly
    /// differ.
    pub(super) tile_of: Vec<u32>,
    pub(super) degrees: Vec<u32>,
    /// Two bitmaps that take turns as the frontier.
    pub(super) bits: [Bitmap; 2],
    /// Vertices that take nothing any more.
    pub(super) closed: Bitmap,
    /// Vertices that never do: they have no edge, or are fixed, or padding.
    pub(super) excluded: Bitmap,
    /// Slots that some vertex is, and the edges to them.
    pub(super) vertices: usize,
    pub(super) edges: usize,
    /// Of each slot the best offer so far: one more than the slot that makes it, and which of its edges it comes along; 0 without one.
    pub(super) best: OnceLock<Box<[AtomicU64]>>,
}

impl Frontier {
    /// None where the layout is none of plain lists in the order of the curve.
    pub(in crate::engine::cpu) fn new(domain: &Domain, star: usize) -> Option<Frontier> {
        let is_plain = |tile: &Tile| matches!(tile.form, Form::Rows { .. }) && tile.slots.start.is_multiple_of(64);
        let fits = domain.share.is_none() && domain.tiles.iter().all(is_plain) && domain.along_curve.is_sorted();
        if !fits {
            return None;
        }
        let slots = domain.slots();
        let (excluded, mut vertices, mut edges, mut firsts) = (Bitmap::new(slots), 0, 0, vec![0; slots]);
        excluded.0.iter().for_each(|word| word.store(u64::MAX, Relaxed));
        for tile in &domain.tiles {
            let (rows, count) = rows(tile, star);
            for i in 0..count {
                let slot = tile.slots.start as usize + i;
                firsts[slot] = rows.others[rows.row(i)].first().copied().unwrap_or(0);
                if !rows.row(i).is_empty() && tile.fixed(slot..slot + 1).is_none() {
                    excluded.0[slot / 64].fetch_and(!(1 << (slot % 64)), Relaxed);
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
            bits: [Bitmap::new(slots), Bitmap::new(slots)],
            closed: Bitmap::new(slots),
            excluded,
            vertices,
            edges,
            best: OnceLock::new(),
        };
        let degree = |slot: u32| {
            let (rows, row) = frontier.outs(domain, star, slot);
            // Padding has no row.
            rows.columns.get(row + 1).map_or(0, |end| end - rows.columns[row])
        };
        let words = (0..slots as u32).step_by(64);
        frontier.degrees =
            words.map(|first| (first..slots as u32).take(64).map(degree).sum::<u32>().div_ceil(64)).collect();
        Some(frontier)
    }

    /// The lists that have the edges from a slot, and which row of them it is.
    #[inline(always)]
    pub(super) fn outs<'a>(&'a self, domain: &'a Domain, star: usize, slot: u32) -> (&'a Ell<u32>, usize) {
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
pub(super) fn rows(tile: &Tile, star: usize) -> (&Ell<u32>, usize) {
    match &tile.form {
        Form::Rows { vertices, stars } => (&stars[star], *vertices as usize),
        _ => unreachable!("all tiles are plain"),
    }
}

/// The edges of a star by the slots that they come from. Cost O(slots + edges), on one thread.
fn outs(domain: &Domain, star: usize) -> Ell<u32> {
    let len = domain.stars[star].lengths().1;
    let mut offsets = vec![0u32; domain.slots() + 1];
    let lists = || domain.tiles.iter().map(|tile| (tile.slots.start, rows(tile, star)));
    lists().flat_map(|(_, (rows, _))| &*rows.others).for_each(|&from| offsets[from as usize + 1] += 1);
    (0..domain.slots()).for_each(|slot| offsets[slot + 1] += offsets[slot]);
    let edges = offsets[domain.slots()] as usize;
    let mut next = offsets.clone();
    let mut others = vec![0; edges];
    let data = with_number!(domain.precision, T => {
        let mut data = vec![T::from_f64(0.0); edges * len];
        for (first, (rows, count)) in lists() {
            let numbers = rows.data.numbers::<T>();
            for i in 0..count {
                for e in rows.row(i) {
                    let at = &mut next[rows.others[e] as usize];
                    others[*at as usize] = first + i as u32;
                    data[*at as usize * len..][..len].copy_from_slice(&numbers[e * len..][..len]);
                    *at += 1;
                }
            }
        }
        Data::of(data)
    });
    Ell::rows((1, len), offsets, others, data)
}
