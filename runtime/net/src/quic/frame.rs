//! How messages lie in a stream of bytes: length, checksum, kind, and the bytes themselves.
//!
//! ```text
//! | length u32 | CRC-32 of kind and bytes u32 | kind u8 | bytes |      all little-endian
//! ```
//!
//! QUIC guards every packet already. The checksum is for what it cannot know: that a message was cut short because its
//! writer went away, or that a reader lost its place.

use crate::transport::MAX_MESSAGE;
use crate::wire::Reader;
use std::fmt;

/// Bytes before each message.
pub(super) const HEADER: usize = 9;

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// For the one above.
    Message,
    /// The first on every stream between members: who this is, and where it listens.
    Hello,
    /// From the driver: who all the others are.
    Roster,
    /// To the driver: connected with all of them.
    Ready,
    /// From the driver: all workers are connected.
    Go,
    /// Nothing more will come.
    Bye,
    /// All was read, the goodbye included.
    ByeRead,
    /// From a worker without a certificate: the proof that it holds the token.
    Join,
    /// From the driver: the certificate.
    Admitted,
    /// From the driver: why it gets no certificate.
    Refused,
    /// From the driver: there is no place yet, ask again soon.
    Wait,
}

impl Kind {
    const ALL: [Kind; 11] = [
        Kind::Message,
        Kind::Hello,
        Kind::Roster,
        Kind::Ready,
        Kind::Go,
        Kind::Bye,
        Kind::ByeRead,
        Kind::Join,
        Kind::Admitted,
        Kind::Refused,
        Kind::Wait,
    ];

    /// Bytes of such a frame at most.
    fn longest(self) -> usize {
        match self {
            Kind::Message => MAX_MESSAGE,
            Kind::Roster => 1 << 20,
            Kind::Hello | Kind::Join | Kind::Admitted | Kind::Refused => 4 << 10,
            Kind::Ready | Kind::Go | Kind::Bye | Kind::ByeRead | Kind::Wait => 0,
        }
    }
}

/// What a peer must not send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Violation {
    /// A kind that there is not.
    Unknown(u8),
    /// A frame longer than its kind may be.
    Oversize(Kind, usize),
    /// A checksum that does not fit.
    Checksum(Kind),
    /// Something at the wrong time.
    Unexpected(Kind),
    /// Malformed bytes.
    Malformed(Kind),
    /// The end of the stream before a goodbye.
    Ended,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Violation::Unknown(kind) => write!(f, "it sent a frame of the unknown kind {kind}"),
            Violation::Oversize(kind, bytes) => {
                write!(f, "it announced a frame {kind:?} of {bytes} bytes, more than {}", kind.longest())
            }
            Violation::Checksum(kind) => write!(f, "it sent a frame {kind:?} whose checksum does not fit"),
            Violation::Unexpected(kind) => write!(f, "it sent a frame {kind:?} out of turn"),
            Violation::Malformed(kind) => write!(f, "it sent a malformed frame {kind:?}"),
            Violation::Ended => write!(f, "its stream ended before a goodbye"),
        }
    }
}

/// Writes what comes before the bytes of a frame.
pub(super) fn header(kind: Kind, bytes: &[u8]) -> [u8; HEADER] {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[kind as u8]);
    crc.update(bytes);
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    header[4..8].copy_from_slice(&crc.finalize().to_le_bytes());
    header[8] = kind as u8;
    header
}

/// Finds frames in bytes that come in pieces, wherever those are cut.
#[derive(Default)]
pub(super) struct FrameReader {
    header: [u8; HEADER],
    /// Bytes of the header that are here.
    have: usize,
    frame: Option<Frame>,
}

struct Frame {
    kind: Kind,
    crc: u32,
    hasher: crc32fast::Hasher,
    length: usize,
    bytes: Vec<u8>,
}

impl Frame {
    /// Checks a header, and makes room for what it announces.
    fn open(header: &[u8; HEADER]) -> Result<Frame, Violation> {
        let mut reader = Reader(header);
        let mut fields = || Some((reader.number()? as usize, reader.number()?, reader.byte()?));
        let (length, crc, kind) = fields().expect("a header has a length, a checksum and a kind");
        let kind = *Kind::ALL.get(usize::from(kind)).ok_or(Violation::Unknown(kind))?;
        if length > kind.longest() {
            return Err(Violation::Oversize(kind, length));
        }
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&[kind as u8]);
        Ok(Frame { kind, crc, hasher, length, bytes: Vec::with_capacity(length) })
    }
}

impl FrameReader {
    /// Takes the next bytes, and hands over each frame that they complete.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Kind, Vec<u8>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        loop {
            let Some(frame) = &mut self.frame else {
                let (taken, rest) = bytes.split_at(bytes.len().min(HEADER - self.have));
                self.header[self.have..self.have + taken.len()].copy_from_slice(taken);
                self.have += taken.len();
                bytes = rest;
                if self.have < HEADER {
                    return Ok(());
                }
                self.have = 0;
                self.frame = Some(Frame::open(&self.header)?);
                continue;
            };
            let (taken, rest) = bytes.split_at(bytes.len().min(frame.length - frame.bytes.len()));
            frame.hasher.update(taken);
            frame.bytes.extend_from_slice(taken);
            bytes = rest;
            if frame.bytes.len() < frame.length {
                return Ok(());
            }
            let frame = self.frame.take().expect("a frame is under way");
            if frame.hasher.finalize() != frame.crc {
                return Err(Violation::Checksum(frame.kind));
            }
            each(frame.kind, frame.bytes)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn frame(kind: Kind, bytes: &[u8]) -> Vec<u8> {
        [&header(kind, bytes)[..], bytes].concat()
    }

    #[test]
    fn frames_are_found_wherever_the_stream_is_cut() {
        let messages: Vec<Vec<u8>> =
            [0, 1, 8, 9, 10, 63, 1000].iter().map(|&n| (0..n).map(|i| i as u8).collect()).collect();
        let stream: Vec<u8> =
            messages.iter().flat_map(|m| frame(Kind::Message, m)).chain(frame(Kind::Bye, &[])).collect();
        for step in [1, 2, 3, 7, 8, 9, 10, 100, stream.len()] {
            let mut reader = FrameReader::default();
            let mut found = Vec::new();
            for piece in stream.chunks(step) {
                let each = |kind, bytes| {
                    found.push((kind, bytes));
                    Ok(())
                };
                reader.push(piece, each).unwrap();
            }
            assert_eq!(found.pop(), Some((Kind::Bye, Vec::new())));
            assert_eq!(
                found,
                messages.iter().map(|m| (Kind::Message, m.clone())).collect::<Vec<_>>(),
                "pieces of {step}"
            );
        }
    }

    #[test]
    fn every_altered_bit_is_noticed() {
        let good = frame(Kind::Message, b"a message");
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let mut found = Vec::new();
            let each = |kind, bytes| {
                found.push((kind, bytes));
                Ok(())
            };
            // A length that grew leaves the reader waiting for more; that is no message either.
            let _ = FrameReader::default().push(&bad, each);
            assert_eq!(found, [], "bit {bit}");
        }
    }

    #[test]
    fn a_length_is_refused_before_any_room_is_made() {
        for (kind, length) in [(Kind::Message, u32::MAX), (Kind::Message, MAX_MESSAGE as u32 + 1), (Kind::Bye, 1)] {
            let mut bytes = header(kind, &[]);
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            let error = FrameReader::default().push(&bytes, |_, _| Ok(())).unwrap_err();
            assert_eq!(error, Violation::Oversize(kind, length as usize));
        }
        let mut unknown = header(Kind::Bye, &[]);
        unknown[8] = 99;
        assert_eq!(FrameReader::default().push(&unknown, |_, _| Ok(())), Err(Violation::Unknown(99)));
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = Random(1);
        for _ in 0..2000 {
            let mut byte = || if random.below(2) == 0 { 0 } else { random.below(12) as u8 };
            let bytes: Vec<u8> = (0..64).map(|_| byte()).collect();
            let _ = FrameReader::default().push(&bytes, |_, _| Ok(()));
        }
    }

    #[test]
    fn kinds_have_the_numbers_of_their_place() {
        assert!(Kind::ALL.iter().enumerate().all(|(i, kind)| *kind as usize == i));
    }
}
