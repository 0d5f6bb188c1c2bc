//! An airfoil with rings of quads around it.

use super::size::{Wanted, product};
use crate::cell::{CellKind, Cells};
use crate::error::Result;
use crate::mesh::{Group, Mesh};
use std::f64::consts::TAU;

/// Greatest thickness over the chord.
const THICKNESS: f64 = 0.12;
/// Where the two singular points of the map lie on the chord: at the trailing edge, and in the middle of the circle that fits the nose.
const TAIL: f64 = 1.0;
const NOSE: f64 = 0.5 * 1.1019 * THICKNESS * THICKNESS;
/// Their distance from the middle between them is twice this.
const CIRCLE: f64 = 0.25 * (TAIL - NOSE);
const MIDDLE: f64 = 0.5 * (TAIL + NOSE);
/// How far away the outermost ring lies, in chords.
const FAR: f64 = 100.0;

/// Makes the flow around an airfoil: a NACA 0012 of chord 1 along x from the origin, in rings of quads out to 100 chords.
///
/// `around`: quads in a ring, `out`: rings. The quads are nearly square at the airfoil and grow outward; their sides at the airfoil are
/// edges in the group `airfoil`, those of the last ring in the group `far`. The map of Joukowski makes almost a circle of
/// the airfoil; rings shrink to circles as they grow. Source of the shape: Jacobs, Ward and Pinkerton, NACA report 460, 1933, with the last
/// coefficient that closes the trailing edge; of the mesh: Vassberg and Jameson, In pursuit of grid convergence for two-dimensional
/// Euler solutions, 2010, where it is the map of Kármán and Trefftz.
///
/// # Errors
/// Fewer than 3 of either, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::airfoil(64, 32)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (64 * 33, 64 * 32 + 2 * 64));
/// assert_eq!((mesh.points()[0], mesh.group("airfoil").unwrap().cells.len()), ([1.0, 0.0, 0.0], 64));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn airfoil(around: usize, out: usize) -> Result<Mesh> {
    let counts = [around, out];
    let size = wanted_airfoil(&counts).check()?;
    let rim: Vec<([f64; 2], f64)> = (0..around).map(|i| circled(i, around)).collect();
    let mean = rim.iter().map(|(_, radius)| radius).sum::<f64>() / around as f64;
    // The logarithm of the radius grows by steps that grow evenly, from one that makes squares.
    let (whole, square, n) = (libm::log(FAR / mean), TAU / around as f64, out as f64);
    let more = (2.0 * (whole / square - n) / (n * (n - 1.0))).max(0.0);
    let step = whole / (n + 0.5 * more * n * (n - 1.0));
    let mut points = Vec::with_capacity(size.vertices);
    for j in 0..=out {
        let j = j as f64;
        let grown = libm::exp(step * (j + 0.5 * more * j * (j - 1.0)));
        points.extend(rim.iter().map(|&([cos, sin], radius)| {
            let radius = grown * mean + (radius - mean);
            let (x, y) = (radius * cos, radius * sin);
            let back = CIRCLE * CIRCLE / (radius * radius);
            [MIDDLE + x * (1.0 + back), y * (1.0 - back), 0.0]
        }));
    }
    let id = |i: usize, j: usize| (j * around + i % around) as u32;
    let mut cells = Cells::new();
    for (j, i) in (0..out).flat_map(|j| (0..around).map(move |i| (j, i))) {
        cells.push(CellKind::Quad, &[id(i, j), id(i, j + 1), id(i + 1, j + 1), id(i + 1, j)]);
    }
    let mut groups = [("airfoil", 0, Vec::new()), ("far", out, Vec::new())];
    for (_, j, group) in &mut groups {
        for i in 0..around {
            group.push(cells.len() as u32);
            cells.push(CellKind::Edge, &[id(i, *j), id(i + 1, *j)]);
        }
    }
    let mut mesh = Mesh::new(points, cells)?;
    for (name, _, cells) in groups {
        mesh.add_group(Group { name: name.to_owned(), dimension: 1, cells })?;
    }
    Ok(mesh)
}

/// What [`airfoil`] makes of these counts.
pub(super) fn wanted_airfoil(counts: &[usize]) -> Wanted<'_> {
    let vertices = product(&[counts[0], counts[1].saturating_add(1)], 0);
    let cells = product(counts, 0).saturating_add(2 * counts[0] as u128);
    Wanted { name: "airfoil", counts, least: 3, vertices, cells, kind: CellKind::Quad }
}

/// The point of the airfoil that the map brings to `part` in `whole` of a turn, from the trailing edge over the upper side: cosine and sine, and how far
/// from the middle.
fn circled(part: usize, whole: usize) -> ([f64; 2], f64) {
    // Below it is the same as above, to the last bit.
    if 2 * part > whole {
        let ([cos, sin], radius) = circled(whole - part, whole);
        return ([cos, -sin], radius);
    }
    let angle = TAU * (part as f64 / whole as f64);
    let toward = match part {
        0 => [1.0, 0.0],
        _ if 2 * part == whole => [-1.0, 0.0],
        _ => [libm::cos(angle), libm::sin(angle)],
    };
    let at = |x: f64| mapped([x, height(x)]);
    let [mut low, mut high] = [0.0, 1.0];
    match part {
        0 => low = 1.0,
        _ if 2 * part == whole => high = 0.0,
        _ => {
            for _ in 0..100 {
                let x = 0.5 * (low + high);
                let [u, v] = at(x);
                // Whether it lies before the ray.
                if toward[0] * v - toward[1] * u < 0.0 { high = x } else { low = x }
            }
        }
    }
    let [u, v] = at(0.5 * (low + high));
    (toward, (u * u + v * v).sqrt())
}

/// Half the thickness at a place on the chord.
fn height(x: f64) -> f64 {
    let bend = -0.1260 + x * (-0.3516 + x * (0.2843 - x * 0.1036));
    (5.0 * THICKNESS * (0.2969 * x.sqrt() + x * bend)).max(0.0)
}

/// Where a point of the upper half plane goes: the larger `w` of `z = w + CIRCLE² / w`, with `z` from the middle.
fn mapped([x, y]: [f64; 2]) -> [f64; 2] {
    let (x, y) = (0.5 * (x - MIDDLE), 0.5 * y);
    // The square root of z² / 4 - CIRCLE² whose imaginary part is not negative: its real part has the sign of that of z.
    let (re, im) = (x * x - y * y - CIRCLE * CIRCLE, 2.0 * x * y);
    let length = (re * re + im * im).sqrt();
    let up = (0.5 * (length - re)).max(0.0).sqrt();
    let along = (0.5 * (length + re)).max(0.0).sqrt();
    [x + if x < 0.0 { -along } else { along }, y + up]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ring_is_the_airfoil_and_the_last_one_a_circle() {
        let mesh = airfoil(128, 64).unwrap();
        for p in &mesh.points()[..128] {
            assert!((p[1].abs() - height(p[0].clamp(0.0, 1.0))).abs() < 1e-9, "{p:?}");
        }
        assert!(mesh.points()[64][0].abs() < 1e-9, "{:?}", mesh.points()[64]);
        for p in &mesh.points()[128 * 64..] {
            let radius = ((p[0] - MIDDLE).powi(2) + p[1].powi(2)).sqrt();
            assert!((radius / FAR - 1.0).abs() < 1e-3, "{radius}");
        }
    }

    #[test]
    fn quads_are_seen_from_above_and_nearly_square() {
        let dual = airfoil(96, 48).unwrap().dual().unwrap();
        assert_eq!((dual.faces.len(), dual.boundary_faces.len()), (96 * 48 + 96 * 47, 2 * 96));
        let mesh = airfoil(96, 48).unwrap();
        for corners in mesh.cells().corners_of(CellKind::Quad).as_chunks::<4>().0 {
            let [a, b, c, d] = corners.map(|v| mesh.points()[v as usize]);
            let diagonals = [[c[0] - a[0], c[1] - a[1]], [d[0] - b[0], d[1] - b[1]]];
            let area = 0.5 * (diagonals[0][0] * diagonals[1][1] - diagonals[0][1] * diagonals[1][0]);
            assert!(area > 0.0, "{corners:?}");
        }
    }
}
