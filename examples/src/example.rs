//! What an example is: a program with a scene, settings, a look and an acceptance test.

use crate::picture::{ColorMap, Prop};
use crate::settings::{Setting, Settings};
use anyhow::{Context, Result, ensure};
#[cfg(feature = "cluster")]
use meshweft::model::Packed;
use meshweft::{
    Adapter, Backend, Builder, GpuCounters, HostReport, Metric, Number, Order, Part, Placement, Program, Schedule,
    Shader, Simd, Simulation, model::Workload,
};
#[cfg(feature = "cluster")]
use meshweft::{Sharing, Worker, mesh::Cut};
use meshweft_mesh::{Field, Mesh};
use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// What is known of an example before it runs.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The word on the command line.
    pub name: &'static str,
    /// What it computes and by which method, in one line.
    pub about: &'static str,
    /// The mesh unless another is named.
    pub mesh: &'static str,
    /// Time steps unless another number is given.
    pub steps: usize,
    /// What `--set` can change.
    pub settings: &'static [Setting],
    /// The order unless another is named; none leaves that to the backend.
    pub order: Option<Order>,
    /// The precision unless another is named.
    pub precision: Precision,
}

impl Info {
    /// Of an example without settings that leaves order and precision open; name, line and mesh are to be filled in.
    pub const DEFAULT: Info =
        Info { name: "", about: "", mesh: "", steps: 1, settings: &[], order: None, precision: Precision::F32 };
}

/// A column of the table of vertices that a run leaves.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The field that it holds, one number a vertex.
    pub field: &'static str,
    /// Whether those are ids of vertices.
    pub is_vertex: bool,
    /// The value that stands for nothing, and the word that is written for it.
    pub nothing: Option<(f64, &'static str)>,
}

/// A program that can be run by name.
pub trait Example: Program {
    /// What is known of it.
    const INFO: Info;

    /// Sets the scene. The mesh may be scaled or moved to fit it. `order` is that of the sweeps.
    ///
    /// # Errors
    /// A mesh that the physics cannot run on.
    fn new(mesh: &mut Mesh, settings: &Settings, order: Order) -> Result<Self>;

    /// Whether it is this program that runs with these settings, of those of an example.
    fn runs(_settings: &Settings) -> bool {
        true
    }

    /// How its state is drawn.
    fn look(&self) -> Look;

    /// The columns of the table that a run leaves as `NAME.csv`, a line for each vertex, in place of the history of what was measured;
    /// none unless overridden.
    fn table(&self) -> Vec<Column> {
        Vec::new()
    }

    /// Judges a state by the properties that it must have, each a line; none unless overridden.
    ///
    /// # Errors
    /// A field that is missing.
    fn judge(&self, _fields: &[Field]) -> Result<Vec<Check>> {
        Ok(Vec::new())
    }

    /// What whoever runs it should know of how it took the mesh, in one line.
    fn note(&self) -> Option<String> {
        None
    }

    /// Runs its acceptance test.
    ///
    /// # Errors
    /// A run that fails before it can be judged.
    fn checks() -> Result<Vec<Check>>;
}

/// How a state is drawn.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// The field that holds positions; the mesh stays where it is without one.
    pub positions: Option<&'static str>,
    /// The field that colors the mesh: vectors by their length. One plain color without one.
    pub color: Option<&'static str>,
    /// What the colors mean, with the unit.
    pub label: &'static str,
    /// From the color field to colors; [`ColorMap::Coolwarm`] for one of two signs.
    pub map: ColorMap,
    /// Meters by which a flat mesh is raised where the color field is 1.
    pub lift: f64,
    /// Things around the mesh.
    pub props: Vec<Prop>,
}

/// One line of an acceptance test: a measured number beside the one it must be.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was measured, on which mesh, by which method.
    pub name: String,
    /// What came out.
    pub measured: f64,
    /// What should.
    pub expected: f64,
    /// How far apart they may be.
    pub tolerance: Tolerance,
    /// The unit of both.
    pub unit: &'static str,
    /// Where the expected value comes from.
    pub source: &'static str,
}

/// How far a measured number may be from the expected one.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance {
    /// At most this share of the expected value.
    Relative(f64),
    /// At most this much, in the unit of the value.
    Absolute(f64),
    /// Not above the expected value.
    AtMost,
}

impl Check {
    /// Whether the measured value is as expected. No number never is.
    pub fn passes(&self) -> bool {
        let off = (self.measured - self.expected).abs();
        match self.tolerance {
            Tolerance::Relative(share) => off <= share * self.expected.abs(),
            Tolerance::Absolute(most) => off <= most,
            Tolerance::AtMost => self.measured <= self.expected,
        }
    }
}

/// How to run an example: everything but its physics.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The order of sweeps.
    pub order: Order,
    /// Where updates run.
    pub backend: Backend,
    /// How many vertices a core updates side by side.
    pub simd: Simd,
    /// The precision of state and arithmetic.
    pub precision: Precision,
    /// Whether to run the serial oracle beside it and compare every bit after every step.
    pub verify: bool,
    /// Whether threads write down what they do, for [`Run::write_timeline`].
    pub timeline: bool,
}

/// The precision of state and arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 32 bits.
    #[default]
    F32,
    /// 64 bits.
    F64,
}

impl Precision {
    /// The word for it: `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => f32::NAME,
            Precision::F64 => f64::NAME,
        }
    }
}

/// One example in the table of all.
pub struct Entry {
    /// What is known of it.
    pub info: Info,
    /// Runs its acceptance test.
    pub checks: fn() -> Result<Vec<Check>>,
    /// Its programs: the first that the settings ask for runs.
    programs: &'static [Runner],
}

/// What can be done with a program of an example, whatever its types.
struct Runner {
    runs: fn(&Settings) -> bool,
    start: fn(Mesh, &Settings, &Options) -> Result<Box<dyn Run>>,
    #[cfg(feature = "cluster")]
    work: fn(Worker) -> Result<()>,
    #[cfg(feature = "cluster")]
    name: fn() -> &'static str,
    shaders: fn(Mesh, &Settings, &Options) -> Result<Vec<Shader>>,
}

impl Runner {
    const fn of<P: Example>() -> Runner {
        Runner {
            runs: P::runs,
            start: |mesh, settings, options| match options.precision {
                Precision::F32 => Ok(Box::new(Running::<P, f32>::new(mesh, settings, options)?)),
                Precision::F64 => Ok(Box::new(Running::<P, f64>::new(mesh, settings, options)?)),
            },
            #[cfg(feature = "cluster")]
            work: |worker| Ok(worker.run::<P>()?),
            #[cfg(feature = "cluster")]
            name: std::any::type_name::<P>,
            shaders: |mut mesh, settings, options| {
                let program = P::new(&mut mesh, settings, options.order)?;
                let options = Options { backend: Backend::Gpu { adapter: 0 }, ..options.clone() };
                Ok(configure(mesh, program, &options).shaders()?)
            },
        }
    }
}

/// The programs of an example, in a type: the address of a constant of one lasts.
struct Programs<P, Q>(PhantomData<(P, Q)>);

impl<P: Example, Q: Example> Programs<P, Q> {
    const BOTH: &'static [Runner] = &[Runner::of::<P>(), Runner::of::<Q>()];
}

impl Entry {
    /// The entry of an example of one program.
    pub const fn of<P: Example>() -> Entry {
        Entry::either::<P, P>()
    }

    /// The entry of an example of two programs: `P` where it [runs](Example::runs), else `Q`.
    pub const fn either<P: Example, Q: Example>() -> Entry {
        Entry { info: Q::INFO, checks: Q::checks, programs: Programs::<P, Q>::BOTH }
    }

    fn runner(&self, settings: &Settings) -> Result<&Runner> {
        let found = self.programs.iter().find(|program| (program.runs)(settings));
        found.with_context(|| format!("no program of {} runs with these settings", self.info.name))
    }

    /// Builds a run on a mesh.
    ///
    /// # Errors
    /// A mesh or options that the physics cannot run on.
    pub fn start(&self, mesh: Mesh, settings: &Settings, options: &Options) -> Result<Box<dyn Run>> {
        (self.runner(settings)?.start)(mesh, settings, options)
    }

    /// The shaders that would run it on a GPU.
    ///
    /// # Errors
    /// As [`Entry::start`].
    pub fn shaders(&self, mesh: Mesh, settings: &Settings, options: &Options) -> Result<Vec<Shader>> {
        (self.runner(settings)?.shaders)(mesh, settings, options)
    }

    /// What works for a driver until the run is over, if the program of that name is one of this example.
    #[cfg(feature = "cluster")]
    pub fn work(&self, program: &str) -> Option<fn(Worker) -> Result<()>> {
        self.programs.iter().find(|known| (known.name)() == program).map(|known| known.work)
    }
}

/// Waits for the fields of a state.
pub type Snapshot = Box<dyn FnOnce() -> Result<Vec<Field>>>;

/// A run of some example: what the command line needs of a simulation, whatever its program and precision.
pub trait Run {
    /// Advances one step; with the oracle beside it, compares both.
    ///
    /// # Errors
    /// Divergence or a difference from the oracle.
    fn step(&mut self) -> Result<()>;
    /// Waits until the steps so far are done, if a GPU is at it.
    ///
    /// # Errors
    /// Divergence, or a GPU that failed.
    fn wait(&mut self) -> Result<()>;
    /// Steps so far.
    fn steps(&self) -> u64;
    /// Rounds of sweeps so far.
    fn rounds(&self) -> u64;
    /// Simulated seconds so far.
    fn time(&self) -> f64;
    /// Simulated seconds of the next step.
    fn time_step(&self) -> f64;
    /// The mesh at rest.
    fn mesh(&self) -> &Mesh;
    /// Where the points are when the state has these fields, shape [n × 3], meters.
    ///
    /// # Errors
    /// A field that is missing.
    fn points(&self, fields: &[Field]) -> Result<Vec<[f64; 3]>>;
    /// How it is drawn.
    fn look(&self) -> Look;
    /// See [`Example::note`].
    fn note(&self) -> Option<String>;
    /// See [`Example::table`].
    fn table(&self) -> Vec<Column>;
    /// Judges the state by the properties that it must have, see [`Example::judge`].
    ///
    /// # Errors
    /// As [`Run::fields`].
    fn judge(&self) -> Result<Vec<Check>>;
    /// All fields of the state.
    ///
    /// # Errors
    /// A GPU that failed, or a state on one that is not finite.
    fn fields(&self) -> Result<Vec<Field>>;
    /// Takes a copy of the state; what it returns waits until all of it is here, see [`Simulation::snapshot`].
    ///
    /// # Errors
    /// As [`Run::fields`].
    fn snapshot(&mut self) -> Result<Snapshot>;
    /// Whether steps are under way, see [`Simulation::is_pending`].
    fn is_pending(&self) -> bool;
    /// Names of the fields of the state.
    fn parts(&self) -> Vec<Part>;
    /// Writes the state as it is drawn, a piece a host, see [`Simulation::write_pieces`]. Returns the paths of index and pieces.
    ///
    /// # Errors
    /// As there.
    fn write_pieces(&mut self, folder: &Path, name: &str) -> Result<Vec<PathBuf>>;
    /// Measured quantities.
    ///
    /// # Errors
    /// As [`Run::fields`].
    fn metrics(&mut self) -> Result<Vec<Metric>>;
    /// One of them, by its name.
    ///
    /// # Errors
    /// An unknown name; the message lists those there are. Otherwise as [`Run::fields`].
    fn metric(&mut self, name: &str) -> Result<f64>;
    /// BLAKE3 of the state.
    ///
    /// # Errors
    /// As [`Run::fields`].
    fn digest(&self) -> Result<String>;
    /// The GPU that it runs on, if it does.
    fn adapter(&self) -> Option<Adapter>;
    /// What has been asked of the GPU so far, if there is one.
    fn gpu_counters(&self) -> Option<GpuCounters>;
    /// Threads that update.
    fn threads(&self) -> usize;
    /// What each host has done, if it runs on several.
    fn hosts(&self) -> Vec<HostReport>;
    /// How so many hosts would share the mesh, see [`Simulation::shares`].
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "cluster")]
    fn shares(&self, hosts: u32, cut: Cut) -> Result<Sharing>;
    /// What a step asks of a machine, see [`Simulation::workload`].
    ///
    /// # Errors
    /// As there.
    fn workload(&self, threads: usize, parts: &[f64]) -> Result<Workload>;
    /// How values between hosts pack, see [`Simulation::packed`].
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "cluster")]
    fn packed(&self) -> Result<Packed>;
    /// Runs each sweep of a step for one round, see [`Simulation::run_once`].
    ///
    /// # Errors
    /// As there.
    fn run_once(&mut self) -> Result<()>;
    /// How often they were held up so far because one of them was not given a core.
    fn stalls(&self) -> u64;
    /// Directed edges of the data graph.
    fn directed_edges(&self) -> usize;
    /// The schedule of its sweeps.
    fn schedule(&self) -> &Schedule;
    /// Seconds of each stage of building.
    fn setup(&self) -> &[(&'static str, f64)];
    /// Bytes of state, schedule and stars.
    fn memory_bytes(&self) -> usize;
    /// Bytes that a round must move at least, see [`Simulation::round_bytes`].
    fn round_bytes(&self) -> usize;
    /// Vertices that a core updates side by side.
    fn width(&self) -> usize;
    /// Writes what threads have done, see [`Simulation::write_timeline`].
    ///
    /// # Errors
    /// As there.
    fn write_timeline(&mut self, out: &mut dyn Write) -> Result<u64>;
    /// Judges the audit of all updates so far, if the run has an oracle beside it: a sentence of what was checked.
    ///
    /// # Errors
    /// A vertex that was not updated once a round, or two neighbors out of order.
    fn audit(&self) -> Result<Option<String>>;
}

struct Running<P: Program, T: Number> {
    simulation: Simulation<P, T>,
    oracle: Option<Oracle<P, T>>,
}

/// What runs beside a simulation to judge it.
struct Oracle<P: Program, T: Number> {
    /// The serial loop, at the same precision.
    serial: Simulation<P, T>,
    /// The same in 64 bits beside a GPU, whose bits are its own: it is judged by how far it is from exact arithmetic.
    exact: Option<Simulation<P, f64>>,
    /// The largest error of the GPU so far, over that of the serial loop.
    worst: f64,
}

/// A GPU's step may be off from exact arithmetic by this many times what the serial loop in 32 bits is off by, in the
/// worst vertex of each field, and by four roundings of the largest value on top (claim C6).
pub const GPU_BOUND: f64 = 4.0;

impl<P: Program, T: Number> Oracle<P, T> {
    /// Takes the state that the step starts from, if it is judged step by step.
    fn follow(&mut self, simulation: &Simulation<P, T>) -> Result<()> {
        let Some(exact) = &mut self.exact else { return Ok(()) };
        for part in simulation.fields() {
            let values = simulation.field(&part.name)?.values;
            self.serial.set_field(&part.name, &values)?;
            exact.set_field(&part.name, &values)?;
        }
        Ok(())
    }

    /// Takes the same step and compares.
    fn judge(&mut self, simulation: &Simulation<P, T>) -> Result<()> {
        self.serial.step()?;
        let Some(exact) = &mut self.exact else {
            return simulation.compare(&self.serial).context("the run differs from the serial oracle");
        };
        exact.step()?;
        for part in simulation.fields() {
            let [gpu, serial] = [simulation.field(&part.name)?, self.serial.field(&part.name)?];
            let exact = exact.field(&part.name)?.values;
            let largest = exact.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
            let errors =
                |field: &Field| -> Vec<f64> { field.values.iter().zip(&exact).map(|(a, b)| (a - b).abs()).collect() };
            let (gpu, serial) = (errors(&gpu), errors(&serial));
            let rounding = 4.0 * f64::from(f32::EPSILON) * largest;
            let bound = GPU_BOUND * serial.iter().copied().fold(0.0, f64::max) + rounding;
            let Some(at) = (0..gpu.len()).max_by(|&i, &j| gpu[i].total_cmp(&gpu[j])) else { continue };
            ensure!(
                gpu[at] <= bound,
                "{} of vertex {} is off by {:e} after step {}: more than {bound:e}",
                part.name,
                at / part.components,
                gpu[at],
                simulation.steps()
            );
            self.worst = self.worst.max(if bound > 0.0 { gpu[at] / bound } else { 0.0 });
        }
        Ok(())
    }
}

/// All but the precision. An oracle on another backend keeps the blocks of the one that was asked for.
fn configure<P: Program>(mesh: Mesh, program: P, options: &Options) -> Builder<P, f32> {
    let order = options.order.resolved(options.backend.grain(mesh.points().len()));
    Simulation::builder(mesh, program).backend(options.backend.clone()).order(order).simd(options.simd)
}

impl<P: Example, T: Number> Running<P, T> {
    fn new(mesh: Mesh, settings: &Settings, options: &Options) -> Result<Self> {
        let build = |backend, audit, mesh: &Mesh| -> Result<Simulation<P, T>> {
            let mut mesh = mesh.clone();
            let program = P::new(&mut mesh, settings, options.order)?;
            let builder = configure(mesh, program, options);
            Ok(builder.backend(backend).audit(audit).precision::<T>().build()?)
        };
        let oracle = match options.verify {
            false => None,
            true => {
                let serial = build(Backend::Serial, false, &mesh)?;
                let exact = match options.backend.has_gpus() {
                    true => {
                        let mut mesh = mesh.clone();
                        let program = P::new(&mut mesh, settings, options.order)?;
                        let builder = configure(mesh, program, options);
                        Some(builder.backend(Backend::Serial).precision::<f64>().build()?)
                    }
                    false => None,
                };
                Some(Oracle { serial, exact, worst: 0.0 })
            }
        };
        let mut mesh = mesh;
        let program = P::new(&mut mesh, settings, options.order)?;
        let builder = configure(mesh, program, options).audit(options.verify).timeline(options.timeline);
        let simulation = builder.precision::<T>().build()?;
        Ok(Running { simulation, oracle })
    }

    fn read(&self, name: &str) -> Result<Field> {
        Ok(self.simulation.field(name)?)
    }
}

/// The number of an element in a field, or the length of its vector.
pub(crate) fn magnitude(field: &Field, i: usize) -> f64 {
    match field.components {
        1 => field.values[i],
        n => field.values[n * i..n * (i + 1)].iter().map(|x| x * x).sum::<f64>().sqrt(),
    }
}

/// The field of that name.
///
/// # Errors
/// It is not there.
pub(crate) fn find<'a>(fields: &'a [Field], name: &str) -> Result<&'a Field> {
    fields.iter().find(|field| field.name == name).with_context(|| format!("the state has no field {name}"))
}

impl<P: Example, T: Number> Run for Running<P, T> {
    fn step(&mut self) -> Result<()> {
        if let Some(oracle) = &mut self.oracle {
            oracle.follow(&self.simulation)?;
        }
        self.simulation.step()?;
        self.oracle.as_mut().map_or(Ok(()), |oracle| oracle.judge(&self.simulation))
    }

    fn wait(&mut self) -> Result<()> {
        Ok(self.simulation.wait()?)
    }

    fn steps(&self) -> u64 {
        self.simulation.steps()
    }

    fn rounds(&self) -> u64 {
        self.simulation.rounds()
    }

    fn time(&self) -> f64 {
        self.simulation.time()
    }

    fn time_step(&self) -> f64 {
        self.simulation.program().time_step()
    }

    fn mesh(&self) -> &Mesh {
        self.simulation.mesh()
    }

    fn points(&self, fields: &[Field]) -> Result<Vec<[f64; 3]>> {
        let look = self.look();
        let mut points = match look.positions {
            Some(name) => find(fields, name)?.values.as_chunks().0.to_vec(),
            None => self.mesh().points().to_vec(),
        };
        if let (true, Some(color)) = (look.lift != 0.0, look.color) {
            let heights = find(fields, color)?;
            points.iter_mut().enumerate().for_each(|(v, p)| p[2] += look.lift * magnitude(heights, v));
        }
        Ok(points)
    }

    fn look(&self) -> Look {
        self.simulation.program().look()
    }

    fn note(&self) -> Option<String> {
        self.simulation.program().note()
    }

    fn table(&self) -> Vec<Column> {
        self.simulation.program().table()
    }

    fn judge(&self) -> Result<Vec<Check>> {
        self.simulation.program().judge(&self.fields()?)
    }

    fn fields(&self) -> Result<Vec<Field>> {
        self.simulation.fields().iter().map(|part| self.read(&part.name)).collect()
    }

    fn snapshot(&mut self) -> Result<Snapshot> {
        let snapshot = self.simulation.snapshot()?;
        Ok(Box::new(move || Ok(snapshot.fields()?)))
    }

    fn is_pending(&self) -> bool {
        self.simulation.is_pending()
    }

    fn parts(&self) -> Vec<Part> {
        self.simulation.fields()
    }

    fn write_pieces(&mut self, folder: &Path, name: &str) -> Result<Vec<PathBuf>> {
        let Look { positions, color, lift, .. } = self.look();
        let raised = color.filter(|_| lift != 0.0).map(|color| (color.to_string(), lift));
        let placement = Placement { positions: positions.map(str::to_string), raised };
        Ok(self.simulation.write_pieces(folder, name, &placement)?)
    }

    fn metrics(&mut self) -> Result<Vec<Metric>> {
        Ok(self.simulation.metrics()?)
    }

    fn metric(&mut self, name: &str) -> Result<f64> {
        Ok(self.simulation.metric(name)?)
    }

    fn digest(&self) -> Result<String> {
        Ok(self.simulation.digest()?)
    }

    fn adapter(&self) -> Option<Adapter> {
        self.simulation.adapter()
    }

    fn gpu_counters(&self) -> Option<GpuCounters> {
        self.simulation.gpu_counters()
    }

    fn threads(&self) -> usize {
        self.simulation.threads()
    }

    fn hosts(&self) -> Vec<HostReport> {
        self.simulation.hosts()
    }

    #[cfg(feature = "cluster")]
    fn shares(&self, hosts: u32, cut: Cut) -> Result<Sharing> {
        Ok(self.simulation.shares(hosts, cut)?)
    }

    fn workload(&self, threads: usize, parts: &[f64]) -> Result<Workload> {
        Ok(self.simulation.workload(threads, parts)?)
    }

    #[cfg(feature = "cluster")]
    fn packed(&self) -> Result<Packed> {
        Ok(self.simulation.packed()?)
    }

    fn run_once(&mut self) -> Result<()> {
        Ok(self.simulation.run_once()?)
    }

    fn stalls(&self) -> u64 {
        self.simulation.stalls()
    }

    fn directed_edges(&self) -> usize {
        self.simulation.directed_edges()
    }

    fn schedule(&self) -> &Schedule {
        self.simulation.schedule()
    }

    fn setup(&self) -> &[(&'static str, f64)] {
        self.simulation.setup()
    }

    fn memory_bytes(&self) -> usize {
        self.simulation.memory_bytes()
    }

    fn round_bytes(&self) -> usize {
        self.simulation.round_bytes()
    }

    fn width(&self) -> usize {
        self.simulation.width()
    }

    fn write_timeline(&mut self, out: &mut dyn Write) -> Result<u64> {
        Ok(self.simulation.write_timeline(out)?)
    }

    fn audit(&self) -> Result<Option<String>> {
        let Some(oracle) = &self.oracle else { return Ok(None) };
        if oracle.exact.is_some() {
            let share = 100.0 * oracle.worst;
            return Ok(Some(format!(
                "each of {} steps is as near to exact arithmetic as the serial oracle, within the bound; at most {share:.0} % of it",
                self.steps()
            )));
        }
        let bits = format!("{} steps equal the serial oracle bit for bit", self.steps());
        Ok(Some(match self.simulation.audit()? {
            Some(report) => format!(
                "{bits}; {} updates in {} rounds, each once; {} neighbor relations in order",
                report.updates, report.rounds, report.relations
            ),
            None => bits,
        }))
    }
}
