//! Predicted and measured over all configurations, and which one a model chooses: as Engelhardt, Hung and So compare their roofline with
//! what they measure ("Performance-driven System Generation for Distributed Vertex-Centric Graph Processing on Multi-FPGA Systems", 2018).

use super::border::{Beta, Numbering, beta};
use super::page::{Ask, Page, median};
use crate::bench::pages::markdown;
use anyhow::{Context, Result};
use meshweft_command::cli::Scale;
use meshweft_mesh::{Graph, generate};
use meshweft_picture::plot::{Axis, Join, Lines, Series, Spacing};
use serde_json::Value;

/// What is predicted: an example, and its meshes.
const PROBLEMS: [(&str, &[&str]); 4] = [
    ("heat", &["box:22", "box:46", "box:100"]),
    ("spring", &["box:22", "box:46", "box:100"]),
    ("cloth", &["sheet:100", "sheet:316"]),
    ("pagerank", &["uniform:65536", "kronecker:16", "kronecker:18"]),
];

/// One configuration.
struct Point {
    name: String,
    predicted: f64,
    measured: f64,
    limit: String,
}

fn point(row: &Value) -> Option<Point> {
    let threads = row["threads"].as_u64()?;
    let place = match row["hosts"].as_u64()? {
        1 => meshweft_command::cli::text::counted(threads as usize, "thread", "threads"),
        hosts => format!("{hosts} hosts"),
    };
    Some(Point {
        name: format!("{} on {place}", row["order"].as_str()?),
        predicted: row["ns_per_update"].as_f64()?,
        measured: row["measured_ns_per_update"].as_f64()?,
        limit: row["limit"].as_str()?.to_string(),
    })
}

/// Within which predictions are to be.
const BAND: f64 = 0.15;

/// The tables of choices and borders, and the plot of all configurations.
pub(super) fn page(scale: Scale, ask: Ask) -> Result<Page> {
    let folder = tempfile::tempdir().context("no folder for the files of a plan")?;
    let folder = folder.path().to_string_lossy();
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    let problems: &[(&str, &[&str])] = if scale == Scale::Tiny { &[("heat", &["sheet:12"])] } else { &PROBLEMS };
    for (color, &(example, meshes)) in problems.iter().enumerate() {
        let mut places = Vec::new();
        for &mesh in meshes {
            let set = super::super::sweeps_alone(example)
                .iter()
                .flat_map(|(name, value)| ["--set".into(), format!("{name}={value}")]);
            let set: Vec<String> = set.collect();
            let words = ["plan", example, "--mesh", mesh, "--fresh", "--measure", "--json", "--out", &folder];
            let plan = ask(&words.into_iter().chain(set.iter().map(String::as_str)).collect::<Vec<_>>())?;
            let points: Vec<Point> = plan["configurations"]
                .as_array()
                .context("a plan has configurations")?
                .iter()
                .filter_map(point)
                .collect();
            rows.push(choice(example, mesh, &points).with_context(|| format!("{example} on {mesh} was not measured"))?);
            places.extend(points.iter().map(|point| [point.predicted, point.measured]));
        }
        places.sort_by(|a, b| a[0].total_cmp(&b[0]));
        series.push(Series { name: example.to_string(), color, join: Join::Nothing, dots: true, points: places });
    }
    let ends = series.iter().flat_map(|s| &s.points).fold([f64::INFINITY, 0.0], |[a, b], p| [p[0].min(a), p[0].max(b)]);
    for (name, times, join) in [
        ("as predicted", 1.0, Join::Line),
        ("15 % more", 1.0 + BAND, Join::Dashes),
        ("15 % less", 1.0 - BAND, Join::Dashes),
    ] {
        let points = ends.iter().map(|&x| [x, times * x]).collect();
        series.push(Series { name: name.to_string(), color: 6, join, dots: false, points });
    }
    let plot = Lines {
        title: "Measured over predicted, all configurations",
        subtitle: "each dot an order, size of blocks and number of threads of one problem".into(),
        x: Axis { label: "predicted, ns an update", spacing: Spacing::Log },
        y: Axis { label: "measured, ns an update", spacing: Spacing::Log },
        series,
    };
    let head = [
        "problem",
        "configurations",
        "median error",
        "within 15 %",
        "limits",
        "chosen",
        "takes, ns",
        "the best",
        "takes, ns",
        "from the best",
    ];
    let text = markdown(head.map(str::to_string).to_vec(), rows.into_iter()) + &off_board(scale)?;
    Ok(Page { text, plots: vec![("plans.svg", plot.draw())] })
}

/// The line of a problem: how far off its predictions are, and what is chosen by them.
fn choice(example: &str, mesh: &str, points: &[Point]) -> Option<Vec<String>> {
    let chosen = points.iter().min_by(|a, b| a.predicted.total_cmp(&b.predicted))?;
    let best = points.iter().min_by(|a, b| a.measured.total_cmp(&b.measured))?;
    let errors: Vec<f64> = points.iter().map(|point| (point.predicted / point.measured - 1.0).abs()).collect();
    let within = errors.iter().filter(|&&error| error <= BAND).count();
    let mut limits: Vec<(&str, usize)> = Vec::new();
    for point in points {
        match limits.iter_mut().find(|(limit, _)| *limit == point.limit) {
            Some((_, count)) => *count += 1,
            None => limits.push((&point.limit, 1)),
        }
    }
    let limits: Vec<String> = limits.into_iter().map(|(limit, count)| format!("{limit} {count}")).collect();
    Some(vec![
        format!("`{example} {mesh}`"),
        points.len().to_string(),
        format!("{:.0} %", 100.0 * median(errors)),
        within.to_string(),
        limits.join(", "),
        chosen.name.clone(),
        format!("{:.2}", chosen.measured),
        best.name.clone(),
        format!("{:.2}", best.measured),
        format!("{:.0} %", 100.0 * (chosen.measured / best.measured - 1.0)),
    ])
}

/// The share of messages that leaves a board: (n − 1) / n if each goes anywhere, beside the cut of parts that were made with care.
fn off_board(scale: Scale) -> Result<String> {
    let specs = if scale == Scale::Tiny {
        ["kronecker:6", "uniform:64", "box:4"]
    } else {
        ["kronecker:17", "uniform:131072", "box:80"]
    };
    let head = [
        "boards",
        "their (n − 1) / n",
        &format!("`{}`", specs[0]),
        &format!("`{}`", specs[1]),
        &format!("`{}`", specs[2]),
    ];
    let head = head.map(str::to_string).to_vec();
    let graphs = specs.iter().map(|spec| -> Result<Graph> {
        let mesh = generate::generate(spec, 1)?;
        let graph = Graph::from_cells(&mesh)?;
        let numbering = if spec.starts_with("box") { Numbering::Curve } else { Numbering::High };
        Ok(graph.permuted(&numbering.of(&mesh, &graph)))
    });
    let graphs = graphs.collect::<Result<Vec<_>>>()?;
    let row = |n: usize| -> Result<Vec<String>> {
        let betas = graphs.iter().map(|graph| beta(graph, &vec![1.0; n])).collect::<Result<Vec<Beta>>>()?;
        let mut row = vec![n.to_string(), format!("{:.1} %", 100.0 * (n - 1) as f64 / n as f64)];
        row.extend(betas.iter().map(|beta| format!("{:.1} → {:.1} %", 100.0 * beta.edges, 100.0 * beta.vertices)));
        Ok(row)
    };
    let rows = [1, 2, 3, 4, 8].into_iter().map(row).collect::<Result<Vec<_>>>()?;
    Ok(markdown(head, rows.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_judged_by_what_was_measured() {
        let point = |name: &str, predicted: f64, measured: f64| Point {
            name: name.into(),
            predicted,
            measured,
            limit: if predicted < 2.0 { "compute" } else { "memory" }.into(),
        };
        let points = [point("a", 1.0, 1.1), point("b", 1.2, 1.0), point("c", 4.0, 2.0)];
        let row = choice("heat", "box:3", &points).unwrap();
        let expected = ["`heat box:3`", "3", "20 %", "1", "compute 2, memory 1", "a", "1.10", "b", "1.00", "10 %"];
        assert_eq!(row, expected);
        assert!(choice("heat", "box:3", &[]).is_none());
    }
}
