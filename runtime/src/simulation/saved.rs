//! A state that was saved, to go back to.

use crate::error::{Error, Result};
use crate::number::Number;

/// A state of a simulation in memory: every vertex, globals, steps and time. See
/// [`AnySimulation::save`](crate::AnySimulation::save).
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The word for its precision.
    precision: &'static str,
    /// Bits of the reals of all vertices in the order of the mesh, shared ones first, and then of elements.
    reals: Vec<u8>,
    globals: Vec<u8>,
    steps: u64,
    time: f64,
}

impl Saved {
    pub(super) fn new<T: Number>(reals: &[T], globals: &[T], steps: u64, time: f64) -> Saved {
        let [reals, globals] = [reals, globals].map(|reals| bytemuck::cast_slice(reals).to_vec());
        Saved { precision: T::NAME, reals, globals, steps, time }
    }

    /// Steps taken when it was saved.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Simulated time when it was saved, in seconds.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// The reals of vertices and of elements, of which there must be so many, and the globals.
    ///
    /// # Errors
    /// It is of another simulation.
    pub(super) fn reals<T: Number>(
        &self,
        [vertices, elements]: [usize; 2],
        globals: usize,
    ) -> Result<([Vec<T>; 2], Vec<T>)> {
        if self.precision != T::NAME {
            let (given, own) = (self.precision, T::NAME);
            return Err(Error::Invalid(format!(
                "the saved state is in {given}, but this simulation computes in {own}"
            )));
        }
        let given = self.reals.len() / T::BYTES;
        if given != vertices + elements || self.globals.len() != globals * T::BYTES {
            return Err(Error::Invalid(format!(
                "the saved state has {given} reals, but this simulation has {}: it is of another one",
                vertices + elements
            )));
        }
        let (vertices, elements) = self.reals.split_at(vertices * T::BYTES);
        Ok(([vertices, elements].map(bytemuck::pod_collect_to_vec), bytemuck::pod_collect_to_vec(&self.globals)))
    }
}
