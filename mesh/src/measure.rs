//! Lengths, areas, volumes, and the Laplacian of linear finite elements.
//!
//! Sums here are taken in the order of their terms' values, so they depend neither on the names of vertices nor on the
//! order of cells.

use crate::assembly::{Sums, Terms, assemble, by_vertex};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::parallel;

/// Linear finite elements for `∇·∇`: one weight an edge, one mass a vertex.
///
/// The row of vertex `i` is `(1 / masses[i]) Σ_j weights[ij] (x_j - x_i)`; a positive weight draws neighbors together.
/// Boundaries without further condition are insulated (Neumann).
#[derive(Clone, Debug, PartialEq)]
pub struct Laplacian {
    /// Edges that carry a weight, smaller id first, ascending. Shape [edges × 2].
    pub edges: Vec<[u32; 2]>,
    /// Weight of each edge: meters to the power (dimension - 2). Obtuse cells can make a weight negative.
    pub weights: Vec<f64>,
    /// Lumped mass of each vertex: its share of the length, area or volume of its cells; 0 for a vertex without cells.
    pub masses: Vec<f64>,
}

impl Laplacian {
    /// Assembles the Laplacian of the cells of highest dimension: tets (solids are cut into tets), triangles (the
    /// cotangent weights; quads are halved), or edges (one over the length). Cells of no size are left out, and those that
    /// repeat a corner.
    ///
    /// Cost O(cells), in parallel. Source: Pinkall and Polthier, "Computing discrete minimal surfaces and their
    /// conjugates", 1993, for triangles; the stiffness matrix of linear elements in any textbook.
    ///
    /// # Errors
    /// A mesh with 2^32 corners of cells.
    ///
    /// ```
    /// use meshweft_mesh::{CellKind, Cells, Laplacian, Mesh};
    /// let right = vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    /// let laplacian = Laplacian::of(&Mesh::new(right, Cells::of(CellKind::Triangle, vec![0, 1, 2]))?)?;
    /// assert_eq!(laplacian.edges, [[0, 1], [0, 2], [1, 2]]);
    /// assert!((laplacian.weights[0] - 0.5).abs() < 1e-15 && laplacian.weights[2].abs() < 1e-15);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn of(mesh: &Mesh) -> Result<Laplacian> {
        match mesh.dimension() {
            3 => Laplacian::assembled(mesh, &mesh.tets(), tet_element),
            2 => Laplacian::assembled(mesh, &mesh.triangles(), triangle_element),
            // Without edges too: then nothing has a mass.
            _ => Laplacian::assembled(mesh, &mesh.edges(), edge_element),
        }
    }

    fn assembled<const K: usize>(
        mesh: &Mesh,
        elements: &[[u32; K]],
        element: impl Fn([[f64; 3]; K]) -> Terms<K> + Sync,
    ) -> Result<Laplacian> {
        if elements.len() > u32::MAX as usize / K {
            return Err(Error::Invalid(format!("{} cells have more than 2^32 corners: cut the mesh", elements.len())));
        }
        // Each corner has its share of the mass.
        let terms = |p| {
            let (mass, weights) = element(p);
            let is_sized = weights.iter().flatten().fold(true, |all, weight| all & weight.is_finite());
            (if is_sized { mass / K as f64 } else { f64::NAN }, weights)
        };
        let Sums { edges, weights, masses } = assemble(mesh.points(), elements, terms);
        Ok(Laplacian { edges, weights, masses })
    }

    /// The largest `diffusivity × time step` for which no explicit update overshoots where weights are positive: the
    /// smallest `masses[i] / Σ_j |weights[ij]|`, m²; 1 without edges.
    ///
    /// Weights are added by size, so that names do not matter. Cost O(edges), in parallel.
    ///
    /// # Panics
    /// If an edge names a vertex without a mass.
    ///
    /// ```
    /// use meshweft_mesh::{Laplacian, Mesh};
    /// let line = Mesh::from_edges(vec![[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], vec![[0, 1], [1, 2]])?;
    /// // An end has half a meter and one weight of 1/m; the middle has twice as much of both.
    /// assert_eq!(Laplacian::of(&line)?.explicit_limit(), 0.5);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn explicit_limit(&self) -> f64 {
        let n = self.masses.len();
        let stray = parallel::first(self.edges.len(), |e| self.edges[e].iter().any(|&v| v as usize >= n));
        assert!(stray.is_none(), "edges join vertices with a mass");
        let limits = by_vertex(
            n,
            &self.edges,
            |e| self.weights[e].abs(),
            |vertices, totals| {
                let masses = &self.masses[vertices.start as usize..vertices.end as usize];
                let limit = |(mass, &total): (&f64, &f64)| if total > 0.0 { mass / total } else { f64::INFINITY };
                masses.iter().zip(totals).map(limit).fold(f64::INFINITY, f64::min)
            },
        );
        Some(limits.into_iter().fold(f64::INFINITY, f64::min)).filter(|limit| limit.is_finite()).unwrap_or(1.0)
    }
}

/// Mean length of some edges of a mesh, such as [`Mesh::edges`], in meters; 0 without edges.
///
/// Lengths are added as integer multiples of 2^-62 of the longest, which depends on no order. Cost O(edges), in parallel.
///
/// ```
/// use meshweft_mesh::{CellKind, Cells, Mesh, mean_edge_length};
/// let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [4.0, 0.0, 0.0]];
/// let mesh = Mesh::new(points, Cells::of(CellKind::Edge, vec![0, 1, 1, 2]))?;
/// assert_eq!(mean_edge_length(&mesh, &mesh.edges()), 2.0);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn mean_edge_length(mesh: &Mesh, edges: &[[u32; 2]]) -> f64 {
    const UNIT: f64 = (1u64 << 62) as f64;
    const PIECE: usize = 1 << 14;
    let points = mesh.points();
    let length = |e: &[u32; 2]| norm(sub(points[e[1] as usize], points[e[0] as usize]));
    let longest = parallel::map(edges.chunks(PIECE), |edges| edges.iter().map(length).fold(0.0, f64::max));
    let longest = longest.into_iter().fold(0.0, f64::max);
    if longest == 0.0 || longest.is_infinite() {
        return longest;
    }
    let sum =
        |edges: &[[u32; 2]]| edges.iter().map(|e| (length(e) / longest * UNIT) as u64).map(u128::from).sum::<u128>();
    let total = parallel::map(edges.chunks(PIECE), sum).into_iter().sum::<u128>();
    total as f64 / UNIT / edges.len() as f64 * longest
}

/// Of an element, its mass and its weight between corners `i` and `j` for `j < i`, at `[i][j]`: not finite for one of no size.
#[inline(always)]
fn edge_element([a, b]: [[f64; 3]; 2]) -> Terms<2> {
    let length = norm(sub(b, a));
    (length, [[0.0; 2], [1.0 / length, 0.0]])
}

/// The weight of an edge is half the cotangent of the angle that faces it.
#[inline(always)]
fn triangle_element(p: [[f64; 3]; 3]) -> Terms<3> {
    let area = 0.5 * norm(cross(sub(p[1], p[0]), sub(p[2], p[0])));
    let facing = |i: usize, j: usize, k: usize| dot(sub(p[i], p[k]), sub(p[j], p[k])) / (4.0 * area);
    (area, [[0.0; 3], [facing(0, 1, 2), 0.0, 0.0], [facing(2, 0, 1), facing(1, 2, 0), 0.0]])
}

/// The gradient of corner `k`'s hat function is its facing area vector over three volumes.
#[inline(always)]
fn tet_element(p: [[f64; 3]; 4]) -> Terms<4> {
    let facing = |a: usize, b: usize, c: usize| scaled(0.5, cross(sub(p[b], p[a]), sub(p[c], p[a])));
    let areas = [facing(1, 3, 2), facing(0, 2, 3), facing(0, 3, 1), facing(0, 1, 2)];
    let volume = dot(cross(sub(p[1], p[0]), sub(p[2], p[0])), sub(p[3], p[0])).abs() / 6.0;
    let mut weights = [[0.0; 4]; 4];
    for i in 0..4 {
        for j in 0..i {
            weights[i][j] = -dot(areas[i], areas[j]) / (9.0 * volume);
        }
    }
    (volume, weights)
}

#[inline(always)]
pub(crate) fn add(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

#[inline(always)]
pub(crate) fn scaled(factor: f64, a: [f64; 3]) -> [f64; 3] {
    [factor * a[0], factor * a[1], factor * a[2]]
}

#[inline(always)]
pub(crate) fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[inline(always)]
pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[inline(always)]
pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[inline(always)]
fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{CellKind, Cells};
    use crate::generate::generate;

    /// Energy of the linear function x + 2 y + 3 z: gradient squared times size, exactly for linear elements.
    fn energy(mesh: &Mesh, gradient: [f64; 3]) -> f64 {
        let laplacian = Laplacian::of(mesh).unwrap();
        let value = |v: u32| dot(gradient, mesh.points()[v as usize]);
        laplacian.edges.iter().zip(&laplacian.weights).map(|(e, w)| w * (value(e[0]) - value(e[1])).powi(2)).sum()
    }

    #[test]
    fn linear_functions_have_their_exact_energy() {
        let points = vec![[0.0; 3], [1.0, 0.2, 0.0], [0.1, 1.3, 0.0], [0.2, 0.1, 0.9]];
        let tet = Mesh::new(points.clone(), Cells::of(CellKind::Tet, vec![0, 1, 2, 3])).unwrap();
        let volume: f64 = Laplacian::of(&tet).unwrap().masses.iter().sum();
        assert!((energy(&tet, [1.0, 2.0, 3.0]) - 14.0 * volume).abs() < 1e-12);
        let triangle = Mesh::new(points, Cells::of(CellKind::Triangle, vec![0, 1, 2])).unwrap();
        let area: f64 = Laplacian::of(&triangle).unwrap().masses.iter().sum();
        assert!((energy(&triangle, [1.0, 2.0, 0.0]) - 5.0 * area).abs() < 1e-12);
    }

    /// [`Laplacian::explicit_limit`] by its definition.
    fn plain_limit(laplacian: &Laplacian) -> f64 {
        let ends = laplacian.edges.iter().zip(&laplacian.weights).flat_map(|(e, w)| e.map(|v| (v, w.abs())));
        let mut ends: Vec<(u32, f64)> = ends.collect();
        ends.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let totals = ends.chunk_by(|a, b| a.0 == b.0).map(|row| (row[0].0, row.iter().map(|end| end.1).sum::<f64>()));
        let limits = totals.filter(|&(_, total)| total > 0.0).map(|(v, total)| laplacian.masses[v as usize] / total);
        Some(limits.fold(f64::INFINITY, f64::min)).filter(|limit| limit.is_finite()).unwrap_or(1.0)
    }

    #[test]
    fn limits_of_explicit_steps_equal_their_definition() {
        for spec in ["box:20", "box:2", "sheet:40", "hexes:9", "ball:9", "torus:48x24", "chain:500", "random:3000"] {
            let laplacian = Laplacian::of(&generate(spec, 3).unwrap()).unwrap();
            assert_eq!(laplacian.explicit_limit().to_bits(), plain_limit(&laplacian).to_bits(), "{spec}");
        }
        let odd = |weights: [f64; 3]| Laplacian {
            edges: vec![[0, 1], [0, 2], [1, 2]],
            weights: weights.to_vec(),
            masses: vec![1.0, 0.0, 3.0, 4.0],
        };
        for weights in [[0.0; 3], [f64::NAN; 3], [-1.0, f64::INFINITY, 2.0], [1e-310, -0.0, 5.0]] {
            let laplacian = odd(weights);
            assert_eq!(laplacian.explicit_limit().to_bits(), plain_limit(&laplacian).to_bits(), "{weights:?}");
        }
        let none = Laplacian { edges: vec![], weights: vec![], masses: vec![] };
        assert_eq!(none.explicit_limit(), 1.0);
    }

    #[test]
    fn cells_of_no_size_are_left_out() {
        let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0; 3]];
        for (kind, corners) in
            [(CellKind::Triangle, vec![0, 1, 2]), (CellKind::Tet, vec![0, 1, 2, 3]), (CellKind::Edge, vec![0, 3])]
        {
            let laplacian = Laplacian::of(&Mesh::new(points.clone(), Cells::of(kind, corners)).unwrap()).unwrap();
            assert!(laplacian.weights.iter().chain(&laplacian.masses).all(|x| x.is_finite()), "{laplacian:?}");
        }
        let bare = Laplacian::of(&Mesh::new(points, Cells::new()).unwrap()).unwrap();
        assert_eq!((bare.edges.len(), bare.masses), (0, vec![0.0; 4]));
    }
}
