//! The driver: an engine whose walkers are other hosts.
//!
//! It cuts the layout into shares, sends them out, and from then on says what is to be done: steps, without waiting for them;
//! measures; the state, when it is asked for. Workers exchange values among themselves.

use super::account::{Account, Tally};
use super::exchange::Exchange;
use super::kind::CONTROL;
use super::message::{self, Begin, Control, DRIVER, plain, unexpected};
use super::packing::Compress;
use super::partition::{self, report};
use super::pieces::Plan;
use super::snapshot::Snapshot;
use super::stall::{self, Watch};
use super::stream::Outgoing;
use super::timeline::Clocks;
use crate::engine::{Engine, Facts, HostReport, Progress, Promise, Recording, Remote, Table};
use crate::error::{Error, Result};
use crate::layout::{Domain, Edit, Layout, Shares, State, View};
use crate::number::Number;
use crate::piece::Frame;
use crate::program::StarShape;
use crate::step::{Settings, Step};
use meshweft_mesh::Mesh;
use meshweft_net::Host;
use meshweft_net::children::Children;
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long a driver waits for word of a worker at once.
const GLANCE: Duration = Duration::from_millis(100);
/// Steps that workers may be behind what was asked for, at most.
const AHEAD: u64 = 256;

/// The engine.
pub(crate) struct Driver<T: Number> {
    exchange: Arc<Exchange>,
    layout: Arc<Layout>,
    /// Its domain, with the elements that changing stars have now.
    domain: Arc<Domain>,
    /// The share of each task.
    owners: Arc<[u32]>,
    /// Rows and columns of workers, if they stand in a grid.
    grid: Option<[u32; 2]>,
    /// Steps asked for since the start or the last change of the state.
    asked: u64,
    books: Mutex<Books>,
    /// The state that was asked for last, while it may be on its way.
    snapshot: Mutex<Option<Arc<Snapshot<T>>>>,
    /// The state, if it was asked for since it last changed.
    state: OnceLock<Arc<State<T>>>,
    globals: usize,
    /// What each worker has of the mesh.
    shares: Vec<HostReport>,
    /// Whether workers know their pieces of the mesh.
    has_pieces: bool,
    /// The clocks of workers, if they write down what they do.
    clocks: Option<Clocks>,
    /// Whether a worker has said that it cannot go on.
    has_failed: AtomicBool,
    /// Workers that are to leave.
    leaving: AtomicU32,
    is_over: bool,
    /// Workers that this process has started.
    children: Option<Arc<Mutex<Children>>>,
}

/// What workers have said.
struct Books {
    accounts: Vec<Account>,
    /// What those had done in the end that had the shares before these.
    earlier: Vec<Tally>,
    /// What was done before the state last changed.
    before: Progress,
    tickets: u64,
}

impl Books {
    /// What each worker has done, whatever its shares were.
    fn sums(&self) -> Vec<Tally> {
        self.accounts.iter().zip(&self.earlier).map(|(account, &before)| account.tally.after(before)).collect()
    }
}

impl<T: Number> Driver<T> {
    /// Of workers that other processes have started.
    ///
    /// # Errors
    /// As [`Driver::with`].
    #[cfg(test)]
    pub(crate) fn new(
        exchange: Arc<Exchange>,
        layout: Arc<Layout>,
        owners: Vec<u32>,
        state: &State<T>,
        begin: &Begin,
    ) -> Result<Driver<T>> {
        let domain = layout.domain.clone();
        Driver::with(exchange, (layout, domain), owners, state, begin, (None, false))
    }

    /// Sends every worker its share of the layout and the state, and waits until all have it. The domain is that of the layout, or one with
    /// other elements of changing stars. `owners`: the share of each task;
    /// `children`: workers that this process has started; `goes_on`: whether the run is to, without those that cannot take part.
    ///
    /// # Errors
    /// A worker that was lost, or refuses; [`Error::TooLarge`] where a GPU does.
    pub(super) fn with(
        exchange: Arc<Exchange>,
        (layout, domain): (Arc<Layout>, Arc<Domain>),
        owners: Vec<u32>,
        state: &State<T>,
        begin: &Begin,
        (children, goes_on): (Option<Arc<Mutex<Children>>>, bool),
    ) -> Result<Driver<T>> {
        let workers = exchange.transport().hosts() - 1;
        let begin = &Begin { grid: begin.grid.filter(|_| !layout.searched.is_empty()), ..begin.clone() };
        let shares = Shares::of(&layout, &domain, &owners, (workers as usize, begin.grid));
        exchange.expect(2 * layout.state_bytes());
        let mut known = Vec::new();
        for share in 0..workers {
            let to = share + 1;
            exchange.send(to, Control::Begin(begin.clone()).encode());
            known.push(send_share(&exchange, &shares, share, state)?);
        }
        drop(shares);
        let accounts = vec![Account::default(); workers as usize];
        let earlier = vec![Tally::default(); workers as usize];
        let books = Mutex::new(Books { accounts, earlier, before: Progress::default(), tickets: 0 });
        let globals = begin.globals.len() / T::BYTES;
        let mut driver = Driver {
            exchange,
            layout,
            domain,
            owners: owners.into(),
            grid: begin.grid,
            asked: 0,
            books,
            snapshot: Mutex::default(),
            state: OnceLock::new(),
            globals,
            shares: known,
            has_pieces: false,
            clocks: None,
            has_failed: AtomicBool::new(false),
            leaving: AtomicU32::new(0),
            is_over: false,
            children,
        };
        match driver.begin(begin.is_recorded) {
            Ok(()) => Ok(driver),
            Err(error) => {
                if goes_on || matches!(error, Error::Lost(_)) {
                    driver.leave();
                }
                Err(error)
            }
        }
    }

    /// Waits until all workers have their shares.
    fn begin(&mut self, is_recorded: bool) -> Result<()> {
        for host in self.workers() {
            match self.next(host)? {
                Control::Ready(gpu) => self.shares[host as usize - 1].gpu = plain(&gpu),
                other => return unexpected(host, &other),
            }
        }
        if is_recorded {
            self.clocks = Some(Clocks::start(self.exchange(), &|host| self.next(host))?);
        }
        Ok(())
    }

    /// Says what its workers can have of the mesh at most.
    pub(super) fn with_most(mut self, most: &[Option<f64>]) -> Driver<T> {
        let known = self.shares.iter_mut().zip(most);
        known.for_each(|(share, most)| share.most = most.filter(|&most| most < 1.0));
        self
    }

    /// Counts on from what others have done, which had the same shares or others.
    pub(super) fn after(self, before: Progress, earlier: Vec<Tally>) -> Driver<T> {
        let mut books = self.books();
        books.before = before;
        if earlier.len() == books.earlier.len() {
            books.earlier = earlier;
        }
        drop(books);
        self
    }

    /// What each worker has done, whatever its shares were.
    pub(super) fn tallies(&self) -> Vec<Tally> {
        self.books().sums()
    }

    /// Seconds that each worker has updated since it has its share, on each of its threads.
    pub(super) fn busy(&self) -> Vec<f64> {
        let busy = |Account { tally, .. }: &Account| tally.updating / f64::from(tally.threads.max(1));
        self.books().accounts.iter().map(busy).collect()
    }

    /// Lets workers go, if they are still here.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.exchange.finish();
            let has_failed = self.has_failed.load(Ordering::Relaxed) || self.account().non_finite;
            self.tell(&Control::End { has_failed });
            self.exchange.transport().close();
        }
    }

    /// Says nothing more to workers: whoever has called them together sees to them.
    pub(super) fn leave(&mut self) {
        self.is_over = true;
        self.exchange.finish();
    }

    pub(super) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    pub(super) fn workers(&self) -> Range<Host> {
        1..self.exchange.transport().hosts()
    }

    /// Tells all workers something that they do not answer.
    pub(super) fn tell_all(&self, message: &Control) -> Result<()> {
        self.exchange.check().map_err(|error| self.cause(error))?;
        self.tell(message);
        Ok(())
    }

    fn tell(&self, message: &Control) {
        let message = message.encode();
        self.workers().for_each(|to| self.exchange.send(to, message.clone()));
    }

    /// Asks all workers for their state, once they have done all steps: while they do, one may say that it cannot.
    fn ask(&self) -> Result<Arc<Snapshot<T>>> {
        self.settle_all()?;
        let snapshot = self.awaited();
        self.send_for(&snapshot)?;
        Ok(snapshot)
    }

    /// A place for a state that workers are to be asked for.
    pub(super) fn awaited(&self) -> Arc<Snapshot<T>> {
        Arc::new(Snapshot::new(self.exchange.clone(), self.layout.clone(), self.owners.clone()))
    }

    /// Asks all workers for their state after all that they were told, to be put there.
    ///
    /// # Errors
    /// The state before that did not come, or was not the same everywhere: one that follows it must not be taken for sound.
    pub(super) fn send_for(&self, snapshot: &Arc<Snapshot<T>>) -> Result<()> {
        self.take_in()?;
        self.tell(&Control::State);
        snapshot.redirect(self.exchange.clone(), self.owners.clone());
        *self.asked_state() = Some(snapshot.clone());
        Ok(())
    }

    /// Waits for the state that is on its way, if one is.
    fn take_in(&self) -> Result<()> {
        match self.asked_state().take() {
            Some(snapshot) => snapshot.arrive().map(drop).map_err(|error| self.cause(error)),
            None => Ok(()),
        }
    }

    fn asked_state(&self) -> MutexGuard<'_, Option<Arc<Snapshot<T>>>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message of a worker that is no report. An error as soon as any worker says that it cannot go on.
    pub(super) fn next(&self, host: Host) -> Result<Control> {
        self.take_in()?;
        let (mut watch, mut waited) = (Watch::default(), Duration::ZERO);
        loop {
            let has_failed = |message: &[u8]| {
                matches!(Control::decode(message), Ok(Control::Failed(_) | Control::TooLarge(_) | Control::Cut(_)))
            };
            let wants =
                |from, message: &[u8]| message.first() == Some(&CONTROL) && (from == host || has_failed(message));
            let message = self.exchange.receive(GLANCE, wants).map_err(|error| self.cause(error))?;
            let Some((from, message)) = message else {
                self.look_after_children();
                waited += GLANCE;
                if waited >= stall::LONG {
                    watch.look(&self.exchange).map_err(|error| self.cause(error))?;
                    waited = Duration::ZERO;
                }
                continue;
            };
            match Control::decode(&message)? {
                Control::Progress { ticket: None, progress } => self.books().accounts[host as usize - 1] = progress,
                Control::Leave => _ = self.leaving.fetch_add(1, Ordering::Relaxed),
                other => return self.failure(from, &other).map_or(Ok(other), Err),
            }
        }
    }

    /// The error of a worker that cannot go on, if that is what it says.
    fn failure(&self, from: Host, said: &Control) -> Option<Error> {
        let error = match said {
            Control::Failed(why) => Error::Cluster(format!("host {from} cannot go on: {}", plain(why))),
            Control::TooLarge(why) => Error::TooLarge(format!("host {from}: {}", plain(why))),
            Control::Cut(why) => return Some(Error::Lost(plain(why))),
            _ => return None,
        };
        self.has_failed.store(true, Ordering::Relaxed);
        Some(error)
    }

    /// Notices what has ended of what this process has started, before the network does.
    fn look_after_children(&self) {
        let Some(children) = &self.children else { return };
        if let Some(what) = children.lock().unwrap_or_else(PoisonError::into_inner).failed(self.workers().len()) {
            self.exchange.cut_off(what);
        }
    }

    /// The error that a worker has told, rather than that it is gone.
    fn cause(&self, error: Error) -> Error {
        let is_control = |_, message: &[u8]| message.first() == Some(&CONTROL);
        let (mut error, mut is_told) = (error, false);
        while let Some((host, message)) = self.exchange.try_receive(is_control) {
            let Ok(Some(told)) = Control::decode(&message).map(|said| self.failure(host, &said)) else { continue };
            // Those who leave because another was lost are lost themselves: the first of them knows more.
            match told {
                Error::Lost(_) if is_told => {}
                Error::Lost(_) => (error, is_told) = (told, true),
                other => return other,
            }
        }
        error
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the reports that have come.
    fn read_reports(&self) {
        let is_report = |_, message: &[u8]| {
            message.first() == Some(&CONTROL)
                && matches!(Control::decode(message), Ok(Control::Progress { ticket: None, .. } | Control::Leave))
        };
        while let Some((host, message)) = self.exchange.try_receive(is_report) {
            match Control::decode(&message) {
                Ok(Control::Progress { progress, .. }) => self.books().accounts[host as usize - 1] = progress,
                _ => _ = self.leaving.fetch_add(1, Ordering::Relaxed),
            }
        }
    }

    /// Workers that have said that they are to leave.
    pub(super) fn leaving(&self) -> u32 {
        self.leaving.load(Ordering::Relaxed)
    }

    /// How far all workers are.
    fn account(&self) -> Progress {
        let books = self.books();
        let first = books.accounts.iter().filter(|account| account.non_finite).min_by_key(|account| account.steps);
        let least = books.accounts.iter().min_by_key(|account| account.steps);
        let Some(account) = first.or(least) else { return books.before.clone() };
        let Progress { steps, rounds, swept, ref loops, .. } = books.before;
        Progress {
            steps: steps + account.steps,
            rounds: rounds + account.rounds,
            swept: swept + account.swept,
            loops: account.loops.after(loops),
            non_finite: first.is_some(),
            is_pending: account.steps < self.asked && first.is_none(),
        }
    }

    /// Waits until all workers have done what they were told.
    pub(super) fn settle_all(&self) -> Result<Progress> {
        let due = {
            let mut books = self.books();
            books.tickets += 1;
            books.tickets
        };
        self.tell(&Control::Settle { ticket: due });
        for host in self.workers() {
            match self.next(host)? {
                Control::Progress { ticket: Some(ticket), progress } if ticket == due => {
                    self.books().accounts[host as usize - 1] = progress;
                }
                other => return unexpected(host, &other),
            }
        }
        Ok(Progress { is_pending: false, ..self.account() })
    }
}

impl<T: Number> Driver<T> {
    /// Gives workers another state, and other elements of changing stars if there are any.
    pub(super) fn replace(&mut self, domain: Option<Arc<Domain>>, state: Arc<State<T>>) -> Result<()> {
        let before = Progress { non_finite: false, ..self.settle_all()? };
        let is_renewed = domain.is_some();
        domain.into_iter().for_each(|domain| self.domain = domain);
        self.tell(if is_renewed { &Control::Renew } else { &Control::Edit });
        let shares = Shares::of(&self.layout, &self.domain, &self.owners, (self.workers().len(), self.grid));
        let mut known = Vec::new();
        for host in self.workers() {
            if is_renewed {
                known.push(send_share(&self.exchange, &shares, host - 1, &state)?);
                continue;
            }
            let mut out = Outgoing::new(&self.exchange, host);
            let sent = write_state(&shares, host - 1, &state, &mut out).and_then(|()| out.flush());
            sent.map_err(|error| lost(&self.exchange, &error))?;
        }
        drop(shares);
        for (share, known) in self.shares.iter_mut().zip(known) {
            *share = HostReport { most: share.most, ..known };
        }
        if is_renewed {
            // Values of tasks go only to hosts that know them.
            self.begin(false)?;
        }
        let mut books = self.books();
        books.before = before;
        books.accounts.iter_mut().for_each(|account| *account = Account::default());
        drop(books);
        self.asked = 0;
        self.state = OnceLock::from(state);
        Ok(())
    }

    /// The state, which is asked for if that was not done yet.
    fn whole(&self) -> Result<&State<T>> {
        if let Some(state) = self.state.get() {
            return Ok(state);
        }
        let state = self.ask()?.arrive()?;
        Ok(self.state.get_or_init(|| state))
    }

    /// The same, to be changed.
    fn take_state(&mut self) -> Result<State<T>> {
        self.state.take().map_or_else(|| self.ask()?.arrive(), Ok).map(Arc::unwrap_or_clone)
    }

    /// Tells workers of a step, and waits for them if they are far behind.
    pub(super) fn tell_step(&mut self, step: &Control) -> Result<()> {
        self.exchange.check().map_err(|error| self.cause(error))?;
        self.state.take();
        self.tell(step);
        self.asked += 1;
        self.read_reports();
        let least = self.books().accounts.iter().map(|account| account.steps).min().unwrap_or(0);
        if self.asked > least + AHEAD {
            self.settle_all()?;
        }
        Ok(())
    }
}

impl<T: Number> Engine<T> for Driver<T> {
    fn step(&mut self, step: &Step<T>) -> Result<()> {
        self.tell_step(&message::of_step(step))
    }

    fn settle(&mut self) -> Result<Progress> {
        self.settle_all()
    }

    fn progress(&self) -> Progress {
        self.read_reports();
        self.account()
    }

    fn measure(&mut self, kernel: usize, settings: &Settings, parameters: &[T], step: u32) -> Result<f64> {
        let parameters = message::bits(parameters);
        self.tell(&Control::Measure { kernel: kernel as u32, settings: *settings, parameters, step });
        match self.next(1)? {
            Control::Total(total) => Ok(total),
            other => unexpected(1, &other),
        }
    }

    fn state(&self) -> Result<View<'_, T>> {
        Ok(self.whole()?.view())
    }

    fn edit(&mut self, edit: &mut Edit<T>) -> Result<()> {
        let mut state = self.take_state()?;
        edit(state.view_mut());
        self.replace(None, Arc::new(state))
    }

    fn elements(&self, star: usize) -> Result<View<'_, T>> {
        Ok(self.whole()?.elements[&star].view())
    }

    fn edit_elements(&mut self, star: usize, edit: &mut Edit<T>) -> Result<()> {
        let mut state = self.take_state()?;
        edit(state.elements.get_mut(&star).expect("its elements are projected").view_mut());
        self.replace(None, Arc::new(state))
    }

    fn renew(&mut self, domain: Arc<Domain>, begin: Option<&mut Edit<T>>) -> Result<()> {
        let mut state = self.take_state()?;
        begin.into_iter().for_each(|begin| begin(state.view_mut()));
        self.replace(Some(domain), Arc::new(state))
    }

    fn globals(&self) -> Result<Vec<T>> {
        self.exchange.send(1, Control::Globals.encode());
        match self.next(1)? {
            Control::GlobalsAre(globals) => message::numbers(&globals, self.globals),
            other => unexpected(1, &other),
        }
    }

    fn set_globals(&mut self, globals: &[T]) -> Result<()> {
        self.tell(&Control::SetGlobals(message::bits(globals)));
        Ok(())
    }

    fn facts(&self) -> Facts {
        self.read_reports();
        let books = self.books();
        let tallies = books.sums();
        let report = |((share, tally), account): ((&HostReport, &Tally), &Account)| HostReport {
            behind: self.asked.saturating_sub(account.steps),
            ..tally.report(share)
        };
        Facts {
            hosts: self.shares.iter().zip(&tallies).zip(&books.accounts).map(report).collect(),
            threads: tallies.iter().map(|tally| tally.threads as usize).sum(),
            left_out: tallies.iter().map(|tally| tally.left_out).sum(),
            ..Facts::default()
        }
    }

    fn remote(&mut self) -> Option<&mut dyn Remote<T>> {
        Some(self)
    }
}

impl<T: Number> Remote<T> for Driver<T> {
    fn snapshot(&mut self) -> Result<Option<Promise<T>>> {
        if self.state.get().is_some() {
            return Ok(None);
        }
        let snapshot = self.ask()?;
        Ok(Some(Box::new(move || snapshot.arrive())))
    }

    fn write_pieces(&mut self, mesh: &Mesh, frame: &Frame) -> Result<Range<u32>> {
        let workers = self.workers();
        if !self.has_pieces {
            let owners = partition::hosts_of_vertices(&self.layout, &self.owners);
            let plan = Plan::new(mesh, &self.layout, owners, workers.len());
            for host in workers.clone() {
                self.exchange.send(host, Control::Piece.encode());
                plan.send(&self.exchange, host)?;
            }
            self.has_pieces = true;
        }
        self.tell(&Control::WritePiece(message::write_piece(frame)?));
        for host in workers.clone() {
            match self.next(host)? {
                Control::Wrote => {}
                other => return unexpected(host, &other),
            }
        }
        Ok(workers.start + frame.before..workers.end + frame.before)
    }

    fn owners(&mut self) -> Vec<u32> {
        partition::hosts_of_vertices(&self.layout, &self.owners)
    }

    fn recordings(&mut self) -> Result<Vec<Recording>> {
        self.settle_all()?;
        self.clocks
            .as_ref()
            .map_or(Ok(Vec::new()), |clocks| clocks.recordings(self.exchange(), &|host| self.next(host)))
    }
}

impl<T: Number> Drop for Driver<T> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends a worker its share with a state, and tells what that is.
///
/// # Errors
/// The worker was lost.
fn send_share<T: Number>(exchange: &Exchange, shares: &Shares, share: u32, state: &State<T>) -> Result<HostReport> {
    let mut out = Outgoing::new(exchange, share + 1);
    let domain = shares.domain(share);
    let known = report(share + 1, &domain);
    let sent = domain.write(&mut out);
    drop(domain);
    sent.and_then(|()| write_state(shares, share, state, &mut out))
        .and_then(|()| shares.blocks(share).map_or(Ok(()), |blocks| blocks.write(&mut out)))
        .and_then(|()| out.flush())
        .map_err(|error| lost(exchange, &error))?;
    Ok(known)
}

/// Writes the state of a share.
fn write_state<T: Number>(shares: &Shares, share: u32, state: &State<T>, out: &mut Outgoing) -> std::io::Result<()> {
    let vertices = shares.state(share, state.view());
    let mut parts = [vertices].into_iter().chain(shares.elements(share, state));
    parts.try_for_each(|part| part.view().write(0..part.len, out))
}

/// The error of a worker that takes nothing.
fn lost(exchange: &Exchange, error: &std::io::Error) -> Error {
    exchange.check().err().unwrap_or_else(|| Error::Lost(error.to_string()))
}

/// What a worker is told first.
pub(crate) fn begin<T: Number>(table: &Table<T>, stars: &[StarShape], globals: &[T], threads: usize) -> Begin {
    Begin {
        version: env!("CARGO_PKG_VERSION").into(),
        program: table.program.into(),
        fingerprint: table.fingerprint(),
        data: table.data.to_vec(),
        precision: T::NAME.into(),
        threads: threads as u32,
        stars: stars.iter().map(message::of_star).collect(),
        globals: message::bits(globals),
        is_recorded: false,
        gpus: Vec::new(),
        compress: Compress::default(),
        grid: None,
    }
}

const _: () = assert!(DRIVER == 0, "shares are numbered from the first worker");
