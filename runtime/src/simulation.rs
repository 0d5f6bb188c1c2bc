//! The façade: a program on a mesh, stepped by its owner.
//!
//! [`Simulation`] and [`Builder`] know the program and are thin; `core` is all that does not, behind [`AnySimulation`].

mod any;
mod backend;
mod build;
mod builder;
mod changing;
mod checkpoint;
mod core;
mod elements;
mod ensemble;
mod fields;
mod pieces;
mod plans;
#[cfg(test)]
mod robust;
mod saved;
mod snapshot;
mod steps;
#[cfg(test)]
pub(crate) mod tests;
mod timeline;
mod vertices;
mod workload;

use self::core::Typed;
pub use crate::adapter::Counters as GpuCounters;
use crate::error::Result;
use crate::number::{Number, Record};
use crate::program::{KernelId, Program, Reduce, Stages, Vertex, VertexOf, leaves, settings_of};
pub use any::AnySimulation;
pub use backend::{Backend, Simd};
pub use builder::Builder;
pub use checkpoint::Checkpoint;
pub use ensemble::{Ensemble, sweep};
#[cfg(feature = "gpu")]
pub use fields::DeviceField;
pub use fields::FieldView;
pub use plans::Plans;
pub use saved::Saved;
pub use snapshot::Snapshot;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// One measured quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for a pure number.
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
}

/// What [`AnySimulation::audit`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// Rounds of sweeps that were watched.
    pub rounds: u32,
    /// Updates that were watched: rounds × vertices.
    pub updates: u64,
    /// Neighbor relations that were checked before and after the updates of sweeps.
    pub relations: u64,
}

/// A program on a mesh, with its state.
///
/// The owner keeps the loop: [`step`](AnySimulation::step) advances one time step; fields can be read and written between steps,
/// in the order of the mesh's vertices whatever the order of the schedule. There is no global state: any number of
/// simulations may live at once, each with its own threads.
///
/// What does not depend on the program is a method of [`AnySimulation`], to which this derefs: steps and time, fields, metrics,
/// digests, files. Here is what does.
pub struct Simulation<P: Program, T: Number = f32> {
    core: Box<dyn Typed<T>>,
    program: PhantomData<P>,
}

impl<P: Program, T: Number> Simulation<P, T> {
    /// Runs stages that the host chooses, without a time step: time and the number of steps stay as they are.
    ///
    /// ```
    /// # use meshweft::{Simulation, mesh::generate::generate, toy::{Counting, Increment}};
    /// let mut counting = Simulation::builder(generate("chain:3", 1)?, Counting).build()?;
    /// counting.run(|stages| (0..5).for_each(|_| stages.sweep(Increment, 1)))?;
    /// assert_eq!((counting.field("value")?.values[2], counting.steps()), (5.0, 0));
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnySimulation::step`].
    pub fn run(&mut self, tell: impl FnOnce(&mut Stages<P>)) -> Result<()> {
        let list = Stages::tell(self.core.list(), tell);
        self.core.run(list)
    }

    /// The program.
    pub fn program(&self) -> &P {
        self.core.program().downcast_ref().expect("it was built with this program")
    }

    /// The program, to change its parameters between steps.
    pub fn program_mut(&mut self) -> &mut P {
        self.core.program_mut().downcast_mut().expect("it was built with this program")
    }

    /// The globals after all steps so far: what stages measured and computed.
    ///
    /// # Errors
    /// A GPU that failed, or a kernel that panicked.
    pub fn globals(&self) -> Result<P::Globals<f64>> {
        let globals = self.core.global_reals()?;
        Ok(Record::build(|k| globals[k]))
    }

    /// Replaces the globals.
    ///
    /// # Errors
    /// One that is not finite; otherwise as [`AnySimulation::wait`].
    pub fn set_globals(&mut self, globals: P::Globals<f64>) -> Result<()> {
        self.core.set_globals(&leaves(&globals))
    }

    /// Measures what a kernel says, labeled or not.
    ///
    /// # Errors
    /// A kernel that the program does not name. Otherwise as [`AnySimulation::wait`].
    pub fn measure<K: Reduce<P>>(&mut self, kernel: K) -> Result<f64> {
        self.core.measure(KernelId::of::<K>(), K::NAME, settings_of::<T, K>(&kernel)?)
    }

    /// The state of vertex `v` of the mesh.
    ///
    /// # Errors
    /// A GPU that failed, or a kernel that panicked.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn vertex(&self, v: u32) -> Result<VertexOf<P, T>> {
        let reals = self.core.vertex(v)?;
        let (shared, private) = reals.split_at(crate::program::lengths::<P, T>()[0]);
        Ok(Vertex::join(Record::build(|k| shared[k]), Record::build(|k| private[k])))
    }

    /// Replaces the state of vertex `v` of the mesh.
    ///
    /// # Errors
    /// A value that is not finite. Otherwise as [`Simulation::vertex`].
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn set_vertex(&mut self, v: u32, vertex: VertexOf<P, T>) -> Result<()> {
        let ((shared, private), mut reals) = (vertex.split(), Vec::new());
        shared.each(|_, x| reals.push(x));
        private.each(|_, x| reals.push(x));
        self.core.set_vertex(v, &reals)
    }

    /// Reads one part of the state into numbers of the host, in the order of the mesh's vertices, without allocating: shape
    /// [vertices × components]. Values are rounded to `U`, which may be the precision of the simulation or another.
    ///
    /// ```
    /// # use meshweft::{Simulation, mesh::generate::generate, toy::Still};
    /// let flat = Simulation::builder(generate("chain:3", 1)?, Still).build()?;
    /// let mut heights = [0.0_f32; 3];
    /// flat.read_into("value", &mut heights)?;
    /// assert_eq!(heights, [0.0, 1.0, 2.0]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// An unknown name, or a slice of another length.
    pub fn read_into<U: Number>(&self, name: &str, values: &mut [U]) -> Result<()> {
        self.core.read(name, values.len(), &mut |i, x| values[i] = U::from_f64(x))
    }

    /// Looks at one shared part of the state where it lies, without a copy. On a GPU the state is read back first.
    ///
    /// # Errors
    /// An unknown name; a part that is not shared, or holds integers, whose values do not lie together:
    /// [`Simulation::read_into`] copies them.
    pub fn view(&self, name: &str) -> Result<FieldView<'_, T>> {
        self.core.view(name)
    }

    /// Writes one part of the state, in the order of the mesh's vertices. Values are rounded to the precision.
    ///
    /// # Errors
    /// An unknown name, a wrong number of values, or one that is not finite (names the vertex).
    pub fn set_field<U: Number>(&mut self, name: &str, values: &[U]) -> Result<()> {
        self.core.write(name, values.len(), &|i| values[i].to_f64())
    }

    /// Compares the state with that of another run, bit for bit: [`AnySimulation::compare`].
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) names the first vertex and part that differ.
    ///
    /// # Panics
    /// If the meshes have different numbers of vertices.
    pub fn compare(&self, other: &Simulation<P, T>) -> Result<()> {
        self.core.compare(&**other)
    }

    /// Forgets the types of program and number.
    pub fn into_any(self) -> Box<dyn AnySimulation> {
        self.core
    }
}

impl<P: Program, T: Number> Deref for Simulation<P, T> {
    type Target = dyn AnySimulation;

    fn deref(&self) -> &dyn AnySimulation {
        &*self.core
    }
}

impl<P: Program, T: Number> DerefMut for Simulation<P, T> {
    fn deref_mut(&mut self) -> &mut dyn AnySimulation {
        &mut *self.core
    }
}

impl<P: Program, T: Number> fmt::Debug for Simulation<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("program", &std::any::type_name::<P>())
            .field("precision", &T::NAME)
            .field("vertices", &self.mesh().points().len())
            .field("order", &self.order())
            .field("steps", &self.steps())
            .field("time", &self.time())
            .finish_non_exhaustive()
    }
}
