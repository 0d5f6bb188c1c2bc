//! Gravity and air.

use meshweft::nalgebra::Vector3;
use meshweft::{Real, record};

record! {
    /// What pulls at every vertex by its mass: gravity, and air that takes it along.
    pub struct Air<R> {
        /// Acceleration by gravity, m/s².
        gravity: Vector3<R>,
        /// Wind velocity, m/s.
        wind: Vector3<R>,
        /// Rate at which the air takes a vertex along, 1/s.
        drag: R,
    }
}

impl<R: Real> Air<R> {
    /// The velocity after a step of `dt` seconds by nothing else, m/s: implicit Euler, so no drag is too strong.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::Air;
    /// let air = Air { gravity: Vector3::zeros(), wind: Vector3::x() * 3.0, drag: 1e9 };
    /// assert!((air.velocity(Vector3::y(), 1.0) - air.wind).norm() < 1e-8);
    /// ```
    #[inline(always)]
    pub fn velocity(&self, velocity: Vector3<R>, dt: R) -> Vector3<R> {
        let air = self.resistance(dt);
        (velocity + (self.gravity + self.wind * self.drag) * dt) * (R::lit(1.0) / air)
    }

    /// By how much more than its inertia a vertex resists a change of where it goes: air resists in proportion to the new velocity.
    #[inline(always)]
    pub fn resistance(&self, dt: R) -> R {
        R::lit(1.0) + self.drag * dt
    }

    /// The share of gravity that the acceleration of a step had: 1 falling freely, 0 at rest. `before`, `after`: velocities, m/s; `dt`: s.
    ///
    /// It is what the next step is likely to begin with: a good start for its sweeps.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::Air;
    /// let air = Air { gravity: Vector3::z() * -10.0, wind: Vector3::zeros(), drag: 0.0 };
    /// assert_eq!(air.falling(Vector3::zeros(), Vector3::z() * -1.0, 0.2), 0.5);
    /// assert_eq!(air.falling(Vector3::zeros(), Vector3::z(), 0.2), 0.0);
    /// ```
    #[inline(always)]
    pub fn falling(&self, before: Vector3<R>, after: Vector3<R>, dt: R) -> R {
        let acceleration = (after - before) * (R::lit(1.0) / dt);
        // Without gravity nothing falls; a tiny square keeps the quotient finite.
        let share = acceleration.dot(&self.gravity) / self.gravity.dot(&self.gravity).max(R::lit(1e-12));
        share.max(R::lit(0.0)).min(R::lit(1.0))
    }
}
