//! Round meshes: ball, sphere, disk and torus, all of diameter 1.

use std::f64::consts::TAU;

use super::grid::{kuhn_tets, vertices};
use super::size::{Wanted, product};
use crate::cell::{CellKind, Cells};
use crate::error::Result;
use crate::mesh::Mesh;

const RADIUS: f64 = 0.5;
/// Radius of the middle of the torus and of its tube; together [`RADIUS`].
const RING: f64 = 0.35;
const TUBE: f64 = 0.15;

/// Makes a solid ball of tets around the origin: a cube grid of `n` vertices per side, bent shell by shell.
///
/// Radius 1/2; n³ vertices, 6 (n - 1)³ tets, 14 neighbors for most inner vertices. Every cubic shell of the grid
/// becomes a sphere of its own size, so the shape of the tets does not get worse as they get smaller. (Bending the
/// whole cube by one smooth map would squeeze those at its edges flat.) The tets of every octant are mirrored so that
/// their long diagonals point outward: then none spans an edge of the cube with all four corners on the sphere.
///
/// The map of the cube onto the sphere is x √(1 - y²/2 - z²/2 + y²z²/3), and so on in turn. Source: P. Nowell, "Mapping
/// a cube to a sphere", 2005.
///
/// # Errors
/// No vertex, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::ball(9)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (9 * 9 * 9, 6 * 8 * 8 * 8));
/// assert_eq!(mesh.bounds(), [[-0.5; 3], [0.5; 3]]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn ball(n: usize) -> Result<Mesh> {
    let size = wanted_ball(&[n]).check()?;
    let steps = (n - 1).max(1) as f64;
    let bend = |at: [usize; 3]| {
        let p = at.map(|i| (2.0 * i as f64 - (n - 1) as f64) / steps);
        let shell = p.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        if shell == 0.0 {
            return p;
        }
        let p = p.map(|x| x / shell);
        let [xx, yy, zz] = p.map(|x| x * x);
        let stretch = |a: f64, b: f64| (1.0 - a / 2.0 - b / 2.0 + a * b / 3.0).sqrt();
        [p[0] * stretch(yy, zz), p[1] * stretch(zz, xx), p[2] * stretch(xx, yy)].map(|x| RADIUS * shell * x)
    };
    let lower = |i: usize| usize::from(2 * i + 1 < n - 1); // whether a cube is in the lower half
    let tets = kuhn_tets([n; 3], |[x, y, z]| lower(x) | lower(y) << 1 | lower(z) << 2);
    let mut points = Vec::with_capacity(size.vertices);
    points.extend(vertices([n; 3]).map(bend));
    Mesh::new(points, Cells::of(CellKind::Tet, tets))
}

/// What [`ball`] makes of this count.
pub(super) fn wanted_ball(counts: &[usize]) -> Wanted<'_> {
    let [vertices, cubes] = [0, 1].map(|less| product(&[counts[0]; 3], less));
    Wanted { name: "ball", counts, least: 1, vertices, cells: cubes.saturating_mul(6), kind: CellKind::Tet }
}

/// Makes the surface of a ball around the origin: the faces of an icosahedron, cut into `n`² triangles each.
///
/// Radius 1/2; 10 n² + 2 vertices, 20 n² triangles. Every vertex has 6 neighbors, but the 12 of the icosahedron have 5.
///
/// # Errors
/// No piece, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::sphere(4)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (162, 320));
/// assert!(mesh.points().iter().all(|p| (p[0] * p[0] + p[1] * p[1] + p[2] * p[2] - 0.25).abs() < 1e-15));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn sphere(n: usize) -> Result<Mesh> {
    let size = wanted_sphere(&[n]).check()?;

    let long = (1.0 + 5f64.sqrt()) / 2.0; // the corners span three golden rectangles
    let corners = ICOSAHEDRON_CORNERS.map(|p| p.map(|sign| if sign.abs() == 2.0 { sign / 2.0 * long } else { sign }));
    let edges = icosahedron_edges();
    // Point that weighs three corners.
    let point = |weights: [(u32, usize); 3]| {
        let sum = |k: usize| weights.iter().map(|&(v, w)| corners[v as usize][k] * w as f64).sum::<f64>();
        let p = [sum(0), sum(1), sum(2)];
        let length = (p[0] * p[0] + p[1] * p[1] + p[2] * p[2]).sqrt();
        p.map(|x| RADIUS * x / length)
    };
    let mut points = Vec::with_capacity(size.vertices);
    points.extend((0..12).map(|v| point([(v, 1), (v, 0), (v, 0)])));
    for &[a, b] in &edges {
        points.extend((1..n).map(|k| point([(a, n - k), (b, k), (b, 0)])));
    }
    for [a, b, c] in ICOSAHEDRON_FACES {
        for j in 1..n {
            points.extend((1..n - j).map(|i| point([(a, n - i - j), (b, i), (c, j)])));
        }
    }

    // Ids in the same order: corners, then edges, then faces.
    let on_edge = |a: u32, b: u32, k: usize| {
        let pair = [a.min(b), a.max(b)];
        let edge = edges.iter().position(|&e| e == pair).expect("the sides of the faces are the edges");
        let k = if a < b { k } else { n - k };
        12 + edge * (n - 1) + k - 1
    };
    let mut triangles = Vec::with_capacity(size.corners);
    for (face, [a, b, c]) in ICOSAHEDRON_FACES.into_iter().enumerate() {
        let first = 12 + 30 * (n - 1) + face * ((n - 1) * n.saturating_sub(2) / 2);
        let id = |i: usize, j: usize| {
            let v = match (i, j) {
                (0, 0) => a as usize,
                (i, 0) if i == n => b as usize,
                (0, j) if j == n => c as usize,
                (i, 0) => on_edge(a, b, i),
                (0, j) => on_edge(a, c, j),
                (i, j) if i + j == n => on_edge(b, c, j),
                (i, j) => first + (j - 1) * (2 * n - j - 2) / 2 + i - 1, // rows of n - 2, n - 3, … before row j
            };
            v as u32
        };
        for j in 0..n {
            for i in 0..n - j {
                triangles.extend_from_slice(&[id(i, j), id(i + 1, j), id(i, j + 1)]);
                if i + j + 1 < n {
                    triangles.extend_from_slice(&[id(i + 1, j), id(i + 1, j + 1), id(i, j + 1)]);
                }
            }
        }
    }
    Mesh::new(points, Cells::of(CellKind::Triangle, triangles))
}

/// What [`sphere`] makes of this count.
pub(super) fn wanted_sphere(counts: &[usize]) -> Wanted<'_> {
    let square = product(&[counts[0]; 2], 0);
    let (vertices, cells) = (square.saturating_mul(10).saturating_add(2), square.saturating_mul(20));
    Wanted { name: "sphere", counts, least: 1, vertices, cells, kind: CellKind::Triangle }
}

/// Makes a flat disk of triangles around the origin, in the plane z = 0: a center and `n` rings, 6 k vertices in ring
/// k.
///
/// Radius 1/2; 3 n (n + 1) + 1 vertices, 6 n² triangles that are nearly equilateral. An inner vertex has 6 neighbors.
/// Normals point to +z.
///
/// # Errors
/// No ring, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::disk(10)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len()), (331, 600));
/// assert_eq!(mesh.points()[0], [0.0; 3]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn disk(n: usize) -> Result<Mesh> {
    let size = wanted_disk(&[n]).check()?;

    let mut points = Vec::with_capacity(size.vertices);
    points.push([0.0; 3]);
    for k in 1..=n {
        let radius = RADIUS * (k as f64 / n as f64);
        points.extend((0..6 * k).map(|j| {
            let (sin, cos) = turn(j, 6 * k);
            [radius * cos, radius * sin, 0.0]
        }));
    }

    let id = |k: usize, j: usize| if k == 0 { 0 } else { (1 + 3 * k * (k - 1) + j % (6 * k)) as u32 };
    let mut triangles = Vec::with_capacity(size.corners);
    for k in 1..=n {
        for sector in 0..6 {
            let (inner, outer) = (|t| id(k - 1, sector * (k - 1) + t), |t| id(k, sector * k + t));
            for t in 0..k {
                triangles.extend_from_slice(&[inner(t), outer(t), outer(t + 1)]);
                if t + 1 < k {
                    triangles.extend_from_slice(&[inner(t), outer(t + 1), inner(t + 1)]);
                }
            }
        }
    }
    Mesh::new(points, Cells::of(CellKind::Triangle, triangles))
}

/// What [`disk`] makes of this count.
pub(super) fn wanted_disk(counts: &[usize]) -> Wanted<'_> {
    let (square, ring) = (product(&[counts[0]; 2], 0), 3 * counts[0] as u128);
    let vertices = square.saturating_mul(3).saturating_add(ring).saturating_add(1);
    Wanted { name: "disk", counts, least: 1, vertices, cells: square.saturating_mul(6), kind: CellKind::Triangle }
}

/// Makes the surface of a ring around the z axis: `n` vertices around the ring times `m` around its tube.
///
/// Outer diameter 1, tube diameter 0.3; n m vertices, 2 n m triangles. Every vertex has 6 neighbors.
///
/// # Errors
/// Fewer than 3 vertices either way, or a mesh that is too large.
///
/// ```
/// let mesh = meshweft_mesh::generate::torus(8, 4)?;
/// assert_eq!((mesh.points().len(), mesh.cells().len(), mesh.edges().len()), (32, 64, 96));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn torus(n: usize, m: usize) -> Result<Mesh> {
    let size = wanted_torus(&[n, m]).check()?;

    let around_tube: Vec<(f64, f64)> = (0..m).map(|j| turn(j, m)).collect();
    let mut points = Vec::with_capacity(size.vertices);
    let mut triangles = Vec::with_capacity(size.corners);
    for i in 0..n {
        let (sin, cos) = turn(i, n);
        points.extend(around_tube.iter().map(|&(up, out)| {
            let radius = RING + TUBE * out;
            [radius * cos, radius * sin, TUBE * up]
        }));
        for j in 0..m {
            let (next_i, next_j) = ((i + 1) % n, (j + 1) % m);
            let [a, b, c, d] = [(i, j), (next_i, j), (next_i, next_j), (i, next_j)].map(|(i, j)| (i * m + j) as u32);
            triangles.extend_from_slice(&[a, b, c, a, c, d]);
        }
    }
    Mesh::new(points, Cells::of(CellKind::Triangle, triangles))
}

/// What [`torus`] makes of these counts.
pub(super) fn wanted_torus(counts: &[usize]) -> Wanted<'_> {
    let vertices = product(counts, 0);
    Wanted { name: "torus", counts, least: 3, vertices, cells: vertices.saturating_mul(2), kind: CellKind::Triangle }
}

/// Sine and cosine of `part` in `whole` turns, by software: those of the platform differ in the last bit.
fn turn(part: usize, whole: usize) -> (f64, f64) {
    let angle = TAU * (part as f64 / whole as f64);
    (libm::sin(angle), libm::cos(angle))
}

/// Corners of an icosahedron; ±2 stands for ± the golden ratio.
const ICOSAHEDRON_CORNERS: [[f64; 3]; 12] = [
    [-1.0, 2.0, 0.0],
    [1.0, 2.0, 0.0],
    [-1.0, -2.0, 0.0],
    [1.0, -2.0, 0.0],
    [0.0, -1.0, 2.0],
    [0.0, 1.0, 2.0],
    [0.0, -1.0, -2.0],
    [0.0, 1.0, -2.0],
    [2.0, 0.0, -1.0],
    [2.0, 0.0, 1.0],
    [-2.0, 0.0, -1.0],
    [-2.0, 0.0, 1.0],
];

/// Faces of the icosahedron, seen from outside.
const ICOSAHEDRON_FACES: [[u32; 3]; 20] = [
    [0, 11, 5],
    [0, 5, 1],
    [0, 1, 7],
    [0, 7, 10],
    [0, 10, 11],
    [1, 5, 9],
    [5, 11, 4],
    [11, 10, 2],
    [10, 7, 6],
    [7, 1, 8],
    [3, 9, 4],
    [3, 4, 2],
    [3, 2, 6],
    [3, 6, 8],
    [3, 8, 9],
    [4, 9, 5],
    [2, 4, 11],
    [6, 2, 10],
    [8, 6, 7],
    [9, 8, 1],
];

/// The 30 edges, the smaller corner first: each is a side of one face in that direction and of one in the other.
fn icosahedron_edges() -> Vec<[u32; 2]> {
    let sides = ICOSAHEDRON_FACES.iter().flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
    sides.filter(|[a, b]| a < b).collect()
}
