//! Heat: diffusion of temperature over a surface or through a solid.
//!
//! Linear finite elements in space, with lumped masses `m` and weights `w` ([`Laplacian`]). In time either implicit
//! Euler, solved by Gauss–Seidel sweeps in place (stable for any step), or explicit Euler (double-buffered).

mod checks;

use crate::example::{Check, Example, Info, Look};
use crate::picture::ColorMap;
use crate::settings::{Kind, Setting, Settings};
use anyhow::Result;
use meshweft::{Program, Real, Stages, Stars, kernels, record, stars, vertex};
use meshweft_mesh::{Laplacian, Mesh};

record! {
    /// Numbers that all vertices read.
    pub struct Parameters<R> {
        /// Diffusivity times time step, m².
        spread: R,
    }
}

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

stars! {
    /// Edges with their finite-element weight.
    pub Edges[1]: R;
}

/// How a time step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Implicit Euler by this many sweeps in place.
    Relaxation(usize),
    /// Explicit Euler.
    Explicit,
}

/// Diffusion of heat.
pub struct Heat {
    diffusivity: f64,
    dt: f64,
    method: Method,
    laplacian: Laplacian,
    /// Center and radius of the hot spot, m.
    spot: ([f64; 3], f64),
}

/// Settings of a diffusion of heat; `HeatOptions::default()` is what the command takes.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatOptions {
    /// How a time step is taken.
    pub method: Method,
    /// How fast heat spreads, m²/s.
    pub diffusivity: f64,
    /// Time step, s; `None` takes 5 times (relaxation) or 0.9 times (explicit) the explicit limit.
    pub dt: Option<f64>,
}

impl From<&Settings> for HeatOptions {
    fn from(settings: &Settings) -> HeatOptions {
        HeatOptions {
            method: match settings.choice("method") {
                "explicit" => Method::Explicit,
                _ => Method::Relaxation(settings.count("rounds")),
            },
            diffusivity: settings.number("diffusivity"),
            dt: Some(settings.number("dt")).filter(|&dt| dt != 0.0),
        }
    }
}

impl Default for HeatOptions {
    fn default() -> HeatOptions {
        HeatOptions::from(&Settings::new(Heat::INFO.settings))
    }
}

impl Heat {
    /// A hot spot on a mesh.
    ///
    /// # Errors
    /// A mesh without a Laplacian.
    pub fn with(mesh: &Mesh, options: &HeatOptions) -> Result<Heat> {
        let laplacian = Laplacian::of(mesh)?;
        let HeatOptions { method, diffusivity, dt } = *options;
        let share = if method == Method::Explicit { 0.9 } else { 5.0 };
        let dt = dt.unwrap_or_else(|| share * laplacian.explicit_limit() / diffusivity);
        let [low, high] = mesh.bounds();
        let extent = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
        let corner = [high[0], (low[1] + high[1]) / 2.0, high[2]];
        let center = mesh.nearest(corner, |v| laplacian.masses[v] > 0.0).unwrap_or(corner);
        // A mesh of one place has no extent; any radius will do.
        let radius = if extent > 0.0 { 0.22 * extent } else { 1.0 };
        Ok(Heat { diffusivity, dt, method, laplacian, spot: (center, radius) })
    }
}

/// Temperature far from the hot spot, K.
const COLD: f64 = 300.0;
/// How much hotter the middle of the spot is, K.
const RISE: f64 = 100.0;

kernels! {
    for Heat: Node, Parameters;

    /// Keeps the temperature that the step starts from.
    map Remember |_, own| Node { before: own.temperature, ..own };

    /// One Gauss–Seidel update of `(m + s Σw) T = m T_before + s Σ w T_neighbor`.
    update Relax |p, own, around| {
        let (flow, weight) = around.sum(Edges, |[other], w| (w * other.temperature, w));
        Node { temperature: (own.mass * own.before + p.spread * flow) / (own.mass + p.spread * weight), ..own }
    };

    /// `T + (s / m) Σ w (T_neighbor - T)`.
    update Explicit |p, own, around| {
        let flow = around.sum(Edges, |[other], w| w * (other.temperature - own.temperature));
        Node { temperature: own.temperature + p.spread * flow / own.mass, ..own }
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
        self.dt
    }

    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { spread: self.diffusivity * self.dt }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let weights = self.laplacian.weights.clone();
        stars.add(Edges, self.laplacian.edges.clone(), move |i| weights[i.element]);
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let (center, radius) = self.spot;
        let p = mesh.points()[v as usize];
        let distance = (0..3).map(|k| (p[k] - center[k]).powi(2)).sum::<f64>();
        let temperature = COLD + RISE * Real::exp(-distance / (2.0 * radius * radius));
        Node { temperature, before: temperature, mass: self.laplacian.masses[v as usize] }
    }

    /// A vertex without cells has no mass: it keeps its temperature.
    fn fixed(&self, _mesh: &Mesh, v: u32) -> bool {
        self.laplacian.masses[v as usize] <= 0.0
    }

    fn step(&self, stages: &mut Stages<Self>) {
        match self.method {
            Method::Relaxation(rounds) => {
                stages.map(Remember);
                stages.sweep(Relax, rounds);
            }
            Method::Explicit => stages.jacobi(Explicit, 1),
        }
    }
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
                about: "implicit Euler relaxed in place, or explicit Euler",
                kind: Kind::Choice(&["relaxation", "explicit"]),
            },
            Setting {
                name: "diffusivity",
                about: "how fast heat spreads; 9.7e-5 is aluminum",
                kind: Kind::Number { default: 9.7e-5, unit: "m²/s", range: [1e-12, 1e6] },
            },
            Setting {
                name: "dt",
                about: "time step; 0 takes 5 times (relaxation) or 0.9 times (explicit) the explicit limit",
                kind: Kind::Number { default: 0.0, unit: "s", range: [0.0, 1e12] },
            },
            Setting {
                name: "rounds",
                about: "sweeps a step, for relaxation",
                kind: Kind::Number { default: 10.0, unit: "", range: [1.0, 1e6] },
            },
        ],
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: meshweft::Order) -> Result<Heat> {
        Heat::with(mesh, &HeatOptions::from(settings))
    }

    fn look(&self) -> Look {
        Look { color: Some("temperature"), label: "temperature (K)", map: ColorMap::Inferno, ..Look::default() }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
