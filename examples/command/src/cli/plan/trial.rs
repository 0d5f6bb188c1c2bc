//! A trial of a program on a piece of the mesh that fits into the cache: what its own kernels cost on this machine.

use super::gpus::Gpu;
#[cfg(feature = "cluster")]
use super::row::here;
use crate::cli::options::Plan;
use crate::cli::probe::{Flush, last_level_cache};
use crate::{Options, Run};
use anyhow::{Result, ensure};
#[cfg(feature = "cluster")]
use meshweft::Cluster;
use meshweft::model::{Costs, GpuCosts, Machine, Trial, Workload};
#[cfg(feature = "cluster")]
use meshweft::model::{HybridCosts, Packed};
use meshweft::{Backend, Curve, Error, Order, copy_bandwidth};
use meshweft_mesh::Mesh;
use std::time::Instant;

/// Vertices of a piece: some megabytes with their edges, more than a core's second-level cache and less than a third-level one. Fewer in
/// a debug build, which says nothing of the machine.
pub(super) const VERTICES: usize = if cfg!(debug_assertions) { 1 << 12 } else { 1 << 15 };
/// The same for what a GPU takes however few there are.
pub(super) const FEW: usize = VERTICES / 8;
/// Edges of a piece of a graph.
const EDGES: usize = 1 << 18;
/// Bytes of the last-level cache that are counted on: some systems tell of one that others share.
const LEAST_CACHE: usize = 8 << 20;
/// Seconds that each timing takes: so few that some are between whatever else the machine does. The least counts.
const TIMING_S: f64 = 0.004;
/// Timings, at least, and seconds that all of them take together, at least.
const TIMINGS: usize = 5;
const TIMINGS_S: f64 = 0.06;
/// How often each of several things that are compared is tried: what disturbs one of them often lasts longer than a try.
pub(super) const TURNS: usize = 3;

/// Threads that were held up and took more of the time of one than this had not the cores for themselves.
const NO_GAIN: f64 = 0.8;

/// A piece of a mesh like the whole: consecutive vertices of the curve, from its middle. Of a graph, which has no places, every so
/// many-th edge with its ends, so that who has many neighbors still has more than others.
pub(super) fn piece(mesh: &Mesh, vertices: usize) -> Mesh {
    let n = mesh.points().len();
    let points: Vec<u32> = if mesh.dimension() == 1 && mesh.cells().len() > EDGES {
        let stride = mesh.cells().len().div_ceil(EDGES);
        (0..mesh.cells().len()).step_by(stride).flat_map(|c| mesh.cells().corners(c)).copied().collect()
    } else if n <= vertices {
        return mesh.clone();
    } else {
        let first = (n - vertices) / 2;
        Curve::default().order(mesh.points()).order()[first..first + vertices].to_vec()
    };
    let mut points = points;
    points.sort_unstable();
    points.dedup();
    mesh.part(&points)
}

/// A piece of a large graph in which vertices have few neighbors: every so many-th vertex. None of a mesh, in which all have as many
/// everywhere.
fn sparse(mesh: &Mesh) -> Option<Mesh> {
    /// Of the neighbors of a vertex one in so many is left, at most.
    const LEFT: usize = 4;
    let vertices = mesh.points().len();
    let is_graph = mesh.dimension() == 1 && mesh.cells().len() > EDGES;
    let stride = vertices.div_ceil(VERTICES).max(LEFT);
    is_graph.then(|| mesh.part(&(0..vertices as u32).step_by(stride).collect::<Vec<_>>()))
}

/// Times the program in an order on a piece of its mesh, on one thread and on all. Takes about half a second. `is_disturbed`: set where other
/// programs had the cores.
///
/// # Errors
/// A piece that the program cannot run on, or a program of which nothing can be said; threads or memory that the system does not
/// grant.
pub(super) fn costs(
    plan: &Plan,
    mesh: &Mesh,
    order: Order,
    machine: &Machine,
    is_disturbed: &mut bool,
) -> Result<Costs> {
    let small = piece(mesh, VERTICES);
    let threads = machine.threads;
    let mut shared = start(plan, &small, order, Backend::Cpu { threads })?;
    let work = shared.workload(threads, &[1.0])?;
    ensure_rounds(plan, &work)?;
    let mut alone = start(plan, &small, order, Backend::Cpu { threads: 1 })?;
    // In turn.
    let [mut alone_s, mut shared_s] = [f64::INFINITY; 2];
    for _ in 0..TURNS {
        alone_s = alone_s.min(round_s(&mut alone)?);
        shared_s = shared_s.min(if threads > 1 { round_s(&mut shared)? } else { alone_s });
    }
    *is_disturbed |= shared.stalls() > 0 && shared_s > NO_GAIN * alone_s;
    // Starting a round from cold caches takes a while of its own, so a piece as large as the caches hold with room to spare.
    let room = last_level_cache().unwrap_or(LEAST_CACHE).clamp(LEAST_CACHE, 4 * LEAST_CACHE) / 3;
    let vertices = (room * work.vertices / work.resident_bytes.max(1)).max(VERTICES);
    let large = piece(mesh, vertices);
    let mut large = start(plan, &large, order, Backend::Cpu { threads: 1 })?;
    let bytes = large.workload(1, &[1.0])?.load().bytes;
    let cold_s = cold_s(&mut large)? * work.load().bytes / bytes.max(1.0);
    // A program that refuses it is known by its reads alone.
    let one = || Backend::Cpu { threads: 1 };
    let sparse = sparse(mesh).and_then(|mesh| tried(plan, &mesh, order, mesh.points().len(), one()).ok());
    let sparse = sparse.as_ref().map(|(work, alone_s)| (work, *alone_s));
    Ok(machine.costs(&work, &Trial { alone_s, shared_s, threads, cold_s }, sparse))
}

/// Makes sure that rounds of a program are alike.
///
/// # Errors
/// A search.
pub(super) fn ensure_rounds(plan: &Plan, work: &Workload) -> Result<()> {
    ensure!(!work.is_search, "{} looks only at what has changed: its rounds cannot be predicted", plan.entry.info.name);
    Ok(())
}

/// How values between hosts pack after some rounds on a piece of the mesh.
///
/// # Errors
/// As [`costs`].
#[cfg(feature = "cluster")]
pub(super) fn packed(plan: &Plan, mesh: &Mesh, order: Order) -> Result<Packed> {
    let mut run = start(plan, &piece(mesh, VERTICES), order, Backend::Cpu { threads: 0 })?;
    // What a program starts with is often the same everywhere.
    round_s(&mut run)?;
    Ok(run.packed()?)
}

/// The same on a GPU, on two pieces: what takes no longer for more vertices is its dispatches.
///
/// # Errors
/// As [`costs`], and a GPU that fails.
pub(super) fn gpu_costs(plan: &Plan, mesh: &Mesh, order: Order, gpu: &Gpu) -> Result<GpuCosts> {
    gpu_costs_by(plan, mesh, order, gpu, || Ok(Backend::Gpu { adapter: gpu.number }))
}

/// The same by a backend that updates on the GPU in some way.
fn gpu_costs_by(
    plan: &Plan,
    mesh: &Mesh,
    order: Order,
    gpu: &Gpu,
    backend: impl Fn() -> Result<Backend>,
) -> Result<GpuCosts> {
    let few = tried(plan, mesh, order, FEW, backend()?)?;
    let many = tried(plan, mesh, order, many(gpu), backend()?)?;
    Ok(GpuCosts::of([(&few.0, few.1), (&many.0, many.1)], copy_bandwidth(gpu.number)?))
}

/// Vertices that keep a GPU busy.
pub(super) fn many(gpu: &Gpu) -> usize {
    if gpu.is_software { VERTICES } else { 8 * VERTICES }
}

/// What a step on a piece of so many vertices asks for, and the seconds of a round of it on a backend.
///
/// # Errors
/// As [`costs`].
pub(super) fn tried(
    plan: &Plan,
    mesh: &Mesh,
    order: Order,
    vertices: usize,
    backend: Backend,
) -> Result<(Workload, f64)> {
    let piece = piece(mesh, vertices);
    let round_s = round_s(&mut start(plan, &piece, order, backend)?)?;
    let work = start(plan, &piece, order, Backend::Cpu { threads: 1 })?.workload(1, &[1.0])?;
    Ok((work, round_s))
}

/// The same on a GPU that has a share, and what a round takes beyond it where the cores have the rest: on a piece, with the share at
/// which both are busy equally long.
///
/// # Errors
/// As [`gpu_costs`].
#[cfg(feature = "cluster")]
pub(super) fn hybrid_costs(
    plan: &Plan,
    mesh: &Mesh,
    order: Order,
    gpu: &Gpu,
    (machine, costs): (&Machine, &Costs),
) -> Result<HybridCosts> {
    let costs_of_share = share_costs(plan, mesh, order, gpu)?;
    let small = piece(mesh, VERTICES);
    let cores = start(plan, &small, order, Backend::Cpu { threads: 1 })?;
    let whole = cores.workload(machine.threads, &[1.0])?;
    let share = costs_of_share.share(machine.predict(costs, &whole, here(machine.threads)).round_s(), &whole, 1.0);
    let cluster = Cluster::hybrid(gpu.number, share)?.threads(machine.threads);
    let measured_s = round_s(&mut start(plan, &small, order, Backend::Cluster(cluster))?)?;
    let work = cores.workload(machine.threads, &[1.0 - share, share])?;
    let hoped_s = costs_of_share.predict(machine, costs, &work, share).round_s();
    let trip_s = (measured_s - hoped_s).max(0.0) / work.levels().max(1.0);
    Ok(HybridCosts { trip_s, ..costs_of_share })
}

/// The same without what a border costs: a worker on the GPU with all of some pieces.
#[cfg(feature = "cluster")]
fn share_costs(plan: &Plan, mesh: &Mesh, order: Order, gpu: &Gpu) -> Result<HybridCosts> {
    let worker = || Ok(Backend::Cluster(Cluster::inside(1)?.on_gpus(gpu.number)));
    let costs = gpu_costs_by(plan, mesh, order, gpu, worker)?;
    Ok(HybridCosts { gpu: costs, trip_s: 0.0, is_software: gpu.is_software })
}

/// Starts the program on a piece, without an oracle beside it.
pub(super) fn start(plan: &Plan, piece: &Mesh, order: Order, backend: Backend) -> Result<Run> {
    let options = Options { order, backend, verify: false, timeline: false, ..plan.options.clone() };
    plan.entry.start(piece.clone(), &plan.settings, &options)
}

/// Seconds of a round of whole steps, in caches that hold all; of loops whose end is not known, of their iterations.
///
/// # Errors
/// As [`Run::step`]; settings under which nothing is swept.
pub(super) fn round_s(run: &mut Run) -> Result<f64> {
    let is_open = run.workload(1, &[1.0])?.is_open;
    if !is_open {
        return timed(run, Run::step);
    }
    let start = run.save()?;
    let timed_once = timed(run, |run| Ok(run.run_once()?));
    match &timed_once {
        // What ends iterations does not end these, and after too many of them no number may be finite.
        Err(error) if matches!(error.downcast_ref(), Some(Error::Diverged { .. } | Error::Global { .. })) => {
            run.restore(&start)?;
            timed(run, Run::step)
        }
        _ => timed_once,
    }
}

/// Seconds of a round, if `advance` takes some.
fn timed(run: &mut Run, advance: impl Fn(&mut Run) -> Result<()>) -> Result<f64> {
    let mut steps = 1;
    let mut timing = |steps: u64| -> Result<(f64, u64)> {
        let (clock, before) = (Instant::now(), run.rounds());
        (0..steps).try_for_each(|_| advance(run))?;
        run.wait()?;
        Ok((clock.elapsed().as_secs_f64(), run.rounds() - before))
    };
    loop {
        let (s, _) = timing(steps)?;
        if s >= TIMING_S / 4.0 {
            steps = ((steps as f64 * TIMING_S / s) as u64).max(1);
            break;
        }
        steps *= 2;
    }
    let (mut best_s, mut all_s, mut count) = (f64::INFINITY, 0.0, 0);
    while count < TIMINGS || all_s < TIMINGS_S {
        let (s, rounds) = timing(steps)?;
        ensure!(rounds > 0, "these settings sweep no vertex: there is nothing to predict");
        (best_s, all_s, count) = (best_s.min(s / rounds as f64), all_s + s, count + 1);
    }
    Ok(best_s)
}

/// By how much longer one round of all sweeps takes when caches hold nothing.
fn cold_s(run: &mut Run) -> Result<f64> {
    let mut flush = Flush::new()?;
    // A few iterations, each time the same.
    run.step()?;
    let start = run.save()?;
    let pass = |run: &mut Run| -> Result<f64> {
        let clock = Instant::now();
        run.run_once()?;
        Ok(clock.elapsed().as_secs_f64())
    };
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for _ in 0..TIMINGS {
        run.restore(&start)?;
        pass(run)?;
        warm.push(pass(run)?);
        flush.caches();
        cold.push(pass(run)?);
    }
    Ok((least(cold.into_iter()) - least(warm.into_iter())).max(0.0))
}

/// The least of some times: what disturbed one of them did not make the machine faster.
fn least(times: impl Iterator<Item = f64>) -> f64 {
    times.fold(f64::INFINITY, f64::min)
}
