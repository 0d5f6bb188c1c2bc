//! Files of graphs: edges between vertices that have no place in space.
//!
//! A graph is read as a mesh of line cells whose points all lie at the origin, as [`Mesh::from_graph`](crate::Mesh::from_graph) makes
//! them. Cell `e` is edge `e`, from its first corner to its second, in the order of the file; repeats and edges from a vertex to
//! itself are kept. A number that each edge has becomes the cell field `weight`. Where vertex `v` is not called `v` in the file, the point
//! field `id` has its name.

mod edge_list;
mod matrix_market;
mod metis;

pub(super) use edge_list::parse as parse_edge_list;
pub(super) use matrix_market::parse as parse_matrix_market;
pub(super) use metis::parse as parse_metis;

use super::draft::Draft;
use super::text::Text;
use crate::cell::CellKind;
use crate::error::Result;

/// The cell field with the weights of edges.
const WEIGHT: &str = "weight";
/// The point field with the numbers that the file gives to vertices.
const ID: &str = "id";

/// Adds a graph of `n` vertices to an empty draft. `weights`: one for each edge, or none at all.
fn add(draft: &mut Draft, text: &Text, n: usize, edges: Vec<[u32; 2]>, weights: Vec<f64>) -> Result<()> {
    let corners = edges.into_flattened();
    if !draft.has_room(corners.len()) {
        return Err(text.error(format!("more than {} ends of edges: split the graph", u32::MAX)));
    }
    draft.points = vec![[0.0; 3]; n];
    draft.cells(CellKind::Edge, corners);
    if !weights.is_empty() {
        draft.cell_field(WEIGHT, 1, weights).map_err(|message| text.error(message))?;
    }
    Ok(())
}

/// Adds the numbers of vertices that a file counts from 1.
fn count_from_one(draft: &mut Draft, text: &Text, n: usize) -> Result<()> {
    let ids = (1..=n).map(|id| id as f64).collect();
    draft.point_field(ID, 1, ids).map_err(|message| text.error(message))
}

/// The next word of the line as a weight: a number that is finite.
fn weight(text: &mut Text) -> Result<f64> {
    let weight: f64 = text.number_in_line("a weight")?;
    match weight.is_finite() {
        true => Ok(weight),
        false => Err(text.error(format!("weight {weight} is not finite"))),
    }
}
