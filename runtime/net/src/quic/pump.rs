//! What moves the network: the tasks of its connections, their timers, and the packets of its socket. Threads that have a moment turn it;
//! a thread of its own does where nobody has.
//!
//! Another thread that wakes up for each packet would throw a thread that updates vertices off its core, and its caches with it. So a
//! walking thread looks for packets between two tasks ([`Pump::turn`]), and one that has nothing to do waits for them
//! ([`Pump::wait`]). The network's thread holds the pump while nobody asks for it, hands it over to whoever does, and takes it back
//! when it was not turned for a while. Whoever turns it asks the socket itself, and the system's list of what is ready only before it
//! sleeps: a turn in which nothing has come is one system call.

use super::socket::Socket;
use super::timers::Timers;
use async_executor::Executor;
use mio::{Events, Poll};
use quinn::{AsyncTimer, AsyncUdpSocket, Endpoint, EndpointConfig, Runtime};
use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

/// The network's thread takes the pump back when nobody has turned it for so long.
const IDLE: Duration = Duration::from_millis(2);
/// How long a thread that waits turns the pump before it sleeps until a packet comes: waking up takes a core some 50 microseconds.
const SPIN: Duration = Duration::from_micros(100);
/// Steps of tasks in one turn at most, so that a flood does not keep a thread that updates vertices.
const STEPS: usize = 64;

/// The tasks of a network and what they wait for.
pub(super) struct Pump {
    tasks: Executor<'static>,
    timers: Arc<Timers>,
    socket: Arc<Socket>,
    /// Held by the thread that turns it, which alone may sleep until something comes. Nobody waits for it.
    turn: Mutex<Poll>,
    bell: Arc<Bell>,
    start: Instant,
    /// When it was turned last, in nanoseconds from the start.
    turned: AtomicU64,
    /// The network's thread has it.
    kept: AtomicBool,
    /// That thread is to let go of it.
    wanted: AtomicBool,
    /// It is to end.
    stop: AtomicBool,
}

/// Wakes the thread that sleeps until something comes.
struct Bell(mio::Waker);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // It fails where the system has no memory left; then the sleeper wakes up at its next timer.
        let _ = self.0.wake();
    }
}

impl Pump {
    pub(super) fn new(socket: UdpSocket) -> io::Result<Pump> {
        let poll = Poll::new()?;
        Ok(Pump {
            tasks: Executor::new(),
            timers: Arc::default(),
            socket: Arc::new(Socket::new(socket, poll.registry(), mio::Token(0))?),
            bell: Arc::new(Bell(mio::Waker::new(poll.registry(), mio::Token(1))?)),
            turn: Mutex::new(poll),
            start: Instant::now(),
            turned: AtomicU64::new(0),
            kept: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        })
    }

    /// Opens an endpoint on its socket.
    pub(super) fn endpoint(self: &Arc<Pump>, config: EndpointConfig) -> io::Result<Endpoint> {
        let runtime = OnPump { pump: Arc::downgrade(self), timers: self.timers.clone() };
        Endpoint::new_with_abstract_socket(config, None, self.socket.clone(), Arc::new(runtime))
    }

    /// Begins a task. It ends with the pump; one that panics ends alone.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task).detach();
    }

    pub(super) fn timers(&self) -> &Arc<Timers> {
        &self.timers
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Takes the pump, unless another thread has it.
    fn take(&self) -> Option<MutexGuard<'_, Poll>> {
        match self.turn.try_lock() {
            Ok(poll) => Some(poll),
            // What a sink panicked over is not in here.
            Err(TryLockError::Poisoned(poll)) => Some(poll.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The same for a thread that may have it instead of the network's own, which then learns of it.
    fn take_over(&self) -> Option<MutexGuard<'_, Poll>> {
        let poll = self.take();
        if poll.is_none() && self.kept.load(Ordering::Relaxed) && !self.wanted.swap(true, Ordering::AcqRel) {
            self.bell.wake_by_ref();
        }
        poll
    }

    /// Sends what is to be sent, and takes what has come. Returns whether this thread had the pump.
    pub(super) fn turn(&self) -> bool {
        self.take_over().map(|_poll| self.step()).is_some()
    }

    /// Turns the pump until `done`, or as long as `most`: sleeps once that takes long. Returns whether this thread had it.
    pub(super) fn wait(&self, most: Duration, done: &dyn Fn() -> bool) -> bool {
        let Some(mut poll) = self.take_over() else { return false };
        let clock = Instant::now();
        while !done() {
            let waited = clock.elapsed();
            if waited >= most {
                break;
            }
            if waited > SPIN {
                self.sleep(&mut poll, most - waited);
            }
            self.step();
        }
        true
    }

    /// Lets tasks run: those that can, those whose time has come, and those that packets are for.
    fn step(&self) {
        let now = Instant::now();
        self.socket.look();
        self.timers.fire(now);
        let _ = (0..STEPS).take_while(|_| self.tasks.try_tick()).count();
        self.turned.store((now - self.start).as_nanos() as u64, Ordering::Relaxed);
    }

    /// Sleeps until a packet comes, a timer is due, a task can run, or the bell rings.
    fn sleep(&self, poll: &mut Poll, most: Duration) {
        let bell = Waker::from(self.bell.clone());
        let mut next = pin!(self.tasks.tick());
        if next.as_mut().poll(&mut Context::from_waker(&bell)).is_ready() {
            return;
        }
        let timer = self.timers.next().map(|next| next.saturating_duration_since(Instant::now()));
        let most = [timer, self.socket.patience()].into_iter().flatten().fold(most, Duration::min);
        // Interrupted by a signal, it sleeps again after a turn.
        let _ = poll.poll(&mut Events::with_capacity(4), Some(most));
    }

    /// What the network's thread does until [`end`](Pump::end).
    pub(super) fn run(&self) {
        loop {
            if let Some(mut poll) = self.take() {
                self.wanted.store(false, Ordering::Relaxed);
                self.kept.store(true, Ordering::Release);
                while !self.wanted.load(Ordering::Acquire) && !self.stop.load(Ordering::Acquire) {
                    self.sleep(&mut poll, Duration::from_secs(3600));
                    self.step();
                }
                self.kept.store(false, Ordering::Release);
            }
            // Whoever has it turns it.
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

    /// Ends the network's thread, which then has to be unparked.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::Release);
        self.bell.wake_by_ref();
    }
}

/// The pump as quinn knows it.
#[derive(Debug)]
struct OnPump {
    pump: Weak<Pump>,
    timers: Arc<Timers>,
}

impl Runtime for OnPump {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(self.timers.at(at))
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        // Without its pump a task is over.
        if let Some(pump) = self.pump.upgrade() {
            pump.spawn(task);
        }
    }

    fn wrap_udp_socket(&self, _: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
