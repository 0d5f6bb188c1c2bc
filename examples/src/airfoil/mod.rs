//! Air around an airfoil, or whatever stands in a plane: the compressible Euler equations.
//!
//! Finite volumes on the cells of a flat mesh: gradients by least squares with a limiter ([`Trend`]), fluxes by HLLC ([`Gas::flux`]). A cell is
//! moved by what flows out of it, over the waves that cross it: its own time step. In place, forward and backward, that is nonlinear
//! symmetric Gauss–Seidel, and finds the steady flow in a tenth of the rounds that double-buffered steps take.

mod checks;
mod scene;

use anyhow::Result;
use meshweft::nalgebra::Vector2;
use meshweft::{Given, Neighbors, Program, Real, Stages, Stars, Update, kernels, record, stars, vertex};
use meshweft_command::{Check, Example, Info, Kind, Look, Precision, Setting, Settings};
use meshweft_mesh::Mesh;
use meshweft_physics::{AIR, Content, Face, Gas, Rim, Trend};
use scene::Plane;

record! {
    /// Numbers that all cells read.
    pub struct Parameters<R> {
        /// The air far away: density 1, speed of sound 1.
        far: Gas<R>,
        /// By how much of its own time step a cell moves.
        courant: R,
        /// 1 for second order, 0 for first.
        slopes: R,
        /// How far gradients follow.
        blend: R,
    }
}

vertex! {
    /// A cell.
    pub struct Cell<R> {
        /// Density over that far away.
        shared density: R,
        /// Velocity over the speed of sound far away.
        shared velocity: Vector2<R>,
        /// Pressure over density and speed of sound squared far away.
        shared pressure: R,
        /// Gradients of density, both components of the velocity, and pressure.
        shared slopes: [Vector2<R>; 4],
        /// Speed over the speed of sound there.
        mach: R,
        /// How far the pressure is above that far away, over `½ ρ v²` there: 1 where incompressible air is stopped.
        pressure_coefficient: R,
        /// What the step began with, if it is explicit.
        before: Gas<R>,
        /// A difference that no limiter looks at, squared.
        smooth: R,
    }
}

stars! {
    /// Faces between cells.
    pub Faces[1]: Face<R>;
    /// Faces of the boundary, and 1 for those far away, 0 for walls.
    pub Bounds[0]: (Rim<R>, R);
}

/// Air around something.
#[derive(Clone)]
pub struct Airfoil {
    plane: Plane,
    options: AirOptions,
}

/// How a steady flow is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// In place, forward and backward.
    Sweeps,
    /// Double-buffered, in two stages.
    Explicit,
}

/// Settings of air; `AirOptions::default()` is what the command takes.
#[derive(Clone, Debug, PartialEq)]
pub struct AirOptions {
    /// How the steady flow is found.
    pub method: Method,
    /// The speed far away over that of sound.
    pub mach: f64,
    /// Where the air comes from: degrees below the x axis.
    pub angle: f64,
    /// Whether gradients are used.
    pub second_order: bool,
    /// By how much of its own time step a cell moves in an update.
    pub courant: f64,
    /// Rounds a step: pairs of sweeps, or pairs of stages.
    pub rounds: usize,
    /// Pairs of sweeps between two looks at the gradients.
    pub inner: usize,
    /// How far gradients follow at each of them.
    pub blend: f64,
    /// How large differences are that no limiter looks at, over the size of a cell to the power 3/2.
    pub smooth: f64,
}

impl From<&Settings> for AirOptions {
    fn from(settings: &Settings) -> AirOptions {
        let method = if settings.choice("method") == "explicit" { Method::Explicit } else { Method::Sweeps };
        let courant = settings.number("courant");
        AirOptions {
            method,
            mach: settings.number("mach"),
            angle: settings.number("angle"),
            second_order: settings.choice("accuracy") == "second",
            courant: match (courant, method) {
                (0.0, Method::Sweeps) => 1.0,
                (0.0, Method::Explicit) => 0.5,
                (courant, _) => courant,
            },
            rounds: settings.count("rounds"),
            inner: settings.count("inner"),
            blend: settings.number("blend"),
            smooth: settings.number("smooth"),
        }
    }
}

impl Default for AirOptions {
    fn default() -> AirOptions {
        AirOptions::from(&Settings::new(Airfoil::INFO.settings))
    }
}

impl AirOptions {
    /// The air far away.
    fn far(&self) -> Gas<f64> {
        let angle = self.angle.to_radians();
        let velocity = Vector2::new(libm::cos(angle), libm::sin(angle)) * self.mach;
        Gas { density: 1.0, velocity, pressure: 1.0 / AIR }
    }
}

impl Airfoil {
    /// Air on a mesh, which becomes its [dual](Mesh::dual).
    ///
    /// # Errors
    /// A mesh that is no surface in the xy plane.
    pub fn with(mesh: &mut Mesh, options: &AirOptions) -> Result<Airfoil> {
        Ok(Airfoil { plane: Plane::new(mesh)?, options: options.clone() })
    }

    /// Gradients, where there are any, and pairs of sweeps or stages. `begin` and `end`: the stages.
    fn round(
        &self,
        stages: &mut Stages<Self>,
        step: impl Update<Self> + Copy,
        [begin, end]: [impl Update<Self> + Copy; 2],
    ) {
        let slopes = |stages: &mut Stages<Self>| {
            if self.options.second_order {
                stages.sweep(Slope, 1);
            }
        };
        slopes(stages);
        match self.options.method {
            Method::Sweeps => {
                for _ in 0..self.options.inner {
                    stages.sweep(step, 1);
                    stages.sweep_backward(step, 1);
                }
            }
            Method::Explicit => {
                stages.jacobi(begin, 1);
                slopes(stages);
                stages.jacobi(end, 1);
            }
        }
    }
}

/// The gas at a place, so far from the middle of its cell.
#[inline(always)]
fn at<R: Real>(cell: Gas<R>, slopes: [Vector2<R>; 4], reach: Vector2<R>) -> Gas<R> {
    Gas {
        density: cell.density + slopes[0].dot(&reach),
        velocity: cell.velocity + Vector2::new(slopes[1].dot(&reach), slopes[2].dot(&reach)),
        pressure: cell.pressure + slopes[3].dot(&reach),
    }
}

/// What leaves, and half the length times the speed of the quickest wave through that face.
type Flow<R> = (Content<R>, R);

/// What leaves through a face.
#[inline(always)]
fn through<R: Real>(here: Gas<R>, there: Gas<R>, normal: Vector2<R>, length: R) -> Flow<R> {
    let flux = here.flux(&there, normal);
    let speed = |gas: Gas<R>| gas.velocity.dot(&normal).abs() + gas.sound();
    let flux = Content { mass: flux.mass * length, momentum: flux.momentum * length, energy: flux.energy * length };
    (flux, R::lit(0.5) * length * speed(here).max(speed(there)))
}

/// What leaves through a face of the boundary: a wall only pushes.
#[inline(always)]
fn across<R: Real>(here: Gas<R>, far: Gas<R>, rim: Rim<R>, is_far: R) -> Flow<R> {
    let (free, wave) = through(here, far, rim.normal, rim.length);
    let push = rim.normal * (here.pressure * rim.length);
    let is_far = is_far.greater(R::lit(0.5));
    let pick = |free: R, wall: R| R::select(is_far, free, wall);
    let zero = R::lit(0.0);
    let momentum = Vector2::new(pick(free.momentum.x, push.x), pick(free.momentum.y, push.y));
    (Content { mass: pick(free.mass, zero), momentum, energy: pick(free.energy, zero) }, wave)
}

/// What leaves a cell through all its faces, and half their lengths times the speeds of the quickest waves through them: with gradients, or
/// without a look at them.
#[inline(always)]
fn leaving<R: Real, const SLOPES: bool>(
    p: &Given<Airfoil, R>,
    own: &Cell<R>,
    around: &impl Neighbors<Airfoil, R>,
) -> Flow<R> {
    let cell = own.gas();
    let at = |gas, slopes, reach| if SLOPES { at(gas, slopes, reach) } else { gas };
    let (out, waves) = around.sum(Faces, |[other], face| {
        let there = Gas { density: other.density, velocity: other.velocity, pressure: other.pressure };
        let [here, there] = [at(cell, own.slopes, face.reach), at(there, other.slopes, face.beyond)];
        through(here, there, face.normal, face.length)
    });
    let (more, besides) =
        around.sum(Bounds, |[], (rim, is_far)| across(at(cell, own.slopes, rim.reach), p.far, rim, is_far));
    let out = Content {
        mass: out.mass + more.mass,
        momentum: out.momentum + more.momentum,
        energy: out.energy + more.energy,
    };
    (out, waves + besides)
}

impl<R: Real> Cell<R> {
    /// What is in it.
    #[inline(always)]
    fn gas(&self) -> Gas<R> {
        Gas { density: self.density, velocity: self.velocity, pressure: self.pressure }
    }

    /// The cell with another gas in it.
    #[inline(always)]
    fn with(self, gas: Gas<R>) -> Cell<R> {
        Cell { density: gas.density, velocity: gas.velocity, pressure: gas.pressure, ..self }
    }

    /// The cell after its own time step, with what leaves it.
    #[inline(always)]
    fn moved(self, p: &Given<Airfoil, R>, (out, waves): Flow<R>) -> Cell<R> {
        let step = p.courant / waves;
        let now = self.gas().content();
        self.with(Gas::of(Content {
            mass: now.mass - step * out.mass,
            momentum: now.momentum - out.momentum * step,
            energy: now.energy - step * out.energy,
        }))
    }

    /// The cell after a stage that moved it from `own`: in the `last` the mean of what the step began with and of two steps from there (Heun).
    #[inline(always)]
    fn stage(self, own: Cell<R>, last: R) -> Cell<R> {
        let (half, is_last) = (R::lit(0.5), last.greater(R::lit(0.5)));
        let (old, now) = (own.before.content(), self.gas().content());
        let mean = Gas::of(Content {
            mass: half * (old.mass + now.mass),
            momentum: (old.momentum + now.momentum) * half,
            energy: half * (old.energy + now.energy),
        });
        let pick = |last, first| R::select(is_last, last, first);
        let pick = |last: Gas<R>, first: Gas<R>| Gas {
            density: pick(last.density, first.density),
            velocity: last.velocity.zip_map(&first.velocity, pick),
            pressure: pick(last.pressure, first.pressure),
        };
        Cell { before: pick(own.before, own.gas()), ..self.with(pick(mean, self.gas())) }
    }
}

/// What a pressure pushes a wall with.
#[inline(always)]
fn pushed<R: Real>(pressure: R, rim: Rim<R>, is_far: R) -> Vector2<R> {
    rim.normal * (pressure * rim.length * (R::lit(1.0) - is_far))
}

kernels! {
    for Airfoil: Cell, Parameters;

    /// Gradients, limited.
    update Slope |p, own, around| {
        let values = [own.density, own.velocity.x, own.velocity.y, own.pressure];
        let trends = around.fold(Faces, [Trend::flat(); 4], |mut trends: [Trend<R>; 4], [other], face| {
            let others = [other.density, other.velocity.x, other.velocity.y, other.pressure];
            (0..4).for_each(|k| trends[k] = trends[k].with(others[k] - values[k], &face));
            trends
        });
        let shares = around.fold(Faces, [p.slopes; 4], |mut shares: [R; 4], [_], face| {
            (0..4).for_each(|k| shares[k] = shares[k].min(trends[k].share(face.reach, own.smooth)));
            shares
        });
        let mut slopes = own.slopes;
        (0..4).for_each(|k| slopes[k] += (trends[k].gradient * shares[k] - own.slopes[k]) * p.blend);
        Cell { slopes, ..own }
    };

    /// Moves a cell by what leaves it over the waves that cross it.
    update Move |p, own, around| own.moved(p, leaving::<R, true>(p, &own, around));

    /// The same to first order, which reads no gradients.
    update MoveFlat |p, own, around| own.moved(p, leaving::<R, false>(p, &own, around));

    /// A stage of an explicit step: the first, which keeps what the step begins with, or the `last`.
    update Stage[last] |p, own, around| own.moved(p, leaving::<R, true>(p, &own, around)).stage(own, last);

    /// The same to first order.
    update StageFlat[last] |p, own, around| own.moved(p, leaving::<R, false>(p, &own, around)).stage(own, last);

    /// What is shown.
    map Show |p, own| {
        let stopped = R::lit(0.5) * p.far.density * p.far.velocity.dot(&p.far.velocity);
        let mach = own.velocity.dot(&own.velocity).sqrt() / own.gas().sound();
        Cell { mach, pressure_coefficient: (own.pressure - p.far.pressure) / stopped, ..own }
    };

    /// By how much an update changes the density anywhere: 0 in a steady flow.
    max Unsteady("residual", "") |p, own, around| {
        let (out, waves) = leaving::<R, true>(p, &own, around);
        (out.mass / waves).abs()
    };

    /// What pushes the walls across the flow, over `½ ρ v²` and a meter.
    sum Lift("lift coefficient", "") |p, own, around| {
        let push = around.sum(Bounds, |[], (rim, is_far)| {
            pushed(own.pressure + own.slopes[3].dot(&rim.reach) - p.far.pressure, rim, is_far)
        });
        let v = p.far.velocity;
        let speed = v.dot(&v).sqrt();
        (push.y * v.x - push.x * v.y) / (R::lit(0.5) * p.far.density * speed * speed * speed)
    };

    /// The same along the flow.
    sum Drag("drag coefficient", "") |p, own, around| {
        let push = around.sum(Bounds, |[], (rim, is_far)| {
            pushed(own.pressure + own.slopes[3].dot(&rim.reach) - p.far.pressure, rim, is_far)
        });
        let v = p.far.velocity;
        let speed = v.dot(&v).sqrt();
        (push.x * v.x + push.y * v.y) / (R::lit(0.5) * p.far.density * speed * speed * speed)
    };

    /// The fastest air.
    max Fastest("largest Mach number", "") |_, own, _| own.mach;
}

impl Program for Airfoil {
    fn parameters(&self, _time: f64) -> Parameters<f64> {
        let AirOptions { courant, second_order, blend, .. } = self.options;
        let slopes = if second_order { 1.0 } else { 0.0 };
        Parameters { far: self.options.far(), courant, slopes, blend }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let (faces, bounds) = (self.plane.faces.clone(), self.plane.bounds.clone());
        stars.add(Faces, self.plane.pairs.to_vec(), move |i| faces[i.element][i.corner]);
        stars.add(Bounds, bounds.iter().map(|bound| [bound.0]).collect(), move |i| {
            (bounds[i.element].1, bounds[i.element].2)
        });
        Ok(())
    }

    fn initial(&self, _mesh: &Mesh, v: u32) -> Cell<f64> {
        let Gas { density, velocity, pressure } = self.options.far();
        let (slopes, mach, before) = ([Vector2::zeros(); 4], self.options.mach, self.options.far());
        let smooth = self.options.smooth.powi(2) * self.plane.sizes[v as usize].powi(3);
        Cell { density, velocity, pressure, slopes, mach, pressure_coefficient: 0.0, before, smooth }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        for _ in 0..self.options.rounds {
            match self.options.second_order {
                true => self.round(stages, Move, [0.0, 1.0].map(|last| Stage { last })),
                false => self.round(stages, MoveFlat, [0.0, 1.0].map(|last| StageFlat { last })),
            }
        }
        stages.map(Show);
    }
}

impl Example for Airfoil {
    const INFO: Info = Info {
        name: "airfoil",
        about: "steady air around an airfoil, up to faster than sound (compressible Euler, finite volumes, swept in place)",
        mesh: "airfoil:160x80",
        steps: 200,
        settings: &[
            Setting {
                name: "method",
                about: "moved in place forward and backward, or double-buffered in two stages",
                kind: Kind::Choice(&["sweeps", "explicit"]),
            },
            Setting::number("mach", "speed far away over that of sound", 0.8, "", [1e-3, 10.0]),
            Setting::number("angle", "where the air comes from: degrees below the x axis", 1.25, "°", [-90.0, 90.0]),
            Setting { name: "accuracy", about: "order of accuracy", kind: Kind::Choice(&["second", "first"]) },
            Setting::number(
                "courant",
                "by how much of its own time step a cell moves; 0 takes 1 in place, else 0.5",
                0.0,
                "",
                [0.0, 2.0],
            ),
            Setting::number("rounds", "rounds a step: pairs of sweeps or stages", 10.0, "", [1.0, 1e6]),
            Setting::number("inner", "pairs of sweeps between two looks at the gradients", 2.0, "", [1.0, 1e3]),
            Setting::number("blend", "how far gradients follow at each of them", 0.2, "", [0.01, 1.0]),
            Setting::number("smooth", "differences that no limiter looks at, in a cell of 1 m²", 1.0, "", [0.0, 1e6]),
        ],
        precision: Precision::F64,
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: meshweft::Order) -> Result<Airfoil> {
        Airfoil::with(mesh, &AirOptions::from(settings))
    }

    const LIVE: &'static [&'static str] = &["courant", "blend"];

    fn change(&mut self, settings: &Settings, _order: meshweft::Order) -> Result<()> {
        self.options = AirOptions::from(settings);
        Ok(())
    }

    fn look(&self) -> Look {
        let window = Some(self.plane.window);
        Look {
            states: Some(&["density", "velocity", "pressure", "mach", "pressure_coefficient"]),
            color: Some("mach"),
            label: "Mach number",
            window,
            view: Some([-90.0, 90.0]),
            is_steady: true,
            ..Look::default()
        }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
