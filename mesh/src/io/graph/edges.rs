//! The edges of a file as the cells of a mesh, with their weights and the numbers of vertices.

use super::super::draft::Draft;
use super::super::text::Text;
use crate::cell::CellKind;
use crate::error::Result;

/// The cell field with the weights of edges.
const WEIGHT: &str = "weight";
/// The point field with the numbers that the file gives to vertices.
pub(super) const ID: &str = "id";

/// Adds a graph of `n` vertices to an empty draft. `weights`: one for each edge, or none at all.
pub(super) fn add(draft: &mut Draft, text: &Text, n: usize, edges: Vec<[u32; 2]>, weights: Vec<f64>) -> Result<()> {
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
pub(super) fn count_from_one(draft: &mut Draft, text: &Text, n: usize) -> Result<()> {
    let ids = (1..=n).map(|id| id as f64).collect();
    draft.point_field(ID, 1, ids).map_err(|message| text.error(message))
}

/// The next word of the line as a weight: a number that is finite.
pub(super) fn weight(text: &mut Text) -> Result<f64> {
    let weight: f64 = text.number_in_line("a weight")?;
    match weight.is_finite() {
        true => Ok(weight),
        false => Err(text.error(format!("weight {weight} is not finite"))),
    }
}
