//! Every example and order on a GPU, beside the oracle [C6].
//!
//! A machine without an adapter skips what needs one and says so, one line a test, counted; with `REQUIRE_GPU` set it fails instead.

use crate::determinism::{BROKEN, CONJUGATE_GRADIENTS, Case, SOLVED, TORN, runs};
use crate::extremes::{extremes, is_taken, settings, suited};
use meshweft::conformance::gpu_or_skip;
use meshweft::{Backend, Error, Order};
use meshweft_command::{Options, Settings};
use meshweft_examples::EXAMPLES;
use meshweft_mesh::generate::generate;
use meshweft_tests::{digest_after, is_tried, start};

/// Every kernel of every example.
const CASES: &[Case] = &[
    ("heat", "torus:24x14", &[]),
    ("heat", "box:7", &[("method", "explicit")]),
    ("heat", "hexes:5", &[("factor", "0")]),
    ("heat", "torus:22x14", CONJUGATE_GRADIENTS),
    ("heat", "box:6", &[("method", "chebyshev")]),
    ("shallow-water", "sheet:14x9", &[]),
    ("airfoil", "airfoil:24x12", &[("rounds", "2")]),
    ("poisson", "quads:9x8", SOLVED),
    ("elasticity", "bar:7x3x3", SOLVED),
    ("vibration", "bar:7x3x3", SOLVED),
    ("wave", "disk:10", &[]),
    ("spring", "box:9", &[]),
    ("spring", "random:600", &[]),
    ("cloth", "sheet:18x22", &[("wind", "3")]),
    ("cloth", "sphere:8", &[("bend", "0")]),
    ("cloth", "sheet:12", &[("bend", "0"), ("obstacles", "none")]),
    TORN,
    BROKEN,
    ("softbody", "bar:9x4x4", &[("bodies", "1")]),
    ("softbody", "ball:7", &[("scene", "twist")]),
    ("xpbd", "bar:9x4x4", &[("scene", "squeeze")]),
    ("xpbd", "sheet:14", &[]),
];

#[test]
fn every_example_and_order_on_a_gpu_is_as_near_to_exact_arithmetic_as_the_oracle() {
    let Some(backend) = gpu_or_skip() else { return };
    // What conjugate gradients round grows with every iteration, beyond what one update of the oracle is off by.
    for (i, (name, spec, set)) in
        CASES.iter().filter(|case| ![CONJUGATE_GRADIENTS, SOLVED].contains(&case.2)).enumerate()
    {
        let mesh = generate(spec, 3).unwrap();
        for (j, order) in Order::ALL.into_iter().enumerate().filter(|of| runs(name, set, of.1)) {
            let what = format!("{name} {spec} {order}");
            let options = Options { order, backend: backend.clone(), verify: true, ..Options::default() };
            let mut run = start(name, &mesh, set, &options).unwrap_or_else(|e| panic!("{what}: {e:#}"));
            for _ in 0..8 {
                run.step().unwrap_or_else(|e| panic!("{what}: {e:#}"));
            }
            assert!(run.verdict().unwrap().is_some_and(|sentence| sentence.contains("as near to exact")), "{what}");
            // Steps in flight, without anybody looking: the same bits every time.
            if !is_tried(i, j) {
                continue;
            }
            let free = Options { verify: false, ..options.clone() };
            let digest = digest_after(8, &mut start(name, &mesh, set, &free).unwrap()).unwrap();
            assert_eq!(digest_after(0, &mut run).unwrap(), digest, "{what}, run to run");
        }
    }
}

#[test]
fn an_oracle_beside_a_gpu_takes_its_blocks_where_nobody_names_a_size() {
    let Some(backend) = gpu_or_skip() else { return };
    let mesh = generate("sheet:270", 1).unwrap();
    let vertices = mesh.points().len();
    assert_ne!(backend.grain(vertices), Backend::default().grain(vertices));
    // With other blocks the order would be another, and the difference far more than rounding.
    let mut run = start("heat", &mesh, &[], &Options { backend, verify: true, ..Options::default() }).unwrap();
    run.step().unwrap();
}

#[test]
fn measures_on_a_gpu_are_those_of_the_oracle() {
    let Some(backend) = gpu_or_skip() else { return };
    for (name, spec, set) in CASES {
        // Several leaves of the tree of sums.
        let spec = if *name == "spring" { "box:19" } else { spec };
        let mesh = generate(spec, 3).unwrap();
        let measure = |backend: Backend| {
            // The blocks of a backend are its own, and so would be the order.
            let options = Options { backend, order: Order::blocked(64), ..Options::default() };
            let mut run = start(name, &mesh, set, &options).unwrap();
            // Of what begins to be squeezed there is little energy.
            (0..if set.contains(&("scene", "squeeze")) { 20 } else { 1 }).for_each(|_| run.step().unwrap());
            run.metrics().unwrap()
        };
        for (gpu, oracle) in measure(backend.clone()).iter().zip(measure(Backend::Serial)) {
            // What bends or stretches a sheet that is nearly flat, or strains a solid, is what is left of larger terms, which a GPU rounds otherwise.
            let (share, least) = match gpu.name {
                "elastic energy" => (1e-4, 10.0),
                "bending energy" => (1e-5, 1e-3),
                "stretch energy" => (1e-5, 1e-6),
                _ if *name == "xpbd" => (1e-4, 1e-9),
                _ => (1e-5, 1e-9),
            };
            let bound = share * oracle.value.abs().max(least);
            assert!((gpu.value - oracle.value).abs() <= bound, "{name} {}: {} {}", gpu.name, gpu.value, oracle.value);
        }
    }
}

#[test]
fn extreme_meshes_run_on_a_gpu() {
    let Some(backend) = gpu_or_skip() else { return };
    // An iteration that is not finished, with sums of 10,000 terms in f32: where they are added up in another order it goes elsewhere.
    let is_rounding =
        |name: &str, what: &str| what == "degree 10,000" && ["poisson", "elasticity", "vibration"].contains(&name);
    for (i, (what, mesh)) in extremes().into_iter().enumerate() {
        let taken = |name: &str| is_taken(name, what) && !is_rounding(name, what);
        for (j, example) in EXAMPLES.iter().enumerate().filter(|(_, example)| taken(example.info.name)) {
            for (_, order) in Order::ALL
                .into_iter()
                .enumerate()
                .filter(|&(k, o)| is_tried(i + j, k) && runs(example.info.name, &[], o))
            {
                let name = example.info.name;
                let mesh = suited(name, &mesh);
                let fields = |backend| {
                    let options = Options { order, backend, ..Options::default() };
                    let set = match (name, what) {
                        // A thousand slivers touch each other around one vertex: which of them hold it is a matter of rounding.
                        ("cloth", "degree 10,000") => &[("touching", "off")],
                        _ => settings(name, what),
                    };
                    let mut run = start(name, &mesh, set, &options).unwrap_or_else(|e| panic!("{name}, {what}: {e:#}"));
                    (0..2).for_each(|_| run.step().unwrap_or_else(|e| panic!("{name}, {what}, {order}: {e:#}")));
                    run.state().unwrap()
                };
                for (gpu, oracle) in fields(backend.clone()).iter().zip(fields(Backend::Serial)) {
                    // The last bit of a place, over a time step, is a velocity of 4e-5: a few of them, more where 10,000 terms are added up.
                    let least = match (&*gpu.name, what) {
                        ("velocity", "degree 10,000") => 5.0,
                        ("velocity", _) => 0.3,
                        // A change of velocity over a time step and gravity.
                        ("falling", "degree 10,000") => 50.0,
                        // Differences of values of 0.04 over edges of a thousandth.
                        ("flux", "degree 10,000") => 1.0,
                        // What a meter of steel weighs on a square meter is 77,000 N.
                        ("stress" | "von_mises", _) => 1e5,
                        // Triangles 1,600 times as long as wide raise what is rounded to the square of that.
                        ("drawn", "degree 10,000") => 100.0,
                        // A difference of pressures of 0.7 over half the square of a speed of 0.8.
                        ("pressure_coefficient", _) => 0.1,
                        _ => 1e-3,
                    };
                    let scale = oracle.values.iter().fold(least, |most: f64, x| most.max(x.abs()));
                    for (a, b) in gpu.values.iter().zip(&oracle.values) {
                        assert!((a - b).abs() <= 1e-3 * scale, "{name}, {what}, {order}, {}: {a} {b}", gpu.name);
                    }
                }
            }
        }
    }
}

#[test]
fn a_gpu_stops_at_the_step_that_diverges_however_late_the_host_looks() {
    let Some(backend) = gpu_or_skip() else { return };
    let mesh = generate("box:6", 1).unwrap();
    let stop = |backend: Backend| {
        let mut run =
            start("spring", &mesh, &[("dt", "50")], &Options { backend: backend.clone(), ..Options::default() })
                .unwrap();
        let error = (0..1000).find_map(|_| run.step().err()).expect("it diverges");
        let Some(Error::Diverged { vertex, step, .. }) = error.downcast_ref::<Error>() else { panic!("{error:#}") };
        assert_eq!(*step, run.steps());
        assert!(run.step().is_err(), "it stays stopped");
        assert!((*vertex as usize) < mesh.points().len());
        *step
    };
    assert!(stop(backend.clone()).abs_diff(stop(Backend::Serial)) <= 1);
    // Nobody steps again: who reads or measures is told.
    let mut run =
        start("spring", &mesh, &[("dt", "50")], &Options { backend: backend.clone(), ..Options::default() }).unwrap();
    let stepped = (0..stop(Backend::Serial) + 1).try_for_each(|_| run.step());
    assert!(stepped.and_then(|()| Ok(run.metrics().map(|_| ())?)).is_err());
    let mut run =
        start("spring", &mesh, &[("dt", "50")], &Options { backend: backend.clone(), ..Options::default() }).unwrap();
    let steps = stop(Backend::Serial) + 1;
    let stepped = (0..steps).try_for_each(|_| run.step());
    assert!(stepped.and_then(|()| Ok(run.state().map(|_| ())?)).is_err());
}

#[test]
fn shaders_of_every_example_and_order_are_valid_without_a_device() {
    let mut seen = 0;
    for (name, spec, set) in CASES {
        let entry = meshweft_tests::example(name);
        let mut settings = Settings::new(entry.info.settings);
        set.iter().for_each(|(key, value)| settings.set(entry.info.settings, key, value).unwrap());
        let orders = Order::ALL.into_iter().chain([64, 100_000].map(Order::blocked));
        for order in orders.filter(|&order| runs(name, set, order)) {
            let options = Options { order, ..Options::default() };
            let shaders = entry.shaders(generate(spec, 3).unwrap(), &settings, &options).unwrap();
            for shader in &shaders {
                let checked = meshweft_shaders::check(&shader.module);
                checked.unwrap_or_else(|e| panic!("{name} {order} {} {}: {e}", shader.kernel, shader.entry));
                seen += 1;
            }
        }
    }
    assert!(seen > 200, "{seen} shaders");
}
