//! `meshweft run --copies`.

use super::*;

/// The rows of a table, by the names of its columns.
fn rows(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(path).unwrap();
    let cells = |line: &str| line.split(',').map(str::to_string).collect::<Vec<_>>();
    let mut lines = text.lines().map(cells);
    let head = lines.next().unwrap();
    (head, lines.collect())
}

fn column<'a>((head, rows): &'a (Vec<String>, Vec<Vec<String>>), name: &str) -> Vec<&'a str> {
    let at = head.iter().position(|known| known == name).unwrap_or_else(|| panic!("{name} is in {head:?}"));
    rows.iter().map(|row| row[at].as_str()).collect()
}

#[test]
fn the_row_of_a_copy_is_what_a_run_alone_with_its_settings_comes_to() {
    let (folder, alone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let cloth = ["run", "cloth", "--mesh", "sheet:8", "--steps", "12", "--no-pictures", "--quiet", "--json", "--out"];
    let path = folder.path().to_str().unwrap();
    let vary = ["--vary", "stretch=100:2000:log", "--vary", "pins=corners,side", "--copies", "5", "--every", "5"];
    for (threads, precision) in [("1", "f32"), ("2", "f64"), ("3", "f32")] {
        let how = ["--threads", threads, "--precision", precision];
        let report = json(&[&cloth[..], &[path], &vary, &how].concat());
        assert_eq!((report["copies"].as_u64(), report["steps"].as_u64()), (Some(5), Some(60)));
        assert_eq!(names(folder.path()), ["cloth.csv", "cloth.history.csv"]);
        let table = rows(&folder.path().join("cloth.csv"));
        assert_eq!(table.0[..5], ["copy", "stretch", "pins", "steps", "time_s"]);
        assert_eq!(column(&table, "copy"), ["0", "1", "2", "3", "4"]);
        assert_eq!(column(&table, "pins"), ["corners", "side", "corners", "side", "corners"]);
        let stretch = column(&table, "stretch");
        assert_eq!((stretch[0], stretch[4], table.1.len()), ("100", "2000", 5));
        let (digests, mut seen) = (column(&table, "digest"), Vec::new());
        let history = std::fs::read_to_string(folder.path().join("cloth.history.csv")).unwrap();
        let mut lines = history.lines();
        assert!(lines.next().unwrap().starts_with("copy,step,time_s,kinetic energy (J),"));
        for k in 0..5 {
            let set = [format!("stretch={}", stretch[k]), format!("pins={}", column(&table, "pins")[k])];
            let set = ["--set", &set[0], "--set", &set[1], "--every", "5", "--precision", precision];
            let single = json(&[&cloth[..], &[alone.path().to_str().unwrap()], &set].concat());
            assert_eq!(single["digest"], digests[k], "copy {k}");
            for (name, metric) in single["metrics"].as_object().unwrap() {
                let value = column(&table, &format!("{name} ({})", metric["unit"].as_str().unwrap()))[k]
                    .parse::<f64>()
                    .unwrap();
                assert_eq!(Some(value), metric["value"].as_f64(), "copy {k}: {name}");
            }
            assert_eq!(column(&table, "time_s")[k].parse::<f64>().ok(), single["time_s"].as_f64());
            let own = std::fs::read_to_string(alone.path().join("cloth.csv")).unwrap();
            own.lines().skip(1).for_each(|line| assert_eq!(lines.next().unwrap(), format!("{k},{line}")));
            seen.push(digests[k]);
        }
        assert_eq!(lines.next(), None);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 5, "what is varied has an effect");
        let stretch = &report["metrics"]["stretch energy"];
        let values: Vec<f64> = column(&table, "stretch energy (J)").iter().map(|x| x.parse().unwrap()).collect();
        assert_eq!(stretch["least"].as_f64(), values.iter().copied().reduce(f64::min));
        assert_eq!(stretch["most"].as_f64(), values.iter().copied().reduce(f64::max));
    }
}

#[test]
fn a_seed_varies_the_mesh_and_a_table_gives_every_copy_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let spring = ["run", "spring", "--mesh", "random:60", "--steps", "4", "--quiet", "--no-pictures"];
    let spring = [&spring[..], &["--json", "--out", out.to_str().unwrap()]].concat();
    let csv = write(&folder, "copies.csv", "seed,damping\n5,0.5\n9,2\n");
    json(&[&spring[..], &["--vary", &csv]].concat());
    let table = rows(&out.join("spring.csv"));
    let digests: Vec<String> = column(&table, "digest").into_iter().map(str::to_string).collect();
    for (k, [seed, damping]) in [["5", "damping=0.5"], ["9", "damping=2"]].into_iter().enumerate() {
        assert_eq!(json(&[&spring[..], &["--seed", seed, "--set", damping]].concat())["digest"], *digests[k]);
    }
    assert_ne!(digests[0], digests[1]);
    // A case file has the same, and the same files of a run before are gone.
    let case = write(&folder, "case.toml", "copies = 3\n[vary]\ndamping = \"1:2\"\nseed = 7\n");
    json(&[&spring[..], &["--case", &case]].concat());
    let table = rows(&out.join("spring.csv"));
    assert_eq!((column(&table, "damping"), column(&table, "seed")), (vec!["1", "1.5", "2"], vec!["7"; 3]));
    assert_eq!(names(&out), ["spring.csv"]);
}

#[test]
fn each_copy_has_its_own_end_and_one_that_diverges_leaves_the_others_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let heat = ["run", "heat", "--mesh", "torus:12x6", "--no-pictures", "--quiet", "--out", path];
    let wild = ["--steps", "500", "--set", "method=explicit", "--vary", "dt=0,1e12,0.01"];
    let text = good(&[&heat[..], &wild].concat());
    assert!(text.contains("diverged  1 copy: see the column error"), "{text}");
    let table = rows(&folder.path().join("heat.csv"));
    let (errors, steps) = (column(&table, "error"), column(&table, "steps"));
    assert!(
        errors[0].is_empty() && errors[2].is_empty() && errors[1].contains("the run diverged: temperature of vertex")
    );
    assert_eq!((steps[0], steps[2], column(&table, "hottest (K)")[1]), ("500", "500", "NaN"));
    good(&[&heat[..], &["--until", "0.3", "--vary", "dt=0.1,0.05"]].concat());
    assert_eq!(column(&rows(&folder.path().join("heat.csv")), "steps"), ["3", "6"]);
    good(&[&heat[..], &["--steps", "40", "--stop", "hottest<1e4", "--vary", "dt=0.1,0.05"]].concat());
    assert_eq!(column(&rows(&folder.path().join("heat.csv")), "steps"), ["1", "1"]);
    let text = good(&[&heat[..], &["--steps", "3", "--verify", "--copies", "2", "--threads", "2"]].concat());
    assert!(text.contains("verified  2 copies equal the serial oracle bit for bit; 0 failed a check"), "{text}");
}

#[test]
fn parts_on_several_hosts_have_the_rows_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let sweep = |more: &[&str]| {
        let scene =
            ["run", "heat", "--mesh", "sheet:9", "--steps", "3", "--set", "diffusivity=1e-5..1e-3:5", "--no-pictures"];
        good(&[&scene[..], &["--out", out.to_str().unwrap()], more].concat())
    };
    // What differs between two runs is how long they took.
    let rows = |path: &str| -> Vec<String> {
        let text = std::fs::read_to_string(out.join(path)).unwrap();
        let without = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            [&cells[..cells.len() - 3], &cells[cells.len() - 2..]].concat().join(",")
        };
        text.lines().skip(1).map(without).collect()
    };
    sweep(&[]);
    let whole = rows("heat.csv");
    assert_eq!(whole.len(), 5);
    assert!(sweep(&["--part", "1/2"]).contains("copies   2"));
    sweep(&["--part", "2/2"]);
    let parts = ["1", "2"].map(|part| rows(&format!("part-{part}-of-2/heat.csv"))).concat();
    assert_eq!(parts, whole);
}

#[test]
fn pictures_show_copies_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let small = ["--picture-size", "160x120", "--film-size", "96x72", "--steps", "4", "--quiet", "--out", path];
    let draw = |copies: &str, threads: &str| {
        good(&[&["run", "heat", "--mesh", "sheet:9", "--copies", copies, "--threads", threads], &small[..]].concat());
        assert_eq!(names(folder.path()), ["heat.csv", "heat.gif", "heat.png"]);
        ["heat.png", "heat.gif"].map(|name| std::fs::read(folder.path().join(name)).unwrap())
    };
    let four = draw("4", "1");
    assert_eq!((&four[0][16..24], &four[1][6..10]), (&[0, 0, 0, 160, 0, 0, 0, 120][..], &[96, 0, 72, 0][..]));
    assert!(four == draw("4", "3"), "threads change no picture");
    assert!(four[0] != draw("1", "1")[0]);
    // Copies of other lengths, of solids, and what has no place at all.
    let spring = ["run", "spring", "--mesh", "box:4", "--vary", "dt=0.1,0.05"];
    good(&[&spring[..], &small].concat());
    assert!(names(folder.path()).contains(&"spring.png".into()));
    good(&[&["run", "bfs", "--mesh", "kronecker:5", "--vary", "source=0,3,5"], &small[..]].concat());
    let table = rows(&folder.path().join("bfs.csv"));
    assert_eq!(column(&table, "source"), ["0", "3", "5"]);
    assert!(!names(folder.path()).contains(&"bfs.png".into()));
}

#[test]
fn copies_that_are_stopped_leave_the_rows_of_those_that_are_done() {
    let folder = tempfile::tempdir().unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut console = Console::new(&mut out, &mut err);
    console.signals.receive(Signal::Terminate);
    let path = folder.path().to_str().unwrap();
    let arguments = [&["meshweft", "run"], SMALL, &["--copies", "4000000000", "--out", path]].concat();
    assert_eq!(cli::run(&PROGRAMS, arguments, &mut console), 143);
    let err = String::from_utf8(err).unwrap();
    assert!(err.contains("SIGTERM: stopped after 0 of 4000000000 copies; their rows are in "), "{err}");
    assert!(String::from_utf8(out).unwrap().contains("0 of 4 000 000 000: stopped"));
}

#[test]
fn copies_that_cannot_be_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, "part.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
    let out = folder.path().join("out");
    let fresh = ["--out", out.to_str().unwrap()];
    for (more, says) in [
        (&["--copies", "3", "--part", "0/3"][..], "write I/N, as in 2/5"),
        (&["--copies", "3", "--part", "1/4"], "of 3 copies there are none in it"),
        (&["--part", "1/4"], "--part is of many copies: add --copies N"),
        (&["--copies", "0"], "0 is not in 1..=4294967295"),
        (&["--copies", "5000000000"], "5000000000 is not in 1..=4294967295"),
        (&["--copies", "2", "--vary", "dtt=1,2"], "unknown setting \"dtt\": did you mean `dt`?"),
        (&["--vary", "dt=1:2"], "add --copies N, or write LOW..HIGH:COUNT"),
        (&["--vary", "dt=2:1", "--copies", "3"], "write the lower end first"),
        (&["--vary", "rounds=-5:1e9", "--copies", "3"], "out of range"),
        (&["--vary", "no.csv"], "no.csv: write NAME=VALUES, or the name of a CSV file"),
        (&["--vary", "seed=1,2", "--mesh", &file], "part.obj is no generator"),
        // More than any machine has, and nothing of it is made.
        (
            &["--vary", "seed=1:5000:5000", "--mesh", "random:100000000", "--threads", "4000"],
            "random:100000000, 4000 at a time: setting up a run needs at least",
        ),
        (&["--copies", "2", "--backend", "gpu"], "take --backend cpu"),
        (&["--copies", "2", "--backend", "auto"], "take --backend cpu"),
        (&["--copies", "2", "--processes", "2"], "leave out --processes, --hosts and --workers"),
        (&["--copies", "2", "--view"], "cannot be used with"),
        (&["--vary", "dt=1,2", "--pieces"], "cannot be used with"),
        (&["--copies", "2", "--checkpoint-every", "never"], "cannot be used with"),
        (&["--copies", "2", "--stop", "residual<1"], "copy 0: unknown metric \"residual\""),
        (&["--vary", "dt=0,1", "--until", "1e300"], "copy 0 dt=0: t = 1000"),
    ] {
        bad(&[&["run", "heat"], more, &fresh].concat(), says);
    }
    assert_eq!(names(folder.path()), ["part.obj"]);
}
