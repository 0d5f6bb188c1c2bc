//! Schedules: a total order of the vertices, and what may run at the same time under it.
//!
//! # The one idea
//!
//! Fix a total order of the vertices. A *sweep* updates every vertex once, in that order, in place: each vertex reads
//! the **new** values of its neighbors before it (its predecessors) and the **old** values of those after it. The loop
//! that does just that is the oracle ([`Backend::Serial`](crate::Backend::Serial)); it specifies everything else.
//!
//! Two updates without an edge between their vertices commute, bit for bit, because neither reads what the other
//! writes. So the order matters only along edges: it orients each edge from the earlier to the later end, and **any**
//! execution that respects this acyclic orientation gives the bits of the oracle. An order and an orientation are the
//! same thing here, and every schedule is a way to walk the oriented graph with more than one hand:
//!
//! - in **phases**: runs of the order without an edge inside; all vertices of a phase may run together;
//! - as a **task graph**: runs of the order (blocks, or single vertices) with a count of unfinished predecessors each.
//!
//! # Example
//!
//! A path `0 - 1 - 2 - 3`, colored `a b a b`. By color the order is `0 2 | 1 3`: two phases. By number it is `0 1 2 3`:
//! as a task graph each vertex waits for the one before it, and round 2 of vertex 0 may start as soon as round 1 of
//! vertex 1 has ended, while vertex 3 is still in round 1.
//!
//! # What does not matter
//!
//! Colors, levels and blocks are computed on the graph numbered along the space-filling curve, by rules that look at
//! nothing else: not at threads, hosts or caches. The same mesh has the same order, so the same bits, everywhere.

mod order;
mod span;

pub use order::Order;

use crate::error::{Error, Result};
use meshweft_mesh::{Coloring, Graph, Levels, Permutation};
use rayon::prelude::*;

/// What may run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Runs of the order, one after the other; vertices of a run may be updated together. `offsets`: shape [phases + 1].
    Phases {
        /// Where each phase starts.
        offsets: Vec<u32>,
    },
    /// Runs of the order as tasks. A task waits for its neighbors of lower number in the same round and for those of
    /// higher number in the round before. Inside a task vertices are updated in order.
    Tasks {
        /// Where each task starts, shape [tasks + 1].
        offsets: Vec<u32>,
        /// Which tasks are joined by an edge.
        graph: Graph,
    },
}

/// A total order of the vertices and a plan to walk it.
///
/// Storage follows the order: vertex `i` of the schedule is the `i`-th to be updated and the `i`-th in memory.
#[derive(Clone, Debug)]
pub struct Schedule {
    order: Order,
    permutation: Permutation,
    plan: Plan,
    runs: Vec<u32>,
}

impl Schedule {
    /// Plans the order for a graph that is numbered along a curve.
    ///
    /// `block_size`: vertices a block of [`Order::Blocked`], for example
    /// [`Backend::default_block_size`](crate::Backend::default_block_size). Cost O(n + edges) and a sort. The result has passed [`Schedule::verify`].
    ///
    /// # Errors
    /// A block size of zero; a plan that breaks the contract, which would be a mistake of this crate.
    ///
    /// ```
    /// use meshweft::{Order, Plan, Schedule};
    /// use meshweft_mesh::Graph;
    /// let path = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3]])?;
    /// let schedule = Schedule::new(&path, Order::Color, 64)?;
    /// assert_eq!(schedule.permutation().order(), [0, 2, 1, 3]);
    /// assert_eq!(*schedule.plan(), Plan::Phases { offsets: vec![0, 2, 4] });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(graph: &Graph, order: Order, block_size: usize) -> Result<Schedule> {
        let n = graph.len();
        if block_size == 0 {
            return Err(Error::Invalid("a block holds at least one vertex".into()));
        }
        let schedule = match order {
            Order::Jacobi => {
                let offsets = if n == 0 { vec![0] } else { vec![0, n as u32] };
                let plan = Plan::Phases { offsets: offsets.clone() };
                let permutation = Permutation::identity(n);
                Schedule { order, permutation, plan, runs: offsets }
            }
            Order::PriorityDag => priority_dag(graph, block_size.min(LONGEST_CHAIN))?,
            Order::Color => {
                let colors = Coloring::balanced(graph);
                let color = |v: u32| u64::from(colors.colors()[v as usize]);
                phases(graph, order, color, color)
            }
            Order::ColorLevel => {
                let (colors, levels) = (Coloring::balanced(graph), Levels::of(graph));
                let color = |v: u32| u64::from(colors.colors()[v as usize]);
                let level = |v: u32| u64::from(levels.levels()[v as usize]);
                // No edge joins two vertices of a color, whatever their levels: the whole color is one phase.
                phases(graph, order, |v| color(v) * levels.count() as u64 + level(v), color)
            }
            Order::LevelColor => {
                let (colors, levels) = (Coloring::balanced(graph), Levels::of(graph));
                let color = |v: u32| u64::from(colors.colors()[v as usize]);
                let level = |v: u32| u64::from(levels.levels()[v as usize]);
                let both = |v| level(v) * colors.count() as u64 + color(v);
                phases(graph, order, both, both)
            }
            Order::Blocked => blocked(graph, block_size)?,
        };
        schedule.verify(graph)?;
        Ok(schedule)
    }

    /// The order that was planned.
    pub fn order(&self) -> Order {
        self.order
    }

    /// From the numbers along the curve to places in the order and in memory.
    pub fn permutation(&self) -> &Permutation {
        &self.permutation
    }

    /// What may run at the same time.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where runs of the order start within which no edge joins two vertices, and the end: shape [runs + 1]. Every phase
    /// and every task consists of whole runs; what updates several vertices side by side takes them from one run.
    pub fn runs(&self) -> &[u32] {
        &self.runs
    }

    /// Whether sweeps read the old values of all neighbors.
    pub fn is_double_buffered(&self) -> bool {
        self.order == Order::Jacobi
    }

    /// Number of phases or tasks.
    pub fn parts(&self) -> usize {
        match &self.plan {
            Plan::Phases { offsets } | Plan::Tasks { offsets, .. } => offsets.len() - 1,
        }
    }

    /// Checks the contract of the plan for the graph it was made of: phases or tasks cover the order in whole runs; no
    /// edge inside a run (unless double-buffered) nor inside a phase; two tasks joined by an edge are neighbors in the
    /// task graph.
    ///
    /// This is what entitles the engines to write without locks. Cost O(n + edges).
    ///
    /// # Errors
    /// Names the first edge or run that breaks it.
    pub fn verify(&self, graph: &Graph) -> Result<()> {
        let n = graph.len() as u32;
        let (Plan::Phases { offsets } | Plan::Tasks { offsets, .. }) = &self.plan;
        let covers = |cuts: &[u32]| cuts.first() == Some(&0) && cuts.last() == Some(&n) && cuts.is_sorted();
        let whole = offsets.iter().all(|cut| self.runs.binary_search(cut).is_ok());
        if !covers(offsets) || !covers(&self.runs) || !whole || self.permutation.len() != n as usize {
            return Err(Error::Contract(format!("the runs of order {} do not cover {n} vertices", self.order)));
        }
        if self.is_double_buffered() {
            return Ok(());
        }
        let rank = self.permutation.rank();
        let by_place = [offsets, &self.runs].map(|cuts| numbers(cuts));
        let [part_of, run_of] = by_place.map(|number| rank.par_iter().map(|&p| number[p as usize]).collect::<Vec<_>>());
        let wrong = |v: u32| {
            let (own, run) = (part_of[v as usize], run_of[v as usize]);
            let mut known = own; // neighbors often lie in one part, one after the other
            let is_unordered = |&&u: &&u32| {
                let other = part_of[u as usize];
                let unordered = run_of[u as usize] == run
                    || match &self.plan {
                        Plan::Phases { .. } => own == other,
                        Plan::Tasks { graph, .. } => {
                            other != own && other != known && graph.neighbors(own).binary_search(&other).is_err()
                        }
                    };
                known = other;
                unordered
            };
            graph.neighbors(v).iter().find(is_unordered).map(|&u| (v, u))
        };
        /// Vertices that are checked as one piece of work.
        const PIECE: usize = 1 << 12;
        let piece = |first: usize| (first as u32..n.min((first + PIECE) as u32)).find_map(wrong);
        match (0..n as usize).into_par_iter().step_by(PIECE).find_map_first(piece) {
            None => Ok(()),
            Some((v, u)) => {
                let [v, u] = [v, u].map(|v| rank[v as usize]);
                Err(Error::Contract(format!("order {}: nothing orders the neighbors {v} and {u}", self.order)))
            }
        }
    }
}

/// Which of the runs each vertex lies in.
fn numbers(cuts: &[u32]) -> Vec<u32> {
    let mut numbers = vec![0; cuts.last().map_or(0, |&n| n as usize)];
    for (run, w) in cuts.windows(2).enumerate() {
        numbers[w[0] as usize..w[1] as usize].fill(run as u32);
    }
    numbers
}

/// Vertices a task of [`Order::PriorityDag`] at most: along a curve most blocks wait for the one before, so that larger
/// ones leave nothing to do at the same time. Results do not depend on it.
const LONGEST_CHAIN: usize = 2048;

/// Sorts by `key`, ties by number; runs of equal `phase` are the phases.
fn phases(graph: &Graph, order: Order, key: impl Fn(u32) -> u64 + Sync, phase: impl Fn(u32) -> u64 + Sync) -> Schedule {
    let permutation = Permutation::sorted_by_number(graph.len(), key);
    let offsets = runs(permutation.order(), phase);
    Schedule { order, permutation, plan: Plan::Phases { offsets: offsets.clone() }, runs: offsets }
}

/// Blocks of consecutive vertices, sorted by (color of the block, block, color of the vertex, degree, number).
///
/// Degrees count so that vertices updated side by side have about as many neighbors.
fn blocked(graph: &Graph, block_size: usize) -> Result<Schedule> {
    let n = graph.len();
    let blocks = graph.quotient(&blocks(n, block_size))?;
    let block_colors = Coloring::balanced(&blocks);
    let colors = Coloring::balanced(graph);
    let block_of = |v: u32| v as usize / block_size;
    let places = Permutation::sorted_by_number(block_colors.colors().len(), |block| {
        u64::from(block_colors.colors()[block as usize])
    });
    let most = graph.max_degree() as u64 + 1;
    let permutation = Permutation::sorted_by_number(n, |v| {
        let (place, color) = (places.rank()[block_of(v)], colors.colors()[v as usize]);
        let run = u64::from(place) * colors.count() as u64 + u64::from(color);
        run * most + graph.neighbors(v).len() as u64
    });
    let key = |v: u32| (block_of(v) as u32, colors.colors()[v as usize]);
    Ok(tasks(Order::Blocked, permutation, blocks.permuted(&places), key))
}

/// Blocks of consecutive vertices, sorted inside by how long a chain of predecessors each vertex has there.
///
/// All edges keep the direction that the numbers give them, so this is the order of the numbers as far as any result can
/// tell: vertices without an edge between them may change places.
fn priority_dag(graph: &Graph, block_size: usize) -> Result<Schedule> {
    let mut depth = vec![0u32; graph.len()];
    depth.par_chunks_mut(block_size).enumerate().for_each(|(block, depth)| {
        let first = block * block_size;
        for v in 0..depth.len() {
            let neighbors = graph.neighbors((first + v) as u32).iter();
            let inside = neighbors.filter_map(|&u| (u as usize).checked_sub(first)).filter(|&u| u < v);
            depth[v] = inside.map(|u| depth[u] + 1).max().unwrap_or(0);
        }
    });
    let block_of = |v: u32| v as usize / block_size;
    let permutation = Permutation::sorted_by_number(graph.len(), |v| {
        (block_of(v) * block_size) as u64 + u64::from(depth[v as usize])
    });
    let blocks = graph.quotient(&blocks(graph.len(), block_size))?;
    Ok(tasks(Order::PriorityDag, permutation, blocks, |v| (block_of(v) as u32, depth[v as usize])))
}

/// Where blocks of consecutive vertices start, and the end.
fn blocks(n: usize, block_size: usize) -> Vec<u32> {
    let starts = (0..n).step_by(block_size).map(|v| v as u32);
    starts.chain([n as u32]).collect()
}

/// A schedule of tasks from the order of vertices. `tasks`: which of them are joined by an edge. `key`: task and run of a
/// vertex.
fn tasks(order: Order, permutation: Permutation, tasks: Graph, key: impl Fn(u32) -> (u32, u32) + Sync) -> Schedule {
    let offsets = runs(permutation.order(), |v| key(v).0);
    let runs = runs(permutation.order(), key);
    Schedule { order, permutation, plan: Plan::Tasks { offsets, graph: tasks }, runs }
}

/// Where runs of equal keys start, and the end.
fn runs<K: PartialEq>(order: &[u32], key: impl Fn(u32) -> K + Sync) -> Vec<u32> {
    let starts =
        (1..order.len() as u32).into_par_iter().filter(|&i| key(order[i as usize]) != key(order[i as usize - 1]));
    let mut offsets = vec![0];
    offsets.par_extend(starts);
    if !order.is_empty() {
        offsets.push(order.len() as u32);
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grid of triangles, numbered row by row.
    fn grid(n: u32) -> Graph {
        let at = |x, y| y * n + x;
        let steps = [(1, 0), (0, 1), (1, 1)];
        let edges: Vec<[u32; 2]> = (0..n)
            .flat_map(|y| (0..n).map(move |x| (x, y)))
            .flat_map(|(x, y)| steps.map(|(dx, dy)| (x, y, x + dx, y + dy)))
            .filter(|&(_, _, x, y)| x < n && y < n)
            .map(|(x0, y0, x1, y1)| [at(x0, y0), at(x1, y1)])
            .collect();
        Graph::from_edges((n * n) as usize, &edges).unwrap()
    }

    #[test]
    fn every_order_has_a_verified_schedule_on_every_kind_of_graph() {
        let star: Vec<[u32; 2]> = (1..=10_000).map(|v| [0, v]).collect();
        let graphs = [
            Graph::from_edges(0, &[]).unwrap(),
            Graph::from_edges(1, &[]).unwrap(),
            Graph::from_edges(7, &[[0, 1], [4, 6]]).unwrap(),
            Graph::from_edges(10_001, &star).unwrap(),
            grid(40),
        ];
        for graph in &graphs {
            for order in Order::ALL {
                for block_size in [1, 5, 64, 1 << 20] {
                    let schedule = Schedule::new(graph, order, block_size).unwrap();
                    assert_eq!(schedule.permutation().len(), graph.len());
                    schedule.verify(graph).unwrap();
                }
            }
        }
        assert!(Schedule::new(&graphs[4], Order::Blocked, 0).is_err());
    }

    #[test]
    fn verify_sees_an_edge_inside_a_phase_and_a_missing_task_edge() {
        let graph = Graph::from_edges(3, &[[0, 1], [1, 2]]).unwrap();
        let schedule = |plan, runs| Schedule { order: Order::Color, permutation: Permutation::identity(3), plan, runs };
        let error = |schedule: Schedule| schedule.verify(&graph).unwrap_err().to_string();
        let phases = schedule(Plan::Phases { offsets: vec![0, 2, 3] }, vec![0, 1, 2, 3]);
        assert!(error(phases).contains("neighbors 0 and 1"));
        let apart = Graph::from_edges(2, &[]).unwrap();
        let tasks = schedule(Plan::Tasks { offsets: vec![0, 2, 3], graph: apart }, vec![0, 1, 2, 3]);
        assert!(error(tasks).contains("neighbors 1 and 2"));
        let joined = Graph::from_edges(2, &[[0, 1]]).unwrap();
        let run = schedule(Plan::Tasks { offsets: vec![0, 2, 3], graph: joined.clone() }, vec![0, 2, 3]);
        assert!(error(run).contains("neighbors 0 and 1"));
        let cut = schedule(Plan::Tasks { offsets: vec![0, 2, 3], graph: joined }, vec![0, 1, 3]);
        assert!(error(cut).contains("do not cover"));
    }

    #[test]
    fn verify_looks_at_places_in_the_order_and_not_at_numbers() {
        let graph = Graph::from_edges(3, &[[0, 1], [1, 2]]).unwrap();
        let schedule = |order| {
            let permutation = Permutation::from_order(order).unwrap();
            let plan = Plan::Phases { offsets: vec![0, 2, 3] };
            Schedule { order: Order::Color, permutation, plan, runs: vec![0, 2, 3] }
        };
        schedule(vec![0, 2, 1]).verify(&graph).unwrap();
        schedule(vec![2, 0, 1]).verify(&graph).unwrap();
        let error = schedule(vec![2, 1, 0]).verify(&graph).unwrap_err().to_string();
        assert!(error.contains("neighbors 2 and 1") || error.contains("neighbors 1 and 0"), "{error}");
    }

    #[test]
    fn the_priority_dag_keeps_the_direction_of_every_edge() {
        let graph = grid(40);
        for block_size in [1, 7, 64, 100] {
            let schedule = Schedule::new(&graph, Order::PriorityDag, block_size).unwrap();
            let rank = schedule.permutation().rank();
            for v in 0..graph.len() as u32 {
                for &u in graph.neighbors(v) {
                    assert_eq!(u < v, rank[u as usize] < rank[v as usize], "{u} and {v}, {block_size:?}");
                }
            }
        }
    }
}
