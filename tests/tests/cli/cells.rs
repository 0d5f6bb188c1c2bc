//! Programs whose vertices stand for cells: what their runs leave.

use super::*;
use meshweft_mesh::CellKind;

#[test]
fn a_run_on_cells_leaves_cells_with_their_values_and_one_can_go_on_from_them() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run =
        |more: &[&str]| json(&[&["run", "--json", "--quiet", "--out", out, "--film-size", "64x48"], more].concat());
    let air = run(&["airfoil", "--mesh", "airfoil:24x12", "--steps", "2", "--verify", "--picture-size", "96x72"]);
    assert_eq!(air["vertices"], 24 * 12);
    let state = folder.path().join("airfoil_000002.vtu");
    let mesh = io::read(&state).unwrap();
    assert_eq!((mesh.points().len(), mesh.cells().counts()), (24 * 13, vec![(CellKind::Quad, 24 * 12)]));
    // A cell of the state is a cell of the mesh, in their order.
    let density = &mesh.cell_field("density").unwrap().values;
    assert!(density.len() == 24 * 12 && mesh.point_fields().is_empty());
    assert!(density.iter().any(|&density| density != 1.0));
    assert!(["airfoil.png", "airfoil.gif", "airfoil.svg"].iter().all(|file| folder.path().join(file).is_file()));
    // The same mesh again, but for the names of its boundary: nothing is far away in a ring.
    let again = run(&["airfoil", "--mesh", state.to_str().unwrap(), "--steps", "1", "--no-pictures"]);
    assert_eq!(again["vertices"], 24 * 12);
    // Fields are chosen as those of points are.
    run(&["airfoil", "--mesh", "airfoil:24x12", "--steps", "1", "--no-pictures", "--fields", "mach"]);
    let mesh = io::read(&folder.path().join("airfoil_000001.vtu")).unwrap();
    assert_eq!(mesh.cell_fields().iter().map(|field| &*field.name).collect::<Vec<_>>(), ["mach"]);
}

#[test]
fn what_is_raised_is_raised_at_the_points_by_the_cells_around() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    json(&[
        "run",
        "shallow-water",
        "--mesh",
        "quads:31x13",
        "--steps",
        "1",
        "--set",
        "scene=lake",
        "--no-pictures",
        "--json",
        "--quiet",
        "--out",
        out,
    ]);
    let mesh = io::read(&folder.path().join("shallow-water_000001.vtu")).unwrap();
    let [low, high] = mesh.bounds();
    // The lake, and the hill that looks out of it, three times as high as they are.
    assert!((low[2] - 3.0 * 1.875).abs() < 1e-6, "{low:?}");
    assert!(high[2] > 3.0 * 2.0 && high[2] < 3.0 * 3.0, "{high:?}");
    let error = meshweft(&[
        "run",
        "shallow-water",
        "--mesh",
        "quads:31x13",
        "--steps",
        "1",
        "--no-pictures",
        "--quiet",
        "--pieces",
        "--out",
        out,
    ]);
    assert!(error.code != 0 && error.err.contains("a mesh of cells is written as a whole"), "{}", error.err);
}

#[test]
fn meshes_that_flows_cannot_run_on_are_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (name, mesh, says) in [
        ("airfoil", "box:4", "flat surface of triangles or quads"),
        ("airfoil", "sphere:4", "flat surface of triangles or quads"),
        ("shallow-water", "chain:9", "surface of triangles or quads"),
        ("shallow-water", "hexes:3", "surface of triangles or quads"),
    ] {
        bad(&["run", name, "--mesh", mesh, "--steps", "1", "--quiet", "--out", out], says);
    }
}
