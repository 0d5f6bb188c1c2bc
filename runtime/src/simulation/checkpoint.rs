//! A state on disk, for a run that goes on from it: what it is of, and its numbers.

use crate::error::{Error, Result};
use crate::layout::{Layout, View};
use crate::number::{Number, Part};
use meshweft_checkpoint::Facts;
use meshweft_mesh::{Field, Mesh};
use meshweft_schedule::Order;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

/// Bytes of a shard, about: two are in memory while they are written, one while they are read.
const SHARD: usize = 32 << 20;

const _: () = assert!(cfg!(target_endian = "little"), "numbers in files have their lowest byte first");

/// A checkpoint that a run can go on from: [`AnySimulation::resume`](crate::AnySimulation::resume).
///
/// It is a folder of files that [`AnySimulation::checkpoint`](crate::AnySimulation::checkpoint) or [`Snapshot::write`](crate::Snapshot::write)
/// has written; `meshweft_checkpoint` says which, and how the newest whole one is found.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    files: meshweft_checkpoint::Checkpoint,
    order: Order,
    steps: u64,
    time: f64,
}

impl Checkpoint {
    /// Finds the newest checkpoint in a folder that is whole, and reads what it is of.
    ///
    /// # Errors
    /// [`Error::Checkpoint`]: there is none, or it is of another version of this crate.
    pub fn newest(folder: &Path) -> Result<Checkpoint> {
        let files = meshweft_checkpoint::Checkpoint::newest(folder)?;
        let fact = |name: &str| files.fact(name).unwrap_or_default();
        let (version, own) = (fact("version"), env!("CARGO_PKG_VERSION"));
        if version != own {
            return Err(refuse(format!("it was written by version {version} of meshweft, and this is version {own}")));
        }
        let (order, steps, time) = (read(&files, "order")?, read(&files, "steps")?, read(&files, "time")?);
        Ok(Checkpoint { order, steps, time, files })
    }

    /// Whether there are checkpoints in a folder, sound or not.
    pub fn is_any(folder: &Path) -> bool {
        meshweft_checkpoint::is_any(folder)
    }

    /// Removes all checkpoints of a folder, and nothing else of it.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove_all(folder: &Path) -> io::Result<()> {
        meshweft_checkpoint::remove_all(folder)
    }

    /// The order of its run's sweeps, with the size of its blocks.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The word for the precision of its state.
    pub fn precision(&self) -> &str {
        self.files.fact("precision").unwrap_or_default()
    }

    /// Steps that were taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Simulated time, in seconds.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// What its writer noted beside.
    pub fn note(&self) -> &str {
        self.files.fact("note").unwrap_or_default()
    }

    /// Newer checkpoints in its folder that are damaged, and what is wrong with each.
    pub fn passed_over(&self) -> &[String] {
        self.files.passed_over()
    }

    /// Its globals, of which there must be so many.
    ///
    /// # Errors
    /// There are not.
    pub(super) fn globals<T: Number>(&self, count: usize) -> Result<Vec<T>> {
        let words = self.files.fact("globals").unwrap_or_default().split_whitespace();
        let bits: Option<Vec<u8>> = words.map(|word| u8::from_str_radix(word, 16).ok()).collect();
        let bits = bits.filter(|bits| bits.len() == count * T::BYTES).ok_or_else(|| malformed("globals"))?;
        Ok(bytemuck::pod_collect_to_vec(&bits))
    }

    /// The reals of all vertices along the curve, of which there must be so many.
    ///
    /// # Errors
    /// There are not, or they cannot be read any more.
    pub(super) fn state<T: Number>(&self, count: usize) -> Result<Vec<T>> {
        let bytes: u64 = self.files.shards().iter().map(|shard| shard.bytes).sum();
        if bytes != (count * T::BYTES) as u64 {
            return Err(malformed("state"));
        }
        let mut state = Vec::with_capacity(count);
        for i in 0..self.files.shards().len() {
            state.extend(bytemuck::pod_collect_to_vec::<u8, T>(&self.files.read(i)?));
        }
        if state.len() == count { Ok(state) } else { Err(malformed("state")) }
    }

    /// Checks that it is of a simulation.
    ///
    /// # Errors
    /// It says what differs, and how.
    pub(super) fn check(&self, identity: &Identity) -> Result<()> {
        for (name, own) in identity.facts() {
            let given = self.files.fact(&name).unwrap_or_default();
            if given == own {
                continue;
            }
            return Err(refuse(match &name[..] {
                "mesh" => "it was made on another mesh: the numbers of points, cells or fields are not the same".into(),
                "ranks" => format!("its order {} was made by another key than this one", self.order),
                _ => format!("its {name} is {given:?}, and that of this simulation {own:?}"),
            }));
        }
        Ok(())
    }
}

fn read<A: FromStr>(files: &meshweft_checkpoint::Checkpoint, name: &str) -> Result<A> {
    files.fact(name).and_then(|text| text.parse().ok()).ok_or_else(|| malformed(name))
}

fn refuse(what: String) -> Error {
    Error::Invalid(format!("this checkpoint does not fit: {what}"))
}

fn malformed(what: &str) -> Error {
    refuse(format!("its {what} cannot be read"))
}

/// What a simulation is, whatever its state: two of one identity can go on from each other's checkpoints.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) program: &'static str,
    pub(super) kernels: String,
    pub(super) precision: &'static str,
    pub(super) fields: Arc<[Part]>,
    pub(super) mesh: Arc<Mesh>,
    pub(super) layout: Arc<Layout>,
    /// Worked out once.
    pub(super) facts: Arc<OnceLock<Facts>>,
}

impl Identity {
    /// Cost O(mesh), the first time.
    fn facts(&self) -> Facts {
        let fact = |name: &str, value: &dyn Display| (name.to_string(), value.to_string());
        let facts = || {
            let part = |part: &Part| format!("{}:{}:{:?}", part.name, part.components, part.kind).to_lowercase();
            vec![
                fact("version", &env!("CARGO_PKG_VERSION")),
                fact("program", &self.program),
                fact("kernels", &self.kernels),
                fact("precision", &self.precision),
                fact("fields", &self.fields.iter().map(part).collect::<Vec<_>>().join(" ")),
                fact("vertices", &self.mesh.points().len()),
                fact("mesh", &mesh_hash(&self.mesh)),
                fact("order", &self.layout.schedule.order()),
                fact("ranks", &blake3::hash(bytemuck::cast_slice(self.layout.places.order()))),
            ]
        };
        self.facts.get_or_init(facts).clone()
    }
}

/// The hash of all that a program can see of a mesh.
fn mesh_hash(mesh: &Mesh) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut list = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    list(bytemuck::cast_slice(mesh.points()));
    let kinds: Vec<u8> = mesh.cells().iter().map(|(kind, _)| kind as u8).collect();
    list(&kinds);
    list(bytemuck::cast_slice(mesh.cells().all_corners()));
    for fields in [mesh.point_fields(), mesh.cell_fields()] {
        list(&(fields.len() as u64).to_le_bytes());
        for Field { name, components, values } in fields {
            list(name.as_bytes());
            list(&(*components as u64).to_le_bytes());
            list(bytemuck::cast_slice(values));
        }
    }
    for group in mesh.groups() {
        list(group.name.as_bytes());
        list(&[group.dimension as u8]);
        list(bytemuck::cast_slice(&group.cells));
    }
    hasher.finalize()
}

/// How far a run is.
#[derive(Clone)]
pub(super) struct Moment<T> {
    pub(super) steps: u64,
    pub(super) time: f64,
    pub(super) globals: Vec<T>,
}

/// Writes a checkpoint: vertices along the curve, the reals of each together.
pub(super) fn write<T: Number>(
    folder: &Path,
    identity: &Identity,
    moment: &Moment<T>,
    state: View<'_, T>,
    note: &str,
) -> Result<()> {
    let reals = state.shape.shared + state.shape.private;
    let slots = &identity.layout.along_curve;
    let each = (SHARD / (reals * T::BYTES).max(1)).max(1);
    let globals: Vec<String> =
        bytemuck::cast_slice(&moment.globals).iter().map(|byte: &u8| format!("{byte:02x}")).collect();
    let mut facts = identity.facts();
    let own = [("steps", moment.steps.to_string()), ("time", moment.time.to_string()), ("globals", globals.join(" "))];
    facts.extend(own.map(|(name, value)| (name.to_string(), value)));
    facts.push(("note".into(), note.into()));
    let fill = |shard: u64, out: &mut dyn Write| -> io::Result<()> {
        let slots = slots.chunks(each).nth(shard as usize).unwrap_or_default();
        let mut values = Vec::with_capacity(reals * 1024);
        for slots in slots.chunks(1024) {
            values.clear();
            values.extend(slots.iter().flat_map(|&slot| (0..reals).map(move |k| state.real(slot as usize, k))));
            out.write_all(bytemuck::cast_slice::<T, u8>(&values))?;
        }
        Ok(())
    };
    meshweft_checkpoint::write(folder, facts, slots.len().div_ceil(each) as u64, fill)?;
    Ok(())
}
