//! What can go wrong with an order.

/// Why an order or a schedule could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A curve without a name, or a graph that is too large.
    #[error(transparent)]
    Mesh(#[from] meshweft_mesh::Error),
    /// A name or a size that makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A mistake of this crate.
    #[error("internal error, please report it: {0}")]
    Internal(String),
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
