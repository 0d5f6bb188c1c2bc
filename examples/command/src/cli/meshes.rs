//! Meshes that the command line names.

use super::memory::{Cost, MESH};
use super::text;
use anyhow::{Result, anyhow, bail};
use meshweft_mesh::{Mesh, generate, io};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

/// Generates a shape such as `torus:24x12`, or reads the file of that name: what a setting that is a [mesh](crate::Kind::Mesh) means.
///
/// # Errors
/// Neither a shape nor a file that can be read; more than there is memory for.
///
/// ```
/// assert_eq!(meshweft_command::cli::mesh("torus:24x12")?.points().len(), 288);
/// assert!(meshweft_command::cli::mesh("missing.obj").is_err());
/// # anyhow::Ok(())
/// ```
pub fn mesh(name: &str) -> Result<Mesh> {
    open(OsStr::new(name), 1, MESH, &mut std::io::sink())
}

/// What to ask where the scene of a mesh file is as large as a house: files have no units, and many are in millimeters.
pub(super) fn unit_note(name: &OsStr, scene: &Mesh) -> Option<String> {
    const HOUSE: f64 = 20.0;
    let [low, high] = scene.bounds();
    let wide = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
    let name = name.to_string_lossy();
    (wide > HOUSE && generate::find(&name).is_none()).then(|| {
        let wide = text::quantity(wide, "m");
        let to = Path::new(&*name).with_extension("m.vtu");
        let [from, to] = [Path::new(&*name), &to].map(text::quoted);
        format!("the mesh is {wide} wide; if it is in mm, run `meshweft convert {from} {to} --scale 0.001` first")
    })
}

/// Generates the mesh of a spec, or reads the file of that name, if there is memory for what is to be done with it; what the reader has to say
/// goes to `err`.
pub(super) fn open(name: &OsStr, seed: u64, cost: Cost, err: &mut dyn Write) -> Result<Mesh> {
    let path = Path::new(name);
    let name = &*name.to_string_lossy();
    let mesh = if generate::find(name).is_some() {
        cost.check(name, generate::size(name)?)?;
        generate::generate(name, seed)?
    } else if path.exists() {
        cost.check_file(name, path.metadata().map_or(0, |file| file.len()))?;
        let mesh = io::read_with(path, &mut |note| drop(writeln!(err, "note: {note}")))?;
        if mesh.points().is_empty() {
            bail!("{name} holds no points");
        }
        cost.check_beside(name, &mesh)?;
        mesh
    } else if path.components().count() > 1 || io::Format::from_path(path).is_ok() {
        let names: Vec<_> = generate::GENERATORS.iter().map(|g| g.name).collect();
        bail!("no mesh file {name}: give a path, or a generator such as sheet:64 (one of {})", names.join(", "));
    } else {
        generate::generate(name, seed).map_err(|e| anyhow!("{e}; nor is {name} a file"))?
    };
    Ok(mesh)
}
