//! Going on from checkpoints [C4]: with the bits of a run that was never stopped, wherever it goes on.

use crate::determinism::{BROKEN, CONJUGATE_GRADIENTS, Case, SOLVED, TORN, runs};
use meshweft::conformance::gpu_or_skip;
use meshweft::{Backend, Checkpoint, Cluster, Order, Simd};
use meshweft_command::{Options, Precision, Run};
use meshweft_mesh::generate::generate;
use meshweft_tests::{digest_after, start};
use std::path::Path;

/// Every program of every example, on a mesh and with settings of its own. Graphs have few steps.
const CASES: [Case; 21] = [
    ("heat", "torus:24x14", &[]),
    ("heat", "box:7", &[("method", "explicit")]),
    ("heat", "torus:22x14", CONJUGATE_GRADIENTS),
    ("heat", "box:6", &[("method", "chebyshev")]),
    ("shallow-water", "sheet:14x9", &[]),
    ("airfoil", "airfoil:24x12", &[("rounds", "2")]),
    ("poisson", "quads:9x8", SOLVED),
    ("elasticity", "bar:7x3x3", SOLVED),
    ("vibration", "bar:7x3x3", SOLVED),
    ("wave", "disk:10", &[]),
    ("spring", "random:600", &[]),
    ("cloth", "sheet:18x22", &[("wind", "3")]),
    ("cloth", "sheet:14", &[("pressure", "2")]),
    TORN,
    BROKEN,
    ("xpbd", "bar:9x4x4", &[]),
    ("xpbd", "sheet:14", &[]),
    ("pagerank", "kronecker:8", &[]),
    ("bfs", "kronecker:8", &[]),
    ("sssp", "kronecker:8", &[]),
    ("components", "kronecker:8", &[]),
];

fn inside(workers: u32) -> Backend {
    Backend::Cluster(Cluster::inside(workers).unwrap())
}

/// Goes on from the newest checkpoint of a folder.
fn resumed(folder: &Path, make: impl FnOnce() -> Run) -> Run {
    let mut run = make();
    run.resume(&Checkpoint::newest(folder).unwrap()).unwrap();
    run
}

#[test]
fn every_example_goes_on_with_the_bits_of_a_run_that_was_never_stopped() {
    for (i, (name, spec, set)) in CASES.into_iter().enumerate() {
        let mesh = generate(spec, 3).unwrap();
        let orders = [Order::blocked(16), Order::COLOR, Order::JACOBI];
        let chosen = [(orders[i % 2], Precision::F32), (orders[(i + 1) % 3], Precision::F64)];
        for (order, precision) in chosen.into_iter().filter(|chosen| runs(name, set, chosen.0)) {
            let make = |backend, simd| {
                let options = Options { order, precision, backend, simd, ..Options::default() };
                start(name, &mesh, set, &options).unwrap()
            };
            let mut whole = make(Backend::Serial, Simd::Auto);
            let (folder, mut time) = (tempfile::tempdir().unwrap(), 0.0);
            let mut part = make(Backend::Cpu { threads: 2 }, Simd::Auto);
            for steps in [2, 3] {
                digest_after(steps, &mut part).unwrap();
                part.checkpoint(folder.path()).unwrap();
                time = part.time();
            }
            drop(part);
            let expected = digest_after(9, &mut whole).unwrap();
            let elsewhere =
                [(Backend::Serial, Simd::Auto), (Backend::Cpu { threads: 3 }, Simd::Off), (inside(2), Simd::Auto)];
            for (backend, simd) in elsewhere {
                let what = format!("{name} {spec} {set:?} {order} {precision:?} on {backend:?}");
                let mut run = resumed(folder.path(), || make(backend, simd));
                assert_eq!((run.steps(), run.time().to_bits()), (5, time.to_bits()), "{what}");
                assert_eq!(digest_after(4, &mut run).unwrap(), expected, "{what}");
            }
        }
    }
}

#[test]
fn what_some_hosts_wrote_others_go_on_with_whatever_their_number() {
    let mesh = generate("torus:40x20", 3).unwrap();
    for (name, set) in [("heat", &[][..]), ("cloth", &[("wind", "2")])] {
        let make = |backend| {
            let options = Options { order: Order::blocked(32), backend, ..Options::default() };
            start(name, &mesh, set, &options).unwrap()
        };
        let expected = digest_after(10, &mut make(Backend::Serial)).unwrap();
        for from in [1, 2, 4] {
            let folder = tempfile::tempdir().unwrap();
            let mut run = make(inside(from));
            digest_after(6, &mut run).unwrap();
            // While it goes on.
            let snapshot = run.snapshot().unwrap();
            run.step().unwrap();
            snapshot.write(folder.path(), "").unwrap();
            for to in [1, 3, 8] {
                let mut run = resumed(folder.path(), || make(inside(to)));
                assert_eq!(digest_after(4, &mut run).unwrap(), expected, "{name}, {from} to {to}");
            }
        }
    }
}

/// `meshweft run cloth --mesh sheet:12 --order blocked:16 --steps 20 --checkpoint-every 20` wrote it, on a Zen 3. A new version of the
/// crate needs another one: copy the newest folder of its `checkpoint`.
#[test]
fn what_another_machine_wrote_is_gone_on_with() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/checkpoint");
    let mesh = generate("sheet:12", 1).unwrap();
    for backend in [Backend::Serial, Backend::Cpu { threads: 2 }, inside(2)] {
        let options = Options { order: Order::blocked(16), backend, ..Options::default() };
        let mut run = resumed(&folder, || start("cloth", &mesh, &[], &options).unwrap());
        assert_eq!(run.steps(), 20);
        let expected = "dfd0d44e043e140aebefd0ec660bfd426a7204df26a46b579f6024ad0c2cfa54";
        assert_eq!(digest_after(30, &mut run).unwrap().to_string(), expected);
    }
}

#[test]
fn a_run_that_goes_on_can_be_verified() {
    let mesh = generate("sheet:20", 3).unwrap();
    let make = || start("cloth", &mesh, &[], &Options { verify: true, ..Options::default() }).unwrap();
    let (folder, mut run) = (tempfile::tempdir().unwrap(), make());
    digest_after(3, &mut run).unwrap();
    run.checkpoint(folder.path()).unwrap();
    let mut run = resumed(folder.path(), make);
    digest_after(3, &mut run).unwrap();
    assert!(run.verdict().unwrap().unwrap().contains("equal the serial oracle bit for bit"));
}

#[test]
fn a_gpu_goes_on_from_what_cores_wrote_and_they_from_what_it_wrote() {
    if gpu_or_skip().is_none() {
        return;
    }
    // Labels are integers, exact everywhere.
    let mesh = generate("kronecker:8", 3).unwrap();
    let make = |backend| {
        let options = Options { order: Order::COLOR, backend, ..Options::default() };
        start("components", &mesh, &[], &options).unwrap()
    };
    let (cpu, gpu) = (Backend::Cpu { threads: 1 }, Backend::Gpu { adapter: 0 });
    let expected = digest_after(2, &mut make(Backend::Serial)).unwrap();
    for (from, to) in [(cpu.clone(), gpu.clone()), (gpu, cpu)] {
        let (folder, mut run) = (tempfile::tempdir().unwrap(), make(from));
        digest_after(1, &mut run).unwrap();
        run.checkpoint(folder.path()).unwrap();
        let mut run = resumed(folder.path(), || make(to));
        assert_eq!(digest_after(1, &mut run).unwrap(), expected);
    }
}
