//! Membership of a run.
//!
//! Every run has an authority of its own: a key that is made when the driver starts, never leaves its memory, and is gone
//! with it; or one that was made ahead, and lies in a file until it expires. A host is who its certificate says: signed by that
//! authority, for this run, this number and this incarnation.
//!
//! ```text
//!  driver                                              worker
//!  Authority::new: key, certificate of the run
//!  Token: digest of that certificate, a secret  ─────►  read from a file or typed in, never from the command line
//!                                               ◄────  TLS, no certificate; goes on only if the driver shows the certificate
//!                                                      of the digest
//!                                               ◄────  public key, HMAC(secret, exporter of this TLS session ‖ public key)
//!  compares in constant time, counts, signs     ────►  certificate: run, number, incarnation
//! ```
//!
//! From then on both sides show certificates on every connection. An eavesdropper learns no secret, and a recorded proof fits
//! no other session. A number's certificate is known by its key too: when a number is given to another worker, the former
//! holder's certificate, though signed and valid, is refused. A recovered run has a higher incarnation, so
//! hosts that slept through the recovery are kept out.
//!
//! What it does not do: a host that holds a valid certificate is believed. It can lie about its results.

mod authority;
mod key;
mod name;
mod tls;
mod token;

pub(crate) use authority::{Applicant, Authority, Credentials, Digest, digest};
pub(crate) use key::{Run, read_secret};
pub use key::{RunKey, write_secret};
pub(crate) use name::Name;
#[cfg(test)]
pub(crate) use tls::ALPN;
pub(crate) use tls::{JOIN_ALPN, client, join_client, key_of, name_of, server};
pub use token::Token;
