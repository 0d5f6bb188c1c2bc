//! The workers of a run, whoever they are: an engine that goes on with others when some are lost.
//!
//! # The idea
//!
//! A [driver](super::driver) and its workers are fixed: whoever of them is lost ends all of it. So a run on hosts that may fail keeps what
//! it takes to begin again: a state, and what workers were told since. The same steps from the same state have the same bits on any
//! hosts [C3], so a run that begins again there is where it was, bit for bit [C8].
//!
//! ```text
//!   kept state          told since, which is the log                     lost
//!       ●───step──step──step──globals──step──step──step──step──step──step──✗
//!                            ●  asked for, on its way: it becomes the kept state, and the log before it is forgotten
//! ```
//!
//! States are copied while workers take the next steps ([`snapshot`](super::snapshot)). Each that the host asks for anyway, for a file or a
//! checkpoint, is kept, and one now and then besides: a fiftieth of the time at most goes into that.
//!
//! # Fencing
//!
//! Beginning again is a new incarnation of the run (`meshweft_net::quic::Listening::again`): connections of the one before are closed, its
//! certificates are refused. A worker that was frozen and wakes up speaks into a closed connection; then it joins as any other.
//!
//! # What it does not do
//!
//! Go on when a worker says in the middle of its work that it cannot: its kernel panicked, or its disk is full. The next would say the
//! same. One that says so before it has begun is left out.

use super::account::Tally;
use super::balance::Balance;
use super::driver::Driver;
use super::message::{self, Begin, Control};
use super::partition;
use super::snapshot::Snapshot;
use super::workers::Workers;
use crate::engine::{Engine, Facts, Progress, Promise, Recording, Remote, Table};
use crate::error::{Error, Result};
use crate::layout::{Domain, Edit, Layout, State, View};
use crate::number::Number;
use crate::piece::Frame;
use crate::step::{Settings, Step};
use meshweft_mesh::{Cut, Mesh};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// States are asked for so rarely that they take one part in so many of the time.
const SELDOM: u32 = 50;
/// When one that was asked for is waited for.
const SOON: Duration = Duration::from_millis(300);
/// But not more often than that.
const SOONEST: Duration = Duration::from_secs(1);
/// Bytes of what workers were told, about, after which a state is asked for in any case.
const LONGEST_LOG: usize = 64 << 20;
/// How soon a run that has begun begins again with workers that come or go.
const SETTLED: Duration = Duration::from_secs(1);
/// Numbers of pieces for each time that a run has begun: more than it has workers.
const PIECES: u32 = 1000;
/// How often a run begins again in a row without getting any further.
const ATTEMPTS: u32 = 20;

/// The engine.
pub(crate) struct Crew<T: Number> {
    run: Arc<Mutex<Running<T>>>,
    /// The state, if it was asked for since it last changed.
    state: OnceLock<Arc<State<T>>>,
}

/// What hosts begin with.
pub(super) struct Plan<T> {
    pub(super) layout: Arc<Layout>,
    /// Its domain, with the elements that changing stars have now.
    pub(super) domain: Arc<Domain>,
    pub(super) mesh: Arc<Mesh>,
    pub(super) table: Arc<Table<T>>,
    pub(super) begin: Begin,
    pub(super) cut: Cut,
    /// How much of the mesh each worker is to have, of all together, as long as there are as many.
    pub(super) weights: Vec<f64>,
}

/// Where a run can begin again.
#[derive(Clone)]
struct Kept<T> {
    state: Arc<State<T>>,
    globals: Vec<T>,
    progress: Progress,
}

/// A state that is on its way.
struct Coming<T> {
    snapshot: Arc<Snapshot<T>>,
    globals: Vec<T>,
    progress: Progress,
    /// How much of the log came before it.
    position: usize,
}

struct Running<T: Number> {
    driver: Driver<T>,
    plan: Plan<T>,
    workers: Workers,
    kept: Kept<T>,
    log: Vec<Control>,
    log_bytes: usize,
    coming: Vec<Coming<T>>,
    /// When a state was last asked for, and how long it took to come.
    asked: Instant,
    cost: Duration,
    /// Whether it can begin again at all. A GPU beside the cores has no room for a second state, and is not lost either.
    keeps: bool,
    /// Whether workers have stopped right after the step that was not finite.
    is_at_fault: bool,
    /// When it last began, how often, and how often since a state was last kept.
    since: Instant,
    began: u64,
    attempts: u32,
    balance: Option<Balance>,
}

impl<T: Number> Crew<T> {
    /// Hands out shares of a state to workers.
    ///
    /// # Errors
    /// A host that was lost, or cannot hold its share.
    pub(super) fn start(
        plan: Plan<T>,
        mut workers: Workers,
        state: State<T>,
        globals: &[T],
        mut balance: Option<Balance>,
    ) -> Result<Crew<T>> {
        let kept = Kept { state: Arc::new(state), globals: globals.to_vec(), progress: Progress::default() };
        let keeps = workers.come_again() || plan.begin.gpus.iter().all(Option::is_none);
        let mut attempts = 0;
        let driver = loop {
            let driver = match &mut balance {
                Some(balance) => balanced(&plan, &mut workers, &kept, balance.weights(), balance),
                None => started(&plan, &mut workers, &kept, &plan.weights),
            };
            attempts += 1;
            match driver {
                Err(Error::Lost(why)) if keeps && attempts < ATTEMPTS => workers.said(&why),
                driver => break driver?,
            }
        };
        let mut run = Running {
            driver,
            plan,
            workers,
            keeps,
            is_at_fault: false,
            kept: kept.clone(),
            log: Vec::new(),
            log_bytes: 0,
            coming: Vec::new(),
            asked: Instant::now(),
            cost: Duration::ZERO,
            since: Instant::now(),
            began: 0,
            attempts: 0,
            balance,
        };
        run.spare();
        Ok(Crew { run: Arc::new(Mutex::new(run)), state: OnceLock::from(kept.state) })
    }

    fn run(&self) -> MutexGuard<'_, Running<T>> {
        lock(&self.run)
    }

    /// Waits for a state that was asked for.
    fn fetch(run: &Mutex<Running<T>>, snapshot: &Snapshot<T>) -> Result<Arc<State<T>>> {
        loop {
            let began = lock(run).began;
            let error = match snapshot.arrive() {
                Ok(state) => return Ok(state),
                Err(error) => error,
            };
            let mut run = lock(run);
            // Another thread may have seen to it meanwhile.
            if run.began == began {
                run.mend(error)?;
            }
        }
    }
}

fn lock<A>(mutex: &Mutex<A>) -> MutexGuard<'_, A> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives workers shares of these weights, if there are as many, or equal ones.
fn started<T: Number>(plan: &Plan<T>, workers: &mut Workers, kept: &Kept<T>, weights: &[f64]) -> Result<Driver<T>> {
    let Plan { layout, domain, mesh, table, begin, cut, .. } = plan;
    let come_again = workers.have_worked();
    let exchange = workers.muster(table)?;
    let count = exchange.transport().hosts() - 1;
    let mut begin = Begin { globals: message::bits(&kept.globals), ..begin.clone() };
    let equal = partition::even(count)?;
    let weights = if weights.len() == count as usize { weights } else { &equal };
    // Hosts that have no number of a GPU of their own take the first.
    let first = begin.gpus.first().copied().flatten();
    begin.gpus.resize(count as usize, first);
    begin.grid = cut.grid(count)?;
    let owners = partition::partition(layout, mesh.points(), weights, *cut)?;
    let (layout, children) = ((layout.clone(), domain.clone()), workers.children());
    let driver = Driver::with(exchange, layout, owners, &kept.state, &begin, (children, come_again));
    if driver.is_err() {
        workers.dismiss();
    }
    driver.map_err(|error| match error {
        // One that came cannot take part: it ends, and the run goes on without it.
        Error::Cluster(why) if come_again => Error::Lost(why),
        other => other,
    })
}

/// The same, or less to GPUs that refuse their shares.
fn balanced<T: Number>(
    plan: &Plan<T>,
    workers: &mut Workers,
    kept: &Kept<T>,
    weights: Vec<f64>,
    balance: &mut Balance,
) -> Result<Driver<T>> {
    let driver = balance.hand_out(weights, |weights| started(plan, workers, kept, weights))?;
    Ok(driver.with_most(balance.most()))
}

impl<T: Number> Running<T> {
    /// Does something with the driver, and again with the next one as long as hosts are lost.
    fn attempt<A>(&mut self, mut act: impl FnMut(&mut Driver<T>) -> Result<A>) -> Result<A> {
        loop {
            match act(&mut self.driver) {
                Ok(done) => return Ok(done),
                Err(error) => self.mend(error)?,
            }
        }
    }

    /// Begins again where a state was kept, if all that is wrong is that a host was lost.
    ///
    /// # Errors
    /// What else is wrong; workers that do not come back.
    fn mend(&mut self, error: Error) -> Result<()> {
        let Error::Lost(mut why) = error else { return Err(error) };
        if !self.keeps {
            return Err(Error::Lost(why));
        }
        loop {
            self.attempts += 1;
            if self.attempts > ATTEMPTS {
                return Err(Error::Lost(format!("{why}; the run began again {ATTEMPTS} times and got no further")));
            }
            match self.begin_again(&why) {
                Err(Error::Lost(again)) => why = again,
                done => return done,
            }
        }
    }

    fn begin_again(&mut self, why: &str) -> Result<()> {
        let clock = Instant::now();
        self.keep();
        self.workers.said(&format!("{why}; the run begins again"));
        self.driver.leave();
        self.workers.dismiss();
        let earlier = self.driver.tallies();
        let weights = self.balance.as_ref().map_or(self.plan.weights.clone(), Balance::weights);
        let driver = started(&self.plan, &mut self.workers, &self.kept, &weights);
        let driver = driver.map_err(|error| match error {
            Error::TooLarge(why) => Error::Lost(why),
            other => other,
        })?;
        self.take(driver, self.kept.progress.clone(), earlier);
        let workers = self.driver.workers().len();
        let workers = if workers == 1 { "1 worker".into() } else { format!("{workers} workers") };
        let is_step = |said: &&Control| matches!(said, Control::Step { .. });
        let (steps, took) = (self.log.iter().filter(is_step).count(), clock.elapsed().as_secs_f64());
        self.workers.said(&format!("going on with {workers} after {took:.2} s, {steps} steps back"));
        self.replay()
    }

    /// Goes on with another driver.
    fn take(&mut self, driver: Driver<T>, before: Progress, earlier: Vec<Tally>) {
        self.driver = driver.after(before, earlier);
        self.is_at_fault = false;
        self.since = Instant::now();
        self.began += 1;
    }

    /// Tells workers what those before them were told since the kept state.
    fn replay(&mut self) -> Result<()> {
        for i in 0..=self.log.len() {
            for coming in self.coming.iter().filter(|coming| coming.position == i) {
                // Nobody waits for the beginning of a state as long as for steps to be done again.
                self.driver.settle_all()?;
                self.driver.send_for(&coming.snapshot)?;
            }
            if let Some(said) = self.log.get(i) {
                tell(&mut self.driver, said)?;
            }
        }
        Ok(())
    }

    /// Begins again if workers come or are to leave: with the state of now, so nothing is done twice.
    fn change_workers(&mut self) -> Result<()> {
        let (come, go) = (self.workers.waiting(), self.driver.leaving());
        if come + go == 0 || self.since.elapsed() < SETTLED {
            return Ok(());
        }
        self.since = Instant::now();
        if !self.workers.expect(i64::from(come) - i64::from(go)) {
            return Ok(());
        }
        let snapshot = self.ask()?;
        self.attempt(|_| snapshot.arrive().map(drop))?;
        let said = |count: u32, what: [&str; 2]| match count {
            0 => None,
            1 => Some(format!("1 worker {}", what[0])),
            n => Some(format!("{n} workers {}", what[1])),
        };
        let changes = [said(come, ["comes", "come"]), said(go, ["leaves", "leave"])];
        let why = changes.into_iter().flatten().collect::<Vec<_>>().join(", ");
        self.begin_again(&why).or_else(|error| self.mend(error))
    }

    /// Notes what workers are to be told, and tells them.
    fn tell(&mut self, said: Control) -> Result<()> {
        if !self.keeps {
            return tell(&mut self.driver, &said);
        }
        self.log_bytes += said.bytes();
        self.log.push(said);
        let told = tell(&mut self.driver, &self.log[self.log.len() - 1]);
        told.or_else(|error| self.mend(error))
    }

    /// Keeps the latest state that has come.
    fn keep(&mut self) {
        // What follows one that was not the same everywhere is no better.
        let sound = self.coming.iter().position(|coming| coming.snapshot.is_spoilt()).unwrap_or(self.coming.len());
        let came = |coming: &Coming<T>| coming.snapshot.took().is_some();
        let Some(last) = self.coming[..sound].iter().rposition(came) else { return };
        let mut came = self.coming.drain(..=last);
        let Some(Coming { snapshot, globals, progress, position }) = came.next_back() else { return };
        drop(came);
        self.cost = snapshot.took().unwrap_or_default();
        if let Ok(state) = snapshot.arrive() {
            self.kept = Kept { state, globals, progress };
        }
        self.log.drain(..position);
        self.log_bytes = self.log.iter().map(Control::bytes).sum();
        self.coming.iter_mut().for_each(|coming| coming.position -= position);
        self.attempts = 0;
    }

    /// Asks for a state if it is time to keep another.
    fn keep_now_and_then(&mut self) -> Result<()> {
        // By now it is here, unless the network is slow.
        if let Some(coming) =
            self.coming.first().filter(|_| self.asked.elapsed() >= SOON).map(|coming| coming.snapshot.clone())
        {
            self.attempt(|_| coming.arrive().map(drop))?;
        }
        self.keep();
        if self.log.is_empty() {
            // That of now is kept.
            self.asked = Instant::now();
        }
        let is_time = self.asked.elapsed() >= SOONEST.max(self.cost * SELDOM) || self.log_bytes > LONGEST_LOG;
        let is_due = self.keeps && is_time;
        if is_due && self.coming.is_empty() {
            self.ask()?;
        }
        Ok(())
    }

    /// Asks for the state after all that workers were told.
    fn ask(&mut self) -> Result<Arc<Snapshot<T>>> {
        let has_globals = !self.kept.globals.is_empty();
        let (progress, globals) = self.attempt(|driver| {
            let progress = driver.settle_all()?;
            Ok((progress, if has_globals { driver.globals()? } else { Vec::new() }))
        })?;
        if self.keeps && progress.non_finite && !self.is_at_fault {
            self.go_to_fault(progress.steps)?;
        }
        let snapshot = self.driver.awaited();
        if self.keeps && !progress.non_finite {
            let (snapshot, position) = (snapshot.clone(), self.log.len());
            self.asked = Instant::now();
            self.coming.push(Coming { snapshot, globals, progress, position });
        }
        loop {
            let began = self.began;
            match self.driver.send_for(&snapshot) {
                Err(error) => self.mend(error)?,
                Ok(()) => return Ok(snapshot),
            }
            // Whatever is to be kept was asked for again when the run began again.
            if self.began > began && self.coming.iter().any(|coming| Arc::ptr_eq(&coming.snapshot, &snapshot)) {
                return Ok(snapshot);
            }
        }
    }

    /// Has workers stop right after a step that was not finite: they had gone on with those behind it. So the state that tells what became
    /// of which vertex first is that of the oracle.
    fn go_to_fault(&mut self, steps: u64) -> Result<()> {
        let is_step = |said: &Control| matches!(said, Control::Step { .. });
        let last = steps.saturating_sub(self.kept.progress.steps + 1) as usize;
        let places = (0..self.log.len()).filter(|&i| is_step(&self.log[i]));
        let Some(fault) = places.clone().nth(last) else { return Ok(()) };
        self.log.truncate(fault + 1);
        loop {
            match self.step_to_fault() {
                Err(error) => self.mend(error)?,
                done => break done,
            }
        }
    }

    fn step_to_fault(&mut self) -> Result<()> {
        self.driver.leave();
        self.workers.dismiss();
        let earlier = self.driver.tallies();
        let driver = started(&self.plan, &mut self.workers, &self.kept, &self.plan.weights)?;
        self.take(driver, self.kept.progress.clone(), earlier);
        let fault = self.log.pop();
        let replayed = self.replay().and_then(|()| self.driver.settle_all());
        self.log.extend(fault);
        replayed?;
        // Alone in its walk, it has nothing behind it.
        self.log.last().map_or(Ok(()), |fault| tell(&mut self.driver, fault))?;
        self.driver.settle_all()?;
        self.is_at_fault = true;
        Ok(())
    }

    /// Hands out shares again if some workers turn out to be quicker than others. `state`: that of now, if it is known.
    fn rebalance(&mut self, state: Option<Arc<State<T>>>) -> Result<()> {
        let is_due = |balance: &mut Balance| balance.is_due() && self.coming.is_empty();
        let Some(mut balance) = self.balance.take_if(is_due) else { return Ok(()) };
        let moved = self.move_tasks(&mut balance, state);
        self.balance = Some(balance);
        moved.or_else(|error| self.mend(error))
    }

    fn move_tasks(&mut self, balance: &mut Balance, state: Option<Arc<State<T>>>) -> Result<()> {
        let progress = self.driver.settle_all()?;
        let better = if progress.non_finite { None } else { balance.correct(&self.driver.busy()) };
        let Some(weights) = better else { return Ok(()) };
        let state = match state {
            Some(state) => state,
            None => self.ask()?.arrive()?,
        };
        let globals = self.driver.globals()?;
        self.forget_before(Kept { state, globals, progress: progress.clone() });
        // A GPU has no room for a share and the one after it.
        self.driver.leave();
        self.workers.dismiss();
        let earlier = self.driver.tallies();
        let driver = balanced(&self.plan, &mut self.workers, &self.kept, weights, balance)?;
        self.take(driver, progress, earlier);
        self.spare();
        balance.settle();
        Ok(())
    }

    /// Keeps no state where none is gone back to.
    fn spare(&mut self) {
        if !self.keeps {
            self.kept.state = Arc::new(State::zeros(0, self.kept.state.shape));
        }
    }

    /// From here on the run can begin again with that state, and with none before.
    fn forget_before(&mut self, kept: Kept<T>) {
        self.kept = kept;
        self.log.clear();
        self.coming.clear();
        (self.log_bytes, self.asked, self.attempts) = (0, Instant::now(), 0);
        self.is_at_fault = false;
    }
}

/// Tells workers what is in a log.
fn tell<T: Number>(driver: &mut Driver<T>, said: &Control) -> Result<()> {
    match said {
        Control::Step { .. } => driver.tell_step(said),
        other => driver.tell_all(other),
    }
}

impl<T: Number> Engine<T> for Crew<T> {
    fn step(&mut self, step: &Step<T>) -> Result<()> {
        let state = self.state.take();
        let mut run = self.run();
        run.rebalance(state)?;
        run.keep_now_and_then()?;
        run.change_workers()?;
        run.tell(message::of_step(step))
    }

    fn settle(&mut self) -> Result<Progress> {
        self.run().attempt(|driver| driver.settle_all())
    }

    fn progress(&self) -> Progress {
        self.run().driver.progress()
    }

    fn measure(&mut self, kernel: usize, settings: &Settings, parameters: &[T], step: u32) -> Result<f64> {
        self.run().attempt(|driver| driver.measure(kernel, settings, parameters, step))
    }

    fn state(&self) -> Result<View<'_, T>> {
        Ok(self.whole()?.view())
    }

    fn edit(&mut self, edit: &mut Edit<T>) -> Result<()> {
        self.replace(None, &mut |state| edit(state.view_mut()))
    }

    fn elements(&self, star: usize) -> Result<View<'_, T>> {
        Ok(self.whole()?.elements[&star].view())
    }

    fn edit_elements(&mut self, star: usize, edit: &mut Edit<T>) -> Result<()> {
        self.replace(None, &mut |state| {
            edit(state.elements.get_mut(&star).expect("its elements are projected").view_mut());
        })
    }

    fn renew(&mut self, domain: Arc<Domain>, begin: Option<&mut Edit<T>>) -> Result<()> {
        match begin {
            Some(begin) => self.replace(Some(domain), &mut |state| begin(state.view_mut())),
            None => self.replace(Some(domain), &mut |_| ()),
        }
    }

    fn globals(&self) -> Result<Vec<T>> {
        self.run().attempt(|driver| driver.globals())
    }

    fn set_globals(&mut self, globals: &[T]) -> Result<()> {
        self.run().tell(Control::SetGlobals(message::bits(globals)))
    }

    fn facts(&self) -> Facts {
        self.run().driver.facts()
    }

    fn remote(&mut self) -> Option<&mut dyn Remote<T>> {
        Some(self)
    }
}

impl<T: Number> Crew<T> {
    /// The state, which is asked for if that was not done yet.
    fn whole(&self) -> Result<&State<T>> {
        if let Some(state) = self.state.get() {
            return Ok(state);
        }
        let snapshot = self.run().ask()?;
        let state = Crew::fetch(&self.run, &snapshot)?;
        Ok(self.state.get_or_init(|| state))
    }

    /// Goes on with another state, and with other elements of changing stars if there are any: what is there is where a run begins again.
    fn replace(&mut self, domain: Option<Arc<Domain>>, edit: &mut dyn FnMut(&mut State<T>)) -> Result<()> {
        self.whole()?;
        let state = self.state.take().expect("it was just asked for");
        let mut run = self.run();
        let has_globals = !run.kept.globals.is_empty();
        let (progress, globals) = run.attempt(|driver| {
            let progress = driver.settle_all()?;
            Ok((progress, if has_globals { driver.globals()? } else { Vec::new() }))
        })?;
        // After this they will be asked for of no other workers.
        for coming in run.coming.iter().map(|coming| coming.snapshot.clone()).collect::<Vec<_>>() {
            run.attempt(|_| coming.arrive().map(drop))?;
        }
        let mut state = Arc::unwrap_or_clone(state);
        edit(&mut state);
        let (state, progress) = (Arc::new(state), Progress { non_finite: false, ..progress });
        run.forget_before(Kept { state: state.clone(), globals, progress });
        domain.iter().for_each(|domain| run.plan.domain = domain.clone());
        let replaced = run.driver.replace(domain, state.clone());
        replaced.or_else(|error| run.mend(error))?;
        drop(run);
        self.state = OnceLock::from(state);
        Ok(())
    }
}

impl<T: Number> Remote<T> for Crew<T> {
    fn snapshot(&mut self) -> Result<Option<Promise<T>>> {
        if self.state.get().is_some() {
            return Ok(None);
        }
        let (snapshot, run) = (self.run().ask()?, self.run.clone());
        Ok(Some(Box::new(move || Crew::fetch(&run, &snapshot))))
    }

    fn write_pieces(&mut self, mesh: &Mesh, frame: &Frame) -> Result<Range<u32>> {
        let mut run = self.run();
        loop {
            // A worker that was given up and wakes up writes to files of its own.
            let before = run.began as u32 * PIECES;
            match run.driver.write_pieces(mesh, &Frame { before, ..frame.clone() }) {
                Err(error) => run.mend(error)?,
                done => return done,
            }
        }
    }

    fn owners(&mut self) -> Vec<u32> {
        self.run().driver.owners()
    }

    fn recordings(&mut self) -> Result<Vec<Recording>> {
        self.run().attempt(|driver| driver.recordings())
    }
}
