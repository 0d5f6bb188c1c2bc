//! Acceptance: eigenmodes of the Laplacian decay at known rates, and heat is conserved.

use super::Heat;
use crate::acceptance::start;
use anyhow::Result;
use meshweft::Simulation;
use meshweft_command::{Check, Tolerance};
use meshweft_mesh::generate::generate;
use std::f64::consts::PI;

/// Diffusivity of all runs, m²/s.
const DIFFUSIVITY: f64 = 1e-3;

pub(super) fn run() -> Result<Vec<Check>> {
    let mode_x = |p: [f64; 3]| (PI * p[0]).cos();
    let height = |p: [f64; 3]| p[2];
    let source = "Evans, Partial Differential Equations, 2010, section 7.1: the mode decays as exp(-D λ t)";
    let mut checks = Vec::new();
    for (mesh, method, eigenvalue, what, mode) in [
        ("sheet:33", "explicit", PI * PI, "π²", &mode_x as &dyn Fn([f64; 3]) -> f64),
        ("sheet:33", "relaxation", PI * PI, "π²", &mode_x),
        ("sphere:24", "explicit", 8.0, "l(l+1)/r² = 8", &height),
        ("box:17", "relaxation", PI * PI, "π²", &mode_x),
    ] {
        checks.push(Check {
            name: format!("decay rate of the first mode, λ = {what}, {mesh}, {method}"),
            measured: decay_rate(mesh, method, mode)?,
            expected: DIFFUSIVITY * eigenvalue,
            tolerance: Tolerance::Relative(0.01),
            unit: "1/s",
            source,
        });
    }
    let (start, end) = content("torus:48x24", "explicit", 200)?;
    checks.push(Check {
        name: "heat content after 200 explicit steps over that before, torus:48x24".into(),
        measured: end / start,
        expected: 1.0,
        tolerance: Tolerance::Absolute(1e-12),
        unit: "",
        source: "columns of the stiffness matrix sum to zero; the rest is rounding in 64 bits",
    });
    Ok(checks)
}

fn build(mesh: &str, method: &str, dt: f64) -> Result<Simulation<Heat, f64>> {
    let (diffusivity, dt) = (DIFFUSIVITY.to_string(), dt.to_string());
    start(generate(mesh, 1)?, &[("method", method), ("diffusivity", &diffusivity), ("dt", &dt), ("rounds", "30")])
}

/// Starts from an eigenmode and fits the exponential between two times by the mode's share in the state.
fn decay_rate(mesh: &str, method: &str, mode: &dyn Fn([f64; 3]) -> f64) -> Result<f64> {
    // Small against 1 / rate = 100 s, so that the error of the time step stays below that of space.
    let mut simulation = build(mesh, method, 0.1)?;
    let values: Vec<f64> = simulation.mesh().points().iter().map(|&p| mode(p)).collect();
    let masses = simulation.field("mass")?.values;
    simulation.set_field("temperature", &values)?;
    let share = |simulation: &Simulation<Heat, f64>| -> Result<f64> {
        let temperature = simulation.field("temperature")?.values;
        Ok((0..values.len()).map(|v| masses[v] * values[v] * temperature[v]).sum())
    };
    let start = share(&simulation)?;
    for _ in 0..400 {
        simulation.step()?;
    }
    Ok((start / share(&simulation)?).ln() / simulation.time())
}

fn content(mesh: &str, method: &str, steps: usize) -> Result<(f64, f64)> {
    let mut simulation = build(mesh, method, 0.0)?;
    let start = simulation.metrics()?[0].value;
    for _ in 0..steps {
        simulation.step()?;
    }
    Ok((start, simulation.metrics()?[0].value))
}
