//! Meshes of edges only: a line, and points at random joined to their nearest.

use rayon::prelude::*;

use super::size::Wanted;
use super::stream::Stream;
use crate::cell::{CellKind, Cells};
use crate::error::Result;
use crate::mesh::Mesh;
use crate::parallel;

/// Nearest points that each point of [`random`] is joined to. Counting the edges that others add, the mean degree is
/// 14.
const NEAREST: usize = 12;

/// Points per bucket of the search grid, on average: then the 27 buckets around a point nearly always hold its nearest.
const PER_BUCKET: usize = 5;

/// Makes `n` vertices in a line along x, length 1, each joined to the next by an edge.
///
/// # Errors
/// No vertex, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::chain(5)?;
/// assert_eq!((mesh.points()[1], mesh.cells().len()), ([0.25, 0.0, 0.0], 4));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn chain(n: usize) -> Result<Mesh> {
    wanted_chain(&[n]).check()?;
    let steps = (n - 1).max(1) as f64;
    let points = (0..n).map(|v| [v as f64 / steps, 0.0, 0.0]).collect();
    Mesh::new(points, Cells::of(CellKind::Edge, (1..n as u32).flat_map(|v| [v - 1, v]).collect()))
}

/// What [`chain`] makes of this count.
pub(super) fn wanted_chain(counts: &[usize]) -> Wanted<'_> {
    let vertices = counts[0] as u128;
    Wanted { name: "chain", counts, least: 1, vertices, cells: vertices.saturating_sub(1), kind: CellKind::Edge }
}

/// Makes `n` points uniform in the unit cube, each joined by edges to its 12 nearest (all others, if there are fewer).
///
/// An edge that both ends ask for is there once, so the relation is symmetric; the mean degree is about 14, as
/// in a tet mesh. In practice the graph is connected, though nothing forces it.
/// Vertices are in no order, on purpose: this is the mesh to try an order on. Edges ascend, the smaller id first.
/// Cost O(n) with a grid of buckets, in parallel; the result does not depend on threads.
///
/// # Errors
/// No point, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::random(2000, 5)?;
/// let degree = 2.0 * mesh.cells().len() as f64 / 2000.0;
/// assert!((13.0..15.0).contains(&degree));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn random(n: usize, seed: u64) -> Result<Mesh> {
    wanted_random(&[n]).check()?;
    let stream = Stream::new(seed);
    let points = parallel::collect(n, |v| stream.in_cube(v as u64));
    let buckets = Buckets::new(&points);
    let nearest: Vec<[u32; NEAREST]> = parallel::collect(n, |rank| buckets.nearest(rank));
    let parts = parallel::map(parallel::ranges(n, 1 << 10), |ranks| {
        let edges = ranks.flat_map(|rank| {
            let (near, rank, nearest, ids) = (&nearest[rank], rank as u32, &nearest, &buckets.ids);
            // When both ends ask for the edge, the one of smaller rank makes it.
            let made_here = move |&u: &u32| u != rank && (rank < u || !nearest[u as usize].contains(&rank));
            near.iter().copied().filter(made_here).map(move |u| {
                let [a, b] = [ids[rank as usize], ids[u as usize]];
                [a.min(b), a.max(b)]
            })
        });
        edges.collect::<Vec<[u32; 2]>>()
    });
    let mut edges = parallel::concat(parts);
    edges.par_sort_unstable();
    Mesh::new(points, Cells::of(CellKind::Edge, edges.into_flattened()))
}

/// What [`random`] makes of this count: at most so many edges, about 7 in 12, since most are drawn by both ends.
pub(super) fn wanted_random(counts: &[usize]) -> Wanted<'_> {
    let vertices = counts[0] as u128;
    Wanted { name: "random", counts, least: 1, vertices, cells: vertices * NEAREST as u128, kind: CellKind::Edge }
}

/// A grid of buckets over the unit cube. The rank of a point is its place in the order of buckets: points near in space
/// are near in memory, and a row of buckets is one range of ranks.
struct Buckets {
    /// Buckets per side.
    side: usize,
    /// Bucket `b` holds the ranks `starts[b]..starts[b + 1]`.
    starts: Vec<u32>,
    /// Point id of every rank.
    ids: Vec<u32>,
    /// Coordinates of every rank.
    points: Vec<[f64; 3]>,
}

impl Buckets {
    fn new(points: &[[f64; 3]]) -> Buckets {
        let mut side = 1;
        while PER_BUCKET * (side + 1) * (side + 1) * (side + 1) <= points.len() {
            side += 1;
        }
        let bucket = |p: &[f64; 3]| {
            let [x, y, z] = p.map(|x| place(x, side));
            (z * side + y) * side + x
        };
        // A counting sort; it keeps the order of ids within a bucket.
        let mut starts = vec![0u32; side * side * side + 1];
        points.iter().for_each(|p| starts[bucket(p) + 1] += 1);
        (1..starts.len()).for_each(|b| starts[b] += starts[b - 1]);
        let mut next = starts.clone();
        let mut ids = vec![0u32; points.len()];
        for (id, p) in points.iter().enumerate() {
            let slot = &mut next[bucket(p)];
            ids[*slot as usize] = id as u32;
            *slot += 1;
        }
        let points = ids.iter().map(|&id| points[id as usize]).collect();
        Buckets { side, starts, ids, points }
    }

    /// Ranks of the points nearest to the one of `rank`, nearest first, the smaller rank first among equally near;
    /// filled up with `rank` itself if there are too few others.
    fn nearest(&self, rank: usize) -> [u32; NEAREST] {
        let p = self.points[rank];
        let at = p.map(|x| place(x, self.side));
        let mut reach = 1;
        loop {
            let low = at.map(|i| i.saturating_sub(reach));
            let high = at.map(|i| (i + reach).min(self.side - 1));
            let mut found = [(f64::INFINITY, rank as u32); NEAREST];
            for z in low[2]..=high[2] {
                for y in low[1]..=high[1] {
                    let row = (z * self.side + y) * self.side;
                    let ranks = self.starts[row + low[0]]..self.starts[row + high[0] + 1];
                    for u in ranks.filter(|&u| u as usize != rank) {
                        let q = self.points[u as usize];
                        let [dx, dy, dz] = [q[0] - p[0], q[1] - p[1], q[2] - p[2]];
                        insert(&mut found, (dx * dx + dy * dy + dz * dz, u));
                    }
                }
            }
            // Every point not looked at is at least `reach` buckets away.
            let seen = reach as f64 / self.side as f64;
            if found[NEAREST - 1].0 <= seen * seen || reach >= self.side {
                return found.map(|(_, u)| u);
            }
            reach += 1;
        }
    }
}

/// The bucket of a coordinate in [0, 1). Rounding may reach `side` itself.
fn place(x: f64, side: usize) -> usize {
    ((x * side as f64) as usize).min(side - 1)
}

/// Puts a candidate in its place in an ascending list, whose last entry drops out.
fn insert(found: &mut [(f64, u32); NEAREST], candidate: (f64, u32)) {
    if candidate >= found[NEAREST - 1] {
        return;
    }
    let mut slot = NEAREST - 1;
    while slot > 0 && candidate < found[slot - 1] {
        found[slot] = found[slot - 1];
        slot -= 1;
    }
    found[slot] = candidate;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_are_those_that_trying_all_finds() {
        for n in [1, 2, 12, 13, 14, 40, 300, 1500] {
            let stream = Stream::new(n);
            let points: Vec<[f64; 3]> = (0..n).map(|v| stream.in_cube(v)).collect();
            let buckets = Buckets::new(&points);
            for rank in 0..n as usize {
                let square = |u: &u32| -> f64 {
                    let (p, q) = (buckets.points[rank], buckets.points[*u as usize]);
                    (0..3).map(|k| (q[k] - p[k]) * (q[k] - p[k])).sum()
                };
                let mut others: Vec<u32> = (0..n as u32).filter(|&u| u as usize != rank).collect();
                others.sort_by(|a, b| square(a).total_cmp(&square(b)));
                others.resize(NEAREST, rank as u32);
                assert_eq!(buckets.nearest(rank).to_vec(), others, "{n} points, rank {rank}");
            }
        }
    }
}
