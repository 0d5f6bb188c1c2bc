//! Partitions of a numbered graph into consecutive runs.

use crate::error::{Error, Result};
use crate::graph::Graph;
use std::ops::Range;

/// One part: the vertices it owns and those it meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The vertices of the part.
    pub owned: Range<u32>,
    /// Owned vertices with a neighbor in another part, ascending: what the part sends.
    pub boundary: Vec<u32>,
    /// Vertices of other parts with an owned neighbor, ascending: what the part receives.
    pub ghosts: Vec<u32>,
}

/// A cut of the vertices `0..n` into consecutive runs, one for each machine.
///
/// The graph is to be numbered along a space-filling curve, so that runs are compact regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    parts: Vec<Part>,
}

impl Partition {
    /// Cuts the vertices into `parts` runs whose lengths differ by at most one. Parts may be empty.
    ///
    /// Cost O(n + edges).
    ///
    /// # Errors
    /// Zero parts.
    ///
    /// ```
    /// use meshweft_mesh::{Graph, Partition};
    /// let path = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3]])?;
    /// let halves = Partition::contiguous(&path, 2)?;
    /// assert_eq!((halves.parts()[0].boundary[0], halves.parts()[0].ghosts[0]), (1, 2));
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn contiguous(graph: &Graph, parts: usize) -> Result<Partition> {
        if parts == 0 {
            return Err(Error::Invalid("a partition has at least one part".into()));
        }
        let n = graph.len();
        let cut = |k: usize| (n as u128 * k as u128 / parts as u128) as u32;
        let parts = (0..parts)
            .map(|k| {
                let owned = cut(k)..cut(k + 1);
                let outside = |u: &&u32| !owned.contains(u);
                let boundary = owned.clone().filter(|&v| graph.neighbors(v).iter().any(|u| outside(&u))).collect();
                let mut ghosts: Vec<u32> =
                    owned.clone().flat_map(|v| graph.neighbors(v).iter().filter(outside).copied()).collect();
                ghosts.sort_unstable();
                ghosts.dedup();
                Part { owned, boundary, ghosts }
            })
            .collect();
        Ok(Partition { parts })
    }

    /// The parts, in the order of the vertices they own.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The part that owns `v`.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn owner(&self, v: u32) -> usize {
        self.parts.partition_point(|part| part.owned.end <= v)
    }

    /// Undirected edges between parts.
    pub fn cut_edges(&self, graph: &Graph) -> usize {
        let crossing = |part: &Part| {
            let outside = |v: u32| graph.neighbors(v).iter().filter(|u| !part.owned.contains(u)).count();
            part.boundary.iter().map(|&v| outside(v)).sum::<usize>()
        };
        self.parts.iter().map(crossing).sum::<usize>() / 2
    }

    /// Vertices with a neighbor in another part.
    pub fn boundary_vertices(&self) -> usize {
        self.parts.iter().map(|part| part.boundary.len()).sum()
    }

    /// Checks that every vertex has one owner, and that ghosts and boundaries are exactly what the edges need.
    ///
    /// # Errors
    /// Names the part or vertex for which that fails.
    pub fn verify(&self, graph: &Graph) -> Result<()> {
        let mut next = 0;
        for (k, part) in self.parts.iter().enumerate() {
            if part.owned.start != next || part.owned.end < next {
                return Err(Error::Invalid(format!("part {k} owns {:?}, but {next} comes next", part.owned)));
            }
            next = part.owned.end;
        }
        if next as usize != graph.len() {
            return Err(Error::Invalid(format!("vertex {next} has no owner")));
        }
        for (k, part) in self.parts.iter().enumerate() {
            let ghost_of =
                |v: u32| !part.owned.contains(&v) && graph.neighbors(v).iter().any(|u| part.owned.contains(u));
            let boundary_of =
                |v: u32| part.owned.contains(&v) && graph.neighbors(v).iter().any(|u| !part.owned.contains(u));
            let ids = 0..graph.len() as u32;
            if !ids.clone().filter(|&v| ghost_of(v)).eq(part.ghosts.iter().copied())
                || !ids.filter(|&v| boundary_of(v)).eq(part.boundary.iter().copied())
            {
                return Err(Error::Invalid(format!("part {k} has the wrong ghosts or boundary")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_and_meet() {
        let edges: Vec<[u32; 2]> = (1..10).map(|v| [v - 1, v]).chain([[0, 9]]).collect();
        let ring = Graph::from_edges(10, &edges).unwrap();
        for parts in [1, 2, 3, 7, 10, 13] {
            let partition = Partition::contiguous(&ring, parts).unwrap();
            partition.verify(&ring).unwrap();
            assert!((0..10).all(|v| partition.parts()[partition.owner(v)].owned.contains(&v)));
        }
        let mut halves = Partition::contiguous(&ring, 2).unwrap();
        assert_eq!((halves.cut_edges(&ring), halves.boundary_vertices()), (2, 4));
        halves.parts[1].ghosts.pop();
        assert!(halves.verify(&ring).is_err());
        assert!(Partition::contiguous(&ring, 0).is_err());
    }
}
