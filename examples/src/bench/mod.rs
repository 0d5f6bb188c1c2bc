//! What `meshweft bench` measures of several examples together: the matrix of `--all`, and studies of papers.

pub(crate) mod matrix;
mod pages;
#[cfg(feature = "cluster")]
mod study;
mod tolerance;

#[cfg(feature = "cluster")]
pub(crate) use study::STUDIES;

/// Settings of an example under which its steps are sweeps and little else: what is measured, and what the model of costs is about.
fn sweeps_alone(example: &str) -> &'static [(&'static str, &'static str)] {
    if example == "cloth" { &[("touching", "off")] } else { &[] }
}

/// Studies start processes that share a mesh.
#[cfg(not(feature = "cluster"))]
pub(crate) const STUDIES: &[meshweft_command::cli::Study] = &[];
