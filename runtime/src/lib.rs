#![doc = include_str!("../../README.md")]
#![deny(unsafe_code)]

mod engine;
mod error;
mod layout;
mod program;
mod schedule;
mod simulation;

pub use error::{Error, Result};
pub use program::{
    Combine, Float, Incidence, Kernel, Lanes, Length, Map, Metrics, Neighbors, Part, PrivateOf, Program, Real, Record,
    Reduce, SharedOf, Stages, Star, Stars, lanes,
};
pub use schedule::{Order, Plan, Schedule, default_block_size};
pub use simulation::{AuditReport, Backend, Builder, Metric, Simd, Simulation};

pub use meshweft_mesh as mesh;
pub use nalgebra;
