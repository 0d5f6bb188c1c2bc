//! How much of a mesh a GPU begins with beside the cores, where that is left open.

use super::cache::{Cache, name};
use super::gpus::{gpus, name_on};
use super::row::here;
use super::source::Source;
use super::trial;
use crate::cli::options::{Beside, Plan};
use anyhow::Result;
use meshweft::model::{Costs, GpuCosts, HybridCosts};
use meshweft::{Backend, Cluster};
use meshweft_mesh::Mesh;
use std::time::{Duration, Instant};

/// What a trial may take before its last part, which takes as long again: some drivers compile for a second.
const PATIENCE: Duration = Duration::from_secs(1);

/// A share, and how it was found.
pub(super) type Found = (f64, &'static str);

/// The share of a GPU that is expected to be busy as long as the cores with the rest: from what `meshweft plan` has measured, or by a
/// short trial of both. Nothing of a mesh so small that shares are corrected at once, of searches, or where a trial fails
/// or takes long.
pub(super) fn first_share(plan: &Plan, mesh: &Mesh, beside: Beside) -> Option<Found> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if beside.threads == 0 { cores } else { beside.threads };
    expected(&Cache::open(cores, false), plan, mesh, (beside.adapter, threads)).ok().flatten()
}

fn expected(cache: &Cache, plan: &Plan, mesh: &Mesh, (adapter, threads): (usize, usize)) -> Result<Option<Found>> {
    let vertices = mesh.points().len();
    let gpu = gpus(plan).into_iter().find(|gpu| gpu.number == adapter);
    let Some(gpu) = gpu.filter(|_| vertices > trial::VERTICES) else { return Ok(None) };
    let order = plan.options.order.resolved(plan.options.backend.grain(vertices));
    let cores = Backend::Cpu { threads };
    let times = |tried: usize| vertices as f64 / vertices.min(tried) as f64;
    let costs: Option<Costs> = cache.known(&name(plan, Source::Mesh(mesh), order));
    let hybrid: Option<HybridCosts> = cache.known(&name_on(&gpu, plan, Source::Mesh(mesh), order));
    if let (Some(machine), Some(costs), Some(hybrid)) = (cache.known_machine(), costs, hybrid) {
        let piece = trial::piece(mesh, 8 * trial::VERTICES);
        let work = trial::start(plan, &piece, order, cores)?.workload(threads, &[1.0])?;
        let cores_s = machine.predict(&costs, &work, here(threads)).round_s();
        return Ok(Some((hybrid.share(cores_s, &work, times(work.vertices)), "by the model")));
    }
    let clock = Instant::now();
    let (work, cores_s) = trial::tried(plan, mesh, order, trial::VERTICES, cores)?;
    let on_gpu = |vertices: usize| {
        let worker = Cluster::inside(1)?.on_gpus(adapter);
        trial::tried(plan, mesh, order, vertices, Backend::Cluster(worker))
    };
    let few = on_gpu(trial::FEW)?;
    if work.is_search || clock.elapsed() > PATIENCE {
        return Ok(None);
    }
    let many = on_gpu(trial::many(&gpu))?;
    // What bytes cost is a part of what was measured.
    let gpu = GpuCosts::of([(&few.0, few.1), (&many.0, many.1)], f64::INFINITY);
    let hybrid = HybridCosts { gpu, trip_s: 0.0, is_software: false };
    Ok(Some((hybrid.share(cores_s, &work, times(work.vertices)), "by a trial")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::programs::DIFFUSION;
    use crate::{Options, Precision};
    use meshweft::model::{Machine, Rate};
    use meshweft_mesh::generate::generate;

    fn plan(entry: &'static crate::Entry) -> Plan {
        let beside = Beside { adapter: 0, share: None, threads: 2 };
        let options = Options {
            order: "color".parse().unwrap(),
            backend: beside.backend(0.5).unwrap(),
            precision: Precision::F32,
            ..Options::default()
        };
        Plan { beside: Some(beside), ..Plan::new(entry, "sheet:200".into(), options) }
    }

    #[test]
    fn a_gpu_begins_with_what_the_model_says_if_that_is_known_and_else_with_what_a_trial_does() {
        if meshweft::conformance::gpu_or_skip().is_none() {
            return;
        }
        let plan = plan(DIFFUSION.first().unwrap());
        let mesh = generate("sheet:200", 1).unwrap();
        let order = plan.options.order.resolved(plan.options.backend.grain(mesh.points().len()));
        let gpu = gpus(&plan).remove(0);
        let found = |hybrid: Option<HybridCosts>, mesh: &Mesh| {
            let mut cache = Cache::at(None, 2, false);
            if let Some(hybrid) = hybrid {
                let rate = |threads| Rate { threads, bytes: 1e6, per_s: 1e15 };
                let reads = vec![rate(1), rate(2)];
                cache.set_machine(Machine { threads: 2, reads, ..Machine::default() });
                cache.note(
                    &name(&plan, Source::Mesh(mesh), order),
                    &Costs { read_s: 1e-9, update_s: 0.0, exposed: 0.0, task_s: 0.0, bytes: 1e6 },
                );
                cache.note(&name_on(&gpu, &plan, Source::Mesh(mesh), order), &hybrid);
            }
            expected(&cache, &plan, mesh, (0, 2)).unwrap()
        };
        let costs = |dispatches_s, read_s| {
            let gpu = GpuCosts { dispatches_s, read_s, copy_bytes_per_s: 1e15 };
            Some(HybridCosts { gpu, trip_s: 0.0, is_software: true })
        };
        // As quick as two threads of a nanosecond a read; for nothing; and one that takes a second to begin.
        let (share, why) = found(costs(0.0, 0.5e-9), &mesh).unwrap();
        assert!((0.45..0.55).contains(&share) && why == "by the model", "{share} {why}");
        assert_eq!(found(costs(0.0, 0.0), &mesh), Some((0.99, "by the model")));
        assert_eq!(found(costs(1.0, 0.0), &mesh), Some((0.01, "by the model")));
        // A driver that is slow to compile gets none.
        let tried = found(None, &mesh);
        assert!(tried.is_none_or(|(share, why)| (0.01..=0.99).contains(&share) && why == "by a trial"), "{tried:?}");
        assert_eq!(found(costs(0.0, 0.0), &generate("sheet:30", 1).unwrap()), None);
    }
}
