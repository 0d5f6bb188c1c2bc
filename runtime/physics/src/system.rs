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
}
