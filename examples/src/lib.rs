//! Physics programs, and the `meshweft` command that runs them.
//!
//! [`EXAMPLES`] lists the programs. Each is a folder with the physics (`mod.rs`), an acceptance test (`checks.rs`) and a
//! page for its users (`README.md`). The command is [`meshweft_command`]; what it measures of several of them together is here too.

#![forbid(unsafe_code)]

mod acceptance;
pub mod airfoil;
#[cfg_attr(test, allow(dead_code, unused_imports))]
mod bench;
pub mod cloth;
pub mod elasticity;
mod gradients;
pub mod graphs;
pub mod heat;
// A static is compiled whether it is used or not, with all programs behind it, and unit tests have no use for it.
#[cfg(not(test))]
mod list;
mod multigrid;
pub mod poisson;
pub mod shallow_water;
mod sides;
pub mod softbody;
mod solid;
pub mod spring;
pub mod vibration;
pub mod wave;
pub mod xpbd;

#[cfg(not(test))]
pub use list::{EXAMPLES, PROGRAMS};
