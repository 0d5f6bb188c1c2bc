//! Acceptance: solutions that are known, and how fast errors fall as cells get smaller.

use super::{EquationKind, Poisson, PoissonOptions};
use anyhow::Result;
use meshweft::Simulation;
use meshweft_command::{Check, Tolerance};
use meshweft_mesh::generate::generate;
use meshweft_physics::Condition;
use std::f64::consts::PI;

pub(super) fn run() -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let (sines, around) =
        ("order of the error of sin πx sin πy", "periodic=x: order of the error of cos(2πx - 1) sin πy");
    for (name, coarse, fine, degree) in [
        (sines, "sheet:17", "sheet:33", 1),
        (sines, "sheet:17", "sheet:33", 2),
        (sines, "quads:17x17", "quads:33x33", 1),
        (sines, "quads:17x17", "quads:33x33", 2),
        (sines, "box:7", "box:13", 1),
        (sines, "box:5", "box:9", 2),
        (sines, "hexes:6", "hexes:11", 2),
        (around, "quads:17x17", "quads:33x33", 1),
        (around, "quads:9x9", "quads:17x17", 2),
    ] {
        let [before, after] = [error(coarse, degree, name == around)?, error(fine, degree, name == around)?];
        checks.push(Check {
            name: format!("{name}, degree {degree}, {coarse} to {fine}"),
            measured: (before / after).log2(),
            expected: degree as f64 + 1.0,
            tolerance: Tolerance::Absolute(0.15),
            unit: "",
            source: "Strang and Fix, An Analysis of the Finite Element Method, 1973, section 3.4: h^(k+1)",
        });
    }
    checks.push(Check {
        name: "through a wall of 0.5 m and 2 W/(m K), with 10 W/(m² K) to 20 K, from 100 K: flux".into(),
        measured: wall()?,
        expected: 80.0 / (0.25 + 0.1),
        tolerance: Tolerance::Relative(1e-6),
        unit: "W/m²",
        source: "Incropera and DeWitt, Fundamentals of Heat and Mass Transfer, section 3.1: resistances in series",
    });
    checks.push(Check {
        name: "middle of a disk of 0.5 m radius with a source of 1 and 0 at the rim, disk:33".into(),
        measured: disk()?,
        expected: 0.0625,
        tolerance: Tolerance::Relative(0.01),
        unit: "",
        source: "(R² - r²) / 4",
    });
    let [coarse, fine] = [cooled(0.02)?, cooled(0.01)?];
    checks.push(Check {
        name: "order of the error in time of sin πx sin πy that cools for 0.1 s, quads:33x33".into(),
        measured: (coarse / fine).log2(),
        expected: 2.0,
        tolerance: Tolerance::Absolute(0.2),
        unit: "",
        source: "Alexander, Diagonally implicit Runge–Kutta methods for stiff O.D.E.s, SIAM J. Numer. Anal. 14, 1977: dt²",
    });
    checks.push(Check {
        name: "heat of capacity 3 with a source and a wall at 7, degree 1, after 20 steps of 100 s: highest".into(),
        measured: settled(EquationKind::Heat, 100.0, 20)?,
        expected: settled(EquationKind::Poisson, 0.0, 1)?,
        tolerance: Tolerance::Relative(1e-7),
        unit: "",
        source: "the steady state",
    });
    let [quarter, value, rate] = swung()?;
    checks.push(Check {
        name: "a membrane of sin πx sin πy after a quarter of a swing of 500 steps, quads:33x33: value".into(),
        measured: quarter,
        expected: 0.0,
        tolerance: Tolerance::Absolute(1e-4),
        unit: "",
        source: "cos √2 π t",
    });
    checks.push(Check {
        name: "the same after a whole swing: value".into(),
        measured: value,
        expected: 1.0,
        tolerance: Tolerance::Relative(1e-4),
        unit: "",
        source: "cos √2 π t",
    });
    checks.push(Check {
        name: "the same after a quarter of it: rate".into(),
        measured: rate,
        expected: -std::f64::consts::SQRT_2 * PI,
        tolerance: Tolerance::Relative(1e-4),
        unit: "1/s",
        source: "-√2 π sin √2 π t",
    });
    Ok(checks)
}

/// What is to change in time, from `sin πx sin πy` on: a run of it, and the vertex in the middle.
fn in_time(equation: EquationKind, dt: f64) -> Result<(Simulation<Poisson, f64>, usize)> {
    let mut mesh = generate("quads:33x33", 1)?;
    let wave = |p: [f64; 3]| libm::sin(PI * p[0]) * libm::sin(PI * p[1]);
    let options = PoissonOptions { source: 0.0, equation, dt, tolerance: 1e-11, ..PoissonOptions::default() };
    let poisson = Poisson::with(&mut mesh, &options, |_| 0.0, |_, _| Condition::Value(0.0))?.starting(&mesh, wave);
    let far = |p: &[f64; 3]| (p[0] - 0.5).abs() + (p[1] - 0.5).abs();
    let middle = mesh.points().iter().position(|p| far(p) < 1e-9).expect("a node in the middle");
    Ok((Simulation::builder(mesh, poisson).precision::<f64>().build()?, middle))
}

/// What the middle is off by after 0.1 s.
fn cooled(dt: f64) -> Result<f64> {
    let (mut run, middle) = in_time(EquationKind::Heat, dt)?;
    (0..(0.1 / dt).round() as usize).try_for_each(|_| run.step())?;
    Ok((run.field("value")?.values[middle] - libm::exp(-2.0 * PI * PI * 0.1)).abs())
}

/// The highest value after some steps between a wall and what is insulated.
fn settled(equation: EquationKind, dt: f64, steps: usize) -> Result<f64> {
    let mut mesh = generate("sheet:9", 1)?;
    let options = PoissonOptions { degree: 1, equation, dt, capacity: 3.0, start: -2.0, ..PoissonOptions::default() };
    let wall = |_: Option<&str>, at: &meshweft_mesh::At| match at.place[0] < 1e-9 {
        true => Condition::Value(7.0),
        false => Condition::Flux(0.0),
    };
    let poisson = Poisson::with(&mut mesh, &options, |_| 0.0, wall)?;
    let mut run = Simulation::builder(mesh, poisson).precision::<f64>().build()?;
    (0..steps).try_for_each(|_| run.step())?;
    Ok(run.metric("largest value")?)
}

/// The value in the middle after a quarter of a swing and after all of it, and how quickly it rose after the quarter.
fn swung() -> Result<[f64; 3]> {
    let (mut run, middle) = in_time(EquationKind::Wave, std::f64::consts::SQRT_2 / 500.0)?;
    (0..125).try_for_each(|_| run.step())?;
    let (quarter, rate) = (run.field("value")?.values[middle], run.field("kept")?.values[middle]);
    (125..500).try_for_each(|_| run.step())?;
    Ok([quarter, run.field("value")?.values[middle], rate])
}

/// The L2 norm of what `sin πx sin πy` is off by; or `cos(2πx - 1) sin πy`, where both ends along x are one.
fn error(spec: &str, degree: usize, is_periodic: bool) -> Result<f64> {
    let mut mesh = generate(spec, 1)?;
    let elements = mesh.elements(degree)?;
    let (waves, start) = if is_periodic { (2.0, PI / 2.0 - 1.0) } else { (1.0, 0.0) };
    let wave = |p: [f64; 3]| libm::sin(waves * PI * p[0] + start) * libm::sin(PI * p[1]);
    let periodic = [is_periodic, false, false];
    let options = PoissonOptions { degree, source: 0.0, tolerance: 1e-11, periodic, ..PoissonOptions::default() };
    let source = |at: &meshweft_mesh::At| (waves * waves + 1.0) * PI * PI * wave(at.place);
    let poisson = Poisson::with(&mut mesh, &options, source, |_, at| Condition::Value(wave(at.place)))?;
    let mut run = Simulation::builder(mesh, poisson).precision::<f64>().build()?;
    run.step()?;
    // By the elements as they were: what follows has its values, too.
    let values: Vec<[f64; 1]> = run.field("value")?.values.into_iter().map(|value| [value]).collect();
    Ok(elements.cells().integral(&values, |at, [value]| (value - wave(at.place)).powi(2)).sqrt())
}

fn wall() -> Result<f64> {
    let mut mesh = generate("bar:9x3x3", 1)?;
    let [low, high] = mesh.bounds();
    mesh.set_points(mesh.points().iter().map(|p| p.map(|x| 0.5 * x / (high[0] - low[0]))).collect())?;
    let options = PoissonOptions { conductivity: 2.0, source: 0.0, ..PoissonOptions::default() };
    let poisson = Poisson::with(
        &mut mesh,
        &options,
        |_| 0.0,
        |group, _| match group {
            Some("left") => Condition::Value(100.0),
            Some("right") => Condition::Exchange { per_difference: 10.0, outside: 20.0 },
            _ => Condition::Flux(0.0),
        },
    )?;
    let mut run = Simulation::builder(mesh, poisson).precision::<f64>().build()?;
    run.step()?;
    Ok(run.field("flux")?.values[0])
}

fn disk() -> Result<f64> {
    let mut mesh = generate("disk:33", 1)?;
    let poisson = Poisson::with(&mut mesh, &PoissonOptions::default(), |_| 0.0, |_, _| Condition::Value(0.0))?;
    let mut run = Simulation::builder(mesh, poisson).precision::<f64>().build()?;
    run.step()?;
    Ok(run.metric("largest value")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_has_the_state_of_what_it_follows() {
        for (equation, dt) in [(EquationKind::Poisson, 0.0), (EquationKind::Heat, 0.01), (EquationKind::Wave, 0.02)] {
            let mut mesh = generate("quads:9x7", 1).unwrap();
            let periodic = [true, false, false];
            let options = PoissonOptions { equation, dt, periodic, ..PoissonOptions::default() };
            let source = |at: &meshweft_mesh::At| 5.0 * libm::cos(2.0 * PI * at.place[0] - 1.0);
            let made = Poisson::with(&mut mesh, &options, source, |_, _| Condition::Value(0.0)).unwrap();
            // Not the same at both ends.
            let made = made.starting(&mesh, |p| p[0] + p[1]);
            let pairs = made.followers.clone();
            assert_eq!(pairs.len(), 13);
            let mut run = Simulation::builder(mesh, made).precision::<f64>().build().unwrap();
            for _ in 0..4 {
                for field in ["value", "flux", "kept"] {
                    let meshweft_mesh::Field { components, values, .. } = run.field(field).unwrap();
                    let of = |v: u32| &values[components * v as usize..][..components];
                    // What a V-cycle keeps says nothing between steps.
                    let is_told = field != "kept" || equation == EquationKind::Wave;
                    let differs = pairs.iter().find(|pair| is_told && of(pair[0]) != of(pair[1]));
                    assert_eq!(differs, None, "{equation:?} {field}");
                }
                run.step().unwrap();
            }
            assert!(run.metric("largest flux").unwrap() > 0.1);
        }
    }
}
