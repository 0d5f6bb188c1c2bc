//! Breadth-first levels.

use crate::error::{Error, Result};
use crate::graph::Graph;

/// The breadth-first level of every vertex, counted in each connected component from its vertex of lowest id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    levels: Vec<u32>,
    count: usize,
    components: usize,
}

impl Levels {
    /// Searches the graph breadth first. Neighbors are at most one level apart. Cost O(n + edges).
    ///
    /// ```
    /// use meshweft_mesh::{Graph, Levels};
    /// let path = Graph::from_edges(4, &[[0, 1], [1, 2]])?;
    /// assert_eq!(Levels::of(&path).levels(), [0, 1, 2, 0]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn of(graph: &Graph) -> Levels {
        let n = graph.len();
        let mut levels = vec![u32::MAX; n];
        let (mut count, mut components) = (0, 0);
        let (mut frontier, mut next) = (Vec::new(), Vec::new());
        for root in 0..n as u32 {
            if levels[root as usize] != u32::MAX {
                continue;
            }
            components += 1;
            levels[root as usize] = 0;
            frontier.push(root);
            let mut level = 0;
            while !frontier.is_empty() {
                level += 1;
                count = count.max(level as usize);
                for &v in &frontier {
                    for &u in graph.neighbors(v) {
                        if levels[u as usize] == u32::MAX {
                            levels[u as usize] = level;
                            next.push(u);
                        }
                    }
                }
                frontier.clear();
                std::mem::swap(&mut frontier, &mut next);
            }
        }
        Levels { levels, count, components }
    }

    /// Levels of the vertices, shape `[n]`.
    pub fn levels(&self) -> &[u32] {
        &self.levels
    }

    /// Number of levels: one more than the highest; 0 without vertices.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of connected components.
    pub fn components(&self) -> usize {
        self.components
    }

    /// Checks that neighbors are at most one level apart and that every vertex above level 0 has a parent.
    ///
    /// # Errors
    /// Names the first vertex for which that fails.
    pub fn verify(&self, graph: &Graph) -> Result<()> {
        if self.levels.len() != graph.len() {
            return Err(Error::Invalid(format!("{} levels for {} vertices", self.levels.len(), graph.len())));
        }
        for v in 0..graph.len() as u32 {
            let level = self.levels[v as usize];
            let near = |u: &u32| self.levels[*u as usize].abs_diff(level) <= 1;
            let parent = |u: &u32| self.levels[*u as usize].checked_add(1) == Some(level);
            if !graph.neighbors(v).iter().all(near) || (level > 0 && !graph.neighbors(v).iter().any(parent)) {
                return Err(Error::Invalid(format!("vertex {v} cannot be at breadth-first level {level}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_searched_apart() {
        let graph = Graph::from_edges(6, &[[0, 1], [3, 4], [4, 5], [5, 3]]).unwrap();
        let levels = Levels::of(&graph);
        levels.verify(&graph).unwrap();
        assert_eq!(levels.levels(), [0, 1, 0, 0, 1, 1]);
        assert_eq!((levels.components(), levels.count()), (3, 2));
        assert!(Levels { levels: vec![0, 2, 0, 0, 1, 1], count: 3, components: 3 }.verify(&graph).is_err());
    }
}
