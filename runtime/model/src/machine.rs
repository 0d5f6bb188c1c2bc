//! What a machine can do, as it was measured, and what a program's kernels cost on it.

use super::{Cost, Prediction, Workload};

/// What a machine can do. Every number is measured; nothing here measures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Cores that a run takes unless told otherwise.
    pub threads: usize,
    /// Bytes read in order, from memory of some sizes, on one thread and on all. By threads, then bytes, ascending.
    pub reads: Vec<Rate>,
    /// Reals read at random places of tables of some sizes, on one thread. By bytes, ascending.
    pub gathers: Vec<Rate>,
}

/// How fast something goes on some threads, in memory of some size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Threads at work.
    pub threads: usize,
    /// Bytes that they go through again and again.
    pub bytes: f64,
    /// Bytes, or reads, a second.
    pub per_s: f64,
}

/// What joins two hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Seconds from a task that has ended to one on another host that may begin.
    pub latency_s: f64,
    /// Bytes a second each way.
    pub bytes_per_s: f64,
}

/// How the values that hosts send each other pack, from a trial of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packed {
    /// What is left of a byte.
    pub share: f64,
    /// Seconds to pack a byte and to unpack it.
    pub byte_s: f64,
}

impl Packed {
    /// By how much packing must outweigh what it costs before a host takes it up: runs that are near the balance do not flap.
    pub const MARGIN: f64 = 1.25;
    /// Bytes of a message below which it is not worth a thought: what stands before the values is as long.
    pub const SMALL: usize = 512;

    /// Whether hosts pack messages of so many bytes on a link, where that is left to them.
    ///
    /// ```
    /// use meshweft_model::{Link, Packed};
    /// let packed = Packed { share: 0.5, byte_s: 2e-9 };
    /// let [megabit, gigabyte] = [1.25e5, 1e9].map(|bytes_per_s| Link { latency_s: 0.0, bytes_per_s });
    /// assert!(packed.is_taken(megabit, 1e4) && !packed.is_taken(gigabyte, 1e4) && !packed.is_taken(megabit, 100.0));
    /// // Half of the bytes on the link, and packing.
    /// assert_eq!(megabit.packed(&packed).bytes_per_s, 1.0 / (0.5 / 1.25e5 + 2e-9));
    /// ```
    pub fn is_taken(&self, link: Link, message_bytes: f64) -> bool {
        let saved_s = (1.0 - self.share) / link.bytes_per_s;
        message_bytes >= Packed::SMALL as f64 && saved_s > Packed::MARGIN * self.byte_s
    }
}

impl Link {
    /// The link as it is for values that are packed: less of each byte is on its way, and it is packed and unpacked.
    pub fn packed(self, packed: &Packed) -> Link {
        Link { bytes_per_s: 1.0 / (packed.share / self.bytes_per_s + packed.byte_s), ..self }
    }
}

/// What the kernels of a step cost on a machine, from a trial of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Seconds a state that is read ([`Load::reads`](super::Load::reads)), with all that is computed from it, in a cache.
    pub read_s: f64,
    /// Seconds an update beyond its reads, where that is known: of a program on a graph, in which some vertices have few neighbors.
    pub update_s: f64,
    /// Of the time that bytes need from memory, how much longer an update takes for it: 0 if it is hidden behind computing, 1 if not
    /// at all; more if they are waited for one after the other.
    pub exposed: f64,
    /// Seconds a task takes on several threads beyond its updates: until it is found, and what it read is in another core's cache.
    pub task_s: f64,
    /// Bytes that the trial went through.
    pub bytes: f64,
}

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

/// A value between those of the neighbors of `bytes`, along the logarithm of the bytes; the first and the last go on for ever.
fn at(rates: &[Rate], bytes: f64, value: impl Fn(&Rate) -> f64) -> f64 {
    let above = rates.partition_point(|rate| rate.bytes <= bytes);
    match (above.checked_sub(1).map(|below| &rates[below]), rates.get(above)) {
        (Some(low), Some(high)) => {
            let along = (bytes / low.bytes).ln() / (high.bytes / low.bytes).ln();
            value(low) + along * (value(high) - value(low))
        }
        (Some(only), None) | (None, Some(only)) => value(only),
        (None, None) => 0.0,
    }
}

impl Machine {
    /// Seconds a byte that so many threads read together, when they go through so many bytes again and again.
    ///
    /// Between one thread and those that were measured, each brings as much as one alone until the machine gives no more.
    ///
    /// ```
    /// use meshweft_model::{Machine, Rate};
    /// let rate = |threads, bytes, per_s| Rate { threads, bytes, per_s };
    /// let reads = vec![rate(1, 1e6, 4e10), rate(1, 1e9, 1e10), rate(4, 1e6, 16e10), rate(4, 1e9, 2e10)];
    /// let machine = Machine { threads: 4, reads, ..Machine::default() };
    /// assert_eq!([1, 2, 4].map(|threads| 1.0 / machine.byte_s(threads, 1e10)), [1e10, 2e10, 2e10]);
    /// ```
    pub fn byte_s(&self, threads: usize, bytes: f64) -> f64 {
        let of = |threads: usize| -> Vec<Rate> {
            self.reads.iter().filter(|rate| rate.threads == threads).copied().collect()
        };
        let seconds = |threads| at(&of(threads), bytes, |rate| 1.0 / rate.per_s);
        let most = self.reads.iter().map(|rate| rate.threads).max().unwrap_or(1);
        match threads {
            0 | 1 => seconds(1),
            threads if threads >= most => seconds(most),
            threads => f64::max(seconds(1) / threads as f64, seconds(most)),
        }
    }

    /// Seconds that neighbors far away take in a round, on one thread, by how much of the state holds how many of them.
    pub(super) fn far_s(&self, work: &Workload) -> f64 {
        let mut before = 0.0;
        let part = |far: &super::FarReads| {
            let more = far.reads - before;
            before = far.reads;
            more * at(&self.gathers, far.bytes, |rate| 1.0 / rate.per_s)
        };
        work.far_reads.iter().map(part).sum()
    }

    /// Seconds a byte that one thread waits for longer, when it goes through so many bytes, than when it goes through few.
    pub(super) fn slow_s(&self, bytes: f64, few: f64) -> f64 {
        (self.byte_s(1, bytes) - self.byte_s(1, few)).max(0.0)
    }

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
            let hoped_s = super::prediction::round_s(self, &costs, work, trial.threads);
            let share = trial.threads.min(work.loads.len()) as f64 / work.loads.len() as f64;
            costs.task_s = (trial.shared_s - hoped_s).max(0.0) * share;
        }
        costs
    }
}
