//! Gauss–Seidel, forth and back.

use super::*;

vertex! { pub struct Height<R> { shared x: R, b: R } }

#[derive(Clone)]
struct Symmetric;

kernels! {
    for Symmetric: Height;
    update Relax |_, own, around| {
        let (sum, degree) = around.sum(Edges, |[other], ()| (other.x, R::lit(1.0)));
        Height { x: (own.b + sum) / degree, ..own }
    };
}

impl Program for Symmetric {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        add_edges(mesh, stars)
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Height<f64> {
        Height { x: mesh.points()[v as usize][0], b: f64::from(v % 7) - 3.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Relax, 1);
        stages.sweep_backward(Relax, 1);
    }
}

#[test]
fn symmetric_gauss_seidel_has_the_bits_of_the_loop_forth_and_back() {
    let mesh = generate("sheet:12", 3).unwrap();
    for order in Order::ALL.into_iter().filter(|&order| order != Order::JACOBI) {
        let simulation = after(3, &mesh, &Symmetric, order);
        let number = simulation.order().curve.order(mesh.points());
        let places = number.then(simulation.schedule().permutation());
        let mut neighbors = vec![Vec::new(); mesh.points().len()];
        for [a, b] in mesh.edges() {
            neighbors[a as usize].push(b);
            neighbors[b as usize].push(a);
        }
        // Sums go along the curve.
        neighbors.iter_mut().for_each(|around| around.sort_by_key(|&u| number.rank()[u as usize]));
        let start = (0..mesh.points().len() as u32).map(|v| Symmetric.initial(&mesh, v));
        let (mut x, b): (Vec<f64>, Vec<f64>) = start.map(|height| (height.x, height.b)).unzip();
        let forth_and_back = || places.order().iter().chain(places.order().iter().rev());
        for &v in (0..3).flat_map(|_| forth_and_back()) {
            let around = &neighbors[v as usize];
            let sum = around.iter().fold(0.0, |sum, &u| sum + x[u as usize]);
            x[v as usize] = (b[v as usize] + sum) / around.len() as f64;
        }
        assert_eq!(values(&simulation, "x"), x, "{order}");
        on_gpu(3, &mesh, &Symmetric, order, 1e-6);
    }
}
