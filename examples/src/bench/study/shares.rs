//! How much faster two uneven parts are than one processor alone, as Gharaibeh, Beltrão Costa, Santos-Neto and Ripeanu
//! predict and measure it ("A Yoke of Oxen and a Thousand Chickens for Heavy Lifting Graph Processing", 2012): S = 1 / (β r /
//! c + α), where the slower processor, which goes over r edges a second alone, has the share α of all edges, a share β of
//! them crosses, and c of those are sent a second.
//!
//! The formula takes it for granted that the other processor is done by then. Here that is not always so, and the part that
//! takes longest counts, as in their makespan: S = 1 / (β r / c + max(α, (1 − α) r / r')).

use super::border::Numbering;
use super::page::{Ask, Page, number};
use crate::bench::pages::markdown;
use anyhow::{Context, Result};
use meshweft_command::cli::Scale;
use meshweft_mesh::{Graph, generate};
use meshweft_picture::plot::{Axis, Join, Lines, Series, Spacing};
use serde_json::Value;

/// A program on a mesh in an order without levels, so that both parts have work all the time.
#[derive(Clone, Copy)]
struct Problem {
    example: &'static str,
    mesh: &'static str,
    order: &'static str,
    numbering: Numbering,
    /// What else it is run with.
    options: &'static [&'static str],
    /// Shares of the bytes that the first processor is asked to have, for half of the edges and more, as theirs: vertices
    /// without edges have bytes too, and come last by degree.
    shares: [f64; 4],
}

const fn pagerank(mesh: &'static str) -> Problem {
    // Few rounds a step, and no tolerance: ranks that have settled are not swept.
    let options = &["--set", "rounds=4", "--set", "tolerance=0", "--steps", "1"];
    Problem {
        example: "pagerank",
        mesh,
        order: "degree/jacobi",
        numbering: Numbering::High,
        options,
        shares: [0.25, 0.35, 0.5, 0.6],
    }
}

const fn heat(mesh: &'static str) -> Problem {
    Problem {
        example: "heat",
        mesh,
        order: "morton/jacobi",
        numbering: Numbering::Curve,
        options: &[],
        shares: [0.5, 0.6, 0.75, 0.9],
    }
}

const PROBLEMS: [Problem; 4] =
    [pagerank("kronecker:16"), pagerank("kronecker:17"), pagerank("kronecker:18"), heat("box:64")];
/// What c is found with: nearly everything crosses.
const CROSSING: Problem = pagerank("uniform:65536x4");

/// The two processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    /// Processes of one thread each, which talk through QUIC on the loopback of this machine.
    Processes,
    /// One thread, and the GPU that is the best here: software, where there is no other.
    Hybrid,
}

impl Pair {
    fn name(self) -> &'static str {
        match self {
            Pair::Processes => "two processes",
            Pair::Hybrid => "a core and a GPU",
        }
    }

    /// Options by which the first processor has the share `alpha`; alone without one.
    fn options(self, alpha: Option<f64>) -> Vec<String> {
        let words = match (self, alpha) {
            (Pair::Processes, None) => "--threads 1".to_string(),
            (Pair::Processes, Some(alpha)) => {
                format!("--processes 2 --threads 1 --compress never --shares {alpha},{:.3}", 1.0 - alpha)
            }
            (Pair::Hybrid, None) => "--threads 1 --precision f32".to_string(),
            (Pair::Hybrid, Some(alpha)) => format!("--backend hybrid --threads 1 --share {:.3}", 1.0 - alpha),
        };
        words.split(' ').map(str::to_string).collect()
    }

    /// Options by which the second does everything, where it is another than the first.
    fn second(self) -> Option<Vec<String>> {
        (self == Pair::Hybrid).then(|| vec!["--backend".into(), "gpu".into()])
    }
}

/// Measures a problem.
fn bench(problem: Problem, options: &[String], ask: Ask) -> Result<Value> {
    let Problem { example, mesh, order, options: own, .. } = problem;
    let fixed = ["bench", example, "--mesh", mesh, "--order", order, "--trials", "7", "--no-probe", "--json"];
    let words: Vec<&str> = fixed.iter().chain(own).copied().chain(options.iter().map(String::as_str)).collect();
    ask(&words)
}

/// Seconds of a round, the median of its trials.
fn round_s(report: &Value) -> Result<f64> {
    Ok(1e-9 * number(report, "ns_per_update")? * number(report, "vertices")?)
}

/// What the two processors take alone, seconds a round.
#[derive(Clone, Copy)]
struct Alone {
    first: f64,
    second: f64,
}

impl Alone {
    fn of(problem: Problem, pair: Pair, ask: Ask) -> Result<Alone> {
        let first = round_s(&bench(problem, &pair.options(None), ask)?)?;
        let second = pair.second().map(|options| round_s(&bench(problem, &options, ask)?)).transpose()?;
        Ok(Alone { first, second: second.unwrap_or(first) })
    }

    /// Seconds of a round of two parts, without what they send.
    fn longest(self, alpha: f64) -> f64 {
        (alpha * self.first).max((1.0 - alpha) * self.second)
    }
}

/// What two processors did together.
struct Together {
    /// The share of the edges that the first indeed had: shares are of bytes that move, in whole tasks.
    alpha: f64,
    /// Values that went between them in a round.
    messages: f64,
    round_s: f64,
}

impl Together {
    /// `graph`: that of the problem, numbered as its order numbers it.
    fn of(problem: Problem, graph: &Graph, pair: Pair, alpha: f64, ask: Ask) -> Result<Together> {
        let report = bench(problem, &pair.options(Some(alpha)), ask)?;
        let hosts = report["hosts"].as_array().context("two processors are two hosts")?;
        let first = number(hosts.first().context("there is a first host")?, "vertices")? as u32;
        let edges: usize = (0..first.min(graph.len() as u32)).map(|v| graph.degree(v)).sum();
        let messages = hosts.iter().map(|host| number(host, "ghosts")).sum::<Result<f64>>()?;
        let alpha = edges as f64 / graph.directed_edges().max(1) as f64;
        Ok(Together { alpha, messages, round_s: round_s(&report)? })
    }
}

/// The graph of a problem, numbered as its order numbers it.
fn numbered(problem: Problem) -> Result<Graph> {
    let mesh = generate::generate(problem.mesh, 1)?;
    let graph = Graph::from_cells(&mesh)?;
    Ok(graph.permuted(&problem.numbering.of(&mesh, &graph)))
}

/// The table, and a plot of it.
pub(super) fn page(scale: Scale, ask: Ask) -> Result<Page> {
    let problems: &[Problem] = if scale == Scale::Tiny { &[pagerank("kronecker:13")] } else { &PROBLEMS };
    let crossing = if scale == Scale::Tiny { pagerank("uniform:8192x4") } else { CROSSING };
    let head = ["problem", "on", "r, r′: 10⁶ edges/s", "c: 10⁶ messages/s", "α, %", "β, %", "predicted", "measured"];
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    let pairs = [Pair::Processes, Pair::Hybrid].into_iter();
    for pair in pairs.filter(|&pair| pair != Pair::Hybrid || !meshweft::adapters().is_empty()) {
        let alone = Alone::of(crossing, pair, ask)?;
        let together = Together::of(crossing, &numbered(crossing)?, pair, 0.5, ask)?;
        // As if all that two parts take longer were sending.
        let sending = (together.round_s - alone.longest(together.alpha)).max(0.0);
        let c = if sending > 0.0 { together.messages / sending } else { f64::INFINITY };
        for (i, &problem) in problems.iter().enumerate() {
            let (graph, alone) = (numbered(problem)?, Alone::of(problem, pair, ask)?);
            let edges = graph.directed_edges() as f64;
            let mut points: [Vec<[f64; 2]>; 2] = Default::default();
            for asked in problem.shares {
                let together = Together::of(problem, &graph, pair, asked, ask)?;
                let predicted = alone.first / (alone.longest(together.alpha) + together.messages / c);
                let measured = alone.first / together.round_s;
                rows.push(vec![
                    format!("`{} {}`", problem.example, problem.mesh),
                    pair.name().to_string(),
                    [alone.first, alone.second].map(|s| format!("{:.0}", 1e-6 * edges / s)).join(", "),
                    if c.is_finite() { format!("{:.0}", 1e-6 * c) } else { "no limit".into() },
                    format!("{:.0}", 100.0 * together.alpha),
                    format!("{:.2}", 100.0 * together.messages / edges),
                    format!("{predicted:.2}"),
                    format!("{measured:.2}"),
                ]);
                points[0].push([100.0 * together.alpha, predicted]);
                points[1].push([100.0 * together.alpha, measured]);
            }
            if pair == Pair::Processes {
                for (points, (join, what)) in
                    points.into_iter().zip([(Join::Dashes, "predicted"), (Join::Line, "measured")])
                {
                    series.push(Series {
                        name: format!("{}, {what}", problem.mesh),
                        color: i,
                        join,
                        dots: true,
                        points,
                    });
                }
            }
        }
    }
    let limit = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0].map(|alpha| [100.0 * alpha, 1.0 / alpha]).to_vec();
    series.push(Series { name: "1 / α".into(), color: 6, join: Join::Line, dots: false, points: limit });
    let plot = Lines {
        title: "Speed-up of two processes over one, by the share of the first",
        subtitle: "one thread each, on one machine; predicted by S = 1 / (β r / c + α)".into(),
        x: Axis { label: "α: edges of the first part, %", spacing: Spacing::Linear },
        y: Axis { label: "speed-up", spacing: Spacing::Linear },
        series,
    };
    let text = markdown(head.map(str::to_string).to_vec(), rows.into_iter());
    Ok(Page { text, plots: vec![("shares.svg", plot.draw())] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_takes_longest_counts() {
        let alike = Alone { first: 4.0, second: 4.0 };
        assert_eq!([0.5, 0.7, 0.9].map(|alpha| 4.0 / alike.longest(alpha)), [2.0, 1.0 / 0.7, 1.0 / 0.9]);
        let slow = Alone { first: 4.0, second: 40.0 };
        assert_eq!(slow.longest(0.5), 20.0);
    }
}
