//! Hosts of a run: how they find each other, show who they are, and exchange messages.
//!
//! Nothing here knows a mesh, a program or an engine: messages are bytes. What belongs to a run:
//!
//! ```text
//!   Rank, children ─▶ how processes of a run are started, and learn which host they are
//!   RunKey, Token  ─▶ secrets that let hosts join, and the certificates that they show afterwards
//!   quic, memory   ─▶ a Transport: whole messages between hosts, in order and each once, or the loss of a host
//!   codec, ids     ─▶ numbers and lists of ids in few bytes; wire: fields of messages
//! ```
//!
//! Host 0 of a run is its driver, which waits for workers ([`quic::Listening`]); workers join it with a token ([`quic::join`]). All
//! that a host accepts from another is bounded in `quic/limits.rs`, and nothing is accepted before both sides have shown certificates
//! of the run; joining is the one exception, and while a run is under way its answer is to wait.
#![forbid(unsafe_code)]

pub mod children;
pub mod codec;
mod error;
mod identity;
pub mod ids;
mod list_cost;
pub mod memory;
pub mod quic;
#[cfg(test)]
mod random;
mod ranks;
#[cfg(test)]
mod tests;
mod transport;
pub mod wire;

pub use error::{Error, Result};
pub use identity::{RunKey, Token, write_secret};
#[doc(hidden)]
pub use list_cost::{ListCost, list_costs};
pub use ranks::Rank;
pub use transport::{Event, Host, MAX_MESSAGE, Sink, Traffic, Transport};
