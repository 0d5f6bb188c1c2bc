//! A connection of a run that has begun: a queue that any thread fills, a task that writes it out, and a task that reads.

use super::channel::{Channel, Incoming, Outgoing, Why, lost};
use super::frame::{HEADER, Kind, Violation, header};
use super::limits::code;
use super::pump::Pump;
use super::rate;
use super::timers::Timers;
use crate::transport::{Event, Host, Sink, Traffic};
use bytes::Bytes;
use quinn::{Connection, ConnectionError, ReadError, VarInt, WriteError};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Bytes that are handed to QUIC at once: enough that its lock and its wake-up cost nothing each.
const BATCH: usize = 256 << 10;
/// Messages below that are copied into one piece: a piece costs about as much as so many bytes.
const SMALL: usize = 4 << 10;
/// Pieces of a stream that are taken at once.
const PIECES: usize = 32;

/// The connection to one host.
pub(super) struct Link {
    pub(super) host: Host,
    connection: Connection,
    queue: Mutex<Queue>,
    /// The queue got shorter, or came nearer to its end.
    changed: Condvar,
    /// There is something to write, for a writer that sleeps.
    wake: Notify,
    sent: Counter,
    received: Counter,
    /// How long a peer may leave unread what was sent.
    patience: Duration,
}

#[derive(Default)]
struct Counter {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    fn add(&self, bytes: usize) {
        self.messages.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Frame>,
    /// Bytes of messages that QUIC has not taken yet.
    bytes: usize,
    /// Threads that wait for a change.
    waiting: usize,
    /// Whether the writer waits to be woken.
    asleep: bool,
    goodbye: Goodbye,
    ended: bool,
    /// Why this side closed the connection.
    why: Option<Why>,
}

/// How far the end has come.
#[derive(Default)]
struct Goodbye {
    /// This side said that nothing more will come.
    said: bool,
    /// The other side read that, and everything before.
    read: bool,
    /// The other side said it too, and everything before was read here.
    heard: bool,
}

impl Goodbye {
    fn is_complete(&self) -> bool {
        self.read && self.heard
    }
}

/// Something to write.
struct Frame {
    header: [u8; HEADER],
    bytes: Vec<u8>,
}

/// What is handed to QUIC at once.
struct Batch {
    pieces: Vec<Bytes>,
    /// Bytes of messages in it.
    bytes: usize,
}

impl Link {
    /// Begins to read and write.
    pub(super) fn start(host: Host, channel: Channel, sink: &Sink, patience: Duration, pump: &Pump) -> Arc<Link> {
        let Channel { connection, outgoing, incoming } = channel;
        let link = Arc::new(Link {
            host,
            connection,
            queue: Mutex::default(),
            changed: Condvar::new(),
            wake: Notify::new(),
            sent: Counter::default(),
            received: Counter::default(),
            patience,
        });
        let reader = Reader { link: link.clone(), sink: sink.clone(), ended: false };
        pump.spawn(reader.run(incoming));
        pump.spawn(write(link.clone(), outgoing, pump.timers().clone()));
        pump.spawn(refuse_streams(link.clone()));
        link
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no holder of the lock panics")
    }

    /// Queues a message.
    pub(super) fn send(&self, message: Vec<u8>) {
        // The sender's thread computes the checksum: the network's has enough to do.
        let header = header(Kind::Message, &message);
        let bytes = message.len();
        let mut queue = self.queue();
        if queue.ended || queue.goodbye.said {
            return;
        }
        queue.bytes += bytes;
        queue.frames.push_back(Frame { header, bytes: message });
        self.sent.add(bytes);
        self.wake_writer(queue);
    }

    /// Queues a frame that says how things stand.
    fn say(&self, mut queue: MutexGuard<Queue>, kind: Kind) {
        queue.frames.push_back(Frame { header: header(kind, &[]), bytes: Vec::new() });
        self.wake_writer(queue);
    }

    /// Wakes the writer if it sleeps: a wake-up of another thread costs more than a small message.
    fn wake_writer(&self, mut queue: MutexGuard<Queue>) {
        let asleep = std::mem::take(&mut queue.asleep);
        drop(queue);
        if asleep {
            self.wake.notify_one();
        }
    }

    /// Takes what is to be written next. `None`: nothing, and the writer will be woken.
    fn take_batch(&self) -> Option<Batch> {
        let mut frames = Vec::new();
        let mut queue = self.queue();
        let mut length = 0;
        while length < BATCH
            && let Some(frame) = queue.frames.pop_front()
        {
            length += HEADER + frame.bytes.len();
            frames.push(frame);
        }
        queue.asleep = frames.is_empty();
        drop(queue);
        let bytes = frames.iter().map(|frame| frame.bytes.len()).sum();
        let mut pieces = Vec::new();
        let mut small = Vec::new();
        for Frame { header, bytes } in frames {
            small.extend(header);
            if bytes.len() < SMALL {
                small.extend(bytes);
            } else {
                pieces.push(Bytes::from(std::mem::take(&mut small)));
                pieces.push(Bytes::from(bytes));
            }
        }
        if !small.is_empty() {
            pieces.push(Bytes::from(small));
        }
        (!pieces.is_empty()).then_some(Batch { pieces, bytes })
    }

    /// Waits on the calling thread until something is so, or the connection ended. Returns false if the deadline passed.
    fn wait(&self, deadline: Instant, done: impl Fn(&Queue) -> bool) -> bool {
        let mut queue = self.queue();
        while !queue.ended && !done(&queue) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            queue.waiting += 1;
            queue = self.changed.wait_timeout(queue, left).expect("no holder of the lock panics").0;
            queue.waiting -= 1;
        }
        true
    }

    /// Waits until at most so many bytes are queued. Returns false if the host was lost or the deadline passed.
    pub(super) fn wait_for_room(&self, bytes: usize, deadline: Instant) -> bool {
        self.wait(deadline, |queue| queue.bytes <= bytes) && !self.queue().ended
    }

    pub(super) fn traffic(&self) -> Traffic {
        let count = |counter: &Counter| (counter.messages.load(Relaxed), counter.bytes.load(Relaxed));
        let ((sent_messages, sent_bytes), (received_messages, received_bytes)) =
            (count(&self.sent), count(&self.received));
        // Within a machine there is no link.
        let is_memory = self.connection.remote_address().ip().is_loopback();
        let rate = if is_memory { Some(f64::INFINITY) } else { self.measured_rate() };
        Traffic { sent_messages, sent_bytes, received_messages, received_bytes, rate }
    }

    /// Bytes a second that acknowledgements tell of.
    pub(super) fn measured_rate(&self) -> Option<f64> {
        rate::of(&self.connection)
    }

    /// Says that nothing more will come.
    pub(super) fn say_goodbye(&self) {
        let mut queue = self.queue();
        if !queue.ended && !queue.goodbye.said {
            queue.goodbye.said = true;
            self.say(queue, Kind::Bye);
        }
    }

    /// Waits until both sides read everything, or the host was lost.
    pub(super) fn wait_for_goodbye(&self, deadline: Instant) -> bool {
        self.wait(deadline, |queue| queue.goodbye.is_complete())
    }

    /// Closes the connection. Without a goodbye the other side learns of a loss.
    pub(super) fn close(&self) {
        let mut queue = self.queue();
        let complete = queue.goodbye.is_complete();
        // From here on nothing is told about this host.
        queue.ended = true;
        queue.frames.clear();
        queue.bytes = 0;
        drop(queue);
        self.changed.notify_all();
        if complete {
            self.connection.close(code::GOODBYE, b"");
        } else {
            self.connection.close(code::LEFT, b"");
        }
    }

    /// Takes note that the connection is over. Returns whether that is a loss to tell.
    fn end(&self, error: Option<&ConnectionError>) -> bool {
        let mut queue = self.queue();
        let known = std::mem::replace(&mut queue.ended, true);
        // A host that closes with a goodbye knows that its own was read, and has read ours: closing stands for saying so.
        let left =
            matches!(error, Some(ConnectionError::ApplicationClosed(close)) if close.error_code == code::GOODBYE);
        let fine = left && queue.goodbye.said && queue.goodbye.heard;
        queue.frames.clear();
        queue.bytes = 0;
        drop(queue);
        self.changed.notify_all();
        !known && !fine
    }

    /// Closes the connection because of what the peer did. The reader then tells the loss.
    fn refuse(&self, number: VarInt, why: &str) {
        self.queue().why.get_or_insert_with(|| why.to_string());
        self.connection.close(number, why.as_bytes());
    }
}

/// Writes what is queued, until the connection ends.
async fn write(link: Arc<Link>, mut outgoing: Outgoing, timers: Arc<Timers>) {
    loop {
        let Some(mut batch) = link.take_batch() else {
            tokio::select! {
                biased;
                () = link.wake.notified() => continue,
                // Without this the task, and with it the connection, would stay for ever.
                _ = link.connection.closed() => return,
            }
        };
        let mut pieces = &mut batch.pieces[..];
        while !pieces.is_empty() {
            // A write that did not finish wrote nothing, so waiting for it may be given up.
            let written = tokio::select! {
                biased;
                written = outgoing.0.write_chunks(pieces) => written,
                () = timers.at(Instant::now() + link.patience) => {
                    let why = format!("nothing was read for {:.1} s", link.patience.as_secs_f64());
                    return link.refuse(code::STALLED, &why);
                }
            };
            match written {
                Ok(written) => pieces = &mut pieces[written.chunks..],
                Err(WriteError::ConnectionLost(_)) => return,
                Err(error) => return link.refuse(code::VIOLATION, &error.to_string()),
            }
        }
        let mut queue = link.queue();
        queue.bytes = queue.bytes.saturating_sub(batch.bytes);
        let waiting = queue.waiting > 0;
        drop(queue);
        if waiting {
            link.changed.notify_all();
        }
    }
}

/// Ends a connection on which a peer opens more than its one stream.
async fn refuse_streams(link: Arc<Link>) {
    let opened = tokio::select! {
        biased;
        stream = link.connection.accept_uni() => stream.is_ok(),
        stream = link.connection.accept_bi() => stream.is_ok(),
    };
    if opened {
        link.refuse(code::STREAMS, "it opened more streams than the one that members have");
    }
}

/// What reads a connection, and tells when it is lost.
struct Reader {
    link: Arc<Link>,
    sink: Sink,
    ended: bool,
}

impl Reader {
    async fn run(mut self, mut incoming: Incoming) {
        let error = self.read(&mut incoming).await;
        self.ended = true;
        let error = error.map_err(|violation| self.link.refuse(code::VIOLATION, &violation.to_string()));
        if self.link.end(error.as_ref().ok()) {
            let own = self.link.queue().why.clone();
            let why = own.or(error.ok().map(|error| lost(&error))).unwrap_or_default();
            let host = self.link.host;
            let why = format!("host {host} at {}: {why}", self.link.connection.remote_address());
            (self.sink)(Event::Lost { host, why });
        }
    }

    /// Hands over messages until the connection ends. Returns how it did.
    async fn read(&mut self, incoming: &mut Incoming) -> Result<ConnectionError, Violation> {
        while let Some((kind, bytes)) = incoming.ready.pop_front() {
            take(&self.link, &self.sink, kind, bytes)?;
        }
        let mut pieces = [const { Bytes::new() }; PIECES];
        loop {
            let count = match incoming.stream.read_chunks(&mut pieces).await {
                Ok(Some(count)) => count,
                Ok(None) => return Err(Violation::Ended),
                Err(ReadError::ConnectionLost(error)) => return Ok(error),
                Err(_) => return Err(Violation::Ended),
            };
            for piece in &mut pieces[..count] {
                let piece = std::mem::take(piece);
                incoming.frames.push(&piece, |kind, bytes| take(&self.link, &self.sink, kind, bytes))?;
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A sink that panicked, or a network that ended, must not leave others waiting for a host that is not read any more.
        if !self.ended {
            self.link.refuse(code::LEFT, "");
            self.link.end(None);
        }
    }
}

/// Deals with one frame.
fn take(link: &Link, sink: &Sink, kind: Kind, bytes: Vec<u8>) -> Result<(), Violation> {
    match kind {
        Kind::Message => {
            let queue = link.queue();
            if queue.ended {
                return Ok(());
            }
            if queue.goodbye.heard {
                return Err(Violation::Unexpected(kind));
            }
            drop(queue);
            link.received.add(bytes.len());
            sink(Event::Message { from: link.host, bytes });
        }
        Kind::Bye => {
            let mut queue = link.queue();
            if std::mem::replace(&mut queue.goodbye.heard, true) {
                return Err(Violation::Unexpected(kind));
            }
            link.say(queue, Kind::ByeRead);
            link.changed.notify_all();
        }
        Kind::ByeRead => {
            let mut queue = link.queue();
            if !queue.goodbye.said || std::mem::replace(&mut queue.goodbye.read, true) {
                return Err(Violation::Unexpected(kind));
            }
            drop(queue);
            link.changed.notify_all();
        }
        _ => return Err(Violation::Unexpected(kind)),
    }
    Ok(())
}
