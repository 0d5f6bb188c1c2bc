//! Acceptance: patches, beams and a plate with a hole, as theory has them.

use super::{Elasticity, ElasticityOptions};
use anyhow::Result;
use meshweft::{Mesh, Simulation};
use meshweft_command::{Check, Tolerance};
use meshweft_mesh::At;
use meshweft_mesh::generate::generate;
use meshweft_physics::{Elastic, Support};

pub(super) fn run() -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for (spec, degree) in [("ball:9", 1), ("box:4", 2), ("hexes:4", 1), ("sheet:9", 1), ("quads:9x9", 2)] {
        checks.push(Check {
            name: format!("patch test, degree {degree}, {spec}: stress off by, over its size"),
            measured: patch(spec, degree)?,
            expected: 1e-8,
            tolerance: Tolerance::AtMost,
            unit: "",
            source: "Irons and Razzaque, Experience with the patch test, 1972",
        });
    }
    let [slender, short] = [cantilever(10.0)?, cantilever(4.0)?];
    // The end that is held cannot get thicker or thinner, which theory leaves out.
    for (name, [measured, expected], share) in [("10", slender, 0.01), ("4", short, 0.03)] {
        checks.push(Check {
            name: format!("deflection of a cantilever {name} times as long as high, hexes of degree 2"),
            measured,
            expected,
            tolerance: Tolerance::Relative(share),
            unit: "m",
            source: "Timoshenko, On the correction for shear, 1921, with the shear coefficient of Cowper, 1966",
        });
    }
    for (spec, share) in [("plate:16x24", 0.02), ("plate:32x48", 0.005)] {
        checks.push(Check {
            name: format!("largest stress at a hole over that far away, {spec}"),
            measured: hole(spec)?,
            expected: 3.0,
            tolerance: Tolerance::Relative(share),
            unit: "",
            source: "Kirsch, Die Theorie der Elastizität und die Bedürfnisse der Festigkeitslehre, 1898",
        });
    }
    Ok(checks)
}

fn solved(
    mut mesh: Mesh,
    options: &ElasticityOptions,
    support: impl Fn(Option<&str>, &At) -> Support + Sync,
) -> Result<Simulation<Elasticity, f64>> {
    let made = Elasticity::with(&mut mesh, options, support)?;
    let mut run = Simulation::builder(mesh, made).precision::<f64>().build()?;
    run.step()?;
    Ok(run)
}

/// A body whose boundary is displaced linearly: so is its inside, and the stress is the same everywhere.
fn patch(spec: &str, degree: usize) -> Result<f64> {
    let mesh = generate(spec, 3)?;
    let is_flat = mesh.dimension() == 2;
    let slopes = [[1e-3, 3e-4, 5e-4], [1e-4, -5e-4, 2e-4], [1e-4, 0.0, 7e-4]];
    let material = Elastic { young: 200e9, poisson: 0.3, is_thin: false };
    let options = ElasticityOptions { degree, material, tolerance: 1e-11, ..ElasticityOptions::default() };
    let run = solved(mesh, &options, |_, at| Support {
        held: std::array::from_fn(|i| {
            let moved = (0..3).map(|j| slopes[i][j] * at.place[j]).sum();
            Some(if is_flat && i == 2 { 0.0 } else { moved })
        }),
        ..Support::default()
    })?;
    let [bulk, shear] = material.lame(3);
    let slope = |i: usize, j: usize| if is_flat && (i == 2 || j == 2) { 0.0 } else { slopes[i][j] };
    let stress = |i: usize, j: usize| {
        shear * (slope(i, j) + slope(j, i)) + if i == j { bulk * (0..3).map(|k| slope(k, k)).sum::<f64>() } else { 0.0 }
    };
    let expected = [stress(0, 0), stress(1, 1), stress(2, 2), stress(0, 1), stress(1, 2), stress(0, 2)];
    let size = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let all = run.field("stress")?.values;
    let off = all.chunks_exact(6).flat_map(|own| own.iter().zip(expected).map(|(a, b)| (a - b).abs()));
    Ok(off.fold(0.0, f64::max) / size)
}

/// How far a beam, 1 m high, is bent by a load at its end, and what theory says.
fn cantilever(length: f64) -> Result<[f64; 2]> {
    let mut mesh = generate(&format!("hexes:{}x3x3", 2 * length as usize + 1), 1)?;
    let [low, high] = mesh.bounds();
    let placed = |p: &[f64; 3]| {
        let at = |k: usize, length: f64| length * (p[k] - low[k]) / (high[k] - low[k]);
        [at(0, length), at(1, 1.0), at(2, 1.0)]
    };
    mesh.set_points(mesh.points().iter().map(placed).collect())?;
    let material = Elastic { young: 1e9, poisson: 0.3, is_thin: true };
    let options = ElasticityOptions { material, ..ElasticityOptions::default() };
    let traction = -1000.0;
    let run = solved(mesh, &options, |_, at| {
        if at.normal[0] < -0.5 {
            Support { held: [Some(0.0); 3], ..Support::default() }
        } else if at.normal[0] > 0.5 {
            Support { pulled: [0.0, 0.0, traction], ..Support::default() }
        } else {
            Support::default()
        }
    })?;
    let displaced = run.field("displacement")?.values;
    let ends: Vec<f64> = run
        .mesh()
        .points()
        .iter()
        .zip(displaced.chunks_exact(3))
        .filter(|(p, _)| (p[0] - length).abs() < 1e-9)
        .map(|(_, u)| u[2])
        .collect();
    let bent = ends.iter().sum::<f64>() / ends.len() as f64;
    let shear = material.young / (2.0 * (1.0 + material.poisson));
    let coefficient = 10.0 * (1.0 + material.poisson) / (12.0 + 11.0 * material.poisson);
    let expected = traction * (length.powi(3) / (3.0 * material.young / 12.0) + length / (coefficient * shear));
    Ok([bent, expected])
}

/// A plate with a hole that is pulled with 1 along x far away: its outer sides are pulled as an endless plate pulls there.
fn hole(spec: &str) -> Result<f64> {
    let radius: f64 = 0.1;
    let traction = |at: &At| {
        let [x, y, _] = at.place;
        let (r2, angle) = (x * x + y * y, libm::atan2(y, x));
        let (near, nearer) = (radius * radius / r2, 1.5 * (radius * radius / r2).powi(2));
        let [cos2, sin2, cos4, sin4] =
            [libm::cos(2.0 * angle), libm::sin(2.0 * angle), libm::cos(4.0 * angle), libm::sin(4.0 * angle)];
        let xx = 1.0 - near * (1.5 * cos2 + cos4) + nearer * cos4;
        let yy = -near * (0.5 * cos2 - cos4) - nearer * cos4;
        let xy = -near * (0.5 * sin2 + sin4) + nearer * sin4;
        let [nx, ny, _] = at.normal;
        [xx * nx + xy * ny, xy * nx + yy * ny, 0.0]
    };
    let material = Elastic { young: 1000.0, poisson: 0.3, is_thin: true };
    let options = ElasticityOptions { material, tolerance: 1e-10, ..ElasticityOptions::default() };
    let run = solved(generate(spec, 1)?, &options, |group, at| match group {
        Some("hole") => Support::default(),
        // Held so that it neither moves nor turns: in theory nothing moves across the axes.
        _ => {
            let [x, y, _] = at.place;
            let held = [(x.abs() < 1e-12).then_some(0.0), (y.abs() < 1e-12).then_some(0.0), None];
            Support { held, pulled: traction(at) }
        }
    })?;
    let stresses = run.field("stress")?.values;
    Ok(stresses.chunks_exact(6).map(|stress| stress[0]).fold(0.0, f64::max))
}
