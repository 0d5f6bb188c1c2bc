//! A time step as a value: the list of stages that a program records, and engines interpret.
//!
//! A stage names its kernel by number, so a step is plain data. It can be looked at, compared with the one before, kept by a
//! device that works on it later, or sent to another process that has the same program.

use meshweft_schedule::Rule;

/// The most settings of a kernel.
pub(crate) const SETTINGS: usize = 4;

/// Settings of a kernel; those it does not have are zero.
pub(crate) type Settings = [f64; SETTINGS];

/// What the `i`-th stage of a list, or iteration of a loop, draws random numbers by, from what the list does: multiples of the
/// golden ratio lie far apart, so the rounds of one do not run into those of another.
pub(crate) fn draw(outer: u32, i: usize) -> u32 {
    outer.wrapping_add(i as u32 + 1).wrapping_mul(0x9e37_79b9)
}

/// One entry of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// Updates every vertex, or those of a part, `rounds` times.
    Update { kernel: usize, settings: Settings, part: Option<u32>, rule: Rule, rounds: u32 },
    /// Projects every element of the kernel's star, `rounds` times.
    Project { kernel: usize, settings: Settings, rounds: u32 },
    /// Measures every vertex and writes the combination into real `into` of the globals.
    Reduce { kernel: usize, settings: Settings, into: usize },
    /// Computes new globals.
    Scalar { kernel: usize, settings: Settings },
    /// Updates every vertex from the old values of all neighbors, again and again, until a round changes nothing, at most so many times.
    Fixpoint { kernel: usize, settings: Settings, most: u32 },
    /// Repeats stages until a test holds, at most so many times. The test comes first.
    Until { test: usize, settings: Settings, most: u32, stages: Vec<Stage> },
}

impl Stage {
    /// One round of an update that reads neighbors or of a projection, one iteration of a loop whatever its test says; of all else nothing.
    pub(crate) fn once(self) -> Vec<Stage> {
        let one = |stage| match stage {
            Stage::Update { kernel, settings, part, rule, .. } => {
                vec![Stage::Update { kernel, settings, part, rule, rounds: 1 }]
            }
            Stage::Project { kernel, settings, .. } => vec![Stage::Project { kernel, settings, rounds: 1 }],
            Stage::Fixpoint { kernel, settings, .. } => vec![Stage::Fixpoint { kernel, settings, most: 1 }],
            Stage::Until { .. } => stage.once(),
            Stage::Reduce { .. } | Stage::Scalar { .. } => vec![stage],
        };
        match self {
            Stage::Until { stages, .. } => stages.into_iter().flat_map(one).collect(),
            Stage::Update { rule: Rule::Alone, .. } | Stage::Reduce { .. } | Stage::Scalar { .. } => Vec::new(),
            stage => one(stage),
        }
    }
}

/// One time step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step<T> {
    /// Steps taken before it, modulo 2^32.
    pub(crate) number: u32,
    pub(crate) parameters: Vec<T>,
    pub(crate) stages: Vec<Stage>,
}
