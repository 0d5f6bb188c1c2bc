//! Studies of papers, done again on meshes that take no time.

use super::process::{Start, meshweft};

/// The tables that a study prints, each as rows of cells, and how many plots it wrote.
fn study(name: &str) -> (Vec<Vec<Vec<String>>>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = meshweft();
    command.args(["bench", "--study", name, "--tiny", "--out"]).arg(folder.path().join("a/b"));
    let output = command.env("XDG_CACHE_HOME", folder.path()).ended();
    let (told, said) = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).into();
    assert!(output.status.success(), "{name}: {said}");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
    let tables: Vec<Vec<Vec<String>>> = told
        .split("\n\n")
        .filter(|part| !part.trim().is_empty())
        .map(|table| table.lines().map(cells).collect())
        .collect();
    for table in &tables {
        assert!(table.len() > 2 && table.iter().all(|row| row.len() == table[0].len()), "{name}: {told}");
    }
    assert!(!told.contains("NaN") && !told.contains("inf"), "{name}: {told}");
    let plots: Vec<_> =
        std::fs::read_dir(folder.path().join("a/b")).unwrap().map(|file| file.unwrap().path()).collect();
    for plot in &plots {
        let text = std::fs::read_to_string(plot).unwrap();
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n") && !text.contains("NaN"), "{}", plot.display());
    }
    (tables, plots.len())
}

#[test]
fn a_study_prints_tables_and_draws_plots() {
    // Name, tables, plots.
    for (name, tables, plots) in [("border", 2, 2), ("lists", 1, 1), ("search", 1, 1), ("times", 1, 0), ("plans", 2, 1)]
    {
        let found = study(name);
        assert_eq!((found.0.len(), found.1), (tables, plots), "{name}: {found:?}");
    }
    // The parts of what hosts send are all that they send.
    let rows = study("search").0.remove(0);
    let bytes = |row: &Vec<String>| row[3].replace(' ', "").parse::<u64>().unwrap();
    let of_two: Vec<u64> = rows[2..].iter().filter(|row| row[1] == "2").map(bytes).collect();
    assert!(of_two.len() == 3 && of_two[0] + of_two[1] == of_two[2], "{rows:?}");
}

#[test]
fn a_study_compares_two_uneven_parts_with_one_processor() {
    let (tables, plots) = study("shares");
    assert_eq!((tables.len(), plots), (1, 1));
    for row in &tables[0][2..] {
        let figures: Vec<f64> = row[4..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert!(figures.len() == 4 && figures.iter().all(|x| (0.0..=100.0).contains(x)), "{row:?}");
    }
}

#[test]
fn hosts_have_the_shares_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let mut command = meshweft();
        command.args([
            "run",
            "heat",
            "--mesh",
            "box:9",
            "--order",
            "blocked:16",
            "--steps",
            "3",
            "--no-pictures",
            "--quiet",
            "--json",
        ]);
        command.args(more).arg("--out").arg(folder.path()).ended()
    };
    let shared = super::report(run(&["--processes", "2", "--threads", "1", "--shares", "3,1"]));
    let [first, second] = [0, 1].map(|i| shared["hosts"][i]["vertices"].as_f64().unwrap());
    assert!((2.5..3.6).contains(&(first / second)), "{first} and {second}");
    assert_eq!(shared["digest"], super::report(run(&["--threads", "1"]))["digest"]);
    for (more, said) in [
        (&["--shares", "1,2"][..], "add --processes"),
        (&["--processes", "2", "--shares", "1,2,3"], "for 2 hosts"),
        (&["--processes", "2", "--shares", "1,0"], "above 0"),
        (&["--processes", "2", "--shares", "3,1", "--cut", "bisection"], "equal parts"),
    ] {
        let output = run(more);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "{more:?}: {text}");
    }
}
