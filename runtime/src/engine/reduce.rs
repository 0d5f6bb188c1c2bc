//! Reductions whose result does not depend on who adds what.

use crate::layout::Layout;
use crate::program::{Combine, Number};

/// Vertices a leaf of the tree: fixed, because another size would be another result.
const LEAF: usize = 4096;

/// A number for each of a range.
type Value<'a> = dyn Fn(usize) -> f64 + Sync + 'a;

/// Combines the values of all vertices: leaves of 4096 vertices consecutive along the curve, added in that order, then a
/// binary tree over the leaves. `value`: that of the vertex in a slot. `run` computes all leaves, in any order, from their
/// number and a function.
pub(crate) fn tree<T: Number>(
    how: Combine,
    layout: &Layout<T>,
    value: &Value,
    run: &dyn Fn(usize, &Value) -> Vec<f64>,
) -> f64 {
    let places = layout.schedule.permutation().rank();
    let empty = how.empty();
    let leaf = |block: usize| {
        let members = &places[block * LEAF..places.len().min((block + 1) * LEAF)];
        members.iter().fold(empty, |sum, &place| combine(how, sum, value(layout.slot_at(place))))
    };
    pairs(how, run(places.len().div_ceil(LEAF), &leaf))
}

/// Combines values as a binary tree: neighbors in pairs, until one is left. None make the neutral value.
pub(crate) fn pairs(how: Combine, mut values: Vec<f64>) -> f64 {
    let join = |pair: &[f64]| pair.iter().copied().reduce(|a, b| combine(how, a, b)).expect("chunks are not empty");
    while values.len() > 1 {
        values = values.chunks(2).map(join).collect();
    }
    values.first().copied().unwrap_or(how.empty())
}

/// Combines two numbers.
fn combine(how: Combine, a: f64, b: f64) -> f64 {
    match how {
        Combine::Sum => a + b,
        // Spelled out: `f64::min` may return either zero of two.
        Combine::Min => {
            if b < a {
                b
            } else {
                a
            }
        }
        Combine::Max => {
            if b > a {
                b
            } else {
                a
            }
        }
    }
}
