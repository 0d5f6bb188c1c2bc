//! Acceptance: falling, hanging, sagging and draping against what mechanics says.

use super::{Cloth, THICKNESS};
use crate::acceptance::start;
use anyhow::{Result, ensure};
use meshweft::Simulation;
use meshweft::nalgebra::Vector3;
use meshweft_command::{Check, Tolerance};
use meshweft_mesh::Mesh;
use meshweft_mesh::generate::generate;

pub(super) fn run() -> Result<Vec<Check>> {
    let (sag, span) = (sag_of_strip()?, 0.8);
    Ok(vec![
        Check {
            name: "free fall over 300 steps, g dt² n (n + 1) / 2, sheet:9".into(),
            measured: free_fall()?,
            expected: 9.81 / 600.0 / 600.0 * 300.0 * 301.0 / 2.0,
            tolerance: Tolerance::Relative(1e-9),
            unit: "m",
            source: "implicit Euler under constant acceleration, exactly",
        },
        Check {
            name: "stretch of a hanging strip under its weight, ρ g L² / (2 Y), sheet:3x21".into(),
            measured: stretch_of_strip()?,
            expected: 0.3 * 9.81 / (2.0 * 1000.0),
            tolerance: Tolerance::Relative(0.02),
            unit: "m",
            source: "Timoshenko and Goodier, Theory of Elasticity, 1970, section 96",
        },
        Check {
            name: "sag of a strip of 1 m between ends 0.8 m apart, sheet:21x2".into(),
            measured: sag,
            expected: catenary_sag(1.0, span),
            tolerance: Tolerance::Relative(0.02),
            unit: "m",
            source: "the catenary: Huygens, Leibniz and Bernoulli, Acta Eruditorum, 1691",
        },
        Check {
            name: "weight of a strip that tears when 5 % longer, Y e (1 + e/2) (1 + e) a meter of width, sheet:5x21"
                .into(),
            measured: weight_that_tears(0.05)?,
            expected: 1000.0 * 0.05 * 1.025 * 1.05,
            tolerance: Tolerance::Relative(0.02),
            unit: "N/m",
            source: "St. Venant-Kirchhoff in simple tension",
        },
        Check {
            name: "largest growth of energy while a sheet tears off its pins, share of the first fall, sheet:21".into(),
            measured: growth_in_tearing()?,
            expected: 1e-4,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "a vertex splits where it is and as fast as it goes; what no longer bends loses energy",
        },
        Check {
            name: "largest growth of energy from step to step, share of the first fall, sheet:21 from two corners"
                .into(),
            measured: largest_growth()?,
            expected: 1e-4,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "implicit Euler and drag only take energy; the rest is what the sweeps leave unsolved",
        },
        Check {
            name: "deepest dent into the ball's surface after 600 steps, sheet:40".into(),
            measured: deepest_dent()?,
            expected: 0.5 * THICKNESS,
            tolerance: Tolerance::AtMost,
            unit: "m",
            source: "contact keeps the cloth's thickness",
        },
    ])
}

fn build(mesh: Mesh, set: &[(&str, &str)]) -> Result<Simulation<Cloth, f64>> {
    start(mesh, set)
}

fn free_fall() -> Result<f64> {
    let mut simulation = build(generate("sheet:9", 1)?, &[("pins", "none"), ("obstacles", "none"), ("drag", "0")])?;
    let start = simulation.vertex(40)?.position.z;
    for _ in 0..300 {
        simulation.step()?;
    }
    Ok(start - simulation.vertex(40)?.position.z)
}

/// Lets a strip fall into place: large steps with many sweeps are nothing but a static solver.
const STATIC: [(&str, &str); 5] =
    [("obstacles", "none"), ("bend", "0"), ("poisson", "0"), ("dt", "0.05"), ("rounds", "300")];

/// Steps after which it hangs still.
const STATIC_STEPS: usize = 200;

fn stretch_of_strip() -> Result<f64> {
    let mut set = STATIC.to_vec();
    set.extend([("stretch", "1000"), ("pins", "side"), ("drag", "10")]);
    let mut simulation = build(generate("sheet:3x21", 1)?, &set)?;
    // Turned to hang straight down from the pinned side.
    let points = simulation.mesh().points().to_vec();
    let top = points.iter().map(|p| p[1]).fold(f64::MIN, f64::max);
    let length = top - points.iter().map(|p| p[1]).fold(f64::MAX, f64::min);
    let hanging: Vec<f64> = points.iter().flat_map(|p| [p[0], 0.0, p[1] - top]).collect();
    simulation.set_field("position", &hanging)?;
    for _ in 0..STATIC_STEPS {
        simulation.step()?;
    }
    let places = simulation.field("position")?.values;
    let ends: Vec<f64> =
        (0..points.len()).filter(|&v| top - points[v][1] > 0.999 * length).map(|v| places[3 * v + 2]).collect();
    // A strip of unit length: other lengths scale with their square.
    Ok((-ends.iter().sum::<f64>() / ends.len() as f64 - length) / (length * length))
}

/// Makes a hanging strip heavier until it tears below its pins. Returns the load there, N/m.
fn weight_that_tears(limit: f64) -> Result<f64> {
    /// From one load to the next, as a factor.
    const HEAVIER: f64 = 1.005;
    let limit = limit.to_string();
    let mut set = STATIC.to_vec();
    set.extend([("stretch", "1000"), ("pins", "side"), ("drag", "10"), ("tear", &*limit), ("touching", "off")]);
    let mut simulation = build(generate("sheet:5x21", 1)?, &set)?;
    let points = simulation.mesh().points().to_vec();
    let (low, top) = points.iter().fold((f64::MAX, f64::MIN), |(low, top), p| (low.min(p[1]), top.max(p[1])));
    // Spare places hang where their vertices do.
    simulation.set_field("position", &points.iter().flat_map(|p| [p[0], 0.0, p[1] - top]).collect::<Vec<_>>())?;
    // The uppermost vertices that may split are those of the second row; all below hangs from them.
    let hanging = (top - low) * (1.0 - 1.0 / 20.0);
    simulation.program_mut().gravity = 0.8 * 1000.0 * 0.05 / (0.3 * hanging);
    while simulation.field("holds")?.values.iter().all(|&held| held == 0.0) {
        simulation.program_mut().gravity *= HEAVIER;
        (0..20).try_for_each(|_| simulation.step())?;
    }
    Ok(0.3 * simulation.program().gravity * hanging)
}

fn growth_in_tearing() -> Result<f64> {
    let set = [("obstacles", "none"), ("rounds", "40"), ("pins", "side"), ("tear", "0.03"), ("stretch", "50")];
    let mut simulation = build(generate("sheet:21", 1)?, &set)?;
    let growth = growth(&mut simulation, 300)?;
    let split = simulation.field("holds")?.values.iter().filter(|&&held| held != 0.0).count();
    ensure!(split > 20, "{split} places hold something: the sheet is to tear off");
    Ok(growth)
}

fn sag_of_strip() -> Result<f64> {
    let mut set = STATIC.to_vec();
    set.extend([("stretch", "1000"), ("pins", "none"), ("drag", "10")]);
    let mut simulation = build(generate("sheet:21x2", 1)?, &set)?;
    let points = simulation.mesh().points().to_vec();
    let (left, right) = points.iter().fold((f64::MAX, f64::MIN), |(l, r), p| (l.min(p[0]), r.max(p[0])));
    for v in 0..points.len() as u32 {
        let mut node = simulation.vertex(v)?;
        let p = points[v as usize];
        if p[0] - left < 1e-9 || right - p[0] < 1e-9 {
            node.free = 0.0;
        }
        // A start that hangs already: a parabola of about the right length.
        let x = 0.8 * p[0] / (right - left);
        node.position = Vector3::new(x, p[1], -0.28 * (1.0 - (x / 0.4).powi(2)));
        simulation.set_vertex(v, node)?;
    }
    for _ in 0..STATIC_STEPS {
        simulation.step()?;
    }
    let places = simulation.field("position")?.values;
    Ok(-places.iter().skip(2).step_by(3).copied().fold(f64::MAX, f64::min))
}

/// How deep a chain of this length hangs between ends `span` apart: `a (cosh(s / 2a) - 1)`, where `2 a sinh(s / 2a)` is
/// the length.
fn catenary_sag(length: f64, span: f64) -> f64 {
    let (mut low, mut high) = (1e-3, 1e3);
    for _ in 0..200 {
        let a = 0.5 * (low + high);
        if 2.0 * a * libm::sinh(span / (2.0 * a)) > length { low = a } else { high = a }
    }
    low * (libm::cosh(span / (2.0 * low)) - 1.0)
}

fn largest_growth() -> Result<f64> {
    growth(&mut build(generate("sheet:21", 1)?, &[("obstacles", "none"), ("rounds", "40")])?, 1200)
}

/// The most by which energy grows in a step, as a share of what a fall through half a meter sets free.
fn growth(simulation: &mut Simulation<Cloth, f64>, steps: usize) -> Result<f64> {
    let mut energy = |steps: usize| -> Result<f64> {
        for _ in 0..steps {
            simulation.step()?;
        }
        Ok(simulation.metrics()?.iter().map(|m| m.value).sum())
    };
    let scale = 0.3 * 9.81 * 0.5;
    let (mut before, mut worst) = (energy(0)?, f64::NEG_INFINITY);
    for _ in 0..steps {
        let now = energy(1)?;
        worst = worst.max((now - before) / scale);
        before = now;
    }
    Ok(worst)
}

fn deepest_dent() -> Result<f64> {
    let mut simulation = build(generate("sheet:40", 1)?, &[])?;
    for _ in 0..600 {
        simulation.step()?;
    }
    let (center, radius) = simulation.program().scene.ball.expect("nothing else is in its place");
    let places = simulation.field("position")?.values;
    let depth = |place: &[f64]| radius - (Vector3::from_column_slice(place) - Vector3::from(center)).norm();
    let deepest = places.chunks_exact(3).map(depth).fold(f64::MIN, f64::max);
    Ok(deepest.max(0.0))
}
