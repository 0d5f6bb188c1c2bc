//! The Ising model by Metropolis, in integers.

use super::*;

vertex! { pub struct Site<R> { shared spin: R::Int } }
record! { pub struct Sums<R> { energy: R, total: R } }

#[derive(Clone)]
pub(crate) struct Ising {
    pub(crate) beta: f64,
}

kernels! {
    for Ising: Site, (), Sums;
    update Metropolis[beta] |p, own, around| {
        let field: R::Int = around.sum(Edges, |[other], ()| other.spin);
        let cost = R::lit(2.0) * R::from_int(own.spin * field);
        let flips = p.uniform(1).less((-beta * cost).exp());
        Site { spin: R::Int::select(flips, -own.spin, own.spin) }
    };
    sum Energy("energy", "J") |_, own, around| {
        let field: R::Int = around.sum(Edges, |[other], ()| other.spin);
        R::from_int(own.spin * field) * R::lit(-0.5)
    };
    sum Magnetization("magnetization", "") |_, own, _| R::from_int(own.spin);
    scalar Gather |p| Sums { total: p.globals.total + p.globals.energy, ..p.globals };
}

impl Program for Ising {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        add_edges(mesh, stars)
    }
    fn initial(&self, _: &Mesh, _: u32) -> Site<f64> {
        Site { spin: Int(1) }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Metropolis { beta: self.beta }, 1);
        stages.reduce(Energy, |g| &mut g.energy);
        stages.scalar(Gather);
    }
}

/// The mean energy of a small lattice, over all of its states.
fn exact(mesh: &Mesh, beta: f64) -> f64 {
    let edges = mesh.edges();
    let (mut weights, mut energies) = (0.0, 0.0);
    for state in 0..1u32 << mesh.points().len() {
        let unlike = edges.iter().filter(|[a, b]| (state >> a ^ state >> b) & 1 == 1).count();
        let energy = 2.0 * unlike as f64 - edges.len() as f64;
        let weight = f64::exp(-beta * energy);
        (weights, energies) = (weights + weight, energies + weight * energy);
    }
    energies / weights
}

#[test]
fn the_energy_of_an_ising_lattice_is_that_of_all_its_states() {
    const STEPS: usize = 5000;
    let mesh = generate("quads:4", 1).unwrap();
    assert_eq!(mesh.edges().len(), 24);
    for (beta, order) in [(0.2, Order::COLOR), (0.4, Order::PRIORITY_DAG)] {
        let simulation = after(STEPS, &mesh, &Ising { beta }, order);
        let mean = simulation.globals().unwrap().total / STEPS as f64;
        let exact = exact(&mesh, beta);
        // Deviation of the energy below 8, of neighboring steps alike below ten: five deviations of the mean.
        let bound = 5.0 * 8.0 * f64::sqrt(10.0 / STEPS as f64);
        assert!((mean - exact).abs() < bound / 3.0, "{mean} {exact}");
    }
}

#[test]
fn an_ising_lattice_is_ordered_when_cold_and_not_when_hot() {
    let mesh = generate("quads:24", 1).unwrap();
    let order = |beta| after(100, &mesh, &Ising { beta }, Order::BLOCKED).metric("magnetization").unwrap() / 576.0;
    assert!(order(1.0) > 0.98 && order(0.1).abs() < 0.3, "{} {}", order(1.0), order(0.1));
    // Without a field nothing is flipped back: at no temperature at all, every flip is taken.
    assert_eq!(order(0.0), 1.0);
    // Spins are integers: none may differ.
    on_gpu(100, &mesh, &Ising { beta: 0.4 }, Order::COLOR, 0.0);
}
