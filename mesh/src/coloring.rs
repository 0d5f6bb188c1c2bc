//! Vertex colorings: no edge joins two vertices of one color.

use crate::error::{Error, Result};
use crate::graph::Graph;

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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn verify_sees_a_wrong_color() {
        let graph = Graph::from_edges(2, &[[0, 1]]).unwrap();
        let wrong = Coloring { colors: vec![0, 0], sizes: vec![2] };
        assert!(wrong.verify(&graph).is_err());
    }
}
