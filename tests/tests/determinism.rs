//! One digest a mesh and order [C1, C2, C5].

use meshweft::{Backend, Order, Simd};
use meshweft_command::{Options, Precision};
use meshweft_mesh::generate::generate;
use meshweft_mesh::{Cells, Curve, Mesh};
use meshweft_tests::{digest_after, orders, projects, random, start};

/// Example, mesh and settings.
pub(crate) type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// A solve that is always as long.
pub(crate) const CONJUGATE_GRADIENTS: &[(&str, &str)] = &[("method", "cg"), ("rounds", "4"), ("tolerance", "0")];

/// The same of equations that are solved once.
pub(crate) const SOLVED: &[(&str, &str)] = &[("rounds", "6"), ("tolerance", "0")];

/// Whether an example runs under an order: conjugate gradients and projections solve by sweeps in place.
pub(crate) fn runs(name: &str, set: &[(&str, &str)], order: Order) -> bool {
    let is_in_place =
        set == CONJUGATE_GRADIENTS || projects(name) || ["poisson", "elasticity", "vibration"].contains(&name);
    !order.key.is_double_buffered() || !is_in_place
}

/// Examples with a mesh of a few blocks each and a setting that takes the other path, if there is one.
pub(crate) const CASES: &[Case] = &[
    ("heat", "torus:24x14", &[]),
    ("heat", "box:7", &[("method", "explicit")]),
    ("heat", "hexes:7", &[]),
    ("heat", "hexes:6", &[("factor", "0")]),
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
    ("softbody", "bar:9x4x4", &[("dt", "0.02")]),
    ("softbody", "ball:7", &[("scene", "twist"), ("period", "0.1")]),
    ("xpbd", "bar:9x4x4", &[("dt", "0.02")]),
    ("xpbd", "sheet:18x22", &[("rounds", "3")]),
    ("xpbd", "sphere:8", &[("bend", "0"), ("obstacles", "none")]),
];

/// Cloth of which something has torn after some steps.
pub(crate) const TORN: Case =
    ("cloth", "sheet:11x9", &[("tear", "0.02"), ("wind", "12"), ("pins", "side"), ("dt", "0.02"), ("stretch", "50")]);

/// The same of a solid.
pub(crate) const BROKEN: Case = (
    "softbody",
    "bar:9x3x3",
    &[("scene", "stretch"), ("tear", "0.05"), ("period", "0.2"), ("dt", "0.01"), ("young", "1e6"), ("touching", "on")],
);

/// With more elements that come and go.
const TOUCHING: &[Case] = &[
    TORN,
    BROKEN,
    ("cloth", "sphere:6", &[("touching", "on"), ("dt", "0.02"), ("pressure", "0"), ("friction", "1")]),
    ("softbody", "bar:9x3x3", &[("scene", "pile"), ("touching", "on"), ("dt", "0.02")]),
    ("softbody", "ball:6", &[("scene", "squeeze"), ("touching", "on"), ("period", "0.1"), ("amount", "0.9")]),
];

const STEPS: usize = 12;

/// Calls `f` for all of some cases under all orders, both precisions taking turns.
fn each_case<'a>(cases: impl IntoIterator<Item = &'a Case>, f: impl Fn(&str, &Mesh, &[(&str, &str)], &Options, &str)) {
    for (i, (name, spec, set)) in cases.into_iter().enumerate() {
        let mesh = generate(spec, 3).unwrap();
        for (j, order) in orders().into_iter().enumerate().filter(|(_, order)| runs(name, set, *order)) {
            let precision = if (i + j) % 3 == 2 { Precision::F64 } else { Precision::F32 };
            let options = Options { order, precision, ..Options::default() };
            f(name, &mesh, set, &options, &format!("{name} {spec} {order} {precision:?}"));
        }
    }
}

fn digest(name: &str, mesh: &Mesh, set: &[(&str, &str)], options: &Options) -> String {
    digest_after(STEPS, &mut start(name, mesh, set, options).unwrap()).unwrap()
}

#[test]
fn the_serial_oracle_any_number_of_threads_and_any_width_give_one_digest() {
    each_case(CASES.iter().chain(TOUCHING), |name, mesh, set, options, what| {
        let oracle = digest(name, mesh, set, &Options { backend: Backend::Serial, ..options.clone() });
        for (threads, simd) in [1, 2, 3, 8].into_iter().zip(Simd::built().iter().copied().cycle()) {
            let run = digest(name, mesh, set, &Options { backend: Backend::Cpu { threads }, simd, ..options.clone() });
            assert_eq!(run, oracle, "{what}, {threads} threads, {simd:?}");
        }
    });
}

#[test]
fn what_is_to_tear_does() {
    each_case([&TORN, &BROKEN], |name, mesh, set, options, what| {
        let mut run = start(name, mesh, set, options).unwrap();
        digest_after(STEPS, &mut run).unwrap();
        let holds = run.state().unwrap().into_iter().find(|field| field.name == "holds").unwrap();
        let split = holds.values.iter().filter(|&&held| held != 0.0).count();
        assert!(split > 10, "{what}: {split} places");
    });
}

#[test]
fn kernels_that_are_interpreted_give_the_digest_of_compiled_ones() {
    each_case(CASES, |name, mesh, set, options, what| {
        if projects(name) {
            let said =
                start(name, mesh, set, &Options { tapes: true, ..options.clone() }).err().expect("no tape projects");
            return assert!(format!("{said:#}").contains("cannot run as a tape"), "{what}: {said:#}");
        }
        // Nor does one look along stars that change.
        let apart: &[(&str, &str)] = if name == "cloth" { &[("touching", "off")] } else { &[] };
        let set = &[set, apart].concat();
        let compiled = digest(name, mesh, set, &options.clone());
        for (backend, simd) in [
            (Backend::Serial, Simd::Off),
            (Backend::Cpu { threads: 1 }, Simd::Off),
            (Backend::Cpu { threads: 2 }, Simd::Auto),
        ] {
            let interpreted = Options { tapes: true, backend, simd, ..options.clone() };
            assert_eq!(digest(name, mesh, set, &interpreted), compiled, "{what}, {simd:?}");
        }
    });
}

#[test]
fn measured_quantities_are_the_same_on_any_number_of_threads() {
    // Several leaves of the tree of sums.
    let mesh = generate("box:24", 3).unwrap();
    let measure = |backend| {
        let mut run = start("spring", &mesh, &[], &Options { backend, ..Options::default() }).unwrap();
        (0..3).for_each(|_| run.step().unwrap());
        run.metrics().unwrap().iter().map(|m| m.value.to_bits()).collect::<Vec<_>>()
    };
    let oracle = measure(Backend::Serial);
    assert!(oracle.iter().all(|&bits| bits != 0));
    for threads in [1, 2, 3, 8] {
        assert_eq!(measure(Backend::Cpu { threads }), oracle, "{threads} threads");
    }
}

#[test]
fn another_curve_or_size_of_blocks_is_another_order_and_engines_agree_on_them() {
    let mesh = generate("box:9", 3).unwrap();
    let mut seen = Vec::new();
    for curve in Curve::ALL {
        for size in [1, 7, 64, 100_000] {
            let options = Options { order: Order::blocked(size).along(curve), ..Options::default() };
            let oracle = digest("spring", &mesh, &[], &Options { backend: Backend::Serial, ..options.clone() });
            let run =
                digest("spring", &mesh, &[], &Options { backend: Backend::Cpu { threads: 3 }, ..options.clone() });
            assert_eq!(run, oracle, "{}", options.order);
            seen.push(run);
        }
    }
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 2, "different orders give different bits, or nothing was tested");
}

/// The mesh with its vertices in another order: vertex `v` is called `names[v]`.
fn renamed(mesh: &Mesh, seed: u64) -> (Mesh, Vec<u32>) {
    let names = random::shuffled(seed, mesh.points().len());
    let mut points = vec![[0.0; 3]; names.len()];
    names.iter().zip(mesh.points()).for_each(|(&new, &p)| points[new as usize] = p);
    let mut cells = Cells::new();
    for (kind, corners) in mesh.cells().iter() {
        let corners: Vec<u32> = corners.iter().map(|&v| names[v as usize]).collect();
        cells.push(kind, &corners);
    }
    let mut renamed = Mesh::new(points, cells).unwrap();
    mesh.groups().iter().for_each(|group| renamed.add_group(group.clone()).unwrap());
    (renamed, names)
}

#[test]
fn time_steps_that_are_computed_from_the_mesh_do_not_depend_on_names() {
    let options = Options { precision: Precision::F64, ..Options::default() };
    for (name, spec) in [("heat", "box:9"), ("heat", "random:2000"), ("wave", "box:9"), ("wave", "ball:17")] {
        let mesh = generate(spec, 1).unwrap();
        let step = |mesh: &Mesh| {
            let mut run = start(name, mesh, &[], &options).unwrap();
            run.step().unwrap();
            run.time().to_bits()
        };
        for seed in 0..6 {
            assert_eq!(step(&renamed(&mesh, seed).0), step(&mesh), "{name} {spec}, names of seed {seed}");
        }
    }
}

#[test]
fn renumbering_the_vertices_changes_no_value() {
    each_case(CASES.iter().chain(TOUCHING), |name, mesh, set, options, what| {
        // In 64 bits: fewer bits could hide a difference in a setting that is computed from the mesh.
        let options = &Options { precision: Precision::F64, ..options.clone() };
        let (renamed, mut names) = renamed(mesh, 17);
        let (mut a, mut b) = (start(name, mesh, set, options).unwrap(), start(name, &renamed, set, options).unwrap());
        if let Some(primal) = a.mesh().primal() {
            // Points have other names, cells stay what they are.
            names = (0..primal.cells().len() as u32).collect();
        }
        for _ in 0..STEPS {
            a.step().unwrap();
            b.step().unwrap();
        }
        for (left, right) in a.state().unwrap().iter().zip(b.state().unwrap()) {
            let width = left.components;
            for (v, &named) in names.iter().enumerate() {
                let (x, y) = (&left.values[v * width..][..width], &right.values[named as usize * width..][..width]);
                assert_eq!(x, y, "{what}: {} of vertex {v}", left.name);
            }
        }
    });
}

/// Digests recorded once. They change only when the physics or the order is meant to change, never with the machine,
/// the compiler's flags or the width of its vectors.
const GOLDEN: &[(&str, &str, &str, &str)] = &[
    ("heat", "torus:24x14", "color", "17be75a326b32b03"),
    ("heat", "torus:22x14", "color", "56669e424e61621e"),
    ("wave", "disk:10", "color", "bc290b1d037f9f19"),
    ("spring", "box:9", "color", "d6dbacc46a445361"),
    ("cloth", "sheet:18x22", "color", "3295858a47e025e6"),
    ("softbody", "bar:13x4x4", "color", "f5defb84bee25323"),
    ("xpbd", "bar:13x4x4", "color", "9753f2b525dcace0"),
    ("xpbd", "sheet:18x22", "color", "4547c7a6bfad0931"),
    ("heat", "torus:24x14", "level-color", "b24bd53f80b5f405"),
    ("heat", "torus:22x14", "level-color", "40a11d24bd72db07"),
    ("wave", "disk:10", "level-color", "bc290b1d037f9f19"),
    ("spring", "box:9", "level-color", "801e1dd69e94ad18"),
    ("cloth", "sheet:18x22", "level-color", "003a76fd4af07bc2"),
    ("softbody", "bar:13x4x4", "level-color", "46c74d38215354d8"),
    ("xpbd", "bar:13x4x4", "level-color", "5d79c9c841be8af6"),
    ("xpbd", "sheet:18x22", "level-color", "473d0d5e43734dec"),
    ("heat", "torus:24x14", "color-level", "17be75a326b32b03"),
    ("heat", "torus:22x14", "color-level", "56669e424e61621e"),
    ("wave", "disk:10", "color-level", "bc290b1d037f9f19"),
    ("spring", "box:9", "color-level", "d6dbacc46a445361"),
    ("cloth", "sheet:18x22", "color-level", "3295858a47e025e6"),
    ("softbody", "bar:13x4x4", "color-level", "f5defb84bee25323"),
    ("xpbd", "bar:13x4x4", "color-level", "9753f2b525dcace0"),
    ("xpbd", "sheet:18x22", "color-level", "4547c7a6bfad0931"),
    ("heat", "torus:24x14", "priority-dag", "e6b6b9464b0a9f57"),
    ("heat", "torus:22x14", "priority-dag", "f456205bd572580a"),
    ("wave", "disk:10", "priority-dag", "bc290b1d037f9f19"),
    ("spring", "box:9", "priority-dag", "88a8b09aa431a58c"),
    ("cloth", "sheet:18x22", "priority-dag", "a9f6fd01d7c51fc6"),
    ("softbody", "bar:13x4x4", "priority-dag", "a26a6233ce42f61b"),
    ("xpbd", "bar:13x4x4", "priority-dag", "ac2cbb4505b1745d"),
    ("xpbd", "sheet:18x22", "priority-dag", "244e50f529b138b3"),
    ("heat", "torus:24x14", "blocked", "0d42452acc16ba73"),
    ("heat", "torus:22x14", "blocked", "1aea8b4b9f4d18a0"),
    ("wave", "disk:10", "blocked", "bc290b1d037f9f19"),
    ("spring", "box:9", "blocked", "65a8633a2e84b1e9"),
    ("cloth", "sheet:18x22", "blocked", "e44b9bb2f9ccdb90"),
    ("softbody", "bar:13x4x4", "blocked", "be51c829e872f347"),
    ("xpbd", "bar:13x4x4", "blocked", "4a2dd4b7543eb634"),
    ("xpbd", "sheet:18x22", "blocked", "68eb12b3e8cc64a7"),
    ("heat", "torus:24x14", "jacobi", "06bf252a6a44cc0a"),
    ("wave", "disk:10", "jacobi", "bc290b1d037f9f19"),
    ("spring", "box:9", "jacobi", "33fd9f97f3ec849a"),
    ("cloth", "sheet:18x22", "jacobi", "9cf1391840d79464"),
    ("softbody", "bar:13x4x4", "jacobi", "b195f5f19019befc"),
    ("shallow-water", "sheet:14x9", "color", "b6a150a684675f96"),
    ("airfoil", "airfoil:24x12", "color", "40036817a9d090f0"),
    ("shallow-water", "sheet:14x9", "level-color", "b6a150a684675f96"),
    ("airfoil", "airfoil:24x12", "level-color", "97812c9feb6bc1de"),
    ("shallow-water", "sheet:14x9", "color-level", "b6a150a684675f96"),
    ("airfoil", "airfoil:24x12", "color-level", "40036817a9d090f0"),
    ("shallow-water", "sheet:14x9", "priority-dag", "b6a150a684675f96"),
    ("airfoil", "airfoil:24x12", "priority-dag", "17f5462d905a6b22"),
    ("shallow-water", "sheet:14x9", "blocked", "b6a150a684675f96"),
    ("airfoil", "airfoil:24x12", "blocked", "7eaa66c625b0a19d"),
    ("shallow-water", "sheet:14x9", "jacobi", "b6a150a684675f96"),
    ("airfoil", "airfoil:24x12", "jacobi", "3e79b4f43a27ab3a"),
    ("poisson", "quads:9x8", "color", "a556e11c100154e0"),
    ("elasticity", "bar:7x3x3", "color", "43e97c1262aee73f"),
    ("vibration", "bar:7x3x3", "color", "a4ce6d61cef3bb84"),
    ("poisson", "quads:9x8", "level-color", "1826a3389921ba2e"),
    ("elasticity", "bar:7x3x3", "level-color", "df9b8723be50477f"),
    ("vibration", "bar:7x3x3", "level-color", "bb4f619ea27e4072"),
    ("poisson", "quads:9x8", "color-level", "a556e11c100154e0"),
    ("elasticity", "bar:7x3x3", "color-level", "43e97c1262aee73f"),
    ("vibration", "bar:7x3x3", "color-level", "a4ce6d61cef3bb84"),
    ("poisson", "quads:9x8", "priority-dag", "11bcf6c1d35c6f93"),
    ("elasticity", "bar:7x3x3", "priority-dag", "b5f05ef255dd059e"),
    ("vibration", "bar:7x3x3", "priority-dag", "bedf103ebf11ec0b"),
    ("poisson", "quads:9x8", "blocked", "34813881e090f5ea"),
    ("elasticity", "bar:7x3x3", "blocked", "f1864194b0502770"),
    ("vibration", "bar:7x3x3", "blocked", "dc12af40fcf058d2"),
];

/// A step of cloth long enough to stretch, shear and fold it: the rounding of every term reaches the digest.
const RECORDED: &[Case] = &[
    ("heat", "torus:24x14", &[]),
    ("heat", "torus:22x14", CONJUGATE_GRADIENTS),
    ("wave", "disk:10", &[]),
    ("spring", "box:9", &[]),
    ("cloth", "sheet:18x22", &[("dt", "0.02"), ("wind", "8"), ("stretch", "20")]),
    ("softbody", "bar:13x4x4", &[("dt", "0.02"), ("young", "5e3")]),
    ("xpbd", "bar:13x4x4", &[("dt", "0.02"), ("young", "5e3")]),
    ("xpbd", "sheet:18x22", &[("dt", "0.02"), ("stretch", "20")]),
    ("shallow-water", "sheet:14x9", &[]),
    ("airfoil", "airfoil:24x12", &[("rounds", "2")]),
    ("poisson", "quads:9x8", SOLVED),
    ("elasticity", "bar:7x3x3", SOLVED),
    ("vibration", "bar:7x3x3", SOLVED),
];

#[test]
fn digests_are_those_on_record() {
    let mut wrong = Vec::new();
    for order in orders() {
        for (name, spec, set) in RECORDED.iter().filter(|case| runs(case.0, case.2, order)) {
            let mesh = generate(spec, 3).unwrap();
            let run = digest(name, &mesh, set, &Options { order, ..Options::default() });
            let known = GOLDEN.iter().find(|g| (g.0, g.1, g.2) == (*name, *spec, order.key.name())).map(|g| g.3);
            if known != Some(&run[..16]) {
                wrong.push(format!("    (\"{name}\", \"{spec}\", \"{order}\", \"{}\"),", &run[..16]));
            }
        }
    }
    assert!(wrong.is_empty(), "these are not on record:\n{}", wrong.join("\n"));
}
