//! Runs that are stopped, killed or have no room on their disk, and go on [C4].

use super::process::{Process, Start, meshweft};
use super::report;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A run of so many steps that checkpoints often, with a film and a series.
fn command(steps: &str, out: &Path) -> Command {
    let mut command = meshweft();
    command.args(["run", "cloth", "--mesh", "sheet:24", "--order", "blocked:64", "--steps", steps, "--every", "50"]);
    command.args(["--film-size", "64x48", "--picture-size", "64x48", "--quiet", "--json", "--out"]).arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn resume(out: &Path, more: &[&str]) -> Command {
    let mut command = meshweft();
    command.arg("resume").arg(out).args(more).args(["--quiet", "--json"]);
    command
}

/// Writes a mesh to a file.
fn convert(spec: &str, path: &Path) {
    assert!(meshweft().args(["convert", spec]).arg(path).ended().status.success());
}

/// All files of a folder, but checkpoints.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let entries = entries.filter(|entry| entry.file_type().unwrap().is_file());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

fn check_equal(whole: &Path, resumed: &Path) {
    let (whole, resumed) = (files(whole), files(resumed));
    assert!(whole.keys().eq(resumed.keys()), "{:?}\n{:?}", whole.keys(), resumed.keys());
    let other: Vec<_> = whole.iter().filter(|(file, bytes)| resumed[*file] != **bytes).map(|file| file.0).collect();
    assert!(other.is_empty(), "{other:?} differ");
}

/// Waits until a run has written a checkpoint.
fn wait_for_checkpoint(folder: &Path, run: &mut Process) {
    let is_there = || {
        let entries = std::fs::read_dir(folder.join("checkpoint")).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name())
            .any(|name| name.to_string_lossy().starts_with("epoch-") && !name.to_string_lossy().ends_with(".partial"))
    };
    while !is_there() {
        assert!(run.try_wait().unwrap().is_none(), "it ended before a checkpoint");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_run_that_is_killed_again_and_again_leaves_the_files_of_one_that_never_was() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, killed] = ["whole", "killed"].map(|name| folder.path().join(name));
    let expected = report(command("3000", &whole).arg("--checkpoint-every=never").ended());
    assert!(!whole.join("checkpoint").exists());
    let mut run = command("3000", &killed).arg("--checkpoint-every=40").started();
    wait_for_checkpoint(&killed, &mut run);
    for (i, more) in [&["--threads", "1"][..], &["--processes", "2"], &["--backend", "serial"]].into_iter().enumerate()
    {
        std::thread::sleep(Duration::from_millis(30 * i as u64));
        run.kill().unwrap();
        run.wait();
        run = resume(&killed, more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).started();
        std::thread::sleep(Duration::from_millis(100));
    }
    run.kill().unwrap();
    run.wait();
    let last = report(resume(&killed, &[]).ended());
    assert_eq!((&last["digest"], &last["metrics"]), (&expected["digest"], &expected["metrics"]));
    assert!(last["resumed_from"].as_u64().unwrap() > 0);
    check_equal(&whole, &killed);
    // Once more, where there is nothing left to do.
    let again = report(resume(&killed, &[]).ended());
    assert_eq!((&again["digest"], again["resumed_from"].as_u64()), (&expected["digest"], Some(3000)));
    check_equal(&whole, &killed);
}

#[test]
fn signals_write_a_checkpoint_and_say_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.path().join(name));
    report(command("2000", &whole).ended());
    assert!(!whole.join("checkpoint").exists(), "a short run leaves none");
    let mut run = command("2000", &stopped).started();
    while !stopped.join("cloth_000100.vtu").exists() {
        assert!(run.try_wait().unwrap().is_none(), "it ended before it was stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
    let output = run.output();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(143), "{said}");
    let way_on = format!("; `meshweft resume {}` goes on from step ", stopped.display());
    assert!(said.contains("SIGTERM: stopped after step ") && said.contains(&way_on), "{said}");
    // It may be anywhere by then, and its mesh be told in words.
    let moved = folder.path().join("moved");
    std::fs::rename(&stopped, &moved).unwrap();
    report(resume(&moved, &[]).ended());
    check_equal(&whole, &moved);
}

#[test]
fn a_run_that_has_ended_can_be_taken_further() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, part] = ["whole", "part"].map(|name| folder.path().join(name));
    let expected = report(command("330", &whole).ended());
    report(command("170", &part).arg("--checkpoint-every=1h").ended());
    let further = report(resume(&part, &["--steps", "330"]).ended());
    assert_eq!((&further["digest"], further["resumed_from"].as_u64()), (&expected["digest"], Some(170)));
    check_equal(&whole, &part);
}

#[test]
fn a_mesh_from_a_file_must_be_there_and_be_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let [mesh, other, out] = ["part.obj", "other.obj", "out"].map(|name| folder.path().join(name));
    convert("torus:12x8", &mesh);
    convert("torus:12x9", &other);
    let mut first = meshweft();
    // By a path that means nothing elsewhere.
    first.current_dir(folder.path()).args([
        "run",
        "heat",
        "--mesh",
        "part.obj",
        "--steps",
        "9",
        "--json",
        "--no-pictures",
    ]);
    first.args(["--checkpoint-every", "4", "--out"]).arg(&out);
    let expected = report(first.ended());
    assert_eq!(report(resume(&out, &[]).ended())["digest"], expected["digest"]);
    let said = |output: std::process::Output| {
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let wrong = said(resume(&out, &["--mesh", other.to_str().unwrap()]).ended());
    assert!(wrong.contains("does not fit: its vertices is \"96\""), "{wrong}");
    let moved = folder.path().join("moved.obj");
    std::fs::rename(&mesh, &moved).unwrap();
    let gone = said(resume(&out, &[]).ended());
    assert!(gone.contains("part.obj"), "{gone}");
    assert_eq!(report(resume(&out, &["--mesh", moved.to_str().unwrap()]).ended())["digest"], expected["digest"]);
    // What decides about results is not open.
    for option in ["--order=color", "--precision=f64", "--set=dt=1", "--seed=2"] {
        let refused = said(resume(&out, &[option]).ended());
        assert!(refused.contains("unexpected argument"), "{refused}");
    }
    let none = said(resume(folder.path(), &[]).ended());
    assert!(none.contains("holds no checkpoint"), "{none}");
}

#[test]
fn a_mesh_that_a_setting_names_is_found_from_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let [body, out] = ["part.obj", "out"].map(|name| folder.path().join(name));
    convert("torus:12x8", &body);
    let mut first = meshweft();
    first.current_dir(folder.path()).args([
        "run",
        "cloth",
        "--mesh",
        "sheet:9",
        "--set",
        "over=part.obj",
        "--steps",
        "9",
    ]);
    first.args(["--json", "--no-pictures", "--checkpoint-every", "4", "--out"]).arg(&out);
    let expected = report(first.ended());
    assert_eq!(report(resume(&out, &[]).ended())["digest"], expected["digest"]);
    std::fs::remove_file(&body).unwrap();
    let ended = resume(&out, &[]).ended();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(2) && said.contains("put it back") && said.contains("part.obj"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_checkpoints_and_after_three_the_run() {
    // A disk of its own, where the system lets its users have one.
    let disk = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-Urm", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_meshweft")]);
        command.ended()
    };
    if !disk("mount -t tmpfs -o size=1m none /mnt").status.success() {
        println!("skipped: this system gives its users no disks");
        return;
    }
    let run = "mount -t tmpfs -o size=$2 none /mnt && $1 run cloth --mesh sheet:60 --steps 900 --no-pictures --quiet --json \
               --every 1000 --checkpoint-every 60 --out /mnt/out > /dev/null; code=$?; ls /mnt/out/checkpoint; exit $code";
    let with = |size: &str| {
        let output = disk(&run.replace("$1", env!("CARGO_BIN_EXE_meshweft")).replace("$2", size));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    // A state takes 0.1 MB at first, a checkpoint 0.3.
    let (code, left, said) = with("300k");
    assert_eq!(code, Some(74), "{said}");
    assert!(said.contains("warning: no checkpoint of step ") && said.contains("the third that failed"), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(left.lines().count() <= 1 && !left.contains("partial"), "{left}");
    let (code, left, said) = with("8m");
    assert_eq!((code, left.matches("epoch-").count()), (Some(0), 3), "{said}");
}

#[test]
fn a_run_that_ended_by_its_condition_takes_no_step_more_unless_it_is_to_go_further() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = command("3000", folder.path());
    let ended = report(run.args(["--checkpoint-every=100", "--stop", "kinetic energy>0.05", "--verify"]).ended());
    assert_eq!(ended["stop"]["reached"], true, "{ended}");
    let steps = ended["steps"].as_u64().unwrap();
    for _ in 0..2 {
        let again = report(resume(folder.path(), &[]).ended());
        assert_eq!((&again["digest"], &again["steps"]), (&ended["digest"], &ended["steps"]));
    }
    let further = report(resume(folder.path(), &["--steps", &(steps + 7).to_string()]).ended());
    assert_eq!(further["steps"], steps + 7);
    // What the oracle has seen is what it says.
    let verified = further["verified"].as_str().unwrap();
    assert!(verified.starts_with(&format!("7 steps behind step {steps} equal")), "{verified}");
}

#[test]
fn a_film_of_something_else_begins_anew_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    report(command("200", folder.path()).args(["--checkpoint-every=100", "--color", "velocity"]).ended());
    let output = resume(folder.path(), &["--steps", "300", "--color", "none"]).ended();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the film begins here"), "{said}");
    report(output);
    // The frames of this one are kept.
    let output = resume(folder.path(), &["--steps", "400"]).ended();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("the film begins here"));
}
