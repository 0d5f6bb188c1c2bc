//! Acceptance: what does not touch the air leaves it alone, it is stopped as theory says, and what flies slower than sound has no drag.

use super::{AirOptions, Airfoil, Method};
use anyhow::Result;
use meshweft::Simulation;
use meshweft_command::{Check, Tolerance};
use meshweft_mesh::generate::generate;
use meshweft_physics::AIR;

pub(super) fn run() -> Result<Vec<Check>> {
    let most = |name: &str, measured, expected, source| Check {
        name: name.into(),
        measured,
        expected,
        tolerance: Tolerance::AtMost,
        unit: "",
        source,
    };
    let within = |name: &str, measured, expected, share, source| Check {
        name: name.into(),
        measured,
        expected,
        tolerance: Tolerance::Relative(share),
        unit: "",
        source,
    };
    let subsonic = AirOptions { mach: 0.5, angle: 0.0, ..AirOptions::default() };
    let [mut coarse, mut fine] = [flown("airfoil:64x32", &subsonic, 100)?, flown("airfoil:128x64", &subsonic, 150)?];
    let stopped = fine.field("pressure_coefficient")?.values.into_iter().fold(0.0, f64::max);
    let drags = [coarse.metric("drag coefficient")?, fine.metric("drag coefficient")?];
    let square: f64 = 0.25;
    let rise = (1.0 + 0.5 * (AIR - 1.0) * square).powf(AIR / (AIR - 1.0)) - 1.0;
    let mut transonic = flown("airfoil:128x64", &AirOptions::default(), 200)?;
    let [in_place, explicit] = [Method::Sweeps, Method::Explicit].map(residual);
    let isentropic = "Anderson, Modern Compressible Flow, section 3.5";
    let agard = "AGARD-AR-211, 1985, test case 01: the middle of what its contributors found";
    Ok(vec![
        most(
            "largest change of air that nothing stands in, sheet:17",
            free_stream()?,
            1e-13,
            "a cell is closed: Σ area × normal = 0",
        ),
        within(
            "pressure coefficient where air of Mach 0.5 is stopped, airfoil:128x64",
            stopped,
            2.0 * rise / (AIR * square),
            0.05,
            isentropic,
        ),
        most("drag at Mach 0.5, which is 0 in theory, airfoil:128x64", drags[1].abs(), 3e-3, "d'Alembert, 1752"),
        most(
            "the same over that of airfoil:64x32: a quarter where the order is second",
            drags[1] / drags[0],
            0.45,
            "second order",
        ),
        most("lift at no angle", fine.metric("lift coefficient")?.abs(), 1e-6, "symmetry"),
        within("lift at Mach 0.8 and 1.25°, airfoil:128x64", transonic.metric("lift coefficient")?, 0.357, 0.06, agard),
        within(
            "drag at Mach 0.8 and 1.25°, airfoil:128x64",
            transonic.metric("drag coefficient")?,
            0.0232,
            0.06,
            agard,
        ),
        most(
            "residual of sweeps over that of explicit steps, as many looks at all faces",
            in_place? / explicit?,
            0.1,
            "Yoon and Jameson, 1988",
        ),
    ])
}

fn build(spec: &str, options: &AirOptions) -> Result<Simulation<Airfoil, f64>> {
    let mut mesh = generate(spec, 1)?;
    let air = Airfoil::with(&mut mesh, options)?;
    Ok(Simulation::builder(mesh, air).precision::<f64>().build()?)
}

fn flown(spec: &str, options: &AirOptions, steps: usize) -> Result<Simulation<Airfoil, f64>> {
    let mut air = build(spec, options)?;
    (0..steps).try_for_each(|_| air.step())?;
    Ok(air)
}

/// How far a density gets from 1 in air that flows over a sheet.
fn free_stream() -> Result<f64> {
    let air = flown("sheet:17", &AirOptions { angle: 30.0, ..AirOptions::default() }, 20)?;
    Ok(air.field("density")?.values.into_iter().fold(0.0, |most: f64, density| most.max((density - 1.0).abs())))
}

/// What is left to do after 1000 rounds in place, or as many as cost the same otherwise: five looks at all faces against three.
fn residual(method: Method) -> Result<f64> {
    let steps = match method {
        Method::Sweeps => 100,
        Method::Explicit => 167,
    };
    let courant = if method == Method::Sweeps { 1.0 } else { 0.5 };
    let options = AirOptions { method, courant, ..AirOptions::default() };
    Ok(flown("airfoil:96x48", &options, steps)?.metric("residual")?)
}
