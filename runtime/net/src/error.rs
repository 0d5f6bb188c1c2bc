//! What can go wrong between hosts.

/// Everything this crate refuses or stops at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting, an argument or a variable of the environment to change.
    #[error("{0}")]
    Invalid(String),
    /// A token, key or certificate that cannot be made, read or believed: take another.
    #[error("cluster: {0}")]
    Secret(String),
    /// Hosts that cannot form a run, or go on with it: one is missing, unreachable, refused or lost.
    #[error("cluster: {0}")]
    Hosts(String),
    /// A mistake of this crate.
    #[error("internal error, please report it: {0}")]
    Internal(String),
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
