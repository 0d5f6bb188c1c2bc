//! Callers, and calling others: connections up to the point where the other end has shown a certificate.

use super::channel::{Why, by, lost, soon};
use super::limits::{self, HANDSHAKES, UNVALIDATED};
use super::settings::Settings;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, ConnectionError, Endpoint, Incoming, ServerConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Where others call: it bounds how many may be in the doorway at once.
pub(super) struct Door {
    pub(super) endpoint: Endpoint,
    config: ServerConfig,
    settings: Settings,
    /// One clone for each that is in the doorway.
    doorway: Arc<()>,
}

/// A host that calls. While this lives, a place in the doorway is taken.
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    incoming: Incoming,
    config: Arc<ServerConfig>,
    _place: Arc<()>,
}

impl Door {
    pub(super) fn open(endpoint: Endpoint, config: ServerConfig, settings: Settings) -> Door {
        endpoint.set_server_config(Some(config.clone()));
        Door { endpoint, config, settings, doorway: Arc::default() }
    }

    /// Waits for the next caller. None: the endpoint is closed.
    pub(super) async fn next(&self) -> Option<Caller> {
        loop {
            let incoming = self.endpoint.accept().await?;
            let under_way = Arc::strong_count(&self.doorway) - 1;
            if under_way >= HANDSHAKES {
                // No answer costs nothing; a worker calls again.
                incoming.ignore();
            } else if under_way >= UNVALIDATED && incoming.may_retry() && !incoming.remote_address_validated() {
                let _ = incoming.retry();
            } else {
                let address = incoming.remote_address();
                let config = limits::answer(&self.config, &self.settings, address.ip());
                return Some(Caller { address, incoming, config, _place: self.doorway.clone() });
            }
        }
    }
}

impl Caller {
    /// Goes through the handshake. The place in the doorway is free again when the second value is dropped.
    pub(super) async fn enter(self, deadline: Instant) -> Result<(Connection, Arc<()>), Why> {
        let connecting = self.incoming.accept_with(self.config).map_err(|error| lost(&error))?;
        let connection = by(soon(deadline), connecting).await?.map_err(|error| lost(&error))?;
        Ok((connection, self._place))
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
            Ok(Err(ConnectionError::ConnectionClosed(close))) if close.error_code == REFUSED => Err(None),
            Ok(Err(error)) => Err(Some(lost(&error))),
            Ok(Ok(connection)) => Ok(connection),
        }
    }
}

const REFUSED: quinn::TransportErrorCode = quinn::TransportErrorCode::CONNECTION_REFUSED;
