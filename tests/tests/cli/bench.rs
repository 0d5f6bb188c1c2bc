//! `meshweft bench`: what it measures, prints and writes.

use super::*;

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
    // Six edges a vertex, each at least an index of two bytes and a weight of four; a temperature in and out, and two more reals in.
    assert!((52.0..300.0).contains(&of("moved_bytes_per_update")), "{report}");
    assert!((of("bytes_per_vertex") / of("bytes_per_edge") - 6.0).abs() < 1e-9, "{report}");
    assert!(of("bytes_per_vertex") < 500.0 && of("setup_rounds") > 0.0, "{report}");
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
