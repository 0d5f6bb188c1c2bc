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
        let Symmetric { xx, yy, zz, xy, xz, yz } = self.hessian;
        let unit = R::lit(1.0) / (xx + yy + zz);
        let (xx, yy, zz) = (xx * unit, yy * unit, zz * unit);
        Symmetric { xx, yy, zz, xy: xy * unit, xz: xz * unit, yz: yz * unit }.solve(self.force * unit)
    }
}
