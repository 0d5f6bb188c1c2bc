//! `meshweft verify`: acceptance tests.

use super::console::{Console, Outcome};
use super::programs::Programs;
use super::text;
use crate::{Check, Entry, Tolerance};
use anyhow::Result;
use clap::Args;
use meshweft_mesh::io;
use std::io::Write;
use std::path::PathBuf;

/// Which examples.
#[derive(Args)]
#[command(after_help = "Examples:\n  meshweft verify EXAMPLE\n  meshweft verify all --write validation.md")]
pub(super) struct Arguments {
    /// The example, or all
    #[arg(value_name = "EXAMPLE|all")]
    name: String,
    /// Also write all rows to a file, as a page of Markdown
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// The beginning of the page of all rows.
const HEAD: &str = "# Validation

What the examples compute, beside what theory, or somebody else, says it is. `meshweft verify all --write docs/validation.md` made this page.

| example | what is measured | measured | expected | tolerance | unit | result | source |
|---|---|---|---|---|---|---|---|
";

/// Prints a table of measured and expected numbers for each example.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    let entries: Vec<&Entry> = match arguments.name.as_str() {
        "all" => programs.entries.iter().collect(),
        name => vec![programs.find(name)?],
    };
    let (mut passed, mut total, mut page) = (0, 0, String::from(HEAD));
    for entry in entries {
        let _ = writeln!(console.err, "verifying {} ...", entry.info.name);
        let checks = (entry.checks)()?;
        print(entry.info.name, &checks, console.out)?;
        console.out.flush()?;
        for check in &checks {
            let row = row(check);
            let cells = row.iter().map(|cell| cell.trim().replace('|', "\\|"));
            page += &format!("| {} | {} |\n", entry.info.name, cells.collect::<Vec<_>>().join(" | "));
        }
        passed += checks.iter().filter(|check| check.passes()).count();
        total += checks.len();
    }
    writeln!(console.out, "{passed} of {total} checks pass")?;
    if let Some(file) = &arguments.write {
        io::replace(file, |out| out.write_all(page.as_bytes()))?;
        writeln!(console.out, "wrote {}", file.display())?;
    }
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
