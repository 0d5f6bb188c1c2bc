//! Closest points of a point and a triangle, and of two edges.
//!
//! Weights lie in 0 to 1 and add up to 1, so a distance is that of two points that exist: never less than the least distance by more than
//! rounding, about 1e-16 of the lengths that are involved. Nothing is NaN for finite input: where a triangle or an edge has no
//! extent, quotients of zeros count as 0.

use std::ops::{Add, Div, Mul, Sub};
use wide::f64x8;

/// Farther out boxes in 32 bits would end, and products of several lengths overflow.
pub(super) const FARTHEST: f64 = 1e30;

type Point = [f64; 3];

/// A number, or one for each of several pairs: each is computed as if it were alone.
pub(super) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn of(x: f64) -> Self;
    fn sqrt(self) -> Self;
    /// `then` where `a < b`, else `or`; so also where one of them is not a number.
    fn pick(a: Self, b: Self, then: Self, or: Self) -> Self;
}

impl Number for f64 {
    #[inline(always)]
    fn of(x: f64) -> f64 {
        x
    }

    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }

    #[inline(always)]
    fn pick(a: f64, b: f64, then: f64, or: f64) -> f64 {
        if a < b { then } else { or }
    }
}

impl Number for f64x8 {
    #[inline(always)]
    fn of(x: f64) -> f64x8 {
        f64x8::splat(x)
    }

    #[inline(always)]
    fn sqrt(self) -> f64x8 {
        f64x8::sqrt(self)
    }

    #[inline(always)]
    fn pick(a: f64x8, b: f64x8, then: f64x8, or: f64x8) -> f64x8 {
        a.simd_lt(b).select(then, or)
    }
}

#[inline(always)]
fn sub<N: Number>(a: [N; 3], b: [N; 3]) -> [N; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[inline(always)]
pub(super) fn dot<N: Number>(a: [N; 3], b: [N; 3]) -> N {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[inline(always)]
fn cross<N: Number>(a: [N; 3], b: [N; 3]) -> [N; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// `a - s b`.
#[inline(always)]
fn without<N: Number>(a: [N; 3], s: N, b: [N; 3]) -> [N; 3] {
    sub(a, b.map(|x| s * x))
}

/// From 0 to 1; 0 for what is not a number.
#[inline(always)]
fn share<N: Number>(x: N) -> N {
    let (zero, one) = (N::of(0.0), N::of(1.0));
    let x = N::pick(zero, x, x, zero);
    N::pick(x, one, x, one)
}

/// The squared distance of a point and a triangle, and the weights of its corners.
#[inline(always)]
fn of_point_triangle<N: Number>(p: [N; 3], [a, b, c]: [[N; 3]; 3]) -> (N, [N; 3]) {
    let (zero, one) = (N::of(0.0), N::of(1.0));
    let (ab, ac, bc, ap, bp) = (sub(b, a), sub(c, a), sub(c, b), sub(p, a), sub(p, b));
    let n = cross(ab, ac);
    let nn = dot(n, n);
    let (v, w) = (dot(cross(ap, ac), n), dot(cross(ab, ap), n));
    let least = N::pick(v, w, v, w);
    let least = N::pick(nn - v - w, least, nn - v - w, least);
    let outside = N::pick(zero, nn, least, N::of(-1.0));
    let (v, w) = (share(v / nn), share(w / nn));
    // Rounding may take the sum above 1 by a little.
    let w = N::pick(one - v, w, one - v, w);
    let gap = without(without(ap, v, ab), w, ac);
    let squared = N::pick(outside, zero, N::of(f64::INFINITY), dot(gap, gap));
    let mut best = (squared, [one - v - w, v, w]);
    let mut offer = |squared: N, weights: [N; 3]| {
        let pick = |new, old| N::pick(squared, best.0, new, old);
        best = (pick(squared, best.0), [0, 1, 2].map(|i| pick(weights[i], best.1[i])));
    };
    let on = |from: [N; 3], side: [N; 3]| {
        let t = share(dot(from, side) / dot(side, side));
        let gap = without(from, t, side);
        (t, dot(gap, gap))
    };
    let (t, squared) = on(ap, ab);
    offer(squared, [one - t, t, zero]);
    let (t, squared) = on(ap, ac);
    offer(squared, [one - t, zero, t]);
    let (t, squared) = on(bp, bc);
    offer(squared, [zero, one - t, t]);
    best
}

/// The squared distance of two edges, and the weights of their second ends.
#[inline(always)]
fn of_edge_edge<N: Number>([a, b]: [[N; 3]; 2], [c, d]: [[N; 3]; 2]) -> (N, [N; 2]) {
    let (ab, cd, ca) = (sub(b, a), sub(d, c), sub(a, c));
    let n = cross(ab, cd);
    let s = share(dot(n, cross(cd, ca)) / dot(n, n));
    let along = dot(ab, cd);
    let free = (along * s + dot(cd, ca)) / dot(cd, cd);
    let t = share(free);
    // Between its ends the second edge has the closest point to that of the first. Where its extent is 0, it is not a number.
    let inside = N::pick(N::of(0.0), free, N::pick(free, N::of(1.0), s, N::of(-1.0)), N::of(-1.0));
    let other = share((along * t - dot(ab, ca)) / dot(ab, ab));
    let s = N::pick(inside, N::of(0.0), other, s);
    let gap = without(without(ca, t, cd), N::of(0.0) - s, ab);
    (dot(gap, gap), [s, t])
}

/// The places of the corners of eight pairs.
#[inline(always)]
pub(super) fn corners(pairs: &[[u32; 4]; 8], positions: &[Point]) -> [[f64x8; 3]; 4] {
    let corner = |i: usize| {
        let mut places = [[0.0; 8]; 3];
        for lane in 0..8 {
            let place = positions[pairs[lane][i] as usize];
            (0..3).for_each(|k| places[k][lane] = place[k]);
        }
        [f64x8::new(places[0]), f64x8::new(places[1]), f64x8::new(places[2])]
    };
    [corner(0), corner(1), corner(2), corner(3)]
}

/// The distance of a vertex and a triangle (`EDGES`: of two edges), and the weights of the closest points: those of the one are positive, those of
/// the other negative.
#[inline(always)]
pub(super) fn signed<N: Number, const EDGES: bool>([a, b, c, d]: [[N; 3]; 4]) -> (N, [N; 4]) {
    let (zero, one) = (N::of(0.0), N::of(1.0));
    if EDGES {
        let (squared, [s, t]) = of_edge_edge([a, b], [c, d]);
        (squared.sqrt(), [one - s, s, t - one, zero - t])
    } else {
        let (squared, [b, c, d]) = of_point_triangle(a, [b, c, d]);
        (squared.sqrt(), [one, zero - b, zero - c, zero - d])
    }
}

/// The squared distances of eight vertices and triangles (`EDGES`: pairs of edges).
#[inline(always)]
fn eight<const EDGES: bool>(pairs: &[[u32; 4]; 8], positions: &[Point]) -> [f64; 8] {
    let [a, b, c, d] = corners(pairs, positions);
    let squared = if EDGES { of_edge_edge([a, b], [c, d]).0 } else { of_point_triangle(a, [b, c, d]).0 };
    squared.to_array()
}

/// Calls `visit` for all pairs of a vertex and a triangle (`EDGES`: of two edges), with the squared distance: that of
/// [`point_triangle`] (or [`edge_edge`]) to the last bit.
pub(super) fn each<const EDGES: bool>(pairs: &[[u32; 4]], positions: &[Point], mut visit: impl FnMut(usize, f64)) {
    let (eights, rest) = pairs.as_chunks::<8>();
    for (i, pairs) in eights.iter().enumerate() {
        eight::<EDGES>(pairs, positions)
            .into_iter()
            .enumerate()
            .for_each(|(lane, squared)| visit(8 * i + lane, squared));
    }
    if let Some(&last) = rest.last() {
        let filled = std::array::from_fn(|lane| *rest.get(lane).unwrap_or(&last));
        let squared = eight::<EDGES>(&filled, positions);
        (0..rest.len()).for_each(|lane| visit(8 * eights.len() + lane, squared[lane]));
    }
}

/// The point of a triangle that is closest to another point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointTriangle {
    /// The squared distance.
    pub squared: f64,
    /// The weights of the corners in the closest point, in their order.
    pub weights: [f64; 3],
}

/// The points of two edges that are closest to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EdgeEdge {
    /// The squared distance.
    pub squared: f64,
    /// The weights of the ends in the closest points, edge after edge.
    pub weights: [[f64; 2]; 2],
}

/// Finds the point of the triangle `abc` that is closest to `p`.
///
/// Coordinates: at most 1e30. A triangle without an area is its longest edge, one without any extent a point. For a triangle that is
/// 1e-8 as high as long the distance may be too great by 1e-8 of the length.
///
/// ```
/// use meshweft_mesh::contact::point_triangle;
/// let corners = [[0.0; 3], [4.0, 0.0, 0.0], [0.0, 4.0, 0.0]];
/// let found = point_triangle([1.0, 1.0, 2.0], corners);
/// assert_eq!((found.squared, found.weights), (4.0, [0.5, 0.25, 0.25]));
/// assert_eq!(point_triangle([-1.0, -1.0, 0.0], corners).weights, [1.0, 0.0, 0.0]);
/// assert_eq!(point_triangle([1.0, 0.0, 0.0], [[0.0; 3]; 3]).squared, 1.0);
/// ```
pub fn point_triangle(p: [f64; 3], corners: [[f64; 3]; 3]) -> PointTriangle {
    let (squared, weights) = of_point_triangle(p, corners);
    PointTriangle { squared, weights }
}

/// Finds the points of two edges that are closest to each other. Of parallel edges, some pair of closest points.
///
/// Coordinates: at most 1e30. Source: Ericson, Real-Time Collision Detection (2005), 5.1.9; the first quotient is that of products of
/// vectors, which keeps its digits where edges are almost parallel.
///
/// ```
/// use meshweft_mesh::contact::edge_edge;
/// let found = edge_edge([[0.0; 3], [2.0, 0.0, 0.0]], [[1.0, -1.0, 3.0], [1.0, 1.0, 3.0]]);
/// assert_eq!((found.squared, found.weights), (9.0, [[0.5; 2]; 2]));
/// let parallel = edge_edge([[0.0; 3], [1.0, 0.0, 0.0]], [[3.0, 0.0, 0.0], [2.0, 0.0, 0.0]]);
/// assert_eq!((parallel.squared, parallel.weights), (1.0, [[0.0, 1.0]; 2]));
/// ```
pub fn edge_edge(first: [[f64; 3]; 2], second: [[f64; 3]; 2]) -> EdgeEdge {
    let (squared, [s, t]) = of_edge_edge(first, second);
    EdgeEdge { squared, weights: [[1.0 - s, s], [1.0 - t, t]] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contact::testing::Random;
    use crate::measure::{add, scaled};

    fn at(corners: &[Point], weights: &[f64]) -> Point {
        corners.iter().zip(weights).fold([0.0; 3], |sum, (&p, &w)| add(sum, scaled(w, p)))
    }

    /// The least of many points, and of still more around the best ones.
    fn searched(distance: impl Fn(f64, f64) -> f64) -> f64 {
        let (mut center, mut width) = ([0.5; 2], 0.5);
        let mut best = f64::INFINITY;
        for _ in 0..40 {
            let around = center;
            for i in -10..=10 {
                for j in -10..=10 {
                    let place = [around[0] + width * f64::from(i) / 10.0, around[1] + width * f64::from(j) / 10.0];
                    let [s, t] = place.map(share);
                    if distance(s, t) < best {
                        (best, center) = (distance(s, t), [s, t]);
                    }
                }
            }
            width *= 0.6;
        }
        best
    }

    fn length(a: Point) -> f64 {
        dot(a, a).sqrt()
    }

    #[test]
    fn distances_are_the_least_and_belong_to_their_weights() {
        let mut random = Random::new(7);
        for round in 0..300 {
            let mut p: [Point; 4] = std::array::from_fn(|_| random.point());
            if round % 3 == 1 {
                p[3] = add(p[2], scaled(random.unit() * 2.0, sub(p[1], p[0]))); // parallel
            } else if round % 3 == 2 {
                p = p.map(|q| q.map(|x| (x * 2.0).round())); // coplanar, without an area, or in one place
            }
            let [a, b, c, d] = p;
            let found = point_triangle(a, [b, c, d]);
            let inside = |s: f64, t: f64| match s + t <= 1.0 {
                true => length(sub(a, at(&[b, c, d], &[1.0 - s - t, s, t]))),
                false => f64::INFINITY,
            };
            assert!((found.squared.sqrt() - searched(inside)).abs() < 1e-6, "{p:?}");
            assert!((found.squared.sqrt() - length(sub(a, at(&[b, c, d], &found.weights)))).abs() < 1e-12, "{p:?}");

            let found = edge_edge([a, b], [c, d]);
            let gap = |s: f64, t: f64| length(sub(add(a, scaled(s, sub(b, a))), add(c, scaled(t, sub(d, c)))));
            assert!((found.squared.sqrt() - searched(gap)).abs() < 1e-6, "{p:?}");
            let apart = sub(at(&[a, b], &found.weights[0]), at(&[c, d], &found.weights[1]));
            assert!((found.squared.sqrt() - length(apart)).abs() < 1e-12, "{p:?}");
        }
    }

    #[test]
    fn nothing_is_nan_for_numbers_of_any_size() {
        let sizes = [0.0, -0.0, 1.0, -1.0, 1e-320, 1e-160, -1e-80, 1e-20, FARTHEST, -FARTHEST];
        let mut random = Random::new(3);
        for _ in 0..100_000 {
            let p: [Point; 4] = std::array::from_fn(|_| std::array::from_fn(|_| sizes[random.below(sizes.len())]));
            let (vt, ee) = (point_triangle(p[0], [p[1], p[2], p[3]]), edge_edge([p[0], p[1]], [p[2], p[3]]));
            assert!(vt.squared.is_finite() && vt.weights.iter().all(|w| (0.0..=1.0).contains(w)), "{p:?}: {vt:?}");
            assert!(ee.squared.is_finite() && ee.weights.iter().flatten().all(|w| (0.0..=1.0).contains(w)), "{p:?}");
        }
    }

    #[test]
    fn edges_that_are_almost_parallel_keep_their_distance() {
        for exponent in 1..18 {
            let tilt = 10f64.powi(-exponent);
            // They cross at a height of 0 over a place inside of both.
            let found = edge_edge([[0.0; 3], [1.0, 0.0, 0.0]], [[0.0, -0.3 * tilt, 0.0], [1.0, 0.7 * tilt, 0.0]]);
            assert!(found.squared.sqrt() < 1e-15, "{tilt}: {found:?}");
        }
    }
}
