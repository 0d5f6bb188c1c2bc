//! Figures of a numbered graph that say how fast it will run.

use crate::coloring::Coloring;
use crate::error::Result;
use crate::graph::Graph;
use crate::levels::Levels;
use crate::partition::{Cut, Partition};

/// Smallest, mean, 99th percentile and largest of a set of counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// 99 of 100 are at most this.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl Spread {
    /// Of any counts; all zero for none.
    pub fn of(mut counts: Vec<u64>) -> Spread {
        if counts.is_empty() {
            return Spread::default();
        }
        let last = counts.len() - 1;
        let p99 = *counts.select_nth_unstable(last * 99 / 100).1;
        let (min, max) = counts.iter().fold((u64::MAX, 0), |(low, high), &x| (low.min(x), high.max(x)));
        let sum: u128 = counts.iter().map(|&x| u128::from(x)).sum();
        Spread { min, mean: sum as f64 / counts.len() as f64, p99, max }
    }
}

/// What is known of a graph numbered along a curve, before a program runs on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Vertices.
    pub vertices: usize,
    /// Directed edges: both directions of each.
    pub directed_edges: usize,
    /// Neighbors per vertex.
    pub degree: Spread,
    /// How far apart in number two neighbors are: the reach of a neighbor read in memory.
    pub distance: Spread,
    /// Vertices of each color.
    pub color_sizes: Vec<u32>,
    /// Breadth-first levels.
    pub levels: usize,
    /// Connected components.
    pub components: usize,
    /// For 2, 3, 4, 6, 8, 16, 32 and 64 parts: the share of undirected edges that runs of the curve cut.
    pub cut_share: Vec<(usize, f64)>,
    /// For as many parts: values that those runs send each other in a round, each vertex once to each part that reads it, over directed
    /// edges. What is left of the cut by sending no value twice.
    pub message_share: Vec<(usize, f64)>,
    /// For as many parts: the share of vertices at the boundary, with [`Cut::Curve`] and with [`Cut::Bisection`].
    pub boundary_share: Vec<(usize, [f64; 2])>,
}

/// Powers of two favor a curve, so that there are others too.
const PARTS: [usize; 8] = [2, 3, 4, 6, 8, 16, 32, 64];

impl Stats {
    /// Measures the graph. Cost O(n log parts + edges) a number of parts.
    ///
    /// `points`: shape `[n × 3]`, those of the vertices.
    ///
    /// # Errors
    /// Another number of points than of vertices.
    ///
    /// ```
    /// use meshweft_mesh::{Graph, Stats};
    /// let path = Graph::from_edges(3, &[[0, 1], [1, 2]])?;
    /// let stats = Stats::of(&path, &[[0.0; 3], [1.0; 3], [2.0; 3]])?;
    /// assert_eq!((stats.degree.max, stats.distance.max, stats.components), (2, 1, 1));
    /// assert_eq!(stats.boundary_share[1], (3, [1.0, 1.0]));
    /// assert_eq!(stats.message_share[1], (3, 1.0));
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn of(graph: &Graph, points: &[[f64; 3]]) -> Result<Stats> {
        let ids = 0..graph.len() as u32;
        let degree = Spread::of(ids.clone().map(|v| graph.degree(v) as u64).collect());
        let distance =
            Spread::of(ids.flat_map(|v| graph.neighbors(v).iter().map(move |&u| u64::from(u.abs_diff(v)))).collect());
        let levels = Levels::of(graph);
        let edges = (graph.directed_edges() / 2).max(1);
        let (mut cut_share, mut message_share, mut boundary_share) = (Vec::new(), Vec::new(), Vec::new());
        for parts in PARTS {
            let curve = Partition::new(graph, points, parts, Cut::Curve)?;
            let bisection = Partition::new(graph, points, parts, Cut::Bisection)?;
            let boundary = |p: &Partition| p.boundary_vertices() as f64 / graph.len().max(1) as f64;
            cut_share.push((parts, curve.cut_edges(graph) as f64 / edges as f64));
            message_share.push((parts, curve.messages() as f64 / (2 * edges) as f64));
            boundary_share.push((parts, [&curve, &bisection].map(boundary)));
        }
        Ok(Stats {
            vertices: graph.len(),
            directed_edges: graph.directed_edges(),
            degree,
            distance,
            color_sizes: Coloring::balanced(graph).sizes().to_vec(),
            levels: levels.count(),
            components: levels.components(),
            cut_share,
            message_share,
            boundary_share,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_a_hundred() {
        let spread = Spread::of((1..=100).rev().collect());
        assert_eq!(spread, Spread { min: 1, mean: 50.5, p99: 99, max: 100 });
        assert_eq!(Spread::of(vec![]), Spread::default());
    }
}
