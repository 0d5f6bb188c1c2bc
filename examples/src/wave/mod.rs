//! Waves on a membrane: `u'' = c² Δu - d u'`, fixed at the boundary; a closed surface has none.
//!
//! Linear finite elements in space with lumped masses ([`Laplacian`]); leapfrog in time: velocities live half a step
//! away from displacements, so a kick reads displacements only and a drift is `u + dt v`.

mod checks;

use crate::example::{Check, Example, Info, Look};
use crate::heat::{explicit_limit, nearest};
use crate::picture::ColorMap;
use crate::settings::{Kind, Setting, Settings};
use anyhow::Result;
use meshweft::{Metrics, Program, Real, Stages, Star, Stars, kernel, record};
use meshweft_mesh::{Laplacian, Mesh};

record! {
    /// Numbers that all vertices read.
    pub struct Parameters<R> {
        /// Time step, s.
        dt: R,
        /// Wave speed squared, m²/s².
        tension: R,
        /// Rate at which velocities fade, 1/s.
        damping: R,
    }
}

record! {
    /// What neighbors read.
    pub struct Shared<R> {
        /// Displacement, m.
        displacement: R,
    }
}

record! {
    /// What only the vertex reads.
    pub struct Private<R> {
        /// Velocity half a step before the displacement, m/s.
        velocity: R,
        /// One over the lumped mass; 0 holds the vertex fixed.
        mobility: R,
    }
}

/// Edges with their finite-element weight.
pub struct Edges;

impl Star<1> for Edges {
    const INDEX: usize = 0;
    type Data<R: Real> = R;
}

/// Waves on a membrane.
pub struct Wave {
    speed: f64,
    damping: f64,
    dt: f64,
    laplacian: Laplacian,
    fixed: Vec<bool>,
    /// Center, radius and height of the bump at the start, m.
    bump: ([f64; 3], f64, f64),
}

kernel! {
    /// `v + dt (c² / m Σ w (u_neighbor - u) - d v)`. It leaves displacements alone, so every order gives the same.
    update Kick for Wave: |p, own, private, neighbors| {
        let pull = neighbors.fold(Edges, R::lit(0.0), |pull, [other], weight| {
            pull + weight * (other.displacement - own.displacement)
        });
        let acceleration = p.tension * private.mobility * pull - p.damping * private.velocity;
        (own, Private { velocity: private.velocity + p.dt * acceleration, ..private })
    }
}

kernel! {
    /// `u + dt v`.
    map Drift for Wave: |p, own, private| {
        (Shared { displacement: own.displacement + p.dt * private.velocity }, private)
    }
}

kernel! {
    /// `½ m v²`, velocities half a step early.
    sum Kinetic ("kinetic energy", "J m²/kg") for Wave: |_, _, private, _| {
        let zero = R::lit(0.0);
        let energy = R::lit(0.5) * private.velocity * private.velocity / private.mobility;
        R::select(zero.less(private.mobility), energy, zero)
    }
}

kernel! {
    /// `½ c² Σ w (Δu)²`, half of each edge at either end.
    sum Potential ("potential energy", "J m²/kg") for Wave: |p, own, _, neighbors| {
        let sum = neighbors.fold(Edges, R::lit(0.0), |sum, [other], weight| {
            let difference = other.displacement - own.displacement;
            sum + weight * difference * difference
        });
        R::lit(0.25) * p.tension * sum
    }
}

kernel! {
    /// The largest displacement either way.
    max Crest ("largest displacement", "m") for Wave: |_, own, _, _| own.displacement.abs()
}

impl Program for Wave {
    type Parameters<R: Real> = Parameters<R>;
    type Shared<R: Real> = Shared<R>;
    type Private<R: Real> = Private<R>;

    fn time_step(&self) -> f64 {
        self.dt
    }

    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { dt: self.dt, tension: self.speed * self.speed, damping: self.damping }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let weights = self.laplacian.weights.clone();
        stars.add(Edges, self.laplacian.edges.clone(), move |i| weights[i.element]);
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> (Shared<f64>, Private<f64>) {
        let (center, radius, height) = self.bump;
        let p = mesh.points()[v as usize];
        let distance = (0..3).map(|k| (p[k] - center[k]).powi(2)).sum::<f64>();
        let bump = height * Real::exp(-distance / (2.0 * radius * radius));
        let mass = self.laplacian.masses[v as usize];
        if self.fixed[v as usize] || mass <= 0.0 {
            (Shared { displacement: 0.0 }, Private { velocity: 0.0, mobility: 0.0 })
        } else {
            (Shared { displacement: bump }, Private { velocity: 0.0, mobility: 1.0 / mass })
        }
    }

    fn step(&self, stages: &mut impl Stages<Self>) {
        stages.sweep(Kick, 1);
        stages.map(Drift);
    }

    fn metrics(&self, metrics: &mut impl Metrics<Self>) {
        metrics.measure(Kinetic);
        metrics.measure(Potential);
        metrics.measure(Crest);
    }
}

impl Example for Wave {
    const INFO: Info = Info {
        name: "wave",
        about: "a bump runs over a membrane that is fixed at its boundary (finite elements, leapfrog)",
        mesh: "disk:80",
        steps: 600,
        settings: &[
            Setting {
                name: "speed",
                about: "wave speed",
                kind: Kind::Number { default: 1.0, unit: "m/s", range: [1e-9, 1e9] },
            },
            Setting {
                name: "damping",
                about: "rate at which velocities fade",
                kind: Kind::Number { default: 0.0, unit: "1/s", range: [0.0, 1e9] },
            },
            Setting {
                name: "dt",
                about: "time step; 0 takes half the stability limit",
                kind: Kind::Number { default: 0.0, unit: "s", range: [0.0, 1e12] },
            },
            Setting {
                name: "height",
                about: "height of the bump at the start",
                kind: Kind::Number { default: 0.1, unit: "m", range: [-1e6, 1e6] },
            },
        ],
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: meshweft::Order) -> Result<Wave> {
        let laplacian = Laplacian::of(mesh)?;
        let speed = settings.number("speed");
        let dt = match settings.number("dt") {
            // The largest eigenvalue of m⁻¹K is at most 2 Σ|w| / m (Gershgorin); leapfrog is stable for dt below 2 / ω.
            0.0 => 0.5 * 2.0 * (explicit_limit(&laplacian) / 2.0).sqrt() / speed,
            dt => dt,
        };
        let [low, high] = mesh.bounds();
        let extent = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
        let fixed = mesh.boundary();
        let aim = [0.35 * low[0] + 0.65 * high[0], 0.45 * low[1] + 0.55 * high[1], high[2]];
        let center = nearest(mesh, aim, |v| !fixed[v] && laplacian.masses[v] > 0.0).unwrap_or(aim);
        // A mesh of one place has no extent; any radius will do.
        let radius = if extent > 0.0 { 0.06 * extent } else { 1.0 };
        let bump = (center, radius, settings.number("height"));
        Ok(Wave { speed, damping: settings.number("damping"), dt, laplacian, fixed, bump })
    }

    fn look(&self) -> Look {
        let map = ColorMap::Coolwarm;
        Look { color: Some("displacement"), label: "displacement (m)", map, lift: 1.5, ..Look::default() }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
