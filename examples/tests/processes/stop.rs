//! How one process stops, and what it leaves.

use super::process::{Process, Start};
use super::{LastWord, begin, report, short_run};
use std::path::Path;
use std::process::Command;

/// A run that does not end by itself, once its steps have begun, and what it will say last. `wrapper`: what starts it.
fn long_run(out: &Path, wrapper: &[&str]) -> (Process, LastWord) {
    let words = ["run", "heat", "--mesh", "torus:24x12", "--steps", "1000000000", "--every", "1000", "--no-pictures"];
    let program = [wrapper, &[env!("CARGO_BIN_EXE_meshweft")]].concat();
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).args(words).arg("--out").arg(out);
    let (run, _, last) = begin(command);
    (run, last)
}

fn send(signal: &str, process: &Process) {
    assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
}

#[test]
fn signals_end_a_run_in_good_order_with_exit_codes_of_their_own() {
    for (signal, name, code) in [("-INT", "Ctrl-C", 130), ("-TERM", "SIGTERM", 143), ("-HUP", "SIGHUP", 129)] {
        let folder = tempfile::tempdir().unwrap();
        let (mut run, last) = long_run(folder.path(), &[]);
        send(signal, &run);
        assert_eq!(run.wait().code(), Some(code));
        let last = last.join().unwrap().unwrap();
        let out = folder.path().display();
        let states = format!("; the states so far are in {out}; `meshweft resume {out}` goes on from step ");
        assert!(last.starts_with(&format!("{name}: stopped after step ")) && last.contains(&states), "{last}");
        // The first state, and the last one.
        let states = std::fs::read_to_string(folder.path().join("heat.pvd")).unwrap();
        assert!(states.matches("heat_").count() > 1, "{states}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_is_to_be_ignored_is() {
    let folder = tempfile::tempdir().unwrap();
    let (mut run, _last) = long_run(folder.path(), &["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"]);
    send("-HUP", &run);
    send("-TERM", &run);
    assert_eq!(run.wait().code(), Some(143));
}

#[test]
fn a_folder_is_locked_until_its_run_ends_even_by_being_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut run, _last) = long_run(folder.path(), &[]);
    let second = short_run(folder.path()).ended();
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(second.status.code() == Some(2) && said.contains("another run writes to "), "{said}");
    run.kill().unwrap();
    run.wait();
    report(short_run(folder.path()).ended());
    let hidden = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).filter(hidden).count(), 0);
}
