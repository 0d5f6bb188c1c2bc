//! Partitions of a numbered graph: runs of the curve, or boxes of recursive bisection.
//!
//! A partition says only which machine holds a vertex. Orders, colors and levels are computed on the whole graph and
//! do not look at it, so every partition gives the same results; it decides how much is sent. What is sent are the
//! *boundary* vertices. With either [`Cut`] the parts keep the curve's order inside, so memory is read as before.

mod bisection;
mod neighbors;
mod refinement;

use self::neighbors::{boundary, boundary_among, other_parts};
use crate::error::{Error, Result};
use crate::graph::Graph;
use std::fmt;
use std::str::FromStr;

/// How vertices are shared between parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// Runs of the numbering whose lengths differ by at most one: costs nothing, needs no points. Along a space-filling
    /// curve runs are compact where the number of parts is a power of two, and ragged where it is not.
    #[default]
    Curve,
    /// Recursive coordinate bisection, then greedy refinement of the boundary: flat cuts for any number of parts.
    ///
    /// No part has more than 1.03 n / parts vertices, or n / parts rounded up where that is more. Measured for 2 to 64
    /// parts on boxes, a bar, sheets, a disk, a ball, a torus, random points and a bunny of tets: at most 1.19 times the
    /// boundary vertices of METIS, and on boxes and sheets at most 1.08 times.
    Bisection,
    /// Vertices dealt to parts like cards, for parts that stand in a grid of so many rows and columns, the nearest to a square unless
    /// they are given: of a graph whose first vertices have most edges every part has about the same of each kind. Nothing is
    /// near by, so this is for searches of graphs, whose edges hosts then cut in both directions (Buluç and Madduri 2011).
    Grid(Option<[u32; 2]>),
}

impl Cut {
    /// Rows and columns of so many parts, if they stand in a grid.
    ///
    /// # Errors
    /// A grid of more or fewer.
    ///
    /// ```
    /// use meshweft_mesh::Cut;
    /// let shapes = [6, 7, 9].map(|parts| Cut::Grid(None).grid(parts).unwrap());
    /// assert_eq!(shapes, [Some([2, 3]), Some([1, 7]), Some([3, 3])]);
    /// assert!("grid:2x2".parse::<Cut>()?.grid(6).is_err());
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn grid(self, parts: u32) -> Result<Option<[u32; 2]>> {
        match self {
            Cut::Grid(Some([rows, columns])) if u64::from(rows) * u64::from(columns) != u64::from(parts) => {
                Err(Error::Invalid(format!(
                    "a grid of {rows} × {columns} for {parts} hosts: rows times columns are the hosts"
                )))
            }
            Cut::Grid(Some(shape)) => Ok(Some(shape)),
            Cut::Grid(None) => {
                let rows = (1..=parts.isqrt()).rev().find(|rows| parts.is_multiple_of(*rows)).unwrap_or(1);
                Ok(Some([rows, parts / rows]))
            }
            Cut::Curve | Cut::Bisection => Ok(None),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::Curve => f.write_str("curve"),
            Cut::Bisection => f.write_str("bisection"),
            Cut::Grid(None) => f.write_str("grid"),
            Cut::Grid(Some([rows, columns])) => write!(f, "grid:{rows}x{columns}"),
        }
    }
}

impl FromStr for Cut {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cut> {
        let shape = |shape: &str| {
            let (rows, columns) = shape.split_once('x')?;
            Some([rows.parse().ok()?, columns.parse().ok()?])
        };
        match (text, text.strip_prefix("grid:").and_then(shape)) {
            ("curve", _) => Ok(Cut::Curve),
            ("bisection", _) => Ok(Cut::Bisection),
            ("grid", _) => Ok(Cut::Grid(None)),
            (_, Some(shape)) => Ok(Cut::Grid(Some(shape))),
            _ => Err(Error::Invalid(format!("{text:?} is no cut: take curve, bisection, grid or grid:ROWSxCOLUMNS"))),
        }
    }
}

/// One part: the vertices it owns and those it meets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The vertices of the part, ascending.
    pub owned: Vec<u32>,
    /// Owned vertices with a neighbor in another part, ascending: what the part sends.
    pub boundary: Vec<u32>,
    /// Vertices of other parts with an owned neighbor, ascending: what the part receives.
    pub ghosts: Vec<u32>,
}

/// A cut of the vertices `0..n` into parts, one for each machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    owners: Vec<u32>,
    parts: Vec<Part>,
}

impl Partition {
    /// Cuts the vertices into `parts` in the given way. Parts may be empty.
    ///
    /// `points`: shape `[n × 3]`, finite, in the numbering of the graph. That is to follow a space-filling curve:
    /// bisection is right in any numbering, but fast only if consecutive vertices are close together.
    /// Deterministic: depends on the arguments alone, never on the thread count. Cost O(n log parts + edges).
    ///
    /// # Errors
    /// Zero parts, another number of points than of vertices, or a point that is not finite.
    ///
    /// ```
    /// use meshweft_mesh::{Curve, Cut, Graph, Partition, generate};
    /// let mesh = generate::sheet(30, 30)?;
    /// let order = Curve::Morton.order(mesh.points());
    /// let points: Vec<_> = order.order().iter().map(|&v| mesh.points()[v as usize]).collect();
    /// let graph = Graph::from_cells(&mesh)?.permuted(&order);
    /// let boundary = |cut| Partition::new(&graph, &points, 3, cut).map(|p| p.boundary_vertices());
    /// assert!(boundary(Cut::Bisection)? < boundary(Cut::Curve)?);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn new(graph: &Graph, points: &[[f64; 3]], parts: usize, cut: Cut) -> Result<Partition> {
        let n = graph.len();
        if points.len() != n {
            return Err(Error::Invalid(format!("{} points for {n} vertices", points.len())));
        }
        if let Some(v) = points.iter().position(|p| p.iter().any(|x| !x.is_finite())) {
            return Err(Error::Invalid(format!("point {v} is not finite: {:?}", points[v])));
        }
        if cut == Cut::Curve || parts < 2 {
            return Partition::contiguous(graph, parts);
        }
        if let Cut::Grid(_) = cut {
            // Back and forth: who is first in one round is last in the next.
            let dealt = |v: usize| if (v / parts).is_multiple_of(2) { v % parts } else { parts - 1 - v % parts };
            return Partition::from_owners(graph, (0..n).map(|v| dealt(v) as u32).collect(), parts);
        }
        let capacity = capacity(n, parts);
        let mut owners = bisection::bisect(graph, points, parts, capacity);
        let near = refinement::refine(graph, &mut owners, parts, capacity);
        let boundary = boundary_among(graph, &owners, &near);
        Ok(Partition::listed(graph, owners, parts, boundary))
    }

    /// Cuts the vertices into `parts` runs whose lengths differ by at most one. Parts may be empty.
    ///
    /// The graph is to be numbered along a space-filling curve, so that runs are compact regions. Cost O(n + edges).
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
        let n = graph.len();
        let cut = |k: usize| (n as u128 * k as u128 / parts as u128) as usize;
        let mut owners = vec![0; n];
        (0..parts).for_each(|k| owners[cut(k)..cut(k + 1)].fill(k as u32));
        Partition::from_owners(graph, owners, parts)
    }

    /// Cuts the vertices into runs whose edges, each counted at both ends, are to each other as the weights; a vertex goes where the middle of
    /// its edges lies. Of a graph numbered by degree, the first part has the hubs.
    ///
    /// Cost O(n + edges).
    ///
    /// # Errors
    /// No weights, or some that are negative, not finite, or all 0.
    ///
    /// ```
    /// use meshweft_mesh::{Graph, Partition};
    /// let star = Graph::from_edges(5, &[[0, 1], [0, 2], [0, 3], [0, 4]])?;
    /// let parts = Partition::by_edges(&star, &[1.0, 1.0])?;
    /// assert_eq!(parts.owners(), [0, 1, 1, 1, 1]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn by_edges(graph: &Graph, weights: &[f64]) -> Result<Partition> {
        let all: f64 = weights.iter().sum();
        if !(all > 0.0 && all.is_finite()) || weights.iter().any(|&weight| weight < 0.0) {
            return Err(Error::Invalid(format!("parts that weigh {weights:?}: take finite numbers from 0, not all 0")));
        }
        let mut sum = 0.0;
        let mut end = |weight: f64| {
            sum += weight;
            sum / all
        };
        let ends: Vec<f64> = weights.iter().map(|&weight| end(weight)).collect();
        let (mut before, edges) = (0, graph.directed_edges().max(1) as f64);
        let owner = |v: u32| {
            let degree = graph.degree(v);
            let middle = (before as f64 + 0.5 * degree as f64) / edges;
            before += degree;
            ends.partition_point(|&end| end <= middle).min(weights.len() - 1) as u32
        };
        Partition::from_owners(graph, (0..graph.len() as u32).map(owner).collect(), weights.len())
    }

    /// The partition in which vertex `v` belongs to part `owners[v]`, as another partitioner may have found it.
    ///
    /// `owners`: shape `[n]`, values `0..parts`. Cost O(n + edges).
    ///
    /// # Errors
    /// Zero parts, another number of owners than of vertices, or an owner that is no part.
    pub fn from_owners(graph: &Graph, owners: Vec<u32>, parts: usize) -> Result<Partition> {
        let n = graph.len();
        if parts == 0 {
            return Err(Error::Invalid("a partition has at least one part".into()));
        }
        if owners.len() != n {
            return Err(Error::Invalid(format!("{} owners for {n} vertices", owners.len())));
        }
        if let Some(v) = owners.iter().position(|&owner| owner as usize >= parts) {
            return Err(Error::Invalid(format!("vertex {v} is in part {} of {parts}", owners[v])));
        }
        let boundary = boundary(graph, &owners);
        Ok(Partition::listed(graph, owners, parts, boundary))
    }

    /// With the lists of its parts. `boundary`: the vertices with a neighbor in another part, ascending.
    fn listed(graph: &Graph, owners: Vec<u32>, parts: usize, boundary: Vec<u32>) -> Partition {
        let mut sizes = vec![0; parts];
        owners.iter().for_each(|&k| sizes[k as usize] += 1);
        let empty = |size| Part { owned: Vec::with_capacity(size), ..Part::default() };
        let mut lists: Vec<Part> = sizes.into_iter().map(empty).collect();
        (0..).zip(&owners).for_each(|(v, &k)| lists[k as usize].owned.push(v));
        // Ascending, so the lists are too; a vertex is a ghost of every other part that a neighbor is in.
        let mut others = Vec::new();
        for v in boundary {
            lists[owners[v as usize] as usize].boundary.push(v);
            other_parts(graph, &owners, v, &mut others);
            others.iter().for_each(|&k| lists[k as usize].ghosts.push(v));
        }
        Partition { owners, parts: lists }
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The part of each vertex, shape `[n]`.
    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    /// The part that owns `v`.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn owner(&self, v: u32) -> usize {
        self.owners[v as usize] as usize
    }

    /// Undirected edges between parts.
    pub fn cut_edges(&self, graph: &Graph) -> usize {
        let outside = |&v: &u32| graph.neighbors(v).iter().filter(|&&u| self.owner(u) != self.owner(v)).count();
        self.parts.iter().flat_map(|part| &part.boundary).map(outside).sum::<usize>() / 2
    }

    /// Values that go from part to part in a round of updates if each vertex is sent once to each part that has neighbors of it. As many
    /// as if each part added up what it has for a vertex elsewhere, and sent the sum (the aggregation at the source of TOTEM): edges
    /// have no direction here.
    pub fn messages(&self) -> usize {
        self.parts.iter().map(|part| part.ghosts.len()).sum()
    }

    /// Vertices with a neighbor in another part.
    pub fn boundary_vertices(&self) -> usize {
        self.parts.iter().map(|part| part.boundary.len()).sum()
    }

    /// Vertices of the largest part, relative to the mean: 1 is perfect balance, and what an empty graph has.
    pub fn imbalance(&self) -> f64 {
        let largest = self.parts.iter().map(|part| part.owned.len()).max().unwrap_or(0);
        if largest == 0 { 1.0 } else { (largest * self.parts.len()) as f64 / self.owners.len() as f64 }
    }

    /// Checks that every vertex is in the list of its owner alone, and that ghosts and boundaries are exactly what the
    /// edges need. Cost O(n + edges).
    ///
    /// # Errors
    /// Names the part or vertex for which that fails.
    pub fn verify(&self, graph: &Graph) -> Result<()> {
        if self.owners.len() != graph.len() {
            return Err(Error::Invalid(format!("{} owners for {} vertices", self.owners.len(), graph.len())));
        }
        // What is left of each list while its vertices are met in ascending order.
        let mut left: Vec<[&[u32]; 3]> = self.parts.iter().map(|p| [&p.owned[..], &p.boundary, &p.ghosts]).collect();
        let mut meet = |k: u32, list: usize, v: u32| match left.get_mut(k as usize).map(|lists| &mut lists[list]) {
            Some(list) if list.first() == Some(&v) => {
                *list = &list[1..];
                Ok(())
            }
            _ => Err(Error::Invalid(format!("part {k} lacks vertex {v} among its {}", LISTS[list]))),
        };
        let mut others = Vec::new();
        for (v, &k) in (0..).zip(&self.owners) {
            meet(k, 0, v)?;
            other_parts(graph, &self.owners, v, &mut others);
            if !others.is_empty() {
                meet(k, 1, v)?;
            }
            others.iter().try_for_each(|&k| meet(k, 2, v))?;
        }
        for (k, lists) in left.iter().enumerate() {
            if let Some(list) = (0..3).find(|&list| !lists[list].is_empty()) {
                let v = lists[list][0];
                return Err(Error::Invalid(format!("part {k} has vertex {v} among its {} wrongly", LISTS[list])));
            }
        }
        Ok(())
    }
}

/// The lists of a part, in the order of its fields.
const LISTS: [&str; 3] = ["owned vertices", "boundary vertices", "ghosts"];

/// The most vertices a part of a bisection has: 3 % above the mean, as METIS allows its k-way parts.
fn capacity(n: usize, parts: usize) -> usize {
    n.div_ceil(parts).max((n as u128 * 103 / 100 / parts as u128) as usize)
}

#[cfg(test)]
mod tests;
