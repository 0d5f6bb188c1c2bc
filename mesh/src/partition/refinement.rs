//! Greedy refinement: boundary vertices move to the part that most of their neighbors are in.
//!
//! Flat cuts through boxes have nothing to gain. Where the mesh is irregular, a plane leaves vertices behind that have
//! most of their neighbors on the other side: on random points a fifth of the cut goes, on curved meshes 1 to 8 %.
//!
//! Which vertices gain by a move is found in parallel. They move one at a time in ascending order, each looking again at
//! the moves before it, so that every move counts and the result does not depend on threads. Source: the greedy
//! refinement of G. Karypis and V. Kumar, "Multilevel k-way partitioning scheme for irregular graphs", 1998.

use crate::graph::Graph;
use rayon::prelude::*;

/// Later passes find less and less: 2684, 924, 398 and 184 vertices of 84,825 moved on a bunny in 64 parts.
const PASSES: usize = 4;

/// Lowers the cut, or keeps it and evens out the sizes; no part grows beyond `capacity`.
pub(super) fn refine(graph: &Graph, owners: &mut [u32], parts: usize, capacity: usize) {
    let mut sizes = vec![0usize; parts];
    owners.iter().for_each(|&k| sizes[k as usize] += 1);
    let all = (0..owners.len() as u32).into_par_iter();
    let mut movable: Vec<u32> = Parts { graph, owners, sizes: &sizes, capacity }.movable(all);
    let mut edges = Vec::new();
    for _ in 0..PASSES {
        let mut touched = Vec::new();
        for v in movable {
            let home = owners[v as usize];
            let best = Parts { graph, owners, sizes: &sizes, capacity }.best(v, &mut edges);
            if best != home {
                owners[v as usize] = best;
                sizes[home as usize] -= 1;
                sizes[best as usize] += 1;
                touched.push(v);
                touched.extend(graph.neighbors(v));
            }
        }
        touched.sort_unstable();
        touched.dedup();
        movable = Parts { graph, owners, sizes: &sizes, capacity }.movable(touched.into_par_iter());
        if movable.is_empty() {
            break;
        }
    }
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
    fn movable(&self, vertices: impl IndexedParallelIterator<Item = u32>) -> Vec<u32> {
        let moves = |edges: &mut Vec<(u32, u32)>, v: u32| (self.best(v, edges) != self.owners[v as usize]).then_some(v);
        vertices.map_init(Vec::new, moves).flatten_iter().collect()
    }

    /// The part that holds most neighbors of `v`: its own, unless another with room has more, or as many and is smaller.
    ///
    /// `edges` is scratch: the parts around `v` and how many edges lead there.
    fn best(&self, v: u32, edges: &mut Vec<(u32, u32)>) -> u32 {
        let home = self.owners[v as usize];
        let row = self.graph.neighbors(v);
        if row.iter().all(|&u| self.owners[u as usize] == home) {
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
