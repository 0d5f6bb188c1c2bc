//! The data graph in compressed sparse rows.

use crate::edges;
use crate::error::{Error, Result};
use crate::incidence::concat;
use crate::mesh::Mesh;
use crate::order::Permutation;
use crate::sort::{NONE, sort_row};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// An undirected graph: row `v` lists the neighbors of vertex `v`, ascending, without `v` itself and without repeats.
///
/// Each undirected edge is stored in both directions; [`Graph::directed_edges`] counts both.
/// Memory: 4 bytes a vertex and 4 bytes a directed edge.
///
/// ```
/// use meshweft_mesh::Graph;
/// let path = Graph::from_edges(3, &[[0, 1], [1, 2], [1, 0]])?;
/// assert_eq!(path.neighbors(1), [0, 2]);
/// assert_eq!(path.directed_edges(), 4);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    offsets: Vec<u32>,
    neighbors: Vec<u32>,
}

impl Graph {
    /// The graph of `n` vertices with these undirected edges. Repeats and self edges are dropped.
    ///
    /// Cost O(n + edges), in parallel.
    ///
    /// # Errors
    /// An end that is no vertex, or more than 2^32 - 1 directed edges.
    pub fn from_edges(n: usize, edges: &[[u32; 2]]) -> Result<Graph> {
        if let Some(e) = edges.par_iter().position_first(|e| e.iter().any(|&v| v as usize >= n)) {
            return Err(Error::Invalid(format!("edge {e} joins {:?}, but there are only {n} vertices", edges[e])));
        }
        build(n, edges.len(), |e| edges[e])
    }

    /// The graph whose edges are those of the cells of the mesh.
    ///
    /// # Errors
    /// More than 2^32 - 1 directed edges.
    pub fn from_cells(mesh: &Mesh) -> Result<Graph> {
        let edges = mesh.edges();
        build(mesh.points().len(), edges.len(), |e| edges[e])
    }

    /// The graph in which the vertices of each element are pairwise neighbors, numbered anew: vertex `v` of the elements
    /// becomes `numbers.rank()[v]`.
    ///
    /// `lists`: elements of one size each, as the number of their vertices and then the vertices, element after element.
    /// The same as [`Graph::from_cliques`] and then [`Graph::permuted`], for half of the work and in parallel.
    ///
    /// # Errors
    /// More than 2^32 - 1 directed edges.
    ///
    /// # Panics
    /// If an element names a vertex that does not exist, or a list is no multiple of its size.
    ///
    /// ```
    /// use meshweft_mesh::{Graph, Permutation};
    /// let numbers = Permutation::from_order(vec![2, 0, 1, 3])?;
    /// let graph = Graph::from_elements(&numbers, &[(3, &[0, 1, 2]), (2, &[1, 3])])?;
    /// assert_eq!(graph.neighbors(2), [0, 1, 3]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn from_elements(numbers: &Permutation, lists: &[(usize, &[u32])]) -> Result<Graph> {
        let (n, rank) = (numbers.len(), numbers.rank());
        let pairs = lists.iter().map(|&(size, corners)| {
            assert!(size > 0 && corners.len().is_multiple_of(size), "a list of elements of {size} vertices");
            match size {
                2 => Cow::Borrowed(corners.as_chunks::<2>().0),
                _ => Cow::Owned(edges::of_groups(n, size, corners)),
            }
        });
        let renamed = |e: [u32; 2]| e.map(|v| rank[v as usize]);
        match &pairs.collect::<Vec<_>>()[..] {
            [only] => build(n, only.len(), |e| renamed(only[e])),
            several => {
                let all = several.concat();
                build(n, all.len(), |e| renamed(all[e]))
            }
        }
    }

    /// The graph of `n` vertices in which the vertices of each group are pairwise neighbors.
    ///
    /// # Errors
    /// More than 2^32 - 1 directed edges.
    ///
    /// # Panics
    /// If a group names a vertex that does not exist.
    pub fn from_cliques<'a>(n: usize, groups: impl Iterator<Item = &'a [u32]> + Clone) -> Result<Graph> {
        let mut pairs = Vec::with_capacity(groups.clone().map(|g| g.len() * g.len().saturating_sub(1) / 2).sum());
        for group in groups {
            for (i, &a) in group.iter().enumerate() {
                pairs.extend(group[..i].iter().map(|&b| [a, b]));
            }
        }
        build(n, pairs.len(), |p| pairs[p])
    }

    /// The union of graphs over the same vertices.
    ///
    /// # Errors
    /// More than 2^32 - 1 directed edges.
    ///
    /// # Panics
    /// If the numbers of vertices differ, or no graph is given.
    pub fn union(graphs: &[&Graph]) -> Result<Graph> {
        let n = graphs[0].len();
        assert!(graphs.iter().all(|g| g.len() == n), "graphs over the same vertices");
        if let [only] = graphs {
            return Ok((*only).clone());
        }
        let upper = |v: u32| {
            graphs.iter().flat_map(move |g| g.neighbors(v).iter().filter(move |&&u| u > v).map(move |&u| [v, u]))
        };
        let pairs: Vec<[u32; 2]> = (0..n as u32).into_par_iter().flat_map_iter(upper).collect();
        build(n, pairs.len(), |p| pairs[p])
    }

    /// The dual graph: two cells of the highest dimension are neighbors when they share a facet.
    ///
    /// Row `c` belongs to cell `c` of the mesh; cells of lower dimension have no neighbor.
    ///
    /// # Errors
    /// More than 2^32 - 1 directed edges.
    pub fn dual(mesh: &Mesh) -> Result<Graph> {
        let dimension = mesh.dimension();
        let mut facets: Vec<([u32; 4], u32)> = Vec::new();
        for (c, (kind, corners)) in mesh.cells().iter().enumerate().filter(|(_, (k, _))| k.dimension() == dimension) {
            for facet in kind.facets() {
                let mut key = [u32::MAX; 4]; // the largest id is never used, so it marks the missing fourth corner
                facet.iter().zip(&mut key).for_each(|(&k, slot)| *slot = corners[k as usize]);
                key.sort_unstable();
                facets.push((key, c as u32));
            }
        }
        facets.par_sort_unstable();
        let shared: Vec<Vec<u32>> = facets
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|g| g.len() > 1)
            .map(|g| g.iter().map(|f| f.1).collect())
            .collect();
        Graph::from_cliques(mesh.cells().len(), shared.iter().map(|g| &g[..]))
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of directed edges: twice the undirected ones.
    pub fn directed_edges(&self) -> usize {
        self.neighbors.len()
    }

    /// The neighbors of `v`, ascending.
    #[inline]
    pub fn neighbors(&self, v: u32) -> &[u32] {
        let v = v as usize;
        &self.neighbors[self.offsets[v] as usize..self.offsets[v + 1] as usize]
    }

    /// The neighbors of `v` of lower number, ascending. Cost O(log degree).
    ///
    /// ```
    /// use meshweft_mesh::Graph;
    /// let star = Graph::from_edges(4, &[[0, 2], [1, 2], [2, 3]])?;
    /// assert_eq!(star.predecessors(2), [0, 1]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn predecessors(&self, v: u32) -> &[u32] {
        let neighbors = self.neighbors(v);
        &neighbors[..neighbors.partition_point(|&u| u < v)]
    }

    /// Number of neighbors of `v`.
    pub fn degree(&self, v: u32) -> usize {
        self.neighbors(v).len()
    }

    /// Where each row starts, shape `[n + 1]`.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// The largest number of neighbors; 0 for an empty graph.
    pub fn max_degree(&self) -> usize {
        self.offsets.par_windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0) as usize
    }

    /// The same graph with vertex `order[i]` renamed to `i`. Cost O(n + edges · log degree), in parallel.
    pub fn permuted(&self, permutation: &Permutation) -> Graph {
        let (order, rank) = (permutation.order(), permutation.rank());
        let degrees: Vec<u32> = order.par_iter().map(|&v| self.degree(v) as u32).collect();
        let offsets = offsets_of(&degrees);
        let mut neighbors = vec![0u32; self.neighbors.len()];
        for_each_row(&offsets, &mut neighbors, |place, row| {
            row.iter_mut().zip(self.neighbors(order[place])).for_each(|(slot, &u)| *slot = rank[u as usize]);
            sort_row(row);
        });
        Graph { offsets, neighbors }
    }

    /// The graph of the groups of consecutive vertices `offsets[i]..offsets[i + 1]`: two groups are neighbors when an
    /// edge joins them.
    ///
    /// # Errors
    /// More than 2^32 - 1 directed edges, which cannot happen for a graph that exists.
    pub fn quotient(&self, offsets: &[u32]) -> Result<Graph> {
        let groups = offsets.len().saturating_sub(1);
        let mut group_of = vec![0u32; self.len()];
        for_each_row(offsets, &mut group_of, |g, members| members.fill(g as u32));
        // `met[other] == g + 1` says that the row of group g has the other: no clearing between groups.
        let row_of = |met: &mut Vec<u32>, g: usize| {
            let mut row = Vec::new();
            let own = offsets[g]..offsets[g + 1];
            for &u in
                &self.neighbors[self.offsets[own.start as usize] as usize..self.offsets[own.end as usize] as usize]
            {
                let other = group_of[u as usize];
                if met[other as usize] != g as u32 + 1 && !own.contains(&u) {
                    met[other as usize] = g as u32 + 1;
                    row.push(other);
                }
            }
            row.sort_unstable();
            row
        };
        let rows: Vec<Vec<u32>> = (0..groups).into_par_iter().map_init(|| vec![0; groups], row_of).collect();
        let degrees: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
        Ok(Graph { offsets: offsets_of(&degrees), neighbors: concat(&rows) })
    }

    /// Checks that rows are ascending, without self edges, in range, and symmetric.
    ///
    /// # Errors
    /// Names the first row that is not.
    pub fn verify(&self) -> Result<()> {
        let n = self.len() as u32;
        for v in 0..n {
            let row = self.neighbors(v);
            let fault = if row.windows(2).any(|w| w[0] >= w[1]) {
                "is not ascending"
            } else if row.iter().any(|&u| u >= n || u == v) {
                "names itself or a vertex that does not exist"
            } else if row.iter().any(|&u| self.neighbors(u).binary_search(&v).is_err()) {
                "names a neighbor that does not name it back"
            } else {
                continue;
            };
            return Err(Error::Invalid(format!("graph row {v} {fault}: {row:?}")));
        }
        Ok(())
    }
}

/// Calls `each` with the number and the values of every row, in parallel.
fn for_each_row<T: Send>(offsets: &[u32], values: &mut [T], each: impl Fn(usize, &mut [T]) + Sync) {
    /// Enough rows to be worth a task, and few enough for each thread to get several.
    const ROWS: usize = 1 << 12;
    let mut rest = values;
    let mut tasks = Vec::new();
    let rows = offsets.len().saturating_sub(1);
    for first in (0..rows).step_by(ROWS) {
        let own = &offsets[first..rows.min(first + ROWS) + 1];
        let (values, others) = rest.split_at_mut((own[own.len() - 1] - own[0]) as usize);
        tasks.push((first, own, values));
        rest = others;
    }
    tasks.into_par_iter().for_each(|(first, offsets, mut rest)| {
        for (row, ends) in (first..).zip(offsets.windows(2)) {
            let (values, others) = rest.split_at_mut((ends[1] - ends[0]) as usize);
            each(row, values);
            rest = others;
        }
    });
}

fn too_many() -> Error {
    Error::Invalid("more than 2^32 - 1 directed edges, counting repeats between cells: cut the mesh into parts".into())
}

/// Builds the rows of both ends of `count` pairs, without self edges and repeats.
///
/// A counting sort: each of a few chunks counts the neighbors that it has for each vertex, and then knows where to write
/// them. Sorting the rows makes the result independent of the chunks. Memory: the graph with all repeats, and 4 bytes a
/// vertex and chunk.
fn build(n: usize, count: usize, pair: impl Fn(usize) -> [u32; 2] + Sync) -> Result<Graph> {
    /// More would take more memory for their counts than they save time.
    const MOST_CHUNKS: usize = 8;
    const LEAST_CHUNK: usize = 1 << 16;
    if count > u32::MAX as usize / 2 {
        return Err(too_many());
    }
    let chunk = count.div_ceil(rayon::current_num_threads().min(MOST_CHUNKS)).max(LEAST_CHUNK);
    let pairs_of = |c: usize| c * chunk..count.min((c + 1) * chunk);
    let mut places: Vec<Vec<u32>> = (0..count.div_ceil(chunk))
        .into_par_iter()
        .map(|c| {
            let mut counts = vec![0u32; n];
            pairs_of(c).for_each(|p| pair(p).into_iter().for_each(|v| counts[v as usize] += 1));
            counts
        })
        .collect();
    let mut offsets = Vec::with_capacity(n + 1);
    let mut end = 0;
    offsets.push(0);
    for v in 0..n {
        for place in &mut places {
            (place[v], end) = (end, end + place[v]);
        }
        offsets.push(end);
    }
    // Every place is written once; atomics let threads write to scattered places without locks, and cost nothing.
    let rows: Vec<AtomicU32> = (0..2 * count).into_par_iter().map(|_| AtomicU32::new(0)).collect();
    places.into_par_iter().enumerate().for_each(|(c, mut places)| {
        for p in pairs_of(c) {
            let [a, b] = pair(p);
            for (v, u) in [(a, b), (b, a)] {
                let place = &mut places[v as usize];
                rows[*place as usize].store(u, Ordering::Relaxed);
                *place += 1;
            }
        }
    });
    let mut neighbors: Vec<u32> = rows.into_iter().map(AtomicU32::into_inner).collect();
    let is_simple = AtomicBool::new(true);
    for_each_row(&offsets, &mut neighbors, |v, row| {
        sort_row(row);
        row.iter_mut().filter(|u| **u as usize == v).for_each(|u| *u = NONE);
        if row.iter().fold(false, |any, &u| any | (u == NONE)) {
            is_simple.store(false, Ordering::Relaxed);
        }
    });
    if !is_simple.into_inner() {
        let degree = |row: &[u32]| neighbors[row[0] as usize..row[1] as usize].iter().filter(|&&u| u != NONE).count();
        let degrees: Vec<u32> = offsets.par_windows(2).map(|row| degree(row) as u32).collect();
        offsets = offsets_of(&degrees);
        neighbors.retain(|&u| u != NONE);
        neighbors.shrink_to_fit();
    }
    Ok(Graph { offsets, neighbors })
}

/// Where rows of these lengths start, and the end.
fn offsets_of(degrees: &[u32]) -> Vec<u32> {
    let mut end = 0;
    let ends = degrees.iter().map(|&degree| {
        end += degree;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{CellKind, Cells};

    #[test]
    fn cells_give_their_edges_once() {
        let points = (0..4).map(|i| [f64::from(i), 0.0, 0.0]).collect();
        let mesh = Mesh::new(points, Cells::of(CellKind::Triangle, vec![0, 1, 2, 2, 1, 3])).unwrap();
        let graph = Graph::from_cells(&mesh).unwrap();
        graph.verify().unwrap();
        assert_eq!(graph.directed_edges(), 10);
        assert_eq!(graph.neighbors(1), [0, 2, 3]);
        let dual = Graph::dual(&mesh).unwrap();
        dual.verify().unwrap();
        assert_eq!(dual.neighbors(0), [1]);
    }

    #[test]
    fn a_degenerate_cell_gives_no_self_edge() {
        let graph = Graph::from_edges(2, &[[1, 1], [0, 1], [1, 0]]).unwrap();
        graph.verify().unwrap();
        assert_eq!(graph.directed_edges(), 2);
    }

    #[test]
    fn graphs_equal_sets_of_neighbors() {
        let mixed = |i: u32, n: u32| (i.wrapping_mul(2_654_435_761) >> 5) % n;
        for (n, count) in [(1, 3), (50, 4000), (3000, 200_000), (100_000, 150_000)] {
            // Many repeats, self edges, and a hub.
            let elements: Vec<u32> = (0..3 * count).map(|i| if i % 7 == 0 { 0 } else { mixed(i, n) }).collect();
            let numbers = Permutation::sorted_by_number(n as usize, |v| u64::from(v.wrapping_mul(40_503) % 1000));
            let mut sets = vec![std::collections::BTreeSet::new(); n as usize];
            let pairs = elements.chunks(3).flat_map(|e| e.iter().flat_map(|&a| e.iter().map(move |&b| (a, b))));
            pairs.filter(|(a, b)| a != b).for_each(|(a, b)| _ = sets[a as usize].insert(b));
            let rows: Vec<Vec<u32>> = sets.into_iter().map(|set| set.into_iter().collect()).collect();
            let degrees: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
            let expected = Graph { offsets: offsets_of(&degrees), neighbors: rows.concat() };
            assert_eq!(Graph::from_cliques(n as usize, elements.chunks(3)).unwrap(), expected);
            let permuted = expected.permuted(&numbers);
            permuted.verify().unwrap();
            assert_eq!(Graph::from_elements(&numbers, &[(3, &elements)]).unwrap(), permuted);
            let (first, last) = elements.split_at(elements.len() / 2 / 3 * 3);
            let both = Graph::from_elements(&numbers, &[(3, first), (3, last)]).unwrap();
            assert_eq!(both, permuted);
            assert_eq!(Graph::union(&[&expected, &expected]).unwrap(), expected);
        }
    }

    #[test]
    fn edges_out_of_range_are_refused() {
        assert!(Graph::from_edges(2, &[[0, 2]]).unwrap_err().to_string().contains("edge 0"));
    }

    #[test]
    fn quotient_joins_groups_across_edges() {
        let path = Graph::from_edges(6, &[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]).unwrap();
        let quotient = path.quotient(&[0, 2, 4, 6]).unwrap();
        quotient.verify().unwrap();
        assert_eq!(quotient.neighbors(1), [0, 2]);
        assert_eq!(quotient.neighbors(0), [1]);
    }
}
