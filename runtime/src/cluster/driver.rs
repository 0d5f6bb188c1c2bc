//! The driver: an engine whose walkers are other hosts.
//!
//! It cuts the layout into shares, sends them out, and from then on says what is to be done: steps, without waiting for them;
//! measures; the state, when it is asked for. Workers exchange values among themselves.

use super::account::{Account, Tally};
use super::balance::Balance;
use super::exchange::Exchange;
use super::kind::CONTROL;
use super::message::{self, Begin, Control, DRIVER, unexpected};
use super::packing::Compress;
use super::partition::{self, report};
use super::pieces::Plan;
use super::snapshot::Snapshot;
use super::stall::{self, Watch};
use super::stream::Outgoing;
use super::timeline::Clocks;
use crate::engine::{Engine, Facts, HostReport, Progress, Promise, Recording, Remote, Table};
use crate::error::{Error, Result};
use crate::layout::{Layout, Shares, State, View, ViewMut};
use crate::number::Number;
use crate::piece::Frame;
use crate::program::StarShape;
use crate::step::{Settings, Step};
use meshweft_mesh::Mesh;
use meshweft_net::Host;
use meshweft_net::children::Children;
use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// Starts other workers with shares of these weights, from a state and globals.
pub(super) type Restart<T> = Box<dyn Fn(&[f64], &State<T>, &[T]) -> Result<Driver<T>> + Send + Sync>;

/// Steps that workers may be behind what was asked for, at most.
const AHEAD: u64 = 256;

/// The engine.
pub(crate) struct Driver<T: Number> {
    exchange: Arc<Exchange>,
    layout: Arc<Layout>,
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
    state: OnceLock<State<T>>,
    globals: usize,
    /// What each worker has of the mesh.
    shares: Vec<HostReport>,
    /// Whether workers know their pieces of the mesh.
    has_pieces: bool,
    /// The clocks of workers, if they write down what they do.
    clocks: Option<Clocks>,
    /// When to hand out shares again, and how, if that is asked for.
    balance: Option<(Balance, Restart<T>)>,
    is_over: bool,
    /// Those of workers inside of this process.
    threads: Vec<JoinHandle<()>>,
    /// Ended last.
    _children: Children,
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
    /// Sends every worker its share of the layout and the state, and waits until all have it. `owners`: the share of each task.
    ///
    /// # Errors
    /// A worker that was lost, or refuses; [`Error::TooLarge`] where a GPU does.
    pub(crate) fn new(
        exchange: Arc<Exchange>,
        layout: Arc<Layout>,
        owners: Vec<u32>,
        state: &State<T>,
        begin: &Begin,
        children: Children,
    ) -> Result<Driver<T>> {
        let workers = exchange.transport().hosts() - 1;
        let begin = &Begin { grid: begin.grid.filter(|_| !layout.searched.is_empty()), ..begin.clone() };
        let shares = Shares::new(&layout, &owners, workers as usize, begin.grid);
        let mut known = Vec::new();
        for share in 0..workers {
            let to = share + 1;
            exchange.send(to, Control::Begin(begin.clone()).encode());
            let mut out = Outgoing::new(&exchange, to);
            let domain = shares.domain(share);
            known.push(report(to, &domain));
            let sent = domain.write(&mut out);
            drop(domain);
            let part = shares.state(share, state.view());
            sent.and_then(|()| part.view().write(0..part.len, &mut out))
                .and_then(|()| shares.blocks(share).map_or(Ok(()), |blocks| blocks.write(&mut out)))
                .and_then(|()| out.flush())
                .map_err(|error| exchange.check().err().unwrap_or_else(|| Error::Cluster(error.to_string())))?;
        }
        let accounts = vec![Account::default(); workers as usize];
        let earlier = vec![Tally::default(); workers as usize];
        let books = Mutex::new(Books { accounts, earlier, before: Progress::default(), tickets: 0 });
        let globals = begin.globals.len() / T::BYTES;
        let mut driver = Driver {
            exchange,
            layout: layout.clone(),
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
            balance: None,
            is_over: false,
            threads: Vec::new(),
            _children: children,
        };
        for host in 1..=workers {
            match driver.next(host)? {
                Control::Ready(gpu) => driver.shares[host as usize - 1].gpu = gpu,
                other => return unexpected(host, &other),
            }
        }
        if begin.is_recorded {
            driver.clocks = Some(Clocks::start(driver.exchange(), &|host| driver.next(host))?);
        }
        Ok(driver)
    }

    /// Keeps a state that all workers have.
    pub(super) fn holding(mut self, state: State<T>) -> Driver<T> {
        self.state = OnceLock::from(state);
        self
    }

    /// Keeps the threads that its workers are.
    pub(super) fn with_threads(mut self, threads: Vec<JoinHandle<()>>) -> Driver<T> {
        self.threads = threads;
        self
    }

    /// Lets workers go, if they are still here.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.exchange.finish();
            self.tell(&Control::End);
            self.exchange.transport().close();
        }
    }

    /// Starts workers with shares of these weights, or less on GPUs that refuse theirs.
    ///
    /// # Errors
    /// Those of [`hand_out`](Balance::hand_out).
    pub(super) fn with_shares(
        weights: Vec<f64>,
        (balance, restart): &mut (Balance, Restart<T>),
        state: State<T>,
        globals: &[T],
    ) -> Result<Driver<T>> {
        let mut driver = balance.hand_out(weights, |weights| restart(weights, &state, globals))?.holding(state);
        let known = driver.shares.iter_mut().zip(balance.most());
        known.for_each(|(share, most)| share.most = most.filter(|&most| most < 1.0));
        Ok(driver)
    }

    /// Hands out shares again while it runs, once hosts turn out to be busy for very different times.
    pub(super) fn balanced(mut self, balance: (Balance, Restart<T>)) -> Driver<T> {
        self.balance = Some(balance);
        self
    }

    /// Hands out shares again if it is time to.
    fn rebalance(&mut self) -> Result<()> {
        let Some(mut balance) = self.balance.take_if(|(balance, _)| balance.is_due()) else { return Ok(()) };
        let progress = self.settle_all()?;
        let busy = |Account { tally, .. }: &Account| tally.updating / f64::from(tally.threads.max(1));
        let busy: Vec<f64> = self.books().accounts.iter().map(busy).collect();
        let better = if progress.non_finite { None } else { balance.0.correct(&busy) };
        if let Some(weights) = better {
            let state = self.state.take().map_or_else(|| self.ask()?.take(), Ok)?;
            let globals = self.globals()?;
            // A GPU has no room for a share and the one after it.
            self.end();
            self.threads.drain(..).for_each(|thread| drop(thread.join()));
            let other = Driver::with_shares(weights, &mut balance, state, &globals)?;
            balance.0.settle();
            let earlier = self.books().sums();
            let mut books = other.books();
            (books.before, books.earlier) = (progress, earlier);
            drop(books);
            *self = other;
        }
        self.balance = Some(balance);
        Ok(())
    }

    pub(super) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    pub(super) fn workers(&self) -> Range<Host> {
        1..self.exchange.transport().hosts()
    }

    fn tell(&self, message: &Control) {
        let message = message.encode();
        self.workers().for_each(|to| self.exchange.send(to, message.clone()));
    }

    /// Asks all workers for their state, once they have done all steps: while they do, one may say that it cannot.
    fn ask(&self) -> Result<Arc<Snapshot<T>>> {
        self.settle_all()?;
        self.tell(&Control::State);
        let snapshot = Snapshot::new(self.exchange.clone(), self.layout.clone(), self.owners.clone());
        let snapshot = Arc::new(snapshot);
        *self.asked_state() = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// Waits for the state that is on its way, if one is.
    fn take_in(&self) {
        if let Some(snapshot) = self.asked_state().take() {
            snapshot.arrive();
        }
    }

    fn asked_state(&self) -> MutexGuard<'_, Option<Arc<Snapshot<T>>>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message of a worker that is no report. An error as soon as any worker says that it cannot go on.
    pub(super) fn next(&self, host: Host) -> Result<Control> {
        self.take_in();
        let mut watch = Watch::default();
        loop {
            let has_failed =
                |message: &[u8]| matches!(Control::decode(message), Ok(Control::Failed(_) | Control::TooLarge(_)));
            let wants =
                |from, message: &[u8]| message.first() == Some(&CONTROL) && (from == host || has_failed(message));
            let message = self.exchange.receive(stall::LONG, wants).map_err(|error| self.cause(error))?;
            let Some((from, message)) = message else {
                watch.look(&self.exchange).map_err(|error| self.cause(error))?;
                continue;
            };
            match Control::decode(&message)? {
                Control::Progress { ticket: None, progress } => self.books().accounts[host as usize - 1] = progress,
                Control::Failed(why) => return Err(Error::Cluster(format!("host {from} cannot go on: {why}"))),
                Control::TooLarge(why) => return Err(Error::TooLarge(format!("host {from}: {why}"))),
                other => return Ok(other),
            }
        }
    }

    /// The error that a worker has told, rather than that it is gone.
    fn cause(&self, error: Error) -> Error {
        let is_control = |_, message: &[u8]| message.first() == Some(&CONTROL);
        while let Some((host, message)) = self.exchange.try_receive(is_control) {
            match Control::decode(&message) {
                Ok(Control::Failed(why)) => return Error::Cluster(format!("host {host} cannot go on: {why}")),
                Ok(Control::TooLarge(why)) => return Error::TooLarge(format!("host {host}: {why}")),
                _ => {}
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
                && matches!(Control::decode(message), Ok(Control::Progress { ticket: None, .. }))
        };
        while let Some((host, message)) = self.exchange.try_receive(is_report) {
            if let Ok(Control::Progress { progress, .. }) = Control::decode(&message) {
                self.books().accounts[host as usize - 1] = progress;
            }
        }
    }

    /// How far all workers are.
    fn account(&self) -> Progress {
        let books = self.books();
        let first = books.accounts.iter().filter(|account| account.non_finite).min_by_key(|account| account.steps);
        let least = books.accounts.iter().min_by_key(|account| account.steps);
        let Some(account) = first.or(least) else { return books.before };
        let Progress { steps, rounds, swept, .. } = books.before;
        Progress {
            steps: steps + account.steps,
            rounds: rounds + account.rounds,
            swept: swept + account.swept,
            non_finite: first.is_some(),
            is_pending: account.steps < self.asked && first.is_none(),
        }
    }

    /// Waits until all workers have done what they were told.
    fn settle_all(&self) -> Result<Progress> {
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

impl<T: Number> Engine<T> for Driver<T> {
    fn step(&mut self, step: &Step<T>) -> Result<()> {
        self.exchange.check().map_err(|error| self.cause(error))?;
        self.rebalance()?;
        self.state.take();
        self.tell(&message::of_step(step));
        self.asked += 1;
        self.read_reports();
        let least = self.books().accounts.iter().map(|account| account.steps).min().unwrap_or(0);
        if self.asked > least + AHEAD {
            self.settle_all()?;
        }
        Ok(())
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
        if let Some(state) = self.state.get() {
            return Ok(state.view());
        }
        let state = self.ask()?.take()?;
        Ok(self.state.get_or_init(|| state).view())
    }

    fn edit(&mut self, edit: &mut dyn FnMut(ViewMut<'_, T>)) -> Result<()> {
        let mut state = match self.state.take() {
            Some(state) => state,
            None => self.ask()?.take()?,
        };
        edit(state.view_mut());
        let before = Progress { non_finite: false, ..self.settle_all()? };
        self.tell(&Control::Edit);
        let shares = Shares::new(&self.layout, &self.owners, self.workers().len(), self.grid);
        for host in self.workers() {
            let share = shares.state(host - 1, state.view());
            let mut out = Outgoing::new(&self.exchange, host);
            share
                .view()
                .write(0..share.len, &mut out)
                .and_then(|()| out.flush())
                .map_err(|error| Error::Cluster(error.to_string()))?;
        }
        drop(shares);
        let mut books = self.books();
        books.before = before;
        books.accounts.iter_mut().for_each(|account| *account = Account::default());
        drop(books);
        self.asked = 0;
        self.state = OnceLock::from(state);
        Ok(())
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
        let tallies = self.books().sums();
        Facts {
            hosts: self.shares.iter().zip(&tallies).map(|(share, tally)| tally.report(share)).collect(),
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
        Ok(Some(Box::new(move || snapshot.take())))
    }

    fn write_pieces(&mut self, mesh: &Mesh, frame: &Frame) -> Result<u32> {
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
        Ok(workers.len() as u32)
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

/// What a worker is told first.
pub(crate) fn begin<T: Number>(table: &Table<T>, stars: &[StarShape], globals: &[T], threads: usize) -> Begin {
    Begin {
        version: env!("CARGO_PKG_VERSION").into(),
        program: table.program.into(),
        fingerprint: table.fingerprint(),
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
