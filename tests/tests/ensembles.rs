//! Copies of every example beside each other, each with the bits of a run alone [C15].

use crate::determinism::{CASES, runs};
use meshweft::{Backend, Ensemble, Order};
use meshweft_command::{Options, Precision};
use meshweft_mesh::generate::generate;
use meshweft_tests::{digest_after, orders, start};

const STEPS: usize = 5;

#[test]
fn a_copy_of_any_example_has_the_digest_of_a_run_alone() {
    for (i, (name, spec, set)) in CASES.iter().enumerate() {
        let orders: Vec<Order> = orders().into_iter().filter(|order| runs(name, set, *order)).collect();
        let order = orders[i % orders.len()];
        for (threads, precision) in [(1, Precision::F64), (2, Precision::F32), (3, Precision::F32)] {
            let options = Options { order, precision, ..Options::default() };
            // Two of a kind, whose plans are shared, and others between them.
            let meshes: Vec<_> = [3, 4, 3].into_iter().map(|seed| generate(spec, seed).unwrap()).collect();
            let other = match *name {
                "softbody" | "poisson" | "elasticity" | "vibration" => "bar:5x3x3",
                "airfoil" => "quads:7x5",
                _ => "torus:9x6",
            };
            let mesh = |k: usize| if k == 3 { generate(other, 1).unwrap() } else { meshes[k].clone() };
            let ensemble = Ensemble::build(4, threads, |k, plans| {
                let backend = Backend::Cpu { threads: 0 };
                start(name, &mesh(k), set, &Options { plans: Some(plans.clone()), backend, ..options.clone() })
            });
            let mut ensemble = ensemble.unwrap();
            ensemble.step(STEPS as u64).unwrap();
            for (k, copy) in ensemble.copies().iter().enumerate() {
                let mut alone = start(name, &mesh(k), set, &options).unwrap();
                let expected = digest_after(STEPS, &mut alone).unwrap();
                assert_eq!(copy.digest().unwrap(), expected, "{name} {spec} {order} {precision:?}, copy {k}");
            }
            assert!(std::ptr::eq(ensemble.copies()[0].schedule(), ensemble.copies()[2].schedule()));
        }
    }
}
