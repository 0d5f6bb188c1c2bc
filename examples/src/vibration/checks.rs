//! Acceptance: beams that bend and stretch, as theory has them.

use super::{Vibration, VibrationOptions};
use anyhow::Result;
use meshweft::{Mesh, Simulation};
use meshweft_command::{Check, Tolerance};
use meshweft_mesh::At;
use meshweft_mesh::generate::generate;
use meshweft_physics::Elastic;
use std::f64::consts::TAU;

/// kg/m³.
const DENSITY: f64 = 1000.0;

pub(super) fn run() -> Result<Vec<Check>> {
    let steel = Elastic { young: 1e9, poisson: 0.3, is_thin: true };
    let (slender, length) = (beam("hexes:31x3x3", [20.0, 1.0, 1.0])?, 20.0);
    let bent = modes(slender, steel, 3, |at| [at.normal[0] < -0.5; 3])?;
    // Of the roots of cos k cosh k = -1; the end that is held, and shear, change it a little.
    let theory = |root: f64| root * root / (TAU * length * length) * (steel.young / (12.0 * DENSITY)).sqrt();
    let mut checks: Vec<Check> = [("lowest", 0, 1.875_104, 0.01), ("second lowest", 2, 4.694_091, 0.02)]
        .map(|(name, mode, root, share)| Check {
            name: format!("{name} frequency of a cantilever 20 times as long as high, hexes of degree 2"),
            measured: bent[mode],
            expected: theory(root),
            tolerance: Tolerance::Relative(share),
            unit: "Hz",
            source: "Rao, Mechanical Vibrations, 2017, section 8.5",
        })
        .into();
    checks.push(Check {
        name: "the two lowest of it bend along both axes alike: difference over either".into(),
        measured: (bent[1] / bent[0] - 1.0).abs(),
        expected: 1e-6,
        tolerance: Tolerance::AtMost,
        unit: "",
        source: "symmetry",
    });
    // Nothing gets thinner: it stretches as a line does.
    let cork = Elastic { poisson: 0.0, ..steel };
    let expected = (cork.young / DENSITY).sqrt() / (4.0 * 4.0);
    let all = modes(beam("quads:17x5", [4.0, 1.0, 0.0])?, cork, 4, |at| [at.normal[0] < -0.5, false, false])?;
    let nearest = all.iter().copied().min_by(|a, b| (a - expected).abs().total_cmp(&(b - expected).abs()));
    checks.push(Check {
        name: "lowest frequency of a rod that stretches, c / 4 l, quads of degree 2".into(),
        measured: nearest.unwrap_or(f64::NAN),
        expected,
        tolerance: Tolerance::Relative(1e-5),
        unit: "Hz",
        source: "Rao, Mechanical Vibrations, 2017, section 8.3",
    });
    Ok(checks)
}

/// A mesh brought to these lengths, from 0 on.
fn beam(spec: &str, lengths: [f64; 3]) -> Result<Mesh> {
    let mut mesh = generate(spec, 1)?;
    let [low, high] = mesh.bounds();
    let place = |k: usize, x: f64| if lengths[k] > 0.0 { lengths[k] * (x - low[k]) / (high[k] - low[k]) } else { 0.0 };
    mesh.set_points(mesh.points().iter().map(|p| [0, 1, 2].map(|k| place(k, p[k]))).collect())?;
    Ok(mesh)
}

/// The lowest frequencies of a beam, Hz.
fn modes(mut mesh: Mesh, material: Elastic, count: usize, held: impl Fn(&At) -> [bool; 3] + Sync) -> Result<Vec<f64>> {
    let options = VibrationOptions { material, density: DENSITY, ..VibrationOptions::default() };
    // What stretches alone is held at a corner against moving across, too.
    let made = Vibration::with(&mut mesh, &options, |_, at| {
        let [x, y, z] = held(at);
        [x, y || (x && at.place[1] < 1e-9), z]
    })?;
    let mut run = Simulation::builder(mesh, made).precision::<f64>().build()?;
    (0..count)
        .map(|_| {
            run.step()?;
            Ok(run.globals()?.frequency)
        })
        .collect()
}
