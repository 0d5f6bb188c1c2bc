//! Cloth that tears where it is stretched too far.

use super::scene::Scene;
use super::{Cloth, Folds, Node, Pieces};
use anyhow::Result;
use meshweft::{Incidence, Int, Renewal, Stars};
use meshweft_mesh::{CellKind, Cells, Field, Mesh};
use meshweft_physics::bending::{Hinge, hinges};
use meshweft_physics::{Panel, Symmetric, Tearing};
use std::sync::{Arc, Mutex, PoisonError};

/// What tears, and where.
pub(crate) struct Tear {
    tearing: Tearing<3>,
    once: Vec<u32>,
    /// By how much more than its length at rest cloth may be stretched, as a share of it.
    limit: f64,
    /// Whether it bends.
    bends: bool,
    /// The places of the corners of each triangle at rest, m.
    rest: Arc<Vec<[[f64; 3]; 3]>>,
    panels: Vec<Panel<f64>>,
    /// The hinges of triangles with these corners, as they were last.
    folds: Mutex<Option<Creased>>,
}

/// Triangles, and the hinges that they have.
type Creased = (Vec<[u32; 3]>, Arc<Vec<Hinge>>);

impl Tear {
    /// Gives a mesh spare vertices, each at the place of its own, and the scene what it knows of those; the cells become triangles.
    ///
    /// # Errors
    /// More than 32 triangles at a vertex; too many vertices.
    pub(super) fn of(mesh: &mut Mesh, scene: &mut Scene, (limit, spares): (f64, u32), bends: bool) -> Result<Tear> {
        let tearing = Tearing::new(mesh.points().len() as u32, mesh.triangles(), spares)?;
        let once: Vec<u32> = (0..tearing.places()).map(|place| tearing.vertex_of(place)).collect();
        let cells = Cells::of(CellKind::Triangle, tearing.elements().as_flattened().to_vec());
        let mut whole = Mesh::new(of(&once, mesh.points()), cells)?;
        mesh.point_fields().iter().try_for_each(|field| whole.set_point_field(field.of(&once)))?;
        *mesh = whole;
        scene.rest = of(&once, &scene.rest);
        scene.areas = of(&once, &scene.areas);
        scene.pinned = of(&once, &scene.pinned);
        let at_corners = |&corners: &[u32; 3]| corners.map(|v| scene.rest[v as usize]);
        let rest: Vec<[[f64; 3]; 3]> = tearing.elements().iter().map(at_corners).collect();
        let panels = rest.iter().map(|&corners| Panel::at_rest(corners)).collect();
        Ok(Tear { tearing, once, limit, bends, rest: Arc::new(rest), panels, folds: Mutex::default() })
    }

    /// Of each place the vertex that it belongs to.
    pub(super) fn once(&self) -> &[u32] {
        &self.once
    }

    /// Whether a place holds nothing before anything tears.
    pub(super) fn is_spare(&self, place: u32) -> bool {
        self.once[place as usize] != place
    }

    /// Adds the stars that change as it tears.
    pub(super) fn stars(&self, stars: &mut Stars, rest: &[[f64; 3]]) {
        let sides = self.tearing.elements().iter().flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
        stars.add_changing_near(Pieces, self.tearing.near(sides));
        // A fold joins the two corners that face each other, too.
        let folds = self.folds(self.tearing.elements(), rest);
        stars.add_changing_near(Folds, self.tearing.near(folds.iter().map(|h| [h.vertices[2], h.vertices[3]])));
    }

    /// The hinges of triangles with these corners, unless nothing bends.
    fn folds(&self, corners: &[[u32; 3]], rest: &[[f64; 3]]) -> Arc<Vec<Hinge>> {
        let mut known = self.folds.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, folds)) if of == corners => folds.clone(),
            _ => {
                let folds = Arc::new(if self.bends { hinges(corners, rest) } else { Vec::new() });
                *known = Some((corners.to_vec(), folds.clone()));
                folds
            }
        }
    }

    /// The triangles of a state.
    pub(super) fn cells(&self, fields: &[Field]) -> Cells {
        let holds = fields.iter().find(|field| field.name == "holds");
        let holds = |place: u32| Int(holds.map_or(0, |holds| holds.values[place as usize] as i32));
        Cells::of(CellKind::Triangle, self.tearing.corners(holds).into_flattened())
    }

    /// Lets go where the cloth is stretched too far, and gives the step that comes its elements. Returns the triangles, and the state of each place.
    pub(super) fn renew(
        &self,
        scene: &Scene,
        density: f64,
        renewal: &mut Renewal<Cloth>,
    ) -> (Vec<[u32; 3]>, Vec<Node<f64>>) {
        let numbers: Vec<u32> = (0..renewal.vertices()).map(|place| renewal.number(place)).collect();
        let mut nodes: Vec<Node<f64>> = numbers.iter().map(|&number| renewal.vertex(number)).collect();
        let node = |place: u32| &nodes[place as usize];
        let stretched = |e: usize, corners: [u32; 3]| {
            let [a, b, c] = corners.map(|place| node(place).position);
            let ([u, w], area) = (self.panels[e].stretch(a, [b, c]), self.panels[e].area);
            (Symmetric::diagonal(0.0).plus_outer(area, u).plus_outer(area, w), area)
        };
        let corners = self.tearing.corners(|place| node(place).holds);
        let may = |place: u32| node(place).free > 0.0;
        let torn = self.tearing.tear(corners, self.limit, |place| node(place).position, may, stretched);
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
        let by_number = |corners: &[u32; 3]| corners.map(|place| numbers[place as usize]);
        let rest = self.rest.clone();
        renewal.set(Pieces, torn.corners.iter().map(by_number).collect(), move |i: Incidence<3>| {
            Panel::at_rest(i.arrange(rest[i.element]))
        });
        let folds = self.folds(&torn.corners, &scene.rest);
        let elements = folds.iter().map(|fold| fold.vertices.map(|place| numbers[place as usize])).collect();
        renewal.set(Folds, elements, move |i: Incidence<4>| folds[i.element].seen_from(&i));
        (torn.corners, nodes)
    }

    /// The share of what a vertex weighs that one of its places does: that of the area around.
    fn share(&self, place: u32, corners: &[[u32; 3]]) -> f64 {
        let area = |elements: &mut dyn Iterator<Item = usize>| elements.map(|e| self.panels[e].area).sum::<f64>();
        let vertex = self.once[place as usize];
        let all = area(&mut self.tearing.held(vertex, self.tearing.elements()));
        if all > 0.0 { area(&mut self.tearing.held(place, corners)) / all } else { 1.0 }
    }
}

/// What belongs to each place, given that of each vertex.
fn of<A: Copy>(once: &[u32], vertices: &[A]) -> Vec<A> {
    once.iter().map(|&v| vertices[v as usize]).collect()
}
