//! A run of an example, whatever its program and precision.

use crate::example::{Check, Column, Example, Look, Precision, find, magnitude};
use crate::oracle::Oracle;
use crate::settings::Settings;
use anyhow::{Result, bail};
use meshweft::{AnySimulation, Backend, Builder, Checkpoint, Order, Placement, Plans, Simd, Simulation};
use meshweft_mesh::{Field, Means, Mesh, Shown};
use std::any::Any;
use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};
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
    /// Whether threads write down what they do, for [`AnySimulation::write_timeline`].
    pub timeline: bool,
    /// Whether kernels are interpreted, for tests: see [`Builder::tapes`].
    pub tapes: bool,
    /// What it shares with others that run beside it: see [`Builder::one_of`].
    pub plans: Option<Plans>,
}

/// A run of some example: its simulation, how it is drawn and judged, and the oracle beside it, if it has one.
///
/// It derefs to the [simulation](AnySimulation).
pub struct Run {
    scene: Scene,
    oracle: Option<Oracle>,
    order: Order,
    /// The kinds of cells that it was given: a program may make another mesh of them.
    kinds: String,
    /// What shows its cells, once that is asked for.
    shown: OnceCell<Option<Shown>>,
    /// What shows fields of cells at points, once it is needed.
    means: OnceCell<Means>,
}

/// A simulation of some example, with what is known of it beyond that.
pub(crate) struct Scene {
    pub(crate) simulation: Box<dyn AnySimulation>,
    look: Look,
    note: Option<String>,
    table: Vec<Column>,
    judge: fn(&dyn Any, &[Field]) -> Result<Vec<Check>>,
    live: &'static [&'static str],
    change: fn(&mut dyn Any, &Settings, Order) -> Result<()>,
}

/// What makes the scene of an example.
pub(crate) type Make = fn(Mesh, &Settings, &Options) -> Result<Scene>;

/// Sets a scene and builds its simulation. With [`Options::verify`] all updates are watched.
pub(crate) fn make<P: Example>(mut mesh: Mesh, settings: &Settings, options: &Options) -> Result<Scene> {
    let program = P::new(&mut mesh, settings, options.order)?;
    let (look, note, table) = (program.look(), program.note(), program.table());
    let builder = configure(mesh, program, options).audit(options.verify).timeline(options.timeline);
    let simulation = match options.precision {
        Precision::F32 => builder.build()?.into_any(),
        Precision::F64 => builder.precision::<f64>().build()?.into_any(),
    };
    let judge = |program: &dyn Any, fields: &[Field]| {
        let program: &P = program.downcast_ref().expect("the scene has this program");
        program.judge(fields)
    };
    let change = |program: &mut dyn Any, settings: &Settings, order| {
        let program: &mut P = program.downcast_mut().expect("the scene has this program");
        program.change(settings, order)
    };
    Ok(Scene { simulation, look, note, table, judge, live: P::LIVE, change })
}

/// Names of the kinds of cells of a mesh.
pub(crate) fn kinds(mesh: &Mesh) -> String {
    mesh.cells().counts().into_iter().map(|(kind, _)| kind.name()).collect::<Vec<_>>().join(",")
}

/// All but the precision.
pub(crate) fn configure<P: Example>(mesh: Mesh, program: P, options: &Options) -> Builder<P, f32> {
    let builder = Simulation::builder(mesh, program).backend(options.backend.clone());
    let builder = builder.order(options.order).simd(options.simd).tapes(options.tapes);
    match &options.plans {
        Some(plans) => builder.one_of(plans),
        None => builder,
    }
}

impl Run {
    pub(crate) fn start(make: Make, mesh: Mesh, settings: &Settings, options: &Options) -> Result<Run> {
        // An oracle on another backend keeps the blocks of the one that was asked for.
        let order = options.order.resolved(options.backend.grain(mesh.points().len()));
        let options = Options { order, ..options.clone() };
        let alone =
            Options { backend: Backend::Serial, verify: false, timeline: false, tapes: false, ..options.clone() };
        let oracle = |precision| -> Result<Box<dyn AnySimulation>> {
            Ok(make(mesh.clone(), settings, &Options { precision, ..alone.clone() })?.simulation)
        };
        let oracle = match (options.verify, options.backend.has_gpus()) {
            (false, _) => None,
            (true, false) => Some(Oracle { serial: oracle(options.precision)?, exact: None, worst: 0.0, from: 0 }),
            (true, true) => {
                let [serial, exact] = [options.precision, Precision::F64].map(oracle);
                Some(Oracle { serial: serial?, exact: Some(exact?), worst: 0.0, from: 0 })
            }
        };
        Ok(Run {
            kinds: kinds(&mesh),
            scene: make(mesh, settings, &options)?,
            oracle,
            order,
            shown: OnceCell::new(),
            means: OnceCell::new(),
        })
    }

    /// Names of the kinds of cells of the mesh that it was given.
    pub(crate) fn kinds(&self) -> &str {
        &self.kinds
    }

    /// Advances one step; with the oracle beside it, compares both.
    ///
    /// # Errors
    /// Divergence or a difference from the oracle.
    pub fn step(&mut self) -> Result<()> {
        self.step_until(f64::INFINITY)
    }

    /// The same, but not beyond a time: see [`AnySimulation::step_until`].
    ///
    /// # Errors
    /// As [`Run::step`].
    pub fn step_until(&mut self, time: f64) -> Result<()> {
        let simulation = &mut *self.scene.simulation;
        let Some(oracle) = &mut self.oracle else { return Ok(simulation.step_until(time)?) };
        oracle.follow(simulation)?;
        simulation.step_until(time)?;
        oracle.judge(simulation, time)
    }

    /// Goes on from a checkpoint, with the oracle beside it if there is one.
    ///
    /// # Errors
    /// As [`AnySimulation::resume`].
    pub fn resume(&mut self, from: &Checkpoint) -> Result<()> {
        if let Some(oracle) = &mut self.oracle {
            if oracle.exact.is_some() {
                bail!("the oracle in 64 bits beside a GPU begins with the run: leave out --verify to go on");
            }
            oracle.serial.resume(from)?;
            oracle.from = from.steps();
        }
        Ok(self.scene.simulation.resume(from)?)
    }

    /// Writes one part of the state, here and in the oracle beside it.
    ///
    /// # Errors
    /// As [`AnySimulation::set_field`].
    pub fn set_field(&mut self, name: &str, values: &[f64]) -> Result<()> {
        Ok(self.all().try_for_each(|simulation| simulation.set_field(name, values))?)
    }

    /// The simulation, and then its oracles.
    fn all(&mut self) -> impl Iterator<Item = &mut Box<dyn AnySimulation>> {
        let oracles = self.oracle.iter_mut().flat_map(|oracle| [Some(&mut oracle.serial), oracle.exact.as_mut()]);
        std::iter::once(&mut self.scene.simulation).chain(oracles.flatten())
    }

    /// The settings that [`Run::change`] takes over.
    pub fn live(&self) -> &'static [&'static str] {
        self.scene.live
    }

    /// Takes over other values of the [live](Run::live) settings, from the next step on, as the oracle beside it does.
    ///
    /// # Errors
    /// A value that the program cannot go on with: all is then as it was.
    pub fn change(&mut self, settings: &Settings) -> Result<()> {
        let (change, order) = (self.scene.change, self.order);
        // All have the same program, so that what is refused is refused by the first.
        self.all().try_for_each(|simulation| change(simulation.program_mut(), settings, order))
    }

    /// The mesh that is drawn: that of the run, or of cells what [shows](Mesh::shown) them, smooth if it is raised.
    pub fn drawn(&self) -> &Mesh {
        self.shown().map_or(self.mesh(), |shown| &shown.mesh)
    }

    /// What shows the cells that vertices stand for, unless these move.
    fn shown(&self) -> Option<&Shown> {
        let look = self.look();
        let shown = || if look.positions.is_some() { None } else { self.mesh().shown(look.raised.is_some()) };
        self.shown.get_or_init(shown).as_ref()
    }

    /// The number of a point that is drawn, given one of each vertex.
    pub fn drawn_number(&self, point: usize, number: impl Fn(u32) -> f64) -> f64 {
        self.shown().map_or_else(|| number(point as u32), |shown| shown.means.mean(point, &number))
    }

    /// The magnitude of a field of the state at each point that is drawn.
    pub fn drawn_magnitude(&self, field: &Field) -> impl Fn(usize) -> f64 {
        let means = self.is_of_cells(&field.name).then(|| self.means());
        move |point| {
            let number = |of: u32| magnitude(field, of as usize);
            means.map_or_else(|| self.drawn_number(point, number), |means| means.mean(point, number))
        }
    }

    /// A field over the points that are drawn, given one of the state, or another over the vertices.
    pub fn at_drawn(&self, field: Field) -> Field {
        match self.shown() {
            Some(shown) => shown.means.of(&field),
            None if self.is_of_cells(&field.name) => self.means().of(&field),
            None => field,
        }
    }

    fn means(&self) -> &Means {
        self.means.get_or_init(|| Means::at_points(self.mesh()))
    }

    /// Where the points that are drawn are when the state has these fields, shape [n × 3], meters.
    ///
    /// # Errors
    /// A field that is missing.
    pub fn points(&self, fields: &[Field]) -> Result<Vec<[f64; 3]>> {
        let look = &self.scene.look;
        let mut points = match look.positions {
            Some(name) => find(fields, name)?.values.as_chunks().0.to_vec(),
            None => self.drawn().points().to_vec(),
        };
        if let Some((name, by)) = look.raised {
            let field = find(fields, name)?;
            let height = self.drawn_magnitude(field);
            // A point without cells has no mean of theirs: it stays.
            let raised = points.iter_mut().enumerate().filter(|(i, _)| !height(*i).is_nan());
            raised.for_each(|(i, p)| p[2] += by * height(i));
        }
        Ok(points)
    }

    /// How it is drawn.
    pub fn look(&self) -> &Look {
        &self.scene.look
    }

    /// See [`Example::note`].
    pub fn note(&self) -> Option<&str> {
        self.scene.note.as_deref()
    }

    /// See [`Example::table`].
    pub fn table(&self) -> &[Column] {
        &self.scene.table
    }

    /// Judges the state by the properties that it must have, see [`Example::judge`].
    ///
    /// # Errors
    /// As [`AnySimulation::state`].
    pub fn judge(&self) -> Result<Vec<Check>> {
        (self.scene.judge)(self.program(), &self.state()?)
    }

    /// Writes the state as it is drawn, a piece a host, see [`AnySimulation::write_pieces`]. Returns the paths of index and pieces.
    ///
    /// # Errors
    /// As there.
    pub fn write_drawn(&mut self, folder: &Path, name: &str) -> Result<Vec<PathBuf>> {
        let Look { positions, raised, cells, .. } = self.look();
        if cells.is_some() {
            bail!("what comes apart is written as a whole: leave out --pieces");
        }
        let raised = raised.map(|(field, by)| (field.to_string(), by));
        let placement = Placement { positions: positions.map(str::to_string), raised };
        Ok(self.write_pieces(folder, name, &placement)?)
    }

    /// Judges the audit of all updates so far, if the run has an oracle beside it: a sentence of what was checked.
    ///
    /// # Errors
    /// A vertex that was not updated once a round, or two neighbors out of order.
    pub fn verdict(&self) -> Result<Option<String>> {
        let Some(oracle) = &self.oracle else { return Ok(None) };
        if oracle.exact.is_some() {
            let share = 100.0 * oracle.worst;
            return Ok(Some(format!(
                "each of {} steps is as near to exact arithmetic as the serial oracle, within the bound; at most {share:.0} % of it",
                self.steps()
            )));
        }
        let behind = if oracle.from > 0 { format!(" behind step {}", oracle.from) } else { String::new() };
        let steps = self.steps() - oracle.from.min(self.steps());
        let bits = format!("{steps} steps{behind} equal the serial oracle bit for bit");
        Ok(Some(match self.audit()? {
            Some(report) => format!(
                "{bits}; {} updates in {} rounds, each once; {} neighbor relations in order",
                report.updates, report.rounds, report.relations
            ),
            None => bits,
        }))
    }

    /// The simulation alone.
    pub fn into_simulation(self) -> Box<dyn AnySimulation> {
        self.scene.simulation
    }
}

impl Deref for Run {
    type Target = dyn AnySimulation;

    fn deref(&self) -> &dyn AnySimulation {
        &*self.scene.simulation
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut dyn AnySimulation {
        &mut *self.scene.simulation
    }
}
