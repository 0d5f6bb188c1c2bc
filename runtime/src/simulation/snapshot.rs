//! The state at one step, while the simulation goes on.

use super::fields::read_parts;
use crate::engine::Promise;
use crate::error::Result;
use crate::layout::Layout;
use crate::number::{Number, Part};
use meshweft_mesh::Field;
use std::sync::Arc;

/// The state of a simulation at one step. See [`AnySimulation::snapshot`](crate::AnySimulation::snapshot).
pub struct Snapshot(Box<dyn FnOnce() -> Result<Vec<Field>> + Send>);

impl Snapshot {
    /// Waits until the state is here, and reads all of its parts, in the order of the mesh's vertices.
    ///
    /// # Errors
    /// A host that was lost.
    pub fn fields(self) -> Result<Vec<Field>> {
        self.0()
    }
}

/// Of a state that is here.
pub(super) fn here(fields: Vec<Field>) -> Snapshot {
    Snapshot(Box::new(|| Ok(fields)))
}

/// Of a state that is on its way.
pub(super) fn coming<T: Number>(state: Promise<T>, layout: Arc<Layout>, parts: Vec<Part>) -> Snapshot {
    Snapshot(Box::new(move || {
        let state = state()?;
        Ok(read_parts(state.view(), &layout, &parts))
    }))
}
