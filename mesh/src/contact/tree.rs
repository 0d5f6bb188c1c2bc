//! A tree of boxes over primitives, eight children a node.
//!
//! It has no pointers: primitives are sorted along a curve through their middles, and each eight of them, and then of nodes, share a
//! node. So it is made in the time of a sort and stays good whatever moves where. Boxes are in 32 bits, rounded outward.

use crate::order::Curve;
use crate::parallel;

/// Children of a node: as many as one vector of the CPU compares.
const WIDTH: usize = 8;
/// Nodes that are worth a piece of a parallel loop.
const PIECE: usize = 128;

/// A box, from its lowest to its highest corner.
pub(super) type Bounds = [[f64; 3]; 2];

/// The box of some points.
#[inline(always)]
pub(super) fn bounds<const K: usize>(points: [[f64; 3]; K]) -> Bounds {
    let mut bounds = [points[0]; 2];
    for p in &points[1..] {
        for k in 0..3 {
            bounds[0][k] = bounds[0][k].min(p[k]);
            bounds[1][k] = bounds[1][k].max(p[k]);
        }
    }
    bounds
}

/// The boxes of up to eight children, a coordinate after the other; those that are missing meet nothing.
#[derive(Clone, Copy)]
struct Node {
    low: [[f32; WIDTH]; 3],
    high: [[f32; WIDTH]; 3],
}

impl Default for Node {
    fn default() -> Node {
        Node { low: [[f32::INFINITY; WIDTH]; 3], high: [[f32::NEG_INFINITY; WIDTH]; 3] }
    }
}

/// One of the boxes of a node.
type Slot = [[f32; 3]; 2];

impl Node {
    /// A bit for each child whose box meets the other.
    #[inline(always)]
    fn meets(&self, [low, high]: Slot) -> u32 {
        let mut hits = [0u32; WIDTH];
        for i in 0..WIDTH {
            let apart = |k: usize| (self.low[k][i] > high[k]) | (self.high[k][i] < low[k]);
            hits[i] = u32::from(!(apart(0) | apart(1) | apart(2))) << i;
        }
        hits.iter().fold(0, |all, hit| all | hit)
    }

    fn slot(&self, i: usize) -> Slot {
        [self.low, self.high].map(|end| end.map(|row| row[i]))
    }

    fn set(&mut self, i: usize, [low, high]: Slot) {
        for k in 0..3 {
            (self.low[k][i], self.high[k][i]) = (low[k], high[k]);
        }
    }

    /// The box around all children.
    fn around(&self) -> Slot {
        [
            self.low.map(|row| row.into_iter().fold(f32::INFINITY, f32::min)),
            self.high.map(|row| row.into_iter().fold(f32::NEG_INFINITY, f32::max)),
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
    items: Vec<u32>,
    /// Nodes, the lowest level first, up to a level of one. Child `i` of node `g` is node `8 g + i` of the level below.
    levels: Vec<Vec<Node>>,
    origin: [f64; 3],
}

/// Primitives `0..count` along a curve through the middles of their boxes.
pub(super) fn order(count: usize, bounds: impl Fn(usize) -> Bounds + Sync) -> Vec<u32> {
    let middles = parallel::collect(count, |i| {
        let [low, high] = bounds(i);
        std::array::from_fn(|k| low[k] + 0.5 * (high[k] - low[k]))
    });
    Curve::Hilbert.order(&middles).order().to_vec()
}

impl Tree {
    /// The tree of primitives with the boxes `bounds`, each made larger by `margin` on all sides. `origin`: some point among
    /// them, the same for trees that are to be compared.
    pub(super) fn new(items: Vec<u32>, bounds: impl Fn(usize) -> Bounds + Sync, margin: f64, origin: [f64; 3]) -> Tree {
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
    pub(super) fn meeting(&self, group: usize, others: &Tree, mut visit: impl FnMut(u32, u32)) {
        let itself = std::ptr::eq(self, others);
        let own = &self.levels[0][group];
        let around = own.around();
        let mut stack = vec![(others.levels.len() - 1, 0)];
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
                let later = if itself && index == group { (1 << i) - 1 } else { u32::MAX };
                for j in bits(own.meets(node.slot(i)) & later) {
                    visit(self.items[WIDTH * group + j], others.items[child]);
                }
            }
        }
    }
}

/// The box in 32 bits, rounded outward. Rounding errs by half of 2^-23 of a number.
#[inline(always)]
fn outward([low, high]: Bounds, margin: f64, origin: [f64; 3]) -> Slot {
    let end = |p: [f64; 3], sign: f64| {
        std::array::from_fn(|k| {
            let x = (p[k] - origin[k] + sign * margin).clamp(-1e38, 1e38);
            (x + sign * (x.abs() * 2.5e-7 + 1e-38)) as f32
        })
    };
    [end(low, -1.0), end(high, 1.0)]
}
