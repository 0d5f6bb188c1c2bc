//! Where a surface passes through itself: exactly.

use super::list::MOST;
use super::surface::Surface;
use crate::error::{Error, Result};
use crate::parallel;
use robust::{Coord, Coord3D, orient2d, orient3d};
use std::sync::atomic::{AtomicUsize, Ordering};

type Point = [f64; 3];

/// Finds all edges and triangles that share a point but no vertex, whether they cross or just touch: edge, then triangle, ascending.
///
/// The answer is exact, by predicates without rounding: positions are what their bits say, edges have their ends and triangles their
/// sides, and those without an extent are lines or points. Coordinates are to be 0 or of a size from 1e-30 to 1e30.
///
/// Two triangles without a common vertex meet if and only if this finds an edge of one that meets the other; so do two that have one vertex in
/// common and meet elsewhere. Not found: two triangles with a common edge that are folded flat onto each other, and two rods that touch.
///
/// Cost O(n log n), and that of the pairs whose boxes meet, in parallel. Source of the predicates: Shewchuk, "Adaptive precision
/// floating-point arithmetic and fast robust geometric predicates" (1997).
///
/// # Errors
/// A position that is not finite or beyond 1e30, which names the vertex; more than 128 such pairs a vertex.
///
/// ```
/// use meshweft_mesh::contact::{Surface, crossings};
/// let mut points = [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.5, 0.5, -1.0], [0.5, 0.5, 1.0]];
/// let surface = Surface::new(&points, &[[0, 1, 2]], &[[3, 4]], &[])?;
/// assert_eq!(crossings(&surface, &points)?, [([3, 4], [0, 1, 2])]);
/// points[3][2] = 0.0; // touches
/// assert_eq!(crossings(&surface, &points)?.len(), 1);
/// points[3][2] = f64::MIN_POSITIVE;
/// assert!(crossings(&surface, &points)?.is_empty());
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn crossings(surface: &Surface, positions: &[[f64; 3]]) -> Result<Vec<([u32; 2], [u32; 3])>> {
    surface.check(positions)?;
    let Surface { vertices, triangles, edges, .. } = surface;
    let at = |v: u32| positions[v as usize];
    let [_, faces, sides] = surface.trees(&|v| [at(v); 2], 0.0);
    let (count, most) = (AtomicUsize::new(0), MOST * vertices.len());
    let parts = parallel::map(parallel::ranges(sides.groups(), 64), |range| {
        let mut found = Vec::new();
        let mut stack = Vec::new();
        for group in range {
            // Once there are too many it does not matter which.
            let Some(room) = most.checked_sub(count.load(Ordering::Relaxed)) else { break };
            let before = found.len();
            sides.meeting::<2, 3>(group, &faces, &mut stack, |i, j| {
                let (edge, triangle) = (edges[i as usize], triangles[j as usize]);
                if found.len() - before <= room && meet(edge.map(at), triangle.map(at)) {
                    found.push((edge, triangle));
                }
            });
            count.fetch_add(found.len() - before, Ordering::Relaxed);
        }
        found
    });
    if count.into_inner() > most {
        return Err(Error::Invalid(format!(
            "more than {MOST} edges and triangles a vertex meet: does the surface lie in one place?"
        )));
    }
    let mut found = parallel::concat(parts);
    found.sort_unstable();
    Ok(found)
}

/// -1, 0 or 1: on which side of the plane `abc` the point `d` is.
fn side(a: Point, b: Point, c: Point, d: Point) -> i32 {
    let [a, b, c, d] = [a, b, c, d].map(|[x, y, z]| Coord3D { x, y, z });
    sign(orient3d(a, b, c, d))
}

/// The same for the line `ab` and the point `c`, seen along axis `k`.
fn turn(k: usize, a: Point, b: Point, c: Point) -> i32 {
    let [a, b, c] = [a, b, c].map(|p| Coord { x: p[(k + 1) % 3], y: p[(k + 2) % 3] });
    sign(orient2d(a, b, c))
}

fn sign(x: f64) -> i32 {
    i32::from(x > 0.0) - i32::from(x < 0.0)
}

/// Whether two edges share a point, seen along axis `k`: they do if the boxes meet, and neither has both ends on one side of the other.
fn meet_seen(k: usize, [a, b]: [Point; 2], [c, d]: [Point; 2]) -> bool {
    let overlap = |i: usize| a[i].min(b[i]) <= c[i].max(d[i]) && c[i].min(d[i]) <= a[i].max(b[i]);
    overlap((k + 1) % 3)
        && overlap((k + 2) % 3)
        && turn(k, a, b, c) * turn(k, a, b, d) <= 0
        && turn(k, c, d, a) * turn(k, c, d, b) <= 0
}

/// Whether a point of the plane of a triangle lies in it. Along one axis at least, different points of the plane look different.
fn holds([c, d, e]: [Point; 3], p: Point) -> bool {
    let inside = |k: usize| {
        let turns = [turn(k, c, d, p), turn(k, d, e, p), turn(k, e, c, p)];
        !(turns.contains(&1) && turns.contains(&-1))
    };
    (0..3).any(|k| turn(k, c, d, e) != 0) && (0..3).all(inside)
}

/// Whether an edge and a triangle share a point.
pub(super) fn meet([a, b]: [Point; 2], [c, d, e]: [Point; 3]) -> bool {
    let ends = [side(c, d, e, a), side(c, d, e, b)];
    match ends {
        [1, 1] | [-1, -1] => false,
        // In one plane, or the triangle has no area: then its sides are all of it.
        [0, 0] => {
            let sides = [[c, d], [d, e], [e, c]];
            let meets = |&[c, d]: &[Point; 2]| side(a, b, c, d) == 0 && (0..3).all(|k| meet_seen(k, [a, b], [c, d]));
            holds([c, d, e], a) || sides.iter().any(meets)
        }
        // The line through the ends meets the plane in one point of the edge.
        _ => {
            let turns = [side(a, b, c, d), side(a, b, d, e), side(a, b, e, c)];
            !(turns.contains(&1) && turns.contains(&-1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contact::testing::Random;

    /// Small whole numbers, so that these determinants are exact.
    fn volume(p: [[i64; 3]; 4]) -> i64 {
        let [a, b, c] = [1, 2, 3].map(|i| [0, 1, 2].map(|k| p[i][k] - p[0][k]));
        a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) + a[2] * (b[0] * c[1] - b[1] * c[0])
    }

    type Fraction = (i128, i128);

    /// Cuts the part `range` of a line down to where `at + t slope >= 0`. Fractions have positive denominators.
    fn cut(range: &mut [Fraction; 2], at: i128, slope: i128) {
        let less = |p: Fraction, q: Fraction| p.0 * q.1 < q.0 * p.1;
        match slope.signum() {
            0 if at < 0 => *range = [(1, 1), (0, 1)],
            1 if less(range[0], (-at, slope)) => range[0] = (-at, slope),
            -1 if less((at, -slope), range[1]) => range[1] = (at, -slope),
            _ => {}
        }
    }

    /// Whether an edge and a triangle share a point, by another way: of the line along the edge, the part inside of all the half-spaces whose
    /// intersection the triangle is.
    fn meets(a: [i64; 3], b: [i64; 3], t: [[i64; 3]; 3]) -> bool {
        let sub = |p: [i64; 3], q: [i64; 3]| [0, 1, 2].map(|k| i128::from(p[k] - q[k]));
        let cross = |p: [i128; 3], q: [i128; 3]| {
            [0, 1, 2].map(|k| p[(k + 1) % 3] * q[(k + 2) % 3] - p[(k + 2) % 3] * q[(k + 1) % 3])
        };
        let dot = |p: [i128; 3], q: [i128; 3]| p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
        let n = cross(sub(t[1], t[0]), sub(t[2], t[0]));
        let mut range = [(0, 1), (1, 1)];
        let mut keep =
            |normal: [i128; 3], from: [i64; 3]| cut(&mut range, dot(normal, sub(a, from)), dot(normal, sub(b, a)));
        if n == [0; 3] {
            // The longest side is all of it: on the line, and between its ends.
            let length = |i: usize| dot(sub(t[(i + 1) % 3], t[i]), sub(t[(i + 1) % 3], t[i]));
            let i = (0..3).max_by_key(|&i| length(i)).unwrap();
            let [p, q] = [t[i], t[(i + 1) % 3]];
            let along = sub(q, p);
            for axis in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
                // A point has no direction: then all three coordinates are those of the point.
                let across = if along == [0; 3] { axis } else { cross(along, axis) };
                keep(across, p);
                keep(across.map(|x| -x), p);
            }
            keep(along, p);
            keep(along.map(|x| -x), q);
        } else {
            keep(n, t[0]);
            keep(n.map(|x| -x), t[0]);
            (0..3).for_each(|i| keep(cross(n, sub(t[(i + 1) % 3], t[i])), t[i]));
        }
        range[0].0 * range[1].1 <= range[1].0 * range[0].1
    }

    #[test]
    fn edges_and_triangles_of_whole_numbers_meet_as_fractions_say() {
        let mut random = Random::new(5);
        let mut met = [0; 3];
        for round in 0..200_000 {
            let size = [2, 3, 20][round % 3];
            let p: [[i64; 3]; 5] = std::array::from_fn(|_| std::array::from_fn(|_| random.below(size) as i64));
            let [a, b, c, d, e] = p.map(|p| p.map(|x| x as f64));
            let expected = meets(p[0], p[1], [p[2], p[3], p[4]]);
            assert_eq!(meet([a, b], [c, d, e]), expected, "{p:?}");
            assert_eq!(side(a, b, c, d), -volume([p[0], p[1], p[2], p[3]]).signum() as i32, "{p:?}");
            met[round % 3] += usize::from(expected);
        }
        assert!(met.iter().all(|&met| met > 300), "{met:?}");
    }

    #[test]
    fn a_hair_decides() {
        let triangle = [[0.0, 0.0, 0.1], [1.0, 0.0, 0.1], [0.0, 1.0, 0.1]];
        let edge = |x: f64| [[x, x, 0.0], [x, x, 1.0]];
        assert!(meet(edge(0.5), triangle));
        assert!(!meet(edge(0.5f64.next_up()), triangle));
        assert!(meet([[0.2, 0.2, 0.1], [0.2, 0.2, 1.0]], triangle));
        assert!(!meet([[0.2, 0.2, 0.1f64.next_up()], [0.2, 0.2, 1.0]], triangle));
    }
}
