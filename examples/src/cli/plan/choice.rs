//! `meshweft run --auto`: where updates run is chosen by the model.

use super::{Cache, Row, costs_of, gpus, on_threads};
use crate::Run;
use crate::cli::options::{Plan, Setup};
use crate::cli::text;
use anyhow::{Result, bail};
use meshweft::Backend;
use std::io::Write;

/// Starts a run where the model expects it to be quickest, and says why in a line. The order stays as it is: another one is another
/// result.
///
/// # Errors
/// A plan that says itself where updates run; otherwise as [`Plan::start`] and for want of memory or threads of a trial.
pub(in crate::cli) fn start(plan: &mut Plan, err: &mut dyn Write) -> Result<(Box<dyn Run>, Setup, String)> {
    let Backend::Cpu { threads: asked } = plan.options.backend else {
        bail!("--auto chooses where updates run: leave out --backend, --hosts, --processes and --workers");
    };
    let (run, setup) = plan.start(err)?;
    let threads = run.threads();
    let order = run.schedule().order();
    let mut cache = Cache::open(std::thread::available_parallelism().map_or(1, usize::from), false);
    let machine = cache.machine()?;
    let costs = costs_of(&mut cache, plan, run.mesh(), order, &machine)?;
    let mut rows = on_threads(run.as_ref(), threads, (&machine, &costs))?;
    if asked == 0 {
        rows.extend(gpus::alone(&mut cache, plan, run.as_ref(), order, &gpus::gpus(plan))?);
    }
    cache.save();
    rows.sort_by(|a, b| a.prediction.round_s().total_cmp(&b.prediction.round_s()));
    let ns = |row: &Row| 1e9 * row.prediction.round_s() / run.mesh().points().len().max(1) as f64;
    let best = &rows[0];
    let others = rows[1..].iter().map(|row| format!("{:.2} on {}", ns(row), row.place()));
    let others = others.take(2).collect::<Vec<_>>().join(", ");
    let why = format!(
        "auto: {}, {:.2} ns an update predicted, limited by {}{}",
        best.place(),
        ns(best),
        best.prediction.limit().name(),
        if others.is_empty() { String::new() } else { format!("; {others}") }
    );
    let backend = match &best.gpu {
        Some(gpu) => Backend::Gpu { adapter: gpu.number },
        None if best.place.threads == threads => return Ok((run, setup, why)),
        None => Backend::Cpu { threads: best.place.threads },
    };
    // The same order on another backend: its blocks keep their size.
    plan.options.order = order;
    plan.options.backend = backend;
    drop(run);
    let (run, setup) = plan.start(err)?;
    Ok((run, setup, why))
}

impl Row {
    /// Where it runs, in words.
    pub(super) fn place(&self) -> String {
        let threads = text::counted(self.place.threads, "thread", "threads");
        match (&self.gpu, self.share) {
            (Some(gpu), Some(share)) => format!("{threads}, {:.0} % on {gpu}", 100.0 * share),
            (Some(gpu), None) => gpu.to_string(),
            (None, _) if self.place.hosts == 1 => threads,
            (None, _) => {
                let packed = self.is_packed.map_or("", |is_packed| if is_packed { ", packed" } else { ", plain" });
                format!("{} hosts × {threads}{packed}", self.place.hosts)
            }
        }
    }
}
