//! The façade: a program on a mesh, stepped by its owner.

mod backend;
mod builder;
mod fields;
mod pieces;
#[cfg(test)]
mod robust;
mod saved;
#[cfg(feature = "cluster")]
mod shares;
mod snapshot;
#[cfg(test)]
pub(crate) mod tests;
mod timeline;
mod workload;

use crate::engine::{Audit, Engine, HostReport, Progress, Table, Timeline};
use crate::error::{Error, Result};
use crate::gpu::Adapter;
pub use crate::gpu::Counters as GpuCounters;
use crate::layout::{Layout, View};
use crate::number::Number;
use crate::program::{Kind, Part, Program, Record, Reduce, Stages, leaves, settings_of};
use crate::schedule::{Order, Schedule};
use crate::step::{Settings, Stage, Step};
pub use backend::{Backend, Simd};
pub use builder::Builder;
#[cfg(feature = "gpu")]
pub use fields::DeviceField;
pub use fields::FieldView;
use meshweft_mesh::Mesh;
pub use saved::Saved;
pub use snapshot::Snapshot;
use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

/// One measured quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for a pure number.
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
}

/// What [`Simulation::audit`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// Rounds of sweeps that were watched.
    pub rounds: u32,
    /// Updates that were watched: rounds × vertices.
    pub updates: u64,
    /// Neighbor relations that were checked before and after the updates of sweeps.
    pub relations: u64,
}

/// A program on a mesh, with its state.
///
/// The owner keeps the loop: [`Simulation::step`] advances one time step; fields can be read and written between steps,
/// in the order of the mesh's vertices whatever the order of the schedule. There is no global state: any number of
/// simulations may live at once, each with its own threads.
pub struct Simulation<P: Program, T: Number = f32> {
    mesh: Mesh,
    program: P,
    layout: Arc<Layout<T>>,
    table: Arc<Table<T>>,
    /// Directed edges of the data graph.
    edges: usize,
    engine: Box<dyn Engine<T>>,
    audit: Option<Arc<Audit>>,
    /// Where the threads of this process write down what they do.
    timeline: Option<Arc<Timeline>>,
    /// Names of the reals of the state, shared ones first.
    parts: Vec<Part>,
    clock: Clock,
    health: Health,
    setup: Vec<(&'static str, f64)>,
}

/// How far a simulation is.
#[derive(Clone, Debug, Default)]
struct Clock {
    steps: u64,
    time: f64,
    /// The time before each step that a device may still be at, and the number of the first of them.
    pending: Vec<f64>,
    first_pending: u64,
    /// What the engine's account started from.
    engine: Progress,
}

/// Whether a simulation can go on.
#[derive(Clone, Debug)]
enum Health {
    Well,
    /// The state is not finite since that step.
    Diverged(u64),
    /// A kernel panicked in that step.
    Poisoned(u64),
}

impl<P: Program, T: Number> Simulation<P, T> {
    /// Advances one time step. A GPU is asked for it and works on while the caller does, see [`Simulation::wait`].
    ///
    /// # Errors
    /// [`Error::Diverged`] if a value is no longer finite; it names the vertex and the step, and so does every later call until
    /// the state is set or restored. [`Error::Program`] if the program's step uses a kernel that it does not name, or its
    /// time step or a parameter is not finite: the step is then not taken.
    pub fn step(&mut self) -> Result<()> {
        let dt = self.program.time_step();
        if !dt.is_finite() {
            return Err(Error::Program(format!("the time step is {dt}: it must be finite")));
        }
        let stages = self.stages_of_step()?;
        self.advance(stages, dt)
    }

    /// The stages of the next step, as the program tells them.
    fn stages_of_step(&self) -> Result<Vec<Stage>> {
        Stages::<P>::record::<T>(self.table.ids(), self.schedule().is_double_buffered(), |stages| {
            self.program.step(stages);
        })
    }

    /// Runs stages that the host chooses, without a time step: time and the number of steps stay as they are.
    ///
    /// ```
    /// # use meshweft::{Mesh, Program, Real, Result, Simulation, Stages, kernels, vertex};
    /// # use meshweft::mesh::generate::generate;
    /// vertex! { pub struct Counter<R> { shared count: R } }
    /// struct Counting;
    /// kernels! { for Counting: Counter; map Increment |_, own| Counter { count: own.count + R::lit(1.0) }; }
    /// impl Program for Counting {
    ///     fn initial(&self, _: &Mesh, _: u32) -> Counter<f64> { Counter { count: 0.0 } }
    ///     fn step(&self, _: &mut Stages<Self>) {}
    /// }
    /// let mut counting = Simulation::builder(generate("chain:3", 1)?, Counting).build()?;
    /// counting.run(|stages| (0..5).for_each(|_| stages.map(Increment)))?;
    /// assert_eq!((counting.field("count")?.values[2], counting.steps()), (5.0, 0));
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Simulation::step`].
    pub fn run(&mut self, tell: impl FnOnce(&mut Stages<P>)) -> Result<()> {
        let stages = Stages::<P>::record::<T>(self.table.ids(), self.schedule().is_double_buffered(), tell)?;
        self.aside(stages)
    }

    /// Runs stages that belong to no step.
    fn aside(&mut self, stages: Vec<Stage>) -> Result<()> {
        // Steps that a device has not taken yet have their own numbers.
        self.wait()?;
        let (steps, time) = (self.clock.steps, self.clock.time);
        let result = self.advance(stages, 0.0).and_then(|()| self.wait());
        (self.clock.steps, self.clock.time, self.clock.first_pending) = (steps, time, steps);
        result.map_err(|error| match self.health {
            // It was no step of its own.
            Health::Diverged(_) => {
                self.health = Health::Diverged(steps);
                self.find_fault(steps).unwrap_or(error)
            }
            _ => error,
        })
    }

    fn advance(&mut self, stages: Vec<Stage>, dt: f64) -> Result<()> {
        self.check_health()?;
        let step = Step { number: self.clock.steps as u32, parameters: self.parameters()?, stages };
        // A panic of a kernel leaves this behind.
        self.health = Health::Poisoned(self.clock.steps + 1);
        let result = self.engine.step(&step);
        self.health = Health::Well;
        result?;
        self.clock.pending.push(self.clock.time);
        self.clock.steps += 1;
        self.clock.time += dt;
        let progress = self.engine.progress();
        if progress.spoilt {
            return self.look();
        }
        if !progress.is_pending {
            self.settled(progress);
        }
        Ok(())
    }

    /// The parameters of the next step, rounded.
    fn parameters(&self) -> Result<Vec<T>> {
        let parameters = self.program.parameters(self.clock.time);
        let reals = leaves::<_, T>(&parameters);
        match first_not_finite::<P::Parameters<f64>, T>(&reals) {
            None => Ok(reals),
            Some((name, value)) => {
                let why = if value.is_nan() { "set it in `Program::parameters`" } else { "use f64, or other units" };
                Err(Error::Program(format!("parameter {name} is {value}, which is not finite: {why}")))
            }
        }
    }

    fn check_health(&self) -> Result<()> {
        match self.health {
            Health::Well => Ok(()),
            Health::Poisoned(step) => Err(Error::Poisoned { step }),
            Health::Diverged(step) => self.find_fault(step).map_or(Ok(()), Err),
        }
    }

    /// Some update was not finite: looks where, and at which step, once the engine is done.
    fn look(&mut self) -> Result<()> {
        let progress = self.engine.settle()?;
        let since = self.clock.engine;
        // Steps after the one that was not finite were asked for, but not taken.
        let steps = self.clock.first_pending + progress.steps - since.steps;
        let lost = self.clock.steps - steps;
        if let Some(&time) = self.clock.pending.get((steps - self.clock.first_pending) as usize) {
            (self.clock.steps, self.clock.time) = (steps, time);
        }
        self.settled(progress);
        match self.find_fault(steps) {
            None if lost == 0 => Ok(()),
            None => Err(Error::Gpu(format!(
                "an update was not finite in step {steps}, though a later one mended it: {lost} steps that were asked for after it \
                 were not taken; ask for them again, or guard the update"
            ))),
            Some(error) => {
                self.health = Health::Diverged(steps);
                Err(error)
            }
        }
    }

    /// All steps so far are done.
    fn settled(&mut self, progress: Progress) {
        self.clock.pending.clear();
        (self.clock.first_pending, self.clock.engine.steps) = (self.clock.steps, progress.steps);
    }

    /// Waits until all steps are done: a GPU is asked for them and works on while the caller does. Reading the state waits
    /// too.
    ///
    /// # Errors
    /// As [`Simulation::step`].
    pub fn wait(&mut self) -> Result<()> {
        self.check_health()?;
        let progress = self.engine.settle()?;
        if progress.spoilt {
            return self.look();
        }
        self.settled(progress);
        Ok(())
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.clock.steps
    }

    /// Rounds of sweeps taken so far: each updates every vertex once.
    pub fn rounds(&self) -> u64 {
        self.engine.progress().rounds
    }

    /// Simulated time in seconds: the sum of all time steps taken.
    pub fn time(&self) -> f64 {
        self.clock.time
    }

    /// The mesh, as it was given.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The program.
    pub fn program(&self) -> &P {
        &self.program
    }

    /// The program, to change its parameters between steps.
    pub fn program_mut(&mut self) -> &mut P {
        &mut self.program
    }

    /// The order of its sweeps, with the size of its blocks: the whole identity of its results.
    pub fn order(&self) -> Order {
        self.schedule().order()
    }

    /// The schedule of its sweeps.
    pub fn schedule(&self) -> &Schedule {
        &self.layout.schedule
    }

    /// Threads that update vertices.
    pub fn threads(&self) -> usize {
        self.engine.facts().threads
    }

    /// What each host has done since it began, if the simulation runs on several: the share of each, its times, what it sent.
    ///
    /// As of the last report of each: [`Simulation::wait`] asks for one.
    pub fn hosts(&self) -> Vec<HostReport> {
        self.engine.facts().hosts
    }

    /// How often so far the threads were held up because one of them was not given a core: other work runs on this machine.
    pub fn stalls(&self) -> u64 {
        self.engine.facts().stalls
    }

    /// Updates of vertices that the CPU has left out so far, because a kernel is declared `quiet` and nothing that they would have
    /// read had changed.
    pub fn updates_left_out(&self) -> u64 {
        self.engine.facts().left_out
    }

    /// The GPU that updates run on, if they do.
    pub fn adapter(&self) -> Option<Adapter> {
        self.engine.facts().gpu.map(|gpu| gpu.0)
    }

    /// What has been asked of the GPU so far, if there is one.
    pub fn gpu_counters(&self) -> Option<GpuCounters> {
        self.engine.facts().gpu.map(|gpu| gpu.1)
    }

    /// Seconds that each stage of building took, in order.
    pub fn setup(&self) -> &[(&'static str, f64)] {
        &self.setup
    }

    /// Directed edges of the data graph: twice the pairs of vertices that read each other.
    pub fn directed_edges(&self) -> usize {
        self.edges
    }

    /// Bytes of state, schedule and stars, without the mesh.
    pub fn memory_bytes(&self) -> usize {
        self.state_bytes() + self.layout.bytes()
    }

    fn state_bytes(&self) -> usize {
        let shape = self.layout.shape;
        self.layout.slots() * (crate::layout::shared_stride(shape.shared) + shape.private) * T::BYTES
    }

    /// Bytes that one round must move at least between memory and processor when nothing of the last one is left in a
    /// cache: stars and halos in, shared state in and out, private state in. Private state that changes goes out on top.
    pub fn round_bytes(&self) -> usize {
        let shape = self.layout.shape;
        let shared = self.layout.slots() * crate::layout::shared_stride(shape.shared) * T::BYTES;
        let own = || self.layout.round_bytes() + shared + self.state_bytes();
        self.engine.facts().round_bytes.unwrap_or_else(own)
    }

    /// Vertices that a core updates side by side.
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// The globals after all steps so far: what stages measured and computed.
    ///
    /// # Errors
    /// A GPU that failed, or a kernel that panicked.
    pub fn globals(&self) -> Result<P::Globals<f64>> {
        if let Health::Poisoned(step) = self.health {
            return Err(Error::Poisoned { step });
        }
        let globals = self.engine.globals()?;
        Ok(Record::build(|k| P::Globals::<f64>::kind(k).decode(globals[k])))
    }

    /// Replaces the globals.
    ///
    /// # Errors
    /// One that is not finite; otherwise as [`Simulation::wait`].
    pub fn set_globals(&mut self, globals: P::Globals<f64>) -> Result<()> {
        self.wait()?;
        let reals = leaves::<_, T>(&globals);
        if let Some((name, value)) = first_not_finite::<P::Globals<f64>, T>(&reals) {
            return Err(Error::Invalid(format!("global {name} would be {value:?}, which is not a finite {}", T::NAME)));
        }
        self.engine.set_globals(&reals)
    }

    /// Measures all quantities that the program labels.
    ///
    /// # Errors
    /// As [`Simulation::vertex`].
    pub fn metrics(&mut self) -> Result<Vec<Metric>> {
        self.wait()?;
        let table = self.table.clone();
        let labeled = table.kernels.iter().enumerate().filter_map(|(i, kernel)| Some((i, kernel.metric?)));
        labeled
            .map(|(i, (name, unit))| Ok(Metric { name, unit, value: self.measure_kernel(i, Settings::default())? }))
            .collect()
    }

    /// Measures one of those quantities, by its label.
    ///
    /// # Errors
    /// An unknown label; the message lists those there are. Otherwise as [`Simulation::vertex`].
    pub fn metric(&mut self, name: &str) -> Result<f64> {
        let labels: Vec<_> = self.table.kernels.iter().map(|kernel| kernel.metric.map(|label| label.0)).collect();
        match labels.iter().position(|label| *label == Some(name)) {
            Some(kernel) => self.measure_kernel(kernel, Settings::default()),
            None => {
                let known: Vec<_> = labels.into_iter().flatten().collect();
                Err(Error::Invalid(format!("unknown metric {name:?}: one of {}", known.join(", "))))
            }
        }
    }

    /// Measures what a kernel says, labeled or not.
    ///
    /// # Errors
    /// A kernel that the program does not name. Otherwise as [`Simulation::vertex`].
    pub fn measure<K: Reduce<P>>(&mut self, kernel: K) -> Result<f64> {
        let settings = settings_of::<T, K>(&kernel)?;
        match self.table.kernels.iter().position(|known| known.id == TypeId::of::<K>()) {
            Some(number) => self.measure_kernel(number, settings),
            None => Err(Error::Program(format!("kernel {} is not among the program's kernels", K::NAME))),
        }
    }

    fn measure_kernel(&mut self, kernel: usize, settings: Settings) -> Result<f64> {
        self.wait()?;
        let parameters = self.parameters()?;
        self.engine.measure(kernel, &settings, &parameters, self.clock.steps as u32)
    }

    /// BLAKE3 of the whole state in the order of the mesh's vertices, as 64 hexadecimal digits.
    ///
    /// Every real as little-endian bits, shared state before private; both zeros count as one value.
    ///
    /// # Errors
    /// As [`Simulation::vertex`].
    pub fn digest(&self) -> Result<String> {
        let state = self.state()?;
        let kinds = self.kinds();
        let mut hasher = blake3::Hasher::new();
        let mut bytes = Vec::new();
        for v in 0..self.vertices() {
            let slot = self.layout.slot(v);
            for (k, &kind) in kinds.iter().enumerate() {
                bytes.extend_from_slice(&bits(kind, state.real(slot, k)).to_le_bytes()[..T::BYTES]);
            }
            if bytes.len() >= 1 << 16 {
                hasher.update(&bytes);
                bytes.clear();
            }
        }
        hasher.update(&bytes);
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Compares the state with that of another run, bit for bit.
    ///
    /// # Errors
    /// [`Error::Mismatch`] names the first vertex and part that differ.
    ///
    /// # Panics
    /// If the meshes have different numbers of vertices.
    pub fn compare(&self, other: &Simulation<P, T>) -> Result<()> {
        assert_eq!(self.vertices(), other.vertices(), "runs on one mesh");
        let states = [self.state()?, other.state()?];
        let kinds = self.kinds();
        for v in 0..self.vertices() {
            let slots = [self.layout.slot(v), other.layout.slot(v)];
            for (k, &kind) in kinds.iter().enumerate() {
                let [left, right] = [0, 1].map(|i| states[i].real(slots[i], k));
                if bits(kind, left) != bits(kind, right) {
                    let (field, component) = real_name(&self.parts, k);
                    let [left, right] = [left, right].map(|x| kind.decode(x));
                    return Err(Error::Mismatch { vertex: v, step: self.steps(), field, component, left, right });
                }
            }
        }
        Ok(())
    }

    /// What the watch over all updates found, if [`Builder::audit`] asked for it and the engine is the CPU's.
    ///
    /// # Errors
    /// [`Error::Internal`] names a vertex that was not updated once a round, or two neighbors updated out of order.
    pub fn audit(&self) -> Result<Option<AuditReport>> {
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
        let updates = rounds * u64::from(self.vertices());
        let relations = 2 * swept * self.edges as u64;
        Ok(Some(AuditReport { rounds: rounds as u32, updates, relations }))
    }

    fn state(&self) -> Result<View<'_, T>> {
        if let Health::Poisoned(step) = self.health {
            return Err(Error::Poisoned { step });
        }
        let state = self.engine.state()?;
        // A device may only now have told that a step was not finite.
        let progress = self.engine.progress();
        if matches!(self.health, Health::Well) && progress.spoilt {
            let step = self.clock.first_pending + progress.steps - self.clock.engine.steps;
            return self.find_fault(step).map_or(Ok(state), Err);
        }
        Ok(state)
    }

    /// The error of the first vertex, or global, that is not finite after `step`.
    fn find_fault(&self, step: u64) -> Option<Error> {
        let state = match self.engine.state() {
            Ok(state) => state,
            Err(error) => return Some(error),
        };
        let kinds = self.kinds();
        let is_plain = kinds.iter().all(|&kind| kind == Kind::Real);
        if !(is_plain && state.is_finite()) {
            for v in 0..self.vertices() {
                let slot = self.layout.slot(v);
                let spoilt = |&k: &usize| kinds[k] == Kind::Real && !state.real(slot, k).finite();
                if let Some(k) = (0..kinds.len()).find(spoilt) {
                    let (field, value) = (real_name(&self.parts, k).0, state.real(slot, k).to_f64());
                    return Some(Error::Diverged { vertex: v, step, field, value });
                }
            }
        }
        let globals = self.engine.globals().ok()?;
        let (name, value) = first_not_finite::<P::Globals<f64>, T>(&globals)?;
        Some(Error::Global { name, step, value })
    }

    /// What each real of the state is.
    fn kinds(&self) -> Vec<Kind> {
        self.parts.iter().flat_map(|part| std::iter::repeat_n(part.kind, part.components)).collect()
    }

    /// Number of vertices.
    fn vertices(&self) -> u32 {
        self.mesh.points().len() as u32
    }
}

impl<P: Program, T: Number> fmt::Debug for Simulation<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("program", &std::any::type_name::<P>())
            .field("precision", &T::NAME)
            .field("vertices", &self.vertices())
            .field("order", &self.order())
            .field("steps", &self.steps())
            .field("time", &self.time())
            .finish_non_exhaustive()
    }
}

/// The bits that decide whether two values are the same.
fn bits<T: Number>(kind: Kind, x: T) -> u64 {
    match kind {
        Kind::Real => x.canonical_bits(),
        Kind::Integer => u64::from((kind.decode(x) as i32).cast_unsigned()),
    }
}

/// The name and value of the first real of a record that is not finite.
fn first_not_finite<A: Record<f64>, T: Number>(reals: &[T]) -> Option<(String, f64)> {
    let k = (0..reals.len()).find(|&k| A::kind(k) == Kind::Real && !reals[k].finite())?;
    Some((real_name(&A::parts(""), k).0, reals[k].to_f64()))
}

/// The part and component of real `k` of some parts.
fn real_name(parts: &[Part], mut k: usize) -> (String, usize) {
    for part in parts {
        if k < part.components {
            return (part.name.clone(), k);
        }
        k -= part.components;
    }
    unreachable!("real {k} lies in some part")
}
