//! A program's stars and state, laid out in the order of a schedule.
//!
//! Vertices lie in **groups** of as many as run side by side (one on the oracle). A group never crosses a run of the
//! schedule, so no edge joins two vertices of it; where a run ends in the middle of a group, the lanes left over are
//! **clones** of its last vertex: they hold its state, compute what it computes, and nobody reads them. The place of a
//! vertex among all lanes is its **slot**.
//!
//! A **tile** is a piece of a phase or task that one thread works through: consecutive groups, and the **halo**, the
//! slots outside that its vertices read. A wide tile names neighbors by 16-bit places in a table of its own slots and its
//! halo, which is copied together when the tile starts: neighbors outside cannot change meanwhile, that is what the
//! schedule promises. Half the bytes of indices, no cache miss in the middle of an update, and no wandering reads.
//!
//! Vertices with far more neighbors than others would leave lanes idle: they form tiles of **rows**, one vertex after the
//! other, that name neighbors by slot. The oracle's layout consists of rows alone.

mod incidences;
mod rows;
mod state;
mod tiles;

pub(crate) use rows::{Row, Rows};
pub(crate) use state::{State, shared_stride};
pub(crate) use tiles::{Kind, Tile, Wide, WideRows, gather_rows, scatter_rows};

use crate::error::{Error, Result};
use crate::program::{Number, StarPlan};
use crate::schedule::{Plan, Schedule};
use incidences::{Counts, Incidences};
use meshweft_mesh::{Graph, Permutation};
use rayon::prelude::*;
use std::ops::Range;

/// Everything of a simulation that does not change from step to step.
pub(crate) struct Layout<T> {
    pub(crate) schedule: Schedule,
    /// Vertices of a group.
    pub(crate) width: usize,
    pub(crate) tiles: Vec<Tile>,
    /// Tiles of part `p` (phase or task) of the schedule: `parts[p]..parts[p + 1]`.
    parts: Vec<u32>,
    /// Slots that tiles read but do not own, tile after tile.
    pub(crate) halo: Vec<u32>,
    /// One for each star: of the vertices in wide tiles.
    pub(crate) wide: Vec<Wide<T>>,
    /// One for each star: of the vertices in tiles of rows.
    pub(crate) rows: Vec<Rows<T>>,
    /// From vertex ids of the mesh to places in the order, and back.
    pub(crate) places: Permutation,
    /// From places to slots.
    slots: Vec<u32>,
    /// From slots to places; a clone has that of its vertex.
    place_of: Vec<u32>,
}

/// The graph that joins every two vertices that appear in one element, numbered by `numbers`.
pub(crate) fn data_graph(numbers: &Permutation, plans: &[StarPlan]) -> Result<Graph> {
    let vertices = numbers.len();
    for plan in plans {
        let outside = |&v: &u32| v as usize >= vertices;
        let pieces = plan.elements.par_chunks(1 << 14);
        // No early exit: the compiler compares many at once.
        if pieces.any(|piece| piece.iter().fold(false, |any, v| any | outside(v)))
            && let Some(at) = plan.elements.iter().position(outside)
        {
            return Err(Error::Contract(format!(
                "element {} of star {} names vertex {}, but the mesh has {vertices}",
                at / plan.corners,
                plan.index,
                plan.elements[at]
            )));
        }
    }
    let elements: Vec<(usize, &[u32])> = plans.iter().map(|plan| (plan.corners, &plan.elements[..])).collect();
    Ok(Graph::from_elements(numbers, &elements)?)
}

impl<T: Number> Layout<T> {
    /// Lays out the stars, which come by their indices, for groups of `width` vertices. `curve`: from ids of the mesh to
    /// numbers along the curve.
    pub(crate) fn new(
        schedule: Schedule,
        curve: &Permutation,
        plans: Vec<StarPlan>,
        width: usize,
    ) -> Result<Layout<T>> {
        let places = curve.then(schedule.permutation());
        if let Some((place, plan)) = plans.iter().enumerate().find(|(place, plan)| plan.index != *place) {
            return Err(Error::Contract(format!("star {place} is missing or given twice: found {}", plan.index)));
        }
        let counts: Vec<Counts> = plans.iter().map(|plan| Counts::new(plan, &places)).collect::<Result<_>>()?;
        let offsets: Vec<&[u32]> = counts.iter().map(|counts| &counts.offsets[..]).collect();
        let mut cut = tiles::cut(&schedule, &offsets, width);
        let slot_of: Vec<u32> =
            schedule.permutation().rank().par_iter().map(|&place| cut.slots[place as usize]).collect();
        let sources: Vec<tiles::Source> = plans
            .iter()
            .zip(counts)
            .map(|(plan, counts)| {
                let incidences = Incidences::new(counts, plan, &places, curve, &slot_of);
                tiles::Source { plan, incidences, places: &places, slots: &cut.slots }
            })
            .collect();
        let halo = tiles::halos(&mut cut.tiles, &mut cut.parts, &sources, &cut.place_of, width);
        let wide = sources.iter().map(|s| Wide::new(s, &cut.tiles, &halo, &cut.place_of, width)).collect();
        let rows = sources.iter().map(|s| Rows::new(s, &cut.tiles, &cut.place_of, width)).collect();
        let tiles::Cut { tiles, parts, slots, place_of } = cut;
        Ok(Layout { schedule, width, tiles, parts, halo, wide, rows, places, slots, place_of })
    }

    /// Number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.place_of.len()
    }

    /// The places of all slots; a clone has that of its vertex.
    pub(crate) fn place_of(&self) -> &[u32] {
        &self.place_of
    }

    /// The slot of vertex `v` of the mesh.
    pub(crate) fn slot(&self, v: u32) -> usize {
        self.slots[self.places.rank()[v as usize] as usize] as usize
    }

    /// The slots of vertex `v` of the mesh and of its clones.
    pub(crate) fn slots_of(&self, v: u32) -> Range<usize> {
        self.clones(self.slot(v))
    }

    /// `slot` and those of its clones.
    pub(crate) fn clones(&self, slot: usize) -> Range<usize> {
        let end = (slot / self.width + 1) * self.width;
        let same = self.place_of[slot..end].iter().take_while(|&&place| place == self.place_of[slot]);
        slot..slot + same.count()
    }

    /// The place in the order of the vertex in `slot`.
    pub(crate) fn place(&self, slot: usize) -> usize {
        self.place_of[slot] as usize
    }

    /// The slot of the vertex at `place` in the order.
    pub(crate) fn slot_at(&self, place: u32) -> usize {
        self.slots[place as usize] as usize
    }

    /// The vertex of the mesh at `place` in the order.
    pub(crate) fn vertex_at(&self, place: u32) -> u32 {
        self.places.order()[place as usize]
    }

    /// Tiles of some consecutive parts of the schedule.
    pub(crate) fn tiles_of(&self, parts: Range<usize>) -> Range<usize> {
        self.parts[parts.start] as usize..self.parts[parts.end] as usize
    }

    /// Slots of a tile's own vertices.
    pub(crate) fn own(&self, tile: &Tile) -> Range<usize> {
        tile.groups.start as usize * self.width..tile.groups.end as usize * self.width
    }

    /// Bytes that a sweep reads of the layout: what tells it who the neighbors are, and the data of stars.
    pub(crate) fn round_bytes(&self) -> usize {
        let wide: usize = self.wide.iter().map(Wide::bytes).sum();
        let rows: usize = self.rows.iter().map(Rows::bytes).sum();
        wide + rows + self.halo.len() * 4
    }

    /// Bytes of the rows of all stars and of the names of vertices.
    pub(crate) fn bytes(&self) -> usize {
        let names = (2 * self.places.len() + self.slots.len() + self.place_of.len()) * 4;
        self.round_bytes() + names + self.tiles.len() * size_of::<Tile>()
    }
}

/// Cuts a slice into the pieces `cuts[i]..cuts[i + 1]`.
fn pieces<'a, A>(mut slice: &'a mut [A], cuts: &'a [usize]) -> impl Iterator<Item = &'a mut [A]> {
    cuts.windows(2).map(move |w| {
        let (piece, rest) = std::mem::take(&mut slice).split_at_mut(w[1] - w[0]);
        slice = rest;
        piece
    })
}

/// Where the parts of a plan start, and the end.
fn parts_of(plan: &Plan) -> &[u32] {
    match plan {
        Plan::Phases { offsets } | Plan::Tasks { offsets, .. } => offsets,
    }
}
