//! Work and critical path: how much of a schedule could run at the same time.

use super::Schedule;

impl Schedule {
    /// The critical path of one round: the most updates that must follow one another, however many threads there are. A task
    /// within which no edge joins two vertices counts one update; any other counts all of its vertices, which one thread
    /// updates in turn, or side by side.
    ///
    /// The work, which is the number of vertices, over the critical path is the average parallelism: more threads than that
    /// find nothing to do (Brent's bound).
    /// Cost O(tasks and their neighbors). Source: Blumofe and Leiserson, "Scheduling multithreaded computations by work
    /// stealing", 1999, section 1.
    ///
    /// ```
    /// use meshweft_schedule::{Order, Schedule};
    /// use meshweft_mesh::Graph;
    /// let path = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3]])?;
    /// assert_eq!(Schedule::new(&path, Order::COLOR, 64)?.critical_path(), 2);
    /// assert_eq!(Schedule::new(&path, Order::PRIORITY_DAG, 1)?.critical_path(), 4);
    /// assert_eq!(Schedule::new(&path, Order::JACOBI, 64)?.critical_path(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn critical_path(&self) -> usize {
        if self.is_double_buffered() {
            return usize::from(!self.permutation().is_empty());
        }
        let mut ends = vec![0usize; self.graph().len()];
        for t in 0..ends.len() {
            let start = self.graph().predecessors(t as u32).iter().map(|&u| ends[u as usize]).max().unwrap_or(0);
            let [first, end] = [self.tasks()[t], self.tasks()[t + 1]];
            let is_one_run = self.runs().binary_search(&first).is_ok_and(|run| self.runs()[run + 1] == end);
            ends[t] = start + if is_one_run { 1 } else { (end - first) as usize };
        }
        ends.into_iter().max().unwrap_or(0)
    }
}
