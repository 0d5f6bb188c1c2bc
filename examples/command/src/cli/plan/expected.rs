//! What a run should have taken, for the end of it.

use super::cache::{Cache, name};
use super::gpus::{gpus, name_on};
use super::row::here;
use super::rows::costs_of;
use super::source::Source;
use super::trial;
use crate::Run;
use crate::cli::options::Plan;
use crate::cli::text;
use anyhow::Result;
#[cfg(feature = "cluster")]
use anyhow::ensure;
use meshweft::Backend;
use meshweft::model::{Cost, GpuCosts, Prediction};
#[cfg(feature = "cluster")]
use meshweft::{
    HostReport,
    model::{Costs, HybridCosts, Link, Machine, Place},
};
use std::time::Duration;

/// Steps that have taken as long are worth a trial, if it is not known yet what the program costs: it takes a second, once; in a debug build
/// some more.
const LONG: Duration = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 2 });
/// As many steps of a piece of the mesh a trial takes, about.
const STEPS_TRIED: f64 = 32.0;

/// By how much longer several processes must take than one before it is worth a word: predictions are no better.
#[cfg(feature = "cluster")]
const SLOWER: f64 = 1.4;

/// What a run was predicted to take.
pub(in crate::cli) struct Expected {
    pub(in crate::cli) round_s: f64,
    pub(in crate::cli) limit: Cost,
    /// What is not in it.
    without: &'static str,
}

impl Expected {
    /// So many rounds beside what they took.
    pub(in crate::cli) fn beside(&self, rounds: u64, wall_s: f64) -> String {
        let [predicted, measured] = [self.round_s * rounds as f64, wall_s].map(text::seconds);
        format!("{predicted}{}, measured {measured} (limit: {})", self.without, self.limit.name())
    }
}

/// What a run should have taken that has taken `wall` for its steps, or why that cannot be said. Costs that no command has measured yet are
/// measured now if that was long.
pub(in crate::cli) fn expected(plan: &Plan, run: &Run, wall: Duration) -> Result<Expected, String> {
    if plan.options.verify || matches!(plan.options.backend, Backend::Serial) {
        return Err("not: the oracle takes its time".into());
    }
    let mut cache = Cache::open(std::thread::available_parallelism().map_or(1, usize::from), false);
    // Not where that would take longer than the run did: of few steps that solve an equation to its end.
    let share = (trial::VERTICES as f64 / run.mesh().points().len() as f64).min(1.0);
    let is_short = STEPS_TRIED * share <= run.steps() as f64;
    let found = predict(&mut cache, plan, run, wall >= LONG && is_short);
    cache.save();
    match found {
        Ok(Some((prediction, without))) => {
            Ok(Expected { round_s: prediction.round_s(), limit: prediction.limit(), without })
        }
        Ok(None) => {
            Err(format!("not yet: `meshweft plan {}` with these options measures what it costs", plan.entry.info.name))
        }
        Err(e) => Err(format!("not: {e:#}")),
    }
}

/// A prediction, and what is left out of it.
type Found = (Prediction, &'static str);

/// Says that processes of this machine will be slower than one process on as many threads, if that is known without a trial.
#[cfg(feature = "cluster")]
pub(in crate::cli) fn slower(plan: &Plan, run: &Run) -> Option<String> {
    if !matches!(plan.options.backend, Backend::Cluster(_)) || plan.beside.is_some() || !plan.is_one_machine {
        return None;
    }
    let mut cache = Cache::open(std::thread::available_parallelism().map_or(1, usize::from), false);
    let machine = cache.known_machine()?.clone();
    let costs = cache.known::<Costs>(&name(plan, Source::Run(run), run.schedule().order()))?;
    let (shared, without) = on_hosts(&mut cache, plan, run, (&machine, &costs), false).ok()??;
    if !without.is_empty() {
        return None;
    }
    let (processes, threads) =
        (run.hosts().len(), run.hosts().iter().map(|host| threads_of(plan, host)).sum::<usize>());
    let threads = threads.min(std::thread::available_parallelism().map_or(1, usize::from));
    let alone = machine.predict(&costs, &run.workload(threads, &[1.0]).ok()?, here(threads));
    let times = shared.round_s() / alone.round_s();
    (times > SLOWER).then(|| {
        format!(
            "{processes} processes will take {times:.1} times as long as one: --threads {threads} instead gives the same digest \
             (messages are {:.0} % of a round of {})",
            100.0 * (shared.of(Cost::Messages) + shared.of(Cost::Latency)) / shared.step_s(),
            text::seconds(shared.round_s())
        )
    })
}

/// None if costs are not known, unless they are to be measured now.
fn predict(cache: &mut Cache, plan: &Plan, run: &Run, is_tried: bool) -> Result<Option<Found>> {
    let (source, order) = (Source::Run(run), run.schedule().order());
    let work = run.workload(run.threads(), &[1.0])?;
    trial::ensure_rounds(plan, &work)?;
    let without = if work.changes { " where little comes and goes" } else { "" };
    let Some(machine) = cache.machine_if(is_tried)? else { return Ok(None) };
    if let Backend::Gpu { adapter } = plan.options.backend {
        let Some(gpu) = gpus(plan).into_iter().find(|gpu| gpu.number == adapter) else { return Ok(None) };
        let measure = || trial::gpu_costs(plan, &*source.mesh(plan)?, order, &gpu);
        let costs: Option<GpuCosts> = cache.costs_if(is_tried, &name_on(&gpu, plan, source, order), measure)?;
        return Ok(costs.map(|costs| (costs.predict(&work), without)));
    }
    let costs = match cache.known(&name(plan, source, order)) {
        None if is_tried => costs_of(cache, plan, source, order, &machine)?,
        None => return Ok(None),
        Some(costs) => costs,
    };
    #[cfg(feature = "cluster")]
    if let Backend::Cluster(_) = plan.options.backend {
        return on_hosts(cache, plan, run, (&machine, &costs), is_tried);
    }
    Ok(Some((machine.predict(&costs, &work, here(run.threads())), without)))
}

/// Threads of a host, as it has reported or else as it was asked to take.
#[cfg(feature = "cluster")]
fn threads_of(plan: &Plan, host: &HostReport) -> usize {
    match (host.threads, plan.threads) {
        (0, 0) => std::thread::available_parallelism().map_or(1, usize::from),
        (0, asked) => asked,
        (reported, _) => reported,
    }
}

/// The same of several hosts, or of the cores and a GPU beside them.
#[cfg(feature = "cluster")]
fn on_hosts(
    cache: &mut Cache,
    plan: &Plan,
    run: &Run,
    (machine, costs): (&Machine, &Costs),
    is_tried: bool,
) -> Result<Option<Found>> {
    let (source, order, hosts) = (Source::Run(run), run.schedule().order(), run.hosts());
    let vertices = run.mesh().points().len().max(1) as f64;
    let part = |host: &HostReport| host.vertices as f64 / vertices;
    let threads = hosts.iter().map(|host| threads_of(plan, host)).max().unwrap_or(1);
    if let Some(beside) = plan.beside {
        let Some(gpu) = gpus(plan).into_iter().find(|gpu| gpu.number == beside.adapter) else { return Ok(None) };
        let measure = || trial::hybrid_costs(plan, &*source.mesh(plan)?, order, &gpu, (machine, costs));
        let hybrid: Option<HybridCosts> = cache.costs_if(is_tried, &name_on(&gpu, plan, source, order), measure)?;
        let share = hosts.iter().filter(|host| !host.gpu.is_empty()).map(part).sum();
        let work = run.workload(threads, &[1.0 - share, share])?;
        return Ok(hybrid.map(|hybrid| (hybrid.predict(machine, costs, &work, share), "")));
    }
    ensure!(hosts.iter().all(|host| host.gpu.is_empty()), "several GPUs are no part of the model");
    let work = run.workload(threads, &hosts.iter().map(part).collect::<Vec<_>>())?;
    // What joins other machines nobody has measured.
    let link = plan.is_one_machine.then_some(Link::LOOPBACK);
    let place = Place { hosts: hosts.len(), threads, link, is_one_machine: plan.is_one_machine };
    let without = if plan.is_one_machine && !work.projects { "" } else { " without messages" };
    Ok(Some((machine.predict(costs, &work, place), without)))
}
