//! `meshweft verify`: acceptance tests.

use super::console::{Console, Outcome};
use super::programs::Programs;
use super::text;
use crate::{Check, Entry, Tolerance};
use anyhow::Result;
use clap::Args;
use std::io::Write;

/// Which examples.
#[derive(Args)]
#[command(after_help = "Examples:\n  meshweft verify EXAMPLE\n  meshweft verify all")]
pub(super) struct Arguments {
    /// The example, or all
    #[arg(value_name = "EXAMPLE|all")]
    name: String,
}

/// Prints a table of measured and expected numbers for each example.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    let entries: Vec<&Entry> = match arguments.name.as_str() {
        "all" => programs.entries.iter().collect(),
        name => vec![programs.find(name)?],
    };
    let (mut passed, mut total) = (0, 0);
    for entry in entries {
        let _ = writeln!(console.err, "verifying {} ...", entry.info.name);
        let checks = (entry.checks)()?;
        print(entry.info.name, &checks, console.out)?;
        console.out.flush()?;
        passed += checks.iter().filter(|check| check.passes()).count();
        total += checks.len();
    }
    writeln!(console.out, "{passed} of {total} checks pass")?;
    Ok(if passed == total { Outcome::Done } else { Outcome::Wrong })
}

/// Prints a table of checks, if there are any.
pub(super) fn print(name: &str, checks: &[Check], out: &mut dyn Write) -> Result<()> {
    if checks.is_empty() {
        return Ok(());
    }
    let mut rows =
        vec![[name, "measured", "expected", "tolerance", "unit", "result", "source"].map(str::to_string).to_vec()];
    rows.extend(checks.iter().map(row));
    text::table(out, &rows)?;
    Ok(writeln!(out)?)
}

fn row(check: &Check) -> Vec<String> {
    let tolerance = match check.tolerance {
        Tolerance::Relative(share) => format!("{} %", text::number(100.0 * share)),
        Tolerance::Absolute(most) => text::number(most),
        Tolerance::AtMost => "at most".to_string(),
    };
    let result = if check.passes() { "pass" } else { "FAIL" };
    let (measured, expected) = (text::number(check.measured), text::number(check.expected));
    let (unit, source) = (check.unit.to_string(), check.source.to_string());
    vec![format!("  {}", check.name), measured, expected, tolerance, unit, result.to_string(), source]
}
