//! Numerical methods as short as on paper, with the same bits on every CPU engine, each against what is known of it.

use super::*;
use crate::number::{Int, Integer};
use crate::program::{Incidence, Stars};
use crate::schedule::Order;
use crate::{kernels, record, stars, vertex};
use meshweft_mesh::generate::generate;

/// Engines that must agree in every bit, the oracle first.
fn backends() -> Vec<(Backend, Simd)> {
    let cpus = [(1, Simd::Bits256), (2, Simd::Off), (3, Simd::Bits512)];
    let cpus = cpus.map(|(threads, simd)| (Backend::Cpu { threads }, simd));
    std::iter::once((Backend::Serial, Simd::Off)).chain(cpus).collect()
}

/// A program after some steps, in 64 bits, once all engines agree on it.
fn after<P: Program + Clone>(steps: usize, mesh: &Mesh, program: &P, order: Order) -> Simulation<P, f64> {
    let run = |(backend, simd)| {
        let builder = Simulation::builder(mesh.clone(), program.clone()).order(order).backend(backend).simd(simd);
        let mut simulation = builder.precision::<f64>().build().unwrap();
        (0..steps).for_each(|_| simulation.step().unwrap());
        simulation
    };
    let mut all = backends().into_iter().map(|engine| (engine, run(engine)));
    let (_, oracle) = all.next().expect("the oracle");
    for (engine, other) in all {
        other.compare(&oracle).unwrap_or_else(|e| panic!("{order}, {engine:?}: {e}"));
    }
    oracle
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

stars! { Edges[1]; }

fn add_edges(mesh: &Mesh, stars: &mut Stars) -> Result<()> {
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

mod conjugate_gradients {
    use super::*;

    vertex! { pub struct Row<R> { shared p: R, x: R, r: R, ap: R } }
    record! { pub struct Dots<R> { rr: R, pap: R, next: R } }

    #[derive(Clone)]
    struct Poisson;

    kernels! {
        for Poisson: Row, (), Dots;
        update Apply |_, own, around| {
            let (sum, degree) = around.sum(Edges, |[other], ()| (other.p, R::lit(1.0)));
            Row { ap: degree * own.p - sum, ..own }
        };
        sum Square |_, own, _| own.r * own.r;
        sum Curvature |_, own, _| own.p * own.ap;
        map Descend |p, own| {
            let alpha = p.globals.rr / p.globals.pap;
            Row { x: own.x + alpha * own.p, r: own.r - alpha * own.ap, ..own }
        };
        map Turn |p, own| Row { p: own.r + p.globals.next / p.globals.rr * own.p, ..own };
        scalar Accept |p| Dots { rr: p.globals.next, ..p.globals };
        test Converged[tolerance] |p| p.globals.next.at_most(tolerance * tolerance);
    }

    impl Program for Poisson {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            add_edges(mesh, stars)
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Row<f64> {
            let b = if mesh.boundary()[v as usize] { 0.0 } else { 1.0 + f64::from(v % 5) };
            Row { p: b, x: 0.0, r: b, ap: 0.0 }
        }
        fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
            mesh.boundary()[v as usize]
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.reduce(Square, |g| &mut g.rr);
            stages.reduce(Square, |g| &mut g.next);
            stages.until(Converged { tolerance: 1e-11 }, 1000, |stages| {
                stages.sweep(Apply, 1);
                stages.reduce(Curvature, |g| &mut g.pap);
                stages.map(Descend);
                stages.reduce(Square, |g| &mut g.next);
                stages.map(Turn);
                stages.scalar(Accept);
            });
        }
    }

    #[test]
    fn conjugate_gradients_solve_a_poisson_problem() {
        let mesh = generate("sheet:13", 4).unwrap();
        let fixed = mesh.boundary();
        let b = (0..fixed.len()).map(|v| Poisson.initial(&mesh, v as u32).r).collect();
        let exact = solve(laplacian(&mesh, &fixed), b);
        for order in Order::ALL {
            let solved = after(1, &mesh, &Poisson, order);
            assert!(distance(&values(&solved, "x"), &exact) < 1e-11, "{order}");
            // In exact arithmetic as many rounds as unknowns; with that many eigenvalues far fewer.
            assert!((10..80).contains(&solved.rounds()), "{} rounds", solved.rounds());
            assert!(solved.globals().unwrap().next <= 1e-22);
        }
    }
}

mod gauss_seidel {
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
        }
    }
}

mod adaptive_step {
    use super::*;

    vertex! { pub struct Gas<R> { shared u: R } }
    record! { pub struct Clock<R> { time: R, dt: R, fastest: R, steps: R } }

    /// The porous medium equation `u' = Δ u²`, which spreads the faster the denser it is.
    #[derive(Clone)]
    struct Porous;

    kernels! {
        for Porous: Gas, (), Clock;
        max Fastest |_, own, around| around.sum(Edges, |[other], ()| other.u + own.u);
        scalar Choose |p| {
            let g = p.globals;
            let dt = (R::lit(0.9) / g.fastest).min(R::lit(1.0) - g.time);
            Clock { dt, time: g.time + dt, steps: g.steps + R::lit(1.0), ..g }
        };
        update Spread |p, own, around| {
            let flow = around.sum(Edges, |[other], ()| other.u * other.u - own.u * own.u);
            Gas { u: own.u + p.globals.dt * flow }
        };
        test Arrived |p| p.globals.time.at_least(R::lit(1.0));
        sum Mass("mass", "kg") |_, own, _| own.u;
        min Least("least", "kg") |_, own, _| own.u;
    }

    impl Program for Porous {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            add_edges(mesh, stars)
        }
        fn initial(&self, _: &Mesh, v: u32) -> Gas<f64> {
            Gas { u: if (28..36).contains(&v) { 20.0 } else { 0.0 } }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.until(Arrived, 10_000, |stages| {
                stages.reduce(Fastest, |g| &mut g.fastest);
                stages.scalar(Choose);
                stages.jacobi(Spread, 1);
            });
        }
    }

    #[test]
    fn steps_chosen_by_what_is_measured_arrive_in_time_and_keep_mass_and_sign() {
        let mesh = generate("chain:64", 1).unwrap();
        let mut simulation = after(1, &mesh, &Porous, Order::BLOCKED);
        let clock = simulation.globals().unwrap();
        assert!((simulation.metric("mass").unwrap() - 160.0).abs() < 1e-10);
        assert!(simulation.metric("least").unwrap() >= 0.0);
        assert!((clock.time - 1.0).abs() < 1e-12 && simulation.rounds() == clock.steps as u64);
        // The first step would have been 0.9 / 80: as it thins out, steps get longer.
        assert!((20..88).contains(&simulation.rounds()), "{clock:?}");
        // The same by hand: maxima do not depend on an order, and sums of two neighbors only on which is first.
        let (mut u, mut time) = ((0..64).map(|v| Porous.initial(&mesh, v).u).collect::<Vec<f64>>(), 0.0);
        while time < 1.0 {
            let around = |v: usize| [v.wrapping_sub(1), v + 1].into_iter().filter(|&w| w < 64);
            let fastest = (0..64).map(|v| around(v).map(|w| u[w] + u[v]).sum::<f64>()).fold(0.0, f64::max);
            let dt = f64::min(0.9 / fastest, 1.0 - time);
            let flow = |v: usize| around(v).map(|w| u[w] * u[w] - u[v] * u[v]).sum::<f64>();
            u = (0..64).map(|v| u[v] + dt * flow(v)).collect();
            time += dt;
        }
        assert!(distance(&values(&simulation, "u"), &u) < 1e-12);
    }
}

mod gray_scott {
    use super::*;

    vertex! { pub struct Reagents<R> { shared u: R, shared v: R } }

    #[derive(Clone)]
    struct GrayScott {
        noise: f64,
    }

    kernels! {
        for GrayScott: Reagents;
        update React[noise] |p, own, around| {
            let [f, k, du, dv] = [0.037, 0.06, 0.08, 0.04].map(R::lit);
            let (lu, lv) = around.sum(Edges, |[other], ()| (other.u - own.u, other.v - own.v));
            let reaction = own.u * own.v * own.v;
            Reagents {
                u: own.u + du * lu - reaction + f * (R::lit(1.0) - own.u) + noise * p.normal(1),
                v: own.v + dv * lv + reaction - (f + k) * own.v + noise * p.normal(2),
            }
        };
        sum U("u", "mol") |_, own, _| own.u;
    }

    impl Program for GrayScott {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            add_edges(mesh, stars)
        }
        fn initial(&self, _: &Mesh, v: u32) -> Reagents<f64> {
            if v.is_multiple_of(9) { Reagents { u: 0.5, v: 0.25 } } else { Reagents { u: 1.0, v: 0.0 } }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.jacobi(React { noise: self.noise }, 1);
        }
    }

    #[test]
    fn noise_has_the_same_bits_on_any_threads_and_the_size_that_was_asked_for() {
        let mesh = generate("quads:20", 1).unwrap();
        let [quiet, noisy] = [0.0, 1e-3].map(|noise| after(60, &mesh, &GrayScott { noise }, Order::BLOCKED));
        // One step's noise, vertex by vertex.
        let [before, after] = [0.0, 1e-3].map(|noise| after(1, &mesh, &GrayScott { noise }, Order::BLOCKED));
        let noise = values(&after, "u").into_iter().zip(values(&before, "u")).map(|(a, b)| (a - b) / 1e-3);
        let square = noise.map(|x| x * x).sum::<f64>() / 400.0;
        // The variance of 400 normal squares is 2 / 400: five deviations.
        assert!((square - 1.0).abs() < 5.0 * f64::sqrt(2.0 / 400.0), "{square}");
        let [a, b] = [quiet, noisy].map(|mut simulation| simulation.metric("u").unwrap());
        assert!(a != b && (a - b).abs() < 20.0, "{a} {b}");
    }
}

mod ising {
    use super::*;

    vertex! { pub struct Site<R> { shared spin: R::Int } }
    record! { pub struct Sums<R> { energy: R, total: R } }

    #[derive(Clone)]
    struct Ising {
        beta: f64,
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
    }
}

mod page_rank {
    use super::*;

    vertex! { pub struct Page<R> { shared rank: R, change: R } }
    record! { pub struct Largest<R> { change: R } }
    record! { pub struct Surfing<R> { damping: R, pages: R } }
    stars! {
        /// To every page that links here, or is linked from here: the share of its rank that comes from there.
        Links[1]: R;
    }

    #[derive(Clone)]
    struct PageRank {
        links: Vec<[u32; 2]>,
        pages: usize,
    }

    kernels! {
        for PageRank: Page, Surfing, Largest;
        update Surf |p, own, around| {
            let inflow = around.sum(Links, |[other], share| other.rank * share);
            let rank = (R::lit(1.0) - p.damping) / p.pages + p.damping * inflow;
            Page { rank, change: (rank - own.rank).abs() }
        };
        max Change |_, own, _| own.change;
        sum Total("total", "") |_, own, _| own.rank;
        test Settled[tolerance] |p| p.globals.change.at_most(tolerance);
    }

    impl Program for PageRank {
        fn parameters(&self, _: f64) -> Surfing<f64> {
            Surfing { damping: 0.85, pages: self.pages as f64 }
        }
        fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
            let mut out = vec![0.0; self.pages];
            self.links.iter().for_each(|&[from, _]| out[from as usize] += 1.0);
            stars.add(Links, self.links.clone(), move |i: Incidence<2>| match i.corner {
                0 => 0.0,
                _ => 1.0 / out[i.vertices[1] as usize],
            });
            Ok(())
        }
        fn initial(&self, _: &Mesh, _: u32) -> Page<f64> {
            Page { rank: 1.0 / self.pages as f64, change: 0.0 }
        }
        fn globals(&self) -> Largest<f64> {
            Largest { change: 1.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.until(Settled { tolerance: 1e-15 }, 500, |stages| {
                stages.jacobi(Surf, 1);
                stages.reduce(Change, |g| &mut g.change);
            });
        }
    }

    #[test]
    fn page_rank_settles_at_the_solution_of_its_equations() {
        let mesh = generate("random:60", 5).unwrap();
        let pages = mesh.points().len();
        let n = pages as u32;
        // Each page links to the next, and to a few others; none twice.
        let links: Vec<[u32; 2]> = (0..n)
            .flat_map(|v| [(v + 1) % n, (7 * v + 3) % n, (v * v + 5) % n].map(|u| [v, u]))
            .filter(|[v, u]| v != u)
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        let mut simulation = after(1, &mesh, &PageRank { links: links.clone(), pages }, Order::BLOCKED);
        assert!((simulation.metric("total").unwrap() - 1.0).abs() < 1e-12);
        assert!((30..100).contains(&simulation.rounds()), "{}", simulation.rounds());
        let out = |v: u32| links.iter().filter(|link| link[0] == v).count() as f64;
        let mut a: Vec<Vec<f64>> =
            (0..pages).map(|v| (0..pages).map(|u| f64::from(u8::from(u == v))).collect()).collect();
        links.iter().for_each(|&[from, to]| a[to as usize][from as usize] -= 0.85 / out(from));
        let exact = solve(a, vec![0.15 / pages as f64; pages]);
        assert!(distance(&values(&simulation, "rank"), &exact) < 1e-13);
    }
}

mod chebyshev {
    use super::*;

    vertex! { pub struct Height<R> { shared x: R, last: R } }

    /// Jacobi for the mean of the neighbors, accelerated if its spectral radius is given.
    #[derive(Clone)]
    struct Accelerated {
        radius: f64,
        rounds: usize,
    }

    kernels! {
        for Accelerated: Height;
        update Relax[omega] |_, own, around| {
            let (sum, degree) = around.sum(Edges, |[other], ()| (other.x, R::lit(1.0)));
            Height { x: own.last + omega * (sum / degree - own.last), last: own.x }
        };
    }

    impl Program for Accelerated {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            add_edges(mesh, stars)
        }
        fn initial(&self, _: &Mesh, v: u32) -> Height<f64> {
            let x = if self.is_end(v) { 0.0 } else { 1.0 + f64::from(v % 3) };
            Height { x, last: x }
        }
        fn fixed(&self, _: &Mesh, v: u32) -> bool {
            self.is_end(v)
        }
        fn step(&self, stages: &mut Stages<Self>) {
            let square = self.radius * self.radius;
            let omegas = std::iter::successors(Some(1.0), |&omega| match omega {
                1.0 if square > 0.0 => Some(2.0 / (2.0 - square)),
                _ => Some(4.0 / (4.0 - square * omega)),
            });
            omegas.take(self.rounds).for_each(|omega| stages.jacobi(Relax { omega }, 1));
        }
    }

    impl Accelerated {
        fn is_end(&self, v: u32) -> bool {
            v == 0 || v == 20
        }
    }

    #[test]
    fn chebyshev_weights_shrink_the_error_as_fast_as_their_polynomial() {
        let mesh = generate("chain:21", 1).unwrap();
        let radius = f64::cos(std::f64::consts::PI / 20.0);
        let error = |radius, rounds| {
            let x = values(&after(1, &mesh, &Accelerated { radius, rounds }, Order::BLOCKED), "x");
            x.iter().map(|x| x * x).sum::<f64>().sqrt()
        };
        let polynomial = f64::cosh(40.0 * f64::acosh(1.0 / radius));
        let (start, plain, accelerated) = (error(0.0, 0), error(0.0, 40), error(radius, 40));
        assert!(accelerated <= start / polynomial * 1.000_001, "{accelerated} {}", start / polynomial);
        assert!(plain > 50.0 * accelerated, "{plain} {accelerated}");
    }
}
