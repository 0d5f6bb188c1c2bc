//! Every vertex once a round, in an order that respects the schedule [C7].

use crate::determinism::runs;
use meshweft::Backend;
use meshweft_command::Options;
use meshweft_mesh::generate::generate;
use meshweft_tests::{orders, start};

#[test]
fn every_example_and_order_passes_the_audit_beside_the_oracle() {
    for (name, spec) in [
        ("heat", "torus:20x12"),
        ("wave", "disk:9"),
        ("spring", "box:8"),
        ("cloth", "sheet:16"),
        ("softbody", "bar:13x4x4"),
        ("xpbd", "bar:13x4x4"),
    ] {
        for order in orders().into_iter().filter(|&order| runs(name, &[], order)) {
            let backend = Backend::Cpu { threads: 3 };
            let options = Options { order, backend, verify: true, ..Options::default() };
            let mesh = generate(spec, 5).unwrap();
            let mut run = start(name, &mesh, &[], &options).unwrap();
            for _ in 0..5 {
                run.step().unwrap();
            }
            let report = run.verdict().unwrap().expect("the run was audited");
            let updates = run.rounds() as usize * run.mesh().points().len();
            assert!(updates > 0 && report.contains(&format!("{updates} updates")), "{name} {order}: {report}");
        }
    }
}
