//! The command line, run in process: what it prints, what it leaves in its folder, how it fails.

use meshweft::conformance::gpu_or_skip;
use meshweft::{AdapterKind, adapters};
use meshweft_examples::cli::{self, Console, Signal};
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
    let code = cli::run(arguments, &mut Console::new(&mut out, &mut err));
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
        &["--view", "left"],
        &["--view", "-30,60"],
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
    wrong("--view", "above", "top or bottom");
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
        let code = cli::run([&["meshweft", "run"], SMALL, &["--out", path]].concat(), &mut console);
        assert_eq!(code, expected);
        assert!(String::from_utf8(out).unwrap().contains("0 of 6: stopped"));
        let said = format!("{name}: stopped after step 0; the states so far are in {path}\n");
        assert_eq!(String::from_utf8(err).unwrap(), said);
        assert_eq!(names(folder.path()), ["heat.csv", "heat.pvd", "heat_000000.vtu"]);
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
        ("steps = \"many\"", "a whole number, 0 or more"),
        ("steps = -1", "a whole number, 0 or more"),
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
        (&["run", "hat"][..], "unknown example \"hat\": one of heat"),
        (&["verify", "hat"], "unknown example"),
        (&["bench", "hat"], "unknown example"),
        (&["run", "heat", "--order", "fastest"], "unknown order \"fastest\": one of color"),
        (&["run", "heat", "--order", "peano/color"], "unknown curve"),
        (&["run", "heat", "--backend", "gpu9"], "possible values"),
        (&["run", "heat", "--threads", "1000000"], "0..=4096"),
        (&["run", "heat", "--every", "0"], "take a whole number, 1 or more"),
        (&["run", "heat", "--steps", "-1"], "take a whole number, 0 or more"),
        (&["run", "heat", "--steps", "1e3"], "take a whole number, 0 or more"),
        (&["run", "heat", "--threads", "-1"], "0..=4096"),
        (&["run", "heat", "--seed", "-1"], "take a whole number, 0 or more"),
        (&["bench", "heat", "--steps", "-1"], "take a whole number, 1 or more"),
        (&["run", "heat", "--until", "-1"], "take simulated seconds, 0 or more"),
        (&["run", "heat", "--until", "1e300"], "too many steps away"),
        (&["run", "heat", "--stop", "hottest"], "NAME<VALUE or NAME>VALUE, in quotes"),
        (
            &["run", "heat", "--stop", "residual<1e-6"],
            "unknown metric \"residual\": one of heat content, coldest, hottest",
        ),
        (&["shader", "heat", "--kernel", "Foo"], "heat has no kernel \"Foo\": one of "),
        (&["run", "heat", "--order", "blocked:0"], "1 to 4294967295"),
        (&["run", "heat", "--set", "dtt=3"], "unknown setting \"dtt\": one of"),
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
fn bench_reports_the_cost_of_an_update() {
    let report =
        json(&["bench", "heat", "--mesh", "torus:12x6", "--steps", "5", "--trials", "3", "--no-probe", "--json"]);
    for key in ["ns_per_update", "ns_per_edge"] {
        let [low, middle, high] = ["_min", "", "_max"].map(|end| report[format!("{key}{end}")].as_f64().unwrap());
        assert!(0.0 < low && low <= middle && middle <= high, "{report}");
    }
    assert_eq!((report["rounds"].as_u64(), report["directed_edges"].as_u64()), (Some(50), Some(432)));
    for key in ["example", "mesh", "order", "backend", "threads", "setup_s", "gb_per_s", "digest"] {
        assert!(!report[key].is_null(), "{key}: {report}");
    }
    assert!(report["machine"].is_null() && report["read_share"].is_null(), "{report}");
    let table = good(&["bench", "heat", "--mesh", "torus:12x6", "--steps", "1", "--trials", "1", "--no-probe"]);
    assert!(table.contains("ns (median") && table.contains("bytes a vertex"), "{table}");
    assert!(!table.contains("machine") && !table.contains("of the read probe"), "{table}");
}

#[test]
fn bench_sets_traffic_and_memory_beside_what_the_machine_can_do() {
    let report = json(&["bench", "heat", "--mesh", "torus:48x24", "--steps", "2", "--trials", "1", "--json"]);
    let number = |value: &Value| value.as_f64().filter(|x| x.is_finite() && *x > 0.0);
    let of = |key: &str| number(&report[key]).unwrap_or_else(|| panic!("{key}: {report}"));
    let machine = &report["machine"];
    assert_eq!(machine["threads"], report["threads"]);
    for key in ["triad_gb_per_s", "read_gb_per_s", "array_bytes", "probe_s"] {
        assert!(number(&machine[key]).is_some(), "{key}: {machine}");
    }
    let gathers = machine["gathers"].as_array().unwrap();
    assert!(gathers.len() == 2 && gathers.iter().all(|g| number(&g["reads_per_s"]).is_some()), "{machine}");
    let share = of("gb_per_s") / number(&machine["read_gb_per_s"]).unwrap();
    assert!((of("read_share") / share - 1.0).abs() < 1e-9, "{report}");
    // Six edges a vertex, each at least an index of two bytes and a weight of four; three reals of state, in and out.
    assert!((60.0..300.0).contains(&of("moved_bytes_per_update")), "{report}");
    assert!((of("bytes_per_vertex") / of("bytes_per_edge") - 6.0).abs() < 1e-9, "{report}");
    assert!(of("bytes_per_vertex") < 500.0 && of("setup_rounds") > 0.0, "{report}");
}

/// What a plan needs beside its example to be short.
const PLAN: &[&str] = &["plan", "heat", "--mesh", "torus:24x12"];

#[test]
fn a_plan_has_every_configuration_best_first_with_its_limit() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let plan = json(&[PLAN, &["--threads", "2", "--out", out, "--json"]].concat());
    let rows = plan["configurations"].as_array().unwrap();
    let times: Vec<f64> = rows.iter().map(|row| row["ns_per_update"].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] > 0.0, "{times:?}");
    for order in ["morton/blocked:512", "morton/blocked:4096", "morton/color", "morton/jacobi", "morton/priority-dag"] {
        for threads in [1, 2] {
            let is_it = |row: &&Value| row["order"] == order && row["threads"] == threads && row["hosts"] == 1;
            let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("no {order} on {threads}: {plan}"));
            let terms = row["terms_s"].as_object().unwrap();
            let limit = row["limit"].as_str().unwrap();
            let sum: f64 = terms.values().map(|s| s.as_f64().unwrap()).sum();
            assert!(terms.values().all(|s| s.as_f64() <= terms[limit].as_f64()), "{row}");
            let step_s = row["step_s"].as_f64().unwrap();
            assert!((sum * 10.0 / step_s - 1.0).abs() < 1e-9 && row["rounds"] == 10, "{row}");
            assert!(row["measured_ns_per_update"].is_null() && row["error"].is_null(), "{row}");
        }
    }
    assert_eq!(names(folder.path()), ["roofline.png", "roofline.svg"]);
    let [png, svg] = ["roofline.png", "roofline.svg"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
    assert!(png.starts_with(b"\x89PNG") && svg.starts_with(b"<svg") && svg.ends_with(b"</svg>\n"));
}

#[test]
fn a_plan_measures_beside_what_it_predicts_and_says_how_far_the_choice_is_from_the_best() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let few = ["--order", "blocked", "--threads", "2", "--measure", "--out", out];
    let plan = json(&[PLAN, &few, &["--json"]].concat());
    for row in plan["configurations"].as_array().unwrap() {
        let [predicted, measured, error] =
            ["ns_per_update", "measured_ns_per_update", "error"].map(|key| row[key].as_f64().unwrap());
        assert!((predicted / measured - 1.0 - error).abs() < 1e-9, "{row}");
    }
    let table = good(&[PLAN, &few].concat());
    assert!(table.contains("the choice, morton/blocked:512 on ") && table.contains("% from the best"), "{table}");
    assert!(table.contains("is limited by"), "{table}");
}

#[test]
fn a_plan_says_what_hosts_would_bring_over_a_link() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let of = |link: &str| {
        let hosts = ["--order", "blocked:64", "--threads", "1", "--share-among", "2,4", "--link", link, "--out", out];
        let plan = json(&[PLAN, &hosts, &["--json"]].concat());
        let rows = plan["configurations"].as_array().unwrap().clone();
        [1, 2, 4].map(|hosts| rows.iter().find(|row| row["hosts"] == hosts).unwrap().clone())
    };
    let [_, quick, _] = of("100Gbit,0us");
    let [alone, slow, slower] = of("1Gbit,100ms");
    let ns = |row: &Value| row["ns_per_update"].as_f64().unwrap();
    assert!(ns(&quick) < ns(&slow) && ns(&alone) < ns(&slow), "{alone} {quick} {slow}");
    assert_eq!([&slow["limit"], &slower["limit"]], ["latency", "latency"]);
    // Packed values take less of a slow link; messages as small as these go out plain unless that is asked for.
    let on_slow = |how: &str| {
        let hosts = ["--order", "jacobi", "--threads", "1", "--share-among", "2", "--link", "1kbit,0us", "--out", out];
        let plan = json(&[PLAN, &hosts, &["--compress", how, "--json"]].concat());
        plan["configurations"].as_array().unwrap().iter().find(|row| row["hosts"] == 2).unwrap().clone()
    };
    let [plain, packed, auto] = ["never", "always", "auto"].map(on_slow);
    assert_eq!([&plain["packed"], &packed["packed"], &auto["packed"]], [false, true, false]);
    assert!(ns(&packed) < ns(&plain) && alone["packed"].is_null(), "{plain} {packed}");
    bad(&[PLAN, &["--share-among", "2"]].concat(), "--link");
    bad(&[PLAN, &["--share-among", "2", "--link", "fast"]].concat(), "10Gbit,100us");
    bad(&[PLAN, &["--share-among", "1", "--link", "1Gbit,1us"]].concat(), "--share-among");
}

#[test]
fn a_plan_has_the_cores_and_a_gpu_beside_them_with_the_share_at_which_both_are_equally_busy() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let hybrid = ["--backend", "hybrid", "--order", "color", "--threads", "2", "--measure", "--out", out];
    bad(&[PLAN, &hybrid, &["--precision", "f64"]].concat(), "f32");
    if gpu_or_skip().is_none() {
        return;
    }
    let plan = json(&[PLAN, &hybrid, &["--json"]].concat());
    let rows = plan["configurations"].as_array().unwrap();
    let rows: Vec<&Value> = rows.iter().filter(|row| row["share"].is_number()).collect();
    let row = rows.first().unwrap_or_else(|| panic!("no hybrid: {plan}"));
    assert!((0.01..=0.99).contains(&row["share"].as_f64().unwrap()) && row["threads"] == 2, "{row}");
    let software = adapters()[0].kind == AdapterKind::Software;
    assert!(row["gpu"]["name"] == adapters()[0].name && row["gpu"]["software"] == software, "{row}");
    let terms = row["terms_s"].as_object().unwrap();
    let sum: f64 = terms.values().map(|s| s.as_f64().unwrap()).sum();
    assert!((sum * 10.0 / row["step_s"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{row}");
    assert!(row["measured_ns_per_update"].as_f64() > Some(0.0), "{row}");
    // The others have none, and a GPU that is software is there only if it is named.
    let alone = json(&[PLAN, &["--order", "color", "--threads", "2", "--out", out, "--json"]].concat());
    let has_gpu = |row: &Value| row["gpu"].is_object();
    let is_hard = adapters().iter().any(|gpu| gpu.kind != AdapterKind::Software);
    assert_eq!(alone["configurations"].as_array().unwrap().iter().any(has_gpu), is_hard, "{alone}");
}

#[test]
fn loops_are_predicted_by_their_iterations_and_searches_not_at_all() {
    let folder = TempDir::new().unwrap();
    let graph = ["--mesh", "kronecker:8", "--threads", "1", "--order", "degree/jacobi", "--out"];
    let out = folder.path().to_str().unwrap();
    let plan = json(&[&["plan", "pagerank"], &graph[..], &[out, "--measure", "--json"]].concat());
    let row = &plan["configurations"][0];
    assert!(row["rounds"] == 1 && row["ns_per_update"].as_f64() > Some(0.0), "{row}");
    assert!(row["measured_ns_per_update"].as_f64() > Some(0.0), "{row}");
    bad(&[&["plan", "bfs"], &graph[..], &[out]].concat(), "looks only at what has changed");
    let run = ["run", "bfs", "--mesh", "kronecker:8", "--no-pictures", "--quiet", "--out", out];
    // What nobody has asked for is not talked about.
    assert!(!good(&run).contains("\npredicted"));
}

#[test]
fn auto_chooses_where_a_run_goes_and_never_what_comes_out() {
    let [plain, auto] = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let [plain, auto] = [small(plain.path(), &[]), small(auto.path(), &["--auto"])];
    assert_eq!((&plain["digest"], &plain["order"]), (&auto["digest"], &auto["order"]));
    // What it took to choose is known from now on.
    assert!(auto["predicted_s"].as_f64().is_some_and(|s| s > 0.0) && auto["limit"].is_string(), "{auto}");
    let folder = TempDir::new().unwrap();
    let ended = meshweft(&[&["run"], SMALL, &["--auto", "--out", folder.path().to_str().unwrap()]].concat());
    assert!(ended.code == 0 && ended.err.contains("ns an update predicted, limited by"), "{}", ended.err);
    assert!(ended.out.contains("\npredicted  ") && ended.out.contains("(limit: "), "{}", ended.out);
    bad(&[&["run"], SMALL, &["--auto", "--backend", "serial"]].concat(), "leave out --backend");
}

#[test]
fn bench_of_all_writes_tables_plots_and_figures_that_parse() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a/perf");
    let ended = meshweft(&["bench", "--all", "--tiny", "--out", out.to_str().unwrap()]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(
        ended.err.contains("tolerance, box:6, conjugate gradients") && ended.out.contains("measurements in"),
        "{}",
        ended.err
    );
    let plots = ["bandwidth.svg", "methods.svg", "numberings.svg", "orders.svg", "sizes.svg", "tolerance.svg"];
    let mut all = [&plots[..], &["results.csv", "results.md", "tolerance.csv"]].concat();
    all.sort_unstable();
    assert_eq!(names(&out), all);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    // On a machine of one core there is one number of threads.
    for (name, least) in [("results.csv", 25), ("tolerance.csv", 13)] {
        let text = read(name);
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let columns = lines.next().unwrap();
        let lines: Vec<_> = lines.collect();
        assert!(lines.len() >= least && lines.iter().all(|line| line.len() == columns.len()), "{name}: {text}");
        let words = ["example", "mesh", "method", "order", "precision", "digest"];
        for (k, column) in columns.iter().enumerate().filter(|(_, column)| !words.contains(column)) {
            let number = |line: &Vec<&str>| line[k].parse().is_ok_and(|x: f64| x.is_finite() && x > 0.0);
            assert!(lines.iter().all(number), "{column} in {name}: {text}");
        }
    }
    let page = read("results.md");
    for name in plots {
        assert!(page.contains(&format!("]({name})")), "{name}: {page}");
        let plot = read(name);
        assert!(plot.starts_with("<svg ") && plot.ends_with("</svg>\n") && !plot.contains("NaN"), "{name}: {plot}");
        assert_eq!(plot.matches("<text").count(), plot.matches("</text>").count(), "{name}");
    }
    for table in page.split("\n\n").filter(|part| part.starts_with('|')) {
        let widths: Vec<usize> = table.lines().map(|line| line.matches('|').count()).collect();
        assert!(widths.len() > 2 && widths.iter().all(|&width| width == widths[0]), "{table}");
    }
    assert!(
        page.contains("| random/color |") && page.contains("| f64 |") && page.contains("| morton/jacobi |"),
        "{page}"
    );
}

#[test]
fn info_describes_mesh_and_graph() {
    let report = json(&["info", "box:4", "--json"]);
    assert_eq!((report["vertices"].as_u64(), report["cells"]["tet"].as_u64()), (Some(64), Some(162)));
    assert_eq!((report["components"].as_u64(), report["boundary_vertices"].as_u64()), (Some(1), Some(56)));
    let cut = |curve: &str, parts: &str| report["curves"][curve]["cut_share"][parts].as_f64().unwrap();
    assert!(cut("hilbert", "2") < cut("hilbert", "64"));
    assert!(cut("morton", "2") > 0.0);
    let text = good(&["info", "bar:3"]);
    assert!(text.contains("left (2D") && text.contains("tets") && text.contains("reach, hilbert"), "{text}");
}

#[cfg(unix)]
#[test]
fn meshes_come_through_pipes_without_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    good(&["convert", "box:3", &path("a.vtu")]);
    let pipe = path("63");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let info = |bytes: Vec<u8>| {
        let pipe = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(pipe, bytes));
        let ended = meshweft(&["info", &path("63")]);
        writer.join().unwrap().unwrap();
        ended.out + &ended.err
    };
    let told = info(std::fs::read(path("a.vtu")).unwrap());
    assert!(told.contains("48 tets"), "{told}");
    let told = info(b"1 2\n".to_vec());
    assert!(told.contains("neither an extension nor the first bytes"), "{told}");
}

#[test]
fn convert_writes_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    assert!(good(&["convert", "box:3", &to("a.vtu")]).contains("27 points, 48 tets"));
    let (a, b) = (io::read(Path::new(&to("a.vtu"))).unwrap(), meshweft_mesh::generate::generate("box:3", 1).unwrap());
    assert_eq!(a, b);
    assert!(good(&["convert", "sheet:3", &to("a.ply")]).contains("8 triangles"));
    assert!(good(&["convert", &to("a.ply"), &to("a.obj")]).contains("9 points"));
    assert_eq!(names(folder.path()), ["a.obj", "a.ply", "a.vtu"]);

    bad(&["convert", &to("a.vtu"), &to("b.ply")], "`meshweft convert --surface`");
    assert!(good(&["convert", &to("a.vtu"), &to("b.ply"), "--surface"]).contains("26 points, 48 triangles"));
    assert_eq!(io::read(Path::new(&to("b.ply"))).unwrap(), b.skin());
    bad(&["convert", "chain:5", &to("c.ply"), "--surface"], "chain:5 has no surface");
}

#[test]
fn what_a_file_loses_is_said_and_a_file_without_points_refused() {
    let folder = tempfile::tempdir().unwrap();
    let header = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n\
        element face 1\nproperty list uchar int vertex_indices\nelement camera 1\nproperty float zoom\nend_header\n";
    let ply = write(&folder, "a.ply", &format!("{header}0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n7\n"));
    let obj = folder.path().join("a.obj");
    for arguments in [&["info", &*ply][..], &["convert", &ply, obj.to_str().unwrap()]] {
        let ended = meshweft(arguments);
        assert_eq!(ended.err, format!("note: {ply}:16: elements \"camera\" (1) are left out\n"));
        assert_eq!(ended.code, 0);
    }
    let empty = write(&folder, "empty.obj", "");
    let says = format!("{empty} holds no points");
    bad(&["info", &empty], &says);
    bad(&["run", "heat", "--mesh", &empty], &says);
    bad(&["bench", "heat", "--mesh", &empty], &says);
    bad(&["convert", &empty, obj.to_str().unwrap()], &says);
}

#[test]
fn names_in_a_file_do_not_reach_the_terminal_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("\u{1b}[31m{}", "x".repeat(5000));
    let header = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n";
    let ply = write(&folder, "a.ply", &format!("{header}property float {name}\nend_header\n0 0 0 1\n"));
    let text = good(&["info", &ply]);
    let line = text.lines().find(|line| line.starts_with("point fields")).unwrap();
    assert!(line.contains("\\u{1b}[31mxxx") && line.len() < 120 && !text.contains('\u{1b}'), "{line:?}");
    let ply = write(&folder, "b.ply", &format!("{header}property {name} a\nend_header\n0 0 0 1\n"));
    let ended = meshweft(&["info", &ply]);
    assert!(ended.err.contains("\\u{1b}[31mxxx") && ended.err.len() < 300, "{:?}", ended.err);
}

#[test]
#[cfg(target_os = "linux")]
fn a_mesh_may_have_a_name_that_is_not_utf_8() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let [obj, vtu] = [&b"\xff.obj"[..], b"\xfe.vtu"].map(|name| folder.path().join(OsStr::from_bytes(name)));
    std::fs::write(&obj, "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n").unwrap();
    let out = folder.path().join("out");
    let run = |words: &[&OsStr]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let arguments = [OsString::from("meshweft")].into_iter().chain(words.iter().map(OsString::from));
        let code = cli::run(arguments, &mut Console::new(&mut out, &mut err));
        assert_eq!(code, 0, "{}", String::from_utf8_lossy(&err));
    };
    run(&["info".as_ref(), obj.as_os_str()]);
    run(&["convert".as_ref(), obj.as_os_str(), vtu.as_os_str()]);
    let words = ["run", "heat", "--no-pictures", "--quiet", "--steps", "1", "--mesh"].map(OsStr::new);
    run(&[&words[..], &[vtu.as_os_str(), "--out".as_ref(), out.as_os_str()]].concat());
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
    assert_eq!(run(&["--until", "0.31"])["steps"], 4);
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
    assert!(page.contains("meshweft run wave") && page.contains("until"), "{page}");
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
    let code = cli::run(["meshweft", "list"], &mut Console::new(&mut Closed, &mut err));
    assert_eq!((code, String::from_utf8(err).unwrap().as_str()), (0, ""));
}

#[test]
fn a_new_package_has_the_program_that_is_tested_here_and_bad_names_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("my-model");
    let said = good(&["new", path.to_str().unwrap()]);
    assert!(said.contains("cargo run --release -- run my-model"), "{said}");
    assert_eq!(names(&path), [".gitignore", "Cargo.toml", "src"]);
    let main = std::fs::read_to_string(path.join("src/main.rs")).unwrap();
    assert!(main.contains("name: \"my-model\"") && !main.contains("NAME"));
    let package = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
    assert!(package.contains("/runtime\"") && !package.contains("MESHWEFT"), "{package}");
    bad(&["new", path.to_str().unwrap()], "cannot make the folder");
    bad(&["new", "My Model"], "is no name of a package");
    bad(&["new", folder.path().join("other").to_str().unwrap(), "--meshweft", "/"], "does not hold the sources");
    // The same text, compiled: its acceptance test passes.
    for check in <crate::template::Diffusion as meshweft_examples::Example>::checks().unwrap() {
        assert!(check.passes(), "{}: {}", check.name, check.measured);
    }
}
