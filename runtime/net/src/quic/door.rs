//! Callers, and calling others: connections up to the point where the other end has shown a certificate.

use super::channel::{GAVE_UP, Why, by, lost, soon};
use super::limits::{self, HANDSHAKES, UNVALIDATED};
use super::settings::Settings;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, ConnectionError, Endpoint, Incoming, ServerConfig, TransportErrorCode};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Where others call. Only so many may be in the doorway at once: where more call, those who have stood there longest without showing who
/// they are make room, of the address first that has the most of them. So strangers keep strangers out, and nobody else for longer
/// than a handshake takes.
pub(super) struct Door {
    pub(super) endpoint: Endpoint,
    config: ServerConfig,
    settings: Settings,
    doorway: Arc<Mutex<Vec<Guest>>>,
    next: AtomicU64,
}

/// One in the doorway.
struct Guest {
    number: u64,
    address: IpAddr,
    /// Whether it has shown who it is.
    is_known: bool,
    /// To ask it to leave.
    out: Arc<Notify>,
}

/// A host that calls. While this lives, a place in the doorway is taken.
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    incoming: Incoming,
    config: Arc<ServerConfig>,
    place: Place,
}

/// A place in the doorway.
pub(super) struct Place {
    number: u64,
    doorway: Arc<Mutex<Vec<Guest>>>,
    out: Arc<Notify>,
}

fn lock(doorway: &Mutex<Vec<Guest>>) -> MutexGuard<'_, Vec<Guest>> {
    doorway.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    /// It has shown who it is: from here on it makes room for nobody.
    pub(super) fn know(&self) {
        let mut doorway = lock(&self.doorway);
        doorway.iter_mut().filter(|guest| guest.number == self.number).for_each(|guest| guest.is_known = true);
    }

    /// Does something with the caller, unless it is asked to make room meanwhile.
    pub(super) async fn until_out<A>(&self, act: impl Future<Output = Result<A, Why>>) -> Result<A, Why> {
        tokio::select! {
            biased;
            done = act => done,
            () = self.out.notified() => Err(GAVE_UP.into()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.doorway).retain(|guest| guest.number != self.number);
    }
}

impl Door {
    pub(super) fn open(endpoint: Endpoint, config: ServerConfig, settings: Settings) -> Door {
        endpoint.set_server_config(Some(config.clone()));
        Door { endpoint, config, settings, doorway: Arc::default(), next: AtomicU64::new(0) }
    }

    /// Waits for the next caller. None: the endpoint is closed.
    pub(super) async fn next(&self) -> Option<Caller> {
        loop {
            let incoming = self.endpoint.accept().await?;
            let under_way = lock(&self.doorway).len();
            if under_way >= UNVALIDATED && incoming.may_retry() && !incoming.remote_address_validated() {
                let _ = incoming.retry();
                continue;
            }
            let address = incoming.remote_address();
            let Some(place) = self.place(address.ip()) else {
                // No answer costs nothing; a worker calls again.
                incoming.ignore();
                continue;
            };
            let config = limits::answer(&self.config, &self.settings, address.ip());
            return Some(Caller { address, incoming, config, place });
        }
    }

    /// A place in the doorway, if need be that of another: none if all there have shown who they are.
    fn place(&self, address: IpAddr) -> Option<Place> {
        let mut doorway = lock(&self.doorway);
        if doorway.len() >= HANDSHAKES {
            let unknown = |guest: &&Guest| !guest.is_known;
            let of = |address: IpAddr| doorway.iter().filter(unknown).filter(|guest| guest.address == address).count();
            // Of several addresses that have as many, that of the oldest.
            let most = doorway.iter().filter(unknown).map(|guest| of(guest.address)).max()?;
            let oldest = doorway.iter().position(|guest| !guest.is_known && of(guest.address) == most)?;
            doorway.remove(oldest).out.notify_one();
        }
        let (number, out) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(Notify::new()));
        doorway.push(Guest { number, address, is_known: false, out: out.clone() });
        Some(Place { number, doorway: self.doorway.clone(), out })
    }
}

impl Caller {
    /// Goes through the handshake. The place in the doorway is free again when the second value is dropped.
    pub(super) async fn enter(self, deadline: Instant) -> Result<(Connection, Place), Why> {
        let Caller { incoming, config, place, .. } = self;
        let connecting = incoming.accept_with(config).map_err(|error| lost(&error))?;
        let enter = async { by(soon(deadline), connecting).await?.map_err(|error| lost(&error)) };
        let connection = place.until_out(enter).await?;
        Ok((connection, place))
    }
}

/// How long to wait before calling once more those who did not answer.
const PAUSE: Duration = Duration::from_millis(200);

/// How to call a host.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) endpoint: Endpoint,
    pub(super) tls: Arc<QuicClientConfig>,
    pub(super) settings: Settings,
}

/// Why a host was not reached.
pub(super) enum Unreached {
    /// It did not answer before the deadline.
    Silent,
    /// A host answered that is another, or refused.
    Refused(SocketAddr, Why),
}

impl Dialer {
    /// Calls a host at all its addresses at once, again and again until the deadline, and takes the first connection that `is_right`.
    pub(super) async fn dial(
        &self,
        addresses: &[SocketAddr],
        deadline: Instant,
        is_right: impl Fn(&Connection) -> Result<(), Why>,
    ) -> Result<Connection, Unreached> {
        let mut refused = None;
        while Instant::now() < deadline {
            let mut calls = JoinSet::new();
            for &address in addresses {
                let this = self.clone();
                let soon = soon(deadline);
                calls.spawn(async move { (address, this.call(address, soon).await) });
            }
            while let Some(answer) = calls.join_next().await {
                let Ok((address, answer)) = answer else { continue };
                match answer.map(|connection| is_right(&connection).map(|()| connection)) {
                    Ok(Ok(connection)) => return Ok(connection),
                    Ok(Err(why)) => refused = Some((address, why)),
                    // An answer that says no will not change; silence may.
                    Err(Some(why)) => refused = Some((address, why)),
                    Err(None) => {}
                }
            }
            if let Some((address, why)) = refused {
                return Err(Unreached::Refused(address, why));
            }
            tokio::time::sleep(PAUSE.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
        Err(Unreached::Silent)
    }

    /// Calls one address once. `Err(None)`: no answer.
    async fn call(&self, address: SocketAddr, deadline: Instant) -> Result<Connection, Option<Why>> {
        let config = limits::call(&self.tls, &self.settings, address.ip());
        // Certificates name hosts of a run and not names of the network, so this one is not looked at.
        let connecting =
            self.endpoint.connect_with(config, address, "meshweft").map_err(|error| Some(error.to_string()))?;
        match by(deadline, connecting).await {
            Err(_) | Ok(Err(ConnectionError::TimedOut | ConnectionError::Reset)) => Err(None),
            // What QUIC says by itself where no host is let in.
            Ok(Err(ConnectionError::ConnectionClosed(close)))
                if close.error_code == TransportErrorCode::CONNECTION_REFUSED =>
            {
                Err(None)
            }
            Ok(Err(error)) => Err(Some(lost(&error)).filter(|why| why != GAVE_UP)),
            Ok(Ok(connection)) => Ok(connection),
        }
    }
}
