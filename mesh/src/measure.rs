//! Lengths, areas, volumes, and the Laplacian of linear finite elements.
//!
//! Sums here are taken in the order of their terms' values, so they depend neither on the names of vertices nor on the
//! order of cells.

use crate::error::{Error, Result};
use crate::mesh::Mesh;
use rayon::prelude::*;

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
    /// cotangent weights; quads are halved), or edges (one over the length). Cells of no size are left out.
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
        let points = mesh.points();
        let n = points.len();
        match mesh.dimension() {
            3 => assemble(n, &mesh.tets(), |t| tet_element(t.map(|v| points[v as usize]))),
            2 => assemble(n, &mesh.triangles(), |t| triangle_element(t.map(|v| points[v as usize]))),
            // Without edges too: then nothing has a mass.
            _ => assemble(n, &mesh.edges(), |e| edge_element(e.map(|v| points[v as usize]))),
        }
    }
}

/// Length of each edge of [`Mesh::edges`], in meters.
pub fn edge_lengths(mesh: &Mesh) -> Vec<f64> {
    let points = mesh.points();
    mesh.edges().par_iter().map(|e| norm(sub(points[e[1] as usize], points[e[0] as usize]))).collect()
}

/// Mean length of the edges in meters; 0 without edges.
///
/// ```
/// use meshweft_mesh::{CellKind, Cells, Mesh, mean_edge_length};
/// let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [4.0, 0.0, 0.0]];
/// assert_eq!(mean_edge_length(&Mesh::new(points, Cells::of(CellKind::Edge, vec![0, 1, 1, 2]))?), 2.0);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn mean_edge_length(mesh: &Mesh) -> f64 {
    let mut lengths = edge_lengths(mesh);
    lengths.par_sort_unstable_by(f64::total_cmp);
    if lengths.is_empty() { 0.0 } else { lengths.iter().sum::<f64>() / lengths.len() as f64 }
}

/// An element's mass and its weight between each pair of corners; `None` for an element of no size.
type Element<const K: usize> = Option<(f64, [[f64; K]; K])>;

fn assemble<const K: usize>(
    n: usize,
    elements: &[[u32; K]],
    element: impl Fn([u32; K]) -> Element<K> + Sync,
) -> Result<Laplacian> {
    if elements.len() > u32::MAX as usize / K {
        return Err(Error::Invalid(format!("{} cells have more than 2^32 corners: cut the mesh", elements.len())));
    }
    let mut offsets = vec![0u32; n + 1];
    elements.iter().flatten().for_each(|&v| offsets[v as usize + 1] += 1);
    (0..n).for_each(|v| offsets[v + 1] += offsets[v]);
    let mut next = offsets.clone();
    let mut incident = vec![0u32; elements.len() * K];
    for (e, corners) in elements.iter().enumerate() {
        for &v in corners {
            incident[next[v as usize] as usize] = e as u32;
            next[v as usize] += 1;
        }
    }
    // Row by row: the mass of the vertex and the weights of its edges to higher ids.
    let rows: Vec<(f64, Vec<(u32, f64)>)> = (0..n)
        .into_par_iter()
        .map(|v| {
            let (mut masses, mut weights) = (Vec::new(), Vec::new());
            for &e in &incident[offsets[v] as usize..offsets[v + 1] as usize] {
                let corners = elements[e as usize];
                let Some((mass, matrix)) = element(corners) else { continue };
                let own = corners.iter().position(|&u| u as usize == v).expect("the element is incident");
                masses.push(mass / K as f64);
                let higher = (0..K).filter(|&k| corners[k] as usize > v);
                weights.extend(higher.map(|k| (corners[k], matrix[own][k])));
            }
            masses.sort_unstable_by(f64::total_cmp);
            weights.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            let sums = weights.chunk_by(|a, b| a.0 == b.0);
            (masses.iter().sum(), sums.map(|s| (s[0].0, s.iter().map(|w| w.1).sum())).collect())
        })
        .collect();
    let (mut edges, mut weights) = (Vec::new(), Vec::new());
    for (v, (_, row)) in rows.iter().enumerate() {
        for &(u, weight) in row {
            edges.push([v as u32, u]);
            weights.push(weight);
        }
    }
    Ok(Laplacian { edges, weights, masses: rows.into_iter().map(|(mass, _)| mass).collect() })
}

fn edge_element([a, b]: [[f64; 3]; 2]) -> Element<2> {
    let length = norm(sub(b, a));
    let weight = 1.0 / length;
    weight.is_finite().then_some((length, [[0.0, weight], [weight, 0.0]]))
}

/// The weight of an edge is half the cotangent of the angle that faces it.
fn triangle_element(p: [[f64; 3]; 3]) -> Element<3> {
    let area = 0.5 * norm(cross(sub(p[1], p[0]), sub(p[2], p[0])));
    let mut matrix = [[0.0; 3]; 3];
    for k in 0..3 {
        let (i, j) = ((k + 1) % 3, (k + 2) % 3);
        matrix[i][j] = dot(sub(p[i], p[k]), sub(p[j], p[k])) / (4.0 * area);
        matrix[j][i] = matrix[i][j];
    }
    matrix.iter().flatten().all(|w| w.is_finite()).then_some((area, matrix))
}

/// The gradient of corner `k`'s hat function is its facing area vector over three volumes.
fn tet_element(p: [[f64; 3]; 4]) -> Element<4> {
    const FACING: [[usize; 3]; 4] = [[1, 3, 2], [0, 2, 3], [0, 3, 1], [0, 1, 2]];
    let areas = FACING.map(|[a, b, c]| cross(sub(p[b], p[a]), sub(p[c], p[a])).map(|x| 0.5 * x));
    let volume = dot(cross(sub(p[1], p[0]), sub(p[2], p[0])), sub(p[3], p[0])).abs() / 6.0;
    let mut matrix = [[0.0; 4]; 4];
    for i in 0..4 {
        for j in 0..4 {
            if i != j {
                matrix[i][j] = -dot(areas[i], areas[j]) / (9.0 * volume);
            }
        }
    }
    matrix.iter().flatten().all(|w| w.is_finite()).then_some((volume, matrix))
}

fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{CellKind, Cells};

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
