//! Lengths, areas, volumes, and the Laplacian of linear finite elements.
//!
//! Sums here are taken in the order of their terms' values, so they depend neither on the names of vertices nor on the
//! order of cells.

use crate::error::{Error, Result};
use crate::incidence::{Incidence, concat};
use crate::mesh::Mesh;
use crate::sort::group;
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

    /// The largest `diffusivity × time step` for which no explicit update overshoots where weights are positive: the
    /// smallest `masses[i] / Σ_j |weights[ij]|`, m²; 1 without edges.
    ///
    /// Weights are added by size, so that names do not matter. Cost O(edges · log degree), in parallel. Memory: 8 bytes
    /// an edge, and 8 bytes a vertex and thread.
    ///
    /// # Panics
    /// If an edge names a vertex without a mass, or there are 2^31 edges.
    ///
    /// ```
    /// use meshweft_mesh::{Laplacian, Mesh};
    /// let line = Mesh::from_edges(vec![[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], vec![[0, 1], [1, 2]])?;
    /// // An end has half a meter and one weight of 1/m; the middle has twice as much of both.
    /// assert_eq!(Laplacian::of(&line)?.explicit_limit(), 0.5);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn explicit_limit(&self) -> f64 {
        assert!(self.edges.len() <= u32::MAX as usize / 2, "fewer than 2^31 edges");
        let (starts, edges) = group(self.masses.len(), self.edges.len(), |e| self.edges[e].map(|v| (v, e as u32)));
        let limit_of = |row: &mut Vec<u64>, v: usize| {
            let own = &edges[starts[v] as usize..starts[v + 1] as usize];
            row.clear();
            row.extend(own.iter().map(|&e| ordered(self.weights[e as usize].abs())));
            row.sort_unstable();
            let total: f64 = row.iter().map(|&weight| unordered(weight)).sum();
            if total > 0.0 { self.masses[v] / total } else { f64::INFINITY }
        };
        let limits: Vec<f64> = (0..self.masses.len()).into_par_iter().map_init(Vec::new, limit_of).collect();
        Some(limits.into_iter().fold(f64::INFINITY, f64::min)).filter(|limit| limit.is_finite()).unwrap_or(1.0)
    }
}

/// Mean length of some edges of a mesh, such as [`Mesh::edges`], in meters; 0 without edges.
///
/// Lengths are added as whole numbers of 2^-62 of the longest, which depends on no order. Cost O(edges), in parallel.
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
    let points = mesh.points();
    let length = |e: &[u32; 2]| norm(sub(points[e[1] as usize], points[e[0] as usize]));
    let longest = edges.par_iter().map(length).reduce(|| 0.0, f64::max);
    if longest == 0.0 || longest.is_infinite() {
        return longest;
    }
    let total = edges.par_iter().map(|e| (length(e) / longest * UNIT) as u64).map(u128::from).sum::<u128>();
    total as f64 / UNIT / edges.len() as f64 * longest
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
    let incidence = Incidence::new(n, elements.len(), |e| elements[e]);
    // Row by row: the mass of a vertex and the weights of its edges to higher ids. All terms of the rows of a range are
    // collected first, so that an element is worked out once a range.
    let parts = incidence.by_range(Terms::default, |Terms { masses, weights, ends }, vertices, touching| {
        let local = |v: u32| v.wrapping_sub(vertices.start) as usize;
        let higher = |corners: &[u32; K], v: u32| corners.iter().filter(|&&u| u > v).count();
        ends.clear();
        ends.resize(vertices.len(), [0; 2]);
        touching.for_each(|e| {
            let corners = &elements[e];
            for &v in corners {
                if let Some([masses, weights]) = ends.get_mut(local(v)) {
                    *masses += 1;
                    *weights += higher(corners, v);
                }
            }
        });
        // First the starts of each row, which move on to their ends as the row is filled.
        let mut totals = [0; 2];
        for end in ends.iter_mut() {
            let counts = *end;
            *end = totals;
            totals = [totals[0] + counts[0], totals[1] + counts[1]];
        }
        let starts = ends.clone();
        masses.clear();
        masses.resize(totals[0], ordered(0.0));
        weights.clear();
        weights.resize(totals[1], weight_term(0, 0.0));
        touching.for_each(|e| {
            let corners = elements[e];
            let Some((mass, matrix)) = element(corners) else { return };
            for v in corners {
                let Some([mass_end, weight_end]) = ends.get_mut(local(v)) else { continue };
                let own = corners.iter().position(|&u| u == v).expect("it is one of them");
                masses[*mass_end] = ordered(mass / K as f64);
                *mass_end += 1;
                for k in (0..K).filter(|&k| corners[k] > v) {
                    weights[*weight_end] = weight_term(corners[k], matrix[own][k]);
                    *weight_end += 1;
                }
            }
        });
        let mut part = Part::default();
        for ((v, start), end) in vertices.zip(starts).zip(&*ends) {
            let masses = &mut masses[start[0]..end[0]];
            masses.sort_unstable();
            part.masses.push(masses.iter().map(|&mass| unordered(mass)).sum());
            let weights = &mut weights[start[1]..end[1]];
            weights.sort_unstable();
            for terms in weights.chunk_by(|a, b| a >> 64 == b >> 64) {
                part.edges.push([v, (terms[0] >> 64) as u32]);
                part.weights.push(terms.iter().map(|&term| unordered(term as u64)).sum());
            }
        }
        part
    });
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for Part { edges, weights, masses } in parts {
        columns.0.push(edges);
        columns.1.push(weights);
        columns.2.push(masses);
    }
    Ok(Laplacian { edges: concat(&columns.0), weights: concat(&columns.1), masses: concat(&columns.2) })
}

/// A whole number for a float, in the order of [`f64::total_cmp`]: whole numbers are sorted without branches.
fn ordered(x: f64) -> u64 {
    let bits = x.to_bits();
    bits ^ ((bits as i64 >> 63) as u64 | 1 << 63)
}

/// The float of [`ordered`].
fn unordered(bits: u64) -> f64 {
    f64::from_bits(bits ^ (!(bits as i64 >> 63) as u64 | 1 << 63))
}

/// A weight to a neighbor, sorted by neighbor and then by weight.
fn weight_term(neighbor: u32, weight: f64) -> u128 {
    u128::from(neighbor) << 64 | u128::from(ordered(weight))
}

/// Space that one thread uses again for every range of vertices.
#[derive(Default)]
struct Terms {
    /// As [`ordered`] numbers.
    masses: Vec<u64>,
    /// As [`weight_term`] numbers.
    weights: Vec<u128>,
    /// For each vertex of the range, where its terms end.
    ends: Vec<[usize; 2]>,
}

/// The Laplacian of one range of vertices.
#[derive(Default)]
struct Part {
    edges: Vec<[u32; 2]>,
    weights: Vec<f64>,
    masses: Vec<f64>,
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
        for j in 0..i {
            matrix[i][j] = -dot(areas[i], areas[j]) / (9.0 * volume);
            matrix[j][i] = matrix[i][j];
        }
    }
    matrix.iter().flatten().all(|w| w.is_finite()).then_some((volume, matrix))
}

pub(crate) fn add(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn scaled(factor: f64, a: [f64; 3]) -> [f64; 3] {
    a.map(|x| factor * x)
}

pub(crate) fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

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

    #[test]
    fn whole_numbers_are_in_the_order_of_their_floats() {
        let floats = [-f64::INFINITY, -2.0, -1e-310, -0.0, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY];
        assert!(floats.map(ordered).is_sorted());
        assert_eq!(floats.map(|x| unordered(ordered(x)).to_bits()), floats.map(f64::to_bits));
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
