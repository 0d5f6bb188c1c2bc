//! `meshweft bench --study`: tables and figures of papers, done again with what is here. docs/seeds.md compares them.
//!
//! A study asks the other commands for what they print as JSON, so that its figures are those that its users get, or counts on a graph.

mod border;
mod lists;
mod plans;
mod search;
mod shares;

use crate::PROGRAMS;
use anyhow::{Context, Result, ensure};
use meshweft_command::cli::{self, Console, Study};
use meshweft_command::output;
use meshweft_mesh::io;
use meshweft_picture::Drawing;
use serde_json::Value;
use std::path::Path;

/// What is done again.
pub(crate) const STUDIES: &[Study] = &[
    Study {
        name: "border",
        about: "How many edges cross between two parts of a graph, and how many values, by density and share",
        measure: |scale, folder, console| publish(folder, console, |_| border::page(scale)),
    },
    Study {
        name: "lists",
        about: "What lists of vertices of a search take in each form",
        measure: |scale, folder, console| publish(folder, console, |_| lists::page(scale)),
    },
    Study {
        name: "search",
        about: "What hosts of a grid send in a search, packed and not",
        measure: |scale, folder, console| publish(folder, console, |console| search::bytes(scale, console)),
    },
    Study {
        name: "times",
        about: "How long such a search takes on the links that there are",
        measure: |scale, folder, console| publish(folder, console, |console| search::times(scale, console)),
    },
    Study {
        name: "shares",
        about: "How much faster two uneven parts are than one processor, measured and by a formula",
        measure: |scale, folder, console| publish(folder, console, |console| shares::page(scale, console)),
    },
    Study {
        name: "plans",
        about: "What every configuration was predicted to take, and takes",
        measure: |scale, folder, console| publish(folder, console, |console| plans::page(scale, console)),
    },
];

/// What a study prints, and draws.
struct Page {
    /// Tables in Markdown.
    text: String,
    /// Plots with the names of their files.
    plots: Vec<(&'static str, Drawing)>,
}

/// Prints the tables of a study and writes its plots.
///
/// # Errors
/// A folder that cannot be written to, or a command that fails.
fn publish(
    folder: Option<&Path>,
    console: &mut Console,
    page: impl FnOnce(&mut Console) -> Result<Page>,
) -> Result<()> {
    let folder = folder.unwrap_or(Path::new("docs/seeds"));
    output::check(folder)?;
    let page = page(console)?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for (name, drawing) in &page.plots {
        io::replace(&folder.join(name), |file| file.write_all(drawing.svg().as_bytes()))?;
    }
    Ok(write!(console.out, "{}", page.text)?)
}

/// What another command says in JSON.
///
/// # Errors
/// It fails, or says something else.
fn ask(words: &[&str], console: &mut Console) -> Result<Value> {
    writeln!(console.err, "meshweft {}", words.join(" "))?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(&PROGRAMS, ["meshweft"].iter().chain(words), &mut Console::new(&mut out, &mut err));
    ensure!(code == 0, "`meshweft {}` failed: {}", words.join(" "), String::from_utf8_lossy(&err).trim_end());
    serde_json::from_slice(&out).with_context(|| format!("`meshweft {}` printed no JSON", words.join(" ")))
}

/// A number of such an answer.
///
/// # Errors
/// There is none.
fn number(value: &Value, key: &str) -> Result<f64> {
    value[key].as_f64().with_context(|| format!("no number {key} in {value}"))
}

/// The value in the middle; of an even number the larger of both there.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
