//! Time to tolerance: what a round is worth, beside what it costs.
//!
//! The problem is one implicit Euler step of heat on the mesh, [`STIFFNESS`] times as long as an explicit one could be. Orders are compared by
//! Gauss–Seidel, and methods in the usual order. A run is always a step of so many rounds from the same start; the least number of them after
//! which the residual's root mean square is small enough is found by doubling and halving, then that step is timed, and must end with
//! the same bits each time. The residual is that of the stored temperatures, computed in 64 bits.

use crate::heat::{Heat, HeatOptions, Implicit, Method, Missing};
use anyhow::{Result, bail};
use meshweft::{Backend, Number, Order, Program, Simulation};
use meshweft_command::Precision;
use meshweft_mesh::{Laplacian, Mesh};
use meshweft_picture::plot::{Join, Series};
use std::collections::BTreeMap;
use std::time::Instant;

/// The time step over the largest of explicit Euler. 50 is a step that only an implicit method can take.
pub(super) const STIFFNESS: f64 = 50.0;
/// Residuals, over the first, at which a run has arrived.
pub(super) const TOLERANCES: [f64; 2] = [1e-3, 1e-6];
/// Rounds after which a run is given up.
const MOST: usize = 1 << 12;
/// Twice the rounds that leave more than this share of the residual find no more: rounding is all that is left.
const STUCK: f64 = 0.7;
/// Timed runs, of which the median counts.
const REPEATS: usize = 3;

/// One way to solve the step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) order: Order,
    pub(super) precision: Precision,
    method: Method,
    factor: Option<f64>,
}

/// All of them, those that are shown by order first.
pub(super) fn ways() -> Vec<Way> {
    let usual = (Order::default(), Precision::F32);
    let relaxation = |(order, precision)| Way {
        name: GAUSS_SEIDEL,
        order,
        precision,
        method: Method::Relaxation,
        factor: Some(1.0),
    };
    let mut all: Vec<Way> = Order::ALL.map(|order| relaxation((order, usual.1))).to_vec();
    for precision in [Precision::F32, Precision::F64] {
        let sweeps = relaxation((usual.0, precision));
        if precision != usual.1 {
            all.push(sweeps);
        }
        all.push(Way { name: "over-relaxation", factor: None, ..sweeps });
        all.push(Way { name: "Chebyshev", method: Method::Chebyshev, ..sweeps });
        all.push(Way { name: "conjugate gradients", method: Method::ConjugateGradients, ..sweeps });
    }
    all
}

/// What orders are compared by.
pub(super) const GAUSS_SEIDEL: &str = "Gauss–Seidel";

/// How one way arrived.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) way: Way,
    pub(super) threads: usize,
    /// For each of the [`TOLERANCES`] that was reached, the rounds and seconds that it took.
    pub(super) reached: [Option<(usize, f64)>; 2],
    /// The residual over the first after some numbers of rounds.
    residuals: BTreeMap<usize, f64>,
    /// Seconds of a round.
    pub(super) round_s: f64,
}

/// The step, and what judges a solution of it.
pub(super) struct Problem<'a> {
    mesh: &'a Mesh,
    options: HeatOptions,
    judge: Simulation<Heat, f64>,
    first: f64,
}

/// A program that solves the step by so many rounds.
trait Solver: Program + Clone {
    fn set_rounds(&mut self, rounds: usize);
}

impl Solver for Heat {
    fn set_rounds(&mut self, rounds: usize) {
        self.rounds = rounds;
    }
}

impl Solver for Implicit {
    fn set_rounds(&mut self, rounds: usize) {
        self.rounds = rounds;
    }
}

impl<'a> Problem<'a> {
    /// # Errors
    /// A mesh without a Laplacian.
    pub(super) fn new(mesh: &'a Mesh) -> Result<Problem<'a>> {
        let usual = HeatOptions::default();
        let dt = STIFFNESS * Laplacian::of(mesh)?.explicit_limit() / usual.diffusivity;
        // Temperatures above those far from the spot, so that 32 bits are not spent on what is the same everywhere.
        let options = HeatOptions { dt: Some(dt), cold: 0.0, tolerance: 0.0, factor: Some(1.0), ..usual };
        let judge = Simulation::builder(mesh.clone(), Heat::with(mesh, &options)?).precision::<f64>();
        let mut judge = judge.build()?;
        let first = judge.measure(Missing)?.sqrt();
        Ok(Problem { mesh, options, judge, first })
    }

    /// Solves it one way, on each of some numbers of threads.
    ///
    /// # Errors
    /// A run that fails, or whose bits differ from one to the next.
    pub(super) fn arrive(&mut self, way: Way, threads: &[usize]) -> Result<Vec<Arrival>> {
        let options = HeatOptions { method: way.method, factor: way.factor, ..self.options.clone() };
        let heat = || Heat::with(self.mesh, &options);
        let implicit = || Implicit::with(self.mesh, &options, way.order);
        match (way.method, way.precision) {
            (Method::Relaxation | Method::Explicit, Precision::F32) => self.by::<_, f32>(heat()?, way, threads),
            (Method::Relaxation | Method::Explicit, Precision::F64) => self.by::<_, f64>(heat()?, way, threads),
            (_, Precision::F32) => self.by::<_, f32>(implicit()?, way, threads),
            (_, Precision::F64) => self.by::<_, f64>(implicit()?, way, threads),
        }
    }

    fn by<P: Solver, T: Number>(&mut self, program: P, way: Way, threads: &[usize]) -> Result<Vec<Arrival>> {
        let build = |threads| {
            let builder = Simulation::builder(self.mesh.clone(), program.clone()).precision::<T>();
            Solve::new(builder.order(way.order).backend(Backend::Cpu { threads }).build()?)
        };
        let all = threads.iter().copied().max().unwrap_or(1);
        let mut solve = build(all)?;
        let mut residuals = BTreeMap::from([(0, 1.0)]);
        let found = TOLERANCES.map(|tolerance| self.least(&mut solve, tolerance, &mut residuals));
        drop(solve);
        let found = found.into_iter().collect::<Result<Vec<_>>>()?;
        let arrive = |&threads| {
            let mut solve = build(threads)?;
            let mut reached = [None; 2];
            for (reached, rounds) in reached.iter_mut().zip(&found) {
                *reached = rounds.map(|rounds| Ok::<_, anyhow::Error>((rounds, solve.time(rounds)?))).transpose()?;
            }
            let rounds = 16;
            let round_s = solve.time(rounds)? / rounds as f64;
            Ok(Arrival { way, threads, reached, residuals: residuals.clone(), round_s })
        };
        threads.iter().map(arrive).collect()
    }

    /// The least number of rounds that leave at most so much of the residual; none if it is not reached.
    fn least<P: Solver, T: Number>(
        &mut self,
        solve: &mut Solve<P, T>,
        tolerance: f64,
        residuals: &mut BTreeMap<usize, f64>,
    ) -> Result<Option<usize>> {
        let mut left = |rounds: usize| -> Result<f64> {
            if let Some(&left) = residuals.get(&rounds) {
                return Ok(left);
            }
            solve.step(rounds)?;
            self.judge.set_field("temperature", &solve.run.field("temperature")?.values)?;
            let left = self.judge.measure(Missing)?.sqrt() / self.first;
            residuals.insert(rounds, left);
            Ok(left)
        };
        let (mut low, mut high) = (0, 1);
        while left(high)? > tolerance {
            if 2 * high > MOST || high > 8 && left(2 * high)? > STUCK * left(high)? {
                return Ok(None);
            }
            (low, high) = (high, 2 * high);
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            if left(middle)? > tolerance { low = middle } else { high = middle }
        }
        Ok(Some(high))
    }
}

/// A simulation that solves the same step over and over.
struct Solve<P: Program, T: Number> {
    run: Simulation<P, T>,
    start: Vec<f64>,
}

impl<P: Solver, T: Number> Solve<P, T> {
    fn new(run: Simulation<P, T>) -> Result<Solve<P, T>> {
        let start = run.field("temperature")?.values;
        Ok(Solve { run, start })
    }

    /// Solves by so many rounds, and tells the seconds.
    fn step(&mut self, rounds: usize) -> Result<f64> {
        self.run.program_mut().set_rounds(rounds);
        self.run.set_field("temperature", &self.start)?;
        let clock = Instant::now();
        self.run.step()?;
        Ok(clock.elapsed().as_secs_f64())
    }

    /// The median of several times.
    fn time(&mut self, rounds: usize) -> Result<f64> {
        let mut runs = Vec::new();
        for _ in 0..REPEATS {
            let time = self.step(rounds)?;
            let temperatures = self.run.field("temperature")?.values;
            runs.push((time, temperatures.iter().map(|t| t.to_bits()).collect::<Vec<_>>()));
        }
        if runs.iter().any(|run| run.1 != runs[0].1) {
            bail!("{rounds} rounds differ from as many from the same start");
        }
        runs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Ok(runs[REPEATS / 2].0)
    }
}

impl Arrival {
    /// The residual over the time, in milliseconds.
    pub(super) fn series(&self, name: &str, color: usize) -> Series {
        let point = |(&rounds, &residual): (&usize, &f64)| [1e3 * self.round_s * rounds as f64, residual];
        let points = self.residuals.iter().map(point).collect();
        let join = if self.way.order == Order::JACOBI { Join::Dashes } else { Join::Line };
        Series { name: name.to_string(), color, join, dots: true, points }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::generate::generate;

    #[test]
    fn sweeps_in_place_need_fewer_rounds_than_jacobi_and_better_methods_fewer_still() {
        let mesh = generate("box:8", 1).unwrap();
        let mut problem = Problem::new(&mesh).unwrap();
        let mut rounds = |way: &Way| problem.arrive(*way, &[2]).unwrap()[0].reached.map(|reached| Some(reached?.0));
        let ways = ways();
        let jacobi = rounds(ways.iter().find(|way| way.order == Order::JACOBI).unwrap())[0].unwrap();
        for way in ways.iter().filter(|way| way.order != Order::JACOBI) {
            let [rough, fine] = rounds(way);
            let rough = rough.unwrap();
            let most = if way.name == "conjugate gradients" { jacobi / 4 } else { 3 * jacobi / 4 };
            assert!(2 <= rough && rough < most, "{way:?}: {rough} rounds, jacobi {jacobi}");
            // 32 bits need not hold so fine a solution.
            assert!(way.precision == Precision::F32 || fine.unwrap() > rough, "{way:?}: {rough} and {fine:?} rounds");
        }
    }
}
