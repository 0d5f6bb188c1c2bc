//! Acceptance: beams, shafts and slabs against elasticity, flight and friction against mechanics.

use super::{Node, Softbody};
use crate::acceptance::{self, start, steps};
use anyhow::{Result, ensure};
use meshweft::Simulation;
use meshweft::nalgebra::{Matrix3, Rotation3, Vector3};
use meshweft_command::{Check, Tolerance};
use meshweft_mesh::generate::generate;
use meshweft_mesh::{CellKind, Cells, Mesh};
use std::f64::consts::PI;

type Run = Simulation<Softbody, f64>;

pub(super) fn run() -> Result<Vec<Check>> {
    let [moment, growth] = flight()?;
    let (long, wide) = narrowed()?;
    let (sliding, creeping) = (acceleration(on_slope(30.0, 0.3)?, 600)?, speed_after(on_slope(20.0, 0.5)?, 300)?);
    let (over, still) = (acceleration(on_plank(30.0, 0.3)?, 200)?, speed_after(on_plank(20.0, 0.5)?, 200)?);
    let angle = PI / 6.0;
    Ok(vec![
        Check {
            name: "largest distance from x = A X inside, where the boundary is there, box:6".into(),
            measured: patch()?,
            expected: 1e-9,
            tolerance: Tolerance::AtMost,
            unit: "m",
            source: "the patch test: uniform strain is in equilibrium; Irons and Razzaque, 1972",
        },
        Check {
            name: "deflection of a cantilever under its weight, bar:17x5x5 and 33x9x9, extrapolated".into(),
            measured: extrapolated([deflection("bar:17x5x5")?, deflection("bar:33x9x9")?], [4.0, 8.0]),
            expected: deflection_of_beam(),
            tolerance: Tolerance::Relative(0.02),
            unit: "m",
            source: "Timoshenko's beam, w L⁴ / (8 E I) + w L² / (2 κ G A), with Cowper's κ = 10/12 for ν = 0, 1966",
        },
        Check {
            name: "stiffness of a square bar against twist, K L / (G a⁴), bars of 4 and 8 widths, extrapolated".into(),
            measured: 1.0
                / extrapolated(
                    [twist(["bar:33x9x9", "bar:65x9x9"])?, twist(["bar:49x13x13", "bar:97x13x13"])?],
                    [8.0, 12.0],
                ),
            expected: 0.1406,
            tolerance: Tolerance::Relative(0.01),
            unit: "",
            source: "Saint-Venant's torsion: Timoshenko and Goodier, Theory of Elasticity, 1970, section 109",
        },
        Check {
            name: "width of a bar pulled to twice its length, share of that at rest, bar:33x9x9".into(),
            measured: wide,
            // The least of μ/2 (l² + 2 b² - 3) - μ (l b² - 1) + λ/2 (l b² - 1)², where λ = 5 μ for ν = 0.4.
            expected: ((1.0 + 0.2 * (1.0 - 1.0 / long)) / long).sqrt(),
            tolerance: Tolerance::Relative(0.005),
            unit: "",
            source: "least energy density: Smith, de Goes and Kim, 2018, equation 13, at stretches l, b, b",
        },
        Check {
            name: "stretch of a bar between its grips as it tears, bar:17x3x3".into(),
            measured: torn_at(0.3)?,
            expected: 0.3,
            tolerance: Tolerance::Relative(0.02),
            unit: "",
            source: "without lateral contraction the strain of a bar is the same everywhere",
        },
        Check {
            name: "momentum lost in 200 steps of free flight, share, ball:9".into(),
            measured: moment,
            expected: 1e-9,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "Newton's third law",
        },
        Check {
            name: "largest growth of energy in a step of that flight, share of the start".into(),
            measured: growth,
            expected: 1e-9,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "implicit Euler and steps to the least energy only take energy",
        },
        Check {
            name: "acceleration down a slope of 30° with friction 0.3, box:5".into(),
            measured: sliding,
            expected: 9.81 * (angle.sin() - 0.3 * angle.cos()),
            tolerance: Tolerance::Relative(0.01),
            unit: "m/s²",
            source: "Coulomb, 1785: g (sin α - μ cos α)",
        },
        Check {
            name: "speed on a slope of 20° with friction 0.5, box:5".into(),
            measured: creeping,
            expected: 1e-3,
            tolerance: Tolerance::AtMost,
            unit: "m/s",
            source: "it sticks where tan α < μ; friction is smoothed below 1 mm/s",
        },
        Check {
            name: "acceleration down a plank of 30° with friction 0.3, touching=on, box:5 on bar:5x3x2".into(),
            measured: over,
            expected: 9.81 * (angle.sin() - 0.3 * angle.cos()),
            tolerance: Tolerance::Relative(0.01),
            unit: "m/s²",
            source: "Coulomb, 1785: g (sin α - μ cos α)",
        },
        Check {
            name: "speed on a plank of 20° with friction 0.5, touching=on, box:5 on bar:5x3x2".into(),
            measured: still,
            expected: 1e-3,
            tolerance: Tolerance::AtMost,
            unit: "m/s",
            source: "it sticks where tan α < μ; friction is smoothed below 1 mm/s",
        },
    ])
}

/// A solid that floats without gravity or air unless set otherwise.
fn build(spec: &str, set: &[(&str, &str)]) -> Result<Run> {
    of(generate(spec, 1)?, set)
}

/// The same of a mesh.
fn of(mesh: Mesh, set: &[(&str, &str)]) -> Result<Run> {
    let floating = [("bodies", "1"), ("gravity", "0"), ("drag", "0"), ("obstacles", "none"), ("young", "1e6")];
    start(mesh, &[&floating, set].concat())
}

/// Moves every vertex, and holds those there for which it says so.
fn place(run: &mut Run, place: impl Fn(Vector3<f64>) -> (Vector3<f64>, bool)) -> Result<()> {
    for v in 0..run.mesh().points().len() as u32 {
        let mut node = run.vertex(v)?;
        let (to, held) = place(node.position);
        (node.position, node.target, node.before) = (to, to, to);
        node.free = if held { 0.0 } else { 1.0 };
        run.set_vertex(v, node)?;
    }
    Ok(())
}

/// Pulls a bar that narrows by nothing until it tears. Returns by what share it is longer then.
fn torn_at(limit: f64) -> Result<f64> {
    let limit = limit.to_string();
    let slow = [("scene", "stretch"), ("poisson", "0"), ("amount", "0.6"), ("period", "40"), ("tear", &*limit)];
    let mut run = build("bar:17x3x3", &[&STATIC[..], &slow].concat())?;
    let length = |run: &Run| -> Result<f64> {
        let places = run.field("position")?.values;
        let along = places.iter().step_by(3);
        Ok(along.clone().fold(f64::MIN, |a, &b| a.max(b)) - along.fold(f64::MAX, |a, &b| a.min(b)))
    };
    let rest = length(&run)?;
    while run.field("holds")?.values.iter().all(|&held| held == 0.0) {
        ensure!(run.steps() < 4000, "it does not tear");
        run.step()?;
    }
    Ok(length(&run)? / rest - 1.0)
}

/// What two meshes say of one without end: errors fall with the square of the spacing. `steps`: how many each has across.
fn extrapolated([coarse, fine]: [f64; 2], steps: [f64; 2]) -> f64 {
    let [coarser, finer] = steps.map(|steps| steps * steps);
    (finer * fine - coarser * coarse) / (finer - coarser)
}

/// Air so thick that what is left of a swing after two seconds does not count.
const STATIC: [(&str, &str); 3] = [("drag", "16"), ("dt", "0.005"), ("rounds", "20")];
const STATIC_STEPS: usize = 400;

fn patch() -> Result<f64> {
    let mut run = build("box:6", &[("dt", "1"), ("rounds", "100"), ("drag", "10")])?;
    let boundary = run.mesh().boundary();
    let at: Vec<Vector3<f64>> = run.mesh().points().iter().map(|&p| p.into()).collect();
    let strained = |x: Vector3<f64>| Matrix3::new(1.3, 0.2, 0.0, -0.1, 0.8, 0.1, 0.05, 0.3, 1.1) * x;
    let inside = |x: Vector3<f64>| !boundary[at.iter().position(|&p| p == x).expect("it is one of them")];
    // Those inside start where they were at rest.
    place(&mut run, |x| if inside(x) { (x, false) } else { (strained(x), true) })?;
    steps(&mut run, 20)?;
    let places = run.field("position")?.values;
    let off = |(place, &x): (&[f64], &Vector3<f64>)| (Vector3::from_column_slice(place) - strained(x)).norm();
    Ok(places.chunks_exact(3).zip(&at).map(off).fold(0.0, f64::max))
}

/// Gravity so weak that a beam bends by a thousandth of its length.
const WEAK: f64 = 0.04;

fn deflection(spec: &str) -> Result<f64> {
    let mut run = build(spec, &[("gravity", &WEAK.to_string()), ("poisson", "0"), STATIC[0], STATIC[1], STATIC[2]])?;
    let [low, high] = run.mesh().bounds();
    place(&mut run, |x| (x, x.x == low[0]))?;
    let before = tip(&mut run, high[0])?;
    steps(&mut run, STATIC_STEPS)?;
    Ok(before - tip(&mut run, high[0])?)
}

/// The mean height of the vertices that were at this end.
fn tip(run: &mut Run, end: f64) -> Result<f64> {
    let is_end: Vec<bool> = run.mesh().points().iter().map(|p| p[0] == end).collect();
    let places = run.field("position")?.values;
    let heights: Vec<f64> = (0..is_end.len()).filter(|&v| is_end[v]).map(|v| places[3 * v + 2]).collect();
    Ok(heights.iter().sum::<f64>() / heights.len() as f64)
}

fn deflection_of_beam() -> f64 {
    let (young, width, weight) = (1e6, 0.25f64, 1000.0 * WEAK);
    let (area, inertia) = (width * width, width.powi(4) / 12.0);
    weight * area / (8.0 * young * inertia) + weight / (2.0 * (10.0 / 12.0) * (young / 2.0))
}

/// By how much the flexibility of bars against twist, `G a³ / K`, grows with their length over their width `a`: what holds their ends
/// counts for both alike.
fn twist(bars: [&str; 2]) -> Result<f64> {
    let [short, long] = [flexibility(bars[0], 4.0)?, flexibility(bars[1], 8.0)?];
    Ok((long - short) / 4.0)
}

fn flexibility(spec: &str, slenderness: f64) -> Result<f64> {
    let mut run = build(spec, &[("poisson", "0.3"), STATIC[0], ("dt", "0.02"), ("rounds", "40")])?;
    let ([low, high], center) = (run.mesh().bounds(), run.program().scene.center);
    let (middle, half, angle) = (Vector3::from(center), (high[0] - low[0]) / 2.0, 0.02);
    place(&mut run, |x| {
        let turn = Rotation3::from_axis_angle(&Vector3::x_axis(), angle * (x - middle).x / half);
        (middle + turn * (x - middle), x.x == low[0] || x.x == high[0])
    })?;
    steps(&mut run, 100)?;
    let (shear, width) = (1e6 / 2.6, 1.0 / slenderness);
    // The ends are turned by two angles against each other: the energy is K φ² / 2.
    let stiffness = 2.0 * run.metric("elastic energy")? / (4.0 * angle * angle);
    Ok(shear * width.powi(3) / stiffness)
}

/// How long and how wide the middle of a bar is, over what it is at rest, that is pulled to twice its length.
fn narrowed() -> Result<(f64, f64)> {
    let mut run = build("bar:33x9x9", &STATIC)?;
    let ([low, high], center) = (run.mesh().bounds(), run.program().scene.center);
    let middle = Vector3::from(center);
    place(&mut run, |x| {
        let from = x - middle;
        let is_end = x.x == low[0] || x.x == high[0];
        let narrow = if is_end { 1.0 } else { 0.8 };
        (middle + Vector3::new(2.0 * from.x, narrow * from.y, narrow * from.z), is_end)
    })?;
    steps(&mut run, STATIC_STEPS)?;
    // A cube in the middle of the bar, by the middles of its sides.
    let side = |axis: usize, sign: f64| {
        let at = middle + Vector3::ith(axis, sign * (high[1] - low[1]) / 2.0);
        let near = |p: &[f64; 3]| (Vector3::from(*p) - at).norm() < 1e-9;
        run.mesh().points().iter().position(near).expect("the cube has a vertex there") as u32
    };
    let extent = |axis: usize| -> Result<f64> {
        let [low_side, high_side] = [side(axis, -1.0), side(axis, 1.0)];
        Ok((run.vertex(high_side)?.position - run.vertex(low_side)?.position).norm() / (high[1] - low[1]))
    };
    Ok((extent(0)?, extent(1)?))
}

fn flight() -> Result<[f64; 2]> {
    let mut run = build("ball:9", &[("rounds", "60"), ("young", "1e5")])?;
    let middle = Vector3::from(run.program().scene.center);
    acceptance::flight(&mut run, middle)
}

fn on_slope(degrees: f64, friction: f64) -> Result<Run> {
    let (slope, friction) = (degrees.to_string(), friction.to_string());
    let set = [
        ("gravity", "9.81"),
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

/// A block on a plank that is held.
fn on_plank(degrees: f64, friction: f64) -> Result<Run> {
    let [plank, block] = [generate("bar:5x3x2", 1)?, generate("box:5", 1)?];
    let n = plank.points().len() as u32;
    let top = plank.bounds()[1][2];
    // The block begins near the upper end, a little farther from the plank than it keeps: what is nearer at rest repels less.
    let over = block.points().iter().map(|&[x, y, z]| [0.2 * x + 0.1, 0.16 * y + 0.02, 0.16 * z + top + 0.0065]);
    let points = plank.points().iter().copied().chain(over).collect();
    let mut tets = plank.tets().to_vec();
    tets.extend(block.tets().iter().map(|corners| corners.map(|v| v + n)));
    let mesh = Mesh::new(points, Cells::of(CellKind::Tet, tets.into_flattened()))?;
    let (slope, friction) = (degrees.to_string(), friction.to_string());
    let set = [("gravity", "9.81"), ("slope", &*slope), ("friction", &*friction), ("touching", "on"), ("rounds", "20")];
    let mut run = of(mesh, &set)?;
    for v in 0..n {
        let node = run.vertex(v)?;
        run.set_vertex(v, Node { free: 0.0, falling: 0.0, ..node })?;
    }
    // Until it has settled.
    steps(&mut run, 100)?;
    Ok(run)
}

/// Masses of what moves, kg.
fn moving(run: &Run) -> Result<Vec<f64>> {
    let [masses, free] = [run.field("mass")?.values, run.field("free")?.values];
    Ok(masses.iter().zip(&free).map(|(mass, free)| mass * free).collect())
}

fn acceleration(mut run: Run, count: usize) -> Result<f64> {
    let masses = moving(&run)?;
    acceptance::acceleration(&mut run, &masses, count)
}

fn speed_after(mut run: Run, count: usize) -> Result<f64> {
    steps(&mut run, count)?;
    Ok(acceptance::speed(&run, &moving(&run)?)?.abs())
}
