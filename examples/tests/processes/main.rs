//! The command on several processes, which find each other over QUIC on this machine [C3].

#[cfg(unix)]
mod hosts;
#[cfg(unix)]
mod ranks;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A short run that writes to a folder.
fn short_run(out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshweft"));
    command.args(["run", "cloth", "--mesh", "sheet:20", "--steps", "8", "--no-pictures", "--quiet", "--json"]);
    command.arg("--out").arg(out).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a run told, which must have gone well.
fn report(output: Output) -> serde_json::Value {
    let (told, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{said}");
    serde_json::from_str(&told).unwrap()
}

/// The digest of the short run in one process.
fn digest_of_one() -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    report(short_run(folder.path()).args(["--threads", "2"]).output().unwrap())["digest"].clone()
}

#[test]
fn a_cluster_of_processes_serves_one_simulation_and_leaves_no_process() {
    // The command itself: its processes find each other over QUIC.
    let meshweft = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        report(short_run(folder.path()).args(arguments).output().unwrap())
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

/// Processes that a process has started, and those that they have.
fn descendants(process: u32) -> Vec<u32> {
    let children = children(process);
    children.iter().flat_map(|&child| descendants(child)).chain(children.iter().copied()).collect()
}

/// Waits until something is so.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A long run on several hosts, once its steps have begun, and all processes that belong to it.
fn begin_long_run(out: &Path, sharing: &[&str]) -> (Child, Vec<u32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshweft"));
    command
        .args(["run", "cloth", "--mesh", "sheet:48", "--steps", "1000000", "--no-pictures", "--every", "20"])
        .args(sharing);
    let mut driver = command.arg("--out").arg(out).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(driver.stderr.take().unwrap()).lines().map_while(Result::ok);
    let begun = said.find(|line| line.contains("step"));
    assert!(begun.is_some(), "{:?}", driver.wait());
    // Its stream must be read, or it would stop.
    let rest = std::thread::spawn(move || said.last());
    drop(rest);
    let processes = descendants(driver.id());
    (driver, processes)
}

/// The same on two processes.
fn long_run(out: &Path) -> (Child, Vec<u32>) {
    let (driver, workers) = begin_long_run(out, &["--processes", "2"]);
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
