//! The socket of a host, as quinn asks it: packets in batches, and without a list of what is ready.

use mio::event::Source;
use mio::{Interest, Registry, Token};
use quinn::udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// When to look again whether the system takes packets: it seldom has no room, and telling of it would cost a call a packet.
const FULL: Duration = Duration::from_millis(1);
/// Packets that are asked for in a call: mostly one has come, and a call prepares room for each that may.
const FEW: usize = 4;

/// A socket of which the pump says when to look at it.
#[derive(Debug)]
pub(super) struct Socket {
    io: mio::net::UdpSocket,
    state: UdpSocketState,
    /// All that had come by the last look was taken.
    is_drained: AtomicBool,
    /// Waits for packets.
    reader: Mutex<Option<Waker>>,
    /// Wait until the system takes packets.
    writers: Mutex<Vec<Waker>>,
    /// It took none.
    is_full: AtomicBool,
}

impl Socket {
    /// `registry`: where it is said that packets have come.
    pub(super) fn new(socket: std::net::UdpSocket, registry: &Registry, token: Token) -> io::Result<Socket> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let mut io = mio::net::UdpSocket::from_std(socket);
        io.register(registry, token, Interest::READABLE)?;
        Ok(Socket {
            io,
            state,
            is_drained: AtomicBool::new(false),
            reader: Mutex::default(),
            writers: Mutex::default(),
            is_full: AtomicBool::new(false),
        })
    }

    /// Lets its tasks look for packets, and send those that the system did not take.
    pub(super) fn look(&self) {
        self.is_drained.store(false, Ordering::Relaxed);
        if let Some(reader) = self.reader.lock().expect("no holder of the lock panics").take() {
            reader.wake();
        }
        if self.is_full.swap(false, Ordering::Relaxed) {
            let writers = std::mem::take(&mut *self.writers.lock().expect("no holder of the lock panics"));
            writers.into_iter().for_each(Waker::wake);
        }
    }

    /// When to look again even if nothing comes.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.is_full.load(Ordering::Relaxed).then_some(FULL)
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room(self))
    }

    fn try_send(&self, transmit: &Transmit) -> io::Result<()> {
        let sent = self.io.try_io(|| self.state.send(UdpSockRef::from(&self.io), transmit));
        if matches!(&sent, Err(error) if error.kind() == ErrorKind::WouldBlock) {
            self.is_full.store(true, Ordering::Relaxed);
        }
        sent
    }

    fn poll_recv(
        &self,
        context: &mut Context,
        buffers: &mut [IoSliceMut],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let few = FEW.min(buffers.len());
        while !self.is_drained.load(Ordering::Relaxed) {
            let receive = || self.state.recv(UdpSockRef::from(&self.io), &mut buffers[..few], &mut meta[..few]);
            match self.io.try_io(receive) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => {
                    self.is_drained.store(matches!(received, Ok(count) if count < few), Ordering::Relaxed);
                    return Poll::Ready(received);
                }
            }
        }
        *self.reader.lock().expect("no holder of the lock panics") = Some(context.waker().clone());
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }
}

/// Waits until the system takes packets.
#[derive(Debug)]
struct Room(Arc<Socket>);

impl UdpPoller for Room {
    fn poll_writable(self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        if !self.0.is_full.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        self.0.writers.lock().expect("no holder of the lock panics").push(context.waker().clone());
        Poll::Pending
    }
}
