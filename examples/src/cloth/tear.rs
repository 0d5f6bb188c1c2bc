//! Cloth that tears where it is stretched too far.

use super::scene::{Bending, Scene};
use super::{Cloth, Folds, Node, Pieces, Ties};
use anyhow::Result;
use meshweft::{Incidence, Renewal, Stars};
use meshweft_mesh::{CellKind, Cells, Field, Mesh};
use meshweft_physics::{Apart, Panel, Tearing};
use std::sync::{Arc, Mutex, PoisonError};

/// What tears, and where.
pub(crate) struct Tear {
    tearing: Tearing<3>,
    /// By how much more than its length at rest cloth may be stretched, as a share of it.
    limit: f64,
    /// Whether it bends.
    bends: bool,
    /// The places of the corners of each triangle at rest, m.
    rest: Arc<Vec<[[f64; 3]; 3]>>,
    panels: Vec<Panel<f64>>,
    /// What there is between corners, as it was last.
    known: Mutex<Option<Arc<Elements>>>,
}

/// The elements of torn cloth; all but the corners by numbers along the curve.
struct Elements {
    corners: Vec<[u32; 3]>,
    triangles: Arc<Vec<[u32; 3]>>,
    bending: Bending,
    ties: Arc<Vec<[u32; 2]>>,
    folds: Arc<Vec<[u32; 4]>>,
}

impl Tear {
    /// Gives a mesh spare vertices, each at the place of its own, and the scene what it knows of those; the cells become triangles.
    ///
    /// # Errors
    /// More than 64 triangles at a vertex; too many vertices.
    pub(super) fn of(mesh: &mut Mesh, scene: &mut Scene, (limit, spares): (f64, u32), bends: bool) -> Result<Tear> {
        let tearing = Tearing::new(mesh.points().len() as u32, mesh.triangles(), spares)?;
        *mesh = tearing.mesh(mesh, CellKind::Triangle)?;
        scene.rest = of(tearing.once(), &scene.rest);
        scene.areas = of(tearing.once(), &scene.areas);
        scene.pinned = of(tearing.once(), &scene.pinned);
        let at_corners = |&corners: &[u32; 3]| corners.map(|v| scene.rest[v as usize]);
        let rest: Vec<[[f64; 3]; 3]> = tearing.elements().iter().map(at_corners).collect();
        let panels = rest.iter().map(|&corners| Panel::at_rest(corners)).collect();
        Ok(Tear { tearing, limit, bends, rest: Arc::new(rest), panels, known: Mutex::default() })
    }

    /// The places of vertices.
    pub(super) fn tearing(&self) -> &Tearing<3> {
        &self.tearing
    }

    /// Adds the stars that change as it tears.
    pub(super) fn stars(&self, stars: &mut Stars, rest: &[[f64; 3]]) {
        let sides = self.tearing.elements().iter().flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
        let Bending { flat, curved } = self.bending(self.tearing.elements(), rest);
        let flat = flat.iter().map(|&(pair, _)| pair);
        // A hinge joins the two corners that face each other, too.
        let curved = curved.iter().map(|hinge| [hinge.vertices[2], hinge.vertices[3]]);
        stars.add_changing_near(Pieces, self.tearing.near(sides.chain(flat).chain(curved)));
        stars.add_changing(Ties);
        stars.add_changing(Folds);
    }

    /// What bends between triangles with these corners.
    fn bending(&self, corners: &[[u32; 3]], rest: &[[f64; 3]]) -> Bending {
        if self.bends { Bending::of(corners, rest) } else { Bending::default() }
    }

    /// The elements between these corners. `numbers`: of places along the curve.
    fn elements(&self, corners: &[[u32; 3]], rest: &[[f64; 3]], numbers: &[u32]) -> Arc<Elements> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(elements) = known.as_ref().filter(|elements| elements.corners == corners) {
            return elements.clone();
        }
        let number = |place: u32| numbers[place as usize];
        let bending = self.bending(corners, rest);
        let elements = Arc::new(Elements {
            corners: corners.to_vec(),
            triangles: Arc::new(corners.iter().map(|corners| corners.map(number)).collect()),
            ties: Arc::new(bending.flat.iter().map(|(pair, _)| pair.map(number)).collect()),
            folds: Arc::new(bending.curved.iter().map(|hinge| hinge.vertices.map(number)).collect()),
            bending,
        });
        known.insert(elements).clone()
    }

    /// The triangles of a state.
    pub(super) fn cells(&self, fields: &[Field]) -> Cells {
        let holds = fields.iter().find(|field| field.name == "holds").expect("the state has it");
        self.tearing.cells(CellKind::Triangle, holds)
    }

    /// Lets go where the cloth is stretched too far, and gives the step that comes its elements. Returns what the step begins with.
    pub(super) fn renew(&self, scene: &Scene, density: f64, renewal: &mut Renewal<Cloth>) -> Apart<Node<f64>> {
        let numbers: Vec<u32> = (0..renewal.vertices()).map(|place| renewal.number(place)).collect();
        let mut nodes: Vec<Node<f64>> = numbers.iter().map(|&number| renewal.vertex(number)).collect();
        let node = |place: u32| &nodes[place as usize];
        let stretched = |e: usize, corners: [u32; 3]| {
            let [a, b, c] = corners.map(|place| node(place).position);
            (self.panels[e].stretch(a, [b, c]), self.panels[e].area)
        };
        let corners = self.tearing.corners(|place| node(place).holds);
        let may = |place: u32| node(place).free > 0.0;
        // What is measured sees the state as it is.
        let limit = if renewal.begins_step() { self.limit } else { f64::INFINITY };
        let torn = self.tearing.tear(corners, limit, |place| node(place).position, may, stretched);
        let changed: Vec<Node<f64>> = torn
            .changed
            .iter()
            .zip(&torn.from)
            .map(|(&place, &from)| Node {
                holds: self.tearing.holds(place, &torn.corners),
                mass: density * scene.area(place) * self.share(place, &torn.corners),
                ..*node(from)
            })
            .collect();
        for (&place, node) in torn.changed.iter().zip(changed) {
            renewal.set_vertex(numbers[place as usize], node);
            nodes[place as usize] = node;
        }
        let (rest, elements) = (self.rest.clone(), self.elements(&torn.corners, &scene.rest, &numbers));
        let panel = move |i: Incidence<3>| Panel::at_rest(i.arrange(rest[i.element]));
        renewal.set_shared(Pieces, elements.triangles.clone(), panel);
        let own = elements.clone();
        renewal.set_shared(Ties, elements.ties.clone(), move |i: Incidence<2>| own.bending.flat[i.element].1);
        let own = elements.clone();
        let crease = move |i: Incidence<4>| own.bending.curved[i.element].seen_from(&i);
        renewal.set_shared(Folds, elements.folds.clone(), crease);
        Apart { triangles: torn.corners, states: nodes }
    }

    /// The share of what a vertex weighs that one of its places does: that of the area around.
    fn share(&self, place: u32, corners: &[[u32; 3]]) -> f64 {
        let area = |elements: &mut dyn Iterator<Item = usize>| elements.map(|e| self.panels[e].area).sum::<f64>();
        let vertex = self.tearing.vertex_of(place);
        let all = area(&mut self.tearing.held(vertex, self.tearing.elements()));
        if all > 0.0 { area(&mut self.tearing.held(place, corners)) / all } else { 1.0 }
    }
}

/// What belongs to each place, given that of each vertex.
fn of<A: Copy>(once: &[u32], vertices: &[A]) -> Vec<A> {
    once.iter().map(|&v| vertices[v as usize]).collect()
}
