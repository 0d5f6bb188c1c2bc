//! The data graph in compressed sparse rows.

use crate::edges;
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::order::Permutation;
use crate::parallel;
use crate::sort::{NONE, group, sort_row};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

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
        if let Some(e) = parallel::first(edges.len(), |e| edges[e].iter().any(|&v| v as usize >= n)) {
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
    /// Cost O(n + pairs within elements), in parallel; half of that of numbering anew afterwards by [`Graph::permuted`].
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
        let most =
            parallel::map(parallel::ranges(self.len(), 1 << 14), |range| range.map(|v| self.degree(v as u32)).max());
        most.into_iter().flatten().max().unwrap_or(0)
    }

    /// The same graph with vertex `order[i]` renamed to `i`. Cost O(n + edges · log degree), in parallel.
    pub fn permuted(&self, permutation: &Permutation) -> Graph {
        let (order, rank) = (permutation.order(), permutation.rank());
        let degrees: Vec<u32> = parallel::collect(order.len(), |place| self.degree(order[place]) as u32);
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
    /// Cost O(edges), in parallel over the groups.
    ///
    /// # Errors
    /// Offsets that are not ascending from 0 to the number of vertices.
    ///
    /// ```
    /// use meshweft_mesh::Graph;
    /// let path = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3]])?;
    /// assert_eq!(path.quotient(&[0, 2, 3, 4])?.neighbors(1), [0, 2]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn quotient(&self, offsets: &[u32]) -> Result<Graph> {
        let n = self.len();
        let spans = offsets.first() == Some(&0) && offsets.last().is_some_and(|&end| end as usize == n);
        if !spans || !offsets.is_sorted() {
            return Err(Error::Invalid(format!("offsets of groups must ascend from 0 to the {n} vertices")));
        }
        let mut labels = vec![0u32; n];
        for_each_row(offsets, &mut labels, |group, members| members.fill(group as u32));
        Ok(self.joined(&labels, offsets.len() - 1, |group| offsets[group]..offsets[group + 1]))
    }

    /// The graph of groups of any vertices: two groups are neighbors when an edge joins a vertex of one to a vertex of the
    /// other.
    ///
    /// `labels`: the group of each vertex, shape `[n]`, values `0..count`; a group may have no vertex and then has no
    /// neighbor. Cost O(n + edges), in parallel over the groups. Memory: 4 bytes a vertex, and 4 bytes a group and thread.
    ///
    /// # Errors
    /// A wrong number of labels, a label that is no group, or more than 2^32 - 1 groups.
    ///
    /// ```
    /// use meshweft_mesh::Graph;
    /// let path = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3]])?;
    /// let groups = path.quotient_by(&[0, 2, 0, 1], 3)?;
    /// assert_eq!(groups.neighbors(0), [1, 2]);
    /// assert_eq!(groups.neighbors(1), [0]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn quotient_by(&self, labels: &[u32], count: usize) -> Result<Graph> {
        if labels.len() != self.len() {
            return Err(Error::Invalid(format!("{} labels for {} vertices", labels.len(), self.len())));
        }
        if count > u32::MAX as usize {
            return Err(Error::Invalid(format!("{count} groups: at most {} are supported", u32::MAX)));
        }
        if let Some(v) = parallel::first(labels.len(), |v| labels[v] as usize >= count) {
            return Err(Error::Invalid(format!("vertex {v} is in group {}, but there are only {count}", labels[v])));
        }
        let (starts, members) = group(count, labels.len(), |v| [(labels[v], v as u32)]);
        let members = |group: usize| members[starts[group] as usize..starts[group + 1] as usize].iter().copied();
        Ok(self.joined(labels, count, members))
    }

    /// The graph of the groups: `labels` has the group of each vertex, `members` the vertices of each group.
    fn joined<M: Iterator<Item = u32>>(
        &self,
        labels: &[u32],
        count: usize,
        members: impl Fn(usize) -> M + Sync,
    ) -> Graph {
        // `met[other] == own` says that the row of a group has the other: no clearing between groups. Before its first
        // row, a thread has met none.
        let row_of = |met: &mut Vec<u32>, own: usize| {
            let own = own as u32;
            met[own as usize] = own; // so that a group is never its own neighbor
            let mut row = Vec::new();
            for u in members(own as usize).flat_map(|v| self.neighbors(v)) {
                let other = labels[*u as usize];
                if met[other as usize] != own {
                    met[other as usize] = own;
                    row.push(other);
                }
            }
            row.sort_unstable();
            row
        };
        let rows = parallel::map_with(count, || vec![NONE; count], row_of);
        let degrees: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
        Graph { offsets: offsets_of(&degrees), neighbors: parallel::concat(rows) }
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
    parallel::each(tasks, |(first, offsets, mut rest)| {
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
/// Sorting the rows makes the result independent of the order of the pairs. Memory: the graph with all repeats, and that of
/// [`group`].
fn build(n: usize, count: usize, pair: impl Fn(usize) -> [u32; 2] + Sync) -> Result<Graph> {
    if count > u32::MAX as usize / 2 {
        return Err(too_many());
    }
    let (mut offsets, mut neighbors) = group(n, count, |p| {
        let [a, b] = pair(p);
        [(a, b), (b, a)]
    });
    let is_simple = AtomicBool::new(true);
    for_each_row(&offsets, &mut neighbors, |v, row| {
        sort_row(row);
        row.iter_mut().filter(|u| **u as usize == v).for_each(|u| *u = NONE);
        if row.iter().fold(false, |any, &u| any | (u == NONE)) {
            is_simple.store(false, Ordering::Relaxed);
        }
    });
    if !is_simple.into_inner() {
        let row = |v: usize| &neighbors[offsets[v] as usize..offsets[v + 1] as usize];
        let degrees = parallel::collect(n, |v| row(v).iter().filter(|&&u| u != NONE).count() as u32);
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
            let same = Permutation::identity(n as usize);
            assert_eq!(Graph::from_elements(&same, &[(3, &elements)]).unwrap(), expected);
            let permuted = expected.permuted(&numbers);
            permuted.verify().unwrap();
            assert_eq!(Graph::from_elements(&numbers, &[(3, &elements)]).unwrap(), permuted);
            let (first, last) = elements.split_at(elements.len() / 2 / 3 * 3);
            let both = Graph::from_elements(&numbers, &[(3, first), (3, last)]).unwrap();
            assert_eq!(both, permuted);
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
        for offsets in [&[][..], &[0], &[1, 6], &[0, 4, 2, 6], &[0, 7]] {
            assert!(path.quotient(offsets).is_err(), "{offsets:?}");
        }
    }

    #[test]
    fn quotients_by_labels_equal_the_sorted_list() {
        let mixed = |i: u32, n: u32| (i.wrapping_mul(2_654_435_761) >> 5) % n;
        let edges: Vec<[u32; 2]> = (0..200_000).map(|i| [mixed(2 * i, 70_000), mixed(2 * i + 1, 70_000)]).collect();
        let graph = Graph::from_edges(70_000, &edges).unwrap();
        for count in [1, 7, 300, 70_000] {
            let (scattered, runs) = (|v: u32| mixed(v, count), |v: u32| v / 70_000u32.div_ceil(count));
            for label in [&scattered as &dyn Fn(u32) -> u32, &runs] {
                let labels: Vec<u32> = (0..70_000).map(label).collect();
                let between = edges.iter().map(|e| e.map(|v| labels[v as usize])).collect::<Vec<_>>();
                let expected = Graph::from_edges(count as usize, &between).unwrap();
                assert_eq!(graph.quotient_by(&labels, count as usize).unwrap(), expected);
                if labels.is_sorted() {
                    let offsets: Vec<u32> =
                        (0..=count).map(|group| labels.partition_point(|&label| label < group) as u32).collect();
                    assert_eq!(graph.quotient(&offsets).unwrap(), expected);
                }
            }
        }
        let path = Graph::from_edges(2, &[[0, 1]]).unwrap();
        let message = |labels: &[u32], count| path.quotient_by(labels, count).unwrap_err().to_string();
        assert!(message(&[0], 1).contains("1 labels for 2 vertices"));
        assert!(message(&[0, 3], 3).contains("vertex 1 is in group 3"));
        assert!(message(&[0, 0], usize::MAX).contains("groups"));
    }
}
