//! What kernels cost, from a trial of them.

use super::{Costs, Machine, Place, Workload};

/// A trial: a program on a mesh that fits into the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Seconds a round of a step takes on one thread.
    pub alone_s: f64,
    /// The same on so many threads.
    pub shared_s: f64,
    /// See there.
    pub threads: usize,
    /// Seconds that a round takes longer when the cache holds nothing of it.
    pub cold_s: f64,
}

impl Machine {
    /// What the kernels cost by a trial of `work`. `sparse`: the same program with fewer neighbors a vertex, and seconds of a round of that
    /// on one thread, to tell updates from reads.
    pub fn costs(&self, work: &Workload, trial: &Trial, sparse: Option<(&Workload, f64)>) -> Costs {
        let (load, bytes) = (work.load(), work.resident_bytes as f64);
        // What is read far away is asked for again below, by the size of the table.
        let near = |work: &Workload, alone_s: f64| (alone_s - self.far_s(work)).max(0.1 * alone_s);
        let near_s = near(work, trial.alone_s);
        let update_s = sparse.map_or(0.0, |(other, alone_s)| {
            let (few, other_s) = (other.load(), near(other, alone_s));
            // Two equations; where they say less than nothing, reads are all that counts.
            let determinant = few.updates * load.reads - load.updates * few.reads;
            let update_s = (other_s * load.reads - near_s * few.reads) / determinant;
            if update_s.is_finite() { update_s.clamp(0.0, near_s / load.updates.max(1.0)) } else { 0.0 }
        });
        let memory_s = load.bytes * self.slow_s(f64::INFINITY, bytes);
        let read_s = (near_s - load.updates * update_s) / load.reads.max(1.0);
        let exposed = if memory_s > 0.0 { (trial.cold_s / memory_s).max(0.0) } else { 0.0 };
        let mut costs = Costs { read_s, update_s, exposed, task_s: 0.0, bytes };
        if trial.threads > 1 && !work.loads.is_empty() {
            let place = Place { hosts: 1, threads: trial.threads, link: None, is_one_machine: true };
            let hoped_s = self.predict(&costs, work, place).round_s();
            let share = trial.threads.min(work.loads.len()) as f64 / work.loads.len() as f64;
            costs.task_s = (trial.shared_s - hoped_s).max(0.0) * share;
        }
        costs
    }
}
