//! Physics programs, and the `meshweft` command that runs them.
//!
//! [`EXAMPLES`] lists the programs. Each is a folder with the physics (`mod.rs`), an acceptance test (`checks.rs`) and a
//! page for its users (`README.md`). The command is [`meshweft_command`]; what it measures of several of them together is here too.

#![forbid(unsafe_code)]

mod acceptance;
pub mod airfoil;
mod bench;
pub mod cloth;
pub mod elasticity;
mod gradients;
pub mod graphs;
pub mod heat;
#[cfg(test)]
mod live;
mod multigrid;
pub mod poisson;
pub mod shallow_water;
mod sides;
pub mod softbody;
pub mod spring;
pub mod vibration;
pub mod wave;
pub mod xpbd;

use meshweft_command::Entry;
use meshweft_command::cli::{Programs, Trial};

/// All examples, in the order in which they are listed. A static: a constant would be compiled anew, with everything behind it,
/// in every crate that names it.
pub static EXAMPLES: &[Entry] = &[
    Entry::either::<heat::Implicit, heat::Heat>(),
    Entry::of::<wave::Wave>(),
    Entry::of::<poisson::Poisson>(),
    Entry::of::<elasticity::Elasticity>(),
    Entry::of::<vibration::Vibration>(),
    Entry::of::<shallow_water::ShallowWater>(),
    Entry::of::<airfoil::Airfoil>(),
    Entry::of::<spring::Spring>(),
    Entry::of::<cloth::Cloth>(),
    Entry::of::<softbody::Softbody>(),
    Entry::of::<xpbd::Xpbd>(),
    Entry::of::<graphs::PageRank>(),
    Entry::of::<graphs::Bfs>(),
    Entry::of::<graphs::Sssp>(),
    Entry::of::<graphs::Components>(),
];

/// What the command `meshweft` is made of.
pub static PROGRAMS: Programs = Programs {
    trial: Some(Trial { example: "spring", mesh: "box:10" }),
    all: Some(bench::matrix::run),
    studies: bench::STUDIES,
    ..Programs::of(EXAMPLES)
};
