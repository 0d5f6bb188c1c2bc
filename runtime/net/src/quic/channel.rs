//! A connection while the run is put together: frames are sent and awaited one by one.

use super::frame::{FrameReader, HEADER, Kind, Violation, header};
use super::limits::{HANDSHAKE, code};
use crate::identity::{Digest, Name, key_of, name_of};
use quinn::{Connection, ConnectionError, RecvStream, SendStream, TransportErrorCode};
use rustls::pki_types::CertificateDer;
use std::collections::VecDeque;
use std::future::Future;
use std::time::Instant;

/// Where frames are written. It never ends in the middle of one and looks finished: if it is dropped, the stream is reset.
pub(super) struct Outgoing(pub(super) SendStream);

impl Drop for Outgoing {
    fn drop(&mut self) {
        // quinn would finish the stream, so a message that was half written would look complete.
        let _ = self.0.reset(code::CUT_SHORT);
    }
}

/// Where frames are found.
pub(super) struct Incoming {
    pub(super) stream: RecvStream,
    pub(super) frames: FrameReader,
    /// Frames that are here already.
    pub(super) ready: VecDeque<(Kind, Vec<u8>)>,
}

impl Incoming {
    pub(super) fn new(stream: RecvStream) -> Incoming {
        Incoming { stream, frames: FrameReader::default(), ready: VecDeque::new() }
    }
}

/// A connection with frames both ways.
pub(super) struct Channel {
    pub(super) connection: Connection,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
}

/// Why a channel is of no use any more, in words.
pub(super) type Why = String;

impl Channel {
    /// Opens this side's stream, says the first words on it, and waits for those of the other side.
    pub(super) async fn open(
        connection: Connection,
        hello: &[u8],
        deadline: Instant,
    ) -> Result<(Channel, Vec<u8>), Why> {
        let outgoing = by(deadline, connection.open_uni()).await?.map_err(|error| lost(&error))?;
        let mut outgoing = Outgoing(outgoing);
        write(&mut outgoing, Kind::Hello, hello, deadline).await?;
        let incoming = by(deadline, connection.accept_uni()).await?.map_err(|error| lost(&error))?;
        let mut channel = Channel { connection, outgoing, incoming: Incoming::new(incoming) };
        let hello = channel.expect(Kind::Hello, deadline).await?;
        Ok((channel, hello))
    }

    pub(super) async fn send(&mut self, kind: Kind, bytes: &[u8], deadline: Instant) -> Result<(), Why> {
        write(&mut self.outgoing, kind, bytes, deadline).await
    }

    /// Waits for a frame of one kind.
    pub(super) async fn expect(&mut self, kind: Kind, deadline: Instant) -> Result<Vec<u8>, Why> {
        let (found, bytes) = self.receive(deadline).await?;
        if found == kind { Ok(bytes) } else { Err(self.refuse(&Violation::Unexpected(found))) }
    }

    /// Waits for the next frame.
    pub(super) async fn receive(&mut self, deadline: Instant) -> Result<(Kind, Vec<u8>), Why> {
        let Incoming { stream, frames, ready } = &mut self.incoming;
        loop {
            if let Some(frame) = ready.pop_front() {
                return Ok(frame);
            }
            // What was read stays in `frames`, so nothing is lost if the deadline passes in between.
            let chunk = by(deadline, stream.read_chunk(64 << 10, true)).await?;
            let chunk = match chunk {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Err(self.refuse(&Violation::Ended)),
                Err(quinn::ReadError::ConnectionLost(error)) => return Err(lost(&error)),
                // Who drops a channel lets go of its streams first.
                Err(quinn::ReadError::Reset(_)) => return Err(GAVE_UP.into()),
                Err(error) => return Err(error.to_string()),
            };
            let each = |kind, bytes| {
                ready.push_back((kind, bytes));
                Ok(())
            };
            if let Err(violation) = frames.push(&chunk.bytes, each) {
                return Err(self.refuse(&violation));
            }
        }
    }

    /// Closes the connection because of what the peer did.
    pub(super) fn refuse(&self, violation: &Violation) -> Why {
        let why = violation.to_string();
        self.connection.close(code::VIOLATION, why.as_bytes());
        why
    }
}

/// Writes one frame.
pub(super) async fn write(outgoing: &mut Outgoing, kind: Kind, bytes: &[u8], deadline: Instant) -> Result<(), Why> {
    let mut frame = Vec::with_capacity(HEADER + bytes.len());
    frame.extend(header(kind, bytes));
    frame.extend(bytes);
    by(deadline, outgoing.0.write_all(&frame)).await?.map_err(|error| match error {
        quinn::WriteError::ConnectionLost(error) => lost(&error),
        quinn::WriteError::Stopped(_) => GAVE_UP.into(),
        error => error.to_string(),
    })
}

/// Waits for something, until the deadline.
pub(super) async fn by<T>(deadline: Instant, job: impl Future<Output = T>) -> Result<T, Why> {
    tokio::time::timeout_at(deadline.into(), job).await.map_err(|_| "the deadline passed".to_string())
}

/// The deadline of a handshake's next step, within that of the whole.
pub(super) fn soon(deadline: Instant) -> Instant {
    deadline.min(Instant::now() + HANDSHAKE)
}

/// The host at the other end, as its certificate says: name, digest of the key.
pub(super) fn peer(connection: &Connection) -> Option<(Name, Digest)> {
    let identity = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    let certificate = identity.first()?;
    Some((name_of(certificate)?, key_of(certificate)?))
}

/// What both sides agreed to speak.
pub(super) fn protocol(connection: &Connection) -> Option<Vec<u8>> {
    connection.handshake_data()?.downcast::<quinn::crypto::rustls::HandshakeData>().ok()?.protocol
}

/// The secret that both ends of a TLS session alone know: a proof is bound to it.
pub(super) fn session(connection: &Connection) -> Result<[u8; 32], Why> {
    let mut session = [0; 32];
    let exported = connection.export_keying_material(&mut session, b"EXPORTER-meshweft-join", b"");
    exported.map_err(|_| "the connection has no secret of its own".to_string())?;
    Ok(session)
}

/// Why a connection ended that the other side had no more use for.
pub(super) const GAVE_UP: &str = "it gave up";

/// Says why a connection ended, in words.
pub(super) fn lost(error: &ConnectionError) -> Why {
    match error {
        ConnectionError::TimedOut => "nothing was heard of it for too long".into(),
        ConnectionError::Reset => "it knows nothing of this connection any more: it was started anew".into(),
        ConnectionError::LocallyClosed => "the connection was closed here".into(),
        ConnectionError::ApplicationClosed(close) => {
            let why = String::from_utf8_lossy(&close.reason);
            let quoted: String = why.chars().filter(|letter| !letter.is_control()).take(200).collect();
            match close.error_code {
                code::GOODBYE => "it left".into(),
                code::LEFT => GAVE_UP.into(),
                code::REFUSED => format!("it refused: {quoted}"),
                code::STALLED => format!("it closed the connection because nothing was read here: {quoted}"),
                number => format!("it closed the connection with code {number}: {quoted}"),
            }
        }
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == NO_PROTOCOL => OTHER_VERSION.into(),
        // What QUIC says by itself where one that is being let in is let go of: who calls may have done its part of the handshake.
        ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::APPLICATION_ERROR => {
            GAVE_UP.into()
        }
        ConnectionError::TransportError(error) if u64::from(error.code) == NO_PROTOCOL => OTHER_VERSION.into(),
        other => other.to_string(),
    }
}

/// TLS's alert 120, as QUIC writes it: no protocol in common.
const NO_PROTOCOL: u64 = 0x100 + 120;
const OTHER_VERSION: &str = "it speaks another version of the protocol: run the same version of meshweft on all hosts";
