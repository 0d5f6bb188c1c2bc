//! The examples of the command, with their settings.

use crate::error::Error;
use crate::mesh::Mesh;
use crate::simulation::{Options, Simulation};
use meshweft_command::{Info, Kind, Options as RunOptions, Precision, Settings};
use meshweft_examples::EXAMPLES;
use pyo3::prelude::*;
use std::sync::Arc;

/// A setting: its name, what it means, its default, and its unit or the words that it may be.
type Described = (&'static str, &'static str, String, String);

fn refused(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// An example: its name, what it does, its mesh, its precision, and its settings.
type Known = (&'static str, &'static str, &'static str, &'static str, Vec<Described>);

/// All examples.
#[pyfunction]
pub(crate) fn examples() -> Vec<Known> {
    let described = |setting: &meshweft_command::Setting| match setting.kind {
        Kind::Number { default, unit, .. } => (setting.name, setting.about, default.to_string(), unit.to_string()),
        Kind::Choice(words) => (setting.name, setting.about, words[0].to_string(), words.join(", ")),
        Kind::Text { default, form } => (setting.name, setting.about, default.into(), form.into()),
        Kind::Mesh => (setting.name, setting.about, "none".into(), "a file or a shape".into()),
    };
    let all = EXAMPLES.iter().map(|entry| &entry.info);
    let settings = |info: &Info| info.settings.iter().map(described).collect();
    all.map(|info| (info.name, info.about, info.mesh, info.precision.name(), settings(info))).collect()
}

/// Builds the simulation of an example, on its own mesh unless there is another.
#[pyfunction]
pub(crate) fn example(
    python: Python<'_>,
    name: &str,
    mesh: Option<&Mesh>,
    settings: Vec<(String, String)>,
    options: Options,
) -> PyResult<Simulation> {
    let entry = EXAMPLES.iter().find(|entry| entry.info.name == name);
    let entry = entry.ok_or_else(|| refused(format!("there is no example {name:?}")))?;
    let mut chosen = Settings::new(entry.info.settings);
    for (name, value) in settings {
        chosen.set(entry.info.settings, &name, &value).map_err(refused)?;
    }
    let mesh = match mesh {
        Some(mesh) => mesh.mesh.clone(),
        None => Arc::new(meshweft_mesh::generate::generate(entry.info.mesh, 1).map_err(refused)?),
    };
    let precision = match options.precision.as_str() {
        "f32" => Precision::F32,
        "f64" => Precision::F64,
        other => return Err(refused(format!("examples compute in f32 or f64, not in {other}"))),
    };
    let order = options.order()?.or(entry.info.order);
    let backend = options.backend(python)?;
    let order = order.unwrap_or_else(|| backend.order());
    let options = RunOptions { order, backend, precision, ..RunOptions::default() };
    let mesh = Arc::unwrap_or_clone(mesh);
    let run = python.detach(|| entry.start(mesh, &chosen, &options)).map_err(|error| refused(format!("{error:#}")))?;
    Ok(Simulation::new(run.into_simulation()))
}
