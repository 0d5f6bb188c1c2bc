//! The state at one step, while the simulation goes on.

use super::Simulation;
use super::fields::read_part;
use crate::engine::Promise;
use crate::error::Result;
use crate::layout::Layout;
use crate::number::{Number, Part};
use crate::program::Program;
use meshweft_mesh::Field;
use std::sync::Arc;

/// The state of a simulation at one step. See [`Simulation::snapshot`].
pub struct Snapshot<T>(Content<T>);

enum Content<T> {
    Here(Vec<Field>),
    Coming { state: Promise<T>, layout: Arc<Layout<T>>, parts: Vec<Part> },
}

impl<T: Number> Snapshot<T> {
    /// Waits until the state is here, and reads all of its parts, in the order of the mesh's vertices.
    ///
    /// # Errors
    /// A host that was lost.
    pub fn fields(self) -> Result<Vec<Field>> {
        match self.0 {
            Content::Here(fields) => Ok(fields),
            Content::Coming { state, layout, parts } => {
                let state = state()?;
                Ok((0..parts.len()).map(|i| read_part(state.view(), &layout, &parts, i)).collect())
            }
        }
    }
}

impl<P: Program, T: Number> Simulation<P, T> {
    /// Takes a copy of the state after all steps so far. Where other hosts hold it, they send it while they take the next steps,
    /// if these are asked for before the snapshot is read.
    ///
    /// ```
    /// # use meshweft::{Mesh, Program, Real, Simulation, Stages, kernels, vertex};
    /// # use meshweft::mesh::generate::generate;
    /// # vertex! { pub struct Counter<R> { shared count: R } }
    /// # struct Counting;
    /// # kernels! { for Counting: Counter; map Increment |_, own| Counter { count: own.count + R::lit(1.0) }; }
    /// # impl Program for Counting {
    /// #     fn initial(&self, _: &Mesh, _: u32) -> Counter<f64> { Counter { count: 0.0 } }
    /// #     fn step(&self, stages: &mut Stages<Self>) { stages.map(Increment) }
    /// # }
    /// let mut counting = Simulation::builder(generate("chain:3", 1)?, Counting).build()?;
    /// counting.step()?;
    /// let snapshot = counting.snapshot()?;
    /// counting.step()?;
    /// assert_eq!(snapshot.fields()?[0].values, [1.0; 3]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Simulation::wait`].
    pub fn snapshot(&mut self) -> Result<Snapshot<T>> {
        self.wait()?;
        let content = match self.engine.snapshot()? {
            Some(state) => Content::Coming { state, layout: self.layout.clone(), parts: self.parts.clone() },
            None => {
                let state = self.state()?;
                let fields = (0..self.parts.len()).map(|i| read_part(state, &self.layout, &self.parts, i));
                Content::Here(fields.collect())
            }
        };
        Ok(Snapshot(content))
    }

    /// Whether steps that were asked for may not be done yet: [`Simulation::wait`] would wait for them.
    pub fn is_pending(&self) -> bool {
        !self.clock.pending.is_empty()
    }
}
