//! Numbers that are not finite, and states that were saved.

use super::*;

#[test]
fn numbers_that_are_not_finite_are_refused_at_build_with_their_names_and_a_way_out() {
    let nan = f64::NAN;
    says(
        &refusal(Toy { push: nan, ..TOY }),
        "parameter push has no value: `Program::parameters` gives every parameter one",
    );
    says(&refusal(Toy { push: 1e39, ..TOY }), "parameter push is inf, which is not finite: use f64, or other units");
    says(
        &refusal(Toy { start: nan, ..TOY }),
        "heat of vertex 2 at (1, 0, 0) is NaN at the start: its formula has no value there",
    );
    says(
        &refusal(Toy { start: 1e39, ..TOY }),
        "heat of vertex 2 at (1, 0, 0) is inf at the start: it does not fit into f32; use f64",
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
