//! Soft solids by vertex block descent: each step minimizes inertia plus elastic and contact energy, vertex by vertex in place, by one
//! Newton step of each vertex's own 3×3 system a sweep.
//!
//! - Time: implicit Euler as a minimization. Chen, Liu, Yang and Yuksel, "Vertex block descent", SIGGRAPH 2024.
//! - Elasticity: [`NeoHookean`] tets. Their energy is a convex quadratic function of any one vertex, whatever the shape of the tets, so
//!   in a sweep in place each update lowers it with that of inertia, also if they are inside out, and with steps too long by up to twice.
//!   Where something touches this is not so: friction has no energy.
//! - Contact with a ball, the ground and a lid: quadratic penalty with smoothed Coulomb friction.
//! - Contact with each other and themselves, if asked for: gaps between what comes near in a step repel likewise, and stay open
//!   ([`separate`](meshweft_mesh::contact::separate)).
//! - Ends of a solid can be held, and turned or pulled.

mod checks;
mod load;
pub(crate) mod options;
mod scene;
mod shape;
mod solve;
mod tear;

use anyhow::Result;
pub use load::{Grip, Obstacles};
use meshweft::nalgebra::Vector3;
use meshweft::{
    Incidence, Int, Length, Order, Program, Real, Renewal, SharedOf, Stages, Stars, Update, kernels, record, stars,
    vertex,
};
use meshweft_command::{CellsNow, Check, ColorMap, Example, Info, Look, Prop, Section, Settings};
use meshweft_mesh::Mesh;
use meshweft_physics::{Air, Gap, Moving, NeoHookean};
use options::SETTINGS;
pub use options::{Act, Obstructed, SoftbodyOptions};
pub(crate) use scene::Scene;
use std::sync::Arc;
use tear::Tear;

record! {
    /// Numbers that all vertices read.
    pub struct Parameters<R> {
        /// Time step, s.
        dt: R,
        /// Gravity and air.
        air: Air<R>,
        /// The farthest that a vertex is put ahead before the first sweep, m.
        reach: R,
        /// What the solid is made of.
        solid: NeoHookean<R>,
        /// Time over which the solid's stiffness resists motion, s.
        damping: R,
        /// Share of the Newton step that is taken where nothing touches.
        relaxation: R,
        /// Where the ends are held.
        grip: Grip<R>,
        /// What the solid touches.
        obstacles: Obstacles<R>,
        /// How far from its guess a vertex may end, m.
        freedom: R,
    }
}

vertex! {
    /// A vertex of the solid.
    pub struct Node<R> {
        /// Position, m.
        shared position: Vector3<R>,
        /// Where inertia alone would take the vertex, m; of a held one, its place at rest.
        target: Vector3<R>,
        /// Position at the start of the step, m.
        before: Vector3<R>,
        /// Velocity, m/s.
        velocity: Vector3<R>,
        /// Share of gravity that the last step's acceleration had: 1 falling freely, 0 at rest.
        falling: R,
        /// Mass, kg.
        mass: R,
        /// 1, or 0 where the vertex is held.
        free: R,
        /// By what share the edges around are longer than at rest, all together.
        stretch: R,
        /// Where the sweeps of the step start, m.
        guess: Vector3<R>,
        /// How much of the way there is open to it, seen from its end.
        open: R,
        /// Of a spare place of a vertex, which tets around the vertex it holds, a bit each.
        holds: [R::Int; 2],
    }
}

record! {
    /// An edge at rest.
    pub struct Edge<R> {
        /// Weight of linear finite elements, m.
        weight: R,
        /// Length, m.
        length: R,
    }
}

stars! {
    /// Edges around a vertex.
    pub Edges[1]: Edge<R>;
    /// Tets around a vertex, with one over six times their volume at rest, 1/m³.
    pub Tets[3]: R;
    /// What comes near in a step.
    pub changing Gaps[3]: Gap<R>;
    /// As `Edges` of what may tear.
    pub changing Links[1]: Edge<R>;
    /// As `Tets` of what may tear.
    pub changing Parts[3]: R;
}

impl Edge<f64> {
    /// That between two vertices at rest. `weight`: that of linear finite elements, m.
    fn at_rest(ends: [u32; 2], weight: f64, rest: &[[f64; 3]]) -> Edge<f64> {
        let [a, b] = ends.map(|v| Vector3::from(rest[v as usize]));
        Edge { weight, length: (b - a).norm() }
    }
}

/// Soft solids.
pub struct Softbody {
    scene: Arc<Scene>,
    options: SoftbodyOptions,
    relaxation: f64,
}

impl Softbody {
    /// Sets the scene. The mesh is scaled and moved; where several fall, it is made of as many copies. `order` is that of the sweeps.
    ///
    /// # Errors
    /// A mesh of edges or triangles, without solid cells; one that is too large for so many copies; solids that are to touch each other, and
    /// pass through each other already.
    pub fn with(mesh: &mut Mesh, options: &SoftbodyOptions, order: Order) -> Result<Softbody> {
        Ok(Softbody::tuned(Arc::new(Scene::set(mesh, options)?), options, order))
    }

    /// The scene with all else that decides about a step.
    fn tuned(scene: Arc<Scene>, options: &SoftbodyOptions, order: Order) -> Softbody {
        // Double-buffered, the four vertices of a tet move at the same time: half a step of each is the most that never overshoots.
        let suited = if order.key.is_double_buffered() { 0.4 } else { OVERRELAXATION };
        Softbody { scene, relaxation: options.relaxation.unwrap_or(suited), options: options.clone() }
    }
}

/// Share of its vertex's mass that a spare place has which holds nothing.
const SPARE: f64 = 1e-6;
/// Share of the Newton step in sweeps in place.
const OVERRELAXATION: f64 = 1.5;

kernels! {
    for Softbody: Node, Parameters;

    /// Predicts where inertia, gravity and air take each vertex, and moves those that are held; the minimization starts where the last
    /// step's acceleration would take it, so that what lies still starts where it is.
    map Predict |p, own| {
        let velocity = p.air.velocity(own.velocity, p.dt);
        let way = (own.velocity + p.air.gravity * (p.dt * own.falling)) * p.dt;
        // Ways longer than the solid would tear it apart before the first sweep.
        let start = own.position + way * (p.reach / way.length().max(p.reach)).min(R::lit(1.0));
        let held = p.grip.hold(own.target);
        let is_free = R::lit(0.5).less(own.free);
        let either = |free: Vector3<R>, held: Vector3<R>| free.zip_map(&held, |free, held| R::select(is_free, free, held));
        Node {
            position: either(start, held),
            target: either(own.position + velocity * p.dt, own.target),
            before: own.position,
            ..own
        }
    };

    /// The same, where the sweeps start from a guess by which nothing passes through anything. What is held goes as far as that.
    map Approach |p, own| {
        let target = own.position + p.air.velocity(own.velocity, p.dt) * p.dt;
        let is_free = R::lit(0.5).less(own.free);
        let target = target.zip_map(&own.target, |free, held| R::select(is_free, free, held));
        Node { position: own.guess, target, before: own.position, ..own }
    };

    use update solve::Solve<false, false, false>;
    use update solve::Solve<true, false, false>;
    use update solve::Solve<true, true, false>;
    use update solve::Solve<true, true, true>;

    /// The velocity that led from the start of the step to its end, and how far the solid is stretched around each vertex.
    update Finish |p, own, around| {
        let velocity = (own.position - own.before) * (R::lit(1.0) / p.dt);
        let falling = p.air.falling(own.velocity, velocity, p.dt);
        let lengths = |[other]: [SharedOf<Softbody, R>; 1], edge: Edge<R>| {
            ((other.position - own.position).length(), edge.length)
        };
        let ((now, rest), torn) = (around.sum(Edges, lengths), around.sum(Links, lengths));
        let (now, rest) = (now + torn.0, rest + torn.1);
        // A vertex without edges is as long as at rest.
        let stretch = (now - rest) / rest.max(R::lit(1e-30));
        Node { velocity, falling, stretch, ..own }
    };

    /// `½ m v²`.
    sum Kinetic("kinetic energy", "J") |_, own, _| R::lit(0.5) * own.mass * own.velocity.dot(&own.velocity);

    /// `-m g · x`.
    sum Weight("potential energy", "J") |p, own, _| -own.mass * p.air.gravity.dot(&own.position);

    /// Half of the energy of each edge, and a quarter of that of each tet.
    sum Elastic("elastic energy", "J") |p, own, around| {
        let at = own.position;
        let of_edge = |[other]: [SharedOf<Softbody, R>; 1], edge: Edge<R>| p.solid.edge_energy(at, other.position, edge.weight);
        let of_tet = |[b, c, d]: [SharedOf<Softbody, R>; 3], inverse| {
            p.solid.tet_energy(at, [b.position, c.position, d.position], inverse)
        };
        let edges = around.sum(Edges, of_edge) + around.sum(Links, of_edge);
        let tets = around.sum(Tets, of_tet) + around.sum(Parts, of_tet);
        edges * R::lit(0.5) + tets * R::lit(0.25)
    };

    /// The energy of gaps that are narrower than what keeps solids apart, a quarter at each of their four vertices, and of dents into
    /// obstacles.
    sum Pressed("contact energy", "J") |p, own, around| {
        let gaps = around.sum(Gaps, |[b, c, d], gap| gap.energy(own.position, [b.position, c.position, d.position]));
        let weight = around.sum(Edges, |[_], edge| edge.weight) + around.sum(Links, |[_], edge| edge.weight);
        let contact = p.obstacles.contact(own.mass / (p.dt * p.dt) + p.solid.lambda * weight, p.dt);
        let [ball, ground, lid] = p.obstacles.touch(own.position).map(|touch| contact.energy(touch));
        gaps * R::lit(0.25) + ball + ground + lid
    };

    /// A quarter of the volume of each tet, negative inside out.
    sum Volume("volume", "m³") |_, own, around| {
        let sixfold = |[b, c, d]: [SharedOf<Softbody, R>; 3], _| {
            (b.position - own.position).dot(&(c.position - b.position).cross(&(d.position - b.position)))
        };
        (around.sum(Tets, sixfold) + around.sum(Parts, sixfold)) * R::lit(1.0 / 24.0)
    };

    /// How far another sweep would move any vertex: 0 where sweeps have solved the step.
    max Residual("residual", "m") |p, own, around| {
        // The kernel of everything: stars that a scene does without are empty.
        let moved = solve::Solve::<true, true, true>::update(p, own, around);
        (moved.position - own.position).length()
    };
}

impl Program for Softbody {
    fn time_step(&self) -> f64 {
        self.options.dt
    }

    fn set_time_step(&mut self, dt: f64) -> bool {
        self.options.dt = dt;
        true
    }

    fn parameters(&self, time: f64) -> Parameters<f64> {
        let options = &self.options;
        Parameters {
            dt: options.dt,
            air: Air { gravity: options.pull_of_gravity(), wind: Vector3::zeros(), drag: options.drag },
            reach: self.scene.length.max(self.scene.height).max(1e-3),
            solid: NeoHookean::of(options.young, options.poisson),
            damping: options.damping,
            relaxation: self.relaxation,
            grip: self.scene.grip(options, time + options.dt),
            obstacles: self.scene.obstacles(options, time),
            // Without gaps nothing has to be near its way.
            freedom: self.scene.touching.as_ref().map_or(1e30, |touching| touching.freedom()),
        }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        match self.scene.touching {
            Some(_) => stars.add_changing(Gaps),
            None => stars.add(Gaps, Vec::new(), |_: Incidence<4>| unreachable!("there are none")),
        }
        if let Some(tear) = &self.scene.tear {
            tear.stars(stars);
            stars.add(Edges, Vec::new(), |_: Incidence<2>| unreachable!("all may come apart"));
            stars.add(Tets, Vec::new(), |_: Incidence<4>| unreachable!("all may come apart"));
            return Ok(());
        }
        stars.add(Links, Vec::new(), |_: Incidence<2>| unreachable!("nothing comes apart"));
        stars.add(Parts, Vec::new(), |_: Incidence<4>| unreachable!("nothing comes apart"));
        let scene = self.scene.clone();
        stars.add_shared(Edges, self.scene.edges.clone(), move |i| scene.edge(i.element));
        let scene = self.scene.clone();
        stars.add_shared(Tets, self.scene.tets.clone(), move |i| scene.inverse(i.element));
        Ok(())
    }

    fn renew(&self, _: &Mesh, renewal: &mut Renewal<Self>) -> meshweft::Result<()> {
        let tear = self.scene.tear.as_ref();
        let torn = tear.map(|tear| tear.renew(self.options.density, renewal)).transpose()?;
        let Some(touching) = &self.scene.touching else { return Ok(()) };
        let Parameters { dt, air, solid, grip, .. } = self.parameters(renewal.time());
        let moving = |Node { position, target, velocity, falling, free, mass, .. }| {
            let to = match free > 0.5 {
                true => position + (velocity + air.gravity * (dt * falling)) * dt,
                false => grip.hold(target),
            };
            // Of a cube of the vertex's volume, whose edges weigh as much as six of its sides.
            let side = Real::pow(mass / self.options.density, 1.0 / 3.0);
            let stiffness = mass / (dt * dt) + solid.lambda * 6.0 * side;
            Moving { from: position.into(), to: to.into(), compliance: free / stiffness }
        };
        touching.renew(renewal, Gaps, ["guess", "open"], torn, moving)
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let position = Vector3::from(mesh.points()[v as usize]);
        let free = if self.scene.held[v as usize] { 0.0 } else { 1.0 };
        // A point without tets, which is held, weighs as much as a cubic centimeter.
        let volume = Some(self.scene.volumes[v as usize]).filter(|&volume| volume > 0.0).unwrap_or(1e-6);
        let mass = self.options.density * volume;
        // What holds nothing yet stays where it is. Without any mass it would have no place to be solved for.
        let is_spare = self.scene.tear.as_ref().is_some_and(|tear| tear.tearing().is_spare(v));
        let (free, mass) = if is_spare { (0.0, SPARE * mass) } else { (free, mass) };
        Node {
            position,
            target: position,
            before: position,
            velocity: Vector3::zeros(),
            falling: free,
            mass,
            free,
            stretch: 0.0,
            guess: position,
            open: 1.0,
            holds: [Int(0); 2],
        }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        let (touches, rounds) = (self.scene.touching.is_some(), self.options.rounds);
        match touches {
            true => stages.map(Approach),
            false => stages.map(Predict),
        }
        match (touches, self.options.has_contact()) {
            _ if self.scene.tear.is_some() => stages.sweep(solve::Solve::<true, true, true>, rounds),
            (true, _) => stages.sweep(solve::Solve::<true, true, false>, rounds),
            (false, true) => stages.sweep(solve::Solve::<true, false, false>, rounds),
            (false, false) => stages.sweep(solve::Solve::<false, false, false>, rounds),
        }
        stages.sweep(Finish, 1);
    }
}

impl Example for Softbody {
    const INFO: Info = Info {
        name: "softbody",
        about: "soft solids fall, or are twisted, stretched or squeezed (stable neo-Hookean tets, vertex block descent)",
        mesh: "bar:41x11x11",
        steps: 1200,
        settings: SETTINGS,
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, order: Order) -> Result<Softbody> {
        Softbody::with(mesh, &SoftbodyOptions::from(settings), order)
    }

    const LIVE: &'static [&'static str] =
        &["dt", "young", "poisson", "gravity", "damping", "drag", "friction", "relaxation", "period"];

    fn change(&mut self, settings: &Settings, order: Order) -> Result<()> {
        *self = Softbody::tuned(self.scene.clone(), &SoftbodyOptions::from(settings), order);
        Ok(())
    }

    fn look(&self) -> Look {
        let (center, radius) = self.scene.ball;
        let is_pile = self.options.act == Act::Pile;
        let mut props = vec![Prop::Ground { height: 0.0 }];
        if radius > 0.0 && self.options.has_contact() {
            props.push(Prop::Ball { center, radius });
        }
        let now = |tear: Arc<Tear>| CellsNow(Arc::new(move |fields| tear.cells(fields)));
        Look {
            positions: Some("position"),
            color: Some(if is_pile { "body" } else { "stretch" }),
            label: if is_pile { "body" } else { "stretch" },
            map: if is_pile { ColorMap::Viridis } else { ColorMap::Coolwarm },
            props,
            section: Section::None,
            cells: self.scene.tear.clone().map(now),
            ..Look::default()
        }
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
    use meshweft::Simulation;
    use meshweft_mesh::generate::generate;
    use meshweft_mesh::{CellKind, Cells};

    fn build(spec: &str, options: &SoftbodyOptions, order: Order) -> Simulation<Softbody, f32> {
        let mut mesh = generate(spec, 1).unwrap();
        let softbody = Softbody::with(&mut mesh, options, order).unwrap();
        Simulation::builder(mesh, softbody).order(order).build().unwrap()
    }

    /// The farthest that a vertex is from the origin after so many steps; a number that is not finite would stop them.
    fn farthest(run: &mut Simulation<Softbody, f32>, steps: usize) -> f64 {
        (0..steps).for_each(|_| run.step().unwrap());
        run.field("position").unwrap().values.iter().fold(0.0, |most, x| most.max(x.abs()))
    }

    /// Where a vertex is put, by its number and place.
    type Shape<'a> = dyn Fn(usize, Vector3<f64>) -> Vector3<f64> + 'a;

    /// Moves every vertex.
    fn place(run: &mut Simulation<Softbody, f32>, to: impl Fn(usize, Vector3<f64>) -> Vector3<f64>) {
        let points = run.mesh().points().to_vec();
        let moved: Vec<f64> = (0..).zip(points).flat_map(|(v, p)| <[f64; 3]>::from(to(v, p.into()))).collect();
        run.set_field("position", &moved).unwrap();
    }

    #[test]
    fn no_stiffness_mass_step_or_order_makes_a_scene_explode() {
        let scenes = [Act::Drop, Act::Twist, Act::Stretch, Act::Squeeze];
        let base = SoftbodyOptions { bodies: 2, period: 0.2, ..SoftbodyOptions::default() };
        for (young, poisson, density, dt, rounds) in [
            (1e12, 0.4999, 1e-3, 1.0 / 600.0, 10),
            (1e-3, 0.0, 1e6, 1.0 / 600.0, 10),
            (4e4, 0.4, 1000.0, 1.0, 10),
            (1e9, 0.4999, 1000.0, 0.1, 3),
            (4e4, 0.4, 1000.0, 1e-6, 2),
        ] {
            for act in scenes {
                // Where all vertices move at once, nothing keeps the energy from growing when a step is a whole turn.
                for order in Order::ALL.into_iter().filter(|order| dt < 0.1 || !order.key.is_double_buffered()) {
                    let options = SoftbodyOptions { act, young, poisson, density, dt, rounds, ..base.clone() };
                    let most = farthest(&mut build("bar:9x3x3", &options, order), 40);
                    // No farther than it would fall: so far from the minimum, contact does not catch it at once.
                    let fall = 4.0 + 0.5 * 9.81 * (41.0 * dt).powi(2);
                    assert!(most < fall, "{act:?} {young} {poisson} {density} {dt} {rounds} {order}: {most} m");
                }
            }
        }
    }

    #[test]
    fn solids_come_back_from_shapes_that_are_none() {
        let floating = SoftbodyOptions {
            gravity: 0.0,
            bodies: 1,
            obstacles: Obstructed::Nothing,
            drag: 2.0,
            ..SoftbodyOptions::default()
        };
        let run = || build("box:6", &floating, Order::default());
        let volume = |run: &mut Simulation<Softbody, f32>| run.metric("volume").unwrap();
        let whole = volume(&mut run());
        // Squeezed flat, turned inside out, and scattered.
        let scatter = |v: usize, k: usize| ((v * [7919, 104_729, 1_299_709][k]) % 1009) as f64 / 1009.0;
        let shapes: [(&str, &Shape<'_>); 3] = [
            ("flat", &|_, x| Vector3::new(x.x, x.y, 1e-3 * x.z)),
            ("inside out", &|_, x| Vector3::new(x.x, x.y, -x.z)),
            ("scattered", &|v, _| Vector3::from_fn(|k, _| scatter(v, k))),
        ];
        for (name, shape) in shapes {
            let mut run = run();
            place(&mut run, shape);
            let most = farthest(&mut run, 1500);
            let (after, elastic) = (volume(&mut run), run.metric("elastic energy").unwrap());
            // Some tets may stay inside out among others that are not.
            assert!(most < 2.0 && (after / whole - 1.0).abs() < 0.01, "{name}: {most} m, volume {after} of {whole}");
            assert!(elastic < 1e-3 * floating.young * whole, "{name}: {elastic} J");
        }
        // In one place nothing pulls any way.
        let mut run = run();
        place(&mut run, |_, _| Vector3::new(0.5, 0.5, 0.5));
        assert!(farthest(&mut run, 20) <= 0.5);
    }

    #[test]
    fn tets_without_volume_and_points_without_tets_are_left_out_with_a_word() {
        let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [3.0; 3]];
        let mesh = |tets: Vec<u32>| Mesh::new(points.clone(), Cells::of(CellKind::Tet, tets)).unwrap();
        let options = SoftbodyOptions { bodies: 1, size: Some(1.0), ..SoftbodyOptions::default() };
        let with = |tets: Vec<u32>| {
            let mut mesh = mesh(tets);
            Softbody::with(&mut mesh, &options, Order::default()).map(|softbody| (mesh, softbody))
        };
        // The second is inside out, which is put right; the third is flat.
        let (mesh, softbody) = with(vec![0, 1, 2, 3, 1, 2, 4, 3, 0, 1, 4, 2]).unwrap();
        let note =
            "1 of 3 tets have hardly any volume and are left out; 1 of 6 points are in no tet and stay where they are";
        assert_eq!(softbody.note().unwrap(), note);
        let mut run = Simulation::builder(mesh, softbody).build().unwrap();
        let before = run.vertex(5).unwrap().position;
        let whole = run.metric("volume").unwrap();
        (0..30).for_each(|_| run.step().unwrap());
        assert!((run.vertex(5).unwrap().position - before).norm() < 1e-6);
        assert!((run.metric("volume").unwrap() / whole - 1.0).abs() < 0.1);

        let (mesh, softbody) = with(vec![0, 1, 4, 2]).unwrap();
        assert!(softbody.note().unwrap().starts_with("1 of 1 tets have hardly any volume"));
        Simulation::builder(mesh, softbody).build().unwrap().step().unwrap();
        let mut surface = generate("sheet:5", 1).unwrap();
        let error = Softbody::with(&mut surface, &options, Order::default()).err().unwrap().to_string();
        assert!(error.contains("but the cells of the mesh are 32 of kind triangle: give a solid"), "{error}");
        let many = SoftbodyOptions { bodies: 1_000_000, ..options.clone() };
        let error =
            Softbody::with(&mut generate("box:9", 1).unwrap(), &many, Order::default()).err().unwrap().to_string();
        assert!(error.contains("too many"), "{error}");
    }
}
