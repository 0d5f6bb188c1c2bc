//! What a run tells of its loops [C18] and quantities, when it is over and on the way.

use super::*;
use meshweft::{Backend, Cluster};
use meshweft_command::Options;
use meshweft_tests::{digest_after, start};

/// Heat by conjugate gradients, whose loop ends at its limit.
const SOLVED: &[&str] =
    &["heat", "--mesh", "torus:24x14", "--quiet", "--set", "method=cg", "--set", "rounds=5", "--set", "tolerance=1e-4"];

#[test]
fn loops_count_the_same_on_any_engine_and_number_of_hosts() {
    let mesh = generate("torus:24x14", 1).unwrap();
    let set = [("method", "cg"), ("rounds", "5"), ("tolerance", "1e-4")];
    let loops = |backend| {
        let mut run = start("heat", &mesh, &set, &Options { backend, ..Options::default() }).unwrap();
        digest_after(7, &mut run).unwrap();
        // A change of the state begins another account.
        let temperature = run.field("temperature").unwrap().values;
        run.set_field("temperature", &temperature).unwrap();
        digest_after(5, &mut run).unwrap();
        run.loops()
    };
    let serial = loops(Backend::Serial);
    let [(name, found)] = serial[..] else { panic!("{serial:?}") };
    assert_eq!((name, found.times), ("Arrived", 12));
    assert!((found.total, found.longest, found.ran_out, found.limit) == (60, 5, 12, 5), "{found:?}");
    for backend in [
        Backend::Cpu { threads: 1 },
        Backend::Cpu { threads: 3 },
        Backend::Cluster(Cluster::inside(1).unwrap()),
        Backend::Cluster(Cluster::inside(3).unwrap()),
    ] {
        let what = format!("{backend:?}");
        assert_eq!(loops(backend), serial, "{what}");
    }
}

#[test]
fn a_run_tells_how_far_its_loops_have_converged_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run = |more: &[&str]| meshweft(&[&["run"], SOLVED, &["--no-pictures", "--out", out], more].concat());
    let ended = run(&["--steps", "6"]);
    assert!(ended.out.contains("until    Arrived: 5 iterations a step (last 5, most 5)"), "{}", ended.out);
    assert!(ended.out.contains("; 6 of 6 steps ended at the limit of 5"), "{}", ended.out);
    assert!(ended.err.starts_with("warning: Arrived did not hold after 5 iterations, "), "{}", ended.err);
    let report = json(&[&["run"], SOLVED, &["--no-pictures", "--out", out, "--steps", "6", "--json"]].concat());
    let found = &report["loops"][0];
    assert_eq!((found["until"].as_str(), found["times"].as_u64()), (Some("Arrived"), Some(6)));
    assert_eq!((found["limit"].as_u64(), report["warnings"].as_array().unwrap().len()), (Some(5), 1));
    let column = |text: &str| {
        let mut lines = text.lines();
        assert!(lines.next().unwrap().ends_with(",Arrived (iterations)"), "{text}");
        lines.map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect::<Vec<u64>>()
    };
    let history = || std::fs::read_to_string(folder.path().join("heat.csv")).unwrap();
    assert_eq!(Some(column(&history()).iter().sum()), found["iterations"].as_u64());

    // Nothing to tell where all is well, or where there is no loop.
    let ended = run(&["--steps", "6", "--set", "rounds=50"]);
    assert!(ended.out.contains("Arrived: ") && !ended.out.contains("limit") && ended.err.is_empty(), "{}", ended.err);
    let report = small(folder.path(), &[]);
    assert!(report["loops"].as_array().unwrap().iter().all(|found| found["times"] == 0), "{report}");

    // A run that goes on has the rows of one that was never stopped: also iterations since the last of them.
    run(&["--steps", "20", "--every", "7"]);
    let whole = history();
    run(&["--steps", "10", "--every", "7", "--checkpoint-every", "5"]);
    let words = ["resume", out, "--steps", "20", "--quiet", "--no-pictures"];
    good(&words);
    assert_eq!(history(), whole);
}

#[test]
fn what_was_measured_is_drawn_as_curves() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let pictures = ["--picture-size", "96x80", "--film-size", "64x48"];
    let text = good(&[&["run"], SOLVED, &["--steps", "6", "--out", out], &pictures].concat());
    let svg = folder.path().join("heat.svg");
    assert!(text.contains(&format!("heat.csv  {}", svg.display())), "{text}");
    let drawn = std::fs::read_to_string(&svg).unwrap();
    for words in [">heat content, K m^d<", ">hottest, K<", ">Arrived, iterations a step<", ">time, s<"] {
        assert!(drawn.contains(words), "{words}: {drawn}");
    }
    assert_eq!(drawn.matches("<polyline").count(), drawn.matches("stroke-width=\"1\"").count() + 4);
    small(folder.path(), &[]);
    assert!(!svg.exists(), "the next run removes it, and --no-pictures draws none");
}

#[test]
fn an_energy_that_runs_away_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let wave = ["run", "wave", "--mesh", "disk:12", "--quiet", "--no-pictures", "--out", out];
    let run = |more: &[&str]| meshweft(&[&wave[..], more].concat());
    let calm = run(&["--steps", "200"]);
    assert!(calm.code == 0 && calm.err.is_empty(), "{}", calm.err);
    // Beyond what is stable, and not long enough for numbers that are not finite.
    let wild = run(&["--steps", "40", "--set", "dt=0.04"]);
    assert_eq!(wild.err.matches("warning").count(), 1, "{}", wild.err);
    assert!(wild.code == 0 && wild.err.contains("with each quarter of the run: kinetic energy to "), "{}", wild.err);
}

#[test]
fn sweeps_that_stop_far_from_the_solution_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let soft = ["run", "softbody", "--mesh", "bar:9x3x3", "--quiet", "--no-pictures", "--out", out];
    let run = |more: &[&str]| meshweft(&[&soft[..], more].concat());
    let calm = run(&["--steps", "20"]);
    assert!(calm.code == 0 && calm.err.is_empty(), "{}", calm.err);
    let stiff = run(&["--steps", "40", "--set", "young=1e9", "--set", "rounds=1", "--set", "dt=0.02"]);
    let words = " % of an edge: sweeps stop far from the solution";
    assert!(stiff.code == 0 && stiff.err.starts_with("warning: residual is "), "{}", stiff.err);
    assert!(stiff.err.contains(words) && stiff.err.contains("more rounds"), "{}", stiff.err);
}

#[test]
fn what_is_a_command_and_no_option_is_named() {
    bad(&["run", "heat", "--resume"], "tip: `meshweft resume FOLDER` goes on with a run");
    bad(&["run", "heat", "--threds", "2"], "'--threads'");
    bad(&["worker", "--join", "no.token"], "cannot read the token in no.token");
}

#[test]
fn a_range_that_is_set_runs_the_copies_that_are_varied() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let run = |words: &[&str]| {
        let spring =
            ["run", "spring", "--mesh", "box:4", "--steps", "3", "--quiet", "--no-pictures", "--json", "--out"];
        let report = json(&[&spring[..], &[out.to_str().unwrap()], words].concat());
        let rows = std::fs::read_to_string(out.join("spring.csv")).unwrap();
        // How fast a copy was is another each time.
        let cells = |line: &str| line.split(',').map(str::to_string).collect::<Vec<_>>();
        let mut rows: Vec<_> = rows.lines().map(cells).collect();
        let speed = rows[0].iter().position(|name| name == "steps_per_s").unwrap();
        rows.iter_mut().for_each(|row| drop(row.remove(speed)));
        (report["copies"].as_u64().unwrap(), rows)
    };
    let varied = run(&["--vary", "damping=0.1:1:3:log", "--vary", "dt=0.01,0.02"]);
    assert_eq!(varied.0, 6);
    assert_eq!(run(&["--set", "damping=0.1..1:3:log", "--set=dt=0.01..0.02:2"]), varied);
    let case = write(&folder, "case.toml", "[set]\ndamping = \"0.1..1:3:log\"\ndt = \"0.01..0.02:2\"\n");
    assert_eq!(run(&["--case", &case]), varied);
    assert_eq!(run(&["--case", &case, "--set", "dt=0.02"]).0, 3, "a setting is what is said of it last");
    let heat = |words: &[&str], says: &str| bad(&[&["run", "heat", "--out", "none"], words].concat(), says);
    heat(&["--set", "dt=1..2"], "add --copies N, or write LOW..HIGH:COUNT");
    heat(&["--set", "dt=1..x:5"], "\"x\" is no number: write LOW..HIGH:COUNT");
    heat(&["--set", "dt=2..1:5"], "write the lower end first");
    heat(&["--set", "dt=1..2:5:cubic"], "\"cubic\" is no number of values");
    heat(&["--set", "dtt=1..2:5"], "did you mean `dt`?");
    heat(&["--set", "dt=1..2:5", "--view"], "cannot be used with");
    bad(&["plan", "heat", "--set", "dt=1..2:5"], "`meshweft run` takes a range of values");
    assert!(!Path::new("none").exists());
}
