//! `meshweft run`: an example from start to end, with everything it leaves behind.

use super::changes::Changes;
use super::checkpoints::{Checkpoints, Every, Resumed};
use super::console::{Console, Outcome};
use super::ensemble::{self, Copies, Wanted};
use super::goal::{self, Condition, Goal};
use super::hosts;
use super::options::{Plan, Problem, at_least};
use super::pictures::Pictures;
use super::plan::{self, Setup};
use super::programs::Programs;
use super::progress::Progress;
use super::report::{End, Report};
use super::watch::Watch;
use super::{meshes, state, text, verify, watch};
use crate::names::unknown;
use crate::output::{self, Config, Files, Output};
use crate::{Check, Kind, Run, Setting};
use anyhow::{Context, Result, bail};
use clap::Args;
use meshweft::Backend;
use meshweft_mesh::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to run and what to keep.
#[derive(Args)]
#[command(args_override_self = true, after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) problem: Problem,
    /// Time steps [default: see `meshweft list`]
    #[arg(long, value_name = "N", value_parser = at_least::<0>, overrides_with = "until")]
    steps: Option<u64>,
    /// Instead of --steps: simulated seconds. The last step is as short as it takes to end there
    #[arg(long, value_name = "SECONDS", value_parser = goal::time, overrides_with = "steps")]
    until: Option<f64>,
    /// Stop before, after the first step at which a measured quantity is below or above a bound, as in --stop 'energy<0.5'.
    /// What is measured is in the table that a run prints. Measuring takes about a pass over the mesh after each step
    #[arg(long, value_name = "NAME<VALUE")]
    stop: Option<Condition>,
    /// Folder for what the run writes; files of an earlier run in it are replaced [default: out/EXAMPLE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Steps from one saved state and frame of the film to the next [default: about 60 frames a run, and as many
    /// states as fit into 64 MiB]
    #[arg(long, value_name = "N", value_parser = at_least::<1>)]
    every: Option<u64>,
    /// Fields that saved states have, as in --fields position,velocity, or all [default: those that the example is about]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "pieces")]
    fields: Option<Vec<String>>,
    /// State of an earlier run, as out/EXAMPLE/EXAMPLE_000100.vtu: the run starts from its fields, and says which. Mesh and settings of the shape
    /// must be those of that run; `meshweft resume` goes on with every bit instead
    #[arg(long, value_name = "STATE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    copies: Copies,
    #[command(flatten)]
    pictures: Pictures,
    /// Let each host write its own piece of every state, as .vtu, and index them as .pvtu: the state is never gathered, so there
    /// are no pictures, and of several hosts no digest. Where hosts share no disk, copy the pieces beside the .pvtu
    #[arg(long)]
    pieces: bool,
    /// Run where the performance model expects it to be quickest, threads of this machine, its GPU or both, and say why. The order
    /// stays: another one is another result
    #[arg(long)]
    auto: bool,
    /// Run the serial oracle beside it, compare every bit after every step, and watch the order of all updates; judge what
    /// came out by the properties that it must have, where the example knows some
    #[arg(long)]
    verify: bool,
    /// File for a timeline of all threads of all hosts, in Chrome's trace event format: open it in https://ui.perfetto.dev
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// From one checkpoint to the next: a time as in 60s or 5min, steps as in 1000, a share of the run's time as in 2%, or never.
    /// `meshweft resume` goes on from the newest, and a signal has one written [default: 60s, and 2% at most]
    #[arg(long, value_name = "WHEN")]
    checkpoint_every: Option<Every>,
    /// Show the run while it goes on, in a page of the browser whose address is printed. It is for this machine alone unless ADDRESS
    /// says otherwise. The run waits where the page asks it to; its results are the same
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = watch::HERE, value_parser = watch::address)]
    view: Option<SocketAddr>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
    /// Those of them that were given, as words.
    #[arg(skip)]
    words: Vec<String>,
}

/// Arguments that are no part of what a run is.
pub(super) const NOT_NOTED: [&str; 7] = ["case", "out", "from", "trace", "view", "json", "quiet"];

const EXAMPLES: &str = "\
Examples:
  meshweft run EXAMPLE
  meshweft run EXAMPLE --mesh disk:200 --order color --steps 400 --out out/disk
  meshweft run EXAMPLE --mesh part.msh --threads 8 --verify
  meshweft run EXAMPLE --mesh box:128 --hosts host-b,me@host-c     on two hosts, over ssh
  srun meshweft run EXAMPLE --mesh box:128                         on all tasks of a step of Slurm
  meshweft run case.toml --steps 1000
  meshweft run EXAMPLE --mesh ball:40 --section half --camera front  a solid, cut open toward the camera
  meshweft run EXAMPLE --color none --film-size 320x240            a small film, in one color
  meshweft run EXAMPLE --view                                      in a page of the browser, while it goes on
  meshweft run EXAMPLE --from out/EXAMPLE/EXAMPLE_000100.vtu       from a state of an earlier run on the same mesh
  meshweft run EXAMPLE --until 60 --every 10                       a minute, with a state every ten steps
  meshweft run EXAMPLE --set dt=1e-4..1e-2:20:log                  a sweep of a parameter: a copy for each of 20 values
  meshweft run EXAMPLE --copies 1000 --vary dt=1e-4:1e-2:log       a thousand copies, each with a time step of its own
  meshweft resume out/EXAMPLE                                      goes on where it was stopped

A case file; `meshweft list` shows the settings of each example:
  example = \"EXAMPLE\"
  mesh = \"torus:192x96\"
  steps = 300
  [set]
  dt = 1e-3

In the folder: NAME.pvd opens the series of states in ParaView, NAME.csv has the measured quantities, NAME.svg
their curves, NAME.png the last state, NAME.gif the film. Ctrl-C, SIGTERM and SIGHUP finish the step, write a checkpoint and what else there is and exit with 130,
143 and 129; a second one ends at once.";

impl Arguments {
    /// Notes the words that they were read from.
    pub(super) fn are(&mut self, words: Vec<String>) {
        self.words = words;
        #[cfg(feature = "cluster")]
        if self.checkpoint_every != Some(Every::Never)
            && let Ok(folder) = self.folder()
        {
            self.problem.launch.keep_key(&folder);
        }
    }

    /// What is wanted of copies.
    fn wanted(&self) -> Result<Wanted<'_>> {
        Ok(Wanted {
            problem: &self.problem,
            copies: &self.copies,
            pictures: &self.pictures,
            folder: self.folder()?,
            steps: self.steps,
            until: self.until,
            stop: self.stop.as_ref(),
            every: self.every,
            verify: self.verify,
            json: self.json,
            quiet: self.quiet,
        })
    }

    /// The folder for what the run writes.
    ///
    /// # Errors
    /// None is stated, and no example is named.
    fn folder(&self) -> Result<PathBuf> {
        match &self.out {
            Some(folder) => Ok(folder.clone()),
            None => Ok(["out", self.problem.named()?].iter().collect()),
        }
    }
}

/// Runs the example.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    go(arguments, programs, None, console)
}

/// Goes on with a run; the arguments are those of it.
pub(super) fn resume(
    arguments: &Arguments,
    programs: &Programs,
    resumed: Resumed,
    console: &mut Console,
) -> Result<Outcome> {
    go(arguments, programs, Some(resumed), console)
}

fn go(arguments: &Arguments, programs: &Programs, resumed: Option<Resumed>, console: &mut Console) -> Result<Outcome> {
    if arguments.copies.is_asked_for() {
        if arguments.from.is_some() {
            bail!("--from is of one run: leave it out, or --copies, --vary and ranges of --set");
        }
        return ensemble::run(&arguments.wanted()?, programs, console);
    }
    #[cfg(feature = "cluster")]
    if let Some(worker) = arguments.problem.worker()? {
        return super::worker::as_rank(worker.folder(arguments.folder()?), programs, console);
    }
    // Before workers come, which would have come in vain; and before anything of another run is touched.
    let folder = arguments.folder()?;
    output::check(&folder)?;
    let mut plan = arguments.problem.plan(programs, arguments.verify)?;
    plan.options.timeline = arguments.trace.is_some();
    arguments.trace.as_deref().map_or(Ok(()), |path| check_trace(path, &plan))?;
    #[cfg(feature = "cluster")]
    arguments.problem.launch.forget_key(&folder);
    let (mut run, setup) = start(arguments, &mut plan, console)?;
    if let Some(Resumed { from, .. }) = &resumed {
        run.resume(from).with_context(|| format!("cannot go on with the run in {}", folder.display()))?;
        let (step, time) = (from.steps(), text::quantity(from.time(), "s"));
        writeln!(console.err, "going on from step {step}, t = {time}")?;
    } else if let Some(path) = &arguments.from {
        let said = state::take(&mut run, path).with_context(|| format!("cannot start from {}", path.display()))?;
        writeln!(console.err, "{said}")?;
    }
    let steps = arguments.steps.unwrap_or(plan.entry.info.steps as u64);
    let goal = Goal::new(steps, arguments.until, arguments.stop.clone(), &mut run)?;
    let about = format!("order {}, {}", run.order(), run.precision());
    let before = resumed.as_ref().map(|resumed| resumed.note.changes.clone());
    let changes = Changes::new(plan.entry.info.settings, plan.settings.clone(), before);
    let mut watch = Watch::start(arguments.view, about, changes, console)?;
    let ran = to_the_end(arguments, &plan, &mut run, &goal, resumed.as_ref(), &mut watch, console);
    let (end, checks) = ran.inspect_err(|error| watch.fail(error))?;
    if end.stopped_by.is_none() {
        verify::print(plan.entry.info.name, &checks, if arguments.json { console.err } else { console.out })?;
    }
    let report = Report::new(&plan, &run, &setup, &goal, &end, &watch.changes)?;
    let printed = match arguments.json {
        true => report.print_json(console),
        false => report.print(&end, &goal, watch.changes.told(), console),
    };
    for warning in &report.warnings {
        writeln!(console.err, "warning: {warning}")?;
    }
    if end.stopped_by.is_none() {
        watch.stay(plan.entry.info.name, &mut run, console)?;
    }
    match end.stopped_by {
        Some(signal) => Ok(Outcome::Stopped(signal)),
        None if !checks.iter().all(Check::passes) => printed.map(|()| Outcome::Wrong),
        None => printed.map(|()| Outcome::Done),
    }
}

/// Builds the run, and says what was chosen and noticed.
fn start(arguments: &Arguments, plan: &mut Plan, console: &mut Console) -> Result<(Run, Setup)> {
    if let Some(note) = &plan.note {
        writeln!(console.err, "backend: {note}")?;
    }
    let (run, setup) = match arguments.auto {
        false => plan::start(plan, console.err)?,
        true => {
            let (run, setup, why) = plan::choose(plan, console.err)?;
            writeln!(console.err, "{why}")?;
            (run, setup)
        }
    };
    if let Some(note) = run.note() {
        writeln!(console.err, "{}: {note}", plan.entry.info.name)?;
    }
    if let Some(note) = meshes::unit_note(&plan.mesh, run.mesh()) {
        writeln!(console.err, "note: {note}")?;
    }
    if let Some(note) = state::note(&plan.mesh, &run).filter(|_| arguments.from.is_none()) {
        writeln!(console.err, "note: {note}")?;
    }
    #[cfg(feature = "cluster")]
    if let Some(note) = plan::slower(plan, &run) {
        writeln!(console.err, "{note}")?;
    }
    Ok((run, setup))
}

/// The word for all fields.
const ALL: &str = "all";

/// What the run is to leave.
fn config(arguments: &Arguments, plan: &Plan, goal: &Goal, run: &Run, resumed: Option<&Resumed>) -> Result<Config> {
    let mut config = Config {
        resumable: arguments.checkpoint_every != Some(Every::Never),
        pictures: !arguments.pictures.no_pictures,
        style: arguments.pictures.style(),
        pieces: arguments.pieces,
        threads: arguments.problem.threads(),
        ..Config::new(&arguments.folder()?, plan.entry.info.name, goal.steps, run)
    };
    match arguments.fields.as_deref() {
        Some([word]) if word == ALL => config.fields = None,
        Some(names) => config.fields = Some(names.to_vec()),
        None if arguments.pieces => config.fields = None,
        None => {}
    }
    let fields = run.fields();
    let known: Vec<&str> = fields.iter().map(|part| &*part.name).collect();
    if let Some(name) = config.fields.iter().flatten().find(|name| !known.contains(&name.as_str())) {
        bail!("--fields: {}", unknown("field", name, &known));
    }
    if let Some(every) = arguments.every {
        (config.every, config.state_every) = (every, every);
    } else if let Some(Resumed { note, .. }) = resumed {
        // However long the run is now to be.
        (config.every, config.state_every) = (note.left.every.max(1), note.left.state_every.max(1));
    }
    Ok(config)
}

/// The arguments that are noted in checkpoints: wherever the command that goes on is started, meshes and key are found. `known`: the
/// settings that there are.
fn noted(words: &[String], known: &[Setting]) -> Vec<String> {
    let is_mesh = |name: &str| known.iter().any(|known| known.name == name && matches!(known.kind, Kind::Mesh));
    let whole = |word: &String| {
        let (_, path) = match word.split_once('=')? {
            ("--set", set) => set.split_once('=').filter(|(name, _)| is_mesh(name.trim()))?,
            of => Some(of).filter(|(option, _)| ["--mesh", "--key"].contains(option))?,
        };
        let begin = &word[..word.len() - path.len()];
        let path = Path::new(path);
        let path = path.is_file().then(|| path.canonicalize().ok()).flatten()?;
        Some(format!("{begin}{}", path.to_str()?))
    };
    words.iter().map(|word| whole(word).unwrap_or_else(|| word.clone())).collect()
}

/// Takes all steps, and writes and draws what there is to keep of them. Returns what it came to, and how the last state was judged.
fn to_the_end(
    arguments: &Arguments,
    plan: &Plan,
    run: &mut Run,
    goal: &Goal,
    resumed: Option<&Resumed>,
    watch: &mut Watch,
    console: &mut Console,
) -> Result<(End, Vec<Check>)> {
    let config = config(arguments, plan, goal, run, resumed)?;
    let (every, folder, name) = (config.every, config.folder.clone(), config.name);
    let mut output = match resumed {
        None => Output::create(config, run)?,
        Some(Resumed { note, .. }) => Output::resume(config, run, &note.left)?,
    };
    console.signals.make_stoppable();
    let mut progress = Progress::new(run.steps()..goal.steps, every, "step", arguments.quiet, console);
    let first = match resumed {
        None => output.save_now(run)?,
        Some(Resumed { note, .. }) => {
            let mut first = run.metrics()?;
            first.iter_mut().zip(&note.first).for_each(|(metric, &value)| metric.value = value);
            first
        }
    };
    let words = noted(&arguments.words, plan.entry.info.settings);
    let mut checkpoints = Checkpoints::new(&folder, arguments.checkpoint_every, &words, run, &first, resumed);
    let met = resumed.is_some() && goal.is_met(run)?;
    if met || (resumed.is_some() && goal.is_reached(run)) {
        writeln!(console.err, "that is where it was to go: no step is taken; --steps or --until takes it further")?;
    }
    let (wall, met) =
        match advance(run, &mut output, (goal, met), &mut checkpoints, &mut progress, (name, watch), console) {
            Ok(advanced) => advanced,
            Err(error) => {
                progress.finish();
                // The film of the states before shows how it came to that. The error is what to tell of, whatever becomes of the film.
                let _ = draw(output, run, arguments.quiet, console);
                return Err(match checkpoints.way_on() {
                    Some(way_on) => error.context(way_on),
                    None => error,
                });
            }
        };
    let stopped_by = console.signals.first().filter(|_| !met && !goal.is_reached(run));
    // Before the last state, which is one of the series only if this is the end.
    checkpoints.finish(stopped_by.is_some(), run, &mut output, console)?;
    let last = output.save_now(run)?;
    if let Some(path) = &arguments.trace {
        write_timeline(run, path, console)?;
    }
    let verified = run.verdict()?;
    let checks = if arguments.verify { run.judge()? } else { Vec::new() };
    progress.finish();
    if let Some(signal) = stopped_by {
        let (steps, folder) = (run.steps(), output.folder().display());
        let way_on = checkpoints.way_on().map(|way_on| format!("; {way_on}")).unwrap_or_default();
        // After SIGHUP there may be no terminal any more.
        let _ =
            writeln!(console.err, "{signal}: stopped after step {steps}; the states so far are in {folder}{way_on}");
    }
    let files = draw(output, run, arguments.quiet, console)?;
    // After all else, which is not to wait for it.
    let expected = plan::expected(plan, run, if stopped_by.is_some() { Duration::ZERO } else { wall });
    let reached = goal.to_text(met, &last, run);
    let (resumed_from, checkpoints) = (resumed.map(|resumed| resumed.from.steps()), checkpoints.told());
    let pieces = arguments.pieces;
    let end = End {
        wall,
        expected,
        first,
        last,
        verified,
        met,
        reached,
        stopped_by,
        pieces,
        files,
        resumed_from,
        checkpoints,
    };
    Ok((end, checks))
}

/// Takes the steps of a run, until its goal is reached or a signal comes. `met`: whether the condition holds already that may end it.
/// Returns the time that they took, and whether it holds now.
fn advance(
    run: &mut Run,
    output: &mut Output,
    (goal, mut met): (&Goal, bool),
    checkpoints: &mut Checkpoints,
    progress: &mut Progress,
    (name, watch): (&str, &mut Watch),
    console: &mut Console,
) -> Result<(Duration, bool)> {
    let mut wall = Duration::ZERO;
    while !met && !goal.is_reached(run) && console.signals.count() == 0 {
        progress.expect(goal.expected_steps(run));
        progress.reach(run.steps(), output.spent() + checkpoints.spent, || hosts::slowest(&run.hosts()), console);
        let may_step = watch.may_step(name, run, console)?;
        if watch.changes.take_fresh() {
            output.note_changes(watch.changes.to_csv())?;
            checkpoints.changes = watch.changes.all.clone();
        }
        if !may_step {
            continue;
        }
        let clock = Instant::now();
        let stepped = step(run, output, goal);
        wall += clock.elapsed();
        if stepped.is_err() {
            // The states before are whole, whatever became of this one, which is what to tell of.
            let _ = output.catch_up(run);
        }
        met = stepped.with_context(|| format!("stopped; the states before are in {}", output.folder().display()))?;
        output.save(run)?;
        if !met && !goal.is_reached(run) {
            checkpoints.look(run, output, console)?;
        }
    }
    let clock = Instant::now();
    if run.is_pending() {
        output.catch_up(run)?;
    }
    run.wait()?;
    wall += clock.elapsed();
    watch.end(name, run)?;
    Ok((wall, met))
}

/// Writes what is left, and draws the pictures.
fn draw(output: Output, run: &Run, quiet: bool, console: &mut Console) -> Result<Files> {
    let mut progress = Progress::new(0..output.pictures() as u64, u64::MAX, "picture", quiet, console);
    let (mut drawn, signals) = (0, console.signals.count());
    let files = output.finish(run, &mut || {
        drawn += 1;
        progress.reach(drawn, Duration::ZERO, String::new, console);
        console.signals.count() == signals
    })?;
    progress.finish();
    Ok(files)
}

/// Takes a step, and waits for it if it is to be saved. What is left to write of the last one that was is written while steps are under
/// way: it belongs to their time. Returns whether the condition holds that may end the run.
fn step(run: &mut Run, output: &mut Output, goal: &Goal) -> Result<bool> {
    goal.step(run)?;
    if output.is_due(run.steps()) || goal.is_judged() {
        if run.is_pending() {
            output.catch_up(run)?;
        }
        run.wait()?;
    }
    goal.is_met(run)
}

/// Finds out whether a timeline can be written there.
///
/// # Errors
/// A backend without threads to show; a folder that cannot be written to.
fn check_trace(path: &Path, plan: &Plan) -> Result<()> {
    if matches!(plan.options.backend, Backend::Serial | Backend::Gpu { .. }) {
        bail!("--trace shows what threads do: use --backend cpu");
    }
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    io::probe(folder).with_context(|| format!("cannot write the timeline to {}", path.display()))
}

/// Writes what threads have done to a file, whole or not at all.
fn write_timeline(run: &mut Run, path: &Path, console: &mut Console) -> Result<()> {
    let mut left_out = Ok(0);
    let written = io::replace(path, |out| {
        left_out = run.write_timeline(out);
        left_out.as_ref().map(|_| ()).map_err(|error| std::io::Error::other(error.to_string()))
    });
    let cannot = || format!("cannot write the timeline to {}", path.display());
    let left_out = left_out.with_context(cannot)?;
    written.with_context(cannot)?;
    if left_out > 0 {
        let events = text::counted(left_out as usize, "event", "events");
        writeln!(console.err, "{}: {events} left out, the last of the run: take fewer --steps", path.display())?;
    }
    Ok(())
}
