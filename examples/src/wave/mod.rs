//! Waves on a membrane: `u'' = c² Δu - d u'`, fixed at the boundary; a closed surface has none.
//!
//! Linear finite elements in space with lumped masses ([`Laplacian`]); leapfrog in time: velocities live half a step
//! away from displacements, so a kick reads displacements only and a drift is `u + dt v`.

mod checks;

use anyhow::Result;
use meshweft::{Program, Real, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::{Check, ColorMap, Example, Info, Look, Setting, Settings};
use meshweft_mesh::{Laplacian, Mesh};
use std::sync::Arc;

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

vertex! {
    /// A vertex of the finite-element mesh.
    pub struct Node<R> {
        /// Displacement, m.
        shared displacement: R,
        /// Velocity half a step before the displacement, m/s.
        velocity: R,
        /// One over the lumped mass; 0 where the vertex is fixed.
        mobility: R,
    }
}

stars! {
    /// Edges with their finite-element weight.
    pub Edges[1]: R;
}

/// Waves on a membrane.
pub struct Wave {
    speed: f64,
    damping: f64,
    dt: f64,
    /// The time step that is taken unless one is stated, times the speed, m.
    stride: f64,
    /// Edges of the Laplacian and their weights.
    edges: Arc<Vec<[u32; 2]>>,
    weights: Arc<Vec<f64>>,
    /// Lumped masses.
    masses: Vec<f64>,
    fixed: Vec<bool>,
    /// Center, radius and height of the bump at the start, m.
    bump: ([f64; 3], f64, f64),
}

/// Settings of a membrane; `WaveOptions::default()` is what the command takes.
#[derive(Clone, Debug, PartialEq)]
pub struct WaveOptions {
    /// Wave speed, m/s.
    pub speed: f64,
    /// Rate at which velocities fade, 1/s.
    pub damping: f64,
    /// Time step, s; `None` takes half the stability limit.
    pub dt: Option<f64>,
    /// Height of the bump at the start, m.
    pub height: f64,
}

impl From<&Settings> for WaveOptions {
    fn from(settings: &Settings) -> WaveOptions {
        WaveOptions {
            speed: settings.number("speed"),
            damping: settings.number("damping"),
            dt: Some(settings.number("dt")).filter(|&dt| dt != 0.0),
            height: settings.number("height"),
        }
    }
}

impl Default for WaveOptions {
    fn default() -> WaveOptions {
        WaveOptions::from(&Settings::new(Wave::INFO.settings))
    }
}

impl Wave {
    /// A bump on a membrane that is fixed at its boundary.
    ///
    /// # Errors
    /// A mesh without a Laplacian.
    pub fn with(mesh: &Mesh, options: &WaveOptions) -> Result<Wave> {
        let laplacian = Laplacian::of(mesh)?;
        // The largest eigenvalue of m⁻¹K is at most 2 Σ|w| / m (Gershgorin); leapfrog is stable for dt below 2 / ω.
        let stride = 0.5 * 2.0 * (laplacian.explicit_limit() / 2.0).sqrt();
        let [low, high] = mesh.bounds();
        let extent = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
        let fixed = mesh.boundary();
        let aim = [0.35 * low[0] + 0.65 * high[0], 0.45 * low[1] + 0.55 * high[1], high[2]];
        let center = mesh.nearest(aim, |v| !fixed[v] && laplacian.masses[v] > 0.0).unwrap_or(aim);
        // A mesh of one place has no extent; any radius will do.
        let radius = if extent > 0.0 { 0.06 * extent } else { 1.0 };
        let bump = (center, radius, options.height);
        let Laplacian { edges, weights, masses } = laplacian;
        let (edges, weights) = (Arc::new(edges), Arc::new(weights));
        let mut wave = Wave { speed: 0.0, damping: 0.0, dt: 0.0, stride, edges, weights, masses, fixed, bump };
        wave.tune(options);
        Ok(wave)
    }

    /// Takes over what decides about a step.
    fn tune(&mut self, options: &WaveOptions) {
        (self.speed, self.damping) = (options.speed, options.damping);
        self.dt = options.dt.unwrap_or(self.stride / self.speed);
    }
}

kernels! {
    for Wave: Node, Parameters;

    /// `v + dt (c² / m Σ w (u_neighbor - u) - d v)`. It leaves displacements alone, so every order gives the same.
    update Kick |p, own, around| {
        let pull = around.sum(Edges, |[other], w| w * (other.displacement - own.displacement));
        let acceleration = p.tension * own.mobility * pull - p.damping * own.velocity;
        Node { velocity: own.velocity + p.dt * acceleration, ..own }
    };

    /// `u + dt v`.
    map Drift |p, own| Node { displacement: own.displacement + p.dt * own.velocity, ..own };

    /// `½ m v²`, velocities half a step early.
    sum Kinetic("kinetic energy", "J m²/kg") |_, own, _| {
        let energy = R::lit(0.5) * own.velocity * own.velocity / own.mobility;
        R::select(own.mobility.greater(R::lit(0.0)), energy, R::lit(0.0))
    };

    /// `½ c² Σ w (Δu)²`, half of each edge at either end.
    sum Potential("potential energy", "J m²/kg") |p, own, around| {
        let sum = around.sum(Edges, |[other], w| {
            let difference = other.displacement - own.displacement;
            w * difference * difference
        });
        R::lit(0.25) * p.tension * sum
    };

    /// The largest displacement either way.
    max Crest("largest displacement", "m") |_, own, _| own.displacement.abs();
}

impl Program for Wave {
    fn time_step(&self) -> f64 {
        self.dt
    }

    fn set_time_step(&mut self, dt: f64) -> bool {
        self.dt = dt;
        true
    }

    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { dt: self.dt, tension: self.speed * self.speed, damping: self.damping }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let weights = self.weights.clone();
        stars.add_shared(Edges, self.edges.clone(), move |i| weights[i.element]);
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let (center, radius, height) = self.bump;
        let p = mesh.points()[v as usize];
        let distance = (0..3).map(|k| (p[k] - center[k]).powi(2)).sum::<f64>();
        let bump = height * Real::exp(-distance / (2.0 * radius * radius));
        let mass = self.masses[v as usize];
        if self.fixed[v as usize] || mass <= 0.0 {
            Node { displacement: 0.0, velocity: 0.0, mobility: 0.0 }
        } else {
            Node { displacement: bump, velocity: 0.0, mobility: 1.0 / mass }
        }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Kick, 1);
        stages.map(Drift);
    }
}

impl Example for Wave {
    const INFO: Info = Info {
        name: "wave",
        about: "a bump runs over a membrane that is fixed at its boundary (finite elements, leapfrog)",
        mesh: "disk:80",
        steps: 600,
        settings: &[
            Setting::number("speed", "wave speed", 1.0, "m/s", [1e-9, 1e9]),
            Setting::number("damping", "rate at which velocities fade", 0.0, "1/s", [0.0, 1e9]),
            Setting::number("dt", "time step; 0 takes half the stability limit", 0.0, "s", [0.0, 1e12]),
            Setting::number("height", "height of the bump at the start", 0.1, "m", [-1e6, 1e6]),
        ],
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: meshweft::Order) -> Result<Wave> {
        Wave::with(mesh, &WaveOptions::from(settings))
    }

    const LIVE: &'static [&'static str] = &["speed", "damping", "dt"];

    fn change(&mut self, settings: &Settings, _order: meshweft::Order) -> Result<()> {
        self.tune(&WaveOptions::from(settings));
        Ok(())
    }

    fn look(&self) -> Look {
        let map = ColorMap::Coolwarm;
        let raised = Some(("displacement", 1.5));
        Look { color: Some("displacement"), label: "displacement (m)", map, raised, ..Look::default() }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}
