//! `meshweft plan` and `run --auto`: what is predicted.

use super::*;

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

/// A step of conjugate gradients ends by a test; its iterations do not, and would go on until nothing is finite.
#[test]
fn a_plan_tries_iterations_that_do_not_end() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let few = ["--set", "method=cg", "--order", "blocked", "--threads", "1", "--out", out, "--json"];
    let plan = json(&[PLAN, &few].concat());
    assert!(plan["configurations"][0]["ns_per_update"].as_f64().is_some_and(|ns| ns > 0.0), "{plan}");
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
    let told = json(&[&run[..], &["--json"]].concat());
    let why = told["not_predicted"].as_str().unwrap();
    assert!(why.starts_with("not: bfs looks only at what has changed"), "{why}");
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
    // Of a program that makes another mesh of what it is given, pieces are cut off that.
    let cells =
        ["run", "shallow-water", "--mesh", "quads:41x17", "--steps", "3", "--auto", "--no-pictures", "--json", "--out"];
    let told = json(&[&cells[..], &[folder.path().to_str().unwrap()]].concat());
    assert!(told["predicted_s"].as_f64().is_some_and(|s| s > 0.0), "{told}");
    bad(&[&["run"], SMALL, &["--auto", "--backend", "serial"]].concat(), "leave out --backend");
    let serial = small(folder.path(), &["--backend", "serial"]);
    assert!(serial["predicted_s"].is_null() && serial["not_predicted"] == "not: the oracle takes its time", "{serial}");
}
