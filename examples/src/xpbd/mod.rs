//! Extended position-based dynamics: constraints that are satisfied one after the other, each by moving its own corners in place.
//!
//! - Method: Macklin, Müller and Chentanez, "XPBD", 2016, and Macklin et al., "Small steps in physics simulation", 2019
//!   ([`projection`](meshweft_physics::projection)).
//! - Surfaces: edges keep their length, hinges their curvature (the quadratic model of Bergou et al., 2006, as in `cloth`).
//! - Solids: tets resist shear and change of volume, with the energy that `softbody` has, by two constraints that are solved together.
//!   Macklin and Müller, "A constraint-based formulation of stable neo-Hookean materials", 2021.
//! - Contact with a ball, the ground and a lid: without give, with Coulomb friction. It does not touch itself.
//!
//! Scenes are those of `softbody` and `cloth`.

mod checks;
mod options;
mod scene;

use crate::softbody::{Grip, Obstacles};
use anyhow::{Result, bail};
use meshweft::nalgebra::Vector3;
use meshweft::{Length, Order, Program, Real, SharedOf, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::{Check, ColorMap, Example, Info, Look, Prop, Section, Settings};
use meshweft_mesh::Mesh;
use meshweft_physics::bending::Crease;
use meshweft_physics::{Air, Constraint, NeoHookean, Pushed, Tet, Touch as Contact};
use options::SETTINGS;
pub use options::XpbdOptions;
use scene::{Body, Scene};
use std::sync::Arc;

record! {
    /// Numbers that all read.
    pub struct Parameters<R> {
        /// Time step, s.
        dt: R,
        /// One over its square, and more where air resists: what forces are over what they move, 1/s².
        per_square: R,
        /// Gravity and air.
        air: Air<R>,
        /// One over the stiffness of surfaces against stretching, m/N.
        stretch: R,
        /// One over that against bending, 1/(N m).
        bend: R,
        /// What solids are made of.
        solid: NeoHookean<R>,
        /// Where the ends are held.
        grip: Grip<R>,
        /// What it touches.
        obstacles: Obstacles<R>,
    }
}

vertex! {
    /// A vertex of the surface or solid.
    pub struct Node<R> {
        /// Position, m.
        shared position: Vector3<R>,
        /// One over the mass, 1/kg: 0 where the vertex is held.
        shared inverse_mass: R,
        /// Position at the start of the step, m.
        before: Vector3<R>,
        /// Position at rest, m.
        rest: Vector3<R>,
        /// Velocity, m/s.
        velocity: Vector3<R>,
        /// Mass, kg.
        mass: R,
        /// How far obstacles have pushed it in this step.
        pushed: Pushed<R>,
        /// By what share the edges of a solid around are longer than at rest, all together.
        stretch: R,
    }
}

record! {
    /// An edge of a surface at rest.
    pub struct Link<R> {
        /// Length, m.
        length: R,
        /// Its compliance, in units of that of the surface.
        give: R,
    }
}

record! {
    /// What pulls at an edge.
    pub struct Pull<R> {
        /// The multiplier: minus the force times the time step squared, kg m.
        multiplier: R,
    }
}

record! {
    /// What bends a hinge back.
    pub struct Bent<R> {
        /// The multiplier along each axis.
        multiplier: Vector3<R>,
    }
}

record! {
    /// What resists in a tet.
    pub struct Strained<R> {
        /// The multiplier of shear.
        shear: R,
        /// The multiplier of volume.
        volume: R,
    }
}

stars! {
    /// Edges of a surface.
    pub Links[1]: Link<R> => Pull<R>;
    /// Hinges of a surface.
    pub Hinges[3]: Crease<R> => Bent<R>;
    /// Tets of a solid.
    pub Tets[3]: Tet<R> => Strained<R>;
    /// Edges of a solid, with their length at rest, m.
    pub Edges[1]: R;
}

/// Surfaces and solids of constraints.
pub struct Xpbd {
    scene: Arc<Scene>,
    options: XpbdOptions,
}

impl Xpbd {
    /// Sets the scene: that of `softbody` for a mesh with solid cells, that of `cloth` for any other. The mesh is scaled and moved; where
    /// several solids fall, it is made of as many copies.
    ///
    /// # Errors
    /// A mesh of edges; one that is too large for so many copies.
    pub fn with(mesh: &mut Mesh, options: &XpbdOptions) -> Result<Xpbd> {
        Ok(Xpbd { scene: Arc::new(Scene::set(mesh, options)?), options: options.clone() })
    }

    /// Projects all constraints once. `keep`: 0 in the first round of a step, which begins with multipliers of 0, and 1 after it.
    fn project(&self, stages: &mut Stages<Self>, keep: f64, rounds: usize) {
        match self.scene.body {
            Body::Solid(_) => stages.project(Deform { keep }, rounds),
            Body::Surface(_) => {
                stages.project(Stretch { keep }, rounds);
                if self.options.bend > 0.0 {
                    stages.project(Bend { keep }, rounds);
                }
            }
        }
    }
}

#[inline(always)]
fn places<R: Real, const N: usize>(corners: &[SharedOf<Xpbd, R>; N]) -> [Vector3<R>; N] {
    let mut places = [corners[0].position; N];
    (1..N).for_each(|k| places[k] = corners[k].position);
    places
}

#[inline(always)]
fn inverse_masses<R: Real, const N: usize>(corners: &[SharedOf<Xpbd, R>; N]) -> [R; N] {
    let mut masses = [corners[0].inverse_mass; N];
    (1..N).for_each(|k| masses[k] = corners[k].inverse_mass);
    masses
}

#[inline(always)]
fn moved<R: Real, const N: usize>(
    mut corners: [SharedOf<Xpbd, R>; N],
    moves: [Vector3<R>; N],
) -> [SharedOf<Xpbd, R>; N] {
    (0..N).for_each(|k| corners[k].position += moves[k]);
    corners
}

kernels! {
    for Xpbd: Node, Parameters;

    /// Takes each vertex where inertia, gravity and air take it, and moves those that are held.
    map Predict |p, own| {
        let (free, held) = (own.position + p.air.velocity(own.velocity, p.dt) * p.dt, p.grip.hold(own.rest));
        let is_free = R::lit(0.0).less(own.inverse_mass);
        let position = free.zip_map(&held, |free, held| R::select(is_free, free, held));
        let pushed = Pushed { out: R::lit(0.0), back: Vector3::zeros() };
        Node { position, before: own.position, pushed, ..own }
    };

    /// Brings an edge to its length.
    project Stretch[keep](Links) |p, corners, own, link| {
        let constraint = Constraint::distance(places(&corners), link.length);
        let compliance = p.stretch * link.give * p.per_square;
        let (moves, multiplier) = constraint.step(inverse_masses(&corners), compliance, own.multiplier * keep);
        (moved(corners, moves), Pull { multiplier })
    };

    /// Bends a hinge back.
    project Bend[keep](Hinges) |p, corners, own, crease| {
        let compliance = p.bend * p.per_square;
        let masses = inverse_masses(&corners);
        let (moves, multiplier) = crease.step(places(&corners), masses, compliance, own.multiplier * keep);
        (moved(corners, moves), Bent { multiplier })
    };

    /// Brings a tet back to its shape and volume.
    project Deform[keep](Tets) |p, corners, own, tet| {
        let (constraints, compliances) = tet.neo_hookean(&p.solid, places(&corners));
        let compliances = [compliances[0] * p.per_square, compliances[1] * p.per_square];
        let multipliers = [own.shear * keep, own.volume * keep];
        let (moves, [shear, volume]) =
            Constraint::step_both(&constraints, inverse_masses(&corners), compliances, multipliers);
        (moved(corners, moves), Strained { shear, volume })
    };

    /// Pushes vertices out of what is nearest to them, if they touch it.
    map Touch |p, own| {
        let (at, moved) = (own.position, own.position - own.before);
        let [ball, ground, lid] = p.obstacles.touch(at);
        let nearer = |(a, a_moved): (Contact<R>, Vector3<R>), (b, b_moved): (Contact<R>, Vector3<R>)| {
            let is_second = b.distance.less(a.distance);
            let either = |a: Vector3<R>, b: Vector3<R>| a.zip_map(&b, |a, b| R::select(is_second, b, a));
            let distance = R::select(is_second, b.distance, a.distance);
            (Contact { normal: either(a.normal, b.normal), distance }, either(a_moved, b_moved))
        };
        let (touch, moved) = nearer(nearer((ball, moved), (ground, moved)), (lid, p.obstacles.by_lid(moved)));
        let (step, pushed) = own.pushed.step(touch, moved, p.obstacles.friction);
        let is_free = R::lit(0.0).less(own.inverse_mass);
        Node { position: at.zip_map(&(at + step), |held, out| R::select(is_free, out, held)), pushed, ..own }
    };

    /// The velocity that led from the start of the step to its end.
    map Finish |p, own| Node { velocity: (own.position - own.before) * (R::lit(1.0) / p.dt), ..own };

    /// The same, and how far a solid is stretched around each vertex.
    update FinishSolid |p, own, around| {
        let (now, rest) = around.sum(Edges, |[other], length| ((other.position - own.position).length(), length));
        // A vertex without edges is as long as at rest.
        let stretch = (now - rest) / rest.max(R::lit(1e-30));
        Node { velocity: (own.position - own.before) * (R::lit(1.0) / p.dt), stretch, ..own }
    };

    /// `½ m v²`.
    sum Kinetic("kinetic energy", "J") |_, own, _| R::lit(0.5) * own.mass * own.velocity.dot(&own.velocity);

    /// `-m g · x`.
    sum Weight("potential energy", "J") |p, own, _| -own.mass * p.air.gravity.dot(&own.position);

    /// Half of the energy of each edge, and a quarter of that of each hinge and tet.
    sum Elastic("elastic energy", "J") |p, own, around| {
        let at = own.position;
        let links = around.sum(Links, |[other], link| {
            Constraint::distance([at, other.position], link.length).energy(p.stretch * link.give)
        });
        let stiffness = R::lit(1.0) / p.bend;
        let hinges = around.sum(Hinges, |[b, c, d], crease| {
            crease.energy(stiffness, at, [b.position, c.position, d.position])
        });
        let tets = around.sum(Tets, |[b, c, d], tet| {
            tet.energy(&p.solid, [at, b.position, c.position, d.position])
        });
        links * R::lit(0.5) + (hinges + tets) * R::lit(0.25)
    };

    /// A quarter of the volume of each tet, negative inside out.
    sum Volume("volume", "m³") |_, own, around| {
        let sixfold = around.sum(Tets, |[b, c, d], _| {
            (b.position - own.position).dot(&(c.position - b.position).cross(&(d.position - b.position)))
        });
        sixfold * R::lit(1.0 / 24.0)
    };
}

impl Program for Xpbd {
    fn time_step(&self) -> f64 {
        self.options.dt
    }

    fn set_time_step(&mut self, dt: f64) -> bool {
        self.options.dt = dt;
        true
    }

    fn parameters(&self, time: f64) -> Parameters<f64> {
        let options = &self.options;
        let gravity = match self.scene.body {
            Body::Solid(_) => options.solid().pull_of_gravity(),
            Body::Surface(_) => Vector3::z() * -options.gravity,
        };
        let air = Air { gravity, wind: Vector3::zeros(), drag: options.drag };
        Parameters {
            dt: options.dt,
            per_square: air.resistance(options.dt) / (options.dt * options.dt),
            air,
            stretch: 1.0 / options.stretch,
            // Without bending there are no hinges.
            bend: if options.bend > 0.0 { 1.0 / options.bend } else { 1.0 },
            solid: NeoHookean::of(options.young, options.poisson),
            grip: self.scene.grip(options, time + options.dt),
            obstacles: self.scene.obstacles(options, time),
        }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let scene = self.scene.clone();
        stars.add_shared(Links, self.scene.links.clone(), move |i| scene.spring(i.element));
        let scene = self.scene.clone();
        stars.add_shared(Hinges, self.scene.hinges.clone(), move |i| scene.crease(&i));
        let scene = self.scene.clone();
        stars.add_shared(Tets, self.scene.tets(), move |i| scene.tet(i.vertices));
        let scene = self.scene.clone();
        stars.add_shared(Edges, self.scene.edges(), move |i| scene.length(i.vertices));
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let position = Vector3::from(mesh.points()[v as usize]);
        let (mass, inverse_mass) = (self.mass(v), self.inverse_mass(v));
        let velocity = Vector3::zeros();
        let pushed = Pushed { out: 0.0, back: velocity };
        Node { position, inverse_mass, before: position, rest: position, velocity, mass, pushed, stretch: 0.0 }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Predict);
        let is_solid = matches!(self.scene.body, Body::Solid(_));
        let rounds = self.options.rounds.unwrap_or(if is_solid { 2 } else { 20 });
        if self.scene.has_contact(&self.options) {
            for round in 0..rounds {
                self.project(stages, f64::from(round > 0), 1);
                stages.map(Touch);
            }
        } else if is_solid || self.options.bend == 0.0 {
            // Rounds of one kind of constraint go on where they can, without waiting for each other.
            self.project(stages, 0.0, 1);
            self.project(stages, 1.0, rounds - 1);
        } else {
            (0..rounds).for_each(|round| self.project(stages, f64::from(round > 0), 1));
        }
        match is_solid {
            true => stages.sweep(FinishSolid, 1),
            false => stages.map(Finish),
        }
    }
}

impl Xpbd {
    /// What a vertex weighs, kg: without area or volume as much as a square or cubic centimeter.
    fn mass(&self, v: u32) -> f64 {
        let (density, least) = match self.scene.body {
            Body::Solid(_) => (self.options.density, 1e-6),
            Body::Surface(_) => (self.options.area_density, 1e-4),
        };
        let share = self.scene.shares[v as usize];
        density * if share > 0.0 { share } else { least }
    }

    /// One over that, 1/kg: 0 where it is held.
    fn inverse_mass(&self, v: u32) -> f64 {
        if self.scene.held[v as usize] { 0.0 } else { 1.0 / self.mass(v) }
    }

    /// By what factor the tet that is stiffest for its mass is taken as softer than it is, at rest: 1 of surfaces.
    fn softer(&self) -> f64 {
        let parameters = self.parameters(0.0);
        let of = |corners: &[u32; 4]| {
            let at = corners.map(|v| Vector3::from(self.scene.rest()[v as usize]));
            let (constraints, compliances) = self.scene.tet(*corners).neo_hookean(&parameters.solid, at);
            let inverse_masses = corners.map(|v| self.inverse_mass(v));
            constraints[0].softer(inverse_masses, compliances[0] * parameters.per_square)
        };
        self.scene.tets().iter().map(of).fold(1.0, f64::max)
    }
}

impl Example for Xpbd {
    const INFO: Info = Info {
        name: "xpbd",
        about: "soft solids, or cloth, of constraints (extended position-based dynamics)",
        mesh: "bar:41x11x11",
        steps: 1200,
        settings: SETTINGS,
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _: Order) -> Result<Xpbd> {
        Xpbd::with(mesh, &XpbdOptions::from(settings))
    }

    const LIVE: &'static [&'static str] =
        &["dt", "young", "poisson", "stretch", "bend", "gravity", "drag", "friction", "period"];

    fn change(&mut self, settings: &Settings, _: Order) -> Result<()> {
        let options = XpbdOptions::from(settings);
        if (options.bend > 0.0) != (self.options.bend > 0.0) {
            bail!("bend cannot go from or to 0 while it runs: without bending there are other constraints");
        }
        self.options = options;
        Ok(())
    }

    fn look(&self) -> Look {
        let mut props = vec![];
        if self.scene.has_contact(&self.options) || matches!(self.scene.body, Body::Solid(_)) {
            props.push(Prop::Ground { height: 0.0 });
        }
        if let Some((center, radius)) = self.scene.ball(&self.options) {
            props.push(Prop::Ball { center, radius });
        }
        let look = Look { positions: Some("position"), props, ..Look::default() };
        match self.scene.body {
            Body::Surface(_) => look,
            Body::Solid(_) => Look {
                color: Some("stretch"),
                label: "stretch",
                map: ColorMap::Coolwarm,
                section: Section::None,
                ..look
            },
        }
    }

    fn note(&self) -> Option<String> {
        let softer = self.softer();
        let (XpbdOptions { dt, young, .. }, shorter) = (&self.options, 0.95 * self.options.dt / softer.sqrt());
        let yields = (softer > 1.0).then(|| {
            format!(
                "steps of {dt:.3e} s are too long for young={young:e}: it yields up to {softer:.1} times as much; dt={shorter:.1e} is short enough"
            )
        });
        let both: Vec<String> = self.scene.note().into_iter().chain(yields).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::softbody::{Act, Obstructed};
    use meshweft::Simulation;
    use meshweft_mesh::generate::generate;

    fn start(spec: &str, options: &XpbdOptions, order: Order) -> meshweft::Result<Simulation<Xpbd, f32>> {
        let mut mesh = generate(spec, 1).unwrap();
        let xpbd = Xpbd::with(&mut mesh, options).unwrap();
        Simulation::builder(mesh, xpbd).order(order).build()
    }

    /// The farthest that a vertex is from the origin after so many steps; a number that is not finite would stop them.
    fn farthest(run: &mut Simulation<Xpbd, f32>, steps: usize) -> f64 {
        (0..steps).for_each(|_| run.step().unwrap());
        run.field("position").unwrap().values.iter().fold(0.0, |most, x| most.max(x.abs()))
    }

    #[test]
    fn what_nothing_pulls_at_stays_as_it_is() {
        for spec in ["bar:9x3x3", "ball:9", "hexes:4", "sheet:9", "sphere:8"] {
            let options = XpbdOptions { gravity: 0.0, obstacles: Obstructed::Nothing, ..XpbdOptions::default() };
            let mut run = start(spec, &options, Order::default()).unwrap();
            let before = run.field("position").unwrap().values.to_vec();
            farthest(&mut run, 20);
            let after = run.field("position").unwrap().values;
            let most = before.iter().zip(&after[..]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // In 32 bits, at a meter or two from the origin.
            assert!(most < 2e-6, "{spec}: {most}");
        }
    }

    #[test]
    fn no_stiffness_mass_or_step_makes_a_scene_explode() {
        let base = XpbdOptions { bodies: 2, period: 0.2, ..XpbdOptions::default() };
        for (stiffness, poisson, density, dt, rounds) in [
            (1e12, 0.4999, 1e-3, 1.0 / 600.0, 10),
            (1e-3, 0.0, 1e6, 1.0 / 600.0, 10),
            (4e4, 0.4, 1000.0, 1.0, 10),
            (1e9, 0.4999, 1000.0, 0.1, 3),
            (4e4, 0.4, 1000.0, 1e-6, 2),
        ] {
            for (spec, act) in [
                ("bar:9x3x3", Act::Drop),
                ("bar:9x3x3", Act::Twist),
                ("bar:9x3x3", Act::Stretch),
                ("bar:9x3x3", Act::Squeeze),
                ("sheet:12", Act::Drop),
            ] {
                let (young, stretch, area_density) = (stiffness, stiffness, density);
                let rounds = Some(rounds);
                let options =
                    XpbdOptions { act, young, stretch, poisson, density, area_density, dt, rounds, ..base.clone() };
                let most = farthest(&mut start(spec, &options, Order::default()).unwrap(), 40);
                // No farther than it would fall.
                let fall = 4.0 + 0.5 * 9.81 * (41.0 * dt).powi(2);
                assert!(most < fall, "{spec} {act:?} {stiffness} {poisson} {density} {dt} {rounds:?}: {most} m");
            }
        }
    }

    #[test]
    fn solids_of_any_stiffness_gain_no_energy_however_long_the_steps() {
        for dt in [1.0 / 600.0, 0.1] {
            for young in [4e1, 4e4, 4e7, 4e10] {
                let options = XpbdOptions { bodies: 1, dt, young, ..XpbdOptions::default() };
                let mut run = start("bar:9x4x4", &options, Order::BLOCKED).unwrap();
                let energy = |run: &mut Simulation<Xpbd>| {
                    run.metric("kinetic energy").unwrap() + run.metric("potential energy").unwrap()
                };
                let before = energy(&mut run);
                for _ in 0..60 {
                    run.step().unwrap();
                    let now = energy(&mut run);
                    assert!(now < 1.001 * before, "young {young}, dt {dt}: {now} J of {before} J");
                }
            }
        }
    }

    #[test]
    fn what_is_too_stiff_for_its_steps_is_told() {
        let note = |young: f64, dt: f64| {
            let options = XpbdOptions { bodies: 1, young, dt, ..XpbdOptions::default() };
            Xpbd::with(&mut generate("bar:9x4x4", 1).unwrap(), &options).unwrap().note()
        };
        assert_eq!(note(4e4, 1.0 / 600.0), None);
        let said = note(4e7, 1.0 / 600.0).unwrap();
        let dt = said.split("dt=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(said.contains("too long for young=4e7") && note(4e7, dt).is_none(), "{said}");
    }

    #[test]
    fn orders_that_cannot_project_and_meshes_of_edges_are_refused() {
        let options = XpbdOptions { bodies: 1, ..XpbdOptions::default() };
        let said = start("bar:5x3x3", &options, Order::JACOBI).err().unwrap().to_string();
        assert!(said.contains("take another order"), "{said}");
        let said = Xpbd::with(&mut generate("chain:9", 1).unwrap(), &options).err().unwrap().to_string();
        assert!(said.contains("give a surface or a solid"), "{said}");
    }
}
