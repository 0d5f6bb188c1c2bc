//! Which vertices and parts meet at the borders between parts.

use crate::graph::Graph;
use crate::parallel;

/// Those of the vertices that have a neighbor in another part, in the order given.
pub(super) fn boundary(graph: &Graph, owners: &[u32], vertices: &[u32]) -> Vec<u32> {
    /// Vertices that are looked at as one piece of work.
    const PIECE: usize = 1 << 12;
    let is_outside = |v: u32, u: u32| owners[u as usize] != owners[v as usize];
    // No early exit, since that is a branch.
    let meets = |&v: &u32| graph.neighbors(v).iter().fold(false, |any, &u| any | is_outside(v, u));
    let meeting = |vertices: &[u32]| vertices.iter().copied().filter(meets).collect::<Vec<u32>>();
    parallel::map(vertices.chunks(PIECE), meeting).concat()
}

/// The parts, other than its own, in which `v` has neighbors: each once.
pub(super) fn other_parts(graph: &Graph, owners: &[u32], v: u32, others: &mut Vec<u32>) {
    others.clear();
    for &u in graph.neighbors(v) {
        let k = owners[u as usize];
        if k != owners[v as usize] && !others.contains(&k) {
            others.push(k);
        }
    }
}
