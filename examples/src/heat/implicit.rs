//! Implicit steps by methods that know the whole equation: conjugate gradients and Chebyshev iteration.
//!
//! A step solves `A T = m T_before` with `A = D - N`, where `D = m + s Σw` and `N` has the weights `s w` of the edges.
//!
//! **Conjugate gradients** have symmetric Gauss–Seidel in the mesh's order as preconditioner. Instead of a sweep forward, a sweep backward
//! and a product with `A`, an iteration takes the two sweeps alone (Eisenstat, SIAM J. Sci. Stat. Comput. 2, 1981): with `N = F + B`, what
//! comes from earlier and from later neighbors, the operator `(1 - F/D)⁻¹ (A/D) (1 - B/D)⁻¹` takes `p` to `t + u`, where
//! `t = p + (B/D) t` comes from a sweep backward and `u = p - t + (F/D) u` from one forward. It is symmetric in the inner product with weights
//! `D`. A sweep reads all neighbors, those that it has passed and those that it has not; what the latter add is known from the sweep
//! before, and is taken off.
//!
//! **Chebyshev iteration** needs no sums over the mesh, but bounds of the eigenvalues of `A / D`: those of Gershgorin.

use super::scene::{Edges, Parameters, Scene};
use super::{Heat, HeatOptions, Method};
use anyhow::{Result, bail};
use meshweft::{Key, Order, Program, Stages, Stars, kernels, record, vertex};
use meshweft_command::{Check, Example, Info, Look, Settings};
use meshweft_mesh::Mesh;

record! {
    /// How far conjugate gradients are.
    pub struct Progress<R> {
        /// The square of the first residual, and of the present one, preconditioned.
        first: R,
        missing: R,
        /// The square of the present direction in the norm of the equation.
        curvature: R,
        /// The square of the residual after the next step.
        next: R,
        /// How far to go along the direction, and how much of it to keep.
        stride: R,
        keep: R,
    }
}

vertex! {
    /// A vertex of the finite-element mesh.
    pub struct Unknown<R> {
        /// Temperature, K; within a step what sweeps solve for.
        shared temperature: R,
        /// Lumped mass: the vertex's share of length (m), area (m²) or volume (m³).
        mass: R,
        /// Of Chebyshev iteration the temperature at the start of the step, of conjugate gradients that so far, K.
        before: R,
        /// `m + s Σw`.
        diagonal: R,
        /// The residual over the diagonal, preconditioned, K.
        missing: R,
        /// Where to go, K.
        direction: R,
        /// What a sweep backward makes of that, K.
        backward: R,
        /// What neighbors that come earlier have added in the sweep forward, K.
        earlier: R,
        /// What the equation makes of the direction, K.
        image: R,
    }
}

kernels! {
    for Implicit: Unknown, Parameters, Progress;

    /// The residual that a step starts from; nothing is solved for yet.
    update Begin |p, own, around| {
        let (flow, weight) =
            around.sum(Edges, |[other], w| (w * (other.temperature - own.temperature), w));
        let diagonal = own.mass + p.spread * weight;
        let zero = R::lit(0.0);
        Unknown {
            temperature: zero,
            before: own.temperature,
            diagonal,
            missing: p.spread * flow / diagonal,
            direction: zero,
            backward: zero,
            image: zero,
            ..own
        }
    };

    /// Preconditions it: all neighbors that come later are still zero.
    update Precondition |p, own, around| {
        let earlier = p.spread * around.sum(Edges, |[other], w| w * other.temperature) / own.diagonal;
        let missing = own.missing + earlier;
        Unknown { temperature: missing, missing, earlier, ..own }
    };

    /// Takes the step that was found, turns, and sweeps backward.
    update Backward |p, own, around| {
        let Progress { stride, keep, .. } = p.globals;
        let missing = own.missing - stride * own.image;
        let direction = missing + keep * own.direction;
        let neighbors = p.spread * around.sum(Edges, |[other], w| w * other.temperature) / own.diagonal;
        let backward = direction + (neighbors - own.earlier);
        Unknown { temperature: backward, before: own.before + stride * own.backward, missing, direction, backward, ..own }
    };

    /// Sweeps forward. What later neighbors add is `backward - direction`.
    update Forward |p, own, around| {
        let rest = own.direction - own.backward;
        let neighbors = p.spread * around.sum(Edges, |[other], w| w * other.temperature) / own.diagonal;
        let earlier = neighbors + rest;
        let forward = rest + earlier;
        Unknown { temperature: forward, earlier, image: own.backward + forward, ..own }
    };

    /// Takes the last step.
    map End |p, own| {
        let temperature = own.before + p.globals.stride * own.backward;
        Unknown { temperature, before: temperature, ..own }
    };

    /// The square of the residual.
    sum Square |p, own, _| own.diagonal / p.largest_mass * own.missing * own.missing;

    /// The square of the direction in the norm of the equation.
    sum Curvature |p, own, _| own.diagonal / p.largest_mass * own.direction * own.image;

    /// The square of the residual after the next step.
    sum Next |p, own, _| {
        let missing = own.missing - p.globals.stride * own.image;
        own.diagonal / p.largest_mass * missing * missing
    };

    /// Where to start.
    scalar Start |p| {
        let zero = R::lit(0.0);
        Progress { first: p.globals.missing, stride: zero, keep: zero, ..p.globals }
    };

    /// How far to go. Where nothing is missing any more the curvature may be zero, too.
    scalar Stride |p| {
        let Progress { missing, curvature, .. } = p.globals;
        let zero = R::lit(0.0);
        Progress { stride: R::select(zero.less(curvature), missing / curvature, zero), ..p.globals }
    };

    /// How much of the direction to keep.
    scalar Turn |p| {
        let Progress { missing, next, .. } = p.globals;
        let zero = R::lit(0.0);
        Progress { keep: R::select(zero.less(missing), next / missing, zero), missing: next, ..p.globals }
    };

    /// Whether the residual is small enough.
    test Arrived[square] |p| p.globals.missing.at_most(square * p.globals.first);

    /// Keeps the temperature that the step starts from.
    map Remember |_, own| Unknown { before: own.temperature, direction: R::lit(0.0), ..own };

    /// One step of Chebyshev iteration.
    update Accelerate[keep, gain] |p, own, around| {
        let (flow, weight) =
            around.sum(Edges, |[other], w| (w * (other.temperature - own.temperature), w));
        let missing = own.mass * (own.before - own.temperature) + p.spread * flow;
        let direction = keep * own.direction + gain * missing / (own.mass + p.spread * weight);
        Unknown { temperature: own.temperature + direction, direction, ..own }
    };

    /// The integral of temperature: constant in an insulated body.
    sum Content("heat content", "K m^d") |_, own, _| own.temperature * own.mass;

    /// The coldest temperature: it never falls where all weights are positive.
    min Coldest("coldest", "K") |_, own, _| own.temperature;

    /// The hottest temperature: it never rises where all weights are positive.
    max Hottest("hottest", "K") |_, own, _| own.temperature;
}

/// Diffusion of heat by implicit steps that are solved to a tolerance, or nearly so.
#[derive(Clone)]
pub struct Implicit {
    scene: Scene,
    is_chebyshev: bool,
    pub(crate) rounds: usize,
    tolerance: f64,
}

impl Implicit {
    /// A hot spot on a mesh.
    ///
    /// # Errors
    /// A mesh without a Laplacian, a method of [`Heat`], or conjugate gradients under an order that does not sweep in place.
    pub fn with(mesh: &Mesh, options: &HeatOptions, order: Order) -> Result<Implicit> {
        let is_chebyshev = match options.method {
            Method::Chebyshev => true,
            Method::ConjugateGradients if order.key == Key::Jacobi => {
                bail!(
                    "method=cg solves by sweeps in place, which order jacobi has not: take another order, or method=chebyshev"
                )
            }
            Method::ConjugateGradients => false,
            Method::Relaxation | Method::Explicit => bail!("{:?} is a method of `Heat`", options.method),
        };
        Ok(Implicit { scene: options.scene(mesh)?, is_chebyshev, rounds: options.rounds, tolerance: options.tolerance })
    }

    fn conjugate_gradients(&self, stages: &mut Stages<Self>) {
        stages.jacobi(Begin, 1);
        stages.sweep(Precondition, 1);
        stages.reduce(Square, |g| &mut g.missing);
        stages.scalar(Start);
        stages.until(Arrived { square: self.tolerance * self.tolerance }, self.rounds, |stages| {
            stages.sweep_backward(Backward, 1);
            stages.sweep(Forward, 1);
            stages.reduce(Curvature, |g| &mut g.curvature);
            stages.scalar(Stride);
            stages.reduce(Next, |g| &mut g.next);
            stages.scalar(Turn);
        });
        stages.map(End);
    }

    /// Saad, Iterative Methods for Sparse Linear Systems, 2003, algorithm 12.1, for eigenvalues from `1 - radius` to `1 + radius`.
    fn chebyshev(&self, stages: &mut Stages<Self>) {
        let radius = self.scene.jacobi_radius();
        stages.map(Remember);
        let (mut keep, mut gain, mut ratio) = (0.0, 1.0, radius);
        for _ in 0..self.rounds {
            stages.jacobi(Accelerate { keep, gain }, 1);
            let next = 1.0 / (2.0 / radius - ratio);
            (keep, gain, ratio) = (next * ratio, 2.0 * next / radius, next);
        }
    }
}

impl Program for Implicit {
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

    fn initial(&self, mesh: &Mesh, v: u32) -> Unknown<f64> {
        let temperature = self.scene.temperature(mesh, v);
        let [diagonal, missing, direction, backward, earlier, image] = [0.0; 6];
        let (mass, before) = (self.scene.mass(v), temperature);
        Unknown { temperature, mass, before, diagonal, missing, direction, backward, earlier, image }
    }

    /// A vertex without cells has no mass: it keeps its temperature.
    fn fixed(&self, _mesh: &Mesh, v: u32) -> bool {
        self.scene.mass(v) <= 0.0
    }

    fn step(&self, stages: &mut Stages<Self>) {
        if self.is_chebyshev { self.chebyshev(stages) } else { self.conjugate_gradients(stages) }
    }
}

impl Example for Implicit {
    const INFO: Info = Heat::INFO;

    fn new(mesh: &mut Mesh, settings: &Settings, order: Order) -> Result<Implicit> {
        Implicit::with(mesh, &HeatOptions::from(settings), order)
    }

    fn runs(settings: &Settings) -> bool {
        matches!(settings.choice("method"), "cg" | "chebyshev")
    }

    const LIVE: &'static [&'static str] = &["diffusivity", "dt", "tolerance"];

    fn change(&mut self, settings: &Settings, _order: Order) -> Result<()> {
        let options = HeatOptions::from(settings);
        self.scene.tune(options.diffusivity, options.step());
        self.tolerance = options.tolerance;
        Ok(())
    }

    fn look(&self) -> Look {
        super::look()
    }

    fn checks() -> Result<Vec<Check>> {
        super::checks::run()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Missing;
    use super::*;
    use meshweft::Simulation;
    use meshweft_mesh::generate::generate;

    fn options(method: Method, mesh: &Mesh, rounds: usize, tolerance: f64) -> HeatOptions {
        let usual = HeatOptions::default();
        let dt = 50.0 * meshweft_mesh::Laplacian::of(mesh).unwrap().explicit_limit() / usual.diffusivity;
        HeatOptions { method, dt: Some(dt), rounds, tolerance, cold: 0.0, ..usual }
    }

    /// What the temperatures after a step are off by, over what those before it were.
    fn left(mesh: &Mesh, temperatures: &[f64]) -> f64 {
        let heat = Heat::with(mesh, &options(Method::Relaxation, mesh, 1, 0.0)).unwrap();
        let mut heat = Simulation::builder(mesh.clone(), heat).precision::<f64>().build().unwrap();
        let first = heat.measure(Missing).unwrap();
        heat.set_field("temperature", temperatures).unwrap();
        (heat.measure(Missing).unwrap() / first).sqrt()
    }

    /// The step, and the temperatures after it.
    fn solve(mesh: &Mesh, options: &HeatOptions, order: Order) -> (Simulation<Implicit, f64>, Vec<f64>) {
        let program = Implicit::with(mesh, options, order).unwrap();
        let mut run = Simulation::builder(mesh.clone(), program).order(order).precision::<f64>().build().unwrap();
        run.step().unwrap();
        let temperatures = run.field("temperature").unwrap().values;
        (run, temperatures)
    }

    #[test]
    fn conjugate_gradients_solve_to_the_tolerance_under_every_order_in_place() {
        for spec in ["box:7", "torus:24x14", "random:300"] {
            let mesh = generate(spec, 3).unwrap();
            let options = options(Method::ConjugateGradients, &mesh, 100, 1e-11);
            for order in Order::ALL.map(|order| order.resolved(64)).into_iter().filter(|&order| order != Order::JACOBI)
            {
                let (run, temperatures) = solve(&mesh, &options, order);
                let left = left(&mesh, &temperatures);
                assert!(left < 1e-10 && run.rounds() < 90, "{spec} {order}: {left:e} after {} sweeps", run.rounds());
            }
            let error = Implicit::with(&mesh, &options, Order::JACOBI).err().unwrap().to_string();
            assert!(error.contains("method=chebyshev"), "{error}");
        }
    }

    #[test]
    fn a_body_of_one_temperature_stays_as_it_is() {
        let mesh = generate("box:4", 1).unwrap();
        let program = Implicit::with(&mesh, &options(Method::ConjugateGradients, &mesh, 9, 1e-6), Order::default());
        let mut run = Simulation::builder(mesh, program.unwrap()).build().unwrap();
        let even = vec![7.0; 64];
        run.set_field("temperature", &even).unwrap();
        run.step().unwrap();
        assert_eq!((run.field("temperature").unwrap().values, run.rounds()), (even, 2));
    }

    #[test]
    fn over_relaxation_and_chebyshev_iteration_come_to_the_same_in_fewer_sweeps_than_gauss_seidel() {
        let mesh = generate("box:10", 3).unwrap();
        let usual = |method, rounds| options(method, &mesh, rounds, 0.0);
        let relaxed = |factor| {
            let heat = Heat::with(&mesh, &HeatOptions { factor, ..usual(Method::Relaxation, 30) }).unwrap();
            let mut run = Simulation::builder(mesh.clone(), heat).precision::<f64>().build().unwrap();
            run.step().unwrap();
            left(&mesh, &run.field("temperature").unwrap().values)
        };
        let chebyshev = |rounds| left(&mesh, &solve(&mesh, &usual(Method::Chebyshev, rounds), Order::default()).1);
        let [plain, over] = [Some(1.0), None].map(relaxed);
        assert!(over < 1e-4 && plain > 50.0 * over, "{plain:e} and {over:e}");
        assert!(chebyshev(30) < plain && chebyshev(120) < 1e-9, "{:e}, {:e}", chebyshev(30), chebyshev(120));
    }
}
