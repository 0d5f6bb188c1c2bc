//! What a star holds around each vertex.

use crate::error::{Error, Result};
use crate::program::StarPlan;
use meshweft_mesh::Permutation;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Vertices whose rows are sorted as one piece of work.
const ROWS: usize = 1 << 12;

/// How many things a star holds around each vertex: counted before tiles are cut, filled in after.
///
/// A counting sort: each of a few chunks of elements counts what it has for each vertex, and then knows where to write
/// it. Within a row elements ascend, whatever the chunks. Memory: 4 bytes a vertex and chunk.
pub(super) struct Counts {
    /// Things around the vertex at `place` are `offsets[place]..offsets[place + 1]`.
    pub(super) offsets: Vec<u32>,
    /// Elements of a chunk.
    chunk: usize,
    /// For each chunk, where its first thing around each vertex goes.
    starts: Vec<Vec<u32>>,
}

impl Counts {
    pub(super) fn new(plan: &StarPlan, places: &Permutation) -> Result<Counts> {
        if plan.elements.len() > u32::MAX as usize {
            return Err(Error::Invalid(format!("star {} has more than 2^32 - 1 corners: cut the mesh", plan.index)));
        }
        Ok(match plan.corners {
            2 => Counts::of::<2>(plan, places),
            3 => Counts::of::<3>(plan, places),
            4 => Counts::of::<4>(plan, places),
            5 => Counts::of::<5>(plan, places),
            6 => Counts::of::<6>(plan, places),
            _ => Counts::of::<8>(plan, places),
        })
    }

    fn of<const K: usize>(plan: &StarPlan, places: &Permutation) -> Counts {
        /// More would take more memory for their counts than they save time.
        const MOST_CHUNKS: usize = 8;
        const LEAST_CHUNK: usize = 1 << 14;
        let (n, elements) = (places.len(), elements::<K>(plan));
        let chunk = elements.len().div_ceil(rayon::current_num_threads().min(MOST_CHUNKS)).max(LEAST_CHUNK);
        let count = |elements: &[[u32; K]]| {
            let mut counts = vec![0u32; n];
            for e in elements.iter().filter(|e| is_proper(e)) {
                e.iter().for_each(|&v| counts[places.rank()[v as usize] as usize] += 1);
            }
            counts
        };
        let mut starts: Vec<Vec<u32>> = elements.par_chunks(chunk).map(count).collect();
        let mut offsets = Vec::with_capacity(n + 1);
        let mut end = 0;
        offsets.push(0);
        for place in 0..n {
            for start in &mut starts {
                (start[place], end) = (end, end + start[place]);
            }
            offsets.push(end);
        }
        Counts { offsets, chunk, starts }
    }

    /// Writes `entry(element, corner)` of everything to the rows of the corners.
    fn scatter<const K: usize>(
        starts: Vec<Vec<u32>>,
        chunk: usize,
        total: usize,
        (plan, places): (&StarPlan, &Permutation),
        entry: impl Fn(usize, usize) -> u32 + Sync,
    ) -> Vec<u32> {
        // Every place is written once; atomics let threads write to scattered places without locks, and cost nothing.
        let entries: Vec<AtomicU32> = (0..total).into_par_iter().map(|_| AtomicU32::new(0)).collect();
        let chunks = elements::<K>(plan).par_chunks(chunk).zip(starts).enumerate();
        chunks.for_each(|(c, (elements, mut next))| {
            for (e, corners) in (c * chunk..).zip(elements).filter(|(_, e)| is_proper(e)) {
                for (corner, &v) in corners.iter().enumerate() {
                    let next = &mut next[places.rank()[v as usize] as usize];
                    entries[*next as usize].store(entry(e, corner), Ordering::Relaxed);
                    *next += 1;
                }
            }
        });
        entries.into_iter().map(AtomicU32::into_inner).collect()
    }
}

/// Things around each vertex, sorted by the numbers of the other vertices along the curve, then by element: the order of a
/// sum must not depend on names.
pub(super) struct Incidences {
    offsets: Vec<u32>,
    /// Element times corners plus corner; empty for edges without data, of which the other end is all there is to know.
    incidences: Vec<u32>,
    /// Of edges, the slots of the other ends; empty for other elements.
    others: Vec<u32>,
}

impl Incidences {
    /// `slots`: from numbers along the curve to slots.
    pub(super) fn new(
        counts: Counts,
        plan: &StarPlan,
        places: &Permutation,
        curve: &Permutation,
        slots: &[u32],
    ) -> Incidences {
        let Counts { offsets, chunk, starts } = counts;
        let total = offsets.last().map_or(0, |&end| end as usize);
        let number = |v: u32| curve.rank()[v as usize];
        let (mut incidences, mut others) = (Vec::new(), Vec::new());
        match plan.corners {
            2 if plan.data_len == 0 => {
                let elements = elements::<2>(plan);
                let entry = |e: usize, corner: usize| number(elements[e][1 - corner]);
                others = Counts::scatter::<2>(starts, chunk, total, (plan, places), entry);
                for_each_rows(&offsets, (&mut others, &mut []), |offsets, (others, _)| {
                    let mut sorter = Sorter::default();
                    for row in offsets.windows(2) {
                        let row = &mut others[(row[0] - offsets[0]) as usize..(row[1] - offsets[0]) as usize];
                        sorter.numbers.clear();
                        sorter.numbers.extend_from_slice(row);
                        sorter.sort(|place, _, number| row[place] = slots[number as usize]);
                    }
                });
            }
            2 => {
                let entry = |e: usize, corner: usize| (2 * e + corner) as u32;
                incidences = Counts::scatter::<2>(starts, chunk, total, (plan, places), entry);
                others = vec![0; total];
                for_each_rows(&offsets, (&mut incidences, &mut others), |offsets, (incidences, others)| {
                    let (mut sorter, mut unsorted) = (Sorter::default(), Vec::new());
                    for row in offsets.windows(2) {
                        let row = (row[0] - offsets[0]) as usize..(row[1] - offsets[0]) as usize;
                        let (incidences, others) = (&mut incidences[row.clone()], &mut others[row]);
                        unsorted.clear();
                        unsorted.extend_from_slice(incidences);
                        sorter.numbers.clear();
                        sorter.numbers.extend(unsorted.iter().map(|&i| number(plan.elements[i as usize ^ 1])));
                        sorter.sort(|place, i, number| {
                            incidences[place] = unsorted[i];
                            others[place] = slots[number as usize];
                        });
                    }
                });
            }
            3 => incidences = solid::<3>(&offsets, chunk, starts, (plan, places), number),
            4 => incidences = solid::<4>(&offsets, chunk, starts, (plan, places), number),
            5 => incidences = solid::<5>(&offsets, chunk, starts, (plan, places), number),
            6 => incidences = solid::<6>(&offsets, chunk, starts, (plan, places), number),
            _ => incidences = solid::<8>(&offsets, chunk, starts, (plan, places), number),
        }
        Incidences { offsets, incidences, others }
    }

    /// What lies around the vertex at `place`.
    pub(super) fn of(&self, place: u32) -> &[u32] {
        &self.incidences[self.row(place)]
    }

    /// The slots of the other ends of the edges at `place`.
    pub(super) fn others(&self, place: u32) -> &[u32] {
        &self.others[self.row(place)]
    }

    pub(super) fn degree(&self, place: u32) -> usize {
        self.row(place).len()
    }

    fn row(&self, place: u32) -> std::ops::Range<usize> {
        self.offsets[place as usize] as usize..self.offsets[place as usize + 1] as usize
    }
}

/// One star, and what names its vertices.
pub(super) struct Source<'a> {
    pub(super) plan: &'a StarPlan,
    pub(super) incidences: Incidences,
    pub(super) places: &'a Permutation,
    pub(super) slots: &'a [u32],
}

impl Source<'_> {
    /// Visits the slots of the other vertices around the one at `place`, element after element.
    #[inline(always)]
    pub(super) fn others(&self, place: u32, visit: impl FnMut(u32)) {
        match self.plan.corners {
            2 => self.incidences.others(place).iter().copied().for_each(visit),
            3 => self.others_of::<3>(place, visit),
            4 => self.others_of::<4>(place, visit),
            5 => self.others_of::<5>(place, visit),
            6 => self.others_of::<6>(place, visit),
            _ => self.others_of::<8>(place, visit),
        }
    }

    fn others_of<const K: usize>(&self, place: u32, mut visit: impl FnMut(u32)) {
        for &incidence in self.incidences.of(place) {
            for v in &around::<K>(self.plan, incidence)[1..] {
                visit(self.slots[self.places.rank()[*v as usize] as usize]);
            }
        }
    }

    /// Appends the data of the elements around the vertex at `place`.
    pub(super) fn data(&self, place: u32, reals: &mut Vec<f64>) {
        match self.plan.corners {
            _ if self.plan.data_len == 0 => {}
            2 => self.data_of::<2>(place, reals),
            3 => self.data_of::<3>(place, reals),
            4 => self.data_of::<4>(place, reals),
            5 => self.data_of::<5>(place, reals),
            6 => self.data_of::<6>(place, reals),
            _ => self.data_of::<8>(place, reals),
        }
    }

    fn data_of<const K: usize>(&self, place: u32, reals: &mut Vec<f64>) {
        for &incidence in self.incidences.of(place) {
            let (element, corner) = (incidence as usize / K, incidence as usize % K);
            (self.plan.data)(element, corner, &around::<K>(self.plan, incidence), reals);
        }
    }
}

/// The sorted incidences of elements of three corners and more.
fn solid<const K: usize>(
    offsets: &[u32],
    chunk: usize,
    starts: Vec<Vec<u32>>,
    (plan, places): (&StarPlan, &Permutation),
    number: impl Fn(u32) -> u32 + Sync,
) -> Vec<u32> {
    let total = offsets.last().map_or(0, |&end| end as usize);
    let entry = |e: usize, corner: usize| (K * e + corner) as u32;
    let mut incidences = Counts::scatter::<K>(starts, chunk, total, (plan, places), entry);
    for_each_rows(offsets, (&mut incidences, &mut []), |offsets, (incidences, _)| {
        let mut keys: Vec<[u32; K]> = Vec::new();
        for row in offsets.windows(2) {
            let row = &mut incidences[(row[0] - offsets[0]) as usize..(row[1] - offsets[0]) as usize];
            keys.clear();
            keys.extend(row.iter().map(|&incidence| {
                // The numbers of the others, then the element.
                let vertices = around::<K>(plan, incidence);
                std::array::from_fn(|k| vertices.get(k + 1).map_or(incidence, |&v| number(v)))
            }));
            keys.sort_unstable();
            row.iter_mut().zip(&keys).for_each(|(slot, key)| *slot = key[K - 1]);
        }
    });
    incidences
}

fn elements<const K: usize>(plan: &StarPlan) -> &[[u32; K]] {
    plan.elements.as_chunks().0
}

/// An element that repeats a vertex has no orientation: it is left out.
fn is_proper<const K: usize>(corners: &[u32; K]) -> bool {
    (1..K).all(|i| !corners[..i].contains(&corners[i]))
}

/// The vertices of an incidence's element, its own first.
#[inline]
pub(super) fn around<const K: usize>(plan: &StarPlan, incidence: u32) -> [u32; K] {
    let (element, corner) = (incidence as usize / K, incidence as usize % K);
    let vertices = plan.own_first(&elements::<K>(plan)[element], corner);
    std::array::from_fn(|k| vertices[k])
}

/// Works on runs of rows in parallel: `each` gets where they start and their values in both arrays. An empty array stays
/// empty.
fn for_each_rows(
    offsets: &[u32],
    (mut first, mut second): (&mut [u32], &mut [u32]),
    each: impl Fn(&[u32], (&mut [u32], &mut [u32])) + Sync,
) {
    let mut work = Vec::new();
    for start in (0..offsets.len() - 1).step_by(ROWS) {
        let own = &offsets[start..offsets.len().min(start + ROWS + 1)];
        let len = (own[own.len() - 1] - own[0]) as usize;
        let (a, rest) = first.split_at_mut(len);
        first = rest;
        let (b, rest) = second.split_at_mut(len.min(second.len()));
        second = rest;
        work.push((own, (a, b)));
    }
    work.into_par_iter().for_each(|(offsets, values)| each(offsets, values));
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
