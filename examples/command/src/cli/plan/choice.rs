//! `meshweft run --auto`: where updates run is chosen by the model.

use super::cache::Cache;
use super::gpus::{Gpu, gpus};
use super::row::Row;
use super::rows;
use super::source::Source;
use super::start::{Setup, start};
use crate::Run;
#[cfg(feature = "cluster")]
use crate::cli::options::Beside;
use crate::cli::options::Plan;
use anyhow::{Result, bail};
use meshweft::Backend;
use meshweft::model::{Costs, Machine};
use std::io::Write;

/// Starts a run where the model expects it to be quickest, and says why in a line. The order stays as it is: another one is another
/// result.
///
/// # Errors
/// A plan that says itself where updates run; otherwise as [`start`] and for want of memory or threads of a trial.
pub(in crate::cli) fn choose(plan: &mut Plan, err: &mut dyn Write) -> Result<(Run, Setup, String)> {
    let Backend::Cpu { threads: asked } = plan.options.backend else {
        bail!("--auto chooses where updates run: leave out --backend, --hosts, --processes and --workers");
    };
    let (run, setup) = start(plan, err)?;
    let mut cache = Cache::open(std::thread::available_parallelism().map_or(1, usize::from), false);
    let gpus = if asked == 0 { gpus(plan) } else { Vec::new() };
    let mut rows = all(&mut cache, plan, &run, &gpus, err)?;
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
    if best.gpu.is_none() && best.place.threads == run.threads() {
        return Ok((run, setup, why));
    }
    // The same order on another backend: its blocks keep their size.
    plan.options.order = run.schedule().order();
    plan.options.backend = best.backend()?;
    // What a GPU has beside the cores is corrected while it runs.
    #[cfg(feature = "cluster")]
    if let (Some(gpu), Some(share)) = (&best.gpu, best.share) {
        let beside = Beside { adapter: gpu.number, share: None, threads: best.place.threads };
        (plan.beside, plan.options.backend) = (Some(beside), beside.backend(share)?);
    }
    drop(run);
    let (run, setup) = start(plan, err)?;
    Ok((run, setup, why))
}

/// All places on this machine: some of its cores, each of some GPUs, and each of them beside the cores. `run`: the one on cores. A GPU
/// on which a trial fails is no choice, and `err` is told why.
fn all(cache: &mut Cache, plan: &Plan, run: &Run, gpus: &[Gpu], err: &mut dyn Write) -> Result<Vec<Row>> {
    let machine = cache.machine()?;
    let costs = rows::costs_of(cache, plan, Source::Run(run), run.schedule().order(), &machine)?;
    let mut rows = rows::on_threads(run, run.threads(), (&machine, &costs))?;
    for gpu in gpus {
        let tried = on_gpu(cache, plan, run, (&machine, &costs), gpu);
        match tried {
            Ok(tried) => rows.extend(tried),
            Err(e) => writeln!(err, "auto: without {gpu}: {e:#}")?,
        }
    }
    Ok(rows)
}

/// A GPU alone and beside the cores.
fn on_gpu(cache: &mut Cache, plan: &Plan, run: &Run, on_cores: (&Machine, &Costs), gpu: &Gpu) -> Result<Vec<Row>> {
    let gpu = std::slice::from_ref(gpu);
    #[cfg_attr(not(feature = "cluster"), expect(unused_mut, reason = "nothing is beside the cores"))]
    let mut rows = rows::alone(cache, plan, (Source::Run(run), run), run.schedule().order(), gpu)?;
    #[cfg(feature = "cluster")]
    rows.extend(rows::beside(cache, plan, (Source::Run(run), run), on_cores, gpu)?);
    #[cfg(not(feature = "cluster"))]
    let _ = on_cores;
    Ok(rows)
}

#[cfg(all(test, feature = "cluster"))]
mod tests {
    use super::*;
    use crate::cli::programs::DIFFUSION;
    use crate::{Options, Precision};

    #[test]
    fn a_gpu_is_a_choice_alone_and_beside_the_cores_and_one_that_fails_is_none() {
        if meshweft::conformance::gpu_or_skip().is_none() {
            return;
        }
        let entry = DIFFUSION.first().unwrap();
        let (backend, order) = (Backend::Gpu { adapter: 0 }, "color".parse().unwrap());
        let options = Options { order, backend, precision: Precision::F32, ..Options::default() };
        let mut plan = Plan::new(entry, "sheet:40".into(), options);
        let mut found = gpus(&plan);
        plan.options.backend = Backend::Cpu { threads: 2 };
        let (run, _) = start(&plan, &mut std::io::sink()).unwrap();
        let missing =
            Gpu { number: 99, name: "a card that was pulled out".into(), key: "none".into(), ..found[0].clone() };
        found.truncate(1);
        found.push(missing);
        let (mut cache, mut err) = (Cache::at(None, 2, false), Vec::new());
        let rows = all(&mut cache, &plan, &run, &found, &mut err).unwrap();
        let places: Vec<_> =
            rows.iter().map(|row| (row.place.threads, row.gpu.is_some(), row.share.is_some())).collect();
        assert_eq!(places, [(1, false, false), (2, false, false), (1, true, false), (2, true, true)]);
        let err = String::from_utf8(err).unwrap();
        assert!(err.contains("auto: without a card that was pulled out"), "{err}");
        assert!(matches!(rows[3].backend().unwrap(), Backend::Cluster(_)));
    }
}
