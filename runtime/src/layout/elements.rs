//! Elements that are projected, laid out as vertices are.
//!
//! A sweep over elements is a sweep on another graph: its vertices are the elements, and two are joined that share a corner. So
//! they have an order, tasks and runs by the same rules, and lie in tiles and groups. Elements of one group share no corner. What
//! lies "around" an element is itself, with all its corners, named by the slots of the vertices.

use super::cut::{Cut, Forms, Span, cut};
use super::data::Data;
use super::ell::Ell;
use super::incidences::by_corners;
use super::{Domain, Form, Layout, Shape, Tile};
use crate::error::{Error, Result};
use crate::program::{CORNERS, StarPlan, StarShape, own_first};
use meshweft_mesh::{Graph, Permutation, group, parallel};
use meshweft_schedule::{Order, Schedule};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pairs of elements that meet at a vertex, at most: some gigabytes while they are sorted.
const MOST: u64 = 1 << 28;

/// How elements are to be laid out.
pub(crate) struct Plan<'a> {
    pub(crate) star: &'a StarPlan,
    /// From ids of the mesh to numbers along the curve.
    pub(crate) curve: &'a Permutation,
    pub(crate) order: Order,
    pub(crate) grain: u32,
    pub(crate) shape: Shape,
    /// Whether kernels ask for the numbers of elements.
    pub(crate) is_numbered: bool,
}

impl Layout {
    /// The layout of the elements of a star among these vertices, and which of them share a corner, by their places in the order.
    /// `is_fixed`: of vertices of the mesh.
    ///
    /// Cost O(pairs of elements that share a corner), and sorts.
    ///
    /// # Errors
    /// An element that repeats a vertex; more pairs than memory is lent for.
    pub(crate) fn of_elements(&self, plan: &Plan, is_fixed: impl Fn(u32) -> bool + Sync) -> Result<(Layout, Graph)> {
        let &Plan { star, curve, order, grain, shape, is_numbered } = plan;
        let (graph, numbers) = graph_of(star, curve)?;
        let schedule = Schedule::new(&graph, order, grain)?;
        let places = numbers.then(schedule.permutation());
        let Cut { spans, tasks, slots, place_of } = cut(&schedule, &[], shape.width, Forms::Tables);
        let mut tiles: Vec<Tile> = parallel::map(&spans, |span| {
            let elements: Vec<u32> = place_of[span.slots.start as usize..span.slots.end as usize]
                .iter()
                .map(|&place| places.order()[place as usize])
                .collect();
            self.tile(star, span, &elements, shape.width, &is_fixed)
        });
        Tile::pack(tiles.iter_mut());
        let rank = schedule.permutation().rank();
        let run = |&place: &u32| slots.get(place as usize).copied().unwrap_or(place_of.len() as u32);
        let domain = Domain {
            precision: self.precision,
            shape,
            width: shape.width,
            graph: schedule.graph().clone(),
            order: schedule.order(),
            // What lies around an element.
            stars: vec![StarShape { others: star.corners, ..star.common() }],
            tiles,
            tasks,
            parts: vec![[0; 2], [schedule.graph().len() as u32, rank.len() as u32]],
            runs: schedule.runs().iter().map(run).collect(),
            along_curve: parallel::collect(rank.len(), |e| slots[rank[e] as usize]),
            place_of,
            depths: schedule.depths(),
            share: None,
            elements: BTreeMap::new(),
        };
        let (domain, searched, elements) = (Arc::new(domain), Vec::new(), BTreeMap::new());
        let mut layout = Layout { schedule, domain, places, slots, searched, elements, beside: Vec::new() };
        if is_numbered {
            layout.number();
        }
        let graph = graph.permuted(layout.schedule.permutation());
        Ok((layout, graph))
    }

    /// Lays out the elements in the slots of a span.
    fn tile(
        &self,
        star: &StarPlan,
        span: &Span,
        elements: &[u32],
        width: usize,
        is_fixed: &(impl Fn(u32) -> bool + Sync),
    ) -> Tile {
        let StarPlan { corners, data_len, .. } = *star;
        let groups = (elements.len() / width) as u32;
        let (mut others, mut fixed) = (vec![0; elements.len() * corners], vec![false; elements.len() * corners]);
        let (mut data, mut reals) = (vec![0.0; elements.len() * data_len], Vec::new());
        let mut vertices = [0; CORNERS];
        for (i, &element) in elements.iter().enumerate() {
            let (group, lane) = (i / width, i % width);
            corners_of(star, element, &mut vertices);
            for (k, &v) in vertices[..corners].iter().enumerate() {
                let at = (group * corners + k) * width + lane;
                (others[at], fixed[at]) = (self.slot(v) as u32, is_fixed(v));
            }
            reals.clear();
            let incidence = element as usize * corners + star.first_corner();
            (star.data)(star.elements(), &[incidence as u32], &mut reals);
            for (k, &x) in reals.iter().enumerate() {
                data[(group * data_len + k) * width + lane] = x;
            }
        }
        if !fixed.contains(&true) {
            fixed = Vec::new();
        }
        let data = Data::new(self.precision, &star.kinds, width, data);
        let counts =
            if span.is_wide { [vec![1; groups as usize], vec![1; elements.len()]] } else { Default::default() };
        let stars = vec![Ell::of((corners, data_len), (0..=groups).collect(), counts, others, data)];
        let vertices = span.vertices;
        let form = if span.is_wide { Form::Spread { stars } } else { Form::Rows { vertices, stars } };
        Tile { slots: span.slots.clone(), fixed, numbers: Vec::new(), form, changing: None }
    }
}

/// Which elements of a star share a corner, and how they are numbered: by the numbers of their corners, the least first, then by
/// element.
fn graph_of(star: &StarPlan, curve: &Permutation) -> Result<(Graph, Permutation)> {
    let (name, corners) = (star.name, star.corners);
    if star.elements().len() > u32::MAX as usize {
        return Err(Error::Invalid(format!("star {name} has more than 2^32 - 1 corners: cut the mesh")));
    }
    let count = star.elements().len() / corners;
    let sorted = |element: u32| {
        let mut numbers = [u32::MAX; CORNERS];
        corners_of(star, element, &mut numbers);
        numbers[..corners].iter_mut().for_each(|v| *v = curve.rank()[*v as usize]);
        numbers.sort_unstable();
        numbers
    };
    let repeats = |element: usize| sorted(element as u32)[..corners].windows(2).any(|pair| pair[0] == pair[1]);
    if let Some(element) = parallel::first(count, repeats) {
        return Err(Error::Invalid(format!(
            "element {element} of star {name} repeats a vertex and cannot be projected: leave it out"
        )));
    }
    let numbers = Permutation::sorted_by_key(count, |element| (sorted(element), element));
    let (starts, around) = by_corners!(corners, around_vertices(star, curve.len()));
    let degrees = || starts.windows(2).map(|row| u64::from(row[1] - row[0]));
    let pairs: u64 = degrees().map(|degree| degree * degree.saturating_sub(1) / 2).sum();
    if pairs > MOST {
        return Err(Error::Invalid(format!(
            "elements of star {name} meet in {pairs} pairs, one vertex has {} of them: projections take {MOST} pairs at most",
            degrees().max().unwrap_or(0)
        )));
    }
    let mut lists: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for row in starts.windows(2).filter(|row| row[1] - row[0] > 1) {
        let row = &around[row[0] as usize..row[1] as usize];
        lists.entry(row.len()).or_default().extend_from_slice(row);
    }
    let lists: Vec<(usize, &[u32])> = lists.iter().map(|(&size, list)| (size, &list[..])).collect();
    Ok((Graph::from_elements(&numbers, &lists)?, numbers))
}

/// Which elements have each vertex as a corner: where the list of each starts, and all lists.
fn around_vertices<const K: usize>(star: &StarPlan, vertices: usize) -> (Vec<u32>, Vec<u32>) {
    let elements = star.elements().as_chunks::<K>().0;
    group(vertices, elements.len(), |element| elements[element].map(|v| (v, element as u32)))
}

/// The corners of an element, in the order in which it is projected.
fn corners_of(star: &StarPlan, element: u32, corners: &mut [u32; CORNERS]) {
    by_corners!(star.corners, copy_corners(star, element, corners));
}

fn copy_corners<const K: usize>(star: &StarPlan, element: u32, corners: &mut [u32; CORNERS]) {
    let element = &star.elements().as_chunks::<K>().0[element as usize];
    corners[..K].copy_from_slice(&own_first(star.shape, element, star.first_corner()));
}
