//! How far a worker is, and what its host has done: one list of counters for the wire, for sums and for reports.

use super::overlap;
use crate::engine::{HostReport, Loops};
use rkyv::{Archive, Deserialize, Serialize};

/// How far a worker is, and what it has done.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
pub(crate) struct Account {
    /// Since the start or the last change of the state.
    pub(crate) steps: u64,
    pub(crate) rounds: u64,
    pub(crate) swept: u64,
    pub(crate) loops: Loops,
    /// Whether the last of the steps was not finite here. Those behind it do not count.
    pub(crate) non_finite: bool,
    pub(crate) tally: Tally,
}

/// Lists the counters of a host, each with its type and with how those of two workers, one after the other on one host, are one.
macro_rules! tally {
    ($($(#[$about:meta])* $field:ident: $kind:ty = $both:expr;)*) => {
        /// What a host has done since its worker began.
        #[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq)]
        pub(crate) struct Tally {
            $($(#[$about])* pub(crate) $field: $kind,)*
        }

        impl Tally {
            /// What a worker and the one before it in its place have done together.
            pub(crate) fn after(self, before: Tally) -> Tally {
                Tally { $($field: $both(before.$field, self.$field),)* }
            }
        }
    };
}

tally! {
    /// Threads that update now.
    threads: u32 = latest;
    /// Updates of vertices that were left out.
    left_out: u64 = Sum::sum;
    /// Seconds in which its threads updated, and waited, all together.
    updating: f64 = Sum::sum;
    waiting: f64 = Sum::sum;
    /// Seconds in which messages were outstanding, and seconds that threads waited in those.
    overlap: [f64; 2] = Sum::sum;
    /// What went to other workers.
    sent_messages: u64 = Sum::sum;
    sent_bytes: u64 = Sum::sum;
    /// Bytes of messages of values as they would have been, and as they went out.
    value_bytes: [u64; 2] = Sum::sum;
    /// What it has sent in searches: bytes as they would have been, and as they went out, of lists of ids, frontiers, offers and
    /// predecessors; and how many ids those lists had.
    search_bytes: [[u64; 2]; 4] = Sum::sum;
    search_ids: u64 = Sum::sum;
    /// The most memory that the process has held.
    memory_bytes: u64 = Ord::max;
}

fn latest<A>(_before: A, now: A) -> A {
    now
}

/// A counter.
trait Sum {
    fn sum(before: Self, now: Self) -> Self;
}

impl Sum for u64 {
    fn sum(before: u64, now: u64) -> u64 {
        before + now
    }
}

impl Sum for f64 {
    fn sum(before: f64, now: f64) -> f64 {
        before + now
    }
}

impl<A: Sum + Copy, const N: usize> Sum for [A; N] {
    fn sum(before: [A; N], now: [A; N]) -> [A; N] {
        std::array::from_fn(|i| A::sum(before[i], now[i]))
    }
}

impl Tally {
    /// The report of a host. `share`: what it has of the mesh.
    pub(crate) fn report(&self, share: &HostReport) -> HostReport {
        HostReport {
            threads: self.threads as usize,
            updating_s: self.updating,
            waiting_s: self.waiting,
            overlapped: overlap::share(self.overlap, self.threads),
            sent_messages: self.sent_messages,
            sent_bytes: self.sent_bytes,
            value_bytes: self.value_bytes[0],
            value_bytes_sent: self.value_bytes[1],
            search_bytes: self.search_bytes,
            search_ids: self.search_ids,
            memory_bytes: self.memory_bytes,
            ..share.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_did_before_shares_were_handed_out_again_still_counts() {
        let ones = Tally {
            threads: 1,
            left_out: 1,
            updating: 1.0,
            waiting: 1.0,
            overlap: [1.0; 2],
            sent_messages: 1,
            sent_bytes: 1,
            value_bytes: [1; 2],
            search_bytes: [[1; 2]; 4],
            search_ids: 1,
            memory_bytes: 1,
        };
        let twos = Tally {
            threads: 3,
            left_out: 2,
            updating: 2.0,
            waiting: 2.0,
            overlap: [2.0; 2],
            sent_messages: 2,
            sent_bytes: 2,
            value_bytes: [2; 2],
            search_bytes: [[2; 2]; 4],
            search_ids: 2,
            memory_bytes: 5,
        };
        assert_eq!(Tally { threads: 3, memory_bytes: 5, ..ones }.after(ones), twos);
        assert_eq!(Tally { threads: 3, ..ones }.after(Tally { memory_bytes: 5, ..ones }), twos);
        let report = twos.report(&HostReport { host: 2, vertices: 7, ..HostReport::default() });
        assert_eq!((report.host, report.vertices, report.search_bytes, report.search_ids), (2, 7, [[2; 2]; 4], 2));
    }
}
