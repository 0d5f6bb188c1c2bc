//! `meshweft bench`: what an update costs.

use super::options::Problem;
use super::{Console, Outcome, text};
use crate::Run;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Instant;

/// Steps before anything is measured: caches are filled, and the digest is that after them, whatever the machine.
const WARM_UP: u64 = 2;
/// Seconds that a trial takes at least, unless the number of steps is given: long beside the noise of a clock.
const TRIAL_S: f64 = 0.3;

/// What to measure.
#[derive(Args)]
#[command(args_override_self = true, after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) problem: Problem,
    /// Trials; the median counts
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: u32,
    /// Time steps a trial [default: as many as take 0.3 s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  meshweft bench heat --mesh box:128
  meshweft bench cloth --order color --threads 1 --trials 9 --json

An update is one vertex in one round of sweeps; the time of everything else in a step counts too. The digest is that of
the state after 2 steps, so that it can be compared between machines.";

/// The object of `--json`, and the source of the table.
#[derive(Serialize)]
struct Report {
    example: &'static str,
    mesh: String,
    vertices: usize,
    cells: usize,
    directed_edges: usize,
    order: &'static str,
    parts: usize,
    curve: String,
    engine: &'static str,
    threads: usize,
    precision: &'static str,
    trials: u32,
    steps: u64,
    rounds: u64,
    ns_per_update: f64,
    ns_per_update_min: f64,
    ns_per_update_max: f64,
    ns_per_edge: f64,
    ns_per_edge_min: f64,
    ns_per_edge_max: f64,
    updates_per_s: f64,
    setup_s: Map<String, Value>,
    bytes_per_vertex: f64,
    digest: String,
    digest_steps: u64,
}

/// Runs the trials.
pub(super) fn run(arguments: &Arguments, console: &mut Console) -> Result<Outcome> {
    let plan = arguments.problem.plan(false)?;
    let (mut run, setup) = plan.start()?;
    let run = run.as_mut();
    if run.mesh().points().is_empty() {
        bail!("mesh {} has no points: there is nothing to measure", plan.mesh);
    }
    steps(run, WARM_UP)?;
    let digest = run.digest();
    let count = match arguments.steps {
        Some(count) => count,
        None => enough_steps(run)?,
    };
    let rounds = run.rounds();
    let mut trials = (0..arguments.trials).map(|_| steps(run, count)).collect::<Result<Vec<f64>>>()?;
    let rounds = (run.rounds() - rounds) / u64::from(arguments.trials);
    if rounds == 0 {
        bail!("these settings of {} sweep no vertex: there is nothing to measure", plan.entry.info.name);
    }
    trials.sort_unstable_by(f64::total_cmp);
    // Of an even number of trials, the mean of the two in the middle.
    let middle = (trials[(trials.len() - 1) / 2] + trials[trials.len() / 2]) / 2.0;
    let (low, high) = (trials[0], trials[trials.len() - 1]);
    let (vertices, directed_edges) = (run.mesh().points().len(), run.directed_edges());
    let update = |s: f64| 1e9 * s / (rounds as f64 * vertices as f64);
    // Without an edge there is no time of one; the quotient is then infinite, which JSON shows as null.
    let edge = |s: f64| 1e9 * s / (rounds as f64 * directed_edges as f64);
    let report = Report {
        example: plan.entry.info.name,
        mesh: plan.mesh.clone(),
        vertices,
        cells: run.mesh().cells().len(),
        directed_edges,
        order: plan.options.order.name(),
        parts: run.parts(),
        curve: plan.options.curve.to_string(),
        engine: plan.engine(),
        threads: run.threads(),
        precision: plan.precision(),
        trials: arguments.trials,
        steps: count,
        rounds,
        ns_per_update: update(middle),
        ns_per_update_min: update(low),
        ns_per_update_max: update(high),
        ns_per_edge: edge(middle),
        ns_per_edge_min: edge(low),
        ns_per_edge_max: edge(high),
        updates_per_s: 1e9 / update(middle),
        setup_s: setup.into_iter().map(|(stage, s)| (stage, s.into())).collect(),
        bytes_per_vertex: run.memory_bytes() as f64 / vertices as f64,
        digest,
        digest_steps: WARM_UP,
    };
    if arguments.json {
        writeln!(console.out, "{}", serde_json::to_string(&report).context("cannot print the report")?)?;
    } else {
        report.print(console)?;
    }
    Ok(Outcome::Done)
}

/// Takes steps and returns the seconds they took.
fn steps(run: &mut dyn Run, count: u64) -> Result<f64> {
    let clock = Instant::now();
    for _ in 0..count {
        run.step()?;
    }
    Ok(clock.elapsed().as_secs_f64())
}

/// Steps that take about as long as a trial should, found by doubling.
fn enough_steps(run: &mut dyn Run) -> Result<u64> {
    let mut count = 1;
    loop {
        let s = steps(run, count)?;
        if s >= TRIAL_S / 8.0 {
            return Ok(((count as f64 * TRIAL_S / s).ceil() as u64).max(1));
        }
        count *= 2;
    }
}

impl Report {
    fn print(&self, console: &mut Console) -> Result<()> {
        let out = &mut console.out;
        let [v, c, e] = [self.vertices, self.cells, self.directed_edges].map(text::count);
        let time = |middle: f64, low: f64, high: f64| {
            let [middle, low, high] = [middle, low, high].map(|ns| format!("{ns:.2}"));
            format!("{middle} ns (median; {low} to {high})")
        };
        let total: f64 = self.setup_s.values().filter_map(Value::as_f64).sum();
        let stages =
            self.setup_s.iter().map(|(stage, s)| format!("{stage} {}", text::seconds(s.as_f64().unwrap_or(0.0))));
        let parts = text::counted(self.parts, "part", "parts");
        let threads = text::counted(self.threads, "thread", "threads");
        let rows = [
            ("example", self.example.to_string()),
            ("mesh", format!("{}: {v} vertices, {c} cells, {e} directed edges", self.mesh)),
            ("order", format!("{}, {parts}, {} curve", self.order, self.curve)),
            ("engine", format!("{}, {threads}, {}", self.engine, self.precision)),
            ("trials", format!("{} of {} steps, {} rounds each", self.trials, self.steps, self.rounds)),
            ("update", time(self.ns_per_update, self.ns_per_update_min, self.ns_per_update_max)),
            ("edge", time(self.ns_per_edge, self.ns_per_edge_min, self.ns_per_edge_max)),
            ("rate", text::rate(self.updates_per_s, "updates")),
            ("set-up", format!("{}: {}", text::seconds(total), stages.collect::<Vec<_>>().join(", "))),
            ("memory", format!("{:.1} bytes a vertex", self.bytes_per_vertex)),
            ("digest", format!("{} after {} steps", self.digest, self.digest_steps)),
        ];
        Ok(text::pairs(out, &rows)?)
    }
}
