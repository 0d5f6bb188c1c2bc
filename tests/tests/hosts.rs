//! One simulation on several hosts [C3]: workers in one process. Those of several are in `examples/tests/processes.rs`.

use crate::determinism::{BROKEN, CONJUGATE_GRADIENTS, Case, TORN, runs};
use meshweft::conformance::gpu_or_skip;
use meshweft::mesh::Cut;
use meshweft::{Backend, Cluster, Error, Order};
use meshweft_command::{Options, Precision};
use meshweft_mesh::generate::generate;
use meshweft_tests::{digest_after, is_tried, start};

const CASES: [Case; 11] = [
    ("heat", "torus:24x14", &[]),
    ("heat", "box:7", &[("method", "explicit")]),
    ("heat", "torus:22x14", CONJUGATE_GRADIENTS),
    ("wave", "disk:10", &[]),
    ("spring", "random:600", &[]),
    ("cloth", "sheet:18x22", &[("wind", "3")]),
    ("softbody", "bar:9x4x4", &[]),
    TORN,
    BROKEN,
    ("xpbd", "bar:9x4x4", &[]),
    ("xpbd", "sheet:14", &[("rounds", "3")]),
];

/// All orders under which an example runs, with small tasks, so that every host has several.
fn orders(name: &str, set: &[(&str, &str)]) -> impl Iterator<Item = (usize, Order)> {
    let small = |order: Order| order.resolved(if order == Order::BLOCKED { 16 } else { 64 });
    Order::ALL.into_iter().filter(|&order| runs(name, set, order)).map(small).enumerate()
}

/// Workers that are threads of this process.
fn inside(workers: u32, threads: usize) -> Backend {
    Backend::Cluster(Cluster::inside(workers).unwrap().threads(threads))
}

#[test]
fn any_number_of_hosts_and_threads_gives_one_digest_for_every_example_and_order() {
    for (i, (name, spec, set)) in CASES.into_iter().enumerate() {
        let mesh = generate(spec, 3).unwrap();
        for (j, order) in orders(name, set) {
            let precision = if (i + j) % 3 == 2 { Precision::F64 } else { Precision::F32 };
            let run = |backend| {
                let options = Options { order, precision, backend, ..Options::default() };
                digest_after(6, &mut start(name, &mesh, set, &options).unwrap()).unwrap()
            };
            let oracle = run(Backend::Serial);
            let hosts = [(1, 1), (2, 1), (3, 2), (4, 1), (5, 1), (8, 3)];
            for (workers, threads) in hosts.into_iter().skip((i + j) % 2).step_by(2) {
                assert_eq!(run(inside(workers, threads)), oracle, "{name} {spec} {order}, {workers} × {threads}");
            }
            let bisected = Cluster::inside(3).unwrap().cut(Cut::Bisection);
            assert_eq!(run(Backend::Cluster(bisected)), oracle, "{name} {spec} {order}, bisection");
        }
    }
}

#[test]
fn hosts_measure_what_one_host_does_to_the_last_bit() {
    // Several leaves of the tree of sums, some of them on two hosts.
    let mesh = generate("box:24", 3).unwrap();
    let measure = |order, backend| {
        let mut run = start("spring", &mesh, &[], &Options { order, backend, ..Options::default() }).unwrap();
        (0..3).for_each(|_| run.step().unwrap());
        run.metrics().unwrap().iter().map(|m| m.value.to_bits()).collect::<Vec<_>>()
    };
    for order in [Order::BLOCKED, Order::COLOR] {
        let oracle = measure(order, Backend::Serial);
        assert!(oracle.iter().all(|&bits| bits != 0));
        for workers in [2, 3, 5] {
            assert_eq!(measure(order, inside(workers, 1)), oracle, "{order}, {workers} workers");
        }
    }
}

/// Those of the cores' share are the bits of the oracle; a GPU rounds some functions otherwise.
#[test]
fn hosts_with_gpus_are_as_near_to_exact_arithmetic_as_the_oracle() {
    if gpu_or_skip().is_none() {
        return;
    }
    // What conjugate gradients round grows with every iteration, beyond what one update of the oracle is off by.
    // A share of a GPU projects no elements.
    let cases = CASES.into_iter().filter(|case| case.2 != CONJUGATE_GRADIENTS && case.0 != "xpbd");
    for (i, (name, spec, set)) in cases.enumerate() {
        let mesh = generate(spec, 3).unwrap();
        // A driver in software takes a second for the kernels of each.
        for (j, order) in orders(name, set).filter(|&(j, _)| is_tried(i, j)) {
            let cluster = || match (i + j) % 3 {
                0 => Cluster::inside(2).unwrap().on_gpus(0),
                _ => Cluster::hybrid(0, 0.4).unwrap().threads(2),
            };
            let options = |verify| {
                let backend = Backend::Cluster(cluster());
                Options { order, backend, verify, ..Options::default() }
            };
            let mut run = start(name, &mesh, set, &options(true)).unwrap();
            (0..6).for_each(|_| run.step().unwrap_or_else(|e| panic!("{name} {spec} {order}: {e:#}")));
            assert!(run.verdict().unwrap().is_some_and(|sentence| sentence.contains("as near to exact")));
            assert!(run.hosts().iter().any(|host| !host.gpu.is_empty()), "{name} {spec} {order}");
            // Without anybody who looks it is the same.
            let digest = digest_after(6, &mut start(name, &mesh, set, &options(false)).unwrap()).unwrap();
            assert_eq!(digest_after(0, &mut run).unwrap(), digest, "{name} {spec} {order}, run to run");
        }
    }
}

#[test]
fn a_run_on_hosts_with_gpus_that_diverges_stops_where_one_host_does() {
    if gpu_or_skip().is_none() {
        return;
    }
    let mesh = generate("box:9", 3).unwrap();
    let stop = |backend| {
        let options = Options { backend, order: Order::COLOR, ..Options::default() };
        let mut run = start("spring", &mesh, &[("dt", "50")], &options).unwrap();
        let error = (0..200).find_map(|_| run.step().and_then(|()| Ok(run.wait()?)).err()).expect("it diverges");
        match error.downcast_ref::<Error>() {
            Some(&Error::Diverged { step, .. }) => step,
            other => panic!("{other:?}"),
        }
    };
    let hybrid = Backend::Cluster(Cluster::hybrid(0, 0.5).unwrap().balanced());
    assert!(stop(hybrid).abs_diff(stop(Backend::Serial)) <= 1);
}

#[test]
fn a_run_on_hosts_that_diverges_has_the_error_of_the_oracle() {
    let mesh = generate("box:9", 3).unwrap();
    for (dt, order) in
        [("50", Order::BLOCKED), ("9", Order::blocked(16)), ("5", Order::COLOR), ("4", Order::PRIORITY_DAG)]
    {
        // Hosts are asked for steps and go on with them: what has become of which vertex is known long after.
        let stop = |backend, waits: bool| {
            let options = Options { backend, order, ..Options::default() };
            let mut run = start("spring", &mesh, &[("dt", dt)], &options).unwrap();
            let mut step = |_| run.step().and_then(|()| if waits { Ok(run.wait()?) } else { Ok(()) });
            let error = (0..4000).find_map(|i| step(i).err());
            let error = error.or_else(|| run.wait().err().map(Into::into)).expect("it diverges");
            // Until the state is set, so says every call.
            assert_eq!(run.step().unwrap_err().to_string(), error.to_string());
            error.to_string()
        };
        let expected = stop(Backend::Serial, true);
        assert!(expected.contains("diverged"), "{expected}");
        for (workers, threads) in [(1, 1), (2, 2), (3, 1)] {
            for waits in [true, false] {
                assert_eq!(stop(inside(workers, threads), waits), expected, "{dt} {order} {workers} {waits}");
            }
        }
    }
}

#[test]
fn a_state_that_is_restored_does_not_hide_that_a_step_diverged() {
    let mesh = generate("box:9", 3).unwrap();
    let mut run =
        start("spring", &mesh, &[("dt", "50")], &Options { backend: inside(2, 1), ..Options::default() }).unwrap();
    let saved = run.save().unwrap();
    // Asked for, and not waited for.
    let error =
        run.step().err().map_or_else(|| run.restore(&saved).unwrap_err().to_string(), |error| error.to_string());
    assert!(error.contains("diverged"), "{error}");
    run.restore(&saved).unwrap();
    assert_eq!(
        run.digest().unwrap(),
        digest_after(0, &mut start("spring", &mesh, &[], &Options::default()).unwrap()).unwrap()
    );
}
