//! The kernels of a program on a device: all are compiled when a simulation is built.

use super::device::Device;
use super::kernels::Kernel;
use super::plan::Plan;
use crate::error::{Error, Result};
use crate::layout::Domain;
use meshweft_mesh::parallel;
use meshweft_shaders::{Entry, Physics, module};
use std::collections::BTreeMap;

/// Compiled kernels, by number, entry point and whether they are double-buffered.
pub(super) struct Pipelines(BTreeMap<(usize, Entry, bool), wgpu::ComputePipeline>);

impl Pipelines {
    /// Compiles all variants of all kernels, side by side. `of`: the plan and the domain of what a kernel visits, and how it sees the arrays of those.
    ///
    /// # Errors
    /// What the driver refuses.
    pub(super) fn new<'a>(
        device: &Device,
        physics: &Physics,
        kernels: &[Kernel],
        of: impl Fn(&Kernel) -> (&'a Plan, &'a Domain, &'a wgpu::PipelineLayout) + Sync,
    ) -> Result<Pipelines> {
        let variants = |(number, kernel): (usize, &Kernel)| {
            let (plan, domain, _) = of(kernel);
            kernel.variants(plan, domain).into_iter().map(move |(entry, double)| (number, entry, double))
        };
        let all: Vec<_> = kernels.iter().enumerate().flat_map(variants).collect();
        let compile = |key: (usize, Entry, bool)| {
            let (number, entry, double) = key;
            let kernel = &kernels[number];
            let (plan, _, layout) = of(kernel);
            let text = module(physics, &plan.harness, &kernel.body, entry, double);
            Ok((key, device.compile(kernel.name, &text, entry.name(), Some(layout))?))
        };
        Ok(Pipelines(parallel::map(all, compile).into_iter().collect::<Result<_>>()?))
    }

    /// One of them.
    ///
    /// # Errors
    /// [`Error::Internal`] if no such variant was foreseen.
    pub(super) fn get(&self, kernel: usize, entry: Entry, double: bool) -> Result<&wgpu::ComputePipeline> {
        self.0
            .get(&(kernel, entry, double))
            .ok_or_else(|| Error::Internal(format!("kernel {kernel} was not compiled as {} {double}", entry.name())))
    }
}
