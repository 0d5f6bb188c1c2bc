//! Finding the elements of changing stars anew.

use super::{Kernels, Record, Star, Stars, Vertex, VertexOf, lengths, push};
use crate::error::Result;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a program sees when it finds the elements of its changing stars anew, and what takes them: see
/// [`Program::renew`](crate::Program::renew).
///
/// Vertices go by their *number* along the space-filling curve, 0 to [`Renewal::vertices`] - 1, here and in the elements: vertices with
/// near numbers are near each other at the start, and what is found cannot depend on the names that vertices have in the mesh.
pub struct Renewal<'a, P> {
    found: Found<'a>,
    program: PhantomData<fn(P)>,
}

/// The same whatever the program.
pub(crate) struct Found<'a> {
    pub(crate) vertices: u32,
    pub(crate) time: f64,
    /// Whether a step begins.
    pub(crate) begins: bool,
    /// Whether the program has asked for that.
    pub(crate) was_asked: bool,
    /// The number of a vertex of the mesh.
    pub(crate) number: &'a (dyn Fn(u32) -> u32 + Sync),
    /// Writes the state of the vertex of a number down, shared reals first, as a record over `f64` holds it.
    pub(crate) reals: &'a (dyn Fn(u32, &mut [f64]) + Sync),
    /// The elements that were found.
    pub(crate) stars: Stars,
    /// Names of parts of the state that the step begins with, and their values, vertex after vertex.
    pub(crate) fields: Vec<(&'static str, Vec<f64>)>,
    /// Numbers of vertices with the reals of their state, with which the step begins instead, shared reals first.
    pub(crate) states: Vec<(u32, Vec<f64>)>,
}

impl<'a, P: Kernels> Renewal<'a, P> {
    /// Lets a program look at the state of `found`, and returns it with what it has found.
    pub(crate) fn ask(found: Found<'a>, ask: impl FnOnce(&mut Self) -> Result<()>) -> Result<Found<'a>> {
        let mut renewal = Renewal { found, program: PhantomData };
        ask(&mut renewal)?;
        Ok(renewal.found)
    }

    /// Number of vertices.
    pub fn vertices(&self) -> u32 {
        self.found.vertices
    }

    /// The time at which the step begins, s.
    pub fn time(&self) -> f64 {
        self.found.time
    }

    /// Whether a step begins, or else something is measured, which sees the state as it is: elements that belong to the states that a step is to
    /// begin with would not fit it. A program that does not ask is not asked twice for the same state.
    pub fn begins_step(&mut self) -> bool {
        self.found.was_asked = true;
        self.found.begins
    }

    /// The number of vertex `v` of the mesh.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn number(&self, v: u32) -> u32 {
        (self.found.number)(v)
    }

    /// The state of the vertex of a number.
    ///
    /// # Panics
    /// If no vertex has it.
    pub fn vertex(&self, number: u32) -> VertexOf<P, f64> {
        /// Longer states are read in a list of their own.
        const FEW: usize = 64;
        let [shared, private, ..] = lengths::<P, f64>();
        let (mut few, mut many) = ([0.0; FEW], Vec::new());
        let reals = few.get_mut(..shared + private).unwrap_or_else(|| {
            many.resize(shared + private, 0.0);
            many.as_mut_slice()
        });
        (self.found.reals)(number, reals);
        Vertex::join(Record::build(|k| reals[k]), Record::build(|k| reals[shared + k]))
    }

    /// Puts elements in place of those that a changing star had, as [`Stars::add`] does; a star that gets none has none.
    ///
    /// `elements`: numbers of vertices, `K = N + 1` an element. One that repeats a vertex is left out. The vertices of an
    /// [`Incidence`](crate::Incidence) are numbers, too.
    ///
    /// # Panics
    /// As [`Stars::add`], or if the star is not marked `changing`.
    pub fn set<const N: usize, const K: usize, S: Star<N>>(
        &mut self,
        star: S,
        elements: Vec<[u32; K]>,
        data: impl Fn(crate::Incidence<K>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        assert!(S::CHANGES, "star {} is not marked `changing` in `stars!`", S::NAME);
        self.found.stars.add(star, elements, data);
    }

    /// The same for elements that the program keeps. As long as it gives the very same list, with the same data, what was laid out of it is
    /// kept, which costs next to nothing.
    ///
    /// # Panics
    /// As [`Renewal::set`].
    pub fn set_shared<const N: usize, const K: usize, S: Star<N>>(
        &mut self,
        star: S,
        elements: Arc<Vec<[u32; K]>>,
        data: impl Fn(crate::Incidence<K>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        assert!(S::CHANGES, "star {} is not marked `changing` in `stars!`", S::NAME);
        self.found.stars.add_shared(star, elements, data);
        self.found.stars.plans.last_mut().expect("just added").lasts = true;
    }

    /// Gives the vertex of a number another state, with which the step begins; what [`Renewal::set_field`] gives comes on top of it.
    ///
    /// # Panics
    /// If no vertex has that number.
    pub fn set_vertex(&mut self, number: u32, state: VertexOf<P, f64>) {
        assert!(number < self.found.vertices, "there is no vertex of number {number}");
        let (shared, private) = state.split();
        let mut reals = Vec::new();
        push(&shared, &mut reals);
        push(&private, &mut reals);
        self.found.states.push((number, reals));
    }

    /// Gives one part of the state of all vertices other values, with which the step begins. `values`: those of each vertex, in the
    /// order of the numbers, shape [vertices × components].
    pub fn set_field(&mut self, name: &'static str, values: Vec<f64>) {
        self.found.fields.push((name, values));
    }
}
