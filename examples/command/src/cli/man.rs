//! `meshweft man`: manual pages.

use super::console::{Console, Outcome};
use anyhow::{Context, Result};
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// Where to.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Folder for the pages, one a command
    #[arg(long, value_name = "DIR", default_value = "man/man1")]
    out: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  meshweft man --out ~/.local/share/man/man1 && man meshweft-run
  meshweft man && man -M man meshweft";

/// Writes the pages.
pub(super) fn run(arguments: &Arguments, parser: clap::Command, console: &mut Console) -> Result<Outcome> {
    let folder = &arguments.out;
    let cannot = || format!("cannot write manual pages to {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(parser, folder).with_context(cannot)?;
    writeln!(console.out, "wrote {} and a page for each of its commands", folder.join("meshweft.1").display())?;
    Ok(Outcome::Done)
}
