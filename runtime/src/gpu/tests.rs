//! What needs a device and no example: orders and rules, globals and loops, cut arrays, functions, boundary values.

use super::device::Device;
use super::engine::{LESS, OPENED};
use crate::conformance::{gpu_or_skip, orders};
use crate::number::{Integer, Precision, Real};
use crate::simulation::tests::elements::woven;
use crate::{Backend, Error, Mesh, Order, Program, Result, Simulation, Stages, Stars};
use crate::{kernels, record, stars, vertex};
use meshweft_mesh::generate::generate;
use meshweft_mesh::{CellKind, Cells};
use meshweft_shaders::{PACK, UNPACK};
use nalgebra::Vector3;
use wgpu::BufferUsages as Usage;

stars! {
    /// Edges with an integer and a real each.
    Edges[1]: Edge<R>;
}
record! {
    /// A label, and a weight.
    struct Edge<R> { label: R::Int, weight: R }
}

/// Hashes of what each update saw, in integers beside reals: any other order of reads and writes shows.
mod hashes {
    use super::*;

    vertex! {
        /// What was seen.
        pub struct Seen<R> { shared hash: R::Int, last: R::Int, noise: R }
    }
    record! {
        /// Loops gone round, and the largest noise.
        pub struct Counts<R> { outer: R, inner: R, most: R, label: R::Int }
    }
    pub struct Hashes;
    kernels! {
        for Hashes: Seen, (), Counts;
        update Look[salt] |p, own, around| {
            let start = own.hash * R::Int::lit(31) + salt.to_int() + p.step();
            let hash = around.fold(Edges, start, |hash, [other], edge| {
                hash * R::Int::lit(1_000_003) + (other.hash ^ edge.label)
            });
            Seen { hash, last: own.hash, noise: own.noise }
        };
        map Shake |p, own| Seen { noise: p.uniform(5) + own.noise, ..own };
        max Most("most", "") |_, own, _| own.noise;
        scalar Outer |p| {
            let g = p.globals;
            Counts { outer: g.outer + R::lit(1.0), inner: R::lit(0.0), label: g.label + R::Int::lit(7), ..g }
        };
        scalar Inner |p| Counts { inner: p.globals.inner + R::lit(1.0), ..p.globals };
        test OuterEnds |p| R::lit(2.5).less(p.globals.outer);
        test InnerEnds |p| p.globals.outer.less(p.globals.inner);
    }
    impl Program for Hashes {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Edges, mesh.edges(), |i| Edge {
                label: crate::Int((i.element * 7 + i.corner) as i32),
                weight: 1.0,
            });
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Seen<f64> {
            Seen { hash: crate::Int(v as i32 - 50), last: crate::Int(0), noise: 0.0 }
        }
        fn fixed(&self, _: &Mesh, v: u32) -> bool {
            v % 17 == 3
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Shake);
            stages.sweep(Look { salt: 3.0 }, 3);
            stages.sweep_backward(Look { salt: -8.0 }, 2);
            stages.jacobi(Look { salt: 5.0 }, 1);
            stages.reduce(Most, |g| &mut g.most);
        }
    }
}
use hashes::{Hashes, Inner, InnerEnds, Look, Outer, OuterEnds};

/// A box of tets, and a fan whose hub is updated by itself.
fn mesh() -> Mesh {
    let ball = generate("box:9", 1).unwrap();
    let mut points = ball.points().to_vec();
    let mut corners: Vec<u32> = ball.edges().into_flattened();
    let hub = points.len() as u32;
    points.extend((0..300).map(|i| [2.0 + f64::from(i) * 0.01, f64::from(i % 7), 0.0]));
    corners.extend((1..300).flat_map(|i| [hub, hub + i]));
    Mesh::new(points, Cells::of(CellKind::Edge, corners)).unwrap()
}

fn hashes(mesh: &Mesh, order: Order, backend: Backend) -> Simulation<Hashes> {
    Simulation::builder(mesh.clone(), Hashes).order(order).backend(backend).build().unwrap()
}

#[test]
fn every_order_and_rule_has_the_bits_of_the_oracle_in_integers() {
    let Some(backend) = gpu_or_skip() else { return };
    let mesh = mesh();
    for order in orders().into_iter().chain([Order::blocked(30), Order::blocked(300)]) {
        let run = |backend: Backend| {
            let mut simulation = hashes(&mesh, order, backend.clone());
            (0..4).for_each(|_| simulation.step().unwrap());
            simulation.run(|stages| stages.sweep(Look { salt: 1.0 }, 5)).unwrap();
            simulation
        };
        let (mut gpu, mut oracle) = (run(backend.clone()), run(Backend::Serial));
        gpu.compare(&oracle).unwrap_or_else(|e| panic!("{order}: {e}"));
        assert_eq!(gpu.globals().unwrap(), oracle.globals().unwrap(), "{order}");
        assert_eq!((gpu.rounds(), gpu.steps()), (oracle.rounds(), oracle.steps()), "{order}");
        assert_eq!(gpu.metric("most").unwrap(), oracle.metric("most").unwrap(), "{order}");
    }
}

#[test]
fn loops_inside_of_loops_end_on_the_device_where_they_end_on_the_oracle() {
    let Some(backend) = gpu_or_skip() else { return };
    let mesh = mesh();
    for order in [Order::blocked(64), Order::COLOR, Order::JACOBI] {
        let run = |backend: Backend| {
            let mut simulation = hashes(&mesh, order, backend.clone());
            simulation
                .run(|stages| {
                    stages.until(OuterEnds, 10, |stages| {
                        stages.scalar(Outer);
                        stages.jacobi(Look { salt: 1.0 }, 1);
                        stages.until(InnerEnds, 1000, |stages| {
                            stages.scalar(Inner);
                            stages.jacobi(Look { salt: 2.0 }, 1);
                            stages.sweep(Look { salt: 3.0 }, 1);
                        });
                    });
                    // It holds already.
                    stages.until(OuterEnds, 10, |stages| stages.jacobi(Look { salt: 9.0 }, 1));
                    stages.sweep(Look { salt: 4.0 }, 1);
                })
                .unwrap();
            // Ended by the number of rounds, not by the test.
            simulation.run(|stages| stages.until(InnerEnds, 5, |stages| stages.jacobi(Look { salt: 7.0 }, 3))).unwrap();
            simulation.step().unwrap();
            simulation
        };
        let (gpu, oracle) = (run(backend.clone()), run(Backend::Serial));
        assert_eq!(gpu.globals().unwrap(), oracle.globals().unwrap(), "{order}");
        gpu.compare(&oracle).unwrap_or_else(|e| panic!("{order}: {e}"));
        assert_eq!((gpu.rounds(), gpu.loops()), (oracle.rounds(), oracle.loops()), "{order}");
    }
    let mut gpu = hashes(&mesh, Order::COLOR, backend.clone());
    fn nest(stages: &mut Stages<Hashes>, depth: usize) {
        stages.scalar(Outer);
        if depth > 0 {
            stages.until(OuterEnds, 1, |stages| nest(stages, depth - 1));
        }
    }
    gpu.run(|stages| nest(stages, 4)).unwrap();
    let error = gpu.run(|stages| nest(stages, 5)).unwrap_err().to_string();
    assert!(error.contains("5 loops"), "{error}");
    // Nothing of it was taken.
    gpu.step().unwrap();
}

#[test]
fn arrays_in_pieces_grids_of_two_dimensions_and_a_submission_a_dispatch_change_no_bit() {
    let Some(backend) = gpu_or_skip() else { return };
    let mesh = generate("box:20", 1).unwrap();
    for order in Order::ALL.into_iter().chain([Order::blocked(30), Order::blocked(300)]) {
        let run = |less: Option<(u64, u32)>| {
            LESS.set(less);
            let mut simulation = hashes(&mesh, order, backend.clone());
            LESS.set(None);
            (0..2).for_each(|_| simulation.step().unwrap());
            // Until then what was recorded last may not have been handed over.
            simulation.wait().unwrap();
            let counters = simulation.gpu_counters().unwrap();
            assert_eq!(counters.submissions >= counters.dispatches, less.is_some());
            simulation.digest().unwrap()
        };
        let whole = run(None);
        assert_eq!(run(Some((160 << 10, 3))), whole, "{order}");
        assert_eq!(run(Some((1 << 30, 3))), whole, "{order}, two dimensions");
    }
}

#[test]
fn elements_in_pieces_and_grids_of_two_dimensions_are_projected_as_on_cores() {
    let Some(backend) = gpu_or_skip() else { return };
    for order in [Order::COLOR, Order::blocked(30), Order::blocked(300), Order::PRIORITY_DAG] {
        let run = |less: Option<(u64, u32)>, backend: Backend| {
            LESS.set(less);
            let mut simulation = woven(3000, order, backend).unwrap();
            LESS.set(None);
            (0..2).for_each(|_| simulation.step().unwrap());
            simulation.digest().unwrap()
        };
        let expected = run(None, Backend::Serial);
        for less in [None, Some((56 << 10, 3)), Some((1 << 30, 3))] {
            assert_eq!(run(less, backend.clone()), expected, "{order} {less:?}");
        }
    }
}

/// Conjugate gradients for (1 + Laplacian) x = b, with the scalars on the device.
mod gradients {
    use super::*;

    vertex! {
        /// Direction, solution, residual, and what the matrix makes of the direction.
        pub struct Row<R> { shared p: R, x: R, r: R, q: R }
    }
    record! {
        /// Inner products.
        pub struct Inner<R> { rr: R, pq: R, alpha: R, beta: R, before: R, iterations: R::Int }
    }
    pub struct Gradients;
    kernels! {
        for Gradients: Row, (), Inner;
        update Multiply |_, own, around| {
            let q = around.sum(Edges, |[other], edge| edge.weight * (own.p - other.p));
            Row { q: own.p + q, ..own }
        };
        sum ResidualSquared("residual squared", "") |_, own, _| own.r * own.r;
        sum Curvature |_, own, _| own.p * own.q;
        scalar Alpha |p| Inner { alpha: p.globals.rr / p.globals.pq, before: p.globals.rr, ..p.globals };
        map Move |p, own| {
            let alpha = p.globals.alpha;
            Row { x: own.x + alpha * own.p, r: own.r - alpha * own.q, ..own }
        };
        scalar Beta |p| {
            let g = p.globals;
            Inner { beta: g.rr / g.before, iterations: g.iterations + R::Int::lit(1), ..g }
        };
        map Turn |p, own| Row { p: own.r + p.globals.beta * own.p, ..own };
        test Small[bound] |p| p.globals.rr.less(bound);
    }
    impl Program for Gradients {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Edges, mesh.edges(), |_| Edge { label: crate::Int(0), weight: 0.7 });
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Row<f64> {
            let b = f64::from(v % 11) - 5.0;
            Row { p: b, x: 0.0, r: b, q: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.reduce(ResidualSquared, |g| &mut g.rr);
            stages.until(Small { bound: 1e-6 }, 300, |stages| {
                stages.jacobi(Multiply, 1);
                stages.reduce(Curvature, |g| &mut g.pq);
                stages.scalar(Alpha);
                stages.map(Move);
                stages.reduce(ResidualSquared, |g| &mut g.rr);
                stages.scalar(Beta);
                stages.map(Turn);
            });
        }
    }
}

#[test]
fn conjugate_gradients_on_the_device_find_the_solution_of_the_oracle() {
    let Some(backend) = gpu_or_skip() else { return };
    let mesh = generate("box:20", 1).unwrap();
    let run = |backend: Backend| {
        let mut simulation = Simulation::builder(mesh.clone(), gradients::Gradients).backend(backend).build().unwrap();
        simulation.step().unwrap();
        let iterations = simulation.globals().unwrap().iterations.0;
        let x = simulation.field("x").unwrap().values;
        assert!(simulation.metric("residual squared").unwrap() < 2e-6);
        (iterations, x, simulation.rounds())
    };
    let (gpu, oracle) = (run(backend.clone()), run(Backend::Serial));
    assert!((gpu.0 - oracle.0).abs() <= 2 && gpu.0 > 5, "{} iterations, {} of the oracle", gpu.0, oracle.0);
    assert_eq!(gpu.2, gpu.0 as u64);
    let apart = gpu.1.iter().zip(&oracle.1).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 2e-4, "{apart}");
}

/// Functions of its own number, and quotients that have no value.
mod functions {
    use super::*;

    vertex! {
        /// A number, and functions of it.
        pub struct Numbers<R> { shared own: R, of: Vector3<R>, quotient: R }
    }
    pub struct Functions;
    kernels! {
        for Functions: Numbers;
        map Apply |_, own| Numbers { of: Vector3::new(own.own.exp(), own.own.sin(), own.own.cos()), ..own };
        map Halve |_, own| Numbers { own: own.own * R::lit(0.5), ..own };
        // Not x / x: a compiler of shaders may take that for 1, and does.
        map Quotient |_, own| Numbers { quotient: (R::lit(1.0) / own.own).exp(), ..own };
        map Mend |_, own| Numbers { quotient: R::lit(1.0), ..own };
    }
    impl Program for Functions {
        fn initial(&self, mesh: &Mesh, v: u32) -> Numbers<f64> {
            Numbers { own: mesh.points()[v as usize][0], of: Vector3::zeros(), quotient: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Apply);
        }
    }

    pub fn points(numbers: impl Iterator<Item = f64>) -> Mesh {
        let points: Vec<[f64; 3]> = numbers.map(|x| [x, 0.0, 0.0]).collect();
        let all = (0..points.len() as u32).collect();
        Mesh::new(points, Cells::of(CellKind::Vertex, all)).unwrap()
    }
}
use functions::{Functions, Halve, Mend, Quotient, points};

#[test]
fn functions_are_exact_to_a_few_roundings() {
    let Some(backend) = gpu_or_skip() else { return };
    let numbers: Vec<f32> = (0..20_000).map(|i| (i as f32 - 10_000.0) * 0.008_713).collect();
    let mesh = points(numbers.iter().map(|&x| f64::from(x)));
    let mut gpu = Simulation::builder(mesh, Functions).backend(backend.clone()).build().unwrap();
    gpu.step().unwrap();
    let of = gpu.field("of").unwrap().values;
    for v in 0..numbers.len() {
        let x = f64::from(numbers[v]);
        let [exp, sin, cos] = [of[3 * v], of[3 * v + 1], of[3 * v + 2]];
        assert!((exp - libm::exp(x)).abs() <= 4e-7 * libm::exp(x) + 1e-38, "exp {x}: {exp}");
        assert!((sin - libm::sin(x)).abs() <= 2e-7, "sin {x}: {sin}");
        assert!((cos - libm::cos(x)).abs() <= 2e-7, "cos {x}: {cos}");
    }
    gpu.run(|stages| (0..3).for_each(|_| stages.map(Halve))).unwrap();
    assert_eq!(gpu.field("own").unwrap().values[10_080], f64::from(numbers[10_080] / 8.0));
}

vertex! { struct Grown<R> { shared size: R } }
struct Growing;
kernels! {
    for Growing: Grown;
    update Grow |_, own, around| Grown {
        size: own.size * R::lit(1e10) + around.sum(Edges, |[other], _| other.size) * R::lit(1e-3),
    };
}
impl Program for Growing {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add(Edges, mesh.edges(), |_| Edge { label: crate::Int(0), weight: 1.0 });
        Ok(())
    }
    fn initial(&self, _: &Mesh, _: u32) -> Grown<f64> {
        Grown { size: 1.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Grow, 2);
    }
}

#[test]
fn steps_and_rounds_after_the_one_that_was_not_finite_do_not_count() {
    let Some(backend) = gpu_or_skip() else { return };
    let run = |backend: Backend| {
        let mut growing = Simulation::builder(mesh(), Growing).backend(backend).build().unwrap();
        let error = (0..9).find_map(|_| growing.step().err()).or_else(|| growing.wait().err()).expect("it overflows");
        assert!(matches!(error, Error::Diverged { step: 2, .. }), "{error}");
        (growing.steps(), growing.rounds())
    };
    assert_eq!(run(backend.clone()), run(Backend::Serial));
}

#[test]
fn the_first_step_that_is_not_finite_is_named_however_late_the_host_looks() {
    let Some(backend) = gpu_or_skip() else { return };
    let build = || {
        let mesh = points((0..20).map(|v| f64::from(v) - 7.0));
        Simulation::builder(mesh, Functions).backend(backend.clone()).build().unwrap()
    };
    let mut gpu = build();
    (0..3).for_each(|_| gpu.step().unwrap());
    let error = gpu.run(|stages| stages.map(Quotient)).unwrap_err();
    assert!(matches!(error, Error::Diverged { vertex: 7, step: 3, .. }), "{error}");
    assert!(matches!(gpu.step().unwrap_err(), Error::Diverged { vertex: 7, .. }));
    // What is mended in the same step is as on the CPU: the run goes on.
    let mut gpu = build();
    gpu.run(|stages| {
        stages.map(Quotient);
        stages.map(Mend);
    })
    .unwrap();
    gpu.run(|stages| stages.map(Halve)).unwrap();
    assert_eq!(gpu.field("own").unwrap().values[19], 6.0);
}

#[test]
fn a_mesh_without_vertices_runs() {
    let Some(backend) = gpu_or_skip() else { return };
    let mesh = Mesh::new(Vec::new(), Cells::of(CellKind::Edge, Vec::new())).unwrap();
    let mut gpu = hashes(&mesh, Order::BLOCKED, backend.clone());
    gpu.run(|stages| stages.scalar(Outer)).unwrap();
    assert_eq!(gpu.globals().unwrap().outer, 1.0);
}

#[test]
fn a_lost_device_is_an_error_for_ever_and_never_an_old_state() {
    let Some(backend) = gpu_or_skip() else { return };
    let mesh = mesh();
    for steps in [0, 1, 20] {
        OPENED.set(Some(None));
        let mut gpu = hashes(&mesh, Order::COLOR, backend.clone());
        (0..steps).for_each(|_| gpu.step().unwrap());
        OPENED.take().flatten().unwrap().destroy();
        let mut failed = 0;
        for _ in 0..3 {
            failed += usize::from(matches!(gpu.step().and_then(|()| gpu.wait()), Err(Error::Gpu(_))));
            assert!(matches!(gpu.field("noise"), Err(Error::Gpu(_))), "after {steps} steps");
            assert!(matches!(gpu.globals(), Err(Error::Gpu(_))) || failed == 0);
        }
        assert_eq!(failed, 3, "after {steps} steps");
    }
}

#[test]
fn shaders_of_all_kernels_are_written_without_a_device() {
    for order in Order::ALL {
        let shaders = Simulation::builder(mesh(), Hashes).order(order).shaders().unwrap();
        for shader in &shaders {
            meshweft_shaders::check(&shader.module).unwrap_or_else(|e| panic!("{order} {}: {e}", shader.kernel));
        }
        let names = ["Look", "Shake", "Most", "Outer", "InnerEnds"];
        assert!(names.iter().all(|name| shaders.iter().any(|shader| shader.kernel == *name)), "{order}");
    }
    assert!(Simulation::builder(mesh(), Hashes).precision::<f64>().shaders().is_err());
}

#[test]
fn boundary_values_are_packed_and_unpacked() {
    let Some(_) = gpu_or_skip() else { return };
    let device = Device::open(0).unwrap();
    let state: Vec<f32> = (0..4000).map(|i| i as f32).collect();
    let slots: Vec<u32> = (0..700).map(|i| (i * 733 + 5) % 1000).collect();
    let list: [u32; 4] = [700, 4, 0, 0];
    let uniform = device.buffer("list", 16, Usage::UNIFORM | Usage::COPY_DST).unwrap();
    device.queue.write_buffer(&uniform, 0, bytemuck::cast_slice(&list));
    let names = device.array("slots", bytemuck::cast_slice(&slots)).unwrap();
    let from = device.array("state", bytemuck::cast_slice(&state)).unwrap();
    let to = device.array("other state", &[0; 16_000]).unwrap();
    let row = device.array("row", &[0; 700 * 16]).unwrap();
    for (kernel, shared) in [(PACK, &from), (UNPACK, &to)] {
        let (pipeline, group) = device.kernel(kernel, &[&uniform, &names, shared, &row]).unwrap();
        let mut encoder = device.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 3, 1);
        drop(pass);
        device.queue.submit([encoder.finish()]);
    }
    let staging = device.buffer("staging", 16_000, Usage::MAP_READ | Usage::COPY_DST).unwrap();
    let mut packed = vec![0f32; 2800];
    device.read(&staging, &row, bytemuck::cast_slice_mut(&mut packed)).unwrap();
    for (i, &slot) in slots.iter().enumerate() {
        assert_eq!(packed[4 * i..4 * i + 4], state[4 * slot as usize..4 * slot as usize + 4]);
    }
    let mut unpacked = vec![0f32; 4000];
    device.read(&staging, &to, bytemuck::cast_slice_mut(&mut unpacked)).unwrap();
    for slot in 0..1000u32 {
        let is_listed = slots.contains(&slot);
        for k in 4 * slot as usize..4 * slot as usize + 4 {
            assert_eq!(unpacked[k], if is_listed { state[k] } else { 0.0 });
        }
    }
}

/// A kernel that a person wrote, between the functions that surround every traced one.
mod by_hand {
    use super::*;
    use crate::engine::{Engine, Table};
    use crate::gpu::{scalar, sources};
    use crate::layout::{Forms, Layout, Shape, State, data_graph};
    use crate::program::{StarPlan, Vertex};
    use crate::step::{Stage, Step};
    use crate::trace;
    use meshweft_schedule::{Rule, Schedule};
    use meshweft_shaders::Body;
    use std::sync::Arc;

    vertex! { struct Counted<R> { shared count: R, from: R } }
    struct Count;
    kernels! {
        for Count: Counted;
        update Next |_, own, around| {
            let zero = R::lit(0.0);
            let most = around.fold(Edges, zero, |most, [other], edge| most.max(other.count + edge.weight));
            Counted { count: most + own.count, from: own.count }
        };
    }
    impl Program for Count {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Edges, mesh.edges(), |i| Edge { label: crate::Int(0), weight: f64::from(i.element as u32 % 3) });
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Counted<f64> {
            Counted { count: f64::from(v % 3), from: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.jacobi(Next, 4);
        }
    }

    const NEXT: &str = "    let edges = things_0(place);
    var most = 0.0;
    for (var j = 0u; j < edges.count; j++) {
        most = max(most, other_0(edges, j, 0u).count + data_0(edges, j).weight);
    }
    return New(Shared(most + own.count), Private(own.count));
";

    /// The engine with that kernel instead of the traced one.
    fn engine(mesh: &Mesh, order: Order) -> (Arc<Layout>, Box<dyn Engine<f32>>) {
        let mut stars = Stars::default();
        Count.stars(mesh, &mut stars).unwrap();
        let shapes: Vec<_> = stars.plans.iter().map(StarPlan::common).collect();
        let mut table = Table::<f32>::of::<Count>();
        let physics = trace::physics(&table.records, &shapes, &table.projected, scalar::<f32>().unwrap());
        let mut kernels = sources(table.trace(&physics, &shapes).unwrap()).unwrap();
        let by_hand = Body::update(NEXT.into(), true, vec![true]);
        assert_ne!(kernels[0].body, by_hand);
        kernels[0].body = by_hand;
        let device = Device::open(0).unwrap();
        let numbers = order.curve.order(mesh.points());
        let graph = data_graph(&numbers, &stars.plans).unwrap();
        let schedule = Schedule::new(&graph, order, 64).unwrap();
        let shape = Shape { width: device.width(), shared: 1, private: 1 };
        let layout =
            Arc::new(Layout::new(schedule, &numbers, &stars.plans, Precision::F32, shape, Forms::Tables).unwrap());
        let state = State::of(layout.slots(), shape.width, |slot| {
            let start = Count.initial(mesh, layout.vertex_at(layout.place(slot) as u32));
            Counted { count: start.count as f32, from: 0.0 }.split()
        });
        let engine = crate::gpu::engine(device, layout.domain.clone(), (&physics, kernels), state, Vec::new()).unwrap();
        (layout, engine)
    }

    #[test]
    fn a_kernel_written_by_hand_has_the_bits_of_the_one_that_was_traced() {
        let Some(_) = gpu_or_skip() else { return };
        let mesh = mesh();
        for order in [Order::COLOR, Order::JACOBI, Order::blocked(64)] {
            // In integers below 2^24, which no driver rounds.
            let mut oracle =
                Simulation::builder(mesh.clone(), Count).order(order).backend(Backend::Serial).build().unwrap();
            oracle.step().unwrap();
            let (layout, mut engine) = engine(&mesh, order);
            let stages = vec![Stage::Update {
                kernel: 0,
                part: None,
                settings: Default::default(),
                rule: Rule::AtOnce,
                rounds: 4,
            }];
            engine.step(&Step { number: 0, parameters: Vec::new(), stages }).unwrap();
            let state = engine.state().unwrap();
            for v in 0..mesh.points().len() as u32 {
                let expected = oracle.vertex(v).unwrap();
                let own = [0, 1].map(|k| state.real(layout.slot(v), k));
                assert_eq!(own, [expected.count, expected.from], "{order}, vertex {v}");
            }
        }
    }
}

/// `f(x, y)` as a shader computes it, for pairs of numbers.
fn on_device(device: &Device, f: &str, pairs: &[[f32; 2]]) -> Vec<f32> {
    let text = format!(
        "@group(0) @binding(0) var<storage, read> pairs: array<vec2f>;\n\
         @group(0) @binding(1) var<storage, read_write> values: array<f32>;\n\
         @compute @workgroup_size(64)\n\
         fn apply(@builtin(global_invocation_id) id: vec3u) {{\n    if id.x < arrayLength(&values) {{\n        \
         let x = pairs[id.x].x;\n        let y = pairs[id.x].y;\n        values[id.x] = {f};\n    }}\n}}\n{}",
        meshweft_shaders::functions(f)
    );
    let kernel = meshweft_shaders::Kernel { name: "apply", source: text.leak(), workgroup_size: 64 };
    let bytes = 4 * pairs.len() as u64;
    let from = device.array("pairs", bytemuck::cast_slice(pairs)).unwrap();
    let to = device.array("values", &vec![0; bytes as usize]).unwrap();
    let (pipeline, group) = device.kernel(kernel, &[&from, &to]).unwrap();
    let mut encoder = device.device.create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&Default::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups(pairs.len().div_ceil(64) as u32, 1, 1);
    drop(pass);
    device.queue.submit([encoder.finish()]);
    let staging = device.buffer("staging", bytes, Usage::MAP_READ | Usage::COPY_DST).unwrap();
    let mut values = vec![0f32; pairs.len()];
    device.read(&staging, &to, bytemuck::cast_slice_mut(&mut values)).unwrap();
    values
}

/// By how many units in the last place a float is off; infinite where only one of both is NaN or infinite.
fn ulps(found: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if found == rounded || found.is_nan() && exact.is_nan() {
        return 0.0;
    }
    // A device may take numbers below the smallest normal float for zero.
    let unit = f64::from(f32::from_bits(rounded.abs().to_bits() + 1) - rounded.abs()).max(f64::from(f32::MIN_POSITIVE));
    let off = (f64::from(found) - exact).abs() / unit;
    if off.is_nan() { f64::INFINITY } else { off }
}

#[test]
fn functions_of_shaders_are_exact_to_a_few_units_in_the_last_place() {
    let Some(_) = gpu_or_skip() else { return };
    let device = Device::open(0).unwrap();
    // Floats of every size and sign, by their bits, and many of ordinary size.
    let special =
        [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-40];
    let any = |n: u32| (0..n).map(move |i| f32::from_bits(i.wrapping_mul(u32::MAX / n) + 0x5bd1));
    let ordinary = |n: i32| (0..n).map(move |i| (i - n / 2) as f32 * (24.0 / n as f32) + 1e-4);
    let unary: Vec<[f32; 2]> =
        special.into_iter().chain(any(100_000)).chain(ordinary(100_000)).map(|x| [x, 0.0]).collect();
    let some: Vec<f32> =
        special.into_iter().chain(any(300)).chain(ordinary(300)).chain([2.0, 3.0, 0.5, -7.0]).collect();
    let binary: Vec<[f32; 2]> = some.iter().flat_map(|&x| some.iter().map(move |&y| [x, y])).collect();
    type Exact = fn(f64, f64) -> f64;
    let functions: [(&str, &[[f32; 2]], f64, Exact); 8] = [
        ("ln_exact(x)", &unary, 2.0, |x, _| libm::log(x)),
        ("exp_exact(x)", &unary, 3.0, |x, _| libm::exp(x)),
        ("acos_exact(x)", &unary, 3.0, |x, _| libm::acos(x)),
        ("tanh_exact(x)", &unary, 3.0, |x, _| libm::tanh(x)),
        ("floor(x)", &unary, 0.0, |x, _| libm::floor(x)),
        ("pow_exact(x, y)", &binary, 2.0, libm::pow),
        ("atan2_exact(y, x)", &binary, 3.0, |x, y| libm::atan2(y, x)),
        ("f32(integer_of(x))", &unary, 0.0, |x, _| f64::from(x as i32 as f32)),
    ];
    for (f, pairs, bound, exact) in functions {
        let values = on_device(&device, f, pairs);
        // A device may take numbers below the smallest normal float for zero, also where they come in.
        let flushed = |x: f32| if x.is_subnormal() { f32::copysign(0.0, x) } else { x };
        let off = |i: &usize| {
            let [x, y] = pairs[*i];
            let of = |x: f32, y: f32| ulps(values[*i], exact(x.into(), y.into()));
            of(x, y).min(of(flushed(x), flushed(y)))
        };
        let worst = (0..pairs.len()).max_by(|i, j| off(i).total_cmp(&off(j))).unwrap();
        let ([x, y], value) = (pairs[worst], values[worst]);
        eprintln!("{f} is off by {:.2} units at most, at x = {x:e}, y = {y:e}", off(&worst));
        assert!(off(&worst) <= bound, "{f} of {x:e}, {y:e} is {value:e}, off by {} units", off(&worst));
    }
    // Remainders jump: multiples must not be taken for what is just below them, and others are near in units of y.
    let pairs: Vec<[f32; 2]> =
        (-500..500).flat_map(|i| ordinary(97).map(move |y| [i as f32 * 0.125, (y * 8.0).round() / 8.0])).collect();
    for ([x, y], value) in pairs.iter().zip(on_device(&device, "rem_exact(x, y)", &pairs)) {
        let exact = Real::rem(*x, *y);
        assert!(value == exact || value.is_nan() && exact.is_nan(), "{x} rem {y} is {exact}, not {value}");
    }
}
