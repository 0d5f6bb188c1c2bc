//! Kernels as bytes: what hosts that have never seen a program run it by.
//!
//! A formula is read as it is built, line by line, so what does not fit together is refused where it stands.

use super::{Purpose, TapeKernel, TapeProgram};
use crate::error::{Error, Result};
use crate::number::{Kind, Part};
use crate::program::Combine;
use crate::trace::{Along, Formula, Input, Leaf, Line, Node, Value};
use rkyv::{Archive, Deserialize, Serialize, rancor};

/// Name, components, and whether they are integers.
type FlatPart = (String, u32, bool);

#[derive(Archive, Serialize, Deserialize)]
struct FlatProgram {
    name: String,
    /// Of the shared state, the private state, parameters and globals.
    parts: Vec<Vec<FlatPart>>,
    kernels: Vec<FlatKernel>,
}

#[derive(Archive, Serialize, Deserialize)]
struct FlatKernel {
    name: String,
    purpose: u8,
    metric: Option<(String, String)>,
    lines: Vec<FlatLine>,
    outputs: Vec<u32>,
}

#[derive(Archive, Serialize, Deserialize)]
enum FlatLine {
    Node(Node),
    Open { star: u32, name: String, others: u32, reals: u32, leaves: Vec<(String, bool, u32)> },
    Close(Vec<u32>),
}

/// What the numbers of purposes mean.
const PURPOSES: [Purpose; 8] = [
    Purpose::Map,
    Purpose::Update { quiet: false },
    Purpose::Update { quiet: true },
    Purpose::Measure { combine: Combine::Sum, metric: None },
    Purpose::Measure { combine: Combine::Min, metric: None },
    Purpose::Measure { combine: Combine::Max, metric: None },
    Purpose::Scalar,
    Purpose::Test,
];

fn malformed(why: impl std::fmt::Display) -> Error {
    Error::Cluster(format!("a program that cannot be read: {why}"))
}

/// Records and kernels of a program.
pub(super) fn write(program: &TapeProgram) -> Vec<u8> {
    let parts = |parts: &[Part]| -> Vec<FlatPart> {
        let flat = |part: &Part| (part.name.clone(), part.components as u32, part.kind == Kind::Integer);
        parts.iter().map(flat).collect()
    };
    let flat = FlatProgram {
        name: program.name.clone(),
        parts: [&program.shared, &program.private, &program.parameters, &program.globals].map(|of| parts(of)).into(),
        kernels: program.kernels.iter().map(of_kernel).collect(),
    };
    let bytes = rkyv::to_bytes::<rancor::Error>(&flat).expect("it is written to memory");
    bytes.into_vec()
}

fn of_kernel(kernel: &TapeKernel) -> FlatKernel {
    let metric = match &kernel.purpose {
        Purpose::Measure { metric, .. } => metric.clone(),
        _ => None,
    };
    let purpose = match &kernel.purpose {
        &Purpose::Measure { combine, .. } => Purpose::Measure { combine, metric: None },
        other => other.clone(),
    };
    let purpose = PURPOSES.iter().position(|known| *known == purpose).expect("all are in the table") as u8;
    let of_line = |line: Line<'_>| match line {
        Line::Node(node) => FlatLine::Node(node),
        Line::Open(along, leaves) => {
            let leaf = |leaf: Leaf| (leaf.name, leaf.kind == Kind::Integer, leaf.start.id());
            FlatLine::Open {
                star: along.star as u32,
                name: along.name.into(),
                others: along.lengths.0 as u32,
                reals: along.lengths.1 as u32,
                leaves: leaves.into_iter().map(leaf).collect(),
            }
        }
        Line::Close(next) => FlatLine::Close(next.to_vec()),
    };
    let (name, formula) = (kernel.name.clone(), &kernel.formula);
    let lines = formula.lines().map(of_line).collect();
    FlatKernel { name, purpose, metric, lines, outputs: formula.outputs.clone() }
}

/// The program that bytes are, with its records and kernels alone.
///
/// # Errors
/// Bytes that are no program; a formula that does not fit together.
pub(crate) fn read(bytes: &[u8]) -> Result<TapeProgram> {
    // An archive must lie where its numbers are aligned.
    let mut aligned: rkyv::util::AlignedVec<16> = rkyv::util::AlignedVec::with_capacity(bytes.len());
    aligned.extend_from_slice(bytes);
    let flat: FlatProgram = rkyv::from_bytes::<_, rancor::Error>(&aligned).map_err(malformed)?;
    let part = |(name, components, is_integer): FlatPart| {
        let kind = if is_integer { Kind::Integer } else { Kind::Real };
        Part { name, components: components as usize, kind }
    };
    let parts: [Vec<FlatPart>; 4] = flat.parts.try_into().map_err(|_| malformed("it has not four records"))?;
    let [shared, private, parameters, globals] = parts.map(|of| of.into_iter().map(part).collect());
    let kernels = flat.kernels.into_iter().map(kernel).collect::<Result<_>>()?;
    Ok(TapeProgram { name: flat.name, shared, private, parameters, globals, kernels, ..TapeProgram::default() })
}

fn kernel(flat: FlatKernel) -> Result<TapeKernel> {
    let purpose = PURPOSES.get(usize::from(flat.purpose)).ok_or_else(|| malformed("it has a kernel of no purpose"))?;
    let purpose = match purpose.clone() {
        Purpose::Measure { combine, .. } => Purpose::Measure { combine, metric: flat.metric },
        other => other,
    };
    let formula = formula(flat.lines, &flat.outputs).map_err(|why| malformed(format!("kernel {} {why}", flat.name)))?;
    Ok(TapeKernel { name: flat.name, purpose, formula: formula.into() })
}

fn formula(lines: Vec<FlatLine>, outputs: &[u32]) -> std::result::Result<Formula, String> {
    let mut formula = Formula::default();
    let all = |ids: &[u32]| -> Vec<Value> { ids.iter().map(|&id| Value::of(id)).collect() };
    for line in lines {
        match line {
            FlatLine::Node(node) => drop(put(&mut formula, node)?),
            FlatLine::Open { star, name, others, reals, leaves } => {
                let leaf = |(name, is_integer, start): (String, bool, u32)| {
                    let kind = if is_integer { Kind::Integer } else { Kind::Real };
                    Leaf { name, kind, start: Value::of(start) }
                };
                let along = Along::new(star as usize, &name, others as usize, reals as usize);
                drop(formula.open(along, leaves.into_iter().map(leaf).collect())?);
            }
            FlatLine::Close(next) => drop(formula.close(all(&next))?),
        }
    }
    formula.finish(all(outputs))?;
    Ok(formula)
}

/// Puts a node where it was: what it refers to comes before it.
fn put(formula: &mut Formula, node: Node) -> std::result::Result<Value, String> {
    Ok(match node {
        Node::Number(bits) => formula.real(f64::from_bits(bits)),
        Node::Literal(_, bits) => formula.integer(bits.cast_signed()),
        Node::Truth(truth) => formula.truth(truth),
        // A fold that is not the innermost is named by an element of one inside of it.
        Node::Input(Input::Other { fold, other }, k) => formula.other_of(fold, other, k)?,
        Node::Input(Input::Data { fold }, k) => formula.data_of(fold, k)?,
        Node::Input(input, k) => formula.input(input, k),
        Node::Unary(op, a) => formula.unary(op, Value::of(a))?,
        Node::Binary(op, a, b) => formula.binary(op, Value::of(a), Value::of(b))?,
        Node::Select { mask, yes, no } => formula.select(Value::of(mask), Value::of(yes), Value::of(no))?,
        Node::Gathered { .. } | Node::Result { .. } => return Err("names what a loop gathers before it".into()),
    })
}
