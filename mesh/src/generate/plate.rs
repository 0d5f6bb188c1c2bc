//! A square plate with a round hole.

use super::size::{Wanted, product};
use crate::cell::{CellKind, Cells};
use crate::error::Result;
use crate::mesh::{Group, Mesh};
use std::f64::consts::TAU;

/// Half a side, m.
const HALF: f64 = 0.5;
/// Radius of the hole, m.
const HOLE: f64 = 0.1;

/// Makes a square plate of 1 m around the origin, with a hole of 0.1 m radius in its middle, in rings of quads that are as long as wide at the hole.
///
/// `side`: quads along a side, a quarter of a ring; `out`: rings. Edges of the boundary are in the groups `hole`, `right`, `top`, `left`
/// and `bottom`.
///
/// # Errors
/// Fewer than 3 of either, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::plate(8, 8)?;
/// assert_eq!((mesh.points().len(), mesh.bounds()[1]), (32 * 9, [0.5, 0.5, 0.0]));
/// assert_eq!(mesh.group("right").unwrap().cells.len(), 8);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn plate(side: usize, out: usize) -> Result<Mesh> {
    let counts = [side, out];
    let size = wanted_plate(&counts).check()?;
    let around = 4 * side;
    let mut points: Vec<[f64; 3]> = Vec::with_capacity(size.vertices);
    for j in 0..=out {
        points.extend((0..around).map(|i| {
            let [cos, sin] = direction(i, side);
            let most = cos.abs().max(sin.abs());
            if j == out {
                // To the last bit on the square.
                return [HALF * (cos / most), HALF * (sin / most), 0.0];
            }
            let far = HALF / most;
            let radius = HOLE * libm::pow(far / HOLE, j as f64 / out as f64);
            [radius * cos, radius * sin, 0.0]
        }));
    }
    let id = |i: usize, j: usize| (j * around + i % around) as u32;
    let mut cells = Cells::new();
    for (j, i) in (0..out).flat_map(|j| (0..around).map(move |i| (j, i))) {
        cells.push(CellKind::Quad, &[id(i, j), id(i, j + 1), id(i + 1, j + 1), id(i + 1, j)]);
    }
    let sides = [("right", out, 0), ("top", out, side), ("left", out, 2 * side), ("bottom", out, 3 * side)];
    let sides = sides.map(|(name, j, first)| (name, j, first..first + side));
    let mut groups = Vec::new();
    for (name, j, range) in [("hole", 0, 0..around)].into_iter().chain(sides) {
        let start = cells.len() as u32;
        for i in range {
            cells.push(CellKind::Edge, &[id(i, j), id(i + 1, j)]);
        }
        groups.push(Group { name: name.to_owned(), dimension: 1, cells: (start..cells.len() as u32).collect() });
    }
    let mut mesh = Mesh::new(points, cells)?;
    groups.into_iter().try_for_each(|group| mesh.add_group(group))?;
    Ok(mesh)
}

/// What [`plate`] makes of these counts.
pub(super) fn wanted_plate(counts: &[usize]) -> Wanted<'_> {
    let vertices = product(&[4, counts[0], counts[1].saturating_add(1)], 0);
    let cells = product(&[4, counts[0], counts[1].saturating_add(2)], 0);
    Wanted { name: "plate", counts, least: 3, vertices, cells, kind: CellKind::Quad }
}

/// Cosine and sine to a point of a ring, from the corner at the lower right: the same in all eight parts of it, to the last bit.
fn direction(part: usize, side: usize) -> [f64; 2] {
    // How far from the middle of the side, in halves of a quad.
    let (quarter, off) = (part / side, 2 * (part % side) as isize - side as isize);
    let angle = TAU / 8.0 * (off.unsigned_abs() as f64 / side as f64);
    let is_corner = off.unsigned_abs() == side;
    let [cos, sin] = if is_corner { [0.5_f64.sqrt(); 2] } else { [libm::cos(angle), libm::sin(angle)] };
    let sin = if off < 0 { -sin } else { sin };
    [[cos, sin], [-sin, cos], [-cos, -sin], [sin, -cos]][quarter]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_on_all_sides_and_its_rim_is_square_and_round() {
        let mesh = plate(12, 10).unwrap();
        let sorted = |of: &dyn Fn(&[f64; 3]) -> [f64; 2]| {
            let mut places: Vec<[u64; 2]> = mesh.points().iter().map(|p| of(p).map(|x| (x + 0.0).to_bits())).collect();
            places.sort_unstable();
            places
        };
        let all = sorted(&|p| [p[0], p[1]]);
        assert!(all == sorted(&|p| [-p[1], p[0]]) && all == sorted(&|p| [p[1], p[0]]));
        let radius = |p: &[f64; 3]| (p[0] * p[0] + p[1] * p[1]).sqrt();
        assert!(mesh.points()[..48].iter().all(|p| (radius(p) - HOLE).abs() < 1e-16));
        assert!(mesh.points()[480..].iter().all(|p| p[0].abs().max(p[1].abs()) == HALF));
        for (name, axis, at) in [("right", 0, HALF), ("left", 0, -HALF), ("top", 1, HALF), ("bottom", 1, -HALF)] {
            let cells = &mesh.group(name).unwrap().cells;
            let mut corners = cells.iter().flat_map(|&c| mesh.cells().corners(c as usize));
            assert!(cells.len() == 12 && corners.all(|&v| mesh.points()[v as usize][axis] == at), "{name}");
        }
        assert!(plate(2, 5).is_err() && plate(16, 2).is_err());
    }
}
