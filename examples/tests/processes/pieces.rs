//! States that hosts write piece by piece: together they are what one host writes [C3].

use super::process::{Start, meshweft};
use super::report;
use meshweft_mesh::{CellKind, Field, Mesh, io};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// Runs the command and waits for its end.
fn run(arguments: &[&str], out: &Path) -> Output {
    let mut command = meshweft();
    command.args(["run", "--no-pictures", "--quiet", "--json"]).args(arguments).arg("--out").arg(out);
    command.ended()
}

/// Text between two others, each time they are found.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.split(start).skip(1).map(|rest| rest.split(end).next().unwrap()).collect()
}

/// A field by name, components and bits.
fn bits(field: &Field) -> (&str, usize, Vec<u64>) {
    (&field.name, field.components, field.values.iter().map(|x| x.to_bits()).collect())
}

/// A cell by kind, corners in the whole mesh, bits of its fields, and groups.
type Cell = (CellKind, Vec<u32>, Vec<u64>, Vec<bool>);

/// The cells of a mesh whose points have these numbers.
fn cells(mesh: &Mesh, numbers: &[u32]) -> Vec<Cell> {
    let field = |c: usize| {
        let values = |field: &Field| field.values[c * field.components..][..field.components].to_vec();
        mesh.cell_fields().iter().flat_map(values).map(f64::to_bits).collect()
    };
    let is_in = |c: usize| mesh.groups().iter().map(|group| group.cells.contains(&(c as u32))).collect();
    let cells = mesh.cells().iter().enumerate();
    let corners = |corners: &[u32]| corners.iter().map(|&v| numbers[v as usize]).collect();
    cells.map(|(c, (kind, all))| (kind, corners(all), field(c), is_in(c))).collect()
}

/// The numbers of a piece's points in the whole mesh.
fn numbers(piece: &Mesh) -> Vec<u32> {
    piece.point_field("vertex").unwrap().values.iter().map(|&v| v as u32).collect()
}

/// Checks that pieces are a mesh: every cell once, every point with the bits of the whole.
fn check_pieces(whole: &Mesh, pieces: &[Mesh]) {
    let mut found: Vec<Cell> = pieces.iter().flat_map(|piece| cells(piece, &numbers(piece))).collect();
    let mut wanted = cells(whole, &(0..whole.points().len() as u32).collect::<Vec<_>>());
    found.sort();
    wanted.sort();
    assert!(found == wanted, "{} cells of {}", found.len(), wanted.len());
    let mut count = vec![0; whole.points().len()];
    for piece in pieces {
        for (i, &v) in numbers(piece).iter().enumerate() {
            let v = v as usize;
            count[v] += 1;
            assert_eq!(piece.points()[i].map(f64::to_bits), whole.points()[v].map(f64::to_bits), "point {v}");
            for field in whole.point_fields() {
                let n = field.components;
                let own = piece.point_field(&field.name).unwrap();
                let [own, wanted] =
                    [&own.values[i * n..][..n], &field.values[v * n..][..n]].map(|x| x.iter().map(|x| x.to_bits()));
                assert!(own.eq(wanted), "{} of vertex {v}", field.name);
            }
        }
    }
    assert!(count.iter().all(|&count| count > 0), "every vertex is in a piece");
    assert_eq!(pieces.len() > 1, count.iter().any(|&count| count > 1), "cells at a cut have all their corners");
}

/// Checks that an index names what its pieces have.
fn check_index(index: &str, names: &[String], pieces: &[Mesh]) {
    assert_eq!(between(index, "<Piece Source=\"", "\""), names);
    let points = between(index, "<PPointData>", "</PPointData>")[0];
    let cells = between(index, "<PCellData>", "</PCellData>")[0];
    for piece in pieces {
        let names = |fields: &[Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        assert_eq!(between(points, "Name=\"", "\""), names(piece.point_fields()));
        let groups = piece.groups().iter().map(|group| format!("group.{}.{}", group.dimension, group.name));
        let all: Vec<String> = names(piece.cell_fields()).into_iter().chain(groups).collect();
        assert_eq!(between(cells, "Name=\"", "\""), all);
        let components = piece.point_fields().iter().map(|field| field.components.to_string());
        assert_eq!(between(points, "NumberOfComponents=\"", "\""), components.collect::<Vec<_>>());
    }
}

/// The files that a list names, in the same folder.
fn series(out: &Path, name: &str) -> Vec<PathBuf> {
    let list = std::fs::read_to_string(out.join(format!("{name}.pvd"))).unwrap();
    between(&list, "file=\"", "\"").iter().map(|file| out.join(file)).collect()
}

/// A bar of tets with fields over points and cells, and groups.
fn bar(folder: &Path) -> PathBuf {
    let mut bar = meshweft_mesh::generate::generate("bar:17x5x5", 1).unwrap();
    let counted = |name: &str, components: usize, n: usize| Field {
        name: name.into(),
        components,
        values: (0..n * components).map(|i| 0.1 * i as f64).collect(),
    };
    bar.set_point_field(counted("load", 3, bar.points().len())).unwrap();
    bar.set_cell_field(counted("layer", 1, bar.cells().len())).unwrap();
    assert!(bar.groups().len() == 2);
    let path = folder.join("bar.vtu");
    io::write(&path, &bar).unwrap();
    path
}

#[test]
fn pieces_of_hosts_are_together_the_state_of_one_host_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let bar = bar(folder.path());
    // A mesh that moves, with private state; one that is raised; and one that stays, with everything a file can hold.
    let cases = [("cloth", "sheet:20x30"), ("wave", "disk:12"), ("heat", bar.to_str().unwrap())];
    for (name, mesh) in cases {
        let what = [name, "--mesh", mesh, "--order", "blocked:32", "--steps", "6", "--every", "3", "--threads", "1"];
        let gathered = folder.path().join(format!("{name}-gathered"));
        report(run(&what, &gathered));
        let states = series(&gathered, name);
        assert_eq!(states.len(), 3);
        for processes in [None, Some("2"), Some("3")] {
            let out = folder.path().join(format!("{name}-{processes:?}"));
            let mut arguments = what.to_vec();
            arguments.push("--pieces");
            arguments.extend(processes.into_iter().flat_map(|count| ["--processes", count]));
            let told = report(run(&arguments, &out));
            assert_eq!(told["digest"].is_null(), processes.is_some(), "several hosts have no state to digest");
            let hosts = processes.map_or(1, |count| count.parse().unwrap());
            let indices = series(&out, name);
            assert_eq!(indices.len(), states.len());
            for (index, state) in indices.iter().zip(&states) {
                assert_eq!(index.with_extension("vtu").file_name(), state.file_name());
                let stem = index.file_stem().unwrap().to_str().unwrap();
                let names: Vec<String> = (1..=hosts).map(|host| format!("{stem}.{host}.vtu")).collect();
                let pieces: Vec<Mesh> = names.iter().map(|name| io::read(&out.join(name)).unwrap()).collect();
                check_index(&std::fs::read_to_string(index).unwrap(), &names, &pieces);
                check_pieces(&io::read(state).unwrap(), &pieces);
            }
            let last = io::read(states.last().unwrap()).unwrap();
            let first = io::read(&states[0]).unwrap();
            let changed = |(a, b): (&Field, &Field)| bits(a) != bits(b);
            assert!(first.point_fields().iter().zip(last.point_fields()).any(changed), "the state moves on");
            // Nothing else was left, and the report names all of it.
            let named = told["files"].as_array().unwrap().len();
            assert_eq!((named, std::fs::read_dir(&out).unwrap().count()), (2 + 3 * (1 + hosts), 2 + 3 * (1 + hosts)));
        }
    }
}

#[test]
fn a_worker_that_joined_by_a_token_writes_its_pieces_to_a_folder_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let here = |arguments: &[&str]| {
        let mut command = meshweft();
        command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).started()
    };
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let driver = format!("localhost:{port}");
    assert!(here(&["cluster", "token", "--valid", "1h", "--driver", &driver]).wait().success());
    let run =
        ["run", "heat", "--mesh", "torus:16", "--steps", "2", "--every", "2", "--quiet", "--pieces", "--out", "run"];
    let driver = here(&[&run[..], &["--workers", "2", "--key", "run.key"]].concat());
    let join = ["worker", "--join", "run.token"];
    let workers = [here(&join), here(&[&join[..], &["--out", "own/folder"]].concat())];
    let told = driver.output();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("4 pieces (.vtu) are on the disks of other hosts: copy them beside the .pvtu"), "{told}");
    for worker in workers {
        assert!(worker.output().status.success());
    }
    let files = |place: &str| {
        let entries = std::fs::read_dir(folder.path().join(place)).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(files("run"), ["heat.csv", "heat.pvd", "heat_000000.pvtu", "heat_000002.pvtu"]);
    // Either worker may have come first.
    let mut pieces = [files("out"), files("own/folder")];
    pieces.sort();
    assert_eq!(pieces, ["1", "2"].map(|host| ["heat_000000", "heat_000002"].map(|step| format!("{step}.{host}.vtu"))));
}
