//! What every engine must do: a table of cases that a new engine runs by naming itself.
//!
//! A [`Case`] is one kind of stage, one size of record and one order. Each runs on a small mesh with uneven degrees, fixed
//! vertices, stars of edges and triangles, parameters that change from step to step, and a state that was written from outside;
//! its fields, globals and metrics are held against the serial oracle [C1, C5].
//!
//! ```
//! use meshweft::conformance::{Candidate, Near, cases};
//! use meshweft::{Backend, Simd};
//! let candidate = Candidate { backend: Backend::Cpu { threads: 2 }, simd: Simd::Auto, near: Near::Bits, tapes: false };
//! cases().take(20).for_each(|case| candidate.check::<f32>(case));
//! ```

use crate::mesh::generate::generate;
use crate::mesh::{CellKind, Cells};
use crate::{
    Backend, Incidence, Mesh, Metric, Number, Order, Program, Real, Result, Simd, Simulation, Stages, Stars, kernels,
    record, stars, vertex,
};
use nalgebra::SVector;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An engine that is tried.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Which one.
    pub backend: Backend,
    /// How many vertices it updates side by side.
    pub simd: Simd,
    /// How near it must be to the oracle.
    pub near: Near,
    /// Whether it interprets kernels. See [`Builder::tapes`](crate::Builder::tapes).
    pub tapes: bool,
}

/// How near an engine must be to the oracle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Near {
    /// All bits are equal.
    Bits,
    /// Each real is off by at most so much of the largest of its field, and from run to run all bits are equal.
    Within(f64),
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Which stages.
    pub stages: StageKind,
    /// Reals of the shared and of the private state, one of [`SIZES`].
    pub size: (usize, usize),
    /// The order of sweeps.
    pub order: Order,
}

/// A kind of stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageKind {
    /// `map`, with a parameter and a setting.
    Map,
    /// `map` with random numbers.
    Random,
    /// `sweep`.
    Sweep,
    /// `sweep_backward`.
    Backward,
    /// `jacobi`, an odd number of times.
    Jacobi,
    /// `reduce` by each combination, and a map that reads the results.
    Reduce,
    /// `scalar`, and a map that reads the results.
    Scalar,
    /// `until` that ends by its test, by its limit, and at once, one of them inside of another.
    Until,
    /// All of them in one step.
    All,
}

impl StageKind {
    /// All kinds.
    pub const ALL: [StageKind; 9] = [
        StageKind::Map,
        StageKind::Random,
        StageKind::Sweep,
        StageKind::Backward,
        StageKind::Jacobi,
        StageKind::Reduce,
        StageKind::Scalar,
        StageKind::Until,
        StageKind::All,
    ];
}

/// All orders, with blocks so small that small meshes have several.
pub fn orders() -> [Order; 6] {
    Order::ALL.map(|order| order.resolved(64))
}

/// All cases.
pub fn cases() -> impl Iterator<Item = Case> {
    let sizes = || SIZES.iter().copied();
    let kinds = move || StageKind::ALL.into_iter().flat_map(move |stages| sizes().map(move |size| (stages, size)));
    orders().into_iter().flat_map(move |order| kinds().map(move |(stages, size)| Case { stages, size, order }))
}

/// The GPU to test with, if this machine has one. A test without it says that it is skipped, one line a test, counted; with the
/// environment variable `REQUIRE_GPU` set it fails instead.
///
/// # Panics
/// If a GPU is required and there is none.
pub fn gpu_or_skip() -> Option<Backend> {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    if crate::adapters().is_empty() {
        assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set, and this machine has no adapter");
        let test = std::thread::current().name().unwrap_or("a test").to_string();
        let count = 1 + SKIPPED.fetch_add(1, Ordering::Relaxed);
        let why = "needs a GPU, and this machine has no driver of one";
        // One write, or lines of tests that run side by side mix.
        let _ = std::io::stderr().write_all(format!("skipped, {count} so far: {test} {why}\n").as_bytes());
        return None;
    }
    Some(Backend::Gpu { adapter: 0 })
}

impl Candidate {
    /// Tries one case.
    ///
    /// # Panics
    /// If the engine fails it.
    pub fn check<T: Number>(&self, case: Case) {
        dispatch::<T>(self, case);
    }

    /// Tries one case if its record is small: other precisions differ in nothing that depends on its size, and each takes long
    /// to compile.
    #[cfg(test)]
    fn check_few<T: Number>(&self, case: Case) {
        if case.size == (5, 0) {
            self.check_program::<_, T>(case, five::Mixing(case.stages));
        }
    }

    fn check_program<P: Program + Clone, T: Number>(&self, case: Case, program: P) {
        let what = format!("{} {case:?} on {self:?}", T::NAME);
        let run = |backend, simd, tapes| outcome::<P, T>(case.order, &program, backend, simd, tapes);
        let (ours, own) = run(self.backend.clone(), self.simd, self.tapes).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (oracle, expected) = run(Backend::Serial, Simd::Off, false).unwrap_or_else(|e| panic!("{what}: {e}"));
        let Near::Within(bound) = self.near else {
            ours.compare(&oracle).unwrap_or_else(|e| panic!("{what}: {e}"));
            return assert_eq!(own, expected, "{what}");
        };
        for ((name, left), (_, right)) in own.iter().zip(&expected) {
            let scale = right.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let is_near = |(x, y): (&f64, &f64)| (x - y).abs() <= bound * scale;
            let off = left.iter().zip(right).position(|pair| !is_near(pair));
            assert_eq!(off, None, "{what}: {name} {left:?} {right:?}");
        }
        let (again, repeated) =
            run(self.backend.clone(), self.simd, self.tapes).unwrap_or_else(|e| panic!("{what}: {e}"));
        again.compare(&ours).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(repeated, own, "{what}: from run to run");
    }
}

/// Numbers by name.
type Numbers = Vec<(String, Vec<f64>)>;

/// What a program comes to after some steps: fields, globals and metrics.
fn outcome<P: Program + Clone, T: Number>(
    order: Order,
    program: &P,
    backend: Backend,
    simd: Simd,
    tapes: bool,
) -> Result<(Simulation<P, T>, Numbers)> {
    let builder = Simulation::builder(uneven(), program.clone()).order(order.resolved(50)).backend(backend).simd(simd);
    let mut simulation = builder.tapes(tapes).precision::<T>().build()?;
    // Padding lanes must follow what is written from outside.
    let last = simulation.mesh().points().len() as u32 - 1;
    for v in [0, last / 2, last] {
        let vertex = simulation.vertex((v + 1) % last)?;
        simulation.set_vertex(v, vertex)?;
    }
    for field in simulation.fields() {
        let doubled: Vec<f64> = simulation.field(&field.name)?.values.iter().map(|x| 2.0 * x).collect();
        simulation.set_field(&field.name, &doubled)?;
    }
    for _ in 0..3 {
        simulation.step()?;
    }
    let mut numbers = Numbers::new();
    for field in simulation.fields() {
        numbers.push((field.name.clone(), simulation.field(&field.name)?.values));
    }
    let mut globals = Vec::new();
    crate::Record::<f64>::each(&simulation.globals()?, |_, x| globals.push(x));
    numbers.extend(globals.into_iter().map(|x| ("a global".into(), vec![x])));
    let metrics = simulation.metrics()?;
    numbers.extend(metrics.into_iter().map(|Metric { name, value, .. }| (name.into(), vec![value])));
    Ok((simulation, numbers))
}

/// A ball of triangles, a fan whose hub has far more neighbors than others, and vertices without any.
fn uneven() -> Mesh {
    let ball = generate("ball:5", 1).expect("a ball");
    let mut points = ball.points().to_vec();
    let mut corners: Vec<u32> = ball.triangles().into_flattened();
    let hub = points.len() as u32;
    points.extend((0..203).map(|i| [2.0 + Real::cos(f64::from(i)), Real::sin(f64::from(i)), 0.01 * f64::from(i)]));
    corners.extend((1..200).flat_map(|i| [hub, hub + i, hub + i + 1]));
    Mesh::new(points, Cells::of(CellKind::Triangle, corners)).expect("all corners are points")
}

record! {
    /// What the host sets.
    #[allow(missing_docs)]
    pub struct Push<R> { push: R }
}

record! {
    /// What a step measures and counts.
    #[allow(missing_docs)]
    pub struct Measured<R> { total: R, least: R, most: R, rounds: R, label: R::Int }
}

stars! {
    Pairs[1]: R;
    Triples[2]: (R, R);
}

/// Declares a program for each size of record, and calls the one that a case asks for.
macro_rules! sizes {
    ($($name:ident: $shared:literal, $private:literal;)*) => {
        /// Numbers of reals, shared and private, that are tried.
        pub const SIZES: &[(usize, usize)] = &[$(($shared, $private)),*];

        fn dispatch<T: Number>(candidate: &Candidate, case: Case) {
            match case.size {
                $(($shared, $private) => candidate.check_program::<_, T>(case, $name::Mixing(case.stages)),)*
                (shared, private) => panic!("no case has {shared} and {private} reals: see SIZES"),
            }
        }

        $(mod $name {
            use super::*;

            vertex! { pub struct State<R> { shared x: SVector<R, $shared>, q: SVector<R, $private> } }

            #[derive(Clone)]
            pub struct Mixing(pub StageKind);

            fn sum<R: Real, const N: usize>(vector: SVector<R, N>) -> R {
                vector.iter().fold(R::lit(0.0), |sum, &x| sum + x)
            }

            kernels! {
                for Mixing: State, Push, Measured;
                map Drift[by] |p, own| {
                    let shift = sum(own.q) * by + p.push;
                    State { x: own.x.map(|x| x + shift), q: own.q.map(|q| p.push - q) }
                };
                map Shake |p, own| {
                    let draw = p.uniform(1) * R::lit(8.0) - p.normal(2);
                    let label = R::from_int(p.vertex()) + R::from_int(p.step());
                    State { x: own.x.map(|x| x + draw), q: own.q.map(|q| q + label * draw) }
                };
                map Apply |p, own| {
                    let g = p.globals;
                    let shift = g.total / R::lit(1024.0) + g.most - g.least + g.rounds + R::from_int(g.label);
                    State { x: own.x.map(|x| x + shift), ..own }
                };
                update Mix[weight] |_, own, around| {
                    let pairs = around.fold(Pairs, (own.x, R::lit(1.0)), |(sum, count), [other], w| {
                        (sum + other.x * w, count + w)
                    });
                    let (sum, count) = around.fold(Triples, pairs, |(sum, count), [a, b], (u, v)| {
                        (sum + a.x * u - b.x * v, count + u)
                    });
                    let mean = sum / count;
                    State { x: mean * weight + own.x * (R::lit(1.0) - weight), q: own.q.map(|q| mean[0] - q) }
                };
                sum Total("total", "J") |p, own, around| {
                    let own = own.x[$shared - 1] * p.push + sum(own.q);
                    around.fold(Triples, own, |sum, [a, _], (u, _)| sum + a.x[0] * u)
                };
                min Least("least", "") |_, own, _| own.x[0];
                max Most |_, own, around| around.sum(Pairs, |[other], w| other.x[0] * w) - own.x[0];
                scalar Blend |p| Measured {
                    total: p.globals.total / R::lit(2.0) + p.push,
                    most: p.globals.most + p.globals.total,
                    label: p.globals.label + p.step(),
                    ..p.globals
                };
                scalar Clear |p| Measured { rounds: R::lit(0.0), ..p.globals };
                scalar Count |p| Measured { rounds: p.globals.rounds + R::lit(1.0), ..p.globals };
                test Counted[rounds] |p| p.globals.rounds.at_least(rounds);
                test Never |p| p.globals.rounds.less(R::lit(0.0));
            }

            impl Program for Mixing {
                fn parameters(&self, time: f64) -> Push<f64> {
                    Push { push: 3.0 + time }
                }
                fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
                    // All are integers, so that a program on integers differs as much from vertex to vertex.
                    stars.add(Pairs, mesh.edges(), |i: Incidence<2>| f64::from(1 + i.vertices[0] % 7));
                    stars.add(Triples, mesh.triangles(), |i: Incidence<3>| {
                        (1.0 + i.corner as f64, f64::from(i.vertices[2] % 3))
                    });
                    Ok(())
                }
                fn initial(&self, _: &Mesh, v: u32) -> State<f64> {
                    let at = |i: usize| f64::from(v * 37 % 101) * 0.37 + i as f64;
                    State { x: SVector::from_fn(|i, _| at(i)), q: SVector::from_fn(|i, _| -at(i)) }
                }
                fn fixed(&self, _: &Mesh, v: u32) -> bool {
                    v % 11 == 3
                }
                fn globals(&self) -> Measured<f64> {
                    Measured { total: 5.5, least: 1.0, most: 2.0, rounds: 0.0, label: crate::Int(7) }
                }
                fn step(&self, stages: &mut Stages<Self>) {
                    tell(self.0, stages);
                }
            }

            fn tell(kind: StageKind, stages: &mut Stages<Mixing>) {
                let (drift, mix) = (Drift { by: 0.25 }, Mix { weight: 1.0 });
                match kind {
                    StageKind::Map => (0..2).for_each(|_| stages.map(drift)),
                    StageKind::Random => stages.map(Shake),
                    StageKind::Sweep => {
                        stages.sweep(mix, 2);
                        stages.sweep(Mix { weight: 0.5 }, 1);
                    }
                    StageKind::Backward => stages.sweep_backward(mix, 2),
                    StageKind::Jacobi => stages.jacobi(mix, 3),
                    StageKind::Reduce => {
                        stages.reduce(Total, |g| &mut g.total);
                        stages.reduce(Least, |g| &mut g.least);
                        stages.reduce(Most, |g| &mut g.most);
                        stages.map(Apply);
                    }
                    StageKind::Scalar => {
                        stages.scalar(Blend);
                        stages.scalar(Count);
                        stages.map(Apply);
                    }
                    StageKind::Until => {
                        stages.scalar(Clear);
                        stages.until(Counted { rounds: 3.0 }, 10, |stages| {
                            stages.sweep(mix, 1);
                            stages.until(Never, 2, |stages| stages.map(drift));
                            stages.reduce(Least, |g| &mut g.least);
                            stages.scalar(Count);
                        });
                        stages.until(Counted { rounds: 3.0 }, 10, |stages| stages.map(Apply));
                        stages.map(Apply);
                    }
                    StageKind::All => {
                        for kind in StageKind::ALL.into_iter().filter(|&kind| kind != StageKind::All) {
                            tell(kind, stages);
                        }
                    }
                }
            }
        })*
    };
}

sizes! {
    one: 1, 0;
    two: 2, 1;
    three: 3, 3;
    five: 5, 0;
    nine: 9, 1;
    many: 37, 3;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Int;

    fn check(simd: Simd) {
        let candidate = Candidate { backend: Backend::Cpu { threads: 2 }, simd, near: Near::Bits, tapes: false };
        for case in cases() {
            candidate.check::<f32>(case);
            candidate.check_few::<f64>(case);
            candidate.check_few::<Int>(case);
        }
    }

    #[test]
    fn threads_have_the_bits_of_the_oracle() {
        check(Simd::Off);
    }

    #[test]
    fn lanes_of_256_bits_have_the_bits_of_the_oracle() {
        check(Simd::Bits256);
    }

    #[test]
    fn lanes_of_512_bits_have_the_bits_of_the_oracle() {
        check(Simd::Bits512);
    }

    #[test]
    fn tapes_have_the_bits_of_the_oracle() {
        for (backend, simd) in [
            (Backend::Serial, Simd::Off),
            (Backend::Cpu { threads: 1 }, Simd::Off),
            (Backend::Cpu { threads: 2 }, Simd::Bits256),
            (Backend::Cpu { threads: 2 }, Simd::Bits512),
        ] {
            let candidate = Candidate { backend, simd, near: Near::Bits, tapes: true };
            for case in cases() {
                candidate.check::<f32>(case);
                candidate.check_few::<f64>(case);
                candidate.check_few::<Int>(case);
            }
        }
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn hosts_have_the_bits_of_the_oracle() {
        let backend = Backend::Cluster(crate::Cluster::inside(3).unwrap());
        let candidate = Candidate { backend, simd: Simd::Auto, near: Near::Bits, tapes: false };
        let interpreted = Candidate { tapes: true, ..candidate.clone() };
        cases().step_by(5).for_each(|case| candidate.check::<f32>(case));
        cases().step_by(17).for_each(|case| interpreted.check::<f32>(case));
    }

    #[test]
    #[cfg(feature = "gpu")]
    fn a_gpu_is_as_near_to_the_oracle_as_rounding_allows() {
        let Some(backend) = gpu_or_skip() else { return };
        let candidate = Candidate { backend, simd: Simd::Auto, near: Near::Within(1e-4), tapes: false };
        // Every kind, size and order, if not all of each other.
        cases().step_by(7).for_each(|case| candidate.check::<f32>(case));
    }

    #[test]
    fn every_kind_of_stage_changes_the_result() {
        let candidate =
            |kind| outcome::<_, f32>(Order::BLOCKED, &three::Mixing(kind), Backend::Serial, Simd::Off, false);
        let digests: Vec<String> = StageKind::ALL.map(|kind| candidate(kind).unwrap().0.digest().unwrap()).into();
        for (i, digest) in digests.iter().enumerate() {
            assert!(!digests[..i].contains(digest), "{:?}", StageKind::ALL[i]);
        }
    }

    #[test]
    #[should_panic(expected = "differs")]
    fn a_wrong_engine_fails() {
        // Two different orders stand for an engine that is wrong.
        let program = one::Mixing(StageKind::Sweep);
        let run = |order| outcome::<_, f32>(order, &program, Backend::Serial, Simd::Off, false).unwrap();
        let [a, b] = [Order::BLOCKED, Order::COLOR].map(run);
        a.0.compare(&b.0).unwrap_or_else(|e| panic!("{e}"));
    }
}
