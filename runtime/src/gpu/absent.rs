//! What stands for the GPU engine in a build without it.

use super::kernels::Kernel;
use crate::adapter::Adapter;
use crate::engine::Engine;
#[cfg(feature = "cluster")]
use crate::engine::{Border, Timeline, Walker};
use crate::error::{Error, Result};
use crate::layout::{Domain, State};
use crate::number::Number;
use meshweft_shaders::Physics;
use std::sync::Arc;

fn absent<A>() -> Result<A> {
    Err(Error::Gpu("this build knows no GPUs: build it with the feature `gpu`, or take another backend".into()))
}

/// No adapters: this build knows no GPUs.
pub fn adapters() -> Vec<Adapter> {
    Vec::new()
}

/// How fast a GPU copies: this build knows none.
///
/// # Errors
/// Always.
pub fn copy_bandwidth(_: usize) -> Result<f64> {
    absent()
}

/// There is none.
pub(crate) enum Device {}

impl Device {
    pub(crate) fn open(_: usize) -> Result<Device> {
        absent()
    }

    pub(crate) fn width(&self) -> usize {
        match *self {}
    }
}

/// What walks a share on the device, of which there is none.
#[cfg(feature = "cluster")]
pub(crate) fn share<T: Number>(
    device: Device,
    _: Arc<Domain>,
    _: (&Physics, Vec<Kernel>),
    _: (State<T>, Vec<T>),
    _: (Arc<dyn Border>, Option<Arc<Timeline>>),
) -> Result<Box<dyn Walker<T>>> {
    match device {}
}

/// An engine on the device, of which there is none.
pub(crate) fn engine<T: Number>(
    device: Device,
    _: Arc<Domain>,
    _: (&Physics, Vec<Kernel>),
    _: State<T>,
    _: Vec<T>,
) -> Result<Box<dyn Engine<T>>> {
    match device {}
}
