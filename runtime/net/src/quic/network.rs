//! A host's network: its pump, the thread that moves it where nobody else does, and the event loop on which a run is put together.

use super::limits::{self, LAST_PACKETS, SOCKET_BUFFER, code};
use super::pump::Pump;
use crate::error::{Error, Result};
use std::future::Future;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tokio::runtime::{Handle, Runtime};

/// The pump and its thread. They end when this is dropped, and whatever is under way ends with them.
pub(super) struct Network {
    pump: Arc<Pump>,
    thread: Option<JoinHandle<()>>,
    /// Where hosts meet: what is done there has deadlines and is no matter of microseconds.
    joining: Option<Runtime>,
}

impl Network {
    /// Binds a socket with large buffers, and begins to move what comes and goes there.
    pub(super) fn start(listen: SocketAddr) -> Result<(Network, quinn::Endpoint)> {
        let unbound = |error: std::io::Error| {
            Error::Hosts(format!(
                "cannot listen on {listen}: {error}; take another address, or port 0 for any free one"
            ))
        };
        let socket = UdpSocket::bind(listen).map_err(unbound)?;
        // The system may give less; then bursts are lost and sent again.
        let buffers = socket2::SockRef::from(&socket);
        let _ = buffers.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = buffers.set_send_buffer_size(SOCKET_BUFFER);
        socket.set_nonblocking(true).map_err(unbound)?;

        let failed = |error| Error::Hosts(format!("the network cannot be started: {error}"));
        let pump = Arc::new(Pump::new(socket).map_err(failed)?);
        let endpoint = pump.endpoint(limits::endpoint()).map_err(failed)?;
        let joining = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("meshweft joining")
            .enable_time()
            .build()
            .map_err(failed)?;
        let own = pump.clone();
        let thread = std::thread::Builder::new().name("meshweft network".into()).spawn(move || own.run());
        Ok((Network { pump, thread: Some(thread.map_err(failed)?), joining: Some(joining) }, endpoint))
    }

    pub(super) fn pump(&self) -> &Arc<Pump> {
        &self.pump
    }

    pub(super) fn handle(&self) -> &Handle {
        self.joining.as_ref().expect("it is there until the end").handle()
    }

    /// Runs something where hosts meet, and waits for it. It must have a deadline of its own.
    pub(super) fn run<T: Send + 'static>(&self, job: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let (done, result) = mpsc::channel();
        self.handle().spawn(async move {
            let _ = done.send(job.await);
        });
        result.recv().map_err(|_| Error::Internal("the network's thread failed".into()))
    }

    /// Closes an endpoint, so that the other end learns of it at once.
    pub(super) fn give_up(&self, endpoint: quinn::Endpoint) -> Result<()> {
        self.run(async move {
            endpoint.close(code::LEFT, b"");
            let _ = tokio::time::timeout(LAST_PACKETS, endpoint.wait_idle()).await;
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Dropped on a thread of another event loop, a runtime would panic.
        if let Some(joining) = self.joining.take() {
            joining.shutdown_background();
        }
        self.pump.end();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

/// The addresses at which others may reach a socket that is bound to `bound`. `towards`: what to reach, for sockets on all addresses.
pub(super) fn reachable_at(bound: SocketAddr, towards: &[SocketAddr]) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let mut found = Vec::new();
    for address in towards {
        // Connecting a UDP socket sends nothing; it asks the system which way it would go.
        let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        let route =
            UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(address).and_then(|()| socket.local_addr()));
        if let Ok(local) = route
            && !local.ip().is_unspecified()
        {
            let local = SocketAddr::new(local.ip(), bound.port());
            if !found.contains(&local) {
                found.push(local);
            }
        }
    }
    // Networks that no way out leads through, such as a cable between two hosts.
    for interface in if_addrs::get_if_addrs().unwrap_or_default() {
        let local = SocketAddr::new(interface.ip(), bound.port());
        let needs_scope = matches!(interface.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local());
        if !needs_scope && !interface.is_loopback() && local.is_ipv4() >= bound.is_ipv4() && !found.contains(&local) {
            found.push(local);
        }
    }
    found.sort_by_key(|address| address.ip().is_loopback());
    found
}

/// Addresses that stand for the way out of this host (reserved for documentation, so no host has them), and this host itself.
pub(super) fn anywhere() -> [SocketAddr; 3] {
    [
        SocketAddr::from(([192, 0, 2, 1], 9)),
        SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9)),
        SocketAddr::from(([127, 0, 0, 1], 9)),
    ]
}
