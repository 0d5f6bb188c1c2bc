//! Solids that tear where they are stretched too far.

use super::shape::Shape;
use super::{Edge, Links, Node, Parts, Softbody};
use anyhow::Result;
use meshweft::nalgebra::{Matrix3, Vector3};
use meshweft::{Incidence, Renewal, Stars};
use meshweft_mesh::contact::{Surface, crossings};
use meshweft_mesh::{CellKind, Cells, Field, Mesh};
use meshweft_physics::{Apart, Tearing, Torn, determinant};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What tears, and where.
pub(super) struct Tear {
    tearing: Tearing<4>,
    /// By how much more than its length at rest the solid may be stretched, as a share of it.
    limit: f64,
    /// Whether what has torn is to pass through nothing.
    touches: bool,
    /// Positions at rest, m.
    places: Vec<[f64; 3]>,
    /// Of each tet the inverse of the matrix of its edges from the first corner at rest, 1/m, and its volume, m³.
    rest: Vec<(Matrix3<f64>, f64)>,
    /// What there is between corners, as it was last.
    known: Mutex<Option<Arc<Elements>>>,
}

/// The elements of a torn solid; all but the corners and the surface by numbers along the curve.
struct Elements {
    corners: Vec<[u32; 4]>,
    skin: Vec<[u32; 3]>,
    tets: Arc<Vec<[u32; 4]>>,
    inverse: Vec<f64>,
    links: Arc<Vec<[u32; 2]>>,
    edges: Vec<Edge<f64>>,
    /// Of each place, m³.
    volumes: Vec<f64>,
}

impl Tear {
    /// Gives a mesh spare vertices, each at the place of its own; the cells become the tets of the solid.
    ///
    /// # Errors
    /// More than 64 tets at a vertex; too many vertices.
    pub(super) fn of(mesh: &mut Mesh, tets: Vec<[u32; 4]>, (limit, spares): (f64, u32), touches: bool) -> Result<Tear> {
        let at_rest = |&corners: &[u32; 4]| {
            let [a, b, c, d] = corners.map(|v| Vector3::from(mesh.points()[v as usize]));
            let edges = Matrix3::from_columns(&[b - a, c - a, d - a]);
            let volume = determinant(corners.map(|v| mesh.points()[v as usize])) / 6.0;
            // Tets of hardly any volume have been left out.
            (edges.try_inverse().unwrap_or_default(), volume)
        };
        let rest = tets.iter().map(at_rest).collect();
        let tearing = Tearing::new(mesh.points().len() as u32, tets, spares)?;
        *mesh = tearing.mesh(mesh, CellKind::Tet)?;
        let places = mesh.points().to_vec();
        Ok(Tear { tearing, limit, touches, places, rest, known: Mutex::default() })
    }

    /// The places of vertices.
    pub(super) fn tearing(&self) -> &Tearing<4> {
        &self.tearing
    }

    /// Adds the stars that change as it tears.
    pub(super) fn stars(&self, stars: &mut Stars) {
        let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        let sides = self.tearing.elements().iter().flat_map(|tet| pairs.map(|pair| pair.map(|k: usize| tet[k])));
        stars.add_changing_near(Parts, self.tearing.near(sides));
        stars.add_changing(Links);
    }

    /// The tets of a state.
    pub(super) fn cells(&self, fields: &[Field]) -> Cells {
        let holds = fields.iter().find(|field| field.name == "holds").expect("the state has it");
        self.tearing.cells(CellKind::Tet, holds)
    }

    /// The elements between these corners. `numbers`: of places along the curve.
    fn elements(&self, corners: &[[u32; 4]], numbers: &[u32]) -> meshweft::Result<Arc<Elements>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(elements) = known.as_ref().filter(|elements| elements.corners == corners) {
            return Ok(elements.clone());
        }
        let number = |place: u32| numbers[place as usize];
        let Shape { edges, weights, volumes, skin, .. } = Shape::of_tets(&self.places, corners.to_vec())?;
        let elements = Arc::new(Elements {
            corners: corners.to_vec(),
            skin,
            tets: Arc::new(corners.iter().map(|corners| corners.map(number)).collect()),
            inverse: self.rest.iter().map(|&(_, volume)| 1.0 / (6.0 * volume)).collect(),
            links: Arc::new(edges.iter().map(|ends| ends.map(number)).collect()),
            edges: edges.iter().zip(weights).map(|(&ends, weight)| Edge::at_rest(ends, weight, &self.places)).collect(),
            volumes,
        });
        Ok(known.insert(elements).clone())
    }

    /// Lets go where the solid is stretched too far, and gives the step that comes its elements.
    pub(super) fn renew(&self, density: f64, renewal: &mut Renewal<Softbody>) -> meshweft::Result<Apart<Node<f64>>> {
        let numbers: Vec<u32> = (0..renewal.vertices()).map(|place| renewal.number(place)).collect();
        let mut nodes: Vec<Node<f64>> = numbers.iter().map(|&number| renewal.vertex(number)).collect();
        let node = |place: u32| &nodes[place as usize];
        let stretched = |e: usize, corners: [u32; 4]| {
            let [a, b, c, d] = corners.map(|place| node(place).position);
            let (inverse, volume) = &self.rest[e];
            let columns = Matrix3::from_columns(&[b - a, c - a, d - a]) * inverse;
            ([0, 1, 2].map(|k| columns.column(k).into_owned()), *volume)
        };
        let corners = self.tearing.corners(|place| node(place).holds);
        // What is measured sees the state as it is.
        let limit = if renewal.begins_step() { self.limit } else { f64::INFINITY };
        let at = |place: u32| node(place).position;
        let mut whole = BTreeSet::new();
        let (torn, elements) = loop {
            let may = |place: u32| node(place).free > 0.0 && !whole.contains(&self.tearing.vertex_of(place));
            let torn = self.tearing.tear(corners.clone(), limit, at, may, stretched);
            let elements = self.elements(&torn.corners, &numbers)?;
            let crossed = match self.touches && !torn.changed.is_empty() {
                true => self.crossed(&torn, &elements.skin, at)?,
                false => Vec::new(),
            };
            if crossed.is_empty() {
                break (torn, elements);
            }
            whole.extend(crossed);
        };
        let came = torn.changed.iter().zip(&torn.from).map(|(&place, &from)| Node {
            holds: self.tearing.holds(place, &torn.corners),
            mass: density * elements.volumes[place as usize],
            ..*node(from)
        });
        let came: Vec<Node<f64>> = came.collect();
        for (&place, node) in torn.changed.iter().zip(came) {
            renewal.set_vertex(numbers[place as usize], node);
            nodes[place as usize] = node;
        }
        let own = elements.clone();
        renewal.set_shared(Parts, elements.tets.clone(), move |i: Incidence<4>| own.inverse[i.element]);
        let own = elements.clone();
        renewal.set_shared(Links, elements.links.clone(), move |i: Incidence<2>| own.edges[i.element]);
        Ok(Apart { triangles: elements.skin.clone(), states: nodes })
    }

    /// Vertices that have split, and had better not: the inside of a solid may be inside out, and then what came to its surface would pass
    /// through itself. Those next to it, or all if none is.
    fn crossed(
        &self,
        torn: &Torn<4>,
        skin: &[[u32; 3]],
        at: impl Fn(u32) -> Vector3<f64>,
    ) -> Result<Vec<u32>, meshweft_mesh::Error> {
        let surface = Surface::new(&self.places, skin, &[], &[])?.with_once(self.tearing.once().to_vec());
        let mut places: Vec<[f64; 3]> = (0..self.tearing.places()).map(|place| at(place).into()).collect();
        for (&place, &from) in torn.changed.iter().zip(&torn.from) {
            places[place as usize] = at(from).into();
        }
        let vertex = |place: &u32| self.tearing.vertex_of(*place);
        let found = crossings(&surface, &places)?;
        let near: BTreeSet<u32> =
            found.iter().flat_map(|(edge, triangle)| edge.iter().chain(triangle)).map(vertex).collect();
        let split: BTreeSet<u32> = torn.changed.iter().map(vertex).collect();
        let both: Vec<u32> = near.intersection(&split).copied().collect();
        Ok(match found.is_empty() || !both.is_empty() {
            true => both,
            false => split.into_iter().collect(),
        })
    }
}
