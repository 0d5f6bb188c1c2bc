//! What is planned, started.

#[cfg(feature = "cluster")]
use super::share::first_share;
use crate::cli::options::{HALF, Plan};
use crate::cli::{memory, meshes};
use crate::{Options, Run};
use anyhow::Result;
use meshweft_mesh::Mesh;
use std::io::Write;
use std::time::Instant;

/// Seconds of each stage before the first step, in order.
pub(in crate::cli) type Setup = Vec<(String, f64)>;

/// Opens the mesh and builds the run; what there is to say about the file goes to `err`.
///
/// # Errors
/// A mesh that cannot be read or does not suit the example.
pub(in crate::cli) fn start(plan: &Plan, err: &mut dyn Write) -> Result<(Run, Setup)> {
    let clock = Instant::now();
    let mesh = meshes::open(&plan.mesh, plan.seed, memory::SET_UP, err)?;
    let mesh_s = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    let (options, first) = with_first_share(plan, &mesh, err)?;
    let share_s = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    let run = plan.entry.start(mesh, &plan.settings, &options)?;
    for most in run.hosts().iter().filter_map(|host| host.most).filter(|&most| most < first) {
        let most = 100.0 * most;
        writeln!(err, "hybrid: the GPU holds {most:.1} % of the mesh at most, and begins with that")?;
    }
    let built_s = clock.elapsed().as_secs_f64();
    let known_s: f64 = run.setup().iter().map(|(_, s)| s).sum();
    // What building took beyond the stages of the runtime: the scene, and the oracle if there is one.
    let mut setup = vec![("mesh".to_string(), mesh_s), ("scene".to_string(), (built_s - known_s).max(0.0))];
    if options.backend != plan.options.backend {
        setup.push(("share".to_string(), share_s));
    }
    setup.extend(run.setup().iter().map(|&(stage, s)| (stage.to_string(), s)));
    Ok((run, setup))
}

/// The options, with what a GPU beside the cores is to begin with where that was left open; and how much that is.
fn with_first_share(plan: &Plan, mesh: &Mesh, err: &mut dyn Write) -> Result<(Options, f64)> {
    #[cfg_attr(not(feature = "cluster"), expect(unused_mut, reason = "there is no share"))]
    let mut options = plan.options.clone();
    #[cfg(feature = "cluster")]
    if let Some(beside) = plan.beside.filter(|beside| beside.share.is_none())
        && let Some((share, why)) = first_share(plan, mesh, beside)
    {
        writeln!(err, "hybrid: {:.0} % of the mesh on the GPU at first, {why}", 100.0 * share)?;
        options.backend = beside.backend(share)?;
        return Ok((options, share));
    }
    #[cfg(not(feature = "cluster"))]
    let _ = (mesh, err);
    Ok((options, HALF))
}
