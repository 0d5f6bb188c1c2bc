//! `meshweft bench --study`: tables and figures of papers, done again with what is here. docs/seeds.md compares them.
//!
//! A study asks the other commands for what they print as JSON, so that its figures are those that its users get, or counts on a graph.

mod border;
mod lists;
mod page;
mod plans;
mod search;
mod shares;

use anyhow::{Context, Result, ensure};
use meshweft_command::cli::{self, Console, Programs, Study};
use meshweft_command::output;
use meshweft_mesh::io;
use page::{Ask, Page};
use serde_json::Value;
use std::path::Path;

/// What is done again.
pub(crate) const STUDIES: &[Study] = &[
    Study {
        name: "border",
        about: "How many edges cross between two parts of a graph, and how many values, by density and share",
        measure: |programs, scale, folder, console| publish(programs, folder, console, |_| border::page(scale)),
    },
    Study {
        name: "lists",
        about: "What lists of vertices of a search take in each form",
        measure: |programs, scale, folder, console| publish(programs, folder, console, |_| lists::page(scale)),
    },
    Study {
        name: "search",
        about: "What hosts of a grid send in a search, packed and not",
        measure: |programs, scale, folder, console| publish(programs, folder, console, |ask| search::bytes(scale, ask)),
    },
    Study {
        name: "times",
        about: "How long such a search takes on the links that there are",
        measure: |programs, scale, folder, console| publish(programs, folder, console, |ask| search::times(scale, ask)),
    },
    Study {
        name: "shares",
        about: "How much faster two uneven parts are than one processor, measured and by a formula",
        measure: |programs, scale, folder, console| publish(programs, folder, console, |ask| shares::page(scale, ask)),
    },
    Study {
        name: "plans",
        about: "What every configuration was predicted to take, and takes",
        measure: |programs, scale, folder, console| publish(programs, folder, console, |ask| plans::page(scale, ask)),
    },
];

/// Makes the page of a study, prints its tables and writes its plots.
///
/// # Errors
/// A folder that cannot be written to, or a command that fails.
fn publish(
    programs: &Programs,
    folder: Option<&Path>,
    console: &mut Console,
    page: impl FnOnce(Ask) -> Result<Page>,
) -> Result<()> {
    let folder = folder.unwrap_or(Path::new("docs/seeds"));
    output::check(folder)?;
    let page = page(&mut |words| ask(programs, words, console))?;
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
fn ask(programs: &Programs, words: &[&str], console: &mut Console) -> Result<Value> {
    writeln!(console.err, "meshweft {}", words.join(" "))?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["meshweft"].iter().chain(words);
    let code = cli::run(programs, arguments, &mut Console::new(&mut out, &mut err));
    ensure!(code == 0, "`meshweft {}` failed: {}", words.join(" "), String::from_utf8_lossy(&err).trim_end());
    serde_json::from_slice(&out).with_context(|| format!("`meshweft {}` printed no JSON", words.join(" ")))
}
