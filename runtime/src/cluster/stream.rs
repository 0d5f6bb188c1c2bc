//! What is too large for one message: bytes in pieces, from one host to another.

use super::exchange::Exchange;
use super::kind::STREAM;
use meshweft_net::Host;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Bytes of a piece.
const PIECE: usize = 1 << 20;
/// Bytes that may wait for the network: the sender stops for more, unless it is to go on.
const QUEUE: usize = 8 << 20;
/// How long the other end may take for a piece.
const PATIENCE: Duration = Duration::from_secs(60);

/// The sending end.
pub(crate) struct Outgoing<'a> {
    exchange: &'a Exchange,
    to: Host,
    piece: Vec<u8>,
    /// Bytes that may wait for the network.
    queue: usize,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn new(exchange: &'a Exchange, to: Host) -> Outgoing<'a> {
        Outgoing { exchange, to, piece: vec![STREAM], queue: QUEUE }
    }

    /// A sender that never waits: what the network has not taken yet is a copy of what is sent.
    pub(crate) fn copying(exchange: &'a Exchange, to: Host) -> Outgoing<'a> {
        Outgoing { queue: usize::MAX, ..Outgoing::new(exchange, to) }
    }
}

impl Write for Outgoing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE + 1 - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() > PIECE {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.len() == 1 {
            return Ok(());
        }
        if !self.exchange.transport().wait_for_room(self.to, self.queue, Instant::now() + PATIENCE) {
            return Err(io::Error::other(format!("host {} takes no more", self.to)));
        }
        self.exchange.send(self.to, std::mem::replace(&mut self.piece, vec![STREAM]));
        Ok(())
    }
}

/// The receiving end.
pub(crate) struct Incoming<'a> {
    exchange: &'a Exchange,
    from: Host,
    piece: Vec<u8>,
    at: usize,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(exchange: &'a Exchange, from: Host) -> Incoming<'a> {
        Incoming { exchange, from, piece: Vec::new(), at: 0 }
    }
}

impl Read for Incoming<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            let wants = |from: Host, message: &[u8]| from == self.from && message.first() == Some(&STREAM);
            let piece = self.exchange.receive(PATIENCE, wants).map_err(io::Error::other)?;
            let late = || io::Error::other(format!("nothing has come from host {} for {PATIENCE:?}", self.from));
            (_, self.piece) = piece.ok_or_else(late)?;
            self.at = 1;
        }
        let taken = bytes.len().min(self.piece.len() - self.at);
        bytes[..taken].copy_from_slice(&self.piece[self.at..self.at + taken]);
        self.at += taken;
        Ok(taken)
    }
}
