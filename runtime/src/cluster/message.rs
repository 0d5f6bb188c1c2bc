//! What driver and workers tell each other besides values.
//!
//! Few and small, so they are archives of rkyv, checked when they are read, and only after the sender is known to belong to the
//! run. Records are flat: no pointers, no nesting that a message could make deep.

use super::account::Account;
use super::kind::CONTROL;
use super::packing::Compress;
use crate::engine::{Code, Table};
use crate::error::{Error, Result};
use crate::number::Number;
use crate::piece::{Frame, Placement};
use crate::program::{CORNERS, StarShape};
use crate::step::{Settings, Stage, Step};
use meshweft_net::Host;
use meshweft_schedule::Rule;
use rkyv::{Archive, Deserialize, Serialize, rancor};

/// The driver of a run.
pub(crate) const DRIVER: Host = 0;

/// A message.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq)]
pub(crate) enum Control {
    /// From the driver: what is to be run. The share and the state follow as a stream.
    Begin(Begin),
    /// From a worker: it has its share, and updates on this GPU, if that is not empty.
    Ready(String),
    /// From the driver: a step, or stages without one.
    Step {
        number: u32,
        parameters: Vec<u8>,
        stages: Vec<FlatStage>,
    },
    /// From the driver: say how far you are once all steps before this are done.
    Settle {
        /// Which time.
        ticket: u64,
    },
    /// From a worker: how far it is. A ticket if it was asked.
    Progress {
        ticket: Option<u64>,
        progress: Account,
    },
    /// From the driver: measure.
    Measure {
        kernel: u32,
        settings: Settings,
        parameters: Vec<u8>,
        step: u32,
    },
    /// To the first worker: the measure of a leaf, or the values of vertices of leaves that lie on several hosts.
    Leaves {
        leaves: Vec<(u32, f64)>,
        vertices: Vec<(u32, f64)>,
    },
    /// From the first worker: the result of a measure.
    Total(f64),
    /// Whether something has changed on this worker, or on any.
    Vote(bool),
    /// From the driver: send your state. It follows as a stream.
    State,
    /// From the driver: another state follows as a stream. What was counted starts again.
    Edit,
    /// The same, and before it the share of tasks with other elements of changing stars; [`Control::Ready`] answers.
    Renew,
    /// From the driver to the first worker: say what the globals are; and the answer.
    Globals,
    GlobalsAre(Vec<u8>),
    /// From the driver: other globals.
    SetGlobals(Vec<u8>),
    /// From the driver: your piece of the mesh follows as a stream.
    Piece,
    /// From the driver: write your piece to a file, with the state after all steps before this; and the answer.
    WritePiece(WritePiece),
    Wrote,
    /// From a worker: how it stands.
    Standing(Standing),
    /// From the driver: what your clock shows, in nanoseconds; and the answer.
    Clock,
    ClockShows(u64),
    /// From the driver: send what your threads wrote down. It follows as a stream.
    Timeline,
    /// From a worker: it cannot go on.
    Failed(String),
    /// The same, because its GPU cannot hold its share.
    TooLarge(String),
    /// From a worker: it leaves, because it has lost a host.
    Cut(String),
    /// From a worker: it is to leave, once its tasks are with others.
    Leave,
    /// From the driver: the run is over, and whether it has failed.
    End {
        has_failed: bool,
    },
}

/// What is to be run.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq)]
pub(crate) struct Begin {
    /// Version of this crate.
    pub(crate) version: String,
    /// The program, and what tells it from others of its name: [`Table::fingerprint`].
    pub(crate) program: String,
    pub(crate) fingerprint: String,
    /// Its records and kernels, if it is data: see [`TapeProgram`](crate::tapes::TapeProgram).
    pub(crate) data: Vec<u8>,
    /// Name of the number type.
    pub(crate) precision: String,
    /// Threads of each worker; 0 takes one a core.
    pub(crate) threads: u32,
    /// Stars of the program: name, others of an element, name and numbers of each part of its data.
    pub(crate) stars: Vec<FlatStar>,
    pub(crate) globals: Vec<u8>,
    /// Whether threads are to write down what they do.
    pub(crate) is_recorded: bool,
    /// For each worker the adapter that it is to update on, if not on its cores.
    pub(crate) gpus: Vec<Option<u32>>,
    pub(crate) compress: Compress,
    /// Rows and columns of hosts, if they stand in a grid: blocks follow the state then.
    pub(crate) grid: Option<[u32; 2]>,
}

/// A star: its name, whether it is directed and whether its elements come and go, other vertices of an element, names of the parts of its data and how many reals each has.
pub(crate) type FlatStar = (String, [bool; 2], u32, Vec<(String, u32)>);

/// Where a worker writes its piece of the mesh, and where in it points are: a [`Frame`](crate::piece::Frame).
#[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq)]
pub(crate) struct WritePiece {
    pub(crate) folder: String,
    pub(crate) name: String,
    pub(crate) positions: Option<String>,
    pub(crate) raised: Option<(String, f64)>,
    pub(crate) before: u32,
}

/// How far a worker is, and what it waits for.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
pub(crate) struct Standing {
    /// Grows with whatever the host does.
    pub(crate) moves: u64,
    /// A task and its next epoch, and the task that lags behind, with its host.
    pub(crate) waits: Vec<(u32, u64, u32, Host)>,
}

/// A stage; those inside of a loop follow it.
#[derive(Archive, Serialize, Deserialize, Debug, Clone, Copy, PartialEq)]
pub(crate) struct FlatStage {
    kind: u8,
    rule: u8,
    /// The part that is updated, counted from 1; 0 for all.
    part: u32,
    kernel: u32,
    settings: Settings,
    /// Rounds, iterations at most, or the global that is written.
    number: u32,
    /// How many of the following stages a loop repeats.
    inside: u32,
}

const UPDATE: u8 = 0;
const REDUCE: u8 = 1;
const SCALAR: u8 = 2;
const UNTIL: u8 = 3;
const FIXPOINT: u8 = 4;
const PROJECT: u8 = 5;
const RULES: [Rule; 4] = [Rule::Alone, Rule::InOrder, Rule::Backward, Rule::AtOnce];
/// Loops inside of loops, at most.
const DEEPEST: usize = 64;

impl Control {
    /// That a worker cannot go on. The driver's error says that it is of the cluster.
    pub(crate) fn failed(error: &Error) -> Control {
        Control::Failed(match error {
            Error::Cluster(why) => why.clone(),
            other => other.to_string(),
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let archive = rkyv::to_bytes::<rancor::Error>(self).expect("messages are small");
        let mut message = Vec::with_capacity(16 + archive.len());
        message.extend([CONTROL; 16]);
        message.extend_from_slice(&archive);
        message
    }

    /// The memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        let more = match self {
            Control::Step { parameters, stages, .. } => parameters.len() + size_of_val(&stages[..]),
            Control::SetGlobals(globals) => globals.len(),
            _ => 0,
        };
        size_of::<Control>() + more
    }

    /// # Errors
    /// It is no message.
    pub(crate) fn decode(message: &[u8]) -> Result<Control> {
        let archive = message.get(16..).unwrap_or_default();
        // An archive must lie where its numbers are aligned.
        let mut aligned: rkyv::util::AlignedVec<16> = rkyv::util::AlignedVec::with_capacity(archive.len());
        aligned.extend_from_slice(archive);
        rkyv::from_bytes::<Control, rancor::Error>(&aligned)
            .map_err(|error| Error::Cluster(format!("malformed message: {error}")))
    }
}

/// The error of a host that says what was not asked for.
///
/// # Errors
/// Always.
pub(crate) fn unexpected<A>(host: Host, message: &Control) -> Result<A> {
    Err(Error::Cluster(format!("host {host} says what it was not asked for: {}", plain(&format!("{message:?}")))))
}

/// What another host says, for people: on one line, without what a terminal would obey, and not too long.
pub(crate) fn plain(text: &str) -> String {
    const LONGEST: usize = 300;
    let mut plain = String::new();
    for letter in text.chars().take(LONGEST) {
        match letter.is_control() {
            true => plain.extend(letter.escape_default()),
            false => plain.push(letter),
        }
    }
    if text.chars().nth(LONGEST).is_some() {
        plain.push_str("...");
    }
    plain
}

/// Numbers as bytes.
pub(crate) fn bits<T: Number>(numbers: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(numbers).to_vec()
}

/// As many numbers as there must be.
///
/// # Errors
/// There are not.
pub(crate) fn numbers<T: Number>(bits: &[u8], count: usize) -> Result<Vec<T>> {
    if bits.len() != count * T::BYTES {
        return Err(Error::Cluster(format!("{} bytes for {count} numbers of {}", bits.len(), T::NAME)));
    }
    Ok(bytemuck::pod_collect_to_vec(bits))
}

pub(crate) fn of_star(star: &StarShape) -> FlatStar {
    let parts = star.parts.iter().map(|(name, reals)| (name.clone(), *reals as u32));
    (star.name.clone(), [star.is_directed, star.changes], star.others as u32, parts.collect())
}

/// The stars of a message.
///
/// # Errors
/// One that no program has.
pub(crate) fn stars(flat: &[FlatStar]) -> Result<Vec<StarShape>> {
    /// Reals of the data of an element.
    const MOST: u64 = 4096;
    let star = |(name, [is_directed, changes], others, parts): &FlatStar| {
        let reals: u64 = parts.iter().map(|(_, reals)| u64::from(*reals)).sum();
        if *others as usize >= CORNERS || reals > MOST {
            return Err(Error::Cluster(format!("a star with {others} others and {reals} reals")));
        }
        let parts = parts.iter().map(|(name, reals)| (name.clone(), *reals as usize));
        Ok(StarShape {
            name: name.clone(),
            is_directed: *is_directed,
            changes: *changes,
            others: *others as usize,
            parts: parts.collect(),
        })
    };
    flat.iter().map(star).collect()
}

/// What is to be written, as a message.
///
/// # Errors
/// A folder whose name is no text.
pub(crate) fn write_piece(frame: &Frame) -> Result<WritePiece> {
    let Placement { positions, raised } = frame.placement.clone();
    let folder = frame.folder.to_str();
    let no_text =
        || Error::Invalid(format!("{} cannot be told to other hosts: it is no UTF-8", frame.folder.display()));
    Ok(WritePiece {
        folder: folder.ok_or_else(no_text)?.into(),
        name: frame.name.into(),
        positions,
        raised,
        before: frame.before,
    })
}

/// A step as a message.
pub(crate) fn of_step<T: Number>(step: &Step<T>) -> Control {
    let mut stages = Vec::new();
    flatten(&step.stages, &mut stages);
    Control::Step { number: step.number, parameters: bits(&step.parameters), stages }
}

fn flatten(stages: &[Stage], flat: &mut Vec<FlatStage>) {
    for stage in stages {
        let start = flat.len();
        let (kind, kernel, settings, number) = match stage {
            &Stage::Update { kernel, settings, rounds, .. } => (UPDATE, kernel, settings, rounds),
            &Stage::Fixpoint { kernel, settings, most } => (FIXPOINT, kernel, settings, most),
            &Stage::Project { kernel, settings, rounds } => (PROJECT, kernel, settings, rounds),
            &Stage::Reduce { kernel, settings, into } => (REDUCE, kernel, settings, into as u32),
            &Stage::Scalar { kernel, settings } => (SCALAR, kernel, settings, 0),
            Stage::Until { test, settings, most, .. } => (UNTIL, *test, *settings, *most),
        };
        flat.push(FlatStage { kind, rule: 0, part: 0, kernel: kernel as u32, settings, number, inside: 0 });
        match stage {
            Stage::Update { rule, part, .. } => {
                flat[start].part = part.map_or(0, |part| part + 1);
                flat[start].rule = RULES.iter().position(|known| known == rule).expect("all rules are listed") as u8;
            }
            Stage::Until { stages, .. } => {
                flatten(stages, flat);
                flat[start].inside = (flat.len() - start - 1) as u32;
            }
            _ => {}
        }
    }
}

/// The stages of a message.
///
/// # Errors
/// A kernel that the program does not have, or another kind of it; an unknown global or rule; loops too deep.
pub(crate) fn stages<T: Number>(flat: &[FlatStage], table: &Table<T>) -> Result<Vec<Stage>> {
    unflatten(flat, table, 0)
}

fn unflatten<T: Number>(mut flat: &[FlatStage], table: &Table<T>, deep: usize) -> Result<Vec<Stage>> {
    let malformed = || Error::Cluster("a step that this program cannot take".into());
    let mut stages = Vec::new();
    while let Some((&FlatStage { kind, rule, part, kernel, settings, number, inside }, rest)) = flat.split_first() {
        let kernel = kernel as usize;
        let code = &table.kernels.get(kernel).ok_or_else(malformed)?.code;
        let (loops, after) = rest.split_at_checked(inside as usize).ok_or_else(malformed)?;
        flat = after;
        stages.push(match (kind, code) {
            (UPDATE, Code::Vertex { .. }) if inside == 0 && number > 0 => {
                let rule = *RULES.get(rule as usize).ok_or_else(malformed)?;
                let part = part.checked_sub(1);
                if part.is_some() && rule == Rule::AtOnce {
                    return Err(malformed());
                }
                Stage::Update { kernel, settings, part, rule, rounds: number }
            }
            (FIXPOINT, Code::Vertex { is_quiet: true, .. }) if inside == 0 && number > 0 => {
                Stage::Fixpoint { kernel, settings, most: number }
            }
            (PROJECT, Code::Project { .. }) if inside == 0 && number > 0 => {
                Stage::Project { kernel, settings, rounds: number }
            }
            (REDUCE, Code::Measure { .. }) if inside == 0 && (number as usize) < table.globals.len() => {
                Stage::Reduce { kernel, settings, into: number as usize }
            }
            (SCALAR, Code::Scalar(_)) if inside == 0 => Stage::Scalar { kernel, settings },
            (UNTIL, Code::Test(_)) if deep < DEEPEST => {
                Stage::Until { test: kernel, settings, most: number, stages: unflatten(loops, table, deep + 1)? }
            }
            _ => return Err(malformed()),
        });
    }
    Ok(stages)
}
