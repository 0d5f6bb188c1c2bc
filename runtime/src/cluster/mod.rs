//! A run on several hosts: who belongs to it, and how they talk.
//!
//! - [`identity`]: the authority of a run, the token that lets a worker in, certificates that say which host someone is.
//! - [`transport`]: whole messages between hosts, in order and each once, over QUIC or in memory.
//!
//! Nothing here knows meshes, programs or schedules: what hosts say to each other is bytes.

#![cfg_attr(not(test), expect(dead_code, unused_imports, reason = "no engine runs on several hosts yet"))]

mod identity;
mod transport;
