//! What can go wrong with meshes and their files.

use std::fmt;
use std::path::{Path, PathBuf};

/// Everything this crate refuses, with the place and the way out.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to open, read or write a file.
    #[error("{}: {source}", shown_path(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file does not hold what its format promises.
    #[error("{}{place}: {message}", shown_path(path))]
    File {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        place: Place,
        /// What is wrong and how to mend it.
        message: String,
    },
    /// An invalid mesh, field, group or generator.
    #[error("{0}")]
    Invalid(String),
}

/// As it is displayed: what `main` returns is printed so.
impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Where in a file something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line of a text file, counted from 1.
    Line(u64),
    /// A byte of a binary file, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Line(line) => write!(f, ":{line}"),
            Place::Byte(byte) => write!(f, ": byte {byte}"),
        }
    }
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps what the operating system said of `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Error {
        Error::Io { path: path.to_owned(), source }
    }

    /// A file that does not hold what its format promises, at `place`.
    pub fn file(path: &Path, place: Place, message: impl Into<String>) -> Error {
        Error::File { path: path.to_owned(), place, message: message.into() }
    }
}

/// A name from a file as messages show it: quoted, escaped, and cut behind 40 characters.
pub(crate) fn shown_name(name: &str) -> String {
    const LONGEST: usize = 40; // keeps a message on one line
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}...", &name[..end]),
        None => format!("{name:?}"),
    }
}

/// A path as messages show it: without control characters.
pub(crate) fn shown_path(path: &Path) -> String {
    let path = path.display().to_string();
    match path.contains(char::is_control) {
        true => path.escape_debug().to_string(),
        false => path,
    }
}
