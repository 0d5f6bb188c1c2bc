//! The configurations of this machine: some of its cores, its GPUs, and both.

use super::cache::{Cache, name};
use super::gpus::{Gpu, name_on};
use super::row::{Row, here};
use super::source::Source;
use super::trial;
use crate::Run;
use crate::cli::options::Plan;
use anyhow::Result;
use meshweft::Order;
use meshweft::model::{Costs, Machine};

/// What the program costs in an order, as it is known or by a trial now.
pub(super) fn costs_of(
    cache: &mut Cache,
    plan: &Plan,
    source: Source,
    order: Order,
    machine: &Machine,
) -> Result<Costs> {
    let mut is_disturbed = false;
    let measure = || trial::costs(plan, &*source.mesh(plan)?, order, machine, &mut is_disturbed);
    let name = name(plan, source, order);
    let costs = cache.costs(&name, measure);
    if is_disturbed {
        cache.disturb::<Costs>(&name);
    }
    costs
}

/// The rows on one thread of this machine, two, four and so on, and on `most`. `run`: the same on whatever threads.
pub(super) fn on_threads(run: &Run, most: usize, (machine, costs): (&Machine, &Costs)) -> Result<Vec<Row>> {
    let counts = std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(|&threads| threads < most);
    let row = |threads: usize| {
        let work = run.workload(threads, &[1.0])?;
        let prediction = machine.predict(costs, &work, here(threads));
        Ok(Row::new(&work, here(threads), costs.read_s, prediction))
    };
    counts.chain([most]).map(row).collect()
}

/// The rows of an order on GPUs alone. `run`: the same on cores.
pub(super) fn alone(
    cache: &mut Cache,
    plan: &Plan,
    (source, run): (Source, &Run),
    order: Order,
    gpus: &[Gpu],
) -> Result<Vec<Row>> {
    let row = |gpu: &Gpu| {
        let measure = || trial::gpu_costs(plan, &*source.mesh(plan)?, order, gpu);
        let costs = cache.costs(&name_on(gpu, plan, source, order), measure)?;
        let work = run.workload(1, &[1.0])?;
        let row = Row::new(&work, here(1), costs.read_s, costs.predict(&work));
        Ok(Row { gpu: Some(gpu.clone()), ..row })
    };
    gpus.iter().map(row).collect()
}

/// The rows of an order on the cores and a GPU beside them, with the share at which both are busy equally long. `run`: the same on
/// cores; `costs`: those on them.
#[cfg(feature = "cluster")]
pub(super) fn beside(
    cache: &mut Cache,
    plan: &Plan,
    (source, run): (Source, &Run),
    (machine, costs): (&Machine, &Costs),
    gpus: &[Gpu],
) -> Result<Vec<Row>> {
    let order = run.schedule().order();
    let row = |gpu: &Gpu| {
        let measure = || trial::hybrid_costs(plan, &*source.mesh(plan)?, order, gpu, (machine, costs));
        let hybrid = cache.costs(&name_on(gpu, plan, source, order), measure)?;
        let work = run.workload(machine.threads, &[1.0])?;
        let cores_s = machine.predict(costs, &work, here(machine.threads)).round_s();
        let share = hybrid.share(cores_s, &work, 1.0);
        let halves = run.workload(machine.threads, &[1.0 - share, share])?;
        let prediction = hybrid.predict(machine, costs, &halves, share);
        let row = Row::new(&work, here(machine.threads), costs.read_s, prediction);
        Ok(Row { gpu: Some(gpu.clone()), share: Some(share), ..row })
    };
    gpus.iter().map(row).collect()
}
