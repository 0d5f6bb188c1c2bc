//! Finds contacts, again and again, while a surface moves.

use super::distance::{edge_edge, point_triangle};
use super::surface::Surface;
use super::tree::{self, Tree, bounds};
use crate::error::{Error, Result};
use crate::measure::{dot, sub};
use crate::parallel;
use crate::sort::sort_into;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Pairs a vertex that are closer than the radius, on average: more are a mistake, and would fill the memory.
const MOST: usize = 128;
/// How far ahead pairs are listed, in radii: more makes the list longer, less makes it anew more often.
const SKIN: f64 = 0.5;
/// By how much a distance may come out too great, in lengths of the longest edge: see [`point_triangle`].
const ROUNDING: f64 = 1e-7;
/// Elements of a list that are worth a piece of a parallel loop.
const PIECE: usize = 1 << 12;

/// What [`Finder::find`] finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contacts {
    /// A vertex, and the corners of a triangle, ascending: shape [pairs × 4], in lexicographic order.
    pub vertex_triangle: Vec<[u32; 4]>,
    /// The ends of an edge, ascending, and those of a later one: shape [pairs × 4], in lexicographic order.
    pub edge_edge: Vec<[u32; 4]>,
    /// How far each vertex is from what it could pass through, and so is all that moves with it: shape `[n]`, at most the radius.
    pub clearance: Vec<f64>,
}

/// A pair that may come closer than the radius, and its distance when it was listed, as a share of [`List::reach`].
type Candidate = ([u32; 4], f32);

/// Pairs of one kind by what becomes of them: contacts, and those that count for clearance alone.
type Split<T> = [Vec<T>; 2];

/// All pairs that were closer than `reach` when vertices were at `positions`.
struct List {
    positions: Vec<[f64; 3]>,
    reach: f64,
    /// Of distances, by rounding.
    error: f64,
    /// Of a vertex and a triangle, and of two edges.
    kinds: [Split<Candidate>; 2],
}

/// Finds contacts of a surface.
pub struct Finder {
    surface: Surface,
    /// Pairs that are no contacts, of both kinds, ascending.
    excluded: [Vec<[u32; 4]>; 2],
    list: Option<List>,
}

/// The squared distance of a vertex and a triangle, or of two edges.
#[inline(always)]
fn squared(kind: usize, [a, b, c, d]: [u32; 4], positions: &[[f64; 3]]) -> f64 {
    let [a, b, c, d] = [a, b, c, d].map(|v| positions[v as usize]);
    match kind {
        0 => point_triangle(a, [b, c, d]).squared,
        _ => edge_edge([a, b], [c, d]).squared,
    }
}

impl Finder {
    /// todo
    pub fn new(surface: Surface, rest_radius: f64) -> Result<Finder> {
        let _ = rest_radius;
        Ok(Finder { surface, excluded: Default::default(), list: None })
    }

    /// todo
    pub fn find(&mut self, positions: &[[f64; 3]], radius: f64) -> Result<Contacts> {
        self.surface.check(positions)?;
        let usable = self.list.as_ref().is_some_and(|list| {
            let far = radius + 2.0 * list.motion(&self.surface.vertices, positions) + list.error;
            far <= list.reach && list.reach <= 4.0 * radius
        });
        if !usable {
            // Without a skin the number of pairs depends on nothing but these positions.
            let list = self.walk(positions, radius, SKIN * radius).or_else(|_| self.walk(positions, radius, 0.0))?;
            self.list = Some(list);
        }
        let list = self.list.as_ref().expect("it has just been made");
        let far = radius + 2.0 * list.motion(&self.surface.vertices, positions) + list.error;
        let nearest: Vec<AtomicU64> = positions.iter().map(|_| AtomicU64::new(f64::INFINITY.to_bits())).collect();
        let share = (far / list.reach) as f32 * 1.000_001;
        let mut found = [0, 1].map(|kind| {
            let [contacts, quiet] = [0, 1].map(|part| {
                let candidates = &list.kinds[kind][part];
                filter(kind, candidates, share, radius * radius, positions, &nearest)
            });
            drop(quiet);
            contacts
        });
        let clearance = parallel::collect(nearest.len(), |v| {
            f64::from_bits(nearest[v].load(Ordering::Relaxed)).sqrt().min(radius)
        });
        let [vertex_triangle, edge_edge] = std::mem::take(&mut found);
        Ok(Contacts { vertex_triangle, edge_edge, clearance })
    }

    /// All pairs that are closer than the radius and a skin.
    fn walk(&self, positions: &[[f64; 3]], radius: f64, skin: f64) -> Result<List> {
        let Surface { vertices, triangles, edges, .. } = &self.surface;
        let at = |v: u32| positions[v as usize];
        let [of_vertex, of_triangle, of_edge] = [
            &(|i| bounds([at(vertices[i])])) as &(dyn Fn(usize) -> tree::Bounds + Sync),
            &|i| bounds(triangles[i].map(at)),
            &|i| bounds(edges[i].map(at)),
        ];
        let longest = parallel::map(parallel::ranges(edges.len(), PIECE), |range| {
            edges[range].iter().map(|&[a, b]| sub(at(a), at(b))).map(|e| dot(e, e)).fold(0.0, f64::max)
        });
        let error = if skin > 0.0 { ROUNDING * longest.into_iter().fold(0.0, f64::max).sqrt() } else { 0.0 };
        let reach = radius + skin;
        let origin = vertices.first().map_or([0.0; 3], |&v| at(v));
        let [points, faces, sides] = [(vertices.len(), of_vertex), (triangles.len(), of_triangle), (edges.len(), of_edge)]
            .map(|(count, bounds)| Tree::new(tree::order(count, bounds), bounds, 0.5 * (reach + error), origin));
        let count = AtomicUsize::new(0);
        let most = MOST * vertices.len();
        let vertex_triangle = self.pairs(0, &points, &faces, positions, reach, error, &count, most, |i, j| {
            let [a, [b, c, d]] = [[vertices[i as usize]; 3], triangles[j as usize]];
            let a = a[0];
            (a != b && a != c && a != d).then_some([a, b, c, d])
        });
        let edge_edge = self.pairs(1, &sides, &sides, positions, reach, error, &count, most, |i, j| {
            let [[a, b], [c, d]] = [edges[i.min(j) as usize], edges[i.max(j) as usize]];
            (a != c && a != d && b != c && b != d).then_some([a, b, c, d])
        });
        if count.into_inner() > most {
            return Err(Error::Invalid(format!(
                "more than {MOST} pairs a vertex are closer than {radius}: use a smaller radius, or let the surface lie in less of one place"
            )));
        }
        Ok(List { positions: positions.to_vec(), reach, error, kinds: [vertex_triangle, edge_edge] })
    }

    #[allow(clippy::too_many_arguments)]
    fn pairs(
        &self,
        kind: usize,
        own: &Tree,
        others: &Tree,
        positions: &[[f64; 3]],
        reach: f64,
        error: f64,
        count: &AtomicUsize,
        most: usize,
        pair: impl Fn(u32, u32) -> Option<[u32; 4]> + Sync,
    ) -> Split<Candidate> {
        let excluded = &self.excluded[kind];
        let parts = parallel::map(parallel::ranges(own.groups(), 128), |range| {
            let mut lists: Split<Candidate> = Default::default();
            for group in range {
                // Once there are too many it does not matter which.
                let room = most.saturating_sub(count.load(Ordering::Relaxed));
                let mut counted = 0;
                own.meeting(group, others, |i, j| {
                    let Some(pair) = pair(i, j) else { return };
                    let distance = (squared(kind, pair, positions).sqrt() - error).max(0.0);
                    if distance < reach && counted <= room {
                        let part = usize::from(!excluded.is_empty() && excluded.binary_search(&pair).is_ok());
                        lists[part].push((pair, (distance / reach) as f32));
                        counted += 1;
                    }
                });
                count.fetch_add(counted, Ordering::Relaxed);
            }
            lists
        });
        let mut parts: Split<Vec<Candidate>> = parts.into_iter().map(|[a, b]| (a, b)).unzip().into();
        [0, 1].map(|part| {
            let all = parallel::concat(std::mem::take(&mut parts[part]));
            sort_into(
                all.len(),
                |i| all[i],
                |candidate| u64::from(candidate.0[0]),
                |bucket, out| {
                    bucket.sort_unstable_by_key(|candidate| candidate.0);
                    out.copy_from_slice(bucket);
                },
            )
        })
    }
}

fn filter(
    kind: usize,
    candidates: &[Candidate],
    share: f32,
    most: f64,
    positions: &[[f64; 3]],
    nearest: &[AtomicU64],
) -> Vec<[u32; 4]> {
    let parts = parallel::map(parallel::ranges(candidates.len(), PIECE), |range| {
        let mut found = Vec::new();
        for (pair, near) in &candidates[range] {
            if *near >= share {
                continue;
            }
            let squared = squared(kind, *pair, positions);
            if squared < most {
                found.push(*pair);
                let bits = squared.to_bits();
                for v in pair {
                    let slot = &nearest[*v as usize];
                    if bits < slot.load(Ordering::Relaxed) {
                        slot.fetch_min(bits, Ordering::Relaxed);
                    }
                }
            }
        }
        found
    });
    parallel::concat(parts)
}

impl List {
    /// By how much any two vertices have moved apart or together since, halved: what all have in common is left out.
    fn motion(&self, vertices: &[u32], positions: &[[f64; 3]]) -> f64 {
        let moved = |v: u32| sub(positions[v as usize], self.positions[v as usize]);
        let parts = parallel::map(vertices.chunks(PIECE), |vertices| {
            vertices.iter().fold([[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]], |[low, high], &v| {
                let d = moved(v);
                [std::array::from_fn(|k| low[k].min(d[k])), std::array::from_fn(|k| high[k].max(d[k]))]
            })
        });
        let [low, high] = parts.into_iter().fold([[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]], |[low, high], part| {
            [std::array::from_fn(|k| low[k].min(part[0][k])), std::array::from_fn(|k| high[k].max(part[1][k]))]
        });
        let middle: [f64; 3] = std::array::from_fn(|k| 0.5 * low[k] + 0.5 * high[k]);
        let farthest = parallel::map(vertices.chunks(PIECE), |vertices| {
            vertices.iter().map(|&v| sub(moved(v), middle)).map(|d| dot(d, d)).fold(0.0, f64::max)
        });
        farthest.into_iter().fold(0.0, f64::max).sqrt()
    }
}
