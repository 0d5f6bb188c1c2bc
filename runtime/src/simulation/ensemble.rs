//! Many small simulations that run beside each other.
//!
//! A simulation of a thousand vertices is too small to be shared among threads: they would wait for each other more than they update.
//! But copies of it need nothing of each other. So each steps on one thread, which takes the next copy when it is done with one, and the
//! state and stars of a copy stay in that core's cache for all the steps that it takes in a visit.

use super::any::AnySimulation;
use super::plans::Plans;
use crate::error::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::DerefMut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

/// Copies of a scene, each with parameters of its own, that step beside each other: each on one thread, several steps at a time.
///
/// A copy is a [`Simulation`](crate::Simulation), or a `Box<dyn AnySimulation>` where programs differ, and has the bits that it would have
/// alone, whatever the number of threads: its reductions, loops, globals and random numbers are its own. Memory: the state of all copies; what
/// [`Plans`] finds to be the same is there once. [`sweep`] has no more copies at a time than threads.
///
/// ```
/// use meshweft::mesh::generate::generate;
/// use meshweft::{Ensemble, Program, Real, Simulation, Stages, Stars, kernels, record, stars, vertex};
///
/// record! { struct Rate<R> { rate: R } }
/// vertex! { struct Rod<R> { shared heat: R } }
/// stars! { Edges[1]; }
/// struct Cooling { rate: f64 }
/// kernels! {
///     for Cooling: Rod, Rate;
///     update Spread |p, own, around| Rod {
///         heat: own.heat + p.rate * around.sum(Edges, |[other], ()| other.heat - own.heat)
///     };
///     max Hottest("hottest", "K") |_, own, _| own.heat;
/// }
/// impl Program for Cooling {
///     fn parameters(&self, _time: f64) -> Rate<f64> { Rate { rate: self.rate } }
///     fn initial(&self, _mesh: &meshweft::Mesh, v: u32) -> Rod<f64> { Rod { heat: if v == 0 { 1.0 } else { 0.0 } } }
///     fn step(&self, stages: &mut Stages<Self>) { stages.jacobi(Spread, 1) }
/// }
///
/// let mut rods = Ensemble::build(4, 0, |k, plans| {
///     let program = Cooling { rate: 0.1 * (1 + k) as f64 };
///     Simulation::builder(generate("chain:30", 1)?, program).one_of(plans).build()
/// })?;
/// rods.step(100)?;
/// // The faster heat spreads, the cooler is the hottest vertex.
/// let hottest = rods.each(|_, rod| rod.metric("hottest").unwrap());
/// assert!(hottest.is_sorted_by(|a, b| a > b));
///
/// let mut alone = Simulation::builder(generate("chain:30", 1)?, Cooling { rate: 0.1 * 3.0 }).build()?;
/// (0..100).try_for_each(|_| alone.step())?;
/// assert_eq!(rods.copies()[2].digest()?, alone.digest()?);
/// # Ok::<(), meshweft::Error>(())
/// ```
pub struct Ensemble<S> {
    copies: Vec<S>,
    pool: ThreadPool,
}

impl<S: DerefMut<Target = dyn AnySimulation> + Send> Ensemble<S> {
    /// Builds copies 0, 1, 2 and so on by `make`, on `threads` threads, 0 for one a core, on which they also step. `make` gets the number of
    /// the copy, and what [`Builder::one_of`](crate::Builder::one_of) takes.
    ///
    /// # Errors
    /// That of `make` for the first copy that has one; no copies; more threads than the system has.
    pub fn build<E: From<Error> + Send>(
        copies: usize,
        threads: usize,
        make: impl Fn(usize, &Plans) -> Result<S, E> + Sync,
    ) -> Result<Ensemble<S>, E> {
        let (pool, plans) = (pool(copies, threads)?, Plans::default());
        let mut built = Vec::new();
        let take = |_, copy: Result<S, E>| {
            built.push(copy?);
            Ok::<_, E>(())
        };
        hand_out(&pool, 0..copies, |_, k| make(k, &plans), take)?;
        Ok(Ensemble { copies: built, pool })
    }

    /// Has every copy take so many steps. More of them at a time are quicker: a copy stays in the cache of the core that steps it.
    ///
    /// # Errors
    /// [`Error::Copy`] names the first copy that failed, and why. All others have taken all steps; [`Ensemble::each`] tells of each.
    pub fn step(&mut self, steps: u64) -> Result<()> {
        let results = self.each(|_, copy| (0..steps).try_for_each(|_| copy.step()));
        let first = results.into_iter().enumerate().find_map(|(copy, result)| Some((copy, result.err()?)));
        first.map_or(Ok(()), |(copy, error)| Err(Error::Copy { copy, error: Box::new(error) }))
    }

    /// Visits every copy, each on one of the threads: to step it as long as it needs, change its parameters, or read what came out. Returns
    /// what `visit` does, by copy.
    ///
    /// # Panics
    /// If `visit` does.
    pub fn each<R: Send>(&mut self, visit: impl Fn(usize, &mut S) -> R + Sync) -> Vec<R> {
        let mut results = Vec::with_capacity(self.copies.len());
        let take = |_, result| {
            results.push(result);
            Ok::<_, Infallible>(())
        };
        let Ok(()) = hand_out(&self.pool, self.copies.iter_mut(), visit, take);
        results
    }

    /// The copies.
    pub fn copies(&self) -> &[S] {
        &self.copies
    }

    /// The copies, to change them one by one.
    pub fn copies_mut(&mut self) -> &mut [S] {
        &mut self.copies
    }

    /// Threads that step them.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }
}

/// Does `run` for copies 0, 1, 2 and so on, on `threads` threads, 0 for one a core, and hands what came out to `take`, on this thread and in
/// the order of the copies. Where `run` builds a copy, takes all of its steps and gives back a few numbers, there are never more copies in memory
/// than threads.
///
/// ```
/// # use meshweft::{Error, Simulation, mesh::generate::generate, sweep, toy::Counting};
/// let mut ends = Vec::new();
/// let run = |k: usize, plans: &meshweft::Plans| {
///     let mut copy = Simulation::builder(generate("chain:3", 1)?, Counting).one_of(plans).build()?;
///     (0..k).try_for_each(|_| copy.step())?;
///     Ok::<f64, Error>(copy.field("value")?.values[0])
/// };
/// sweep(4, 2, run, |_, end| Ok::<(), Error>(ends.push(end?)))?;
/// assert_eq!(ends, [0.0, 1.0, 2.0, 3.0]);
/// # Ok::<(), meshweft::Error>(())
/// ```
///
/// # Errors
/// That of `take`: no further copy is begun then. No copies; more threads than the system has.
///
/// # Panics
/// If `run` does.
pub fn sweep<R: Send, E: From<Error>>(
    copies: usize,
    threads: usize,
    run: impl Fn(usize, &Plans) -> R + Sync,
    take: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    let (pool, plans) = (pool(copies, threads)?, Plans::default());
    hand_out(&pool, 0..copies, |_, k| run(k, &plans), take)
}

/// Threads for so many copies.
fn pool(copies: usize, threads: usize) -> Result<ThreadPool> {
    /// More are a slip of the keyboard; each costs a stack.
    const MOST: usize = 4096;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = if threads == 0 { cores() } else { threads };
    match (copies, wanted) {
        (0, _) => Err(Error::Invalid("an ensemble of no copies: take 1 or more".into())),
        (_, wanted) if wanted > MOST => Err(Error::Invalid(format!("{wanted} threads are more than {MOST}"))),
        _ => ThreadPoolBuilder::new()
            .num_threads(wanted.min(copies))
            .thread_name(|i| format!("meshweft-{i}"))
            .build()
            .map_err(|e| Error::Invalid(format!("cannot start {wanted} threads: {e}; ask for fewer"))),
    }
}

/// Has each thread of a pool work on the next of some items as long as there are any, and hands the results on in their order.
fn hand_out<I: Send, R: Send, E>(
    pool: &ThreadPool,
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(usize, I) -> R + Sync,
    mut take: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    let (items, is_over) = (Mutex::new(items.enumerate()), AtomicBool::new(false));
    let next = || {
        let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
        items.next().filter(|_| !is_over.load(Ordering::Relaxed))
    };
    let (sender, receiver) = mpsc::channel();
    let mut outcome = Ok(());
    pool.in_place_scope(|scope| {
        let (next, work) = (&next, &work);
        scope.spawn_broadcast(move |_, _| {
            while let Some((k, item)) = next() {
                // Nobody listens after a panic of `take` alone, which ends it all.
                let _ = sender.send((k, work(k, item)));
            }
        });
        let (mut early, mut due) = (BTreeMap::new(), 0);
        for (k, result) in receiver {
            early.insert(k, result);
            while let Some(result) = early.remove(&due) {
                if outcome.is_ok() {
                    outcome = take(due, result);
                    is_over.store(outcome.is_err(), Ordering::Relaxed);
                }
                due += 1;
            }
        }
    });
    outcome
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, Simulation};
    use super::*;
    use crate::number::Number;
    use crate::program::{Incidence, Program, Stages, Stars};
    use crate::{Mesh, kernels, record, stars, vertex};
    use meshweft_mesh::generate::generate;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    vertex! { struct Point<R> { shared heat: R, noise: R } }
    record! { struct Rate<R> { rate: R } }
    record! { struct Clock<R> { hottest: R, rounds: R } }
    stars! { Edges[1]: R; }

    /// Spreads until the hottest vertex is cool enough, with a reduction, a loop, globals and random numbers.
    #[derive(Clone)]
    struct Spreading {
        rate: f64,
        weight: f64,
        fixed: u32,
    }

    kernels! {
        for Spreading: Point, Rate, Clock;
        map Shake |p, own| Point { noise: p.uniform(3), ..own };
        update Spread |p, own, around| {
            let flow = around.sum(Edges, |[other], weight| (other.heat - own.heat) * weight);
            Point { heat: own.heat + p.rate * flow + own.noise * R::lit(1e-3), ..own }
        };
        max Hottest("hottest", "K") |_, own, _| own.heat;
        sum Heat("heat", "J") |_, own, _| own.heat;
        scalar Count |p| Clock { rounds: p.globals.rounds + R::lit(1.0), ..p.globals };
        test Cool |p| p.globals.hottest.less(R::lit(3.5));
    }

    impl Program for Spreading {
        fn parameters(&self, _: f64) -> Rate<f64> {
            Rate { rate: self.rate }
        }
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            let weight = self.weight;
            stars.add(Edges, mesh.edges(), move |_: Incidence<2>| weight);
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Point<f64> {
            Point { heat: f64::from(v % 5), noise: 0.0 }
        }
        fn fixed(&self, _: &Mesh, v: u32) -> bool {
            v == self.fixed
        }
        fn globals(&self) -> Clock<f64> {
            Clock { hottest: 4.0, rounds: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Shake);
            stages.until(Cool, 5, |stages| {
                stages.sweep(Spread, 1);
                stages.reduce(Hottest, |g| &mut g.hottest);
                stages.scalar(Count);
            });
        }
    }

    const PLAIN: Spreading = Spreading { rate: 0.1, weight: 1.0, fixed: 0 };

    fn mesh() -> Mesh {
        generate("sheet:24", 1).unwrap()
    }

    fn have_the_bits_of_runs_alone<T: Number>() {
        // Some differ in what is planned, too.
        let program = |k: usize| Spreading {
            rate: 0.02 * (1 + k) as f64,
            weight: if k % 4 == 3 { 0.5 } else { 1.0 },
            fixed: (k / 5) as u32,
        };
        let alone = |k: usize| {
            let builder = Simulation::builder(mesh(), program(k)).backend(Backend::Cpu { threads: 2 });
            let mut alone = builder.precision::<T>().build().unwrap();
            (0..7).for_each(|_| alone.step().unwrap());
            (alone.digest().unwrap(), alone.metrics().unwrap(), alone.globals().unwrap().rounds)
        };
        let alone: Vec<_> = (0..9).map(alone).collect();
        assert!(alone.windows(2).all(|pair| pair[0].0 != pair[1].0), "all differ");
        for threads in [1, 2, 3] {
            let build =
                |k, plans: &Plans| Simulation::builder(mesh(), program(k)).precision::<T>().one_of(plans).build();
            let mut ensemble = Ensemble::build(9, threads, build).unwrap();
            assert_eq!((ensemble.threads(), ensemble.copies()[8].threads()), (threads, 1));
            // In visits of several lengths.
            [1, 4, 2].into_iter().for_each(|steps| ensemble.step(steps).unwrap());
            let read = |_, copy: &mut Simulation<Spreading, T>| {
                (copy.digest().unwrap(), copy.metrics().unwrap(), copy.globals().unwrap().rounds)
            };
            assert_eq!(ensemble.each(read), alone, "{threads} threads");
        }
    }

    #[test]
    fn copies_have_the_bits_of_runs_alone_on_any_number_of_threads() {
        have_the_bits_of_runs_alone::<f32>();
        have_the_bits_of_runs_alone::<f64>();
    }

    #[test]
    fn what_is_planned_is_shared_where_it_is_the_same_and_only_there() {
        let plans = Plans::default();
        let build = |program: Spreading, mesh| Simulation::builder(mesh, program).one_of(&plans);
        let first = build(PLAIN, mesh()).build().unwrap();
        let is_shared = |other: &dyn AnySimulation| std::ptr::eq(first.schedule(), other.schedule());
        let softer = build(Spreading { rate: 0.3, ..PLAIN }, mesh()).build().unwrap();
        assert!(is_shared(&*softer) && std::ptr::eq(first.mesh(), softer.mesh()));
        // The same plan on points elsewhere.
        let mut moved = mesh();
        moved.set_points(moved.points().iter().map(|p| p.map(|x| 2.0 * x)).collect()).unwrap();
        let moved = build(PLAIN, moved).build().unwrap();
        assert!(is_shared(&*moved) && !std::ptr::eq(first.mesh(), moved.mesh()));
        let double = build(PLAIN, mesh()).precision::<f64>().build().unwrap();
        // Each of another cause.
        let others = [
            build(Spreading { weight: 2.0, ..PLAIN }, mesh()).build().unwrap(),
            build(Spreading { fixed: 1, ..PLAIN }, mesh()).build().unwrap(),
            build(PLAIN, generate("sheet:24x23", 1).unwrap()).build().unwrap(),
            build(PLAIN, mesh()).order(crate::Order::COLOR).build().unwrap(),
            build(PLAIN, mesh()).order_by(u64::from).build().unwrap(),
            build(PLAIN, mesh()).backend(Backend::Serial).build().unwrap(),
        ];
        assert!(!is_shared(&*double) && others.iter().all(|other| !is_shared(&**other)));
        let watched = build(PLAIN, mesh()).audit(true).build().unwrap();
        assert!(watched.audit().unwrap().is_some());
    }

    #[test]
    fn a_copy_that_fails_is_named_and_the_others_go_on() {
        let rate = |k: usize| if k % 3 == 1 { 1e30 } else { 0.1 };
        let build = |k: usize, plans: &Plans| {
            Simulation::builder(mesh(), Spreading { rate: rate(k), ..PLAIN }).one_of(plans).build()
        };
        let mut ensemble = Ensemble::build(6, 2, build).unwrap();
        let error = ensemble.step(9).unwrap_err();
        assert!(
            matches!(&error, Error::Copy { copy: 1, error } if matches!(**error, Error::Diverged { .. })),
            "{error}"
        );
        assert!(error.to_string().starts_with("copy 1: the run diverged: "), "{error}");
        let steps: Vec<u64> = ensemble.copies().iter().map(|copy| copy.steps()).collect();
        assert!(steps[1] < 9 && steps[1] == steps[4], "{steps:?}");
        assert_eq!([steps[0], steps[2], steps[3], steps[5]], [9; 4]);
        // Copies can be mended one by one.
        ensemble.copies_mut()[1].program_mut().rate = 0.1;
    }

    #[test]
    fn an_ensemble_ends_at_the_first_copy_that_cannot_be_built_and_at_a_panic() {
        let build = |k: usize, plans: &Plans| match k {
            3.. => Err(Error::Invalid(format!("no {k}"))),
            _ => Ok(Simulation::builder(mesh(), PLAIN).one_of(plans).build()?.into_any()),
        };
        for threads in [1, 3] {
            assert_eq!(Ensemble::build(1_000_000_000, threads, build).err().unwrap().to_string(), "no 3");
            let mut taken = Vec::new();
            let result = sweep(
                1_000_000_000,
                threads,
                |k, _| 2 * k,
                |k, twice| {
                    taken.push((k, twice));
                    if k < 4 { Ok(()) } else { Err(Error::Invalid("enough".into())) }
                },
            );
            assert_eq!(
                (result.unwrap_err().to_string(), taken),
                ("enough".into(), vec![(0, 0), (1, 2), (2, 4), (3, 6), (4, 8)])
            );
            let mut ensemble = Ensemble::build(3, threads, build).unwrap();
            let visit = |k, copy: &mut Box<dyn AnySimulation>| {
                assert!(k != 1, "as it was told");
                copy.step().unwrap();
            };
            assert!(catch_unwind(AssertUnwindSafe(|| ensemble.each(visit))).is_err());
            ensemble.step(1).unwrap();
            assert_eq!(ensemble.copies()[1].steps(), 1);
        }
        let says = |copies, threads| Ensemble::build(copies, threads, build).err().unwrap().to_string();
        assert_eq!(says(0, 1), "an ensemble of no copies: take 1 or more");
        assert_eq!(says(1, 5000), "5000 threads are more than 4096");
    }
}
