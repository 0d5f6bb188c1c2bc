//! The mesh that a program is given.

use crate::Run;
use crate::cli::options::Plan;
use crate::cli::{memory, meshes};
use crate::run::kinds;
use anyhow::Result;
use meshweft_mesh::Mesh;
use std::borrow::Cow;

/// What a trial cuts pieces off. That of a run is opened again: the program may have made another mesh of it, as of cells or of nodes, and
/// of such a one it makes none.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Mesh(&'a Mesh),
    Run(&'a Run),
}

impl<'a> Source<'a> {
    /// Names of the kinds of its cells.
    pub(super) fn kinds(self) -> Cow<'a, str> {
        match self {
            Source::Mesh(mesh) => kinds(mesh).into(),
            Source::Run(run) => run.kinds().into(),
        }
    }

    /// # Errors
    /// A file that is not there any more.
    pub(super) fn mesh(self, plan: &Plan) -> Result<Cow<'a, Mesh>> {
        match self {
            Source::Mesh(mesh) => Ok(Cow::Borrowed(mesh)),
            Source::Run(_) => meshes::open(&plan.mesh, plan.seed, memory::SET_UP, &mut std::io::sink()).map(Cow::Owned),
        }
    }
}
