//! A gas without friction: what flows through a face between two cells.

use meshweft::nalgebra::Vector2;
use meshweft::{Real, record};

/// The ratio of specific heats of air.
pub const AIR: f64 = 1.4;

record! {
    /// A gas that is compressed and not rubbed, in the plane.
    pub struct Gas<R> {
        /// kg/m³.
        density: R,
        /// m/s.
        velocity: Vector2<R>,
        /// N/m².
        pressure: R,
    }
}

record! {
    /// What a gas has in a cubic meter, or what of it passes a square meter in a second.
    pub struct Content<R> {
        /// Mass.
        mass: R,
        /// Momentum.
        momentum: Vector2<R>,
        /// Energy.
        energy: R,
    }
}

impl<R: Real> Gas<R> {
    /// The speed of sound, m/s.
    #[inline(always)]
    pub fn sound(&self) -> R {
        (R::lit(AIR) * self.pressure / self.density).sqrt()
    }

    /// What a cubic meter of it has.
    #[inline(always)]
    pub fn content(&self) -> Content<R> {
        let momentum = self.velocity * self.density;
        let energy = self.pressure * R::lit(1.0 / (AIR - 1.0)) + R::lit(0.5) * momentum.dot(&self.velocity);
        Content { mass: self.density, momentum, energy }
    }

    /// The gas that has this content in a cubic meter.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector2;
    /// use meshweft_physics::Gas;
    /// let wind = Gas { density: 1.25, velocity: Vector2::new(30.0, -4.0), pressure: 1e5 };
    /// let back = Gas::of(wind.content());
    /// assert!((back.pressure / wind.pressure - 1.0_f64).abs() < 1e-12 && back.velocity == wind.velocity);
    /// ```
    #[inline(always)]
    pub fn of(content: Content<R>) -> Gas<R> {
        let velocity = content.momentum * (R::lit(1.0) / content.mass);
        let pressure = R::lit(AIR - 1.0) * (content.energy - R::lit(0.5) * content.momentum.dot(&velocity));
        Gas { density: content.mass, velocity, pressure }
    }

    /// What passes from this side of a face to the other through a square meter in a second. `normal`: to the other side.
    ///
    /// Source: the waves of HLLC: Toro, Spruce and Speares, Restoration of the contact
    /// surface in the HLL Riemann solver, 1994; speeds of the outer ones: Einfeldt, On Godunov-type methods for gas dynamics, 1988, with the
    /// mean of both sides in place of Roe's.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector2;
    /// use meshweft_physics::Gas;
    /// let still = Gas { density: 1.0, velocity: Vector2::zeros(), pressure: 1.0 };
    /// let flux = still.flux(&still, Vector2::x());
    /// assert!(flux.mass == 0.0 && (flux.momentum.x - 1.0_f64).abs() < 1e-15 && flux.energy == 0.0);
    /// // A contact stays where it is.
    /// assert_eq!(still.flux(&Gas { density: 0.25, ..still }, Vector2::x()).mass, 0.0);
    /// ```
    #[inline(always)]
    pub fn flux(&self, other: &Gas<R>, normal: Vector2<R>) -> Content<R> {
        let (zero, half) = (R::lit(0.0), R::lit(0.5));
        let (u, v) = (self.velocity.dot(&normal), other.velocity.dot(&normal));
        let [sound_a, sound_b] = [self.sound(), other.sound()];
        let (mean, wave) = (half * (u + v), half * (sound_a + sound_b));
        let slow = (u - sound_a).min(mean - wave);
        let fast = (v + sound_b).max(mean + wave);
        let [drop_a, drop_b] = [self.density * (slow - u), other.density * (fast - v)];
        let contact = ((other.pressure - self.pressure) + (drop_a * u - drop_b * v)) / (drop_a - drop_b);
        // All is taken from upwind of the contact.
        let is_own = contact.at_least(zero);
        let pick = |own: R, other: R| R::select(is_own, own, other);
        let (density, pressure) = (pick(self.density, other.density), pick(self.pressure, other.pressure));
        let velocity = Vector2::new(pick(self.velocity.x, other.velocity.x), pick(self.velocity.y, other.velocity.y));
        let (speed, edge) = (pick(u, v), pick(slow, fast));
        let outer = pick(slow.min(zero), fast.max(zero));
        let sound = pick(sound_a, sound_b);
        // Of a kilogram.
        let energy = sound * sound * R::lit(1.0 / (AIR * (AIR - 1.0))) + half * velocity.dot(&velocity);
        // All that the wave adds is a multiple of this, so that it is exactly zero in a gas that is the same everywhere.
        let faster = contact - speed;
        let squeezed = faster / (edge - contact);
        let more = density * squeezed;
        let push = (density + more) * faster;
        let mass = density * speed + outer * more;
        Content {
            mass,
            momentum: velocity * mass + normal * (pressure + outer * push),
            energy: (density * energy + pressure) * speed
                + outer * (more * energy + push * contact + squeezed * pressure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gas(seed: u32) -> Gas<f64> {
        let x = |k: u32| f64::from((seed * 7919 + k * 104_729) % 1000) / 500.0;
        Gas { density: 0.1 + x(1), velocity: Vector2::new(x(2) - 1.0, x(3) - 1.0) * 3.0, pressure: 0.1 + x(4) }
    }

    fn parts(c: Content<f64>) -> [f64; 4] {
        [c.mass, c.momentum.x, c.momentum.y, c.energy]
    }

    #[test]
    fn what_leaves_one_side_arrives_at_the_other() {
        for seed in 0..200 {
            let (a, b, angle) = (gas(seed), gas(seed + 1), f64::from(seed));
            let normal = Vector2::new(angle.cos(), angle.sin());
            for (there, back) in parts(a.flux(&b, normal)).into_iter().zip(parts(b.flux(&a, -normal))) {
                assert!((there + back).abs() < 1e-13 * (1.0 + there.abs()), "{a:?} {b:?}: {there} and {back}");
            }
        }
    }

    #[test]
    fn a_gas_that_is_the_same_on_both_sides_carries_itself() {
        for seed in 0..100 {
            let own = gas(seed);
            let Content { mass, momentum, energy } = own.content();
            let exact = [
                mass * own.velocity.x,
                momentum.x * own.velocity.x + own.pressure,
                momentum.y * own.velocity.x,
                (energy + own.pressure) * own.velocity.x,
            ];
            for (found, exact) in parts(own.flux(&own, Vector2::x())).into_iter().zip(exact) {
                assert!((found - exact).abs() < 1e-12 * (1.0 + exact.abs()), "{own:?}: {found}, not {exact}");
            }
        }
    }
}
