//! Pieces of a mesh that workers write.

use super::*;
use crate::cluster::partition;
use crate::cluster::stream::Outgoing;
use crate::layout::put;
use crate::piece::{Frame, Placement};
use meshweft_mesh::Mesh;
use meshweft_mesh::io::{Format, encode};
use std::io::Write;
use std::path::Path;

/// A path of 64 vertices, and the shares of its tasks.
fn path() -> (Vec<[u32; 2]>, Case, Vec<u32>) {
    let edges: Vec<[u32; 2]> = (0..63).map(|v| [v, v + 1]).collect();
    let case = Case::new(64, edges.clone(), Order::BLOCKED, 8);
    let owners = (0..case.schedule.graph().len() as u32).map(|t| t % 2).collect();
    (edges, case, owners)
}

/// Two workers that share a path of 64 vertices, and what their driver says to them. `folder`: the only one that they write to.
fn with_two_workers(folder: Option<&Path>, drive: impl FnOnce(&mut Driver<Int>, &Mesh) -> Result<()>) -> Result<()> {
    let (edges, case, owners) = path();
    let mesh = Mesh::from_graph(64, edges).unwrap();
    let (table, globals) = (Arc::new(traced_table()), vec![Int(0); 2]);
    let (layout, state) = case.laid_out(8);
    let mut exchanges = exchanges(3);
    std::thread::scope(|scope| {
        for exchange in exchanges.split_off(1) {
            scope.spawn(move || {
                let begin = worker::begin(&exchange)?;
                let result = worker::work(&exchange, &begin, traced_table(), folder.map(Path::to_owned));
                exchange.transport().close();
                result
            });
        }
        let begin = driver::begin(&table, &layout.stars, &globals, 1);
        let exchange = exchanges.remove(0);
        drive(&mut Driver::new(exchange, layout.clone(), owners, &state, &begin)?, &mesh)
    })
}

/// Names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn workers_write_to_the_folder_of_the_driver_or_to_their_own_and_nowhere_else() {
    let placement = Placement::default();
    for has_own in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let [asked, own] = ["asked", "own"].map(|name| folder.path().join(name));
        with_two_workers(has_own.then_some(&own), |driver, mesh| {
            for name in ["a", "b"] {
                let frame = Frame { folder: &asked, name, placement: &placement, before: 0 };
                assert_eq!(driver.write_pieces(mesh, &frame)?, 1..3);
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(names(folder.path()), [if has_own { "own" } else { "asked" }]);
        assert_eq!(names(if has_own { &own } else { &asked }), ["a.1.vtu", "a.2.vtu", "b.1.vtu", "b.2.vtu"]);
    }
}

#[test]
fn a_worker_refuses_a_hostile_name_and_a_field_that_it_does_not_have() {
    let strange = Placement { positions: None, raised: Some(("strange".into(), 1.0)) };
    let names_of_files = ["../evil", "/evil", "a/b", "..", "", "a\0b"].map(|name| (name, Placement::default()));
    for (name, placement) in names_of_files.into_iter().chain([("good", strange)]) {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        // The driver's own check is left out.
        let result = with_two_workers(None, |driver, mesh| {
            driver.write_pieces(mesh, &Frame { folder: &inner, name, placement: &placement, before: 0 }).map(|_| ())
        });
        let text = result.unwrap_err().to_string();
        let why = if name == "good" { "unknown field \"strange\"" } else { "is no name for files" };
        assert!(text.contains("cannot go on") && text.contains(why), "{name:?}: {text}");
        assert!(names(folder.path()).is_empty(), "{name:?} has left something");
    }
}

#[test]
fn a_disk_that_takes_nothing_ends_the_run_with_the_host_and_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("a.2.vtu/full")).unwrap();
    let placement = Placement::default();
    let frame = Frame { folder: folder.path(), name: "a", placement: &placement, before: 0 };
    let error = with_two_workers(None, |driver, mesh| driver.write_pieces(mesh, &frame).map(|_| ())).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("host 2 cannot go on: ") && text.contains("a.2.vtu"), "{text}");
}

/// A mesh, lists of owners, numbers and vertices that are lent to either worker, and what is wrong with them.
type Sent<'a> = (&'a [u8], [&'a [u32]; 4], &'a str);

#[test]
fn a_piece_that_makes_no_sense_is_refused() {
    let mut whole = Vec::new();
    let edge = Mesh::from_graph(2, vec![[0, 1]]).unwrap();
    encode(Format::Vtu, &edge, &mut whole).unwrap();
    let (_, case, owners) = path();
    let layout = case.laid_out(8).0;
    let hosts = partition::hosts_of_vertices(&layout, &owners);
    let number = |v: usize| layout.schedule.permutation().order()[layout.places.rank()[v] as usize];
    let [own, other] = [1, 2].map(|host| number(hosts.iter().position(|&owner| owner == host).unwrap()));
    let cases: [Sent; 8] = [
        (&whole, [&[1, 1], &[own, own], &[], &[]], ""),
        (b"<VTKFile", [&[1, 1], &[own, own], &[], &[]], "piece of the mesh"),
        (&whole, [&[1], &[own, own], &[], &[]], "points"),
        (&whole, [&[1, 1], &[own], &[], &[]], "points"),
        (&whole, [&[1, 0], &[own, own], &[], &[]], "hosts"),
        (&whole, [&[1, 3], &[own, own], &[], &[]], "hosts"),
        (&whole, [&[1, 1], &[own, other], &[], &[]], "a vertex of another host"),
        (&whole, [&[1, 1], &[own, own], &[], &[other]], "a vertex of another host"),
    ];
    for (mesh, lists, why) in cases {
        let result = with_two_workers(None, |driver, _| {
            driver.exchange().send(1, Control::Piece.encode());
            let mut out = Outgoing::new(driver.exchange(), 1);
            put(&mut out, mesh).unwrap();
            lists.iter().for_each(|list| put(&mut out, list).unwrap());
            out.flush().unwrap();
            driver.settle().map(|_| ())
        });
        match result {
            Ok(()) => assert_eq!(why, "", "it was taken"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("host 1 cannot go on") && text.contains(why) && !why.is_empty(), "{why}: {text}");
            }
        }
    }
}
