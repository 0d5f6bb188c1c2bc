//! Heat: diffusion of temperature over a surface or through a solid.
//!
//! Linear finite elements in space, with lumped masses `m` and weights `w` ([`Laplacian`]). In time either implicit
//! Euler, solved by Gauss–Seidel sweeps in place (stable for any step), or explicit Euler (double-buffered).

mod checks;

use crate::example::{Check, Example, Info, Look};
use crate::picture::ColorMap;
use crate::settings::{Kind, Setting, Settings};
use anyhow::Result;
use meshweft::{Metrics, Program, Real, Stages, Star, Stars, kernel, record};
use meshweft_mesh::{Laplacian, Mesh};

record! {
    /// Numbers that all vertices read.
    pub struct Parameters<R> {
        /// Diffusivity times time step, m².
        spread: R,
    }
}

record! {
    /// What neighbors read.
    pub struct Shared<R> {
        /// Temperature, K.
        temperature: R,
    }
}

record! {
    /// What only the vertex reads.
    pub struct Private<R> {
        /// Temperature at the start of the step, K.
        before: R,
        /// Lumped mass: the vertex's share of length (m), area (m²) or volume (m³).
        mass: R,
    }
}

/// Edges with their finite-element weight.
pub struct Edges;

impl Star<1> for Edges {
    const INDEX: usize = 0;
    type Data<R: Real> = R;
}

/// How a time step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
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

/// Temperature far from the hot spot, K.
const COLD: f64 = 300.0;
/// How much hotter the middle of the spot is, K.
const RISE: f64 = 100.0;

kernel! {
    /// Keeps the temperature that the step starts from.
    map Remember for Heat: |_, own, private| (own, Private { before: own.temperature, ..private })
}

kernel! {
    /// One Gauss–Seidel update of `(m + s Σw) T = m T_before + s Σ w T_neighbor`.
    update Relax for Heat: |p, own, private, neighbors| {
        let zero = R::lit(0.0);
        let (flow, total) = neighbors.fold(Edges, (zero, zero), |(flow, total), [other], weight| {
            (flow + weight * other.temperature, total + weight)
        });
        let (load, diagonal) = (private.mass * private.before + p.spread * flow, private.mass + p.spread * total);
        // A vertex without cells has no mass: it keeps its temperature.
        let temperature = R::select(zero.less(private.mass), load / diagonal, own.temperature);
        (Shared { temperature }, private)
    }
}

kernel! {
    /// `T + (s / m) Σ w (T_neighbor - T)`.
    update Explicit for Heat: |p, own, private, neighbors| {
        let flow = neighbors.fold(Edges, R::lit(0.0), |flow, [other], weight| {
            flow + weight * (other.temperature - own.temperature)
        });
        let warmer = own.temperature + p.spread * flow / private.mass;
        // A vertex without cells has no mass: it keeps its temperature.
        (Shared { temperature: R::select(R::lit(0.0).less(private.mass), warmer, own.temperature) }, private)
    }
}

kernel! {
    /// The integral of temperature: constant in an insulated body.
    sum Content ("heat content", "K m^d") for Heat: |_, own, private, _| own.temperature * private.mass
}

kernel! {
    /// The coldest temperature: it never falls where all weights are positive.
    min Coldest ("coldest", "K") for Heat: |_, own, _, _| own.temperature
}

kernel! {
    /// The hottest temperature: it never rises where all weights are positive.
    max Hottest ("hottest", "K") for Heat: |_, own, _, _| own.temperature
}

impl Program for Heat {
    type Parameters<R: Real> = Parameters<R>;
    type Shared<R: Real> = Shared<R>;
    type Private<R: Real> = Private<R>;

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

    fn initial(&self, mesh: &Mesh, v: u32) -> (Shared<f64>, Private<f64>) {
        let (center, radius) = self.spot;
        let p = mesh.points()[v as usize];
        let distance = (0..3).map(|k| (p[k] - center[k]).powi(2)).sum::<f64>();
        let temperature = COLD + RISE * Real::exp(-distance / (2.0 * radius * radius));
        (Shared { temperature }, Private { before: temperature, mass: self.laplacian.masses[v as usize] })
    }

    fn step(&self, stages: &mut impl Stages<Self>) {
        match self.method {
            Method::Relaxation(rounds) => {
                stages.map(Remember);
                stages.sweep(Relax, rounds);
            }
            Method::Explicit => stages.jacobi(Explicit, 1),
        }
    }

    fn metrics(&self, metrics: &mut impl Metrics<Self>) {
        metrics.measure(Content);
        metrics.measure(Coldest);
        metrics.measure(Hottest);
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
        let laplacian = Laplacian::of(mesh)?;
        let diffusivity = settings.number("diffusivity");
        let (method, share) = match settings.choice("method") {
            "explicit" => (Method::Explicit, 0.9),
            _ => (Method::Relaxation(settings.count("rounds")), 5.0),
        };
        let dt = match settings.number("dt") {
            0.0 => share * explicit_limit(&laplacian) / diffusivity,
            dt => dt,
        };
        let [low, high] = mesh.bounds();
        let extent = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
        let corner = [high[0], (low[1] + high[1]) / 2.0, high[2]];
        let center = nearest(mesh, corner, |v| laplacian.masses[v] > 0.0).unwrap_or(corner);
        // A mesh of one place has no extent; any radius will do.
        let radius = if extent > 0.0 { 0.22 * extent } else { 1.0 };
        Ok(Heat { diffusivity, dt, method, laplacian, spot: (center, radius) })
    }

    fn look(&self) -> Look {
        Look { color: Some("temperature"), label: "temperature (K)", map: ColorMap::Inferno, ..Look::default() }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}

/// The place of the point nearest to `target` among those of which `takes` says yes. Ties go to the first in space.
pub(crate) fn nearest(mesh: &Mesh, target: [f64; 3], takes: impl Fn(usize) -> bool) -> Option<[f64; 3]> {
    let key = |p: [f64; 3]| ((0..3).map(|k| (p[k] - target[k]).powi(2)).sum::<f64>(), p);
    let taken = mesh.points().iter().enumerate().filter(|(v, _)| takes(*v)).map(|(_, &p)| p);
    taken.min_by(|&a, &b| key(a).partial_cmp(&key(b)).expect("coordinates are finite"))
}

/// The largest `diffusivity × dt` for which no explicit update overshoots where weights are positive: the smallest
/// `m / Σ|w|`, m²; 1 without edges. Weights are added by size, so that names do not matter.
pub(crate) fn explicit_limit(laplacian: &Laplacian) -> f64 {
    let ends = laplacian.edges.iter().zip(&laplacian.weights).flat_map(|(e, w)| e.map(|v| (v, w.abs())));
    let mut ends: Vec<(u32, f64)> = ends.collect();
    ends.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let totals = ends.chunk_by(|a, b| a.0 == b.0).map(|row| (row[0].0, row.iter().map(|end| end.1).sum::<f64>()));
    let limits = totals.filter(|&(_, total)| total > 0.0).map(|(v, total)| laplacian.masses[v as usize] / total);
    Some(limits.fold(f64::INFINITY, f64::min)).filter(|limit| limit.is_finite()).unwrap_or(1.0)
}
