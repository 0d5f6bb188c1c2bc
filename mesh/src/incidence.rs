//! Which elements touch which vertices, by ranges of vertices: the common start of edges, graphs and Laplacians.
//!
//! Sorting all pairs of corners of a mesh would move about twelve pairs a tet through memory, several times. Here each
//! element is listed once for each range of vertices that it touches, and a range is small enough that all that is known
//! of its vertices stays in a core's cache while one thread works on it. Ranges depend on the number of vertices alone,
//! and within one the elements ascend, so that results depend on neither the threads nor the chunks.

use rayon::prelude::*;
use std::ops::Range;

/// The fewest vertices a range: their rows of about 16 numbers fill a part of a second-level cache.
const LEAST_WIDTH: usize = 1 << 10;
/// The most ranges: their counters, one set a chunk, stay in cache and small.
const MOST_RANGES: usize = 1 << 12;
/// Fewer elements are not worth another chunk.
const LEAST_CHUNK: usize = 1 << 14;

/// Elements by the ranges of vertices that they touch. Memory: 4 bytes for each range of each element.
pub(crate) struct Incidence {
    vertices: usize,
    /// A range holds 2^width_log vertices.
    width_log: u32,
    chunks: Vec<Chunk>,
}

/// Consecutive elements, listed by range.
struct Chunk {
    starts: Vec<u32>,
    elements: Vec<u32>,
}

impl Incidence {
    /// Of `count` elements between `vertices` vertices; `corners` gives those of an element, all in range.
    pub(crate) fn new<C: AsRef<[u32]>>(
        vertices: usize,
        count: usize,
        corners: impl Fn(usize) -> C + Sync,
    ) -> Incidence {
        let width_log = vertices.div_ceil(MOST_RANGES).max(LEAST_WIDTH).next_power_of_two().ilog2();
        let ranges = vertices.div_ceil(1 << width_log);
        let chunk = count.div_ceil(4 * rayon::current_num_threads()).max(LEAST_CHUNK);
        let chunks = (0..count.div_ceil(chunk))
            .into_par_iter()
            .map(|c| {
                let elements = c * chunk..count.min((c + 1) * chunk);
                let mut last = vec![u32::MAX; ranges]; // the last element listed for a range
                let mut starts = vec![0u32; ranges + 1];
                for e in elements.clone() {
                    for &v in corners(e).as_ref() {
                        let range = v as usize >> width_log;
                        starts[range + 1] += u32::from(last[range] != e as u32);
                        last[range] = e as u32;
                    }
                }
                (0..ranges).for_each(|r| starts[r + 1] += starts[r]);
                let mut next = starts.clone();
                let mut listed = vec![0u32; starts[ranges] as usize];
                last.fill(u32::MAX);
                for e in elements {
                    for &v in corners(e).as_ref() {
                        let range = v as usize >> width_log;
                        if last[range] != e as u32 {
                            last[range] = e as u32;
                            listed[next[range] as usize] = e as u32;
                            next[range] += 1;
                        }
                    }
                }
                Chunk { starts, elements: listed }
            })
            .collect();
        Incidence { vertices, width_log, chunks }
    }

    /// The ranges of vertices, in parallel and in order: calls `each` with scratch space, the vertices, and the ascending
    /// elements that touch them.
    pub(crate) fn by_range<S, R: Send>(
        &self,
        scratch: impl Fn() -> S + Sync + Send,
        each: impl Fn(&mut S, Range<u32>, &[&[u32]]) -> R + Sync + Send,
    ) -> Vec<R> {
        let width = 1usize << self.width_log;
        (0..self.vertices.div_ceil(width))
            .into_par_iter()
            .map_init(scratch, |scratch, range| {
                let vertices = (range * width) as u32..self.vertices.min((range + 1) * width) as u32;
                let parts: Vec<&[u32]> = self
                    .chunks
                    .iter()
                    .map(|c| &c.elements[c.starts[range] as usize..c.starts[range + 1] as usize])
                    .collect();
                each(scratch, vertices, &parts)
            })
            .collect()
    }
}

/// Copies the parts one behind the other, in parallel.
pub(crate) fn concat<T: Copy + Default + Send + Sync>(parts: &[Vec<T>]) -> Vec<T> {
    let mut all = vec![T::default(); parts.iter().map(Vec::len).sum()];
    let mut rest = &mut all[..];
    let mut places = Vec::with_capacity(parts.len());
    for part in parts {
        let (own, others) = rest.split_at_mut(part.len());
        places.push(own);
        rest = others;
    }
    places.into_par_iter().zip(parts).for_each(|(place, part)| place.copy_from_slice(part));
    all
}
