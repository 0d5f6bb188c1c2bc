//! What `meshweft bench` measures of several examples together: the matrix of `--all`, and studies of papers.

pub(crate) mod matrix;
mod pages;
#[cfg(feature = "cluster")]
mod study;
mod tolerance;

#[cfg(feature = "cluster")]
pub(crate) use study::STUDIES;

/// Studies start processes that share a mesh.
#[cfg(not(feature = "cluster"))]
pub(crate) const STUDIES: &[meshweft_command::cli::Study] = &[];
