//! What an ensemble came to.

use super::{Done, Scene};
use crate::cli::console::Console;
use crate::cli::report::as_value;
use crate::cli::text;
use anyhow::Result;
use meshweft::Metric;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// What all copies came to.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) copies: usize,
    pub(super) steps: u64,
    pub(super) updates: f64,
    /// Seconds of all threads.
    pub(super) built_s: f64,
    pub(super) stepped_s: f64,
    /// Copies that did not come to their end, and that failed a check.
    pub(super) diverged: usize,
    pub(super) failed: usize,
    /// By name: the unit, the least, the sum and the greatest of those that did, and how many these are.
    pub(super) metrics: Vec<(Metric, [f64; 3], usize)>,
}

impl Sum {
    /// Adds a copy.
    pub(super) fn add(&mut self, done: &Done) {
        let ended = &done.ended;
        self.copies += 1;
        self.steps += ended.steps;
        self.updates += done.updates;
        self.built_s += done.built_s;
        self.stepped_s += ended.stepped_s;
        self.failed += usize::from(done.failed);
        self.diverged += usize::from(ended.error.is_some() && !done.failed);
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
pub(super) struct Report<'a> {
    pub(super) scene: &'a Scene<'a>,
    pub(super) sum: &'a Sum,
    pub(super) wall: Duration,
    pub(super) drawing: Duration,
    pub(super) files: Vec<PathBuf>,
    pub(super) stopped_by: Option<String>,
}

impl Report<'_> {
    /// Least, mean and greatest of a measured quantity; none where no copy came to its end.
    fn of_metric((_, [least, sum, most], count): &(Metric, [f64; 3], usize)) -> Option<[f64; 3]> {
        (*count > 0).then(|| [*least, sum / *count as f64, *most])
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = self.scene.wanted.problem.threads();
        if wanted == 0 { cores() } else { wanted }.min(self.scene.own.len())
    }

    /// Settings that are the same in all copies.
    fn fixed(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Scene { plan, variation, .. } = self.scene;
        plan.settings.iter().filter(|(name, _)| !variation.names().any(|varied| varied == *name))
    }

    /// Prints one object.
    pub(super) fn print_json(&self, console: &mut Console) -> Result<()> {
        let Report { scene: Scene { plan, variation, vertices, .. }, sum, wall, drawing, files, stopped_by } = self;
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
            "of_copies": self.scene.own.len(),
            "first_copy": self.scene.own.start,
            "varied": variation.names().collect::<Vec<_>>(),
            "settings": self.fixed().map(|(name, value)| (name.to_string(), as_value(&value))).collect::<Map<String, Value>>(),
            "order": plan.options.order.resolved(plan.options.backend.grain(*vertices)).to_string(),
            "backend": plan.backend(),
            "threads": self.threads(),
            "precision": plan.precision(),
            "seed": plan.seed,
            "steps": sum.steps,
            "wall_s": wall_s,
            "built_s": sum.built_s,
            "stepped_s": sum.stepped_s,
            "drawing_s": drawing.as_secs_f64(),
            "updates_per_s": if sum.updates > 0.0 { sum.updates / wall_s } else { 0.0 },
            "diverged": sum.diverged,
            "failed": sum.failed,
            "metrics": metrics.collect::<Map<String, Value>>(),
            "stopped_by": stopped_by,
            "files": files,
        });
        Ok(writeln!(console.out, "{report}")?)
    }

    /// Prints tables.
    pub(super) fn print(&self, console: &mut Console) -> Result<()> {
        let Report { scene: Scene { plan, variation, vertices, .. }, sum, wall, drawing, files, stopped_by } = self;
        let of = match stopped_by {
            Some(_) => format!(" of {}: stopped", text::count(self.scene.own.len())),
            None => String::new(),
        };
        let varied = match variation.names().collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => String::new(),
            names => format!(", by {names}"),
        };
        let order = plan.options.order.resolved(plan.options.backend.grain(*vertices));
        let settings: Vec<String> =
            self.fixed().map(|(name, value)| format!("{name}={}", value.parse().map_or(value, text::number))).collect();
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
        if files.len() > 1 {
            rows.push(("output", format!("{} for pictures after it", text::seconds(drawing.as_secs_f64()))));
        }
        if sum.diverged > 0 {
            rows.push(("diverged", format!("{}: see the column error", text::counted(sum.diverged, "copy", "copies"))));
        }
        if self.scene.wanted.verify {
            let equal = text::counted(sum.copies - sum.diverged, "copy", "copies");
            let verified = format!("{equal} equal the serial oracle bit for bit; {} failed a check", sum.failed);
            rows.push(("verified", verified));
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
        if !files.is_empty() {
            writeln!(console.out, "\nwrote {files}")?;
        }
        Ok(())
    }
}
