//! A state that was saved, to go back to.

use super::{Clock, Health, Simulation};
use crate::error::{Error, Result};
use crate::number::Number;
use crate::program::Program;

/// A state of a simulation in memory: every vertex, globals, steps and time. See [`Simulation::save`].
#[derive(Clone, Debug, PartialEq)]
pub struct Saved<T> {
    /// Reals of all vertices in the order of the mesh, shared ones first.
    reals: Vec<T>,
    globals: Vec<T>,
    steps: u64,
    time: f64,
}

impl<T> Saved<T> {
    /// Steps taken when it was saved.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Simulated time when it was saved, in seconds.
    pub fn time(&self) -> f64 {
        self.time
    }
}

impl<P: Program, T: Number> Simulation<P, T> {
    /// Saves the state in memory. [`Simulation::restore`] goes back to it: of this simulation, or of another one of the same
    /// program on the same mesh, whatever its order and backend.
    ///
    /// # Errors
    /// As [`Simulation::wait`].
    pub fn save(&mut self) -> Result<Saved<T>> {
        self.wait()?;
        let (state, reals) = (self.state()?, self.reals());
        let slots = (0..self.vertices()).map(|v| self.layout.slot(v));
        let reals = slots.flat_map(|slot| (0..reals).map(move |k| state.real(slot, k))).collect();
        Ok(Saved { reals, globals: self.engine.globals()?, steps: self.clock.steps, time: self.clock.time })
    }

    /// Goes back to a saved state, with its time and number of steps. Heals a simulation that diverged, or in which a kernel
    /// panicked.
    ///
    /// # Errors
    /// A state of another program or mesh; a GPU that failed.
    pub fn restore(&mut self, saved: &Saved<T>) -> Result<()> {
        let (vertices, reals) = (self.vertices() as usize, self.reals());
        if saved.reals.len() != vertices * reals || saved.globals.len() != self.engine.globals()?.len() {
            let given = saved.reals.len();
            return Err(Error::Invalid(format!(
                "the saved state has {given} reals, but this simulation has {vertices} × {reals}: it is of another one"
            )));
        }
        let layout = self.layout.clone();
        self.engine.edit(&mut |mut state| {
            for v in 0..vertices {
                for slot in layout.slots_of(v as u32) {
                    (0..reals).for_each(|k| state.set(slot, k, saved.reals[v * reals + k]));
                }
            }
        })?;
        self.engine.set_globals(&saved.globals)?;
        self.clock = Clock { steps: saved.steps, time: saved.time, ..Clock::default() };
        if let (Health::Poisoned(_), Some(audit)) = (&self.health, &self.audit) {
            audit.recount(self.engine.progress().rounds as u32);
        }
        self.health = Health::Well;
        let progress = self.engine.settle()?;
        self.settled(progress);
        Ok(())
    }

    /// Reals of a vertex.
    fn reals(&self) -> usize {
        self.layout.shape.shared + self.layout.shape.private
    }
}
