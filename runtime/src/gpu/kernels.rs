//! The kernels of a program, as they were traced.

use super::plan::Plan;
use crate::error::{Error, Result};
use crate::layout::Domain;
use crate::number::{Number, Precision};
use crate::trace::{Role, Traced};
use meshweft_schedule::Rule;
use meshweft_shaders::{Body, Entry, Scalar};
use std::collections::BTreeMap;

/// A kernel, as it was traced.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) role: Role,
    pub(crate) body: Body,
    /// Whether it draws random numbers.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "only a device asks"))]
    pub(crate) draws: bool,
}

/// The kernels of a program, by number.
///
/// # Errors
/// [`Error::Program`] names the first that cannot be written in WGSL, and why.
pub(crate) fn sources(traced: Vec<Traced>) -> Result<Vec<Kernel>> {
    let source = |Traced { name, role, body, draws, .. }: Traced| {
        Ok(Kernel { name, role, draws, body: body.map_err(Error::Program)? })
    };
    traced.into_iter().map(source).collect()
}

/// What a GPU calls the numbers of a precision.
///
/// # Errors
/// 64 bits.
pub(crate) fn scalar<T: Number>() -> Result<Scalar> {
    match T::PRECISION {
        Precision::F32 => Ok(Scalar::F32),
        Precision::I32 => Ok(Scalar::I32),
        Precision::F64 => Err(Error::Invalid("a GPU computes in f32 or i32, not in f64: that runs on the CPU".into())),
    }
}

impl Kernel {
    /// What there is of what it visits: of vertices, or of the elements of the star that it projects.
    pub(super) fn of<'a, A>(&self, vertices: &'a A, elements: &'a BTreeMap<usize, A>) -> &'a A {
        match self.role {
            Role::Project { star } => &elements[&star],
            _ => vertices,
        }
    }

    /// How it may be visited: entry points, and whether neighbors are read from another array than is written.
    pub(super) fn variants(&self, plan: &Plan, domain: &Domain) -> Vec<(Entry, bool)> {
        let entries = |rule, double| plan.entries(domain, rule).into_iter().map(move |entry| (entry, double));
        match self.role {
            Role::Map => entries(Rule::Alone, false).collect(),
            Role::Update { .. } if domain.is_double_buffered() => entries(Rule::AtOnce, true).collect(),
            Role::Update { .. } => entries(Rule::InOrder, false).chain(entries(Rule::AtOnce, true)).collect(),
            Role::Project { .. } => entries(Rule::InOrder, false).collect(),
            Role::Measure(_) => entries(Rule::AtOnce, false).collect(),
            // What has no vertex is computed where the host does.
            Role::Scalar | Role::Test if domain.share.is_some() => Vec::new(),
            Role::Scalar | Role::Test => vec![(Entry::Once, false)],
        }
    }
}
