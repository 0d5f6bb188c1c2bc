//! A worker's side of putting a run together.

use super::channel::{Channel, GAVE_UP, Incoming, Outgoing, Why, by, lost, peer, session, soon};
use super::door::{Dialer, Door, Unreached};
use super::frame::{Kind, Violation};
use super::host::Quic;
use super::knocks::AGAIN;
use super::limits::{self, code};
use super::network::{Network, reachable_at};
use super::settings::Settings;
use super::words::{Admitted, JoinRequest, MOST_ADDRESSES, Member, hello, read_roster};
use crate::error::{Error, Result};
use crate::identity::{Applicant, Credentials, Digest, Name, Token, digest, join_client, key_of, name_of};
use crate::transport::{Host, Sink};
use quinn::{Connection, ConnectionError, Endpoint};
use rustls::pki_types::CertificateDer;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A driver may still be telling all workers the result when its deadline passes.
const LATE: Duration = Duration::from_secs(5);

/// Joins a run, and waits until all its hosts are connected. Events go to `sink`, which may hear of the first before this
/// returns.
///
/// # Errors
/// A token that has expired; a driver that cannot be reached or refuses; another worker that cannot be reached.
pub fn join(token: &Token, settings: Settings, sink: Sink) -> Result<Quic> {
    let Joined { host, channels, endpoint, network } = Joined::by(token, &settings)?;
    Ok(Quic::start(host, channels, endpoint, network, &settings, &sink))
}

/// A worker that is connected with all others, and has not begun to listen to them.
pub(super) struct Joined {
    pub(super) host: Host,
    /// By number; none for this host.
    pub(super) channels: Vec<Option<Channel>>,
    pub(super) endpoint: Endpoint,
    pub(super) network: Network,
}

impl Joined {
    pub(super) fn by(token: &Token, settings: &Settings) -> Result<Joined> {
        let (network, joining) = Joining::prepare(token, settings)?;
        let endpoint = joining.endpoint.clone();
        let join = async move {
            loop {
                let arrived = joining.arrive().await?;
                let driver = arrived.driver.connection.clone();
                match arrived.meet().await {
                    Err(_) if begins_again(&driver).await => {}
                    met => return met,
                }
            }
        };
        match network.run(join)? {
            Ok((host, channels)) => Ok(Joined { host, channels, endpoint, network }),
            Err(error) => {
                network.give_up(endpoint)?;
                Err(error)
            }
        }
    }
}

/// Whether the driver says that the run begins again, as it does when another worker was lost before it began.
async fn begins_again(driver: &Connection) -> bool {
    let soon = Instant::now() + Duration::from_secs(1);
    let closed = by(soon, driver.closed()).await;
    matches!(closed, Ok(ConnectionError::ApplicationClosed(close)) if close.error_code == code::AGAIN)
}

/// A worker on its way into a run.
pub(super) struct Joining {
    token: Token,
    settings: Settings,
    pub(super) endpoint: Endpoint,
    /// Where the driver listens.
    driver: Vec<SocketAddr>,
    /// Where this worker does.
    addresses: Vec<SocketAddr>,
}

/// What the driver gave this worker.
pub(super) struct Admission {
    pub(super) own: Credentials,
    /// Until when the run must have come together.
    deadline: Instant,
    /// Where the driver answered.
    driver: SocketAddr,
}

/// A worker that the driver knows.
pub(super) struct Arrived {
    pub(super) own: Credentials,
    /// The channel to the driver.
    pub(super) driver: Channel,
    /// Until when the run must have come together.
    pub(super) deadline: Instant,
    door: Door,
    dialer: Dialer,
}

impl Joining {
    /// Starts a network, and finds out what it takes to join over it.
    pub(super) fn prepare(token: &Token, settings: &Settings) -> Result<(Network, Joining)> {
        token.check_time()?;
        Joining::unchecked(token, settings)
    }

    /// The same for a token that may have expired.
    pub(super) fn unchecked(token: &Token, settings: &Settings) -> Result<(Network, Joining)> {
        settings.check()?;
        let known = token.look_up(Instant::now() + settings.join_deadline)?;
        let mut listen = settings.listen;
        if listen.ip().is_unspecified() && !known.iter().any(SocketAddr::is_ipv4) {
            listen = SocketAddr::from((Ipv6Addr::UNSPECIFIED, listen.port()));
        }
        let (network, endpoint) = Network::start(listen)?;
        let bound = endpoint.local_addr().map_err(|error| Error::Hosts(error.to_string()))?;
        let driver: Vec<_> = known.into_iter().filter(|a| a.is_ipv4() == bound.is_ipv4()).collect();
        if driver.is_empty() {
            let family = if bound.is_ipv4() { "IPv4" } else { "IPv6" };
            let what = format!("the driver has no {family} address, and this host listens on {bound}");
            return Err(Error::Hosts(what));
        }
        let mut addresses = settings.addresses.clone();
        if addresses.is_empty() {
            addresses = reachable_at(bound, &driver);
        }
        addresses.truncate(MOST_ADDRESSES as usize);
        let (token, settings) = (token.clone(), settings.clone());
        Ok((network, Joining { token, settings, endpoint, driver, addresses }))
    }

    /// Gets a certificate, and comes back with it: anew where the run begins again meanwhile.
    pub(super) async fn arrive(&self) -> Result<Arrived> {
        loop {
            let admission = self.admission().await?;
            let at = admission.driver;
            match self.come_back(admission).await? {
                Ok(arrived) => return Ok(arrived),
                Err(why) if why == GAVE_UP => tokio::time::sleep(AGAIN).await,
                Err(why) => return Err(Error::Hosts(format!("the driver at {at}: {why}"))),
            }
        }
    }

    /// The outer error is this host's, or says that the driver was not reached; the inner one what the driver did.
    async fn come_back(&self, admission: Admission) -> Result<Result<Arrived, Why>> {
        let Admission { own, deadline, driver: at } = admission;
        let (endpoint, settings) = (self.endpoint.clone(), self.settings.clone());
        let door = Door::open(endpoint.clone(), limits::answering(&own, false)?, settings.clone());
        let dialer = Dialer { endpoint, tls: limits::calling(&own)?, settings };
        let is_driver = |connection: &Connection| expect(connection, Name { host: 0, ..own.name }, None);
        let dialed = dialer.dial(&[at], soon(deadline), is_driver).await;
        let connection = dialed.map_err(|error| self.unreached(error))?;
        let opened = Channel::open(connection, &hello(&self.addresses), soon(deadline)).await;
        Ok(opened.map(|(driver, _)| Arrived { own, driver, deadline, door, dialer }))
    }

    /// Says why the driver was not reached.
    fn unreached(&self, error: Unreached) -> Error {
        let addresses: Vec<_> = self.driver.iter().map(SocketAddr::to_string).collect();
        Error::Hosts(match error {
            Unreached::Silent => format!(
                "no answer from the driver at {} within {:?}: is it still waiting for workers, and do firewalls let UDP \
                 through to that port?",
                addresses.join(" or "),
                self.settings.join_deadline
            ),
            Unreached::Refused(address, why) => format!("the driver at {address}: {why}"),
        })
    }

    /// Gets a certificate for the token, once there is a place.
    pub(super) async fn admission(&self) -> Result<Admission> {
        let tls = limits::quic(join_client(self.token.run, self.token.authority)?)?;
        let dialer = Dialer { endpoint: self.endpoint.clone(), tls, settings: self.settings.clone() };
        let mut since = Instant::now();
        loop {
            let deadline = since + self.settings.join_deadline;
            let dialed = dialer.dial(&self.driver, deadline, |_| Ok(())).await;
            let connection = dialed.map_err(|error| self.unreached(error))?;
            let at = connection.remote_address();
            match self.ask(connection, deadline).await? {
                Ok(Some(admission)) => return Ok(admission),
                Ok(None) => since = Instant::now(),
                // A run that begins again lets go of whoever is asking.
                Err(why) if why == GAVE_UP => {}
                Err(why) => return Err(Error::Hosts(format!("the driver at {at}: {why}"))),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Asks for a certificate: none if there is no place yet. The outer error is this host's, the inner one what the driver did.
    async fn ask(&self, connection: Connection, deadline: Instant) -> Result<Result<Option<Admission>, Why>> {
        let applicant = Applicant::new()?;
        Ok(self.ask_as(applicant, connection, soon(deadline)).await)
    }

    async fn ask_as(
        &self,
        applicant: Applicant,
        connection: Connection,
        deadline: Instant,
    ) -> Result<Option<Admission>, Why> {
        let session = session(&connection)?;
        let public_key = applicant.public_key();
        let request = JoinRequest { public_key, proof: self.token.prove(&session, &public_key) };
        let streams = by(deadline, connection.open_bi()).await?.map_err(|error| lost(&error))?;
        let mut channel = Channel { connection, outgoing: Outgoing(streams.0), incoming: Incoming::new(streams.1) };
        channel.send(Kind::Join, &request.write(), deadline).await?;
        let (kind, bytes) = channel.receive(deadline).await?;
        let admission = match kind {
            Kind::Admitted => self.read_admission(applicant, &bytes, &channel.connection),
            Kind::Refused => {
                let why = String::from_utf8_lossy(&bytes);
                return Err(why.chars().filter(|letter| !letter.is_control()).take(300).collect());
            }
            Kind::Wait => {
                channel.connection.close(code::GOODBYE, b"");
                return Ok(None);
            }
            other => return Err(channel.refuse(&Violation::Unexpected(other))),
        };
        let admission = admission.ok_or_else(|| channel.refuse(&Violation::Malformed(Kind::Admitted)))?;
        channel.connection.close(code::GOODBYE, b"");
        Ok(Some(admission))
    }

    /// Reads what the driver gave, and checks that it is for this key, this run and this authority.
    fn read_admission(&self, applicant: Applicant, bytes: &[u8], connection: &Connection) -> Option<Admission> {
        let Admitted { host, incarnation, left, certificate } = Admitted::read(bytes)?;
        let name = Name { run: self.token.run, host, incarnation };
        let shown = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
        let authority = shown.iter().find(|shown| digest(shown) == self.token.authority)?.clone();
        if host == 0 || name_of(&certificate) != Some(name) {
            return None;
        }
        let own = applicant.accept(name, certificate, authority);
        Some(Admission { own, deadline: Instant::now() + left + LATE, driver: connection.remote_address() })
    }
}

impl Arrived {
    /// Waits for the others, and connects with them. Returns this worker's number, and channels by number.
    pub(super) async fn meet(self) -> Result<(Host, Vec<Option<Channel>>)> {
        let Arrived { own, mut driver, deadline, door, dialer } = self;
        let at = driver.connection.remote_address();
        let failed = |why: Why| Error::Hosts(format!("the driver at {at}: {why}"));
        let roster = driver.expect(Kind::Roster, deadline).await.map_err(failed)?;
        let roster = read_roster(&roster)
            .filter(|roster| roster.get(own.name.host as usize - 1).map(|member| member.key) == key_of(&own.chain[0]))
            .ok_or_else(|| failed(driver.refuse(&Violation::Malformed(Kind::Roster))))?;
        let mut channels = tokio::select! {
            biased;
            met = meet(&own, &roster, &door, &dialer, deadline) => met.map_err(Error::Hosts)?,
            error = driver.connection.closed() => return Err(failed(lost(&error))),
        };
        driver.send(Kind::Ready, &[], deadline).await.map_err(failed)?;
        driver.expect(Kind::Go, deadline).await.map_err(failed)?;
        channels[0] = Some(driver);
        Ok((own.name.host, channels))
    }
}

/// Refuses a peer that is not the host it should be.
fn expect(connection: &Connection, name: Name, key: Option<Digest>) -> Result<(), Why> {
    match peer(connection) {
        Some((found, its_key)) if found == name && key.is_none_or(|key| key == its_key) => Ok(()),
        found => {
            let why = match found {
                Some((found, _)) => format!("this is host {} of incarnation {}", found.host, found.incarnation),
                None => "it shows no certificate of a host".into(),
            };
            let why = format!("{why}, and not host {} of incarnation {}", name.host, name.incarnation);
            connection.close(code::REFUSED, why.as_bytes());
            Err(why)
        }
    }
}

/// Connects this worker with the others: it calls those with lower numbers, and waits for those with higher ones. Returns
/// channels by number.
async fn meet(
    own: &Credentials,
    roster: &[Member],
    door: &Door,
    dialer: &Dialer,
    deadline: Instant,
) -> Result<Vec<Option<Channel>>, Why> {
    let this = own.name.host;
    let mut calls = JoinSet::new();
    for member in roster.iter().filter(|member| member.host < this) {
        let (member, dialer, name) = (member.clone(), dialer.clone(), Name { host: member.host, ..own.name });
        calls.spawn(async move {
            let addresses = &member.addresses;
            let called = call(&dialer, name, &member, deadline).await;
            called.map(|channel| (member.host, channel)).map_err(|why| {
                format!("worker {} at {addresses:?} cannot be reached from worker {this}: {why}", member.host)
            })
        });
    }
    let mut callers = JoinSet::new();
    let roster: Arc<[Member]> = roster.into();
    let mut channels: Vec<Option<Channel>> = (0..=roster.len()).map(|_| None).collect();
    let mut missing = roster.len() - 1;
    while missing > 0 {
        let (host, channel) = tokio::select! {
            biased;
            Some(called) = calls.join_next() => called.map_err(|error| error.to_string())??,
            Some(answered) = callers.join_next() => match answered {
                Ok(Ok(met)) => met,
                // A caller that is refused is no reason to stop; a worker that is missing is noticed at the deadline.
                _ => continue,
            },
            caller = door.next() => {
                let caller = caller.ok_or("the socket was closed")?;
                let (roster, own) = (roster.clone(), own.name);
                callers.spawn(async move {
                    let (connection, place) = caller.enter(deadline).await?;
                    let host = recognize(&connection, own, &roster)?;
                    place.know();
                    let (channel, _) = Channel::open(connection, &hello(&[]), soon(deadline)).await?;
                    Ok::<_, Why>((host, channel))
                });
                continue;
            }
            () = tokio::time::sleep_until(deadline.into()) => {
                let missed = roster.iter().filter(|m| m.host != this && channels[m.host as usize].is_none());
                let missed: Vec<_> = missed.map(|m| format!("{} at {:?}", m.host, m.addresses)).collect();
                return Err(format!("worker {this} was not reached by worker {}", missed.join(", ")));
            }
        };
        missing -= usize::from(channels[host as usize].replace(channel).is_none());
    }
    Ok(channels)
}

/// Calls one worker.
async fn call(dialer: &Dialer, name: Name, member: &Member, deadline: Instant) -> Result<Channel, Why> {
    let is_right = |connection: &Connection| expect(connection, name, Some(member.key));
    let connection = dialer.dial(&member.addresses, deadline, is_right).await.map_err(|error| match error {
        Unreached::Silent => "it does not answer: do firewalls let UDP through between the two?".into(),
        Unreached::Refused(address, why) => format!("{address}: {why}"),
    })?;
    Channel::open(connection, &hello(&[]), soon(deadline)).await.map(|(channel, _)| channel)
}

/// Finds a caller in the roster: only hosts with higher numbers call.
fn recognize(connection: &Connection, own: Name, roster: &[Member]) -> Result<Host, Why> {
    let known = peer(connection).and_then(|(name, key)| {
        let member = roster.iter().find(|member| member.host == name.host)?;
        let right = name == Name { host: name.host, ..own } && member.key == key && name.host > own.host;
        right.then_some(name.host)
    });
    known.ok_or_else(|| {
        let why = "not a worker of this run and incarnation";
        connection.close(code::REFUSED, why.as_bytes());
        why.into()
    })
}
