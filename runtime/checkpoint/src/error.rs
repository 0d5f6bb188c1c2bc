//! What can go wrong with checkpoints.

use std::io;
use std::path::{Path, PathBuf};

/// Why a checkpoint could not be written or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder that takes nothing: it is full, read-only, or broken. The checkpoints before are as they were.
    #[error("cannot write a checkpoint to {}: {source}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A checkpoint that is not what was written.
    #[error("{}: {what}", .path.display())]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A folder in which there is no whole checkpoint.
    #[error("{} holds no checkpoint to go on from{}", .folder.display(), listed(.passed_over))]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with those there are, the newest first.
        passed_over: Vec<String>,
    },
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        |source| Error::Write { path, source }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), what: what.into() }
    }
}

fn listed(passed_over: &[String]) -> String {
    passed_over.iter().map(|what| format!("; {what}")).collect()
}
