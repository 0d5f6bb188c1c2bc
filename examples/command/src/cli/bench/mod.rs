//! `meshweft bench`: what an update costs, and how much of the machine's bandwidth that is.

mod measure;

pub use measure::{Report, Trials, measure};

use super::console::{Console, Outcome};
use super::options::{Problem, at_least};
use super::plan::start;
use super::probe::{self, Sizes};
use super::programs::{Programs, Scale};
use super::text;
use anyhow::{Context, Result, bail};
use clap::Args;
use measure::trials;
use meshweft::{Backend, copy_bandwidth};
use std::path::PathBuf;

/// Seconds that a trial takes at least, unless the number of steps is given: long beside the noise of a clock.
pub const TRIAL_S: f64 = 0.3;

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
    #[arg(long, value_name = "N", value_parser = at_least::<1>)]
    steps: Option<u64>,
    /// Leave out the probe of the machine's bandwidth, which takes one or two seconds
    #[arg(long)]
    no_probe: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Measure a matrix of examples, orders, threads, sizes, numberings and precisions instead; writes tables, plots and
    /// a .csv. Takes about five minutes
    #[arg(long, conflicts_with_all = OF_ONE)]
    all: bool,
    /// Do a study of a paper again instead: print its tables, write its plots
    #[arg(long, value_name = "NAME", conflicts_with_all = OF_ONE, conflicts_with_all = ["all", "quick"])]
    study: Option<String>,
    /// With --all: meshes of up to 10^5 vertices and shorter trials; takes about a minute
    #[arg(long)]
    quick: bool,
    /// With --all or --study: meshes that take no time, to see whether it works
    #[arg(long, conflicts_with = "quick", hide = true)]
    tiny: bool,
    /// With --all or --study: folder for what it writes [default: one in docs, where its page is]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Options that say what one measurement is of.
const OF_ONE: [&str; 14] = [
    "name",
    "example",
    "case",
    "mesh",
    "order",
    "backend",
    "threads",
    "simd",
    "precision",
    "set",
    "seed",
    "trials",
    "steps",
    "json",
];

const EXAMPLES: &str = "\
Examples:
  meshweft bench EXAMPLE --mesh box:128
  meshweft bench EXAMPLE --order color --threads 1 --trials 9 --json

An update is one vertex in one round of sweeps; the time of everything else in a step counts too. Traffic is what a round
must move at least, and its share of the bandwidth that the probe reads with. The digest is that of the state after 2
steps, so that it can be compared between machines.";

/// Measures one run, or several programs together.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    let scale = match (arguments.quick, arguments.tiny) {
        (true, _) => Scale::Quick,
        (_, true) => Scale::Tiny,
        _ => Scale::Full,
    };
    let several = match &arguments.study {
        // Processes of a run that a study starts are this program as a worker, which begins elsewhere.
        Some(name) => programs.study(name),
        None => programs.all.filter(|_| arguments.all),
    };
    if let Some(measure) = several {
        measure(programs, scale, arguments.out.as_deref(), console)?;
        return Ok(Outcome::Done);
    }
    if arguments.all {
        bail!("this command has no matrix of its programs: name one of them");
    }
    // The parser would not say so beside an example, with which --all cannot be.
    if arguments.quick || arguments.tiny {
        bail!("--quick is of the matrix: write `meshweft bench --all --quick`, or fewer --trials of one example");
    }
    #[cfg(feature = "cluster")]
    if let Some(worker) = arguments.problem.worker()? {
        return super::worker::as_rank(worker, programs, console);
    }
    let plan = arguments.problem.plan(programs, false)?;
    let (mut run, setup) = start(&plan, console.err)?;
    let how = Trials { count: arguments.trials, steps: arguments.steps, seconds: TRIAL_S };
    let mut report = trials(&plan, &mut run, setup, how)?;
    report = match &plan.options.backend {
        _ if arguments.no_probe => report,
        Backend::Gpu { adapter } => report.beside_copy(copy_bandwidth(*adapter)?),
        // What this machine can do says nothing of others.
        #[cfg(feature = "cluster")]
        Backend::Cluster(_) if arguments.problem.needs_other_hosts()? => report,
        _ => {
            let machine = probe::probe(report.threads, Sizes::of_this_machine())?;
            report.on(&machine)
        }
    };
    if arguments.json {
        writeln!(console.out, "{}", serde_json::to_string(&report).context("cannot print the report")?)?;
    } else {
        print(&report, console)?;
    }
    Ok(Outcome::Done)
}

fn print(report: &Report, console: &mut Console) -> Result<()> {
    let [v, c, e] = [report.vertices, report.cells, report.directed_edges].map(text::count);
    let time = |middle: f64, low: f64, high: f64| {
        let [middle, low, high] = [middle, low, high].map(|ns| format!("{ns:.2}"));
        format!("{middle} ns (median; {low} to {high})")
    };
    let stages =
        report.setup_s.iter().map(|(stage, s)| format!("{stage} {}", text::seconds(s.as_f64().unwrap_or(0.0))));
    let stages = stages.collect::<Vec<_>>().join(", ");
    let tasks = text::counted(report.tasks, "task", "tasks");
    let threads = text::counted(report.threads, "thread", "threads");
    let at_a_time = report.parallelism().round();
    let side = match report.width {
        1 => "vertex by vertex".to_string(),
        width => format!("{width} vertices side by side"),
    };
    let mut rows = vec![
        ("example", report.example.to_string()),
        ("mesh", format!("{}: {v} vertices, {c} cells, {e} directed edges", report.mesh)),
        ("order", format!("{}, {tasks}", report.order)),
        (
            "critical path",
            format!("{} updates; average parallelism {}", text::count(report.critical_path), text::number(at_a_time)),
        ),
        ("backend", format!("{}, {threads}, {}, {side}", report.backend, report.precision)),
    ];
    if let Some(gpu) = &report.gpu {
        let busy =
            gpu.busy_share.map_or("no clock".into(), |share| format!("at work {:.0} % of the time", 100.0 * share));
        let copy = gpu.copy_gb_per_s.map(|rate| format!(", a plain copy moves {rate:.0} GB/s")).unwrap_or_default();
        let [dispatches, submissions] = [gpu.dispatches_per_round, gpu.submissions_per_step].map(text::number);
        rows.push((
            "gpu",
            format!("{}: {dispatches} dispatches a round, {submissions} submissions a step, {busy}{copy}", gpu.adapter),
        ));
    }
    if let Some(machine) = &report.machine {
        rows.push(("machine", machine.line()));
    }
    rows.extend([
        ("trials", format!("{} of {} steps, {} rounds each", report.trials, report.steps, report.rounds)),
        ("update", time(report.ns_per_update, report.ns_per_update_min, report.ns_per_update_max)),
        ("edge", time(report.ns_per_edge, report.ns_per_edge_min, report.ns_per_edge_max)),
        ("rate", text::rate(report.updates_per_s, "updates")),
    ]);
    let share = report.read_share.map(|share| format!(", {:.0} % of the read probe", 100.0 * share));
    let share = share.or_else(|| Some(format!(", {:.0} % of a plain copy", 100.0 * report.gpu.as_ref()?.copy_share?)));
    let (bytes, rate, share) = (report.moved_bytes_per_update, report.gb_per_s, share.unwrap_or_default());
    rows.push(("traffic", format!("{bytes:.1} bytes an update at least: {rate:.1} GB/s{share}")));
    let (setup, rounds) = (text::seconds(report.total_setup_s()), text::number(report.setup_rounds.round()));
    rows.extend([
        ("set-up", format!("{setup}, the time of {rounds} rounds: {stages}")),
        (
            "memory",
            format!("{:.1} bytes a vertex, {:.1} a directed edge", report.bytes_per_vertex, report.bytes_per_edge),
        ),
        ("digest", format!("{} after {} steps", report.digest, report.digest_steps)),
    ]);
    Ok(text::pairs(console.out, &rows)?)
}
