//! Programs on graphs against what networkx finds (`data/graphs/make.py`), and their judges against wrong answers.

use anyhow::{Context, Result};
use meshweft::Order;
use meshweft_command::{Example, Options, Precision, Run, Settings};
use meshweft_examples::graphs::{Bfs, Components, PageRank, Sssp};
use meshweft_mesh::{Mesh, io};
use meshweft_tests::start;
use std::path::PathBuf;

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "data", "graphs"].iter().collect()
}

/// Runs an example to its end.
fn solved(example: &str, mesh: &Mesh, settings: &[(&str, &str)]) -> Result<Run> {
    let order = meshweft_tests::example(example).info.order.context("graphs have an order of their own")?;
    let options = Options { order, precision: Precision::F64, ..Options::default() };
    let mut run = start(example, mesh, settings, &options)?;
    run.step()?;
    Ok(run)
}

fn field(run: &Run, name: &str) -> Vec<f64> {
    run.state().unwrap().into_iter().find(|field| field.name == name).unwrap().values
}

/// A column of the table that networkx filled.
fn column(table: &str, name: &str) -> Vec<f64> {
    let at = table.lines().next().unwrap().split(',').position(|word| word == name).unwrap();
    table.lines().skip(1).map(|line| line.split(',').nth(at).unwrap().parse().unwrap()).collect()
}

#[test]
fn five_graphs_have_the_ranks_levels_distances_and_components_of_networkx() {
    for file in ["karate.wel", "miserables.wel", "families.el", "women.el", "painters.el"] {
        let (name, _) = file.split_once('.').unwrap();
        let directed = if name == "painters" { "true" } else { "false" };
        let mesh = io::read(&folder().join(file)).unwrap();
        let table = std::fs::read_to_string(folder().join(format!("{name}.csv"))).unwrap();
        let ids = &mesh.point_field("id").unwrap().values;
        assert_eq!(ids, &column(&table, "vertex"), "{file}");
        let name_of = |v: f64| ids[v as usize];
        let close = |found: Vec<f64>, expected: &str| {
            for (v, (a, b)) in found.iter().zip(column(&table, expected)).enumerate() {
                assert!(*a == b || (a - b).abs() <= 1e-9 * b, "{file}: {expected} of vertex {v} is {a}, not {b}");
            }
        };
        let setting = [("directed", directed)];
        let to_the_end = [setting[0], ("tolerance", "1e-14")];
        close(field(&solved("pagerank", &mesh, &to_the_end).unwrap(), "rank"), "rank");
        let distances = field(&solved("sssp", &mesh, &setting).unwrap(), "distance");
        close(
            distances.iter().map(|&d| if d == f64::from(f32::MAX) { f64::INFINITY } else { d }).collect(),
            "distance",
        );
        let levels = field(&solved("bfs", &mesh, &setting).unwrap(), "level");
        let levels: Vec<f64> = levels.iter().map(|&l| if l == f64::from(i32::MAX) { -1.0 } else { l }).collect();
        assert_eq!(levels, column(&table, "level"), "{file}");
        let labels = field(&solved("components", &mesh, &[]).unwrap(), "component");
        assert_eq!(labels.into_iter().map(name_of).collect::<Vec<_>>(), column(&table, "component"), "{file}");
    }
}

#[test]
fn a_source_is_named_as_the_file_does() {
    let mesh = io::read(&folder().join("families.el")).unwrap();
    let ids = mesh.point_field("id").unwrap().values.clone();
    let run = solved("bfs", &mesh, &[("source", "9")]).unwrap();
    let at = field(&run, "level").iter().position(|&level| level == 0.0).unwrap();
    assert_eq!(ids[at], 9.0);
    for source in ["10", "9.5", "1e15"] {
        let error = solved("bfs", &mesh, &[("source", source)]).map(drop).unwrap_err().to_string();
        let least = ids.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(error.contains("the graph has no vertex") && error.contains(&format!("from {least} to")), "{error}");
    }
}

#[test]
fn weights_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wel");
    for (example, text, says) in [
        ("sssp", "0 1 -1\n", "no length is negative"),
        ("pagerank", "0 1 -1\n", "no chance is negative"),
        ("sssp", "0 1 1e38\n1 2 1e38\n2 3 1e38\n3 4 1e38\n", "too large"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = solved(example, &io::read(&path).unwrap(), &[]).map(drop).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn judges_find_what_is_wrong_with_an_answer() {
    /// How many properties an answer breaks, with the value of one vertex changed.
    fn broken<P: Example>(mesh: &Mesh, field: &str, v: usize, change: impl Fn(f64) -> f64) -> usize {
        let mut fields = solved(P::INFO.name, mesh, &[]).unwrap().state().unwrap();
        let values = &mut fields.iter_mut().find(|known| known.name == field).unwrap().values;
        values[v] = change(values[v]);
        let program = P::new(&mut mesh.clone(), &Settings::new(P::INFO.settings), Order::JACOBI).unwrap();
        program.judge(&fields).unwrap().iter().filter(|check| !check.passes()).count()
    }
    // A ring with a tail, and two vertices by themselves. The source is 0.
    let ring = (0..8).map(|v| [v, (v + 1) % 8]).chain([[0, 8], [8, 9], [9, 10], [11, 12]]).collect();
    let mesh = Mesh::from_graph(13, ring).unwrap();
    assert_eq!(broken::<Bfs>(&mesh, "level", 3, |level| level), 0);
    assert!(broken::<Bfs>(&mesh, "level", 0, |_| 1.0) > 0);
    assert!(broken::<Bfs>(&mesh, "level", 10, |level| level + 1.0) > 0);
    assert!(broken::<Bfs>(&mesh, "level", 10, |_| f64::from(i32::MAX)) > 0);
    assert!(broken::<Bfs>(&mesh, "parent", 10, |_| 3.0) > 0); // no neighbor
    assert!(broken::<Bfs>(&mesh, "parent", 9, |_| 10.0) > 0); // a circle
    assert!(broken::<Bfs>(&mesh, "parent", 11, |_| 12.0) > 0); // not reached
    assert!(broken::<Bfs>(&mesh, "parent", 3, |_| 1e9) > 0); // no vertex
    assert_eq!(broken::<Sssp>(&mesh, "distance", 3, |distance| distance), 0);
    assert!(broken::<Sssp>(&mesh, "distance", 3, |distance| distance - 1.0) > 0);
    assert!(broken::<Sssp>(&mesh, "distance", 10, |distance| distance + 1.0) > 0);
    assert!(broken::<Sssp>(&mesh, "parent", 9, |_| 10.0) > 0);
    assert!(broken::<Sssp>(&mesh, "parent", 3, |_| 5.0) > 0);
    assert_eq!(broken::<Components>(&mesh, "component", 3, |label| label), 0);
    assert!(broken::<Components>(&mesh, "component", 3, |_| 3.0) > 0);
    assert!(broken::<Components>(&mesh, "component", 12, |_| 0.0) > 0);
    assert_eq!(broken::<PageRank>(&mesh, "rank", 3, |rank| rank), 0);
    assert!(broken::<PageRank>(&mesh, "rank", 3, |rank| rank + 1e-8) > 0);
    assert!(broken::<PageRank>(&mesh, "rank", 3, |_| 0.0) > 0);
}
