//! Vertex colorings: no edge joins two vertices of one color.

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::parallel;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// A color for every vertex of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coloring {
    colors: Vec<u32>,
    sizes: Vec<u32>,
}

impl Coloring {
    /// Colors the graph greedily in the order of its ids, then evens out the sizes of the colors.
    ///
    /// First pass: the smallest color that no neighbor has. Second pass: a vertex of a color that is larger than
    /// average moves to the smallest color that no neighbor has, if that is smaller than average. The second pass never
    /// adds a color and visits each vertex once, so it ends. Returns one color per vertex, shape `[n]`, values
    /// `0..=max_degree`. Depends on the graph alone, never on threads or parts. Cost O(n + edges + n · colors).
    /// Source: greedy (Welsh and Powell 1967); vertex-centric balancing after Lu et al., "Balanced coloring for parallel
    /// computing applications", 2015.
    ///
    /// ```
    /// use meshweft_mesh::{Coloring, Graph};
    /// let square = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3], [3, 0]])?;
    /// let coloring = Coloring::balanced(&square);
    /// assert_eq!(coloring.sizes(), [2, 2]);
    /// coloring.verify(&square)?;
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn balanced(graph: &Graph) -> Coloring {
        balanced_few(graph).unwrap_or_else(|| balanced_any(graph))
    }

    /// Colors of the vertices, shape `[n]`.
    pub fn colors(&self) -> &[u32] {
        &self.colors
    }

    /// Number of vertices of each color, shape `[colors]`.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Number of colors.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// Checks that no edge joins two vertices of one color and that the sizes are right.
    ///
    /// # Errors
    /// Names the first edge or color that is wrong.
    pub fn verify(&self, graph: &Graph) -> Result<()> {
        if self.colors.len() != graph.len() {
            return Err(Error::Invalid(format!("{} colors for {} vertices", self.colors.len(), graph.len())));
        }
        for v in 0..graph.len() as u32 {
            let color = self.colors[v as usize];
            if let Some(u) = graph.neighbors(v).iter().find(|&&u| self.colors[u as usize] == color) {
                return Err(Error::Invalid(format!("neighbors {v} and {u} both have color {color}")));
            }
        }
        for (color, &size) in self.sizes.iter().enumerate() {
            let found = self.colors.iter().filter(|&&c| c as usize == color).count();
            if found != size as usize {
                return Err(Error::Invalid(format!("color {color} has {found} vertices, not {size}")));
            }
        }
        Ok(())
    }
}

/// A color that no vertex has yet; its bit has no meaning.
const UNCOLORED: u8 = 63;

/// The coloring if it takes fewer than 64 colors, the usual case: what the neighbors have then is one word of bits.
fn balanced_few(graph: &Graph) -> Option<Coloring> {
    let n = graph.len();
    let mut colors = first_fit(graph)?;
    let around = |colors: &[u8], v: u32| graph.neighbors(v).iter().fold(0u64, |all, &u| all | 1 << colors[u as usize]);
    let count_chunk = |colors: &[u8]| {
        let mut sizes = [0u32; 64];
        colors.iter().for_each(|&color| sizes[color as usize & 63] += 1);
        sizes
    };
    let add = |a: [u32; 64], b: [u32; 64]| std::array::from_fn(|c| a[c] + b[c]);
    let mut sizes = parallel::map(colors.chunks(1 << 16), count_chunk).into_iter().fold([0; 64], add);
    let count = sizes.iter().take_while(|&&size| size > 0).count();
    let average = n.div_ceil(count.max(1)) as u32;
    let of_sizes = |keep: &dyn Fn(u32) -> bool| (0..count).filter(|&c| keep(sizes[c])).map(|c| 1u64 << c).sum();
    let (mut small, large): (u64, u64) = (of_sizes(&|size| size < average), of_sizes(&|size| size > average));
    // A color never grows above the average, so vertices of the small ones stay: what they bar a neighbor from now, they
    // bar it from for good. That leaves few vertices to be looked at one after the other.
    let may_move = |v: usize| large >> colors[v] & 1 == 1 && small & !around(&colors, v as u32) != 0;
    for v in parallel::filter(n, may_move) {
        if small == 0 {
            break; // a color that has shrunk to the average takes no more
        }
        let own = colors[v as usize] as usize;
        if sizes[own] <= average {
            continue;
        }
        let mut free = small & !around(&colors, v);
        let mut best = None;
        while free != 0 {
            let color = free.trailing_zeros() as usize;
            free &= free - 1;
            best = best.filter(|&b: &usize| sizes[b] <= sizes[color]).or(Some(color));
        }
        if let Some(color) = best {
            sizes[own] -= 1;
            sizes[color] += 1;
            small &= !(u64::from(sizes[color] >= average) << color);
            colors[v as usize] = color as u8;
        }
    }
    Some(Coloring { colors: parallel::collect(n, |v| u32::from(colors[v])), sizes: sizes[..count].to_vec() })
}

/// Gives every vertex, in the order of ids, the smallest color that no neighbor has yet; nothing if that takes more than
/// [`UNCOLORED`] colors.
///
/// Runs of ids are colored in parallel where none waits for another: each only needs those of lower number that it has an
/// edge to. Of a mesh numbered along a curve that leaves about as many at a time as a plane cuts through.
fn first_fit(graph: &Graph) -> Option<Vec<u8>> {
    /// The fewest vertices of a run.
    const LEAST_RUN: usize = 1 << 11;
    /// The most runs: they could all have an edge to each other.
    const MOST_RUNS: usize = 1 << 10;
    let n = graph.len();
    let size = n.div_ceil(MOST_RUNS).max(LEAST_RUN).next_power_of_two();
    let runs = n.div_ceil(size);
    let vertices = |run: usize| (run * size) as u32..n.min((run + 1) * size) as u32;
    // `met[other] == run` says that the run is known to have an edge to the other: no clearing between runs.
    let lower_of = |met: &mut Vec<usize>, run: usize| {
        let own = vertices(run);
        let mut lower = Vec::new();
        for v in own.clone() {
            for &u in graph.neighbors(v).iter().take_while(|&&u| u < own.start) {
                let other = u as usize / size;
                if met[other] != run {
                    met[other] = run;
                    lower.push(other);
                }
            }
        }
        lower
    };
    let lower = parallel::map_with(runs, || vec![usize::MAX; runs], lower_of);
    let mut waits = vec![0usize; runs];
    for run in 0..runs {
        waits[run] = lower[run].iter().map(|&other| waits[other] + 1).max().unwrap_or(0);
    }
    let mut turns = vec![Vec::new(); waits.iter().max().map_or(0, |&last| last + 1)];
    (0..runs).for_each(|run| turns[waits[run]].push(run));

    // Atomics let the runs of a turn read one array and write their parts of it, and cost nothing.
    let colors: Vec<AtomicU8> = (0..n).map(|_| AtomicU8::new(UNCOLORED)).collect();
    let fits = AtomicBool::new(true);
    let color_run = |run: &usize| {
        for v in vertices(*run) {
            let around = graph
                .neighbors(v)
                .iter()
                .fold(1u64 << UNCOLORED, |all, &u| all | 1 << (colors[u as usize].load(Ordering::Relaxed) & 63));
            match around.trailing_ones() as u8 {
                color @ 0..UNCOLORED => colors[v as usize].store(color, Ordering::Relaxed),
                _ => return fits.store(false, Ordering::Relaxed),
            }
        }
    };
    turns.iter().for_each(|runs| parallel::each(runs, color_run));
    fits.into_inner().then(|| colors.into_iter().map(AtomicU8::into_inner).collect())
}

/// The coloring with any number of colors.
fn balanced_any(graph: &Graph) -> Coloring {
    let n = graph.len();
    let mut colors = vec![u32::MAX; n];
    // `seen[c] == v` says that a neighbor of v has color c: no clearing between vertices.
    let mut seen = vec![u32::MAX; graph.max_degree() + 2];
    let mut count = 0;
    for v in 0..n as u32 {
        for &u in graph.neighbors(v) {
            if let Some(slot) = seen.get_mut(colors[u as usize] as usize) {
                *slot = v;
            }
        }
        let color = seen.iter().position(|&s| s != v).expect("a vertex has fewer neighbors than there are slots");
        colors[v as usize] = color as u32;
        count = count.max(color + 1);
    }
    let mut sizes = vec![0u32; count];
    colors.iter().for_each(|&c| sizes[c as usize] += 1);
    let average = n.div_ceil(count.max(1)) as u32;
    seen.fill(u32::MAX);
    for v in 0..n as u32 {
        let own = colors[v as usize] as usize;
        if sizes[own] <= average {
            continue;
        }
        graph.neighbors(v).iter().for_each(|&u| seen[colors[u as usize] as usize] = v);
        let free = (0..count).filter(|&c| c != own && seen[c] != v && sizes[c] < average);
        if let Some(color) = free.min_by_key(|&c| sizes[c]) {
            sizes[own] -= 1;
            sizes[color] += 1;
            colors[v as usize] = color as u32;
        }
    }
    Coloring { colors, sizes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Permutation;

    #[test]
    fn a_hub_of_ten_thousand_takes_two_colors() {
        let star: Vec<[u32; 2]> = (1..=10_000).map(|v| [0, v]).collect();
        let graph = Graph::from_edges(10_001, &star).unwrap();
        let coloring = Coloring::balanced(&graph);
        coloring.verify(&graph).unwrap();
        assert_eq!(coloring.count(), 2);
    }

    #[test]
    fn isolated_vertices_and_no_vertices_are_colored() {
        for n in [0, 1, 5] {
            let graph = Graph::from_edges(n, &[]).unwrap();
            let coloring = Coloring::balanced(&graph);
            coloring.verify(&graph).unwrap();
            assert_eq!(coloring.count(), n.min(1));
        }
    }

    #[test]
    fn sizes_are_evened_out() {
        // A path colored greedily from its ends inward would use a nearly empty third color.
        let n = 1000;
        let mut edges: Vec<[u32; 2]> = (1..n).map(|v| [v - 1, v]).collect();
        edges.push([0, 2]);
        let graph = Graph::from_edges(n as usize, &edges).unwrap();
        let coloring = Coloring::balanced(&graph);
        coloring.verify(&graph).unwrap();
        let (low, high) = (coloring.sizes().iter().min().unwrap(), coloring.sizes().iter().max().unwrap());
        assert!(high - low <= high / 4, "{:?}", coloring.sizes());
    }

    #[test]
    fn bits_equal_slots() {
        let mixed = |i: u32| i.wrapping_mul(2_654_435_761) >> 9;
        for (n, edges) in [(10, 12), (1000, 700), (1000, 8000), (300, 20_000), (5000, 90_000)] {
            let edges: Vec<[u32; 2]> = (0..edges).map(|i| [mixed(2 * i) % n, mixed(2 * i + 1) % n]).collect();
            let graph = Graph::from_edges(n as usize, &edges).unwrap();
            let few = balanced_few(&graph).expect("fewer than 64 colors");
            assert_eq!(few, balanced_any(&graph));
        }
        let clique: Vec<u32> = (0..70).collect();
        for (size, fits) in [(62, true), (63, true), (64, false), (70, false)] {
            let numbers = Permutation::identity(size);
            let graph = Graph::from_elements(&numbers, &[(size, &clique[..size])]).unwrap();
            assert_eq!(balanced_few(&graph).is_some(), fits);
            assert_eq!(Coloring::balanced(&graph), balanced_any(&graph));
        }
    }

    #[test]
    fn verify_sees_a_wrong_color() {
        let graph = Graph::from_edges(2, &[[0, 1]]).unwrap();
        let wrong = Coloring { colors: vec![0, 0], sizes: vec![2] };
        assert!(wrong.verify(&graph).is_err());
    }
}
