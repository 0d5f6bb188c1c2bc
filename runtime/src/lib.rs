#![doc = include_str!("../../README.md")]
#![deny(unsafe_code)]

mod adapter;
#[cfg(feature = "cluster")]
mod cluster;
pub mod conformance;
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only hosts of a cluster have a share of a mesh"))]
mod engine;
mod error;
mod gpu;
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only hosts of a cluster have a share of a mesh"))]
mod layout;
mod names;
mod number;
mod piece;
mod program;
#[cfg(feature = "gpu")]
mod shared;
mod simulation;
mod step;
pub mod tapes;
#[doc(hidden)]
pub mod toy;
mod trace;

pub use adapter::{Adapter, AdapterKind};
#[cfg(feature = "cluster")]
pub use cluster::{Cluster, Compress, Gathering, Leaver, RunKey, Sharing, Worker};
#[cfg(feature = "cluster")]
#[doc(hidden)]
pub use cluster::{ListCost, list_costs};
pub use engine::{HostReport, Iterations};
pub use error::{Error, Result};
pub use gpu::{Shader, adapters, copy_bandwidth};
pub use number::{Int, Integer, Lanes, Length, Number, Real, lanes, random};
pub use piece::Placement;
pub use program::{
    Combine, Corners, CornersOf, Elements, Given, Incidence, Kernel, KernelList, Kernels, Kind, Map, Neighbors, Part,
    Program, Project, Projected, Record, Reduce, Relax, Renewal, Scalar, SharedOf, Stages, Star, Stars, StateOf, Test,
    Update, Vertex, VertexOf,
};
#[cfg(feature = "gpu")]
pub use simulation::DeviceField;
pub use simulation::{
    AnySimulation, AuditReport, Backend, Builder, Checkpoint, Ensemble, FieldView, GpuCounters, Metric, Plans, Saved,
    Simd, Simulation, Snapshot, sweep,
};

pub use meshweft_mesh as mesh;
pub use meshweft_mesh::{Curve, Mesh};
pub use meshweft_model as model;
#[cfg(feature = "cluster")]
pub use meshweft_net as net;
pub use meshweft_schedule::{Key, Order, Schedule};
pub use nalgebra;
#[cfg(feature = "gpu")]
pub use wgpu;
