//! Shallow water: waves, floods and broken dams over any bed.
//!
//! Finite volumes on the cells of a flat mesh, to second order in space and time: gradients by least squares with a limiter ([`Trend`]), fluxes by
//! HLLC with hydrostatic reconstruction ([`Water::outflow`]), and Heun's method with a time step that each step chooses.

mod checks;
mod scene;

use anyhow::Result;
use meshweft::nalgebra::Vector2;
use meshweft::{Given, Neighbors, Program, Real, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::{Check, ColorMap, Example, Info, Kind, Look, Setting, Settings};
use meshweft_mesh::Mesh;
use meshweft_physics::{Face, Rim, Trend, Water};
use scene::Basin;
pub use scene::Scene;

record! {
    /// Numbers that all cells read.
    pub struct Parameters<R> {
        /// The longest time step, s.
        longest: R,
        /// The share of a cell that a wave may cross in a step.
        courant: R,
        /// Acceleration by gravity, m/s².
        gravity: R,
        /// What the bed slows water down by: drag over density and speed squared.
        drag: R,
        /// Depth below which water does not move, m.
        film: R,
        /// 1 for second order, 0 for first.
        slopes: R,
    }
}

record! {
    /// What a step has measured and chosen.
    pub struct Chosen<R> {
        /// The largest share of a cell that a wave crosses in a second, 1/s.
        rate: R,
        /// The time step, s.
        dt: R,
    }
}

record! {
    /// How depth, surface and velocity change in a cell.
    pub struct Slopes<R> {
        /// Of the depth.
        depth: Vector2<R>,
        /// Of the height of the surface.
        surface: Vector2<R>,
        /// Of both components of the velocity, 1/s.
        velocity: [Vector2<R>; 2],
    }
}

vertex! {
    /// A cell.
    pub struct Cell<R> {
        /// How deep the water is, m.
        shared depth: R,
        /// Its mean velocity, m/s.
        shared velocity: Vector2<R>,
        /// How high the bed lies, m.
        shared bed: R,
        /// How those change.
        shared slopes: Slopes<R>,
        /// How high the surface lies, or the bed where there is no water, m.
        surface: R,
        /// Depth and velocity at the start of the step.
        depth_before: R,
        /// See there.
        velocity_before: Vector2<R>,
        /// Area, m².
        area: R,
        /// Twice the area over the length of all faces if each was as long as the longest, m.
        width: R,
    }
}

stars! {
    /// Faces between cells.
    pub Faces[1]: Face<R>;
    /// Faces of the boundary, and whether water leaves through them as if there was more of the same behind.
    pub Banks[0]: (Rim<R>, R);
}

/// Shallow water in a basin.
#[derive(Clone)]
pub struct ShallowWater {
    basin: Basin,
    options: WaterOptions,
    /// The longest step, s.
    longest: f64,
}

/// Settings of shallow water; `WaterOptions::default()` is what the command takes.
#[derive(Clone, Debug, PartialEq)]
pub struct WaterOptions {
    /// What is flooded.
    pub scene: Scene,
    /// How high the water stands behind the dam, or in the lake, m.
    pub level: f64,
    /// How high it stands before the dam, m.
    pub low: f64,
    /// Whether gradients are used.
    pub second_order: bool,
    /// Whether water leaves through the boundary.
    pub is_open: bool,
    /// Whether both ends along x, and along y, are one.
    pub periodic: [bool; 2],
    /// Acceleration by gravity, m/s².
    pub gravity: f64,
    /// Drag of the bed over density and speed squared.
    pub drag: f64,
    /// The share of a cell that a wave may cross in a step.
    pub courant: f64,
    /// The longest time step, s; `None` takes what suits the water at the start.
    pub dt: Option<f64>,
}

impl From<&Settings> for WaterOptions {
    fn from(settings: &Settings) -> WaterOptions {
        WaterOptions {
            scene: Scene::named(settings.choice("scene")),
            level: settings.number("level"),
            low: settings.number("low"),
            second_order: settings.choice("accuracy") == "second",
            is_open: settings.choice("boundary") == "open",
            periodic: ["x", "y"].map(|axis| [axis, "both"].contains(&settings.choice("periodic"))),
            gravity: settings.number("gravity"),
            drag: settings.number("drag"),
            courant: settings.number("courant"),
            dt: Some(settings.number("dt")).filter(|&dt| dt != 0.0),
        }
    }
}

impl Default for WaterOptions {
    fn default() -> WaterOptions {
        WaterOptions::from(&Settings::new(ShallowWater::INFO.settings))
    }
}

impl ShallowWater {
    /// Water on a mesh, which becomes the [dual](Mesh::dual) of the basin: scaled to the size of the scene, and flat, with its height as the bed.
    ///
    /// # Errors
    /// A mesh that is no surface, or stands upright; ends that are to be one, and have not the same [faces](meshweft_mesh::Dual::periodic).
    pub fn with(mesh: &mut Mesh, options: &WaterOptions) -> Result<ShallowWater> {
        let basin = Basin::new(mesh, options)?;
        let mut water = ShallowWater { basin, options: options.clone(), longest: 0.0 };
        water.tune(options);
        Ok(water)
    }

    /// Takes over what decides about a step.
    fn tune(&mut self, options: &WaterOptions) {
        let deepest = self.basin.depths.iter().copied().fold(0.0, f64::max);
        let narrowest = self.basin.widths.iter().copied().fold(f64::INFINITY, f64::min);
        let speed = (options.gravity * deepest).sqrt().max(1e-6);
        // Where the water spreads, steps may become longer.
        self.longest = options.dt.unwrap_or(20.0 * options.courant * narrowest / speed);
        self.options = options.clone();
    }
}

/// The water at a place, so far from the middle of its cell.
#[inline(always)]
fn at<R: Real>(cell: Water<R>, slopes: Slopes<R>, reach: Vector2<R>) -> Water<R> {
    let deeper = slopes.depth.dot(&reach);
    let faster = Vector2::new(slopes.velocity[0].dot(&reach), slopes.velocity[1].dot(&reach));
    Water {
        depth: cell.depth + deeper,
        velocity: cell.velocity + faster,
        bed: cell.bed + (slopes.surface.dot(&reach) - deeper),
    }
}

impl<R: Real> Cell<R> {
    /// The cell after a step, with gradients or without a look at them.
    #[inline(always)]
    fn advanced<const SLOPES: bool>(
        self,
        p: &Given<ShallowWater, R>,
        around: &impl Neighbors<ShallowWater, R>,
    ) -> Cell<R> {
        let (dt, film) = (p.globals.dt, p.film);
        let cell = Water { depth: self.depth, velocity: self.velocity, bed: self.bed };
        let at = |water, slopes, reach| if SLOPES { at(water, slopes, reach) } else { water };
        let (through, pushed) = around.sum(Faces, |[other], face| {
            let there = Water { depth: other.depth, velocity: other.velocity, bed: other.bed };
            let [here, there] = [at(cell, self.slopes, face.reach), at(there, other.slopes, face.beyond)];
            let (volume, momentum) = cell.outflow(here, there, face.normal, p.gravity);
            (volume * face.length, momentum * face.length)
        });
        let (out, back) = around.sum(Banks, |[], (bank, is_open)| {
            let here = at(cell, self.slopes, bank.reach);
            let wall = cell.wall(here, bank.normal, p.gravity);
            let open = cell.outflow(here, here, bank.normal, p.gravity);
            let is_open = is_open.greater(R::lit(0.5));
            let pick = |open: R, wall: R| bank.length * R::select(is_open, open, wall);
            (pick(open.0, wall.0), Vector2::new(pick(open.1.x, wall.1.x), pick(open.1.y, wall.1.y)))
        });
        let share = dt / self.area;
        let depth = (self.depth - share * (through + out)).max(R::lit(0.0));
        let momentum = self.velocity * self.depth - (pushed + back) * share;
        let is_wet = depth.greater(film);
        let safe = R::select(is_wet, depth, R::lit(1.0));
        let speed = momentum.dot(&momentum).sqrt() / safe;
        let slowed = safe * (R::lit(1.0) + dt * p.drag * speed / safe);
        let pick = |x: R| R::select(is_wet, x / slowed, R::lit(0.0));
        Cell { depth, velocity: Vector2::new(pick(momentum.x), pick(momentum.y)), surface: self.bed + depth, ..self }
    }

    /// The cell after a stage that advanced it from `own`: in the `last` the mean of the start of the step and of two steps from there, which
    /// is of second order in time.
    #[inline(always)]
    fn stage(self, own: Cell<R>, film: R, last: R) -> Cell<R> {
        let (half, is_last) = (R::lit(0.5), last.greater(R::lit(0.5)));
        let mean = half * (own.depth_before + self.depth);
        let momentum = (own.velocity_before * own.depth_before + self.velocity * self.depth) * half;
        let is_wet = mean.greater(film);
        let slow = |x: R| R::select(is_wet, x / mean, R::lit(0.0));
        let pick = |last, first| R::select(is_last, last, first);
        let depth = pick(mean, self.depth);
        Cell {
            depth,
            velocity: momentum.map(slow).zip_map(&self.velocity, pick),
            surface: self.bed + depth,
            depth_before: pick(own.depth_before, own.depth),
            velocity_before: own.velocity_before.zip_map(&own.velocity, pick),
            ..self
        }
    }
}

kernels! {
    for ShallowWater: Cell, Parameters, Chosen;

    /// The largest share of a cell that a wave crosses in a second.
    max Rate |p, own, _| {
        let wave = (p.gravity * own.depth).sqrt();
        let speed = (own.velocity.dot(&own.velocity)).sqrt();
        R::select(own.depth.greater(p.film), (speed + wave) / own.width, R::lit(0.0))
    };

    /// The longest step in which no wave crosses more of a cell than it may.
    scalar Choose |p| {
        let rate = p.globals.rate;
        let step = p.courant / R::select(rate.greater(R::lit(0.0)), rate, R::lit(1.0));
        let dt = R::select(rate.greater(R::lit(0.0)), step.min(p.longest), p.longest);
        Chosen { dt, ..p.globals }
    };

    /// Gradients, limited. There are none beside dry cells, where one of the surface would be one of the bed.
    update Slope |p, own, around| {
        let values = [own.depth, own.bed + own.depth, own.velocity.x, own.velocity.y];
        let start = ([Trend::flat(); 4], own.depth);
        let (trends, least) = around.fold(Faces, start, |(mut trends, least), [other], face| {
            let others = [other.depth, other.bed + other.depth, other.velocity.x, other.velocity.y];
            (0..4).for_each(|k| trends[k] = trends[k].with(others[k] - values[k], &face));
            (trends, least.min(other.depth))
        });
        let shallow = p.film.max(R::lit(0.2) * own.depth);
        let full = R::select(least.greater(shallow), p.slopes, R::lit(0.0));
        let shares = around.fold(Faces, [full; 4], |mut shares: [R; 4], [_], face| {
            (0..4).for_each(|k| shares[k] = shares[k].min(trends[k].share(face.reach, R::lit(0.0))));
            shares
        });
        let slope = |k: usize| trends[k].gradient * shares[k];
        Cell { slopes: Slopes { depth: slope(0), surface: slope(1), velocity: [slope(2), slope(3)] }, ..own }
    };

    /// A stage of a step: the first, which keeps what the step starts from, or the `last`. Drag is implicit, so that it stops water and does not
    /// turn it back.
    update Advance[last] |p, own, around| own.advanced::<true>(p, around).stage(own, p.film, last);

    /// A step of first order, explicit Euler, which reads no gradients.
    update AdvanceFlat |p, own, around| own.advanced::<false>(p, around);

    /// How much water there is: it stays unless it leaves through an open boundary.
    sum Volume("water", "m³") |_, own, _| own.depth * own.area;

    /// The deepest water.
    max Deepest("deepest", "m") |_, own, _| own.depth;

    /// The fastest water.
    max Fastest("fastest", "m/s") |_, own, _| own.velocity.dot(&own.velocity).sqrt();

    /// How much ground is under water.
    sum Flooded("flooded", "m²") |p, own, _| R::select(own.depth.greater(p.film), own.area, R::lit(0.0));
}

impl Program for ShallowWater {
    fn time_step(&self) -> f64 {
        self.longest
    }

    fn set_time_step(&mut self, dt: f64) -> bool {
        self.longest = dt;
        true
    }

    fn parameters(&self, _time: f64) -> Parameters<f64> {
        let WaterOptions { gravity, drag, courant, second_order, .. } = self.options;
        let slopes = if second_order { 1.0 } else { 0.0 };
        Parameters { longest: self.longest, courant, gravity, drag, film: self.basin.film, slopes }
    }

    fn globals(&self) -> Chosen<f64> {
        Chosen { rate: 0.0, dt: 0.0 }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let (faces, banks) = (self.basin.faces.clone(), self.basin.banks.clone());
        let is_open = if self.options.is_open { 1.0 } else { 0.0 };
        stars.add(Faces, self.basin.pairs.to_vec(), move |i| faces[i.element][i.corner]);
        stars.add(Banks, banks.iter().map(|bank| [bank.0]).collect(), move |i| (banks[i.element].1, is_open));
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Cell<f64> {
        let at = v as usize;
        let Basin { beds, depths, areas, widths, .. } = &self.basin;
        debug_assert_eq!(mesh.points().len(), beds.len(), "a vertex a cell");
        let still = Vector2::zeros();
        Cell {
            depth: depths[at],
            velocity: still,
            bed: beds[at],
            slopes: Slopes { depth: still, surface: still, velocity: [still; 2] },
            surface: beds[at] + depths[at],
            depth_before: depths[at],
            velocity_before: still,
            area: areas[at],
            width: widths[at],
        }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.reduce(Rate, |g| &mut g.rate);
        stages.scalar(Choose);
        if self.options.second_order {
            for last in [0.0, 1.0] {
                stages.sweep(Slope, 1);
                stages.jacobi(Advance { last }, 1);
            }
        } else {
            stages.jacobi(AdvanceFlat, 1);
        }
        stages.lasts(|g| &mut g.dt);
    }
}

impl Example for ShallowWater {
    const INFO: Info = Info {
        name: "shallow-water",
        about: "a dam breaks, and water runs over hills, or over the height of any mesh (finite volumes, second order)",
        mesh: "quads:301x121",
        steps: 1500,
        settings: &[
            Setting {
                name: "scene",
                about: "a broken dam before three hills, one on flat ground, a lake at rest over hills, or the height of the mesh as the bed",
                kind: Kind::Choice(&["hills", "dam", "lake", "terrain"]),
            },
            Setting::number(
                "level",
                "how high the water stands behind the dam, or in the lake",
                1.875,
                "m",
                [0.0, 1e5],
            ),
            Setting::number("low", "how high it stands before the dam", 0.0, "m", [0.0, 1e5]),
            Setting {
                name: "accuracy",
                about: "order of accuracy in space and time",
                kind: Kind::Choice(&["second", "first"]),
            },
            Setting {
                name: "boundary",
                about: "whether walls are around the water, or more of the same",
                kind: Kind::Choice(&["wall", "open"]),
            },
            Setting {
                name: "periodic",
                about: "along which axes both ends of the mesh are one: what leaves at one comes in at the other",
                kind: Kind::Choice(&["none", "x", "y", "both"]),
            },
            Setting::number("gravity", "acceleration by gravity", 9.81, "m/s²", [1e-9, 1e3]),
            Setting::number("drag", "drag of the bed over density and speed squared", 0.003, "", [0.0, 1e3]),
            Setting::number("courant", "share of a cell that a wave may cross in a step", 0.3, "", [1e-3, 0.5]),
            Setting::number("dt", "longest time step; 0 takes what suits the water at the start", 0.0, "s", [0.0, 1e9]),
        ],
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: meshweft::Order) -> Result<ShallowWater> {
        ShallowWater::with(mesh, &WaterOptions::from(settings))
    }

    const LIVE: &'static [&'static str] = &["gravity", "drag", "courant"];

    fn change(&mut self, settings: &Settings, _order: meshweft::Order) -> Result<()> {
        self.tune(&WaterOptions::from(settings));
        Ok(())
    }

    fn look(&self) -> Look {
        let raised = Some(("surface", self.basin.lift));
        let states = Some(&["depth", "velocity", "bed", "surface"][..]);
        Look { states, color: Some("depth"), label: "depth (m)", map: ColorMap::Water, raised, ..Look::default() }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
