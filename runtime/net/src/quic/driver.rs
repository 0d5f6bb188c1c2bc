//! The driver's side of putting a run together.

use super::channel::{Channel, GAVE_UP, Incoming, Outgoing, Why, by, lost, peer, protocol, session, soon};
use super::door::{self, Caller, Door};
use super::frame::{Kind, Violation};
use super::host::Quic;
use super::knocks::Knocks;
use super::limits::{self, code};
use super::network::{Network, anywhere, reachable_at};
use super::settings::Settings;
use super::words::{Admitted, JoinRequest, MOST_WORKERS, Member, addresses, hello, write_roster};
use crate::error::{Error, Result};
use crate::identity::{Authority, Credentials, Digest, JOIN_ALPN, Name, Run, RunKey, Token, key_of};
use crate::transport::{Host, Sink};
use quinn::Connection;
use std::net::SocketAddr;
use std::sync::mpsc::{self as std_mpsc, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A worker that was let in and then does not come back for so long loses its number.
const COMES_BACK: Duration = Duration::from_secs(10);
/// How long a run that is begun again waits for workers of before, once some are here.
pub const GRACE: Duration = Duration::from_secs(3);
/// How long it may take to notice that waiting has become pointless.
const WATCHES: Duration = Duration::from_millis(50);

/// What happens while a run comes together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A worker has joined.
    Joined {
        /// Its number.
        host: Host,
        /// Where it was seen.
        address: SocketAddr,
    },
    /// A caller was not let in.
    Refused {
        /// Where it was seen.
        address: SocketAddr,
        /// The reason, in words.
        why: String,
    },
    /// A worker left before the run began; another may have its number.
    Left {
        /// Its number.
        host: Host,
        /// The reason, in words.
        why: String,
    },
}

/// A driver that workers can reach.
pub struct Listening {
    pub(super) network: Network,
    pub(super) door: Door,
    own: Credentials,
    pub(super) run: Run,
    settings: Settings,
    sink: Sink,
    /// Whether it goes without those that do not come soon.
    goes_without: bool,
    /// Where those are that were no part of it before.
    newcomers: Vec<SocketAddr>,
}

impl Listening {
    /// Makes a run for so many workers. Events of it will go to `sink`.
    ///
    /// # Errors
    /// None or too many workers; a setting that cannot work; an address that is not this host's.
    pub fn start(workers: u32, settings: Settings, sink: Sink) -> Result<Listening> {
        let authority = Arc::new(Authority::new(settings.run_length)?);
        let token = Token::new(&authority, workers, Vec::new())?;
        Listening::begin(Run { authority, token, incarnation: 1 }, settings, sink)
    }

    /// Begins a run again for so many workers: the same token lets them in, at the same port, and certificates of before are refused.
    /// The transport of before says nothing more: all its hosts learn of a loss. Workers that do not come are left out, after
    /// [`GRACE`].
    ///
    /// # Errors
    /// The transport is no driver's, or was closed.
    pub fn again(of: &Quic, workers: u32, settings: Settings, sink: Sink) -> Result<Listening> {
        let (run, network, newcomers) = of.begin_again().ok_or_else(|| Error::Hosts("this run is over".into()))?;
        let run = Run { incarnation: run.incarnation + 1, token: run.token.for_workers(workers), ..run };
        Ok(Listening {
            goes_without: true,
            newcomers,
            ..Listening::on(network, of.endpoint.clone(), run, settings, sink)?
        })
    }

    /// Makes a run of a key that was made ahead, for so many workers.
    ///
    /// # Errors
    /// Those of [`start`](Listening::start).
    pub fn with_key(key: RunKey, workers: u32, settings: Settings, sink: Sink) -> Result<Listening> {
        Listening::begin(key.run(workers), settings, sink)
    }

    /// Begins a run whose authority and token there are.
    pub(super) fn begin(run: Run, settings: Settings, sink: Sink) -> Result<Listening> {
        let workers = run.token.workers;
        if !(1..=MOST_WORKERS).contains(&workers) {
            return Err(Error::Hosts(format!("a run has 1 to {MOST_WORKERS} workers, not {workers}")));
        }
        settings.check()?;
        let (network, endpoint) = Network::start(settings.listen)?;
        Listening::on(network, endpoint, run, settings, sink)
    }

    fn on(network: Network, endpoint: quinn::Endpoint, run: Run, settings: Settings, sink: Sink) -> Result<Listening> {
        let bound = endpoint.local_addr().map_err(|error| Error::Hosts(error.to_string()))?;
        let mut addresses = settings.addresses.clone();
        if addresses.is_empty() {
            addresses = reachable_at(bound, &anywhere());
        }
        if addresses.is_empty() {
            return Err(Error::Hosts(format!(
                "this host cannot be reached at {bound}: say at which address it listens"
            )));
        }
        let run = Run { token: run.token.at(addresses), ..run };
        let own = run.authority.issue(Name { run: run.authority.run, host: 0, incarnation: run.incarnation })?;
        let door = Door::open(endpoint, limits::answering(&own, true)?, settings.clone());
        Ok(Listening { network, door, own, run, settings, sink, goes_without: false, newcomers: Vec::new() })
    }

    /// Returns what workers join with.
    pub fn token(&self) -> &Token {
        &self.run.token
    }

    /// Returns the key of this run, with which another process can be its driver, at the same port.
    pub fn key(&self) -> RunKey {
        RunKey::of(self.run.clone())
    }

    /// Waits until all workers are here and connected with each other. `watch` is asked many times a second: its error ends
    /// the waiting.
    ///
    /// # Errors
    /// Not all have joined by then; two that cannot reach each other; the error of `watch`.
    pub fn wait_for_workers(
        self,
        deadline: Instant,
        mut progress: impl FnMut(Progress),
        mut watch: impl FnMut() -> Result<()>,
    ) -> Result<Quic> {
        let Listening { network, door, own, run, settings, sink, goes_without, newcomers } = self;
        let (report, reports) = std_mpsc::channel();
        let (done, result) = std_mpsc::channel();
        let endpoint = door.endpoint.clone();
        let (own_settings, knocks) = (settings.clone(), Arc::<Knocks>::default());
        let noted = knocks.clone();
        network.handle().spawn(async move {
            let _ = done
                .send(gather(run, own, door, own_settings, deadline, (goes_without, noted, newcomers), report).await);
        });
        // Reports end when gathering does.
        loop {
            match reports.recv_timeout(WATCHES) {
                Ok(report) => progress(report),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Err(error) = watch() {
                network.give_up(endpoint)?;
                return Err(error);
            }
        }
        let gathered = result.recv().map_err(|_| Error::Internal("the network's thread failed".into()))?;
        match gathered {
            Ok((run, channels)) => {
                let own =
                    run.authority.issue(Name { run: run.authority.run, host: 0, incarnation: run.incarnation })?;
                let mut quic = Quic::start(0, channels, endpoint.clone(), network, &settings, &sink);
                let door = Door::open(endpoint, limits::answering(&own, true)?, settings);
                let (admission, deadline) = (Mutex::default(), Instant::now() + COMES_BACK);
                let (own, noted) = (own.name, knocks.clone());
                let shut_out = Vec::new();
                let late =
                    Gathering { own, run: run.clone(), deadline, goes_without, knocks: noted, admission, shut_out };
                quic.take(run, knocks, late.keep_waiting(door));
                Ok(quic)
            }
            Err(error) => {
                network.give_up(endpoint)?;
                Err(error)
            }
        }
    }
}

/// Why a run has not come together.
enum Unready {
    /// A worker was lost when all were here: the others may be asked to come again.
    Worker(Error),
    /// There is nobody to ask, or no time.
    Driver(Error),
}

/// Lets workers in until all are connected with each other, as often as it takes. Returns the run as it began, and channels by number.
async fn gather(
    mut run: Run,
    mut own: Credentials,
    mut door: Door,
    settings: Settings,
    deadline: Instant,
    (goes_without, knocks, newcomers): (bool, Arc<Knocks>, Vec<SocketAddr>),
    report: std_mpsc::Sender<Progress>,
) -> Result<(Run, Vec<Option<Channel>>)> {
    let mut failures = 0;
    loop {
        let endpoint = door.endpoint.clone();
        // Those that have been connected before can be; whoever is new and cannot ends nothing.
        let shut_out = if failures < FAILURES { Vec::new() } else { newcomers.clone() };
        let admission = Mutex::new((0..run.token.workers).map(|_| None).collect());
        let (its_run, its_knocks) = (run.clone(), knocks.clone());
        let gathering =
            Gathering { own: own.name, admission, run: its_run, deadline, goes_without, knocks: its_knocks, shut_out };
        match Arc::new(gathering).gather(door, report.clone()).await {
            Ok(channels) => return Ok((run, channels)),
            // Those that are left come again.
            // One that says that it gives up cannot reach another, and would not the next time.
            Err(Unready::Worker(why))
                if Instant::now() < deadline && (goes_without || !why.to_string().ends_with(GAVE_UP)) => {}
            Err(Unready::Worker(error) | Unready::Driver(error)) => return Err(error),
        }
        failures += 1;
        run.incarnation += 1;
        own = run.authority.issue(Name { run: run.authority.run, host: 0, incarnation: run.incarnation })?;
        door = Door::open(endpoint, limits::answering(&own, true)?, settings.clone());
    }
}

/// How often workers of a run that begins again may fail to connect before newcomers are left out.
const FAILURES: u32 = 2;
/// How long they may take to.
const MEETING: Duration = Duration::from_secs(15);

/// A number that was given to a worker.
struct Place {
    /// Of the worker's key.
    key: Digest,
    since: Instant,
    connected: bool,
}

/// A run that comes together.
struct Gathering {
    own: Name,
    run: Run,
    deadline: Instant,
    goes_without: bool,
    knocks: Arc<Knocks>,
    /// Where those call from that are not let in: the others could not be connected with them.
    shut_out: Vec<SocketAddr>,
    /// Numbers from 1 on.
    admission: Mutex<Vec<Option<Place>>>,
}

/// What the tasks for single callers tell the one that gathers.
enum News {
    Here(Host, Box<Channel>, Vec<SocketAddr>),
    Refused(SocketAddr, Why),
    Left(Host, Why),
}

/// A worker that is here.
struct Worker {
    channel: Channel,
    addresses: Vec<SocketAddr>,
}

impl Gathering {
    /// Lets workers in until all are connected with each other. Returns channels by number.
    async fn gather(
        self: Arc<Self>,
        door: Door,
        report: std_mpsc::Sender<Progress>,
    ) -> Result<Vec<Option<Channel>>, Unready> {
        let expected = self.run.token.workers as usize;
        let mut workers: Vec<Option<Worker>> = (0..expected).map(|_| None).collect();
        let (tell, mut news) = mpsc::unbounded_channel();
        // Callers that are still in the doorway when all are here are let go.
        let mut callers = JoinSet::new();
        let mut enough = self.deadline;
        while workers.iter().any(Option::is_none) {
            if self.goes_without && Instant::now() >= enough && workers.iter().any(Option::is_some) {
                break;
            }
            tokio::select! {
                biased;
                heard = news.recv() => match heard.expect("this task holds a sender") {
                    News::Here(host, channel, addresses) => {
                        let address = channel.connection.remote_address();
                        let connection = channel.connection.clone();
                        workers[host as usize - 1] = Some(Worker { channel: *channel, addresses });
                        enough = Instant::now() + GRACE;
                        let _ = report.send(Progress::Joined { host, address });
                        let tell = tell.clone();
                        callers.spawn(async move {
                            let error = connection.closed().await;
                            let _ = tell.send(News::Left(host, lost(&error)));
                        });
                    }
                    News::Left(host, why) => {
                        workers[host as usize - 1] = None;
                        self.places()[host as usize - 1] = None;
                        if workers.iter().all(Option::is_none) {
                            enough = self.deadline;
                        }
                        let _ = report.send(Progress::Left { host, why });
                    }
                    News::Refused(address, why) => {
                        let _ = report.send(Progress::Refused { address, why });
                    }
                },
                caller = door.next() => {
                    let caller = caller.ok_or_else(|| Unready::Driver(Error::Hosts("the socket was closed".into())))?;
                    let (this, tell) = (self.clone(), tell.clone());
                    callers.spawn(async move {
                        let address = caller.address;
                        match this.meet(caller).await {
                            Ok(Some((host, channel, addresses))) => {
                                let _ = tell.send(News::Here(host, Box::new(channel), addresses));
                            }
                            Ok(None) => {}
                            // A worker calls at all addresses of the token, and hangs up where another was quicker.
                            Err(why) if why == GAVE_UP => {}
                            Err(why) => {
                                let _ = tell.send(News::Refused(address, why));
                            }
                        }
                    });
                }
                () = tokio::time::sleep_until(enough.into()), if self.goes_without && enough < self.deadline => {}
                () = tokio::time::sleep_until(self.deadline.into()) => {
                    let here = workers.iter().flatten().count();
                    return Err(Unready::Driver(Error::Hosts(format!(
                        "{here} of {expected} workers joined before the deadline: start the others, or give them more time"
                    ))));
                }
            }
            // Tasks that are done are let go of.
            while callers.try_join_next().is_some() {}
        }
        callers.abort_all();
        // Numbers are given from the lowest on; where one in the middle did not come back, all are given anew.
        let count = workers.iter().flatten().count();
        let has_gaps = workers[..count].iter().any(Option::is_none);
        let workers: Vec<Worker> = workers.into_iter().flatten().collect();
        let connections: Vec<Connection> = workers.iter().map(|worker| worker.channel.connection.clone()).collect();
        let connected = match has_gaps {
            true => Err(Error::Hosts("a worker was let in and did not come back".into())),
            false => self.connect(workers).await,
        };
        if connected.is_err() {
            connections.iter().for_each(|connection| connection.close(code::AGAIN, b"the run begins again"));
        }
        connected.map_err(Unready::Worker)
    }

    /// Answers those who call while the run is under way: a worker that may join is told to wait.
    async fn keep_waiting(self, door: Door) {
        /// From one caller to the next: answering them must not slow the run down.
        const BREATH: Duration = Duration::from_millis(10);
        let mut callers = JoinSet::new();
        while let Some(caller) = door.next().await {
            let this = Gathering {
                own: self.own,
                run: self.run.clone(),
                deadline: Instant::now() + COMES_BACK,
                goes_without: self.goes_without,
                knocks: self.knocks.clone(),
                admission: Mutex::default(),
                shut_out: Vec::new(),
            };
            // Nobody is told of those who may not.
            callers.spawn(async move { this.meet(caller).await.map(drop) });
            while callers.try_join_next().is_some() {}
            tokio::time::sleep(BREATH).await;
        }
    }

    fn places(&self) -> std::sync::MutexGuard<'_, Vec<Option<Place>>> {
        self.admission.lock().expect("no holder of the lock panics")
    }

    /// Deals with a caller: a worker that wants to join, or a member. Returns a member.
    async fn meet(&self, caller: Caller) -> Result<Option<(Host, Channel, Vec<SocketAddr>)>, Why> {
        let (connection, place) = caller.enter(self.deadline).await?;
        let leaves = connection.clone();
        let met = place.until_out(self.greet(connection, &place)).await;
        if met.is_err() {
            // Whatever of it is still under way ends with the connection.
            leaves.close(code::LEFT, b"");
        }
        met
    }

    async fn greet(
        &self,
        connection: Connection,
        place: &door::Place,
    ) -> Result<Option<(Host, Channel, Vec<SocketAddr>)>, Why> {
        if protocol(&connection).as_deref() == Some(JOIN_ALPN) {
            return self.admit(connection, place).await.map(|()| None);
        }
        let host = self.recognize(&connection).inspect_err(|why| connection.close(code::REFUSED, why.as_bytes()))?;
        place.know();
        let seen = connection.remote_address();
        let opened = Channel::open(connection, &hello(&[]), soon(self.deadline)).await;
        let opened = opened.and_then(|(channel, hello)| {
            let addresses = addresses(&hello).ok_or_else(|| channel.refuse(&Violation::Malformed(Kind::Hello)))?;
            Ok((channel, addresses))
        });
        match opened {
            Ok((channel, mut addresses)) => {
                if !addresses.contains(&seen) {
                    addresses.push(seen);
                }
                Ok(Some((host, channel, addresses)))
            }
            Err(why) => {
                self.places()[host as usize - 1] = None;
                Err(why)
            }
        }
    }

    /// Compares a caller with the workers that this run let in, and notes that it is here.
    fn recognize(&self, connection: &Connection) -> Result<Host, Why> {
        let (name, key) = peer(connection).ok_or("it shows no certificate: join with the token first")?;
        if name.run != self.own.run {
            return Err("its certificate is for another run".into());
        }
        if name.incarnation != self.own.incarnation {
            let (theirs, ours) = (name.incarnation, self.own.incarnation);
            return Err(format!("it belongs to incarnation {theirs} of the run, which is in its {ours}: join again"));
        }
        let mut places = self.places();
        let place =
            (name.host as usize).checked_sub(1).and_then(|place| places.get_mut(place)).and_then(Option::as_mut);
        match place {
            Some(place) if place.key == key && !place.connected => {
                place.connected = true;
                Ok(name.host)
            }
            Some(place) if place.key == key => Err(format!("host {} is here already", name.host)),
            _ => Err(format!("host {} is another worker now: join again", name.host)),
        }
    }

    /// Lets a worker in that proves to hold the token.
    async fn admit(&self, connection: Connection, place: &door::Place) -> Result<(), Why> {
        let deadline = soon(self.deadline);
        let streams = by(deadline, connection.accept_bi()).await?.map_err(|error| lost(&error))?;
        let mut channel = Channel { connection, outgoing: Outgoing(streams.0), incoming: Incoming::new(streams.1) };
        let asked = channel.expect(Kind::Join, deadline).await?;
        let request = JoinRequest::read(&asked).ok_or_else(|| channel.refuse(&Violation::Malformed(Kind::Join)))?;
        let session = session(&channel.connection)?;
        let place_given = match self.shut_out.contains(&channel.connection.remote_address()) {
            true => Err("the workers of this run and this one cannot reach each other".into()),
            false => self.give_place(&request, &session),
        };
        let answer = match place_given {
            Ok(Some(answer)) => {
                place.know();
                (Kind::Admitted, answer, Ok(()))
            }
            Ok(None) => {
                self.knocks.note(channel.connection.remote_address());
                (Kind::Wait, Vec::new(), Ok(()))
            }
            Err(why) => (Kind::Refused, why.clone().into_bytes(), Err(why)),
        };
        channel.send(answer.0, &answer.1, deadline).await?;
        // The worker closes once it has read the answer; closing here might take the answer back.
        let _ = by(deadline, channel.connection.closed()).await;
        channel.connection.close(code::GOODBYE, b"");
        answer.2
    }

    /// Checks a proof, and signs the key for the lowest number that is free; none if all are taken.
    fn give_place(&self, request: &JoinRequest, session: &[u8; 32]) -> Result<Option<Vec<u8>>, Why> {
        if !self.run.token.verify(session, &request.public_key, &request.proof) {
            return Err("the token is not of this run: take the one that this driver wrote".into());
        }
        if self.run.token.check_time().is_err() {
            return Err("the token has expired".into());
        }
        let mut places = self.places();
        let is_free = |place: &Option<Place>| {
            place.as_ref().is_none_or(|place| !place.connected && place.since.elapsed() > COMES_BACK)
        };
        let Some(free) = places.iter().position(is_free) else { return Ok(None) };
        let name = Name { host: free as Host + 1, ..self.own };
        let certificate = self.run.authority.sign(request.public_key, &name).map_err(|error| error.to_string())?;
        let key = key_of(&certificate).ok_or("the certificate has a key")?;
        places[free] = Some(Place { key, since: Instant::now(), connected: false });
        let left = self.deadline.saturating_duration_since(Instant::now());
        Ok(Some(Admitted { host: name.host, incarnation: name.incarnation, left, certificate }.write()))
    }

    /// Sends the roster to all workers, and waits until they are connected.
    async fn connect(&self, workers: Vec<Worker>) -> Result<Vec<Option<Channel>>> {
        let roster: Vec<Member> = (1..)
            .zip(&workers)
            .zip(&*self.places())
            .map(|((host, worker), place)| Member {
                host,
                key: place.as_ref().expect("a worker that is here has a place").key,
                addresses: worker.addresses.clone(),
            })
            .collect();
        let bytes = write_roster(&roster);
        // A run that goes on does not wait for one that cannot be reached.
        let deadline = if self.goes_without { self.deadline.min(Instant::now() + MEETING) } else { self.deadline };
        let mut waiting = JoinSet::new();
        for (host, worker) in (1..).zip(workers) {
            let bytes = bytes.clone();
            waiting.spawn(async move {
                let mut channel = worker.channel;
                let address = channel.connection.remote_address();
                let ready = async {
                    channel.send(Kind::Roster, &bytes, deadline).await?;
                    channel.expect(Kind::Ready, deadline).await
                };
                let failed = |why| format!("worker {host} at {address} is not connected with the others: {why}");
                ready.await.map_err(failed)?;
                Ok::<_, Why>((host as usize, channel))
            });
        }
        let mut channels: Vec<Option<Channel>> = (0..=waiting.len()).map(|_| None).collect();
        while let Some(ready) = waiting.join_next().await {
            let ready = ready.map_err(|error| Error::Internal(error.to_string()))?;
            let (host, channel) = ready.map_err(Error::Hosts)?;
            channels[host] = Some(channel);
        }
        for channel in channels.iter_mut().flatten() {
            let address = channel.connection.remote_address();
            let failed = |why| Error::Hosts(format!("the worker at {address} left before the run began: {why}"));
            channel.send(Kind::Go, &[], deadline).await.map_err(failed)?;
        }
        Ok(channels)
    }
}
