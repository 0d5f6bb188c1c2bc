//! `meshweft run --copies`: many copies of a scene, each with settings of its own.
//!
//! A copy is built, takes all of its steps and is gone before the thread that did it takes the next: it stays in that core's cache, and memory
//! does not grow with the number of copies. What is kept of each is a row of a table.

use super::console::{Console, Outcome};
use super::goal::Goal;
use super::memory::SET_UP;
use super::options::Plan;
use super::programs::Programs;
use super::progress::Progress;
use super::run::Arguments;
use super::signals::Signals;
use super::vary::{Axis, SEED, Variation};
use super::{meshes, text};
use crate::output::copies::{self, Ended, Record, is_shown};
use crate::output::{self, Config};
use crate::{Check, Options};
use anyhow::{Context, Result, bail};
use clap::Args;
use meshweft::{Backend, Error, Metric, Plans, sweep};
use meshweft_mesh::{Mesh, generate};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The heading of these options in the help.
const HEADING: &str = "Copies";
/// What copies do not leave, and how they do not run.
const NOT_OF_COPIES: [&str; 5] = ["auto", "trace", "view", "pieces", "checkpoint_every"];

/// How many copies, and what varies from one to the next.
#[derive(Args, Clone, Debug)]
pub(super) struct Copies {
    /// Run so many copies of the scene beside each other, on the cores of this machine. The folder gets a row for each in NAME.csv, with
    /// what was measured at its end and the digest, and a picture of some side by side; with --every also NAME.history.csv
    /// [default: as many as --vary has combinations of values]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = NOT_OF_COPIES, help_heading = HEADING)]
    copies: Option<u32>,
    /// What varies from copy to copy: a setting, or `seed`, that of the generator of the mesh. Values as in dt=1e-3,2e-3, or a range as in
    /// dt=1e-3:1e-2, from the first copy to the last; as in dt=1e-3:1e-2:20 of so many values; with :log spaced by factors, with :random
    /// drawn by --seed. Or a CSV file with names in its first line and a row for each copy. Lists, tables and ranges of so many
    /// values are combined, each value with each; those of the last --vary change first. May be repeated
    #[arg(long, value_name = "NAME=VALUES|FILE.csv", conflicts_with_all = NOT_OF_COPIES, help_heading = HEADING)]
    vary: Vec<Axis>,
}

impl Copies {
    /// Whether there are to be some.
    pub(super) fn is_asked_for(&self) -> bool {
        self.copies.is_some() || !self.vary.is_empty()
    }
}

/// A scene that is to be run many times.
struct Scene<'a> {
    arguments: &'a Arguments,
    plan: Plan,
    variation: Variation,
    /// Unless each copy has its own.
    mesh: Option<Mesh>,
    config: Config,
    vertices: usize,
    steps: u64,
}

/// A copy that is done, with what the report adds up.
struct Done {
    ended: Ended,
    built_s: f64,
    updates: f64,
    /// A check that failed.
    failed: Option<Check>,
}

/// What all copies came to.
#[derive(Default)]
struct Sum {
    copies: usize,
    steps: u64,
    updates: f64,
    /// Seconds of all threads.
    built_s: f64,
    stepped_s: f64,
    /// Copies that did not come to their end, and that failed a check.
    diverged: usize,
    failed: usize,
    /// By name: the unit, the least, the sum and the greatest of those that did, and how many these are.
    metrics: Vec<(Metric, [f64; 3], usize)>,
}

/// Runs all copies.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    arguments.problem.check_here()?;
    let folder = arguments.folder()?;
    output::check(&folder)?;
    let scene = Scene::new(arguments, programs, console)?;
    let names = scene.variation.names().map(str::to_string).collect();
    let mut output = copies::Copies::create(scene.config.clone(), names)?;
    console.signals.make_stoppable();
    let (copies, signals) = (scene.variation.copies, console.signals.clone());
    let mut progress = Progress::new(0..copies as u64, u64::MAX, "copy", arguments.quiet, console);
    let (mut sum, mut stopped, clock) = (Sum::default(), false, Instant::now());
    let outcome = sweep(
        copies,
        arguments.problem.threads(),
        |copy, plans| scene.run(copy, plans, &signals),
        |copy, done| {
            let Some(done) = done.with_context(|| scene.name(copy))? else {
                stopped = true;
                bail!("stopped");
            };
            sum.add(&done);
            output.push(done.ended)?;
            progress.reach(sum.copies as u64, Duration::ZERO, String::new, console);
            Ok(())
        },
    );
    let wall = clock.elapsed();
    progress.finish();
    if !stopped {
        outcome?;
    }
    let stopped_by = signals.first().filter(|_| stopped);
    if let Some(signal) = stopped_by {
        let _ = writeln!(
            console.err,
            "{signal}: stopped after {} of {copies} copies; their rows are in {}",
            sum.copies,
            folder.display()
        );
    }
    let count = signals.count();
    let files = output.finish(copies, &mut || signals.count() == count)?;
    let report =
        Report { scene: &scene, sum: &sum, wall, files, stopped_by: stopped_by.map(|signal| signal.to_string()) };
    match arguments.json {
        true => report.print_json(console)?,
        false => report.print(console)?,
    }
    match stopped_by {
        Some(signal) => Ok(Outcome::Stopped(signal)),
        None if sum.failed > 0 => Ok(Outcome::Wrong),
        None => Ok(Outcome::Done),
    }
}

impl<'a> Scene<'a> {
    fn new(arguments: &'a Arguments, programs: &Programs, console: &mut Console) -> Result<Scene<'a>> {
        let plan = arguments.problem.plan(programs, arguments.verify)?;
        let Copies { copies, vary } = &arguments.copies;
        let variation = Variation::new(vary, *copies, plan.seed, plan.entry.info.settings)?;
        let name = plan.mesh.to_string_lossy();
        let mut mesh = None;
        let size = if variation.names().any(|name| name == SEED) {
            if generate::find(&name).is_none() {
                bail!("--vary {SEED}: {name} is no generator, whose random numbers it is of");
            }
            generate::size(&name)?
        } else {
            let opened = meshes::open(&plan.mesh, plan.seed, SET_UP, console.err)?;
            let cells = opened.cells();
            let (vertices, corners) = (opened.points().len(), cells.all_corners().len());
            let size = generate::Size { vertices, cells: cells.len(), corners };
            mesh = Some(opened);
            size
        };
        let threads = match arguments.problem.threads() {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let at_once = threads.min(variation.copies);
        SET_UP.check_times(&format!("{name}, {at_once} at a time"), size, at_once)?;
        let config = Config {
            folder: arguments.folder()?,
            name: plan.entry.info.name,
            steps: 0,
            every: 1,
            state_every: 1,
            pictures: !arguments.pictures.no_pictures,
            pieces: false,
            style: arguments.pictures.style(),
            threads: arguments.problem.threads(),
            resumable: false,
        };
        let (vertices, steps) = (size.vertices, arguments.steps.unwrap_or(plan.entry.info.steps as u64));
        Ok(Scene { arguments, plan, variation, mesh, config, vertices, steps })
    }

    /// What a copy is called in messages.
    fn name(&self, copy: usize) -> String {
        let values =
            self.variation.names().zip(self.variation.values(copy)).map(|(name, value)| format!(" {name}={value}"));
        format!("copy {copy}{}", values.collect::<String>())
    }

    /// Runs a copy from start to end; none if a signal came.
    ///
    /// # Errors
    /// One that is no property of its settings alone: another copy would have it, too.
    fn run(&self, copy: usize, plans: &Plans, signals: &Signals) -> Result<Option<Done>> {
        if signals.count() > 0 {
            return Ok(None);
        }
        let Scene { arguments, plan, variation, .. } = self;
        let clock = Instant::now();
        let (mut settings, mut seed) = (plan.settings.clone(), plan.seed);
        variation.apply(copy, &mut settings, &mut seed)?;
        let mesh = match &self.mesh {
            Some(mesh) => mesh.clone(),
            None => generate::generate(&plan.mesh.to_string_lossy(), seed)?,
        };
        let backend = match &plan.options.backend {
            Backend::Cpu { .. } => Backend::Cpu { threads: 1 },
            other => other.clone(),
        };
        let options = Options { plans: Some(plans.clone()), backend, ..plan.options.clone() };
        let mut run = plan.entry.start(mesh, &settings, &options)?;
        let goal = Goal::new(self.steps, arguments.until, arguments.stop.clone(), &mut run)?;
        let built_s = clock.elapsed().as_secs_f64();
        let config = Config { steps: goal.steps, ..self.config.clone() };
        let shown = is_shown(copy, variation.copies, self.vertices);
        let mut record = Record::new(&config, &run, shown, arguments.every)?;
        let mut metrics = run.metrics()?;
        record.look(&mut run, false)?;
        let (mut stepped, mut met, mut error) = (Duration::ZERO, false, None);
        while !met && !goal.is_reached(&run) {
            if signals.count() > 0 {
                return Ok(None);
            }
            let clock = Instant::now();
            let result = run.step();
            stepped += clock.elapsed();
            if let Err(failed) = result {
                // What its settings have led to is a result like any other.
                match failed.downcast_ref() {
                    Some(Error::Diverged { .. } | Error::Global { .. }) => error = Some(failed.to_string()),
                    _ => return Err(failed),
                }
                break;
            }
            record.look(&mut run, false)?;
            met = goal.is_met(&mut run)?;
        }
        let mut failed = None;
        if error.is_none() {
            record.look(&mut run, true)?;
            metrics = run.metrics()?;
            if arguments.verify {
                run.verdict()?;
                failed = run.judge()?.into_iter().find(|check| !check.passes());
                error = failed
                    .as_ref()
                    .map(|check| format!("failed: {} is {}, not {}", check.name, check.measured, check.expected));
            }
        } else {
            metrics.iter_mut().for_each(|metric| metric.value = f64::NAN);
        }
        let updates = run.rounds() as f64 * run.mesh().points().len() as f64;
        let ended = Ended {
            values: variation.values(copy),
            steps: run.steps(),
            time: run.time(),
            metrics,
            stepped_s: stepped.as_secs_f64(),
            digest: run.digest()?,
            error,
            record,
        };
        Ok(Some(Done { ended, built_s, updates, failed }))
    }
}

impl Sum {
    fn add(&mut self, done: &Done) {
        let ended = &done.ended;
        self.copies += 1;
        self.steps += ended.steps;
        self.updates += done.updates;
        self.built_s += done.built_s;
        self.stepped_s += ended.stepped_s;
        self.failed += usize::from(done.failed.is_some());
        self.diverged += usize::from(ended.error.is_some() && done.failed.is_none());
        for metric in &ended.metrics {
            let known = self.metrics.iter().position(|(known, ..)| known.name == metric.name);
            let known = known.unwrap_or_else(|| {
                self.metrics.push((*metric, [f64::INFINITY, 0.0, f64::NEG_INFINITY], 0));
                self.metrics.len() - 1
            });
            let (_, [least, sum, most], count) = &mut self.metrics[known];
            if metric.value.is_finite() {
                (*least, *sum, *most) = (least.min(metric.value), *sum + metric.value, most.max(metric.value));
                *count += 1;
            }
        }
    }
}

/// What there is to say of an ensemble that is done.
struct Report<'a> {
    scene: &'a Scene<'a>,
    sum: &'a Sum,
    wall: Duration,
    files: Vec<PathBuf>,
    stopped_by: Option<String>,
}

impl Report<'_> {
    /// Least, mean and greatest of a measured quantity; none where no copy came to its end.
    fn of_metric((_, [least, sum, most], count): &(Metric, [f64; 3], usize)) -> Option<[f64; 3]> {
        (*count > 0).then(|| [*least, sum / *count as f64, *most])
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = self.scene.arguments.problem.threads();
        if wanted == 0 { cores() } else { wanted }.min(self.scene.variation.copies)
    }

    /// Settings that are the same in all copies.
    fn fixed(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Scene { plan, variation, .. } = self.scene;
        plan.settings.iter().filter(|(name, _)| !variation.names().any(|varied| varied == *name))
    }

    fn print_json(&self, console: &mut Console) -> Result<()> {
        let Report { scene: Scene { plan, variation, vertices, .. }, sum, wall, files, stopped_by } = self;
        let wall_s = wall.as_secs_f64();
        let metrics = sum.metrics.iter().map(|all| {
            let [least, mean, most] = Report::of_metric(all).map_or([None; 3], |numbers| numbers.map(Some));
            (all.0.name.to_string(), json!({ "unit": all.0.unit, "least": least, "mean": mean, "most": most }))
        });
        let report = json!({
            "example": plan.entry.info.name,
            "mesh": plan.mesh.to_string_lossy(),
            "vertices": vertices,
            "copies": sum.copies,
            "of_copies": variation.copies,
            "varied": variation.names().collect::<Vec<_>>(),
            "settings": self.fixed().map(|(name, value)| (name.to_string(), value.into())).collect::<Map<String, Value>>(),
            "order": plan.options.order.resolved(plan.options.backend.grain(*vertices)).to_string(),
            "backend": plan.backend(),
            "threads": self.threads(),
            "precision": plan.precision(),
            "seed": plan.seed,
            "steps": sum.steps,
            "wall_s": wall_s,
            "built_s": sum.built_s,
            "stepped_s": sum.stepped_s,
            "updates_per_s": if sum.updates > 0.0 { sum.updates / wall_s } else { 0.0 },
            "diverged": sum.diverged,
            "failed": sum.failed,
            "metrics": metrics.collect::<Map<String, Value>>(),
            "stopped_by": stopped_by,
            "files": files,
        });
        Ok(writeln!(console.out, "{report}")?)
    }

    fn print(&self, console: &mut Console) -> Result<()> {
        let Report { scene: Scene { plan, variation, vertices, .. }, sum, wall, files, stopped_by } = self;
        let of = match stopped_by {
            Some(_) => format!(" of {}: stopped", text::count(variation.copies)),
            None => String::new(),
        };
        let varied = match variation.names().collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => String::new(),
            names => format!(", by {names}"),
        };
        let order = plan.options.order.resolved(plan.options.backend.grain(*vertices));
        let settings: Vec<String> = self.fixed().map(|(name, value)| format!("{name}={value}")).collect();
        let [built, stepped] = [sum.built_s, sum.stepped_s].map(text::seconds);
        let rate = text::rate(sum.updates / wall.as_secs_f64().max(f64::MIN_POSITIVE), "updates");
        let threads = text::counted(self.threads(), "thread", "threads");
        let mut rows = vec![
            ("example", format!("{}  {}", plan.entry.info.name, settings.join(" "))),
            ("copies", format!("{}{of}{varied}", text::count(sum.copies))),
            ("mesh", format!("{}: {} vertices", plan.mesh.to_string_lossy(), text::count(*vertices))),
            ("order", order.to_string()),
            ("backend", format!("{}, {threads}, {}", plan.backend(), plan.precision())),
            ("steps", format!("{} of all copies", text::count(sum.steps as usize))),
            ("wall", format!("{} for all, {rate}", text::seconds(wall.as_secs_f64()))),
            ("work", format!("{built} of all threads to set up, {stepped} for the steps")),
        ];
        if sum.diverged > 0 {
            rows.push(("diverged", format!("{}: see the column error", text::counted(sum.diverged, "copy", "copies"))));
        }
        if self.scene.arguments.verify {
            let passed = sum.copies - sum.diverged - sum.failed;
            rows.push((
                "verified",
                format!(
                    "{} equal the serial oracle bit for bit; {} failed a check",
                    text::counted(passed + sum.failed, "copy", "copies"),
                    sum.failed
                ),
            ));
        }
        text::pairs(console.out, &rows)?;
        let mut rows = vec![["", "least", "mean", "most", "unit"].map(str::to_string).to_vec()];
        for all in &sum.metrics {
            let numbers =
                Report::of_metric(all).map_or(["-"; 3].map(str::to_string), |numbers| numbers.map(text::number));
            rows.push([vec![all.0.name.to_string()], numbers.to_vec(), vec![all.0.unit.to_string()]].concat());
        }
        writeln!(console.out)?;
        text::table(console.out, &rows)?;
        let files = files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join("  ");
        Ok(writeln!(console.out, "\nwrote {files}")?)
    }
}
