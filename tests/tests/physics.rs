//! Every example against analytic and published values.

use meshweft_command::{Check, Tolerance};
use meshweft_examples::EXAMPLES;

#[test]
fn every_example_passes_its_acceptance_test() {
    for example in EXAMPLES {
        let checks = (example.checks)().unwrap();
        assert!(checks.len() >= 3, "{} has a table", example.info.name);
        for check in checks {
            assert!(
                check.passes(),
                "{}: {} is {:e}, not {:e}",
                example.info.name,
                check.name,
                check.measured,
                check.expected
            );
        }
    }
}

#[test]
fn a_check_can_fail() {
    let check =
        |measured, tolerance| Check { name: String::new(), measured, expected: 2.0, tolerance, unit: "", source: "" };
    assert!(check(2.01, Tolerance::Relative(0.01)).passes());
    assert!(!check(2.03, Tolerance::Relative(0.01)).passes());
    assert!(!check(2.03, Tolerance::Absolute(0.01)).passes());
    assert!(!check(2.03, Tolerance::AtMost).passes());
    assert!(!check(f64::NAN, Tolerance::AtMost).passes());
}
