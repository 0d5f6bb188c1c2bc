//! The kernels of a program, as they were traced.

use super::plan::Plan;
use crate::error::{Error, Result};
use crate::layout::Domain;
use crate::number::Number;
use crate::program::Combine;
use crate::trace::{self, Traced};
use meshweft_schedule::Rule;
use meshweft_shaders::{Body, Entry, Scalar};

/// A kernel, as it was traced.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) body: Body,
    /// Whether it draws random numbers.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "only a device asks"))]
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
pub(crate) fn sources(traced: Vec<Traced>) -> Result<Vec<Kernel>> {
    let source = |Traced { name, kind, body, draws, .. }: Traced| {
        let kind = match kind {
            trace::Kind::Map => Kind::Map,
            trace::Kind::Update { .. } => Kind::Update,
            trace::Kind::Measure(how) => Kind::Measure(how),
            trace::Kind::Scalar | trace::Kind::Test => Kind::Once,
        };
        Ok(Kernel { name, kind, draws, body: body.map_err(Error::Program)? })
    };
    traced.into_iter().map(source).collect()
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
    pub(super) fn variants(&self, plan: &Plan, domain: &Domain) -> Vec<(Entry, bool)> {
        let entries = |rule, double| plan.entries(domain, rule).into_iter().map(move |entry| (entry, double));
        match self.kind {
            Kind::Map => entries(Rule::Alone, false).collect(),
            Kind::Update if domain.is_double_buffered() => entries(Rule::AtOnce, true).collect(),
            Kind::Update => entries(Rule::InOrder, false).chain(entries(Rule::AtOnce, true)).collect(),
            Kind::Measure(_) => entries(Rule::AtOnce, false).collect(),
            // What has no vertex is computed where the host does.
            Kind::Once if domain.share.is_some() => Vec::new(),
            Kind::Once => vec![(Entry::Once, false)],
        }
    }
}
