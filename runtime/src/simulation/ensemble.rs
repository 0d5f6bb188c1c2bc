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
        let Ok(()) = hand_out(&self.pool, self.copies.iter_mut(), |k, copy| visit(k, copy), take);
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
