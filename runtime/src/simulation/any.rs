//! A simulation behind a trait object.

#[cfg(feature = "gpu")]
use super::DeviceField;
use super::{AuditReport, Checkpoint, GpuCounters, Metric, Saved, Snapshot};
use crate::adapter::Adapter;
#[cfg(feature = "cluster")]
use crate::cluster::Sharing;
use crate::engine::{HostReport, Iterations};
use crate::error::Result;
use crate::number::Part;
use crate::number::sealed::Sealed;
use crate::piece::Placement;
#[cfg(feature = "cluster")]
use meshweft_mesh::Cut;
use meshweft_mesh::{Field, Mesh};
#[cfg(feature = "cluster")]
use meshweft_model::Packed;
use meshweft_model::Workload;
use meshweft_schedule::{Order, Schedule};
use std::any::Any;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A simulation whatever its program and number type: stepping it, its state by the names of its fields, and what it costs.
///
/// A [`Simulation`](crate::Simulation) derefs to it, so all of this can be called on one. [`Simulation::into_any`] gives
/// simulations of several programs one type:
///
/// [`Simulation::into_any`]: crate::Simulation::into_any
///
/// ```
/// # use meshweft::{AnySimulation, Simulation, mesh::generate::generate, toy::Counting};
/// let single = Simulation::builder(generate("chain:3", 1)?, Counting).build()?;
/// let double = Simulation::builder(generate("chain:3", 1)?, Counting).precision::<f64>().build()?;
/// let mut all: Vec<Box<dyn AnySimulation>> = vec![single.into_any(), double.into_any()];
/// for simulation in &mut all {
///     simulation.step()?;
///     assert_eq!((simulation.steps(), simulation.field("value")?.values[2]), (1, 1.0));
/// }
/// # Ok::<(), meshweft::Error>(())
/// ```
pub trait AnySimulation: Any + Send + Sync + Sealed {
    /// Advances one time step. A GPU is asked for it and works on while the caller does, see [`AnySimulation::wait`].
    ///
    /// # Errors
    /// [`Error::Diverged`](crate::Error::Diverged) if a value is no longer finite; it names the vertex and the step, and so does every
    /// later call until the state is set or restored. [`Error::Program`](crate::Error::Program) if the program's step uses a kernel that
    /// it does not name, or its time step or a parameter is not finite: the step is then not taken.
    fn step(&mut self) -> Result<()>;

    /// Advances one time step that ends at `time` at the latest, in seconds, if the program can [shorten](crate::Program::set_time_step) it;
    /// then `time` is what [`AnySimulation::time`] says, not a sum that is rounded. What lies in the past, or is a whole step away but for
    /// 10^-6 of it, changes no step.
    ///
    /// # Errors
    /// As [`AnySimulation::step`].
    ///
    /// ```
    /// # use meshweft::{Mesh, Program, Simulation, Stages, kernels, vertex};
    /// # vertex! { struct Cell<R> { value: R } }
    /// # struct Plain { dt: f64 }
    /// # kernels! { for Plain: Cell; map Keep |_, own| own; }
    /// # impl Program for Plain {
    /// #     fn time_step(&self) -> f64 { self.dt }
    /// #     fn set_time_step(&mut self, dt: f64) -> bool { self.dt = dt; true }
    /// #     fn initial(&self, _: &Mesh, _: u32) -> Cell<f64> { Cell { value: 0.0 } }
    /// #     fn step(&self, stages: &mut Stages<Self>) { stages.map(Keep) }
    /// # }
    /// # let mut simulation = Simulation::builder(Mesh::from_graph(1, Vec::new())?, Plain { dt: 0.3 }).build()?;
    /// while simulation.time() < 1.0 {
    ///     simulation.step_until(1.0)?;
    /// }
    /// assert_eq!((simulation.steps(), simulation.time(), simulation.time_step()), (4, 1.0, 0.3));
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    fn step_until(&mut self, time: f64) -> Result<()>;

    /// Waits until all steps are done: a GPU is asked for them and works on while the caller does. Reading the state waits
    /// too.
    ///
    /// # Errors
    /// As [`AnySimulation::step`].
    fn wait(&mut self) -> Result<()>;

    /// Whether steps that were asked for may not be done yet: [`AnySimulation::wait`] would wait for them.
    fn is_pending(&self) -> bool;

    /// Steps taken so far.
    fn steps(&self) -> u64;

    /// Rounds of sweeps taken so far: each updates every vertex once.
    fn rounds(&self) -> u64;

    /// How often loops went round so far: those of [`Stages::until`](crate::Stages::until) by the name of the test, all of them; then those of
    /// [`Stages::fixpoint`](crate::Stages::fixpoint) that have run, by the name of the update. Loops of one kernel count together.
    ///
    /// ```
    /// use meshweft::{Mesh, Program, Simulation, Stages, kernels, record, vertex};
    /// vertex! { struct Value<R> { value: R } }
    /// record! { struct Sum<R> { sum: R } }
    /// struct Halves;
    /// kernels! {
    ///     for Halves: Value, (), Sum;
    ///     map Halve |_, own| Value { value: R::lit(0.5) * own.value };
    ///     sum Total |_, own, _| own.value;
    ///     test IsSmall |p| p.globals.sum.at_most(R::lit(0.1));
    /// }
    /// impl Program for Halves {
    ///     fn globals(&self) -> Sum<f64> { Sum { sum: 1.0 } }
    ///     fn initial(&self, _: &Mesh, _: u32) -> Value<f64> { Value { value: 1.0 } }
    ///     fn step(&self, stages: &mut Stages<Self>) {
    ///         stages.until(IsSmall, 3, |stages| {
    ///             stages.map(Halve);
    ///             stages.reduce(Total, |g| &mut g.sum);
    ///         });
    ///     }
    /// }
    /// let mut halves = Simulation::builder(Mesh::from_graph(1, Vec::new())?, Halves).build()?;
    /// (0..3).try_for_each(|_| halves.step())?;
    /// let (name, found) = halves.loops()[0];
    /// // 0.125 after the first step, 0.0625 after the second, and the third has nothing to do.
    /// assert_eq!((name, found.times, found.total, found.last, found.longest), ("IsSmall", 3, 4, 0, 3));
    /// assert_eq!((found.ran_out, found.limit), (1, 3));
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    fn loops(&self) -> Vec<(&'static str, Iterations)>;

    /// Simulated time in seconds: the sum of all time steps taken.
    fn time(&self) -> f64;

    /// The time that the next step advances, in seconds; the longest that it may, where [steps say](crate::Stages::lasts) how long they last.
    fn time_step(&self) -> f64;

    /// The mesh, as it was given.
    fn mesh(&self) -> &Mesh;

    /// The program, to be downcast to its type.
    fn program(&self) -> &dyn Any;

    /// The program, to change its parameters between steps.
    fn program_mut(&mut self) -> &mut dyn Any;

    /// The word for the precision of its state: `f32`, `f64` or `i32`.
    fn precision(&self) -> &'static str;

    /// The order of its sweeps, with the size of its blocks: the whole identity of its results.
    fn order(&self) -> Order {
        self.schedule().order()
    }

    /// The schedule of its sweeps.
    fn schedule(&self) -> &Schedule;

    /// Names the parts of the state that can be read and written: shared ones first, then private ones.
    fn fields(&self) -> Vec<Part>;

    /// Reads one part of the state, in the order of the mesh's vertices: shape [vertices × components]; [cells × components] of a field
    /// [of cells](crate::Program::of_cells).
    ///
    /// # Errors
    /// An unknown name; the message lists those there are.
    fn field(&self, name: &str) -> Result<Field>;

    /// Whether that is a field [of cells](crate::Program::of_cells).
    fn is_of_cells(&self, name: &str) -> bool;

    /// Reads one part of the state of elements that are [projected](crate::Project), in the order in which the program added them to
    /// their star: shape [elements × components]. The example of [`Project`](crate::Project) does.
    ///
    /// # Errors
    /// An unknown name; a star whose elements are not projected; a kernel that panicked.
    fn element_field(&self, star: &str, name: &str) -> Result<Field>;

    /// Reads all parts of the state, each as [`AnySimulation::field`] does.
    ///
    /// # Errors
    /// A GPU that failed, or a kernel that panicked.
    fn state(&self) -> Result<Vec<Field>>;

    /// Writes one part of the state, in the order of the mesh's vertices. Values are rounded to the precision.
    ///
    /// # Errors
    /// An unknown name, a wrong number of values, or one that is not finite (names the vertex).
    fn set_field(&mut self, name: &str, values: &[f64]) -> Result<()>;

    /// Names the numbers that stages write: what a step measures and computes on the way.
    fn globals(&self) -> Vec<Part>;

    /// Reads one of them, of as many reals as it has components.
    ///
    /// ```
    /// # use meshweft::{Simulation, mesh::generate::generate, toy::Mixing};
    /// let mixing = Simulation::builder(generate("chain:3", 1)?, Mixing).build()?.into_any();
    /// for part in mixing.globals() {
    ///     assert_eq!(mixing.global(&part.name)?.len(), part.components);
    /// }
    /// assert!(mixing.global("temper").is_err());
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// An unknown name; the message lists those there are. Otherwise as [`AnySimulation::state`].
    fn global(&self, name: &str) -> Result<Vec<f64>>;

    /// Takes a copy of the state after all steps so far. Where other hosts hold it, they send it while they take the next steps,
    /// if these are asked for before the snapshot is read.
    ///
    /// ```
    /// # use meshweft::{Simulation, mesh::generate::generate, toy::Counting};
    /// let mut counting = Simulation::builder(generate("chain:3", 1)?, Counting).build()?;
    /// counting.step()?;
    /// let snapshot = counting.snapshot()?;
    /// counting.step()?;
    /// assert_eq!(snapshot.fields()?[0].values, [1.0; 3]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnySimulation::wait`].
    fn snapshot(&mut self) -> Result<Snapshot>;

    /// Writes the state after all steps so far to a folder, so that a simulation in this or another process, on this or another
    /// machine, can [go on](AnySimulation::resume) from it: on any backend, number of threads and hosts, with the same bits.
    ///
    /// It is there whole when this returns, and stays, whatever happens then; of those before in the folder the newest two are kept.
    /// [`Snapshot::write`] does the same while steps are taken. Cost: a copy of the state, and its bytes to the disk.
    ///
    /// ```
    /// # use meshweft::{Backend, Simulation, mesh::generate::generate, toy::Mixing};
    /// let folder = tempfile::tempdir()?;
    /// let build = || Simulation::builder(generate("sheet:9", 1).unwrap(), Mixing);
    /// let mut mixing = build().build()?;
    /// (0..3).try_for_each(|_| mixing.step())?;
    /// mixing.checkpoint(folder.path())?;
    /// (0..4).try_for_each(|_| mixing.step())?;
    ///
    /// // As another process would.
    /// let mut resumed = build().backend(Backend::Serial).resume(folder.path())?;
    /// assert_eq!(resumed.steps(), 3);
    /// (0..4).try_for_each(|_| resumed.step())?;
    /// assert_eq!(resumed.digest()?, mixing.digest()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A disk that takes nothing: what was in the folder is as it was. Otherwise as [`AnySimulation::wait`].
    fn checkpoint(&mut self, folder: &Path) -> Result<()>;

    /// Goes on from a checkpoint: state, globals, time and number of steps are those of it. What the program's type holds, such as
    /// parameters that were changed, is the caller's.
    ///
    /// # Errors
    /// A checkpoint of another program, mesh, order or precision, which it names; one that was damaged since it was found.
    fn resume(&mut self, from: &Checkpoint) -> Result<()>;

    /// Saves the state in memory. [`AnySimulation::restore`] goes back to it: of this simulation, or of another one of the same
    /// program in the same precision on the same mesh, whatever its order and backend.
    ///
    /// # Errors
    /// As [`AnySimulation::wait`].
    fn save(&mut self) -> Result<Saved>;

    /// Goes back to a saved state, with its time and number of steps. Heals a simulation that diverged, or in which a kernel
    /// panicked.
    ///
    /// # Errors
    /// A state of another program, mesh or precision; a GPU that failed. If a step that was asked for turns out not to be finite, its
    /// error, once: restore again then.
    fn restore(&mut self, saved: &Saved) -> Result<()>;

    /// Writes the mesh with its fields, and all parts of the state, as pieces for ParaView: `NAME.1.vtu`, `NAME.2.vtu` and so on, one
    /// for each host that holds a part of the state, and `NAME.pvtu`, which names them and is what to open.
    ///
    /// Each host writes its own piece, to `folder` as its own disk has it, and this one the `.pvtu`: the state is not gathered. A worker
    /// that joined by a token writes to a folder of its own, whatever `folder` is. Where hosts share no disk, copy the pieces beside
    /// the `.pvtu`. A simulation on one host writes one piece.
    ///
    /// Every cell is in one piece, with all of its corners, so points at a cut are in several pieces, with the same bits in each. The
    /// field `vertex` says which vertex of the mesh a point is, unless mesh or state have a field of that name.
    ///
    /// Returns the paths of the `.pvtu` and of all pieces, as if they all lay in `folder`.
    ///
    /// ```
    /// # use meshweft::{Placement, Simulation, mesh::{generate::generate, io}, toy::Still};
    /// let mut flat = Simulation::builder(generate("sheet:3", 1)?, Still).build()?;
    /// let folder = tempfile::tempdir()?;
    /// let files = flat.write_pieces(folder.path(), "flat_000000", &Placement::default())?;
    /// assert_eq!(files, ["flat_000000.pvtu", "flat_000000.1.vtu"].map(|name| folder.path().join(name)));
    /// assert_eq!(io::read(&files[1])?.point_field("value"), Some(&flat.field("value")?));
    /// assert!(flat.write_pieces(folder.path(), "../flat", &Placement::default()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A name with folders; a placement by fields that the state does not have; a disk that takes nothing: that of another host
    /// ends the run, and is named. Otherwise as [`AnySimulation::wait`].
    fn write_pieces(&mut self, folder: &Path, name: &str, placement: &Placement) -> Result<Vec<PathBuf>>;

    /// Measures all quantities that the program labels.
    ///
    /// # Errors
    /// As [`AnySimulation::wait`].
    fn metrics(&mut self) -> Result<Vec<Metric>>;

    /// Measures one of those quantities, by its label.
    ///
    /// # Errors
    /// An unknown label; the message lists those there are. Otherwise as [`AnySimulation::wait`].
    fn metric(&mut self, name: &str) -> Result<f64>;

    /// BLAKE3 of the whole state in the order of the mesh's vertices, as 64 hexadecimal digits.
    ///
    /// Every real as little-endian bits, shared state before private, then the state of elements that are projected; both zeros count as
    /// one value.
    ///
    /// # Errors
    /// A GPU that failed, or a kernel that panicked.
    fn digest(&self) -> Result<String>;

    /// Compares the state with that of another run, bit for bit.
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) names the first vertex and part that differ.
    ///
    /// # Panics
    /// If the meshes have different numbers of vertices, or the precisions differ.
    fn compare(&self, other: &(dyn AnySimulation + 'static)) -> Result<()>;

    /// What the watch over all updates found, if [`Builder::audit`](crate::Builder::audit) asked for it and the engine is the CPU's.
    ///
    /// # Errors
    /// [`Error::Internal`](crate::Error::Internal) names a vertex that was not updated once a round, or two neighbors updated out of
    /// order.
    fn audit(&self) -> Result<Option<AuditReport>>;

    /// Threads that update vertices.
    fn threads(&self) -> usize;

    /// What each host has done since it began, if the simulation runs on several: the share of each, its times, what it sent.
    ///
    /// As of the last report of each: [`AnySimulation::wait`] asks for one.
    fn hosts(&self) -> Vec<HostReport>;

    /// The host that has each vertex of the mesh, by its number in [`AnySimulation::hosts`]; nothing if the simulation runs on this one.
    /// It may be another after a host was lost. Cost O(vertices).
    fn owners(&mut self) -> Vec<u32>;

    /// How often so far the threads were held up because one of them was not given a core: other work runs on this machine.
    fn stalls(&self) -> u64;

    /// Seconds that steps have waited so far for elements of changing stars: until the program had found them, and until the engine could
    /// go on with them.
    fn changing_s(&self) -> [f64; 2];

    /// Updates of vertices that the CPU has left out so far, because a kernel is declared `quiet` and nothing that they would have
    /// read had changed.
    fn updates_left_out(&self) -> u64;

    /// The GPU that updates run on, if they do.
    fn adapter(&self) -> Option<Adapter>;

    /// What has been asked of the GPU so far, if there is one.
    fn gpu_counters(&self) -> Option<GpuCounters>;

    /// Finds one shared part of the state on the GPU that runs it, for a host that draws or computes there itself. It may read
    /// until the next step; steps that are double-buffered may leave the state in another buffer, so ask again after each.
    ///
    /// ```
    /// # use meshweft::{Backend, Simulation, mesh::generate::generate, toy::Still};
    /// let build = |backend| Simulation::builder(generate("chain:3", 1)?, Still).backend(backend).build();
    /// if !meshweft::adapters().is_empty() {
    ///     let field = build(Backend::Gpu { adapter: 0 })?.device_field("value")?;
    ///     assert_eq!((field.slots.len(), field.components), (3, 1));
    ///     assert!(field.buffer.size() >= 3 * 4);
    /// }
    /// assert!(build(Backend::Serial)?.device_field("value").is_err());
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// A simulation that runs on no GPU; an unknown name, or that of a private part; otherwise as [`AnySimulation::wait`].
    #[cfg(feature = "gpu")]
    fn device_field(&mut self, name: &str) -> Result<DeviceField>;

    /// Seconds that each stage of building took, in order.
    fn setup(&self) -> &[(&'static str, f64)];

    /// Directed edges of the data graph: twice the pairs of vertices that read each other.
    fn directed_edges(&self) -> usize;

    /// Vertices that a core updates side by side.
    fn width(&self) -> usize;

    /// Bytes of state, schedule and stars, without the mesh.
    fn memory_bytes(&self) -> usize;

    /// Bytes that one round must move at least between memory and processor when nothing of the last one is left in a
    /// cache: stars and halos in, shared state in and out, private state in. Private state that changes goes out on top.
    fn round_bytes(&self) -> usize;

    /// How `hosts` hosts would share the mesh: what a [`Cluster`](crate::Cluster) of as many workers does with it, found without one.
    ///
    /// It depends on mesh, program, order and precision, and on how many vertices a core updates side by side: hosts update as
    /// [`Backend::Cpu`](crate::Backend::Cpu) does, so build the simulation for that. Cost O(vertices + edges), and the memory of
    /// one share.
    ///
    /// # Errors
    /// No hosts, or more than 1024; points that are not finite.
    ///
    /// ```
    /// # use meshweft::{Simulation, mesh::{Cut, generate::generate}, toy::Mixing};
    /// let simulation = Simulation::builder(generate("chain:1024", 1)?, Mixing).build()?;
    /// let sharing = simulation.shares(2, Cut::Curve)?;
    /// // A chain is cut at one place: either host reads one vertex of the other.
    /// assert!(sharing.hosts.iter().all(|host| (host.vertices, host.ghosts, host.round_bytes) == (512, 1, 4)));
    /// assert_eq!((sharing.owners[0], sharing.owners[1023], &sharing.hosts[0].neighbors[..]), (1, 2, &[2][..]));
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    #[cfg(feature = "cluster")]
    fn shares(&self, hosts: u32, cut: Cut) -> Result<Sharing>;

    /// What a step asks for on `threads` threads of each host, at least one: what [`Machine::predict`](meshweft_model::Machine::predict) takes.
    ///
    /// `parts`: how much of the mesh each host has, of all together; `&[1.0]` for one host. The mesh is cut along the curve, as a
    /// `Cluster` cuts it. Of a simulation that was built for [`Backend::Cpu`](crate::Backend::Cpu) or for the oracle. Cost
    /// O(vertices + edges).
    ///
    /// # Errors
    /// Several hosts in a build that knows none, and [`Error::Program`](crate::Error::Program) if the step uses a kernel that the
    /// program does not name.
    fn workload(&self, threads: usize, parts: &[f64]) -> Result<Workload>;

    /// How the values pack, by the codec of hosts, that two of them would send each other of the state as it is now: for
    /// [`Link::packed`](meshweft_model::Link::packed). Takes some milliseconds.
    ///
    /// # Errors
    /// As [`AnySimulation::wait`].
    ///
    /// ```
    /// # use meshweft::{Simulation, mesh::generate::generate, toy::Mixing};
    /// let mut simulation = Simulation::builder(generate("sheet:60", 1)?, Mixing).build()?;
    /// simulation.set_field("value", &[300.0; 3600])?;
    /// let packed = simulation.packed()?;
    /// assert!(packed.share < 0.8 && packed.byte_s > 0.0, "all values are the same: {packed:?}");
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    #[cfg(feature = "cluster")]
    fn packed(&self) -> Result<Packed>;

    /// Runs each sweep of a step for one round and each loop for one iteration, and nothing else of it, without a time step: for a look
    /// at what a round costs. The state is then that of no step.
    ///
    /// # Errors
    /// As [`AnySimulation::step`].
    fn run_once(&mut self) -> Result<()>;

    /// Writes what the threads of all hosts have done so far, as JSON in Chrome's trace event format, which
    /// [Perfetto](https://ui.perfetto.dev) and `chrome://tracing` show. Needs [`Builder::timeline`](crate::Builder::timeline).
    ///
    /// A process is a host, times are microseconds of the driver's clock. Updates of tasks of one round that a thread does one after
    /// the other are one event; arrows go from what sends a message to what takes it in. Returns how many events were left
    /// out: a host keeps the first 200 000.
    ///
    /// # Errors
    /// A simulation without a timeline; a host that was lost; whatever `out` says.
    fn write_timeline(&mut self, out: &mut dyn Write) -> Result<u64>;
}
