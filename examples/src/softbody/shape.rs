//! The shape of a solid at rest.

use anyhow::Result;
use meshweft::nalgebra::Vector3;
use meshweft_mesh::{CellKind, Cells, Laplacian, Mesh, parallel};
use meshweft_physics::determinant;

/// Tets that fill less than this share of a cube over their longest edge, times 6, are flat: their stiffness would drown that of all others.
const FLATTEST: f64 = 1e-5;

/// The solid at rest.
pub(super) struct Shape {
    pub(super) edges: Vec<[u32; 2]>,
    pub(super) weights: Vec<f64>,
    pub(super) tets: Vec<[u32; 4]>,
    pub(super) volumes: Vec<f64>,
    pub(super) skin: Vec<[u32; 3]>,
    /// How many tets have hardly any volume, and are none of these.
    pub(super) flat: usize,
}

impl Shape {
    /// Tets inside out are turned around, flat ones left out.
    pub(super) fn of(mesh: &Mesh) -> Result<Shape> {
        let (points, all) = (mesh.points(), mesh.tets());
        let volume = |tet: &[u32; 4]| {
            let corners = tet.map(|v| Vector3::from(points[v as usize]));
            let longest = (0..6).map(|k| [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)][k]);
            let longest = longest.map(|(i, j)| (corners[i] - corners[j]).norm()).fold(0.0, f64::max);
            (determinant(tet.map(|v| points[v as usize])), longest.powi(3))
        };
        let turned = parallel::collect(all.len(), |t| {
            let [a, b, c, d] = all[t];
            let (sixfold, cube) = volume(&all[t]);
            let is_flat = !(sixfold.abs() > FLATTEST * cube && (1.0 / sixfold).is_finite());
            if is_flat {
                [a; 4]
            } else if sixfold < 0.0 {
                [a, b, d, c]
            } else {
                [a, b, c, d]
            }
        });
        let tets: Vec<[u32; 4]> = turned.into_iter().filter(|tet| tet[0] != tet[1]).collect();
        let flat = all.len() - tets.len();
        Ok(Shape { flat, ..Shape::of_tets(points, tets)? })
    }

    /// The same of tets that have a volume.
    pub(super) fn of_tets(points: &[[f64; 3]], tets: Vec<[u32; 4]>) -> meshweft_mesh::Result<Shape> {
        let solid = Mesh::new(points.to_vec(), Cells::of(CellKind::Tet, tets.as_flattened().to_vec()))?;
        let Laplacian { edges, weights, masses } = Laplacian::of(&solid)?;
        Ok(Shape { edges, weights, tets, volumes: masses, skin: solid.surface(), flat: 0 })
    }
}
