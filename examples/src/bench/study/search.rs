//! What hosts of a grid send in a breadth-first search, by phase, packed and not; and how long one takes. As Young, Romera, Hauck and
//! Fröning ("Optimizing Communication for a 2D-Partitioned Scalable BFS", 2016) measure data and time by phase and network.

use super::page::{Ask, Page, median, number};
use crate::bench::pages::markdown;
use anyhow::{Context, Result};
use meshweft_command::cli::{Scale, text};
use meshweft_picture::plot::{Bars, Panel};

/// Searches a run: of the first, ids of vertices are a part, which do not change any more.
const SEARCHES: usize = 5;
/// How many hosts there are.
const HOSTS: [&str; 2] = ["2", "4"];
/// What hosts count, and what it is here.
const PHASES: [(&str, &str); 4] = [
    ("lists_of_ids", "column: lists of vertices"),
    ("frontiers", "column: these with their levels"),
    ("offers", "row: whom something is offered, and what"),
    ("predecessors", "row: who offers it"),
];

/// Bytes of a search by phase, as they would be and packed, summed over all hosts.
pub(super) fn bytes(scale: Scale, ask: Ask) -> Result<Page> {
    let meshes: &[&str] = if scale == Scale::Tiny { &["kronecker:9"] } else { &["kronecker:18", "kronecker:20"] };
    let folder = tempfile::tempdir().context("no folder for the files of a run")?;
    let folder = folder.path().to_string_lossy();
    let mut rows = Vec::new();
    let mut panels = Vec::new();
    for &mesh in meshes {
        for hosts in HOSTS {
            let steps = SEARCHES.to_string();
            let run = [
                "run",
                "bfs",
                "--mesh",
                mesh,
                "--processes",
                hosts,
                "--threads",
                "1",
                "--cut",
                "grid",
                "--compress",
                "always",
            ];
            let how = ["--steps", &steps, "--every", &steps, "--quiet", "--json", "--out", &folder];
            let report = ask(&[&run[..], &how].concat())?;
            let of_hosts = report["hosts"].as_array().context("a run of hosts names none")?;
            let sum = |key: &str, i: usize| -> f64 {
                let all = of_hosts.iter().map(|host| host["search"][key][i].as_f64().unwrap_or(0.0));
                all.sum::<f64>() / SEARCHES as f64
            };
            let ids: f64 =
                of_hosts.iter().filter_map(|host| host["search"]["ids"].as_f64()).sum::<f64>() / SEARCHES as f64;
            let phases = PHASES.map(|(key, name)| (name, [sum(key, 0), sum(key, 1)]));
            // Lists are a part of frontiers.
            let all = [0, 1].map(|i| phases[1..].iter().map(|(_, bytes)| bytes[i]).sum());
            for (name, [plain, packed]) in phases.into_iter().chain([("all", all)]).filter(|(_, bytes)| bytes[0] > 0.0)
            {
                let bits = if name == PHASES[0].1 { format!("{:.2}", 8.0 * packed / ids) } else { String::new() };
                rows.push(vec![
                    format!("`{mesh}`"),
                    hosts.to_string(),
                    name.to_string(),
                    text::count(plain as usize),
                    text::count(packed as usize),
                    format!("{:.1} %", 100.0 * (1.0 - packed / plain)),
                    bits,
                ]);
            }
            let group =
                |(name, bytes): (&str, [f64; 2])| (short(name).to_string(), bytes.map(|bytes| 1e-3 * bytes).to_vec());
            let shown = phases[1..].iter().copied().filter(|(_, bytes)| bytes[0] > 0.0);
            panels.push(Panel { heading: format!("{mesh}, {hosts} processes"), groups: shown.map(group).collect() });
        }
    }
    let head = ["graph", "processes", "phase", "bytes as they are", "packed", "fewer", "bits an id"];
    let bars = Bars {
        title: "What hosts send in a search",
        subtitle: "breadth-first search in a grid of hosts, all together, mean of five searches".into(),
        label: "kB a search",
        legend: ["as it is", "packed"].map(str::to_string).to_vec(),
        panels,
    };
    Ok(Page {
        text: markdown(head.map(str::to_string).to_vec(), rows.into_iter()),
        plots: vec![("search.svg", bars.draw())],
    })
}

/// The phase in a word or two.
fn short(phase: &str) -> &str {
    match phase.split_once(": ") {
        Some(("column", _)) => "column: frontier",
        Some((_, "who offers it")) => "row: who offers",
        _ => "row: offers",
    }
}

/// How often processes are started for each line of the table, in turn, and searches of each.
const TURNS: usize = 3;
const TRIALS: &str = "7";

/// Milliseconds of a search, least and median, by how lists are packed.
pub(super) fn times(scale: Scale, ask: Ask) -> Result<Page> {
    let (mesh, turns) = if scale == Scale::Tiny { ("kronecker:9", 1) } else { ("kronecker:18", TURNS) };
    const WAYS: [&str; 3] = ["never", "always", "auto"];
    let mut rows = Vec::new();
    for hosts in HOSTS {
        let mut measured: [(f64, Vec<f64>); 3] = WAYS.map(|_| (f64::INFINITY, Vec::new()));
        for _ in 0..turns {
            for (way, (least, medians)) in WAYS.iter().zip(&mut measured) {
                let run = ["bench", "bfs", "--mesh", mesh, "--processes", hosts, "--threads", "1", "--cut", "grid"];
                let how = ["--compress", way, "--steps", "1", "--trials", TRIALS, "--no-probe", "--json"];
                let report = ask(&[&run[..], &how].concat())?;
                // An update is a vertex in a round: of a search all of them together are what counts.
                let updates = number(&report, "vertices")? * number(&report, "rounds")?;
                *least = least.min(1e-6 * updates * number(&report, "ns_per_update_min")?);
                medians.push(1e-6 * updates * number(&report, "ns_per_update")?);
            }
        }
        let cells = measured.map(|(least, medians)| format!("{least:.0}, {:.0}", median(medians)));
        rows.push([vec![format!("`{mesh}`"), hosts.to_string()], cells.to_vec()].concat());
    }
    let head = ["graph", "processes", "`never`", "`always`", "`auto`"].map(str::to_string).to_vec();
    Ok(Page { text: markdown(head, rows.into_iter()), plots: Vec::new() })
}
