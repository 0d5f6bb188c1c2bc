//! A program behind a trait object: the one door through which everything that knows no program reaches one.

use super::stages::StageList;
use super::{Found, Program, Renewal, Stages, Stars, Vertex, leaves, push};
use crate::error::Result;
use crate::number::Number;
use meshweft_mesh::Mesh;
use std::any::Any;

/// A program whose state is stored as `T`. Its kernels come apart from it, as a table of functions.
pub(crate) trait AnyProgram<T: Number>: Any + Send + Sync {
    /// See [`Program::time_step`].
    fn time_step(&self) -> f64;

    /// See [`Program::set_time_step`].
    fn set_time_step(&mut self, dt: f64) -> bool;

    /// See [`Program::parameters`]: all reals.
    fn parameters(&self, time: f64) -> Vec<T>;

    /// See [`Program::globals`]: all reals.
    fn globals(&self) -> Vec<T>;

    /// See [`Program::parts`].
    fn parts(&self, mesh: &Mesh) -> Vec<Vec<[f64; 3]>>;

    /// See [`Program::of_cells`].
    fn of_cells(&self) -> Vec<String>;

    /// See [`Program::stars`].
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()>;

    /// See [`Program::renew`].
    fn renew<'a>(&self, mesh: &Mesh, found: Found<'a>) -> Result<Found<'a>>;

    /// See [`Program::initial`]: all reals, shared ones first.
    fn initial(&self, mesh: &Mesh, v: u32, reals: &mut Vec<T>);

    /// See [`Program::fixed`].
    fn fixed(&self, mesh: &Mesh, v: u32) -> bool;

    /// See [`Program::step`]: records the stages.
    fn step(&self, list: StageList) -> StageList;
}

impl<P: Program, T: Number> AnyProgram<T> for P {
    fn time_step(&self) -> f64 {
        Program::time_step(self)
    }

    fn set_time_step(&mut self, dt: f64) -> bool {
        Program::set_time_step(self, dt)
    }

    fn parameters(&self, time: f64) -> Vec<T> {
        leaves(&Program::parameters(self, time))
    }

    fn globals(&self) -> Vec<T> {
        leaves(&Program::globals(self))
    }

    fn parts(&self, mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        Program::parts(self, mesh)
    }

    fn of_cells(&self) -> Vec<String> {
        Program::of_cells(self).into_iter().map(str::to_owned).collect()
    }

    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        Program::stars(self, mesh, stars)
    }

    fn renew<'a>(&self, mesh: &Mesh, found: Found<'a>) -> Result<Found<'a>> {
        Renewal::ask(found, |renewal| Program::renew(self, mesh, renewal))
    }

    fn initial(&self, mesh: &Mesh, v: u32, reals: &mut Vec<T>) {
        let (shared, private) = Program::initial(self, mesh, v).split();
        push(&shared, reals);
        push(&private, reals);
    }

    fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
        Program::fixed(self, mesh, v)
    }

    fn step(&self, list: StageList) -> StageList {
        Stages::<P>::tell(list, |stages| Program::step(self, stages))
    }
}
