//! Programs: physics written once, in plain Rust, generic over the number type.
//!
//! A program says what a vertex holds, what joins vertices, and what a time step does:
//!
//! - The state of a vertex is one record ([`vertex!`](crate::vertex)). Its **shared** fields are what neighbors read, such as
//!   a position; everything else stays with the vertex. The split is what makes updates fast and messages small.
//! - A **star** ([`stars!`](crate::stars)) is what lies around a vertex: edges (one other vertex each), triangles (two), tets
//!   or bending pairs (three), up to hexes (seven), each incident element with a record of data.
//! - **Kernels** ([`kernels!`](crate::kernels)) are the formulas. A [`Map`] changes each vertex by itself; an [`Update`] also
//!   reads the neighbors; a [`Project`] moves the corners of one element after the other; a [`Reduce`] measures; a [`Scalar`]
//!   computes on what was measured, and a [`Test`] decides by it.
//! - A **step** is a short list of stages over those kernels, recorded by [`Stages`](crate::Stages).
//!
//! Kernels are pure functions that return the new value, so a program cannot race and needs no `unsafe`.

mod any;
mod given;
mod kernel;
mod list;
mod project;
mod record;
mod records;
mod relax;
mod renewal;
mod stages;
mod star;

pub use crate::number::{Kind, Part, Record};
pub(crate) use any::AnyProgram;
pub use given::Given;
pub(crate) use given::{Uniform, hold};
pub use kernel::{Combine, Kernel, Map, Reduce, Scalar, Test, Update};
pub use list::KernelList;
pub use project::{CornersOf, Project, Projected, StateOf};
pub use record::Vertex;
pub(crate) use record::{integers, leaves, push};
pub(crate) use records::{Fields, Records, lengths};
pub use relax::Relax;
#[cfg(feature = "cluster")]
pub(crate) use relax::key_real;
pub(crate) use relax::less;
pub(crate) use renewal::Found;
pub use renewal::Renewal;
pub use stages::Stages;
pub(crate) use stages::{KernelId, Named, StageList, settings_of};
pub(crate) use star::{Around, CORNERS, StarPlan, StarShape, check_shape, own_first};
pub use star::{Corners, Elements, Incidence, Neighbors, Star, Stars};

use crate::error::Result;
use crate::number::Real;
use meshweft_mesh::Mesh;

/// The state of a vertex of `P`, at number type `R`.
pub type VertexOf<P, R> = <P as Kernels>::Vertex<R>;
/// What neighbors read of a vertex of `P`: the fields marked `shared`.
pub type SharedOf<P, R> = <<P as Kernels>::Vertex<R> as Vertex<R>>::Shared;
/// What only the vertex itself reads: the other fields.
pub(crate) type PrivateOf<P, R> = <<P as Kernels>::Vertex<R> as Vertex<R>>::Private;

/// The records and kernels of a program; [`kernels!`](crate::kernels) writes it.
///
/// All kernels are named here once, so that each is checked, traced and compiled when a simulation is built, whatever
/// [`Program::step`] says later.
pub trait Kernels: Send + Sync + Sized + 'static {
    /// The state of a vertex.
    type Vertex<R: Real>: Vertex<R>;
    /// Numbers that all kernels read, set by the host for each step: stiffness, time step, gravity ...
    type Parameters<R: Real>: Record<R>;
    /// Numbers that all kernels read and stages write: what a step measures and computes on the way.
    type Globals<R: Real>: Record<R>;

    /// Names all kernels.
    fn list(kernels: &mut impl KernelList<Self>);
}

/// A physical model on a mesh. The crate's front page has a complete one.
pub trait Program: Kernels {
    /// The time that one step advances, in seconds: 1 unless overridden. Asked before each step. Where the step says itself how long it
    /// [lasts](Stages::lasts), the longest that it may.
    fn time_step(&self) -> f64 {
        1.0
    }

    /// Takes another time step from now on, in seconds, and returns whether it did: [`AnySimulation::step_until`](crate::AnySimulation::step_until)
    /// shortens a step by it. Unless overridden nothing is changed.
    fn set_time_step(&mut self, dt: f64) -> bool {
        let _ = dt;
        false
    }

    /// The parameters of the step that starts at `time`, in seconds. A program with parameters must override it: building is an error that
    /// names the first without a value.
    fn parameters(&self, time: f64) -> Self::Parameters<f64> {
        let _ = time;
        Record::build(|_| f64::NAN)
    }

    /// Where the vertices are that the program has beside those of the mesh, part by part: coarse ones, for example. They are numbered behind
    /// those of the mesh, one part after the other, and come behind them in every order. [`Stages::on`] updates one part alone; fields,
    /// files and measures are of the mesh, which is part 0, but for [fields of cells](Program::of_cells). None unless overridden.
    fn parts(&self, mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        let _ = mesh;
        Vec::new()
    }

    /// Names of the fields that are of the cells of the mesh, and not of its points: their values are those of part 1, which has a vertex
    /// for each cell, in the order of [`Mesh::cells`]. [`AnySimulation::field`](crate::AnySimulation::field) has shape
    /// [cells × components] of them, and files have them as data of cells. None unless overridden. It must always return the same. Building is an
    /// error for what is no field, for another number of vertices, and where the vertices of the mesh stand for cells themselves.
    ///
    /// ```
    /// use meshweft::{Mesh, Program, Simulation, Stages, Stars, kernels, mesh::generate::generate, stars, vertex};
    /// vertex! { pub struct Place<R> { shared height: R, shared mean: R } }
    /// stars! { pub Corners[1]; }
    /// struct Means;
    /// kernels! {
    ///     for Means: Place;
    ///     update Take |_, own, around| {
    ///         Place { mean: around.sum(Corners, |[corner], ()| corner.height) / R::lit(3.0), ..own }
    ///     };
    /// }
    /// impl Program for Means {
    ///     fn parts(&self, mesh: &Mesh) -> Vec<Vec<[f64; 3]>> { vec![vec![[0.0; 3]; mesh.cells().len()]] }
    ///     fn of_cells(&self) -> Vec<&'static str> { vec!["mean"] }
    ///     fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
    ///         let cells = (mesh.points().len() as u32..).zip(mesh.triangles());
    ///         let links: Vec<[u32; 2]> = cells.flat_map(|(cell, corners)| corners.map(|v| [v, cell])).collect();
    ///         stars.add_directed(Corners, links.into(), |_| ());
    ///         Ok(())
    ///     }
    ///     fn initial(&self, _: &Mesh, v: u32) -> Place<f64> { Place { height: f64::from(v), mean: 0.0 } }
    ///     fn step(&self, stages: &mut Stages<Self>) { stages.on(1, |stages| stages.sweep(Take, 1)) }
    /// }
    /// let mut means = Simulation::builder(generate("sheet:2", 1)?, Means).build()?;
    /// means.step()?;
    /// let of = |corners: [u32; 3]| f64::from(corners.iter().sum::<u32>() as f32 / 3.0);
    /// let expected: Vec<f64> = means.mesh().triangles().into_iter().map(of).collect();
    /// assert_eq!(means.field("mean")?.values, expected);
    /// assert_eq!(means.field("height")?.values, [0.0, 1.0, 2.0, 3.0]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    fn of_cells(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Adds the stars: which vertices an update reads, and the data of each incident element.
    ///
    /// Unless overridden the edges of the mesh ([`Mesh::edges`]), if kernels look along one star of edges without data, as most do.
    ///
    /// # Errors
    /// Whatever makes the mesh unfit for the program.
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        let _ = (mesh, stars);
        Ok(())
    }

    /// Finds the elements of the stars that are marked `changing`, before each step and before something is measured: contacts, for
    /// example.
    ///
    /// What it finds may depend on nothing but the state and the time that it is shown, so that a run that is resumed goes on with the same
    /// bits. The order of the vertices stays as it is: a new element joins its vertices in it, which is all that a sweep needs. If it
    /// keeps something to be faster the next time, the result must be as if it did not.
    ///
    /// # Errors
    /// Whatever makes the state unfit; the step then fails.
    ///
    /// ```
    /// use meshweft::{Mesh, Program, Renewal, Simulation, Stages, Stars, kernels, stars, vertex};
    /// vertex! { pub struct Bead<R> { shared x: R, touches: R } }
    /// stars! { pub changing Touching[1]; }
    /// struct Beads;
    /// kernels! {
    ///     for Beads: Bead;
    ///     update Move |_, own, around| Bead {
    ///         x: own.x * R::lit(0.5),
    ///         touches: around.sum(Touching, |[_], ()| R::lit(1.0)),
    ///     };
    /// }
    /// impl Program for Beads {
    ///     fn stars(&self, _: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
    ///         stars.add_changing(Touching);
    ///         Ok(())
    ///     }
    ///     fn renew(&self, _: &Mesh, renewal: &mut Renewal<Self>) -> meshweft::Result<()> {
    ///         let x: Vec<f64> = (0..renewal.vertices()).map(|v| renewal.vertex(v).x).collect();
    ///         let close = (1..renewal.vertices()).filter(|&v| (x[v as usize] - x[v as usize - 1]).abs() < 0.3);
    ///         renewal.set(Touching, close.map(|v| [v - 1, v]).collect(), |_| ());
    ///         Ok(())
    ///     }
    ///     fn initial(&self, mesh: &Mesh, v: u32) -> Bead<f64> { Bead { x: mesh.points()[v as usize][0], touches: 0.0 } }
    ///     fn step(&self, stages: &mut Stages<Self>) { stages.sweep(Move, 1) }
    /// }
    /// let mesh = Mesh::new(vec![[0.0; 3], [0.5, 0.0, 0.0], [1.0, 0.0, 0.0]], meshweft::mesh::Cells::new())?;
    /// let mut run = Simulation::builder(mesh, Beads).build()?;
    /// run.step()?;
    /// assert_eq!(run.field("touches")?.values, [0.0, 0.0, 0.0]);
    /// run.step()?;
    /// assert_eq!(run.field("touches")?.values, [1.0, 2.0, 1.0]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    fn renew(&self, mesh: &Mesh, renewal: &mut Renewal<Self>) -> Result<()> {
        let _ = (mesh, renewal);
        Ok(())
    }

    /// State of vertex `v` at the start: of the mesh, or of a [part](Program::parts) behind it.
    fn initial(&self, mesh: &Mesh, v: u32) -> Self::Vertex<f64>;

    /// Whether vertex `v`, of the mesh or of a [part](Program::parts) behind it, keeps its state, whatever the kernels say: a Dirichlet
    /// condition. No vertex unless overridden.
    fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
        let _ = (mesh, v);
        false
    }

    /// Globals at the start: zeros unless overridden.
    fn globals(&self) -> Self::Globals<f64> {
        Record::build(|_| 0.0)
    }

    /// Records one time step, stage by stage.
    fn step(&self, stages: &mut Stages<Self>);
}
