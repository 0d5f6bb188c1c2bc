//! The plane around an airfoil: its cells, and which faces of its boundary are walls.

use anyhow::{Context, Result, bail};
use meshweft_mesh::{CellKind, Dual, Mesh};
use meshweft_physics::{Face, Rim, faces, rim};
use std::sync::Arc;

/// Cells and faces.
#[derive(Clone)]
pub(super) struct Plane {
    /// The root of the area of each quad, m; 0 of a triangle, whose gradients are of three cells and so are not stable unless limited.
    pub(super) sizes: Vec<f64>,
    /// The cells of each face, and how each of both sees it.
    pub(super) pairs: Arc<Vec<[u32; 2]>>,
    pub(super) faces: Arc<Vec<[Face<f64>; 2]>>,
    /// The cell of each face of the boundary, how it sees that, and 1 where the air comes from far away, 0 at walls.
    pub(super) bounds: Arc<Vec<(u32, Rim<f64>, f64)>>,
    /// What is worth a look: the walls, and as much around them; all without walls.
    pub(super) window: [[f64; 3]; 2],
}

impl Plane {
    /// That of a mesh, which becomes that of its cells. Faces of groups whose name begins with `far`, `in` or `out` are far away, all others
    /// walls; in a mesh without groups, those outside of the middle half of the box around it.
    pub(super) fn new(mesh: &mut Mesh) -> Result<Plane> {
        let [low, high] = mesh.bounds();
        if mesh.dimension() != 2 || low[2] != high[2] {
            bail!("air flows in the xy plane: this mesh is no flat surface of triangles or quads there");
        }
        let dual = mesh.dual().context("air flows between the cells of the mesh")?;
        let is_quad = |c: &u32| mesh.cells().kind(*c as usize) == CellKind::Quad;
        let far = far(mesh, &dual);
        let walls = dual.boundary_faces.iter().zip(&far).filter(|(_, far)| !**far).map(|(face, _)| face.centroid);
        let window = window(walls).unwrap_or([low, high]);
        let bounds = dual.boundary_faces.iter().zip(far);
        let bounds = bounds.map(|(face, far)| (face.cell, rim(&dual, face), if far { 1.0 } else { 0.0 })).collect();
        let pairs = dual.faces.iter().map(|face| face.cells).collect();
        let (pairs, bounds, faces) = (Arc::new(pairs), Arc::new(bounds), Arc::new(faces(&dual)));
        let size = |(c, area): (&u32, &f64)| if is_quad(c) { area.sqrt() } else { 0.0 };
        let sizes = dual.cells.iter().zip(&dual.volumes).map(size).collect();
        *mesh = dual.mesh;
        Ok(Plane { sizes, pairs, faces, bounds, window })
    }
}

/// A box around points and as much around them as they are wide, or nearly.
fn window(mut points: impl Iterator<Item = [f64; 3]>) -> Option<[[f64; 3]; 2]> {
    let first = points.next()?;
    let [low, high] = points.fold([first; 2], |[low, high], p| {
        [std::array::from_fn(|k| low[k].min(p[k])), std::array::from_fn(|k| high[k].max(p[k]))]
    });
    let more = 0.4 * (high[0] - low[0]).max(high[1] - low[1]);
    Some([[low[0] - more, low[1] - more, low[2]], [high[0] + more, high[1] + more, low[2]]])
}

/// Whether the air behind each face of the boundary is that far away.
fn far(mesh: &Mesh, dual: &Dual) -> Vec<bool> {
    let group = |group: usize| {
        let name = mesh.groups()[group].name.to_lowercase();
        ["far", "in", "out"].iter().any(|begin| name.starts_with(begin))
    };
    if dual.boundary_faces.iter().any(|face| face.group.is_some()) {
        return dual.boundary_faces.iter().map(|face| face.group.is_some_and(group)).collect();
    }
    let [low, high] = mesh.bounds();
    let is_out = |p: [f64; 3]| (0..2).any(|k| (p[k] - 0.5 * (low[k] + high[k])).abs() > 0.25 * (high[k] - low[k]));
    dual.boundary_faces.iter().map(|face| is_out(face.centroid)).collect()
}
