//! What of a mesh is drawn.

use meshweft_mesh::{CellKind, Mesh};

/// More edges than this are not drawn: a page would take seconds for them.
const MOST_EDGES: usize = 3_000_000;
/// Solids of more tets are not cut through, only opened: a page looks at all of them for each frame.
const MOST_TETS: usize = 1_500_000;

/// What of a mesh is drawn: it is sent to a page once.
///
/// ```
/// let mesh = meshweft_mesh::generate::generate("box:4", 1)?;
/// let shape = meshweft_view::Shape::of(&mesh);
/// // The points of the skin come first, then those inside.
/// assert_eq!((shape.vertices.len(), shape.skin), (64, 56));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The vertices of the mesh that can be seen, those of the skin first.
    pub vertices: Vec<u32>,
    /// How many belong to the skin. The others are seen where a solid is cut.
    pub skin: usize,
    /// Corners of the skin, as places in `vertices`. Shape [triangles × 3].
    pub triangles: Vec<[u32; 3]>,
    /// Ends of the edges of cells on the skin, and of cells that are edges. Shape [edges × 2].
    pub edges: Vec<[u32; 2]>,
    /// Corners of solid cells, cut into tets; none if there are too many. Shape [tets × 4].
    pub tets: Vec<[u32; 4]>,
    /// Whether the mesh has solid cells.
    pub solid: bool,
}

impl Shape {
    /// Finds it. Cost: one pass over the cells, beside those of [`Mesh::surface`], [`Mesh::edges`] and [`Mesh::tets`].
    pub fn of(mesh: &Mesh) -> Shape {
        let mut triangles = mesh.surface();
        let mut edges = rims(&triangles, mesh);
        edges.extend(mesh.cells().corners_of(CellKind::Edge).as_chunks::<2>().0);
        if edges.len() > MOST_EDGES {
            edges.clear();
        }
        let solid = mesh.dimension() == 3;
        let mut tets = if solid { mesh.tets().into_owned() } else { Vec::new() };
        if tets.len() > MOST_TETS {
            tets.clear();
        }
        let points = mesh.points().len();
        let mut place = vec![u32::MAX; points];
        let mut vertices = Vec::new();
        if triangles.is_empty() {
            vertices.extend(0..points as u32);
        } else {
            let mut seen = vec![false; points];
            triangles.as_flattened().iter().chain(edges.as_flattened()).for_each(|&v| seen[v as usize] = true);
            vertices.extend((0..points as u32).filter(|&v| seen[v as usize]));
        }
        let skin = vertices.len();
        vertices.iter().zip(0..).for_each(|(&v, i)| place[v as usize] = i);
        for &v in tets.as_flattened() {
            if place[v as usize] == u32::MAX {
                place[v as usize] = vertices.len() as u32;
                vertices.push(v);
            }
        }
        for v in triangles.as_flattened_mut().iter_mut().chain(edges.as_flattened_mut()).chain(tets.as_flattened_mut())
        {
            *v = place[*v as usize];
        }
        Shape { vertices, skin, triangles, edges, tets, solid }
    }
}

/// The edges of triangles that are edges of cells: diagonals of quads are none.
fn rims(triangles: &[[u32; 3]], mesh: &Mesh) -> Vec<[u32; 2]> {
    let sides = |&[a, b, c]: &[u32; 3]| [[a, b], [b, c], [c, a]].map(|[a, b]| [a.min(b), a.max(b)]);
    let mut all: Vec<[u32; 2]> = triangles.iter().flat_map(sides).collect();
    all.sort_unstable();
    all.dedup();
    if mesh.cells().counts().iter().any(|(kind, _)| !matches!(kind, CellKind::Triangle | CellKind::Tet)) {
        let edges = mesh.edges();
        all.retain(|edge| edges.binary_search(edge).is_ok());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::generate::generate;

    #[test]
    fn the_rim_of_a_hex_has_no_diagonals() {
        let shape = Shape::of(&generate("hexes:3", 1).unwrap());
        // 4 × 4 × 4 or 3 × 3 × 3 points: every face of the box is a grid of squares.
        assert!(shape.solid && !shape.tets.is_empty());
        let squares = shape.triangles.len() / 2;
        assert_eq!(shape.edges.len(), 2 * squares, "a closed surface of squares has twice as many edges");
        let all = shape.vertices.len() as u32;
        assert!(shape.triangles.as_flattened().iter().all(|&v| (v as usize) < shape.skin));
        assert!(shape.tets.as_flattened().iter().all(|&v| v < all));
    }

    #[test]
    fn what_has_no_surface_is_shown_by_its_points_and_edges() {
        let shape = Shape::of(&generate("chain:5", 1).unwrap());
        assert_eq!((shape.vertices.len(), shape.skin, shape.triangles.len(), shape.edges.len()), (5, 5, 0, 4));
    }
}
