//! Hosts that talk over QUIC.
//!
//! # How a run comes together
//!
//! ```text
//!  driver                          worker 1               worker 2
//!  Listening::start → token        join(token)            join(token)
//!        ◄──────── join: pinned CA, proof, key ─┘              │       ALPN meshweft-join/1
//!        ───────── certificate of host 1 ──────►│              │
//!        ◄════════ mTLS: hello, addresses ══════╡              │       ALPN meshweft/1, from here on
//!        ◄──────────────── the same, as host 2 ───────────────►│
//!        ── roster: numbers, keys, addresses ──►│─────────────►│
//!                                               │◄═════════════╡       the higher number calls the lower
//!        ◄──────── ready ───────────────────────│──────────────│
//!        ───────── go ─────────────────────────►│─────────────►│       and no one lets anyone in any more
//! ```
//!
//! The certificate says which host a peer is ([`identity`](crate::cluster::identity)); run, number, incarnation and the
//! digest of the key are compared with what the driver handed out before a word is said. Hosts tell where they listen, and the
//! driver adds the address at which it sees them. An address that leads elsewhere does no harm: who answers there is not who
//! was called.
//!
//! # Connections
//!
//! A pair of hosts has one connection, with one long-lived stream each way. `link` fills and empties them; `frame` says what lies
//! in them. Queues take any number of messages: callers wait for room ([`Transport::wait_for_room`]). What is not read is
//! not sent: a peer that reads nothing for the dead-timeout is closed, with a code.
//!
//! # The end
//!
//! QUIC's acknowledgment means that bytes reached a host, and not that anyone read them; closing a connection throws
//! unread ones away. So both sides say *bye*, and answer each other's with *bye read*. Whoever has heard both closes, and that
//! it closed so tells the other the same.
//!
//! # Limits
//!
//! All of them are in `limits`. What it does not do: recover by itself. A run that lost a host is begun again
//! ([`Listening::resume`]), with the same token and the next incarnation.

mod channel;
mod door;
mod driver;
mod frame;
mod limits;
mod link;
mod network;
mod rate;
mod wire;
mod worker;

#[cfg(test)]
mod tests;

use super::{Host, Sink, Traffic, Transport, check};
use crate::{Error, Result};
use channel::Channel;
pub(crate) use driver::{Listening, Progress, Run};
use limits::LAST_PACKETS;
use link::Link;
use network::Network;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
pub(crate) use worker::join;

/// How a host takes part in a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Where to listen. Port 0: any free one.
    pub(crate) listen: SocketAddr,
    /// Where others reach this host. None: found out.
    pub(crate) addresses: Vec<SocketAddr>,
    /// A host of which nothing is heard for so long is lost.
    pub(crate) dead_timeout: Duration,
    /// How long a worker tries to reach the driver and to be let in.
    pub(crate) join_deadline: Duration,
    /// How long a goodbye may take.
    pub(crate) goodbye: Duration,
    /// How long the run may take at most: certificates and token expire after it. The driver's alone.
    pub(crate) run_length: Duration,
    /// Bytes of a packet, where the network is known to carry more than 1,452. None: 6,500 within one machine, else found out.
    pub(crate) mtu: Option<u16>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listen: (Ipv4Addr::UNSPECIFIED, 0).into(),
            addresses: Vec::new(),
            dead_timeout: Duration::from_secs(10),
            join_deadline: Duration::from_secs(60),
            goodbye: Duration::from_secs(10),
            run_length: Duration::from_secs(7 * 24 * 3600),
            mtu: None,
        }
    }
}

impl Settings {
    /// Refuses what cannot work.
    fn check(&self) -> Result<()> {
        let range = Duration::from_millis(100)..=Duration::from_secs(24 * 3600);
        for (name, time) in
            [("dead-timeout", self.dead_timeout), ("join deadline", self.join_deadline), ("goodbye", self.goodbye)]
        {
            if !range.contains(&time) {
                return Err(Error::Cluster(format!("a {name} of {time:?} cannot work: take 100 ms to 24 h")));
            }
        }
        if self.run_length > Duration::from_secs(366 * 24 * 3600) {
            return Err(Error::Cluster("a run may last a year at most: its keys should not live longer".into()));
        }
        Ok(())
    }
}

/// A host of a run, connected with all the others.
pub(crate) struct Quic {
    host: Host,
    /// By number; none for this host.
    links: Vec<Option<Arc<Link>>>,
    endpoint: quinn::Endpoint,
    /// None once it is closed.
    network: Mutex<Option<Network>>,
    goodbye: Duration,
    run: Option<Run>,
}

impl Quic {
    /// Begins to read and write. `channels`: by number, none for this host.
    fn start(
        host: Host,
        channels: Vec<Option<Channel>>,
        endpoint: quinn::Endpoint,
        network: Network,
        settings: &Settings,
        sink: &Sink,
    ) -> Quic {
        // Everyone is here: from now on no one is let in.
        endpoint.set_server_config(None);
        let inside = network.handle().enter();
        let link = |(host, channel): (usize, Option<Channel>)| {
            Some(Link::start(host as Host, channel?, sink, settings.dead_timeout))
        };
        let links = channels.into_iter().enumerate().map(link).collect();
        drop(inside);
        Quic { host, links, endpoint, network: Mutex::new(Some(network)), goodbye: settings.goodbye, run: None }
    }

    /// What it takes to begin the run again after a host was lost. The driver's alone.
    #[cfg_attr(not(test), expect(dead_code, reason = "runs do not go on by themselves yet"))]
    pub(crate) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    fn link(&self, host: Host) -> &Link {
        self.links[host as usize].as_ref().expect("a host asks about others")
    }

    fn others(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.links.iter().flatten()
    }

    /// Closes all connections, and gives the packets that say so until the deadline to leave.
    fn leave(&self, network: &Network, deadline: Instant) {
        self.others().for_each(|link| link.close());
        let endpoint = self.endpoint.clone();
        let deadline = deadline.max(Instant::now() + LAST_PACKETS);
        let _ = network.run(async move {
            let _ = tokio::time::timeout_at(deadline.into(), endpoint.wait_idle()).await;
        });
    }

    fn take_network(&self) -> Option<Network> {
        self.network.lock().expect("no holder of the lock panics").take()
    }

    /// Ends without a word, as a host does whose power fails.
    #[cfg(test)]
    fn vanish(self) {
        drop(self.take_network());
    }
}

impl Transport for Quic {
    fn host(&self) -> Host {
        self.host
    }

    fn hosts(&self) -> u32 {
        self.links.len() as u32
    }

    fn send(&self, to: Host, message: Vec<u8>) {
        check(self, to, &message);
        self.link(to).send(message);
    }

    fn wait_for_room(&self, to: Host, bytes: usize, deadline: Instant) -> bool {
        self.link(to).wait_for_room(bytes, deadline)
    }

    fn traffic(&self, with: Host) -> Traffic {
        self.link(with).traffic()
    }

    fn rate(&self, to: Host) -> Option<f64> {
        self.link(to).rate()
    }

    fn close(&self) {
        let Some(network) = self.take_network() else { return };
        let deadline = Instant::now() + self.goodbye;
        self.others().for_each(|link| link.say_goodbye());
        for link in self.others() {
            link.wait_for_goodbye(deadline);
        }
        self.leave(&network, deadline);
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        if let Some(network) = self.take_network() {
            self.leave(&network, Instant::now());
        }
    }
}
