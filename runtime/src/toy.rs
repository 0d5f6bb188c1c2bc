//! Programs for examples in documentation.

use crate::{Mesh, Program, Stages, kernels, stars, vertex};

vertex! {
    /// One real.
    pub struct Value<R> {
        /// It.
        shared value: R,
    }
}
stars! {
    /// The edges of the mesh.
    pub Edges[1];
}

/// Nothing happens; each vertex holds its number.
#[derive(Clone, Copy, Debug)]
pub struct Still;

/// Each step adds 1, starting from 0.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

/// Each step takes the neighbors into account, starting from the number of the vertex.
#[derive(Clone, Copy, Debug)]
pub struct Mixing;

kernels! { for Still: Value; }
kernels! {
    for Counting: Value;
    /// Adds 1.
    update Increment |_, own, _| Value { value: own.value + R::lit(1.0) };
}
kernels! {
    for Mixing: Value;
    /// An eighth of the sum of a vertex and its neighbors.
    update Mix |_, own, around| Value { value: (own.value + around.sum(Edges, |[other], ()| other.value)) * R::lit(0.125) };
}

impl Program for Still {
    fn initial(&self, _: &Mesh, v: u32) -> Value<f64> {
        Value { value: f64::from(v) }
    }
    fn step(&self, _: &mut Stages<Self>) {}
}

impl Program for Counting {
    fn initial(&self, _: &Mesh, _: u32) -> Value<f64> {
        Value { value: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Increment, 1);
    }
}

impl Program for Mixing {
    fn initial(&self, _: &Mesh, v: u32) -> Value<f64> {
        Value { value: f64::from(v) }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Mix, 1);
    }
}
