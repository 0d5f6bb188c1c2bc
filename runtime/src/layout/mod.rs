//! A program's stars and state, laid out in the order of a schedule.
//!
//! Vertices lie in **groups** of as many as run side by side (one on the oracle). A group never crosses a run of the
//! schedule, so no edge joins two vertices of it; where a run ends in the middle of a group, the lanes left over are
//! **padding**: they hold the state of its last vertex, compute what it computes, and nobody reads them. The place of a
//! vertex among all lanes is its **slot**.
//!
//! A **tile** is a piece of a task that one thread works through: consecutive groups, and the **halo**, the
//! slots outside that its vertices read. It owns everything that its update reads besides the state, so a tile can be built,
//! kept and sent by itself. A wide tile names neighbors by 16-bit places in a table of its own slots and its
//! halo, which is copied together when the tile starts: neighbors outside cannot change meanwhile, that is what the
//! schedule promises. Half the bytes of indices, no cache miss in the middle of an update, and no wandering reads.
//!
//!
//! Where neighbors lie all over the state, as in graphs without place or between colors, a table would be read hardly more often than
//! it is written: such a tile is **spread**, names neighbors by slots, and reads the state itself.
//!
//! Vertices with far more neighbors than the others of their group would leave lanes idle: they form tiles of **rows**, one vertex
//! after the other, that name neighbors by slot. The oracle's layout consists of rows alone.
//!
//! Elements that are [projected](crate::Project) are the vertices of a layout of their own (`elements.rs`).

#[cfg(feature = "cluster")]
mod blocks;
mod changing;
mod cut;
mod data;
mod domain;
mod elements;
mod ell;
mod incidences;
mod opened;
mod packed;
#[cfg(feature = "cluster")]
mod reach;
mod renewal;
mod rows;
#[cfg(feature = "cluster")]
mod share;
#[cfg(feature = "cluster")]
mod sound;
mod state;
mod tile;
mod wide;
#[cfg(feature = "cluster")]
mod wire;

#[cfg(feature = "cluster")]
pub(crate) use blocks::Blocks;
pub(crate) use changing::Changing;
pub(crate) use cut::Forms;
pub(crate) use data::Data;
pub(crate) use domain::Domain;
#[cfg(feature = "cluster")]
pub(crate) use domain::Share;
pub(crate) use elements::Plan as ElementPlan;
pub(crate) use ell::{Ell, OpenEll};
pub(crate) use opened::Opened;
#[cfg(feature = "cluster")]
pub(crate) use reach::owners_of_elements;
pub(crate) use rows::Row;
#[cfg(feature = "cluster")]
pub(crate) use share::Shares;
pub(crate) use state::{Edit, Shape, State, View, ViewMut, shared_stride};
pub(crate) use tile::{Form, Tile};
pub(crate) use wide::{Lookup, QUADS, WideRows, gather_rows, scatter_rows};
#[cfg(feature = "cluster")]
pub(crate) use wire::{get, put};

use crate::error::{Error, Result};
use crate::number::Precision;
use crate::program::{Kind, StarPlan};
use cut::{Cut, Span};
use incidences::{Incidences, Names, Source, Whole};
use meshweft_mesh::{Graph, Permutation, parallel};
use meshweft_schedule::Schedule;
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Slots whose tiles are built together: what is known of them and the elements around them stays in a core's cache. A block of
/// the default order, and as many of short tasks.
const BATCH: usize = 1 << 12;

/// Slots whose tiles are packed at a time, some tens of megabytes: no more than that is there twice.
const PACKED: usize = 1 << 19;

/// Everything of a simulation that does not change from step to step.
pub(crate) struct Layout {
    pub(crate) schedule: Schedule,
    /// What engines walk.
    pub(crate) domain: Arc<Domain>,
    /// From vertex ids of the mesh to places in the order, and back.
    pub(crate) places: Permutation,
    /// From places to slots.
    slots: Vec<u32>,
    /// Stars along which nothing but relaxations looks, where vertices are laid out one by one.
    pub(crate) searched: Vec<usize>,
    /// Stars whose elements are projected: those as the vertices of a layout of their own.
    pub(crate) elements: BTreeMap<usize, Layout>,
    /// Where the vertices are that the program has beside those of the mesh.
    pub(crate) beside: Vec<[f64; 3]>,
}

impl Deref for Layout {
    type Target = Domain;

    fn deref(&self) -> &Domain {
        &self.domain
    }
}

/// Refuses elements of vertices that the mesh does not have.
pub(crate) fn check_elements(vertices: usize, plans: &[StarPlan]) -> Result<()> {
    for (plan, elements) in plans.iter().flat_map(|plan| [(plan, plan.elements()), (plan, plan.near.as_flattened())]) {
        let outside = |&v: &u32| v as usize >= vertices;
        if let Some(at) = parallel::first(elements.len(), |at| outside(&elements[at])) {
            return Err(Error::Program(format!(
                "element {} of star {} names vertex {}, but the mesh has {vertices}",
                at / plan.corners,
                plan.name,
                elements[at]
            )));
        }
    }
    Ok(())
}

/// How many corners of elements lie at each of so many vertices.
pub(crate) fn degrees(vertices: usize, plans: &[StarPlan]) -> Vec<u32> {
    let degrees: Vec<AtomicU32> = (0..vertices).map(|_| AtomicU32::new(0)).collect();
    for plan in plans {
        let count = |&v: &u32| _ = degrees[v as usize].fetch_add(1, Ordering::Relaxed);
        parallel::each(plan.elements().chunks(1 << 14), |corners| corners.iter().for_each(count));
    }
    degrees.into_iter().map(AtomicU32::into_inner).collect()
}

/// The graph that joins every two vertices that appear in one element, or may well do so, numbered by `numbers`.
pub(crate) fn data_graph(numbers: &Permutation, plans: &[StarPlan]) -> Result<Graph> {
    let near = plans.iter().map(|plan| (2, plan.near.as_flattened()));
    let elements: Vec<(usize, &[u32])> = plans.iter().map(|plan| (plan.corners, plan.elements())).chain(near).collect();
    Ok(Graph::from_elements(numbers, &elements)?)
}

impl Layout {
    /// Lays out the stars, which come by their indices, for groups of `width` vertices. `curve`: from ids of the mesh to
    /// numbers along the curve.
    pub(crate) fn new(
        schedule: Schedule,
        curve: &Permutation,
        plans: &[StarPlan],
        precision: Precision,
        shape: Shape,
        forms: Forms,
    ) -> Result<Layout> {
        let width = shape.width;
        let places = curve.then(schedule.permutation());
        let stars: Vec<Whole> = plans.iter().map(|plan| Whole::new(plan, &places)).collect::<Result<_>>()?;
        let starts: Vec<&[u32]> = stars.iter().map(Whole::starts).collect();
        let Cut { spans, tasks, slots, place_of } = cut::cut(&schedule, &starts, width, forms);
        let rank = schedule.permutation().rank();
        let slot_of = parallel::collect(rank.len(), |v| slots[rank[v] as usize]);
        let names = Names { places: &places, curve, slots: &slots, along_curve: &slot_of };
        let built = tiles(stars, names, &spans, &place_of, (width, precision, forms));
        // A span is often one tile, and sometimes several.
        let mut ends = vec![0];
        ends.extend(built.iter().scan(0, |end, tiles| {
            *end += tiles.len() as u32;
            Some(*end)
        }));
        let tasks = tasks.into_iter().map(|span| ends[span as usize]).collect();
        let tiles: Vec<Tile> = built.into_iter().flatten().collect();
        if let Some(star) = parallel::map(&tiles, |tile| tile.non_finite(plans, width)).into_iter().flatten().next() {
            return Err(not_finite(&plans[star], precision));
        }
        let run = |&place: &u32| slots.get(place as usize).copied().unwrap_or(place_of.len() as u32);
        let domain = Domain {
            precision,
            shape,
            width,
            graph: schedule.graph().clone(),
            order: schedule.order(),
            stars: plans.iter().map(StarPlan::common).collect(),
            tiles,
            tasks,
            parts: schedule.parts().iter().map(|&t| [t, schedule.tasks()[t as usize]]).collect(),
            runs: schedule.runs().iter().map(run).collect(),
            place_of,
            along_curve: slot_of,
            depths: schedule.depths(),
            share: None,
            elements: BTreeMap::new(),
        };
        let domain = Arc::new(domain);
        let is_plain = domain.tiles.iter().all(|tile| matches!(tile.form, Form::Rows { .. }));
        // Blocks of a grid stay as they are.
        let is_plain = is_plain && plans.iter().all(|plan| !plan.changes);
        let searched = plans.iter().filter(|plan| is_plain && plan.is_searched).map(|plan| plan.index).collect();
        Ok(Layout { schedule, domain, places, slots, searched, elements: BTreeMap::new(), beside: Vec::new() })
    }

    /// The slot of vertex `v` of the mesh.
    pub(crate) fn slot(&self, v: u32) -> usize {
        self.slots[self.places.rank()[v as usize] as usize] as usize
    }

    /// The slots of vertex `v` of the mesh and of its padding.
    pub(crate) fn slots_of(&self, v: u32) -> Range<usize> {
        self.with_padding(self.slot(v))
    }

    /// `slot` and those of its padding.
    pub(crate) fn with_padding(&self, slot: usize) -> Range<usize> {
        let (end, places) = ((slot / self.width + 1) * self.width, self.place_of());
        let same = places[slot..end].iter().take_while(|&&place| place == places[slot]);
        slot..slot + same.count()
    }

    /// The vertex of the mesh at `place` in the order.
    pub(crate) fn vertex_at(&self, place: u32) -> u32 {
        self.places.order()[place as usize]
    }

    /// Lets some vertices of the mesh keep their state.
    pub(crate) fn fix(&mut self, is_fixed: impl Fn(u32) -> bool + Sync) {
        let places = self.places.order();
        let is_fixed = |&place: &u32| is_fixed(places[place as usize]);
        Domain::each_tile(&mut self.domain, |tile, own| {
            let fixed: Vec<bool> = own.iter().map(is_fixed).collect();
            tile.fixed = if fixed.contains(&true) { fixed } else { Vec::new() };
        });
    }

    /// Writes down the numbers along the curve, for kernels that ask for them.
    pub(crate) fn number(&mut self) {
        let order = self.schedule.permutation().order();
        Domain::each_tile(&mut self.domain, |tile, own| {
            tile.numbers = own.iter().map(|&place| order[place as usize]).collect();
        });
    }

    /// Takes the layout of the elements of a star, which are projected.
    pub(crate) fn add_elements(&mut self, star: usize, elements: Layout) {
        let domain = Arc::get_mut(&mut self.domain).expect("nobody walks a domain that is being made");
        domain.elements.insert(star, elements.domain.clone());
        self.elements.insert(star, elements);
    }

    /// Bytes of the rows of all stars and of the names of vertices, and of elements that are projected.
    pub(crate) fn bytes(&self) -> usize {
        let names = (2 * self.places.len() + self.slots.len() + self.slots()) * 4;
        let own = self.round_bytes() + names + self.tiles.len() * size_of::<Tile>();
        own + self.elements.values().map(Layout::bytes).sum::<usize>()
    }
}

/// The tiles of each span. Batches of them are built in parallel and packed some at a time, the last first: what is known of the
/// elements around them is given up then.
fn tiles(
    mut stars: Vec<Whole>,
    names: Names,
    spans: &[Span],
    place_of: &[u32],
    (width, precision, forms): (usize, Precision, Forms),
) -> Vec<Vec<Tile>> {
    let batch_of = |span: &Span| span.slots.start as usize / BATCH;
    let batches: Vec<&[Span]> = spans.chunk_by(|a, b| batch_of(a) == batch_of(b)).collect();
    let some = batches.len().div_ceil(place_of.len().div_ceil(PACKED).max(1)).max(1);
    // As many as threads at work, used again: clearing two bytes a slot for each piece of work would take longer than the work.
    let scratches: Mutex<Vec<(Vec<Incidences>, Vec<u16>)>> = Mutex::default();
    let mut parts = Vec::new();
    for batches in batches.chunks(some).rev() {
        let build = |batch: &&[Span]| -> Vec<Vec<Tile>> {
            let unused = scratches.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let fresh = || (stars.iter().map(|_| Incidences::default()).collect(), vec![0; place_of.len()]);
            let (mut rows, mut local) = unused.unwrap_or_else(fresh);
            let own = batch[0].slots.start as usize..batch[batch.len() - 1].slots.end as usize;
            let own = place_of[own.start]..place_of[own.end - 1] + 1;
            stars.iter().zip(&mut rows).for_each(|(star, rows)| rows.fill(star, own.clone(), names));
            let sources: Vec<Source> = stars.iter().zip(&rows).map(|(star, rows)| star.source(rows, names)).collect();
            let tiles_of = |span| {
                let mut tiles = Vec::new();
                Tile::of(span, &sources, place_of, (width, precision, forms), &mut local, &mut tiles);
                tiles
            };
            let tiles = batch.iter().map(tiles_of).collect();
            scratches.lock().unwrap_or_else(PoisonError::into_inner).push((rows, local));
            tiles
        };
        let mut tiles: Vec<Vec<Vec<Tile>>> = parallel::map(batches, build);
        Tile::pack(tiles.iter_mut().flatten().flatten());
        parts.push(tiles);
        let first = place_of[batches[0][0].slots.start as usize];
        stars.iter_mut().for_each(|star| star.forget_from(first));
    }
    parts.into_iter().rev().flatten().flatten().collect()
}

/// The error of the first datum of a star that is not finite.
fn not_finite(plan: &StarPlan, precision: Precision) -> Error {
    let mut reals = Vec::new();
    for (element, corners) in plan.elements().chunks_exact(plan.corners).enumerate() {
        for corner in (0..plan.corners).filter(|&corner| plan.may_be_around(corner)) {
            reals.clear();
            (plan.data)(plan.elements(), &[(element * plan.corners + corner) as u32], &mut reals);
            let non_finite = |&k: &usize| plan.kinds[k] == Kind::Real && !precision.holds(reals[k]);
            if let Some(k) = (0..reals.len()).find(non_finite) {
                let (value, name, real) = (reals[k], plan.name, plan.name_of(k));
                let why = if value.is_nan() { "its formula has no value there" } else { "use f64, or other units" };
                return Error::Invalid(format!(
                    "{real} of star {name} is {value:?} for element {element} {corners:?}: {why}"
                ));
            }
        }
    }
    Error::Internal(format!("data of star {} are not finite, but each is", plan.name))
}
