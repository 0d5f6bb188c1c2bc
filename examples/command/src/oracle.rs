//! The oracle beside a run.

use anyhow::{Context, Result, ensure};
use meshweft::AnySimulation;
use meshweft_mesh::Field;

/// What runs beside a simulation to judge it.
pub(crate) struct Oracle {
    /// The serial loop, at the same precision.
    pub(crate) serial: Box<dyn AnySimulation>,
    /// The same in 64 bits beside a GPU, whose bits are its own: it is judged by how far it is from exact arithmetic.
    pub(crate) exact: Option<Box<dyn AnySimulation>>,
    /// The largest error of the GPU so far, over that of the serial loop.
    pub(crate) worst: f64,
    /// The step from which it goes beside the run.
    pub(crate) from: u64,
}

/// A GPU's step may be off from exact arithmetic by this many times what the serial loop in 32 bits is off by, in the
/// worst vertex of each field, and by four roundings of the largest value on top (claim C6).
pub const GPU_BOUND: f64 = 4.0;

impl Oracle {
    /// Takes the state that the step starts from, if it is judged step by step.
    pub(crate) fn follow(&mut self, simulation: &dyn AnySimulation) -> Result<()> {
        let Some(exact) = &mut self.exact else { return Ok(()) };
        for part in simulation.fields() {
            let values = simulation.field(&part.name)?.values;
            self.serial.set_field(&part.name, &values)?;
            exact.set_field(&part.name, &values)?;
        }
        Ok(())
    }

    /// Takes the same step, not beyond a time, and compares.
    pub(crate) fn judge(&mut self, simulation: &dyn AnySimulation, time: f64) -> Result<()> {
        self.serial.step_until(time)?;
        let Some(exact) = &mut self.exact else {
            return simulation.compare(&*self.serial).context("the run differs from the serial oracle");
        };
        exact.step_until(time)?;
        for part in simulation.fields() {
            let [gpu, serial] = [simulation.field(&part.name)?, self.serial.field(&part.name)?];
            let exact = exact.field(&part.name)?.values;
            let largest = exact.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
            let errors =
                |field: &Field| -> Vec<f64> { field.values.iter().zip(&exact).map(|(a, b)| (a - b).abs()).collect() };
            let (gpu, serial) = (errors(&gpu), errors(&serial));
            let rounding = 4.0 * f64::from(f32::EPSILON) * largest;
            let bound = GPU_BOUND * serial.iter().copied().fold(0.0, f64::max) + rounding;
            let Some(at) = (0..gpu.len()).max_by(|&i, &j| gpu[i].total_cmp(&gpu[j])) else { continue };
            ensure!(
                gpu[at] <= bound,
                "{} of {} {} is off by {:e} after step {}: more than {bound:e}",
                part.name,
                if simulation.is_of_cells(&part.name) { "cell" } else { "vertex" },
                at / part.components,
                gpu[at],
                simulation.steps()
            );
            self.worst = self.worst.max(if bound > 0.0 { gpu[at] / bound } else { 0.0 });
        }
        Ok(())
    }
}
