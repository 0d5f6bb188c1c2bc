//! What comes near in a step, so that nothing passes through anything while all of it moves.
//!
//! Two convex things, such as a vertex and a triangle or two edges, have not met after a step if some normal has them apart before it
//! and after it: vertices move along straight lines in between, so how far each is along the normal changes linearly, and a gap that is
//! positive at both ends is positive all the way.
//!
//! So a step starts from a *guess* where each vertex will go. Vertices may end near their way to the guess, within [`FREEDOM`] times the
//! reach: how much of the way is [open](Separation::open) to each, seen from its end, is found, too. A pair comes near if it would be closer
//! than the reach along the normal of its closest points at the start, wherever on their whole ways its vertices were. If it is farther apart both at the start and
//! by the guess, as parts of a cloth that fall together are, then only so much of the way is open to its vertices that it stays so. Else it is a
//! [`Gap`], which whoever moves the vertices has to keep open. All other pairs cannot meet.
//!
//! Where the guess itself would take two things through each other, their vertices are held back half of the way, and again, and all is looked at
//! once more. A vertex is never made to go where it was not going: its guess is always allowed, so this takes energy at most, and common
//! motion and sliding along each other cost nothing, whatever their speed.
//!
//! Bounds around each vertex by itself are Offset Geometric Contact (Chen, Hsu, Yang, Yuksel and others, 2025), here around its guess, and
//! only against what is too far to touch; normals let vertices go where those would hold them.

use super::distance::{self, Number, dot};
use super::finder::{Finder, too_many};
use super::list::{MOST, PIECE, Pairs};
use super::surface::Surface;
use super::tree::{self, Tree};
use crate::error::Result;
use crate::measure::sub;
use crate::parallel;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use wide::f64x8;

/// How far from the open part of the way to its guess a vertex may end, as a share of the reach: less than half.
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

/// Where all moves by less than this, in reaches, pairs may be taken from a list of those nearby, which would be long for more.
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
    /// The share of its way there that is open to each vertex, seen from its end: from 0 to 1, shape `[n]`.
    pub open: Vec<f64>,
}

/// A step that is looked at.
#[derive(Clone, Copy)]
struct Step<'a> {
    from: &'a [[f64; 3]],
    to: &'a [[f64; 3]],
    reach: f64,
}

/// A pair along the normal of its closest points at the start, which has one side above the other.
struct Along<N> {
    normal: [N; 3],
    weights: [N; 4],
    /// Of the closest points.
    distance: N,
    /// By how much all of those above are above all of those below at the start.
    start: N,
    /// The same where all go by the guess.
    left: N,
    /// The least of that, wherever on their ways they are.
    nearest: N,
}

/// Finds what can come closer than `reach` while vertices go from `from` to somewhere on the way to `to`.
///
/// `from`, `to`: shape `[n × 3]`; `reach`: above 0, in the same units.
///
/// Pairs that touch at the start already, or all but for rounding, have no gap. The result depends on the positions alone. Cost: as
/// [`Finder::find`] where all moves slowly, else that of a walk, O(n log n).
///
/// # Errors
/// A position that is not finite or beyond 1e70, which names the vertex; more than 128 pairs a vertex that are closer than the reach.
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
    let rounding = ROUNDING * from.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
    let hold = |v: usize, share: f64, to: &mut [[f64; 3]]| {
        to[v] = std::array::from_fn(|k| from[v][k] + share * (to[v][k] - from[v][k]));
    };
    for v in 0..from.len() {
        let way = length(sub(to[v], from[v]));
        if way > FARTHEST * reach {
            hold(v, FARTHEST * reach / way, &mut to);
        }
    }
    let mut near = Step { from, to: &to, reach }.near(finder);
    for tries in 0.. {
        let held: Vec<AtomicBool> = from.iter().map(|_| AtomicBool::new(false)).collect();
        let open: Vec<AtomicU64> = from.iter().map(|_| AtomicU64::new(1.0f64.to_bits())).collect();
        // What does not come near does so even less where vertices are held back.
        let step = Step { from, to: &to, reach };
        let (mut gaps, faces) = step.gaps::<false>(&near[0], rounding, (&held, &open));
        let (others, sides) = step.gaps::<true>(&near[1], rounding, (&held, &open));
        gaps.extend(others);
        if faces + sides > MOST * finder.surface().vertices().len() {
            if to == from {
                return Err(too_many(reach));
            }
            // Too much would come near: nothing moves.
            to.copy_from_slice(from);
            near = Step { from, to: &to, reach }.near(finder);
            continue;
        }
        let held: Vec<bool> = held.into_iter().map(AtomicBool::into_inner).collect();
        if !held.contains(&true) {
            gaps.sort_by_cached_key(|gap: &Gap| (gap.above, gap.vertices));
            let open = open.into_iter().map(|share| f64::from_bits(share.into_inner())).collect();
            return Ok(Separation { gaps, to, open });
        }
        for v in 0..from.len() {
            if tries >= TRIES {
                to[v] = from[v];
            } else if held[v] {
                hold(v, 0.5, &mut to);
            }
        }
    }
    unreachable!("where nothing moves all gaps stay")
}

fn length(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

impl Step<'_> {
    /// Pairs of vertices and triangles, and of edges, in any order: all that come near, and some more.
    fn near(&self, finder: &mut Finder) -> [Pairs; 2] {
        let farthest = self.from.iter().zip(self.to).map(|(&a, &b)| length(sub(b, a))).fold(0.0, f64::max);
        let listed =
            if farthest <= SLOW * self.reach { finder.near(self.from, self.reach + 2.0 * farthest) } else { None };
        listed.unwrap_or_else(|| self.walk(finder.surface()))
    }

    /// The pairs that come near, by a walk over boxes.
    fn walk(&self, surface: &Surface) -> [Pairs; 2] {
        let swept = |v: u32| tree::bounds([self.from[v as usize], self.to[v as usize]]);
        let [points, faces, sides] = surface.trees(&swept, 0.5 * self.reach * (1.0 + 1e-6));
        [self.meeting::<false>(surface, &points, &faces), self.meeting::<true>(surface, &sides, &sides)]
    }

    fn meeting<const EDGES: bool>(&self, surface: &Surface, own: &Tree, others: &Tree) -> Pairs {
        let (total, most) = (AtomicUsize::new(0), MOST * surface.vertices.len());
        let parts = parallel::map(parallel::ranges(own.groups(), 64), |range| {
            let (mut near, mut pairs, mut count) = (Vec::new(), [[0; 4]; BATCH], 0);
            let mut stack = Vec::new();
            for group in range {
                // Once there are too many it does not matter which.
                if total.load(Ordering::Relaxed) > most {
                    break;
                }
                let before = near.len();
                Surface::meeting::<EDGES>([own, others], group, &mut stack, |i, j| {
                    pairs[count] = surface.pair::<EDGES>(i, j);
                    count += 1;
                    if count == BATCH {
                        self.each::<EDGES>(&pairs, |pair, _| near.push(pair));
                        count = 0;
                    }
                });
                total.fetch_add(near.len() - before, Ordering::Relaxed);
            }
            self.each::<EDGES>(&pairs[..count], |pair, _| near.push(pair));
            near
        });
        parallel::concat(parts)
    }

    /// Visits those of some pairs that come near.
    #[inline(always)]
    fn each<const EDGES: bool>(&self, pairs: &[[u32; 4]], mut visit: impl FnMut([u32; 4], Along<f64>)) {
        for pairs in pairs.chunks(8) {
            let eight = std::array::from_fn(|lane| *pairs.get(lane).unwrap_or(&pairs[0]));
            let (from, to) = (distance::corners(&eight, self.from), distance::corners(&eight, self.to));
            let along = Along::<f64x8>::new::<EDGES>(from, to);
            let nearest = along.nearest.max(apart::<f64x8, EDGES>(from, to)).to_array();
            for (lane, &pair) in pairs.iter().enumerate().filter(|&(lane, _)| nearest[lane] <= self.reach) {
                visit(pair, along.lane(lane));
            }
        }
    }

    /// The gaps among some pairs, and how many of these come near. Notes which vertices have to be `held` back, and the bits of the share of its
    /// way that is `open` to each: those of numbers that are not negative ascend as they do, so threads can take the least of them in any order.
    fn gaps<const EDGES: bool>(
        &self,
        pairs: &[[u32; 4]],
        rounding: f64,
        (held, open): (&[AtomicBool], &[AtomicU64]),
    ) -> (Vec<Gap>, usize) {
        let parts = parallel::map(pairs.chunks(PIECE), |pairs| {
            let (mut gaps, mut count) = (Vec::new(), 0);
            self.each::<EDGES>(pairs, |vertices, Along { normal, weights, distance, start, left, nearest }| {
                count += 1;
                let narrow = distance.min(self.reach);
                if distance.min(left) > self.reach {
                    // The more of the way, the nearer in proportion, or less.
                    let share = ((left - self.reach) / (left - nearest)).to_bits();
                    vertices.into_iter().for_each(|v| _ = open[v as usize].fetch_min(share, Ordering::Relaxed));
                } else if distance < TOUCHING || start < LEFT * narrow {
                    // So near that rounding decides where the closest points are: that is no direction.
                } else if left < LEFT * narrow {
                    vertices.into_iter().for_each(|v| held[v as usize].store(true, Ordering::Relaxed));
                } else {
                    let (above, least) = (if EDGES { 2 } else { 1 }, KEPT * narrow + rounding);
                    gaps.push(Gap { vertices, above, normal, weights, distance, least });
                }
            });
            (gaps, count)
        });
        let count = parts.iter().map(|part| part.1).sum();
        (parts.into_iter().flat_map(|part| part.0).collect(), count)
    }
}

/// How far apart the boxes around two ways are, along the axis along which they are farthest.
#[inline(always)]
fn apart<N: Number, const EDGES: bool>(from: [[N; 3]; 4], to: [[N; 3]; 4]) -> N {
    let (min, max) = (|a, b| N::pick(a, b, a, b), |a, b| N::pick(a, b, b, a));
    let along = |k: usize| {
        let (low, high) = (|i: usize| min(from[i][k], to[i][k]), |i: usize| max(from[i][k], to[i][k]));
        match EDGES {
            false => {
                let (bottom, top) = (min(low(1), min(low(2), low(3))), max(high(1), max(high(2), high(3))));
                max(low(0) - top, bottom - high(0))
            }
            true => max(min(low(0), low(1)) - max(high(2), high(3)), min(low(2), low(3)) - max(high(0), high(1))),
        }
    };
    max(along(0), max(along(1), along(2)))
}

impl<N: Number> Along<N> {
    #[inline(always)]
    fn new<const EDGES: bool>(from: [[N; 3]; 4], to: [[N; 3]; 4]) -> Along<N> {
        let (distance, weights) = distance::signed::<N, EDGES>(from);
        let apart = |k: usize| {
            from[0][k] * weights[0] + from[1][k] * weights[1] + from[2][k] * weights[2] + from[3][k] * weights[3]
        };
        let normal = [apart(0) / distance, apart(1) / distance, apart(2) / distance];
        let along = |[a, b, c, d]: [[N; 3]; 4]| [dot(normal, a), dot(normal, b), dot(normal, c), dot(normal, d)];
        let (start, end) = (along(from), along(to));
        let (min, max) = (|a, b| N::pick(a, b, a, b), |a, b| N::pick(a, b, b, a));
        let width = |above: [N; 4], below: [N; 4]| match EDGES {
            false => above[0] - max(below[1], max(below[2], below[3])),
            true => min(above[0], above[1]) - max(below[2], below[3]),
        };
        let left = width(end, end);
        let nearest = min(min(distance, left), min(width(start, end), width(end, start)));
        Along { normal, weights, distance, start: width(start, start), left, nearest }
    }
}

impl Along<f64x8> {
    /// One of eight pairs.
    #[inline(always)]
    fn lane(&self, lane: usize) -> Along<f64> {
        let one = |x: f64x8| x.to_array()[lane];
        Along {
            normal: self.normal.map(one),
            weights: self.weights.map(one),
            distance: one(self.distance),
            start: one(self.start),
            left: one(self.left),
            nearest: one(self.nearest),
        }
    }
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
                let share = 1.0 - random.unit() * found.open[v];
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
        let held: Vec<AtomicBool> = from.iter().map(|_| AtomicBool::new(false)).collect();
        let open: Vec<AtomicU64> = from.iter().map(|_| AtomicU64::new(1.0f64.to_bits())).collect();
        let rounding = ROUNDING * from.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
        let step = Step { from: &from, to: &found.to, reach };
        let near = step.walk(&surface);
        let (mut walked, faces) = step.gaps::<false>(&near[0], rounding, (&held, &open));
        let (others, sides) = step.gaps::<true>(&near[1], rounding, (&held, &open));
        walked.extend(others);
        // A walk has nothing else.
        assert_eq!([faces, sides], near.map(|pairs| pairs.len()));
        walked.sort_unstable_by_key(|gap| (gap.above, gap.vertices));
        assert!(found.gaps.len() > 100);
        assert!(finder.near(&from, 1.25 * reach).is_some(), "the list was made, and serves again");
        assert_eq!(walked, found.gaps);
        let open: Vec<f64> = open.into_iter().map(|share| f64::from_bits(share.into_inner())).collect();
        assert_eq!(found.open, open);
        assert!(open.iter().any(|&share| share < 1.0));
    }
}
