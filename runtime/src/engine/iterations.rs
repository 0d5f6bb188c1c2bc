//! How often the loops of steps went round [C18].

use std::collections::BTreeMap;

/// How often a loop went round: stages repeated until a test held, or an update until it changed nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cluster", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Iterations {
    /// How often it was begun: once a step, unless it lies in another loop.
    pub times: u64,
    /// Its iterations, of all times together.
    pub total: u64,
    /// Those of the last time.
    pub last: u32,
    /// The most of any time.
    pub longest: u32,
    /// How often it ended at its limit: its test did not hold, or its last round may have changed something.
    pub ran_out: u64,
    /// The limit at which it ended so last.
    pub limit: u32,
}

impl Iterations {
    fn after(self, before: Iterations) -> Iterations {
        Iterations {
            times: before.times + self.times,
            total: before.total + self.total,
            last: if self.times > 0 { self.last } else { before.last },
            longest: before.longest.max(self.longest),
            ran_out: before.ran_out + self.ran_out,
            limit: if self.ran_out > 0 { self.limit } else { before.limit },
        }
    }
}

/// The same of all loops, by the kernel that tests or is repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cluster", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub(crate) struct Loops(pub(crate) BTreeMap<u32, Iterations>);

impl Loops {
    /// Notes that a loop has ended after so many iterations of at most `most`. `held`: whether it came to its end.
    pub(crate) fn note(&mut self, kernel: usize, iterations: u32, most: u32, held: bool) {
        let (ran_out, limit) = if held { (0, 0) } else { (1, most) };
        let now =
            Iterations { times: 1, total: iterations.into(), last: iterations, longest: iterations, ran_out, limit };
        let known = self.0.entry(kernel as u32).or_default();
        *known = now.after(*known);
    }

    /// These, and those before them.
    #[cfg(feature = "cluster")]
    pub(crate) fn after(&self, before: &Loops) -> Loops {
        let mut all = before.clone();
        for (&kernel, now) in &self.0 {
            let known = all.0.entry(kernel).or_default();
            *known = now.after(*known);
        }
        all
    }
}
