//! `meshweft new`: a package with a program of one's own.

use super::console::{Console, Outcome};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

/// What to make, and where.
#[derive(Args)]
#[command(after_help = "Examples:\n  meshweft new diffusion && cd diffusion && cargo run --release -- run diffusion")]
pub(super) struct Arguments {
    /// The package: a folder of this name is made, here or where the path says
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// The sources of Meshweft that it is to use [default: those that this command was built from]
    #[arg(long, value_name = "DIR")]
    meshweft: Option<PathBuf>,
}

/// Writes the package.
pub(super) fn run(arguments: &Arguments, console: &mut Console) -> Result<Outcome> {
    let folder = &arguments.folder;
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_word) {
        bail!("{name:?} is no name of a package: lower-case letters, digits, - and _, such as my-model");
    }
    let meshweft = match &arguments.meshweft {
        Some(folder) => folder.clone(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(PathBuf::from).unwrap_or_default(),
    };
    let meshweft = fs::canonicalize(&meshweft).unwrap_or(meshweft);
    if !meshweft.join("runtime/Cargo.toml").is_file() {
        bail!("{} does not hold the sources of Meshweft: name their folder with --meshweft", meshweft.display());
    }
    let sources = meshweft.to_str().with_context(|| format!("{} is not UTF-8", meshweft.display()))?;
    fs::create_dir(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let write = |path: &str, text: String| {
        let path = folder.join(path);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    fs::create_dir(folder.join("src")).with_context(|| format!("cannot make the folder {}/src", folder.display()))?;
    let package = include_str!("../../template/Cargo.toml.in").replace("NAME", name);
    write("Cargo.toml", package.replace("MESHWEFT", &sources.replace('\\', "/")))?;
    write("src/main.rs", include_str!("../../template/src/main.rs").replace("NAME", name))?;
    fs::create_dir(folder.join(".cargo"))
        .with_context(|| format!("cannot make the folder {}/.cargo", folder.display()))?;
    write(".cargo/config.toml", include_str!("../../template/cargo-config.toml.in").into())?;
    write(".gitignore", "target\nout\n".into())?;
    let place = folder.display();
    writeln!(console.out, "made {place}: `cd {place} && cargo run --release -- run {name}` makes its first film")?;
    Ok(Outcome::Done)
}
