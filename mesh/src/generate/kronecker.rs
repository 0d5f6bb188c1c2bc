//! Graphs without places: like those of the web and of people, where few vertices have very many edges and most have few; and those in
//! which every edge is as likely as any other.

use super::size::{Size, Wanted};
use super::stream::Stream;
use crate::cell::{CellKind, Cells};
use crate::error::Result;
use crate::mesh::Mesh;
use crate::parallel;

/// Edges for each vertex, unless another number is given.
pub(super) const EDGES: usize = 16;
/// The chance of the upper half of the rows.
const UPPER: f64 = 0.57 + 0.19;
/// The chance of the left half of the columns, in the upper half of the rows and in the lower.
const LEFT: [f64; 2] = [0.57 / UPPER, 0.19 / (1.0 - UPPER)];

/// Makes the Kronecker graph of Graph500: 2^`scale` vertices at the origin, and so many `edges` for each, there 16.
///
/// For each edge, row and column of the adjacency matrix are halved `scale` times, with chances 0.57, 0.19, 0.19 and 0.05
/// for the quarters; then the vertices are renamed at random. As there, edges repeat, some join a vertex to itself, and many vertices
/// have none. The order of the edges has no meaning. Cost O(edges · scale), in parallel; no memory beside the mesh.
///
/// Source: Graph500 steering committee, "Graph 500 benchmark 1", version 2; Leskovec et al., "Kronecker graphs: an approach to modeling networks", JMLR
/// 11, 2010.
///
/// # Errors
/// Scale 0, no edges, or a graph that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::kronecker(8, 16, 1)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (256, 16 * 256));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn kronecker(scale: usize, edges: usize, seed: u64) -> Result<Mesh> {
    let size = wanted_kronecker(&[scale, edges]).check()?;
    let (scale, stream) = (scale as u32, Stream::new(seed));
    let labels = Scramble::new(scale, stream);
    joined(size, |e| edge(scale, stream, e).map(|v| labels.of(v)))
}

/// Makes a graph of `n` vertices at the origin and so many `edges` for each, whose ends are any two vertices with the same chance.
///
/// Edges may repeat, and join a vertex to itself. What gathers hubs together gains nothing here: the worst case of a partition.
/// Cost O(edges), in parallel; no memory beside the mesh.
///
/// Source: Erdős and Rényi, "On random graphs I", 1959.
///
/// # Errors
/// No vertices, no edges, or a graph that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::uniform(1000, 4, 1)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (1000, 4000));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn uniform(n: usize, edges: usize, seed: u64) -> Result<Mesh> {
    let size = wanted_uniform(&[n, edges]).check()?;
    let stream = Stream::new(seed);
    joined(size, |e| {
        let bits = stream.bits(e);
        [bits as u32, (bits >> 32) as u32].map(|draw| ((u64::from(draw) * n as u64) >> 32) as u32)
    })
}

/// Vertices at the origin, and edges by their numbers.
fn joined(size: Size, edge: impl Fn(u64) -> [u32; 2] + Sync) -> Result<Mesh> {
    let corners = parallel::collect(size.corners / 2, |e| edge(e as u64)).into_flattened();
    Mesh::new(vec![[0.0; 3]; size.vertices], Cells::of(CellKind::Edge, corners))
}

/// What [`kronecker`] makes of this scale and this number of edges a vertex.
pub(super) fn wanted_kronecker(counts: &[usize]) -> Wanted<'_> {
    let vertices = u32::try_from(counts[0]).ok().and_then(|scale| 1u128.checked_shl(scale)).unwrap_or(u128::MAX);
    wanted("kronecker", counts, vertices)
}

/// What [`uniform`] makes of these numbers.
pub(super) fn wanted_uniform(counts: &[usize]) -> Wanted<'_> {
    wanted("uniform", counts, counts[0] as u128)
}

fn wanted<'a>(name: &'a str, counts: &'a [usize], vertices: u128) -> Wanted<'a> {
    let cells = vertices.saturating_mul(counts[1] as u128);
    Wanted { name, counts, least: 1, vertices, cells, kind: CellKind::Edge }
}

/// Edge `e` before its ends are renamed.
fn edge(scale: u32, stream: Stream, e: u64) -> [u32; 2] {
    const ONE: f64 = (1u64 << 32) as f64;
    let upper = (UPPER * ONE) as u32;
    let left = LEFT.map(|chance| (chance * ONE) as u32);
    let [mut row, mut column] = [0, 0];
    for level in 0..scale {
        // Two draws of 32 bits.
        let bits = stream.bits(SCRAMBLE + e * u64::from(scale) + u64::from(level));
        let lower = u32::from(bits as u32 >= upper);
        let right = u32::from((bits >> 32) as u32 >= left[lower as usize]);
        (row, column) = (row << 1 | lower, column << 1 | right);
    }
    [row, column]
}

/// Numbers of the stream that the scramble is made of, before those of edges.
const SCRAMBLE: u64 = 8;

/// A permutation of the numbers below 2^scale: rounds of steps each of which can be undone.
struct Scramble {
    scale: u32,
    factors: [u64; 4],
    shifts: [u64; 4],
}

impl Scramble {
    fn new(scale: u32, stream: Stream) -> Scramble {
        let number = |i: usize| stream.bits(i as u64);
        Scramble { scale, factors: [0, 1, 2, 3].map(|i| number(i) | 1), shifts: [4, 5, 6, 7].map(number) }
    }

    fn of(&self, v: u32) -> u32 {
        let mask = (1u64 << self.scale) - 1;
        let half = self.scale.div_ceil(2);
        let steps = self.factors.iter().zip(&self.shifts);
        // An odd factor and a sum are undone below any power of two; so is folding the upper half onto the lower.
        steps.fold(u64::from(v), |v, (&factor, &shift)| {
            let v = v.wrapping_mul(factor).wrapping_add(shift) & mask;
            v ^ v >> half
        }) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scramble_is_a_permutation() {
        for scale in [1, 2, 3, 10, 13] {
            let labels = Scramble::new(scale, Stream::new(u64::from(scale)));
            let mut all: Vec<u32> = (0..1 << scale).map(|v| labels.of(v)).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..1 << scale), "{scale}");
        }
    }

    #[test]
    fn quarters_have_their_chances() {
        let (scale, stream, count) = (11, Stream::new(3), 40_000);
        let mut quarters = [[0usize; 2]; 2];
        for e in 0..count {
            let [row, column] = edge(scale, stream, e);
            for level in 0..scale {
                quarters[(row >> level & 1) as usize][(column >> level & 1) as usize] += 1;
            }
        }
        let share = |n: usize| n as f64 / (count * u64::from(scale)) as f64;
        for (found, chance) in quarters.as_flattened().iter().zip([0.57, 0.19, 0.19, 0.05]) {
            assert!((share(*found) - chance).abs() < 0.003, "{found} for {chance}");
        }
    }

    #[test]
    fn a_seed_is_another_graph_and_hubs_are_anywhere() {
        let ends = |seed| kronecker(10, 16, seed).unwrap().cells().all_corners().to_vec();
        assert_ne!(ends(1), ends(2));
        let hub = |seed| {
            let mut degrees = vec![0; 1024];
            ends(seed).iter().for_each(|&v| degrees[v as usize] += 1);
            let most = degrees.iter().max().copied().unwrap();
            assert!(most > 15 * 32, "{most}");
            degrees.iter().position(|&d| d == most).unwrap()
        };
        let hubs: std::collections::BTreeSet<usize> = (0..8).map(hub).collect();
        assert!(hubs.len() > 6, "{hubs:?}");
    }

    #[test]
    fn every_end_of_a_uniform_graph_is_as_likely_as_any_other() {
        let (n, edges) = (300, 500);
        let mesh = uniform(n, edges, 2).unwrap();
        let mut ends = vec![0usize; n];
        mesh.cells().all_corners().iter().for_each(|&v| ends[v as usize] += 1);
        // A thousand each: five standard deviations around that.
        assert!(ends.iter().all(|count| count.abs_diff(2 * edges) < 160), "{ends:?}");
        let fewer = uniform(n, 2, 2).unwrap();
        assert_eq!(
            fewer.cells().all_corners(),
            &mesh.cells().all_corners()[..4 * n],
            "more edges are the same and others"
        );
    }
}
