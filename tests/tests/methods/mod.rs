//! Numerical methods as short as on paper: the same bits on every CPU engine, close to them on a GPU, each against what is known
//! of it.

mod adaptive_step;
mod chebyshev;
mod conjugate_gradients;
mod elements;
pub(crate) mod finite_volumes;
mod gauss_seidel;
pub(crate) mod gray_scott;
pub(crate) mod ising;
mod page_rank;

use meshweft::conformance::gpu_or_skip;
use meshweft::mesh::CellKind;
use meshweft::mesh::generate::generate;
use meshweft::{
    Backend, Incidence, Int, Integer, Mesh, Number, Order, Program, Real, Result, Simd, Simulation, Stages, Stars,
    kernels, record, stars, vertex,
};

/// A program after some steps.
fn run<P: Program + Clone, T: Number>(
    steps: usize,
    mesh: &Mesh,
    program: &P,
    (order, backend, simd): (Order, Backend, Simd),
) -> Simulation<P, T> {
    let builder =
        Simulation::builder(mesh.clone(), program.clone()).order(order.resolved(40)).backend(backend).simd(simd);
    let mut simulation = builder.precision::<T>().build().unwrap();
    (0..steps).for_each(|_| simulation.step().unwrap());
    simulation.wait().unwrap();
    simulation
}

/// A program after some steps, in 64 bits, once all engines on CPUs agree on it.
fn after<P: Program + Clone>(steps: usize, mesh: &Mesh, program: &P, order: Order) -> Simulation<P, f64> {
    let oracle = run(steps, mesh, program, (order, Backend::Serial, Simd::Off));
    for (threads, simd) in (1..).zip(Simd::built().iter().copied()) {
        let other = run(steps, mesh, program, (order, Backend::Cpu { threads }, simd));
        other.compare(&oracle).unwrap_or_else(|e| panic!("{order}, {threads} threads, {simd:?}: {e}"));
    }
    oracle
}

/// The same in 32 bits on a GPU, if there is one: every field is that of the oracle in 32 bits, but for `bound` times the largest
/// value of the state.
fn on_gpu<P: Program + Clone>(steps: usize, mesh: &Mesh, program: &P, order: Order, bound: f64) {
    let Some(backend) = gpu_or_skip() else { return };
    let oracle = run::<P, f32>(steps, mesh, program, (order, Backend::Serial, Simd::Off));
    let gpu = run::<P, f32>(steps, mesh, program, (order, backend, Simd::Off));
    let state = |simulation: &Simulation<P, f32>| -> Vec<(String, Vec<f64>)> {
        let fields = simulation.fields().into_iter();
        fields.map(|field| (field.name.clone(), simulation.field(&field.name).unwrap().values)).collect()
    };
    let [own, expected] = [&gpu, &oracle].map(state);
    let scale = expected.iter().flat_map(|(_, values)| values).fold(0.0, |most: f64, x| most.max(x.abs()));
    for ((name, own), (_, expected)) in own.iter().zip(&expected) {
        let off = distance(own, expected);
        assert!(off <= bound * scale, "{order}, {name}: {off} of {scale}");
    }
}

fn values<P: Program>(simulation: &Simulation<P, f64>, field: &str) -> Vec<f64> {
    simulation.field(field).unwrap().values
}

/// The solution of a dense system, by elimination with pivots.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).expect("rows are left");
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in (0..n).filter(|&i| i != k) {
            let factor = a[i][k] / a[k][k];
            let row = a[k].clone();
            a[i].iter_mut().zip(row).for_each(|(x, y)| *x -= factor * y);
            b[i] -= factor * b[k];
        }
    }
    (0..n).map(|k| b[k] / a[k][k]).collect()
}

/// The largest difference.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most, (x, y)| most.max((x - y).abs()))
}

stars! { pub(crate) Edges[1]; }

pub(crate) fn add_edges(mesh: &Mesh, stars: &mut Stars) -> Result<()> {
    stars.add(Edges, mesh.edges(), |_| ());
    Ok(())
}

/// The graph Laplacian of a mesh with ones in the rows of fixed vertices.
fn laplacian(mesh: &Mesh, fixed: &[bool]) -> Vec<Vec<f64>> {
    let n = mesh.points().len();
    let mut a = vec![vec![0.0; n]; n];
    for [v, u] in mesh.edges().into_iter().flat_map(|[v, u]| [[v, u], [u, v]]).map(|e| e.map(|v| v as usize)) {
        if !fixed[v] {
            a[v][v] += 1.0;
            a[v][u] -= 1.0;
        }
    }
    (0..n).filter(|&v| fixed[v]).for_each(|v| a[v][v] = 1.0);
    a
}
