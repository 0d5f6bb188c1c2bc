//! The command line, run in process: what it prints, what it leaves in its folder, how it fails.

mod bench;
mod cells;
mod copies;
mod meshes;
mod plan;
mod state;
mod told;

use meshweft::conformance::gpu_or_skip;
use meshweft::{AdapterKind, adapters};
use meshweft_command::cli::{self, Console, Signal};
use meshweft_examples::PROGRAMS;
use meshweft_mesh::{Field, generate::generate, io};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What a command printed, and its exit code.
struct Ended {
    code: u8,
    out: String,
    err: String,
}

fn meshweft(arguments: &[&str]) -> Ended {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = std::iter::once("meshweft").chain(arguments.iter().copied());
    let code = cli::run(&PROGRAMS, arguments, &mut Console::new(&mut out, &mut err));
    Ended { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// Runs a command that must succeed, and returns what it printed.
fn good(arguments: &[&str]) -> String {
    let ended = meshweft(arguments);
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
    ended.out
}

/// The same, of a command that prints one JSON object.
fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&good(arguments)).unwrap()
}

/// Runs a command that must fail with code 2 and one `error:` that says `says`.
fn bad(arguments: &[&str], says: &str) {
    let ended = meshweft(arguments);
    assert_eq!(ended.code, 2, "{arguments:?}: {}{}", ended.out, ended.err);
    assert!(ended.err.starts_with("error: ") && ended.err.contains(says), "{arguments:?}: {}", ended.err);
    assert_eq!(ended.err.matches("error:").count(), 1, "{}", ended.err);
    assert!(!ended.err.contains("-- -"), "no tip to write `-- -1`: {}", ended.err);
    assert_eq!(ended.out, "");
}

/// A small run without pictures into a fresh folder.
const SMALL: &[&str] = &["heat", "--mesh", "torus:12x6", "--steps", "6", "--no-pictures", "--quiet"];

fn small(folder: &Path, more: &[&str]) -> Value {
    let out = folder.to_str().unwrap();
    json(&[&["run"], SMALL, &["--json", "--out", out], more].concat())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn write(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn list_names_examples_settings_generators_and_orders() {
    let text = good(&["list"]);
    for word in ["heat", "diffusivity=9.7e-5 m²/s", "torus:", "sheet:256x256", "priority-dag", "colour"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn help_teaches_by_examples() {
    assert!(good(&["--help"]).contains("meshweft run heat"));
    for command in ["run", "bench", "verify", "info", "convert"] {
        assert!(good(&[command, "--help"]).contains("Examples:"), "{command}");
    }
}

#[test]
fn a_run_prints_one_object_and_writes_what_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let report = small(&folder.path().join("a/b"), &["--every", "2", "--verify"]);
    let keys = "example mesh vertices order backend threads precision steps time_s \
                wall_s updates_per_s setup_s settings metrics digest files";
    for key in keys.split_whitespace() {
        assert!(!report[key].is_null(), "{key}: {report}");
    }
    assert_eq!((report["steps"].as_u64(), report["vertices"].as_u64()), (Some(6), Some(72)));
    assert!(report["verified"].as_str().unwrap().contains("equal the serial oracle"));
    let hottest = &report["metrics"]["hottest"];
    assert_eq!(hottest["unit"], "K");
    assert!(hottest["first"].as_f64() > hottest["value"].as_f64());
    let files: Vec<PathBuf> = report["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().into()).collect();
    assert!(files.iter().all(|file| file.is_file()), "{files:?}");
    assert_eq!(names(&folder.path().join("a/b")).len(), files.len(), "and nothing else");
}

#[test]
fn the_series_reads_back_and_the_history_has_a_line_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let report = small(folder.path(), &["--every", "4"]);
    let list = std::fs::read_to_string(folder.path().join("heat.pvd")).unwrap();
    let files: Vec<&str> = list.split("file=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(files, ["heat_000000.vtu", "heat_000004.vtu", "heat_000006.vtu"]);
    let state = io::read(&folder.path().join(files[2])).unwrap();
    let temperature = &state.point_field("temperature").unwrap().values;
    let hottest = temperature.iter().fold(0.0f64, |a, &b| a.max(b));
    assert_eq!(report["metrics"]["hottest"]["value"].as_f64(), Some(hottest));
    let times: Vec<f64> =
        list.split("timestep=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
    assert_eq!((times[0], Some(times[2])), (0.0, report["time_s"].as_f64()), "{list}");

    let history = std::fs::read_to_string(folder.path().join("heat.csv")).unwrap();
    let lines: Vec<&str> = history.lines().collect();
    assert!(lines[0].starts_with("step,time_s,") && lines[0].contains("hottest (K)"), "{history}");
    assert_eq!(lines.len(), 4);
    assert!(lines[3].starts_with("6,") && lines[3].ends_with(&format!(",{hottest}")), "{history}");
}

#[test]
fn an_earlier_run_is_replaced_and_other_files_stay() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path(), &["--every", "1"]);
    write(&folder, "notes.txt", "keep me");
    small(folder.path(), &["--every", "3"]);
    let expected = ["heat.csv", "heat.pvd", "heat_000000.vtu", "heat_000003.vtu", "heat_000006.vtu", "notes.txt"];
    assert_eq!(names(folder.path()), expected);
}

#[test]
fn examples_share_a_folder_one_after_the_other_and_never_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let cloth = ["run", "cloth", "--mesh", "sheet:4", "--steps", "1", "--no-pictures", "--quiet", "--out", out];
    // What a killed run leaves: a file that is half written, and a lock that nobody holds.
    for name in [".meshweft-Ab12xY", ".meshweft.lock"] {
        write(&folder, name, "half of a sta");
    }
    good(&cloth);
    let before = std::fs::read(folder.path().join("cloth.csv")).unwrap();
    small(folder.path(), &["--every", "6"]);
    assert_eq!(std::fs::read(folder.path().join("cloth.csv")).unwrap(), before);
    let heat = ["heat.csv", "heat.pvd", "heat_000000.vtu", "heat_000006.vtu"];
    let all = [&["cloth.csv", "cloth.pvd", "cloth_000000.vtu", "cloth_000001.vtu"], &heat[..]].concat();
    assert_eq!(names(folder.path()), all);

    let lock = std::fs::File::create(folder.path().join(".meshweft.lock")).unwrap();
    lock.lock().unwrap();
    bad(&cloth, &format!("another run writes to {out}: wait until it has ended, or choose another folder with --out"));
    drop(lock);
    good(&cloth);
    assert_eq!(names(folder.path()), all);
}

#[test]
fn threads_engines_spellings_and_oracle_do_not_change_the_digest() {
    let folder = tempfile::tempdir().unwrap();
    for orders in [["color", "colour"], ["level-color", "level_colour"], ["blocked", "Blocked"]] {
        let digest = |order, more: &[&str]| {
            small(folder.path(), &[&["--order", order], more].concat())["digest"].as_str().unwrap().to_string()
        };
        let serial = digest(orders[0], &["--backend", "serial"]);
        assert_eq!(digest(orders[1], &[]), serial);
        for threads in ["1", "2", "3", "8"] {
            assert_eq!(digest(orders[0], &["--threads", threads]), serial, "{threads} threads");
        }
        assert_ne!(digest(orders[0], &["--precision", "f64"]), serial);
    }
}

#[test]
fn pictures_are_drawn_of_every_kind_of_mesh() {
    let folder = tempfile::tempdir().unwrap();
    for mesh in ["sheet:4", "box:3", "chain:5"] {
        let out = folder.path().join(mesh.split(':').next().unwrap());
        let run = ["run", "heat", "--mesh", mesh, "--steps", "1", "--quiet", "--out", out.to_str().unwrap()];
        assert!(good(&run).contains("hottest"));
        for (name, magic) in [("heat.png", &b"\x89PNG"[..]), ("heat.gif", b"GIF89a")] {
            assert!(std::fs::read(out.join(name)).unwrap().starts_with(magic), "{name} of {mesh}");
        }
    }
}

#[test]
fn pictures_have_the_size_view_section_and_color_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut mesh = generate("box:4", 1).unwrap();
    let values = (0..mesh.cells().len()).map(|c| c as f64).collect();
    mesh.set_cell_field(Field { name: "layer".into(), components: 1, values }).unwrap();
    let file = folder.path().join("box.vtu");
    io::write(&file, &mesh).unwrap();
    let draw = |words: &[&str]| {
        let out = folder.path().join("out");
        let file = file.to_str().unwrap();
        let run = ["run", "heat", "--mesh", file, "--steps", "1", "--quiet", "--out", out.to_str().unwrap()];
        good(&[&run[..], &["--picture-size", "96x80", "--film-size", "64x48"], words].concat());
        ["heat.png", "heat.gif"].map(|name| std::fs::read(out.join(name)).unwrap())
    };
    let plain = draw(&["--threads", "1"]);
    assert_eq!((&plain[0][16..24], &plain[1][6..10]), (&[0, 0, 0, 96, 0, 0, 0, 80][..], &[64, 0, 48, 0][..]));
    assert!(plain == draw(&["--threads", "3"]), "threads change no picture");
    assert!(plain == draw(&["--section", "quarter", "--color", "temperature"]), "the defaults");
    let others: [&[&str]; 6] = [
        &["--section", "none"],
        &["--section", "half"],
        &["--camera", "left"],
        &["--camera", "-30,60"],
        &["--color", "none"],
        &["--colour", "layer"],
    ];
    for (i, words) in others.iter().enumerate() {
        let other = draw(words);
        assert!(other[0] != plain[0] && other[1] != plain[1], "{words:?}");
        assert!(others[..i].iter().all(|before| draw(before)[0] != other[0]), "{words:?}");
    }
    let out = folder.path().join("x");
    let wrong = |option: &str, value: &str, says: &str| {
        let run = ["run", "heat", "--mesh", file.to_str().unwrap(), "--steps", "1", "--out", out.to_str().unwrap()];
        bad(&[&run[..], &[option, value]].concat(), says);
    };
    wrong("--color", "layers", "no field \"layers\"");
    wrong("--color", "layers", "layer, or none");
    wrong("--film-size", "4096x4096", "16 to 2048");
    wrong("--camera", "above", "top or bottom");
}

#[test]
fn a_run_that_is_stopped_writes_its_last_state_says_so_and_tells_which_signal_it_was() {
    for (signal, name, expected) in
        [(Signal::Interrupt, "Ctrl-C", 130), (Signal::Terminate, "SIGTERM", 143), (Signal::HangUp, "SIGHUP", 129)]
    {
        let folder = tempfile::tempdir().unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::new(&mut out, &mut err);
        console.signals.receive(signal);
        let path = folder.path().to_str().unwrap();
        let code = cli::run(&PROGRAMS, [&["meshweft", "run"], SMALL, &["--out", path]].concat(), &mut console);
        assert_eq!(code, expected);
        assert!(String::from_utf8(out).unwrap().contains("0 of 6: stopped"));
        let said = format!(
            "{name}: stopped after step 0; the states so far are in {path}; `meshweft resume {path}` goes on from step 0\n"
        );
        assert!(String::from_utf8(err).unwrap().ends_with(&said));
        assert_eq!(names(folder.path()), ["checkpoint", "heat.csv", "heat.pvd", "heat_000000.vtu"]);
    }
}

#[test]
fn a_case_file_has_the_same_keys_and_the_command_line_wins() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let case = write(
        &folder,
        "case.toml",
        "example = \"heat\"\nmesh = \"torus:12x6\"\norder = \"colour\"\nsteps = 4\nthreads = 2\nverify = true\n\
         no-pictures = true\ntrials = 1\n\n[set]\nrounds = 3\ndiffusivity = 1e-4\n",
    );
    let common = ["--json", "--quiet", "--out", out.to_str().unwrap()];
    let report = json(&[&["run", &case], &common[..]].concat());
    assert_eq!((report["order"].as_str(), report["steps"].as_u64()), (Some("morton/color"), Some(4)));
    assert_eq!((report["threads"].as_u64(), report["settings"]["rounds"].as_f64()), (Some(2), Some(3.0)));
    assert!(report["verified"].is_string());

    let over = ["--case", &case, "--steps", "2", "--set", "rounds=5", "--order", "jacobi"];
    let report = json(&[&["run", "heat"], &over[..], &common[..]].concat());
    assert_eq!((report["order"].as_str(), report["steps"].as_u64()), (Some("morton/jacobi"), Some(2)));
    assert_eq!(report["settings"]["rounds"].as_f64(), Some(5.0));
    assert_eq!(report["settings"]["diffusivity"].as_f64(), Some(1e-4));

    let report = json(&["bench", &case, "--no-probe", "--json"]);
    assert_eq!((report["trials"].as_u64(), report["steps"].as_u64()), (Some(1), Some(4)));
}

#[test]
fn a_bad_case_file_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    for (line, says) in [
        ("stepz = 3", "unknown key \"stepz\": one of"),
        ("case = \"a.toml\"", "unknown key \"case\""),
        ("order = \"fastest\"", "unknown order \"fastest\""),
        ("steps = \"many\"", "an integer, 0 or more"),
        ("steps = -1", "an integer, 0 or more"),
        ("verify = 1", "true or false"),
        ("mesh = [1]", "a number or a string"),
        ("set = 3", "table"),
        ("set.rouns = 3", "unknown setting \"rouns\""),
        ("set.rounds = 0", "out of range"),
        ("steps = ", ""),
        ("steps = 3\nsteps = 4", "duplicate key"),
    ] {
        let case = write(&folder, "case.toml", &format!("example = \"heat\"\n# a comment\n{line}\n"));
        let at = if says == "duplicate key" { 4 } else { 3 };
        bad(&["run", &case], &format!("case.toml:{at}: "));
        bad(&["run", "--case", &case], says);
    }
    bad(&["run", "none.toml"], "case file none.toml: ");
    let case = write(&folder, "case.toml", "steps = 3\n");
    bad(&["run", &case], "no example is named");
    assert_eq!(names(folder.path()), ["case.toml"]);
}

#[test]
fn mistakes_end_with_one_clear_error_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cut = write(&folder, "cut.obj", "v 0 0 0\nv 1 0 0\nv 0 1\n");
    let file = write(&folder, "file", "");
    let below = format!("{file}/out");
    let out = folder.path().join("out");
    let fresh = ["--out", out.to_str().unwrap()];
    for (arguments, says) in [
        (&["run", "hat"][..], "unknown example \"hat\": did you mean `heat`? there are heat"),
        (&["verify", "hat"], "unknown example"),
        (&["bench", "hat"], "unknown example"),
        (&["run", "heat", "--order", "fastest"], "unknown order \"fastest\": one of color"),
        (&["run", "heat", "--order", "peano/color"], "unknown curve"),
        (&["run", "heat", "--backend", "gpu9"], "possible values"),
        (&["run", "heat", "--threads", "1000000"], "0..=4096"),
        (&["run", "heat", "--every", "0"], "take an integer, 1 or more"),
        (&["run", "heat", "--steps", "-1"], "take an integer, 0 or more"),
        (&["run", "heat", "--steps", "1e3"], "take an integer, 0 or more"),
        (&["run", "heat", "--threads", "-1"], "0..=4096"),
        (&["run", "heat", "--seed", "-1"], "take an integer, 0 or more"),
        (&["bench", "heat", "--steps", "-1"], "take an integer, 1 or more"),
        (&["run", "heat", "--until", "-1"], "take simulated seconds, 0 or more"),
        (&["run", "heat", "--until", "1e300"], "too many steps away"),
        (&["run", "heat", "--stop", "hottest"], "NAME<VALUE or NAME>VALUE, in quotes"),
        (
            &["run", "heat", "--stop", "residual<1e-6"],
            "unknown metric \"residual\": one of heat content, coldest, hottest",
        ),
        (&["shader", "heat", "--kernel", "Foo"], "heat has no kernel \"Foo\": one of "),
        (&["run", "heat", "--order", "blocked:0"], "1 to 4294967295"),
        (&["run", "heat", "--set", "dtt=3"], "unknown setting \"dtt\": did you mean `dt`? there are method, "),
        (&["run", "heat", "--set", "dt"], "NAME=VALUE"),
        (&["run", "heat", "--set", "dt=fast"], "no number"),
        (&["run", "heat", "--mesh", "shet:9"], "did you mean `sheet`?"),
        (&["run", "heat", "--mesh", "sheet:1x"], "sheet:NXxNY"),
        (&["run", "heat", "--mesh", "no/such.obj"], "no mesh file no/such.obj"),
        (&["run", "heat", "--mesh", "bunny.obj"], "no mesh file bunny.obj"),
        (&["run", "heat", "--mesh", &cut], "cut.obj:3"),
        (&["run", "heat", "--mesh", &file], "neither an extension nor the first bytes"),
        (&["info", &cut], "cut.obj:3"),
        (&["convert", "sheet:3", "a.xyz"], ".xyz is no mesh file"),
        (&["convert", "sheet:3", &below], "no mesh file"),
        (&["convert", "box:3", "a.ply"], "cannot hold tet cells"),
        (&["bench", "heat", "--trials", "0"], "--trials"),
        (&["bench", "--all", "heat"], "cannot be used with"),
        (&["bench", "--all", "--threads", "2"], "cannot be used with"),
        (&["bench", "heat", "--quick"], "--all"),
        (&["bench", "--all", "--tiny", "--out", &below], "is a file, not a folder"),
        (&["paint"], "unrecognized subcommand"),
    ] {
        let more = if arguments[0] == "run" { &fresh[..] } else { &[] };
        bad(&[arguments, more].concat(), says);
    }
    bad(&[&["run"], SMALL, &["--out", &below]].concat(), "is a file, not a folder");
    bad(&[&["run"], SMALL, &["--out", &file]].concat(), "is a file, not a folder");
    assert_eq!(names(folder.path()), ["cut.obj", "file"]);
}

#[test]
fn a_run_that_diverges_names_the_vertex_and_keeps_what_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let wild = ["--set", "method=explicit", "--set", "dt=1e12", "--every", "1", "--out", out];
    let small =
        ["--mesh", "torus:12x6", "--steps", "500", "--picture-size", "96x72", "--film-size", "96x72", "--quiet"];
    bad(&[&["run", "heat"], &small[..], &wild[..]].concat(), "diverged: temperature of vertex");
    let kept = names(folder.path());
    for name in ["heat.pvd", "heat_000001.vtu", "heat.png", "heat.gif"] {
        assert!(kept.contains(&name.to_string()), "{name}: {kept:?}");
    }
    assert!(kept.iter().all(|name| !name.starts_with('.')), "{kept:?}");
}

#[test]
fn verify_prints_a_table_that_passes() {
    let text = good(&["verify", "heat"]);
    assert!(text.contains("measured") && text.contains("pass") && !text.contains("FAIL"), "{text}");
}

#[test]
fn until_a_time_takes_the_steps_that_lead_there() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| small(folder.path(), &[&["--set", "dt=0.1"], more].concat());
    let report = run(&["--until", "0.3"]);
    assert_eq!((report["steps"].as_u64(), report["until_s"].as_f64()), (Some(3), Some(0.3)));
    let report = run(&["--until", "0.31", "--verify"]);
    assert_eq!((report["steps"].as_u64(), report["time_s"].as_f64()), (Some(4), Some(0.31)), "the last is shorter");
    assert_eq!(run(&["--until", "0.3", "--steps", "5"])["steps"], 5, "the later one counts");
    let out = folder.path().to_str().unwrap();
    let text = good(&[&["run"], SMALL, &["--set", "dt=0.1", "--until", "0", "--out", out]].concat());
    assert_eq!(text.lines().last(), Some("reached: t = 0 s after 0 steps, at t = 0 s"));
}

#[test]
fn a_run_stops_when_a_quantity_has_passed_its_bound_after_the_same_step_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| small(folder.path(), &[&["--steps", "40", "--every", "1"], more].concat());
    let all = run(&[]);
    let history = std::fs::read_to_string(folder.path().join("heat.csv")).unwrap();
    let hottest: Vec<f64> =
        history.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect();
    let bound = (hottest[6] + hottest[7]) / 2.0;
    assert!(hottest.is_sorted_by(|a, b| a >= b) && all["stop"].is_null(), "{hottest:?}");
    for more in [&["--threads", "1"][..], &["--threads", "3", "--every", "20"], &["--backend", "serial"], &["--verify"]]
    {
        let report = run(&[&["--stop", &format!("hottest < {bound}")], more].concat());
        assert_eq!(report["steps"], 7, "{more:?}");
        assert_eq!(report["stop"]["value"], hottest[7]);
        assert_eq!((&report["stop"]["reached"], &report["interrupted"]), (&true.into(), &false.into()));
    }
    let case = write(&folder, "case.toml", "example = \"heat\"\nstop = \"hottest>1e4\"\n");
    let report = run(&["--case", &case]);
    let stop = &report["stop"];
    assert_eq!((&stop["condition"], &stop["reached"]), (&"hottest > 10000".into(), &false.into()));
    assert_eq!((report["steps"].as_u64(), stop["value"].as_f64()), (Some(40), Some(hottest[40])));
    let out = folder.path().to_str().unwrap();
    let text = good(&[&["run"], SMALL, &["--stop", "coldest>0", "--out", out]].concat());
    let last = text.lines().last().unwrap();
    assert!(
        last.starts_with("reached: coldest > 0; it is 300.") && last.contains(" K after 1 step, at t = "),
        "{last}"
    );
}

#[test]
fn shells_are_given_completions_and_man_its_pages() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = good(&["completions", shell]);
        assert!(script.contains("no-pictures") && script.contains("convert"), "{shell}: {script}");
    }
    bad(&["completions", "cmd"], "possible values: bash, elvish, fish, powershell, zsh");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("share/man1");
    assert!(good(&["man", "--out", out.to_str().unwrap()]).contains("meshweft.1"));
    let pages = names(&out);
    for page in ["meshweft.1", "meshweft-run.1", "meshweft-cluster-token.1"] {
        assert!(pages.contains(&page.to_string()), "{pages:?}");
    }
    let page = std::fs::read_to_string(out.join("meshweft-run.1")).unwrap();
    assert!(page.contains("meshweft run heat") && page.contains("until"), "{page}");
    let file = write(&folder, "file", "");
    bad(&["man", "--out", &file], "cannot write manual pages to ");
}

#[cfg(unix)]
#[test]
fn bash_completes_by_the_script() {
    let folder = tempfile::tempdir().unwrap();
    let script = write(&folder, "script", &good(&["completions", "bash"]));
    let test =
        "source $0; COMP_WORDS=(meshweft run --unt); COMP_CWORD=2; _meshweft meshweft --unt run; echo ${COMPREPLY[@]}";
    let Ok(bash) = std::process::Command::new("bash").args(["-c", test, &script]).output() else {
        return println!("skipped: no bash");
    };
    assert_eq!(String::from_utf8_lossy(&bash.stdout), "--until\n", "{bash:?}");
}

#[test]
fn a_reader_that_leaves_ends_the_command_quietly() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut err = Vec::new();
    let code = cli::run(&PROGRAMS, ["meshweft", "list"], &mut Console::new(&mut Closed, &mut err));
    assert_eq!((code, String::from_utf8(err).unwrap().as_str()), (0, ""));
}

#[test]
fn a_new_package_has_the_program_that_is_tested_here_and_bad_names_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("my-model");
    let said = good(&["new", path.to_str().unwrap()]);
    assert!(said.contains("cargo run --release -- run my-model"), "{said}");
    assert_eq!(names(&path), [".cargo", ".gitignore", "Cargo.toml", "src"]);
    let main = std::fs::read_to_string(path.join("src/main.rs")).unwrap();
    assert!(main.contains("name: \"my-model\"") && !main.contains("NAME"));
    let package = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
    assert!(package.contains("/runtime\"") && !package.contains("MESHWEFT"), "{package}");
    let config = std::fs::read_to_string(path.join(".cargo/config.toml")).unwrap();
    assert!(config.contains("target-cpu=native"), "{config}");
    bad(&["new", path.to_str().unwrap()], "cannot make the folder");
    bad(&["new", "My Model"], "is no name of a package");
    bad(&["new", folder.path().join("other").to_str().unwrap(), "--meshweft", "/"], "does not hold the sources");
    // The same text, compiled: its acceptance test passes.
    for check in <crate::template::Diffusion as meshweft_command::Example>::checks().unwrap() {
        assert!(check.passes(), "{}: {}", check.name, check.measured);
    }
}
