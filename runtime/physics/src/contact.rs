//! Contact with obstacles.

use super::obstacle::Touch;
use super::system::System;
use meshweft::nalgebra::Vector3;
use meshweft::{Length, Real, record};

record! {
    /// A quadratic penalty against what lies inside of an obstacle, with smoothed Coulomb friction.
    ///
    /// Source: Li et al., "Incremental potential contact", 2020, section 5, for friction.
    pub struct Contact<R> {
        /// Force over depth, N/m.
        stiffness: R,
        /// Coefficient of friction.
        friction: R,
        /// How far a vertex slides in a step before it slips: less is smoothed to sticking, m; above 0.
        slip: R,
    }
}

impl<R: Real> Contact<R> {
    /// Adds an obstacle. `moved`: how far the vertex has moved since the step began, as the obstacle sees it, m.
    #[inline(always)]
    pub fn add(&self, system: System<R>, touch: Touch<R>, moved: Vector3<R>) -> System<R> {
        self.add_share(system, touch, touch, moved, R::lit(1.0))
    }

    /// Adds an obstacle that touches not the vertex but a point that moves by `share` of what the vertex moves, if it does when it is as in
    /// `then`: it may do so before, or where it does, not any more.
    #[inline(always)]
    pub(super) fn add_share(
        &self,
        system: System<R>,
        touch: Touch<R>,
        then: Touch<R>,
        moved: Vector3<R>,
        share: R,
    ) -> System<R> {
        let (zero, one) = (R::lit(0.0), R::lit(1.0));
        let Touch { normal, distance } = touch;
        let depth = -distance;
        let touching = then.distance.less(zero);
        let stiffness = R::select(touching, self.stiffness, zero);
        let pressure = stiffness * depth;
        let along = moved - normal * normal.dot(&moved);
        let slide = along.length();
        // Coulomb's force over the slide: μ N / |slide|, smoothed to μ N (2 - r) / slip for r = |slide| / slip below 1.
        let smoothed = (R::lit(2.0) - slide / self.slip) / self.slip;
        let rate = R::select(slide.less(self.slip), smoothed, one / slide.max(self.slip));
        let friction = self.friction * pressure.max(zero) * rate;
        let squared = share * share;
        System {
            force: system.force + normal * (pressure * share) - along * (friction * share),
            // Friction acts in the tangent plane: I - n nᵀ.
            hessian: system
                .hessian
                .plus_diagonal(friction * squared)
                .plus_outer((stiffness - friction) * squared, normal),
        }
    }

    /// The energy of the penalty, J; friction has none.
    #[inline(always)]
    pub fn energy(&self, touch: Touch<R>) -> R {
        let depth = (-touch.distance).max(R::lit(0.0));
        R::lit(0.5) * self.stiffness * depth * depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn friction_is_its_coefficient_of_the_pressure_at_most_and_sticks_below_the_slip() {
        let contact = Contact { stiffness: 50.0, friction: 0.4, slip: 1e-3 };
        let touch = Touch { normal: Vector3::z(), distance: -0.02 };
        let force = |slide: f64| contact.add(System::at_rest(1.0), touch, Vector3::new(slide, 0.0, 0.7)).force;
        // The pressure is 1 N.
        assert_eq!(force(0.0), Vector3::new(0.0, 0.0, 1.0));
        for (slide, expected) in [(1e-3, 0.4), (0.5, 0.4), (0.5e-3, 0.3), (1e-9, 0.4 * 2e-6)] {
            assert!((force(slide).x + expected).abs() < 1e-9, "{slide}: {}", force(slide));
        }
        let apart = Touch { distance: 1e-9, ..touch };
        assert_eq!(contact.add(System::at_rest(1.0), apart, Vector3::x()).force, Vector3::zeros());
    }
}
