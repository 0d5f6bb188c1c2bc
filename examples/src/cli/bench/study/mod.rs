//! `meshweft bench --study`: tables and figures of papers, done again with what is here. docs/seeds.md compares them.
//!
//! A study asks the other commands for what they print as JSON, so that its figures are those that anybody gets, or counts on a graph.

mod border;
mod lists;
mod plans;
mod search;
mod shares;

use super::matrix::Scale;
use crate::cli::{self, Console, Outcome};
use crate::output;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use meshweft_mesh::io;
use meshweft_picture::Drawing;
use serde_json::Value;
use std::path::Path;

/// What is done again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Study {
    /// How many edges cross between two parts of a graph, and how many values, by density and share
    Border,
    /// What lists of vertices of a search take in each form
    Lists,
    /// What hosts of a grid send in a search, packed and not
    Search,
    /// How long such a search takes on the links that there are
    Times,
    /// How much faster two uneven parts are than one processor, measured and by a formula
    Shares,
    /// What every configuration was predicted to take, and takes
    Plans,
}

/// What a study prints, and draws.
struct Page {
    /// Tables in Markdown.
    text: String,
    /// Plots with the names of their files.
    plots: Vec<(&'static str, Drawing)>,
}

/// Does it again, prints the tables and writes the plots.
///
/// # Errors
/// A folder that cannot be written to, or a command that fails.
pub(super) fn run(study: Study, scale: Scale, folder: &Path, console: &mut Console) -> Result<Outcome> {
    output::check(folder)?;
    let page = match study {
        Study::Border => border::page(scale)?,
        Study::Lists => lists::page(scale)?,
        Study::Search => search::bytes(scale, console)?,
        Study::Times => search::times(scale, console)?,
        Study::Shares => shares::page(scale, console)?,
        Study::Plans => plans::page(scale, console)?,
    };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for (name, drawing) in &page.plots {
        io::replace(&folder.join(name), |file| file.write_all(drawing.svg().as_bytes()))?;
    }
    write!(console.out, "{}", page.text)?;
    Ok(Outcome::Done)
}

/// What another command says in JSON.
///
/// # Errors
/// It fails, or says something else.
fn ask(words: &[&str], console: &mut Console) -> Result<Value> {
    writeln!(console.err, "meshweft {}", words.join(" "))?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(["meshweft"].iter().chain(words), &mut Console::new(&mut out, &mut err));
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
