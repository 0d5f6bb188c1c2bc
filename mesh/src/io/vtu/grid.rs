//! Points and cells of VTK's structured grids, whose neighborhood is told by an extent alone.
//!
//! Points and cells count along the first axis first. An axis of one point has no length: the cells are then quads,
//! edges or one vertex.

use super::data::Store;
use super::tags::{Dataset, Piece, Section};
use super::{floats, read_points as read_given};
use crate::cell::CellKind;
use crate::error::Result;
use crate::io::draft::Draft;

/// Adds the points of a grid.
pub(super) fn read_points(dataset: Dataset, piece: &Piece, store: &mut Store, draft: &mut Draft) -> Result<()> {
    if dataset == Dataset::Structured {
        return read_given(piece, store, draft);
    }
    // Where an axis is empty, the others are bounded by nothing.
    if piece.points == 0 {
        return Ok(());
    }
    store.check_implied(piece.at, piece.points)?;
    let axes = match dataset {
        Dataset::Rectilinear => read_axes(piece, store)?,
        _ => [0, 1, 2].map(|k| (0..piece.size[k]).map(|i| piece.first[k].saturating_add(i as i64) as f64).collect()),
    };
    draft.points.reserve(piece.points as usize);
    for &z in &axes[2] {
        for &y in &axes[1] {
            draft.points.extend(axes[0].iter().map(|&x| [x, y, z]));
        }
    }
    if let Dataset::Image(lattice) = dataset {
        for point in &mut draft.points {
            let [i, j, k] = *point;
            let along = |row: usize| {
                let axes = lattice.axes[row];
                lattice.origin[row] + axes[0] * i + axes[1] * j + axes[2] * k
            };
            *point = [along(0), along(1), along(2)];
        }
    }
    match draft.points.iter().position(|p| p.iter().any(|x| !x.is_finite())) {
        Some(v) => {
            let message = format!("point {v} has a coordinate that is not finite: {:?}", draft.points[v]);
            Err(store.error(piece.at, message))
        }
        None => Ok(()),
    }
}

/// The places along each axis of a rectilinear grid.
fn read_axes(piece: &Piece, store: &mut Store) -> Result<[Vec<f64>; 3]> {
    let arrays: Vec<_> = piece.arrays.iter().filter(|a| a.section == Section::Coordinates).collect();
    let [x, y, z] = arrays[..] else {
        return Err(store.error(piece.at, format!("the piece has {} arrays of coordinates, not 3", arrays.len())));
    };
    let mut axis = |k: usize| {
        let array = [x, y, z][k];
        match array.components {
            1 => floats(array, piece.size[k], store),
            n => Err(store.error(array.at, format!("places along an axis need 1 component, not {n}"))),
        }
    };
    Ok([axis(0)?, axis(1)?, axis(2)?])
}

/// Adds the cells between the points of a grid, which are there.
pub(super) fn add_cells(size: [u64; 3], draft: &mut Draft) -> Result<(), String> {
    if size.contains(&0) {
        return Ok(());
    }
    let size = size.map(|n| n as usize); // as many points are there
    let strides = [1, size[0], size[0] * size[1]];
    let long: Vec<usize> = (0..3).filter(|&k| size[k] > 1).map(|k| strides[k]).collect();
    let kind = [CellKind::Vertex, CellKind::Edge, CellKind::Quad, CellKind::Hex][long.len()];
    // Corners as steps from the first: around the first two axes, then the same along the third.
    let steps: Vec<usize> = match long[..] {
        [] => vec![0],
        [a] => vec![0, a],
        [a, b] => vec![0, a, a + b, b],
        [a, b, c] => [0, c].iter().flat_map(|&up| [0, a, a + b, b].map(|step| up + step)).collect(),
        _ => unreachable!("there are three axes"),
    };
    let counts = size.map(|n| (n - 1).max(1));
    let total = counts.iter().product::<usize>() * kind.corners();
    if !draft.has_room(total) {
        return Err(format!("more than {} corners of cells: split the grid", u32::MAX));
    }
    let mut corners = Vec::with_capacity(total);
    for k in 0..counts[2] {
        for j in 0..counts[1] {
            for i in 0..counts[0] {
                let first = i * strides[0] + j * strides[1] + k * strides[2];
                corners.extend(steps.iter().map(|&step| (first + step) as u32));
            }
        }
    }
    draft.cells(kind, corners);
    Ok(())
}
