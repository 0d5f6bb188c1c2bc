//! The cell types of VTK, for its legacy and XML files alike.
//!
//! Composite types become simple cells: polygons and strips triangles, poly-lines edges, pixels quads, voxels hexes. Of
//! cells of higher order, Lagrange and Bézier cells among them, the corners are taken: they come first in all of them.
//! VTK numbers the corners of a wedge the other way around than Gmsh, most solvers and
//! [`CellKind::facets`](crate::CellKind::facets), so wedges are turned on the way in and out.
//!
//! Source: VTK user's guide, "VTK file formats", and `vtkWedge`.

use super::binary::{PIECE, Stored};
use super::draft::Draft;
use crate::cell::CellKind;
use crate::parallel;
use std::borrow::Cow;
use std::ops::Range;

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

/// Integers of a file, decoded or not.
pub(super) enum Integers<'a> {
    Plain(Cow<'a, [i64]>),
    Stored(Stored<'a>),
}

impl Integers<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Integers::Plain(all) => all.len(),
            Integers::Stored(stored) => stored.len(),
        }
    }

    /// Some of them.
    ///
    /// # Panics
    /// If there are not as many.
    pub(super) fn piece(&self, places: Range<usize>) -> Cow<'_, [i64]> {
        match self {
            Integers::Plain(all) => Cow::Borrowed(&all[places]),
            Integers::Stored(stored) => Cow::Owned(stored.integers(places)),
        }
    }

    /// Whether `is_right` says so of each, by its place. In parallel.
    fn all(&self, is_right: impl Fn(usize, i64) -> bool + Sync) -> bool {
        let pieces = parallel::map((0..self.len()).step_by(PIECE), |start| {
            let piece = self.piece(start..self.len().min(start + PIECE));
            piece.iter().zip(start..).fold(true, |all, (&x, place)| all & is_right(place, x))
        });
        pieces.into_iter().all(|right| right)
    }
}

/// Adds cells of the types `types` if they are of one kind, in the numbering of VTK, and nothing is wrong with them; cell c
/// has the corners up to `ends[c]` of `connectivity`, which count from point `base` on. Anything else is for [`add`], which
/// goes from cell to cell. Returns whether it did.
pub(super) fn add_uniform(
    draft: &mut Draft,
    base: usize,
    types: &Integers,
    ends: &Integers,
    connectivity: &Integers,
) -> bool {
    let (Some(points), true) = (draft.points.len().checked_sub(base), types.len() > 0) else { return false };
    let number = types.piece(0..1)[0];
    let kinds = CellKind::ALL.into_iter();
    let Some(kind) = kinds.filter(|&k| k != CellKind::Wedge).find(|&k| i64::from(type_of(k).0) == number) else {
        return false;
    };
    let (n, count) = (kind.corners(), types.len() * kind.corners());
    let is_regular = ends.len() == types.len()
        && connectivity.len() >= count
        && draft.has_room(count)
        && types.all(|_, t| t == number)
        && ends.all(|c, end| usize::try_from(end) == Ok((c + 1) * n));
    if !is_regular {
        return false;
    }
    let mut corners = vec![0; count];
    let decode = |(piece, own): (usize, &mut [u32])| {
        let indices = connectivity.piece(piece * PIECE..piece * PIECE + own.len());
        own.iter_mut().zip(&*indices).fold(true, |all, (own, &v)| {
            *own = v.wrapping_add(base as i64) as u32;
            all & usize::try_from(v).is_ok_and(|v| v < points)
        })
    };
    let is_known = parallel::map(corners.chunks_mut(PIECE).enumerate(), decode).into_iter().all(|known| known);
    if is_known {
        draft.cells(kind, corners);
    }
    is_known
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
    let plain = |integers| Integers::Plain(Cow::Borrowed(integers));
    if let Some((0, ends)) = offsets.split_first()
        && add_uniform(draft, base, &plain(types), &plain(ends), &plain(connectivity))
    {
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
