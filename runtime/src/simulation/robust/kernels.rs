//! Kernels that panic, that are not pure, or that break the rules of kernels.

use super::*;

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
