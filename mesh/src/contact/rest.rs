//! Which pairs are close because the surface is one there.

use super::list::Pairs;
use super::surface::Surface;
use crate::measure::{dot, sub};
use crate::parallel;
use crate::sort::group;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Vertices that a search visits at most: fine triangles beside a long edge would make it endless.
const MOST: usize = 1 << 10;

/// The least vertex that edges join each vertex to.
fn pieces(vertices: usize, edges: &[[u32; 2]]) -> Vec<u32> {
    fn least(above: &mut [u32], mut v: u32) -> u32 {
        while above[v as usize] != v {
            above[v as usize] = above[above[v as usize] as usize];
            v = above[v as usize];
        }
        v
    }
    let mut above: Vec<u32> = (0..vertices as u32).collect();
    for &[a, b] in edges {
        let ends = [least(&mut above, a), least(&mut above, b)];
        above[ends[0].max(ends[1]) as usize] = ends[0].min(ends[1]);
    }
    (0..vertices as u32).map(|v| least(&mut above, v)).collect()
}

/// Those of the pairs that a path of edges joins whose length at rest is at most twice the radius and the longest edge of the two.
///
/// `sources`: how many vertices of a pair are those of its first part. `pairs`: ascending, and so is the result.
pub(super) fn joined(surface: &Surface, sources: usize, pairs: &Pairs, radius: f64) -> Pairs {
    let Surface { rest, edges, .. } = surface;
    let piece = pieces(rest.len(), edges);
    let pairs: Pairs =
        pairs.iter().filter(|pair| piece[pair[0] as usize] == piece[pair[3] as usize]).copied().collect();
    if pairs.is_empty() {
        return pairs;
    }
    let (starts, neighbors) = group(rest.len(), edges.len(), |e| {
        let [a, b] = edges[e];
        [(a, b), (b, a)]
    });
    let length = |a: u32, b: u32| {
        let side = sub(rest[b as usize], rest[a as usize]);
        dot(side, side).sqrt()
    };
    let limit = |pair: &[u32; 4]| {
        let parts = [&pair[..sources], &pair[sources..]];
        let sides =
            parts.into_iter().flat_map(|part| part.iter().flat_map(|&a| part.iter().map(move |&b| length(a, b))));
        2.0 * (radius + sides.fold(0.0, f64::max))
    };
    let runs: Vec<&[[u32; 4]]> = pairs.chunk_by(|p, q| p[..sources] == q[..sources]).collect();
    let scratch = || (vec![f64::INFINITY; rest.len()], Vec::new());
    let kept = parallel::map_with(runs.len(), scratch, |(lengths, seen): &mut (Vec<f64>, Vec<u32>), i| {
        let farthest = runs[i].iter().map(limit).fold(0.0, f64::max);
        // Of numbers that are not negative, bits ascend as they do.
        let mut queue: BinaryHeap<_> = runs[i][0][..sources].iter().map(|&v| Reverse((0.0f64.to_bits(), v))).collect();
        while let Some(Reverse((bits, v))) = queue.pop().filter(|_| seen.len() < MOST) {
            if lengths[v as usize] <= f64::from_bits(bits) {
                continue;
            }
            lengths[v as usize] = f64::from_bits(bits);
            seen.push(v);
            for &u in &neighbors[starts[v as usize] as usize..starts[v as usize + 1] as usize] {
                let path = f64::from_bits(bits) + length(v, u);
                if path <= farthest && path < lengths[u as usize] {
                    queue.push(Reverse((path.to_bits(), u)));
                }
            }
        }
        let near = |pair: &&[u32; 4]| pair[sources..].iter().any(|&v| lengths[v as usize] <= limit(pair));
        let kept: Pairs = runs[i].iter().filter(near).copied().collect();
        seen.drain(..).for_each(|v| lengths[v as usize] = f64::INFINITY);
        kept
    });
    kept.concat()
}
