//! The scene of `softbody` or of `cloth`, and the constraints of what is in it.

use super::{Link, XpbdOptions};
use crate::{cloth, softbody};
use anyhow::{Result, ensure};
use meshweft::Incidence;
use meshweft::nalgebra::Vector3;
use meshweft_mesh::Mesh;
use meshweft_physics::bending::{Crease, Hinge, hinges};
use meshweft_physics::{Plane, Sphere, Tet};
use softbody::{Grip, Obstacles, Obstructed};
use std::sync::Arc;

/// What does not change during a run.
pub(super) struct Scene {
    pub(super) body: Body,
    /// Each vertex's share of the volume or area, m³ or m².
    pub(super) shares: Vec<f64>,
    /// Whether each vertex is held.
    pub(super) held: Vec<bool>,
    /// Edges of a surface, and what they are at rest.
    pub(super) links: Arc<Vec<[u32; 2]>>,
    springs: Vec<Link<f64>>,
    /// Hinges of a surface, and what they are at rest.
    pub(super) hinges: Arc<Vec<[u32; 4]>>,
    creases: Vec<Hinge>,
}

/// What is in the scene.
pub(super) enum Body {
    /// Tets.
    Solid(Box<softbody::Scene>),
    /// Triangles.
    Surface(cloth::Scene),
}

impl Scene {
    /// Scales and places the mesh, picks what is held, and finds the constraints of a surface.
    pub(super) fn set(mesh: &mut Mesh, options: &XpbdOptions) -> Result<Scene> {
        ensure!(
            mesh.dimension() != 1,
            "xpbd needs triangles or solid cells, but the mesh has edges alone: give a surface or a solid, such as sheet:80x80 or bar:41x11x11"
        );
        if mesh.dimension() == 3 {
            let scene = softbody::Scene::set(mesh, &options.solid())?;
            let (shares, held) = (scene.volumes.clone(), scene.held.clone());
            let body = Body::Solid(Box::new(scene));
            let (links, springs, hinges, creases) = Default::default();
            return Ok(Scene { body, shares, held, links, springs, hinges, creases });
        }
        let scene = cloth::Scene::set(mesh, &options.cloth())?;
        let mut triangles = mesh.triangles();
        triangles.retain(|[a, b, c]| a != b && b != c && c != a);
        let (links, springs) = springs(&triangles, &scene.rest).into_iter().unzip();
        let mut hinges = if options.bend > 0.0 { hinges(&triangles, &scene.rest) } else { Vec::new() };
        // Of two triangles in one place nothing bends.
        hinges.retain(|hinge| hinge.vertices[2] != hinge.vertices[3]);
        Ok(Scene {
            shares: scene.areas.clone(),
            held: scene.pinned.clone(),
            body: Body::Surface(scene),
            links: Arc::new(links),
            springs,
            hinges: Arc::new(hinges.iter().map(|hinge| hinge.vertices).collect()),
            creases: hinges,
        })
    }

    /// An edge of a surface at rest.
    pub(super) fn spring(&self, link: usize) -> Link<f64> {
        self.springs[link]
    }

    /// A hinge at rest, seen from one of its corners.
    pub(super) fn crease(&self, incidence: &Incidence<4>) -> Crease<f64> {
        self.creases[incidence.element].seen_from(incidence)
    }

    /// The edges of a solid: none of a surface.
    pub(super) fn edges(&self) -> Arc<Vec<[u32; 2]>> {
        match &self.body {
            Body::Solid(solid) => solid.edges.clone(),
            Body::Surface(_) => Arc::default(),
        }
    }

    /// The tets of a solid: none of a surface.
    pub(super) fn tets(&self) -> Arc<Vec<[u32; 4]>> {
        match &self.body {
            Body::Solid(solid) => solid.tets.clone(),
            Body::Surface(_) => Arc::default(),
        }
    }

    /// Length of an edge of a solid at rest, m.
    pub(super) fn length(&self, [a, b]: [u32; 2]) -> f64 {
        let at = |v: u32| Vector3::from(self.rest()[v as usize]);
        (at(b) - at(a)).norm()
    }

    /// A tet at rest.
    pub(super) fn tet(&self, corners: [u32; 4]) -> Tet<f64> {
        let corners = corners.map(|v| self.rest()[v as usize]);
        Tet::at_rest(corners).expect("tets of hardly any volume are left out, others are turned around")
    }

    pub(super) fn rest(&self) -> &[[f64; 3]] {
        match &self.body {
            Body::Solid(solid) => &solid.rest,
            Body::Surface(surface) => &surface.rest,
        }
    }

    /// Where it is held at a time.
    pub(super) fn grip(&self, options: &XpbdOptions, time: f64) -> Grip<f64> {
        match &self.body {
            Body::Solid(solid) => solid.grip(&options.solid(), time),
            Body::Surface(_) => Grip { center: Vector3::zeros(), cos: 1.0, sin: 0.0, pull: 0.0 },
        }
    }

    /// What it touches in the step from a time on.
    pub(super) fn obstacles(&self, options: &XpbdOptions, time: f64) -> Obstacles<f64> {
        match &self.body {
            Body::Solid(solid) => solid.obstacles(&options.solid(), time),
            Body::Surface(_) => {
                let (center, radius) = self.ball(options).unwrap_or(([0.0, 0.0, -FAR], 0.0));
                let radius = radius + cloth::THICKNESS;
                Obstacles {
                    ball: Sphere { center: Vector3::from(center), radius },
                    ground: Plane { normal: Vector3::z(), offset: cloth::THICKNESS },
                    lid: Plane { normal: -Vector3::z(), offset: -FAR },
                    lift: 0.0,
                    friction: options.friction,
                }
            }
        }
    }

    /// Center and radius of the ball, m, if there is one.
    pub(super) fn ball(&self, options: &XpbdOptions) -> Option<([f64; 3], f64)> {
        let ball = match &self.body {
            Body::Solid(solid) => solid.ball,
            Body::Surface(surface) => surface.ball.expect("nothing else is in its place"),
        };
        (options.obstacles == Obstructed::All && ball.1 > 0.0).then_some(ball)
    }

    /// Whether there is something to touch.
    pub(super) fn has_contact(&self, options: &XpbdOptions) -> bool {
        match &self.body {
            Body::Solid(_) => options.solid().has_contact(),
            Body::Surface(_) => options.obstacles != Obstructed::Nothing,
        }
    }

    /// What was left out.
    pub(super) fn note(&self) -> Option<String> {
        match &self.body {
            Body::Solid(solid) => solid.note(),
            Body::Surface(surface) => surface.note(),
        }
    }
}

/// Where nothing gets, m.
const FAR: f64 = 1e9;

/// Edges of triangles as springs: a membrane of stiffness `Y` has one of `Y Σ A / l²` along an edge of length `l`, with the areas `A` of the
/// triangles there. Edges without length or area are left out.
///
/// Source: Van Gelder, "Approximate simulation of elastic membranes by triangulated spring meshes", 1998, for ν = 0. Springs narrow what they
/// stretch, so it is exact for none but equilateral triangles, with ν = 1/3.
fn springs(triangles: &[[u32; 3]], rest: &[[f64; 3]]) -> Vec<([u32; 2], Link<f64>)> {
    let mut sides: Vec<([u32; 2], f64)> = Vec::with_capacity(3 * triangles.len());
    for &[a, b, c] in triangles {
        let [x, y, z] = [a, b, c].map(|v| Vector3::from(rest[v as usize]));
        let area = 0.5 * (y - x).cross(&(z - x)).norm();
        sides.extend([[a, b], [b, c], [c, a]].map(|[i, j]| ([i.min(j), i.max(j)], area)));
    }
    // By value, so that names do not decide the order of a sum.
    sides.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let same = sides.chunk_by(|a, b| a.0 == b.0);
    let links = same.map(|sides| {
        let [a, b] = sides[0].0.map(|v| Vector3::from(rest[v as usize]));
        let length = (b - a).norm();
        let give = length * length / sides.iter().map(|side| side.1).sum::<f64>();
        (sides[0].0, Link { length, give })
    });
    links.filter(|(_, link)| link.length > 0.0 && link.give < STIFFEST).collect()
}

/// Edges between triangles flatter than one over this carry nothing.
const STIFFEST: f64 = 1e9;
