//! What walks and searches work on.

use super::border::Border;
use super::memory::Memory;
use super::policy::Policy;
use crate::engine::{Audit, Timeline};
use crate::layout::Domain;
use std::sync::Arc;

/// What walks and searches work on.
pub(super) struct Ground<T> {
    pub(super) domain: Arc<Domain>,
    /// The number of its first task among those of all domains here.
    pub(super) first: u32,
    pub(super) memory: Arc<Memory<T>>,
    /// Of a domain of elements, the state of their corners.
    pub(super) vertices: Option<Arc<Memory<T>>>,
    pub(super) policy: Policy,
    pub(super) audit: Option<Arc<Audit>>,
    /// What carries values between hosts, if the domain is a share.
    pub(super) border: Option<Arc<dyn Border>>,
    /// Where threads write down what they do, if that is recorded.
    pub(super) timeline: Option<Arc<Timeline>>,
}
