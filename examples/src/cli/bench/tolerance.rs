//! Time to tolerance: what a round is worth, beside what it costs.
//!
//! The problem is one implicit Euler step of heat on the mesh, [`STIFFNESS`] times as long as an explicit one could be:
//! `(m + s Σw) T = m b + s Σ w T_neighbor` at every vertex. Each order starts from `T = b`, and rounds are counted until
//! the residual's root mean square is [`TOLERANCE`] of the first. Then the same number of rounds is run again from the
//! same start in one go and timed, and must end with the same bits. [`Order::JACOBI`] is the double-buffered control.

use super::plot::Series;
use anyhow::{Result, bail};
use meshweft::{Backend, Order, Program, Real, Simulation, Stages, Stars, kernels, record, stars, vertex};
use meshweft_mesh::{Laplacian, Mesh};
use std::time::Instant;

/// The time step over the largest of explicit Euler. 50 is a step that only an implicit method can take.
pub(super) const STIFFNESS: f64 = 50.0;
/// The residual, over the first, at which a run has arrived.
pub(super) const TOLERANCE: f64 = 1e-3;
/// Rounds after which a run is given up.
const MOST: usize = 5_000;
/// Timed runs, of which the median counts.
const REPEATS: usize = 3;

/// How one order arrived.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) order: Order,
    pub(super) threads: usize,
    /// Rounds to the tolerance; `None` if it was not reached.
    pub(super) rounds: Option<usize>,
    /// Seconds that these rounds took.
    pub(super) seconds: f64,
    /// The residual over the first after each round, from 1.
    pub(super) residuals: Vec<f64>,
}

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
        /// Temperature above that far from the hot spot, K.
        shared temperature: R,
        /// Temperature at the start of the step, K.
        before: R,
        /// Lumped mass, m³.
        mass: R,
    }
}

stars! {
    /// Edges with their finite-element weight.
    Edges[1]: R;
}

/// One implicit step.
struct Implicit {
    laplacian: Laplacian,
    spread: f64,
    /// Center and radius of the hot spot, m.
    spot: ([f64; 3], f64),
    rounds: usize,
}

kernels! {
    for Implicit: Node, Parameters;

    /// The temperature that solves the equation of this vertex.
    update Relax |p, own, around| {
        let (flow, weight) = around.sum(Edges, |[other], w| (w * other.temperature, w));
        Node { temperature: (own.mass * own.before + p.spread * flow) / (own.mass + p.spread * weight), ..own }
    };

    /// The square of what is missing in the equation of the vertex.
    sum Missing |p, own, around| {
        let flow = around.sum(Edges, |[other], w| w * (other.temperature - own.temperature));
        let missing = own.mass * (own.before - own.temperature) + p.spread * flow;
        missing * missing
    };
}

impl Program for Implicit {
    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { spread: self.spread }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let weights = self.laplacian.weights.clone();
        stars.add(Edges, self.laplacian.edges.clone(), move |i| weights[i.element]);
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let (center, radius) = self.spot;
        let place = mesh.points()[v as usize];
        let distance = (0..3).map(|k| ((place[k] - center[k]) / radius).powi(2)).sum::<f64>();
        let temperature = Real::exp(-distance / 2.0);
        Node { temperature, before: temperature, mass: self.laplacian.masses[v as usize] }
    }

    /// A vertex without cells has no mass: it keeps its temperature.
    fn fixed(&self, _mesh: &Mesh, v: u32) -> bool {
        self.laplacian.masses[v as usize] <= 0.0
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Relax, self.rounds);
    }
}

/// Runs one order to the tolerance, in 32 bits.
pub(super) fn arrive(mesh: &Mesh, order: Order, threads: usize) -> Result<Arrival> {
    let mut laplacian = Laplacian::of(mesh)?;
    // Masses of about one, so that squares of residuals stay in the range of 32 bits on any mesh.
    let mean = laplacian.masses.iter().sum::<f64>() / laplacian.masses.len() as f64;
    laplacian.masses.iter_mut().chain(&mut laplacian.weights).for_each(|x| *x /= mean);
    let spread = STIFFNESS * laplacian.explicit_limit();
    // A hot spot in one corner, as wide as that of `heat`.
    let [low, high] = mesh.bounds();
    let extent = (0..3).map(|k| high[k] - low[k]).fold(f64::MIN_POSITIVE, f64::max);
    let program = Implicit { laplacian, spread, spot: (high, 0.22 * extent), rounds: 1 };
    let builder = Simulation::builder(mesh.clone(), program).order(order).backend(Backend::Cpu { threads });
    let mut run = builder.build()?;
    let start = run.field("temperature")?.values;
    let missing = |run: &mut Simulation<Implicit>| -> Result<f64> { Ok(run.measure(Missing)?.sqrt()) };
    let first = missing(&mut run)?;
    let mut residuals = vec![1.0];
    let mut last = 1.0;
    while last > TOLERANCE && last < 1e3 && residuals.len() <= MOST {
        run.step()?;
        last = missing(&mut run)? / first;
        residuals.push(last);
    }
    let (rounds, digest) = (residuals.len() - 1, run.digest()?);
    run.program_mut().rounds = rounds;
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        run.set_field("temperature", &start)?;
        let clock = Instant::now();
        run.step()?;
        times.push(clock.elapsed().as_secs_f64());
        if run.digest()? != digest {
            bail!("{rounds} rounds of {order} at once differ from as many one by one");
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    let arrived = last <= TOLERANCE;
    Ok(Arrival {
        order,
        threads: run.threads(),
        rounds: arrived.then_some(rounds),
        seconds: times[REPEATS / 2],
        residuals,
    })
}

impl Arrival {
    /// The residual over the time, in milliseconds. At most 200 points: no plot shows more.
    pub(super) fn series(&self, color: usize) -> Series {
        let rounds = (self.residuals.len() - 1).max(1);
        let every = rounds.div_ceil(200);
        let point = |i: usize| [1e3 * self.seconds * i as f64 / rounds as f64, self.residuals[i]];
        let shown = |i: &usize| i.is_multiple_of(every) || *i + 1 == self.residuals.len();
        let points = (0..self.residuals.len()).filter(shown).map(point).collect();
        let name = self.order.key.name().to_string();
        Series { name, color, dashed: self.order == Order::JACOBI, dots: false, points }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::generate::generate;

    #[test]
    fn sweeps_in_place_need_fewer_rounds_than_jacobi() {
        let mesh = generate("box:8", 1).unwrap();
        let rounds = |order| arrive(&mesh, order, 2).unwrap().rounds.unwrap();
        let jacobi = rounds(Order::JACOBI);
        for order in Order::ALL.into_iter().filter(|&order| order != Order::JACOBI) {
            let in_place = rounds(order);
            assert!(2 <= in_place && 4 * in_place < 3 * jacobi, "{order}: {in_place} rounds, jacobi {jacobi}");
        }
    }
}
