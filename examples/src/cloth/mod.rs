//! Cloth by vertex block descent: each step minimizes inertia plus elastic, bending and contact energy, vertex by vertex
//! in place, by one Newton step of each vertex's own 3×3 system a sweep.
//!
//! - Time: implicit Euler as a minimization. Chen, Liu, Yang and Yuksel, "Vertex block descent", SIGGRAPH 2024.
//! - Stretching: St. Venant–Kirchhoff membrane; the Hessian without the part that compression would make indefinite.
//! - Bending: the quadratic model of Bergou, Wardetzky, Harmon, Zorin and Grinspun, 2006, with the magnitude of the rest
//!   curvature kept for curved meshes.
//! - Air inside a closed surface pushes outward with one pressure: a balloon.
//! - Contact with a ball and the ground: quadratic penalty with smoothed Coulomb friction (Li et al., "Incremental
//!   potential contact", 2020, section 5).
//! - Contact with itself, if asked for: gaps between what comes near in a step repel likewise, and stay open
//!   ([`separate`](meshweft_mesh::contact::separate)).
//! - Air: a force toward the wind, taken implicitly in the prediction.

mod checks;
mod over;
mod scene;
mod solve;
mod tear;

use crate::softbody::options::{TEAR, UP, spares};
use anyhow::{Result, bail};
use meshweft::nalgebra::Vector3;
use meshweft::{
    Incidence, Int, Length, Order, Program, Real, Renewal, SharedOf, Stages, Stars, Update, kernels, record, stars,
    vertex,
};
use meshweft_command::{CellsNow, Check, Example, Info, Kind, Look, Prop, Setting, Settings};
use meshweft_mesh::{CellKind, Mesh};
use meshweft_physics::bending::{Crease, flat_energy};
use meshweft_physics::{Air, Contact, Gap, Membrane, Moving, Panel, Plane, Sphere, Touch, Touching};
use scene::Bending;
pub(crate) use scene::Scene;
use std::sync::Arc;
use tear::Tear;

record! {
    /// Numbers that all vertices read.
    pub struct Parameters<R> {
        /// Time step, s.
        dt: R,
        /// Gravity and wind.
        air: Air<R>,
        /// What resists stretching.
        membrane: Membrane<R>,
        /// Bending stiffness, N m.
        bend: R,
        /// Pressure inside a closed surface, N/m².
        pressure: R,
        /// Share of the Newton step that is taken.
        relaxation: R,
        /// Ball and ground.
        obstacles: Obstacles<R>,
        /// How far from its guess a vertex may end, m.
        freedom: R,
    }
}

record! {
    /// What the cloth falls on.
    pub struct Obstacles<R> {
        /// The ball with the thickness of the cloth.
        ball: Sphere<R>,
        /// Height of the ground with the thickness of the cloth, m.
        ground: R,
        /// Stiffness of contact: this times mass over time step squared, per vertex.
        stiffness: R,
        /// Coefficient of friction.
        friction: R,
    }
}

impl<R: Real> Obstacles<R> {
    /// How contact pushes a vertex of a mass.
    #[inline(always)]
    fn contact(&self, mass: R, dt: R) -> Contact<R> {
        // Sliding slower than this is smoothed to sticking, m.
        let slip = dt * R::lit(1e-3);
        Contact { stiffness: self.stiffness * (mass / (dt * dt)), friction: self.friction, slip }
    }

    /// Where a point is, as ball and ground see it.
    #[inline(always)]
    fn touch(&self, at: Vector3<R>) -> [Touch<R>; 2] {
        let ground = Plane { normal: Vector3::new(R::lit(0.0), R::lit(0.0), R::lit(1.0)), offset: self.ground };
        [self.ball.touch(at), ground.touch(at)]
    }
}

vertex! {
    /// A vertex of the cloth.
    pub struct Node<R> {
        /// Position, m.
        shared position: Vector3<R>,
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
        /// Where the sweeps of the step start, m.
        guess: Vector3<R>,
        /// How much of the way there is open to it, seen from its end.
        open: R,
        /// Of a spare place of a vertex, which triangles around the vertex it holds, a bit each.
        holds: [R::Int; 2],
    }
}

stars! {
    /// Triangles around a vertex.
    pub Triangles[2]: Panel<R>;
    /// Vertices that flat hinges join to a vertex, but slender ones, with the sum of the products of both weights, 1/m².
    pub Bends[1]: R;
    /// Curved and slender hinges around a vertex.
    pub Hinges[3]: Crease<R>;
    /// What comes near in a step.
    pub changing Gaps[3]: Gap<R>;
    /// Triangles that may come apart.
    pub changing Pieces[2]: Panel<R>;
    /// As `Bends` between those.
    pub changing Ties[1]: R;
    /// As `Hinges` between those.
    pub changing Folds[3]: Crease<R>;
}

/// A piece of cloth.
pub struct Cloth {
    scene: Arc<Scene>,
    dt: f64,
    rounds: usize,
    density: f64,
    gravity: f64,
    wind: f64,
    drag: f64,
    membrane: Membrane<f64>,
    bend: f64,
    pressure: f64,
    friction: f64,
    relaxation: f64,
    contact: bool,
    /// What keeps it from passing through itself, if something does.
    touching: Option<Arc<Touching>>,
    /// What tears, if something does.
    tear: Option<Arc<Tear>>,
}

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pins {
    /// Two corners of a flat sheet; nothing of other meshes.
    Corners,
    /// A whole side of a flat sheet.
    Side,
    /// Nothing.
    None,
}

/// Settings of a piece of cloth; `ClothOptions::default()` is what the command takes.
///
/// ```
/// use meshweft_examples::cloth::ClothOptions;
/// let falling_freely = ClothOptions { obstacles: false, drag: 0.0, ..ClothOptions::default() };
/// assert_eq!(falling_freely.gravity, 9.81);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClothOptions {
    /// Time step, s.
    pub dt: f64,
    /// Sweeps a step.
    pub rounds: usize,
    /// Mass of the cloth, kg/m².
    pub density: f64,
    /// Young's modulus times thickness, N/m.
    pub stretch: f64,
    /// Poisson's ratio, 0 to 0.49.
    pub poisson: f64,
    /// Bending stiffness, N m; 0 leaves bending out.
    pub bend: f64,
    /// Pressure of the air in a closed surface, N/m²; `None` takes 30 if the mesh is closed.
    pub pressure: Option<f64>,
    /// Acceleration downward, m/s².
    pub gravity: f64,
    /// Speed of the wind along x, with gusts, m/s.
    pub wind: f64,
    /// Rate at which the air takes the cloth along, 1/s.
    pub drag: f64,
    /// Coefficient of friction with ball and ground.
    pub friction: f64,
    /// Share of each Newton step; `None` takes 1, or 0.4 under the jacobi order.
    pub relaxation: Option<f64>,
    /// Largest side of the scene's mesh, m; `None` keeps it, or makes it 1 m if out of 0.2 to 5 m.
    pub size: Option<f64>,
    /// What is held.
    pub pins: Pins,
    /// Whether there are a ball and a ground to fall on.
    pub obstacles: bool,
    /// What is to be there in place of the ball: the surface of a file or a shape.
    pub over: Option<String>,
    /// Whether it touches itself, and does not pass through.
    pub touching: bool,
    /// By how much it may be stretched before it tears, as a share of its length at rest; `None` if it never does.
    pub tear: Option<f64>,
    /// How often a vertex can split, if it tears.
    pub spares: u32,
    /// Whether y points up in the mesh, not z.
    pub y_is_up: bool,
}

impl Pins {
    /// Those of a name on the command line.
    pub(crate) fn named(name: &str) -> Pins {
        match name {
            "corners" => Pins::Corners,
            "side" => Pins::Side,
            _ => Pins::None,
        }
    }
}

impl From<&Settings> for ClothOptions {
    fn from(settings: &Settings) -> ClothOptions {
        let number = |name| settings.number(name);
        let unless_zero = |name| Some(number(name)).filter(|&x| x != 0.0);
        ClothOptions {
            dt: number("dt"),
            rounds: settings.count("rounds"),
            density: number("density"),
            stretch: number("stretch"),
            poisson: number("poisson"),
            bend: number("bend"),
            pressure: Some(number("pressure")).filter(|&x| x >= 0.0),
            gravity: number("gravity"),
            wind: number("wind"),
            drag: number("drag"),
            friction: number("friction"),
            relaxation: unless_zero("relaxation"),
            size: unless_zero("size"),
            pins: Pins::named(settings.choice("pins")),
            obstacles: settings.choice("obstacles") != "none",
            over: settings.mesh("over").map(String::from),
            touching: settings.choice("touching") == "on",
            tear: unless_zero("tear"),
            spares: settings.count("spares") as u32,
            y_is_up: settings.choice("up") == "y",
        }
    }
}

impl Default for ClothOptions {
    fn default() -> ClothOptions {
        ClothOptions::from(&Settings::new(Cloth::INFO.settings))
    }
}

impl Cloth {
    /// Sets the scene. The mesh is scaled and moved above the ball. `order` is that of the sweeps.
    ///
    /// # Errors
    /// A mesh without triangles or quads; one that is to be fallen on and cannot be; what crosses itself and is to touch itself.
    pub fn with(mesh: &mut Mesh, options: &ClothOptions, order: Order) -> Result<Cloth> {
        if let (Some(over), false) = (&options.over, options.touching) {
            bail!("with touching=off the cloth passes through over={over}: leave out one of them");
        }
        let mut scene = Scene::set(mesh, options)?;
        let tear = options.tear.map(|limit| Tear::of(mesh, &mut scene, (limit, options.spares), options.bend > 0.0));
        let tear = tear.transpose()?.map(Arc::new);
        let places = mesh.points().len() as u32;
        scene.join_body(mesh)?;
        let touching = options.touching.then(|| scene.touching(mesh)).transpose()?;
        let once = |tear: &Arc<Tear>| -> Vec<u32> {
            tear.tearing().once().iter().copied().chain(places..mesh.points().len() as u32).collect()
        };
        let touching = match &tear {
            Some(tear) => touching.map(|touching| touching.with_once(once(tear))),
            None => touching,
        };
        let touching = touching.map(Arc::new);
        Ok(Cloth { touching, tear, ..Cloth::tuned(Arc::new(scene), options, order) })
    }

    /// The scene with all else that decides about a step.
    fn tuned(scene: Arc<Scene>, options: &ClothOptions, order: Order) -> Cloth {
        // Double-buffered, neighbors move at the same time and overshoot together.
        let relaxation = options.relaxation.unwrap_or(if order.key.is_double_buffered() { 0.4 } else { 1.0 });
        let pressure = options.pressure.unwrap_or(if scene.outward != 0.0 { 30.0 } else { 0.0 });
        Cloth {
            scene,
            dt: options.dt,
            rounds: options.rounds,
            density: options.density,
            gravity: options.gravity,
            wind: options.wind,
            drag: options.drag,
            membrane: Membrane::of(options.stretch, options.poisson),
            bend: options.bend,
            pressure,
            friction: options.friction,
            relaxation,
            contact: options.obstacles,
            touching: None,
            tear: None,
        }
    }
}

/// Distance that contact keeps between the cloth and what it falls on, m.
pub(crate) const THICKNESS: f64 = 0.006;
/// Contact stiffness over mass per time step squared: a vertex at rest sinks by g dt² / this, some micrometers.
const CONTACT: f64 = 10.0;
/// Share of its vertex's mass that a spare place has which holds nothing.
const SPARE: f64 = 1e-6;

kernels! {
    for Cloth: Node, Parameters;

    /// Predicts where inertia, gravity and air take each vertex; the minimization starts where the last step's
    /// acceleration would take it, so that what hangs still starts where it is.
    map Predict |p, own| {
        let step = p.dt * own.free;
        let velocity = p.air.velocity(own.velocity, p.dt);
        let start = own.position + (own.velocity + p.air.gravity * (p.dt * own.falling)) * step;
        Node { position: start, target: own.position + velocity * step, before: own.position, ..own }
    };

    /// The same, where the sweeps start from a guess by which nothing passes through anything. What is pinned goes on as fast as it does.
    map Approach |p, own| {
        let velocity = p.air.velocity(own.velocity, p.dt);
        let target = own.position + velocity * (p.dt * own.free);
        Node { position: own.guess, target, before: own.position, ..own }
    };

    use update solve::Solve<true, true, true, true>;
    use update solve::Solve<true, true, true, false>;
    use update solve::Solve<true, true, false, false>;
    use update solve::Solve<true, false, false, false>;
    use update solve::Solve<false, false, false, false>;

    /// The velocity that led from the start of the step to its end.
    map Finish |p, own| {
        let velocity = (own.position - own.before) * (R::lit(1.0) / p.dt);
        Node { velocity, falling: p.air.falling(own.velocity, velocity, p.dt), ..own }
    };

    /// `½ m v²`.
    sum Kinetic("kinetic energy", "J") |_, own, _| R::lit(0.5) * own.mass * own.velocity.dot(&own.velocity);

    /// `-m g · x`.
    sum Weight("potential energy", "J") |p, own, _| -own.mass * p.air.gravity.dot(&own.position);

    /// The membrane's energy, a third of each triangle at each corner.
    sum Stretch("stretch energy", "J") |p, own, around| {
        let energy = |[b, c]: [SharedOf<Cloth, R>; 2], rest| p.membrane.energy(own.position, [b.position, c.position], rest);
        (around.sum(Triangles, energy) + around.sum(Pieces, energy)) * R::lit(1.0 / 3.0)
    };

    /// The bending energy: half of what flat hinges have of each pair, and a quarter of each curved one at each corner. In 32 bits that
    /// of a flat sheet is what rounding leaves, of either sign: some 1e-6 of a folded one's.
    sum Bend("bending energy", "J") |p, own, around| {
        let flat = |[other]: [SharedOf<Cloth, R>; 1], weight| flat_energy(p.bend, own.position, other.position, weight);
        let flat = around.sum(Bends, flat) + around.sum(Ties, flat);
        let energy = |[b, c, d]: [SharedOf<Cloth, R>; 3], crease: Crease<R>| {
            crease.energy(p.bend, own.position, [b.position, c.position, d.position])
        };
        flat * R::lit(0.5) + (around.sum(Hinges, energy) + around.sum(Folds, energy)) * R::lit(0.25)
    };

    /// The energy of gaps that are narrower than the cloth is thick, a quarter at each of their four vertices, and of dents into obstacles.
    sum Pressed("contact energy", "J") |p, own, around| {
        let gaps = around.sum(Gaps, |[b, c, d], gap| gap.energy(own.position, [b.position, c.position, d.position]));
        let contact = p.obstacles.contact(own.mass, p.dt);
        let [ball, ground] = p.obstacles.touch(own.position).map(|touch| contact.energy(touch));
        gaps * R::lit(0.25) + ball + ground
    };

    /// How far another sweep would move any vertex: 0 where sweeps have solved the step.
    max Residual("residual", "m") |p, own, around| {
        // The kernel of everything: stars that a scene does without are empty.
        let moved = solve::Solve::<true, true, true, true>::update(p, own, around);
        (moved.position - own.position).length()
    };
}

impl Cloth {
    /// Adds the star of what comes near.
    fn gaps(&self, stars: &mut Stars) {
        match self.touching {
            Some(_) => stars.add_changing(Gaps),
            None => stars.add(Gaps, Vec::new(), |_: Incidence<4>| unreachable!("there are none")),
        }
    }
}

impl Program for Cloth {
    fn time_step(&self) -> f64 {
        self.dt
    }

    fn set_time_step(&mut self, dt: f64) -> bool {
        self.dt = dt;
        true
    }

    fn parameters(&self, time: f64) -> Parameters<f64> {
        // Gusts: the wind swells and fades once in two seconds.
        let gust = 1.0 + 0.5 * Real::sin(std::f64::consts::PI * time);
        // No ball is one that nothing comes near.
        let (center, radius) = self.scene.ball.unwrap_or(([0.0, 0.0, -1e6], 0.0));
        let (center, radius) = (Vector3::from(center), radius + THICKNESS);
        Parameters {
            dt: self.dt,
            air: Air {
                gravity: Vector3::new(0.0, 0.0, -self.gravity),
                wind: Vector3::new(self.wind * gust, 0.0, 0.0),
                drag: self.drag,
            },
            membrane: self.membrane,
            bend: self.bend,
            pressure: self.pressure * self.scene.outward,
            relaxation: self.relaxation,
            obstacles: Obstacles {
                ball: Sphere { center, radius },
                ground: THICKNESS,
                stiffness: if self.contact { CONTACT } else { 0.0 },
                friction: self.friction,
            },
            // Without gaps nothing has to be near its way.
            freedom: self.touching.as_ref().map_or(1e30, |touching| touching.freedom()),
        }
    }

    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        if let Some(tear) = &self.tear {
            tear.stars(stars, &self.scene.rest);
            stars.add(Triangles, Vec::new(), |_: Incidence<3>| unreachable!("all may come apart"));
            stars.add(Bends, Vec::new(), |_: Incidence<2>| unreachable!("all may come apart"));
            stars.add(Hinges, Vec::new(), |_: Incidence<4>| unreachable!("all may come apart"));
            self.gaps(stars);
            return Ok(());
        }
        stars.add(Pieces, Vec::new(), |_: Incidence<3>| unreachable!("nothing comes apart"));
        stars.add(Ties, Vec::new(), |_: Incidence<2>| unreachable!("nothing comes apart"));
        stars.add(Folds, Vec::new(), |_: Incidence<4>| unreachable!("nothing comes apart"));
        let points = self.scene.rest.clone();
        let point = move |v: u32| points[v as usize];
        let triangles = self.scene.triangles(mesh);
        let Bending { flat, curved } =
            if self.bend > 0.0 { Bending::of(&triangles, &self.scene.rest) } else { Bending::default() };
        stars.add(Triangles, triangles, move |Incidence { vertices: [a, b, c], .. }| {
            Panel::at_rest([point(a), point(b), point(c)])
        });
        let (pairs, weights): (Vec<_>, Vec<_>) = flat.into_iter().unzip();
        stars.add(Bends, pairs, move |i| weights[i.element]);
        let elements = curved.iter().map(|h| h.vertices).collect();
        stars.add(Hinges, elements, move |i| curved[i.element].seen_from(&i));
        self.gaps(stars);
        Ok(())
    }

    fn renew(&self, _: &Mesh, renewal: &mut Renewal<Self>) -> meshweft::Result<()> {
        let torn = self.tear.as_ref().map(|tear| {
            let mut torn = tear.renew(&self.scene, self.density, renewal);
            torn.triangles.extend(self.scene.triangles_of_body());
            torn
        });
        let Some(touching) = &self.touching else { return Ok(()) };
        let gravity = Vector3::new(0.0, 0.0, -self.gravity);
        let moving = |Node { position, velocity, falling, free, mass, .. }| {
            // Where Predict would start; what is pinned goes on as fast as it does.
            let to = position + (velocity + gravity * (self.dt * falling * free)) * self.dt;
            Moving { from: position.into(), to: to.into(), compliance: free * self.dt * self.dt / mass }
        };
        let found = touching.renew(renewal, Gaps, ["guess", "open"], torn, moving);
        found.map_err(|error| {
            let instead = "; with touching=off the cloth passes through itself instead";
            let way_out = if self.scene.has_body() { "" } else { instead };
            meshweft::Error::Program(format!("{error}{way_out}"))
        })
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let position = Vector3::from(mesh.points()[v as usize]);
        let area = self.scene.area(v);
        // What holds nothing yet stays where it is. Without any mass it would have no place to be solved for.
        let (free, mass) = match &self.tear {
            _ if self.scene.is_body(v) => (0.0, SPARE * self.density * area),
            Some(tear) if tear.tearing().is_spare(v) => (0.0, SPARE * self.density * area),
            _ if self.scene.pinned[v as usize] => (0.0, self.density * area),
            _ => (1.0, self.density * area),
        };
        let holds = [Int(0); 2];
        let velocity = Vector3::zeros();
        Node {
            position,
            target: position,
            before: position,
            velocity,
            falling: free,
            mass,
            free,
            guess: position,
            open: 1.0,
            holds,
        }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        match self.touching {
            Some(_) => stages.map(Approach),
            None => stages.map(Predict),
        }
        match (self.touching.is_some(), self.pressure > 0.0, self.bend > 0.0 || self.contact) {
            _ if self.tear.is_some() => stages.sweep(solve::Solve::<true, true, true, true>, self.rounds),
            (true, ..) => stages.sweep(solve::Solve::<true, true, true, false>, self.rounds),
            (_, true, _) => stages.sweep(solve::Solve::<true, true, false, false>, self.rounds),
            (_, _, true) => stages.sweep(solve::Solve::<true, false, false, false>, self.rounds),
            _ => stages.sweep(solve::Solve::<false, false, false, false>, self.rounds),
        }
        stages.map(Finish);
    }
}

impl Example for Cloth {
    const INFO: Info = Info {
        name: "cloth",
        about: "a sheet, pinned at two corners, falls over a ball (vertex block descent)",
        mesh: "sheet:80x80",
        steps: 1200,
        settings: &[
            Setting::number("dt", "time step", 1.0 / 600.0, "s", [1e-6, 1.0]),
            Setting::number("rounds", "sweeps a step", 10.0, "", [1.0, 1e6]),
            Setting::number("density", "mass of the cloth", 0.3, "kg/m²", [1e-6, 1e6]),
            Setting::number(
                "stretch",
                "stiffness against stretching: Young's modulus times thickness",
                200.0,
                "N/m",
                [0.0, 1e9],
            ),
            Setting::number("poisson", "how much it narrows when stretched", 0.3, "", [0.0, 0.49]),
            Setting::number("bend", "stiffness against bending; 0 leaves it out", 2e-5, "N m", [0.0, 1e3]),
            Setting::number(
                "pressure",
                "of the air in a closed surface; negative takes 30 if the mesh is closed",
                -1.0,
                "N/m²",
                [-1.0, 1e9],
            ),
            Setting::number("gravity", "acceleration downward", 9.81, "m/s²", [-1e3, 1e3]),
            Setting::number("wind", "speed of the wind along x, with gusts", 0.0, "m/s", [-1e3, 1e3]),
            Setting::number("drag", "rate at which the air takes the cloth along", 0.5, "1/s", [0.0, 1e6]),
            Setting::number("friction", "coefficient of friction with ball and ground", 0.4, "", [0.0, 10.0]),
            Setting::number(
                "relaxation",
                "share of each Newton step; 0 takes 1, or 0.4 under the jacobi order",
                0.0,
                "",
                [0.0, 1.0],
            ),
            Setting::number(
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
            Setting {
                name: "over",
                about: "a surface in place of the ball, also of a solid: a file, or a shape such as torus:96x48",
                kind: Kind::Mesh,
            },
            Setting {
                name: "touching",
                about: "whether it touches itself, or passes through",
                kind: Kind::Choice(&["on", "off"]),
            },
            TEAR,
            spares(2.0),
            UP,
        ],
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, order: Order) -> Result<Cloth> {
        Cloth::with(mesh, &ClothOptions::from(settings), order)
    }

    const LIVE: &'static [&'static str] =
        &["dt", "stretch", "poisson", "bend", "pressure", "gravity", "wind", "drag", "friction", "relaxation"];

    fn change(&mut self, settings: &Settings, order: Order) -> Result<()> {
        let options = ClothOptions::from(settings);
        if (options.bend > 0.0) != (self.bend > 0.0) {
            bail!("bend cannot go from or to 0 while it runs: without bending a vertex has other neighbors");
        }
        let (touching, tear) = (self.touching.take(), self.tear.take());
        *self = Cloth { touching, tear, ..Cloth::tuned(self.scene.clone(), &options, order) };
        Ok(())
    }

    fn look(&self) -> Look {
        let ball = self.scene.ball.map(|(center, radius)| Prop::Ball { center, radius });
        let props = match self.contact {
            true => ball.into_iter().chain([Prop::Ground { height: 0.0 }]).collect(),
            false => vec![],
        };
        let body: Vec<u32> = self.scene.triangles_of_body().flatten().collect();
        let now = |tear: Arc<Tear>| {
            CellsNow(Arc::new(move |fields| {
                let mut cells = tear.cells(fields);
                cells.extend(CellKind::Triangle, body.clone());
                cells
            }))
        };
        let cells = self.tear.clone().map(now);
        Look { positions: Some("position"), props, cells, ..Look::default() }
    }

    fn note(&self) -> Option<String> {
        self.scene.note()
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::generate::generate;
    use meshweft_mesh::{Cells, Curve, Field};

    #[test]
    fn the_inside_of_a_solid_is_no_part_of_the_cloth() {
        let solid = generate("box:4", 1).unwrap();
        let faces = solid.surface().into_flattened();
        let mut cells = solid.cells().clone();
        cells.extend(CellKind::Triangle, faces.clone());
        let mut mesh = Mesh::new(solid.points().to_vec(), cells).unwrap();
        let heights = mesh.points().iter().map(|p| p[2]).collect();
        mesh.set_point_field(Field { name: "height".into(), components: 1, values: heights }).unwrap();
        let cloth = Cloth::with(&mut mesh, &ClothOptions::default(), Order::default()).unwrap();
        assert_eq!(cloth.note().unwrap(), "8 of 64 points are in no triangle or quad: the cloth is the others");
        assert_eq!((mesh.points().len(), mesh.cells().counts()), (56, vec![(CellKind::Triangle, faces.len() / 3)]));
        assert!(cloth.scene.areas.iter().all(|&area| area > 0.0) && cloth.scene.outward == 1.0);
        // Scaled and lifted alike: as high above the lowest as before.
        let heights = &mesh.point_field("height").unwrap().values;
        let low = mesh.bounds()[0][2];
        assert!(mesh.points().iter().zip(heights).all(|(p, height)| (p[2] - low - height).abs() < 1e-12));

        let mut surface = Mesh::new(solid.points().to_vec(), Cells::of(CellKind::Triangle, faces)).unwrap();
        Cloth::with(&mut surface, &ClothOptions::default(), Order::default()).unwrap();
        assert_eq!(surface.points(), mesh.points());
        let mut sheet = generate("sheet:4", 1).unwrap();
        let whole = sheet.clone();
        let cloth = Cloth::with(&mut sheet, &ClothOptions::default(), Order::default()).unwrap();
        assert_eq!((cloth.note(), sheet.cells()), (None, whole.cells()));
    }

    #[test]
    fn neighbors_that_move_at_the_same_time_move_less_along_every_curve() {
        for curve in Curve::ALL {
            let relaxation = |order: Order| {
                let mut mesh = generate("sheet:4", 1).unwrap();
                Cloth::with(&mut mesh, &ClothOptions::default(), order.along(curve)).unwrap().relaxation
            };
            assert_eq!((relaxation(Order::JACOBI), relaxation(Order::COLOR)), (0.4, 1.0), "{curve}");
        }
    }
}
