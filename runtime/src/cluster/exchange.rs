//! What a host has of the network: values for its walks, mail for everything else.
//!
//! Whichever thread moves the network hands in what has come ([`Exchange::event`]) and leaves at once. Values of ghosts go straight
//! into the walk that is under way, or wait until it may take them; anything else is mail, which the host's own thread asks for.

mod border;
mod early;
mod ghosts;
mod line;
mod links;
mod loss;
mod mail;
mod patience;

use super::arrival::Arrival;
use super::kind::{VALUES, WATCH};
use super::message::{Control, DRIVER, Standing};
use super::overlap::Overlap;
use super::packing::{Compress, Packing};
use super::time::{Clock, Time};
use super::values;
use crate::engine::{Lag, Timeline};
use crate::error::{Error, Result};
use crate::layout::Domain;
use ghosts::Ghosts;
use line::Line;
use links::{Links, breach};
use loss::Loss;
use mail::Mail;
use meshweft_net::codec::Form;
use meshweft_net::{Event, Host, Transport};
use patience::Patience;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

/// Bytes that may wait on the way to the driver for it to be told how this host stands: the next time will do.
const ANSWERS: usize = 64 << 20;
/// How long a thread waits for mail at most before it looks again.
const MAIL: Duration = Duration::from_millis(100);

/// One host's end of the run.
pub(crate) struct Exchange {
    line: Line,
    /// How time passes.
    time: Arc<dyn Time>,
    /// What this host has of the mesh, once it is known.
    links: RwLock<Option<Arc<Links>>>,
    /// How values go out.
    packing: OnceLock<Packing>,
    ghosts: Mutex<Ghosts>,
    mail: Mail,
    loss: Loss,
    /// How soon values go out.
    patience: Patience,
    /// Messages that the host's own thread has taken, and walks that it has begun.
    moves: AtomicU64,
    /// Where this host writes down what it does, if the driver wants to know.
    pub(super) timeline: OnceLock<Arc<Timeline>>,
    #[cfg(test)]
    pub(crate) patient: super::hurt::Patient,
    /// How long threads have waited, and how much of the time of messages they had work.
    pub(super) overlap: Overlap,
}

fn lock<A>(mutex: &Mutex<A>) -> MutexGuard<'_, A> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exchange {
    /// In real time.
    pub(crate) fn new() -> Arc<Exchange> {
        Exchange::in_time(Arc::new(Clock::default()))
    }

    pub(crate) fn in_time(time: Arc<dyn Time>) -> Arc<Exchange> {
        Arc::new(Exchange {
            line: Line::default(),
            time,
            links: RwLock::default(),
            packing: OnceLock::new(),
            ghosts: Mutex::default(),
            mail: Mail::default(),
            loss: Loss::default(),
            patience: Patience::default(),
            moves: AtomicU64::new(0),
            timeline: OnceLock::new(),
            #[cfg(test)]
            patient: Default::default(),
            overlap: Overlap::default(),
        })
    }

    /// Where the network hands in events. It does not keep the exchange alive.
    pub(crate) fn sink(self: &Arc<Self>) -> Arc<dyn Fn(Event) + Send + Sync> {
        let exchange: Weak<Exchange> = Arc::downgrade(self);
        Arc::new(move |event| {
            if let Some(exchange) = exchange.upgrade() {
                exchange.event(event);
            }
        })
    }

    /// Says what carries messages.
    pub(crate) fn connect(&self, transport: Arc<dyn Transport>) {
        self.line.connect(transport);
        self.deliver();
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        self.line.transport()
    }

    /// Sends a message.
    pub(crate) fn send(&self, to: Host, message: Vec<u8>) {
        #[cfg(test)]
        self.patient.send(|| self.transport().leave());
        self.line.send(to, message);
    }

    /// Something has come.
    fn event(&self, event: Event) {
        self.line.event(event);
        self.deliver();
    }

    /// Hands out what has come. One thread at a time: values of a ghost come in order.
    fn deliver(&self) {
        let _turn = self.line.turn();
        while let Some(event) = self.line.poll() {
            let (from, message) = match event {
                Event::Lost { host, why } => {
                    self.lose(host, why);
                    continue;
                }
                Event::Message { from, bytes } => (from, bytes),
            };
            match message.first().copied() {
                Some(VALUES) => {
                    if let Err(error) = self.values(from, &message) {
                        // Whoever says that would say it again: it is no reason to begin again.
                        let what = error.to_string();
                        let what = what.trim_start_matches("cluster: ");
                        self.note(Error::Cluster(format!("host {from} breaks the rules: {what}")));
                    }
                }
                Some(WATCH) => self.answer(from),
                // What the driver sends is what there is to do, and no more than it has itself.
                _ if from == DRIVER => self.mail.put_all(message),
                _ if self.mail.put(from, message) => {}
                _ => self
                    .note(Error::Cluster(format!("host {from} breaks the rules: it sends more than is asked of it"))),
            }
        }
        self.time.news();
    }

    /// Says how this host stands, to the driver alone, and not while answers of before wait.
    fn answer(&self, from: Host) {
        let transport = self.transport();
        if from == DRIVER && transport.wait_for_room(from, ANSWERS, Instant::now()) {
            self.send(from, Control::Standing(self.standing()).encode());
        }
    }

    fn lose(&self, host: Host, why: String) {
        self.note(Error::Lost(format!("host {host} was lost: {why}")));
    }

    fn note(&self, what: Error) {
        if self.loss.note(what) {
            self.time.news();
        }
    }

    /// A host is gone, by what is known otherwise than from the network.
    pub(crate) fn cut_off(&self, what: String) {
        self.note(Error::Lost(what));
    }

    /// The error of the host that was lost first, if one was.
    pub(crate) fn check(&self) -> Result<()> {
        self.loss.check()
    }

    /// Says that this host does something that takes long.
    pub(crate) fn stir(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// What this host's clock shows.
    pub(crate) fn now(&self) -> Duration {
        self.time.now()
    }

    /// Bytes of messages of values as they would have been, and as they went out.
    pub(crate) fn value_bytes(&self) -> [u64; 2] {
        self.packing.get().map_or([0; 2], Packing::bytes)
    }

    /// From here on hosts may leave.
    pub(crate) fn finish(&self) {
        self.loss.finish();
    }

    /// Whether they may.
    pub(crate) fn is_finished(&self) -> bool {
        self.loss.is_finished()
    }

    /// The first piece of mail that is asked for, with its sender; none if nothing like it has come in time.
    ///
    /// # Errors
    /// A host was lost.
    pub(crate) fn receive(
        &self,
        patience: Duration,
        mut wants: impl FnMut(Host, &[u8]) -> bool,
    ) -> Result<Option<(Host, Vec<u8>)>> {
        let deadline = self.time.now() + patience;
        loop {
            let count = self.time.count();
            if let Some(found) = self.try_receive(&mut wants) {
                return Ok(Some(found));
            }
            self.check()?;
            if self.time.now() >= deadline {
                return Ok(None);
            }
            self.rest(count, MAIL);
        }
    }

    /// The same, if it has come.
    pub(crate) fn try_receive(&self, wants: impl FnMut(Host, &[u8]) -> bool) -> Option<(Host, Vec<u8>)> {
        let found = self.mail.take(wants)?;
        self.moves.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// Waits until there is news since the count, at most so long. Moves the network meanwhile, unless another thread does.
    fn rest(&self, count: u64, most: Duration) {
        if !self.transport().rest(most, &|| self.time.count() != count) {
            self.time.rest(count, most);
        }
    }

    /// How far this host is, and what it waits for.
    fn standing(&self) -> Standing {
        let mut standing = Standing { moves: self.moves.load(Ordering::Relaxed), ..Standing::default() };
        if let (Some((moves, lags)), Some(links)) = (lock(&self.ghosts).lags(), self.links()) {
            let owner = |t: u32| links.owner(t).unwrap_or(self.transport().host());
            let named = |lag: &Lag| (links.name(lag.task), lag.epoch, links.name(lag.of), owner(lag.of));
            standing.moves += moves;
            standing.waits = lags.iter().map(named).collect();
        }
        standing
    }

    /// Says that each host may send that many bytes before any of them is looked at, besides what is always allowed.
    pub(crate) fn expect(&self, bytes: usize) {
        self.mail.expect(bytes);
    }

    /// Says what this host has of the mesh from here on, and whether values are to be packed. No values of what it had may be under way.
    pub(crate) fn set_share(&self, domain: &Domain, compress: Compress) {
        self.expect(domain.state_bytes());
        let form = Form { bytes: domain.precision.bytes(), reals: domain.shape.shared };
        self.packing.get_or_init(|| Packing::new(form, compress, self.transport().hosts()));
        *self.links.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Links::new(domain, form)));
    }

    /// What this host has of the mesh, once it is known.
    fn links(&self) -> Option<Arc<Links>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes in values of ghosts.
    fn values(&self, from: Host, message: &[u8]) -> Result<()> {
        let arrival = Arrival::begin(self.timeline.get());
        let (Some(links), Some(packing)) = (self.links(), self.packing.get()) else {
            return breach("the mesh is not known here yet");
        };
        let Some(message) = values::unpack(packing.form(), message) else { return breach("badly packed") };
        let mut ghosts = lock(&self.ghosts);
        self.overlap.arrive(ghosts.arrive(from, &message, &links)?, || self.time.now());
        drop(ghosts);
        arrival.end(from, &message);
        Ok(())
    }
}
