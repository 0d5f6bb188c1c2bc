//! The kernels of a program on a device: all are compiled when a simulation is built.

use super::device::Device;
use super::plan::Plan;
use crate::engine::{Code, Table};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::number::Number;
use crate::program::Combine;
use crate::schedule::Rule;
use crate::trace::Traced;
use meshweft_shaders::{Body, Entry, Physics, Scalar, module};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A kernel, as it was traced.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) body: Body,
    /// Whether it draws random numbers.
    pub(crate) draws: bool,
}

/// What it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Map,
    Update,
    Measure(Combine),
    /// New globals, or a test.
    Once,
}

/// The kernels of a program, by number.
///
/// # Errors
/// [`Error::Program`] names the first that cannot be written in WGSL, and why.
pub(crate) fn sources<T>(table: &Table<T>, traced: Vec<Traced>) -> Result<Vec<Kernel>> {
    let kernels = table.kernels.iter().zip(traced);
    let source = |(kernel, traced): (&crate::engine::Compiled<T>, Traced)| {
        let kind = match kernel.code {
            Code::Vertex { .. } if traced.is_map => Kind::Map,
            Code::Vertex { .. } => Kind::Update,
            Code::Measure { how, .. } => Kind::Measure(how),
            Code::Scalar(_) | Code::Test(_) => Kind::Once,
        };
        Ok(Kernel { name: kernel.name, kind, draws: traced.draws, body: traced.body.map_err(Error::Program)? })
    };
    kernels.map(source).collect()
}

/// What a GPU calls the numbers of a precision.
///
/// # Errors
/// 64 bits.
pub(crate) fn scalar<T: Number>() -> Result<Scalar> {
    match T::NAME {
        "f32" => Ok(Scalar::F32),
        "i32" => Ok(Scalar::I32),
        name => Err(Error::Invalid(format!("a GPU computes in f32 or i32, not in {name}: that runs on the CPU"))),
    }
}

impl Kernel {
    /// How it may be visited: entry points, and whether neighbors are read from another array than is written.
    pub(super) fn variants(&self, plan: &Plan, layout: &Layout<impl Number>) -> Vec<(Entry, bool)> {
        let entries = |rule, double| plan.entries(layout, rule).into_iter().map(move |entry| (entry, double));
        match self.kind {
            Kind::Map => entries(Rule::Alone, false).collect(),
            Kind::Update if layout.schedule.is_double_buffered() => entries(Rule::AtOnce, true).collect(),
            Kind::Update => entries(Rule::InOrder, false).chain(entries(Rule::AtOnce, true)).collect(),
            Kind::Measure(_) => entries(Rule::AtOnce, false).collect(),
            Kind::Once => vec![(Entry::Once, false)],
        }
    }
}

/// Compiled kernels, by number, entry point and whether they are double-buffered.
pub(super) struct Pipelines(BTreeMap<(usize, Entry, bool), wgpu::ComputePipeline>);

impl Pipelines {
    /// Compiles all variants of all kernels, side by side.
    ///
    /// # Errors
    /// What the driver refuses.
    pub(super) fn new(
        device: &Device,
        physics: &Physics,
        (kernels, plan): (&[Kernel], &Plan),
        layout: &Layout<impl Number>,
        pipeline: &wgpu::PipelineLayout,
    ) -> Result<Pipelines> {
        let variants = |(number, kernel): (usize, &Kernel)| {
            kernel.variants(plan, layout).into_iter().map(move |(entry, double)| (number, entry, double))
        };
        let all: Vec<_> = kernels.iter().enumerate().flat_map(variants).collect();
        let compile = |key: (usize, Entry, bool)| {
            let (number, entry, double) = key;
            let kernel = &kernels[number];
            let text = module(physics, &plan.harness, &kernel.body, entry, double);
            Ok((key, device.compile(kernel.name, &text, entry.name(), Some(pipeline))?))
        };
        Ok(Pipelines(all.into_par_iter().map(compile).collect::<Result<_>>()?))
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
