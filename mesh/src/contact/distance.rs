//! Closest points of a point and a triangle, and of two edges.
//!
//! Weights lie in 0 to 1 and add up to 1, so a distance is that of two points that exist: never less than the least distance by more than
//! rounding, about 1e-16 of the lengths that are involved. Nothing is NaN for finite input: where a triangle or an edge has no
//! extent, quotients of zeros count as 0.

use crate::measure::{add, cross, dot, scaled, sub};

type Point = [f64; 3];

/// Farther out products of four lengths could overflow.
pub(super) const FARTHEST: f64 = 1e70;

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

/// 0 for what is not a number.
#[inline(always)]
fn share(x: f64) -> f64 {
    x.max(0.0).min(1.0)
}

/// The squared distance of `p` from the point `t` of the way from `a` along `ab`.
#[inline(always)]
fn squared_from(ap: Point, ab: Point, t: f64) -> f64 {
    let gap = sub(ap, scaled(t, ab));
    dot(gap, gap)
}

/// Finds the point of the triangle `abc` that is closest to `p`.
///
/// Coordinates: at most 1e70. A triangle without an area is its longest edge, one without any extent a point. For a triangle that is
/// 1e-8 as high as long the distance may be too great by 1e-8 of the length.
///
/// ```
/// use meshweft_mesh::contact::point_triangle;
/// let corners = [[0.0; 3], [3.0, 0.0, 0.0], [0.0, 3.0, 0.0]];
/// let found = point_triangle([1.0, 1.0, 2.0], corners);
/// assert_eq!((found.squared, found.weights), (4.0, [1.0 / 3.0; 3]));
/// assert_eq!(point_triangle([-1.0, -1.0, 0.0], corners).weights, [1.0, 0.0, 0.0]);
/// assert_eq!(point_triangle([1.0, 0.0, 0.0], [[0.0; 3]; 3]).squared, 1.0);
/// ```
#[inline]
pub fn point_triangle(p: Point, [a, b, c]: [Point; 3]) -> PointTriangle {
    let (ab, ac, ap) = (sub(b, a), sub(c, a), sub(p, a));
    let n = cross(ab, ac);
    let (v, w) = (dot(cross(ap, ac), n), dot(cross(ab, ap), n));
    let nn = dot(n, n);
    if v >= 0.0 && w >= 0.0 && v + w <= nn && nn > 0.0 {
        let (v, w) = (v / nn, w / nn);
        // Rounding may take the sum above 1 by a little.
        let weights = [(1.0 - v - w).max(0.0), v, w];
        let gap = sub(ap, add(scaled(v, ab), scaled(w, ac)));
        return PointTriangle { squared: dot(gap, gap), weights };
    }
    let (bc, bp) = (sub(c, b), sub(p, b));
    let on_ab = share(dot(ap, ab) / dot(ab, ab));
    let on_ac = share(dot(ap, ac) / dot(ac, ac));
    let on_bc = share(dot(bp, bc) / dot(bc, bc));
    let mut best = PointTriangle { squared: squared_from(ap, ab, on_ab), weights: [1.0 - on_ab, on_ab, 0.0] };
    let squared = squared_from(ap, ac, on_ac);
    if squared < best.squared {
        best = PointTriangle { squared, weights: [1.0 - on_ac, 0.0, on_ac] };
    }
    let squared = squared_from(bp, bc, on_bc);
    if squared < best.squared {
        best = PointTriangle { squared, weights: [0.0, 1.0 - on_bc, on_bc] };
    }
    best
}

/// Finds the points of two edges that are closest to each other. Of parallel edges, some pair of closest points.
///
/// Coordinates: at most 1e70. Source: Ericson, Real-Time Collision Detection (2005), 5.1.9; the first quotient is that of products of
/// vectors, which keeps its digits where edges are almost parallel.
///
/// ```
/// use meshweft_mesh::contact::edge_edge;
/// let found = edge_edge([[0.0; 3], [2.0, 0.0, 0.0]], [[1.0, -1.0, 3.0], [1.0, 1.0, 3.0]]);
/// assert_eq!((found.squared, found.weights), (9.0, [[0.5; 2]; 2]));
/// let parallel = edge_edge([[0.0; 3], [1.0, 0.0, 0.0]], [[3.0, 0.0, 0.0], [2.0, 0.0, 0.0]]);
/// assert_eq!((parallel.squared, parallel.weights), (1.0, [[0.0, 1.0]; 2]));
/// ```
#[inline]
pub fn edge_edge([a, b]: [Point; 2], [c, d]: [Point; 2]) -> EdgeEdge {
    let (ab, cd, ca) = (sub(b, a), sub(d, c), sub(a, c));
    let n = cross(ab, cd);
    let s = share(dot(n, cross(cd, ca)) / dot(n, n));
    let along = dot(ab, cd);
    let free = (along * s + dot(cd, ca)) / dot(cd, cd);
    let t = share(free);
    // Also where it is not a number: then the second edge is a point.
    let s = if t == free { s } else { share((along * t - dot(ab, ca)) / dot(ab, ab)) };
    let gap = add(ca, sub(scaled(s, ab), scaled(t, cd)));
    EdgeEdge { squared: dot(gap, gap), weights: [[1.0 - s, s], [1.0 - t, t]] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contact::testing::Random;

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
            let inside = |s: f64, t: f64| length(sub(a, add(b, add(scaled(s * (1.0 - t), sub(c, b)), scaled(s * t, sub(d, b))))));
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
