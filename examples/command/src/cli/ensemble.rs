//! `meshweft run --copies`: many copies of a scene, each with settings of its own.
//!
//! A copy is built, takes all of its steps and is gone before the thread that did it takes the next: it stays in that core's cache, and memory
//! does not grow with the number of copies. What is kept of each is a row of a table.

mod report;

use super::console::{Console, Outcome};
use super::goal::{Condition, Goal};
use super::memory::SET_UP;
use super::meshes;
use super::options::{Plan, Problem};
use super::pictures::Pictures;
use super::programs::Programs;
use super::progress::Progress;
use super::signals::Signals;
use super::vary::{Axis, SEED, Variation};
use crate::output::copies::{self, Ended, Record, is_shown};
use crate::output::{self, Config};
use crate::{Check, Options, Run};
use anyhow::{Context, Result, bail};
use clap::Args;
use meshweft::{Backend, Error, Plans, sweep};
use meshweft_mesh::{Mesh, generate};
use report::{Report, Sum};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The heading of these options in the help.
const HEADING: &str = "Copies";
/// What copies do not leave, and how they do not run.
const NOT_OF_COPIES: [&str; 6] = ["auto", "trace", "view", "pieces", "fields", "checkpoint_every"];

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
    /// Of all copies those of one host: as in 2/5, the second fifth of them, into the folder part-2-of-5. Their rows are those of one run, and
    /// keep their numbers
    #[arg(long, value_name = "I/N", conflicts_with_all = NOT_OF_COPIES, help_heading = HEADING)]
    part: Option<Part>,
}

/// One of so many parts of all copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// From 1 on.
    number: u32,
    of: u32,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Part, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Part { number, of }),
            _ => Err("write I/N, as in 2/5: the second of five parts".into()),
        }
    }
}

impl Part {
    /// Which copies of so many.
    fn range(self, copies: usize) -> Range<usize> {
        let [number, of, all] = [self.number, self.of, copies as u32].map(u64::from);
        let until = |number: u64| (number * all / of) as usize;
        until(number - 1)..until(number)
    }
}

impl Copies {
    /// Where those go that are run here. `folder`: that of all.
    fn folder(&self, folder: &Path) -> PathBuf {
        match self.part {
            Some(Part { number, of }) => folder.join(format!("part-{number}-of-{of}")),
            None => folder.to_owned(),
        }
    }

    /// Whether there are to be some.
    pub(super) fn is_asked_for(&self) -> bool {
        self.copies.is_some() || !self.vary.is_empty() || self.part.is_some()
    }
}

/// What is wanted of copies: the options of a run that they have, too.
pub(super) struct Wanted<'a> {
    pub(super) problem: &'a Problem,
    pub(super) copies: &'a Copies,
    pub(super) pictures: &'a Pictures,
    pub(super) folder: PathBuf,
    pub(super) steps: Option<u64>,
    pub(super) until: Option<f64>,
    pub(super) stop: Option<&'a Condition>,
    pub(super) every: Option<u64>,
    pub(super) verify: bool,
    pub(super) json: bool,
    pub(super) quiet: bool,
}

/// A scene that is to be run many times.
struct Scene<'a> {
    wanted: &'a Wanted<'a>,
    plan: Plan,
    variation: Variation,
    /// Those of all copies that are run here.
    own: Range<usize>,
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
    /// Whether it failed a check.
    failed: bool,
}

/// Runs all copies.
pub(super) fn run(wanted: &Wanted, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    wanted.problem.check_here()?;
    let folder = &wanted.copies.folder(&wanted.folder);
    output::check(folder)?;
    let scene = Scene::new(wanted, programs, console)?;
    // What is wrong with all copies is found before anything of another run is touched.
    let (first, _) = scene.start(scene.own.start, &Plans::default()).with_context(|| scene.name(scene.own.start))?;
    if let Some(note) = first.note() {
        writeln!(console.err, "{}: {note}", scene.config.name)?;
    }
    drop(first);
    let names = scene.variation.names().map(str::to_string).collect();
    let mut output = copies::Copies::create(scene.config.clone(), names, scene.own.start)?;
    console.signals.make_stoppable();
    let (copies, signals) = (scene.own.len(), console.signals.clone());
    let mut progress = Progress::new(0..copies as u64, u64::MAX, "copy", wanted.quiet, console);
    let (mut sum, mut stopped, clock) = (Sum::default(), false, Instant::now());
    let outcome = sweep(
        copies,
        wanted.problem.threads(),
        |copy, plans| scene.run(scene.own.start + copy, plans, &signals),
        |copy, done| {
            let Some(done) = done.with_context(|| scene.name(scene.own.start + copy))? else {
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
    let clock = Instant::now();
    let files = output.finish(copies, &mut || signals.count() == count)?;
    let drawing = clock.elapsed();
    let report = Report {
        scene: &scene,
        sum: &sum,
        wall,
        drawing,
        files,
        stopped_by: stopped_by.map(|signal| signal.to_string()),
    };
    match wanted.json {
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
    fn new(wanted: &'a Wanted<'a>, programs: &Programs, console: &mut Console) -> Result<Scene<'a>> {
        let plan = wanted.problem.plan(programs, wanted.verify)?;
        let Copies { copies, vary, part } = wanted.copies;
        if part.is_some() && copies.is_none() && vary.is_empty() {
            bail!("--part is of many copies: add --copies N, or --vary NAME=VALUES");
        }
        let variation = Variation::new(vary, *copies, plan.seed, plan.entry.info.settings)?;
        let own = part.map_or(0..variation.copies, |part| part.range(variation.copies));
        if own.is_empty() {
            bail!("--part: of {} copies there are none in it: take fewer parts", variation.copies);
        }
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
        let threads = match wanted.problem.threads() {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let at_once = threads.min(own.len());
        SET_UP.check_times(&format!("{name}, {at_once} at a time"), size, at_once)?;
        let config = Config {
            folder: wanted.copies.folder(&wanted.folder),
            name: plan.entry.info.name,
            steps: 0,
            every: 1,
            state_every: 1,
            fields: None,
            pictures: !wanted.pictures.no_pictures,
            pieces: false,
            style: wanted.pictures.style(),
            threads: wanted.problem.threads(),
            resumable: false,
        };
        let (vertices, steps) = (size.vertices, wanted.steps.unwrap_or(plan.entry.info.steps as u64));
        Ok(Scene { wanted, plan, variation, own, mesh, config, vertices, steps })
    }

    /// What a copy is called in messages.
    fn name(&self, copy: usize) -> String {
        let values =
            self.variation.names().zip(self.variation.values(copy)).map(|(name, value)| format!(" {name}={value}"));
        format!("copy {copy}{}", values.collect::<String>())
    }

    /// Builds a copy.
    fn start(&self, copy: usize, plans: &Plans) -> Result<(Run, Goal)> {
        let Scene { wanted, plan, variation, .. } = self;
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
        let goal = Goal::new(self.steps, wanted.until, wanted.stop.cloned(), &mut run)?;
        Ok((run, goal))
    }

    /// Runs a copy from start to end; none if a signal came.
    ///
    /// # Errors
    /// One that is no property of its settings alone: another copy would have it, too.
    fn run(&self, copy: usize, plans: &Plans, signals: &Signals) -> Result<Option<Done>> {
        if signals.count() > 0 {
            return Ok(None);
        }
        let Scene { wanted, variation, .. } = self;
        let clock = Instant::now();
        let (mut run, goal) = self.start(copy, plans)?;
        let built_s = clock.elapsed().as_secs_f64();
        let config = Config { steps: goal.steps, ..self.config.clone() };
        let shown = is_shown(copy - self.own.start, self.own.len(), self.vertices);
        let mut record = Record::new(&config, &run, shown, wanted.every)?;
        let mut metrics = run.metrics()?;
        record.look(&mut run, false)?;
        let Some((stepped, mut error)) = advance(&mut run, &goal, &mut record, signals)? else { return Ok(None) };
        let mut failed = false;
        if error.is_some() {
            metrics.iter_mut().for_each(|metric| metric.value = f64::NAN);
        } else {
            record.look(&mut run, true)?;
            metrics = run.metrics()?;
            if wanted.verify {
                run.verdict()?;
                let check = run.judge()?.into_iter().find(|check| !check.passes());
                failed = check.is_some();
                let said =
                    |check: Check| format!("failed: {} is {}, not {}", check.name, check.measured, check.expected);
                error = check.map(said);
            }
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

/// Takes the steps of a copy. Returns the time that they took, and what ended them if it diverged; none if a signal came.
///
/// # Errors
/// One that other copies would have, too.
fn advance(
    run: &mut Run,
    goal: &Goal,
    record: &mut Record,
    signals: &Signals,
) -> Result<Option<(Duration, Option<String>)>> {
    let (mut stepped, mut met) = (Duration::ZERO, false);
    while !met && !goal.is_reached(run) {
        if signals.count() > 0 {
            return Ok(None);
        }
        let clock = Instant::now();
        let result = goal.step(run);
        stepped += clock.elapsed();
        if let Err(error) = result {
            // What its settings have led to is a result like any other.
            return match error.downcast_ref() {
                Some(Error::Diverged { .. } | Error::Global { .. }) => Ok(Some((stepped, Some(error.to_string())))),
                _ => Err(error),
            };
        }
        record.look(run, false)?;
        met = goal.is_met(run)?;
    }
    Ok(Some((stepped, None)))
}
