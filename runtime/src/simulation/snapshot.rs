//! The state at one step, while the simulation goes on.

use super::checkpoint::{self, Identity, Moment};
use super::fields::read_parts;
use crate::engine::Promise;
use crate::error::Result;
use crate::number::Number;
use meshweft_mesh::Field;
use std::path::Path;

/// The state of a simulation at one step. See [`AnySimulation::snapshot`](crate::AnySimulation::snapshot).
pub struct Snapshot(Box<dyn Taken>);

/// A state of any precision, here or on its way.
trait Taken: Send {
    fn fields(self: Box<Self>) -> Result<Vec<Field>>;
    fn write(self: Box<Self>, folder: &Path, note: &str) -> Result<()>;
}

struct Of<T> {
    state: Promise<T>,
    identity: Identity,
    moment: Moment<T>,
}

impl<T: Number> Taken for Of<T> {
    fn fields(self: Box<Self>) -> Result<Vec<Field>> {
        let state = (self.state)()?;
        let Identity { layout, rows, fields, .. } = &self.identity;
        Ok(read_parts(state.view(), (layout, rows), fields))
    }

    fn write(self: Box<Self>, folder: &Path, note: &str) -> Result<()> {
        let state = (self.state)()?;
        checkpoint::write(folder, &self.identity, &self.moment, state.view(), note)
    }
}

impl Snapshot {
    /// Waits until the state is here, and reads all of its parts, in the order of the mesh's vertices.
    ///
    /// # Errors
    /// A host that was lost.
    pub fn fields(self) -> Result<Vec<Field>> {
        self.0.fields()
    }

    /// Waits until the state is here, and writes it to a folder as a [`Checkpoint`](crate::Checkpoint), with a note of the host's own,
    /// as [`AnySimulation::checkpoint`](crate::AnySimulation::checkpoint) does: on any thread, while the simulation takes steps.
    ///
    /// # Errors
    /// A host that was lost; a disk that takes nothing: what was in the folder is as it was.
    pub fn write(self, folder: &Path, note: &str) -> Result<()> {
        self.0.write(folder, note)
    }
}

pub(super) fn of<T: Number>(state: Promise<T>, identity: Identity, moment: Moment<T>) -> Snapshot {
    Snapshot(Box::new(Of { state, identity, moment }))
}
