//! Points and cells of VTK's structured grids, whose cells follow from an extent alone.
//!
//! Points and cells count along the first axis first. An axis of one point has no length: the cells are then quads,
//! edges or one vertex.

use super::data::Store;
use super::numbers::floats;
use super::outline::{Lattice, Piece, Section};
use crate::cell::CellKind;
use crate::error::Result;
use crate::io::bounds::GRID_POINTS;
use crate::io::draft::Draft;

/// Adds the points of an image, all of which follow from its extent.
pub(super) fn add_image(lattice: Lattice, piece: &Piece, store: &mut Store, draft: &mut Draft) -> Result<()> {
    let Lattice { origin, axes } = lattice;
    let place = |k: usize, i: u64| piece.first[k].saturating_add(i as i64) as f64;
    let along = |row: usize, [i, j, k]: [u64; 3]| {
        origin[row] + axes[row][0] * place(0, i) + axes[row][1] * place(1, j) + axes[row][2] * place(2, k)
    };
    add_points(piece, store, draft, |point| [along(0, point), along(1, point), along(2, point)])
}

/// Adds the points of a rectilinear grid, at every place along one axis with every place along the others.
pub(super) fn add_rectilinear(piece: &Piece, store: &mut Store, draft: &mut Draft) -> Result<()> {
    let axes = read_axes(piece, store)?;
    add_points(piece, store, draft, |point| [0, 1, 2].map(|k| axes[k][point[k] as usize]))
}

/// Adds the points of a grid that has some, by their indices along its axes.
fn add_points(piece: &Piece, store: &mut Store, draft: &mut Draft, point: impl Fn([u64; 3]) -> [f64; 3]) -> Result<()> {
    let mut room = GRID_POINTS.of(store.file().len());
    let taken = room.take(piece.points, "points of a grid", "its extent is wrong, or save its data uncompressed");
    taken.map_err(|message| store.error(piece.at, message))?;
    draft.points.reserve(piece.points as usize);
    for k in 0..piece.size[2] {
        for j in 0..piece.size[1] {
            draft.points.extend((0..piece.size[0]).map(|i| point([i, j, k])));
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
