//! Shares that follow what hosts turn out to do.
//!
//! Nobody knows beforehand how much quicker a GPU is than the cores beside it: for that kernel, on that mesh, beside whatever else runs.
//! So shares are handed out again when hosts have been busy for very different times. The host that was busiest sets the pace of all
//! (the makespan of Gharaibeh et al. 2012): work is divided in proportion to the rates that were met, its share over its busy time.

use super::driver::Driver;
use crate::error::Result;
use crate::layout::State;
use crate::model::LEAST;
use crate::number::Number;
use std::time::{Duration, Instant};

/// How long shares are watched first: shorter than that, a step that started late would count.
#[cfg(not(test))]
const FIRST: Duration = Duration::from_millis(300);
/// Tests hand out again whenever they can.
#[cfg(test)]
const FIRST: Duration = Duration::ZERO;
/// Shares stay at least so many times as long as it took to hand them out.
const WORTH: u32 = 10;
/// What a correction must save of the time of a step, at least.
const GAIN: f64 = 0.05;

/// Starts other workers with shares of these weights, from a state and globals.
pub(super) type Restart<T> = Box<dyn Fn(&[f64], State<T>, &[T]) -> Result<Driver<T>> + Send + Sync>;

/// When to hand out shares again, and how.
pub(super) struct Balance<T: Number> {
    restart: Restart<T>,
    /// What each host has of the whole; all together 1.
    weights: Vec<f64>,
    since: Instant,
    /// How long to wait.
    wait: Duration,
}

impl<T: Number> Balance<T> {
    pub(super) fn new(weights: &[f64], restart: Restart<T>) -> Balance<T> {
        let all: f64 = weights.iter().sum();
        let weights = weights.iter().map(|weight| weight / all).collect();
        Balance { restart, weights, since: Instant::now(), wait: FIRST }
    }

    pub(super) fn is_due(&self) -> bool {
        self.since.elapsed() >= self.wait
    }

    /// Other workers, if that is worth it. `busy`: seconds that each host has worked since they were handed out; `now`: state and globals.
    ///
    /// # Errors
    /// A worker that cannot be started.
    pub(super) fn correct(
        &mut self,
        busy: &[f64],
        now: impl FnOnce() -> Result<(State<T>, Vec<T>)>,
    ) -> Result<Option<Driver<T>>> {
        let start = Instant::now();
        let Some(weights) = corrected(&self.weights, busy) else {
            (self.since, self.wait) = (start, self.wait * 2);
            return Ok(None);
        };
        let (state, globals) = now()?;
        let driver = (self.restart)(&weights, state, &globals)?;
        #[cfg(test)]
        tests::CORRECTIONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (self.weights, self.since) = (weights, Instant::now());
        self.wait = FIRST.max(WORTH * start.elapsed() * u32::from(!cfg!(test)));
        Ok(Some(driver))
    }
}

/// Better weights than these, by how long each host was busy with its part; none if that would hardly change how long the busiest takes.
fn corrected(weights: &[f64], busy: &[f64]) -> Option<Vec<f64>> {
    let longest = busy.iter().copied().fold(0.0, f64::max);
    if !busy.iter().all(|&seconds| seconds > 0.0) {
        return None;
    }
    let rates: Vec<f64> = weights.iter().zip(busy).map(|(weight, seconds)| weight / seconds).collect();
    let all: f64 = rates.iter().sum();
    let wanted: Vec<f64> = rates.iter().map(|rate| (rate / all).max(LEAST)).collect();
    let sum: f64 = wanted.iter().sum();
    let weights: Vec<f64> = wanted.iter().map(|weight| weight / sum).collect();
    let makespan = weights.iter().zip(&rates).map(|(weight, rate)| weight / rate).fold(0.0, f64::max);
    (makespan < (1.0 - GAIN) * longest).then_some(weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::generate::generate;
    use crate::{Backend, Cluster, Integer, Mesh, Program, Simulation, Stages, Stars, kernels, record, stars, vertex};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Shares that were handed out again in all tests of this process.
    pub(super) static CORRECTIONS: AtomicU64 = AtomicU64::new(0);

    vertex! { struct Heat<R> { shared heat: R, count: R::Int } }
    record! { struct Found<R> { sum: R } }
    stars! { Edges[1]; }
    struct Mean;
    kernels! {
        for Mean: Heat, (), Found;
        update Next |p, own, around| Heat {
            heat: (own.heat + around.sum(Edges, |[other], ()| other.heat)) * R::lit(0.125) + p.globals.sum * R::lit(1e-6),
            count: own.count + R::Int::lit(1),
        };
        sum Sum |_, own, _| own.heat;
    }
    impl Program for Mean {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> crate::Result<()> {
            stars.add(Edges, mesh.edges(), |_| ());
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Heat<f64> {
            Heat { heat: f64::from(v % 17), count: crate::Int(0) }
        }
        fn globals(&self) -> Found<f64> {
            Found { sum: 1.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Next, 2);
            stages.reduce(Sum, |found| &mut found.sum);
        }
    }

    #[test]
    fn handing_out_shares_again_changes_no_bit_and_forgets_no_round() {
        let start =
            |backend| Simulation::builder(generate("sheet:60", 1).unwrap(), Mean).backend(backend).build().unwrap();
        let before = CORRECTIONS.load(Ordering::Relaxed);
        let mut shared = start(Backend::Cluster(Cluster::inside(3).unwrap().balanced()));
        let mut alone = start(Backend::Serial);
        for round in 0..6 {
            (0..5).try_for_each(|_| shared.step()).unwrap();
            (0..5).try_for_each(|_| alone.step()).unwrap();
            assert_eq!((shared.digest().unwrap(), shared.rounds()), (alone.digest().unwrap(), alone.rounds()));
            assert_eq!(shared.globals().unwrap().sum.to_bits(), alone.globals().unwrap().sum.to_bits());
            for simulation in [&mut shared, &mut alone] {
                let vertex = simulation.vertex(7).unwrap();
                simulation.set_vertex(7, Heat { heat: round as f32, ..vertex }).unwrap();
            }
        }
        assert!(CORRECTIONS.load(Ordering::Relaxed) > before, "three threads were always equally busy");
    }

    fn check(weights: [f64; 2], busy: [f64; 2], expected: Option<[f64; 2]>) {
        let found = corrected(&weights, &busy);
        assert_eq!(found.is_some(), expected.is_some(), "{weights:?} {busy:?} {found:?}");
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }

    #[test]
    fn work_goes_where_it_is_done_quickest() {
        // Half each, one three times as quick: it gets three quarters.
        check([0.5, 0.5], [1.0, 3.0], Some([0.75, 0.25]));
        check([0.75, 0.25], [2.0, 2.0], None);
        // Four in a hundred are not worth it, eight are.
        check([0.5, 0.5], [1.0, 1.08], None);
        check([0.5, 0.5], [1.0, 1.2], Some([6.0 / 11.0, 5.0 / 11.0]));
        // Who is a thousand times as slow keeps a little.
        let quick = 1000.0 / 1001.0;
        check([0.5, 0.5], [0.001, 1.0], Some([quick / (quick + LEAST), LEAST / (quick + LEAST)]));
        // Nothing is known of one that has not begun.
        check([0.5, 0.5], [0.0, 1.0], None);
    }
}
