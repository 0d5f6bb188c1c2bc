//! What a star holds around each vertex.
//!
//! Which elements touch which place is found for the whole mesh at once. Their order and their other vertices are found for some
//! consecutive places at a time, whose tiles are then built: the elements around them lie together, and stay in a core's cache.
//! The lists of those places are then given up: all of them and all tiles at once would take more memory than there need be.

use crate::error::{Error, Result};
use crate::number::array;
use crate::program::{StarPlan, own_first};
use meshweft_mesh::{Permutation, group};
use std::ops::Range;

/// Calls a function for the number of corners of a star's elements.
macro_rules! by_corners {
    ($corners:expr, $of:ident($($argument:expr),*)) => {
        match $corners {
            1 => $of::<1>($($argument),*),
            2 => $of::<2>($($argument),*),
            3 => $of::<3>($($argument),*),
            4 => $of::<4>($($argument),*),
            5 => $of::<5>($($argument),*),
            6 => $of::<6>($($argument),*),
            _ => $of::<8>($($argument),*),
        }
    };
}
pub(super) use by_corners;

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
    /// What lies around the vertex at place `p`: `incidences[starts[p]..starts[p + 1]]`.
    starts: Vec<u32>,
    /// Element times corners plus corner, ascending at each place.
    incidences: Vec<u32>,
}

impl<'a> Whole<'a> {
    /// `places`: from ids of the mesh to places in the order. Memory: 4 bytes a corner, and 4 bytes a place and thread until it is done.
    ///
    /// # Errors
    /// 2^32 corners.
    pub(super) fn new(plan: &'a StarPlan, places: &Permutation) -> Result<Whole<'a>> {
        fn by_place<const K: usize>(plan: &StarPlan, places: &Permutation) -> (Vec<u32>, Vec<u32>) {
            let (elements, n) = (plan.elements().as_chunks::<K>().0, places.len());
            // An element that repeats a vertex has no orientation: it is put behind all others, and left out; so is one at a vertex that
            // it is not around.
            let (mut starts, mut incidences) = group(n + 1, elements.len(), |e| {
                let corners = &elements[e];
                let is_proper = (1..K).all(|i| !corners[..i].contains(&corners[i]));
                array::<_, K>((0, 0), |k| {
                    let place = |k: usize| places.rank()[corners[k] as usize];
                    let is_there = is_proper && plan.is_around(k, place);
                    (if is_there { place(k) } else { n as u32 }, (K * e + k) as u32)
                })
            });
            starts.pop();
            incidences.truncate(starts[n] as usize);
            (starts, incidences)
        }
        let elements = plan.elements();
        if elements.len() > u32::MAX as usize {
            return Err(Error::Invalid(format!("star {} has more than 2^32 - 1 corners: cut the mesh", plan.index)));
        }
        let (starts, incidences) = by_corners!(plan.corners, by_place(plan, places));
        Ok(Whole { plan, elements, starts, incidences })
    }

    /// Where what lies around the vertex at each place starts, and the end.
    pub(super) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// With the rows of some places.
    pub(super) fn source<'b>(&self, incidences: &'b Incidences, names: Names<'b>) -> Source<'b>
    where
        'a: 'b,
    {
        Source { plan: self.plan, elements: self.elements, incidences, names }
    }

    /// Gives up the memory of what lies around `place` and later ones.
    pub(super) fn forget_from(&mut self, place: u32) {
        self.incidences.truncate(self.starts[place as usize] as usize);
        self.incidences.shrink_to_fit();
    }
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
    sorter: Sorter,
}

impl Incidences {
    /// Fills the rows of some places.
    pub(super) fn fill(&mut self, whole: &Whole, places: Range<u32>, names: Names) {
        self.first = places.start;
        let starts = &whole.starts[places.start as usize..=places.end as usize];
        let unsorted = &whole.incidences[starts[0] as usize..starts[places.len()] as usize];
        self.offsets.clear();
        self.offsets.extend(starts.iter().map(|start| start - starts[0]));
        self.incidences.clear();
        self.incidences.extend_from_slice(unsorted);
        self.others.clear();
        match whole.plan.corners {
            2 => self.sort_edges(unsorted, whole.elements, names),
            corners => by_corners!(corners, sort_solids(whole, &self.offsets, &mut self.incidences, names)),
        }
    }

    /// Sorts the rows of edges, and finds the other ends.
    fn sort_edges(&mut self, unsorted: &[u32], elements: &[u32], names: Names) {
        let Incidences { offsets, incidences, others, sorter, .. } = self;
        others.resize(incidences.len(), 0);
        for row in offsets.windows(2) {
            let row = row[0] as usize..row[1] as usize;
            let (incidences, others, unsorted) =
                (&mut incidences[row.clone()], &mut others[row.clone()], &unsorted[row]);
            let other_end = |&incidence: &u32| names.curve.rank()[elements[incidence as usize ^ 1] as usize];
            sorter.numbers.clear();
            sorter.numbers.extend(unsorted.iter().map(other_end));
            sorter.sort(|place, i, number| {
                incidences[place] = unsorted[i];
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
    let (mut keys, mut short): (Vec<[u32; K]>, Vec<u128>) = Default::default();
    for row in offsets.windows(2) {
        let row = &mut incidences[row[0] as usize..row[1] as usize];
        // The numbers of the others, then the element.
        let key = |&incidence: &u32| {
            let vertices = around::<K>(whole.plan, whole.elements, incidence);
            array(0, |k| vertices.get(k + 1).map_or(incidence, |&v| names.curve.rank()[v as usize]))
        };
        if K <= 4 {
            // As one number: two of them are compared at once.
            short.clear();
            short.extend(
                row.iter().map(|at| key(at).into_iter().fold(0, |all: u128, x: u32| all << 32 | u128::from(x))),
            );
            short.sort_unstable();
            row.iter_mut().zip(&short).for_each(|(slot, &key)| *slot = key as u32);
            continue;
        }
        keys.clear();
        keys.extend(row.iter().map(key));
        keys.sort_unstable();
        row.iter_mut().zip(&keys).for_each(|(slot, key)| *slot = key[K - 1]);
    }
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
            (self.plan.data)(self.elements, self.incidences.of(place), reals);
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

/// The vertices of an incidence's element, its own first.
#[inline]
fn around<const K: usize>(plan: &StarPlan, elements: &[u32], incidence: u32) -> [u32; K] {
    let (element, corner) = (incidence as usize / K, incidence as usize % K);
    own_first(plan.shape, &elements.as_chunks::<K>().0[element], corner)
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
    use std::sync::Arc;

    crate::stars! {
        Edges[1]: R;
        Triangles[2];
        Arrows[1]: R;
        Before[1]: R;
        After[1]: R;
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
        let arrows: Vec<[u32; 2]> = (0..4000).map(|e| [mixed(3 * e) % n, mixed(3 * e + 1) % 900]).collect();
        let (arrows, name) = (Arc::new(arrows), |i: Seen<2>| f64::from(i.element as u32) + 0.25 * i.corner as f64);
        stars.add_directed(Arrows, arrows.clone(), name);
        stars.add_earlier(Before, arrows.clone(), name);
        stars.add_later(After, arrows, name);
        let slots: Vec<u32> = (0..n).map(|place| 3 * place).collect();
        let slot = |v: u32| slots[places.rank()[v as usize] as usize];
        let along_curve: Vec<u32> = curve.order().iter().map(|&v| slot(v)).collect();
        let names = Names { places: &places, curve: &curve, slots: &slots, along_curve: &along_curve };
        for plan in &stars.plans {
            let mut whole = Whole::new(plan, &places).unwrap();
            let mut incidences = Incidences::default();
            for range in [0..n, 1000..2100, 17..1025, 0..1] {
                // What is forgotten lies behind.
                whole.forget_from(range.end);
                incidences.fill(&whole, range.clone(), names);
                let rows = whole.source(&incidences, names);
                for place in range {
                    let v = places.order()[place as usize];
                    let mut expected = Vec::new();
                    for (e, corners) in plan.elements().chunks(plan.corners).enumerate() {
                        let is_proper = (1..corners.len()).all(|i| !corners[..i].contains(&corners[i]));
                        let place_of = |k: usize| places.rank()[corners[k] as usize];
                        let is_around = |k: usize| match plan.name {
                            "Arrows" => k == 1,
                            "Before" => place_of(1 - k) < place_of(k),
                            "After" => place_of(1 - k) > place_of(k),
                            _ => true,
                        };
                        let own = corners.iter().position(|&u| u == v);
                        if let Some(corner) = own.filter(|&k| is_proper && is_around(k)) {
                            let others: Vec<u32> = match *corners {
                                [a, b] => vec![if corner == 0 { b } else { a }],
                                _ => (1..3).map(|k| corners[(corner + k) % 3]).collect(),
                            };
                            let numbers: Vec<u32> = others.iter().map(|&u| curve.rank()[u as usize]).collect();
                            let names: Vec<u32> = others.iter().map(|&u| slot(u)).collect();
                            expected.push((numbers, e * plan.corners + corner, names));
                        }
                    }
                    expected.sort_unstable();
                    let known = whole.starts()[place as usize..].windows(2).next().unwrap();
                    assert_eq!([(known[1] - known[0]) as usize, rows.incidences.degree(place)], [expected.len(); 2]);
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
