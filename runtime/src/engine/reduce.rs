//! Reductions whose result does not depend on who adds what.

use super::{Job, combine};
use crate::layout::Row;
use crate::program::{Combine, Float, Program, Reduce};

/// Vertices a leaf of the tree: fixed, because another size would be another result.
const LEAF: usize = 4096;

/// Measures all vertices: leaves of 4096 vertices consecutive along the curve, added in that order, then a binary tree
/// over the leaves. `run` computes all leaves, in any order, from their number and a function.
pub(crate) fn tree<P: Program, T: Float, K: Reduce<P>>(
    job: &Job<P, T>,
    run: impl FnOnce(usize, &(dyn Fn(usize) -> f64 + Sync)) -> Vec<f64>,
) -> f64 {
    let state = &*job.state;
    let places = job.layout.schedule.permutation().rank();
    let empty = match K::COMBINE {
        Combine::Sum => 0.0,
        Combine::Min => f64::INFINITY,
        Combine::Max => f64::NEG_INFINITY,
    };
    let leaf = |block: usize| {
        let members = &places[block * LEAF..places.len().min((block + 1) * LEAF)];
        members.iter().fold(empty, |sum, &v| {
            let v = v as usize;
            let row = Row { v, stars: &job.layout.stars, leaf: |i: usize| state.shared[i] };
            let value = K::measure(&job.parameters, state.shared(v), state.private(v), &row);
            combine(K::COMBINE, sum, value.to_f64())
        })
    };
    let mut values = run(places.len().div_ceil(LEAF), &leaf);
    while values.len() > 1 {
        values = values
            .chunks(2)
            .map(|pair| pair.iter().copied().reduce(|a, b| combine(K::COMBINE, a, b)))
            .map(|v| v.expect("chunks are not empty"))
            .collect();
    }
    values.first().copied().unwrap_or(empty)
}
