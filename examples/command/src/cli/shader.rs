//! `meshweft shader`: what runs on a GPU, to read.

use super::console::{Console, Outcome};
use super::options::Problem;
use super::programs::Programs;
use super::{memory, meshes};
use anyhow::{Result, bail};
use clap::Args;

/// Which shaders.
#[derive(Args)]
#[command(args_override_self = true, after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    problem: Problem,
    /// Only this kernel
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Whole modules, as the driver gets them, instead of what was traced from the program alone
    #[arg(long)]
    whole: bool,
}

const EXAMPLES: &str = "\
Examples:
  meshweft shader EXAMPLE                            the update that was traced from the program
  meshweft shader EXAMPLE --order color --whole      with everything around it

No GPU is needed: vertices are laid out as for a device with the limits that WebGPU promises everywhere.";

/// Prints the shaders.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    let plan = arguments.problem.plan(programs, false)?;
    let mesh = meshes::open(&plan.mesh, plan.seed, memory::SET_UP, console.err)?;
    let shaders = plan.entry.shaders(mesh, &plan.settings, &plan.options)?;
    let mut names: Vec<&str> = Vec::new();
    for shader in &shaders {
        if !names.contains(&shader.kernel) {
            names.push(shader.kernel);
        }
    }
    let wanted = |name: &str| arguments.kernel.as_deref().is_none_or(|kernel| kernel.eq_ignore_ascii_case(name));
    if let Some(kernel) = arguments.kernel.as_deref().filter(|_| !names.iter().any(|name| wanted(name))) {
        bail!("{} has no kernel {kernel:?}: one of {}", plan.entry.info.name, names.join(", "));
    }
    let out = &mut console.out;
    if arguments.whole {
        for shader in shaders.iter().filter(|shader| wanted(shader.kernel)) {
            let double = if shader.double_buffered { ", double-buffered" } else { "" };
            writeln!(out, "// kernel {}, entry point {}{double}\n{}", shader.kernel, shader.entry, shader.module)?;
        }
        return Ok(Outcome::Done);
    }
    if let Some(first) = shaders.first() {
        writeln!(out, "{}", first.records)?;
    }
    for name in names.into_iter().filter(|name| wanted(name)) {
        if let Some(shader) = shaders.iter().find(|shader| shader.kernel == name) {
            writeln!(out, "// kernel {name}\n{}", shader.function)?;
        }
    }
    Ok(Outcome::Done)
}
