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

    /// The same in units of its own stiffness, for any that is above 0: in 32 bits the determinant of one above 10¹² N/m would be
    /// infinite.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::System;
    /// let steel = System { force: Vector3::x() * 1e20_f32, ..System::at_rest(1e22) };
    /// assert!(steel.solve().x.is_nan() && (steel.solve_scaled().x - 0.01).abs() < 1e-8);
    /// ```
    #[inline(always)]
    pub fn solve_scaled(self) -> Vector3<R> {
        let unit = R::lit(1.0) / (self.hessian.xx + self.hessian.yy + self.hessian.zz);
        self.hessian.scaled(unit).solve(self.force * unit)
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
        let (a, b) = (self.hessian, other.hessian);
        System {
            force: self.force + other.force,
            hessian: Symmetric {
                xx: a.xx + b.xx,
                yy: a.yy + b.yy,
                zz: a.zz + b.zz,
                xy: a.xy + b.xy,
                xz: a.xz + b.xz,
                yz: a.yz + b.yz,
            },
        }
    }
}
