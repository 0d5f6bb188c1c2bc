//! What a run tells when it is over: a table, or one object.

use super::changes::{Change, Changes};
use super::console::Console;
use super::goal::Goal;
use super::hosts::{self, SpeedUp};
use super::loops;
use super::options::Plan;
use super::plan::{Expected, Setup};
use super::signals::Signal;
use super::text;
use crate::Run;
use crate::output::{Files, Trouble};
use anyhow::{Context, Result};
use meshweft::{Iterations, Metric};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// A set-up that takes so many seconds is told of.
const SLOW_SETUP_S: f64 = 1.0;

/// What a run came to.
pub(super) struct End {
    /// Time of the steps alone.
    pub(super) wall: Duration,
    /// What it should have been, or why that cannot be said.
    pub(super) expected: Result<Expected, String>,
    /// The measured quantities before the first step.
    pub(super) first: Vec<Metric>,
    /// The same after the last one.
    pub(super) last: Vec<Metric>,
    pub(super) verified: Option<String>,
    /// Whether the condition that may end it held.
    pub(super) met: bool,
    /// What was reached, if that was more than some steps.
    pub(super) reached: Option<String>,
    /// What ended it before its time.
    pub(super) stopped_by: Option<Signal>,
    /// Whether each host has written its own piece of the state.
    pub(super) pieces: bool,
    pub(super) files: Files,
    /// The step that it went on from, and what was written to go on from it.
    pub(super) resumed_from: Option<u64>,
    pub(super) checkpoints: Option<String>,
}

/// The facts of a finished run: the object of `--json`, and the source of the table.
#[derive(Serialize)]
pub(super) struct Report {
    example: &'static str,
    mesh: String,
    vertices: usize,
    cells: usize,
    directed_edges: usize,
    /// The whole identity of the result.
    order: String,
    tasks: usize,
    backend: &'static str,
    adapter: Option<String>,
    threads: usize,
    /// How often threads were held up because other programs had the cores.
    stalls: u64,
    /// Of a run on several: what each has done, and how many threads' worth of updates went on at once.
    hosts: Vec<Value>,
    speed_up: Option<SpeedUp>,
    precision: &'static str,
    seed: u64,
    /// At the end of it, and how they came to be that while it went on.
    settings: Map<String, Value>,
    changes: Vec<Change>,
    steps: u64,
    rounds: u64,
    /// Of each loop of the steps.
    loops: Vec<Value>,
    #[serde(skip)]
    iterations: Vec<(&'static str, Iterations)>,
    time_s: f64,
    /// Whether that is a number of steps.
    #[serde(skip)]
    is_steady: bool,
    until_s: Option<f64>,
    stop: Option<Value>,
    wall_s: f64,
    /// What the model says, for as many rounds, and what it takes for the limit; or why it says nothing.
    predicted_s: Option<f64>,
    limit: Option<&'static str>,
    not_predicted: Option<String>,
    updates_per_s: f64,
    setup_s: Map<String, Value>,
    /// Of stars that change: finding their elements, and getting the engine ready for them.
    finding_s: f64,
    repair_s: f64,
    saving_s: f64,
    drawing_s: f64,
    metrics: Map<String, Value>,
    /// None where no host has the whole state.
    digest: Option<String>,
    verified: Option<String>,
    interrupted: bool,
    stopped_by: Option<String>,
    /// The step of the checkpoint that it went on from.
    resumed_from: Option<u64>,
    state_every: u64,
    files: Vec<PathBuf>,
    /// What is not as it should be, and what to do about it.
    pub(super) warnings: Vec<String>,
}

impl Report {
    pub(super) fn new(
        plan: &Plan,
        run: &Run,
        setup: &Setup,
        goal: &Goal,
        end: &End,
        changes: &Changes,
    ) -> Result<Report> {
        let (vertices, wall_s) = (run.mesh().points().len(), end.wall.as_secs_f64());
        let updates = run.rounds() as f64 * vertices as f64;
        let [finding_s, repair_s] = run.changing_s();
        let is_scattered = end.pieces && !run.hosts().is_empty();
        let metric = |(a, b): (&Metric, &Metric)| {
            (b.name.to_string(), json!({ "unit": b.unit, "first": a.value, "value": b.value }))
        };
        Ok(Report {
            example: plan.entry.info.name,
            mesh: plan.mesh.to_string_lossy().into_owned(),
            vertices,
            cells: run.mesh().cells().len(),
            directed_edges: run.directed_edges(),
            order: run.schedule().order().to_string(),
            tasks: run.schedule().graph().len(),
            backend: plan.backend(),
            adapter: run.adapter().map(|adapter| adapter.name),
            threads: run.threads(),
            stalls: run.stalls(),
            hosts: run.hosts().iter().map(|host| hosts::done(host, run.rounds())).collect(),
            speed_up: SpeedUp::of(&run.hosts()),
            precision: plan.precision(),
            seed: plan.seed,
            settings: changes.settings.iter().map(|(name, value)| (name.to_string(), as_value(&value))).collect(),
            changes: changes.all.clone(),
            steps: run.steps(),
            rounds: run.rounds(),
            loops: run.loops().iter().map(loops::to_json).collect(),
            iterations: run.loops(),
            time_s: run.time(),
            is_steady: run.look().is_steady,
            until_s: goal.until,
            stop: goal.to_json(end.met, &end.last),
            wall_s,
            predicted_s: end.expected.as_ref().ok().map(|expected| expected.round_s * run.rounds() as f64),
            limit: end.expected.as_ref().ok().map(|expected| expected.limit.name()),
            not_predicted: end.expected.as_ref().err().cloned(),
            updates_per_s: if updates > 0.0 { updates / wall_s } else { 0.0 },
            setup_s: setup.iter().map(|(stage, s)| (stage.clone(), (*s).into())).collect(),
            finding_s,
            repair_s,
            saving_s: end.files.saving_s,
            drawing_s: end.files.drawing_s,
            metrics: end.first.iter().zip(&end.last).map(metric).collect(),
            digest: if is_scattered { None } else { Some(run.digest()?) },
            verified: end.verified.clone(),
            interrupted: end.stopped_by.is_some(),
            stopped_by: end.stopped_by.map(|signal| signal.to_string()),
            resumed_from: end.resumed_from,
            state_every: end.files.state_every,
            files: end.files.paths.clone(),
            warnings: warnings(&run.loops(), &end.files.troubles),
        })
    }

    pub(super) fn print_json(&self, console: &mut Console) -> Result<()> {
        let text = serde_json::to_string(self).context("cannot print the report")?;
        Ok(writeln!(console.out, "{text}")?)
    }

    pub(super) fn print(&self, end: &End, goal: &Goal, changed: Option<String>, console: &mut Console) -> Result<()> {
        let out = &mut console.out;
        let mut rows = self.rows(end, goal);
        rows.extend(changed.map(|changed| ("changed", changed)));
        text::pairs(out, &rows)?;
        hosts::print(&self.hosts, out)?;
        self.speed_up.iter().try_for_each(|speed_up| speed_up.print(out))?;
        let mut rows = vec![["", "first", "last", "unit"].map(str::to_string).to_vec()];
        for (a, b) in end.first.iter().zip(&end.last) {
            rows.push(vec![b.name.to_string(), text::number(a.value), text::number(b.value), b.unit.to_string()]);
        }
        writeln!(out)?;
        text::table(out, &rows)?;
        writeln!(out)?;
        self.print_files(end, out)?;
        if let Some(line) = &end.reached {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// What was run, how long it took, and whether it was right: a name and a value each.
    fn rows(&self, end: &End, goal: &Goal) -> Vec<(&'static str, String)> {
        let settings: Vec<_> = self.settings.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
        let setup_s: f64 = self.setup_s.values().filter_map(Value::as_f64).sum();
        let stages =
            self.setup_s.iter().map(|(stage, s)| format!("{stage} {}", text::seconds(s.as_f64().unwrap_or(0.0))));
        let stages = stages.collect::<Vec<_>>().join(", ");
        let tasks = text::counted(self.tasks, "task", "tasks");
        let threads = text::counted(self.threads, "thread", "threads");
        let resumed = self.resumed_from.map(|step| format!(", from step {step} on")).unwrap_or_default();
        let stopped = if self.interrupted { format!(" of {}: stopped", goal.steps) } else { String::new() };
        let share = 100.0 * self.saving_s / (self.wall_s + self.saving_s).max(f64::MIN_POSITIVE);
        let [vertices, cells, edges] = [self.vertices, self.cells, self.directed_edges].map(text::count);
        let [wall, total, saving, drawing] = [self.wall_s, setup_s, self.saving_s, self.drawing_s].map(text::seconds);
        let (steps, time) = (text::count(self.steps as usize), text::quantity(self.time_s, "s"));
        let to = if self.is_steady { String::new() } else { format!(", to t = {time}") };
        let taken = self.steps - self.resumed_from.unwrap_or(0);
        let beside = |expected: &Expected| expected.beside(self.rounds, self.wall_s);
        let mut rows = vec![
            ("example", format!("{}  {}", self.example, settings.join(" "))),
            ("mesh", format!("{}: {vertices} vertices, {cells} cells, {edges} directed edges", self.mesh)),
            ("order", format!("{}, {tasks}", self.order)),
            ("backend", format!("{}, {}, {}", self.backend, self.adapter.as_ref().unwrap_or(&threads), self.precision)),
            ("steps", format!("{steps}{stopped}{resumed}{to}")),
            ("wall", format!("{wall} for the steps, {}", text::rate(self.updates_per_s, "updates"))),
        ];
        rows.extend(
            self.iterations.iter().filter_map(|(name, found)| Some(("until", loops::told(name, found, taken)?))),
        );
        // What says something; --json has all of it.
        rows.extend(end.expected.as_ref().ok().map(|expected| ("predicted", beside(expected))));
        if setup_s >= SLOW_SETUP_S {
            rows.push(("set-up", format!("{total}: {stages}")));
        }
        rows.push((
            "output",
            format!("{saving} while running ({share:.0} % of that time), {drawing} for pictures after it"),
        ));
        if self.stalls > 0 {
            let times = text::counted(self.stalls as usize, "time", "times");
            rows.push(("held up", format!("{times}: other programs had the cores; some steps ran on one thread")));
        }
        rows.extend(end.checkpoints.iter().map(|told| ("checkpoints", told.clone())));
        rows.extend(self.verified.iter().map(|sentence| ("verified", sentence.clone())));
        rows.extend(self.digest.iter().map(|digest| ("digest", digest.clone())));
        rows
    }

    /// Says which files there are.
    fn print_files(&self, end: &End, out: &mut dyn Write) -> Result<()> {
        let ends = |path: &&PathBuf, wanted: &str| path.extension().is_some_and(|end| end == wanted);
        let count = |wanted| self.files.iter().filter(|path| ends(path, wanted)).count();
        let others = self.files.iter().filter(|path| !ends(path, "vtu") && !ends(path, "pvtu"));
        let others = others.map(|path| path.display().to_string()).collect::<Vec<_>>().join("  ");
        let kind = if end.pieces { "pvtu" } else { "vtu" };
        let states = match count(kind) {
            0 => String::new(),
            1 => format!("  and 1 state (.{kind})"),
            n => format!("  and {n} states (.{kind}), one every {} steps", self.state_every),
        };
        writeln!(out, "wrote {others}{states}")?;
        if let Some(film) = self.files.iter().find(|path| ends(path, "gif")) {
            let even = "crop=trunc(iw/2)*2:trunc(ih/2)*2"; // what players take has no odd rows or columns
            let [from, to] = [film.clone(), film.with_extension("mp4")].map(|path| text::quoted(&path));
            writeln!(out, "as an MP4: ffmpeg -i {from} -vf \"{even}\" -pix_fmt yuv420p -movflags +faststart {to}")?;
        }
        let elsewhere = self.files.iter().filter(|path| !path.exists()).count();
        if elsewhere > 0 {
            let pieces = text::counted(elsewhere, "piece (.vtu) is", "pieces (.vtu) are");
            writeln!(out, "{pieces} on the disks of other hosts: copy them beside the .pvtu")?;
        }
        Ok(())
    }
}

/// What is not as it should be.
fn warnings(found: &[(&'static str, Iterations)], troubles: &[Trouble]) -> Vec<String> {
    let mut all: Vec<String> = found.iter().filter_map(|(name, found)| loops::advice(name, found)).collect();
    let told = |Metric { unit, value, .. }: &Metric| text::quantity(*value, unit);
    let (mut growing, mut advice) = (Vec::new(), Vec::new());
    for trouble in troubles {
        match trouble {
            Trouble::Grows(energy) => growing.push(format!("{} to {}", energy.name, told(energy))),
            Trouble::Stalls(residual) => advice.push(format!(
                "{} has stalled at {}: it fell no further in the last quarter of the run. If it must, take shorter steps, or a scheme of lower accuracy",
                residual.name,
                told(residual)
            )),
            Trouble::Unsolved(residual, share) => advice.push(format!(
                "{} is {}, {:.0} % of an edge: sweeps stop far from the solution, so that things look softer than they are. Take more rounds, or a \
                 smaller time step",
                residual.name,
                told(residual),
                100.0 * share
            )),
        }
    }
    if !growing.is_empty() {
        all.push(format!(
            "energy grows tenfold and more with each quarter of the run: {}. Unless something drives it, the steps are not stable: take a smaller \
             time step, or more rounds",
            growing.join("; ")
        ));
    }
    all.extend(advice);
    all
}

/// A setting as a number if it is one.
pub(super) fn as_value(text: &str) -> Value {
    text.parse::<f64>().map_or_else(|_| text.into(), Value::from)
}

/// The same as text, as the table has it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.as_f64().map(text::number).unwrap_or_default(), str::to_string)
}
