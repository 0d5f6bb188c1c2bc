//! Workers that are started over ssh, by a stand-in that runs commands on this machine.

use super::process::Start;
use super::{begin_long_run, digest_of_one, report, runs, short_run, wait_for};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A program that is called as ssh is. It writes what it was called with to the file `log`, and knows some strange hosts.
fn stand_in(folder: &Path) -> PathBuf {
    let path = folder.join("ssh");
    let script = r#"#!/bin/sh
echo "$@" >> "$(dirname "$0")/log"
for word; do host=$command command=$word; done
case $host in
    closed) echo "some banner" >&2; echo "closed: Permission denied (publickey)." >&2; exit 255 ;;
    bare) exec sh -c "/no/such/folder$command" ;;
    old) echo "welcome"; echo "meshweft 0.0.1"; exit ;;
    once) case $command in *worker*)
        [ -e "$(dirname "$0")/gone" ] && echo "no route to host" >&2 && exit 255; touch "$(dirname "$0")/gone" ;; esac ;;
    fails-later) case $command in *worker*) echo "Connection reset by peer" >&2; exit 255 ;; esac ;;
esac
exec sh -c "$command"
"#;
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// A short run on hosts.
fn on_hosts(folder: &Path, hosts: &str) -> Output {
    let ssh = stand_in(folder);
    let mut command = short_run(&folder.join("out"));
    command.args(["--threads", "1", "--hosts", hosts, "--ssh"]).arg(ssh).ended()
}

#[test]
fn a_run_over_ssh_has_the_digest_of_one_process_and_shows_nobody_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let output = on_hosts(folder.path(), "me@here,me@here,localhost");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let several = report(output);
    assert_eq!(several["digest"], digest_of_one());
    assert_eq!(several["hosts"].as_array().unwrap().len(), 3);
    assert!(said.contains("me@here: joined; the driver runs meshweft_examples::cloth"), "{said}");
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    // One host is asked once, and works twice; this machine needs no ssh.
    assert_eq!((log.matches("--version").count(), log.matches("worker --join - --until-eof").count()), (1, 2), "{log}");
    assert!(log.contains("BatchMode=yes") && !log.contains("meshweft1/"), "{log}");
}

#[test]
fn all_hosts_that_cannot_take_part_are_named_at_once_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let output = on_hosts(folder.path(), "here,closed,bare,old");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for line in [
        "error: 3 of 4 hosts cannot take part:",
        "  closed: cannot be reached: closed: Permission denied (publickey).",
        "  bare: no program ",
        "  old: another version there, meshweft 0.0.1, and meshweft ",
    ] {
        assert!(said.lines().any(|found| found.starts_with(line)), "{line}: {said}");
    }
    assert_eq!(said.lines().count(), 4, "{said}");
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(!log.contains("worker --join"), "{log}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn a_worker_whose_ssh_ends_before_it_joined_ends_the_run_at_once_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let output = on_hosts(folder.path(), "here,fails-later");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let reason = "error: cluster: the worker on fails-later ended before the run began: Connection reset by peer";
    assert!(said.contains(reason), "{said}");
    // Waiting for those that do not come would take a minute.
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}

#[test]
fn a_host_that_ssh_would_take_for_an_option_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = short_run(folder.path()).arg("--hosts=-oProxyCommand=touch,b").ended();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("\"-oProxyCommand=touch\" is no host"), "{said}");
}

/// Ends the driver of a long run by a signal, and waits until nothing of it is left. Returns its exit code.
fn ended_by(signal: &str) -> Option<i32> {
    let folder = tempfile::tempdir().unwrap();
    let ssh = stand_in(folder.path());
    let sharing = ["--hosts", "a,b", "--threads", "1", "--ssh", ssh.to_str().unwrap()];
    let (mut driver, processes, _) = begin_long_run(&folder.path().join("out"), &sharing);
    assert!(processes.len() >= 2, "{processes:?}");
    assert!(Command::new("kill").args([signal, &driver.id().to_string()]).status().unwrap().success());
    wait_for("the end of the driver", || driver.try_wait().unwrap().is_some());
    wait_for("the end of the workers", || !processes.iter().any(|&process| runs(process)));
    driver.wait().code()
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_goes_on_without_a_host_that_is_gone_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let ssh = stand_in(folder.path());
    let run = |more: &[&str]| {
        let mut command = super::lasting_run("sheet:48", "3000", "3000");
        command.args(["--json", "--threads", "1", "--out"]).arg(folder.path().join("out")).args(more);
        command
    };
    let mut driver = run(&["--hosts", "a,once", "--ssh", ssh.to_str().unwrap()]);
    let driver = driver.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).started();
    wait_for("the start of the workers", || folder.path().join("gone").exists());
    std::thread::sleep(Duration::from_millis(700));
    let ssh = super::children(driver.id())[1];
    let host = [vec![ssh], super::children(ssh)].concat();
    host.iter().for_each(|process| drop(Command::new("kill").args(["-KILL", &process.to_string()]).status()));
    let output = driver.output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(report(output)["digest"], report(run(&[]).ended())["digest"], "{said}");
    assert!(said.contains("going on with 1 worker"), "{said}");
    assert!(said.matches("the run begins again").count() <= 4, "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn workers_over_ssh_end_with_a_driver_that_is_killed() {
    assert_eq!(ended_by("-9"), None);
}

#[cfg(target_os = "linux")]
#[test]
fn workers_over_ssh_end_with_a_driver_that_is_interrupted() {
    assert_eq!(ended_by("-INT"), Some(130));
}
