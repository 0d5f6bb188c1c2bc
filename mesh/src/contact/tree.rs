//! A tree of boxes over primitives, sixteen children a node.
//!
//! It has no pointers: primitives are sorted along a curve through their middles, and each sixteen of them, and then of nodes, share a
//! node. The order stays while a surface moves, as what is near at rest mostly stays near, and only boxes are made anew. They are in 32
//! bits, rounded outward.

use crate::order::Curve;
use crate::parallel;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use wide::{f32x16, u32x16};

/// Children of a node: as many as one vector of the widest CPUs compares.
const WIDTH: usize = 16;

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

/// The boxes of up to sixteen children, a coordinate after the other; those that are missing meet nothing.
#[derive(Clone, Copy)]
struct Node {
    low: [f32x16; 3],
    high: [f32x16; 3],
}

impl Default for Node {
    fn default() -> Node {
        Node { low: [f32x16::splat(f32::INFINITY); 3], high: [f32x16::splat(f32::NEG_INFINITY); 3] }
    }
}

/// One of the boxes of a node, from its lowest to its highest corner.
pub(super) type Slot = [[f32; 3]; 2];

impl Node {
    /// A bit for each child whose box meets the other.
    #[inline(always)]
    fn meets(&self, [low, high]: Slot) -> u32 {
        let [x, y, z] = [0, 1, 2]
            .map(|k| self.low[k].simd_le(f32x16::splat(high[k])) & self.high[k].simd_ge(f32x16::splat(low[k])));
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

/// By how much the distance of a primitive errs, in its lengths, at most.
pub(super) const ERROR: f64 = 4e-15;

/// The names of up to three corners of sixteen primitives, one of each after the other.
type Names = [u32x16; 3];

/// Primitives along a curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Order {
    items: Arc<[u32]>,
    /// Of the corners of each [`WIDTH`] of them.
    names: Arc<[Names]>,
}

impl Order {
    /// Primitives `0..count` with the boxes `bounds`. `corners`: the names of those of a primitive, the last repeated where it has fewer.
    pub(super) fn new(
        count: usize,
        bounds: &(dyn Fn(usize) -> Bounds + Sync),
        corners: &(dyn Fn(usize) -> [u32; 3] + Sync),
    ) -> Order {
        let middles = parallel::collect(count, |i| {
            let [low, high] = bounds(i);
            std::array::from_fn(|k| low[k] + 0.5 * (high[k] - low[k]))
        });
        let curve = Curve::Hilbert.order(&middles);
        let items = curve.order();
        let names = items.chunks(WIDTH).map(|items| {
            let corners = |lane: usize| items.get(lane).map_or([0; 3], |&item| corners(item as usize));
            let corners: [[u32; 3]; WIDTH] = std::array::from_fn(corners);
            [0, 1, 2].map(|k| u32x16::from(corners.map(|corners| corners[k])))
        });
        Order { names: names.collect(), items: items.into() }
    }
}

/// Primitives by place.
pub(super) struct Tree {
    /// Which primitive each slot of the lowest nodes has.
    order: Order,
    /// Nodes, the lowest level first, up to a level of one. Child `i` of node `g` is node `16 g + i` of the level below.
    levels: Vec<Vec<Node>>,
    origin: [f64; 3],
}

impl Tree {
    /// The tree of primitives in an order, with boxes as [`outward`] has them. `origin`: what those are from, the same for trees that are to be
    /// compared.
    pub(super) fn new(order: Order, boxes: &(dyn Fn(usize) -> Slot + Sync), origin: [f64; 3]) -> Tree {
        let items = &order.items;
        let mut lowest = vec![Node::default(); items.len().div_ceil(WIDTH)];
        parallel::fill(&mut lowest, |g| {
            let mut node = Node::default();
            let items = items[g * WIDTH..].iter().take(WIDTH);
            items.enumerate().for_each(|(i, &item)| node.set(i, boxes(item as usize)));
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
        Tree { order, levels, origin }
    }

    /// The number of nodes of the lowest level.
    pub(super) fn groups(&self) -> usize {
        self.levels[0].len()
    }

    /// Calls `visit` for primitives of the lowest node `group`, of `OWN` corners, and those of `others`, of `OTHERS`, whose boxes meet, and which
    /// share no corner. Where `others` is this tree itself, each pair comes once, in either order.
    #[inline(always)]
    pub(super) fn meeting<const OWN: usize, const OTHERS: usize>(
        &self,
        group: usize,
        others: &Tree,
        stack: &mut Vec<(usize, usize)>,
        mut visit: impl FnMut(u32, u32),
    ) {
        let itself = std::ptr::eq(self, others);
        let (own, names) = (&self.levels[0][group], &self.order.names[group]);
        let around = own.around();
        stack.push((others.levels.len() - 1, 0));
        while let Some((level, index)) = stack.pop() {
            let Some(node) = others.levels[level].get(index) else { continue };
            for i in bits(node.meets(around)) {
                let child = WIDTH * index + i;
                if level > 0 {
                    // Nodes before this one have met it already.
                    if !itself || (child + 1) << (4 * (level - 1)) > group {
                        stack.push((level - 1, child));
                    }
                    continue;
                }
                let earlier = if itself && index == group { (1 << i) - 1 } else { u32::MAX };
                let meeting = own.meets(node.slot(i)) & earlier;
                if meeting == 0 {
                    continue;
                }
                let mut shared = u32x16::splat(0);
                for other in &others.order.names[index][..OTHERS] {
                    let other = u32x16::splat(other.as_array()[i]);
                    names[..OWN].iter().for_each(|own| shared |= own.simd_eq(other));
                }
                for j in bits(meeting & !shared.to_bitmask()) {
                    visit(self.order.items[WIDTH * group + j], others.order.items[child]);
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
                } else if let Some(&item) = self.order.items.get(child) {
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

/// The box in 32 bits from `origin`, larger by `margin` on all sides, rounded outward. Rounding errs by half of 2^-23 of a number, and the distance of a primitive by [`ERROR`].
#[inline(always)]
pub(super) fn outward([low, high]: Bounds, margin: f64, origin: [f64; 3]) -> Slot {
    let longest = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
    let end = |p: [f64; 3], sign: f64| {
        std::array::from_fn(|k| {
            let x = p[k] - origin[k] + sign * (margin + ERROR * longest);
            (x + sign * (x.abs() * 2.5e-7 + 1e-38)) as f32
        })
    };
    [end(low, -1.0), end(high, 1.0)]
}
