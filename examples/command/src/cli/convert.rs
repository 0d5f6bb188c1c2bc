//! `meshweft convert`: from one mesh file to another.

use super::console::{Console, Outcome};
use super::options::at_least;
use super::{memory, meshes, text};
use anyhow::{Result, bail};
use clap::Args;
use meshweft_mesh::io::{self, Format};
use std::ffi::OsString;
use std::path::PathBuf;

/// From where to where.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// A mesh file or generator
    #[arg(value_name = "IN")]
    from: OsString,
    /// The file to write; its extension says how: .vtu .ply .obj
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// Seed of mesh generators that use random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least::<0>)]
    seed: u64,
    /// Write the surface alone: of solids the facets that only one cell has
    #[arg(long)]
    surface: bool,
}

const EXAMPLES: &str = "\
Examples:
  meshweft convert part.msh part.vtu
  meshweft convert part.msh skin.ply --surface       the outside of a solid
  meshweft convert box:64 box.vtu --seed 3";

/// Reads, writes and says what was written.
pub(super) fn run(arguments: &Arguments, console: &mut Console) -> Result<Outcome> {
    let mut mesh = meshes::open(&arguments.from, arguments.seed, memory::MESH, console.err)?;
    if arguments.surface {
        mesh = mesh.skin();
        if mesh.points().is_empty() {
            bail!("{} has no surface: its cells are edges or vertices", arguments.from.to_string_lossy());
        }
    }
    io::write(&arguments.to, &mesh)?;
    let kinds = mesh.cells().counts();
    let cells: Vec<_> =
        kinds.iter().map(|(kind, n)| format!("{} {}", text::count(*n), super::info::plural(*kind))).collect();
    let points = text::counted(mesh.points().len(), "point", "points");
    writeln!(console.out, "wrote {}: {points}, {}", arguments.to.display(), cells.join(", "))?;
    let format = Format::from_path(&arguments.to)?;
    let lost = |what: &str, n: usize, kept: bool| (n > 0 && !kept).then(|| format!("{n} {what}"));
    let lost: Vec<_> = [
        lost("point fields", mesh.point_fields().len(), format != Format::Obj),
        lost("cell fields", mesh.cell_fields().len(), format == Format::Vtu),
        lost("groups", mesh.groups().len(), format == Format::Vtu),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !lost.is_empty() {
        writeln!(console.out, "left out, as this format cannot hold them: {}; .vtu keeps all", lost.join(", "))?;
    }
    Ok(Outcome::Done)
}
