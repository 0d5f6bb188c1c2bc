//! What the command is made of.

use crate::{
    airfoil, bench, cloth, elasticity, graphs, heat, poisson, shallow_water, softbody, spring, vibration, wave, xpbd,
};
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
