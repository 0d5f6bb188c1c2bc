//! The cell types of VTK, for its legacy and XML files alike.
//!
//! Composite types become simple cells: polygons and strips triangles, poly-lines edges, pixels quads, voxels hexes. Of
//! cells of higher order, Lagrange and Bézier cells among them, the corners are taken: they come first in all of them.
//! VTK numbers the corners of a wedge the other way around than Gmsh, most solvers and
//! [`CellKind::facets`](crate::CellKind::facets), so wedges are turned on the way in and out.
//!
//! Source: VTK user's guide, "VTK file formats", and `vtkWedge`.

use super::draft::Draft;
use crate::cell::CellKind;
use rayon::prelude::*;

/// Our corners of a wedge in VTK's order, and the other way around.
const WEDGE: [usize; 6] = [0, 2, 1, 3, 5, 4];

/// The type number of a kind of cells, and its corners in VTK's order.
pub(super) fn type_of(kind: CellKind) -> (u8, &'static [usize]) {
    const ORDER: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
    let number = match kind {
        CellKind::Vertex => 1,
        CellKind::Edge => 3,
        CellKind::Triangle => 5,
        CellKind::Quad => 9,
        CellKind::Tet => 10,
        CellKind::Hex => 12,
        CellKind::Wedge => return (13, &WEDGE),
        CellKind::Pyramid => 14,
    };
    (number, &ORDER[..kind.corners()])
}

/// Adds cells of the types `types`; cell c has the corners `connectivity[offsets[c]..offsets[c + 1]]`, which count from
/// point `base` on.
pub(super) fn add(
    draft: &mut Draft,
    base: usize,
    types: &[i64],
    offsets: &[i64],
    connectivity: &[i64],
) -> Result<(), String> {
    if offsets.len() != types.len() + 1 && !(types.is_empty() && offsets.is_empty()) {
        return Err(format!("{} offsets for {} cells", offsets.len(), types.len()));
    }
    if let Some((kind, corners)) = uniform(draft, base, types, offsets, connectivity) {
        draft.cells(kind, corners);
        return Ok(());
    }
    let mut corners = Vec::new();
    for (c, &number) in types.iter().enumerate() {
        let range = usize::try_from(offsets[c]).ok().zip(usize::try_from(offsets[c + 1]).ok());
        let indices = range.and_then(|(start, end)| connectivity.get(start..end)).ok_or_else(|| {
            let count = connectivity.len();
            format!("cell {c}: offsets {} to {} do not fit in {count} corners", offsets[c], offsets[c + 1])
        })?;
        corners.clear();
        for &index in indices {
            let shifted = if index < 0 { index } else { index.saturating_add(base as i64) };
            corners.push(draft.corner(shifted).map_err(|message| format!("cell {c}: {message}"))?);
        }
        add_cell(draft, number, &corners).map_err(|message| format!("cell {c}: {message}"))?;
    }
    Ok(())
}

/// Kind and corners of all cells if they are of one kind, in the numbering of VTK, and nothing is wrong with them. Anything
/// else is for who goes from cell to cell.
fn uniform(
    draft: &Draft,
    base: usize,
    types: &[i64],
    offsets: &[i64],
    connectivity: &[i64],
) -> Option<(CellKind, Vec<u32>)> {
    let &number = types.first()?;
    let kind = CellKind::ALL.into_iter().find(|&k| k != CellKind::Wedge && i64::from(type_of(k).0) == number)?;
    let n = kind.corners();
    let is_regular = types.par_iter().all(|&t| t == number)
        && offsets.par_iter().enumerate().all(|(c, &offset)| usize::try_from(offset) == Ok(c * n));
    let indices = connectivity.get(..types.len() * n).filter(|_| is_regular)?;
    let points = draft.points.len().checked_sub(base)?;
    let is_known = indices.par_iter().all(|&v| usize::try_from(v).is_ok_and(|v| v < points));
    (is_known && draft.has_room(indices.len()))
        .then(|| (kind, indices.par_iter().map(|&v| (v as usize + base) as u32).collect()))
}

fn add_cell(draft: &mut Draft, number: i64, c: &[u32]) -> Result<(), String> {
    match number {
        0 => return draft.pieces(CellKind::Vertex, std::iter::empty::<[u32; 1]>()),
        2 => return draft.pieces(CellKind::Vertex, c.chunks(1)),
        4 => return draft.pieces(CellKind::Edge, c.windows(2)),
        6 => {
            let strip = c.windows(3).enumerate();
            // Every other triangle of a strip runs the other way around.
            return draft.pieces(CellKind::Triangle, strip.map(|(k, t)| [t[k % 2], t[1 - k % 2], t[2]]));
        }
        7 => return draft.polygon(c),
        _ => {}
    }
    let (kind, nodes) = kind_of(number)?;
    if nodes.map_or(c.len() < kind.corners(), |nodes| c.len() != nodes) {
        return Err(format!("a {} (type {number}) has {} corners", kind.name(), c.len()));
    }
    let order: &[usize] = match (number, kind) {
        (8, _) => &[0, 1, 3, 2],
        (11, _) => &[0, 1, 3, 2, 4, 5, 7, 6],
        (_, CellKind::Wedge) => &WEDGE,
        _ => return draft.curved(kind, c),
    };
    let turned: Vec<u32> = order.iter().map(|&k| c[k]).chain(c[order.len()..].iter().copied()).collect();
    draft.curved(kind, &turned)
}

/// The kind of the simple cells of a type, and how many nodes they have, unless that depends on their order.
fn kind_of(number: i64) -> Result<(CellKind, Option<usize>), String> {
    use CellKind::{Edge, Hex, Pyramid, Quad, Tet, Triangle, Vertex, Wedge};
    let (kind, nodes) = match number {
        1 => (Vertex, 1),
        3 => (Edge, 2),
        5 => (Triangle, 3),
        8 | 9 => (Quad, 4),
        10 => (Tet, 4),
        11 | 12 => (Hex, 8),
        13 => (Wedge, 6),
        14 => (Pyramid, 5),
        21 => (Edge, 3),
        22 => (Triangle, 6),
        23 => (Quad, 8),
        24 => (Tet, 10),
        25 => (Hex, 20),
        26 => (Wedge, 15),
        27 => (Pyramid, 13),
        28 => (Quad, 9),
        29 => (Hex, 27),
        30 => (Quad, 6),
        31 => (Wedge, 12),
        32 => (Wedge, 18),
        33 => (Hex, 24),
        34 => (Triangle, 7),
        35 => (Edge, 4),
        37 => (Pyramid, 19),
        68 | 75 => return Ok((Edge, None)),
        69 | 76 => return Ok((Triangle, None)),
        70 | 77 => return Ok((Quad, None)),
        71 | 78 => return Ok((Tet, None)),
        72 | 79 => return Ok((Hex, None)),
        73 | 80 => return Ok((Wedge, None)),
        74 | 81 => return Ok((Pyramid, None)),
        _ => return Err(format!("cell type {number} is not supported: polyhedra and rare cells are not")),
    };
    Ok((kind, Some(nodes)))
}
