//! What was measured, kept for the next time.
//!
//! A JSON file in the user's cache folder, with what identifies the machine. What does not fit, cannot be read or cannot be true is
//! measured anew, and a file that cannot be written is no error: the cache saves seconds and nothing else.

use super::constants;
use super::source::Source;
use crate::Options;
use crate::cli::options::Plan;
use crate::cli::system::processor;
use anyhow::Result;
use meshweft::Order;
use meshweft::model::{Costs, GpuCosts, HybridCosts, Machine, Packed, Rate};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Changes when numbers of an older version mean something else.
const FORMAT: u64 = 2;
/// Bytes of the largest file that is read: a hundred programs in all orders take less.
const LARGEST: u64 = 1 << 20;

/// Constants of this machine, and what programs cost on it.
pub(in crate::cli) struct Cache {
    /// None if the system names no folder.
    path: Option<PathBuf>,
    threads: usize,
    /// Whether what the file knew is not to be used.
    is_fresh: bool,
    machine: Option<Machine>,
    /// By [`Kept::KIND`] and name.
    costs: BTreeMap<String, Value>,
    /// Of those the ones that were measured while other programs had the cores: better than nothing, until they are asked for again.
    disturbed: BTreeSet<String>,
}

/// Costs that the file can hold.
pub(in crate::cli) trait Kept: Sized {
    /// What they are, for the file.
    const KIND: &'static str;

    fn write(&self) -> Value;

    /// None if they make no sense.
    fn read(value: &Value) -> Option<Self>;
}

/// The file of the user's cache folder.
fn path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    // What a debug build measures says nothing of others.
    let file = if cfg!(debug_assertions) { "machine-debug.json" } else { "machine.json" };
    caches.map(|caches| caches.join("meshweft").join(file))
}

/// What must be the same for numbers to hold.
fn identity(threads: usize) -> Value {
    json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "processor": processor(),
        "threads": threads,
    })
}

impl Cache {
    /// What the file knows of this machine on so many threads; nothing of it if all is to be measured anew.
    pub(in crate::cli) fn open(threads: usize, is_fresh: bool) -> Cache {
        Cache::at(path(), threads, is_fresh)
    }

    pub(super) fn at(path: Option<PathBuf>, threads: usize, is_fresh: bool) -> Cache {
        let mut cache =
            Cache { path, threads, is_fresh, machine: None, costs: BTreeMap::new(), disturbed: BTreeSet::new() };
        if let (false, Some(path)) = (is_fresh, &cache.path)
            && let Some(known) = read(path).filter(|known| known["machine_id"] == identity(threads))
            && let Some(machine) = machine_of(&known["machine"], threads)
        {
            cache.machine = Some(machine);
            let costs = known["costs"].as_object().into_iter().flatten();
            cache.costs = costs.map(|(name, costs)| (name.clone(), costs.clone())).collect();
            let names = known["disturbed"].as_array().into_iter().flatten();
            cache.disturbed = names.filter_map(Value::as_str).map(str::to_owned).collect();
        }
        cache
    }

    /// The constants, if they are known.
    #[cfg(any(feature = "cluster", test))]
    pub(in crate::cli) fn known_machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    /// The constants, measured now if they are not known.
    ///
    /// # Errors
    /// As [`constants::measure`].
    pub(in crate::cli) fn machine(&mut self) -> Result<Machine> {
        match &self.machine {
            Some(machine) => Ok(machine.clone()),
            None => {
                let machine = constants::measure(self.threads)?;
                self.machine = Some(machine.clone());
                Ok(machine)
            }
        }
    }

    /// The constants, if they are known or to be measured now.
    ///
    /// # Errors
    /// As [`constants::measure`].
    pub(super) fn machine_if(&mut self, is_measured: bool) -> Result<Option<Machine>> {
        if is_measured { self.machine().map(Some) } else { Ok(self.machine.clone()) }
    }

    /// Takes constants that are known.
    #[cfg(all(feature = "cluster", test))]
    pub(super) fn set_machine(&mut self, machine: Machine) {
        self.machine = Some(machine);
    }

    /// Notes that other programs had the cores while this was measured: the next time it is measured again.
    pub(super) fn disturb<C: Kept>(&mut self, name: &str) {
        self.disturbed.insert(key::<C>(name));
    }

    /// Whether they had.
    pub(super) fn is_disturbed<C: Kept>(&self, name: &str) -> bool {
        self.disturbed.contains(&key::<C>(name))
    }

    /// What a program costs, if it is known.
    pub(in crate::cli) fn known<C: Kept>(&self, name: &str) -> Option<C> {
        self.costs.get(&key::<C>(name)).and_then(C::read)
    }

    /// What a program costs, measured now if it is not known.
    ///
    /// # Errors
    /// Those of `measure`.
    pub(in crate::cli) fn costs<C: Kept>(&mut self, name: &str, measure: impl FnOnce() -> Result<C>) -> Result<C> {
        if let Some(costs) = self.known(name).filter(|_| !self.is_disturbed::<C>(name)) {
            return Ok(costs);
        }
        let costs = measure()?;
        self.note(name, &costs);
        Ok(costs)
    }

    /// What a program costs, if it is known or to be measured now.
    ///
    /// # Errors
    /// Those of `measure`.
    pub(super) fn costs_if<C: Kept>(
        &mut self,
        is_measured: bool,
        name: &str,
        measure: impl FnOnce() -> Result<C>,
    ) -> Result<Option<C>> {
        if is_measured { self.costs(name, measure).map(Some) } else { Ok(self.known(name)) }
    }

    /// Notes what a program costs.
    pub(super) fn note<C: Kept>(&mut self, name: &str, costs: &C) {
        self.disturbed.remove(&key::<C>(name));
        self.costs.insert(key::<C>(name), costs.write());
    }

    /// Writes the file, if it can be written, with what other runs have come to know meanwhile.
    pub(in crate::cli) fn save(&self) {
        if let (Some(path), Some(machine)) = (&self.path, &self.machine) {
            let mut known = Cache::at(Some(path.clone()), self.threads, self.is_fresh);
            known.disturbed.retain(|name| !self.costs.contains_key(name));
            known.disturbed.extend(self.disturbed.clone());
            known.costs.extend(self.costs.clone());
            let costs: Map<String, Value> = known.costs.into_iter().collect();
            let all = json!({
                "machine_id": identity(self.threads), "machine": machine_to(machine), "costs": costs, "disturbed": known.disturbed,
            });
            // A wish: the next run measures again.
            let _ = write(path, &all);
        }
    }
}

fn read(path: &Path) -> Option<Value> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whole, under another name first: several runs may end at once.
fn write(path: &Path, all: &Value) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{all:#}")?;
    file.persist(path)?;
    Ok(())
}

/// A number that can be divided by.
fn positive(value: &Value) -> Option<f64> {
    value.as_f64().filter(|x| x.is_finite() && *x > 0.0)
}

/// A number that can be added.
fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|x| x.is_finite() && *x >= 0.0)
}

fn rates_to(rates: &[Rate]) -> Value {
    rates.iter().map(|rate| json!([rate.threads, rate.bytes, rate.per_s])).collect()
}

/// Ascending by threads, then bytes.
fn rates_of(value: &Value) -> Option<Vec<Rate>> {
    let rate = |row: &Value| {
        let threads = usize::try_from(row[0].as_u64()?).ok().filter(|&threads| threads > 0)?;
        Some(Rate { threads, bytes: positive(&row[1])?, per_s: positive(&row[2])? })
    };
    let rates: Vec<Rate> = value.as_array()?.iter().map(rate).collect::<Option<_>>()?;
    let is_sorted = rates.is_sorted_by(|a, b| (a.threads, a.bytes) < (b.threads, b.bytes));
    (is_sorted && rates.first()?.threads == 1).then_some(rates)
}

fn machine_to(machine: &Machine) -> Value {
    json!({
        "reads": rates_to(&machine.reads),
        "gathers": rates_to(&machine.gathers),
    })
}

fn machine_of(value: &Value, threads: usize) -> Option<Machine> {
    let reads = rates_of(&value["reads"])?;
    let is_whole = reads.iter().any(|rate| rate.threads == threads);
    let machine = Machine { threads, reads, gathers: rates_of(&value["gathers"])? };
    is_whole.then_some(machine)
}

fn key<C: Kept>(name: &str) -> String {
    format!("{}: {name}", C::KIND)
}

impl Kept for Costs {
    const KIND: &'static str = "cores";

    fn write(&self) -> Value {
        json!([self.read_s, self.update_s, self.exposed, self.task_s, self.bytes])
    }

    fn read(value: &Value) -> Option<Costs> {
        let [update_s, exposed, task_s] = [finite(&value[1])?, finite(&value[2])?, finite(&value[3])?];
        Some(Costs { read_s: finite(&value[0])?, update_s, exposed, task_s, bytes: positive(&value[4])? })
    }
}

impl Kept for GpuCosts {
    const KIND: &'static str = "gpu";

    fn write(&self) -> Value {
        json!([self.dispatches_s, self.read_s, self.copy_bytes_per_s])
    }

    fn read(value: &Value) -> Option<GpuCosts> {
        let [dispatches_s, read_s] = [finite(&value[0])?, finite(&value[1])?];
        Some(GpuCosts { dispatches_s, read_s, copy_bytes_per_s: positive(&value[2])? })
    }
}

impl Kept for Packed {
    const KIND: &'static str = "packed";

    fn write(&self) -> Value {
        json!([self.share, self.byte_s])
    }

    fn read(value: &Value) -> Option<Packed> {
        Some(Packed { share: positive(&value[0])?, byte_s: positive(&value[1])? })
    }
}

impl Kept for HybridCosts {
    const KIND: &'static str = "hybrid";

    fn write(&self) -> Value {
        json!([self.gpu.write(), self.trip_s, self.is_software])
    }

    fn read(value: &Value) -> Option<HybridCosts> {
        let gpu = GpuCosts::read(&value[0])?;
        Some(HybridCosts { gpu, trip_s: finite(&value[1])?, is_software: value[2].as_bool()? })
    }
}

/// What the costs of a program are known by: all that decides what its kernels do, and how they are walked.
pub(super) fn name(plan: &Plan, source: Source, order: Order) -> String {
    let settings: Vec<String> = plan.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let Options { simd, precision, .. } = plan.options;
    let name = plan.entry.info.name;
    format!("{name} {} {} {order} {} {simd:?}", settings.join(","), source.kinds(), precision.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let rate = |threads, bytes, per_s| Rate { threads, bytes, per_s };
        Machine {
            threads: 2,
            reads: vec![rate(1, 1e6, 3e10), rate(1, 1e8, 1e10), rate(2, 1e6, 6e10), rate(2, 1e8, 1.5e10)],
            gathers: vec![rate(1, 1e6, 1e9)],
        }
    }

    const COSTS: Costs = Costs { read_s: 4e-10, update_s: 0.0, exposed: 0.7, task_s: 0.0, bytes: 4e6 };

    #[test]
    fn what_was_saved_is_known_the_next_time_on_the_same_machine() {
        let folder = tempfile::tempdir().unwrap();
        let path = || Some(folder.path().join("meshweft/machine.json"));
        let mut cache = Cache::at(path(), 2, false);
        assert_eq!((cache.known_machine(), cache.known::<Costs>("diffusion")), (None, None));
        cache.machine = Some(machine());
        cache.note("diffusion", &COSTS);
        cache.save();
        let again = Cache::at(path(), 2, false);
        assert_eq!((again.known_machine(), again.known::<Costs>("diffusion")), (Some(&machine()), Some(COSTS)));
        // What another run has saved since this one began.
        let mut late = Cache::at(path(), 2, false);
        (0..2).for_each(|k| [&mut cache, &mut late][k].note(["tides", "waves"][k], &COSTS));
        cache.save();
        late.save();
        let both = Cache::at(path(), 2, false);
        assert!(["diffusion", "tides", "waves"].iter().all(|name| both.known(name) == Some(COSTS)));
        // What others have disturbed is known until it is asked for again.
        let (slow, read) = (Costs { read_s: 1.0, ..COSTS }, || Cache::at(path(), 2, false));
        late.note("tides", &slow);
        late.disturb::<Costs>("tides");
        late.save();
        assert_eq!((read().known("tides"), read().costs("tides", || Ok(COSTS)).unwrap()), (Some(slow), COSTS));
        let mut quiet = read();
        quiet.costs("tides", || Ok(COSTS)).unwrap();
        quiet.save();
        assert_eq!(read().costs("tides", || Ok(slow)).unwrap(), COSTS);
        // Other threads, or the wish for new numbers.
        for cache in [Cache::at(path(), 3, false), Cache::at(path(), 2, true)] {
            assert_eq!((cache.known_machine(), cache.known::<Costs>("diffusion")), (None, None));
        }
    }

    #[test]
    fn a_file_that_makes_no_sense_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine.json");
        let mut cache = Cache::at(Some(path.clone()), 2, false);
        cache.machine = Some(machine());
        cache.note("diffusion", &COSTS);
        cache.save();
        let good = std::fs::read_to_string(&path).unwrap();
        let known = || Cache::at(Some(path.clone()), 2, false);
        assert!(known().known_machine().is_some());
        let wrong = [
            String::new(),
            "{".repeat(100_000),
            "[1, 2]".into(),
            good.replace("30000000000.0", "-1.0"),
            good.replace("30000000000.0", "1e999"),
            good.replace("30000000000.0", "null"),
            good.replace("\"format\": 2", "\"format\": 0"),
            good.replace("1000000.0", "1e300"),
            " ".repeat(3 << 20) + &good,
        ];
        for text in wrong {
            assert_ne!(text, good);
            std::fs::write(&path, &text).unwrap();
            assert_eq!(known().known_machine(), None, "{}", &text[..text.len().min(80)]);
        }
        std::fs::write(&path, good.replace("0.7", "-0.7")).unwrap();
        assert_eq!((known().known_machine().is_some(), known().known::<Costs>("diffusion")), (true, None));
        // A folder in its place cannot be written, which is no error.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        cache.save();
        assert_eq!(known().known_machine(), None);
    }
}
