//! What a star holds around each vertex.
//!
//! All rows of a mesh at once would take more memory than the tiles that are made of them. So a star knows only which elements
//! touch which places, and rows are put together for some consecutive places at a time, whose tiles are then built: the
//! elements around them lie together, and stay in a core's cache.

use crate::error::{Error, Result};
use crate::program::StarPlan;
use meshweft_mesh::{Incidence, Permutation};
use rayon::prelude::*;
use std::ops::Range;

/// Calls a function for the number of corners of a star's elements.
macro_rules! by_corners {
    ($corners:expr, $of:ident($($argument:expr),*)) => {
        match $corners {
            2 => $of::<2>($($argument),*),
            3 => $of::<3>($($argument),*),
            4 => $of::<4>($($argument),*),
            5 => $of::<5>($($argument),*),
            6 => $of::<6>($($argument),*),
            _ => $of::<8>($($argument),*),
        }
    };
}

/// What names the vertices of a mesh.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    /// From ids of the mesh to places in the order.
    pub(super) places: &'a Permutation,
    /// From ids of the mesh to numbers along the curve.
    pub(super) curve: &'a Permutation,
    /// From places to slots.
    pub(super) slots: &'a [u32],
    /// From numbers along the curve to slots.
    pub(super) along_curve: &'a [u32],
}

/// A star of a whole mesh.
pub(super) struct Whole<'a> {
    plan: &'a StarPlan,
    elements: &'a [u32],
    places: &'a Permutation,
    /// Between places.
    incidence: Incidence,
}

impl<'a> Whole<'a> {
    /// `places`: from ids of the mesh to places in the order.
    ///
    /// # Errors
    /// 2^32 corners.
    pub(super) fn new(plan: &'a StarPlan, places: &'a Permutation) -> Result<Whole<'a>> {
        fn incidence<const K: usize>(elements: &[u32], places: &Permutation) -> Incidence {
            let elements = elements.as_chunks::<K>().0;
            Incidence::new(places.len(), elements.len(), |e| elements[e].map(|v| places.rank()[v as usize]))
        }
        let elements = plan.elements();
        if elements.len() > u32::MAX as usize {
            return Err(Error::Invalid(format!("star {} has more than 2^32 - 1 corners: cut the mesh", plan.index)));
        }
        Ok(Whole { plan, elements, places, incidence: by_corners!(plan.corners, incidence(elements, places)) })
    }

    /// Places whose elements are found together: rows of fewer cost as much.
    pub(super) fn width(&self) -> usize {
        self.incidence.width()
    }

    /// How many elements there are around the vertex at each place.
    pub(super) fn degrees(&self) -> Vec<u32> {
        by_corners!(self.plan.corners, degrees(self))
    }

    /// With the rows of some places.
    pub(super) fn source<'b>(&self, incidences: &'b Incidences, names: Names<'b>) -> Source<'b>
    where
        'a: 'b,
    {
        Source { plan: self.plan, elements: self.elements, incidences, names }
    }
}

fn degrees<const K: usize>(whole: &Whole) -> Vec<u32> {
    /// More would take more memory for their counts than they save time.
    const MOST_CHUNKS: usize = 8;
    const LEAST_CHUNK: usize = 1 << 14;
    let (elements, order) = (whole.elements.as_chunks::<K>().0, whole.places.order());
    let chunk = elements.len().div_ceil(rayon::current_num_threads().min(MOST_CHUNKS)).max(LEAST_CHUNK);
    // By ids, since elements that follow each other mostly have near ones.
    let count = |elements: &[[u32; K]]| {
        let mut counts = vec![0u32; order.len()];
        let proper = elements.iter().filter(|corners| is_proper(corners));
        proper.flatten().for_each(|&v| counts[v as usize] += 1);
        counts
    };
    let counts: Vec<Vec<u32>> = elements.par_chunks(chunk).map(count).collect();
    order.par_iter().map(|&v| counts.iter().map(|counts| counts[v as usize]).sum()).collect()
}

/// Things around each vertex at some places, sorted by the numbers of the other vertices along the curve, then by element: the
/// order of a sum must not depend on names.
#[derive(Default)]
pub(super) struct Incidences {
    /// The first of the places.
    first: u32,
    offsets: Vec<u32>,
    /// Element times corners plus corner.
    incidences: Vec<u32>,
    /// Of edges, the slots of the other ends; empty for other elements.
    others: Vec<u32>,
    /// Place and incidence as they were found: memory that is used again, as that of the others.
    found: Vec<(u32, u32)>,
    sorter: Sorter,
}

impl Incidences {
    /// Fills the rows of some places.
    pub(super) fn fill(&mut self, whole: &Whole, places: Range<u32>, names: Names) {
        self.first = places.start;
        by_corners!(whole.plan.corners, gather(self, whole, places));
        self.others.clear();
        match whole.plan.corners {
            2 => self.sort_edges(whole, names),
            corners => by_corners!(corners, sort_solids(whole, &self.offsets, &mut self.incidences, names)),
        }
    }

    /// Sorts the rows of edges, and finds the other ends.
    fn sort_edges(&mut self, whole: &Whole, names: Names) {
        let Incidences { offsets, incidences, others, found, sorter, .. } = self;
        others.resize(incidences.len(), 0);
        for row in offsets.windows(2) {
            let row = row[0] as usize..row[1] as usize;
            let (incidences, others, unsorted) =
                (&mut incidences[row.clone()], &mut others[row.clone()], &mut found[row]);
            sorter.numbers.clear();
            for (unsorted, &incidence) in unsorted.iter_mut().zip(&*incidences) {
                unsorted.1 = incidence;
                sorter.numbers.push(names.curve.rank()[whole.elements[incidence as usize ^ 1] as usize]);
            }
            sorter.sort(|place, i, number| {
                incidences[place] = unsorted[i].1;
                others[place] = names.along_curve[number as usize];
            });
        }
    }

    /// What lies around the vertex at `place`.
    fn of(&self, place: u32) -> &[u32] {
        &self.incidences[self.row(place)]
    }

    /// The slots of the other ends of the edges at `place`.
    fn others(&self, place: u32) -> &[u32] {
        &self.others[self.row(place)]
    }

    pub(super) fn degree(&self, place: u32) -> usize {
        self.row(place).len()
    }

    fn row(&self, place: u32) -> Range<usize> {
        let row = (place - self.first) as usize;
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }
}

/// Sorts the rows of elements of three corners and more.
fn sort_solids<const K: usize>(whole: &Whole, offsets: &[u32], incidences: &mut [u32], names: Names) {
    let mut keys: Vec<[u32; K]> = Vec::new();
    for row in offsets.windows(2) {
        let row = &mut incidences[row[0] as usize..row[1] as usize];
        keys.clear();
        keys.extend(row.iter().map(|&incidence| {
            // The numbers of the others, then the element.
            let vertices = around::<K>(whole.plan, whole.elements, incidence);
            std::array::from_fn(|k| vertices.get(k + 1).map_or(incidence, |&v| names.curve.rank()[v as usize]))
        }));
        keys.sort_unstable();
        row.iter_mut().zip(&keys).for_each(|(slot, key)| *slot = key[K - 1]);
    }
}

/// Finds what lies around the vertices at some places, the elements of a row ascending.
fn gather<const K: usize>(rows: &mut Incidences, whole: &Whole, places: Range<u32>) {
    let Incidences { offsets, incidences, found, .. } = rows;
    let (elements, rank) = (whole.elements.as_chunks::<K>().0, whole.places.rank());
    found.clear();
    offsets.clear();
    // Counted two places ahead, so that they are starts one place ahead, which move on to the ends as rows are filled.
    offsets.resize(places.len() + 2, 0);
    for (own, touching) in whole.incidence.ranges(places.clone()) {
        touching.for_each(|e| {
            let corners = &elements[e];
            if is_proper(corners) {
                for (corner, &v) in corners.iter().enumerate() {
                    let place = rank[v as usize];
                    if own.contains(&place) {
                        offsets[(place - places.start) as usize + 2] += 1;
                        found.push((place - places.start, (K * e + corner) as u32));
                    }
                }
            }
        });
    }
    (0..places.len()).for_each(|i| offsets[i + 2] += offsets[i + 1]);
    incidences.clear();
    incidences.resize(found.len(), 0);
    for &(place, incidence) in &*found {
        let next = &mut offsets[place as usize + 1];
        incidences[*next as usize] = incidence;
        *next += 1;
    }
    offsets.pop();
}

/// The rows of one star at some places, and what names their vertices.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) plan: &'a StarPlan,
    elements: &'a [u32],
    pub(super) incidences: &'a Incidences,
    names: Names<'a>,
}

impl Source<'_> {
    /// Visits the slots of the other vertices around the one at `place`, element after element.
    #[inline(always)]
    pub(super) fn others(&self, place: u32, visit: impl FnMut(u32)) {
        match self.plan.corners {
            2 => self.incidences.others(place).iter().copied().for_each(visit),
            corners => by_corners!(corners, others_of(self, place, visit)),
        }
    }

    /// Appends the data of the elements around the vertex at `place`.
    pub(super) fn data(&self, place: u32, reals: &mut Vec<f64>) {
        if self.plan.data_len > 0 {
            by_corners!(self.plan.corners, data_of(self, place, reals));
        }
    }
}

fn others_of<const K: usize>(source: &Source, place: u32, mut visit: impl FnMut(u32)) {
    for &incidence in source.incidences.of(place) {
        for v in &around::<K>(source.plan, source.elements, incidence)[1..] {
            visit(source.names.slots[source.names.places.rank()[*v as usize] as usize]);
        }
    }
}

fn data_of<const K: usize>(source: &Source, place: u32, reals: &mut Vec<f64>) {
    for &incidence in source.incidences.of(place) {
        let (element, corner) = (incidence as usize / K, incidence as usize % K);
        (source.plan.data)(element, corner, &around::<K>(source.plan, source.elements, incidence), reals);
    }
}

/// An element that repeats a vertex has no orientation: it is left out.
fn is_proper<const K: usize>(corners: &[u32; K]) -> bool {
    (1..K).all(|i| !corners[..i].contains(&corners[i]))
}

/// The vertices of an incidence's element, its own first.
#[inline]
fn around<const K: usize>(plan: &StarPlan, elements: &[u32], incidence: u32) -> [u32; K] {
    let (element, corner) = (incidence as usize / K, incidence as usize % K);
    let vertices = plan.own_first(&elements.as_chunks::<K>().0[element], corner);
    std::array::from_fn(|k| vertices[k])
}

/// Sorts short rows by number.
#[derive(Default)]
struct Sorter {
    numbers: Vec<u32>,
    pairs: Vec<(u32, u32)>,
}

impl Sorter {
    /// Calls `put(place, i, number)` for every number `i`; equal ones keep their order.
    #[inline(always)]
    fn sort(&mut self, mut put: impl FnMut(usize, usize, u32)) {
        match self.numbers.len() {
            0..=16 => self.count::<16>(put),
            17..=32 => self.count::<32>(put),
            _ => {
                self.pairs.clear();
                self.pairs.extend(self.numbers.iter().copied().zip(0..));
                self.pairs.sort_unstable();
                self.pairs.iter().enumerate().for_each(|(place, &(number, i))| put(place, i as usize, number));
            }
        }
    }

    /// The place of a number is how many are less. Counting them all takes no branches, which a processor would guess
    /// wrong half of the time, and a few vector instructions.
    #[inline(always)]
    fn count<const N: usize>(&self, mut put: impl FnMut(usize, usize, u32)) {
        let mut padded = [u32::MAX; N];
        padded[..self.numbers.len()].copy_from_slice(&self.numbers);
        let mut taken = 0u64;
        for (i, &x) in self.numbers.iter().enumerate() {
            let less: u32 = padded.iter().map(|&y| u32::from(y < x)).sum();
            let place = less + (taken >> less).trailing_ones();
            taken |= 1 << place;
            put(place as usize, i, x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Incidence as Seen, Stars};

    crate::stars! {
        Edges[1]: R;
        Triangles[2];
    }

    #[test]
    fn rows_of_any_places_equal_their_definition() {
        let n = 2500u32;
        let mixed = |i: u32| i.wrapping_mul(2_654_435_761) >> 9;
        let shuffled = |seed: u32| Permutation::sorted_by_key(n as usize, |v| mixed(v + seed));
        let (places, curve) = (shuffled(1), shuffled(70_000));
        // Some repeat a vertex; vertex 7 has many more elements than the others, vertex 8 few.
        let edges = (0..5000).map(|e| [mixed(2 * e) % n, if e % 9 == 0 { 7 } else { mixed(2 * e + 1) % 2000 }]);
        let triangles = (0..3000).map(|e| [0, 1, 2].map(|k| mixed(3 * e + k) % 450));
        let mut stars = Stars::default();
        stars.add(Edges, edges.collect(), |i: Seen<2>| f64::from(i.element as u32) + 0.25 * i.corner as f64);
        stars.add(Triangles, triangles.collect(), |_| ());
        let slots: Vec<u32> = (0..n).map(|place| 3 * place).collect();
        let slot = |v: u32| slots[places.rank()[v as usize] as usize];
        let along_curve: Vec<u32> = curve.order().iter().map(|&v| slot(v)).collect();
        let names = Names { places: &places, curve: &curve, slots: &slots, along_curve: &along_curve };
        for plan in &stars.plans {
            let whole = Whole::new(plan, &places).unwrap();
            let degrees = whole.degrees();
            let mut incidences = Incidences::default();
            for range in [0..1, 17..1025, 1000..2100, 0..n] {
                incidences.fill(&whole, range.clone(), names);
                let rows = whole.source(&incidences, names);
                for place in range {
                    let v = places.order()[place as usize];
                    let mut expected = Vec::new();
                    for (e, corners) in plan.elements().chunks(plan.corners).enumerate() {
                        let is_proper = (1..corners.len()).all(|i| !corners[..i].contains(&corners[i]));
                        if let Some(corner) = corners.iter().position(|&u| u == v).filter(|_| is_proper) {
                            let others = &plan.own_first(corners, corner)[1..plan.corners];
                            let numbers: Vec<u32> = others.iter().map(|&u| curve.rank()[u as usize]).collect();
                            let names: Vec<u32> = others.iter().map(|&u| slot(u)).collect();
                            expected.push((numbers, e * plan.corners + corner, names));
                        }
                    }
                    expected.sort_unstable();
                    assert_eq!([degrees[place as usize] as usize, rows.incidences.degree(place)], [expected.len(); 2]);
                    let (mut others, mut reals) = (Vec::new(), Vec::new());
                    rows.others(place, |u| others.push(u));
                    rows.data(place, &mut reals);
                    assert_eq!(others, expected.iter().flat_map(|row| row.2.clone()).collect::<Vec<_>>());
                    let data = expected.iter().map(|row| (row.1 / 2) as f64 + 0.25 * (row.1 % 2) as f64);
                    assert_eq!(reals, data.filter(|_| plan.data_len > 0).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn rows_of_any_length_are_sorted_and_equal_numbers_keep_their_order() {
        for n in 0..70u32 {
            let mut sorter = Sorter::default();
            sorter.numbers.extend((0..n).map(|i| i.wrapping_mul(2_654_435_761) % 20));
            let mut expected: Vec<(u32, usize)> = sorter.numbers.iter().copied().zip(0..).collect();
            expected.sort_unstable();
            let mut sorted = vec![(0, 0); n as usize];
            sorter.sort(|place, i, number| sorted[place] = (number, i));
            assert_eq!(sorted, expected);
        }
    }
}
