//! Recursive coordinate bisection.
//!
//! A region of vertices is cut by a plane across an axis, its halves likewise, until each is one part. All regions of a
//! level are cut together:
//!
//! 1. One of 64 vertices or so is in a *sample*. It says for each region which axis to cut (the one along which the
//!    sample is thinnest around the cut) and between which places the plane lies: the *bracket*.
//! 2. A pass over all vertices counts those before the bracket and gathers those inside it, one in a hundred or so.
//!    It goes by blocks of consecutive vertices: most lie wholly in one region, before or behind the bracket.
//! 3. The gathered vertices that keep the balance are sorted by place along the axis, then by number. From their edges
//!    follows how many edges each position of the plane cuts. The plane takes the one of fewest: on a grid, between two
//!    layers instead of through one.
//!
//! So the split is that of a full sort, but only a small window is ever sorted. Places are compared exactly and ties go
//! by number, so the result depends neither on threads nor on the order in which they finish.
//!
//! Sources: M. Berger and S. Bokhari, "A partitioning strategy for nonuniform problems on multiprocessors", 1987 (the
//! method); R. Floyd and R. Rivest, "Expected time bounds for selection", 1975 (bracketing by a sample).

use crate::graph::Graph;
use crate::parallel;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::Range;

/// Vertices for each of the sample, at most.
const STRIDE: usize = 64;

/// Sample vertices that each part has, if there are enough: below, brackets become wide.
const LEAST_SAMPLE: usize = 256;

/// Sample vertices that choose the axis of a region, at most.
const JUDGES: usize = 1 << 12;

/// Vertices of a block: consecutive on the curve, so close together that most planes miss their box.
const BLOCK: usize = 32;

/// The fewest blocks that are worth a task.
const RUN: usize = 1 << 10;

/// The owner of a block whose vertices have different ones.
const MIXED: u32 = u32::MAX;

/// The part of each vertex, shape `[n]`. No part has more than `capacity` vertices, which is at least n / parts.
pub(super) fn bisect(graph: &Graph, points: &[[f64; 3]], parts: usize, capacity: usize) -> Vec<u32> {
    let mut owners = Owners::new(points);
    let mut ranks = vec![0u32; graph.len()];
    let mut planes: Vec<Option<Plane>> = vec![None; parts];
    let mut regions = vec![Region { parts: 0..parts as u32, size: graph.len(), sample: sample(graph.len(), parts) }];
    loop {
        regions.retain(|region| region.parts.len() > 1 && region.size > 0);
        if regions.is_empty() {
            break;
        }
        let windows = gather(&mut owners, points, &planes, &regions, capacity);
        for window in &windows {
            window.keys.iter().enumerate().for_each(|(i, key)| ranks[key.vertex as usize] = i as u32);
        }
        let cut = |(region, window): (&Region, &Window)| {
            let crossing = window.crossing(graph, points, &owners, region.parts.start, &ranks);
            let even = region.split(capacity).even;
            let cost = |i: &usize| (crossing[*i], (window.below + i).abs_diff(even));
            let i = (0..window.keys.len()).min_by_key(cost).expect("the even cut is in the window");
            (window.below + i, Plane { axis: window.axis, first: window.keys[i], above: region.middle() })
        };
        let cuts = parallel::map(regions.iter().zip(&windows), cut);
        planes.fill(None);
        let mut halves = Vec::with_capacity(2 * regions.len());
        for (region, (size, plane)) in regions.into_iter().zip(cuts) {
            planes[region.parts.start as usize] = Some(plane);
            let (above, below) = region.sample.iter().partition(|&&v| plane.is_above(v, points));
            let right = Region { parts: plane.above..region.parts.end, size: region.size - size, sample: above };
            halves.push(Region { parts: region.parts.start..plane.above, size, sample: below });
            halves.push(right);
        }
        regions = halves;
    }
    owners.sweep(points, &planes, &vec![None; parts]);
    owners.into_vec()
}

/// A vertex and its place along an axis; ties between vertices go by number, so that no two keys are equal.
#[derive(Clone, Copy)]
struct Key {
    place: f64,
    vertex: u32,
}

impl Key {
    fn new(points: &[[f64; 3]], vertex: u32, axis: usize) -> Key {
        // Adding zero turns -0.0 into 0.0, so that equal coordinates compare equal.
        Key { place: points[vertex as usize][axis] + 0.0, vertex }
    }

    fn cmp(&self, other: &Key) -> Ordering {
        self.place.total_cmp(&other.place).then(self.vertex.cmp(&other.vertex))
    }
}

/// Vertices that are not yet cut into parts.
struct Region {
    /// Its future parts; their first is the owner of its vertices for now.
    parts: Range<u32>,
    size: usize,
    /// Those of its vertices that are in the sample.
    sample: Vec<u32>,
}

/// How many vertices may go to the first half of a region.
struct Split {
    /// As many as its share of parts.
    even: usize,
    least: usize,
    most: usize,
}

impl Region {
    /// The first part of the second half.
    fn middle(&self) -> u32 {
        self.parts.start + self.parts.len() as u32 / 2
    }

    /// What the region lacks of `capacity` vertices a part is shared between the levels below.
    fn split(&self, capacity: usize) -> Split {
        let parts = self.parts.len();
        let (left, right) = (parts / 2, parts - parts / 2);
        let levels = parts.next_power_of_two().ilog2() as usize;
        // A fiftieth is more than a layer of a grid of 50, and windows stay small.
        let room = ((parts * capacity).saturating_sub(self.size) / levels).min(self.size / 50);
        let even = (self.size as u128 * left as u128 / parts as u128) as usize;
        Split { even, least: even.saturating_sub(room * right / parts), most: even + room * left / parts }
    }

    /// The axis to cut, and where the sample sees the cut.
    fn bracket(&self, points: &[[f64; 3]], capacity: usize) -> Bracket {
        let Split { even, least, most } = self.split(capacity);
        let judges: Vec<u32> = self.sample.iter().copied().step_by(self.sample.len().div_ceil(JUDGES).max(1)).collect();
        let width = |axis: usize| {
            // Between the places an eighth of the sample apart: the wider, the fewer vertices at the cut.
            let mut places: Vec<f64> = judges.iter().map(|&v| points[v as usize][axis]).collect();
            let Some(last) = places.len().checked_sub(1) else { return 0.0 };
            let middle = scale(even, self.size, places.len());
            let reach = places.len() / 16 + 1;
            let high = *places.select_nth_unstable_by((middle + reach).min(last), f64::total_cmp).1;
            let low = *places.select_nth_unstable_by(middle.saturating_sub(reach), f64::total_cmp).1;
            high * 0.5 - low * 0.5 // halved first: the extent of finite points can exceed the largest float
        };
        let widths = [0, 1, 2].map(width);
        let axis = (1..3).fold(0, |best, k| if widths[k] > widths[best] { k } else { best });
        let mut places: Vec<f64> = self.sample.iter().map(|&v| points[v as usize][axis]).collect();
        let m = places.len();
        // Two standard deviations of the median of a random sample; ours is spread along the curve and better.
        let margin = m.isqrt() + 2;
        let mut at = |i: usize| *places.select_nth_unstable_by(i, f64::total_cmp).1;
        let high = scale(most, self.size, m) + margin;
        let low = scale(least, self.size, m).checked_sub(margin);
        let high = if high < m { at(high) } else { f64::INFINITY };
        Bracket { axis, low: low.map_or(f64::NEG_INFINITY, &mut at), high }
    }
}

/// The rank among `sample` that stands for `rank` among `size`.
fn scale(rank: usize, size: usize, sample: usize) -> usize {
    (rank as u128 * sample as u128 / size as u128) as usize
}

/// One vertex of every run, at a place in it that varies: on grids, a fixed one would see one corner of every cell.
fn sample(n: usize, parts: usize) -> Vec<u32> {
    let stride = (n / LEAST_SAMPLE / parts).clamp(1, STRIDE);
    // Fibonacci hashing: the multiplier is 2^64 over the golden ratio.
    let shift = |run: usize| ((run as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % stride;
    (0..n / stride).map(|run| (run * stride + shift(run)) as u32).collect()
}

/// Where the plane through a region lies, at least and at most.
#[derive(Clone, Copy)]
struct Bracket {
    axis: usize,
    low: f64,
    high: f64,
}

/// A cut: vertices before `first` stay, the others go to the part `above`.
#[derive(Clone, Copy)]
struct Plane {
    axis: usize,
    first: Key,
    above: u32,
}

impl Plane {
    fn is_above(&self, v: u32, points: &[[f64; 3]]) -> bool {
        Key::new(points, v, self.axis).cmp(&self.first).is_ge()
    }
}

/// The window of every region: the vertices that may come first above its plane.
fn gather(
    owners: &mut Owners,
    points: &[[f64; 3]],
    planes: &[Option<Plane>],
    regions: &[Region],
    capacity: usize,
) -> Vec<Window> {
    let narrow = parallel::map(regions, |region| region.bracket(points, capacity));
    let mut brackets: Vec<Option<Bracket>> = vec![None; planes.len()];
    for (region, bracket) in regions.iter().zip(&narrow) {
        brackets[region.parts.start as usize] = Some(*bracket);
    }
    let mut found = owners.sweep(points, planes, &brackets);
    let misled = |window: &Window, region: &Region| {
        !(window.below..window.below + window.keys.len()).contains(&region.split(capacity).even)
    };
    // Where the sample misled, the bracket becomes the whole line.
    let mut whole: Vec<Option<Bracket>> = vec![None; planes.len()];
    for region in regions {
        let k = region.parts.start as usize;
        if misled(&found[k], region) {
            whole[k] = brackets[k].map(|b| Bracket { low: f64::NEG_INFINITY, high: f64::INFINITY, ..b });
        }
    }
    if whole.iter().any(Option::is_some) {
        let again = owners.sweep(points, &vec![None; planes.len()], &whole);
        for ((window, again), _) in found.iter_mut().zip(again).zip(&whole).filter(|(_, whole)| whole.is_some()) {
            *window = again;
        }
    }
    let mut windows: Vec<Window> =
        regions.iter().map(|region| std::mem::take(&mut found[region.parts.start as usize])).collect();
    parallel::each(windows.iter_mut().zip(regions).zip(narrow), |((window, region), bracket)| {
        window.axis = bracket.axis;
        window.trim(&region.split(capacity));
    });
    windows
}

/// Vertices of a region around its plane.
#[derive(Clone, Default)]
struct Window {
    axis: usize,
    /// How many vertices of the region come before.
    below: usize,
    keys: Vec<Key>,
}

impl Window {
    fn take(&mut self, v: u32, points: &[[f64; 3]], bracket: &Bracket) {
        let key = Key::new(points, v, bracket.axis);
        if key.place < bracket.low {
            self.below += 1;
        } else if key.place <= bracket.high {
            self.keys.push(key);
        }
    }

    /// Keeps only the vertices that may come first above the plane, sorted.
    fn trim(&mut self, split: &Split) {
        let end = (split.most + 1).saturating_sub(self.below);
        if end < self.keys.len() {
            self.keys.select_nth_unstable_by(end, Key::cmp);
            self.keys.truncate(end);
        }
        let start = split.least.saturating_sub(self.below);
        if start > 0 {
            self.keys.select_nth_unstable_by(start, Key::cmp);
            self.keys.drain(..start);
            self.below += start;
        }
        self.keys.par_sort_unstable_by(Key::cmp);
    }

    /// For each `i`, the edges cut when the first `i` of the window are below the plane, but for a constant.
    ///
    /// `owner`: that of the region. `ranks`: for vertices of the window, their place in it.
    fn crossing(&self, graph: &Graph, points: &[[f64; 3]], owners: &Owners, owner: u32, ranks: &[u32]) -> Vec<i64> {
        let m = self.keys.len();
        let [Some(lowest), Some(highest)] = [self.keys.first(), self.keys.last()] else { return Vec::new() };
        let mut cut = vec![0i64; m + 2]; // differences first
        // In the order of memory, which is several times faster than in that of the window.
        let mut vertices: Vec<u32> = self.keys.iter().map(|key| key.vertex).collect();
        vertices.sort_unstable();
        for v in vertices {
            let i = ranks[v as usize] as usize;
            for &u in graph.neighbors(v) {
                let other = Key::new(points, u, self.axis);
                // The edge is cut by the counts that leave its ends on different sides: those in `from..to`.
                let (from, to) = if other.cmp(lowest).is_lt() {
                    (0, i + 1)
                } else if other.cmp(highest).is_gt() {
                    (i + 1, m + 1)
                } else {
                    (i + 1, ranks[u as usize] as usize + 1) // empty when seen from the upper end: counted once
                };
                if from < to && owners.of(u) == owner {
                    cut[from] += 1;
                    cut[to] -= 1;
                }
            }
        }
        let mut sum = 0;
        for edges in &mut cut {
            sum += *edges;
            *edges = sum;
        }
        cut
    }
}

/// A block of consecutive vertices. As long as no plane meets its box, all have one owner.
#[derive(Clone)]
struct Block {
    owner: u32,
    low: [f64; 3],
    high: [f64; 3],
}

impl Block {
    fn new(points: &[[f64; 3]]) -> Block {
        let mut block = Block { owner: 0, low: [f64::INFINITY; 3], high: [f64::NEG_INFINITY; 3] };
        for p in points {
            block.low = std::array::from_fn(|k| block.low[k].min(p[k]));
            block.high = std::array::from_fn(|k| block.high[k].max(p[k]));
        }
        block
    }
}

/// The owner of every vertex so far.
struct Owners {
    blocks: Vec<Block>,
    /// Of the vertices in mixed blocks; other entries are out of date.
    single: Vec<u32>,
}

impl Owners {
    /// All vertices belong to part 0.
    fn new(points: &[[f64; 3]]) -> Owners {
        let blocks = |points: &[[f64; 3]]| points.chunks(BLOCK).map(Block::new).collect::<Vec<Block>>();
        Owners { blocks: parallel::map(points.chunks(RUN * BLOCK), blocks).concat(), single: vec![0; points.len()] }
    }

    fn of(&self, v: u32) -> u32 {
        match self.blocks[v as usize / BLOCK].owner {
            MIXED => self.single[v as usize],
            owner => owner,
        }
    }

    /// The owners, shape `[n]`.
    fn into_vec(mut self) -> Vec<u32> {
        let runs = self.single.chunks_mut(RUN * BLOCK).zip(self.blocks.chunks(RUN));
        parallel::each(runs, |(single, blocks)| {
            let blocks = single.chunks_mut(BLOCK).zip(blocks).filter(|(_, block)| block.owner != MIXED);
            blocks.for_each(|(single, block)| single.fill(block.owner));
        });
        self.single
    }

    /// Moves vertices above their plane to its part, then counts for each part the vertices before its bracket and
    /// gathers those inside it.
    ///
    /// `planes`, `brackets`, the result: one entry a part. The vertices of a window come in no fixed order.
    fn sweep(&mut self, points: &[[f64; 3]], planes: &[Option<Plane>], brackets: &[Option<Bracket>]) -> Vec<Window> {
        let visit = |windows: &mut [Window], b: usize, block: &mut Block, single: &mut [u32]| {
            if block.owner != MIXED
                && let Some(plane) = &planes[block.owner as usize]
                && plane.first.place <= block.high[plane.axis]
            {
                if plane.first.place < block.low[plane.axis] {
                    block.owner = plane.above;
                } else {
                    single.fill(block.owner);
                    block.owner = MIXED;
                }
            }
            let members = (b * BLOCK) as u32..;
            if block.owner == MIXED {
                for (v, owner) in members.zip(single) {
                    if let Some(plane) = planes[*owner as usize]
                        && plane.is_above(v, points)
                    {
                        *owner = plane.above;
                    }
                    if let Some(bracket) = &brackets[*owner as usize] {
                        windows[*owner as usize].take(v, points, bracket);
                    }
                }
            } else if let Some(bracket) = &brackets[block.owner as usize] {
                let window = &mut windows[block.owner as usize];
                if block.high[bracket.axis] < bracket.low {
                    window.below += single.len();
                } else if block.low[bracket.axis] <= bracket.high {
                    members.zip(single).for_each(|(v, _)| window.take(v, points, bracket));
                }
            }
        };
        // Long runs of blocks, a few for each thread: each has windows of its own, one a part, which are joined.
        let run = parallel::size(self.blocks.len(), RUN);
        let runs = self.blocks.chunks_mut(run).zip(self.single.chunks_mut(run * BLOCK));
        let parts = parallel::map((0..).step_by(run).zip(runs), |(first, (blocks, single))| {
            let mut windows = vec![Window::default(); brackets.len()];
            let blocks = (first..).zip(blocks.iter_mut().zip(single.chunks_mut(BLOCK)));
            blocks.for_each(|(b, (block, single))| visit(&mut windows, b, block, single));
            windows
        });
        let mut windows = vec![Window::default(); brackets.len()];
        for more in parts {
            for (window, more) in windows.iter_mut().zip(more) {
                window.below += more.below;
                window.keys.extend(more.keys);
            }
        }
        windows
    }
}
