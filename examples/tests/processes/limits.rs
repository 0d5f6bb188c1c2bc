//! Limits of the system are errors that say which, before anything is begun.

use super::process::Start;
use std::process::Command;

/// Runs the command in a shell under a limit. Returns what it said; it must fail as bad input does.
fn under(limit: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_meshweft")]).args(arguments);
    let ended = command.current_dir(folder.path()).ended();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    said
}

#[cfg(target_os = "linux")]
#[test]
fn a_mesh_that_does_not_fit_into_memory_is_refused_before_it_is_made() {
    for command in ["run", "bench", "info", "convert"] {
        let mesh = if command == "convert" { "box:400" } else { "box:200" };
        let arguments: &[&str] = match command {
            "info" => &["info", mesh],
            "convert" => &["convert", mesh, "a.vtu"],
            _ => &[command, "spring", "--mesh", mesh],
        };
        let said = under("-v 2000000", arguments);
        assert!(said.starts_with(&format!("error: {mesh}: ")) && said.contains(" needs at least "), "{said}");
        let end = "GB: take a smaller mesh, or raise the limit by `ulimit -v`\n";
        assert!(said.contains("the limit of address space leaves 1.") && said.ends_with(end), "{said}");
    }
}

#[test]
fn too_few_files_are_told_in_the_words_of_the_system() {
    let said = under("-n 5", &["run", "heat", "--mesh", "torus:8"]);
    assert!(said.contains("Too many open files") && !said.contains("uncategorized"), "{said}");
}
