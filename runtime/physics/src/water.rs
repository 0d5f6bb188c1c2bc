//! Shallow water: what flows through a face between two columns.

use meshweft::nalgebra::Vector2;
use meshweft::{Real, record};

record! {
    /// A column of shallow water.
    pub struct Water<R> {
        /// How deep it is, m.
        depth: R,
        /// Its mean velocity, m/s.
        velocity: Vector2<R>,
        /// How high the bed lies, m.
        bed: R,
    }
}

impl<R: Real> Water<R> {
    /// How high its surface lies, m.
    #[inline(always)]
    pub fn surface(&self) -> R {
        self.bed + self.depth
    }

    /// What leaves a column through a meter of a face in a second: of volume, m²/s, and of momentum per density, m³/s², less what its own
    /// weight would push with, which cancels around a column. `own`: the column in its middle; `here` and `there`: on either side of the
    /// face; `normal`: out of it; `gravity`: m/s².
    ///
    /// What leaves one column arrives in the other to the last bit, a lake at rest stays at rest over any bed, and no column is drained
    /// below 0 in a step of half its area over the sum of length times speed of its faces.
    ///
    /// Source: Audusse, Bouchut, Bristeau, Klein and Perthame, A fast and stable well-balanced scheme with hydrostatic reconstruction
    /// for shallow water flows, 2004; speeds of waves and what moves along the face by HLLC: Toro, Shock-capturing methods for free-surface
    /// shallow flows, 2001, chapter 10.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector2;
    /// use meshweft_physics::Water;
    /// // A lake over a step of the bed; and a shore, which is dry.
    /// let lake = Water { depth: 2.0, velocity: Vector2::zeros(), bed: 0.0 };
    /// let shelf = Water { depth: 0.5, bed: 1.5, ..lake };
    /// let shore = Water { depth: 0.0, bed: 3.0, ..lake };
    /// assert_eq!(lake.outflow(lake, shelf, Vector2::x(), 9.81), (0.0, Vector2::zeros()));
    /// assert_eq!(lake.outflow(lake, shore, Vector2::x(), 9.81), (0.0, Vector2::zeros()));
    /// // Behind a dam that has broken.
    /// let (volume, _) = lake.outflow(lake, Water { depth: 1.0, ..lake }, Vector2::x(), 9.81);
    /// assert!(volume > 2.0 && volume < 4.0);
    /// ```
    #[inline(always)]
    pub fn outflow(&self, here: Water<R>, there: Water<R>, normal: Vector2<R>, gravity: R) -> (R, Vector2<R>) {
        let (zero, half) = (R::lit(0.0), R::lit(0.5));
        // Columns on the higher of both beds.
        let sill = here.bed.max(there.bed);
        let above = |side: &Water<R>| (side.surface() - sill).max(zero);
        let (a, b) = (above(&here), above(&there));
        let along = Vector2::new(-normal.y, normal.x);
        let (u, v) = (here.velocity.dot(&normal), there.velocity.dot(&normal));
        let (across_a, across_b) = (here.velocity.dot(&along), there.velocity.dot(&along));
        let [slow_a, slow_b] = waves(a, b, u, v, gravity);
        let [low, high] = [slow_a.min(zero), slow_b.max(zero)];
        // Of two dry columns nothing leaves.
        let share = R::lit(1.0) / (high - low).max(R::lit(1e-12));
        let through = |from: R, to: R, less: R, more: R| (high * from - low * to + low * high * (more - less)) * share;
        let volume = through(a * u, b * v, a, b);
        let weight = |depth: R| half * gravity * depth * depth;
        // Without the weight of this side, which a lake at rest has on both.
        let push = through(a * u * u, b * v * v + (weight(b) - weight(a)), a * u, b * v);
        let drag = volume * R::select(volume.greater(zero), across_a, across_b);
        let rest = half * gravity * (self.depth + here.depth) * (here.surface() - self.surface());
        (volume, normal * (push + rest) + along * drag)
    }

    /// The same through a face behind which there is a wall: it pushes back.
    #[inline(always)]
    pub fn wall(&self, here: Water<R>, normal: Vector2<R>, gravity: R) -> (R, Vector2<R>) {
        let behind = here.velocity - normal * (R::lit(2.0) * here.velocity.dot(&normal));
        let (_, momentum) = self.outflow(here, Water { velocity: behind, ..here }, normal, gravity);
        // Nothing gets through, not even what rounding leaves.
        (R::lit(0.0), normal * momentum.dot(&normal))
    }
}

/// The speeds of the slowest and the fastest wave of two columns side by side, m/s. Mirrored columns have the mirrored speeds to the last bit.
#[inline(always)]
fn waves<R: Real>(a: R, b: R, u: R, v: R, gravity: R) -> [R; 2] {
    let (zero, half) = (R::lit(0.0), R::lit(0.5));
    let [wave_a, wave_b] = [(gravity * a).sqrt(), (gravity * b).sqrt()];
    let mean = half * (u + v) + (wave_a - wave_b);
    let wave = (half * (wave_a + wave_b) + R::lit(0.25) * (u - v)).max(zero);
    let slow = (u - wave_a).min(mean - wave);
    let fast = (v + wave_b).max(mean + wave);
    let two = R::lit(2.0);
    // A dry column is flooded as fast as water runs into nothing.
    let slow = R::select(a.greater(zero), slow, v - two * wave_b);
    let fast = R::select(b.greater(zero), fast, u + two * wave_a);
    [slow, fast]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_a_column_arrives_in_the_other_to_the_last_bit() {
        let column = |seed: u32| {
            let x = |k: u32| f64::from((seed * 7919 + k * 104_729) % 1000) / 250.0;
            // Some are dry.
            let depth = if seed.is_multiple_of(5) { 0.0 } else { x(1) };
            Water { depth, velocity: Vector2::new(x(2) - 2.0, x(3) - 2.0), bed: x(4) }
        };
        for seed in 0..200 {
            let (own, other) = (column(seed), column(seed + 1));
            let angle = f64::from(seed);
            let normal = Vector2::new(angle.cos(), angle.sin());
            let (there, _) = own.outflow(own, other, normal, 9.81);
            let (back, _) = other.outflow(other, own, -normal, 9.81);
            assert_eq!(there, -back, "{own:?} {other:?}");
        }
    }

    #[test]
    fn a_wall_pushes_with_the_weight_of_the_water_and_more_against_what_runs_into_it() {
        let still = Water { depth: 2.0, velocity: Vector2::new(0.0, 3.0), bed: 1.0 };
        assert_eq!(still.wall(still, Vector2::x(), 10.0), (0.0, Vector2::zeros()));
        let running = Water { velocity: Vector2::new(1.0, 0.0), ..still };
        assert!(running.wall(running, Vector2::x(), 10.0).1.x > 0.0);
    }
}
