//! Searches of processes that stand in a grid, over QUIC [C3].

use super::process::{Start, meshweft};
use super::report;
use serde_json::Value;

/// Runs a search.
fn search(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut command = meshweft();
    command.arg("run").args(arguments).args(["--quiet", "--json", "--out"]).arg(folder.path());
    report(command.ended())
}

#[test]
fn searches_in_a_grid_of_processes_have_the_digest_of_one() {
    for what in [&["bfs"][..], &["sssp"], &["components"], &["bfs", "--set", "directed=true"]] {
        let run = |more: &[&str]| search(&[what, &["--mesh", "kronecker:9", "--threads", "1"], more].concat());
        let one = run(&[]);
        for (processes, cut, compress) in [
            ("2", "grid", "auto"),
            ("3", "grid:3x1", "always"),
            ("4", "grid", "never"),
            ("4", "grid:2x2", "always"),
            ("6", "grid", "always"),
        ] {
            let several = run(&["--processes", processes, "--cut", cut, "--compress", compress]);
            assert_eq!(several["digest"], one["digest"], "{what:?} on {processes} cut by {cut}");
            assert_eq!(several["rounds"], one["rounds"], "{what:?} on {processes} cut by {cut}");
            // No host holds a copy of what is only searched, and all say what they sent.
            let hosts = several["hosts"].as_array().unwrap();
            assert!(hosts.iter().all(|host| host["ghosts"] == 0), "{hosts:?}");
            let sum = |key: &str, i: usize| -> u64 {
                hosts.iter().map(|host| host["search"][key][i].as_u64().unwrap_or(0)).sum()
            };
            let [plain, sent] = [0, 1].map(|i| sum("frontiers", i) + sum("offers", i) + sum("predecessors", i));
            assert!(plain > 0, "{hosts:?}");
            match compress {
                "always" => assert!(sent < plain, "{what:?} on {processes} cut by {cut}: {sent} of {plain} bytes"),
                "never" => assert_eq!(sent, plain),
                _ => assert!(sent <= plain),
            }
        }
    }
}

#[test]
fn a_grid_that_does_not_fit_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    for (cut, said) in [("grid:2x2", "a grid of 2 × 2 for 3 hosts"), ("grid:x", "take curve, bisection, grid or grid:")]
    {
        let mut command = meshweft();
        command
            .args(["run", "bfs", "--mesh", "kronecker:6", "--processes", "3", "--cut", cut, "--out"])
            .arg(folder.path());
        let output = command.ended();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "{text}");
    }
}
