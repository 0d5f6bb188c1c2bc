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

use super::{Finder, edge_edge, point_triangle};
use crate::error::Result;
use crate::measure::{dot, sub};
use crate::parallel;
use std::sync::atomic::{AtomicU8, Ordering};

/// How far from the way to its guess a vertex may end, as a share of the reach: less than half.
pub const FREEDOM: f64 = 0.45;

/// What must be left of a gap, or of the reach if that is less, when the step ends.
const KEPT: f64 = 0.05;

/// A guess must leave as much.
const LEFT: f64 = 0.1;

/// How often vertices are held back before all are.
const TRIES: usize = 6;

/// Closer than this is no direction, m.
const TOUCHING: f64 = 1e-12;

/// Whoever moves vertices in 32 bits misses a limit by some 2^-24 of the coordinates: this share of them must be left in any case.
const ROUNDING: f64 = 1e-6;

/// Pairs that are worth a piece of a parallel loop.
const PIECE: usize = 1 << 10;

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
    /// The distance at the start.
    pub distance: f64,
    /// How far those above must be from those below along the normal when the step ends, unless they are nearer at the start.
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

/// Finds what can come closer than `reach` while vertices go from `from` to anywhere on the way to `to`.
///
/// Pairs that touch at the start already have no gap. The result depends on the positions alone.
///
/// # Errors
/// As [`Finder::find`].
pub fn separate(finder: &mut Finder, from: &[[f64; 3]], mut to: Vec<[f64; 3]>, reach: f64) -> Result<Separation> {
    let extent = from.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
    for tries in 0.. {
        let radius = reach + 2.0 * motion(from, &to);
        let contacts = finder.find(from, radius)?;
        let held: Vec<AtomicU8> = from.iter().map(|_| AtomicU8::new(0)).collect();
        let look = |pairs: &[[u32; 4]], above: usize| {
            let parts = parallel::map(pairs.chunks(PIECE), |pairs| {
                let near = pairs
                    .iter()
                    .filter_map(|&vertices| between(vertices, above, from, &to, (reach, ROUNDING * extent)));
                near.filter_map(|found| match found {
                    Ok(gap) => Some(gap),
                    Err(vertices) => {
                        vertices.into_iter().for_each(|v| held[v as usize].store(1, Ordering::Relaxed));
                        None
                    }
                })
                .collect::<Vec<Gap>>()
            });
            parts.concat()
        };
        let gaps = [look(&contacts.vertex_triangle, 1), look(&contacts.edge_edge, 2)].concat();
        let is_held = |v: usize| held[v].load(Ordering::Relaxed) > 0;
        if !(0..from.len()).any(is_held) {
            return Ok(Separation { gaps, to });
        }
        let share = if tries < TRIES { 0.5 } else { 0.0 };
        for v in (0..from.len()).filter(|&v| tries >= TRIES || is_held(v)) {
            to[v] = std::array::from_fn(|k| from[v][k] + share * (to[v][k] - from[v][k]));
        }
    }
    unreachable!("where nothing moves all gaps stay")
}

/// The plane between the parts of a pair, if they come near; their vertices, if no plane is.
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
    if left < LEFT * narrow {
        return Some(Err(vertices));
    }
    Some(Ok(Gap { vertices, above, normal, weights, distance, least: KEPT * narrow + rounding }))
}

/// The most by which any vertex moves.
fn motion(from: &[[f64; 3]], to: &[[f64; 3]]) -> f64 {
    from.iter().zip(to).map(|(&from, &to)| sub(to, from)).map(|d| dot(d, d)).fold(0.0, f64::max).sqrt()
}
