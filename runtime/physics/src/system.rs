//! The 3×3 system of one vertex.

use super::symmetric::Symmetric;
use meshweft::nalgebra::Vector3;
use meshweft::{Real, record};

record! {
    /// Force on a vertex, and how fast it falls as the vertex moves.
    pub struct System<R> {
        /// Minus the gradient of the energy, N.
        force: Vector3<R>,
        /// Its Hessian, N/m.
        hessian: Symmetric<R>,
    }
}

impl<R: Real> System<R> {
    /// A vertex that nothing pulls at, of that stiffness in all directions.
    #[inline(always)]
    pub fn at_rest(stiffness: R) -> Self {
        System { force: Vector3::zeros(), hessian: Symmetric::diagonal(stiffness) }
    }

    /// The step of Newton's method, m.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::System;
    /// let system = System { force: Vector3::new(0.0, 3.0, 0.0), ..System::at_rest(6.0) };
    /// assert_eq!(system.solve().y, 0.5);
    /// ```
    #[inline(always)]
    pub fn solve(self) -> Vector3<R> {
        self.hessian.solve(self.force)
    }

    /// The same for any stiffness above 0, of whatever size and however much larger in some directions than in others: in units of its
    /// own, by elimination. Pivots below what 32 bits tell from 0 are raised, which makes the step shorter.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::System;
    /// let stiff = System::at_rest(1.0_f32);
    /// let hessian = stiff.hessian.plus_outer(1e22, Vector3::new(0.5, 0.7, 0.3));
    /// let steel = System { force: Vector3::new(0.5, 0.7, 0.3) * 1e20, hessian };
    /// assert!(!steel.solve().x.is_finite());
    /// assert!((steel.solve_robustly().dot(&Vector3::new(0.5, 0.7, 0.3)) - 0.01).abs() < 1e-4);
    /// ```
    #[inline(always)]
    pub fn solve_robustly(self) -> Vector3<R> {
        let (one, least) = (R::lit(1.0), R::lit(3e-7));
        let unit = one / (self.hessian.xx + self.hessian.yy + self.hessian.zz);
        let (h, force) = (self.hessian.scaled(unit), self.force * unit);
        let pivot = |x: R| one / x.max(least);
        // The factors L D Lᵀ.
        let px = pivot(h.xx);
        let (yx, zx) = (h.xy * px, h.xz * px);
        let py = pivot(h.yy - yx * h.xy);
        let across = h.yz - yx * h.xz;
        let zy = across * py;
        let pz = pivot(h.zz - zx * h.xz - zy * across);
        let y = force.y - yx * force.x;
        let z = (force.z - zx * force.x - zy * y) * pz;
        let y = y * py - zy * z;
        Vector3::new(force.x * px - yx * y - zx * z, y, z)
    }

    /// Damps what has been added so far, in proportion to its stiffness. `share`: the damping time over the time step; `moved`: how far
    /// the vertex has moved since the step began, m.
    ///
    /// Neighbors count as if they rested, so that damping slows down a free flight, too. Source: Chen, Liu, Yang and Yuksel, "Vertex block
    /// descent", 2024.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::System;
    /// let spring = System { force: Vector3::x(), ..System::at_rest(4.0) };
    /// let damped = spring.damped(0.5, Vector3::x() * 0.1);
    /// assert_eq!((damped.force.x, damped.hessian.xx), (1.0 - 0.5 * 4.0 * 0.1, 6.0));
    /// ```
    #[inline(always)]
    pub fn damped(self, share: R, moved: Vector3<R>) -> Self {
        System {
            force: self.force - self.hessian.times(moved) * share,
            hessian: self.hessian.scaled(R::lit(1.0) + share),
        }
    }

    /// Both together.
    #[inline(always)]
    pub fn plus(self, other: Self) -> Self {
        System { force: self.force + other.force, hessian: self.hessian.plus(other.hessian) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elimination_solves_what_cofactors_solve() {
        let along = Vector3::new(0.3, -0.8, 0.5);
        let hessian = Symmetric::diagonal(0.2f64).plus_outer(3.0, along).plus_outer(0.4, Vector3::new(1.0, 0.2, -0.1));
        let system = System { force: Vector3::new(1.0, 2.0, -3.0), hessian };
        assert!((system.solve() - system.solve_robustly()).norm() < 1e-13);
    }
}
