//! The command on several processes, which find each other over QUIC on this machine [C3].

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_cluster_of_processes_serves_one_simulation_and_leaves_no_process() {
    // The command itself: its processes find each other over QUIC.
    let meshweft = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().to_str().unwrap().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_meshweft"));
        command.args([
            "run",
            "cloth",
            "--mesh",
            "sheet:20",
            "--steps",
            "8",
            "--no-pictures",
            "--quiet",
            "--json",
            "--out",
            &out,
        ]);
        let output = command.args(arguments).output().unwrap();
        let (told, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{arguments:?}: {said}");
        serde_json::from_str::<serde_json::Value>(&told).unwrap()
    };
    let one = meshweft(&["--threads", "2"]);
    for (processes, threads) in [("1", "1"), ("2", "1"), ("3", "2")] {
        let several = meshweft(&["--processes", processes, "--threads", threads]);
        assert_eq!(several["digest"], one["digest"], "{processes} × {threads}");
        let hosts = several["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), processes.parse::<usize>().unwrap());
        let vertices: u64 = hosts.iter().map(|host| host["vertices"].as_u64().unwrap()).sum();
        assert_eq!(vertices, 400);
        let talks = |host: &serde_json::Value| host["sent_bytes"].as_u64().unwrap() > 0;
        assert!(hosts.len() == 1 || hosts.iter().all(talks), "{hosts:?}");
    }
}

/// Whether a process still runs, by the state that the system tells.
fn runs(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Children of a process.
fn children(process: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    list.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Waits until something is so.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A long run on two processes, once its steps have begun, and its workers.
fn long_run(out: &std::path::Path) -> (Child, Vec<u32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshweft"));
    command.args(["run", "cloth", "--mesh", "sheet:48", "--steps", "1000000", "--no-pictures", "--processes", "2"]);
    let mut driver = command.arg("--out").arg(out).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(driver.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("step"), "{line}");
    // Its stream must be read, or it would stop.
    let rest = std::thread::spawn(move || said.lines().map_while(Result::ok).last());
    drop(rest);
    let workers = children(driver.id());
    assert_eq!(workers.len(), 2);
    (driver, workers)
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_is_killed_ends_the_run_with_an_error_and_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let (mut driver, workers) = long_run(folder.path());
    assert!(Command::new("kill").args(["-9", &workers[1].to_string()]).status().unwrap().success());
    wait_for("the end of the driver", || driver.try_wait().unwrap().is_some());
    assert_eq!(driver.wait().unwrap().code(), Some(2));
    wait_for("the end of the workers", || !workers.iter().any(|&worker| runs(worker)));
}

#[cfg(target_os = "linux")]
#[test]
fn workers_end_with_a_driver_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut driver, workers) = long_run(folder.path());
    driver.kill().unwrap();
    driver.wait().unwrap();
    wait_for("the end of the workers", || !workers.iter().any(|&worker| runs(worker)));
}
