//! Reductions whose result does not depend on who adds what.

use crate::layout::Domain;
use crate::program::Combine;
use std::collections::BTreeMap;
use std::ops::Range;

/// Vertices a leaf of the tree: fixed, because another size would be another result.
const LEAF: usize = 4096;

/// The vertices of a domain that are in one leaf of the tree.
#[derive(Clone)]
pub(crate) struct Leaf {
    /// Which leaf it is.
    pub(crate) number: usize,
    /// Of the domain's vertices along the curve.
    pub(crate) members: Range<usize>,
}

/// All leaves of the tree that have vertices of the domain: those of the first part, as far as there are several.
pub(crate) fn leaves(domain: &Domain) -> Vec<Leaf> {
    let all = domain.measured_here();
    let mut leaves = Vec::with_capacity(all.div_ceil(LEAF));
    let mut start = 0;
    while start < all {
        let number = domain.number(start) as usize / LEAF;
        let rest = all.min(start + LEAF) - start;
        let end = start + (0..rest).take_while(|i| domain.number(start + i) as usize / LEAF == number).count();
        leaves.push(Leaf { number, members: start..end });
        start = end;
    }
    leaves
}

/// Whether all vertices of a leaf are in the domain.
pub(crate) fn is_whole(domain: &Domain, leaf: &Leaf) -> bool {
    leaf.members.len() == LEAF.min(domain.measured() - leaf.number * LEAF)
}

/// Combines the values of the vertices of a leaf: 4096 consecutive along the curve, in that order. `value`: that of the vertex
/// in a slot.
pub(crate) fn leaf(how: Combine, domain: &Domain, value: &dyn Fn(usize) -> f64, members: Range<usize>) -> f64 {
    let members = domain.along_curve[members].iter();
    members.fold(how.empty(), |sum, &slot| combine(how, sum, value(slot as usize)))
}

/// Leaves that [`some_leaves`] combines at a time.
pub(crate) const SOME: usize = 8;

/// [`leaf`] for up to [`SOME`] leaves side by side: in one alone every sum waits for the one before. `value`: that of a vertex along
/// the curve.
pub(crate) fn some_leaves(how: Combine, value: impl Fn(usize) -> f64, leaves: &[Leaf]) -> [f64; SOME] {
    const ROWS: usize = 64;
    let mut sums = [how.empty(); SOME];
    let common = leaves.iter().map(|leaf| leaf.members.len()).min().unwrap_or(0) / ROWS * ROWS;
    // Put side by side first: read in turns, leaves would drive each other out of the cache, where they lie a power of two apart.
    let mut rows = [[how.empty(); SOME]; ROWS];
    for start in (0..common).step_by(ROWS) {
        for (i, leaf) in leaves.iter().enumerate() {
            rows.iter_mut().zip(leaf.members.start + start..).for_each(|(row, member)| row[i] = value(member));
        }
        for row in &rows {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum = combine(how, *sum, *value));
        }
    }
    for (sum, Leaf { members, .. }) in sums.iter_mut().zip(leaves) {
        *sum = (members.start + common..members.end).fold(*sum, |sum, member| combine(how, sum, value(member)));
    }
    sums
}

/// What a domain has measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reduction {
    pub(crate) how: Combine,
    /// Vertices of the whole mesh that are measured.
    pub(crate) whole: usize,
    /// Leaves of which all vertices are in the domain, by number.
    pub(crate) leaves: Vec<(u32, f64)>,
    /// Vertices of the others, by number along the curve.
    pub(crate) vertices: Vec<(u32, f64)>,
}

impl Reduction {
    /// Sorts out what `leaves` came to; `value`: that of the vertex in a slot.
    pub(crate) fn new(
        how: Combine,
        domain: &Domain,
        leaves: impl Iterator<Item = (Leaf, f64)>,
        value: impl Fn(usize) -> f64,
    ) -> Reduction {
        let whole = domain.measured();
        let mut reduction = Reduction { how, whole, leaves: Vec::new(), vertices: Vec::new() };
        for (leaf, sum) in leaves {
            if is_whole(domain, &leaf) {
                reduction.leaves.push((leaf.number as u32, sum));
            } else {
                let vertex = |i: usize| (domain.number(i), value(domain.along_curve[i] as usize));
                reduction.vertices.extend(leaf.members.map(vertex));
            }
        }
        reduction
    }

    /// Combines the values of the vertices in slots, which are all there.
    pub(crate) fn of(how: Combine, domain: &Domain, value: &dyn Fn(usize) -> f64) -> Reduction {
        let leaves = leaves(domain).into_iter().map(|of| {
            let sum = leaf(how, domain, value, of.members.clone());
            (of, sum)
        });
        Reduction::new(how, domain, leaves, value)
    }

    /// What all domains of a mesh measured, together; none if some vertex is missing or was measured twice.
    pub(crate) fn total(all: Vec<Reduction>) -> Option<f64> {
        let &Reduction { how, whole: vertices, .. } = all.first()?;
        let (mut sums, mut loose) = (BTreeMap::new(), BTreeMap::new());
        for reduction in all {
            for (leaf, sum) in reduction.leaves {
                sums.insert(leaf, sum).is_none().then_some(())?;
            }
            for (number, value) in reduction.vertices {
                loose.insert(number, value).is_none().then_some(())?;
            }
        }
        let mut loose = loose.into_iter().peekable();
        while let Some(&(first, _)) = loose.peek() {
            let start = first as usize / LEAF * LEAF;
            let end = vertices.min(start + LEAF);
            let (mut sum, mut count) = (how.empty(), start);
            while let Some((_, value)) = loose.next_if(|&(number, _)| number as usize == count && count < end) {
                (sum, count) = (combine(how, sum, value), count + 1);
            }
            (count == end && sums.insert((start / LEAF) as u32, sum).is_none()).then_some(())?;
        }
        let leaves = vertices.div_ceil(LEAF);
        let whole = |leaf: &u32| (*leaf as usize) < leaves;
        (sums.len() == leaves && sums.keys().all(whole)).then(|| pairs(how, sums.into_values().collect()))
    }
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
#[inline(always)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::stress::Case;
    use meshweft_schedule::Order;

    #[test]
    fn leaves_side_by_side_come_to_what_each_does() {
        let n = 11 * LEAF + 77;
        let (layout, _) = Case::new(n, vec![[0, 1]], Order::BLOCKED, 100).laid_out(8);
        let value = |slot: usize| ((slot * 7919) % 1009) as f64 * 0.1 - 40.0;
        for how in [Combine::Sum, Combine::Min, Combine::Max] {
            for leaves in leaves(&layout.domain).chunks(SOME) {
                let along = |member: usize| value(layout.domain.along_curve[member] as usize);
                let all = some_leaves(how, along, leaves);
                for (one, of) in all.iter().zip(leaves) {
                    assert_eq!(one.to_bits(), leaf(how, &layout.domain, &value, of.members.clone()).to_bits());
                }
            }
        }
    }
}
