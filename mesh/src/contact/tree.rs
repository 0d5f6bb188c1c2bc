//! A tree of boxes over primitives, eight children a node.
//!
//! It has no pointers: primitives are sorted along a curve through their middles, and each eight of them, and then of nodes, share a
//! node. The order stays while a surface moves, as what is near at rest mostly stays near, and only boxes are made anew. They are in 32
//! bits, rounded outward.

use crate::order::Curve;
use crate::parallel;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use wide::f32x8;

/// Children of a node: as many as one vector of the CPU compares.
const WIDTH: usize = 8;

/// A box, from its lowest to its highest corner.
pub(super) type Bounds = [[f64; 3]; 2];

/// The box around two boxes.
#[inline(always)]
pub(super) fn wider([a, b]: Bounds, [c, d]: Bounds) -> Bounds {
    [[0, 1, 2].map(|k| a[k].min(c[k])), [0, 1, 2].map(|k| b[k].max(d[k]))]
}

/// The box of some points.
#[inline(always)]
pub(super) fn bounds<const K: usize>(points: [[f64; 3]; K]) -> Bounds {
    points[1..].iter().fold([points[0]; 2], |bounds, &p| wider(bounds, [p; 2]))
}

/// The boxes of up to eight children, a coordinate after the other; those that are missing meet nothing.
#[derive(Clone, Copy)]
struct Node {
    low: [f32x8; 3],
    high: [f32x8; 3],
}

impl Default for Node {
    fn default() -> Node {
        Node { low: [f32x8::splat(f32::INFINITY); 3], high: [f32x8::splat(f32::NEG_INFINITY); 3] }
    }
}

/// One of the boxes of a node.
type Slot = [[f32; 3]; 2];

impl Node {
    /// A bit for each child whose box meets the other.
    #[inline(always)]
    fn meets(&self, [low, high]: Slot) -> u32 {
        let [x, y, z] =
            [0, 1, 2].map(|k| self.low[k].simd_le(f32x8::splat(high[k])) & self.high[k].simd_ge(f32x8::splat(low[k])));
        (x & y & z).to_bitmask()
    }

    #[inline(always)]
    fn slot(&self, i: usize) -> Slot {
        [&self.low, &self.high].map(|end| [0, 1, 2].map(|k| end[k].as_array()[i]))
    }

    fn set(&mut self, i: usize, [low, high]: Slot) {
        for k in 0..3 {
            (self.low[k].as_mut_array()[i], self.high[k].as_mut_array()[i]) = (low[k], high[k]);
        }
    }

    /// The box around all children.
    fn around(&self) -> Slot {
        [
            self.low.map(|row| row.to_array().into_iter().fold(f32::INFINITY, f32::min)),
            self.high.map(|row| row.to_array().into_iter().fold(f32::NEG_INFINITY, f32::max)),
        ]
    }
}

/// The bits that are set.
#[inline(always)]
fn bits(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        (mask != 0).then(|| {
            mask &= mask - 1;
            bit
        })
    })
}

/// Primitives by place.
pub(super) struct Tree {
    /// Which primitive each slot of the lowest nodes has.
    items: Arc<[u32]>,
    /// Nodes, the lowest level first, up to a level of one. Child `i` of node `g` is node `8 g + i` of the level below.
    levels: Vec<Vec<Node>>,
    origin: [f64; 3],
}

impl Tree {
    /// Primitives `0..count` with the boxes `bounds` along a curve.
    pub(super) fn order(count: usize, bounds: &(dyn Fn(usize) -> Bounds + Sync)) -> Arc<[u32]> {
        let middles = parallel::collect(count, |i| {
            let [low, high] = bounds(i);
            std::array::from_fn(|k| low[k] + 0.5 * (high[k] - low[k]))
        });
        Curve::Hilbert.order(&middles).order().into()
    }

    /// The tree of primitives in an order, with the boxes `bounds`, each made larger by `margin` on all sides. `origin`: some point among
    /// them, the same for trees that are to be compared.
    pub(super) fn new(
        items: Arc<[u32]>,
        bounds: &(dyn Fn(usize) -> Bounds + Sync),
        margin: f64,
        origin: [f64; 3],
    ) -> Tree {
        let mut lowest = vec![Node::default(); items.len().div_ceil(WIDTH)];
        parallel::fill(&mut lowest, |g| {
            let mut node = Node::default();
            for (i, &item) in items[g * WIDTH..].iter().take(WIDTH).enumerate() {
                node.set(i, outward(bounds(item as usize), margin, origin));
            }
            node
        });
        let mut levels = vec![lowest];
        while levels[levels.len() - 1].len() > 1 {
            let below = &levels[levels.len() - 1];
            let level = below.chunks(WIDTH).map(|children| {
                let mut node = Node::default();
                children.iter().enumerate().for_each(|(i, child)| node.set(i, child.around()));
                node
            });
            levels.push(level.collect());
        }
        Tree { items, levels, origin }
    }

    /// The number of nodes of the lowest level.
    pub(super) fn groups(&self) -> usize {
        self.levels[0].len()
    }

    /// Calls `visit` for primitives of the lowest node `group` and those of `others` whose boxes meet. Where `others` is this tree
    /// itself, each pair comes once, in either order.
    #[inline(always)]
    pub(super) fn meeting(
        &self,
        group: usize,
        others: &Tree,
        stack: &mut Vec<(usize, usize)>,
        mut visit: impl FnMut(u32, u32),
    ) {
        let itself = std::ptr::eq(self, others);
        let own = &self.levels[0][group];
        let around = own.around();
        stack.push((others.levels.len() - 1, 0));
        while let Some((level, index)) = stack.pop() {
            let Some(node) = others.levels[level].get(index) else { continue };
            for i in bits(node.meets(around)) {
                let child = WIDTH * index + i;
                if level > 0 {
                    // Nodes before this one have met it already.
                    if !itself || (child + 1) << (3 * (level - 1)) > group {
                        stack.push((level - 1, child));
                    }
                    continue;
                }
                let earlier = if itself && index == group { (1 << i) - 1 } else { u32::MAX };
                for j in bits(own.meets(node.slot(i)) & earlier) {
                    visit(self.items[WIDTH * group + j], others.items[child]);
                }
            }
        }
    }

    /// The least of what `squared` says of primitives, and the first primitive that has it: those are asked whose box may be as near to
    /// `p`. `squared`: the squared distance of a primitive from `p`. None where nothing is less than infinitely far.
    pub(super) fn nearest(&self, p: [f64; 3], mut squared: impl FnMut(u32) -> f64) -> Option<(f64, u32)> {
        let p: [f64; 3] = std::array::from_fn(|k| p[k] - self.origin[k]);
        let mut best = (f64::INFINITY, u32::MAX);
        // Of numbers that are not negative, bits ascend as they do.
        let mut queue = BinaryHeap::from([Reverse((0, self.levels.len() - 1, 0))]);
        while let Some(Reverse((bound, level, index))) = queue.pop().filter(|next| next.0.0 <= best.0.to_bits()) {
            let Some(node) = self.levels[level].get(index) else { continue };
            for i in 0..WIDTH {
                let child = WIDTH * index + i;
                let [low, high] = node.slot(i);
                let gap = |k: usize| (f64::from(low[k]) - p[k]).max(p[k] - f64::from(high[k])).max(0.0);
                let bound =
                    ((gap(0) * gap(0) + gap(1) * gap(1) + gap(2) * gap(2)) * (1.0 - 1e-12)).to_bits().max(bound);
                if bound > best.0.to_bits() {
                } else if level > 0 {
                    queue.push(Reverse((bound, level - 1, child)));
                } else if let Some(&item) = self.items.get(child) {
                    let squared = squared(item);
                    if squared < best.0 || (squared == best.0 && item < best.1) {
                        best = (squared, item);
                    }
                }
            }
        }
        (best.0 < f64::INFINITY).then_some(best)
    }
}

/// The box in 32 bits, rounded outward. Rounding errs by half of 2^-23 of a number, and the distance of a primitive by less than 4e-15 of
/// its length.
#[inline(always)]
fn outward([low, high]: Bounds, margin: f64, origin: [f64; 3]) -> Slot {
    let longest = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
    let end = |p: [f64; 3], sign: f64| {
        std::array::from_fn(|k| {
            let x = p[k] - origin[k] + sign * (margin + 4e-15 * longest);
            (x + sign * (x.abs() * 2.5e-7 + 1e-38)) as f32
        })
    };
    [end(low, -1.0), end(high, 1.0)]
}
