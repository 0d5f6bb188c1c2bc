//! One measurement: trials of one run.

use crate::cli::hosts;
use crate::cli::options::Plan;
use crate::cli::plan::{Setup, start};
use crate::cli::probe::Machine;
use crate::{Entry, Options, Run};
use anyhow::{Result, bail};
use meshweft::Order;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::time::Instant;

/// Steps before anything is measured: caches are filled, and the digest is that after them, whatever the machine.
const WARM_UP: u64 = 2;

/// How often and how long a run is measured.
#[derive(Clone, Copy, Debug)]
pub struct Trials {
    /// Trials, of which the median counts.
    pub count: u32,
    /// Time steps of a trial; as many as take [`Trials::seconds`] without.
    pub steps: Option<u64>,
    /// Seconds of a trial, at least.
    pub seconds: f64,
}

/// What came out: the object of `--json`, and the source of all tables.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The name of the program.
    pub example: &'static str,
    /// What its mesh was generated or read from.
    pub mesh: String,
    /// Vertices of the mesh.
    pub vertices: usize,
    pub(super) cells: usize,
    /// Edges of the graph, both directions of each.
    pub directed_edges: usize,
    /// The order, with the size of blocks.
    #[serde(serialize_with = "as_word")]
    pub order: Order,
    /// Tasks of the schedule.
    pub tasks: usize,
    pub(super) backend: &'static str,
    /// Threads that updated.
    pub threads: usize,
    /// Vertices that a core updates side by side.
    pub(super) width: usize,
    /// Updates of a round that must follow one another.
    pub(super) critical_path: usize,
    /// The precision: `f32` or `f64`.
    pub precision: &'static str,
    /// Trials, of which the median counts.
    pub trials: u32,
    pub(super) steps: u64,
    /// Rounds of sweeps a trial.
    pub rounds: u64,
    /// Time of an update, ns.
    pub ns_per_update: f64,
    /// The same of the quickest trial, ns.
    pub ns_per_update_min: f64,
    /// The same of the slowest, ns.
    pub ns_per_update_max: f64,
    /// Time of a directed edge, ns.
    pub ns_per_edge: f64,
    pub(super) ns_per_edge_min: f64,
    pub(super) ns_per_edge_max: f64,
    pub(super) updates_per_s: f64,
    /// Bytes that the update of one vertex must move at least, see [`AnySimulation::round_bytes`](meshweft::AnySimulation::round_bytes).
    pub moved_bytes_per_update: f64,
    /// Those bytes over the time of an update, GB/s.
    pub gb_per_s: f64,
    /// That over the bandwidth of the probe's read.
    pub read_share: Option<f64>,
    pub(super) setup_s: Map<String, Value>,
    /// Rounds that would have taken as long as setting up.
    pub setup_rounds: f64,
    /// Memory of the run, bytes a vertex.
    pub bytes_per_vertex: f64,
    /// The same, bytes a directed edge.
    pub bytes_per_edge: f64,
    /// The digest of the state after the first two steps.
    pub digest: String,
    pub(super) digest_steps: u64,
    pub(super) machine: Option<Machine>,
    pub(super) gpu: Option<OnGpu>,
    /// What each of several hosts has of the mesh.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) hosts: Vec<Value>,
}

/// What a GPU did in the trials.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OnGpu {
    pub(super) adapter: String,
    pub(super) dispatches_per_round: f64,
    pub(super) submissions_per_step: f64,
    /// Share of the time in which it was at work, if it has a clock.
    pub(super) busy_share: Option<f64>,
    /// What it moves in a plain copy.
    pub(super) copy_gb_per_s: Option<f64>,
    /// What the sweep moves, over that.
    pub(super) copy_share: Option<f64>,
}

/// Measures a program on a mesh that is generated, or read from a file. `set`: names and values of settings that are not its own.
///
/// # Errors
/// A setting that it does not have; a mesh for which there is no memory, or that the program does not run on; a run that fails, or sweeps no vertex.
pub fn measure(
    entry: &'static Entry,
    mesh: &str,
    set: &[(&str, &str)],
    options: Options,
    how: Trials,
) -> Result<Report> {
    let mut plan = Plan::new(entry, mesh.into(), options);
    set.iter().try_for_each(|(name, value)| plan.settings.set(entry.info.settings, name, value))?;
    let (mut run, setup) = start(&plan, &mut std::io::sink())?;
    trials(&plan, &mut run, setup, how)
}

/// Runs the trials.
pub(super) fn trials(plan: &Plan, run: &mut Run, setup: Setup, trials: Trials) -> Result<Report> {
    steps(run, WARM_UP)?;
    let digest = run.digest()?;
    let count = match trials.steps {
        Some(count) => count,
        None => enough_steps(run, trials.seconds)?,
    };
    let (rounds, counters) = (run.rounds(), run.gpu_counters());
    let mut times = (0..trials.count).map(|_| steps(run, count)).collect::<Result<Vec<f64>>>()?;
    let rounds = (run.rounds() - rounds) / u64::from(trials.count);
    if rounds == 0 {
        bail!("these settings of {} sweep no vertex: there is nothing to measure", plan.entry.info.name);
    }
    let gpu = run.adapter().zip(counters).zip(run.gpu_counters()).map(|((adapter, before), after)| OnGpu {
        adapter: adapter.name,
        dispatches_per_round: (after.dispatches - before.dispatches) as f64 / (rounds * u64::from(trials.count)) as f64,
        submissions_per_step: (after.submissions - before.submissions) as f64
            / (count * u64::from(trials.count)) as f64,
        busy_share: adapter.timestamps.then(|| (after.busy_s - before.busy_s) / times.iter().sum::<f64>()),
        copy_gb_per_s: None,
        copy_share: None,
    });
    times.sort_unstable_by(f64::total_cmp);
    // Of an even number of trials, the mean of the two in the middle.
    let middle = (times[(times.len() - 1) / 2] + times[times.len() / 2]) / 2.0;
    let (low, high) = (times[0], times[times.len() - 1]);
    let (vertices, directed_edges) = (run.mesh().points().len(), run.directed_edges());
    let update = |s: f64| 1e9 * s / (rounds as f64 * vertices as f64);
    // Without an edge there is no time of one; the quotient is then infinite, which JSON shows as null.
    let edge = |s: f64| 1e9 * s / (rounds as f64 * directed_edges as f64);
    let moved = run.round_bytes() as f64 / vertices as f64;
    let setup_s: f64 = setup.iter().map(|(_, s)| s).sum();
    Ok(Report {
        example: plan.entry.info.name,
        mesh: plan.mesh.to_string_lossy().into_owned(),
        vertices,
        cells: run.mesh().cells().len(),
        directed_edges,
        order: run.schedule().order(),
        tasks: run.schedule().graph().len(),
        backend: plan.backend(),
        threads: run.threads(),
        width: run.width(),
        critical_path: run.schedule().critical_path(),
        precision: plan.precision(),
        trials: trials.count,
        steps: count,
        rounds,
        ns_per_update: update(middle),
        ns_per_update_min: update(low),
        ns_per_update_max: update(high),
        ns_per_edge: edge(middle),
        ns_per_edge_min: edge(low),
        ns_per_edge_max: edge(high),
        updates_per_s: 1e9 / update(middle),
        moved_bytes_per_update: moved,
        gb_per_s: moved / update(middle),
        read_share: None,
        setup_s: setup.into_iter().map(|(stage, s)| (stage, s.into())).collect(),
        setup_rounds: setup_s * rounds as f64 / middle,
        bytes_per_vertex: run.memory_bytes() as f64 / vertices as f64,
        bytes_per_edge: run.memory_bytes() as f64 / directed_edges as f64,
        digest,
        digest_steps: WARM_UP,
        machine: None,
        gpu,
        hosts: run.hosts().iter().map(hosts::share).collect(),
    })
}

fn as_word<S: Serializer>(order: &Order, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(order)
}

impl Report {
    /// Whether it is of an order, whatever the size of blocks.
    pub fn is_of(&self, order: Order) -> bool {
        (self.order.curve, self.order.key.name()) == (order.curve, order.key.name())
    }

    /// The same, read as a share of what the machine can do.
    pub fn on(mut self, machine: &Machine) -> Report {
        self.read_share = Some(self.gb_per_s / machine.read_gb_per_s);
        self.machine = Some(machine.clone());
        self
    }

    /// The same, beside a plain copy on the GPU.
    pub(super) fn beside_copy(mut self, bytes_per_s: f64) -> Report {
        if let Some(gpu) = &mut self.gpu {
            gpu.copy_gb_per_s = Some(bytes_per_s * 1e-9);
            gpu.copy_share = Some(self.gb_per_s / (bytes_per_s * 1e-9));
        }
        self
    }

    /// Updates that could run at the same time, in the mean: the work of a round over its critical path.
    pub(super) fn parallelism(&self) -> f64 {
        self.vertices as f64 / self.critical_path.max(1) as f64
    }

    /// Seconds of all stages before the first step.
    pub fn total_setup_s(&self) -> f64 {
        self.setup_s.values().filter_map(Value::as_f64).sum()
    }
}

/// Takes steps and returns the seconds they took.
fn steps(run: &mut Run, count: u64) -> Result<f64> {
    let clock = Instant::now();
    for _ in 0..count {
        run.step()?;
    }
    run.wait()?;
    Ok(clock.elapsed().as_secs_f64())
}

/// Steps that take about as long as a trial should, found by doubling.
fn enough_steps(run: &mut Run, seconds: f64) -> Result<u64> {
    let mut count = 1;
    loop {
        let s = steps(run, count)?;
        if s >= seconds / 8.0 {
            return Ok(((count as f64 * seconds / s).ceil() as u64).max(1));
        }
        count *= 2;
    }
}
