//! Physics programs, and everything the `meshweft` command is made of.
//!
//! [`EXAMPLES`] lists the programs. Each is a folder with the physics (`mod.rs`), an acceptance test (`checks.rs`) and a
//! page for its users (`README.md`).

#![forbid(unsafe_code)]

pub mod cli;
pub mod cloth;
mod entry;
mod example;
pub mod graphs;
pub mod heat;
mod oracle;
pub mod output;
mod run;
mod settings;
pub mod spring;
pub mod wave;

pub use entry::Entry;
pub use example::{Check, Column, Example, Info, Look, Precision, Tolerance};
pub use run::{Options, Run};
pub use settings::{Kind, Setting, Settings};

/// All examples, in the order in which they are listed. A static: a constant would be compiled anew, with everything behind it,
/// in every crate that names it.
pub static EXAMPLES: &[Entry] = &[
    Entry::either::<heat::Implicit, heat::Heat>(),
    Entry::of::<wave::Wave>(),
    Entry::of::<spring::Spring>(),
    Entry::of::<cloth::Cloth>(),
    Entry::of::<graphs::PageRank>(),
    Entry::of::<graphs::Bfs>(),
    Entry::of::<graphs::Sssp>(),
    Entry::of::<graphs::Components>(),
];
