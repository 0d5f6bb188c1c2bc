//! A host of a run that has begun.

use super::channel::Channel;
use super::knocks::Knocks;
use super::limits::LAST_PACKETS;
use super::link::Link;
use super::network::Network;
use super::pump::Pump;
use super::settings::Settings;
use crate::identity::Run;
use crate::transport::{Host, Sink, Traffic, Transport, check};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// A host of a run, connected with all the others.
pub struct Quic {
    host: Host,
    /// By number; none for this host.
    links: Vec<Option<Arc<Link>>>,
    pub(super) endpoint: quinn::Endpoint,
    /// None once it is closed.
    network: Mutex<Option<Network>>,
    pump: Weak<Pump>,
    goodbye: Duration,
    /// What the driver would begin it again with.
    pub(super) run: Option<Run>,
    /// Of the driver: workers that wait, and what answers them.
    knocks: Option<(Arc<Knocks>, AbortHandle)>,
}

impl Quic {
    /// Begins to read and write. `channels`: by number, none for this host.
    pub(super) fn start(
        host: Host,
        channels: Vec<Option<Channel>>,
        endpoint: quinn::Endpoint,
        network: Network,
        settings: &Settings,
        sink: &Sink,
    ) -> Quic {
        // All are here. A driver opens its door again, to tell others to wait.
        endpoint.set_server_config(None);
        let pump = network.pump();
        let link = |(host, channel): (usize, Option<Channel>)| {
            Some(Link::start(host as Host, channel?, sink, settings.dead_timeout, pump))
        };
        let links = channels.into_iter().enumerate().map(link).collect();
        let pump = Arc::downgrade(pump);
        Quic {
            host,
            links,
            endpoint,
            network: Mutex::new(Some(network)),
            pump,
            goodbye: settings.goodbye,
            run: None,
            knocks: None,
        }
    }

    /// Makes it the driver's, which may begin the run again. `answers`: those who call meanwhile.
    pub(super) fn take(&mut self, run: Run, knocks: Arc<Knocks>, answers: impl Future<Output = ()> + Send + 'static) {
        let network = self.network.get_mut().expect("no holder of the lock panics");
        let task = network.as_ref().map(|network| network.handle().spawn(answers).abort_handle());
        (self.run, self.knocks) = (Some(run), task.map(|task| (knocks, task)));
    }

    /// Workers that have the token, and wait until the driver begins the run again with them.
    pub fn waiting(&self) -> u32 {
        self.knocks.as_ref().map_or(0, |(knocks, _)| knocks.count())
    }

    /// Calls are answered no more.
    fn shut(&self) {
        self.knocks.iter().for_each(|(_, answers)| answers.abort());
        self.endpoint.set_server_config(None);
    }

    /// What it takes to begin the run again, if this is its driver and has not closed: from here on it says nothing more.
    pub(super) fn begin_again(&self) -> Option<(Run, Network, Vec<SocketAddr>)> {
        let run = self.run.clone()?;
        let network = self.take_network()?;
        let waiting = self.knocks.as_ref().map(|(knocks, _)| knocks.addresses()).unwrap_or_default();
        self.shut();
        self.others().for_each(|link| link.close());
        Some((run, network, waiting))
    }

    fn link(&self, host: Host) -> &Link {
        self.links[host as usize].as_ref().expect("a host asks about others")
    }

    fn others(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.links.iter().flatten()
    }

    /// Closes all connections, and gives the packets that say so a moment to leave. No longer: strangers may begin handshakes at any
    /// time, which are connections too.
    fn end(&self, network: &Network) {
        self.shut();
        self.others().for_each(|link| link.close());
        let endpoint = self.endpoint.clone();
        let _ = network.run(async move {
            let _ = tokio::time::timeout(LAST_PACKETS, endpoint.wait_idle()).await;
        });
    }

    fn take_network(&self) -> Option<Network> {
        self.network.lock().expect("no holder of the lock panics").take()
    }

    #[cfg(test)]
    pub(super) fn measured_rate(&self, with: Host) -> Option<f64> {
        self.link(with).measured_rate()
    }

    /// Ends without a word, as a host does whose power fails.
    #[cfg(test)]
    pub(super) fn vanish(self) {
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

    fn turn(&self) -> bool {
        self.pump.upgrade().is_some_and(|pump| pump.turn())
    }

    fn rest(&self, most: Duration, done: &dyn Fn() -> bool) -> bool {
        self.pump.upgrade().is_some_and(|pump| pump.wait(most, done))
    }

    fn close(&self) {
        let Some(network) = self.take_network() else { return };
        let deadline = Instant::now() + self.goodbye;
        self.others().for_each(|link| link.say_goodbye());
        for link in self.others() {
            link.wait_for_goodbye(deadline);
        }
        self.end(&network);
    }

    fn leave(&self) {
        if let Some(network) = self.take_network() {
            self.end(&network);
        }
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        self.leave();
    }
}
