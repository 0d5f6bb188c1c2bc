//! Work and span: how much of a schedule could run at the same time.

use super::{Plan, Schedule};

impl Schedule {
    /// Span of one round: the most updates that must follow one another, however many threads there are. Phases count
    /// one update each; tasks count all of their vertices, which one thread updates in turn, or side by side.
    ///
    /// The work, which is the number of vertices, over the span is the average parallelism: more threads than that find nothing to do (Brent's bound).
    /// Cost O(tasks and their neighbors). Source: Blumofe and Leiserson, "Scheduling multithreaded computations by work
    /// stealing", 1999, section 1.
    ///
    /// ```
    /// use meshweft::{Order, Schedule};
    /// use meshweft_mesh::Graph;
    /// let path = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3]])?;
    /// assert_eq!(Schedule::new(&path, Order::Color, 64)?.span(), 2);
    /// assert_eq!(Schedule::new(&path, Order::PriorityDag, 1)?.span(), 4);
    /// assert_eq!(Schedule::new(&path, Order::Jacobi, 64)?.span(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn span(&self) -> usize {
        match self.plan() {
            Plan::Phases { offsets } => offsets.len() - 1,
            Plan::Tasks { offsets, graph } => {
                let mut ends = vec![0usize; graph.len()];
                for t in 0..graph.len() {
                    let start = graph.predecessors(t as u32).iter().map(|&u| ends[u as usize]).max().unwrap_or(0);
                    ends[t] = start + (offsets[t + 1] - offsets[t]) as usize;
                }
                ends.into_iter().max().unwrap_or(0)
            }
        }
    }
}
