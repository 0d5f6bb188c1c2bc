//! Greedy refinement: boundary vertices move to the part that most of their neighbors are in.
//!
//! Flat cuts through boxes have nothing to gain. Where the mesh is irregular, a plane leaves vertices behind that have
//! most of their neighbors on the other side: on random points a fifth of the cut goes, on curved meshes 1 to 8 %.
//!
//! Vertices move one at a time in ascending order, each looking at the moves before it, so that every move counts and
//! the result does not depend on threads. Source: the greedy refinement of G. Karypis and V. Kumar, "Multilevel k-way
//! partitioning scheme for irregular graphs", 1998, without a queue.

use super::{boundary, is_boundary};
use crate::graph::Graph;

/// Later passes find less and less: 2684, 924, 398 and 184 vertices of 84,825 moved on a bunny in 64 parts.
const PASSES: usize = 4;

/// Lowers the cut, or keeps it and evens out the sizes; no part grows beyond `capacity`.
pub(super) fn refine(graph: &Graph, owners: &mut [u32], parts: usize, capacity: usize) {
    let mut sizes = vec![0usize; parts];
    owners.iter().for_each(|&k| sizes[k as usize] += 1);
    let mut front = boundary(graph, owners);
    let mut edges = vec![0u32; parts]; // of one vertex into each part; zero in between
    for _ in 0..PASSES {
        let mut moved = Vec::new();
        for v in front {
            let row = graph.neighbors(v);
            row.iter().for_each(|&u| edges[owners[u as usize] as usize] += 1);
            let home = owners[v as usize] as usize;
            let mut best = home;
            for &u in row {
                let k = owners[u as usize] as usize;
                let gains = edges[k] > edges[best] || edges[k] == edges[best] && sizes[k] + 1 < sizes[best];
                if k != home && sizes[k] < capacity && gains {
                    best = k;
                }
            }
            row.iter().for_each(|&u| edges[owners[u as usize] as usize] = 0);
            if best != home {
                owners[v as usize] = best as u32;
                sizes[home] -= 1;
                sizes[best] += 1;
                moved.push(v);
            }
        }
        if moved.is_empty() {
            break;
        }
        front = moved.iter().flat_map(|&v| graph.neighbors(v).iter().copied().chain([v])).collect();
        front.sort_unstable();
        front.dedup();
        front.retain(|&v| is_boundary(graph, owners, v));
    }
}
