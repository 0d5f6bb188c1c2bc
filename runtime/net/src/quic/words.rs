//! What driver and workers tell each other while a run comes together.

use crate::identity::Digest;
use crate::transport::Host;
use crate::wire::{Reader, Writer};
use rustls::pki_types::CertificateDer;
use std::net::SocketAddr;
use std::time::Duration;

/// Workers of a run at most: every host is connected with every other.
pub(super) const MOST_WORKERS: u32 = 256;
/// Addresses of one host at most.
pub(super) const MOST_ADDRESSES: u32 = 16;

/// What a worker says that wants to join.
pub(super) struct JoinRequest {
    pub(super) public_key: [u8; 32],
    pub(super) proof: [u8; 32],
}

impl JoinRequest {
    pub(super) fn write(&self) -> Vec<u8> {
        Writer::default().fixed(&self.public_key).fixed(&self.proof).0
    }

    pub(super) fn read(bytes: &[u8]) -> Option<JoinRequest> {
        let mut reader = Reader(bytes);
        let request = JoinRequest { public_key: reader.fixed()?, proof: reader.fixed()? };
        reader.end().map(|()| request)
    }
}

/// What the driver gives a worker that it lets in.
pub(super) struct Admitted {
    pub(super) host: Host,
    pub(super) incarnation: u32,
    /// How long the run may still take to come together.
    pub(super) left: Duration,
    pub(super) certificate: CertificateDer<'static>,
}

impl Admitted {
    pub(super) fn write(&self) -> Vec<u8> {
        let left_ms = u32::try_from(self.left.as_millis()).unwrap_or(u32::MAX);
        Writer::default().number(self.host).number(self.incarnation).number(left_ms).text(&self.certificate).0
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Admitted> {
        let mut reader = Reader(bytes);
        let (host, incarnation) = (reader.number()?, reader.number()?);
        let left = Duration::from_millis(reader.number()?.into());
        let certificate = CertificateDer::from(reader.text()?.to_vec());
        reader.end().map(|()| Admitted { host, incarnation, left, certificate })
    }
}

/// A host, as the roster names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Member {
    pub(super) host: Host,
    pub(super) key: Digest,
    pub(super) addresses: Vec<SocketAddr>,
}

pub(super) fn write_roster(members: &[Member]) -> Vec<u8> {
    let write = |writer: Writer, member: &Member| {
        write_addresses(writer.number(member.host).fixed(&member.key), &member.addresses)
    };
    Writer::default().list(members, write).0
}

/// Reads a roster: hosts 1, 2, ... in this order.
pub(super) fn read_roster(bytes: &[u8]) -> Option<Vec<Member>> {
    let mut reader = Reader(bytes);
    let member = |reader: &mut Reader| {
        Some(Member { host: reader.number()?, key: reader.fixed()?, addresses: read_addresses(reader)? })
    };
    let members = reader.list(MOST_WORKERS, member)?;
    reader.end()?;
    (1..).zip(&members).all(|(host, member)| member.host == host).then_some(members)
}

/// The first words between members: where this one listens.
pub(super) fn hello(addresses: &[SocketAddr]) -> Vec<u8> {
    write_addresses(Writer::default(), addresses).0
}

/// Reads them.
pub(super) fn addresses(hello: &[u8]) -> Option<Vec<SocketAddr>> {
    let mut reader = Reader(hello);
    let addresses = read_addresses(&mut reader)?;
    reader.end().map(|()| addresses)
}

fn write_addresses(writer: Writer, addresses: &[SocketAddr]) -> Writer {
    writer.list(addresses, |writer, address| writer.text(address.to_string().as_bytes()))
}

fn read_addresses(reader: &mut Reader) -> Option<Vec<SocketAddr>> {
    // One more than a host says itself: the address at which it is seen.
    reader.list(MOST_ADDRESSES + 1, |reader| std::str::from_utf8(reader.text()?).ok()?.parse().ok())
}
