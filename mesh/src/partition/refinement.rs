//! Greedy refinement: boundary vertices move to the part that most of their neighbors are in.
//!
//! Flat cuts through boxes have nothing to gain. Where the mesh is irregular, a plane leaves vertices behind that have
//! most of their neighbors on the other side: on random points a fifth of the cut goes, on curved meshes 1 to 8 %.
//!
//! Which vertices gain by a move is found in parallel. They move one at a time in ascending order, each looking again at
//! the moves before it, so that every move counts and the result does not depend on threads. Source: the greedy
//! refinement of G. Karypis and V. Kumar, "Multilevel k-way partitioning scheme for irregular graphs", 1998.

use super::neighbors::boundary;
use crate::graph::Graph;
use crate::parallel;

/// Later passes find less and less: 2684, 924, 398 and 184 vertices of 84,825 moved on a bunny in 64 parts.
const PASSES: usize = 4;

/// Lowers the cut, or keeps it and evens out the sizes; no part grows beyond `capacity`. Returns, ascending, vertices among which
/// are all that then have a neighbor in another part.
pub(super) fn refine(graph: &Graph, owners: &mut [u32], parts: usize, capacity: usize) -> Vec<u32> {
    let mut sizes = vec![0usize; parts];
    owners.iter().for_each(|&k| sizes[k as usize] += 1);
    let outer = boundary(graph, owners);
    let mut edges = Vec::new();
    // A bit for each vertex: whether it is to be looked at again, and whether it ever was.
    let mut touched = vec![0u64; owners.len().div_ceil(64)];
    let touch = |touched: &mut Vec<u64>, v: u32| touched[v as usize / 64] |= 1 << (v % 64);
    let mut known = touched.clone();
    outer.iter().for_each(|&v| touch(&mut known, v));
    let mut movable = Parts { graph, owners, sizes: &sizes, capacity }.movable(&outer);
    for _ in 0..PASSES {
        for v in movable {
            let home = owners[v as usize];
            let best = Parts { graph, owners, sizes: &sizes, capacity }.best(v, &mut edges);
            if best != home {
                owners[v as usize] = best;
                sizes[home as usize] -= 1;
                sizes[best as usize] += 1;
                touch(&mut touched, v);
                graph.neighbors(v).iter().for_each(|&u| touch(&mut touched, u));
            }
        }
        known.iter_mut().zip(&touched).for_each(|(known, touched)| *known |= touched);
        movable = Parts { graph, owners, sizes: &sizes, capacity }.movable(&ones(&mut touched));
        if movable.is_empty() {
            break;
        }
    }
    ones(&mut known)
}

/// The places of the ones, ascending, which become zeros.
fn ones(bits: &mut [u64]) -> Vec<u32> {
    let mut places = Vec::new();
    for (first, word) in (0..).step_by(64).zip(bits) {
        while *word != 0 {
            places.push(first + word.trailing_zeros());
            *word &= *word - 1;
        }
    }
    places
}

/// The parts as they are now.
struct Parts<'a> {
    graph: &'a Graph,
    owners: &'a [u32],
    sizes: &'a [usize],
    capacity: usize,
}

impl Parts<'_> {
    /// Those of the vertices that are better off in another part, in the order given.
    fn movable(&self, vertices: &[u32]) -> Vec<u32> {
        let movable = parallel::map(vertices.chunks(1 << 10), |vertices| {
            let mut edges = Vec::new();
            let moves = |&v: &u32| self.best(v, &mut edges) != self.owners[v as usize];
            vertices.iter().copied().filter(moves).collect::<Vec<u32>>()
        });
        parallel::concat(movable)
    }

    /// The part that holds most neighbors of `v`: its own, unless another with room has more, or as many and is smaller.
    ///
    /// `edges` is scratch: the parts around `v` and how many edges lead there.
    fn best(&self, v: u32, edges: &mut Vec<(u32, u32)>) -> u32 {
        let home = self.owners[v as usize];
        let row = self.graph.neighbors(v);
        // Where most are in its own part no other has as many: so it is with most vertices. No early exit, since that is a branch.
        let inside = row.iter().map(|&u| usize::from(self.owners[u as usize] == home)).sum::<usize>();
        if 2 * inside > row.len() {
            return home;
        }
        edges.clear();
        edges.push((home, 0));
        for &u in row {
            let k = self.owners[u as usize];
            match edges.iter_mut().find(|(part, _)| *part == k) {
                Some((_, count)) => *count += 1,
                None => edges.push((k, 1)),
            }
        }
        let mut best = edges[0];
        for &(k, count) in &edges[1..] {
            let [size, other] = [k, best.0].map(|k| self.sizes[k as usize]);
            if size < self.capacity && (count > best.1 || count == best.1 && size + 1 < other) {
                best = (k, count);
            }
        }
        best.0
    }
}
