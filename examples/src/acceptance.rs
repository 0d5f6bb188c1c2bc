//! What acceptance checks of several examples have in common: runs in 64 bits, and what mechanics says of bodies.

use anyhow::Result;
use meshweft::nalgebra::Vector3;
use meshweft::{Mesh, Order, Program, Simulation};
use meshweft_command::{Example, Settings};

/// An example on a mesh, with these settings and for the rest its own.
///
/// # Errors
/// A setting or mesh that it does not take.
pub(crate) fn start<E: Example>(mut mesh: Mesh, set: &[(&str, &str)]) -> Result<Simulation<E, f64>> {
    let mut settings = Settings::new(E::INFO.settings);
    set.iter().try_for_each(|(name, text)| settings.set(E::INFO.settings, name, text))?;
    let example = E::new(&mut mesh, &settings, Order::default())?;
    Ok(Simulation::builder(mesh, example).precision::<f64>().build()?)
}

/// # Errors
/// That of a step.
pub(crate) fn steps<P: Program>(run: &mut Simulation<P, f64>, count: usize) -> Result<()> {
    (0..count).try_for_each(|_| Ok(run.step()?))
}

/// What is lost of the momentum of a body in 200 steps of free flight, as a share, and by how much its energy grows in one of them at
/// most, as a share of that at the start. It is thrown, spun about `middle` and stretched.
///
/// # Errors
/// That of a step.
pub(crate) fn flight<P: Program>(run: &mut Simulation<P, f64>, middle: Vector3<f64>) -> Result<[f64; 2]> {
    let from: Vec<Vector3<f64>> = vectors(run, "position")?.iter().map(|at| at - middle).collect();
    let stretched = from.iter().flat_map(|from| (middle + Vector3::new(1.2 * from.x, 0.9 * from.y, from.z)).data.0[0]);
    run.set_field("position", &stretched.collect::<Vec<f64>>())?;
    let spin = |from: &Vector3<f64>| Vector3::new(1.0, 0.3, 0.0) + Vector3::new(0.0, 1.0, 2.0).cross(from);
    run.set_field("velocity", &from.iter().flat_map(|from| spin(from).data.0[0]).collect::<Vec<f64>>())?;
    let energy = |run: &mut Simulation<P, f64>| -> Result<f64> {
        Ok(run.metric("kinetic energy")? + run.metric("elastic energy")?)
    };
    let masses = run.field("mass")?.values;
    let (start, all) = (momentum(run, &masses)?, energy(run)?);
    let (mut before, mut growth) = (all, f64::NEG_INFINITY);
    for _ in 0..200 {
        run.step()?;
        let now = energy(run)?;
        growth = growth.max((now - before) / all);
        before = now;
    }
    Ok([(momentum(run, &masses)? - start).norm() / start.norm(), growth])
}

/// The acceleration of a body along x over so many steps, m/s². `masses`: of its vertices, kg, 0 of those that are no part of it.
///
/// # Errors
/// That of a step.
pub(crate) fn acceleration<P: Program>(run: &mut Simulation<P, f64>, masses: &[f64], count: usize) -> Result<f64> {
    let (before, start) = (speed(run, masses)?, run.time());
    steps(run, count)?;
    Ok((speed(run, masses)? - before) / (run.time() - start))
}

/// The velocity of the center of mass of a body along x, m/s.
///
/// # Errors
/// That of a step before.
pub(crate) fn speed<P: Program>(run: &Simulation<P, f64>, masses: &[f64]) -> Result<f64> {
    Ok(momentum(run, masses)?.x / masses.iter().sum::<f64>())
}

fn momentum<P: Program>(run: &Simulation<P, f64>, masses: &[f64]) -> Result<Vector3<f64>> {
    Ok(vectors(run, "velocity")?.into_iter().zip(masses).map(|(v, &m)| v * m).sum())
}

/// A field of vectors.
///
/// # Errors
/// That of a step before.
pub(crate) fn vectors<P: Program>(run: &Simulation<P, f64>, name: &str) -> Result<Vec<Vector3<f64>>> {
    Ok(run.field(name)?.values.chunks_exact(3).map(Vector3::from_column_slice).collect())
}
