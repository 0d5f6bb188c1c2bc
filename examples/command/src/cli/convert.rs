//! `meshweft convert`: from one mesh file to another.

use super::console::{Console, Outcome};
use super::options::at_least;
use super::{memory, meshes, model, text};
use anyhow::{Result, bail};
use clap::Args;
use meshweft_mesh::io::{self, Format};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// From where to where.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// A mesh file or generator; for a .glb also the states of a run, NAME.pvd
    #[arg(value_name = "IN")]
    from: OsString,
    /// The file to write; its extension says how: .vtu .ply .obj, or .glb (glTF) for Blender and the web
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// Seed of mesh generators that use random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least::<0>)]
    seed: u64,
    /// Write the surface alone: of solids the facets that only one cell has
    #[arg(long)]
    surface: bool,
    /// Multiply all coordinates by that, as in --scale 0.001 from millimeters to meters
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    scale: Option<f64>,
    /// For a .glb, the field that gives the color: one of points or cells (of cells, its mean around each vertex), vectors by their length
    #[arg(long, alias = "colour", value_name = "FIELD")]
    color: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  meshweft convert part.msh part.vtu
  meshweft convert part.msh skin.ply --surface       the outside of a solid
  meshweft convert part.stl part.vtu --scale 0.001   from millimeters to meters
  meshweft convert box:64 box.vtu --seed 3
  meshweft convert out/EXAMPLE/EXAMPLE.pvd moves.glb --color FIELD     the states of a run, which are played";

/// Reads a factor for `--scale`.
fn factor(word: &str) -> Result<f64, String> {
    let factor = word.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0);
    factor.ok_or_else(|| "take a number above 0".to_string())
}

/// Reads, writes and says what was written.
pub(super) fn run(arguments: &Arguments, console: &mut Console) -> Result<Outcome> {
    if arguments.to.extension().is_some_and(|end| end.eq_ignore_ascii_case("glb")) {
        if arguments.scale.is_some() {
            bail!("--scale is for files of meshes: a .glb is as large as what it shows");
        }
        model::write(&arguments.from, &arguments.to, arguments.seed, arguments.color.as_deref(), console)?;
        return Ok(Outcome::Done);
    }
    if arguments.color.is_some() {
        bail!("--color is for a .glb: files of meshes hold fields, not colors");
    }
    if model::is_series(Path::new(&arguments.from)) {
        bail!("a series of states goes into a .glb; to write another file, convert one of its states, NAME_000100.vtu");
    }
    let mut mesh = meshes::open(&arguments.from, arguments.seed, memory::MESH, console.err)?;
    if arguments.surface {
        mesh = mesh.skin();
        if mesh.points().is_empty() {
            bail!("{} has no surface: its cells are edges or vertices", arguments.from.to_string_lossy());
        }
    }
    if let Some(scale) = arguments.scale {
        mesh.set_points(mesh.points().iter().map(|p| p.map(|x| scale * x)).collect())?;
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
