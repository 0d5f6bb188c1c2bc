//! The GPUs of this machine.

use super::cache::name;
use super::source::Source;
use crate::Precision;
use crate::cli::options::Plan;
use meshweft::{AdapterKind, Backend, Order};

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
pub(super) fn name_on(gpu: &Gpu, plan: &Plan, source: Source, order: Order) -> String {
    format!("{} on {}", name(plan, source, order), gpu.key)
}
