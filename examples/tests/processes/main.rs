//! The command as processes: how one stops, and several that find each other over QUIC on this machine [C3].

mod grid;
#[cfg(unix)]
mod hosts;
#[cfg(unix)]
mod limits;
mod pieces;
mod process;
#[cfg(unix)]
mod ranks;
#[cfg(unix)]
mod resume;
#[cfg(unix)]
mod stop;
mod studies;

use process::{Process, Start, meshweft};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A short run that writes to a folder, in blocks so small that every host has some.
fn short_run(out: &Path) -> Command {
    let mut command = meshweft();
    command.args(["run", "cloth", "--mesh", "sheet:20", "--order", "blocked:64", "--steps", "8"]);
    command.args(["--no-pictures", "--quiet", "--json"]);
    command.arg("--out").arg(out).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A run of many quick steps, without contact, which has nothing to do with who comes and goes.
fn lasting_run(mesh: &str, steps: &str, every: &str) -> Command {
    let mut command = meshweft();
    command.args(["run", "cloth", "--mesh", mesh, "--set", "touching=off", "--steps", steps, "--no-pictures"]);
    command.args(["--every", every]);
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
    report(short_run(folder.path()).args(["--threads", "2"]).ended())["digest"].clone()
}

#[test]
fn a_cluster_of_processes_serves_one_simulation_and_leaves_no_process() {
    // The command itself: its processes find each other over QUIC.
    let run = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        report(short_run(folder.path()).args(arguments).ended())
    };
    let one = run(&["--threads", "2"]);
    for (processes, threads) in [("1", "1"), ("2", "1"), ("3", "2")] {
        let several = run(&["--processes", processes, "--threads", threads]);
        assert_eq!(several["digest"], one["digest"], "{processes} × {threads}");
        let hosts = several["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), processes.parse::<usize>().unwrap());
        let vertices: u64 = hosts.iter().map(|host| host["vertices"].as_u64().unwrap()).sum();
        assert_eq!(vertices, 400);
        let talks = |host: &serde_json::Value| host["sent_bytes"].as_u64().unwrap() > 0;
        assert!(hosts.len() == 1 || hosts.iter().all(talks), "{hosts:?}");
    }
    for (compress, packs) in [("never", false), ("always", true)] {
        let told = run(&["--processes", "2", "--threads", "1", "--compress", compress]);
        assert_eq!(told["digest"], one["digest"], "--compress {compress}");
        let bytes = |host: &Value, key: &str| host[key].as_u64().unwrap();
        let is_as_told = |host: &Value| (bytes(host, "value_bytes_sent") < bytes(host, "value_bytes")) == packs;
        assert!(told["hosts"].as_array().unwrap().iter().all(is_as_told), "--compress {compress}: {}", told["hosts"]);
    }
}

/// An order that elements cannot be projected in is refused once workers are here.
#[test]
fn workers_of_a_run_that_cannot_begin_are_told_that_it_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = meshweft();
    command.args(["run", "xpbd", "--mesh", "bar:5x3x3", "--order", "jacobi", "--processes", "2", "--out"]);
    command.arg(folder.path().join("out"));
    let ended = command.ended();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && said.contains("take another order"), "{said}");
    assert_eq!(said.matches("the run has failed, which its driver tells more of").count(), 2, "{said}");
    assert!(!said.contains("was lost"), "{said}");
}

#[test]
fn hosts_that_go_on_while_their_state_is_written_leave_the_files_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    // The state has something to change, and is asked for at every step, every few, or rarely.
    for (name, mesh, every) in [("cloth", "sheet:24", "1"), ("wave", "disk:6", "3"), ("spring", "bar:9x3x3", "150")] {
        let files = |arguments: &[&str]| -> BTreeMap<String, Vec<u8>> {
            let out = folder.path().join(format!("{name}{}", arguments.concat()));
            let mut command = meshweft();
            let steps = if every == "150" { "310" } else { "7" };
            command.args(["run", name, "--mesh", mesh, "--steps", steps, "--every", every, "--quiet", "--json"]);
            if name != "wave" {
                command.arg("--no-pictures");
            }
            report(command.args(["--order", "blocked:32"]).args(arguments).arg("--out").arg(&out).ended());
            let entries = std::fs::read_dir(&out).unwrap().map(Result::unwrap);
            let read = |entry: std::fs::DirEntry| {
                (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
            };
            entries.map(read).collect()
        };
        let one = files(&["--backend", "serial"]);
        assert!(one.keys().filter(|file| file.ends_with(".vtu")).count() >= 3, "{:?}", one.keys());
        assert_eq!(one.contains_key("wave.gif"), name == "wave");
        for sharing in [&["--threads", "2"][..], &["--processes", "2", "--threads", "1"]] {
            let several = files(sharing);
            assert!(one.keys().eq(several.keys()), "{name} {sharing:?}: {:?}", several.keys());
            let other: Vec<_> =
                one.iter().filter(|(file, bytes)| several[*file] != **bytes).map(|file| file.0).collect();
            assert!(other.is_empty(), "{name} {sharing:?}: {other:?} differ");
        }
    }
}

/// What a command says with `--json`.
fn json(arguments: &[&str]) -> Value {
    let output = meshweft().args(arguments).arg("--json").ended();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_run_on_processes_has_the_shares_that_info_shows() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for cut in ["curve", "bisection"] {
        let what = ["--order", "blocked:32", "--cut", cut];
        let shown = json(&[&["info", "sheet:20x30", "--parts", "3", "--example", "cloth"][..], &what[..]].concat());
        let run = ["run", "cloth", "--mesh", "sheet:20x30", "--steps", "3", "--no-pictures", "--quiet", "--out", out];
        let ran = json(&[&run[..], &["--processes", "3", "--threads", "1"][..], &what[..]].concat());
        let [shown, ran] = [shown, ran].map(|report| report["hosts"].as_array().unwrap().clone());
        assert_eq!((shown.len(), ran.len()), (3, 3));
        for (shown, ran) in shown.iter().zip(&ran) {
            for key in ["host", "vertices", "tasks", "boundary", "ghosts", "neighbors"] {
                assert_eq!(shown[key], ran[key], "{key}, cut by {cut}");
            }
            // What was sent is what was shown, in every round of sweeps and of maps.
            let [messages, bytes] = ["messages", "bytes"].map(|what| {
                let sent = ran[&format!("sent_{what}")].as_f64().unwrap();
                sent / shown[&format!("{what}_a_round")].as_f64().unwrap()
            });
            // Small tasks share messages.
            assert!(
                bytes >= 30.0 && bytes >= messages && messages > 1.0,
                "{messages} and {bytes} rounds, cut by {cut}"
            );
        }
    }
}

#[test]
fn processes_are_measured_beside_what_this_machine_can_do() {
    let bench = |more: &[&str]| {
        let bench = ["bench", "heat", "--mesh", "torus:48x24", "--steps", "2", "--trials", "1"];
        json(&[&bench[..], more].concat())
    };
    let (one, two) = (bench(&["--no-probe"]), bench(&["--processes", "2", "--threads", "1"]));
    assert_eq!((&two["threads"], &two["machine"]["threads"]), (&2.into(), &2.into()));
    assert!(two["read_share"].as_f64().unwrap() > 0.0);
    assert_eq!(one["digest"], two["digest"]);
}

#[test]
fn a_run_on_processes_says_what_it_should_have_taken_and_ahead_that_one_process_is_faster() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let mut command = meshweft();
        // Where nobody has measured anything.
        command.env("XDG_CACHE_HOME", folder.path()).args(["run", "heat", "--mesh", "torus:24x12", "--steps", "6"]);
        command.args(["--order", "color", "--no-pictures", "--quiet", "--out"]).arg(folder.path()).args(more);
        let output = command.ended();
        [output.stdout, output.stderr].map(|told| String::from_utf8(told).unwrap())
    };
    let predicted =
        |[told, _]: &[String; 2]| told.lines().find(|line| line.starts_with("predicted")).map(str::to_string);
    let processes = ["--processes", "2", "--threads", "1"];
    let unknown = run(&processes);
    assert_eq!(predicted(&unknown), None);
    assert!(!unknown[1].contains("times as long as one"), "{unknown:?}");
    run(&["--auto"]);
    let known = run(&processes);
    let told = predicted(&known).unwrap();
    assert!(told.contains(", measured ") && told.contains("(limit: "), "{told}");
    assert!(!told.contains("without messages"), "{told}");
    // A color takes a microsecond, and the message that the next one waits for thirty.
    assert!(known[1].contains("2 processes will take ") && known[1].contains("--threads 2 instead"), "{known:?}");
}

/// A trace, as the events of each kind.
fn events(trace: &Value) -> BTreeMap<&str, Vec<&Value>> {
    let mut events: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for event in trace.as_array().unwrap() {
        events.entry(event["ph"].as_str().unwrap()).or_default().push(event);
    }
    events
}

/// Checks a trace: `tasks` of each host are updated in every round, and no thread does two things at a time.
fn check_trace(trace: &Value, tasks: &[u64], rounds: u64) {
    let events = events(trace);
    let number = |event: &Value, key: &str| event[key].as_f64().unwrap();
    let mut lanes: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    let mut updated: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for event in &events["X"] {
        let (host, thread) = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let (start, length) = (number(event, "ts"), number(event, "dur"));
        assert!(start >= 0.0 && length >= 0.0, "{event}");
        lanes.entry((host, thread)).or_default().push((start, start + length));
        if event["cat"] == "update" {
            let round = event["args"]["round"].as_u64().unwrap();
            *updated.entry((host, round)).or_default() += event["args"]["tasks"].as_u64().unwrap();
        }
    }
    for (lane, mut spans) in lanes {
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Numbers have three decimals, so that sums of two are off by less than a nanosecond.
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1e-4), "{lane:?} does two things at a time");
    }
    let most = updated.keys().map(|key| key.1).max().unwrap();
    assert!(most >= rounds, "{most} rounds of all kernels");
    for (host, tasks) in (1..).zip(tasks) {
        let names = |event: &&&Value| event["name"] == "process_name" && event["pid"] == host;
        assert_eq!(events["M"].iter().filter(names).count(), 1, "host {host} has a name");
        assert!((1..=most).all(|round| updated.get(&(host, round)) == Some(tasks)), "every round of host {host}");
    }
    assert_eq!(updated.len() as u64, most * tasks.len() as u64);
}

#[test]
fn a_trace_shows_every_round_of_every_host() {
    let folder = tempfile::tempdir().unwrap();
    let (out, path) = (folder.path().to_str().unwrap(), folder.path().join("trace.json"));
    let run = ["run", "heat", "--mesh", "torus:40x30", "--order", "blocked:32", "--steps", "20"];
    let rest = ["--no-pictures", "--quiet", "--out", out, "--trace", path.to_str().unwrap()];
    let traced = |arguments: &[&str]| {
        let report = json(&[&run[..], &rest[..], arguments].concat());
        let trace: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (report, trace)
    };
    for threads in ["1", "2"] {
        let (report, trace) = traced(&["--threads", threads]);
        check_trace(&trace, &[report["tasks"].as_u64().unwrap()], report["rounds"].as_u64().unwrap());
    }
    let (report, trace) = traced(&["--processes", "2", "--threads", "2"]);
    let hosts = report["hosts"].as_array().unwrap();
    let tasks: Vec<u64> = hosts.iter().map(|host| host["tasks"].as_u64().unwrap()).collect();
    check_trace(&trace, &tasks, report["rounds"].as_u64().unwrap());
    assert!(hosts.iter().all(|host| (0.0..=1.0).contains(&host["overlapped"].as_f64().unwrap())), "{hosts:?}");
    // Every message that was taken in has an arrow from where it was sent.
    let events = events(&trace);
    let received = events["X"].iter().filter(|event| event["name"] == "receive").count();
    assert!(received > 20 && events["s"].len() == received && events["f"].len() == received);
    let ends = events["s"].iter().zip(&events["f"]);
    assert!(ends.clone().all(|(sent, taken)| sent["id"] == taken["id"] && sent["pid"] != taken["pid"]));
    // Clocks of one machine, aligned: nothing is taken in long before it was sent, or after the run.
    let late = |(sent, taken): (&&Value, &&Value)| taken["ts"].as_f64().unwrap() - sent["ts"].as_f64().unwrap();
    assert!(ends.map(late).all(|us| us > -50_000.0));
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

/// What a process says last.
type LastWord = std::thread::JoinHandle<Option<String>>;

/// A long run on several hosts, once its steps have begun, all processes that belong to it, and what its driver will say last.
fn begin_long_run(out: &Path, sharing: &[&str]) -> (Process, Vec<u32>, LastWord) {
    let mut command = meshweft();
    command
        .args(["run", "cloth", "--mesh", "sheet:48", "--steps", "1000000", "--no-pictures", "--every", "20"])
        .args(sharing);
    command.arg("--out").arg(out);
    begin(command)
}

/// The same of a command that is one.
fn begin(mut command: Command) -> (Process, Vec<u32>, LastWord) {
    let mut driver = command.stdout(Stdio::null()).stderr(Stdio::piped()).started();
    let mut said = BufReader::new(driver.stderr.take().unwrap()).lines().map_while(Result::ok);
    let begun = said.find(|line| line.contains("step"));
    assert!(begun.is_some(), "{:?}", driver.wait());
    // Its stream must be read, or it would stop.
    let last = std::thread::spawn(move || said.last());
    let processes = descendants(driver.id());
    (driver, processes, last)
}

/// The same on two processes.
fn long_run(out: &Path) -> (Process, Vec<u32>, LastWord) {
    let (driver, workers, last) = begin_long_run(out, &["--processes", "2"]);
    assert_eq!(workers.len(), 2);
    (driver, workers, last)
}

/// Sends signals to workers of a run on three processes, half a second apart, and returns what it told in the end.
#[cfg(target_os = "linux")]
fn survived(signals: &[&str], steps: &str) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = lasting_run("sheet:96", steps, "1000");
    command.args(["--processes", "3", "--threads", "1", "--json", "--out"]).arg(folder.path());
    let mut driver = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).started();
    wait_for("the start of the workers", || children(driver.id()).len() == 3);
    let mut all = children(driver.id());
    for (i, signal) in signals.iter().enumerate() {
        std::thread::sleep(Duration::from_millis(500));
        assert!(driver.try_wait().unwrap().is_none(), "it ended before it was hurt");
        let workers = children(driver.id());
        all.extend(&workers);
        assert!(Command::new("kill").args([*signal, &workers[i % 3].to_string()]).status().unwrap().success());
    }
    let output = driver.output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = report(output);
    wait_for("the end of the workers", || !all.iter().any(|&worker| runs(worker)));
    (told, said)
}

#[cfg(target_os = "linux")]
#[test]
fn workers_that_are_killed_or_frozen_cost_time_and_change_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = lasting_run("sheet:96", "2500", "1000");
    let expected = report(command.args(["--json", "--out"]).arg(folder.path()).ended());
    let (killed, said) = survived(&["-KILL", "-KILL", "-KILL"], "2500");
    assert_eq!(killed["digest"], expected["digest"], "{said}");
    // The second may come while the run begins again.
    assert!(said.matches("the run begins again").count() >= 2, "{said}");
    assert!(said.contains("going on with 3 workers"), "{said}");
    // One that is frozen is replaced.
    let (frozen, said) = survived(&["-STOP"], "2500");
    assert_eq!(frozen["digest"], expected["digest"], "{said}");
    assert!(said.contains("going on with 3 workers") && said.contains(" was lost: "), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn workers_come_late_and_leave_early_and_change_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let (token, out) = (folder.path().join("run.token"), folder.path().join("out"));
    let mut command = lasting_run("sheet:96", "4000", "10000");
    command.arg("--json");
    command.args(["--workers", "2", "--listen", "127.0.0.1:0", "--token"]).arg(&token).arg("--out").arg(&out);
    let mut driver = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).started();
    let said = std::sync::Arc::<std::sync::Mutex<String>>::default();
    let (lines, heard) = (BufReader::new(driver.stderr.take().unwrap()).lines(), said.clone());
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| *heard.lock().unwrap() += &(line + "\n")));
    let says = |what: &str| said.lock().unwrap().contains(what);
    wait_for("the token", || token.exists());
    let worker = || {
        let mut worker = meshweft();
        worker.args(["worker", "--listen", "127.0.0.1:0", "--join"]).arg(&token);
        worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).started()
    };
    let mut first = worker();
    let mut second = worker();
    wait_for("the start", || says("worker 1 has joined") && says("worker 2 has joined"));
    let mut late = worker();
    wait_for("the third worker", || says("going on with 3 workers"));
    assert!(Command::new("kill").args(["-TERM", &first.id().to_string()]).status().unwrap().success());
    assert_eq!(first.wait().code(), Some(0), "it leaves in good order");
    let told = report(driver.output());
    assert!(says("going on with 2 workers"), "{}", said.lock().unwrap());
    assert_eq!((second.wait().code(), late.wait().code()), (Some(0), Some(0)));
    assert!(!token.exists(), "a token serves one run");
    let mut command = lasting_run("sheet:96", "4000", "10000");
    command.arg("--json");
    let expected = report(command.arg("--out").arg(&out).ended());
    assert_eq!(told["digest"], expected["digest"]);
}

#[test]
fn a_worker_without_the_program_of_the_driver_ends_the_run_with_its_name() {
    use meshweft::{Backend, Cluster, Mesh, Program, Simulation, Stages, kernels, vertex};
    vertex! {
        pub struct Counter<R> { shared x: R }
    }
    struct Elsewhere;
    kernels! {
        for Elsewhere: Counter;
        map Count |_, own| Counter { x: own.x + R::lit(1.0) };
    }
    impl Program for Elsewhere {
        fn initial(&self, _: &Mesh, _: u32) -> Counter<f64> {
            Counter { x: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Count)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.token");
    let mut gathering = Cluster::gather(1, (std::net::Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    gathering.write_token(&path).unwrap();
    let mut worker = meshweft();
    worker.args(["worker", "--listen", "127.0.0.1:0", "--join"]).arg(&path);
    let worker = worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).started();
    let cluster = gathering.wait(Duration::from_secs(60), |_| {}).unwrap();
    let mesh = Mesh::from_graph(3, vec![[0, 1], [1, 2]]).unwrap();
    let built = Simulation::builder(mesh, Elsewhere).backend(Backend::Cluster(cluster)).build();
    let error = built.and_then(|mut run| run.step()).unwrap_err().to_string();
    let expected = "Elsewhere, which the program of this host does not have: start the same binary everywhere";
    assert!(error.contains("host 1 cannot go on: the driver runs ") && error.contains(expected), "{error}");
    let output = worker.output();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(expected));
}

#[cfg(target_os = "linux")]
#[test]
fn a_late_worker_that_cannot_take_part_ends_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (token, out) = (folder.path().join("run.token"), folder.path().join("out"));
    let run = |more: &[&str]| {
        let mut command = lasting_run("sheet:48", "6000", "6000");
        command.args(["--threads", "1", "--json", "--out"]).arg(&out).args(more);
        command
    };
    let mut driver = run(&["--workers", "1", "--listen", "127.0.0.1:0", "--token"]);
    let driver = driver.arg(&token).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).started();
    wait_for("the token", || token.exists());
    let worker = |more: &[&str]| {
        let mut worker = meshweft();
        worker.args(["worker", "--listen", "127.0.0.1:0", "--join"]).arg(&token).args(more);
        worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).started()
    };
    let mut good = worker(&[]);
    wait_for("the first checkpoint or step", || out.join("cloth_000000.vtu").exists());
    let mut bad = worker(&["--gpu", "99"]);
    assert_eq!(bad.wait().code(), Some(2));
    let output = driver.output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(report(output)["digest"], report(run(&[]).ended())["digest"], "{said}");
    // Whoever is back first is host 1.
    assert!(
        said.contains(" cannot go on: GPU: there is no adapter 99") && said.contains("going on with 1 worker"),
        "{said}"
    );
    assert_eq!(good.wait().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_late_worker_that_others_cannot_reach_ends_and_the_run_goes_on() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return eprintln!("skipped: this machine has no IPv6, in which one worker is not reached by the other");
    }
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("run.token");
    let mut driver = meshweft();
    driver.args([
        "run",
        "cloth",
        "--mesh",
        "sheet:24",
        "--steps",
        "100000000",
        "--no-pictures",
        "--every",
        "100000000",
    ]);
    driver.args(["--threads", "1", "--quiet", "--workers", "1", "--listen", "[::]:0", "--token"]).arg(&token);
    driver.arg("--out").arg(folder.path().join("out"));
    let mut driver = driver.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).started();
    wait_for("the token", || token.exists());
    let worker = |listen: &str| {
        let mut worker = meshweft();
        worker.args(["worker", "--listen", listen, "--join"]).arg(&token);
        worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).started()
    };
    let mut lines = BufReader::new(driver.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut good = worker("[::1]:0");
    assert!(lines.any(|line| line.starts_with("worker 1 has joined from [::1]")));
    let newcomer = worker("127.0.0.1:0").output();
    let said = String::from_utf8_lossy(&newcomer.stderr).into_owned();
    assert!(said.starts_with("waiting for the driver at "), "{said}");
    assert_eq!(newcomer.status.code(), Some(2), "{said}");
    assert!(said.contains("the workers of this run and this one cannot reach each other"), "{said}");
    assert!(lines.any(|line| line.starts_with("going on with 1 worker")));
    assert!(Command::new("kill").args(["-TERM", &driver.id().to_string()]).status().unwrap().success());
    assert_eq!((driver.wait().code(), good.wait().code()), (Some(143), Some(0)));
}

#[cfg(target_os = "linux")]
#[test]
fn workers_of_a_driver_that_is_killed_go_on_with_the_run_that_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (token, out) = (folder.path().join("run.token"), folder.path().join("out"));
    let key = out.join("driver.key");
    let run = |more: &[&str]| {
        let mut command = lasting_run("sheet:48", "3000", "3000");
        command.args(["--threads", "1", "--checkpoint-every", "100 steps", "--json", "--out"]).arg(&out).args(more);
        command
    };
    let mut driver = run(&["--workers", "2", "--listen", "127.0.0.1:0", "--token"]);
    let mut driver = driver.arg(&token).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).started();
    let mut lines = BufReader::new(driver.stderr.take().unwrap()).lines().map_while(Result::ok);
    wait_for("the token", || token.exists());
    let mut workers = [0, 1].map(|_| {
        let mut worker = meshweft();
        worker.args(["worker", "--listen", "127.0.0.1:0", "--join"]).arg(&token);
        worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).started()
    });
    assert!(lines.any(|line| line.starts_with("checkpoint: ")), "it ended without one");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&key).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    driver.kill().unwrap();
    driver.wait();
    let told = report(meshweft().args(["resume", "--json"]).arg(&out).ended());
    assert!(told["resumed_from"].as_u64().unwrap() >= 100, "{told}");
    workers.iter_mut().for_each(|worker| assert_eq!(worker.wait().code(), Some(0)));
    assert!(!key.exists(), "a key is kept as long as its run");
    let expected = report(run(&["--checkpoint-every", "never"]).ended());
    assert_eq!(told["digest"], expected["digest"]);
}

#[cfg(target_os = "linux")]
#[test]
fn workers_end_with_a_driver_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut driver, workers, _) = long_run(folder.path());
    driver.kill().unwrap();
    driver.wait();
    wait_for("the end of the workers", || !workers.iter().any(|&worker| runs(worker)));
}
