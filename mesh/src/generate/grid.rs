//! Structured meshes: a grid of vertices, x fastest, cut into triangles, quads, tets or hexes.

use super::size::{Wanted, product};
use super::stream::Stream;

use crate::cell::{CellKind, Cells};
use crate::error::Result;
use crate::mesh::{Group, Mesh};
use crate::parallel;

/// Length of the longest shift of a vertex of [`cuboid`], in spacings.
///
/// A Kuhn tet is 1/√3 spacings thin, and four vertices meet in one plane only if some moves half of that: shifts
/// shorter than 1/(2√3) = 0.2887 keep every tet positive.
const JITTER: f64 = 0.28;

/// The six Kuhn tets of a cube: paths from corner 0 to corner 7 along the axes in every order, as bits x = 1, y = 2,
/// z = 4. Odd orders have two corners swapped, so that every volume is positive.
const KUHN: [[usize; 4]; 6] = [[0, 1, 3, 7], [0, 5, 1, 7], [0, 3, 2, 7], [0, 2, 6, 7], [0, 4, 5, 7], [0, 6, 4, 7]];

/// Makes a flat sheet of triangles: `nx` × `ny` vertices in the plane z = 0, width 1 in x, square spacing.
///
/// The diagonals alternate like the colors of a chessboard. Were they all parallel, cloth would resist shear more in
/// one direction than in the other and drape lopsided; so the price is paid that inner vertices have 4 or 8 neighbors
/// in turn instead of 6. Normals point to +z.
///
/// # Errors
/// A side without vertices, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::sheet(5, 3)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (15, 2 * 4 * 2));
/// assert_eq!(mesh.bounds(), [[0.0; 3], [1.0, 0.5, 0.0]]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn sheet(nx: usize, ny: usize) -> Result<Mesh> {
    let size = wanted_sheet(&[nx, ny]).check()?;
    let mut corners = Vec::with_capacity(size.corners);
    for (at, [a, b, c, d]) in squares(nx, ny) {
        let halves = if (at[0] + at[1]).is_multiple_of(2) { [a, b, c, a, c, d] } else { [a, b, d, b, c, d] };
        corners.extend_from_slice(&halves);
    }
    Mesh::new(flat_points(nx, ny), Cells::of(CellKind::Triangle, corners))
}

/// What [`sheet`] makes of these counts.
pub(super) fn wanted_sheet(counts: &[usize]) -> Wanted<'_> {
    let (vertices, cells) = (product(counts, 0), product(counts, 1).saturating_mul(2));
    Wanted { name: "sheet", counts, least: 1, vertices, cells, kind: CellKind::Triangle }
}

/// Makes a flat sheet of quads: `nx` × `ny` vertices in the plane z = 0, width 1 in x, square spacing.
///
/// An inner vertex has 4 edges. Normals point to +z.
///
/// # Errors
/// A side without vertices, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::quads(5, 3)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (15, 4 * 2));
/// assert_eq!(mesh.cells().corners(0), [0, 1, 6, 5]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn quads(nx: usize, ny: usize) -> Result<Mesh> {
    wanted_quads(&[nx, ny]).check()?;
    let corners = squares(nx, ny).flat_map(|(_, corners)| corners).collect();
    Mesh::new(flat_points(nx, ny), Cells::of(CellKind::Quad, corners))
}

/// What [`quads`] makes of these counts.
pub(super) fn wanted_quads(counts: &[usize]) -> Wanted<'_> {
    let (vertices, cells) = (product(counts, 0), product(counts, 1));
    Wanted { name: "quads", counts, least: 1, vertices, cells, kind: CellKind::Quad }
}

/// Makes a flat lattice of edges: `nx` × `ny` vertices in the plane z = 0, width 1 in x, square spacing, with an edge to each neighbor
/// along a row or a column, and no faces.
///
/// # Errors
/// A side without vertices, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::grid(4, 3)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (12, 3 * 3 + 4 * 2));
/// assert_eq!([mesh.cells().corners(0), mesh.cells().corners(1)], [[0, 1], [0, 4]]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn grid(nx: usize, ny: usize) -> Result<Mesh> {
    wanted_grid(&[nx, ny]).check()?;
    let edges = (0..nx * ny).flat_map(|v| {
        let right = (v % nx + 1 < nx).then_some([v, v + 1]);
        let up = (v + nx < nx * ny).then_some([v, v + nx]);
        right.into_iter().chain(up)
    });
    Mesh::new(flat_points(nx, ny), Cells::of(CellKind::Edge, edges.flatten().map(|v| v as u32).collect()))
}

/// What [`grid`] makes of these counts.
pub(super) fn wanted_grid(counts: &[usize]) -> Wanted<'_> {
    let vertices = product(counts, 0);
    let sides = counts.iter().fold(0u128, |sum, &n| sum.saturating_add(n as u128));
    let cells = vertices.saturating_mul(2).saturating_sub(sides);
    Wanted { name: "grid", counts, least: 1, vertices, cells, kind: CellKind::Edge }
}

/// Makes what specs call `box`, a reserved word in Rust: `nx` × `ny` × `nz` vertices, six Kuhn tets per cube, vertices
/// shifted at random.
///
/// The longest side is 1 and the spacing is the same in every direction. Shifts are uniform in a ball of 0.28 spacings,
/// which keeps every tet positive; those of boundary vertices stay in their sides, so the box is flat-sided and its
/// corners are in place. An inner vertex has 14 neighbors.
///
/// # Errors
/// A side without vertices, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::cuboid(5, 5, 3, 1)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (75, 6 * 4 * 4 * 2));
/// assert_eq!(mesh.bounds(), [[0.0; 3], [1.0, 1.0, 0.5]]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn cuboid(nx: usize, ny: usize, nz: usize, seed: u64) -> Result<Mesh> {
    let counts = [nx, ny, nz];
    wanted_cuboid(&counts).check()?;
    let stream = Stream::new(seed);
    let steps = steps(&counts);
    let mut points = solid_points(counts);
    parallel::each(points.chunks_mut(nx).enumerate(), |(row, points)| {
        for (x, point) in points.iter_mut().enumerate() {
            let (at, shift) = ([x, row % ny, row / ny], stream.in_ball((row * nx + x) as u64));
            for k in 0..3 {
                if at[k] > 0 && at[k] + 1 < counts[k] {
                    point[k] = (at[k] as f64 + JITTER * shift[k]) / steps;
                }
            }
        }
    });
    Mesh::new(points, Cells::of(CellKind::Tet, kuhn_tets(counts, |_| 0)))
}

/// Makes a beam along x: `nx` × `ny` × `nz` vertices, six Kuhn tets per cube, no jitter.
///
/// The longest side is 1 and the spacing is the same in every direction, so `bar(4 * n - 3, n, n)` is 4:1:1. The ends x
/// = 0 and x = 1 are covered with triangles, listed after the tets and named by the groups `left` and `right`: hold or
/// pull them. An inner vertex has 14 neighbors.
///
/// # Errors
/// A side without vertices, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::bar(9, 3, 3)?;
/// assert_eq!(mesh.bounds(), [[0.0; 3], [1.0, 0.25, 0.25]]);
/// let left = mesh.group("left").expect("both ends are named");
/// assert_eq!(left.cells.len(), 8);
/// let corners = |&c: &u32| mesh.cells().corners(c as usize);
/// assert!(left.cells.iter().flat_map(corners).all(|&v| mesh.points()[v as usize][0] == 0.0));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn bar(nx: usize, ny: usize, nz: usize) -> Result<Mesh> {
    let counts = [nx, ny, nz];
    wanted_bar(&counts).check()?;
    let mut cells = Cells::of(CellKind::Tet, kuhn_tets(counts, |_| 0));
    let mut groups = [("left", Vec::new()), ("right", Vec::new())];
    for (at, corners) in cubes(counts) {
        // Facets of the tets, so that the triangles fit them; both pairs are seen from outside.
        let ends = [(0, [[0, 6, 2], [0, 4, 6]]), (nx - 2, [[1, 3, 7], [1, 7, 5]])];
        for ((x, triangles), (_, group)) in ends.into_iter().zip(&mut groups) {
            if at[0] == x {
                for triangle in triangles {
                    group.push(cells.len() as u32);
                    cells.push(CellKind::Triangle, &triangle.map(|k| corners[k]));
                }
            }
        }
    }
    let mut mesh = Mesh::new(solid_points(counts), cells)?;
    for (name, cells) in groups {
        mesh.add_group(Group { name: name.to_owned(), dimension: 2, cells })?;
    }
    Ok(mesh)
}

/// Makes a box of hexes: `nx` × `ny` × `nz` vertices, longest side 1, the same spacing in every direction.
///
/// An inner vertex has 6 edges.
///
/// # Errors
/// A side without vertices, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::hexes(5, 3, 3)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (45, 4 * 2 * 2));
/// assert_eq!(mesh.cells().corners(0), [0, 1, 6, 5, 15, 16, 21, 20]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn hexes(nx: usize, ny: usize, nz: usize) -> Result<Mesh> {
    let counts = [nx, ny, nz];
    let size = wanted_hexes(&counts).check()?;
    let mut corners = Vec::with_capacity(size.corners);
    for (_, cube) in cubes(counts) {
        corners.extend_from_slice(&[0, 1, 3, 2, 4, 5, 7, 6].map(|k| cube[k]));
    }
    Mesh::new(solid_points(counts), Cells::of(CellKind::Hex, corners))
}

/// What [`cuboid`] makes of these counts.
pub(super) fn wanted_cuboid(counts: &[usize]) -> Wanted<'_> {
    wanted_tets("box", counts, 0)
}

/// What [`bar`] makes of these counts: four triangles for each square of an end too.
pub(super) fn wanted_bar(counts: &[usize]) -> Wanted<'_> {
    wanted_tets("bar", counts, product(&counts[1..], 1).saturating_mul(4))
}

/// What [`hexes`] makes of these counts.
pub(super) fn wanted_hexes(counts: &[usize]) -> Wanted<'_> {
    let (vertices, cells) = (product(counts, 0), product(counts, 1));
    Wanted { name: "hexes", counts, least: 1, vertices, cells, kind: CellKind::Hex }
}

/// A grid of Kuhn tets with `more` other cells, of at most as many corners.
fn wanted_tets<'a>(name: &'static str, counts: &'a [usize], more: u128) -> Wanted<'a> {
    let cells = product(counts, 1).saturating_mul(6).saturating_add(more);
    Wanted { name, counts, least: 1, vertices: product(counts, 0), cells, kind: CellKind::Tet }
}

/// Corners of the Kuhn tets of every cube, shape [tets × 4].
///
/// `mirror` gives, for the cube at a place, the axes (as bits) along which its pattern is mirrored. Mirrored cubes fit
/// together as long as the choice along an axis depends on the place along that axis alone.
pub(super) fn kuhn_tets(counts: [usize; 3], mirror: impl Fn([usize; 3]) -> usize + Sync) -> Vec<u32> {
    let [mx, my, mz] = counts.map(|n| n - 1);
    let mut tets = vec![0; 24 * mx * my * mz];
    // A row of cubes along x at a time; a grid without cubes has no rows.
    parallel::each(tets.chunks_mut((24 * mx).max(1)).enumerate(), |(row, tets)| {
        for (x, tets) in tets.as_chunks_mut::<24>().0.iter_mut().enumerate() {
            let at = [x, row % my, row / my];
            let (corners, flip) = (cube(counts, at), mirror(at));
            for ([a, b, c, d], tet) in KUHN.into_iter().zip(tets.as_chunks_mut::<4>().0) {
                // An odd number of mirrors turns a tet inside out: two corners swapped mend it.
                let [b, c] = if flip.count_ones().is_multiple_of(2) { [b, c] } else { [c, b] };
                *tet = [a, b, c, d].map(|k| corners[k ^ flip]);
            }
        }
    });
    tets
}

/// Places of the vertices of a grid, in the order of their ids.
pub(super) fn vertices([nx, ny, nz]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])))
}

/// Place and the eight corners of every cube of a grid, corner numbers as bits x = 1, y = 2, z = 4.
fn cubes(counts: [usize; 3]) -> impl Iterator<Item = ([usize; 3], [u32; 8])> {
    vertices(counts.map(|n| n - 1)).map(move |at| (at, cube(counts, at)))
}

/// Corners of the cube at a place, numbered as by [`cubes`].
fn cube([nx, ny, _]: [usize; 3], [x, y, z]: [usize; 3]) -> [u32; 8] {
    std::array::from_fn(|k| (((z + (k >> 2)) * ny + y + (k >> 1 & 1)) * nx + x + (k & 1)) as u32)
}

/// Place and the four corners of every square of a flat grid, counterclockwise.
fn squares(nx: usize, ny: usize) -> impl Iterator<Item = ([usize; 2], [u32; 4])> {
    vertices([nx - 1, ny - 1, 1]).map(move |[x, y, _]| {
        let a = y * nx + x;
        ([x, y], [a, a + 1, a + nx + 1, a + nx].map(|v| v as u32))
    })
}

/// Steps along the longest side: what coordinates are divided by, so that the far end is exactly 1.
fn steps(counts: &[usize]) -> f64 {
    counts.iter().fold(1, |most, &n| most.max(n - 1)) as f64
}

fn solid_points(counts: [usize; 3]) -> Vec<[f64; 3]> {
    let steps = steps(&counts);
    let [nx, ny, nz] = counts;
    let at = |v: usize| [v % nx, v / nx % ny, v / nx / ny].map(|i| i as f64 / steps);
    parallel::collect(nx * ny * nz, at)
}

fn flat_points(nx: usize, ny: usize) -> Vec<[f64; 3]> {
    let steps = if nx > 1 { steps(&[nx]) } else { steps(&[ny]) }; // a sheet without width has length 1
    vertices([nx, ny, 1]).map(|at| at.map(|i| i as f64 / steps)).collect()
}
