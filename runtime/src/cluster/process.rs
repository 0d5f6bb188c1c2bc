//! A process that works for a driver: how it joins a run, joins it again, and leaves it.

use super::exchange::Exchange;
use super::launch::{PATIENCE, PATIENCE_OF_RANKS};
use super::message::{Begin, Control, DRIVER};
use super::worker;
use crate::engine::Table;
use crate::error::{Error, Result};
use crate::program::Program;
use crate::tapes;
use meshweft_net::children::{self, FAREWELL};
use meshweft_net::quic::{self, Settings};
use meshweft_net::{Rank, Token};
use std::io::{BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A process that works for a driver.
pub struct Worker {
    token: Token,
    settings: Settings,
    exchange: Arc<Exchange>,
    begin: Begin,
    /// The adapter that it updates on whatever the driver asks for.
    adapter: Option<usize>,
    leaver: Leaver,
    /// The only folder that files are written to, unless the driver says where.
    folder: Option<PathBuf>,
    /// Whether it ends with the process that started it.
    is_attached: bool,
}

impl Worker {
    /// The worker that this process is, if it was started as one: by [`Cluster::processes`](crate::Cluster::processes), or as one of several
    /// [ranks](crate::Cluster::rank), which waits for rank 0.
    ///
    /// To be asked first in `main`, before anything is read from standard input.
    ///
    /// # Errors
    /// A driver that cannot be reached, or does not let it in.
    pub fn from_env() -> Result<Option<Worker>> {
        if let Some(listen) = std::env::var_os(children::WORKER) {
            let listen = listen.to_str().and_then(|listen| listen.parse().ok());
            return Worker::attached(listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into())).map(Some);
        }
        let Some(rank) = Rank::from_env()?.filter(|rank| rank.rank > 0) else { return Ok(None) };
        let deadline = Instant::now() + PATIENCE_OF_RANKS;
        let token = rank.wait_for_token(deadline)?;
        let join_deadline = deadline.saturating_duration_since(Instant::now()).max(PATIENCE);
        Worker::connect(&token, Settings { join_deadline, ..Settings::default() }).map(Some)
    }

    /// Joins the run whose token is the first line of the standard input, and ends this process soon after that input ends:
    /// the process that started it, as [`Gathering::start`](crate::Gathering::start) does, is gone then. `listen`: as for [`Worker::join`].
    ///
    /// # Errors
    /// Those of [`Worker::join`].
    pub fn attached(listen: SocketAddr) -> Result<Worker> {
        /// Longer than any token.
        const LONGEST: u64 = 4096;
        let mut token = String::new();
        let read = std::io::stdin().lock().take(LONGEST).read_line(&mut token);
        read.map_err(|error| Error::Cluster(format!("cannot read the token of the run: {error}")))?;
        std::thread::spawn(|| {
            // The process that started this one is gone, in good order or not.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            std::thread::sleep(FAREWELL);
            std::process::exit(3);
        });
        let since = Instant::now();
        let worker = loop {
            let called = Instant::now();
            match Worker::join(&token, listen) {
                // A driver that slept, as a closed laptop does, answers again.
                Err(Error::Cluster(_)) if called.elapsed() > SILENCE && since.elapsed() < PATIENCE => {}
                joined => break joined?,
            }
        };
        // The process that started this one may have it write anywhere.
        Ok(Worker { folder: None, is_attached: true, ..worker })
    }

    /// Joins the run of a driver elsewhere, with its token. `listen`: where this host is to be reached by the others; an
    /// unspecified address takes all of its own.
    ///
    /// # Errors
    /// An invalid token, or one that is too old; a driver that cannot be reached, or does not let it in.
    pub fn join(token: &str, listen: SocketAddr) -> Result<Worker> {
        Worker::connect(&Token::parse(token)?, Settings { listen, ..Settings::default() })
    }

    fn connect(token: &Token, settings: Settings) -> Result<Worker> {
        let (exchange, begin) = join(token, &settings)?;
        let (token, folder, adapter) = (token.clone(), Some("out".into()), None);
        let leaver = Leaver::default();
        leaver.speak(&exchange);
        Ok(Worker { token, settings, exchange, begin, adapter, leaver, folder, is_attached: false })
    }

    /// Sets the folder for the files of [`AnySimulation::write_pieces`](crate::AnySimulation::write_pieces), the only ones that a worker
    /// writes. By default it is `out`; a worker that its driver has [started](crate::Gathering::start), with the token on its standard input,
    /// writes to the folder that the driver names.
    pub fn folder(self, folder: impl Into<PathBuf>) -> Worker {
        Worker { folder: Some(folder.into()), ..self }
    }

    /// What has this worker leave the run while it [works](Worker::run).
    pub fn leaver(&self) -> Leaver {
        self.leaver.clone()
    }

    /// The program that the driver runs, as [`std::any::type_name`] calls it.
    pub fn program(&self) -> &str {
        &self.begin.program
    }

    /// Updates on a GPU of this host, whatever the driver asks for: `adapter` is its number among those of
    /// [`adapters`](crate::adapters). One that is not there, or a run in 64 bits, is an error of [`run`](Worker::run).
    pub fn on_gpu(mut self, adapter: usize) -> Worker {
        self.adapter = Some(adapter);
        self
    }

    /// Leaves the run, because this host does not have the program that the driver runs; the driver ends it with that reason.
    pub fn refuse(self) -> Error {
        let program = self.program();
        let error = Error::Cluster(format!(
            "the driver runs {program}, which the program of this host does not have: start the same binary everywhere"
        ));
        self.exchange.send(DRIVER, Control::failed(&error).encode());
        self.exchange.transport().close();
        error
    }

    /// Works until the run is over. A worker that has lost the run, or its driver, looks for it for ten minutes.
    ///
    /// # Errors
    /// Another program than the driver's; a run that does not come back.
    pub fn run<P: Program>(self) -> Result<()> {
        self.work(|_| Ok(Table::<f32>::of::<P>()), |_| Ok(Table::<f64>::of::<P>()))
    }

    /// Whether the program is data, which any worker can [run](Worker::run_data).
    pub fn is_data(&self) -> bool {
        !self.begin.data.is_empty()
    }

    /// Works as [`Worker::run`] does for a [program that is data](crate::tapes::TapeProgram): the driver has sent it.
    ///
    /// # Errors
    /// A program that is compiled, and that this worker does not know; otherwise those of [`Worker::run`].
    pub fn run_data(self) -> Result<()> {
        if !self.is_data() {
            return Err(self.refuse());
        }
        self.work(|begin| tapes::read(&begin.data)?.table(), |begin| tapes::read(&begin.data)?.table())
    }
}

impl Worker {
    /// Works in the precision of the driver, and joins again when the run begins again. Not generic, so that what a worker is gets
    /// compiled in this crate alone.
    fn work(self, f32: Make<f32>, f64: Make<f64>) -> Result<()> {
        let Worker { token, settings, mut exchange, mut begin, adapter, leaver, folder, is_attached } = self;
        let mut since = Instant::now();
        loop {
            if let Some(adapter) = adapter {
                let own = exchange.transport().host() as usize - 1;
                begin.gpus.resize(begin.gpus.len().max(own + 1), None);
                begin.gpus[own] = Some(adapter as u32);
            }
            let result = match &begin.precision[..] {
                "f32" => f32(&begin).map(|table| worker::work(&exchange, &begin, table, folder.clone())),
                "f64" => f64(&begin).map(|table| worker::work(&exchange, &begin, table, folder.clone())),
                other => {
                    Err(Error::Cluster(format!("the driver computes in {other}, which this worker does not know")))
                }
            };
            let result = result.unwrap_or_else(|error| {
                exchange.send(DRIVER, Control::failed(&error).encode());
                Err(error)
            });
            let Err(Error::Lost(why)) = result else {
                exchange.transport().close();
                return result;
            };
            // What it has told of that is on its way: the driver is to name whom this one has lost, not this one.
            std::thread::sleep(LAST_WORDS);
            exchange.transport().leave();
            if leaver.is_asked() {
                return Ok(());
            }
            if exchange.now() > AT_WORK {
                since = Instant::now();
            }
            // A worker that was lost, or the driver: whichever it was, a run that begins again takes this one in.
            let again = Settings { join_deadline: ATTEMPT, ..settings.clone() };
            let mut is_told = is_attached;
            (exchange, begin) = loop {
                match join(&token, &again) {
                    Ok(joined) => {
                        leaver.speak(&joined.0);
                        break joined;
                    }
                    Err(_) if leaver.is_asked() => return Ok(()),
                    Err(error) if since.elapsed() > RETURN => {
                        return Err(Error::Lost(format!("{why}; joining again: {error}")));
                    }
                    Err(_) if !std::mem::replace(&mut is_told, true) => {
                        let minutes = RETURN.as_secs() / 60;
                        let told = format!("{why}: looking for the driver, for {minutes} minutes");
                        // Nothing can be done if it cannot be written.
                        let _ = writeln!(std::io::stderr(), "{told}");
                    }
                    Err(_) => std::thread::sleep(PAUSE),
                }
            };
        }
    }
}

/// The kernels of what the driver runs.
type Make<T> = fn(&Begin) -> Result<Table<T>>;

/// Has a worker leave its run in good order, from any thread: its driver gives its tasks to others first, and it ends then. The last worker
/// of a run cannot leave. See [`Worker::leaver`].
#[derive(Clone, Default)]
pub struct Leaver(Arc<Mutex<(bool, Weak<Exchange>)>>);

impl Leaver {
    /// Asks the driver to let it go.
    pub fn leave(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.0, true) {
            state.1.upgrade().into_iter().for_each(|exchange| exchange.send(DRIVER, Control::Leave.encode()));
        }
    }

    fn is_asked(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Speaks from here on by that exchange.
    fn speak(&self, exchange: &Arc<Exchange>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 = Arc::downgrade(exchange);
        if state.0 {
            exchange.send(DRIVER, Control::Leave.encode());
        }
    }
}

/// How long a worker must have worked for its next attempt to join to be the first of a row.
const AT_WORK: Duration = Duration::from_secs(1);
/// How long a worker looks for a run that it was in: the time that somebody takes to start the driver again.
const RETURN: Duration = Duration::from_secs(600);
/// An attempt to join that took longer has failed for want of an answer.
const SILENCE: Duration = Duration::from_secs(3);
/// How long a worker stays that has lost the run.
const LAST_WORDS: Duration = Duration::from_millis(20);
/// How long one of its attempts takes.
const ATTEMPT: Duration = Duration::from_secs(5);
/// From one of them to the next.
const PAUSE: Duration = Duration::from_millis(50);

/// Joins a run, and waits for what the driver says first.
fn join(token: &Token, settings: &Settings) -> Result<(Arc<Exchange>, Begin)> {
    let exchange = Exchange::new();
    let quic = quic::join(token, settings.clone(), exchange.sink())?;
    exchange.connect(Arc::new(quic));
    let begin = worker::begin(&exchange);
    if begin.is_err() && exchange.is_finished() {
        // The others hear the same: whoever left without a goodbye would be lost to them.
        exchange.transport().close();
    }
    Ok((exchange, begin?))
}
