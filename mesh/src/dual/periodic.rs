//! Sides that are one.

use super::{BoundaryFace, Dual, Face};
use crate::error::{Error, Result};
use crate::measure::scaled;
use crate::mesh::Mesh;
use crate::partners::Partners;

/// How far the areas of two faces may be apart, over their size.
const APART: f64 = 1e-6;

impl Dual {
    /// Makes two sides of the boundary one: what leaves through the first comes in at the second. Each two faces that are the same but for the way
    /// from one side to the other become one of the last [`faces`](Dual::faces), and an edge of the mesh; all other edges keep their places.
    ///
    /// `first` and `second`: whether a face of the boundary is on that side. Cost O(faces of the boundary × log of them), and O(faces) for the mesh.
    ///
    /// # Errors
    /// Sides that are not the same but for a way between them, or have no face; a cell that is on both.
    ///
    /// ```
    /// use meshweft_mesh::generate::generate;
    /// // Two by two cells of size 1.
    /// let mut dual = generate("quads:3x3", 1)?.dual()?;
    /// let [low, high] = dual.mesh.bounds();
    /// dual.periodic(|face| face.normal[0] < -0.5, |face| face.normal[0] > 0.5)?;
    /// assert_eq!((dual.faces.len(), dual.boundary_faces.len()), (6, 4));
    /// let around = dual.faces[4];
    /// assert_eq!((around.cells, around.normal), ([0, 1], [-1.0, 0.0, 0.0]));
    /// assert!((around.shift[0] + 2.0 * (high[0] - low[0])).abs() < 1e-12);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn periodic(
        &mut self,
        first: impl Fn(&BoundaryFace) -> bool,
        second: impl Fn(&BoundaryFace) -> bool,
    ) -> Result<()> {
        let side = |is_there: &dyn Fn(&BoundaryFace) -> bool| -> Vec<BoundaryFace> {
            self.boundary_faces.iter().filter(|face| is_there(face)).copied().collect()
        };
        let (near, far) = (side(&first), side(&second));
        // A length in 2D; nothing has a size in 1D.
        let size = |face: &BoundaryFace| if self.is_solid() { face.area.sqrt() } else { face.area };
        let places = |side: &[BoundaryFace]| side.iter().map(|face| face.centroid).collect::<Vec<_>>();
        let sizes: Vec<f64> = near.iter().map(size).collect();
        let Partners { of_first, shift } = Partners::of(&places(&near), &places(&far), &sizes, "faces")?;
        let mut joined = Vec::with_capacity(near.len());
        for (face, other) in near.iter().zip(of_first.iter().map(|&k| &far[k])) {
            if (other.area - face.area).abs() > APART * face.area {
                return Err(Error::Invalid(format!(
                    "sides that are one have the same faces: those at {:?} and {:?} have areas of {:?} and {:?}",
                    face.centroid, other.centroid, face.area, other.area
                )));
            }
            joined.push(match face.cell.cmp(&other.cell) {
                std::cmp::Ordering::Less => across(face, other, shift),
                std::cmp::Ordering::Greater => across(other, face, scaled(-1.0, shift)),
                std::cmp::Ordering::Equal => {
                    let cell = self.cells[face.cell as usize];
                    return Err(Error::Invalid(format!("cell {cell} is on both of two sides that are one")));
                }
            });
        }
        let edges = self.faces.iter().chain(&joined).map(|face| face.cells).collect();
        let mesh = Mesh::from_edges(self.mesh.points().to_vec(), edges)?;
        self.mesh = match self.mesh.primal() {
            Some(primal) => mesh.of_cells(primal.clone()),
            None => mesh,
        };
        self.faces.extend(joined);
        self.boundary_faces.retain(|face| !first(face) && !second(face));
        Ok(())
    }

    fn is_solid(&self) -> bool {
        self.mesh.primal().is_some_and(|primal| primal.dimension() == 3)
    }
}

/// The face of the first, where the second touches it once it is moved.
fn across(first: &BoundaryFace, second: &BoundaryFace, shift: [f64; 3]) -> Face {
    Face { cells: [first.cell, second.cell], normal: first.normal, area: first.area, centroid: first.centroid, shift }
}
