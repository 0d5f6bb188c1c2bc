//! Acceptance: standing waves have their frequencies, and energy is kept.

use super::Wave;
use anyhow::{Result, ensure};
use meshweft::{Order, Simulation};
use meshweft_command::{Check, Example, Settings, Tolerance};
use meshweft_mesh::generate::generate;
use std::f64::consts::PI;

pub(super) fn run() -> Result<Vec<Check>> {
    // First zero of the Bessel function J0.
    const J01: f64 = 2.404_825_557_695_773;
    let drum = |p: [f64; 3]| libm::j0(J01 * 2.0 * (p[0] * p[0] + p[1] * p[1]).sqrt());
    // The sheet is one meter wide around the middle of its bounds.
    let square = |p: [f64; 3]| (PI * p[0]).cos() * (PI * p[1]).cos();
    let mut checks = Vec::new();
    for (mesh, frequency, what, mode) in [
        ("disk:24", J01 / 0.5 / (2.0 * PI), "j01 c / (2π r)", &drum as &dyn Fn([f64; 3]) -> f64),
        ("sheet:33", 0.5f64.sqrt(), "c / (√2 a)", &square),
    ] {
        checks.push(Check {
            name: format!("frequency of the lowest standing wave, {what}, {mesh}"),
            measured: measure_frequency(mesh, mode)?,
            expected: frequency,
            tolerance: Tolerance::Relative(0.01),
            unit: "Hz",
            source: "Rayleigh, The Theory of Sound, 1877, sections 195 and 202",
        });
    }
    checks.push(Check {
        name: "largest change of the energy in 1000 steps, share of the start, disk:24".into(),
        measured: energy_change()?,
        expected: 0.02,
        tolerance: Tolerance::AtMost,
        unit: "",
        source: "leapfrog keeps a nearby energy: Hairer, Lubich and Wanner, Acta Numerica 12, 2003",
    });
    Ok(checks)
}

fn build(mesh: &str) -> Result<Simulation<Wave, f64>> {
    let mut mesh = generate(mesh, 1)?;
    let middle: [f64; 3] = std::array::from_fn(|k| (mesh.bounds()[0][k] + mesh.bounds()[1][k]) / 2.0);
    mesh.set_points(mesh.points().iter().map(|p| std::array::from_fn(|k| p[k] - middle[k])).collect())?;
    let wave = Wave::new(&mut mesh, &Settings::new(Wave::INFO.settings), Order::default())?;
    Ok(Simulation::builder(mesh, wave).precision::<f64>().build()?)
}

/// Starts from a standing wave and times its passages through zero.
fn measure_frequency(mesh: &str, mode: &dyn Fn([f64; 3]) -> f64) -> Result<f64> {
    let mut simulation = build(mesh)?;
    let fixed = simulation.mesh().boundary();
    let at = |(&p, &fixed): (&[f64; 3], &bool)| if fixed { 0.0 } else { mode(p) };
    let start: Vec<f64> = simulation.mesh().points().iter().zip(&fixed).map(at).collect();
    simulation.set_field("displacement", &start)?;
    let share = |simulation: &Simulation<Wave, f64>| -> Result<f64> {
        let now = simulation.field("displacement")?.values;
        Ok(now.iter().zip(&start).map(|(a, b)| a * b).sum())
    };
    let mut passages = Vec::new();
    let mut before = share(&simulation)?;
    for _ in 0..20_000 {
        simulation.step()?;
        let now = share(&simulation)?;
        if before * now < 0.0 {
            passages.push(simulation.time() - simulation.program().dt * now / (now - before));
        }
        before = now;
        if passages.len() == 9 {
            return Ok(4.0 / (passages[8] - passages[0]));
        }
    }
    ensure!(passages.len() == 9, "the standing wave passed zero {} times in {} s", passages.len(), simulation.time());
    Ok(f64::NAN)
}

/// Kinetic energy is measured half a step early: its mean with the next one belongs to the potential energy between.
fn energy_change() -> Result<f64> {
    let mut simulation = build("disk:24")?;
    let mut energies = Vec::new();
    for _ in 0..1000 {
        let metrics = simulation.metrics()?;
        energies.push((metrics[0].value, metrics[1].value));
        simulation.step()?;
    }
    let total: Vec<f64> = energies.windows(2).map(|w| 0.5 * (w[0].0 + w[1].0) + w[0].1).collect();
    Ok(total.iter().map(|e| (e / total[0] - 1.0).abs()).fold(0.0, f64::max))
}
