//! What a simulation is behind its typed face: everything that knows no program, compiled once for each number type.

use super::any::AnySimulation;
use super::changing::Changing;
use super::checkpoint::{Checkpoint, Identity, Moment};
#[cfg(feature = "gpu")]
use super::fields::DeviceField;
use super::fields::{FieldView, read_part, read_parts};
use super::saved::Saved;
use super::snapshot::{self, Snapshot};
use super::vertices::Vertices;
use super::{AuditReport, GpuCounters, Metric};
use crate::adapter::Adapter;
#[cfg(feature = "cluster")]
use crate::cluster::{self, Sharing};
use crate::engine::{Audit, Engine, HostReport, Iterations, Loops, Progress, Table, Timeline};
use crate::error::{Error, Result};
use crate::layout::{Layout, View, shared_stride};
use crate::number::sealed::Sealed;
use crate::number::{Kind, Number, Part};
use crate::piece::Placement;
use crate::program::{AnyProgram, Fields, KernelId, StageList};
use crate::step::{Settings, Stage};
use crate::trace::Role;
#[cfg(feature = "cluster")]
use meshweft_mesh::Cut;
use meshweft_mesh::{Field, Mesh};
#[cfg(feature = "cluster")]
use meshweft_model::Packed;
use meshweft_model::Workload;
use meshweft_schedule::Schedule;
use std::any::Any;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the typed face of a simulation asks for besides.
pub(super) trait Typed<T: Number>: AnySimulation {
    /// Where stages are told to.
    fn list(&self) -> StageList;
    /// Runs stages that belong to no step.
    fn run(&mut self, list: StageList) -> Result<()>;
    /// Measures what a kernel says.
    fn measure(&mut self, kernel: KernelId, name: &str, settings: Settings) -> Result<f64>;
    /// The reals of the globals.
    fn global_reals(&self) -> Result<Vec<f64>>;
    /// Replaces them.
    fn set_globals(&mut self, globals: &[T]) -> Result<()>;
    /// The reals of a vertex, shared ones first.
    fn vertex(&self, v: u32) -> Result<Vec<T>>;
    /// Replaces them.
    fn set_vertex(&mut self, v: u32, reals: &[T]) -> Result<()>;
    /// A shared part of the state where it lies.
    fn view(&self, name: &str) -> Result<FieldView<'_, T>>;
    /// Reads one part of the state, of which there are `len` values: `into(i, x)` receives value `i`.
    fn read(&self, name: &str, len: usize, into: &mut dyn FnMut(usize, f64)) -> Result<()>;
    /// Writes one part of the state, of which there are `len` values: `from(i)` is value `i`.
    fn write(&mut self, name: &str, len: usize, from: &dyn Fn(usize) -> f64) -> Result<()>;
}

/// A share of a time step that times, which are sums that are rounded, are off by at most.
const ROUNDING: f64 = 1e-6;

/// A program on a mesh, with its state.
pub(super) struct Core<T: Number> {
    pub(super) mesh: Arc<Mesh>,
    pub(super) program: Box<dyn AnyProgram<T>>,
    pub(super) layout: Arc<Layout>,
    pub(super) table: Arc<Table<T>>,
    /// Directed edges of the data graph.
    pub(super) edges: usize,
    pub(super) engine: Box<dyn Engine<T>>,
    pub(super) audit: Option<Arc<Audit>>,
    /// Where the threads of this process write down what they do.
    pub(super) timeline: Option<Arc<Timeline>>,
    /// The parts of the state, shared ones first.
    pub(super) fields: Fields,
    pub(super) identity: Identity,
    pub(super) clock: Clock,
    pub(super) health: Health,
    pub(super) changing: Changing,
    pub(super) setup: Vec<(&'static str, f64)>,
}

/// How far a simulation is.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    pub(super) steps: u64,
    pub(super) time: f64,
    /// The time before each step that a device may still be at, and the number of the first of them.
    pub(super) pending: Vec<f64>,
    pub(super) first_pending: u64,
    /// What the engine's account started from.
    pub(super) engine: Progress,
}

/// Whether a simulation can go on.
#[derive(Clone, Debug)]
pub(super) enum Health {
    Well,
    /// The state is not finite since that step.
    Diverged(u64),
    /// A kernel panicked in that step.
    Poisoned(u64),
}

impl<T: Number> Core<T> {
    /// A state vertex by vertex.
    pub(super) fn by_vertex<'a>(&'a self, state: View<'a, T>) -> Vertices<'a, T> {
        Vertices { star: None, state, layout: &self.layout, fields: &self.fields }
    }

    /// The number of a part's first real, the part, and which vertices have its values.
    pub(super) fn locate(&self, name: &str) -> Result<(usize, &Part, Range<u32>)> {
        let (first, part) = locate(&self.fields, "field", name)?;
        let place = self.fields.0.iter().position(|other| other.name == name).expect("it was found");
        Ok((first, part, self.identity.rows[place].clone()))
    }

    fn refuse(&self, name: &str, vertex: u32, value: f64) -> Error {
        let of = if self.is_of_cells(name) { "cell" } else { "vertex" };
        Error::Invalid(format!("{name} of {of} {vertex} would be {value:?}, which is not a finite {}", T::NAME))
    }

    fn check_len(&self, (part, rows): (&Part, &Range<u32>), given: usize) -> Result<()> {
        let (n, Part { name, components, .. }) = (rows.len(), part);
        if given == n * components {
            return Ok(());
        }
        Err(Error::Invalid(format!("{name} takes {n} × {components} values, {given} were given")))
    }

    /// Number of vertices, of all parts.
    pub(super) fn vertices(&self) -> u32 {
        self.layout.places.len() as u32
    }

    pub(super) fn state_bytes(&self) -> usize {
        let shape = self.layout.shape;
        let elements = |elements: &Layout| elements.slots() * elements.shape.private;
        let vertices = self.layout.slots() * (shared_stride(shape.shared) + shape.private);
        (vertices + self.layout.elements.values().map(elements).sum::<usize>()) * T::BYTES
    }

    fn facts(&self) -> crate::engine::Facts {
        self.engine.facts()
    }
}

/// The number of the first real of a part, and the part.
pub(super) fn locate<'a>(fields: &'a Fields, what: &str, name: &str) -> Result<(usize, &'a Part)> {
    fields.locate(name).map_err(|known| Error::Invalid(format!("unknown {what} {known}")))
}

impl<T: Number> Typed<T> for Core<T> {
    fn list(&self) -> StageList {
        StageList::new::<T>(self.table.ids(), self.layout.parts.len() as u32 - 1, self.layout.is_double_buffered())
    }

    fn run(&mut self, list: StageList) -> Result<()> {
        self.aside(list.finish()?.0)
    }

    fn measure(&mut self, kernel: KernelId, name: &str, settings: Settings) -> Result<f64> {
        match self.table.kernels.iter().position(|known| known.id == kernel) {
            Some(number) => self.measure_kernel(number, settings),
            None => Err(Error::Program(format!("kernel {name} is not among the program's kernels"))),
        }
    }

    fn global_reals(&self) -> Result<Vec<f64>> {
        self.check_whole()?;
        let globals = self.engine.globals()?;
        Ok(globals.iter().zip(&self.table.globals).map(|(&x, kind)| kind.decode(x)).collect())
    }

    fn set_globals(&mut self, globals: &[T]) -> Result<()> {
        self.wait()?;
        if let Some((name, value)) = self.table.records.globals.first_not_finite(globals) {
            return Err(Error::Invalid(format!("global {name} would be {value:?}, which is not a finite {}", T::NAME)));
        }
        self.engine.set_globals(globals)
    }

    fn vertex(&self, v: u32) -> Result<Vec<T>> {
        let (state, slot) = (self.reals()?, self.layout.slot(v));
        Ok((0..self.fields.len()).map(|k| state.real(slot, k)).collect())
    }

    fn set_vertex(&mut self, v: u32, reals: &[T]) -> Result<()> {
        if let Some((name, value)) = self.fields.first_not_finite(reals) {
            return Err(self.refuse(name, v, value));
        }
        let slots = self.layout.slots_of(v);
        self.edit(&mut |state| {
            for slot in slots.clone() {
                reals.iter().enumerate().for_each(|(k, &x)| state.set(slot, k, x));
            }
        })
    }

    fn view(&self, name: &str) -> Result<FieldView<'_, T>> {
        let (first, part, rows) = self.locate(name)?;
        if first >= self.layout.shape.shared || part.kind == Kind::Integer {
            return Err(Error::Invalid(format!(
                "the values of {name} do not lie together: copy them with `read_into`"
            )));
        }
        Ok(FieldView { state: self.reals()?, layout: &self.layout, first, components: part.components, rows })
    }

    fn read(&self, name: &str, len: usize, into: &mut dyn FnMut(usize, f64)) -> Result<()> {
        let (first, part, rows) = self.locate(name)?;
        self.check_len((part, &rows), len)?;
        let state = self.reals()?;
        for (i, v) in rows.enumerate() {
            let slot = self.layout.slot(v);
            for k in 0..part.components {
                into(i * part.components + k, part.kind.decode(state.real(slot, first + k)));
            }
        }
        Ok(())
    }

    fn write(&mut self, name: &str, len: usize, from: &dyn Fn(usize) -> f64) -> Result<()> {
        let (first, part, rows) = self.locate(name)?;
        let (components, kind) = (part.components, part.kind);
        self.check_len((part, &rows), len)?;
        if let Some(i) = (0..len).find(|&i| !T::from_f64(from(i)).finite()) {
            return Err(self.refuse(name, (i / components) as u32, from(i)));
        }
        let layout = self.layout.clone();
        self.edit(&mut |state| {
            for (i, v) in rows.clone().enumerate() {
                for slot in layout.slots_of(v) {
                    (0..components).for_each(|k| state.set(slot, first + k, kind.encode(from(i * components + k))));
                }
            }
        })
    }
}

impl<T: Number> Sealed for Core<T> {}

impl<T: Number> AnySimulation for Core<T> {
    fn step(&mut self) -> Result<()> {
        let dt = self.program.time_step();
        if !dt.is_finite() {
            return Err(Error::Program(format!("the time step is {dt}: it must be finite")));
        }
        let (stages, lasts) = self.stages()?;
        let before = self.clock.time;
        self.advance(stages, dt)?;
        lasts.map_or(Ok(()), |global| self.last(global, before))
    }

    fn step_until(&mut self, time: f64) -> Result<()> {
        let (dt, left) = (self.program.time_step(), time - self.clock.time);
        // What is all but whole stays whole: times are sums that are rounded.
        let is_short = left > 0.0 && left < dt * (1.0 - ROUNDING);
        let is_shortened = is_short && self.program.set_time_step(left);
        let result = self.step();
        if is_shortened {
            self.program.set_time_step(dt);
        }
        result?;
        if (self.clock.time - time).abs() <= dt * ROUNDING {
            self.clock.time = time;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        self.check_health()?;
        let progress = self.engine.settle()?;
        if progress.non_finite {
            return self.look();
        }
        self.settled(progress);
        Ok(())
    }

    fn is_pending(&self) -> bool {
        !self.clock.pending.is_empty()
    }

    fn steps(&self) -> u64 {
        self.clock.steps
    }

    fn rounds(&self) -> u64 {
        self.engine.progress().rounds
    }

    fn loops(&self) -> Vec<(&'static str, Iterations)> {
        let Loops(counted) = self.engine.progress().loops;
        let all = self.table.kernels.iter().zip(0..).map(|(kernel, k)| {
            let found = counted.get(&k).copied().unwrap_or_default();
            (kernel.script.role == Role::Test, kernel.name, found)
        });
        let (tests, others): (Vec<_>, Vec<_>) = all.partition(|(is_test, ..)| *is_test);
        let others = others.into_iter().filter(|(.., found)| found.times > 0);
        tests.into_iter().chain(others).map(|(_, name, found)| (name, found)).collect()
    }

    fn time(&self) -> f64 {
        self.clock.time
    }

    fn time_step(&self) -> f64 {
        self.program.time_step()
    }

    fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    fn program(&self) -> &dyn Any {
        &*self.program
    }

    fn program_mut(&mut self) -> &mut dyn Any {
        // Elements may depend on what is changed.
        self.changing.is_stale = true;
        &mut *self.program
    }

    fn precision(&self) -> &'static str {
        T::NAME
    }

    fn schedule(&self) -> &Schedule {
        &self.layout.schedule
    }

    fn fields(&self) -> Vec<Part> {
        self.fields.0.clone()
    }

    fn field(&self, name: &str) -> Result<Field> {
        let (first, part, rows) = self.locate(name)?;
        Ok(read_part(self.reals()?, (&self.layout, rows), first, part))
    }

    fn is_of_cells(&self, name: &str) -> bool {
        self.locate(name).is_ok_and(|(.., rows)| rows.start > 0)
    }

    fn element_field(&self, star: &str, name: &str) -> Result<Field> {
        self.read_element(star, name)
    }

    fn state(&self) -> Result<Vec<Field>> {
        Ok(read_parts(self.reals()?, (&self.layout, &self.identity.rows), &self.fields.0))
    }

    fn set_field(&mut self, name: &str, values: &[f64]) -> Result<()> {
        self.write(name, values.len(), &|i| values[i])
    }

    fn globals(&self) -> Vec<Part> {
        self.table.records.globals.0.clone()
    }

    fn global(&self, name: &str) -> Result<Vec<f64>> {
        let (first, part) = locate(&self.table.records.globals, "global", name)?;
        Ok(self.global_reals()?[first..first + part.components].to_vec())
    }

    fn snapshot(&mut self) -> Result<Snapshot> {
        self.wait()?;
        let Clock { steps, time, .. } = self.clock;
        let moment = Moment { steps, time, globals: self.engine.globals()?, elements: self.element_reals()? };
        let coming = match self.engine.remote() {
            Some(hosts) => hosts.snapshot()?,
            None => None,
        };
        let state = match coming {
            Some(state) => state,
            None => {
                let state = Arc::new(self.reals()?.to_state());
                Box::new(|| Ok(state))
            }
        };
        Ok(snapshot::of(state, self.identity.clone(), moment))
    }

    fn checkpoint(&mut self, folder: &Path) -> Result<()> {
        self.snapshot()?.write(folder, "")
    }

    fn resume(&mut self, from: &Checkpoint) -> Result<()> {
        from.check(&self.identity)?;
        let (reals, layout) = (self.fields.len(), self.layout.clone());
        let globals = from.globals(self.table.globals.len())?;
        let vertices = layout.along_curve.len() * reals;
        let state: Vec<T> = from.state(vertices + self.element_len())?;
        let (state, elements) = state.split_at(vertices);
        self.go_back(from.steps(), from.time(), (&globals, elements), &mut |mut view| {
            for (i, &slot) in layout.along_curve.iter().enumerate() {
                for slot in layout.with_padding(slot as usize) {
                    (0..reals).for_each(|k| view.set(slot, k, state[i * reals + k]));
                }
            }
        })
    }

    fn save(&mut self) -> Result<Saved> {
        self.wait()?;
        let (state, reals) = (self.reals()?, self.fields.len());
        let slots = (0..self.vertices()).map(|v| self.layout.slot(v));
        let mut reals: Vec<T> = slots.flat_map(|slot| (0..reals).map(move |k| state.real(slot, k))).collect();
        reals.extend(self.element_reals()?);
        Ok(Saved::new(&reals, &self.engine.globals()?, self.clock.steps, self.clock.time))
    }

    fn restore(&mut self, saved: &Saved) -> Result<()> {
        let (vertices, reals) = (self.vertices() as usize, self.fields.len());
        let lengths = [vertices * reals, self.element_len()];
        let ([state, elements], globals) = saved.reals::<T>(lengths, self.table.globals.len())?;
        let layout = self.layout.clone();
        self.go_back(saved.steps(), saved.time(), (&globals, &elements), &mut |mut view| {
            for v in 0..vertices {
                for slot in layout.slots_of(v as u32) {
                    (0..reals).for_each(|k| view.set(slot, k, state[v * reals + k]));
                }
            }
        })
    }

    fn write_pieces(&mut self, folder: &Path, name: &str, placement: &Placement) -> Result<Vec<PathBuf>> {
        self.pieces(folder, name, placement)
    }

    fn metrics(&mut self) -> Result<Vec<Metric>> {
        self.wait()?;
        let table = self.table.clone();
        let labeled = table.kernels.iter().enumerate().filter_map(|(i, kernel)| Some((i, kernel.metric?)));
        labeled
            .map(|(i, (name, unit))| Ok(Metric { name, unit, value: self.measure_kernel(i, Settings::default())? }))
            .collect()
    }

    fn metric(&mut self, name: &str) -> Result<f64> {
        let labels: Vec<_> = self.table.kernels.iter().map(|kernel| kernel.metric.map(|label| label.0)).collect();
        match labels.iter().position(|label| *label == Some(name)) {
            Some(kernel) => self.measure_kernel(kernel, Settings::default()),
            None => {
                let known: Vec<_> = labels.into_iter().flatten().collect();
                Err(Error::Invalid(format!("unknown metric {name:?}: one of {}", known.join(", "))))
            }
        }
    }

    fn digest(&self) -> Result<String> {
        let mut hasher = blake3::Hasher::new();
        self.by_vertex(self.reals()?).hash(&mut hasher);
        self.by_element()?.iter().for_each(|elements| elements.hash(&mut hasher));
        Ok(hasher.finalize().to_hex().to_string())
    }

    fn compare(&self, other: &(dyn AnySimulation + 'static)) -> Result<()> {
        let other: &dyn Any = other;
        let other: &Core<T> = other.downcast_ref().expect("runs in one precision");
        self.by_vertex(self.reals()?).compare(&other.by_vertex(other.reals()?), self.steps())?;
        let pairs = self.by_element()?.into_iter().zip(other.by_element()?);
        pairs.into_iter().try_for_each(|(one, other)| one.compare(&other, self.steps()))
    }

    fn audit(&self) -> Result<Option<AuditReport>> {
        let Some(audit) = &self.audit else { return Ok(None) };
        let name = |place: u32| self.layout.vertex_at(place);
        if let Some((v, u)) = audit.breach() {
            return Err(Error::Internal(format!("neighbors {} and {} were updated out of order", name(v), name(u))));
        }
        let Progress { rounds, swept, .. } = self.engine.progress();
        if let Some((place, count)) = audit.miscounted(rounds as u32) {
            let v = name(place as u32);
            return Err(Error::Internal(format!("vertex {v} was updated {count} times in {rounds} rounds")));
        }
        for (&star, elements) in &audit.elements {
            self.check_elements(star, elements)?;
        }
        let updates = rounds * u64::from(self.vertices());
        let relations = 2 * swept * self.edges as u64;
        Ok(Some(AuditReport { rounds: rounds as u32, updates, relations }))
    }

    fn threads(&self) -> usize {
        self.facts().threads
    }

    fn hosts(&self) -> Vec<HostReport> {
        self.facts().hosts
    }

    fn owners(&mut self) -> Vec<u32> {
        self.engine.remote().map_or_else(Vec::new, |remote| remote.owners())
    }

    fn stalls(&self) -> u64 {
        self.facts().stalls
    }

    fn changing_s(&self) -> [f64; 2] {
        [self.changing.finding, self.changing.repair].map(|time| time.as_secs_f64())
    }

    fn updates_left_out(&self) -> u64 {
        self.facts().left_out
    }

    fn adapter(&self) -> Option<Adapter> {
        self.facts().gpu.map(|gpu| gpu.0)
    }

    fn gpu_counters(&self) -> Option<GpuCounters> {
        self.facts().gpu.map(|gpu| gpu.1)
    }

    #[cfg(feature = "gpu")]
    fn device_field(&mut self, name: &str) -> Result<DeviceField> {
        self.wait()?;
        let (first, part, rows) = self.locate(name)?;
        let components = part.components;
        if first >= self.layout.shape.shared {
            return Err(Error::Invalid(format!(
                "{name} is private: neighbors cannot see it, nor can the host on the device"
            )));
        }
        let Some(crate::shared::Shared { device, queue, buffer }) = self.engine.shared()? else {
            return Err(Error::Invalid("this simulation runs on no GPU: give it `Backend::Gpu`".into()));
        };
        let stride = shared_stride(self.layout.shape.shared);
        let slots = rows.map(|v| self.layout.slot(v) as u32).collect();
        Ok(DeviceField { device, queue, buffer, first, components, stride, slots })
    }

    fn setup(&self) -> &[(&'static str, f64)] {
        &self.setup
    }

    fn directed_edges(&self) -> usize {
        self.edges
    }

    fn width(&self) -> usize {
        self.layout.width
    }

    fn memory_bytes(&self) -> usize {
        self.state_bytes() + self.layout.bytes()
    }

    fn round_bytes(&self) -> usize {
        let shared = self.layout.slots() * shared_stride(self.layout.shape.shared) * T::BYTES;
        let own = || self.layout.round_bytes() + shared + self.state_bytes();
        self.facts().round_bytes.unwrap_or_else(own)
    }

    #[cfg(feature = "cluster")]
    fn shares(&self, hosts: u32, cut: Cut) -> Result<Sharing> {
        cluster::sharing(&self.layout, self.mesh.points(), &cluster::even(hosts)?, cut)
    }

    fn workload(&self, threads: usize, parts: &[f64]) -> Result<Workload> {
        self.work(threads, parts)
    }

    #[cfg(feature = "cluster")]
    fn packed(&self) -> Result<Packed> {
        cluster::try_packing(&self.layout, self.engine.state()?)
    }

    fn run_once(&mut self) -> Result<()> {
        let stages = self.stages()?.0.into_iter().flat_map(Stage::once).collect();
        self.aside(stages)
    }

    fn write_timeline(&mut self, out: &mut dyn Write) -> Result<u64> {
        self.events(out)
    }
}
