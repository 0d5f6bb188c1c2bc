//! GPUs among the configurations: alone, and beside the cores.

use super::{Cache, Row, here, name, trial};
use crate::cli::options::Plan;
use crate::{Precision, Run};
use anyhow::Result;
#[cfg(feature = "cluster")]
use meshweft::model::{Costs, Machine};
use meshweft::{AdapterKind, Backend, Order};
use meshweft_mesh::Mesh;

/// A GPU of this machine.
#[derive(Clone)]
pub(super) struct Gpu {
    /// Its place among [`meshweft::adapters`].
    pub(super) number: usize,
    pub(super) name: String,
    /// Whether it is a program on the cores.
    pub(super) is_software: bool,
    /// What the costs on it are known by, after the name of the program.
    pub(super) key: String,
}

impl std::fmt::Display for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.name, if self.is_software { ", software" } else { "" })
    }
}

/// The GPUs of this machine that are no software, and the one that is named; none where 64 bits are asked for.
pub(super) fn gpus(plan: &Plan) -> Vec<Gpu> {
    if plan.options.precision == Precision::F64 {
        return Vec::new();
    }
    let named = match plan.options.backend {
        Backend::Gpu { adapter } => Some(adapter),
        #[cfg(feature = "cluster")]
        _ => plan.beside.map(|beside| beside.adapter),
        #[cfg(not(feature = "cluster"))]
        _ => None,
    };
    let gpu = |(number, adapter): (usize, meshweft::Adapter)| Gpu {
        number,
        is_software: adapter.kind == AdapterKind::Software,
        key: format!("{} {} {}", adapter.name, adapter.api, adapter.driver),
        name: adapter.name,
    };
    let all = meshweft::adapters().into_iter().enumerate().map(gpu);
    all.filter(|gpu| !gpu.is_software || Some(gpu.number) == named).collect()
}

/// What the program costs in an order on a GPU is known by.
pub(super) fn name_on(gpu: &Gpu, plan: &Plan, mesh: &Mesh, order: Order) -> String {
    format!("{} on {}", name(plan, mesh, order), gpu.key)
}

/// The rows of an order on GPUs alone. `run`: the same on cores.
pub(super) fn alone(cache: &mut Cache, plan: &Plan, run: &Run, order: Order, gpus: &[Gpu]) -> Result<Vec<Row>> {
    let row = |gpu: &Gpu| {
        let costs =
            cache.costs(&name_on(gpu, plan, run.mesh(), order), || trial::gpu_costs(plan, run.mesh(), order, gpu))?;
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
    run: &Run,
    (machine, costs): (&Machine, &Costs),
    gpus: &[Gpu],
) -> Result<Vec<Row>> {
    let order = run.schedule().order();
    let row = |gpu: &Gpu| {
        let known = name_on(gpu, plan, run.mesh(), order);
        let hybrid = cache.costs(&known, || trial::hybrid_costs(plan, run.mesh(), order, gpu, (machine, costs)))?;
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
