//! The event loop of the network. Threads that have a moment turn it; a thread of its own does where nobody has.
//!
//! Another thread that wakes up for each packet would throw a thread that updates vertices off its core, and its caches with it. So a
//! walking thread looks for packets between two tasks ([`Pump::turn`]), and one that has nothing to do waits for them
//! ([`Pump::wait`]). The network's thread holds the loop while nobody asks for it, hands it over to whoever does, and takes it back
//! when it was not turned for a while.

use super::limits::{self, LAST_PACKETS, SOCKET_BUFFER, code};
use crate::error::{Error, Result};
use std::future::Future;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Notify;

/// The network's thread takes the loop back when nobody has turned it for so long.
const IDLE: Duration = Duration::from_millis(2);
/// How long a thread that waits turns the loop before it sleeps until a packet comes: waking up takes a core some 50 microseconds.
const SPIN: Duration = Duration::from_micros(100);

/// The event loop, with all that is under way on it.
pub(super) struct Pump {
    runtime: Option<Runtime>,
    /// Held by the thread that turns it. Nobody waits for it.
    turn: Mutex<()>,
    start: Instant,
    /// When it was turned last, in nanoseconds from the start.
    turned: AtomicU64,
    /// Something has come.
    arrived: Notify,
    /// The network's thread is to let go of the loop.
    wanted: Notify,
    /// It is to end.
    stop: AtomicBool,
}

impl Pump {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Says that an event was handed over.
    pub(super) fn arrive(&self) {
        self.arrived.notify_one();
    }

    /// Does something with the loop, unless another thread has it. A thread of an event loop of its own may not turn another.
    fn with(&self, work: impl FnOnce(&Runtime)) -> bool {
        if Handle::try_current().is_ok() {
            return false;
        }
        let Ok(_turn) = self.turn.try_lock() else {
            self.wanted.notify_one();
            return false;
        };
        work(self.runtime());
        self.turned.store(self.now(), Ordering::Relaxed);
        true
    }

    /// Sends what is to be sent, and takes what has come. Returns whether this thread had the loop.
    pub(super) fn turn(&self) -> bool {
        self.with(|runtime| runtime.block_on(turn()))
    }

    /// Turns the loop until `done`, or as long as `most`: sleeps once that takes long. Returns whether this thread had it.
    pub(super) fn wait(&self, most: Duration, done: &dyn Fn() -> bool) -> bool {
        self.with(|runtime| {
            runtime.block_on(async {
                let clock = Instant::now();
                while !done() && clock.elapsed() < SPIN.min(most) {
                    turn().await;
                    self.turned.store(self.now(), Ordering::Relaxed);
                }
                while !done() && clock.elapsed() < most {
                    let _ = tokio::time::timeout(most - clock.elapsed().min(most), self.arrived.notified()).await;
                }
            });
        })
    }

    /// What the network's thread does.
    fn run(&self) {
        loop {
            // Whoever has it turns it.
            if let Ok(_turn) = self.turn.try_lock() {
                self.runtime().block_on(self.wanted.notified());
            }
            loop {
                if self.stop.load(Ordering::Acquire) {
                    return;
                }
                std::thread::park_timeout(IDLE);
                if self.now() > self.turned.load(Ordering::Relaxed) + IDLE.as_nanos() as u64 {
                    break;
                }
            }
        }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until the end")
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        // Dropped on a thread of another event loop, a runtime would panic.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lets all tasks run that can and looks for packets; then lets those run that the packets are for.
async fn turn() {
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
}

/// The event loop and its thread. They end when this is dropped, and whatever is under way ends with them.
pub(super) struct Network {
    pump: Arc<Pump>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    pub(super) fn start() -> Result<Network> {
        let failed = |error| Error::Hosts(format!("the network cannot be started: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let pump = Arc::new(Pump {
            runtime: Some(runtime),
            turn: Mutex::default(),
            start: Instant::now(),
            turned: AtomicU64::new(0),
            arrived: Notify::new(),
            wanted: Notify::new(),
            stop: AtomicBool::new(false),
        });
        let own = pump.clone();
        let thread = std::thread::Builder::new().name("meshweft network".into()).spawn(move || own.run());
        Ok(Network { pump, thread: Some(thread.map_err(failed)?) })
    }

    pub(super) fn pump(&self) -> &Arc<Pump> {
        &self.pump
    }

    pub(super) fn handle(&self) -> &Handle {
        self.pump.runtime().handle()
    }

    /// Runs something on the event loop, and waits for it. It must have a deadline of its own.
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

    /// Binds a socket with large buffers, and an endpoint on it.
    pub(super) fn endpoint(&self, listen: SocketAddr) -> Result<quinn::Endpoint> {
        let failed = |error: std::io::Error| {
            Error::Hosts(format!(
                "cannot listen on {listen}: {error}; take another address, or port 0 for any free one"
            ))
        };
        let socket = UdpSocket::bind(listen).map_err(failed)?;
        // The system may give less; then bursts are lost and sent again.
        let buffers = socket2::SockRef::from(&socket);
        let _ = buffers.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = buffers.set_send_buffer_size(SOCKET_BUFFER);
        let _inside = self.handle().enter();
        let runtime = Arc::new(quinn::TokioRuntime);
        quinn::Endpoint::new(limits::endpoint(), None, socket, runtime).map_err(failed)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.pump.stop.store(true, Ordering::Release);
        self.pump.wanted.notify_one();
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
