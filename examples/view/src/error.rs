//! What can go wrong with a view.

use std::net::SocketAddr;
use std::path::PathBuf;

/// What can go wrong with a view.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody can be listened to at an address.
    #[error("cannot listen at {address}: {cause}; name another address, or port 0 for a free one")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The system has no random numbers for a token, or no thread.
    #[error("cannot start the view: {0}")]
    Start(std::io::Error),
    /// A mesh file.
    #[error(transparent)]
    Mesh(#[from] meshweft_mesh::Error),
    /// A list of states.
    #[error("{}: {what}", path.display())]
    Series {
        /// The list.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

/// A result whose error is an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
