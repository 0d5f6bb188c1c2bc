//! What holds at the boundary of a mesh: values, fluxes and exchange with what is outside, for finite volumes.

use meshweft::mesh::{BoundaryFace, Dual, Mesh};
use meshweft::{Real, record};

/// What holds at a face of the boundary, of a quantity that diffuses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// Its value there (Dirichlet).
    Value(f64),
    /// What flows in through a square meter in a second (Neumann); 0 of an insulated wall.
    Flux(f64),
    /// What flows in is so many times the difference of the value outside and that at the face (Robin): `per_difference` in m/s, or W/(m² K) of
    /// heat where the conductivity is given in W/(m K).
    Exchange {
        /// How much for a difference of 1.
        per_difference: f64,
        /// The value outside.
        outside: f64,
    },
}

record! {
    /// A face of the boundary as the cell sees it: the data of a star of elements that join a cell to no other.
    pub struct Wall<R> {
        /// What flows in for a difference of 1, with the way from the cell to the face.
        conductance: R,
        /// The value outside.
        outside: R,
        /// What flows in besides.
        flow: R,
    }
}

impl<R: Real> Wall<R> {
    /// What flows in a second into a cell that has a value: m³/s times the unit of the value, or W of heat.
    ///
    /// ```
    /// use meshweft_physics::Wall;
    /// assert_eq!(Wall { conductance: 2.0, outside: 5.0, flow: 0.5 }.inflow(4.0), 2.5);
    /// ```
    #[inline(always)]
    pub fn inflow(self, value: R) -> R {
        self.conductance * (self.outside - value) + self.flow
    }
}

impl Condition {
    /// The wall of a face of so much `area` (m²; m in 2D), whose middle is `distance` (m, above 0) from that of its cell along the normal.
    /// `conductivity`: what flows through a square meter in a second for a gradient of 1: m²/s, or W/(m K) of heat.
    ///
    /// Source: Patankar, Numerical Heat Transfer and Fluid Flow, 1980, sections 4.2-3 and 4.2-5: conductances in series.
    ///
    /// ```
    /// use meshweft_physics::{Condition, Wall};
    /// let wall = Condition::Value(100.0).wall(3.0, 2.0, 0.5);
    /// assert_eq!(wall, Wall { conductance: 12.0, outside: 100.0, flow: 0.0 });
    /// let wall = Condition::Exchange { per_difference: 6.0, outside: 20.0 }.wall(3.0, 2.0, 0.5);
    /// assert_eq!(wall, Wall { conductance: 6.0, outside: 20.0, flow: 0.0 });
    /// assert_eq!(Condition::Flux(7.0).wall(3.0, 2.0, 0.5).inflow(1e6), 14.0);
    /// ```
    pub fn wall(self, conductivity: f64, area: f64, distance: f64) -> Wall<f64> {
        let through = conductivity / distance;
        match self {
            Condition::Value(outside) => Wall { conductance: area * through, outside, flow: 0.0 },
            Condition::Flux(flux) => Wall { conductance: 0.0, outside: 0.0, flow: area * flux },
            Condition::Exchange { per_difference, outside } => {
                // What resists is added up; where nothing gets through, nothing flows.
                let both = per_difference * through / (per_difference + through);
                Wall { conductance: if both.is_finite() { area * both } else { 0.0 }, outside, flow: 0.0 }
            }
        }
    }
}

/// The cell and the wall of each face of the boundary, in the order of [`Dual::boundary_faces`], for a star of elements of one corner: shape
/// [boundary faces × 1], and as many walls. Cost O(boundary faces).
///
/// `dual`: that of `mesh`. `condition`: what holds at a face, by the name of its group in the mesh file, if it has one. `conductivity`: as
/// [`Condition::wall`] has it.
///
/// # Panics
/// If the dual is of another mesh, which has more groups.
///
/// ```
/// use meshweft::mesh::generate::generate;
/// use meshweft_physics::{Condition, walls};
/// let mesh = generate("hexes:5x3x3", 1)?;
/// // 100 °C at the left, insulated all around; 1 W/(m K).
/// let walls = walls(&mesh, &mesh.dual()?, 1.0, |_group, face| match face.normal[0] < -0.5 {
///     true => Condition::Value(100.0),
///     false => Condition::Flux(0.0),
/// });
/// // Through an eighth of a meter, from a face of a quarter by a quarter.
/// let (cell, wall) = walls.iter().find(|(_, wall)| wall.conductance > 0.0).unwrap();
/// assert_eq!((*cell, wall.inflow(60.0)), ([0], 0.0625 * 8.0 * 40.0));
/// # Ok::<(), meshweft::Error>(())
/// ```
pub fn walls(
    mesh: &Mesh,
    dual: &Dual,
    conductivity: f64,
    condition: impl Fn(Option<&str>, &BoundaryFace) -> Condition,
) -> Vec<([u32; 1], Wall<f64>)> {
    let wall = |face: &BoundaryFace| {
        let group = face.group.map(|group| &*mesh.groups()[group].name);
        let middle = dual.mesh.points()[face.cell as usize];
        let distance: f64 = (0..3).map(|k| (face.centroid[k] - middle[k]) * face.normal[k]).sum();
        ([face.cell], condition(group, face).wall(conductivity, face.area, distance))
    };
    dual.boundary_faces.iter().map(wall).collect()
}
