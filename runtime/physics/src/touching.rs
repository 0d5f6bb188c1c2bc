//! What of a surface touches what, step after step.

use super::gap::Repulsion;
use meshweft::mesh::contact::{self, FREEDOM, Finder, Surface, edge_edge, point_triangle, separate};
use meshweft::mesh::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// Surfaces that do not pass through themselves or each other.
///
/// A program keeps one, and asks it in [`Program::renew`](meshweft::Program::renew) for the [gaps](contact::Gap) of the step that comes. These
/// are the elements of a changing star, as [`Gap`](super::Gap) sees them; kernels add their repulsion, and keep each vertex on its side.
pub struct Touching {
    triangles: Vec<[u32; 3]>,
    rest: Vec<[f64; 3]>,
    thickness: f64,
    /// By numbers along the curve, once those are known.
    finder: Mutex<Option<Finder>>,
}

/// What a step begins with; all by numbers along the curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approach {
    /// What comes near what, and how it repels.
    pub gaps: Vec<(contact::Gap, Repulsion)>,
    /// From where sweeps are to start, shape `[n]`, m.
    pub guess: Vec<[f64; 3]>,
}

/// A vertex at the start of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moving {
    /// Where it is, m.
    pub from: [f64; 3],
    /// Where it will be by inertia and what else is known, m.
    pub to: [f64; 3],
    /// One over its mass, 1/kg; 0 of one that is held.
    pub inverse_mass: f64,
}

impl Touching {
    /// Force over depth of a contact: this times mass over time step squared.
    const STIFFNESS: f64 = 10.0;

    /// Of what is near at rest, the gap at rest is this much wider than what repels.
    const SLACK: f64 = 0.8;

    /// Surfaces of some triangles. `rest`: places of all vertices of the mesh, shape `[n]`, m; `thickness`: the distance that is kept, m.
    ///
    /// # Errors
    /// A thickness that is not above 0.
    pub fn new(rest: Vec<[f64; 3]>, triangles: Vec<[u32; 3]>, thickness: f64) -> Result<Touching> {
        if thickness.is_finite() && thickness > 0.0 {
            return Ok(Touching { triangles, rest, thickness, finder: Mutex::default() });
        }
        Err(Error::Invalid(format!("a thickness of {thickness} m keeps nothing apart: it must be above 0")))
    }

    /// How far from its guess a vertex may end, m.
    pub fn freedom(&self) -> f64 {
        FREEDOM * self.thickness
    }

    /// Finds what comes near in a step of `dt` seconds. `number`: of a vertex of the mesh along the curve; `moving`: by numbers.
    ///
    /// # Errors
    /// A surface, or places, with which nothing can be computed; more gaps than memory should hold.
    pub fn approach(&self, number: impl Fn(u32) -> u32, moving: &[Moving], dt: f64) -> Result<Approach> {
        let mut known = self.finder.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            let mut rest = vec![[0.0; 3]; self.rest.len()];
            self.rest.iter().zip(0..).for_each(|(&place, v)| rest[number(v) as usize] = place);
            let triangles: Vec<[u32; 3]> = self.triangles.iter().map(|corners| corners.map(&number)).collect();
            *known = Some(Finder::new(Surface::new(&rest, &triangles, &[], &[])?, 0.0)?);
        }
        let finder = known.as_mut().expect("it was just made");
        let from: Vec<[f64; 3]> = moving.iter().map(|vertex| vertex.from).collect();
        let to = moving.iter().map(|vertex| vertex.to).collect();
        let separation = separate(finder, &from, to, self.thickness)?;
        let rest = finder.surface().rest();
        let repulsion = |gap: &contact::Gap| {
            let corners = gap.vertices.map(|v| rest[v as usize]);
            let [a, b, c, d] = corners;
            let squared = match gap.above {
                1 => point_triangle(a, [b, c, d]).squared,
                _ => edge_edge([a, b], [c, d]).squared,
            };
            let moves = gap.vertices.iter().zip(gap.weights).map(|(&v, w)| w * w * moving[v as usize].inverse_mass);
            let mass = 1.0 / moves.sum::<f64>().max(f64::MIN_POSITIVE);
            // A pair of vertices that are both held moves by nothing.
            let stiffness =
                Some(Self::STIFFNESS * mass / (dt * dt)).filter(|x| x.is_finite() && *x < 1e30).unwrap_or(0.0);
            Repulsion { thickness: self.thickness.min(Self::SLACK * squared.sqrt()), stiffness }
        };
        let gaps = separation.gaps.into_iter().map(|gap| (gap, repulsion(&gap))).collect();
        Ok(Approach { gaps, guess: separation.to })
    }
}
