//! Reductions whose result does not depend on who adds what.

use crate::layout::Layout;
use crate::number::Number;
use crate::program::Combine;

/// Vertices a leaf of the tree: fixed, because another size would be another result.
const LEAF: usize = 4096;

/// How many leaves the tree has.
pub(crate) fn leaves<T: Number>(layout: &Layout<T>) -> usize {
    layout.schedule.permutation().len().div_ceil(LEAF)
}

/// Combines the values of the vertices of a leaf: 4096 consecutive along the curve, in that order. `value`: that of the vertex
/// in a slot.
pub(crate) fn leaf<T: Number>(how: Combine, layout: &Layout<T>, value: &dyn Fn(usize) -> f64, leaf: usize) -> f64 {
    let places = layout.schedule.permutation().rank();
    let members = &places[leaf * LEAF..places.len().min((leaf + 1) * LEAF)];
    members.iter().fold(how.empty(), |sum, &place| combine(how, sum, value(layout.slot_at(place))))
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
