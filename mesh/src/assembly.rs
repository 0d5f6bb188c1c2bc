//! Sums over elements by vertex and by edge, the same bits in any order of the elements.
//!
//! All terms of a range of vertices are collected first, each sum's in a bag of its own, and then added by size. Elements
//! are worked out many at a time, each number in an array over the elements, so that the compiler takes wide registers.

use crate::incidence::Incidence;
use crate::parallel;
use crate::sort::NONE;
use crate::sums::{Adder, ordered};
use std::ops::Range;

/// Elements worked out together: their numbers, up to 23 each, stay in a first-level cache.
const BATCH: usize = 64;
/// Neighbors of higher id, and terms of each, up to which the terms of a row are taken apart without sorting them. Inner
/// vertices of tet meshes have about 7, and about 5 tets meet at an edge.
const ROOM: usize = 16;
const DEPTH: usize = 8;
/// Places for the neighbors of a row: few of them meet.
const PLACES: usize = 4 * ROOM;

/// What an element of `K` corners adds to its corners, NaN if it is to be left out, and to the edge of corners `i` and `j`
/// for `j < i`, at `[i][j]`.
pub(crate) type Terms<const K: usize> = (f64, [[f64; K]; K]);

/// Sums by edge and by vertex.
pub(crate) struct Sums {
    /// Smaller id first, ascending.
    pub(crate) edges: Vec<[u32; 2]>,
    /// Shape `[edges]`.
    pub(crate) weights: Vec<f64>,
    /// Shape `[n]`.
    pub(crate) masses: Vec<f64>,
}

/// Adds up what elements add, of fewer than 2^32 corners in all; one that repeats a corner is left out. `terms`: of an
/// element, from the places of its corners; best without branches.
///
/// Cost O(elements), in parallel. Memory: that of [`Incidence`] and, for a moment, the result one and a half times.
pub(crate) fn assemble<const K: usize>(
    points: &[[f64; 3]],
    elements: &[[u32; K]],
    terms: impl Fn([[f64; 3]; K]) -> Terms<K> + Sync,
) -> Sums {
    let incidence = Incidence::new(points.len(), elements.len(), |e| elements[e]);
    let scratch = || (Batch::default(), Rows::default(), Adder::new());
    let parts = incidence.by_range(scratch, |(batch, rows, adder), vertices, touching| {
        rows.start(vertices);
        touching.for_each(|e| {
            batch.push(points, elements[e]);
            if batch.len == BATCH {
                batch.finish(&terms, rows);
            }
        });
        batch.finish(&terms, rows);
        rows.finish(adder)
    });
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for Sums { edges, weights, masses } in parts {
        columns.0.push(edges);
        columns.1.push(weights);
        columns.2.push(masses);
    }
    Sums {
        edges: parallel::concat(columns.0),
        weights: parallel::concat(columns.1),
        masses: parallel::concat(columns.2),
    }
}

/// For each vertex the sum of what its edges add; returns what `finish` makes of those of each range of vertices. `add`: of an edge.
pub(crate) fn by_vertex<R: Send>(
    vertices: usize,
    edges: &[[u32; 2]],
    add: impl Fn(usize) -> f64 + Sync,
    finish: impl Fn(Range<u32>, &[f64]) -> R + Sync + Send,
) -> Vec<R> {
    let incidence = Incidence::new(vertices, edges.len(), |e| edges[e]);
    let scratch = || (Bags::default(), Adder::new());
    incidence.by_range(scratch, |(bags, adder), vertices, touching| {
        bags.start(vertices.len());
        touching.for_each(|e| {
            let term = ordered(add(e));
            edges[e].iter().for_each(|v| bags.add(v.wrapping_sub(vertices.start), term));
        });
        finish(vertices, &bags.add_up(adder))
    })
}

/// Elements that wait to be worked out: number `i` of all of them side by side.
struct Batch<const K: usize> {
    len: usize,
    corners: [[u32; K]; BATCH],
    points: [[[f64; BATCH]; 3]; K],
    masses: [f64; BATCH],
    weights: [[[f64; BATCH]; K]; K],
}

impl<const K: usize> Default for Batch<K> {
    fn default() -> Batch<K> {
        Batch {
            len: 0,
            corners: [[0; K]; BATCH],
            points: [[[0.0; BATCH]; 3]; K],
            masses: [0.0; BATCH],
            weights: [[[0.0; BATCH]; K]; K],
        }
    }
}

impl<const K: usize> Batch<K> {
    #[inline(always)]
    fn push(&mut self, points: &[[f64; 3]], corners: [u32; K]) {
        let i = self.len;
        self.corners[i] = corners;
        for (own, v) in self.points.iter_mut().zip(corners) {
            own.iter_mut().zip(points[v as usize]).for_each(|(own, x)| own[i] = x);
        }
        self.len += 1;
    }

    /// Works the elements out and adds their terms.
    fn finish(&mut self, terms: &impl Fn([[f64; 3]; K]) -> Terms<K>, rows: &mut Rows) {
        // All of them, also those that are not filled, whose results are not read.
        for i in 0..BATCH {
            // Plain loops, which become vectors whatever is optimized together.
            let mut points = [[0.0; 3]; K];
            for k in 0..K {
                points[k] = [self.points[k][0][i], self.points[k][1][i], self.points[k][2][i]];
            }
            let (mass, weights) = terms(points);
            self.masses[i] = mass;
            for k in 0..K {
                for j in 0..K {
                    self.weights[k][j][i] = weights[k][j];
                }
            }
        }
        let is_proper = |corners: &[u32; K]| (1..K).all(|k| !corners[..k].contains(&corners[k]));
        for i in (0..self.len).filter(|&i| !self.masses[i].is_nan() && is_proper(&self.corners[i])) {
            let corners = self.corners[i];
            let mass = ordered(self.masses[i]);
            corners.iter().for_each(|&v| rows.add_mass(v, mass));
            for k in 0..K {
                (0..k).for_each(|j| rows.add_weight(corners[j], corners[k], ordered(self.weights[k][j][i])));
            }
        }
        self.len = 0;
    }
}

/// The vertices of one range, with the terms of their masses and of their edges to higher ids.
#[derive(Default)]
struct Rows {
    first: u32,
    masses: Bags<u64>,
    /// Other end and term.
    weights: Bags<(u32, u64)>,
}

impl Rows {
    fn start(&mut self, vertices: Range<u32>) {
        self.first = vertices.start;
        self.masses.start(vertices.len());
        self.weights.start(vertices.len());
    }

    #[inline(always)]
    fn add_mass(&mut self, v: u32, term: u64) {
        self.masses.add(v.wrapping_sub(self.first), term);
    }

    #[inline(always)]
    fn add_weight(&mut self, a: u32, b: u32, term: u64) {
        self.weights.add(a.min(b).wrapping_sub(self.first), (a.max(b), term));
    }

    /// The sums of the range.
    fn finish(&mut self, adder: &mut Adder) -> Sums {
        let masses = self.masses.add_up(adder);
        let mut edges = Vec::new();
        let (mut table, mut terms) = (Table::new(), Vec::new());
        for (bag, v) in (0..self.weights.heads.len()).zip(self.first..) {
            table.add_up(self.weights.collect(bag, &mut terms), adder, |id| edges.push([v, id]));
        }
        edges.shrink_to_fit(); // those of all ranges wait to be joined
        Sums { edges, weights: adder.take(), masses }
    }
}

/// Takes the terms of a row apart by id: a hash table with room for few of each, which is all that meshes need.
struct Table {
    ids: [u32; PLACES],
    lengths: [u8; PLACES],
    terms: [[u64; DEPTH]; PLACES],
}

impl Table {
    fn new() -> Table {
        Table { ids: [NONE; PLACES], lengths: [0; PLACES], terms: [[0; DEPTH]; PLACES] }
    }

    /// Queues the sum of the terms of each id, ascending, and passes the ids to `put`.
    #[inline(always)]
    fn add_up(&mut self, terms: &mut [(u32, u64)], adder: &mut Adder, mut put: impl FnMut(u32)) {
        self.ids.fill(NONE);
        self.lengths.fill(0);
        // Ids, each with its place, to be sorted.
        let (mut known, mut count) = ([u64::MAX; ROOM], 0);
        for &(id, term) in &*terms {
            // The upper bits of a product mix all of a number; a full table has no more than a quarter of its places taken.
            let mut place = (id.wrapping_mul(0x9e37_79b1) >> (u32::BITS - PLACES.ilog2())) as usize;
            while self.ids[place] != id {
                if self.ids[place] == NONE {
                    if count == ROOM {
                        return add_up_sorted(terms, adder, put);
                    }
                    self.ids[place] = id;
                    known[count] = u64::from(id) << 32 | place as u64;
                    count += 1;
                    break;
                }
                place = (place + 1) % PLACES;
            }
            let length = self.lengths[place] as usize;
            if length == DEPTH {
                return add_up_sorted(terms, adder, put);
            }
            self.terms[place][length] = term;
            self.lengths[place] += 1;
        }
        // The place of an id is the number of those before it: counting them takes no branches.
        let mut sorted = [0; ROOM];
        for &id in &known[..count] {
            let before: usize = known.iter().map(|&other| usize::from(other < id)).sum();
            sorted[before % ROOM] = id;
        }
        for known in &sorted[..count] {
            let place = *known as usize % PLACES;
            put((known >> 32) as u32);
            adder.add(&self.terms[place], self.lengths[place] as usize);
        }
    }
}

/// The same for any number of ids and terms.
fn add_up_sorted(terms: &mut [(u32, u64)], adder: &mut Adder, mut put: impl FnMut(u32)) {
    terms.sort_unstable();
    let mut own = Vec::new();
    for terms in terms.chunk_by(|a, b| a.0 == b.0) {
        own.clear();
        own.extend(terms.iter().map(|&(_, term)| term));
        put(terms[0].0);
        adder.add(&own, own.len());
    }
}

/// Terms in bags that need not know how many come: chains of nodes, the last first.
struct Bags<T> {
    /// The first node of each bag, [`NONE`] of an empty one.
    heads: Vec<u32>,
    nodes: Vec<Node<T>>,
}

/// One or two lines of a cache.
#[repr(align(64))]
struct Node<T> {
    next: u32,
    len: u32,
    terms: [T; 7],
}

impl<T> Default for Bags<T> {
    fn default() -> Bags<T> {
        Bags { heads: Vec::new(), nodes: Vec::new() }
    }
}

impl<T: Copy + Default> Bags<T> {
    /// Starts anew with so many empty bags.
    fn start(&mut self, count: usize) {
        self.heads.clear();
        self.heads.resize(count, NONE);
        self.nodes.clear();
    }

    /// Adds a term to a bag, if there is that bag.
    #[inline(always)]
    fn add(&mut self, bag: u32, term: T) {
        let Some(head) = self.heads.get_mut(bag as usize) else { return };
        match self.nodes.get_mut(*head as usize) {
            Some(node) if (node.len as usize) < node.terms.len() => {
                node.terms[node.len as usize] = term;
                node.len += 1;
            }
            _ => {
                let mut terms = [T::default(); 7];
                terms[0] = term;
                self.nodes.push(Node { next: *head, len: 1, terms });
                *head = self.nodes.len() as u32 - 1;
            }
        }
    }

    /// The terms of a bag, in `terms`.
    #[inline(always)]
    fn collect<'a>(&self, bag: usize, terms: &'a mut Vec<T>) -> &'a mut [T] {
        terms.clear();
        let mut node = self.nodes.get(self.heads[bag] as usize);
        while let Some(Node { next, len, terms: own }) = node {
            // All of them: a copy of a size that the compiler knows is quicker.
            let end = terms.len() + *len as usize;
            terms.extend_from_slice(own);
            terms.truncate(end);
            node = self.nodes.get(*next as usize);
        }
        terms
    }
}

impl Bags<u64> {
    /// The sum of each bag.
    fn add_up(&self, adder: &mut Adder) -> Vec<f64> {
        let mut terms = Vec::new();
        for bag in 0..self.heads.len() {
            let terms = self.collect(bag, &mut terms);
            adder.add(terms, terms.len());
        }
        adder.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`assemble`] by its definition: all terms sorted by where they go, then by size.
    fn plain<const K: usize>(
        points: &[[f64; 3]],
        elements: &[[u32; K]],
        terms: impl Fn([[f64; 3]; K]) -> Terms<K>,
    ) -> Sums {
        let (mut edges, mut masses) = (Vec::new(), Vec::new());
        for corners in elements {
            let (mass, weights) = terms(corners.map(|v| points[v as usize]));
            if mass.is_nan() {
                continue;
            }
            masses.extend(corners.map(|v| (v, mass)));
            for k in 0..K {
                edges.extend((0..k).map(|j| {
                    let (a, b) = (corners[j], corners[k]);
                    ([a.min(b), a.max(b)], weights[k][j])
                }));
            }
        }
        masses.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        edges.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let of = |v: u32| masses.iter().filter(|term| term.0 == v).map(|term| term.1).sum();
        let masses = (0..points.len() as u32).map(of).collect();
        let sums = edges.chunk_by(|a, b| a.0 == b.0);
        let weights = sums.clone().map(|terms| terms.iter().map(|term| term.1).sum()).collect();
        Sums { edges: sums.map(|terms| terms[0].0).collect(), weights, masses }
    }

    #[test]
    fn sums_equal_their_definition() {
        let mixed = |i: u32| i.wrapping_mul(2_654_435_761) >> 7;
        let point = |v: u32| [0, 1, 2].map(|d| f64::from(mixed(3 * v + d)) * 1e-3 - 1e4);
        let points: Vec<[f64; 3]> = (0..3000).map(point).collect();
        let terms = |p: [[f64; 3]; 3]| {
            let mass = p[0][0] + 3.0 * p[1][1] - p[2][2];
            let weight = |i: usize, j: usize| p[i][0] * p[j][1] + p[j][0] * p[i][1];
            let mass = if mass > 2e4 { f64::NAN } else { mass };
            (mass, std::array::from_fn(|i| std::array::from_fn(|j| weight(i, j))))
        };
        // Few terms everywhere, many at a few edges, and vertices with more neighbors than a row has room for.
        let scattered: Vec<[u32; 3]> = (0..9000).map(|e| [0, 1, 2].map(|k| mixed(3 * e + k) % 3000)).collect();
        let crowded: Vec<[u32; 3]> = (0..9000).map(|e| [e % 2, 2 + mixed(e) % 60, 70 + mixed(e + 9) % 2900]).collect();
        for elements in [&scattered[..], &crowded, &crowded[..63], &[]] {
            let proper = elements.iter().copied().filter(|&[a, b, c]| a != b && b != c && a != c);
            let proper: Vec<[u32; 3]> = proper.collect();
            let (sums, plain) = (assemble(&points, elements, terms), plain(&points, &proper, terms));
            assert_eq!(sums.edges, plain.edges);
            let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!([bits(&sums.weights), bits(&sums.masses)], [bits(&plain.weights), bits(&plain.masses)]);
        }
    }
}
