#![doc = include_str!("../../README.md")]
#![deny(unsafe_code)]

mod engine;
mod error;
mod gpu;
mod layout;
mod program;
mod schedule;
mod simulation;
mod trace;

pub use error::{Error, Result};
pub use gpu::{Adapter, AdapterKind, Shader, adapters, copy_bandwidth};
pub use program::{
    Combine, Incidence, Int, Kernel, Lanes, Length, Map, Metrics, Neighbors, Number, Part, PrivateOf, Program, Real,
    Record, Reduce, SharedOf, Stages, Star, Stars, lanes,
};
pub use schedule::{Order, Plan, Schedule};
pub use simulation::{AuditReport, Backend, Builder, GpuCounters, Metric, Simd, Simulation};

pub use meshweft_mesh as mesh;
pub use nalgebra;
