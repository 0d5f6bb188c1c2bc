//! Which elements touch which vertices, by ranges of vertices: the common start of edges, duals and Laplacians.
//!
//! Sorting all pairs of corners of a mesh would move about twelve pairs a tet through memory, several times. Here each
//! element is listed once for each range of vertices that it touches, and a range is small enough that all that is known
//! of its vertices stays in a core's cache while one thread works on it. Ranges depend on the number of vertices alone,
//! and within one the elements ascend, so that results depend on neither the threads nor the chunks.

use crate::parallel;
use std::ops::Range;

/// The fewest vertices a range, where they are not many: their rows of about 16 numbers fill a part of a second-level cache.
const LEAST_WIDTH: usize = 1 << 10;
/// The most ranges: their counters, one set a chunk, stay in a second-level cache.
const MOST_RANGES: usize = 1 << 14;
/// Fewer elements are not worth another chunk.
const LEAST_CHUNK: usize = 1 << 14;
/// More would not fit into the numbers of [`Chunk::listed`].
const MOST_CHUNK: usize = 8 << 24;

/// Elements by the ranges of vertices that they touch.
///
/// Memory: 4 bytes for each range of each eight consecutive elements. That is one byte an element where numbers are near
/// to each other in space, and 4 bytes a corner at the worst.
pub(crate) struct Incidence {
    vertices: usize,
    /// A range holds 2^width_log vertices.
    width_log: u32,
    chunks: Vec<Chunk>,
}

/// Consecutive elements, listed by range.
struct Chunk {
    first: usize,
    starts: Vec<u32>,
    /// Eight consecutive elements each: which, counted from `first`, in the upper 24 bits, and a bit for each below.
    listed: Vec<u32>,
}

impl Incidence {
    /// Of `count` elements between `vertices` vertices; `corners` gives those of an element, all in range. Cost O(corners), in
    /// parallel; `corners` is called twice an element.
    pub(crate) fn new<C: AsRef<[u32]>>(
        vertices: usize,
        count: usize,
        corners: impl Fn(usize) -> C + Sync,
    ) -> Incidence {
        Incidence::with_width(LEAST_WIDTH, vertices, count, corners)
    }

    /// The same with `width` vertices a range at least.
    pub(crate) fn with_width<C: AsRef<[u32]>>(
        width: usize,
        vertices: usize,
        count: usize,
        corners: impl Fn(usize) -> C + Sync,
    ) -> Incidence {
        let width_log = vertices.div_ceil(MOST_RANGES).max(width).next_power_of_two().ilog2();
        let ranges = vertices.div_ceil(1 << width_log);
        let chunk = count.div_ceil(4 * rayon::current_num_threads()).clamp(LEAST_CHUNK, MOST_CHUNK);
        let list = |first: usize| {
            let elements = 0..chunk.min(count - first);
            let mut last = vec![u32::MAX; ranges]; // the last eight elements listed for a range
            let mut starts = vec![0u32; ranges + 1];
            for e in elements.clone() {
                for &v in corners(first + e).as_ref() {
                    let range = v as usize >> width_log;
                    starts[range + 1] += u32::from(last[range] != e as u32 / 8);
                    last[range] = e as u32 / 8;
                }
            }
            (0..ranges).for_each(|r| starts[r + 1] += starts[r]);
            let mut listed = vec![0u32; starts[ranges] as usize];
            let mut next = starts.clone();
            last.fill(u32::MAX);
            for e in elements {
                for &v in corners(first + e).as_ref() {
                    let range = v as usize >> width_log;
                    next[range] += u32::from(last[range] != e as u32 / 8);
                    last[range] = e as u32 / 8;
                    listed[next[range] as usize - 1] |= (e as u32 / 8) << 8 | 1 << (e % 8);
                }
            }
            Chunk { first, starts, listed }
        };
        let chunks = parallel::map((0..count).step_by(chunk), list);
        Incidence { vertices, width_log, chunks }
    }

    /// Works on the ranges in parallel: calls `each` with scratch space, the vertices of a range, and the elements that
    /// touch them. Returns the results in the order of the ranges.
    pub(crate) fn by_range<S, R: Send>(
        &self,
        scratch: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, Range<u32>, &Touching) -> R + Sync,
    ) -> Vec<R> {
        let ranges = self.vertices.div_ceil(1 << self.width_log);
        parallel::map_with(ranges, scratch, |scratch, range| each(scratch, self.vertices(range), &self.of(range)))
    }

    fn vertices(&self, range: usize) -> Range<u32> {
        let width = 1 << self.width_log;
        (range * width) as u32..self.vertices.min((range + 1) * width) as u32
    }

    fn of(&self, range: usize) -> Touching<'_> {
        Touching { chunks: &self.chunks, range }
    }
}

/// The elements that touch a range of vertices.
pub(crate) struct Touching<'a> {
    chunks: &'a [Chunk],
    range: usize,
}

impl Touching<'_> {
    /// Visits the elements, ascending.
    #[inline]
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize)) {
        for chunk in self.chunks {
            for &eight in &chunk.listed[chunk.starts[self.range] as usize..chunk.starts[self.range + 1] as usize] {
                let (first, mut bits) = (chunk.first + (eight >> 8) as usize * 8, eight & 0xff);
                while bits != 0 {
                    visit(first + bits.trailing_zeros() as usize);
                    bits &= bits - 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_lists_each_element_that_touches_it_once() {
        let (vertices, count) = (10_000, 70_000);
        let near = |e: usize| [e as u32 / 8, (e as u32 / 8 + 1000) % 10_000, 9999];
        let far = |e: usize| [0, 1, 2].map(|k| (3 * e as u32 + k).wrapping_mul(2_654_435_761) % 10_000);
        for corners in [near as fn(usize) -> [u32; 3], far] {
            let incidence = Incidence::new(vertices, count, corners);
            let listed = incidence.by_range(
                || (),
                |(), range, touching| {
                    let mut listed = Vec::new();
                    touching.for_each(|e| listed.push(e));
                    (range, listed)
                },
            );
            assert_eq!(listed.len(), 10);
            for (range, listed) in listed {
                let touches = |e: &usize| corners(*e).iter().any(|v| range.contains(v));
                assert_eq!(listed, (0..count).filter(touches).collect::<Vec<_>>(), "{range:?}");
            }
        }
    }
}
