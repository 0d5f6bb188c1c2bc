//! What needs a device and no example: cut arrays, functions, boundary values.

use super::device::Device;
use crate::program::{Kernel, Map, Neighbors, Program, Real, Stages, Star, Stars};
use crate::simulation::tests::gpu_or_skip;
use crate::{Backend, Error, Order, Result, Simulation};
use meshweft_mesh::generate::generate;
use meshweft_mesh::{CellKind, Cells, Mesh};
use meshweft_shaders::{PACK, UNPACK};
use nalgebra::Vector3;
use wgpu::BufferUsages as Usage;

/// Functions of its own number, and a mean over the neighbors.
struct Functions;
struct Edges;
struct Apply;
struct Smooth;

impl Star<1> for Edges {
    const INDEX: usize = 0;
    type Data<R: Real> = R;
}

impl Map<Functions> for Apply {
    const NAME: &'static str = "apply";
    fn update<R: Real>(_: &(), own: R, _: Vector3<R>) -> (R, Vector3<R>) {
        (own, Vector3::new(own.exp(), own.sin(), own.cos()))
    }
}

impl Kernel<Functions> for Smooth {
    const NAME: &'static str = "smooth";
    fn update<R: Real>(_: &(), own: R, private: Vector3<R>, neighbors: &impl Neighbors<R, R>) -> (R, Vector3<R>) {
        let start = (own, R::lit(1.0));
        let (sum, total) = neighbors.fold(Edges, start, |(sum, total), [other], w| (sum + other * w, total + w));
        (sum / total, private)
    }
}

impl Program for Functions {
    type Parameters<R: Real> = ();
    type Shared<R: Real> = R;
    type Private<R: Real> = Vector3<R>;
    fn time_step(&self) -> f64 {
        1.0
    }
    fn parameters(&self, _: f64) {}
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add(Edges, mesh.edges(), |i| 1.0 + f64::from(i.vertices[0] % 3));
        Ok(())
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> (f64, Vector3<f64>) {
        (mesh.points()[v as usize][0], Vector3::zeros())
    }
    fn step(&self, stages: &mut impl Stages<Self>) {
        stages.map(Apply);
        stages.sweep(Smooth, 2);
        stages.jacobi(Smooth, 1);
    }
}

#[test]
fn functions_are_exact_to_a_few_roundings() {
    let Some(adapter) = gpu_or_skip() else { return };
    let numbers: Vec<f32> = (0..20_000).map(|i| (i as f32 - 10_000.0) * 0.008_713).collect();
    let points = numbers.iter().map(|&x| [f64::from(x), 0.0, 0.0]).collect();
    let mesh = Mesh::new(points, Cells::of(CellKind::Vertex, (0..20_000).collect())).unwrap();
    let mut gpu = Simulation::builder(mesh, Functions).backend(Backend::Gpu { adapter }).build().unwrap();
    gpu.step().unwrap();
    for v in 0..numbers.len() {
        let x = f64::from(numbers[v]);
        let [exp, sin, cos] = <[f32; 3]>::from(gpu.vertex(v as u32).unwrap().1).map(f64::from);
        assert!((exp - libm::exp(x)).abs() <= 4e-7 * libm::exp(x) + 1e-38, "exp {x}: {exp}");
        assert!((sin - libm::sin(x)).abs() <= 2e-7, "sin {x}: {sin}");
        assert!((cos - libm::cos(x)).abs() <= 2e-7, "cos {x}: {cos}");
    }
}

#[test]
fn a_program_without_neighbors_runs() {
    struct Alone;
    impl Map<Alone> for Apply {
        const NAME: &'static str = "halve";
        fn update<R: Real>(_: &(), own: R, _: ()) -> (R, ()) {
            (own * R::lit(0.5), ())
        }
    }
    impl Program for Alone {
        type Parameters<R: Real> = ();
        type Shared<R: Real> = R;
        type Private<R: Real> = ();
        fn time_step(&self) -> f64 {
            1.0
        }
        fn parameters(&self, _: f64) {}
        fn stars(&self, _: &Mesh, _: &mut Stars) -> Result<()> {
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> (f64, ()) {
            (f64::from(v), ())
        }
        fn step(&self, stages: &mut impl Stages<Self>) {
            stages.map(Apply);
        }
    }
    let Some(adapter) = gpu_or_skip() else { return };
    let builder = Simulation::builder(generate("chain:100", 1).unwrap(), Alone).backend(Backend::Gpu { adapter });
    let mut gpu = builder.build().unwrap();
    (0..3).for_each(|_| gpu.step().unwrap());
    assert_eq!(gpu.vertex(80).unwrap().0, 10.0);
}

#[test]
fn the_exponential_of_no_number_is_no_number() {
    struct Quotient;
    impl Map<Quotient> for Apply {
        const NAME: &'static str = "quotient";
        fn update<R: Real>(_: &(), own: R, _: R) -> (R, R) {
            (own, (own / own).exp())
        }
    }
    impl Program for Quotient {
        type Parameters<R: Real> = ();
        type Shared<R: Real> = R;
        type Private<R: Real> = R;
        fn time_step(&self) -> f64 {
            1.0
        }
        fn parameters(&self, _: f64) {}
        fn stars(&self, _: &Mesh, _: &mut Stars) -> Result<()> {
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> (f64, f64) {
            (f64::from(v) - 7.0, 0.0)
        }
        fn step(&self, stages: &mut impl Stages<Self>) {
            stages.map(Apply);
        }
    }
    let Some(adapter) = gpu_or_skip() else { return };
    let builder = Simulation::builder(generate("chain:20", 1).unwrap(), Quotient).backend(Backend::Gpu { adapter });
    let mut gpu = builder.build().unwrap();
    let error = gpu.step().and_then(|()| gpu.wait()).unwrap_err();
    assert!(matches!(error, Error::Diverged { vertex: 7, step: 1, .. }), "{error}");
}

#[test]
fn arrays_in_pieces_grids_of_two_dimensions_and_a_submission_a_dispatch_change_no_bit() {
    let Some(adapter) = gpu_or_skip() else { return };
    let mesh = generate("box:20", 1).unwrap();
    for order in Order::ALL {
        for block_size in [30, 300] {
            let run = |cut: Option<(u64, u32)>| {
                let builder = Simulation::builder(mesh.clone(), Functions).order(order).block_size(block_size);
                let mut simulation = builder.backend(Backend::Gpu { adapter }).build().unwrap();
                if let Some((binding_bytes, workgroups)) = cut {
                    simulation.limit_gpu(adapter, binding_bytes, workgroups)?;
                }
                (0..3).for_each(|_| simulation.step().unwrap());
                let digest = simulation.digest();
                let counters = simulation.gpu_counters().unwrap();
                assert_eq!(counters.submissions >= counters.dispatches, cut.is_some());
                digest
            };
            let whole = run(None).unwrap();
            match run(Some((160 << 10, 3))) {
                Ok(digest) => assert_eq!(digest, whole, "{order}, blocks of {block_size}"),
                // Tasks that become ready anywhere need one array.
                Err(error) => {
                    assert_eq!(order, Order::PriorityDag, "{error}");
                    assert!(error.to_string().contains("order blocked"), "{error}");
                }
            }
            assert_eq!(run(Some((1 << 30, 3))).unwrap(), whole, "{order}, two dimensions");
        }
    }
}

#[test]
fn boundary_values_are_packed_and_unpacked() {
    let Some(adapter) = gpu_or_skip() else { return };
    let device = Device::open(adapter).unwrap();
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
