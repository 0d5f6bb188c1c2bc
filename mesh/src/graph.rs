//! The data graph in compressed sparse rows.

use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::order::Permutation;
use rayon::prelude::*;

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
    /// The graph of `n` vertices with these undirected edges. Repeats and self edges are dropped. Cost O(n + edges).
    ///
    /// # Errors
    /// An end that is no vertex, or more than 2^32 - 1 directed edges.
    pub fn from_edges(n: usize, edges: &[[u32; 2]]) -> Result<Graph> {
        if let Some(e) = edges.iter().position(|e| e.iter().any(|&v| v as usize >= n)) {
            return Err(Error::Invalid(format!("edge {e} joins {:?}, but there are only {n} vertices", edges[e])));
        }
        Graph::from_cliques(n, edges.iter().map(|e| &e[..]))
    }

    /// The graph whose edges are those of the cells of the mesh.
    ///
    /// # Errors
    /// More than 2^32 - 1 directed edges.
    pub fn from_cells(mesh: &Mesh) -> Result<Graph> {
        let pairs = || {
            mesh.cells().iter().flat_map(|(kind, corners)| {
                kind.edges().iter().map(|&[a, b]| [corners[a as usize], corners[b as usize]])
            })
        };
        build(mesh.points().len(), |visit| pairs().for_each(|[a, b]| visit(a, b)))
    }

    /// The graph of `n` vertices in which the vertices of each group are pairwise neighbors.
    ///
    /// # Errors
    /// More than 2^32 - 1 directed edges.
    ///
    /// # Panics
    /// If a group names a vertex that does not exist.
    pub fn from_cliques<'a>(n: usize, groups: impl Iterator<Item = &'a [u32]> + Clone) -> Result<Graph> {
        build(n, |visit| {
            for group in groups.clone() {
                for (i, &a) in group.iter().enumerate() {
                    group[..i].iter().for_each(|&b| visit(a, b));
                }
            }
        })
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
        build(n, |visit| {
            for graph in graphs {
                for v in 0..n as u32 {
                    graph.neighbors(v).iter().filter(|&&u| u < v).for_each(|&u| visit(v, u));
                }
            }
        })
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

    /// The same graph with vertex `order[i]` renamed to `i`. Cost O(n + edges · log degree).
    pub fn permuted(&self, permutation: &Permutation) -> Graph {
        let (order, rank) = (permutation.order(), permutation.rank());
        let mut offsets = Vec::with_capacity(self.offsets.len());
        let mut end = 0;
        offsets.push(0);
        offsets.extend(order.iter().map(|&v| {
            end += self.degree(v) as u32;
            end
        }));
        let mut neighbors = vec![0u32; self.neighbors.len()];
        rows_mut(&offsets, &mut neighbors).into_par_iter().zip(order).for_each(|(row, &v)| {
            row.iter_mut().zip(self.neighbors(v)).for_each(|(slot, &u)| *slot = rank[u as usize]);
            row.sort_unstable();
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
        for (g, w) in offsets.windows(2).enumerate() {
            group_of[w[0] as usize..w[1] as usize].fill(g as u32);
        }
        let rows: Vec<Vec<u32>> = (0..groups)
            .into_par_iter()
            .map(|g| {
                let members = offsets[g]..offsets[g + 1];
                let mut row: Vec<u32> = members
                    .flat_map(|v| self.neighbors(v).iter().map(|&u| group_of[u as usize]))
                    .filter(|&other| other != g as u32)
                    .collect();
                row.sort_unstable();
                row.dedup();
                row
            })
            .collect();
        let mut offsets = vec![0];
        let mut neighbors = Vec::new();
        for row in rows {
            neighbors.extend(row);
            offsets.push(u32::try_from(neighbors.len()).map_err(|_| too_many())?);
        }
        Ok(Graph { offsets, neighbors })
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

/// Cuts `values` into one mutable slice a row.
pub(crate) fn rows_mut<'a, T>(offsets: &[u32], values: &'a mut [T]) -> Vec<&'a mut [T]> {
    let mut rest = values;
    offsets
        .windows(2)
        .map(|w| {
            let (row, tail) = std::mem::take(&mut rest).split_at_mut((w[1] - w[0]) as usize);
            rest = tail;
            row
        })
        .collect()
}

fn too_many() -> Error {
    Error::Invalid("more than 2^32 - 1 directed edges, counting repeats between cells: cut the mesh into parts".into())
}

/// Builds rows from a function that visits every pair (twice: to count and to fill), then sorts and drops repeats.
fn build(n: usize, pairs: impl Fn(&mut dyn FnMut(u32, u32))) -> Result<Graph> {
    let mut counts = vec![0u64; n + 1];
    pairs(&mut |a, b| {
        counts[a as usize + 1] += 1;
        counts[b as usize + 1] += 1;
    });
    for v in 0..n {
        counts[v + 1] += counts[v];
    }
    if counts[n] > u64::from(u32::MAX) {
        return Err(too_many());
    }
    let starts: Vec<u32> = counts.iter().map(|&c| c as u32).collect();
    let mut neighbors = vec![0u32; counts[n] as usize];
    let mut next = starts.clone();
    pairs(&mut |a, b| {
        for (from, to) in [(a, b), (b, a)] {
            neighbors[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
    });
    let kept: Vec<u32> = rows_mut(&starts, &mut neighbors)
        .into_par_iter()
        .enumerate()
        .map(|(v, row)| {
            row.sort_unstable();
            let mut kept = 0;
            for i in 0..row.len() {
                if row[i] as usize != v && (kept == 0 || row[kept - 1] != row[i]) {
                    row[kept] = row[i];
                    kept += 1;
                }
            }
            kept as u32
        })
        .collect();
    let mut offsets = Vec::with_capacity(n + 1);
    let mut end = 0usize;
    offsets.push(0);
    for v in 0..n {
        let start = starts[v] as usize;
        neighbors.copy_within(start..start + kept[v] as usize, end);
        end += kept[v] as usize;
        offsets.push(end as u32);
    }
    neighbors.truncate(end);
    neighbors.shrink_to_fit();
    Ok(Graph { offsets, neighbors })
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
