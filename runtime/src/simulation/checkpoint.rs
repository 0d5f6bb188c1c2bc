//! A state on disk, for a run that goes on from it: what it is of, and its numbers.

use crate::error::{Error, Result};
use crate::layout::{Layout, View};
use crate::number::{Number, Part};
use meshweft_checkpoint::Facts;
use meshweft_mesh::{Field, Mesh};
use meshweft_schedule::{Key, Order};
use std::fmt::Display;
use std::io::{self, Write};
use std::ops::Range;
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
        // A key of the host's own has no word that can be asked for.
        let own_key = fact("order").strip_suffix("/own").map(|curve| format!("{curve}/color"));
        let order = own_key.as_deref().unwrap_or(fact("order")).parse().map_err(|_| malformed("order"))?;
        let order = if own_key.is_some() { Order { key: Key::Own, ..order } } else { order };
        let (steps, time) = (read(&files, "steps")?, read(&files, "time")?);
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

    /// The reals of all vertices along the curve and then of elements, of which there must be so many.
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
    /// Which vertices have the values of each field.
    pub(super) rows: Arc<[Range<u32>]>,
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
    /// Reals of the elements that are projected.
    pub(super) elements: Vec<T>,
}

/// Writes a checkpoint: vertices along the curve, the reals of each together, and then elements.
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
    let vertices = slots.len().div_ceil(each);
    let globals: Vec<String> =
        bytemuck::cast_slice(&moment.globals).iter().map(|byte: &u8| format!("{byte:02x}")).collect();
    let mut facts = identity.facts();
    let own = [("steps", moment.steps.to_string()), ("time", moment.time.to_string()), ("globals", globals.join(" "))];
    facts.extend(own.map(|(name, value)| (name.to_string(), value)));
    facts.push(("note".into(), note.into()));
    let fill = |shard: u64, out: &mut dyn Write| -> io::Result<()> {
        let Some(slots) = slots.chunks(each).nth(shard as usize) else {
            let elements = moment.elements.chunks(SHARD / T::BYTES).nth(shard as usize - vertices);
            return out.write_all(bytemuck::cast_slice::<T, u8>(elements.unwrap_or_default()));
        };
        let mut values = Vec::with_capacity(reals * 1024);
        for slots in slots.chunks(1024) {
            values.clear();
            values.extend(slots.iter().flat_map(|&slot| (0..reals).map(move |k| state.real(slot as usize, k))));
            out.write_all(bytemuck::cast_slice::<T, u8>(&values))?;
        }
        Ok(())
    };
    let shards = vertices + moment.elements.len().div_ceil(SHARD / T::BYTES);
    meshweft_checkpoint::write(folder, facts, shards as u64, fill)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::mesh::generate::generate;
    use crate::toy::{Counting, Mixing};
    use crate::{Backend, Builder, Checkpoint, Mesh, Order, Simulation};
    use std::fs;
    use std::path::Path;

    fn mesh() -> Mesh {
        generate("sheet:9", 1).unwrap()
    }

    fn builder() -> Builder<Mixing, f32> {
        Simulation::builder(mesh(), Mixing).order(Order::blocked(8))
    }

    /// A folder with a checkpoint.
    fn written() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut mixing = builder().build().unwrap();
        mixing.step().unwrap();
        mixing.checkpoint(folder.path()).unwrap();
        folder
    }

    #[test]
    fn a_checkpoint_of_another_program_mesh_order_or_precision_is_refused_by_name() {
        let folder = written();
        let from = folder.path();
        let why = |resumed: crate::Result<()>| resumed.unwrap_err().to_string();
        let check = |said: String, names: &[&str]| assert!(names.iter().all(|name| said.contains(name)), "{said}");
        let counting = Simulation::builder(mesh(), Counting).order(Order::blocked(8));
        check(why(counting.resume(from).map(drop)), &["program", "Mixing", "Counting"]);
        let other = Simulation::builder(generate("sheet:8x10", 1).unwrap(), Mixing);
        check(why(other.resume(from).map(drop)), &["vertices is \"81\"", "\"80\""]);
        let mut moved = mesh();
        let mut points = moved.points().to_vec();
        points[7][2] = f64::MIN_POSITIVE;
        moved.set_points(points).unwrap();
        check(why(Simulation::builder(moved, Mixing).resume(from).map(drop)), &["another mesh"]);
        let order = |order: &str| why(builder().order(order.parse().unwrap()).resume(from).map(drop));
        check(order("color"), &["order", "morton/blocked:8", "morton/color"]);
        check(order("hilbert/blocked:8"), &["order", "morton/blocked:8", "hilbert/blocked:8"]);
        check(order("blocked:16"), &["order", "blocked:16"]);
        check(why(builder().precision::<f64>().resume(from).map(drop)), &["precision", "f32", "f64"]);
        // One without an order, or with an open size of blocks, takes that of the checkpoint.
        for order in [None, Some("blocked")] {
            let builder = Simulation::builder(mesh(), Mixing).backend(Backend::Serial);
            let builder = order.into_iter().fold(builder, |builder, order| builder.order(order.parse().unwrap()));
            let resumed = builder.resume(from).unwrap();
            assert_eq!((resumed.order(), resumed.steps()), (Order::blocked(8), 1));
        }
    }

    #[test]
    fn another_key_of_the_hosts_own_is_another_order() {
        let folder = tempfile::tempdir().unwrap();
        let by = |key: fn(u32) -> u64| Simulation::builder(mesh(), Mixing).order_by(key);
        by(u64::from).build().unwrap().checkpoint(folder.path()).unwrap();
        let error = by(|v| 100 - u64::from(v)).resume(folder.path()).map(drop).unwrap_err().to_string();
        assert!(error.contains("morton/own") && error.contains("another key"), "{error}");
        by(u64::from).resume(folder.path()).map(drop).unwrap();
    }

    /// Writes another manifest, with the hash that it should have.
    fn forge(folder: &Path, old: &str, new: &str) {
        let path = folder.join("epoch-00000000000000000000/MANIFEST");
        let text = fs::read_to_string(&path).unwrap();
        let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
        let body = format!("{body}\n").replace(old, new);
        fs::write(path, format!("{body}end {}\n", blake3::hash(body.as_bytes()).to_hex())).unwrap();
    }

    #[test]
    fn another_version_is_refused_with_both_and_what_cannot_be_read_by_name() {
        let version = env!("CARGO_PKG_VERSION");
        for (old, new, says) in [
            (&*format!("version {version}"), "version 9.9.9", &["9.9.9", version][..]),
            ("steps 1", "steps one", &["steps cannot be read"]),
            ("time ", "time x", &["time cannot be read"]),
            ("globals ", "globals 00", &["globals cannot be read"]),
            ("order morton/blocked:8", "order peano/blocked:8", &["order cannot be read"]),
            ("precision f32", "precision f16", &["precision", "f16", "f32"]),
            ("fields value:1:real", "fields value:1:integer", &["fields", "integer"]),
        ] {
            let folder = written();
            forge(folder.path(), old, new);
            let error = builder().resume(folder.path()).map(drop).unwrap_err().to_string();
            assert!(says.iter().all(|word| error.contains(word)), "{new}: {error}");
        }
        // A shard too few.
        let folder = written();
        let text = fs::read_to_string(folder.path().join("epoch-00000000000000000000/MANIFEST")).unwrap();
        let shard = text.lines().find(|line| line.starts_with("shard ")).unwrap();
        forge(folder.path(), &format!("{shard}\n"), "");
        let error = builder().resume(folder.path()).map(drop).unwrap_err().to_string();
        assert!(error.contains("state cannot be read"), "{error}");
        // And none at all.
        let error = Checkpoint::newest(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none holds no checkpoint"), "{error}");
    }
}
