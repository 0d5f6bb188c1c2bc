//! Cloth by vertex block descent: each step minimizes inertia plus elastic, bending and contact energy, vertex by vertex
//! in place, by one Newton step of each vertex's own 3×3 system a sweep.
//!
//! - Time: implicit Euler as a minimization. Chen, Liu, Yang and Yuksel, "Vertex block descent", SIGGRAPH 2024.
//! - Stretching: St. Venant–Kirchhoff membrane; the Hessian without the part that compression would make indefinite.
//! - Bending: the quadratic model of Bergou, Wardetzky, Harmon, Zorin and Grinspun, 2006, with the magnitude of the rest
//!   curvature kept for curved meshes.
//! - Air inside a closed surface pushes outward with one pressure: a balloon.
//! - Contact with a ball and the ground: quadratic penalty with smoothed Coulomb friction (Li et al., "Incremental
//!   potential contact", 2020, section 5). There is no contact of the cloth with itself.
//! - Air: a force toward the wind, taken implicitly in the prediction.

mod checks;
mod scene;
mod solve;
mod symmetric;

use crate::example::{Check, Example, Info, Look};
use crate::picture::Prop;
use crate::settings::{Kind, Setting, Settings};
use anyhow::Result;
use meshweft::nalgebra::Vector3;
use meshweft::{Metrics, Order, Program, Real, Stages, Star, Stars, kernel, record};
use meshweft_mesh::Mesh;
use scene::{Hinge, Scene};

record! {
    /// Numbers that all vertices read.
    pub struct Parameters<R> {
        /// Time step, s.
        dt: R,
        /// Gravity, m/s².
        gravity: Vector3<R>,
        /// Wind velocity, m/s.
        wind: Vector3<R>,
        /// Rate at which the air takes the cloth along, 1/s.
        drag: R,
        /// First Lamé parameter of the membrane, N/m.
        lambda: R,
        /// Second Lamé parameter of the membrane, N/m.
        mu: R,
        /// Bending stiffness, N m.
        bend: R,
        /// Pressure inside a closed surface, N/m².
        pressure: R,
        /// Share of the Newton step that is taken.
        relaxation: R,
        /// Ball and ground.
        obstacles: Obstacles<R>,
    }
}

record! {
    /// What the cloth falls on.
    pub struct Obstacles<R> {
        /// Center of the ball, m.
        center: Vector3<R>,
        /// Radius of the ball with the thickness of the cloth, m.
        radius: R,
        /// Height of the ground with the thickness of the cloth, m.
        ground: R,
        /// Stiffness of contact: this times mass over time step squared, per vertex.
        stiffness: R,
        /// Coefficient of friction.
        friction: R,
    }
}

record! {
    /// What neighbors read.
    pub struct Shared<R> {
        /// Position, m.
        position: Vector3<R>,
    }
}

record! {
    /// What only the vertex reads.
    pub struct Private<R> {
        /// Where inertia alone would take the vertex, m.
        target: Vector3<R>,
        /// Position at the start of the step, m.
        before: Vector3<R>,
        /// Velocity, m/s.
        velocity: Vector3<R>,
        /// Share of gravity that the last step's acceleration had: 1 falling freely, 0 at rest.
        falling: R,
        /// Mass, kg.
        mass: R,
        /// 1, or 0 where the vertex is pinned.
        free: R,
    }
}

record! {
    /// A triangle at rest, seen from one corner.
    pub struct Rest<R> {
        /// Inverse of the matrix of the two edges from the corner, in the triangle's plane: entries 00, 01, 10, 11, 1/m.
        inverse: meshweft::nalgebra::Vector4<R>,
        /// Area, m².
        area: R,
    }
}

record! {
    /// A hinge at rest, seen from one corner: two triangles and the edge between them.
    pub struct Crease<R> {
        /// Weights of the four vertices, own first, 1/m; the length of the weighted sum of positions is the curvature
        /// across the edge times the root of the area it is taken over.
        weights: meshweft::nalgebra::Vector4<R>,
        /// Length of that sum at rest.
        rest: R,
    }
}

/// Triangles around a vertex.
pub struct Triangles;

impl Star<2> for Triangles {
    const INDEX: usize = 0;
    type Data<R: Real> = Rest<R>;
}

/// Hinges around a vertex.
pub struct Hinges;

impl Star<3> for Hinges {
    const INDEX: usize = 1;
    type Data<R: Real> = Crease<R>;
}

/// A piece of cloth.
pub struct Cloth {
    scene: Scene,
    dt: f64,
    rounds: usize,
    density: f64,
    gravity: f64,
    wind: f64,
    drag: f64,
    lambda: f64,
    mu: f64,
    bend: f64,
    pressure: f64,
    friction: f64,
    relaxation: f64,
    contact: bool,
}

/// Distance that contact keeps between the cloth and what it falls on, m.
const THICKNESS: f64 = 0.006;
/// Contact stiffness over mass per time step squared: a vertex at rest sinks by g dt² / this, some micrometers.
const CONTACT: f64 = 10.0;

kernel! {
    /// Predicts where inertia, gravity and air take each vertex; the minimization starts where the last step's
    /// acceleration would take it, so that what hangs still starts where it is.
    map Predict for Cloth: |p, own, private| {
        let step = p.dt * private.free;
        let air = R::lit(1.0) + p.drag * p.dt;
        let velocity = (private.velocity + (p.gravity + p.wind * p.drag) * p.dt) * (R::lit(1.0) / air);
        let target = own.position + velocity * step;
        let start = own.position + (private.velocity + p.gravity * (p.dt * private.falling)) * step;
        (Shared { position: start }, Private { target, before: own.position, ..private })
    }
}

kernel! {
    /// The velocity that led from the start of the step to its end.
    map Finish for Cloth: |p, own, private| {
        let (zero, one) = (R::lit(0.0), R::lit(1.0));
        let velocity = (own.position - private.before) * (one / p.dt);
        let acceleration = (velocity - private.velocity) * (one / p.dt);
        // Without gravity nothing falls; a tiny square keeps the quotient finite.
        let share = acceleration.dot(&p.gravity) / p.gravity.dot(&p.gravity).max(R::lit(1e-12));
        (own, Private { velocity, falling: share.max(zero).min(one), ..private })
    }
}

kernel! {
    /// `½ m v²`.
    sum Kinetic ("kinetic energy", "J") for Cloth: |_, _, private, _| {
        R::lit(0.5) * private.mass * private.velocity.dot(&private.velocity)
    }
}

kernel! {
    /// `-m g · x`.
    sum Weight ("potential energy", "J") for Cloth: |p, own, private, _| -private.mass * p.gravity.dot(&own.position)
}

kernel! {
    /// The membrane's energy, a third of each triangle at each corner.
    sum Stretch ("stretch energy", "J") for Cloth: |p, own, _, neighbors| {
        let energy = |sum, others, rest| sum + solve::membrane_energy(p, own, others, rest);
        neighbors.fold(Triangles, R::lit(0.0), energy) * R::lit(1.0 / 3.0)
    }
}

kernel! {
    /// The bending energy, a quarter of each hinge at each corner.
    sum Bend ("bending energy", "J") for Cloth: |p, own, _, neighbors| {
        let energy = |sum, others, crease| sum + solve::hinge_energy(p, own, others, crease);
        neighbors.fold(Hinges, R::lit(0.0), energy) * R::lit(0.25)
    }
}

impl Program for Cloth {
    type Parameters<R: Real> = Parameters<R>;
    type Shared<R: Real> = Shared<R>;
    type Private<R: Real> = Private<R>;

    fn time_step(&self) -> f64 {
        self.dt
    }

    fn parameters(&self, time: f64) -> Parameters<f64> {
        // Gusts: the wind swells and fades once in two seconds.
        let gust = 1.0 + 0.5 * Real::sin(std::f64::consts::PI * time);
        Parameters {
            dt: self.dt,
            gravity: Vector3::new(0.0, 0.0, -self.gravity),
            wind: Vector3::new(self.wind * gust, 0.0, 0.0),
            drag: self.drag,
            lambda: self.lambda,
            mu: self.mu,
            bend: self.bend,
            pressure: self.pressure * self.scene.outward,
            relaxation: self.relaxation,
            obstacles: Obstacles {
                center: Vector3::from(self.scene.ball.0),
                radius: self.scene.ball.1 + THICKNESS,
                ground: THICKNESS,
                stiffness: if self.contact { CONTACT } else { 0.0 },
                friction: self.friction,
            },
        }
    }

    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let points = self.scene.rest.clone();
        stars.add(Triangles, mesh.triangles(), move |i| scene::rest_of(i.vertices.map(|v| points[v as usize])));
        let hinges: Vec<Hinge> = if self.bend > 0.0 { scene::hinges(mesh, &self.scene.rest) } else { Vec::new() };
        let elements = hinges.iter().map(|h| h.vertices).collect();
        stars.add(Hinges, elements, move |i| hinges[i.element].seen_from(&i));
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> (Shared<f64>, Private<f64>) {
        let position = Vector3::from(mesh.points()[v as usize]);
        // A vertex without triangles weighs as much as a square centimeter.
        let area = Some(self.scene.areas[v as usize]).filter(|&a| a > 0.0).unwrap_or(1e-4);
        let free = if self.scene.pinned[v as usize] { 0.0 } else { 1.0 };
        let private = Private {
            target: position,
            before: position,
            velocity: Vector3::zeros(),
            falling: free,
            mass: self.density * area,
            free,
        };
        (Shared { position }, private)
    }

    fn step(&self, stages: &mut impl Stages<Self>) {
        stages.map(Predict);
        match self.bend > 0.0 || self.pressure > 0.0 || self.contact {
            true => stages.sweep(solve::Solve::<true>, self.rounds),
            false => stages.sweep(solve::Solve::<false>, self.rounds),
        }
        stages.map(Finish);
    }

    fn metrics(&self, metrics: &mut impl Metrics<Self>) {
        metrics.measure(Kinetic);
        metrics.measure(Weight);
        metrics.measure(Stretch);
        if self.bend > 0.0 {
            metrics.measure(Bend);
        }
    }
}

impl Example for Cloth {
    const INFO: Info = Info {
        name: "cloth",
        about: "a sheet, pinned at two corners, falls over a ball (vertex block descent)",
        mesh: "sheet:80x80",
        steps: 1200,
        settings: &[
            number("dt", "time step", 1.0 / 600.0, "s", [1e-6, 1.0]),
            number("rounds", "sweeps a step", 10.0, "", [1.0, 1e6]),
            number("density", "mass of the cloth", 0.3, "kg/m²", [1e-6, 1e6]),
            number(
                "stretch",
                "stiffness against stretching: Young's modulus times thickness",
                200.0,
                "N/m",
                [0.0, 1e9],
            ),
            number("poisson", "how much it narrows when stretched", 0.3, "", [0.0, 0.49]),
            number("bend", "stiffness against bending; 0 leaves it out", 2e-5, "N m", [0.0, 1e3]),
            number(
                "pressure",
                "of the air in a closed surface; negative takes 30 if the mesh is closed",
                -1.0,
                "N/m²",
                [-1.0, 1e9],
            ),
            number("gravity", "acceleration downward", 9.81, "m/s²", [-1e3, 1e3]),
            number("wind", "speed of the wind along x, with gusts", 0.0, "m/s", [-1e3, 1e3]),
            number("drag", "rate at which the air takes the cloth along", 0.5, "1/s", [0.0, 1e6]),
            number("friction", "coefficient of friction with ball and ground", 0.4, "", [0.0, 10.0]),
            number(
                "relaxation",
                "share of each Newton step; 0 takes 1, or 0.4 under the jacobi order",
                0.0,
                "",
                [0.0, 1.0],
            ),
            number(
                "size",
                "largest side of the scene's mesh; 0 keeps it, or makes it 1 m if out of 0.2 to 5 m",
                0.0,
                "m",
                [0.0, 1e6],
            ),
            Setting {
                name: "pins",
                about: "what is held: two corners of a flat sheet (nothing of other meshes), a whole side, or nothing",
                kind: Kind::Choice(&["corners", "side", "none"]),
            },
            Setting { name: "obstacles", about: "what it falls on", kind: Kind::Choice(&["ball-and-ground", "none"]) },
            Setting { name: "up", about: "axis of the mesh that points up", kind: Kind::Choice(&["z", "y"]) },
        ],
    };

    fn new(mesh: &mut Mesh, settings: &Settings, order: Order) -> Result<Cloth> {
        let scene = Scene::set(mesh, settings)?;
        let (young, poisson) = (settings.number("stretch"), settings.number("poisson"));
        let relaxation = match settings.number("relaxation") {
            // Double-buffered, neighbors move at the same time and overshoot together.
            0.0 if order == Order::Jacobi => 0.4,
            0.0 => 1.0,
            share => share,
        };
        let pressure = match settings.number("pressure") {
            pressure if pressure >= 0.0 => pressure,
            _ if scene.outward != 0.0 => 30.0,
            _ => 0.0,
        };
        Ok(Cloth {
            scene,
            dt: settings.number("dt"),
            rounds: settings.count("rounds"),
            density: settings.number("density"),
            gravity: settings.number("gravity"),
            wind: settings.number("wind"),
            drag: settings.number("drag"),
            // Plane stress: Timoshenko and Goodier, Theory of Elasticity, 1970, section 10.
            lambda: young * poisson / (1.0 - poisson * poisson),
            mu: young / (2.0 * (1.0 + poisson)),
            bend: settings.number("bend"),
            pressure,
            friction: settings.number("friction"),
            relaxation,
            contact: settings.choice("obstacles") != "none",
        })
    }

    fn look(&self) -> Look {
        let (center, radius) = self.scene.ball;
        let props = match self.contact {
            true => vec![Prop::Ball { center, radius }, Prop::Ground { height: 0.0 }],
            false => vec![],
        };
        Look { positions: Some("position"), props, ..Look::default() }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}

const fn number(name: &'static str, about: &'static str, default: f64, unit: &'static str, range: [f64; 2]) -> Setting {
    Setting { name, about, kind: Kind::Number { default, unit, range } }
}
