//! What comes near in a step, so that nothing passes through anything while all of it moves.
//!
//! Two convex things, such as a vertex and a triangle or two edges, have not met after a step if some normal has them apart before it
//! and after it: vertices move along straight lines in between, so how far each is along the normal changes linearly, and a gap that is
//! positive at both ends is positive all the way.
//!
//! So a step starts from a *guess* where each vertex will go. Vertices may end near any place on their way to the guess, within [`FREEDOM`] times
//! the reach. For each pair that could come near then, whoever moves its vertices has to keep its gap open along the normal of the
//! closest points at the start; all other pairs cannot meet. Where the guess itself would take two things through each other, their vertices are
//! held back half of the way, and again, and all is looked at once more. A vertex is never made to go anywhere: to stay is always allowed,
//! so this takes energy at most, and common motion and sliding along each other cost nothing, whatever their speed.
//!
//! Bounds around each vertex by itself are Offset Geometric Contact (Chen, Hsu, Yang, Yuksel and others, 2025); normals let vertices go where those
//! would hold them.

use super::distance;
use super::finder::Finder;
use super::list::{MOST, PIECE};
use super::surface::Surface;
use super::tree::{self, Tree};
use super::{edge_edge, point_triangle};
use crate::error::{Error, Result};
use crate::measure::{dot, sub};
use crate::parallel;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How far from the way to its guess a vertex may end, as a share of the reach: less than half.
pub const FREEDOM: f64 = 0.45;

/// What must be left of a gap, or of the reach if that is less, when the step ends.
const KEPT: f64 = 0.05;

/// A guess must leave as much.
const LEFT: f64 = 0.1;

/// How often vertices are held back before all are.
const TRIES: usize = 6;

/// Closer than this is no direction.
const TOUCHING: f64 = 1e-12;

/// Whoever moves vertices in 32 bits misses a limit by some 2^-24 of the coordinates: this share of them must be left in any case.
const ROUNDING: f64 = 1e-6;

/// The farthest that a guess may lead, in reaches: what goes farther is held back, or it would come near too much on its way.
const FARTHEST: f64 = 8.0;

/// Where all moves by less than this, in reaches, pairs are taken from a list of those nearby. A list also has pairs whose swept boxes stay
/// apart, of which some are gaps along their normal: with another share a few gaps more or less are found, none that could be passed.
const SLOW: f64 = 0.25;

/// Pairs that are measured at once: they stay in a first-level cache.
const BATCH: usize = 256;

/// A vertex and a triangle, or two edges, that come near each other in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// The vertices above the gap, then those below: one and three, or two and two.
    pub vertices: [u32; 4],
    /// How many are above.
    pub above: usize,
    /// The normal, toward those above: a unit vector.
    pub normal: [f64; 3],
    /// The closest points at the start are at `Σ weight × position` of those above and below: positive above, negative below, either side sums
    /// to 1. So with the positions of the start `Σ weight × position = distance × normal`.
    pub weights: [f64; 4],
    /// The distance at the start, in units of the coordinates.
    pub distance: f64,
    /// How far those above must be from those below along the normal when the step ends, unless they are nearer at the start; in the same
    /// units.
    pub least: f64,
}

/// Where a step may take vertices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Separation {
    /// Pairs that come near, in lexicographic order: first those of vertices and triangles.
    pub gaps: Vec<Gap>,
    /// Where each vertex goes by the guess, held back where that was needed, shape `[n]`.
    pub to: Vec<[f64; 3]>,
}

/// A step that is looked at.
struct Look<'a> {
    surface: &'a Surface,
    from: &'a [[f64; 3]],
    to: &'a [[f64; 3]],
    reach: f64,
    rounding: f64,
    /// How far each vertex goes.
    ways: &'a [f64],
    /// Vertices that are to be held back.
    held: &'a [AtomicBool],
    count: AtomicUsize,
}

/// Finds what can come closer than `reach` while vertices go from `from` to anywhere on the way to `to`.
///
/// `from`, `to`: shape `[n × 3]`; `reach`: above 0, in the same units.
///
/// Pairs that touch at the start already, or all but for rounding, have no gap. The result depends on the positions alone. Cost: as [`Finder::find`] where all
/// moves slowly, else that of a walk, O(n log n).
///
/// # Errors
/// A position that is not finite or beyond 1e70, which names the vertex; more than 128 gaps a vertex.
///
/// ```
/// use meshweft_mesh::contact::{Finder, Surface, separate};
/// // A vertex that falls onto a triangle.
/// let from = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.2, 0.3]];
/// let mut finder = Finder::new(Surface::new(&from, &[[0, 1, 2]], &[], &[3])?, 0.0)?;
/// let mut to = from;
/// to[3][2] = 0.1;
/// let found = separate(&mut finder, &from, to.to_vec(), 0.2)?;
/// assert_eq!((found.gaps[0].vertices, found.gaps[0].normal, found.to[3]), ([3, 0, 1, 2], [0.0, 0.0, 1.0], to[3]));
/// // It may not go through.
/// to[3][2] = -0.1;
/// assert!((separate(&mut finder, &from, to.to_vec(), 0.2)?.to[3][2] - 0.1).abs() < 1e-12);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn separate(finder: &mut Finder, from: &[[f64; 3]], mut to: Vec<[f64; 3]>, reach: f64) -> Result<Separation> {
    finder.surface().check(from)?;
    finder.surface().check(&to)?;
    let extent = from.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
    let mut ways = parallel::collect(from.len(), |v| {
        let way = sub(to[v], from[v]);
        dot(way, way).sqrt()
    });
    let hold = |v: usize, share: f64, to: &mut [[f64; 3]], ways: &mut [f64]| {
        to[v] = std::array::from_fn(|k| from[v][k] + share * (to[v][k] - from[v][k]));
        ways[v] *= share;
    };
    for v in 0..from.len() {
        if ways[v] > FARTHEST * reach {
            let share = FARTHEST * reach / ways[v];
            hold(v, share, &mut to, &mut ways);
        }
    }
    let held: Vec<AtomicBool> = from.iter().map(|_| AtomicBool::new(false)).collect();
    for tries in 0.. {
        let count = AtomicUsize::new(0);
        let farthest = ways.iter().copied().fold(0.0, f64::max);
        let near = match farthest <= SLOW * reach {
            true => Some(finder.find(from, reach + 2.0 * farthest)?),
            false => None,
        };
        let surface = finder.surface();
        let look = Look { surface, from, to: &to, reach, rounding: ROUNDING * extent, ways: &ways, held: &held, count };
        let mut gaps = match near {
            Some(near) => [look.among(&near.vertex_triangle, 1), look.among(&near.edge_edge, 2)].concat(),
            None => look.walk(),
        };
        let too_many = look.count.into_inner() > MOST * surface.vertices().len();
        let is_held = |v: usize| held[v].load(Ordering::Relaxed);
        let all = too_many || tries >= TRIES;
        if too_many && farthest == 0.0 {
            return Err(Error::Invalid(format!(
                "more than {MOST} pairs a vertex are closer than {reach}: keep a smaller distance, or move the surface apart"
            )));
        }
        if !too_many && !(0..from.len()).any(is_held) {
            gaps.sort_by_cached_key(|gap: &Gap| (gap.above, gap.vertices));
            return Ok(Separation { gaps, to });
        }
        for v in 0..from.len() {
            if all || is_held(v) {
                hold(v, if all { 0.0 } else { 0.5 }, &mut to, &mut ways);
                held[v].store(false, Ordering::Relaxed);
            }
        }
    }
    unreachable!("where nothing moves all gaps stay")
}

impl Look<'_> {
    /// The gaps among some pairs.
    fn among(&self, pairs: &[[u32; 4]], above: usize) -> Vec<Gap> {
        let parts = parallel::map(pairs.chunks(PIECE), |pairs| {
            let mut gaps = Vec::new();
            pairs.iter().for_each(|&pair| self.take(pair, above, &mut gaps));
            gaps
        });
        parts.concat()
    }

    /// The gaps among all pairs, in any order.
    fn walk(&self) -> Vec<Gap> {
        let swept = |v: u32| tree::bounds([self.from[v as usize], self.to[v as usize]]);
        let [points, faces, sides] = self.surface.trees(&swept, 0.5 * self.reach * (1.0 + 1e-6));
        [self.meeting::<false>(&points, &faces), self.meeting::<true>(&sides, &sides)].concat()
    }

    fn meeting<const EDGES: bool>(&self, own: &Tree, others: &Tree) -> Vec<Gap> {
        let parts = parallel::map(parallel::ranges(own.groups(), 64), |range| {
            let (mut gaps, mut pairs, mut count) = (Vec::new(), [[0; 4]; BATCH], 0);
            let most = MOST * self.surface.vertices.len();
            let mut stack = Vec::new();
            for group in range {
                // Once there are too many it does not matter which.
                if self.count.load(Ordering::Relaxed) > most {
                    break;
                }
                own.meeting(group, others, &mut stack, |i, j| {
                    let (i, j) = if EDGES { (i.min(j), i.max(j)) } else { (i, j) };
                    // No branch: the processor would guess wrong too often.
                    let (pair, is_apart) = self.surface.pair::<EDGES>(i, j);
                    pairs[count] = pair;
                    count += usize::from(is_apart);
                    if count == BATCH {
                        self.measure::<EDGES>(&pairs, &mut gaps);
                        count = 0;
                    }
                });
            }
            self.measure::<EDGES>(&pairs[..count], &mut gaps);
            gaps
        });
        parts.concat()
    }

    fn measure<const EDGES: bool>(&self, pairs: &[[u32; 4]], gaps: &mut Vec<Gap>) {
        distance::each::<EDGES>(pairs, self.from, |i, squared| {
            let pair = pairs[i];
            let way = pair.iter().map(|&v| self.ways[v as usize]).fold(0.0, f64::max);
            let near = self.reach + 2.0 * way + self.rounding;
            if squared <= near * near {
                self.take(pair, if EDGES { 2 } else { 1 }, gaps);
            }
        });
    }

    /// Looks at a pair: takes its gap, or has it held back.
    fn take(&self, vertices: [u32; 4], above: usize, gaps: &mut Vec<Gap>) {
        match between(vertices, above, self.from, self.to, (self.reach, self.rounding)) {
            Some(Ok(gap)) => {
                gaps.push(gap);
                self.count.fetch_add(1, Ordering::Relaxed);
            }
            Some(Err(vertices)) => {
                vertices.into_iter().for_each(|v| self.held[v as usize].store(true, Ordering::Relaxed))
            }
            None => {}
        }
    }
}

/// The gap of a pair, if it can come near; its vertices, if the guess leaves none.
fn between(
    vertices: [u32; 4],
    above: usize,
    from: &[[f64; 3]],
    to: &[[f64; 3]],
    (reach, rounding): (f64, f64),
) -> Option<Result<Gap, [u32; 4]>> {
    let [a, b, c, d] = vertices.map(|v| from[v as usize]);
    let (squared, weights) = match above {
        1 => {
            let found = point_triangle(a, [b, c, d]);
            (found.squared, [1.0, -found.weights[0], -found.weights[1], -found.weights[2]])
        }
        _ => {
            let found = edge_edge([a, b], [c, d]);
            let [[a, b], [c, d]] = found.weights;
            (found.squared, [a, b, -c, -d])
        }
    };
    let distance = squared.sqrt();
    if distance < TOUCHING {
        return None;
    }
    let apart: [f64; 3] = std::array::from_fn(|k| [a, b, c, d].iter().zip(weights).map(|(x, w)| x[k] * w).sum());
    let normal = apart.map(|x| x / distance);
    let along = [from, to].map(|places| vertices.map(|v| dot(normal, places[v as usize])));
    // Of the gap at the start, at the guess, and between all places on the way.
    let gap = |above_at: [f64; 4], below_at: [f64; 4]| {
        let least = above_at[..above].iter().copied().fold(f64::INFINITY, f64::min);
        least - below_at[above..].iter().copied().fold(f64::NEG_INFINITY, f64::max)
    };
    let [start, end] = along;
    let left = gap(end, end);
    if distance.min(left).min(gap(start, end)).min(gap(end, start)) > reach {
        return None;
    }
    let narrow = distance.min(reach);
    if gap(start, start) < LEFT * narrow {
        // So near that rounding decides where the closest points are: that is no direction either.
        return None;
    }
    if left < LEFT * narrow {
        return Some(Err(vertices));
    }
    Some(Ok(Gap { vertices, above, normal, weights, distance, least: KEPT * narrow + rounding }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contact::crossings;
    use crate::contact::testing::Random;

    /// Moves vertices to random places as far as gaps and freedom allow, one after the other.
    fn moved(random: &mut Random, from: &[[f64; 3]], found: &Separation, reach: f64) -> Vec<[f64; 3]> {
        let mut now = found.to.clone();
        for _ in 0..3 {
            for v in 0..from.len() {
                let share = random.unit();
                let near: [f64; 3] = std::array::from_fn(|k| from[v][k] + share * (found.to[v][k] - from[v][k]));
                let aside: [f64; 3] = std::array::from_fn(|_| random.unit() - 0.5);
                let length = dot(aside, aside).sqrt().max(1e-9);
                let target: [f64; 3] = std::array::from_fn(|k| near[k] + FREEDOM * reach * aside[k] / length);
                let stays = |place: [f64; 3]| {
                    found.gaps.iter().filter(|gap| gap.vertices.contains(&(v as u32))).all(|gap| {
                        let along = gap
                            .vertices
                            .map(|u| dot(gap.normal, if u as usize == v { place } else { now[u as usize] }));
                        let least = along[..gap.above].iter().copied().fold(f64::INFINITY, f64::min);
                        least - along[gap.above..].iter().copied().fold(f64::NEG_INFINITY, f64::max) >= gap.least
                    })
                };
                let own = now[v];
                let on_the_way = |share: f64| std::array::from_fn(|k| own[k] + share * (target[k] - own[k]));
                if let Some(place) = [1.0, 0.5, 0.2, 0.05].map(on_the_way).into_iter().find(|&place| stays(place)) {
                    now[v] = place;
                }
            }
        }
        now
    }

    #[test]
    fn whatever_keeps_gaps_open_passes_through_nothing_on_the_way() {
        let (mut steps, mut held, mut gaps) = (0, 0, 0);
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let count = 4 + random.below(12);
            let mut points = Vec::new();
            for _ in 0..count {
                let middle: [f64; 3] = std::array::from_fn(|_| random.unit());
                points.extend((0..3).map(|_| middle.map(|x| x + 0.3 * (random.unit() - 0.5))));
            }
            let triangles: Vec<[u32; 3]> = (0..count as u32).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect();
            let surface = Surface::new(&points, &triangles, &[], &[]).unwrap();
            if !crossings(&surface, &points).unwrap().is_empty() {
                continue;
            }
            let mut finder = Finder::new(surface.clone(), 0.0).unwrap();
            let speed = [0.001, 0.05, 0.5][random.below(3)];
            for _ in 0..12 {
                let reach = 0.03;
                let to: Vec<[f64; 3]> = points.iter().map(|p| p.map(|x| x + speed * (random.unit() - 0.5))).collect();
                let found = separate(&mut finder, &points, to.clone(), reach).unwrap();
                (steps, gaps) = (steps + 1, gaps + found.gaps.len());
                held += usize::from(found.to != to);
                let ends = moved(&mut random, &points, &found, reach);
                for share in [0.25, 0.5, 0.75, 1.0] {
                    let between: Vec<[f64; 3]> = points
                        .iter()
                        .zip(&ends)
                        .map(|(a, b)| std::array::from_fn(|k| a[k] + share * (b[k] - a[k])))
                        .collect();
                    assert_eq!(crossings(&surface, &between).unwrap(), [], "seed {seed}");
                }
                points = ends;
            }
        }
        assert!(steps > 100 && held > 20 && gaps > 1000, "{steps} steps, {held} held back, {gaps} gaps");
    }

    #[test]
    fn where_surfaces_cross_or_all_but_touch_at_the_start_there_is_an_answer() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let near = [0.0, 1e-15, 1e-13, 1e-11, 1e-9][random.below(5)];
            // Two sheets, of which one stands in the other, nearly edge on edge.
            let mut points: Vec<[f64; 3]> = Vec::new();
            for i in 0..16 {
                let [x, y] = [f64::from(i / 4), f64::from(i % 4)];
                points.push([x, y, 0.0]);
                points.push([x, 1.0, y - 1.0]);
            }
            points.iter_mut().flatten().for_each(|x| *x += near * (random.unit() - 0.5));
            let sheet = (0..3).flat_map(|i| (0..3).map(move |j| 4 * i + j));
            let triangles = sheet.flat_map(|a| [[a, a + 1, a + 4], [a + 1, a + 5, a + 4]]);
            let triangles: Vec<[u32; 3]> =
                triangles.flat_map(|t: [u32; 3]| [t.map(|v| 2 * v), t.map(|v| 2 * v + 1)]).collect();
            let mut finder = Finder::new(Surface::new(&points, &triangles, &[], &[]).unwrap(), 0.0).unwrap();
            let to = points.iter().map(|p| p.map(|x| x + 0.02 * (random.unit() - 0.5))).collect();
            let found = separate(&mut finder, &points, to, 0.05).unwrap();
            assert!(found.gaps.iter().all(|gap| gap.distance > 0.0 && gap.least.is_finite()), "seed {seed}");
        }
    }

    #[test]
    fn a_list_and_a_walk_find_the_same_gaps() {
        let sheet = crate::generate::generate("sheet:12", 0).unwrap();
        let mut random = Random::new(5);
        let from: Vec<[f64; 3]> =
            sheet.points().iter().map(|&[x, y, z]| [0.3 * x, y, z + 0.1 * x * x + 0.01 * random.unit()]).collect();
        let surface = Surface::new(sheet.points(), &sheet.triangles(), &[], &[]).unwrap();
        let mut finder = Finder::new(surface.clone(), 0.0).unwrap();
        let reach = 0.05;
        let to: Vec<[f64; 3]> = from.iter().map(|p| p.map(|x| x + 0.1 * reach * (random.unit() - 0.5))).collect();
        let found = separate(&mut finder, &from, to, reach).unwrap();
        let ways = vec![reach; from.len()];
        let held: Vec<AtomicBool> = from.iter().map(|_| AtomicBool::new(false)).collect();
        let count = AtomicUsize::new(0);
        let rounding = ROUNDING * from.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
        let look =
            Look { surface: &surface, from: &from, to: &found.to, reach, rounding, ways: &ways, held: &held, count };
        let mut walked = look.walk();
        walked.sort_unstable_by_key(|gap| (gap.above, gap.vertices));
        assert!(found.gaps.len() > 100);
        assert_eq!(walked, found.gaps);
    }
}
