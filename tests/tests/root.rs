//! Whole-system tests, one binary.
//!
//! - `determinism`: one digest a mesh and order, whatever the engine, threads and numbering; and the digests themselves.
//! - `lanes`: every kernel of every example on SIMD lanes.
//! - `audit`: every vertex once a round, in order.
//! - `extremes`: meshes at the edge of what a mesh is, and runs that must stop.
//! - `hosts`: every example and order on several hosts, in one process and in several.
//! - `gpu`: every example and order on a GPU, and what happens when it fails.
//! - `methods`: numerical methods as short as on paper, on every engine.
//! - `graphs`: programs on graphs beside networkx.
//! - `twins`: the programs of the Python package, compiled.
//! - `resume`: every example goes on from checkpoints, wherever.
//! - `physics`: the acceptance tests of the examples.
//! - `touching`: nothing passes through anything.
//! - `embed`: a program of one's own in a loop of one's own.
//! - `live`: settings that are changed while a run goes on.
//! - `ensembles`: copies of every example beside each other.
//! - `cli`: the command.
//! - `release`: what is handed out beside the sources.
//! - `tidy`: rules that the sources keep.

mod arrows;
mod audit;
mod cli;
mod determinism;
mod embed;
mod ensembles;
mod extremes;
#[cfg(feature = "gpu")]
mod gpu;
mod graphs;
mod hosts;
mod lanes;
mod live;
mod methods;
mod physics;
mod release;
mod resume;
#[path = "../../examples/command/template/src/main.rs"]
#[expect(dead_code, reason = "a program of its own, of which a test runs the checks")]
mod template;
mod tidy;
mod touching;
mod twins;
