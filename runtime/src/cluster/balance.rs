//! Shares that follow what hosts turn out to do.
//!
//! It is not known beforehand how much quicker a GPU is than the cores beside it: for that kernel, on that mesh, beside whatever
//! else runs. So shares are handed out again when hosts have been busy for very different times. The host that was busiest
//! sets the pace of all (the makespan of Gharaibeh et al. 2012): work is divided in proportion to the rates that were met,
//! its share over its busy time.
//!
//! A GPU gets no more than it holds. Part of that is known beforehand, as the largest array that it takes; the rest is found
//! out when it refuses a share: then it gets half of that.

use crate::error::{Error, Result};
use meshweft_model::LEAST_SHARE;
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

/// When to hand out shares again, and how large.
pub(super) struct Balance {
    /// What each host has of the whole; all together 1.
    weights: Vec<f64>,
    /// What each GPU can have of the whole at most; of cores none.
    most: Vec<Option<f64>>,
    since: Instant,
    /// How long to wait.
    wait: Duration,
}

impl Balance {
    pub(super) fn new(weights: &[f64], most: Vec<Option<f64>>) -> Balance {
        let all: f64 = weights.iter().sum();
        let weights = weights.iter().map(|weight| weight / all).collect();
        Balance { weights, most, since: Instant::now(), wait: FIRST }
    }

    /// What each host has of the whole.
    pub(super) fn weights(&self) -> Vec<f64> {
        self.weights.clone()
    }

    /// What each GPU can have of the whole at most, as far as that is known.
    pub(super) fn most(&self) -> &[Option<f64>] {
        &self.most
    }

    /// Hands out parts of these weights, or less to GPUs that refuse theirs. `start`: starts hosts with parts of some weights.
    ///
    /// # Errors
    /// Hosts that cannot be started; a GPU that refuses all but a hundredth of the mesh.
    pub(super) fn hand_out<D>(&mut self, weights: Vec<f64>, mut start: impl FnMut(&[f64]) -> Result<D>) -> Result<D> {
        self.weights = within(weights, &self.most);
        loop {
            match start(&self.weights) {
                Err(Error::TooLarge(why)) => {
                    let bounds = self.most.iter_mut().zip(&self.weights);
                    bounds.for_each(|(most, weight)| *most = most.map(|most| 0.5 * most.min(*weight)));
                    if self.most.iter().flatten().any(|&most| most < LEAST_SHARE) {
                        return Err(Error::TooLarge(why));
                    }
                    self.weights = within(self.weights.clone(), &self.most);
                }
                other => return other,
            }
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.since.elapsed() >= self.wait
    }

    /// Better weights, if they are worth handing out shares again. `busy`: seconds that each host has worked since that was done.
    pub(super) fn correct(&mut self, busy: &[f64]) -> Option<Vec<f64>> {
        self.since = Instant::now();
        let weights = corrected(&self.weights, busy, &self.most);
        if weights.is_none() {
            self.wait *= 2;
        }
        weights
    }

    /// Shares of corrected weights are with their hosts.
    pub(super) fn settle(&mut self) {
        #[cfg(test)]
        tests::CORRECTIONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.wait = FIRST.max(WORTH * self.since.elapsed() * u32::from(!cfg!(test)));
        self.since = Instant::now();
    }
}

/// Better weights than these, by how long each host was busy with its part and what it can have at most; none if that would
/// hardly change how long the busiest takes.
fn corrected(weights: &[f64], busy: &[f64], most: &[Option<f64>]) -> Option<Vec<f64>> {
    let longest = busy.iter().copied().fold(0.0, f64::max);
    if !busy.iter().all(|&seconds| seconds > 0.0) {
        return None;
    }
    let rates: Vec<f64> = weights.iter().zip(busy).map(|(weight, seconds)| weight / seconds).collect();
    let all: f64 = rates.iter().sum();
    let wanted: Vec<f64> = rates.iter().map(|rate| (rate / all).max(LEAST_SHARE)).collect();
    let sum: f64 = wanted.iter().sum();
    let weights = within(wanted.iter().map(|weight| weight / sum).collect(), most);
    let makespan = weights.iter().zip(&rates).map(|(weight, rate)| weight / rate).fold(0.0, f64::max);
    (makespan < (1.0 - GAIN) * longest).then_some(weights)
}

/// Weights of which none is more than a host can have: the others get what that leaves, in proportion. Where all together can
/// have less than the whole, those who must not have more do.
fn within(mut weights: Vec<f64>, most: &[Option<f64>]) -> Vec<f64> {
    // A host that gets more may then have too much, so as often as there are hosts.
    for _ in 0..most.len() {
        let is_full = |i: usize| most[i].is_some_and(|most| weights[i] >= most);
        let (full, others): (Vec<usize>, Vec<usize>) = (0..weights.len()).partition(|&i| is_full(i));
        let room: f64 = others.iter().map(|&i| weights[i]).sum();
        if room <= 0.0 {
            break;
        }
        full.iter().for_each(|&i| weights[i] = most[i].unwrap_or(1.0));
        let left = 1.0 - full.iter().map(|&i| weights[i]).sum::<f64>();
        others.iter().for_each(|&i| weights[i] *= left / room);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::Cut;
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

    #[test]
    fn a_balanced_cluster_refuses_a_cut_that_it_would_not_follow() {
        let build = |cluster: Cluster| {
            let mesh = generate("sheet:10", 1).unwrap();
            Simulation::builder(mesh, Mean).backend(Backend::Cluster(cluster)).build().map(drop)
        };
        let balanced = || Cluster::inside(2).unwrap().balanced();
        for cut in [Cut::Bisection, Cut::Grid(None)] {
            for cluster in [balanced().cut(cut), Cluster::inside(2).unwrap().cut(cut).balanced()] {
                let why = build(cluster).unwrap_err().to_string();
                let names = ["balanced", "curve", "leave out `cut`", &cut.to_string()];
                assert!(names.iter().all(|name| why.contains(name)), "{why}");
            }
        }
        build(balanced()).unwrap();
        build(balanced().cut(Cut::Curve)).unwrap();
    }

    fn check(weights: [f64; 2], busy: [f64; 2], expected: Option<[f64; 2]>) {
        let found = corrected(&weights, &busy, &[None, None]);
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
        check([0.5, 0.5], [0.001, 1.0], Some([quick / (quick + LEAST_SHARE), LEAST_SHARE / (quick + LEAST_SHARE)]));
        // Nothing is known of one that has not begun.
        check([0.5, 0.5], [0.0, 1.0], None);
    }

    #[test]
    fn nobody_gets_more_than_it_can_have() {
        let near = |found: Vec<f64>, expected: &[f64]| {
            let is_near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9);
            assert!(is_near && found.len() == expected.len(), "{found:?} {expected:?}");
        };
        near(within(vec![0.2, 0.8], &[None, Some(1.0)]), &[0.2, 0.8]);
        near(within(vec![0.2, 0.8], &[None, Some(0.3)]), &[0.7, 0.3]);
        // What the second may not have would be too much for the third.
        near(within(vec![0.2, 0.6, 0.2], &[None, Some(0.1), Some(0.25)]), &[0.65, 0.1, 0.25]);
        near(within(vec![0.5, 0.5], &[Some(0.2), Some(0.2)]), &[0.5, 0.5]);
        // A GPU that has all that it can have gets no more, however quick it is, and nothing is handed out for it.
        assert_eq!(corrected(&[0.7, 0.3], &[1.0, 0.1], &[None, Some(0.3)]), None);
        near(corrected(&[0.7, 0.3], &[1.0, 0.1], &[None, Some(0.5)]).unwrap(), &[0.5, 0.5]);
    }

    #[cfg(feature = "gpu")]
    fn start(n: u32, backend: Backend) -> crate::Result<Simulation<Mean, f32>> {
        let mesh = generate(&format!("sheet:{n}"), 1)?;
        // Small tasks: each must fit into an array.
        Simulation::builder(mesh, Mean).precision::<f32>().order("blocked:64".parse()?).backend(backend).build()
    }

    /// A mesh under `Mean` on the cores and a GPU of this process that holds so much, beginning with half each.
    #[cfg(feature = "gpu")]
    fn hybrid(n: u32, array_bytes: u64, bytes: u64, is_balanced: bool) -> crate::Result<Simulation<Mean, f32>> {
        crate::gpu::MEMORY.set(Some(crate::gpu::Memory { array_bytes, bytes }));
        let cluster = Cluster::hybrid(0, 0.5)?;
        let cluster = if is_balanced { cluster.balanced() } else { cluster };
        let built = start(n, Backend::Cluster(cluster));
        crate::gpu::MEMORY.set(None);
        built
    }

    /// The part of the mesh that the GPU has, and what is known that it can have at most.
    #[cfg(feature = "gpu")]
    fn on_gpu(simulation: &Simulation<Mean, f32>) -> (f64, Option<f64>) {
        let host = simulation.hosts().remove(1);
        assert!(!host.gpu.is_empty());
        (host.vertices as f64 / simulation.mesh().points().len() as f64, host.most)
    }

    #[cfg(feature = "gpu")]
    #[test]
    fn a_mesh_that_a_gpu_cannot_hold_runs_on_it_and_the_cores() {
        if crate::conformance::gpu_or_skip().is_none() {
            return;
        }
        // A real of each of 3,600 vertices and of padding, of which the GPU can see a third at once.
        let mut hybrid = hybrid(60, 5_600, u64::MAX, true).unwrap();
        let mut alone = start(60, Backend::Serial).unwrap();
        let (part, most) = on_gpu(&hybrid);
        assert!(
            most.is_some_and(|most| (0.1..0.34).contains(&most)) && part <= most.unwrap() + 0.05,
            "{part} {most:?}"
        );
        for _ in 0..12 {
            crate::gpu::MEMORY.set(Some(crate::gpu::Memory { array_bytes: 5_600, bytes: u64::MAX }));
            let stepped = hybrid.step();
            crate::gpu::MEMORY.set(None);
            stepped.unwrap();
            alone.step().unwrap();
            let (part, most) = on_gpu(&hybrid);
            assert!(part <= most.unwrap() + 0.05, "{part} of at most {most:?}");
            // Whole numbers are exact everywhere.
            assert_eq!(hybrid.field("count").unwrap().values, alone.field("count").unwrap().values);
        }
    }

    #[cfg(feature = "gpu")]
    #[test]
    fn a_gpu_that_refuses_its_share_gets_half_of_it() {
        if crate::conformance::gpu_or_skip().is_none() {
            return;
        }
        // What a share takes besides the mesh is small beside what these leave.
        let with = |bytes: u64| hybrid(150, u64::MAX, bytes, false);
        let mut little = 1 << 18;
        while with(little + little / 2).is_err() {
            little += little / 2;
        }
        let error = with(little).unwrap_err();
        assert!(matches!(&error, Error::TooLarge(why) if why.contains("smaller share")), "{error}");
        let mut less = hybrid(150, u64::MAX, little, true).unwrap();
        let (part, most) = on_gpu(&less);
        assert!(most.is_some_and(|most| most <= 0.25) && part <= most.unwrap() + 0.05, "{part} {most:?}");
        less.wait().unwrap();
        // One that has room for nothing says so.
        assert!(matches!(hybrid(150, u64::MAX, 64, true), Err(Error::TooLarge(_))));
    }
}
