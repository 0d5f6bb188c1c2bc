//! Heat: diffusion of temperature over a surface or through a solid.
//!
//! Linear finite elements in space, with lumped masses `m` and weights `w` ([`Laplacian`](meshweft_mesh::Laplacian)). In time either
//! implicit Euler, stable for any step, or explicit Euler (double-buffered). [`Heat`] solves implicit steps by sweeps in place,
//! [`Implicit`] by conjugate gradients or Chebyshev iteration, which need more of each vertex.

mod checks;
mod implicit;
mod scene;

use anyhow::{Result, bail};
pub use implicit::Implicit;
use meshweft::{Program, Stages, Stars, kernels, vertex};
use meshweft_command::{Check, ColorMap, Example, Info, Kind, Look, Setting, Settings};
use meshweft_mesh::Mesh;
use scene::Scene;
pub use scene::{Edges, Parameters};

vertex! {
    /// A vertex of the finite-element mesh.
    pub struct Node<R> {
        /// Temperature, K.
        shared temperature: R,
        /// Temperature at the start of the step, K.
        before: R,
        /// Lumped mass: the vertex's share of length (m), area (m²) or volume (m³).
        mass: R,
    }
}

/// How a time step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Implicit Euler, solved by sweeps in place.
    Relaxation,
    /// Explicit Euler.
    Explicit,
    /// Implicit Euler, solved by conjugate gradients.
    ConjugateGradients,
    /// Implicit Euler, solved by Chebyshev iteration.
    Chebyshev,
}

/// Settings of a diffusion of heat; `HeatOptions::default()` is what the command takes.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatOptions {
    /// How a time step is taken.
    pub method: Method,
    /// How fast heat spreads, m²/s.
    pub diffusivity: f64,
    /// Time step, s; `None` takes 5 times (implicit) or 0.9 times (explicit) the explicit limit.
    pub dt: Option<f64>,
    /// Sweeps or iterations a step; the most for conjugate gradients.
    pub rounds: usize,
    /// By how much more than Gauss–Seidel an update moves; `None` takes what suits the time step.
    pub factor: Option<f64>,
    /// The residual over the first at which conjugate gradients stop.
    pub tolerance: f64,
    /// Temperature far from the hot spot, K.
    pub cold: f64,
}

impl From<&Settings> for HeatOptions {
    fn from(settings: &Settings) -> HeatOptions {
        let unless_zero = |name| Some(settings.number(name)).filter(|&x| x != 0.0);
        HeatOptions {
            method: match settings.choice("method") {
                "explicit" => Method::Explicit,
                "cg" => Method::ConjugateGradients,
                "chebyshev" => Method::Chebyshev,
                _ => Method::Relaxation,
            },
            diffusivity: settings.number("diffusivity"),
            dt: unless_zero("dt"),
            rounds: settings.count("rounds"),
            factor: unless_zero("factor"),
            tolerance: settings.number("tolerance"),
            cold: settings.number("cold"),
        }
    }
}

impl Default for HeatOptions {
    fn default() -> HeatOptions {
        HeatOptions::from(&Settings::new(Heat::INFO.settings))
    }
}

impl HeatOptions {
    fn scene(&self, mesh: &Mesh) -> Result<Scene> {
        Scene::new(mesh, self.diffusivity, self.step(), self.cold)
    }

    /// The time step in seconds, or else how many times that of explicit Euler at its limit.
    fn step(&self) -> Result<f64, f64> {
        self.dt.ok_or(if self.method == Method::Explicit { 0.9 } else { 5.0 })
    }
}

/// Diffusion of heat: sweeps in place, or explicit steps.
#[derive(Clone)]
pub struct Heat {
    scene: Scene,
    is_explicit: bool,
    pub(crate) rounds: usize,
    factor: f64,
}

impl Heat {
    /// A hot spot on a mesh.
    ///
    /// # Errors
    /// A mesh without a Laplacian, or a method of [`Implicit`].
    pub fn with(mesh: &Mesh, options: &HeatOptions) -> Result<Heat> {
        let scene = options.scene(mesh)?;
        let is_explicit = match options.method {
            Method::Relaxation => false,
            Method::Explicit => true,
            Method::ConjugateGradients | Method::Chebyshev => bail!("{:?} is a method of `Implicit`", options.method),
        };
        let factor = options.factor.unwrap_or_else(|| best_factor(scene.jacobi_radius()));
        Ok(Heat { scene, is_explicit, rounds: options.rounds, factor })
    }
}

/// The factor with which errors fall fastest where neighbors are of two colors (Young 1954), and nearly so in other orders. `radius`: the
/// largest eigenvalue of the Jacobi iteration.
fn best_factor(radius: f64) -> f64 {
    2.0 / (1.0 + (1.0 - radius * radius).max(0.0).sqrt())
}

kernels! {
    for Heat: Node, Parameters;

    /// Keeps the temperature that the step starts from.
    map Remember |_, own| Node { before: own.temperature, ..own };

    /// One Gauss–Seidel update of `(m + s Σw) T = m T_before + s Σ w T_neighbor`.
    update Relax |p, own, around| {
        let (flow, weight) = around.sum(Edges, |[other], w| (w * other.temperature, w));
        Node { temperature: (own.mass * own.before + p.spread * flow) / (own.mass + p.spread * weight), ..own }
    };

    /// The same, and further by a factor (successive over-relaxation).
    update Overrelax[factor] |p, own, around| {
        let (flow, weight) = around.sum(Edges, |[other], w| (w * other.temperature, w));
        let solved = (own.mass * own.before + p.spread * flow) / (own.mass + p.spread * weight);
        Node { temperature: own.temperature + factor * (solved - own.temperature), ..own }
    };

    /// `T + (s / m) Σ w (T_neighbor - T)`.
    update Explicit |p, own, around| {
        let flow = around.sum(Edges, |[other], w| w * (other.temperature - own.temperature));
        Node { temperature: own.temperature + p.spread * flow / own.mass, ..own }
    };

    /// The square of what is missing in the equation of a vertex, in units of the largest mass.
    sum Missing |p, own, around| {
        let flow = around.sum(Edges, |[other], w| w * (other.temperature - own.temperature));
        let missing = (own.mass * (own.before - own.temperature) + p.spread * flow) / p.largest_mass;
        missing * missing
    };

    /// The integral of temperature: constant in an insulated body.
    sum Content("heat content", "K m^d") |_, own, _| own.temperature * own.mass;

    /// The coldest temperature: it never falls where all weights are positive.
    min Coldest("coldest", "K") |_, own, _| own.temperature;

    /// The hottest temperature: it never rises where all weights are positive.
    max Hottest("hottest", "K") |_, own, _| own.temperature;
}

impl Program for Heat {
    fn time_step(&self) -> f64 {
        self.scene.dt
    }

    fn set_time_step(&mut self, dt: f64) -> bool {
        self.scene.dt = dt;
        true
    }

    fn parameters(&self, _time: f64) -> Parameters<f64> {
        self.scene.parameters()
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        self.scene.add_edges(stars);
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let temperature = self.scene.temperature(mesh, v);
        Node { temperature, before: temperature, mass: self.scene.mass(v) }
    }

    /// A vertex without cells has no mass: it keeps its temperature.
    fn fixed(&self, _mesh: &Mesh, v: u32) -> bool {
        self.scene.mass(v) <= 0.0
    }

    fn step(&self, stages: &mut Stages<Self>) {
        if self.is_explicit {
            return stages.jacobi(Explicit, 1);
        }
        stages.map(Remember);
        match self.factor {
            1.0 => stages.sweep(Relax, self.rounds),
            factor => stages.sweep(Overrelax { factor }, self.rounds),
        }
    }
}

/// How temperatures are drawn.
fn look() -> Look {
    Look { color: Some("temperature"), label: "temperature (K)", map: ColorMap::Plasma, ..Look::default() }
}

impl Example for Heat {
    const INFO: Info = Info {
        name: "heat",
        about: "a hot spot spreads over a surface or through a solid (finite elements, Gauss–Seidel or explicit)",
        mesh: "torus:192x96",
        steps: 300,
        settings: &[
            Setting {
                name: "method",
                about: "implicit Euler relaxed in place, by conjugate gradients or by Chebyshev iteration, or explicit Euler",
                kind: Kind::Choice(&["relaxation", "explicit", "cg", "chebyshev"]),
            },
            Setting::number("diffusivity", "how fast heat spreads; 9.7e-5 is aluminum", 9.7e-5, "m²/s", [1e-12, 1e6]),
            Setting::number(
                "dt",
                "time step; 0 takes 5 times (implicit) or 0.9 times (explicit) the explicit limit",
                0.0,
                "s",
                [0.0, 1e12],
            ),
            Setting::number("rounds", "sweeps or iterations a step; for cg the most", 10.0, "", [1.0, 1e6]),
            Setting::number(
                "factor",
                "by how much more than Gauss–Seidel a relaxation moves; 0 takes what suits dt",
                1.0,
                "",
                [0.0, 1.999],
            ),
            Setting::number("tolerance", "residual at which cg stops, over the first", 1e-6, "", [0.0, 1.0]),
            Setting::number("cold", "temperature far from the hot spot", 300.0, "K", [0.0, 1e6]),
        ],
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: meshweft::Order) -> Result<Heat> {
        Heat::with(mesh, &HeatOptions::from(settings))
    }

    const LIVE: &'static [&'static str] = &["diffusivity", "dt", "factor"];

    fn change(&mut self, settings: &Settings, _order: meshweft::Order) -> Result<()> {
        let options = HeatOptions::from(settings);
        self.scene.tune(options.diffusivity, options.step());
        self.factor = options.factor.unwrap_or_else(|| best_factor(self.scene.jacobi_radius()));
        Ok(())
    }

    fn look(&self) -> Look {
        look()
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
