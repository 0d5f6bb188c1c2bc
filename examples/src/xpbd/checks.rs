//! Acceptance: what hangs against its own weight, solids against `softbody`, and what must be kept.

use super::Xpbd;
use crate::acceptance::{self, start, steps, vectors};
use crate::cloth::Cloth;
use crate::softbody::Softbody;
use anyhow::Result;
use meshweft::nalgebra::{Rotation3, Vector3};
use meshweft::{Mesh, Program, Simulation};
use meshweft_command::{Check, Tolerance};
use meshweft_mesh::generate::generate;
use std::f64::consts::PI;

type Run = Simulation<Xpbd, f64>;

pub(super) fn run() -> Result<Vec<Check>> {
    let [long, short] = [1.0 / 600.0, 1.0 / 1200.0].map(apart_from_softbody);
    let (long, short) = (long?, short?);
    let [momentum, growth] = flight()?;
    let angle = PI / 6.0;
    Ok(vec![
        Check {
            name: "weight that hangs below a row of vertices less the pull of links there, share of all, sheet:5x21"
                .into(),
            measured: unbalanced()?,
            expected: 5e-4,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "Hooke's law: a link is longer by its compliance times its force; Macklin et al., 2016, section 4",
        },
        Check {
            name: "sag of a strip of 1 m between ends 0.8 m apart, sheet:21x2".into(),
            measured: sag()?,
            // a (cosh(0.4 / a) - 1) with 2 a sinh(0.4 / a) = 1.
            expected: 0.265_438,
            tolerance: Tolerance::Relative(0.02),
            unit: "m",
            source: "the catenary: Huygens, Leibniz and Bernoulli, Acta Eruditorum, 1691",
        },
        Check {
            name: "deflection of a strip that is clamped at one end, sheet:21x5".into(),
            measured: deflection(bent_here()?)?,
            expected: deflection(bent_by_cloth()?)?,
            tolerance: Tolerance::Relative(0.001),
            unit: "m",
            source: "where cloth has it, which solves another way: one bending energy, one state of rest",
        },
        Check {
            name: "twisted bar: farthest from where softbody has it, share of the way of its ends, bar:17x5x5".into(),
            measured: short,
            expected: 1e-3,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "one energy, one state of rest: Macklin and Müller, 2021",
        },
        Check {
            name: "that, over the same with steps twice as long".into(),
            measured: short / long,
            expected: 0.25,
            tolerance: Tolerance::Relative(0.2),
            unit: "",
            source: "gradients are those of the way, not of its end, which is as far as the square of the step: Macklin et al., 2016, section 4",
        },
        Check {
            name: "change of volume at ν = 0.4999, pulled to 1.5 times its length, share, bar:17x5x5".into(),
            measured: change_of_volume()?,
            expected: 1e-3,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "λ (J - 1) balances the other stresses, some μ: J - 1 is some μ/λ, 2e-4",
        },
        Check {
            name: "momentum lost in 200 steps of free flight, share, ball:9".into(),
            measured: momentum,
            expected: 1e-9,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "Newton's third law: gradients sum to zero",
        },
        Check {
            name: "largest growth of energy in a step of that flight, share of the start".into(),
            measured: growth,
            expected: 1e-9,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "implicit Euler only takes energy",
        },
        Check {
            name: "acceleration down a slope of 30° with friction 0.3, box:5".into(),
            measured: acceleration_on_slope(30.0, 0.3)?,
            expected: 9.81 * (angle.sin() - 0.3 * angle.cos()),
            tolerance: Tolerance::Relative(0.01),
            unit: "m/s²",
            source: "Coulomb, 1785: g (sin α - μ cos α)",
        },
        Check {
            name: "speed on a slope of 20° with friction 0.5, box:5".into(),
            measured: speed_on_slope(20.0, 0.5)?,
            expected: 1e-3,
            tolerance: Tolerance::AtMost,
            unit: "m/s",
            source: "it sticks where tan α < μ",
        },
    ])
}

fn build(spec: &str, set: &[(&str, &str)]) -> Result<Run> {
    start(generate(spec, 1)?, set)
}

/// Moves every vertex, and holds those there for which it says so.
fn place(run: &mut Run, place: impl Fn(Vector3<f64>) -> (Vector3<f64>, bool)) -> Result<()> {
    for v in 0..run.mesh().points().len() as u32 {
        let mut node = run.vertex(v)?;
        let (to, held) = place(node.position);
        (node.position, node.rest, node.before) = (to, to, to);
        node.inverse_mass = if held { 0.0 } else { 1.0 / node.mass };
        run.set_vertex(v, node)?;
    }
    Ok(())
}

/// A surface that comes to rest.
const HANGING: [(&str, &str); 6] =
    [("obstacles", "none"), ("bend", "0"), ("pins", "side"), ("drag", "10"), ("dt", "0.002"), ("rounds", "60")];

fn unbalanced() -> Result<f64> {
    let mut run = build("sheet:5x21", &HANGING)?;
    let rest = run.mesh().points().to_vec();
    let top = rest.iter().map(|p| p[1]).fold(f64::MIN, f64::max);
    // Turned to hang straight down from the held side.
    place(&mut run, |x| (Vector3::new(x.x, 0.0, x.y - top), x.y == top))?;
    steps(&mut run, 1500)?;
    let (at, masses) = (vectors(&run, "position")?, run.field("mass")?.values.to_vec());
    let scene = &run.program().scene;
    let pulls: Vec<([u32; 2], f64)> = (0..)
        .zip(scene.links.iter())
        .map(|(link, &corners)| {
            let [a, b] = corners.map(|v| at[v as usize]);
            let spring = scene.spring(link);
            let force = ((b - a).norm() - spring.length) / (spring.give / run.program().options.stretch);
            // Upward on what is below.
            (corners, force * ((b - a).z / (b - a).norm()).abs())
        })
        .collect();
    let weight =
        |below: f64| -> f64 { (0..rest.len()).filter(|&v| rest[v][1] < below).map(|v| 9.81 * masses[v]).sum() };
    let (whole, mut worst) = (weight(f64::MAX), 0.0_f64);
    let mut rows: Vec<f64> = rest.iter().map(|p| p[1]).collect();
    rows.sort_by(f64::total_cmp);
    rows.dedup_by(|a, b| *a - *b < 1e-9);
    for row in &rows[1..] {
        let cut = row - 1e-9;
        let crosses = |[a, b]: [u32; 2]| (rest[a as usize][1] < cut) != (rest[b as usize][1] < cut);
        let pull: f64 = pulls.iter().filter(|of| crosses(of.0)).map(|of| of.1).sum();
        worst = worst.max((weight(cut) - pull).abs() / whole);
    }
    Ok(worst)
}

fn sag() -> Result<f64> {
    let mut set = HANGING.to_vec();
    set.extend([("stretch", "1000"), ("pins", "none"), ("area-density", "0.3")]);
    let mut run = build("sheet:21x2", &set)?;
    let [low, high] = run.mesh().bounds();
    place(&mut run, |p| {
        // A start that hangs already: a parabola of about the right length.
        let x = 0.8 * p.x / (high[0] - low[0]);
        let held = p.x - low[0] < 1e-9 || high[0] - p.x < 1e-9;
        (Vector3::new(x, p.y, -0.28 * (1.0 - (x / 0.4).powi(2))), held)
    })?;
    steps(&mut run, 1500)?;
    Ok(-vectors(&run, "position")?.iter().map(|x| x.z).fold(f64::MAX, f64::min))
}

/// A strip that bends by a hundredth of its length, so weak is gravity.
const BENT: [(&str, &str); 7] = [
    ("obstacles", "none"),
    ("pins", "none"),
    ("bend", "0.01"),
    ("gravity", "0.0027"),
    ("stretch", "100"),
    ("drag", "2"),
    ("dt", "0.002"),
];
const BENT_SPEC: &str = "sheet:21x5";
const BENT_STEPS: usize = 6000;

/// Whether a vertex is one of two rows at the end of the strip, which are its clamp.
fn is_clamped(mesh: &Mesh, x: f64) -> bool {
    let [low, high] = mesh.bounds();
    x - low[0] < 1.01 / 20.0 * (high[0] - low[0])
}

fn bent_here() -> Result<Run> {
    let mut set = BENT.to_vec();
    set.push(("rounds", "20"));
    let mut run = build(BENT_SPEC, &set)?;
    let mesh = run.mesh().clone();
    place(&mut run, |x| (x, is_clamped(&mesh, x.x)))?;
    steps(&mut run, BENT_STEPS)?;
    Ok(run)
}

fn bent_by_cloth() -> Result<Simulation<Cloth, f64>> {
    let mut run =
        start::<Cloth>(generate(BENT_SPEC, 1)?, &[&BENT[..], &[("rounds", "20"), ("density", "0.3")]].concat())?;
    for v in 0..run.mesh().points().len() as u32 {
        let mut node = run.vertex(v)?;
        node.free = if is_clamped(run.mesh(), node.position.x) { 0.0 } else { 1.0 };
        run.set_vertex(v, node)?;
    }
    steps(&mut run, BENT_STEPS)?;
    Ok(run)
}

/// How far the end of a strip has come down, m.
fn deflection<P: Program>(run: Simulation<P, f64>) -> Result<f64> {
    let (points, high) = (run.mesh().points().to_vec(), run.mesh().bounds()[1]);
    let at = run.field("position")?.values;
    let ends: Vec<usize> = (0..points.len()).filter(|&v| high[0] - points[v][0] < 1e-9).collect();
    Ok(ends.iter().map(|&v| points[v][2] - at[3 * v + 2]).sum::<f64>() / ends.len() as f64)
}

/// A solid that floats without gravity.
const FLOATING: [(&str, &str); 4] = [("bodies", "1"), ("gravity", "0"), ("obstacles", "none"), ("young", "1e5")];

/// How far a twisted bar at rest is from where `softbody` has it, with steps of `dt` seconds.
fn apart_from_softbody(dt: f64) -> Result<f64> {
    let turn = 0.5;
    let twist = |low: f64, high: f64, middle: Vector3<f64>, x: Vector3<f64>| {
        let angle = turn * (x - middle).x / (0.5 * (high - low));
        let to = middle + Rotation3::from_axis_angle(&Vector3::x_axis(), angle) * (x - middle);
        (to, x.x == low || x.x == high)
    };
    let (whole, dt) = ((2.5 / dt) as usize, dt.to_string());
    let mut set = FLOATING.to_vec();
    set.extend([("drag", "16"), ("rounds", "3"), ("dt", &*dt)]);
    let mut run = build("bar:17x5x5", &set)?;
    let [low, high] = run.mesh().bounds();
    let middle = (Vector3::from(low) + Vector3::from(high)) / 2.0;
    place(&mut run, |x| twist(low[0], high[0], middle, x))?;
    steps(&mut run, whole)?;

    let set = [&FLOATING[..], &[("drag", "16"), ("rounds", "40"), ("dt", "0.005")]].concat();
    let mut other = start::<Softbody>(generate("bar:17x5x5", 1)?, &set)?;
    for v in 0..other.mesh().points().len() as u32 {
        let mut node = other.vertex(v)?;
        let (to, held) = twist(low[0], high[0], middle, node.position);
        (node.position, node.target, node.before) = (to, to, to);
        node.free = if held { 0.0 } else { 1.0 };
        other.set_vertex(v, node)?;
    }
    steps(&mut other, 500)?;
    let there = vectors(&other, "position")?;
    let apart = |(a, b): (&Vector3<f64>, &Vector3<f64>)| (a - b).norm();
    let most = vectors(&run, "position")?.iter().zip(&there).map(apart).fold(0.0, f64::max);
    let way = turn * (high[1] - low[1]) / 2.0_f64.sqrt();
    Ok(most / way)
}

fn change_of_volume() -> Result<f64> {
    let mut set = FLOATING.to_vec();
    set.extend([("poisson", "0.4999"), ("scene", "stretch"), ("amount", "0.5"), ("rounds", "20"), ("drag", "4")]);
    let mut run = build("bar:17x5x5", &set)?;
    let before = run.metric("volume")?;
    // The load is whole after half of its period.
    steps(&mut run, 1200)?;
    Ok((run.metric("volume")? / before - 1.0).abs())
}

fn flight() -> Result<[f64; 2]> {
    let mut set = FLOATING.to_vec();
    set.extend([("drag", "0"), ("rounds", "20")]);
    let mut run = build("ball:9", &set)?;
    let middle = vectors(&run, "position")?.iter().sum::<Vector3<f64>>() / run.mesh().points().len() as f64;
    acceptance::flight(&mut run, middle)
}

fn on_slope(degrees: f64, friction: f64) -> Result<Run> {
    let (slope, friction) = (degrees.to_string(), friction.to_string());
    let set = [
        ("bodies", "1"),
        ("young", "1e6"),
        ("drag", "0"),
        ("slope", &*slope),
        ("friction", &*friction),
        ("obstacles", "no-ball"),
        ("size", "0.2"),
        ("rounds", "20"),
    ];
    let mut run = build("box:5", &set)?;
    // Until it has settled.
    steps(&mut run, 300)?;
    Ok(run)
}

fn acceleration_on_slope(degrees: f64, friction: f64) -> Result<f64> {
    let mut run = on_slope(degrees, friction)?;
    let masses = run.field("mass")?.values;
    acceptance::acceleration(&mut run, &masses, 600)
}

fn speed_on_slope(degrees: f64, friction: f64) -> Result<f64> {
    let mut run = on_slope(degrees, friction)?;
    steps(&mut run, 300)?;
    Ok(acceptance::speed(&run, &run.field("mass")?.values)?.abs())
}
