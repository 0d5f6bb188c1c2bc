//! What `bench --all` writes: a page of tables, plots, and the same figures as `.csv`.

use super::tolerance::{Arrival, GAUSS_SEIDEL, STIFFNESS, TOLERANCES, Way};
use anyhow::{Context, Result};
use meshweft::Order;
use meshweft_command::Precision;
use meshweft_command::cli::bench::Report;
use meshweft_command::cli::probe::{self, Machine};
use meshweft_command::cli::system::processor;
use meshweft_command::cli::{Scale, text};
use meshweft_mesh::{Curve, io};
use meshweft_picture::plot::{Axis, Bars, Join, Lines, Panel, Series, Spacing};
use std::fmt::{Display, Write as _};
use std::path::Path;

/// Everything that was measured.
pub(super) struct Results {
    pub(super) scale: Scale,
    /// The mesh of the center of the star.
    pub(super) center: String,
    /// For each number of threads, the probe before all measurements and that after them.
    pub(super) machines: Vec<[Machine; 2]>,
    pub(super) reports: Vec<Report>,
    /// On the mesh of the center.
    pub(super) arrivals: Vec<Arrival>,
    /// Measurements for which there was not enough memory.
    pub(super) skipped: Vec<String>,
}

/// The command that measures this.
fn command(scale: Scale) -> &'static str {
    match scale {
        Scale::Full => "meshweft bench --all",
        Scale::Quick => "meshweft bench --all --quick",
        Scale::Tiny => "meshweft bench --all --tiny",
    }
}

/// Writes all files and returns their names.
pub(super) fn write(folder: &Path, results: &Results) -> Result<Vec<String>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let files = [
        ("results.md", page(results)),
        ("results.csv", measurements(results)),
        ("tolerance.csv", arrivals(results)),
        ("sizes.svg", sizes(results).draw().svg()),
        ("bandwidth.svg", bandwidth(results).draw().svg()),
        ("orders.svg", orders(results).draw().svg()),
        ("numberings.svg", numberings(results).draw().svg()),
        ("tolerance.svg", tolerance(results).draw().svg()),
        ("methods.svg", methods(results).draw().svg()),
    ];
    for (name, text) in &files {
        io::replace(&folder.join(name), |file| file.write_all(text.as_bytes()))?;
    }
    Ok(files.into_iter().map(|(name, _)| name.to_string()).collect())
}

/// Nothing for what is not known.
fn optional(x: Option<impl Display>) -> String {
    x.map(|x| x.to_string()).unwrap_or_default()
}

/// One line a measurement.
fn measurements(results: &Results) -> String {
    let mut text = String::from(
        "example,mesh,vertices,directed_edges,order,tasks,precision,threads,trials,rounds,ns_per_update,\
         ns_per_update_min,ns_per_update_max,ns_per_edge,moved_bytes_per_update,gb_per_s,read_share,setup_s,\
         setup_rounds,bytes_per_vertex,bytes_per_edge,digest\n",
    );
    for r in &results.reports {
        let words: Vec<String> = vec![
            r.example.into(),
            r.mesh.clone(),
            r.vertices.to_string(),
            r.directed_edges.to_string(),
            r.order.to_string(),
            r.tasks.to_string(),
            r.precision.into(),
            r.threads.to_string(),
            r.trials.to_string(),
            r.rounds.to_string(),
            r.ns_per_update.to_string(),
            r.ns_per_update_min.to_string(),
            r.ns_per_update_max.to_string(),
            r.ns_per_edge.to_string(),
            r.moved_bytes_per_update.to_string(),
            r.gb_per_s.to_string(),
            optional(r.read_share),
            r.total_setup_s().to_string(),
            r.setup_rounds.to_string(),
            r.bytes_per_vertex.to_string(),
            r.bytes_per_edge.to_string(),
            r.digest.clone(),
        ];
        let _ = writeln!(text, "{}", words.join(","));
    }
    text
}

/// One line for each tolerance that was reached.
fn arrivals(results: &Results) -> String {
    let mut text = String::from("mesh,method,order,precision,threads,tolerance,rounds,seconds\n");
    for a in &results.arrivals {
        let (way, mesh) = (&a.way, &results.center);
        let what = format!("{mesh},{},{},{},{}", way.name, way.order, way.precision.name(), a.threads);
        for (tolerance, (rounds, seconds)) in reached(a) {
            let _ = writeln!(text, "{what},{tolerance:e},{rounds},{seconds}");
        }
    }
    text
}

fn reached(arrival: &Arrival) -> impl Iterator<Item = (f64, (usize, f64))> {
    TOLERANCES.into_iter().zip(arrival.reached).filter_map(|(tolerance, reached)| Some((tolerance, reached?)))
}

/// The page of tables.
fn page(results: &Results) -> String {
    let center = &results.center;
    let mut page = format!(
        "# Results\n\nWritten by `{}` of version {}; [README.md](README.md) says how to read and repeat it. Do not edit.\n\
         The same figures, with more digits, are in [results.csv](results.csv) and [tolerance.csv](tolerance.csv).\n\n\
         Where nothing else is said: order `{}`, `f32`, mesh `{center}`.\n\n",
        command(results.scale),
        env!("CARGO_PKG_VERSION"),
        Order::default(),
    );
    page += &machine(results);
    page += "## Sizes\n\n![time of an update over size](sizes.svg)\n\n![traffic over size](bandwidth.svg)\n\n";
    let at = |r: &&Report| r.is_of(Order::default()) && r.precision == "f32";
    page += &table(&["mesh"], results.reports.iter().filter(at), |r| vec![r.mesh.clone()]);
    let at = |r: &&Report| r.mesh == *center && r.order.curve == Curve::default() && r.precision == "f32";
    page += "## Orders\n\n![time of an update by order](orders.svg)\n\n";
    page += &table(&["order", "tasks"], results.reports.iter().filter(at), |r| {
        vec![r.order.to_string(), text::count(r.tasks)]
    });
    let numbered = |r: &&Report| {
        r.mesh == *center
            && [Order::BLOCKED, Order::COLOR].iter().any(|o| r.is_of(o.along(r.order.curve)))
            && r.precision == "f32"
    };
    page += "## Numberings\n\nBlocks of a random numbering touch all others, so that `blocked` has nothing to do at the \
             same time.\n\n![time of an update by numbering](numberings.svg)\n\n";
    page += &table(&["order"], results.reports.iter().filter(numbered), |r| vec![r.order.to_string()]);
    page += "## Precision\n\n";
    let at = |r: &&Report| r.mesh == *center && r.is_of(Order::default());
    page += &table(&["precision"], results.reports.iter().filter(at), |r| vec![r.precision.to_string()]);
    let _ = write!(
        page,
        "## Time to tolerance\n\nOne implicit Euler step of heat on `{center}`, {STIFFNESS} times the explicit limit, from the \
         same start, until the root mean square of the residual is so small a part of the first. `jacobi` is double-buffered, and so is Chebyshev \
         iteration; all others sweep in place, conjugate gradients twice an iteration.\n\n![residual over time, by order](tolerance.svg)\n\n"
    );
    page += &tolerance_table(by_order(results));
    page += "\n![residual over time, by method](methods.svg)\n\n";
    page += &tolerance_table(by_method(results));
    page
}

fn machine(results: &Results) -> String {
    let [before, after] = &results.machines[0];
    let processor = processor().unwrap_or_else(|| "processor unknown".to_string());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cache = before.cache_bytes.map_or(String::new(), |n| format!(", last-level cache {}", probe::bytes(n)));
    let mut text = format!(
        "## Machine\n\n{processor}, {} as the system counts them{cache}. Probes before and after all measurements, arrays \
         of {}; shares of the read are of the better one.\n\n",
        text::counted(cores, "core", "cores"),
        probe::bytes(after.array_bytes)
    );
    let tables: Vec<String> =
        before.gathers.iter().map(|g| format!("gather from {}, M/s", probe::bytes(g.table_bytes))).collect();
    let head = ["threads", "when", "triad, GB/s", "read, GB/s"].map(str::to_string);
    let row = |machine: &Machine, when: &str| {
        let mut row = vec![machine.threads.to_string(), when.to_string()];
        row.extend([machine.triad_gb_per_s, machine.read_gb_per_s].map(|x| format!("{x:.1}")));
        row.extend(machine.gathers.iter().map(|g| format!("{:.0}", 1e-6 * g.reads_per_s)));
        row
    };
    let rows = results.machines.iter().flat_map(|[before, after]| [row(before, "before"), row(after, "after")]);
    text += &markdown([&head[..], &tables].concat(), rows);
    if !results.skipped.is_empty() {
        let _ = write!(text, "Left out for want of memory: {}.\n\n", results.skipped.join("; "));
    }
    text
}

/// A table of measurements; `own` gives the columns that say what is compared.
fn table<'a>(
    names: &[&str],
    reports: impl Iterator<Item = &'a Report>,
    own: impl Fn(&Report) -> Vec<String>,
) -> String {
    let names = names.iter().map(|name| name.to_string());
    let more = [
        "vertices",
        "threads",
        "ns an update (range)",
        "ns an edge",
        "GB/s at least",
        "of read",
        "set-up",
        "in rounds",
        "bytes a vertex",
        "bytes an edge",
    ];
    let head = std::iter::once("example".to_string()).chain(names).chain(more.map(str::to_string)).collect();
    let rows = reports.map(|r| {
        let mut row = vec![r.example.to_string()];
        row.extend(own(r));
        row.extend([
            text::count(r.vertices),
            r.threads.to_string(),
            format!("{:.2} ({:.2}–{:.2})", r.ns_per_update, r.ns_per_update_min, r.ns_per_update_max),
            format!("{:.2}", r.ns_per_edge),
            format!("{:.1}", r.gb_per_s),
            optional(r.read_share.map(|x| format!("{:.0} %", 100.0 * x))),
            text::seconds(r.total_setup_s()),
            text::number(r.setup_rounds.round()),
            format!("{:.0}", r.bytes_per_vertex),
            format!("{:.1}", r.bytes_per_edge),
        ]);
        row
    });
    markdown(head, rows)
}

/// Arrivals by Gauss–Seidel in 32 bits.
fn by_order(results: &Results) -> impl Iterator<Item = &Arrival> {
    results.arrivals.iter().filter(|a| a.way.name == GAUSS_SEIDEL && a.way.precision == Precision::F32)
}

/// Arrivals under the usual order.
fn by_method(results: &Results) -> impl Iterator<Item = &Arrival> {
    results.arrivals.iter().filter(|a| a.way.order == Order::default())
}

fn tolerance_table<'a>(arrivals: impl Iterator<Item = &'a Arrival>) -> String {
    let mut head = ["method", "order", "precision", "threads", "time a round"].map(str::to_string).to_vec();
    head.extend(TOLERANCES.iter().flat_map(|tolerance| [format!("rounds to {tolerance:e}"), "time".to_string()]));
    let rows = arrivals.map(|a| {
        let way = &a.way;
        let mut row = vec![way.name.to_string(), way.order.to_string(), way.precision.name().to_string()];
        row.extend([a.threads.to_string(), text::seconds(a.round_s)]);
        row.extend(a.reached.iter().flat_map(|reached| match reached {
            Some((rounds, seconds)) => [text::count(*rounds), text::seconds(*seconds)],
            None => ["not reached".to_string(), String::new()],
        }));
        row
    });
    markdown(head, rows)
}

/// A table in Markdown.
pub(super) fn markdown(head: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text + "\n"
}

/// Color of each example in plots, by its place here.
const EXAMPLES: [&str; 3] = ["spring", "heat", "cloth"];

/// What is under the title of every plot.
fn subtitle(results: &Results, more: &str) -> String {
    let processor = processor().unwrap_or_else(|| "processor unknown".to_string());
    let threads: Vec<_> = results.machines.iter().map(|m| m[0].threads.to_string()).collect();
    format!("{more}; {processor}, {} threads", threads.join(" and "))
}

fn threads(n: usize) -> String {
    text::counted(n, "thread", "threads")
}

/// What joins the points of so many threads.
fn joined(threads: usize) -> Join {
    if threads == 1 { Join::Dashes } else { Join::Line }
}

/// One line for each example and number of threads, over the number of vertices.
fn over_size(results: &Results, y: impl Fn(&Report) -> f64) -> Vec<Series> {
    let mut series = Vec::new();
    for (color, example) in EXAMPLES.into_iter().enumerate() {
        for [machine, _] in &results.machines {
            let at = |r: &&Report| {
                (r.example, r.threads, r.precision) == (example, machine.threads, "f32") && r.is_of(Order::default())
            };
            let points = results.reports.iter().filter(at).map(|r| [r.vertices as f64, y(r)]).collect();
            let name = format!("{example}, {}", threads(machine.threads));
            series.push(Series { name, color, join: joined(machine.threads), dots: true, points });
        }
    }
    series
}

const VERTICES: Axis = Axis { label: "vertices", spacing: Spacing::Log };

fn sizes(results: &Results) -> Lines {
    Lines {
        title: "Time of an update over the size of the mesh",
        subtitle: subtitle(results, "blocked order, Morton numbering, f32"),
        x: VERTICES,
        y: Axis { label: "ns an update", spacing: Spacing::Log },
        series: over_size(results, |r| r.ns_per_update),
    }
}

fn bandwidth(results: &Results) -> Lines {
    let mut series = over_size(results, |r| r.gb_per_s);
    let ends = series.iter().flat_map(|s| &s.points).fold([f64::INFINITY, 0.0], |[a, b], p| [p[0].min(a), p[0].max(b)]);
    for [before, after] in &results.machines {
        let read = before.clone().or_better(after).read_gb_per_s;
        let name = format!("read probe, {}", threads(before.threads));
        let points = ends.iter().map(|&x| [x, read]).collect();
        series.push(Series { name, color: 6, join: joined(before.threads), dots: false, points });
    }
    Lines {
        title: "Bytes that a round must move, over its time",
        subtitle: subtitle(results, "above the probe: the mesh stays in a cache"),
        x: VERTICES,
        y: Axis { label: "GB/s at least", spacing: Spacing::Linear },
        series,
    }
}

/// Bars of `spring` and `heat` at the center: one for each number of threads in each group.
fn bars(results: &Results, names: &[String], of: impl Fn(&Report, usize) -> bool) -> Vec<Panel> {
    let counts: Vec<usize> = results.machines.iter().map(|m| m[0].threads).collect();
    let value = |example: &str, threads: usize, i: usize| {
        let at = |r: &&Report| {
            (r.example, r.threads, r.precision) == (example, threads, "f32") && r.mesh == results.center && of(r, i)
        };
        results.reports.iter().find(at).map_or(f64::NAN, |r| r.ns_per_update)
    };
    let group = |example: &str, i: usize| counts.iter().map(|&threads| value(example, threads, i)).collect();
    let panel = |example: &&str| Panel {
        heading: format!("{example}, {}", results.center),
        groups: names.iter().enumerate().map(|(i, name)| (name.clone(), group(example, i))).collect(),
    };
    EXAMPLES[..2].iter().map(panel).collect()
}

fn legend(results: &Results) -> Vec<String> {
    results.machines.iter().map(|m| threads(m[0].threads)).collect()
}

fn orders(results: &Results) -> Bars {
    let names = Order::ALL.map(|order| order.key.name().to_string());
    Bars {
        title: "Time of an update by order",
        subtitle: subtitle(results, "Morton numbering, f32"),
        label: "ns an update",
        legend: legend(results),
        panels: bars(results, &names, |r, i| r.is_of(Order::ALL[i])),
    }
}

fn numberings(results: &Results) -> Bars {
    let along = |order: Order| [Curve::Morton, Curve::Hilbert, Curve::Random].map(|curve| order.along(curve));
    let all: Vec<Order> = [Order::BLOCKED, Order::COLOR].into_iter().flat_map(along).collect();
    let names: Vec<String> = all.iter().map(Order::to_string).collect();
    Bars {
        title: "Time of an update by numbering",
        subtitle: subtitle(results, "f32"),
        label: "ns an update",
        legend: legend(results),
        panels: bars(results, &names, |r, i| r.is_of(all[i])),
    }
}

fn tolerance(results: &Results) -> Lines {
    residuals(results, "Residual over time: in place against Jacobi", by_order(results), |way| way.order.key.name())
}

fn methods(results: &Results) -> Lines {
    let plain = by_method(results).filter(|a| a.way.precision == Precision::F32);
    residuals(results, "Residual over time by method", plain, |way| way.name)
}

/// On all threads.
fn residuals<'a>(
    results: &Results,
    title: &'static str,
    arrivals: impl Iterator<Item = &'a Arrival>,
    name: impl Fn(&Way) -> &'static str,
) -> Lines {
    let all = results.arrivals.iter().map(|a| a.threads).max().unwrap_or(1);
    let shown = arrivals.filter(|a| a.threads == all).enumerate();
    Lines {
        title,
        subtitle: format!(
            "one implicit step of heat, {STIFFNESS} × the explicit limit, {}, f32, {}",
            results.center,
            threads(all)
        ),
        x: Axis { label: "time, ms", spacing: Spacing::Linear },
        y: Axis { label: "RMS residual over the first", spacing: Spacing::Log },
        series: shown.map(|(color, arrival)| arrival.series(name(&arrival.way), color)).collect(),
    }
}
