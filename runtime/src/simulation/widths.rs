//! Every width, size of records and kind of tile against the oracle [C5].

use super::*;
use crate::program::{Combine, Incidence, Neighbors, Real, Star, Stars};
use crate::schedule::Order;
use meshweft_mesh::generate::generate;
use meshweft_mesh::{CellKind, Cells};
use nalgebra::SVector;

/// A program with `S` reals of shared and `Q` of private state, a star of edges and one of triangles.
struct Sized<const S: usize, const Q: usize>;
struct Pairs;
struct Triples;
struct Mix;
struct Drift;
struct Mean;
impl Star<1> for Pairs {
    const INDEX: usize = 0;
    type Data<R: Real> = R;
}
impl Star<2> for Triples {
    const INDEX: usize = 1;
    type Data<R: Real> = (R, R);
}
impl<const S: usize, const Q: usize> Kernel<Sized<S, Q>> for Mix {
    const NAME: &'static str = "mix";
    fn update<R: Real>(
        _: &(),
        own: SVector<R, S>,
        private: SVector<R, Q>,
        neighbors: &impl Neighbors<R, SVector<R, S>>,
    ) -> (SVector<R, S>, SVector<R, Q>) {
        let pairs = neighbors
            .fold(Pairs, (own, R::lit(1.0)), |(sum, count), [other], weight| (sum + other * weight, count + weight));
        let all = neighbors.fold(Triples, pairs, |(sum, count), [a, b], (p, q)| (sum + a * p - b * q, count + p));
        let mean = all.0 / all.1;
        (mean, private.map(|x| x + mean[0] * R::lit(0.125)))
    }
}
impl<const S: usize, const Q: usize> Map<Sized<S, Q>> for Drift {
    const NAME: &'static str = "drift";
    fn update<R: Real>(_: &(), own: SVector<R, S>, private: SVector<R, Q>) -> (SVector<R, S>, SVector<R, Q>) {
        (own.map(|x| x + private[0] * R::lit(0.25)), private)
    }
}
impl<const S: usize, const Q: usize> Reduce<Sized<S, Q>> for Mean {
    const NAME: &'static str = "mean";
    const UNIT: &'static str = "";
    const COMBINE: Combine = Combine::Sum;
    fn measure<R: Real>(
        _: &(),
        own: SVector<R, S>,
        private: SVector<R, Q>,
        neighbors: &impl Neighbors<R, SVector<R, S>>,
    ) -> R {
        neighbors.fold(Triples, own[S - 1] + private[Q - 1], |sum, [a, _], (p, _)| sum + a[0] * p)
    }
}
impl<const S: usize, const Q: usize> Program for Sized<S, Q> {
    type Parameters<R: Real> = ();
    type Shared<R: Real> = SVector<R, S>;
    type Private<R: Real> = SVector<R, Q>;
    fn time_step(&self) -> f64 {
        1.0
    }
    fn parameters(&self, _: f64) {}
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add(Pairs, mesh.edges(), |i: Incidence<2>| f64::from(i.vertices[0] % 7) * 0.01);
        stars.add(Triples, mesh.triangles(), |i: Incidence<3>| {
            (0.02 * i.corner as f64, f64::from(i.vertices[2]) * 1e-6)
        });
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> (SVector<f64, S>, SVector<f64, Q>) {
        let at = |i: usize| f64::from(v * 37 % 101) * 0.01 + i as f64;
        (SVector::from_fn(|i, _| at(i)), SVector::from_fn(|i, _| -at(i)))
    }
    fn step(&self, stages: &mut impl Stages<Self>) {
        stages.map(Drift);
        stages.sweep(Mix, 2);
        stages.jacobi(Mix, 1);
    }
    fn metrics(&self, metrics: &mut impl Metrics<Self>) {
        metrics.measure(Mean);
    }
}

/// A ball of triangles, a fan whose hub has far more neighbors than others, and vertices without any.
fn uneven() -> Mesh {
    let ball = generate("ball:5", 1).unwrap();
    let mut points = ball.points().to_vec();
    let mut corners: Vec<u32> = ball.triangles().into_flattened();
    let hub = points.len() as u32;
    points.extend((0..203).map(|i| [2.0 + Real::cos(f64::from(i)), Real::sin(f64::from(i)), 0.01 * f64::from(i)]));
    corners.extend((1..200).flat_map(|i| [hub, hub + i, hub + i + 1]));
    Mesh::new(points, Cells::of(CellKind::Triangle, corners)).unwrap()
}

fn check_sizes<T: Number, const S: usize, const Q: usize>(mesh: &Mesh) {
    for order in Order::ALL {
        let run = |backend, simd| {
            let builder = Simulation::builder(mesh.clone(), Sized::<S, Q>).order(order).backend(backend).simd(simd);
            let mut simulation = builder.precision::<T>().block_size(50).build().unwrap();
            // Clones of a vertex must follow what is written from outside.
            let last = mesh.points().len() as u32 - 1;
            for v in [0, last / 2, last] {
                let (shared, private) = simulation.vertex(v).unwrap();
                simulation.set_vertex(v, shared * T::from_f64(1.5), private).unwrap();
            }
            let name = simulation.fields()[1].name.clone();
            let doubled: Vec<f64> = simulation.field(&name).unwrap().values.iter().map(|x| 2.0 * x).collect();
            simulation.set_field(&name, &doubled).unwrap();
            (0..3).for_each(|_| simulation.step().unwrap());
            simulation
        };
        let mut oracle = run(Backend::Serial, Simd::Off);
        for simd in [Simd::Off, Simd::Bits256, Simd::Bits512] {
            let mut simulation = run(Backend::Cpu { threads: 2 }, simd);
            simulation.compare(&oracle).unwrap_or_else(|e| panic!("{S} and {Q} reals, {order}, {simd:?}: {e}"));
            assert_eq!(
                simulation.metrics().unwrap(),
                oracle.metrics().unwrap(),
                "{S} and {Q} reals, {order}, {simd:?}"
            );
        }
    }
}

fn check_on_gpu<const S: usize, const Q: usize>(mesh: &Mesh, adapter: usize) {
    for order in Order::ALL {
        for block_size in [50, 100_000] {
            let run = |backend| {
                let builder = Simulation::builder(mesh.clone(), Sized::<S, Q>).order(order).block_size(block_size);
                let mut simulation = builder.backend(backend).build().unwrap();
                (0..3).for_each(|_| simulation.step().unwrap());
                simulation
            };
            let (mut gpu, mut oracle) = (run(Backend::Gpu { adapter }), run(Backend::Serial));
            for part in gpu.fields() {
                let (a, b) = (gpu.field(&part.name).unwrap().values, oracle.field(&part.name).unwrap().values);
                let scale = b.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                for (x, y) in a.iter().zip(&b) {
                    assert!((x - y).abs() <= 1e-5 * scale, "{S} and {Q} reals, {order}, {}: {x} {y}", part.name);
                }
            }
            let (a, b) = (gpu.metrics().unwrap()[0].value, oracle.metrics().unwrap()[0].value);
            assert!((a - b).abs() <= 1e-5 * b.abs(), "{S} and {Q} reals, {order}: {a} {b}");
            let again = run(Backend::Gpu { adapter });
            again.compare(&gpu).unwrap_or_else(|e| panic!("{S} and {Q} reals, {order}, run to run: {e}"));
        }
    }
}

#[test]
fn a_gpu_takes_records_of_every_size_and_uneven_degrees() {
    let Some(adapter) = super::tests::gpu_or_skip() else { return };
    let mesh = uneven();
    check_on_gpu::<1, 1>(&mesh, adapter);
    check_on_gpu::<2, 3>(&mesh, adapter);
    check_on_gpu::<3, 2>(&mesh, adapter);
    check_on_gpu::<5, 4>(&mesh, adapter);
    check_on_gpu::<37, 1>(&mesh, adapter);
}

#[test]
fn records_of_every_size_and_uneven_degrees_run_side_by_side_as_one_by_one() {
    let mesh = uneven();
    check_sizes::<f32, 1, 1>(&mesh);
    check_sizes::<f32, 2, 3>(&mesh);
    check_sizes::<f32, 3, 2>(&mesh);
    check_sizes::<f64, 4, 1>(&mesh);
    check_sizes::<f64, 5, 4>(&mesh);
    check_sizes::<f32, 9, 1>(&mesh);
    check_sizes::<f32, 37, 1>(&mesh);
}
