//! Hosts that talk over QUIC.
//!
//! # How a run comes together
//!
//! ```text
//!  driver                          worker 1               worker 2
//!  Listening::start → token        join(token)            join(token)
//!        ◄──────── join: pinned CA, proof, key ─┘              │       ALPN meshweft-join/1
//!        ───────── certificate of host 1 ──────►│              │
//!        ◄════════ mTLS: hello, addresses ══════╡              │       ALPN meshweft/1, from here on
//!        ◄──────────────── the same, as host 2 ───────────────►│
//!        ── roster: numbers, keys, addresses ──►│─────────────►│
//!                                               │◄═════════════╡       the higher number calls the lower
//!        ◄──────── ready ───────────────────────│──────────────│
//!        ───────── go ─────────────────────────►│─────────────►│       others are told to wait from now on
//! ```
//!
//! The certificate says which host a peer is (`identity`); run, number, incarnation and the
//! digest of the key are compared with what the driver handed out before a word is said. Hosts tell where they listen, and the
//! driver adds the address at which it sees them. An address that leads elsewhere does no harm: the host that answers there
//! cannot show the certificate of the one that was called.
//!
//! # Connections
//!
//! A pair of hosts has one connection, with one long-lived stream each way. `link` fills and empties them; `frame` says what lies
//! in them. Queues take any number of messages: callers wait for room ([`Transport::wait_for_room`](crate::Transport::wait_for_room)). What is not read is
//! not sent: a peer that reads nothing for the dead-timeout is closed, with a code.
//!
//! # The end
//!
//! QUIC's acknowledgment means that bytes reached a host, and not that they were read; closing a connection throws
//! unread ones away. So both sides say *bye*, and answer each other's with *bye read*. The host that has heard both closes, and that
//! it closed so tells the other the same.
//!
//! # Limits
//!
//! All of them are in `limits`.
//!
//! # Hosts that are lost
//!
//! A run that lost a host is begun again ([`Listening::again`]): at the same port, with the same token and the next incarnation, by those
//! that come. Certificates of the incarnation before are refused, so a worker that was frozen and wakes up has no say in it: it
//! joins as any other.
//!
//! Workers that come late are told to wait, and are counted ([`Quic::waiting`]): the driver may begin the run again with them.

mod channel;
mod door;
mod driver;
mod frame;
mod host;
mod knocks;
mod limits;
mod link;
mod network;
mod pump;
mod rate;
mod settings;
mod socket;
mod timers;
mod words;
mod worker;

#[cfg(test)]
mod tests;

pub use driver::{GRACE, Listening, Progress};
pub use host::Quic;
pub use settings::Settings;
pub use worker::join;
