//! Which vertices and parts meet at the borders between parts.

use crate::graph::Graph;
use crate::parallel;

/// The vertices that have a neighbor in another part, ascending.
pub(super) fn boundary(graph: &Graph, owners: &[u32]) -> Vec<u32> {
    parallel::filter(owners.len(), |v| is_at_boundary(graph, owners, v as u32))
}

/// Those among some vertices, in the order given.
pub(super) fn boundary_among(graph: &Graph, owners: &[u32], vertices: &[u32]) -> Vec<u32> {
    let places = parallel::filter(vertices.len(), |i| is_at_boundary(graph, owners, vertices[i]));
    places.into_iter().map(|i| vertices[i as usize]).collect()
}

fn is_at_boundary(graph: &Graph, owners: &[u32], v: u32) -> bool {
    let own = owners[v as usize];
    // No early exit, since that is a branch.
    graph.neighbors(v).iter().fold(false, |any, &u| any | (owners[u as usize] != own))
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
