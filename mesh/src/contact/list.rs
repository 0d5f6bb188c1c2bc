//! Pairs that may come closer than a radius: found once with a tree, then filtered as long as nothing has moved far.
//!
//! Source: Verlet, "Computer experiments on classical fluids" (1967).

use super::distance;
use super::surface::Surface;
use super::tree::{self, Tree};
use crate::measure::{dot, sub};
use crate::parallel;
use crate::sort::sort_into;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Pairs a vertex that are closer than the radius, on average: more are a mistake, and would fill the memory.
pub(super) const MOST: usize = 128;
/// By how much a distance may come out too great, in lengths of the longest edge: see [`distance::point_triangle`].
const ROUNDING: f64 = 1e-7;
/// Elements that are worth a piece of a parallel loop.
pub(super) const PIECE: usize = 1 << 12;
/// Pairs that are measured at once: they stay in a first-level cache.
const BATCH: usize = 256;

/// Vertices and triangles, or two edges: both are four vertices, as [`Contacts`](super::Contacts) has them.
pub(super) type Pairs = Vec<[u32; 4]>;

/// A pair, and its distance when it was listed as a share of [`List::reach`].
type Candidate = ([u32; 4], f32);

/// Candidates that would be contacts, and those that count for clearance alone.
type Candidates = [Vec<Candidate>; 2];

/// All pairs of vertices and triangles, and of edges, that were closer than `reach` when vertices were at `positions`.
pub(super) struct List {
    positions: Vec<[f64; 3]>,
    reach: f64,
    /// Of distances, by rounding.
    error: f64,
    vertex_triangle: Candidates,
    edge_edge: Candidates,
}

/// What pairs are listed with.
struct Walk<'a> {
    surface: &'a Surface,
    positions: &'a [[f64; 3]],
    reach: f64,
    error: f64,
    squared_reach: f64,
    /// Pairs so far, and how many there may be.
    count: AtomicUsize,
    most: usize,
}

/// Those of some candidates that are closer than the radius.
pub(super) struct Filter<'a> {
    positions: &'a [[f64; 3]],
    squared_radius: f64,
    /// The bits of the least squared distance of each vertex so far: those of numbers that are not negative ascend as they do, so threads
    /// can take the least of them in any order.
    nearest: &'a [AtomicU64],
    /// Candidates that were farther apart cannot be.
    share: f32,
}

impl List {
    /// Lists all pairs that are closer than the radius and a skin. `excluded`: pairs that are no contacts, ascending. None if there are more
    /// than [`MOST`] a vertex, or the skin is less than rounding.
    pub(super) fn new(
        surface: &Surface,
        positions: &[[f64; 3]],
        radius: f64,
        skin: f64,
        excluded: [&Pairs; 2],
    ) -> Option<List> {
        let Surface { vertices, edges, .. } = surface;
        // Without a skin a list is used at once, where it was made.
        let longest = if skin > 0.0 { longest(edges, positions) } else { 0.0 };
        let (reach, error) = (radius + skin, ROUNDING * longest);
        if error > skin {
            return None;
        }
        // Without a skin pairs are those that are filtered, to the last bit.
        let squared_reach = if skin > 0.0 { (reach + error) * (reach + error) } else { radius * radius };
        let margin = 0.5 * (reach + error);
        let [points, faces, sides] = surface.trees(&|v| [positions[v as usize]; 2], margin);
        let most = MOST * vertices.len();
        let walk = Walk { surface, positions, reach, error, squared_reach, count: AtomicUsize::new(0), most };
        let vertex_triangle = walk.candidates::<false>(&points, &faces, excluded[0]);
        let edge_edge = walk.candidates::<true>(&sides, &sides, excluded[1]);
        let enough = walk.count.into_inner() <= most;
        enough.then(|| List { positions: positions.to_vec(), reach, error, vertex_triangle, edge_edge })
    }

    /// What the list says of other positions: none where pairs may be missing, or where it has many more than are needed.
    pub(super) fn filter<'a>(
        &self,
        surface: &Surface,
        positions: &'a [[f64; 3]],
        radius: f64,
        nearest: &'a [AtomicU64],
    ) -> Option<Filter<'a>> {
        let share = self.share(surface, positions, radius)?;
        Some(Filter { positions, squared_radius: radius * radius, nearest, share })
    }

    /// Pairs of vertices and triangles, and of edges, in any order, whether or not they are contacts: all that are closer than the radius, and more.
    /// None where pairs may be missing.
    pub(super) fn near(&self, surface: &Surface, positions: &[[f64; 3]], radius: f64) -> Option<[Pairs; 2]> {
        let share = self.share(surface, positions, radius)?;
        let near = |[contacts, others]: &Candidates| {
            let all = contacts.iter().chain(others).filter(|candidate| candidate.1 <= share);
            all.map(|candidate| candidate.0).collect()
        };
        Some([near(&self.vertex_triangle), near(&self.edge_edge)])
    }

    /// What of the reach those have at most, when they were listed, that are closer than the radius at other positions: none where pairs may be
    /// missing, or where the list has many more than are needed.
    fn share(&self, surface: &Surface, positions: &[[f64; 3]], radius: f64) -> Option<f32> {
        let far = radius + 2.0 * self.motion(&surface.vertices, positions) + self.error;
        let share = (far / self.reach) as f32 * (1.0 + 2.0 * f32::EPSILON);
        (far <= self.reach && self.reach <= 4.0 * radius).then_some(share)
    }

    /// How far the vertices have moved since, at most: what all have in common is left out, since it changes no distance.
    fn motion(&self, vertices: &[u32], positions: &[[f64; 3]]) -> f64 {
        let moved = |v: u32| sub(positions[v as usize], self.positions[v as usize]);
        let none = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
        let parts =
            parallel::map(vertices.chunks(PIECE), |part| part.iter().map(|&v| [moved(v); 2]).fold(none, tree::wider));
        let [low, high] = parts.into_iter().fold(none, tree::wider);
        let middle: [f64; 3] = std::array::from_fn(|k| 0.5 * low[k] + 0.5 * high[k]);
        let squared = |&v: &u32| {
            let own = sub(moved(v), middle);
            dot(own, own)
        };
        let farthest = parallel::map(vertices.chunks(PIECE), |part| part.iter().map(squared).fold(0.0, f64::max));
        farthest.into_iter().fold(0.0, f64::max).sqrt()
    }

    /// All pairs, of vertices and triangles and of edges: ascending.
    pub(super) fn all(&self) -> [Pairs; 2] {
        [&self.vertex_triangle, &self.edge_edge]
            .map(|[contacts, _]| contacts.iter().map(|candidate| candidate.0).collect())
    }
}

/// The length of the longest edge.
fn longest(edges: &[[u32; 2]], positions: &[[f64; 3]]) -> f64 {
    let squared = |&[a, b]: &[u32; 2]| {
        let side = sub(positions[b as usize], positions[a as usize]);
        dot(side, side)
    };
    let parts = parallel::map(edges.chunks(PIECE), |part| part.iter().map(squared).fold(0.0, f64::max));
    parts.into_iter().fold(0.0, f64::max).sqrt()
}

impl Walk<'_> {
    /// The pairs within reach of primitives whose boxes meet, in lexicographic order.
    fn candidates<const EDGES: bool>(&self, own: &Tree, others: &Tree, excluded: &Pairs) -> Candidates {
        let parts = parallel::map(parallel::ranges(own.groups(), BATCH), |range| {
            // Pairs as two numbers in one, which sort in the order of their vertices.
            let (mut lists, mut keys, mut pairs) = ([const { Vec::<(u64, f32)>::new() }; 2], Vec::new(), Vec::new());
            let mut stack = Vec::new();
            for group in range {
                // Once there are too many it does not matter which.
                let Some(room) = self.most.checked_sub(self.count.load(Ordering::Relaxed)) else { break };
                let mut count = 0;
                let mut measure = |keys: &mut Vec<u64>, pairs: &mut Pairs| {
                    distance::each::<EDGES>(pairs, self.positions, |i, squared| {
                        if squared < self.squared_reach && count <= room {
                            let out = usize::from(!excluded.is_empty() && excluded.binary_search(&pairs[i]).is_ok());
                            lists[out].push((keys[i], ((squared.sqrt() - self.error) / self.reach) as f32));
                            count += 1;
                        }
                    });
                    keys.clear();
                    pairs.clear();
                };
                Surface::meeting::<EDGES>([own, others], group, &mut stack, |i, j| {
                    keys.push(u64::from(i) << 32 | u64::from(j));
                    pairs.push(self.surface.pair::<EDGES>(i, j));
                    if pairs.len() == BATCH {
                        measure(&mut keys, &mut pairs);
                    }
                });
                measure(&mut keys, &mut pairs);
                self.count.fetch_add(count, Ordering::Relaxed);
            }
            lists
        });
        let (contacts, others): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|[contacts, others]| (contacts, others)).unzip();
        [contacts, others].map(|parts| {
            let all = parallel::concat(parts);
            sort_into(
                all.len(),
                |i| all[i],
                |found| found.0,
                |bucket, candidates| {
                    bucket.sort_unstable_by_key(|found| found.0);
                    for (candidate, &(key, share)) in candidates.iter_mut().zip(&*bucket) {
                        *candidate = (self.surface.pair::<EDGES>((key >> 32) as u32, key as u32), share);
                    }
                },
            )
        })
    }
}

impl Filter<'_> {
    /// The contacts of vertices and triangles, and of edges, in lexicographic order.
    pub(super) fn contacts(&self, list: &List) -> [Pairs; 2] {
        [self.of::<false>(&list.vertex_triangle), self.of::<true>(&list.edge_edge)]
    }

    fn of<const EDGES: bool>(&self, [contacts, others]: &Candidates) -> Pairs {
        self.closer::<EDGES>(others);
        self.closer::<EDGES>(contacts)
    }

    fn closer<const EDGES: bool>(&self, candidates: &[Candidate]) -> Pairs {
        let parts = parallel::map(parallel::ranges(candidates.len(), PIECE), |range| {
            let mut found = Vec::new();
            let mut pairs = [[0; 4]; BATCH];
            for candidates in candidates[range].chunks(BATCH) {
                let mut count = 0;
                for &(pair, share) in candidates {
                    // No branch: the processor would guess wrong half of the time.
                    pairs[count] = pair;
                    count += usize::from(share <= self.share);
                }
                distance::each::<EDGES>(&pairs[..count], self.positions, |i, squared| {
                    if squared < self.squared_radius {
                        found.push(pairs[i]);
                        for v in pairs[i] {
                            let nearest = &self.nearest[v as usize];
                            if squared.to_bits() < nearest.load(Ordering::Relaxed) {
                                nearest.fetch_min(squared.to_bits(), Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
            found
        });
        parallel::concat(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::generate;

    #[test]
    fn a_list_serves_until_something_has_moved_by_half_of_the_skin() {
        let sheet = generate("sheet:9", 0).unwrap();
        let surface = Surface::new(sheet.points(), &sheet.triangles(), &[], &[]).unwrap();
        let list = List::new(&surface, sheet.points(), 0.05, 0.04, [&Pairs::new(); 2]).unwrap();
        let nearest: Vec<AtomicU64> = sheet.points().iter().map(|_| AtomicU64::new(u64::MAX)).collect();
        let serves = |moved: f64, radius: f64| {
            // All fall, which does not count, and two vertices move against each other.
            let mut place: Vec<[f64; 3]> = sheet.points().iter().map(|p| [p[0], p[1], p[2] - 3.0]).collect();
            place[3][0] += moved;
            place[70][0] -= moved;
            list.filter(&surface, &place, radius, &nearest).is_some()
        };
        assert!(serves(0.0, 0.05) && serves(0.0199, 0.05) && !serves(0.0201, 0.05));
        assert!(serves(0.0299, 0.03) && !serves(0.0301, 0.03));
        assert!(!serves(0.0, 0.1), "pairs are missing");
        assert!(!serves(0.0, 0.02), "most pairs are of no use");
        // Rounding is as much as the skin.
        let mut far = sheet.points().to_vec();
        far[0][0] = 1e7;
        assert!(List::new(&surface, &far, 0.05, 0.04, [&Pairs::new(); 2]).is_none());
        assert!(List::new(&surface, &far, 0.05, 0.0, [&Pairs::new(); 2]).is_some());
    }
}
