//! Acceptance: one mass between two springs rings at its frequency and fades at its rate; no energy appears.

use super::Spring;
use crate::acceptance::start;
use anyhow::{Result, ensure};
use meshweft::Simulation;
use meshweft_command::{Check, Tolerance};
use meshweft_mesh::generate::generate;
use std::f64::consts::PI;

pub(super) fn run() -> Result<Vec<Check>> {
    let source = "damped oscillator x'' = -2 x - d x': Landau and Lifshitz, Mechanics, section 25";
    let (frequency, fading) = ring()?;
    Ok(vec![
        Check {
            name: "frequency of one mass between two springs, √(2 - d²/4) / 2π, chain:3".into(),
            measured: frequency,
            expected: (2.0f64 - 0.25 * 0.04).sqrt() / (2.0 * PI),
            tolerance: Tolerance::Relative(0.005),
            unit: "Hz",
            source,
        },
        Check {
            name: "rate at which it fades, d / 2, chain:3".into(),
            measured: fading,
            expected: 0.1,
            tolerance: Tolerance::Relative(0.01),
            unit: "1/s",
            source,
        },
        Check {
            name: "largest growth of energy from step to step, share of the start, box:12".into(),
            measured: largest_growth()?,
            expected: 1e-3,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "dashpots only take energy; half a step apart, both parts are known to first order",
        },
    ])
}

fn build(mesh: &str, dt: f64, damping: f64) -> Result<Simulation<Spring, f64>> {
    start(generate(mesh, 1)?, &[("dt", &dt.to_string()), ("damping", &damping.to_string())])
}

/// Plucks the middle of three masses along the chain, and times passages through the middle and heights of swings.
fn ring() -> Result<(f64, f64)> {
    let mut simulation = build("chain:3", 1e-3, 0.2)?;
    let mut body = simulation.vertex(1)?;
    let middle = body.position.x;
    body.position.x += 1e-4;
    body.half = body.position;
    simulation.set_vertex(1, body)?;
    let (mut passages, mut swings) = (Vec::new(), Vec::new());
    let (mut before, mut speed) = (1e-4, 0.0);
    while passages.len() < 9 {
        simulation.step()?;
        ensure!(simulation.time() < 100.0, "the mass passed the middle {} times in 100 s", passages.len());
        let body = simulation.vertex(1)?;
        let (now, velocity) = (body.position.x - middle, body.velocity.x);
        if before * now < 0.0 {
            passages.push(simulation.time() - 1e-3 * now / (now - before));
        }
        if speed * velocity < 0.0 {
            swings.push((simulation.time(), now.abs()));
        }
        (before, speed) = (now, velocity);
    }
    let (first, last) = (swings[0], swings[swings.len() - 1]);
    Ok((4.0 / (passages[8] - passages[0]), (first.1 / last.1).ln() / (last.0 - first.0)))
}

fn largest_growth() -> Result<f64> {
    let mut simulation = build("box:12", 0.02, 1.0)?;
    let mut energy = |steps: usize| -> Result<f64> {
        for _ in 0..steps {
            simulation.step()?;
        }
        Ok(simulation.metrics()?.iter().map(|m| m.value).sum())
    };
    let start = energy(0)?;
    let (mut before, mut worst) = (start, f64::NEG_INFINITY);
    for _ in 0..500 {
        let now = energy(1)?;
        worst = worst.max((now - before) / start);
        before = now;
    }
    Ok(worst)
}
