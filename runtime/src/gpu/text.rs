//! The shaders of a program, as text: for those who want to read them, and for tests without a device.

use super::kernels::Kernel;
use super::plan::{Limits, Plan};
use crate::error::Result;
use crate::layout::Domain;
use meshweft_shaders::{Physics, module};
use std::collections::BTreeMap;

/// One compute shader of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shader {
    /// The kernel: its name in the program.
    pub kernel: &'static str,
    /// How its vertices are visited: the entry point.
    pub entry: &'static str,
    /// Whether it reads neighbors from another array than it writes.
    pub double_buffered: bool,
    /// The structs of the program's records.
    pub records: String,
    /// What was traced from the kernel.
    pub function: String,
    /// The whole module, as a driver gets it.
    pub module: String,
}

/// The shaders of all kernels on a layout, each once: what a device with the limits that WebGPU promises would get.
pub(crate) fn shaders(kernels: &[Kernel], domain: &Domain, physics: &Physics) -> Result<Vec<Shader>> {
    fn planned(domain: &Domain) -> Result<(&Domain, Plan)> {
        Ok((domain, Plan::new(domain, &Limits::PROMISED)?))
    }
    let elements = domain.elements.iter().map(|(star, domain)| Ok((*star, planned(domain)?)));
    let (vertices, elements) = (planned(domain)?, elements.collect::<Result<BTreeMap<_, _>>>()?);
    let shaders = kernels.iter().flat_map(|kernel| {
        let (domain, plan) = kernel.of(&vertices, &elements);
        let shader = |(entry, double_buffered): (meshweft_shaders::Entry, bool)| Shader {
            kernel: kernel.name,
            entry: entry.name(),
            double_buffered,
            records: physics.declarations_for(&kernel.body),
            function: kernel.body.function().into(),
            module: module(physics, &plan.harness, &kernel.body, entry, double_buffered),
        };
        kernel.variants(plan, domain).into_iter().map(shader).collect::<Vec<_>>()
    });
    Ok(shaders.collect())
}
