//! `meshweft convert` to a `.glb`: a mesh, or the states of a run, as a model that other programs draw and play.

use super::console::Console;
use super::{memory, meshes, text};
use crate::example::magnitude;
use crate::output::scale;
use anyhow::{Context, Result, bail};
use meshweft_mesh::{CellKind, Mesh};
use meshweft_picture::{ColorMap, Key, Model};
use meshweft_view::{Series, fields_of};
use std::ffi::OsStr;
use std::path::Path;

/// States of a model: players hold each in the memory of the GPU, and edit each as a shape by itself.
const MOST_STATES: usize = 120;
/// Bytes of a model with several states: what a page can be expected to load.
const MOST_BYTES: usize = 128 << 20;
/// Runs that last from a second to a minute are played as they were, others in so many seconds, as in their film.
const LENGTH_S: f64 = 5.0;

/// Writes a mesh, or of a series as many states as a model can hold, colored by a field if there is one.
pub(super) fn write(from: &OsStr, to: &Path, seed: u64, color: Option<&str>, console: &mut Console) -> Result<()> {
    let path = Path::new(from);
    let series = if is_series(path) { Some(Series::open(path)?) } else { None };
    let first = match &series {
        Some(series) => series.read(0)?,
        None => meshes::open(from, seed, memory::MESH, console.err)?,
    };
    let (triangles, edges) = (first.surface(), first.cells().corners_of(CellKind::Edge).as_chunks().0.to_vec());
    // The points of the surface alone, in their order.
    let mut place = vec![u32::MAX; first.points().len()];
    let corners = if triangles.is_empty() { edges.as_flattened() } else { triangles.as_flattened() };
    corners.iter().for_each(|&v| place[v as usize] = 0);
    let shown: Vec<u32> = (0..place.len() as u32).filter(|&v| corners.is_empty() || place[v as usize] == 0).collect();
    (0..).zip(&shown).for_each(|(i, &v)| place[v as usize] = i);
    let triangles: Vec<[u32; 3]> = triangles.into_iter().map(|cell| cell.map(|v| place[v as usize])).collect();
    let edges: Vec<[u32; 2]> = match triangles.is_empty() {
        true => edges.into_iter().map(|cell| cell.map(|v| place[v as usize])).collect(),
        false => Vec::new(),
    };

    let times: Vec<f64> = series.iter().flat_map(Series::states).map(|state| state.time).collect();
    let most = (MOST_BYTES / (Model::STATE_BYTES * shown.len()).max(1)).clamp(2, MOST_STATES);
    let stride = times.len().div_ceil(most).max(1);
    let mut keys = Vec::new();
    for at in (times.len().saturating_sub(1) % stride..times.len().max(1)).step_by(stride) {
        let read = series.as_ref().filter(|_| at > 0).map(|series| series.read(at)).transpose()?;
        let mesh = read.as_ref().unwrap_or(&first);
        if mesh.points().len() != first.points().len() || mesh.cells().all_corners() != first.cells().all_corners() {
            bail!("state {} has other cells than the first one: convert its file alone", at + 1);
        }
        let points = shown.iter().map(|&v| mesh.points()[v as usize]).collect();
        let values = color.map(|color| values(mesh, color, &shown)).transpose()?.unwrap_or_default();
        keys.push(Key { time_s: times.get(at).copied().unwrap_or(0.0), points, values });
    }
    let (begin, end) = (keys[0].time_s, keys[keys.len() - 1].time_s);
    let seconds = if (1.0..=60.0).contains(&(end - begin)) || begin == end { end - begin } else { LENGTH_S };
    let pace = if end > begin { seconds / (end - begin) } else { 1.0 };
    keys.iter_mut().for_each(|key| key.time_s = (key.time_s - begin) * pace);
    let colors = color.map(|_| {
        let ranges = keys.iter().map(|key| ColorMap::Viridis.range_of(&key.values)).collect::<Vec<_>>();
        let signed = ranges.iter().any(|range| range[0] < 0.0) && ranges.iter().any(|range| range[1] > 0.0);
        let map = if signed { ColorMap::Coolwarm } else { ColorMap::Viridis };
        (map, scale(map, &ranges))
    });
    let changes = keys.iter().any(|key| key.points != keys[0].points || key.values != keys[0].values);
    if !changes {
        keys.truncate(1);
    }
    let name = to.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let model = Model { name: &name, triangles: &triangles, edges: &edges, keys, colors };
    model.write(to)?;

    let count = |n: usize, one: &str, many: &str| text::counted(n, one, many);
    let kind = match (triangles.len(), edges.len()) {
        (0, 0) => String::new(),
        (0, n) => format!(", {}", count(n, "edge", "edges")),
        (n, _) => format!(", {}", count(n, "triangle", "triangles")),
    };
    let states = match (model.keys.len(), times.len()) {
        (1, _) => String::new(),
        (n, all) => format!(", {n} of {all} states in {}", text::seconds(seconds)),
    };
    writeln!(console.out, "wrote {}: {}{kind}{states}", to.display(), count(shown.len(), "point", "points"))?;
    if times.len() > 1 && !changes {
        writeln!(
            console.out,
            "one state alone, as nothing moves: --color FIELD shows a field, one of {}",
            known(&first)
        )?;
    }
    Ok(())
}

/// Whether a file is a list of states.
pub(super) fn is_series(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("pvd"))
}

/// The number of each vertex that is shown: of vectors the length, of cells the mean around the vertex.
fn values(mesh: &Mesh, color: &str, shown: &[u32]) -> Result<Vec<f64>> {
    let all = fields_of(mesh);
    let field = all.iter().find(|field| field.name == color);
    let field = field.with_context(|| format!("there is no field {color:?} to color by: one of {}", known(mesh)))?;
    Ok(shown.iter().map(|&v| magnitude(field, v as usize)).collect())
}

/// The fields of a mesh, for messages.
fn known(mesh: &Mesh) -> String {
    // Names in files may hold anything.
    let shown = |name: &str| name.chars().take(60).collect::<String>().escape_debug().to_string();
    let fields = mesh.point_fields().iter().chain(mesh.cell_fields());
    let names: Vec<String> = fields.map(|field| shown(&field.name)).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
