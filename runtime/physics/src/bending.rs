//! Bending of surfaces across the edges that two triangles share.
//!
//! The quadratic model of Bergou, Wardetzky, Harmon, Zorin and Grinspun, "A quadratic bending model for inextensible surfaces", 2006: the
//! weighted sum `L` of a hinge's four positions is the curvature across its edge. Flat hinges have the energy `½ B |L|²`, a quadratic form
//! whose entries can be added up for each pair of vertices beforehand; curved ones keep the length of `L` at rest, `½ B (|L| - l₀)²`.

use super::system::System;
use meshweft::nalgebra::{Vector3, Vector4};
use meshweft::{Incidence, Length, Real, record};

record! {
    /// A hinge at rest, seen from one corner: two triangles and the edge between them.
    pub struct Crease<R> {
        /// Weights of the four vertices, own first, 1/m; the length of the weighted sum of positions is the curvature
        /// across the edge times the root of the area it is taken over.
        weights: Vector4<R>,
        /// Length of that sum at rest.
        rest: R,
    }
}

impl<R: Real> Crease<R> {
    /// Adds a curved or slender hinge of energy `½ B (|L| - l₀)²` to a vertex at `at`; `stiffness`: `B`, N m. The Hessian is bounded from
    /// above by `B k² I`, which is taken for it.
    #[inline(always)]
    pub fn add(self, stiffness: R, system: System<R>, at: Vector3<R>, others: [Vector3<R>; 3]) -> System<R> {
        let (sum, length) = self.curvature(at, others);
        // A flat hinge has no direction to bend back to; a tiny length keeps the quotient finite.
        let share = R::lit(1.0) - self.rest / length.max(R::lit(1e-12));
        let stiffness = stiffness * self.weights.x;
        System {
            force: system.force - sum * (stiffness * share),
            hessian: system.hessian.plus_diagonal(stiffness * self.weights.x),
        }
    }

    /// The energy of a hinge, `½ B (|L| - l₀)²`, J.
    #[inline(always)]
    pub fn energy(self, stiffness: R, at: Vector3<R>, others: [Vector3<R>; 3]) -> R {
        let (_, length) = self.curvature(at, others);
        let bent = length - self.rest;
        R::lit(0.5) * stiffness * bent * bent
    }

    /// The curvature across a hinge, and its length.
    #[inline(always)]
    pub(super) fn curvature(self, at: Vector3<R>, [b, c, d]: [Vector3<R>; 3]) -> (Vector3<R>, R) {
        let k = self.weights;
        // Differences from the vertex itself: the weights sum to zero, and differences keep their digits.
        let (b, c, d) = (b - at, c - at, d - at);
        let sum = b * k.y + c * k.z + d * k.w;
        (sum, sum.length())
    }
}

/// Adds what flat hinges pull with. `pull` and `weight`: the sums over pairs of `(x - at) w` and of `w`, the products of both weights;
/// `stiffness`: `B`, N m.
///
/// Flat hinges pull along straight lines, and stiffen by minus what they pull with in all: weights of a hinge sum to zero.
#[inline(always)]
pub fn add_flat<R: Real>(stiffness: R, system: System<R>, pull: Vector3<R>, weight: R) -> System<R> {
    System { force: system.force - pull * stiffness, hessian: system.hessian.plus_diagonal(-(stiffness * weight)) }
}

/// What flat hinges that join two vertices add to `½ B |L|²`, seen from both of them: `-½ B w |x - y|²`, J.
#[inline(always)]
pub fn flat_energy<R: Real>(stiffness: R, at: Vector3<R>, other: Vector3<R>, weight: R) -> R {
    let apart = other - at;
    R::lit(-0.5) * stiffness * weight * apart.dot(&apart)
}

/// The largest weight of a hinge in units of the root of 3 over its area, a sum of two cotangents, with which it is added up: angles of half
/// a degree and more.
const SLENDER: f64 = 100.0;

/// Two triangles with a common edge, at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Hinge {
    /// The ends of the edge, then the corners that face it.
    pub vertices: [u32; 4],
    /// Of each, 1/m: as [`Crease`] has them.
    pub weights: [f64; 4],
    /// Length of the weighted sum of positions at rest.
    pub rest: f64,
    /// Whether some angle is so small that products of weights would drown those of other hinges in 32 bits.
    pub is_slender: bool,
}

impl Hinge {
    /// Its data as one of its corners sees it.
    pub fn seen_from(&self, incidence: &Incidence<4>) -> Crease<f64> {
        Crease { weights: Vector4::from(incidence.arrange(self.weights)), rest: self.rest }
    }
}

/// The hinges of a surface: edges that just two triangles share, but those of no area. `rest`: positions, m. Weights are scaled so that the
/// bending energy of a hinge is half the bending stiffness times the squared length of the weighted sum of its positions. Cost: a sort of the
/// sides.
///
/// # Panics
/// If a corner has no position, or one that is not finite.
///
/// Source: Bergou, Wardetzky, Harmon, Zorin and Grinspun, "A quadratic bending model for inextensible surfaces", 2006.
///
/// ```
/// use meshweft_physics::bending::hinges;
/// let square = [[0.0; 3], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
/// let found = hinges(&[[0, 1, 2], [0, 2, 3]], &square);
/// assert_eq!((found.len(), found[0].rest), (1, 0.0));
/// assert!(found[0].weights.iter().sum::<f64>().abs() < 1e-15);
/// ```
pub fn hinges(triangles: &[[u32; 3]], rest: &[[f64; 3]]) -> Vec<Hinge> {
    let mut sides: Vec<([u32; 2], u32)> = Vec::new();
    for &[a, b, c] in triangles {
        for [i, j, facing] in [[a, b, c], [b, c, a], [c, a, b]] {
            sides.push(([i.min(j), i.max(j)], facing));
        }
    }
    sides.sort_unstable();
    let at = |v: u32| Vector3::from(rest[v as usize]);
    let pairs = sides.chunk_by(|a, b| a.0 == b.0).filter(|twins| twins.len() == 2);
    pairs
        .filter_map(|twins| {
            let (mut edge, mut facing) = (twins[0].0, [twins[0].1, twins[1].1]);
            // Sorted by place, so that names do not decide the order of a sum.
            let by_place = |a: &u32, b: &u32| rest[*a as usize].partial_cmp(&rest[*b as usize]).expect("finite");
            edge.sort_by(by_place);
            facing.sort_by(by_place);
            let [x0, x1, x2, x3] = [edge[0], edge[1], facing[0], facing[1]].map(at);
            let cotangent = |a: Vector3<f64>, b: Vector3<f64>| a.dot(&b) / a.cross(&b).norm();
            let area = 0.5 * ((x1 - x0).cross(&(x2 - x0)).norm() + (x1 - x0).cross(&(x3 - x0)).norm());
            let (c01, c02) = (cotangent(x1 - x0, x2 - x0), cotangent(x1 - x0, x3 - x0));
            let (c03, c04) = (cotangent(x0 - x1, x2 - x1), cotangent(x0 - x1, x3 - x1));
            let scale = (3.0 / area).sqrt();
            let weights = [c03 + c04, c01 + c02, -c01 - c03, -c02 - c04];
            let is_slender = weights.iter().any(|k| k.abs() > SLENDER);
            let weights = weights.map(|k| k * scale);
            let bent = (x0 * weights[0] + x1 * weights[1] + x2 * weights[2] + x3 * weights[3]).norm();
            let size = weights.iter().map(|k| k.abs()).sum::<f64>() * (x1 - x0).norm();
            // A rest curvature of rounding errors is none.
            let rest = if bent <= 1e-9 * size { 0.0 } else { bent };
            let vertices = [edge[0], edge[1], facing[0], facing[1]];
            weights.iter().all(|k| k.is_finite()).then_some(Hinge { vertices, weights, rest, is_slender })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit square, halved, and the weights of its diagonal; one corner lifted.
    const WEIGHTS: [f64; 4] = [-1.0, -1.0, 1.0, 1.0];
    const LIFTED: [[f64; 3]; 4] = [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.3], [0.0, 1.0, 0.0]];

    #[test]
    fn forces_are_minus_the_gradient_of_the_energy() {
        let [_, others @ ..] = LIFTED.map(Vector3::from);
        let crease = Crease { weights: Vector4::from(WEIGHTS), rest: 0.1 };
        let at = Vector3::new(0.02, -0.01, 0.05);
        let force = crease.add(2.0, System::at_rest(0.0), at, others).force;
        let pairs = || (0..3).map(|k| (others[k], WEIGHTS[0] * WEIGHTS[k + 1]));
        let pull = pairs().map(|(x, w)| (x - at) * w).sum();
        let flat = add_flat(2.0, System::at_rest(0.0), pull, pairs().map(|(_, w)| w).sum()).force;
        for axis in 0..3 {
            let shift = Vector3::ith(axis, 1e-6);
            let slope = |energy: &dyn Fn(Vector3<f64>) -> f64| (energy(at + shift) - energy(at - shift)) / 2e-6;
            assert!((slope(&|x| crease.energy(2.0, x, others)) + force[axis]).abs() < 1e-8);
            assert!((slope(&|x| pairs().map(|(y, w)| flat_energy(2.0, x, y, w)).sum()) + flat[axis]).abs() < 1e-8);
        }
    }
}
