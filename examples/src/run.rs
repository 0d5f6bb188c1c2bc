//! A run of an example, whatever its program and precision.

use crate::example::{Check, Column, Example, Look, Precision, find, magnitude};
use crate::oracle::Oracle;
use crate::settings::Settings;
use anyhow::Result;
#[cfg(feature = "cluster")]
use meshweft::model::Packed;
use meshweft::model::Workload;
use meshweft::{
    Adapter, Backend, Builder, GpuCounters, HostReport, Metric, Number, Order, Part, Placement, Program, Schedule,
    Simd, Simulation,
};
#[cfg(feature = "cluster")]
use meshweft::{Sharing, mesh::Cut};
use meshweft_mesh::{Field, Mesh};
use std::io::Write;
use std::path::{Path, PathBuf};

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

pub(crate) struct Running<P: Program, T: Number> {
    simulation: Simulation<P, T>,
    oracle: Option<Oracle<P, T>>,
}

/// All but the precision. An oracle on another backend keeps the blocks of the one that was asked for.
pub(crate) fn configure<P: Program>(mesh: Mesh, program: P, options: &Options) -> Builder<P, f32> {
    let order = options.order.resolved(options.backend.grain(mesh.points().len()));
    Simulation::builder(mesh, program).backend(options.backend.clone()).order(order).simd(options.simd)
}

impl<P: Example, T: Number> Running<P, T> {
    pub(crate) fn new(mesh: Mesh, settings: &Settings, options: &Options) -> Result<Self> {
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
