//! Meshes at the edge of what a mesh is, and runs that must stop.

use crate::determinism::runs;
use meshweft::{Backend, Error, Simd};
use meshweft_command::Options;
use meshweft_examples::EXAMPLES;
use meshweft_mesh::generate::generate;
use meshweft_mesh::{CellKind, Cells, Mesh};
use meshweft_tests::{digest_after, orders, projects, start};

fn triangles(points: Vec<[f64; 3]>, corners: Vec<u32>) -> Mesh {
    Mesh::new(points, Cells::of(CellKind::Triangle, corners)).unwrap()
}

/// Meshes by name. All have triangles or nothing, so that every example takes them but [some](is_taken).
pub(crate) fn extremes() -> Vec<(&'static str, Mesh)> {
    let corner = vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let twice: Vec<[f64; 3]> = corner.iter().chain(&corner).copied().collect();
    let mut apart = twice.clone();
    apart[3..].iter_mut().for_each(|p| p[0] += 5.0);
    apart.push([9.0, 9.0, 9.0]); // in no cell: degree 0
    let rim = 10_000u32;
    let mut fan = vec![[0.0; 3]];
    fan.extend((0..rim).map(|i| {
        let angle = 2.0 * std::f64::consts::PI * f64::from(i) / f64::from(rim);
        [angle.cos(), angle.sin(), 0.0]
    }));
    let spokes = (0..rim).flat_map(|i| [0, 1 + i, 1 + (i + 1) % rim]).collect();
    vec![
        ("empty", Mesh::new(vec![], Cells::new()).unwrap()),
        ("one vertex", Mesh::new(vec![[1.0, 2.0, 3.0]], Cells::of(CellKind::Vertex, vec![0])).unwrap()),
        ("one triangle", triangles(corner, vec![0, 1, 2])),
        ("coincident triangles", triangles(twice, vec![0, 1, 2, 3, 4, 5])),
        ("two parts and a lone vertex", triangles(apart, vec![0, 1, 2, 3, 4, 5])),
        ("triangles of no area", triangles(vec![[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], vec![0, 1, 2, 0, 0, 1])),
        ("all points in one place", triangles(vec![[2.0; 3]; 4], vec![0, 1, 2, 1, 2, 3])),
        ("degree 10,000", triangles(fan, spokes)),
    ]
}

/// The mesh as an example takes it: for one of solids, each triangle is joined to a point above. Elements that move a common corner are all
/// joined with each other, and triangles that narrow touch each other where they meet, which is a hundred million pairs at a vertex of degree
/// 10,000: for those it is 1,000.
pub(crate) fn suited(example: &str, mesh: &Mesh) -> Mesh {
    if (projects(example) || example == "cloth") && mesh.triangles().len() > 1000 {
        return triangles(mesh.points().to_vec(), mesh.triangles()[..1000].as_flattened().to_vec());
    }
    if example != "softbody" || mesh.dimension() != 2 {
        return mesh.clone();
    }
    let mut points = mesh.points().to_vec();
    let top = points.len() as u32;
    points.push([0.2, 0.3, 1.0]);
    let tets = mesh.triangles().into_iter().flat_map(|[a, b, c]| [a, b, c, top]).collect();
    Mesh::new(points, Cells::of(CellKind::Tet, tets)).unwrap()
}

/// Whether an example takes the mesh: flows and finite elements run on cells that have an area, some in one plane. They refuse the others.
pub(crate) fn is_taken(example: &str, what: &str) -> bool {
    let is_flat = ["airfoil", "elasticity", "vibration"].contains(&example);
    match what {
        "empty" | "one vertex" | "triangles of no area" | "all points in one place" => {
            !is_flat && !["shallow-water", "poisson"].contains(&example)
        }
        "two parts and a lone vertex" => !is_flat,
        _ => true,
    }
}

/// Settings under which an example runs on one of the meshes.
pub(crate) fn settings(example: &str, what: &str) -> &'static [(&'static str, &'static str)] {
    match (example, what) {
        // Ten thousand springs at one mass are stiff: the step must be short.
        ("spring", _) => &[("dt", "0.001")],
        ("poisson", _) => &[("rounds", "1")],
        ("vibration", _) => &[("rounds", "1"), ("fixed", "rest")],
        ("elasticity", _) => &[("rounds", "1"), ("fixed", "rest"), ("pull", "none"), ("gravity", "9.81")],
        // What touches itself at rest cannot be kept apart.
        ("cloth", "coincident triangles") => &[("touching", "off")],
        _ => &[],
    }
}

#[test]
fn cloth_that_touches_itself_at_rest_is_an_error_with_a_way_out() {
    for (what, mesh) in extremes().into_iter().filter(|(what, _)| !settings("cloth", what).is_empty()) {
        let said = start("cloth", &mesh, &[], &Options::default()).and_then(|mut run| digest_after(1, &mut run));
        let said = format!("{:#}", said.expect_err(what));
        assert!(said.contains("touching=off"), "{what}: {said}");
    }
}

#[test]
fn what_tears_runs_on_extreme_meshes_as_the_oracle_does() {
    for (what, mesh) in extremes() {
        for (name, stiffness) in [("cloth", "stretch"), ("softbody", "young")] {
            // Steps so long, and so soft, that little stays whole.
            let mut set = vec![("tear", "0.01"), ("dt", "0.02"), (stiffness, "10")];
            set.extend_from_slice(settings(name, what));
            let mesh = suited(name, &mesh);
            for order in orders().into_iter().filter(|order| !order.key.is_double_buffered()) {
                let go = |backend| {
                    start(name, &mesh, &set, &Options { order, backend, ..Options::default() })
                        .and_then(|mut run| digest_after(6, &mut run))
                };
                if what == "degree 10,000" {
                    let said = go(Backend::Serial).expect_err("a vertex holds so many in bits").to_string();
                    assert!(said.contains("at most 64 there: use a more even mesh"), "{name}: {said}");
                    continue;
                }
                let go = |backend| go(backend).unwrap_or_else(|e| panic!("{name}, {what}, {order}: {e:#}"));
                assert_eq!(go(Backend::Cpu { threads: 2 }), go(Backend::Serial), "{name}, {what}, {order}");
            }
        }
    }
}

#[test]
fn every_example_runs_on_extreme_meshes_under_every_order_as_the_oracle_does() {
    for (what, mesh) in extremes() {
        for example in EXAMPLES {
            let name = example.info.name;
            let mesh = suited(name, &mesh);
            if !is_taken(name, what) {
                assert!(start(name, &mesh, &[], &Options::default()).is_err(), "{name} on {what}");
                continue;
            }
            for order in orders().into_iter().filter(|&order| runs(name, &[], order)) {
                let go = |backend, simd| {
                    let options = Options { order, backend, simd, ..Options::default() };
                    let run = start(name, &mesh, settings(name, what), &options)
                        .and_then(|mut run| digest_after(3, &mut run));
                    run.unwrap_or_else(|e| panic!("{name}, {what}, {order}: {e:#}"))
                };
                let oracle = go(Backend::Serial, Simd::Off);
                for &simd in Simd::built() {
                    assert_eq!(go(Backend::Cpu { threads: 2 }, simd), oracle, "{name}, {what}, {order}, {simd:?}");
                }
            }
        }
    }
}

#[test]
fn a_run_that_diverges_stops_and_names_vertex_and_step() {
    let mesh = generate("box:6", 1).unwrap();
    for backend in [Backend::Serial, Backend::Cpu { threads: 2 }] {
        let options = Options { backend, ..Options::default() };
        let mut run = start("spring", &mesh, &[("dt", "50")], &options).unwrap();
        let error = (0..1000).find_map(|_| run.step().err()).expect("it diverges");
        let Some(Error::Diverged { vertex, step, .. }) = error.downcast_ref::<Error>() else { panic!("{error:#}") };
        assert_eq!(*step, run.steps());
        assert!((*vertex as usize) < mesh.points().len());
        assert!(run.step().is_err(), "it stays stopped");
    }
}
