//! Meshes and the graphs that programs run on: geometry, topology, orders, colorings, partitions, files.
//!
//! Words used everywhere: a *vertex* is a point of the mesh and carries data; a *cell* is an edge, triangle, tet and so
//! on between vertices; the *graph* joins two vertices that appear in one update; an *order* is a permutation of the
//! vertices; a part of a partition *owns* vertices, and its *ghosts* are the neighbors that other parts own.

#![forbid(unsafe_code)]

mod assembly;
mod block;
mod cell;
mod coloring;
pub mod contact;
mod dual;
mod edges;
mod elements;
mod error;
pub mod generate;
mod graph;
mod incidence;
pub mod io;
mod levels;
mod measure;
mod mesh;
mod multigrid;
mod order;
pub mod parallel;
mod partition;
mod partners;
mod sort;
mod stats;
mod sums;
mod threads;

pub use cell::{CellKind, Cells};
pub use coloring::Coloring;
pub use dual::{BoundaryFace, Dual, Face, Means, Shown};
pub use elements::{At, Elements, Matrix, Patch};
pub use error::{Error, Place, Result};
pub use graph::Graph;
pub use levels::Levels;
pub use measure::{Laplacian, mean_edge_length};
pub use mesh::{Field, Group, Mesh};
pub use multigrid::Multigrid;
pub use order::{Curve, Permutation};
pub use partition::{Cut, Part, Partition};
pub use sort::group;
pub use stats::{Spread, Stats};
pub use threads::start_threads;
