//! Attacks: what a program, a host or the numbers can do wrong is an error that says what to do, and never a memory bug.

use super::tests::{refusal, says};
use super::*;
use crate::conformance::orders;
use crate::number::Real;
use crate::program::{Incidence, Stars, Vertex};
use crate::schedule::Order;
use crate::{Error, Kind, Mesh, Part, kernels, record, stars, vertex};
use meshweft_mesh::generate::generate;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Every CPU engine.
const ENGINES: [Backend; 3] = [Backend::Serial, Backend::Cpu { threads: 1 }, Backend::Cpu { threads: 3 }];

stars! { Edges[1]: R; }
vertex! { pub struct Point<R> { shared heat: R, flow: R } }
record! { pub struct Push<R> { push: R } }
record! { pub struct Mean<R> { mean: R } }

/// Heat that spreads along edges; everything about it can be made wrong.
#[derive(Clone)]
struct Toy {
    dt: f64,
    push: f64,
    start: f64,
    weight: f64,
    rate: f64,
    mean: f64,
}

const TOY: Toy = Toy { dt: 0.5, push: 0.25, start: 1.0, weight: 1.0, rate: 0.125, mean: 0.0 };

kernels! {
    for Toy: Point, Push, Mean;
    update Blur[rate] |p, own, around| {
        let flow = around.sum(Edges, |[other], weight| (other.heat - own.heat) * weight);
        Point { heat: own.heat + rate * flow + p.push + p.globals.mean, flow }
    };
    map Shake |p, own| Point { heat: own.heat + p.uniform(1), ..own };
    sum Heat("heat", "J") |_, own, _| own.heat;
    sum Scaled[by] |_, own, _| own.heat * by;
    scalar Spoil[by] |_| Mean { mean: by / R::lit(0.0) };
}

impl Program for Toy {
    fn time_step(&self) -> f64 {
        self.dt
    }
    fn parameters(&self, _: f64) -> Push<f64> {
        Push { push: self.push }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        let weight = self.weight;
        stars.add(Edges, mesh.edges(), move |i: Incidence<2>| if i.element == 1 { weight } else { 1.0 });
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Point<f64> {
        Point { heat: if v == 2 { self.start } else { f64::from(v % 7) }, flow: 0.0 }
    }
    fn globals(&self) -> Mean<f64> {
        Mean { mean: self.mean }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Shake);
        stages.sweep(Blur { rate: self.rate }, 2);
    }
}

fn build<P: Program>(program: P, backend: Backend) -> Simulation<P> {
    Simulation::builder(generate("sheet:9", 1).unwrap(), program).backend(backend).audit(true).build().unwrap()
}

fn fault<A>(result: Result<A>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn numbers_that_are_not_finite_are_refused_at_build_with_their_names_and_a_way_out() {
    let nan = f64::NAN;
    says(
        &refusal(Toy { push: nan, ..TOY }),
        "parameter push has no value: `Program::parameters` gives every parameter one",
    );
    says(&refusal(Toy { push: 1e39, ..TOY }), "parameter push is inf, which is not finite: use f64, or other units");
    says(&refusal(Toy { start: nan, ..TOY }), "heat of vertex 2 is NaN at the start: its formula has no value there");
    says(
        &refusal(Toy { start: 1e39, ..TOY }),
        "heat of vertex 2 is inf at the start: it does not fit into f32; use f64",
    );
    says(&refusal(Toy { mean: nan, ..TOY }), "global mean is NaN at the start: its formula has no value there");
    says(&refusal(Toy { mean: -1e39, ..TOY }), "global mean is -inf at the start: it does not fit into f32; use f64");
    says(
        &refusal(Toy { weight: nan, ..TOY }),
        "of star Edges is NaN for element 1 [1, 2]: its formula has no value there",
    );
    says(&refusal(Toy { weight: 1e39, ..TOY }), "of star Edges is 1e39 for element 1 [1, 2]: use f64, or other units");
    says(&refusal(Toy { rate: nan, ..TOY }), "setting 0 of kernel Blur is NaN");
    says(&refusal(Toy { rate: 1e39, ..TOY }), "setting 0 of kernel Blur is 1e39, which does not fit into f32: use f64");
    let fits =
        |program| Simulation::builder(generate("chain:3", 1).unwrap(), program).precision::<f64>().build().is_ok();
    assert!(fits(Toy { push: 1e39, start: 1e39, mean: 1e39, weight: 1e39, rate: 1e39, ..TOY }));
}

#[test]
fn a_step_with_a_number_that_is_not_finite_is_not_taken() {
    let mut toy = build(TOY, Backend::Cpu { threads: 2 });
    let digest = toy.digest().unwrap();
    let faults: [(Toy, &str); 4] = [
        (Toy { dt: f64::NAN, ..TOY }, "the time step is NaN: it must be finite"),
        (Toy { dt: f64::INFINITY, ..TOY }, "the time step is inf: it must be finite"),
        (Toy { push: f64::NAN, ..TOY }, "parameter push has no value"),
        (Toy { rate: f64::INFINITY, ..TOY }, "setting 0 of kernel Blur is inf"),
    ];
    for (program, part) in faults {
        *toy.program_mut() = program;
        says(&fault(toy.step()), part);
        assert_eq!((toy.steps(), toy.time(), toy.digest().unwrap()), (0, 0.0, digest.clone()));
    }
    *toy.program_mut() = TOY;
    toy.step().unwrap();
}

#[test]
fn values_that_are_not_finite_are_not_written() {
    let mut toy = build(TOY, Backend::Serial);
    let digest = toy.digest().unwrap();
    let mut heats = toy.field("heat").unwrap().values;
    heats[5] = f64::NAN;
    says(&fault(toy.set_field("heat", &heats)), "heat of vertex 5 would be NaN, which is not a finite f32");
    heats[5] = 1e39;
    says(&fault(toy.set_field("heat", &heats)), "heat of vertex 5 would be 1e39, which is not a finite f32");
    let vertex = toy.vertex(7).unwrap();
    says(&fault(toy.set_vertex(7, Point { flow: f32::NAN, ..vertex })), "flow of vertex 7 would be NaN");
    says(&fault(toy.set_field("heat", &[1.0])), "heat takes 81 × 1 values, 1 were given");
    says(&fault(toy.set_field("hate", &heats)), "unknown field \"hate\": one of heat, flow");
    assert_eq!(toy.digest().unwrap(), digest);
}

#[test]
fn a_run_that_diverged_stays_failed_until_its_state_is_finite_or_restored() {
    for backend in ENGINES {
        let mut toy = build(TOY, backend.clone());
        toy.step().unwrap();
        let saved = toy.save().unwrap();
        let mut heats = toy.field("heat").unwrap().values;
        let good = heats.clone();
        heats[40] = 3e38;
        toy.set_field("heat", &heats).unwrap();
        toy.program_mut().rate = 8.0;
        let first = toy.step().unwrap_err();
        assert!(matches!(first, Error::Diverged { step: 2, .. }), "{backend:?}: {first}");
        assert_eq!((toy.steps(), toy.time()), (2, 1.0));
        for _ in 0..2 {
            assert!(matches!(toy.step(), Err(Error::Diverged { step: 2, .. })));
            assert!(matches!(toy.run(|stages| stages.map(Shake)), Err(Error::Diverged { step: 2, .. })));
            assert!(
                matches!(toy.wait(), Err(Error::Diverged { .. })) && matches!(toy.save(), Err(Error::Diverged { .. }))
            );
            assert!(toy.metrics().is_err());
        }
        // To look at what happened is allowed.
        assert!(toy.field("heat").unwrap().values.iter().any(|x| !x.is_finite()));
        // One part of two is not enough.
        toy.set_field("heat", &good).unwrap();
        let second = toy.step().unwrap_err();
        assert!(matches!(&second, Error::Diverged { field, .. } if field == "flow"), "{second}");
        toy.set_field("flow", &vec![0.0; good.len()]).unwrap();
        toy.program_mut().rate = TOY.rate;
        toy.step().unwrap();
        assert_eq!(toy.steps(), 3);
        toy.program_mut().rate = f64::from(f32::MAX);
        assert!(matches!(toy.step(), Err(Error::Diverged { step: 4, .. })));
        toy.restore(&saved).unwrap();
        toy.program_mut().rate = TOY.rate;
        assert_eq!((toy.steps(), toy.time()), (1, 0.5));
        let mut other = build(TOY, Backend::Serial);
        (0..2).for_each(|_| other.step().unwrap());
        toy.step().unwrap();
        toy.compare(&other).unwrap();
    }
}

#[test]
fn a_global_that_is_no_longer_finite_is_an_error_with_its_name() {
    for (backend, by) in ENGINES.into_iter().flat_map(|backend| [(backend.clone(), 1.0), (backend, 0.0)]) {
        let mut toy = build(TOY, backend.clone());
        let error = toy.run(|stages| stages.scalar(Spoil { by })).unwrap_err();
        assert!(matches!(&error, Error::Global { name, .. } if name == "mean"), "{backend:?}: {error}");
        assert!(matches!(toy.step(), Err(Error::Global { .. })));
        let fresh = build(TOY, backend.clone()).save().unwrap();
        toy.restore(&fresh).unwrap();
        toy.step().unwrap();
    }
}

#[test]
fn globals_are_replaced_and_those_that_are_not_finite_refused() {
    for backend in ENGINES {
        let mut toy = build(TOY, backend.clone());
        let mut globals = toy.globals().unwrap();
        globals.mean = 7.5;
        toy.set_globals(globals).unwrap();
        assert_eq!(toy.globals().unwrap().mean, 7.5);
        globals.mean = f64::NAN;
        assert!(toy.set_globals(globals).unwrap_err().to_string().contains("global mean would be NaN"));
        assert_eq!(toy.globals().unwrap().mean, 7.5);
    }
}

#[test]
fn time_is_the_sum_of_steps_and_runs_change_neither() {
    for backend in ENGINES {
        let mut toy = build(TOY, backend.clone());
        for (i, dt) in [0.5, 0.25, 0.0, 2.0].into_iter().enumerate() {
            toy.program_mut().dt = dt;
            toy.step().unwrap();
            toy.run(|stages| stages.sweep(Blur { rate: 0.1 }, 1)).unwrap();
            assert_eq!(toy.steps(), 1 + i as u64);
        }
        assert_eq!((toy.time(), toy.rounds()), (2.75, 12));
        // Nor does a run that diverges; and the next step that does has its own number.
        let saved = toy.save().unwrap();
        let error = toy.run(|stages| stages.sweep(Blur { rate: 3e38 }, 3)).unwrap_err();
        assert!(matches!(error, Error::Diverged { step: 4, .. }), "{error}");
        assert!(matches!(toy.step(), Err(Error::Diverged { step: 4, .. })));
        assert_eq!((toy.steps(), toy.time()), (4, 2.75));
        toy.restore(&saved).unwrap();
        toy.run(|stages| stages.map(Shake)).unwrap();
        toy.program_mut().rate = 3e38;
        assert!(matches!(toy.step(), Err(Error::Diverged { step: 5, .. })));
        assert_eq!((toy.steps(), toy.time()), (5, 4.75));
        toy.audit().unwrap();
    }
}

#[test]
fn a_saved_state_goes_on_in_any_order_and_on_any_threads_as_if_nothing_had_happened() {
    let mesh = generate("sheet:14", 2).unwrap();
    for order in orders() {
        let build =
            |order, backend| Simulation::builder(mesh.clone(), TOY).order(order).backend(backend).build().unwrap();
        let mut whole = build(order, Backend::Serial);
        (0..4).for_each(|_| whole.step().unwrap());
        for backend in ENGINES {
            let mut first = build(order, backend.clone());
            (0..2).for_each(|_| first.step().unwrap());
            let saved = first.save().unwrap();
            assert_eq!((saved.steps(), saved.time()), (2, 1.0));
            for other in ENGINES {
                // Through a simulation of another order, which changes nothing in what is saved.
                let mut detour = build(if order == Order::COLOR { Order::JACOBI } else { Order::COLOR }, other.clone());
                detour.step().unwrap();
                detour.restore(&saved).unwrap();
                assert_eq!(detour.save().unwrap(), saved);
                let mut second = build(order, other.clone());
                second.restore(&detour.save().unwrap()).unwrap();
                (0..2).for_each(|_| second.step().unwrap());
                second.compare(&whole).unwrap_or_else(|e| panic!("{order}, {backend:?}, {other:?}: {e}"));
                assert_eq!((second.steps(), second.time()), (whole.steps(), whole.time()));
            }
        }
    }
    let small = build(TOY, Backend::Serial).save().unwrap();
    let mut large = Simulation::builder(mesh, TOY).build().unwrap();
    says(&fault(large.restore(&small)), "it is of another one");
}

#[test]
fn a_measure_takes_its_settings() {
    for backend in ENGINES {
        let mut toy = build(TOY, backend.clone());
        let heat = toy.metric("heat").unwrap();
        assert_eq!(toy.measure(Scaled { by: 2.0 }).unwrap(), 2.0 * heat);
    }
}

/// A program of one kernel over `Point`, whatever it does.
macro_rules! one_kernel {
    ($name:ident, |$p:pat_param, $own:pat_param, $around:pat_param| $kernel:expr) => {
        #[derive(Clone)]
        struct $name;
        kernels! { for $name: Point; update Attack |$p, $own, $around| $kernel; }
        impl Program for $name {
            fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
                stars.add(Edges, mesh.edges(), |_| 1.0);
                Ok(())
            }
            fn initial(&self, _: &Mesh, v: u32) -> Point<f64> {
                Point { heat: f64::from(v), flow: 0.0 }
            }
            fn step(&self, stages: &mut Stages<Self>) {
                stages.sweep(Attack, 2);
            }
        }
    };
}

#[test]
fn a_panic_of_a_kernel_poisons_the_simulation_until_it_is_restored() {
    /// Updates until one panics.
    static FUSE: AtomicI64 = AtomicI64::new(i64::MAX);
    one_kernel!(Bomb, |_, own, around| {
        assert!(FUSE.fetch_sub(1, Ordering::SeqCst) != 0, "planted");
        Point { heat: own.heat + around.sum(Edges, |[other], _| other.heat) * R::lit(0.1), flow: own.heat }
    });
    let run = |backend, order| {
        let mesh = generate("sheet:20", 1).unwrap();
        let builder = Simulation::builder(mesh, Bomb).backend(backend).order(order).simd(Simd::Off);
        builder.audit(true).build().unwrap()
    };
    for (backend, order) in
        ENGINES.into_iter().flat_map(|b| [Order::blocked(16), Order::COLOR].map(|order| (b.clone(), order)))
    {
        let mut calm = run(backend.clone(), order);
        (0..2).for_each(|_| calm.step().unwrap());
        for fuse in [0, 1, 399, 400, 650, 799] {
            let mut bomb = run(backend.clone(), order);
            bomb.step().unwrap();
            let saved = bomb.save().unwrap();
            FUSE.store(fuse, Ordering::SeqCst);
            let panic = catch_unwind(AssertUnwindSafe(|| bomb.step())).expect_err("it panics");
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"planted"));
            FUSE.store(i64::MAX, Ordering::SeqCst);
            let is_poisoned = |error: Error| assert!(matches!(error, Error::Poisoned { step: 2 }), "{error}");
            is_poisoned(bomb.step().unwrap_err());
            is_poisoned(bomb.run(|_| ()).unwrap_err());
            is_poisoned(bomb.wait().unwrap_err());
            is_poisoned(bomb.field("heat").unwrap_err());
            is_poisoned(bomb.vertex(0).unwrap_err());
            is_poisoned(bomb.save().unwrap_err());
            is_poisoned(bomb.digest().unwrap_err());
            is_poisoned(bomb.metrics().unwrap_err());
            is_poisoned(bomb.globals().unwrap_err());
            is_poisoned(bomb.set_field("heat", &[0.0; 400]).unwrap_err());
            assert_eq!((bomb.steps(), bomb.time()), (1, 1.0));
            says(
                &fault(bomb.step()),
                "a kernel panicked in step 2 and left the state half updated: restore a saved one",
            );
            bomb.restore(&saved).unwrap();
            bomb.step().unwrap();
            bomb.compare(&calm).unwrap_or_else(|e| panic!("{backend:?}, {order}, {fuse}: {e}"));
            bomb.audit().unwrap_or_else(|e| panic!("{backend:?}, {order}, {fuse}: {e}"));
        }
    }
}

#[test]
fn a_panic_of_a_measure_leaves_nobody_behind() {
    static FUSE: AtomicI64 = AtomicI64::new(i64::MAX);
    #[derive(Clone)]
    struct Bomb;
    kernels! {
        for Bomb: Point;
        sum Explode("heat", "J") |_, own, _| {
            assert!(FUSE.fetch_sub(1, Ordering::SeqCst) != 0, "planted");
            own.heat
        };
    }
    impl Program for Bomb {
        fn initial(&self, _: &Mesh, v: u32) -> Point<f64> {
            Point { heat: f64::from(v), flow: 0.0 }
        }
        fn step(&self, _: &mut Stages<Self>) {}
    }
    for (backend, fuse) in ENGINES.into_iter().flat_map(|backend| [0, 7, 399].map(|fuse| (backend.clone(), fuse))) {
        let builder = Simulation::builder(generate("sheet:20", 1).unwrap(), Bomb).backend(backend).simd(Simd::Off);
        let mut bomb = builder.build().unwrap();
        for _ in 0..20 {
            FUSE.store(fuse, Ordering::SeqCst);
            catch_unwind(AssertUnwindSafe(|| bomb.metric("heat"))).expect_err("it panics");
            FUSE.store(i64::MAX, Ordering::SeqCst);
            // The state is as it was: a measure writes none.
            assert_eq!(bomb.metric("heat").unwrap(), 399.0 * 400.0 / 2.0);
        }
    }
}

#[test]
fn a_measure_that_looks_further_than_it_says_panics_instead_of_reading_what_others_write() {
    mod other {
        #[derive(Clone, Copy)]
        pub struct Peek;
    }
    struct Liar;
    impl crate::Kernel for other::Peek {
        const NAME: &'static str = "Peek";
    }
    impl crate::Reduce<Liar> for other::Peek {
        const COMBINE: crate::Combine = crate::Combine::Sum;
        const METRIC: Option<(&'static str, &'static str)> = None;

        fn measure<R: Real>(_: &crate::Given<Liar, R>, own: Point<R>, around: &impl crate::Neighbors<Liar, R>) -> R {
            // On symbols it looks at its own vertex alone.
            if std::any::type_name::<R>().ends_with("Expr") {
                return own.heat;
            }
            around.sum(Edges, |[other], weight| other.heat * weight) + own.heat
        }
    }
    kernels! {
        for Liar: Point;
        use reduce other::Peek;
    }
    impl Program for Liar {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Edges, mesh.edges(), |_| 1.0);
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Point<f64> {
            Point { heat: f64::from(v), flow: 0.0 }
        }
        fn step(&self, _: &mut Stages<Self>) {}
    }
    for (order, simd) in [(Order::BLOCKED, Simd::Auto), (Order::BLOCKED, Simd::Off), (Order::JACOBI, Simd::Auto)] {
        let builder = Simulation::builder(generate("sheet:20", 1).unwrap(), Liar).order(order).simd(simd);
        let mut liar = builder.backend(Backend::Cpu { threads: 2 }).build().unwrap();
        catch_unwind(AssertUnwindSafe(|| liar.measure(other::Peek))).expect_err("it panics");
    }
}

#[test]
fn a_kernel_may_use_threads_of_its_own_and_other_simulations() {
    one_kernel!(Nested, |_, own, around| {
        use rayon::prelude::*;
        let squares: f64 = (0..8u32).into_par_iter().map(|i| f64::from(i * i)).collect::<Vec<_>>().into_iter().sum();
        let inner = {
            let mesh = generate("chain:4", 1).expect("a chain");
            let builder = Simulation::builder(mesh, TOY).backend(Backend::Cpu { threads: 2 });
            let mut inner = builder.build().expect("a simulation");
            inner.step().expect("a step");
            inner.metric("heat").expect("a metric")
        };
        let sum = around.sum(Edges, |[other], _| other.heat);
        Point {
            heat: own.heat * R::lit(0.5) + sum * R::lit(1.0 / 64.0) + R::lit(squares),
            flow: own.flow + R::lit(inner),
        }
    });
    let run = |backend| {
        let mut nested = Simulation::builder(generate("sheet:4", 1).unwrap(), Nested).backend(backend).build().unwrap();
        nested.step().unwrap();
        nested
    };
    let oracle = run(Backend::Serial);
    assert!(oracle.field("heat").unwrap().values.iter().all(|&heat| heat > 140.0));
    ENGINES.into_iter().for_each(|backend| run(backend).compare(&oracle).unwrap());
}

#[test]
fn a_kernel_that_changes_from_call_to_call_is_no_memory_bug() {
    stars! { Late[3]: (R, R); }
    static LATE: AtomicBool = AtomicBool::new(false);
    // It was traced without it.
    one_kernel!(Turncoat, |_, own, around| match LATE.load(Ordering::SeqCst) {
        false => own,
        true => Point { flow: around.fold(Late, own.flow, |sum, [a, b, c], _| sum + a.heat + b.heat + c.heat), ..own },
    });
    for (backend, simd) in
        ENGINES.into_iter().flat_map(|backend| [Simd::Off, Simd::Bits256].map(|simd| (backend.clone(), simd)))
    {
        LATE.store(false, Ordering::SeqCst);
        let builder = Simulation::builder(generate("sheet:9", 1).unwrap(), Turncoat).backend(backend).simd(simd);
        let mut turncoat = builder.build().unwrap();
        turncoat.step().unwrap();
        LATE.store(true, Ordering::SeqCst);
        let panic = catch_unwind(AssertUnwindSafe(|| turncoat.step())).expect_err("the shape is asserted");
        says(panic.downcast_ref::<String>().expect("a message"), "star Late was added with");
        assert!(matches!(turncoat.step(), Err(Error::Poisoned { .. })));
    }
}

#[test]
fn a_branch_on_a_real_is_refused_with_the_name_of_the_kernel() {
    let equal = {
        one_kernel!(Equal, |_, own, _| if own.heat == R::lit(0.0) { Point { flow: R::lit(1.0), ..own } } else { own });
        refusal(Equal)
    };
    let null = {
        one_kernel!(Null, |_, own, _| if own.heat.is_zero() { Point { flow: R::lit(1.0), ..own } } else { own });
        refusal(Null)
    };
    for message in [equal, null] {
        says(&message, "kernel Attack would not be the same everywhere");
        says(&message, "R::equals");
    }
}

#[test]
fn a_kernel_that_is_not_the_same_every_time_is_refused() {
    static CALLS: AtomicI64 = AtomicI64::new(0);
    one_kernel!(Fickle, |_, own, _| {
        let call = CALLS.fetch_add(1, Ordering::SeqCst);
        Point { flow: own.flow + R::lit(call as f64), ..own }
    });
    says(&refusal(Fickle), "is not the same every time it runs: it must depend on what it is given alone");
}

/// A constant that no shader can write says nothing of what the kernel reads.
#[test]
fn a_quiet_update_with_a_constant_beyond_f32_is_none_that_draws_random_numbers() {
    struct Vast;
    kernels! {
        for Vast: Point;
        quiet update Grow |_, own, around| {
            let most = around.fold(Edges, own.heat, |most, [other], _| most.max(other.heat));
            Point { heat: R::select(most.less(R::lit(1e300)), most, own.heat), ..own }
        };
    }
    impl Program for Vast {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Edges, mesh.edges(), |_| 1.0);
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Point<f64> {
            Point { heat: f64::from(v), flow: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.fixpoint(Grow, 100);
        }
    }
    let mut vast = Simulation::builder(generate("chain:5", 1).unwrap(), Vast).precision::<f64>().build().unwrap();
    vast.step().unwrap();
    assert_eq!(vast.field("heat").unwrap().values, [4.0; 5]);
}

/// What a record written by hand says of itself is an error where it is not so, before an engine cuts the state by it.
#[test]
fn records_that_lie_are_refused() {
    /// Two reals, of which `LIE` is wrong.
    #[derive(Clone, Copy)]
    struct Liar<R, const LIE: u8>([R; 2]);
    impl<R: Real, const LIE: u8> Record<R> for Liar<R, LIE> {
        const LEN: usize = 2;
        fn build(mut leaf: impl FnMut(usize) -> R) -> Self {
            Liar([leaf(0), leaf(if LIE == 0 { 7 } else { 1 })])
        }
        fn each(&self, mut leaf: impl FnMut(usize, R)) {
            leaf(0, self.0[0]);
            if LIE != 1 {
                leaf(1, self.0[1]);
            }
        }
        fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self {
            Liar([f(self.0[0], other.0[0]), f(self.0[1], other.0[1])])
        }
        fn parts(_: &str) -> Vec<Part> {
            vec![Part { name: "pair".into(), components: if LIE == 2 { 3 } else { 2 }, kind: Kind::Real }]
        }
        fn kind(k: usize) -> Kind {
            if LIE == 3 && k == 1 { Kind::Integer } else { Kind::Real }
        }
    }
    #[derive(Clone, Copy)]
    struct State<R, const LIE: u8>(Liar<R, LIE>);
    impl<R: Real, const LIE: u8> Vertex<R> for State<R, LIE> {
        type Shared = Liar<R, LIE>;
        type Private = ();
        fn split(self) -> (Liar<R, LIE>, ()) {
            (self.0, ())
        }
        fn join(pair: Liar<R, LIE>, (): ()) -> Self {
            State(pair)
        }
    }
    struct Untrue<const LIE: u8>;
    impl<const LIE: u8> crate::Kernels for Untrue<LIE> {
        type Vertex<R: Real> = State<R, LIE>;
        type Parameters<R: Real> = ();
        type Globals<R: Real> = ();
        fn list(_: &mut impl crate::KernelList<Self>) {}
    }
    impl<const LIE: u8> Program for Untrue<LIE> {
        fn initial(&self, _: &Mesh, _: u32) -> State<f64, LIE> {
            State(Liar([0.0; 2]))
        }
        fn step(&self, _: &mut Stages<Self>) {}
    }
    says(&refusal(Untrue::<0>), "has 2 reals, but `Record::build` visits [0, 7]: each once, in ascending order");
    says(&refusal(Untrue::<1>), "has 2 reals, but `Record::each` visits [0]: each once, in ascending order");
    says(&refusal(Untrue::<2>), "has 2 reals by `Record::LEN`, but 3 by `Record::parts`");
    says(&refusal(Untrue::<3>), "says another kind of real 1 by `Record::kind` than by `Record::parts`");
}

#[test]
fn a_record_whose_length_depends_on_the_number_type_is_refused() {
    /// As many reals as its number type has bytes.
    #[derive(Clone, Copy)]
    struct Odd<R>(R);
    impl<R: Real> Record<R> for Odd<R> {
        const LEN: usize = size_of::<R>();
        fn build(mut leaf: impl FnMut(usize) -> R) -> Self {
            Odd((0..Self::LEN).map(&mut leaf).fold(R::lit(0.0), |_, x| x))
        }
        fn each(&self, mut leaf: impl FnMut(usize, R)) {
            (0..Self::LEN).for_each(|k| leaf(k, self.0));
        }
        fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self {
            Odd(f(self.0, other.0))
        }
        fn parts(_: &str) -> Vec<Part> {
            vec![Part { name: "odd".into(), components: Self::LEN, kind: Kind::Real }]
        }
        fn kind(_: usize) -> Kind {
            Kind::Real
        }
    }
    #[derive(Clone, Copy)]
    struct State<R>(Odd<R>);
    impl<R: Real> Vertex<R> for State<R> {
        type Shared = Odd<R>;
        type Private = ();
        fn split(self) -> (Odd<R>, ()) {
            (self.0, ())
        }
        fn join(odd: Odd<R>, (): ()) -> Self {
            State(odd)
        }
    }
    struct Uneven;
    kernels! {
        for Uneven: State;
        map Stay |_, own| own;
    }
    impl Program for Uneven {
        fn initial(&self, _: &Mesh, _: u32) -> State<f64> {
            State(Odd(0.0))
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Stay);
        }
    }
    says(&refusal(Uneven), "the shared state depends on the number type: `Record::LEN` must be the same for all");

    // And the data of a star.
    stars! { Ropes[1]: Odd<R>; }
    struct Data;
    kernels! {
        for Data: Point;
        update Pull |_, own, around| Point { flow: around.sum(Ropes, |_, odd| odd.0), ..own };
    }
    impl Program for Data {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Ropes, mesh.edges(), |_| Odd(1.0));
            Ok(())
        }
        fn initial(&self, _: &Mesh, _: u32) -> Point<f64> {
            Point { heat: 0.0, flow: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Pull, 1);
        }
    }
    says(&refusal(Data), "star Ropes");
}

#[test]
fn two_fields_of_one_name_are_refused() {
    record! { pub struct Inner<R> { heat: R } }
    #[derive(Clone, Copy)]
    struct Twin<R: Real>(Inner<R>, Inner<R>);
    impl<R: Real> Vertex<R> for Twin<R> {
        type Shared = Inner<R>;
        type Private = Inner<R>;
        fn split(self) -> (Inner<R>, Inner<R>) {
            (self.0, self.1)
        }
        fn join(a: Inner<R>, b: Inner<R>) -> Self {
            Twin(a, b)
        }
    }
    struct Twins;
    kernels! { for Twins: Twin; }
    impl Program for Twins {
        fn initial(&self, _: &Mesh, _: u32) -> Twin<f64> {
            Twin(Inner { heat: 0.0 }, Inner { heat: 0.0 })
        }
        fn step(&self, _: &mut Stages<Self>) {}
    }
    says(&refusal(Twins), "two fields of a vertex are called heat: each needs a name of its own");
}

#[test]
fn a_kernel_that_the_program_does_not_name_is_refused() {
    struct Stranger;
    impl crate::Kernel for Stranger {
        const NAME: &'static str = "Stranger";
    }
    impl crate::Map<Forgetful> for Stranger {
        fn map<R: Real>(_: &crate::Given<Forgetful, R>, own: Point<R>) -> Point<R> {
            own
        }
    }
    struct Forgetful {
        at_once: bool,
    }
    kernels! { for Forgetful: Point; }
    impl Program for Forgetful {
        fn initial(&self, _: &Mesh, _: u32) -> Point<f64> {
            Point { heat: 0.0, flow: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            if self.at_once {
                stages.map(Stranger);
            }
        }
    }
    let message = "kernel Stranger, which is not among the program's kernels: name it in `kernels!`";
    says(&refusal(Forgetful { at_once: true }), message);
    let mut later = build(Forgetful { at_once: false }, Backend::Serial);
    says(&fault(later.run(|stages| stages.map(Stranger))), message);
    later.program_mut().at_once = true;
    says(&fault(later.step()), message);
    assert_eq!(later.steps(), 0);
}

#[test]
fn two_kernels_of_one_name_are_refused() {
    mod other {
        #[derive(Clone, Copy)]
        pub struct Stay;
    }
    struct Double;
    impl crate::Kernel for other::Stay {
        const NAME: &'static str = "Stay";
    }
    impl crate::Map<Double> for other::Stay {
        fn map<R: Real>(_: &crate::Given<Double, R>, own: Point<R>) -> Point<R> {
            own
        }
    }
    kernels! {
        for Double: Point;
        map Stay |_, own| own;
        use map other::Stay;
    }
    impl Program for Double {
        fn initial(&self, _: &Mesh, _: u32) -> Point<f64> {
            Point { heat: 0.0, flow: 0.0 }
        }
        fn step(&self, _: &mut Stages<Self>) {}
    }
    says(&refusal(Double), "two kernels are called Stay: each needs a name of its own");
}

#[test]
fn searches_that_break_their_rules_are_refused() {
    macro_rules! refused {
        ($says:literal, $($kernel:tt)*) => {{
            struct Search;
            kernels! { for Search: Point; $($kernel)* }
            impl Program for Search {
                fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
                    stars.add(Edges, mesh.edges(), |_| 1.0);
                    Ok(())
                }
                fn initial(&self, _: &Mesh, _: u32) -> Point<f64> {
                    Point { heat: 0.0, flow: 0.0 }
                }
                fn step(&self, stages: &mut Stages<Self>) {
                    stages.fixpoint(Spread, 10);
                }
            }
            says(&refusal(Search), $says);
        }};
    }
    refused!("takes an offer and holds something else", relax Spread(Edges: R) {
        held |own| own.heat;
        offer |_, from, length| from.heat + length;
        take |_, own, offer, _| Point { heat: offer + R::lit(1.0), ..own };
    });
    refused!("compares keys of 2 reals", relax Spread(Edges: (R, R)) {
        held |own| (own.heat, own.heat);
        offer |_, from, length| (from.heat, length);
        take |_, own, offer, _| Point { heat: offer.0, ..own };
    });
    refused!("reads the number of the vertex", relax Spread(Edges: R) {
        held |own| own.heat;
        offer |p, from, _| from.heat + R::from_int(p.vertex());
        take |_, own, heat, _| Point { heat, ..own };
    });
    refused!("may change by itself: declare it `quiet update` or `relax`", update Spread |_, own, _| own;);
}

#[test]
fn a_search_goes_on_after_a_kernel_that_panicked() {
    static PANICS: AtomicBool = AtomicBool::new(false);
    struct Search;
    kernels! {
        for Search: Point;
        relax Spread(Edges: R) {
            held |own| own.heat;
            offer |_, from, length| from.heat + length;
            take |_, own, heat, _| {
                assert!(!PANICS.load(Ordering::Relaxed), "planted");
                Point { heat, ..own }
            };
        }
    }
    impl Program for Search {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Edges, mesh.edges(), |_| 1.0);
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Point<f64> {
            Point { heat: if v == 0 { 0.0 } else { f64::from(f32::MAX) }, flow: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.fixpoint(Spread, 1000);
        }
    }
    let build = |backend| {
        let builder = Simulation::builder(generate("sheet:12", 1).unwrap(), Search);
        builder.order(Order::JACOBI.along(meshweft_mesh::Curve::Degree)).backend(backend).build().unwrap()
    };
    let (mut cpu, mut oracle) = (build(Backend::Cpu { threads: 2 }), build(Backend::Serial));
    let start = cpu.save().unwrap();
    PANICS.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| cpu.step())).is_err());
    PANICS.store(false, Ordering::Relaxed);
    cpu.restore(&start).unwrap();
    cpu.step().unwrap();
    oracle.step().unwrap();
    cpu.compare(&oracle).unwrap();
    assert_eq!(cpu.rounds(), oracle.rounds());
}
