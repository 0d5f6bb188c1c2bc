//! Programs on graphs: rank, levels, distances and components of vertices that have no place in space.
//!
//! They gather along edges, apply what was gathered, and tell the neighbors of what has changed, as the physics do: a rank is a
//! double-buffered update until it changes no more, the others are relaxations that run to their fixed point.

mod bfs;
mod checks;
mod components;
mod links;
mod pagerank;
mod sssp;

pub use bfs::Bfs;
pub use components::Components;
pub use pagerank::PageRank;
pub use sssp::Sssp;

use links::Links;
use meshweft::{Curve, Order};
use meshweft_command::{Kind, Setting, Settings};

/// The order of these programs: none sweeps in place, and what is read most often lies together.
const ORDER: Order = Order::JACOBI.along(Curve::Degree);

/// The graph that they run on unless another is named.
const GRAPH: &str = "kronecker:14";

const DIRECTED: Setting = Setting {
    name: "directed",
    about: "whether edges go from their first vertex to their second alone",
    kind: Kind::Choice(&["false", "true"]),
};

const SOURCE: Setting = Setting::number(
    "source",
    "the vertex to start from, as the file calls it; -1 is the one with most edges",
    -1.0,
    "",
    [-1.0, 9.007_199_254_740_992e15],
);

fn is_directed(settings: &Settings) -> bool {
    settings.choice("directed") == "true"
}
