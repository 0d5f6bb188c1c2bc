//! Programs: physics written once, in plain Rust, generic over the number type.
//!
//! A program says what a vertex holds, what joins vertices, and what a time step does:
//!
//! - **Shared** state is what neighbors read, such as a position. **Private** state only the vertex itself reads, such
//!   as a velocity. The split is what makes updates fast and messages small.
//! - A **star** is the list of things around a vertex: its edges (one other vertex each), triangles (two others), tets
//!   or bending pairs (three others), each with its own record of data. A program may have several.
//! - A **step** is a short list of kernels: a [`Map`] changes each vertex by itself; a [`Kernel`] also reads the
//!   neighbors, either swept in place, in the order of the schedule, or double-buffered; a [`Reduce`] measures.
//!
//! Updates are pure functions that return the new value, so a program cannot race and needs no `unsafe`.

pub(crate) mod contract;
mod int;
mod kernel;
pub mod lanes;
mod real;
mod record;

pub use int::Int;
pub use lanes::Lanes;
pub use real::{Length, Number, Real};
pub use record::{Part, Record};
pub(crate) use record::{convert, splat};

use crate::error::Result;
use meshweft_mesh::Mesh;

/// What neighbors read of a vertex, at number type `R`.
pub type SharedOf<P, R> = <P as Program>::Shared<R>;
/// What only the vertex itself reads, at number type `R`.
pub type PrivateOf<P, R> = <P as Program>::Private<R>;

/// A physical model on a mesh. The crate's front page has a complete one.
pub trait Program: Send + Sync + Sized + 'static {
    /// Numbers that all vertices read: stiffness, time step, gravity ...
    type Parameters<R: Real>: Record<R>;
    /// What neighbors read of a vertex.
    type Shared<R: Real>: Record<R>;
    /// What only the vertex itself reads.
    type Private<R: Real>: Record<R>;

    /// The time that one step advances, in seconds.
    fn time_step(&self) -> f64;

    /// The parameters of the step that starts at `time`, in seconds.
    fn parameters(&self, time: f64) -> Self::Parameters<f64>;

    /// Adds the stars: which vertices an update reads, and the data of each edge or element.
    ///
    /// # Errors
    /// Whatever makes the mesh unfit for the program.
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()>;

    /// State of vertex `v` of the mesh at the start.
    fn initial(&self, mesh: &Mesh, v: u32) -> (Self::Shared<f64>, Self::Private<f64>);

    /// One time step, told kernel by kernel.
    fn step(&self, stages: &mut impl Stages<Self>);

    /// Quantities worth watching, told one by one; none unless overridden.
    fn metrics(&self, metrics: &mut impl Metrics<Self>) {
        let _ = metrics;
    }
}

/// A vertex update that reads the neighbors.
pub trait Kernel<P: Program>: Send + Sync + 'static {
    /// Its name in tables and shaders.
    const NAME: &'static str;

    /// The new state of a vertex from its own and its neighbors'.
    fn update<R: Real>(
        parameters: &P::Parameters<R>,
        shared: P::Shared<R>,
        private: P::Private<R>,
        neighbors: &impl Neighbors<R, P::Shared<R>>,
    ) -> (P::Shared<R>, P::Private<R>);
}

/// A vertex update that reads the vertex alone.
pub trait Map<P: Program>: Send + Sync + 'static {
    /// Its name in tables and shaders.
    const NAME: &'static str;

    /// The new state of a vertex from its own.
    fn update<R: Real>(
        parameters: &P::Parameters<R>,
        shared: P::Shared<R>,
        private: P::Private<R>,
    ) -> (P::Shared<R>, P::Private<R>);
}

/// A number measured at every vertex and combined over the mesh.
///
/// The combination is a fixed tree over blocks of 4,096 vertices consecutive along the curve, in 64 bits, so it does
/// not depend on threads.
pub trait Reduce<P: Program>: Send + Sync + 'static {
    /// Its name in tables and `history.csv`.
    const NAME: &'static str;
    /// Its unit, such as `J`; empty for a pure number.
    const UNIT: &'static str;
    /// How the values of the vertices are combined.
    const COMBINE: Combine;

    /// The share of one vertex.
    fn measure<R: Real>(
        parameters: &P::Parameters<R>,
        shared: P::Shared<R>,
        private: P::Private<R>,
        neighbors: &impl Neighbors<R, P::Shared<R>>,
    ) -> R;
}

/// How a [`Reduce`] combines the values of the vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Their sum; 0 without vertices.
    Sum,
    /// The smallest; infinity without vertices.
    Min,
    /// The largest; minus infinity without vertices.
    Max,
}

impl Combine {
    /// What it comes to without vertices.
    pub(crate) fn empty(self) -> f64 {
        match self {
            Combine::Sum => 0.0,
            Combine::Min => f64::INFINITY,
            Combine::Max => f64::NEG_INFINITY,
        }
    }
}

/// Receives the kernels of a time step. Engines run them, planners list them.
pub trait Stages<P: Program> {
    /// Updates every vertex by itself.
    fn map<K: Map<P>>(&mut self, kernel: K);

    /// Updates every vertex `rounds` times in place, in the order of the schedule: new values of earlier neighbors, old
    /// values of later ones (Gauss–Seidel). Under [`Order::Jacobi`](crate::Order::Jacobi) the same as
    /// [`Stages::jacobi`].
    fn sweep<K: Kernel<P>>(&mut self, kernel: K, rounds: usize);

    /// Updates every vertex `rounds` times from the old values of all neighbors, double-buffered.
    fn jacobi<K: Kernel<P>>(&mut self, kernel: K, rounds: usize);
}

/// Receives the quantities that a program measures.
pub trait Metrics<P: Program> {
    /// Measures one quantity.
    fn measure<K: Reduce<P>>(&mut self, kernel: K);
}

/// A kind of star: things around a vertex with `N` other vertices each.
///
/// ```
/// use meshweft::{Real, Star};
/// /// Springs to the neighbors, each with its rest length in meters.
/// struct Springs;
/// impl Star<1> for Springs {
///     const INDEX: usize = 0;
///     type Data<R: Real> = R;
/// }
/// assert_eq!(<Springs as Star<1>>::INDEX, 0);
/// ```
pub trait Star<const N: usize>: Send + Sync + 'static {
    /// Its place among the stars of the program, from 0.
    const INDEX: usize;
    /// The data of one thing as its vertex sees it.
    type Data<R: Real>: Record<R>;
}

/// The neighbors of the vertex being updated.
pub trait Neighbors<R: Real, S: Record<R>> {
    /// Folds over the things around the vertex: `f` receives what was gathered so far, the shared state of the other
    /// vertices, and the data of the thing.
    ///
    /// The other vertices of an element come in the order that keeps its orientation with the vertex itself first. The
    /// things come in an order that depends on the places of their vertices alone, never on their names.
    fn fold<const N: usize, E: Star<N>, A: Record<R>>(
        &self,
        star: E,
        init: A,
        f: impl Fn(A, [S; N], E::Data<R>) -> A,
    ) -> A;
}

/// One element as one of its vertices sees it.
#[derive(Clone, Copy, Debug)]
pub struct Incidence<const K: usize> {
    /// The element, in the order in which they were added.
    pub element: usize,
    /// Which corner of the element the vertex is.
    pub corner: usize,
    /// The vertex itself, then the others in the order in which [`Neighbors::fold`] gives them.
    pub vertices: [u32; K],
}

impl<const K: usize> Incidence<K> {
    /// Puts values given corner by corner of the element into the order of [`Incidence::vertices`].
    pub fn arrange<A: Copy>(&self, values: [A; K]) -> [A; K] {
        std::array::from_fn(|k| values[turn(K, self.corner)[k]])
    }
}

/// Writes the reals of one incidence's data: element, corner, vertices (own first).
pub(crate) type DataOf = Box<dyn Fn(usize, usize, &[u32], &mut Vec<f64>) + Send + Sync>;

/// One star before it is laid out: the elements and what computes their data.
pub(crate) struct StarPlan {
    pub(crate) index: usize,
    /// The name of its type.
    pub(crate) name: &'static str,
    pub(crate) corners: usize,
    pub(crate) elements: Vec<u32>,
    pub(crate) data_len: usize,
    /// Names and numbers of reals of the parts of its data.
    pub(crate) parts: Vec<(String, usize)>,
    pub(crate) data: DataOf,
}

/// Receives the stars of a program.
#[derive(Default)]
pub struct Stars {
    pub(crate) plans: Vec<StarPlan>,
}

impl Stars {
    /// Adds a star from its elements.
    ///
    /// `elements`: vertex ids of the mesh, `K = N + 1` an element; one that repeats a vertex is left out. `data` is
    /// called once for every element and corner, in any order and from any thread.
    ///
    /// # Panics
    /// If `K` is not `N + 1` or larger than 4.
    pub fn add<const N: usize, const K: usize, S: Star<N>>(
        &mut self,
        _star: S,
        elements: Vec<[u32; K]>,
        data: impl Fn(Incidence<K>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        assert!(K == N + 1 && K <= 4, "an element of a star of {N} others has {} vertices, at most 4", N + 1);
        let elements = elements.into_flattened();
        let parts = <S::Data<f64>>::parts("").into_iter().map(|part| (part.name, part.components));
        self.plans.push(StarPlan {
            index: S::INDEX,
            name: short_name::<S>(),
            corners: K,
            elements,
            data_len: <S::Data<f64> as Record<f64>>::LEN,
            parts: parts.collect(),
            data: Box::new(move |element, corner, vertices, out| {
                let vertices = vertices.try_into().expect("as many vertices as the star has corners");
                data(Incidence { element, corner, vertices }).each(|_, x| out.push(x));
            }),
        });
    }
}

/// The name of a type without its path.
pub(crate) fn short_name<A>() -> &'static str {
    let path = std::any::type_name::<A>();
    let end = path.find('<').unwrap_or(path.len());
    &path[path[..end].rfind("::").map_or(0, |colons| colons + 2)..end]
}

/// The order of corners that puts `corner` first and keeps the orientation: a rotation of a triangle, an even permutation
/// of a tet.
fn turn(corners: usize, corner: usize) -> &'static [usize] {
    const EDGE: [[usize; 2]; 2] = [[0, 1], [1, 0]];
    const TRIANGLE: [[usize; 3]; 3] = [[0, 1, 2], [1, 2, 0], [2, 0, 1]];
    const TET: [[usize; 4]; 4] = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]];
    match corners {
        2 => &EDGE[corner],
        3 => &TRIANGLE[corner],
        4 => &TET[corner],
        n => unreachable!("a star has elements of 2 to 4 corners, not {n}"),
    }
}

/// The vertices of an element with that of `corner` first.
pub(crate) fn own_first(element: &[u32], corner: usize, out: &mut [u32; 4]) {
    turn(element.len(), corner).iter().zip(out).for_each(|(&k, slot)| *slot = element[k]);
}
