//! States of earlier runs that a run starts from.

use super::memory::MESH;
use crate::Run;
use anyhow::{Result, bail};
use meshweft_mesh::{Field, Mesh, generate, io};
use std::ffi::OsStr;
use std::path::Path;

/// The fields of a file that stand for one of a run: of its points, or of its cells where these are what the run computes, or the field is of them.
fn fields<'a>(file: &'a Mesh, run: &Run, name: &str) -> &'a [Field] {
    match run.mesh().primal().is_some() || run.is_of_cells(name) {
        true => file.cell_fields(),
        false => file.point_fields(),
    }
}

/// Starts the run from the fields of a state that the file holds; says which these are, and which are as always.
///
/// # Errors
/// What is no mesh file, holds no field of the run, or is the state of a run of another size.
pub(super) fn take(run: &mut Run, path: &Path) -> Result<String> {
    MESH.check_file(&path.to_string_lossy(), path.metadata().map_or(0, |file| file.len()))?;
    let file = io::read(path)?;
    let (entities, count) = match run.mesh().primal() {
        Some(_) => ("cells", file.cells().len()),
        None => ("points", file.points().len()),
    };
    let expected = run.mesh().points().len();
    if count != expected {
        bail!(
            "it has {count} {entities}, and the run {expected}: give the --mesh and the settings of the run that it is of"
        );
    }
    let (mut taken, mut others) = (Vec::new(), Vec::new());
    let positions = run.look().positions;
    for part in run.fields() {
        let expected = if run.is_of_cells(&part.name) { run.mesh().cells().len() } else { expected };
        let values = match fields(&file, run, &part.name).iter().find(|field| field.name == part.name) {
            Some(field) => &field.values[..],
            // Where vertices are is where the points of the file are.
            None if positions == Some(&*part.name) => file.points().as_flattened(),
            None => {
                others.push(part.name.to_string());
                continue;
            }
        };
        if values.len() != expected * part.components {
            let (name, has, wants) = (&part.name, values.len() / expected.max(1), part.components);
            bail!("{name} has {has} numbers each there, and {wants} in this run: it is of another example");
        }
        run.set_field(&part.name, values)?;
        taken.push(part.name.to_string());
    }
    if taken.is_empty() {
        let given = file.point_fields().iter().chain(file.cell_fields());
        let has: Vec<&str> = given.map(|field| &*field.name).collect();
        let has = if has.is_empty() { "none".into() } else { has.join(", ") };
        bail!("it has no field of this run, which are {}; those of its points and cells: {has}", others.join(", "));
    }
    let rest = if others.is_empty() { String::new() } else { format!("; as at every start: {}", others.join(", ")) };
    Ok(format!("starting from {} of {}{rest}", taken.join(", "), path.display()))
}

/// What to say where a run has the shape of a state for its mesh, and not what is in it.
pub(super) fn note(name: &OsStr, run: &Run) -> Option<String> {
    let name = name.to_string_lossy();
    if generate::find(&name).is_some() {
        return None;
    }
    let file = run.mesh().primal().unwrap_or(run.mesh());
    // What the reader of a graph itself has numbered says nothing of a run.
    let is_there = |name: &String| name != "id" && fields(file, run, name).iter().any(|field| field.name == *name);
    let known: Vec<String> = run.fields().into_iter().map(|part| part.name).filter(is_there).collect();
    (!known.is_empty()).then(|| {
        let known = known.join(", ");
        format!(
            "{name} is a state, with {known}: the run starts anew on its shape; `--from {name}` starts from its fields"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_cells_come_from_the_cells_of_a_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("means.vtu");
        let mesh = generate::generate("sheet:5", 1).unwrap();
        let mut first = crate::means::run(mesh.clone());
        first.step().unwrap();
        let (height, mean) = (first.field("height").unwrap(), first.field("mean").unwrap());
        let mut state = mesh.clone();
        state.set_point_field(height).unwrap();
        state.set_cell_field(mean.clone()).unwrap();
        io::write(&path, &state).unwrap();
        let mut second = crate::means::run(mesh);
        assert_eq!(note(OsStr::new("means.vtu"), &second), None);
        assert!(take(&mut second, &path).unwrap().starts_with("starting from height, mean of "));
        assert_eq!(second.field("mean").unwrap(), mean);
        let on_state = crate::means::run(io::read(&path).unwrap());
        assert!(note(OsStr::new("means.vtu"), &on_state).unwrap().contains("is a state, with height, mean:"));
    }
}
