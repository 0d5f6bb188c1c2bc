//! What a step takes on a GPU.

use super::{Cost, Prediction, Workload};

/// What the kernels of a step cost on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuCosts {
    /// Seconds of a round that are there however few vertices there are: its dispatches.
    pub dispatches_s: f64,
    /// Seconds a state that is read, with all that is computed from it.
    pub read_s: f64,
    /// Bytes a second of a plain copy.
    pub copy_bytes_per_s: f64,
}

impl GpuCosts {
    /// From the seconds of a round on a small mesh and on a large one, in the same order. `copy_bytes_per_s`: see
    /// `copy_bandwidth` of the runtime.
    pub fn of(rounds: [(&Workload, f64); 2], copy_bytes_per_s: f64) -> GpuCosts {
        let [(few, few_s), (many, many_s)] = rounds.map(|(work, s)| (work.load().reads, s));
        // Where the larger mesh takes no longer, all of it is dispatches.
        let read_s = ((many_s - few_s) / (many - few).max(1.0)).max(0.0);
        GpuCosts { dispatches_s: (few_s - few * read_s).max(0.0), read_s, copy_bytes_per_s }
    }

    /// Predicts a step on a mesh. What a GPU moves and what it computes overlap: the longer of both counts.
    ///
    /// ```
    /// use meshweft_model::{Cost, GpuCosts};
    /// # use meshweft::{Simulation, mesh::generate::generate, toy::Counting};
    /// let few = Simulation::builder(generate("chain:1024", 1)?, Counting).build()?.workload(1, &[1.0])?;
    /// let many = Simulation::builder(generate("chain:8192", 1)?, Counting).build()?.workload(1, &[1.0])?;
    /// let costs = GpuCosts::of([(&few, 10e-6), (&many, 17e-6)], 1e12);
    /// let step = costs.predict(&many);
    /// assert!((step.step_s() - 17e-6).abs() < 1e-7 && step.limit() == Cost::Dispatch);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn predict(&self, work: &Workload) -> Prediction {
        let rounds = f64::from(work.rounds);
        let terms = self.updates(work).into_iter().chain([(Cost::Dispatch, self.dispatches_s)]);
        let terms = terms.map(|(cost, s)| (cost, rounds * s)).filter(|term| term.1 > 0.0).collect();
        Prediction { terms, rounds: work.rounds, threads: 0 }
    }

    /// Seconds of a round without its dispatches.
    pub(super) fn updates(&self, work: &Workload) -> [(Cost, f64); 2] {
        let load = work.load();
        let compute_s = load.reads * self.read_s;
        let memory_s = (load.bytes / self.copy_bytes_per_s - compute_s).max(0.0);
        [(Cost::Compute, compute_s), (Cost::Memory, memory_s)]
    }
}
