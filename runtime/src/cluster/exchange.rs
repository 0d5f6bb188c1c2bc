//! What a host has of the network: values for its walks, mail for everything else.
//!
//! The network's thread hands in what has come ([`Exchange::event`]) and leaves at once. Values of ghosts go straight into the walk
//! that is under way, or wait until it may take them; anything else is mail, which the host's own thread asks for.

mod early;

use super::arrival::Arrival;
use super::kind::{VALUES, WATCH};
use super::message::{Control, Standing};
use super::overlap::Overlap;
use super::packing::{Compress, Packing};
use super::time::{Clock, Time};
use super::values;
use crate::engine::{Arrivals, Border, Haste, Lag, Outbox, Timeline};
use crate::error::{Error, Result};
use crate::layout::Domain;
use crate::number::Number;
use early::Early;
use meshweft_net::codec::Form;
use meshweft_net::peer::Peer;
use meshweft_net::{Event, Host, Transport};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// How long what a task has come to may wait for the next, so that both go out as one message: where others may wait for it, and
/// where they have time. Waking the network's thread takes some 25 microseconds of a core.
const HURRY: Duration = Duration::from_micros(50);
const LEISURE: Duration = Duration::from_micros(500);
/// Bytes of a message that waits for nothing more: far from what a transport takes.
const LARGE: usize = 1 << 20;
/// How long a walk waits at most before it looks again, and who waits for mail.
const NAP: Duration = Duration::from_millis(1);
const MAIL: Duration = Duration::from_millis(100);

/// One host's end of the run.
pub(crate) struct Exchange {
    /// None until it is connected.
    peer: Mutex<Option<Peer>>,
    /// What came before that.
    first: Mutex<Vec<Event>>,
    transport: OnceLock<Arc<dyn Transport>>,
    /// How time passes.
    time: Arc<dyn Time>,
    /// What this host has of the mesh, once it is known.
    border: OnceLock<Links>,
    turn: Mutex<()>,
    walking: Mutex<Walking>,
    mail: Mutex<VecDeque<(Host, Vec<u8>)>>,
    /// The first host that was lost, and why.
    lost: OnceLock<(Host, String)>,
    /// Nanoseconds that walks have waited, on all threads.
    waited: AtomicU64,
    /// Messages that the host's own thread has taken, and walks that it has begun.
    moves: AtomicU64,
    /// Whether hosts may leave.
    is_over: AtomicBool,
    /// Where this host writes down what it does, if the driver wants to know.
    pub(super) timeline: OnceLock<Arc<Timeline>>,
    /// How much of the time of messages threads had work.
    pub(super) overlap: Overlap,
}

/// Which tasks of a share are read elsewhere, and which are ghosts of whom.
struct Links {
    /// For each task, the hosts that read it, and its slots that they read.
    sent: Vec<Vec<(Host, Vec<u32>)>>,
    /// For each task, the host that owns it, if it is a ghost.
    owners: Vec<Option<Host>>,
    /// For each ghost, the ghosts around it.
    around: Vec<Vec<u32>>,
    /// Numbers of the tasks in the whole mesh.
    names: Vec<u32>,
    /// Bytes of the values of each, if it is a ghost.
    bytes: Vec<usize>,
    /// How values go out.
    packing: Packing,
}

#[derive(Default)]
struct Walking {
    walk: Option<Arc<dyn Arrivals>>,
    epochs: Range<u64>,
    early: Early,
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
            peer: Mutex::default(),
            first: Mutex::default(),
            transport: OnceLock::new(),
            time,
            border: OnceLock::new(),
            turn: Mutex::default(),
            walking: Mutex::default(),
            mail: Mutex::default(),
            lost: OnceLock::new(),
            waited: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            timeline: OnceLock::new(),
            overlap: Overlap::default(),
        })
    }

    /// Where the network's thread hands in events. It does not keep the exchange alive.
    pub(crate) fn sink(self: &Arc<Self>) -> Arc<dyn Fn(Event) + Send + Sync> {
        let exchange: Weak<Exchange> = Arc::downgrade(self);
        Arc::new(move |event| {
            if let Some(exchange) = exchange.upgrade() {
                exchange.event(event);
            }
        })
    }

    /// Says who this host is, and what carries messages.
    pub(crate) fn connect(&self, peer: Peer, transport: Arc<dyn Transport>) {
        assert!(self.transport.set(transport).is_ok(), "an exchange has one transport");
        let mut own = lock(&self.peer);
        *own = Some(peer);
        let first = std::mem::take(&mut *lock(&self.first));
        for event in first {
            self.take(&mut own, event);
        }
        drop(own);
        self.deliver();
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        self.transport.get().expect("a host that speaks is connected")
    }

    /// Sends what is to go out.
    fn flush(&self, peer: &mut Peer) {
        while let Some((to, frame)) = peer.poll_transmit(self.time.now()) {
            self.transport().send(to, frame);
        }
    }

    /// Sends a message.
    pub(crate) fn send(&self, to: Host, message: Vec<u8>) {
        let mut peer = lock(&self.peer);
        let peer = peer.as_mut().expect("a host that speaks is connected");
        peer.send(to, message);
        self.flush(peer);
    }

    /// Something has come.
    fn event(&self, event: Event) {
        self.take(&mut lock(&self.peer), event);
        self.deliver();
    }

    fn take(&self, peer: &mut Option<Peer>, event: Event) {
        match (peer, event) {
            (None, event) => lock(&self.first).push(event),
            (Some(peer), Event::Message { from, bytes }) => {
                peer.handle(self.time.now(), from, bytes);
                self.flush(peer);
            }
            (Some(peer), Event::Lost { host, why }) => peer.lose(host, why),
        }
    }

    /// Hands out what has come. One thread at a time: values of a ghost come in order.
    fn deliver(&self) {
        let _turn = lock(&self.turn);
        loop {
            let (message, lost) = match lock(&self.peer).as_mut() {
                Some(peer) => (peer.poll_message(), peer.poll_lost()),
                None => return,
            };
            if message.is_none() && lost.is_none() {
                break;
            }
            if let Some((host, why)) = lost {
                self.lose(host, why);
            }
            let Some((from, message)) = message else { continue };
            match message.first() {
                Some(&VALUES) => {
                    if let Err(error) = self.values(from, &message) {
                        self.lose(from, error.to_string());
                    }
                }
                Some(&WATCH) => self.send(from, Control::Standing(self.standing()).encode()),
                _ => lock(&self.mail).push_back((from, message)),
            }
        }
        self.time.news();
    }

    fn lose(&self, host: Host, why: String) {
        if !self.is_over.load(Ordering::Acquire) {
            let _ = self.lost.set((host, why));
            self.time.news();
        }
    }

    /// The error of the host that was lost first, if one was.
    pub(crate) fn check(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some((host, why)) => Err(Error::Cluster(format!("host {host} was lost: {why}"))),
        }
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
        self.border.get().map_or([0; 2], |links| links.packing.bytes())
    }

    /// How long walks have waited, on all threads together.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    /// From here on hosts may leave.
    pub(crate) fn finish(&self) {
        self.is_over.store(true, Ordering::Release);
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
            self.time.rest(count, MAIL);
        }
    }

    /// The same, if it has come.
    pub(crate) fn try_receive(&self, mut wants: impl FnMut(Host, &[u8]) -> bool) -> Option<(Host, Vec<u8>)> {
        let mut mail = lock(&self.mail);
        let i = mail.iter().position(|(from, message)| wants(*from, message))?;
        self.moves.fetch_add(1, Ordering::Relaxed);
        mail.remove(i)
    }

    /// How far this host is, and what it waits for.
    fn standing(&self) -> Standing {
        let walking = lock(&self.walking);
        let mut standing = Standing { moves: self.moves.load(Ordering::Relaxed), ..Standing::default() };
        if let (Some(walk), Some(links)) = (&walking.walk, self.border.get()) {
            let (moves, lags) = walk.lags();
            let name = |t: u32| links.names[t as usize];
            let owner = |t: u32| links.owners[t as usize].unwrap_or(self.transport().host());
            let named = |lag: &Lag| (name(lag.task), lag.epoch, name(lag.of), owner(lag.of));
            standing.moves += moves;
            standing.waits = lags.iter().map(named).collect();
        }
        standing
    }

    /// Says what this host has of the mesh, and whether values are to be packed.
    pub(crate) fn set_share<T: Number>(&self, domain: &Domain<T>, compress: Compress) {
        let share = domain.share.as_ref().expect("a worker has a share");
        let form = Form { bytes: T::BYTES, reals: domain.shape.shared };
        let around = |t: u32| {
            let around = if domain.is_ghost(t) { domain.graph.neighbors(t) } else { &[] };
            around.iter().copied().filter(|&u| domain.is_ghost(u)).collect()
        };
        let mut links = Links {
            sent: share.names.iter().map(|_| Vec::new()).collect(),
            owners: vec![None; share.names.len()],
            around: (0..share.names.len() as u32).map(around).collect(),
            names: share.names.clone(),
            bytes: share.ghosts.iter().map(|slots| slots.len() * form.vertex()).collect(),
            packing: Packing::new(form, compress, self.transport().hosts()),
        };
        for link in &share.links {
            for (t, slots) in &link.sent {
                links.sent[*t as usize].push((link.with + 1, slots.clone()));
            }
            for &t in &link.received {
                links.owners[t as usize] = Some(link.with + 1);
            }
        }
        assert!(self.border.set(links).is_ok(), "a host has one share");
    }

    /// Time has passed: a peer may have to say something again, or give somebody up.
    #[cfg(test)]
    pub(crate) fn pass_time(&self) -> Option<Duration> {
        let now = self.time.now();
        let next = lock(&self.peer).as_mut().and_then(|peer| {
            peer.handle_timeout(now);
            self.flush(peer);
            peer.poll_timeout()
        });
        self.deliver();
        next
    }

    /// Takes in what ghosts have come to.
    fn values(&self, from: Host, message: &[u8]) -> Result<()> {
        let breach = |what: &str| Err(Error::Cluster(format!("it sent values that make no sense: {what}")));
        let arrival = Arrival::begin(self.timeline.get());
        let Some(links) = self.border.get() else { return breach("nobody knows the mesh yet") };
        let Some(message) = values::unpack(links.packing.form(), message) else { return breach("badly packed") };
        let Some(epoch) = values::epoch(&message) else { return breach("no epoch") };
        let (mut walking, mut named) = (lock(&self.walking), Vec::new());
        for task in values::tasks(&message) {
            let Some((name, bits)) = task else { return breach("cut short") };
            let Ok(t) = links.names.binary_search(&name) else { return breach("a task that is not read here") };
            if links.owners[t] != Some(from) {
                return breach("a task of another host");
            }
            if !bits.is_empty() && bits.len() != links.bytes[t] {
                return breach("more or less of a task than is read here");
            }
            if !walking.early.put(t as u32, epoch, bits) {
                return breach("a task that is rounds ahead");
            }
            named.push(t as u32);
        }
        self.overlap.arrive(walking.take(named, links)?, || self.time.now());
        drop(walking);
        arrival.end(from, &message);
        Ok(())
    }
}

impl Walking {
    /// Hands the walk what it can take by now of some ghosts, and of those that this lets advance. Returns how many values that is.
    fn take(&mut self, ghosts: Vec<u32>, links: &Links) -> Result<u64> {
        let Some(walk) = &self.walk else { return Ok(0) };
        self.early.take(&**walk, &self.epochs, ghosts, |t| &links.around[t as usize])
    }
}

impl Border for Exchange {
    fn begin(&self, walk: Arc<dyn Arrivals>, epochs: Range<u64>) -> Result<()> {
        let mut walking = lock(&self.walking);
        let links = self.border.get().expect("a walk has a share");
        let ghosts = links.owners.iter().flatten().count();
        self.overlap.begin(ghosts as u64 * (epochs.end - epochs.start), self.time.now());
        (walking.walk, walking.epochs) = (Some(walk), epochs);
        self.moves.fetch_add(1, Ordering::Relaxed);
        let early = walking.early.ghosts();
        self.overlap.arrive(walking.take(early, links)?, || self.time.now());
        self.check()
    }

    fn is_read(&self, t: u32) -> bool {
        self.border.get().is_some_and(|links| !links.sent[t as usize].is_empty())
    }

    fn pack(&self, outbox: &mut Outbox, t: u32, epoch: u64, gather: &dyn Fn(&[u32], &mut Vec<u8>)) {
        let links = self.border.get().expect("a walk has a share");
        let name = links.names[t as usize];
        outbox.epoch = epoch;
        if outbox.messages.is_empty() {
            outbox.begun = self.time.now();
        }
        for (host, slots) in &links.sent[t as usize] {
            let known = outbox.messages.iter().position(|(to, _)| to == host);
            let known = known.unwrap_or_else(|| {
                outbox.messages.push((*host, values::begin(epoch)));
                outbox.messages.len() - 1
            });
            values::add(&mut outbox.messages[known].1, name, |bits| gather(slots, bits));
        }
    }

    fn post(&self, outbox: &mut Outbox, haste: Haste) {
        if outbox.messages.is_empty() {
            return;
        }
        let now = self.time.now();
        let waits = match haste {
            Haste::Now => false,
            Haste::Soon => now < outbox.sent + HURRY,
            Haste::Later => now < outbox.begun + LEISURE,
        };
        if waits && outbox.messages.iter().all(|(_, message)| message.len() < LARGE) {
            return;
        }
        let packing = &self.border.get().expect("a walk has a share").packing;
        for (to, message) in outbox.messages.drain(..) {
            let rate = || self.transport().traffic(to).rate;
            let (message, said) = packing.prepare(to, message, rate, || self.time.now());
            self.send(to, message);
            if let Some(said) = said {
                let _ = writeln!(std::io::stderr(), "host {} {said}", self.transport().host());
            }
        }
        outbox.sent = now;
        self.time.news();
    }

    fn is_cut_off(&self) -> bool {
        self.lost.get().is_some()
    }

    fn rest(&self) {
        thread_local! {
            /// What was news when this thread last looked.
            static SEEN: Cell<u64> = const { Cell::new(u64::MAX) };
        }
        let count = self.time.count();
        if SEEN.replace(count) == count {
            let (start, is_outstanding) = (self.time.now(), self.overlap.is_outstanding());
            self.time.rest(count, NAP);
            let wait = self.time.now() - start;
            self.waited.fetch_add(wait.as_nanos() as u64, Ordering::Relaxed);
            if is_outstanding {
                self.overlap.expose(wait);
            }
        }
    }

    fn end(&self) -> Result<()> {
        lock(&self.walking).walk = None;
        self.check()
    }
}
