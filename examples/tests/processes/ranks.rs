//! One command line that is started several times, as schedulers do.

use super::process::{Process, Start, meshweft};
use super::{digest_of_one, report, short_run, wait_for};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

/// Starts one rank.
fn start(folder: &Path, rank: u32, environment: &[(&str, &str)]) -> Process {
    let mut command = short_run(&folder.join("out"));
    command.args(["--threads", "1"]).current_dir(folder);
    for (name, value) in environment {
        command.env(name, value.replace("RANK", &rank.to_string()));
    }
    command.started()
}

/// Runs two ranks to their end, the second of which starts when `may_start` says so. Returns what rank 0 told.
fn run_both(folder: &Path, environment: &[(&str, &str)], may_start: impl FnMut() -> bool) -> serde_json::Value {
    let driver = start(folder, 0, environment);
    wait_for("the driver", may_start);
    let worker = start(folder, 1, environment);
    let (driver, worker) = (driver.output(), worker.output());
    let said = String::from_utf8_lossy(&worker.stderr);
    assert!(worker.status.success() && worker.stdout.is_empty(), "{said}");
    let told = report(driver);
    // The driver's own worker, and the other rank.
    assert_eq!(told["hosts"].as_array().unwrap().len(), 2);
    told
}

/// Whether a file is there, which only its owner may read.
fn is_secret(path: &Path) -> bool {
    let Ok(found) = path.metadata() else { return false };
    assert_eq!(found.permissions().mode() & 0o777, 0o600, "{}", path.display());
    true
}

#[test]
fn two_ranks_that_share_a_token_have_the_digest_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let environment = [("MESHWEFT_RANK", "RANK"), ("MESHWEFT_WORLD", "2"), ("MESHWEFT_TOKEN", "t")];
    let token = folder.path().join("t");
    let told = run_both(folder.path(), &environment, || is_secret(&token));
    assert_eq!(told["digest"], digest_of_one());
    assert!(!token.exists(), "it is removed when all have joined");
}

#[test]
fn two_tasks_of_slurm_share_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let environment = [("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "RANK"), ("SLURM_NTASKS", "2")];
    let token = folder.path().join("meshweft-7.0.token");
    let told = run_both(folder.path(), &environment, || is_secret(&token));
    assert_eq!(told["digest"], digest_of_one());
    assert!(!token.exists());
}

/// Makes key and token for a driver on a free port of this machine.
fn make_key(folder: &Path) -> Output {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = meshweft();
    command.args(["cluster", "token", "--valid", "1h", "--driver", &format!("localhost:{port}")]);
    command.current_dir(folder).ended()
}

#[test]
fn pods_of_an_indexed_job_share_a_run_by_a_token_made_ahead() {
    let folder = tempfile::tempdir().unwrap();
    assert!(make_key(folder.path()).status.success());
    let again = make_key(folder.path());
    assert!(String::from_utf8_lossy(&again.stderr).contains("remove it"), "{again:?}");
    assert!(is_secret(&folder.path().join("run.token")) && is_secret(&folder.path().join("run.key")));
    let environment = [
        ("JOB_COMPLETION_INDEX", "RANK"),
        ("MESHWEFT_WORLD", "2"),
        ("MESHWEFT_TOKEN", "run.token"),
        ("MESHWEFT_KEY", "run.key"),
    ];
    // They may be used again.
    for _ in 0..2 {
        assert_eq!(run_both(folder.path(), &environment, || true)["digest"], digest_of_one());
    }
}

#[test]
fn workers_join_a_driver_by_a_token_made_ahead() {
    let folder = tempfile::tempdir().unwrap();
    assert!(make_key(folder.path()).status.success());
    let mut driver = short_run(&folder.path().join("out"));
    driver.args(["--workers", "1", "--key", "run.key"]).current_dir(folder.path());
    let driver = driver.started();
    let mut worker = meshweft();
    worker.args(["worker", "--join", "run.token"]).current_dir(folder.path());
    assert!(worker.ended().status.success());
    assert_eq!(report(driver.output())["digest"], digest_of_one());
}

#[test]
fn an_environment_that_makes_no_sense_is_refused_on_every_rank() {
    let folder = tempfile::tempdir().unwrap();
    let rank = [("MESHWEFT_RANK", "RANK"), ("MESHWEFT_WORLD", "2"), ("MESHWEFT_TOKEN", "t")];
    let refused = |environment: &[(&str, &str)], arguments: &[&str], rank: u32| {
        let mut command = short_run(&folder.path().join("out"));
        environment.iter().for_each(|(name, value)| _ = command.env(name, value.replace("RANK", &rank.to_string())));
        let output = command.args(arguments).current_dir(folder.path()).ended();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    for number in [0, 1] {
        assert!(refused(&rank[..1], &[], number).contains("MESHWEFT_WORLD is not"));
        assert!(refused(&rank, &["--processes", "2"], number).contains("leave out --processes"));
        assert!(refused(&rank, &["--backend", "serial"], number).contains("take --backend cpu or gpu"));
    }
    // What an earlier run left is not taken for the token of this one.
    std::fs::write(folder.path().join("t"), "old").unwrap();
    assert!(refused(&rank, &[], 0).contains("an earlier run may have left it: remove it"));
    assert!(
        refused(&[("MESHWEFT_KEY", "t"), rank[0], rank[1], rank[2]], &[], 0).contains("the key does not begin with")
    );
}
