//! `meshweft completions`: what a shell completes.

use super::console::{Console, Outcome};
use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

/// For which shell.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  meshweft completions bash > ~/.local/share/bash-completion/completions/meshweft
  meshweft completions zsh > ~/.zfunc/_meshweft                 with ~/.zfunc in fpath, before compinit
  meshweft completions fish > ~/.config/fish/completions/meshweft.fish
  meshweft completions powershell >> $PROFILE";

/// Prints the script.
pub(super) fn run(arguments: &Arguments, mut parser: clap::Command, console: &mut Console) -> Result<Outcome> {
    // The generator panics where it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut parser, "meshweft", &mut script);
    console.out.write_all(&script)?;
    Ok(Outcome::Done)
}
