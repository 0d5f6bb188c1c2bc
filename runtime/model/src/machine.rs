//! What a machine can do, as it was measured, and what a program's kernels cost on it.

use super::Workload;

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
    /// Seconds of a processor that a message takes, both of its ends together.
    pub message_s: f64,
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
    /// let [megabit, gigabyte] = [1.25e5, 1e9].map(|bytes_per_s| Link { bytes_per_s, ..Link::LOOPBACK });
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
    /// What joins processes of one machine: a median latency of a trace (docs/perf/scaling.md), and what a message took on Zen 3
    /// (docs/perf/decisions/messages.md). The rate is none that ever binds.
    pub const LOOPBACK: Link = Link { latency_s: 60e-6, bytes_per_s: 1e9, message_s: 30e-6 };

    /// How long a result at a border waits for others that go the same way, in rounds that take so long: a message costs a turn of the
    /// network where it leaves and one where it arrives, but each color of a round waits for those of the color before, here and
    /// elsewhere, so what is kept back for long makes the chain longer. A round has some ten colors, and what waits is part of
    /// one; the least is about what a message takes, the most what hosts can make up for with tasks far from the border.
    ///
    /// ```
    /// use meshweft_model::Link;
    /// assert_eq!([1e-6, 6.4e-3, 1.0].map(Link::sharing_s), [50e-6, 100e-6, 400e-6]);
    /// ```
    pub fn sharing_s(round_s: f64) -> f64 {
        (round_s / 64.0).clamp(50e-6, 400e-6)
    }

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
}
