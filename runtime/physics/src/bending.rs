//! Bending of surfaces across the edges that two triangles share.
//!
//! The quadratic model of Bergou, Wardetzky, Harmon, Zorin and Grinspun, "A quadratic bending model for inextensible surfaces", 2006: the
//! weighted sum `L` of a hinge's four positions is the curvature across its edge. Flat hinges have the energy `½ B |L|²`, a quadratic form
//! whose entries can be added up for each pair of vertices beforehand; curved ones keep the length of `L` at rest, `½ B (|L| - l₀)²`.

use super::system::System;
use meshweft::nalgebra::{Vector3, Vector4};
use meshweft::{Length, Real, record};

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
    fn curvature(self, at: Vector3<R>, [b, c, d]: [Vector3<R>; 3]) -> (Vector3<R>, R) {
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
