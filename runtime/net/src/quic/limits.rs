//! Every limit of a connection, with its reason: what others may make this host hold, and for how long.

use super::rate::{Measuring, UNACKNOWLEDGED};
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::identity::{Credentials, client, server};
use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a peer may send before they are read. The largest message fits, so a reader that waits for its end never
/// waits in vain.
const WINDOW: u32 = 10 << 20;
/// Bytes on their way that were not acknowledged yet, after which writers wait.
const SEND_WINDOW: u64 = 8 << 20;
/// Streams in one direction that a peer may open: one is used. The second exists so that opening it is seen, and ends the connection.
const STREAMS: u32 = 2;
/// Streams in both directions: joining uses one.
const BOTH_WAYS: u32 = 1;
/// Bytes of TLS that may arrive out of order: our certificates take less than two thousand.
const CRYPTO_BUFFER: usize = 16 << 10;
/// How often a silent host says that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// What a round trip is taken for before one was measured: hosts of a run are close to each other. With quinn's third of a second a lost
/// first packet costs a second.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(5);
/// Bytes on their way before the first acknowledgement: what a link of 10 Gbit/s holds in a millisecond. Values of a color leave in one
/// burst and then nothing for a while, by which a window never grows: with quinn's 14 kB every burst waited for round trips, and
/// for the timer that spreads packets.
const FIRST_WINDOW: u64 = 1 << 20;
/// Handshakes under way at once; those above are not answered.
pub(super) const HANDSHAKES: usize = 64;
/// Those above must show first that their address is theirs.
pub(super) const UNVALIDATED: usize = 16;
/// Bytes of early packets that are kept for one handshake, and for all.
const INCOMING: (u64, u64) = (64 << 10, 4 << 20);
/// How long a handshake may take, and the first words after it.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long packets that say goodbye may take to leave, at least.
pub(super) const LAST_PACKETS: Duration = Duration::from_millis(200);
/// The largest packet that quinn may hand over ten at a time: a call takes 65,507 bytes, and larger ones are lost without a word.
const SEGMENTED_MTU: u16 = 6500;
/// Bytes of a packet where hosts talk through memory: the largest that is still handed over ten at a time (docs/perf/decisions/packets.md).
const LOOPBACK_MTU: u16 = SEGMENTED_MTU;
/// The largest packet that is taken.
const LARGEST_MTU: u16 = 9000;
/// Bytes that the system is asked to keep of what arrives between two looks.
pub(super) const SOCKET_BUFFER: usize = 4 << 20;

/// Numbers by which connections are closed, so that the other side can say why.
pub(super) mod code {
    use quinn::VarInt;

    /// The host gave up. It is 0, because that is what QUIC says when a connection is dropped.
    pub(crate) const LEFT: VarInt = VarInt::from_u32(0);
    /// Not a member, or not any more.
    pub(crate) const REFUSED: VarInt = VarInt::from_u32(1);
    /// Something that no peer sends.
    pub(crate) const VIOLATION: VarInt = VarInt::from_u32(2);
    /// More streams than there are.
    pub(crate) const STREAMS: VarInt = VarInt::from_u32(3);
    /// Nothing was read for too long.
    pub(crate) const STALLED: VarInt = VarInt::from_u32(4);
    /// Both sides read everything.
    pub(crate) const GOODBYE: VarInt = VarInt::from_u32(5);
    /// A message was cut short.
    pub(crate) const CUT_SHORT: VarInt = VarInt::from_u32(6);
    /// The run begins again, and whoever hears this may join it.
    pub(crate) const AGAIN: VarInt = VarInt::from_u32(7);
}

/// The limits of a connection with a host at that address.
pub(super) fn transport(settings: &Settings, peer: IpAddr) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let mut congestion = CubicConfig::default();
    congestion.initial_window(FIRST_WINDOW);
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements.ack_eliciting_threshold(UNACKNOWLEDGED.into());
    let idle = settings.dead_timeout.try_into().expect("a timeout fits into QUIC's numbers");
    config
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(KEEP_ALIVE.min(settings.dead_timeout / 4)))
        .max_concurrent_uni_streams(STREAMS.into())
        .max_concurrent_bidi_streams(BOTH_WAYS.into())
        .stream_receive_window(WINDOW.into())
        .receive_window(VarInt::from_u32(WINDOW + (64 << 10)))
        .send_window(SEND_WINDOW)
        .crypto_buffer_size(CRYPTO_BUFFER)
        .datagram_receive_buffer_size(None)
        .congestion_controller_factory(Arc::new(Measuring(congestion)))
        .ack_frequency_config(Some(acknowledgements))
        .initial_rtt(FIRST_ROUND_TRIP);
    let mtu = settings.mtu.or(peer.is_loopback().then_some(LOOPBACK_MTU)).map(|mtu| mtu.clamp(1200, LARGEST_MTU));
    if let Some(mtu) = mtu {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(mtu);
        config.mtu_discovery_config(Some(discovery));
        config.enable_segmentation_offload(mtu <= SEGMENTED_MTU);
        if peer.is_loopback() {
            config.initial_mtu(mtu);
        }
    }
    Arc::new(config)
}

/// What a socket takes from any address.
pub(super) fn endpoint() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(LARGEST_MTU).expect("QUIC allows it");
    config
}

/// How a member answers. `joins`: also those without a certificate.
pub(super) fn answering(own: &Credentials, joins: bool) -> Result<ServerConfig> {
    let tls = QuicServerConfig::try_from(server(own, joins)?).map_err(no_suite)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config
        .migration(false)
        .max_incoming(HANDSHAKES)
        .incoming_buffer_size(INCOMING.0)
        .incoming_buffer_size_total(INCOMING.1);
    Ok(config)
}

/// The same for one address.
pub(super) fn answer(config: &ServerConfig, settings: &Settings, peer: IpAddr) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.transport_config(transport(settings, peer));
    Arc::new(config)
}

/// How a member calls others.
pub(super) fn calling(own: &Credentials) -> Result<Arc<QuicClientConfig>> {
    quic(client(own)?)
}

pub(super) fn quic(tls: rustls::ClientConfig) -> Result<Arc<QuicClientConfig>> {
    Ok(Arc::new(QuicClientConfig::try_from(tls).map_err(no_suite)?))
}

/// The same for one address.
pub(super) fn call(tls: &Arc<QuicClientConfig>, settings: &Settings, peer: IpAddr) -> ClientConfig {
    let mut config = ClientConfig::new(tls.clone());
    config.transport_config(transport(settings, peer));
    config
}

fn no_suite(_: quinn::crypto::rustls::NoInitialCipherSuite) -> Error {
    Error::Internal("ring has the cipher suite that QUIC begins with".into())
}
