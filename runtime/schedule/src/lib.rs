//! Schedules: a total order of the vertices, and what may run at the same time under it.
//!
//! # The one idea
//!
//! Fix a total order of the vertices. A *sweep* updates every vertex once, in that order, in place: each vertex reads
//! the **new** values of its neighbors before it (its predecessors) and the **old** values of those after it. The loop
//! that does just that is the oracle (`Backend::Serial` of the runtime); it specifies everything else.
//!
//! Two updates without an edge between their vertices commute, bit for bit, because neither reads what the other
//! writes. So the order matters only along edges: it orients each edge from the earlier to the later end, and **any**
//! execution that respects this acyclic orientation gives the bits of the oracle. An order and an orientation are the
//! same thing here, and every schedule is a way to walk the oriented graph with more than one hand:
//! runs of the order (blocks, or pieces of a color) are **tasks**, joined in a graph where an edge joins their vertices. A task
//! may run its next round as soon as no neighbor lags behind what the order asks for ([`is_ready`]): that one inequality is
//! the whole scheduler. It has no barrier: tasks far apart may be rounds, and stages of a step, apart.
//!
//! # Example
//!
//! A path `0 - 1 - 2 - 3`, colored `a b a b`. By color the order is `0 2 | 1 3`: with a task for each color, the second waits for
//! the first. By number it is `0 1 2 3`: with a task for each vertex, each waits for the one before it, and round 2 of vertex 0
//! may start as soon as round 1 of vertex 1 has ended, while vertex 3 is still in round 1.
//!
//! # What does not matter
//!
//! Colors, levels and blocks are computed on the graph numbered along the space-filling curve, by rules that look at
//! nothing else: not at threads, hosts or caches. The same mesh has the same order, so the same bits, everywhere.

#![forbid(unsafe_code)]

mod critical_path;
mod error;
mod order;
mod ready;

pub use error::{Error, Result};
pub use order::{Key, Order};
pub use ready::{Rule, is_ready};

use meshweft_mesh::{Coloring, Graph, Levels, Permutation, parallel};

/// A total order of the vertices, cut into tasks, and which of those are neighbors.
///
/// Storage follows the order: vertex `i` of the schedule is the `i`-th to be updated and the `i`-th in memory.
#[derive(Clone, Debug)]
pub struct Schedule {
    order: Order,
    permutation: Permutation,
    runs: Vec<u32>,
    tasks: Vec<u32>,
    /// Where parts start among the tasks, and the end.
    parts: Vec<u32>,
    graph: Graph,
}

impl Schedule {
    /// Plans the order for a graph that is numbered along the order's curve; a key of the host's own is in the numbers already.
    ///
    /// `grain`: vertices a task where the order leaves that open, for example that of a backend. Cost
    /// O(n + edges) and a sort.
    ///
    /// # Errors
    /// A grain of zero.
    ///
    /// ```
    /// use meshweft_schedule::{Order, Schedule};
    /// use meshweft_mesh::Graph;
    /// let path = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3]])?;
    /// let schedule = Schedule::new(&path, Order::COLOR, 64)?;
    /// assert_eq!(schedule.permutation().order(), [0, 2, 1, 3]);
    /// assert_eq!((schedule.tasks(), schedule.graph().neighbors(0)), (&[0, 2, 4][..], &[1][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(graph: &Graph, order: Order, grain: u32) -> Result<Schedule> {
        Schedule::of_parts(graph, order, grain, &[0, graph.len() as u32])
    }

    /// The same for a graph in parts, which follow each other in the order as they do along the curve: sweeps may visit one alone. `parts`:
    /// where they start along the curve, and the end. No task has vertices of two.
    ///
    /// # Errors
    /// As [`Schedule::new`], and parts that do not cover the graph.
    ///
    /// ```
    /// use meshweft_schedule::{Order, Schedule};
    /// use meshweft_mesh::Graph;
    /// // Three vertices in a row, and a coarse one for all of them.
    /// let graph = Graph::from_edges(4, &[[0, 1], [1, 2], [0, 3], [1, 3], [2, 3]])?;
    /// let schedule = Schedule::of_parts(&graph, Order::COLOR, 64, &[0, 3, 4])?;
    /// assert_eq!((schedule.permutation().order(), schedule.tasks()), (&[0, 2, 1, 3][..], &[0, 2, 3, 4][..]));
    /// assert_eq!(schedule.parts(), [0, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_parts(graph: &Graph, order: Order, grain: u32, parts: &[u32]) -> Result<Schedule> {
        if grain == 0 {
            return Err(Error::Invalid("a task holds at least one vertex".into()));
        }
        if parts.first() != Some(&0) || parts.last() != Some(&(graph.len() as u32)) || !parts.is_sorted() {
            return Err(Error::Invalid(format!("parts {parts:?} do not cover {} vertices", graph.len())));
        }
        let order = order.resolved(grain);
        let schedule = match order.key {
            Key::Jacobi => phases(graph, order, parts, |_| 0, |_| 0)?,
            Key::PriorityDag | Key::Own => priority_dag(graph, order, parts, (grain as usize).min(LONGEST_CHAIN))?,
            Key::Color => {
                let colors = Coloring::balanced(graph);
                let color = |v: u32| u64::from(colors.colors()[v as usize]);
                phases(graph, order, parts, color, color)?
            }
            Key::ColorLevel => {
                let (colors, levels) = (Coloring::balanced(graph), Levels::of(graph));
                let color = |v: u32| u64::from(colors.colors()[v as usize]);
                let level = |v: u32| u64::from(levels.levels()[v as usize]);
                // No edge joins two vertices of a color, whatever their levels: the whole color is one phase.
                phases(graph, order, parts, |v| color(v) * levels.count() as u64 + level(v), color)?
            }
            Key::LevelColor => {
                let (colors, levels) = (Coloring::balanced(graph), Levels::of(graph));
                let color = |v: u32| u64::from(colors.colors()[v as usize]);
                let level = |v: u32| u64::from(levels.levels()[v as usize]);
                let both = |v| level(v) * colors.count() as u64 + color(v);
                phases(graph, order, parts, both, both)?
            }
            Key::Blocked { size } => blocked(graph, order, parts, size as usize)?,
        };
        schedule.verify(graph, parts)?;
        Ok(schedule)
    }

    /// The order that was planned, with the size of its blocks.
    pub fn order(&self) -> Order {
        self.order
    }

    /// From the numbers along the curve to places in the order and in memory.
    pub fn permutation(&self) -> &Permutation {
        &self.permutation
    }

    /// Where tasks start in the order, and the end: shape [tasks + 1].
    pub fn tasks(&self) -> &[u32] {
        &self.tasks
    }

    /// Where parts start among the tasks, and the end: shape [parts + 1].
    pub fn parts(&self) -> &[u32] {
        &self.parts
    }

    /// Which tasks are joined by an edge of the data graph. Tasks are numbered in the order.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where runs of the order start within which no edge joins two vertices, and the end: shape [runs + 1]. Every task
    /// consists of whole runs; what updates several vertices side by side takes them from one run.
    pub fn runs(&self) -> &[u32] {
        &self.runs
    }

    /// Whether sweeps read the old values of all neighbors.
    pub fn is_double_buffered(&self) -> bool {
        self.order.key.is_double_buffered()
    }

    /// [`depths`] of its tasks.
    pub fn depths(&self) -> Vec<u32> {
        depths(&self.graph, self.is_double_buffered())
    }

    /// Checks the contract of the schedule for the graph it was made of: tasks cover the order in whole runs, and each part of it whole;
    /// no edge lies inside a run (unless double-buffered); two tasks joined by an edge are neighbors in the task graph.
    ///
    /// This is what entitles the engines to write without locks. Cost O(n + edges).
    ///
    /// # Errors
    /// Names the first edge or run that breaks it: a mistake of this crate.
    fn verify(&self, graph: &Graph, parts: &[u32]) -> Result<()> {
        let n = graph.len() as u32;
        let covers = |cuts: &[u32]| cuts.first() == Some(&0) && cuts.last() == Some(&n) && cuts.is_sorted();
        let whole = self.tasks.iter().all(|cut| self.runs.binary_search(cut).is_ok());
        if !covers(&self.tasks) || !covers(&self.runs) || !whole || self.permutation.len() != n as usize {
            return Err(Error::Internal(format!("the runs of order {} do not cover {n} vertices", self.order)));
        }
        let lies_whole = |(task, part): (&u32, &u32)| self.tasks.get(*task as usize) == Some(part);
        if self.parts.len() != parts.len() || !self.parts.iter().zip(parts).all(lies_whole) {
            return Err(Error::Internal(format!("a task of order {} has vertices of two parts", self.order)));
        }
        let rank = self.permutation.rank();
        let by_place = [&self.tasks, &self.runs].map(|cuts| numbers(cuts));
        let [task_of, run_of] = by_place.map(|number| parallel::collect(rank.len(), |v| number[rank[v] as usize]));
        let wrong = |v: u32| {
            let (own, run) = (task_of[v as usize], run_of[v as usize]);
            let mut known = own; // neighbors often lie in one task, one after the other
            let is_unordered = |&&u: &&u32| {
                let other = task_of[u as usize];
                let apart = other != own && other != known && self.graph.neighbors(own).binary_search(&other).is_err();
                known = other;
                apart || (run_of[u as usize] == run && !self.is_double_buffered())
            };
            graph.neighbors(v).iter().find(is_unordered).map(|&u| (v, u))
        };
        /// Vertices that are checked as one piece of work.
        const PIECE: usize = 1 << 12;
        let piece = |first: usize| (first as u32..n.min((first + PIECE) as u32)).find_map(wrong);
        match parallel::map((0..n as usize).step_by(PIECE), piece).into_iter().flatten().next() {
            None => Ok(()),
            Some((v, u)) => {
                let [v, u] = [v, u].map(|v| rank[v as usize]);
                Err(Error::Internal(format!("order {}: nothing orders the neighbors {v} and {u}", self.order)))
            }
        }
    }
}

/// Where waves of tasks start, and the end, of a graph of tasks: as many consecutive tasks each as have no edge between them, or all of
/// them if double-buffered. Shape [waves + 1]. Wave after wave is one way to walk the graph. Cost O(tasks).
///
/// ```
/// use meshweft_mesh::Graph;
/// let row = Graph::from_edges(4, &[[1, 2], [2, 3]])?;
/// assert_eq!(meshweft_schedule::waves(&row, false), [0, 2, 3, 4]);
/// assert_eq!(meshweft_schedule::waves(&row, true), [0, 4]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn waves(graph: &Graph, is_double_buffered: bool) -> Vec<u32> {
    let mut waves = vec![0];
    let mut start = 0;
    for t in 0..graph.len() as u32 {
        if graph.predecessors(t).last().is_some_and(|&u| u >= start) && !is_double_buffered {
            waves.push(t);
            start = t;
        }
    }
    if !graph.is_empty() {
        waves.push(graph.len() as u32);
    }
    waves
}

/// How many predecessors each task of a graph has in a row, the longest way: one number a task; zeros if double-buffered. Cost
/// O(tasks and their neighbors).
///
/// ```
/// use meshweft_mesh::Graph;
/// let row = Graph::from_edges(4, &[[0, 3], [1, 2], [2, 3]])?;
/// assert_eq!(meshweft_schedule::depths(&row, false), [0, 0, 1, 2]);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn depths(graph: &Graph, is_double_buffered: bool) -> Vec<u32> {
    let mut depths = vec![0u32; graph.len()];
    for t in 0..graph.len() as u32 {
        let longest = graph.predecessors(t).iter().map(|&u| depths[u as usize] + 1).max();
        depths[t as usize] = longest.filter(|_| !is_double_buffered).unwrap_or(0);
    }
    depths
}

/// Which of the runs each vertex lies in.
fn numbers(cuts: &[u32]) -> Vec<u32> {
    let mut numbers = vec![0; cuts.last().map_or(0, |&n| n as usize)];
    for (run, w) in cuts.windows(2).enumerate() {
        numbers[w[0] as usize..w[1] as usize].fill(run as u32);
    }
    numbers
}

/// Vertices a task of [`Order::PRIORITY_DAG`] at most: along a curve most blocks wait for the one before, so that larger
/// ones leave nothing to do at the same time. Results do not depend on it.
const LONGEST_CHAIN: usize = 2048;

/// The most vertices of a task of a phase: with their neighbors they fit into the second-level cache of a core. Results do
/// not depend on it, nor on the next two.
const PHASE_TASK: usize = 4096;
/// The fewest where a phase has more: a table is worth filling for them.
const LEAST_PHASE_TASK: usize = 256;
/// Tasks that a phase is cut into where it is small, so that threads find work.
const PHASE_TASKS: usize = 16;

/// The most edges at the vertices of a task of a phase, but those of a group: hubs of a graph have as many as thousands of others.
const PHASE_TASK_EDGES: usize = 1 << 17;
/// Vertices by which tasks of a phase are cut: a multiple of all that are updated side by side, and of the bits of a word.
const GROUP: usize = 64;

/// Sorts by part and `key`, ties by number. Runs of equal `phase` hold no edge; they are cut into tasks.
fn phases(
    graph: &Graph,
    order: Order,
    parts: &[u32],
    key: impl Fn(u32) -> u64 + Sync,
    phase: impl Fn(u32) -> u64 + Sync,
) -> Result<Schedule> {
    let part = |v: u32| (parts.partition_point(|&start| start <= v) - 1) as u64;
    let permutation = match parts.len() {
        ..=2 => Permutation::sorted_by_number(graph.len(), key),
        _ => {
            let keys = parallel::collect(graph.len(), |v| key(v as u32));
            let most = keys.iter().max().map_or(1, |most| most + 1);
            Permutation::sorted_by_number(graph.len(), |v| part(v) * most + keys[v as usize])
        }
    };
    let mut tasks = vec![0];
    for ends in runs(permutation.order(), |v| (part(v), phase(v))).windows(2) {
        let len = (ends[1] - ends[0]) as usize;
        // Whole groups, however many vertices are updated side by side.
        let most = (len / PHASE_TASKS).clamp(LEAST_PHASE_TASK, PHASE_TASK).next_multiple_of(GROUP);
        let (mut vertices, mut edges) = (0, 0);
        for start in (ends[0]..ends[1]).step_by(GROUP) {
            let group = start as usize..ends[1].min(start + GROUP as u32) as usize;
            let more: usize = permutation.order()[group].iter().map(|&v| graph.degree(v)).sum();
            // Whole pieces, also behind hubs: leaves of sums are such pieces, and are added up where all of one is.
            let is_whole = ((start - ends[0]) as usize).is_multiple_of(most);
            if vertices > 0 && (is_whole || edges + more > PHASE_TASK_EDGES) {
                tasks.push(start);
                (vertices, edges) = (0, 0);
            }
            (vertices, edges) = (vertices + GROUP, edges + more);
        }
        tasks.push(ends[1]);
    }
    let task_of = numbers(&tasks);
    let rank = permutation.rank();
    let labels = parallel::collect(rank.len(), |v| task_of[rank[v] as usize]);
    let graph = graph.quotient_by(&labels, tasks.len() - 1)?;
    let parts = starts(parts, &tasks);
    Ok(Schedule { order, permutation, runs: tasks.clone(), tasks, parts, graph })
}

/// Blocks of consecutive vertices, sorted by (part, color of the block, block, color of the vertex, degree, number).
///
/// Degrees count so that vertices updated side by side have about as many neighbors.
fn blocked(graph: &Graph, order: Order, parts: &[u32], block_size: usize) -> Result<Schedule> {
    let n = graph.len();
    let cuts = Blocks::new(parts, block_size);
    let blocks = graph.quotient(&cuts.starts)?;
    let block_colors = Coloring::balanced(&blocks);
    let colors = Coloring::balanced(graph);
    let block_of = |v: u32| cuts.of(v);
    let places = Permutation::sorted_by_number(block_colors.colors().len(), |block| {
        let part = parts.partition_point(|&start| start <= cuts.starts[block as usize]) - 1;
        (part * block_colors.count()) as u64 + u64::from(block_colors.colors()[block as usize])
    });
    let most = graph.max_degree() as u64 + 1;
    let permutation = Permutation::sorted_by_number(n, |v| {
        let (place, color) = (places.rank()[block_of(v)], colors.colors()[v as usize]);
        let run = u64::from(place) * colors.count() as u64 + u64::from(color);
        run * most + graph.neighbors(v).len() as u64
    });
    let key = |v: u32| (block_of(v) as u32, colors.colors()[v as usize]);
    Ok(tasks(order, parts, permutation, blocks.permuted(&places), key))
}

/// Blocks of consecutive vertices, sorted inside by how long a chain of predecessors each vertex has there.
///
/// All edges keep the direction that the numbers give them, so this is the order of the numbers as far as any result can
/// tell: vertices without an edge between them may change places.
fn priority_dag(graph: &Graph, order: Order, parts: &[u32], block_size: usize) -> Result<Schedule> {
    let cuts = Blocks::new(parts, block_size);
    let mut depth = vec![0u32; graph.len()];
    let mut rest = &mut depth[..];
    let blocks = cuts.starts.windows(2).map(|ends| {
        let (depth, after) = std::mem::take(&mut rest).split_at_mut((ends[1] - ends[0]) as usize);
        rest = after;
        (ends[0] as usize, depth)
    });
    parallel::each(blocks.collect::<Vec<_>>(), |(first, depth)| {
        for v in 0..depth.len() {
            let neighbors = graph.neighbors((first + v) as u32).iter();
            let inside = neighbors.filter_map(|&u| (u as usize).checked_sub(first)).filter(|&u| u < v);
            depth[v] = inside.map(|u| depth[u] + 1).max().unwrap_or(0);
        }
    });
    let permutation = Permutation::sorted_by_number(graph.len(), |v| {
        u64::from(cuts.starts[cuts.of(v)]) + u64::from(depth[v as usize])
    });
    let blocks = graph.quotient(&cuts.starts)?;
    Ok(tasks(order, parts, permutation, blocks, |v| (cuts.of(v) as u32, depth[v as usize])))
}

/// Blocks of consecutive vertices of a part.
struct Blocks {
    /// Where they start, and the end.
    starts: Vec<u32>,
    /// Where each part starts, and its first block.
    parts: Vec<(u32, usize)>,
    size: usize,
}

impl Blocks {
    fn new(ends: &[u32], size: usize) -> Blocks {
        let (mut starts, mut parts) = (Vec::new(), Vec::new());
        for part in ends.windows(2) {
            parts.push((part[0], starts.len()));
            starts.extend((part[0]..part[1]).step_by(size));
        }
        starts.extend(ends.last());
        Blocks { starts, parts, size }
    }

    /// The block of a vertex.
    fn of(&self, v: u32) -> usize {
        let (start, first) = self.parts[self.parts.partition_point(|&(start, _)| start <= v) - 1];
        first + (v - start) as usize / self.size
    }
}

/// A schedule of tasks from the order of vertices. `tasks`: which of them are joined by an edge. `key`: task and run of a
/// vertex.
fn tasks(
    order: Order,
    parts: &[u32],
    permutation: Permutation,
    tasks: Graph,
    key: impl Fn(u32) -> (u32, u32) + Sync,
) -> Schedule {
    let offsets = runs(permutation.order(), |v| key(v).0);
    let runs = runs(permutation.order(), key);
    Schedule { order, permutation, runs, parts: starts(parts, &offsets), tasks: offsets, graph: tasks }
}

/// Where parts start among the tasks, and the end. `tasks`: where those start in the order, each in one part.
fn starts(parts: &[u32], tasks: &[u32]) -> Vec<u32> {
    parts.iter().map(|&part| tasks.partition_point(|&start| start < part) as u32).collect()
}

/// Where runs of equal keys start, and the end.
fn runs<K: PartialEq>(order: &[u32], key: impl Fn(u32) -> K + Sync) -> Vec<u32> {
    if order.is_empty() {
        return vec![0];
    }
    let mut offsets = parallel::filter(order.len(), |i| i == 0 || key(order[i]) != key(order[i - 1]));
    offsets.push(order.len() as u32);
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
    fn every_order_keeps_its_definition_on_every_kind_of_graph() {
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
                    check(graph, &Schedule::new(graph, order, block_size).unwrap());
                    let n = graph.len() as u32;
                    let parts = [0, n / 2, n / 2, n - n / 7, n];
                    let schedule = Schedule::of_parts(graph, order, block_size, &parts).unwrap();
                    check(graph, &schedule);
                    for (part, tasks) in parts.windows(2).zip(schedule.parts().windows(2)) {
                        let [first, end] = [tasks[0], tasks[1]].map(|t| schedule.tasks()[t as usize]);
                        let mut own = schedule.permutation().order()[first as usize..end as usize].to_vec();
                        own.sort_unstable();
                        assert_eq!(own, (part[0]..part[1]).collect::<Vec<_>>(), "{order}");
                    }
                }
            }
        }
        assert!(Schedule::new(&graphs[4], Order::BLOCKED, 0).is_err());
        assert!(Schedule::of_parts(&graphs[4], Order::BLOCKED, 1, &[0, 1599]).is_err());
    }

    /// By brute force: what `verify` looks for, and that waves hold no edge and cover all tasks.
    fn check(graph: &Graph, schedule: &Schedule) {
        let cut = |cuts: &[u32], place: u32| cuts.partition_point(|&start| start <= place);
        let rank = schedule.permutation().rank();
        let waves = waves(schedule.graph(), schedule.is_double_buffered());
        assert!(waves.is_sorted() && waves[0] == 0 && *waves.last().unwrap() as usize == schedule.graph().len());
        for v in 0..graph.len() as u32 {
            let own = rank[v as usize];
            for &u in graph.neighbors(v) {
                let other = rank[u as usize];
                let [t, w] = [own, other].map(|place| cut(schedule.tasks(), place) as u32 - 1);
                assert!(t == w || schedule.graph().neighbors(t).contains(&w), "{}: {u} and {v}", schedule.order());
                if !schedule.is_double_buffered() {
                    assert_ne!(cut(schedule.runs(), own), cut(schedule.runs(), other), "{}", schedule.order());
                    assert!(t == w || cut(&waves, t) != cut(&waves, w), "{}: tasks {t} and {w}", schedule.order());
                }
            }
        }
    }

    #[test]
    fn verify_sees_an_edge_inside_a_run_and_a_missing_task_edge() {
        let graph = Graph::from_edges(3, &[[0, 1], [1, 2]]).unwrap();
        let apart = Graph::from_edges(2, &[]).unwrap();
        let joined = Graph::from_edges(2, &[[0, 1]]).unwrap();
        let error = |order: Vec<u32>, runs: Vec<u32>, tasks: &Graph| {
            let permutation = Permutation::from_order(order).unwrap();
            let tasks = (vec![0, 2, 3], tasks.clone());
            let parts = vec![0, tasks.0.len() as u32 - 1];
            Schedule { order: Order::COLOR, permutation, runs, tasks: tasks.0, parts, graph: tasks.1 }
                .verify(&graph, &[0, 3])
        };
        let says = |result: Result<()>, part: &str| {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        error(vec![0, 2, 1], vec![0, 2, 3], &joined).unwrap();
        error(vec![2, 0, 1], vec![0, 2, 3], &joined).unwrap();
        says(error(vec![0, 1, 2], vec![0, 2, 3], &joined), "neighbors 0 and 1");
        says(error(vec![2, 1, 0], vec![0, 2, 3], &joined), "nothing orders the neighbors");
        says(error(vec![0, 1, 2], vec![0, 1, 2, 3], &apart), "neighbors 1 and 2");
        says(error(vec![0, 1, 2], vec![0, 1, 3], &joined), "do not cover");
    }

    #[test]
    fn the_priority_dag_keeps_the_direction_of_every_edge() {
        let graph = grid(40);
        for block_size in [1, 7, 64, 100] {
            let schedule = Schedule::new(&graph, Order::PRIORITY_DAG, block_size).unwrap();
            let rank = schedule.permutation().rank();
            for v in 0..graph.len() as u32 {
                for &u in graph.neighbors(v) {
                    assert_eq!(u < v, rank[u as usize] < rank[v as usize], "{u} and {v}, {block_size:?}");
                }
            }
        }
    }
}
