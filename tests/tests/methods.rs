//! Numerical methods as short as on paper: the same bits on every CPU engine, close to them on a GPU, each against what is known
//! of it.

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
    let builder = Simulation::builder(mesh.clone(), program.clone()).order(order).backend(backend).simd(simd);
    let mut simulation = builder.precision::<T>().build().unwrap();
    (0..steps).for_each(|_| simulation.step().unwrap());
    simulation.wait().unwrap();
    simulation
}

/// A program after some steps, in 64 bits, once all engines on CPUs agree on it.
fn after<P: Program + Clone>(steps: usize, mesh: &Mesh, program: &P, order: Order) -> Simulation<P, f64> {
    let oracle = run(steps, mesh, program, (order, Backend::Serial, Simd::Off));
    for (threads, simd) in [(1, Simd::Bits256), (2, Simd::Off), (3, Simd::Bits512)] {
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
    struct Poisson {
        tolerance: f64,
    }

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
            stages.until(Converged { tolerance: self.tolerance }, 1000, |stages| {
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
        let b = (0..fixed.len()).map(|v| Poisson { tolerance: 0.0 }.initial(&mesh, v as u32).r).collect();
        let exact = solve(laplacian(&mesh, &fixed), b);
        for order in Order::ALL {
            let solved = after(1, &mesh, &Poisson { tolerance: 1e-11 }, order);
            on_gpu(1, &mesh, &Poisson { tolerance: 1e-4 }, order, 1e-3);
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
            on_gpu(3, &mesh, &Symmetric, order, 1e-6);
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
        on_gpu(1, &mesh, &Porous, Order::BLOCKED, 1e-4);
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
        on_gpu(60, &mesh, &GrayScott { noise: 1e-3 }, Order::BLOCKED, 1e-4);
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
        // Spins are integers: none may differ.
        on_gpu(100, &mesh, &Ising { beta: 0.4 }, Order::COLOR, 0.0);
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
        tolerance: f64,
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
            stages.until(Settled { tolerance: self.tolerance }, 500, |stages| {
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
        let ranked = |tolerance| PageRank { links: links.clone(), pages, tolerance };
        let mut simulation = after(1, &mesh, &ranked(1e-15), Order::BLOCKED);
        on_gpu(1, &mesh, &ranked(1e-6), Order::BLOCKED, 1e-4);
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
        on_gpu(1, &mesh, &Accelerated { radius, rounds: 40 }, Order::BLOCKED, 1e-5);
    }
}

mod finite_volumes {
    use super::*;

    vertex! { pub struct Cell<R> { shared density: R, volume: R } }
    record! { pub struct Parameters<R> { dt: R } }
    stars! {
        /// How much flows out of this cell a second.
        Faces[1]: R;
    }

    /// Upwind advection on the dual of a mesh: what leaves one cell enters the next.
    #[derive(Clone)]
    struct Advection {
        edges: Vec<[u32; 2]>,
        flow: Vec<f64>,
        volumes: Vec<f64>,
        dt: f64,
    }

    kernels! {
        for Advection: Cell, Parameters;
        update Transport |p, own, around| {
            let out = around.sum(Faces, |[other], flow| {
                flow * R::select(flow.greater(R::lit(0.0)), own.density, other.density)
            });
            Cell { density: own.density - p.dt * out / own.volume, ..own }
        };
        sum Content("content", "kg") |_, own, _| own.density * own.volume;
        min Least("least", "kg/m^3") |_, own, _| own.density;
    }

    impl Program for Advection {
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { dt: self.dt }
        }
        fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
            let flow = self.flow.clone();
            stars.add(Faces, self.edges.clone(), move |i: Incidence<2>| match i.corner {
                0 => flow[i.element],
                _ => -flow[i.element],
            });
            Ok(())
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Cell<f64> {
            let density = if mesh.points()[v as usize][0] < 0.3 { 1.0 } else { 0.0 };
            Cell { density, volume: self.volumes[v as usize] }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.jacobi(Transport, 1);
        }
    }

    #[test]
    fn finite_volumes_on_a_dual_mesh_keep_their_content_and_sign_and_drift_with_the_wind() {
        let dual = generate("box:7", 2).unwrap().dual().unwrap();
        let flow = dual.faces.iter().map(|face| face.area * face.normal[0]).collect();
        let edges = dual.faces.iter().map(|face| face.cells).collect();
        let program = Advection { edges, flow, volumes: dual.volumes.clone(), dt: 0.002 };
        let center = |simulation: &Simulation<Advection, f64>| {
            let mass =
                values(simulation, "density").into_iter().zip(&dual.volumes).map(|(density, volume)| density * volume);
            mass.zip(dual.mesh.points()).map(|(mass, p)| mass * p[0]).sum::<f64>()
        };
        let [mut start, mut end] = [0, 40].map(|steps| after(steps, &dual.mesh, &program, Order::COLOR));
        assert!((start.metric("content").unwrap() - end.metric("content").unwrap()).abs() < 1e-12);
        assert!(end.metric("least").unwrap() >= 0.0);
        // Content times the wind's unit speed, while none of it has reached the far wall.
        let drift = center(&end) - center(&start);
        let expected = start.metric("content").unwrap() * 40.0 * program.dt;
        assert!((drift / expected - 1.0).abs() < 0.1, "{drift} {expected}");
        on_gpu(40, &dual.mesh, &program, Order::COLOR, 1e-5);
    }
}

mod elements {
    use super::*;

    vertex! { pub struct Sum<R> { shared x: R, of: [R; 4] } }
    stars! {
        Quads[3]: R;
        Pyramids[4]: R;
        Wedges[5]: R;
        Hexes[7]: R;
    }

    /// Sums over the elements of each shape, every other corner with a weight of its own.
    #[derive(Clone)]
    struct Corners;

    kernels! {
        for Corners: Sum;
        update Add |_, own, around| {
            let quads = around.sum(Quads, |o, w| w * (o[0].x + R::lit(10.0) * o[1].x + R::lit(100.0) * o[2].x));
            let pyramids = around.sum(Pyramids, |o, w| w * weigh(o.map(|other| other.x)));
            let wedges = around.sum(Wedges, |o, w| w * weigh(o.map(|other| other.x)));
            let hexes = around.sum(Hexes, |o, w| w * weigh(o.map(|other| other.x)));
            Sum { x: own.x, of: [quads, pyramids, wedges, hexes] }
        };
    }

    /// The `k`-th value has the weight `3^k`.
    fn weigh<R: Real, const N: usize>(values: [R; N]) -> R {
        values.into_iter().rev().fold(R::lit(0.0), |sum, x| sum * R::lit(3.0) + x)
    }

    /// Elements of `K` corners of the hexes of a mesh: some of the corners of each.
    fn pick<const K: usize>(mesh: &Mesh) -> Vec<[u32; K]> {
        let hexes = mesh.cells().corners_of(CellKind::Hex);
        hexes.as_chunks::<8>().0.iter().map(|hex| std::array::from_fn(|k| hex[k])).collect()
    }

    fn weight<const K: usize>(incidence: &Incidence<K>) -> f64 {
        f64::from(incidence.vertices[0] % 5) + incidence.corner as f64
    }

    impl Program for Corners {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add_cells(Quads, CellKind::Quad, pick::<4>(mesh), |i| weight(&i));
            stars.add(Pyramids, pick::<5>(mesh), |i| weight(&i));
            stars.add(Wedges, pick::<6>(mesh), |i| weight(&i));
            stars.add(Hexes, pick::<8>(mesh), |i| weight(&i));
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Sum<f64> {
            Sum { x: f64::from(v % 11), of: [0.0; 4] }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Add, 1);
        }
    }

    /// What every vertex gathers of the elements of one shape, by the turns of that shape. All of it is integers, so no order of
    /// sums shows.
    fn by_hand<const K: usize>(mesh: &Mesh, shape: CellKind, weigh: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; mesh.points().len()];
        for element in pick::<K>(mesh) {
            for corner in 0..K {
                let turned: Vec<u32> = shape.turn(corner).iter().map(|&k| element[k]).collect();
                let values: Vec<f64> = turned[1..].iter().map(|&v| f64::from(v % 11)).collect();
                sums[turned[0] as usize] += (f64::from(turned[0] % 5) + corner as f64) * weigh(&values);
            }
        }
        sums
    }

    #[test]
    fn elements_of_four_to_eight_corners_are_gathered_in_their_turns() {
        let mesh = generate("hexes:5", 1).unwrap();
        let powers = |values: &[f64]| values.iter().rev().fold(0.0, |sum, x| sum * 3.0 + x);
        let expected = [
            by_hand::<4>(&mesh, CellKind::Quad, |x| x[0] + 10.0 * x[1] + 100.0 * x[2]),
            by_hand::<5>(&mesh, CellKind::Pyramid, powers),
            by_hand::<6>(&mesh, CellKind::Wedge, powers),
            by_hand::<8>(&mesh, CellKind::Hex, powers),
        ];
        for order in Order::ALL {
            let sums = values(&after(1, &mesh, &Corners, order), "of");
            for (v, sum) in sums.as_chunks::<4>().0.iter().enumerate() {
                assert_eq!(*sum, expected.each_ref().map(|values| values[v]), "{order}, vertex {v}");
            }
            on_gpu(1, &mesh, &Corners, order, 0.0);
        }
    }
}
