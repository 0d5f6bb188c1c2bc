//! The border between parts of a graph, as Gharaibeh, Beltrão Costa, Santos-Neto and Ripeanu count it ("A Yoke of Oxen and a Thousand
//! Chickens for Heavy Lifting Graph Processing", 2012): β, messages over edges, by the density of the graph and by α, the share of the
//! edges that the first part has; a message for each edge, and one for each vertex and part, into which those are added up.

use super::page::Page;
use crate::bench::pages::markdown;
use anyhow::Result;
use meshweft::{Int, random};
use meshweft_command::cli::Scale;
use meshweft_mesh::{Curve, Graph, Mesh, Partition, Permutation, generate};
use meshweft_picture::plot::{Axis, Join, Lines, Series, Spacing};

/// What decides who is in the first part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbering {
    /// Chance.
    Random,
    /// Most edges first.
    High,
    /// Fewest edges first.
    Low,
    /// Place: Morton's curve.
    Curve,
}

impl Numbering {
    fn name(self) -> &'static str {
        match self {
            Numbering::Random => "random",
            Numbering::High => "high degrees on the cores",
            Numbering::Low => "low degrees on the cores",
            Numbering::Curve => "along the curve",
        }
    }

    pub(super) fn of(self, mesh: &Mesh, graph: &Graph) -> Permutation {
        let degree = |v: u32| graph.degree(v) as u32;
        let chance = |v: u32| u64::from(random::hash([Int(v as i32), Int(1), Int(0), Int(0)])[0].0 as u32);
        match self {
            Numbering::Random => Permutation::sorted_by_number(graph.len(), chance),
            Numbering::High => Permutation::by_degree(&(0..graph.len() as u32).map(degree).collect::<Vec<u32>>()),
            Numbering::Low => Permutation::sorted_by_number(graph.len(), |v| degree(v).into()),
            Numbering::Curve => Curve::Morton.order(mesh.points()),
        }
    }
}

/// β of a partition: messages over edges, one for each edge that crosses and one for each vertex and other part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Beta {
    pub(super) edges: f64,
    pub(super) vertices: f64,
}

/// Of parts that have such shares of the edges, along the numbering of the graph.
pub(super) fn beta(graph: &Graph, shares: &[f64]) -> Result<Beta> {
    let partition = Partition::by_edges(graph, shares)?;
    let all = graph.directed_edges().max(1) as f64;
    Ok(Beta { edges: 2.0 * partition.cut_edges(graph) as f64 / all, vertices: partition.messages() as f64 / all })
}

fn cell(beta: Beta) -> String {
    format!("{:.1} → {:.1}", 100.0 * beta.edges, 100.0 * beta.vertices)
}

/// The graphs: R-MAT and uniform ones of one number of edges and several densities, and meshes; and which of them are cut by α.
fn specs(scale: Scale) -> (Vec<String>, [String; 3]) {
    let (scales, edges, sides) = match scale {
        Scale::Tiny => (5..=6, 7, [8, 5]),
        _ => (15..=21, 21, [1024, 80]),
    };
    let both = ["kronecker", "uniform"].into_iter().flat_map(|name| {
        scales.clone().rev().map(move |scale: u32| {
            let size = if name == "kronecker" { scale } else { 1 << scale };
            format!("{name}:{size}x{}", 1 << (edges - scale))
        })
    });
    let meshes = [format!("grid:{}", sides[0]), format!("sheet:{}", sides[0]), format!("box:{}", sides[1])];
    let middle = scales.clone().start() + 2.min(scales.end() - scales.start());
    let by_share = [format!("kronecker:{middle}"), format!("uniform:{}", 1u32 << middle), meshes[2].clone()];
    (both.chain(meshes).collect(), by_share)
}

/// Both tables, and a plot of each.
pub(super) fn page(scale: Scale) -> Result<Page> {
    let (all, by_share) = specs(scale);
    let (density, density_plot) = by_density(&all)?;
    let (share, share_plot) = by_alpha(&by_share)?;
    Ok(Page {
        text: density + &share,
        plots: vec![("border-density.svg", density_plot.draw()), ("border-share.svg", share_plot.draw())],
    })
}

fn family(spec: &str) -> &str {
    match spec.split(':').next() {
        Some("kronecker") => "R-MAT",
        Some("uniform") => "uniform",
        _ => "mesh",
    }
}

const EDGES: Axis = Axis { label: "edges a vertex, both directions of each", spacing: Spacing::Log };
const BETA: Axis = Axis { label: "β: messages over edges, %", spacing: Spacing::Linear };

fn by_density(specs: &[String]) -> Result<(String, Lines)> {
    let head = [
        "graph",
        "edges a vertex",
        "random, 2 parts",
        "random, 3 parts",
        "by degree, 2 parts",
        "along the curve, 2 parts",
    ];
    let mut rows = Vec::new();
    // By family: of random parts an edge and a vertex, of three parts, by degree or along the curve.
    let mut lines: Vec<(String, usize, Join, Vec<[f64; 2]>)> = Vec::new();
    for spec in specs {
        let mesh = generate::generate(spec, 1)?;
        let graph = Graph::from_cells(&mesh)?;
        let density = graph.directed_edges() as f64 / graph.len().max(1) as f64;
        let of = |numbering: Numbering, shares: &[f64]| beta(&graph.permuted(&numbering.of(&mesh, &graph)), shares);
        let (two, three) = (of(Numbering::Random, &[0.5; 2])?, of(Numbering::Random, &[1.0; 3])?);
        let by_degree = of(Numbering::High, &[0.5; 2])?;
        let family = family(spec);
        let along = (family == "mesh").then(|| of(Numbering::Curve, &[0.5; 2])).transpose()?;
        rows.push(vec![
            format!("{family}, `{spec}`"),
            format!("{density:.1}"),
            cell(two),
            cell(three),
            cell(by_degree),
            along.map_or(String::new(), cell),
        ]);
        let mut note = |name: String, color, join, beta: f64| {
            let point = [density, 100.0 * beta];
            match lines.iter_mut().find(|line| line.0 == name) {
                Some(line) => line.3.push(point),
                None => lines.push((name, color, join, vec![point])),
            }
        };
        match along {
            Some(along) => note("mesh, along the curve".into(), 2, Join::Nothing, along.vertices),
            None => {
                let color = usize::from(family == "uniform");
                note(format!("{family}, an edge"), color, Join::Dashes, two.edges);
                note(format!("{family}, a vertex"), color, Join::Line, two.vertices);
                if family == "R-MAT" {
                    note("R-MAT, a vertex, 3 parts".into(), 5, Join::Line, three.vertices);
                    note("R-MAT, a vertex, by degree".into(), 3, Join::Line, by_degree.vertices);
                }
            }
        }
    }
    let lines = lines.into_iter().map(|(name, color, join, mut points)| {
        points.sort_by(|a, b| a[0].total_cmp(&b[0]));
        Series { name, color, join, dots: true, points }
    });
    let plot = Lines {
        title: "What crosses the border, over the density of the graph",
        subtitle:
            "two parts of half the edges each, at random unless it says otherwise; a message an edge, and one a vertex"
                .into(),
        x: EDGES,
        y: BETA,
        series: lines.collect(),
    };
    Ok((markdown(head.map(str::to_string).to_vec(), rows.into_iter()), plot))
}

/// Shares of the edges that the first part has.
const ALPHAS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

fn by_alpha(specs: &[String]) -> Result<(String, Lines)> {
    let mut head = vec!["graph".to_string(), "parts".into()];
    head.extend(ALPHAS.map(|alpha| format!("α = {:.0} %", 100.0 * alpha)));
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for (i, spec) in specs.iter().enumerate() {
        let mesh = generate::generate(spec, 1)?;
        let graph = Graph::from_cells(&mesh)?;
        let family = family(spec);
        let numberings = match family {
            "mesh" => vec![Numbering::Random, Numbering::Curve],
            _ => vec![Numbering::Random, Numbering::High, Numbering::Low],
        };
        for (k, numbering) in numberings.into_iter().enumerate() {
            let numbered = graph.permuted(&numbering.of(&mesh, &graph));
            let betas =
                ALPHAS.iter().map(|&alpha| beta(&numbered, &[alpha, 1.0 - alpha])).collect::<Result<Vec<_>>>()?;
            let mut row = vec![format!("{family}, `{spec}`"), numbering.name().to_string()];
            row.extend(betas.iter().map(|&beta| cell(beta)));
            rows.push(row);
            if family == "uniform" && k > 0 {
                // All alike, whatever the numbering.
                continue;
            }
            let points =
                ALPHAS.iter().zip(&betas).map(|(alpha, beta)| [100.0 * alpha, 100.0 * beta.vertices]).collect();
            let name = match numbering {
                Numbering::Random => format!("{family}, random"),
                Numbering::High => format!("{family}, high degrees"),
                Numbering::Low => format!("{family}, low degrees"),
                Numbering::Curve => format!("{family}, along the curve"),
            };
            let join = if i == 1 { Join::Dashes } else { Join::Line };
            series.push(Series { name, color: [0, 1, 2, 0, 1, 2, 3, 4][(3 * i + k) % 8], join, dots: true, points });
        }
    }
    let plot = Lines {
        title: "What crosses the border, over the share of the first part",
        subtitle: "one message for each vertex and other part that has neighbors of it".into(),
        x: Axis { label: "α: edges of the first part, %", spacing: Spacing::Linear },
        y: BETA,
        series,
    };
    Ok((markdown(head, rows.into_iter()), plot))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(spec: &str, numbering: Numbering) -> Beta {
        let mesh = generate::generate(spec, 1).unwrap();
        let graph = Graph::from_cells(&mesh).unwrap();
        beta(&graph.permuted(&numbering.of(&mesh, &graph)), &[0.5; 2]).unwrap()
    }

    #[test]
    fn adding_up_at_the_source_leaves_an_r_mat_graph_a_sixth_of_its_edges_at_most() {
        // The claim of the paper, at densities from 2 to 32 edges a vertex: at most 16 %, of 50 % by chance. [C13]
        for spec in ["kronecker:16x1", "kronecker:15x2", "kronecker:14x4", "kronecker:12x16"] {
            let beta = half(spec, Numbering::Random);
            assert!((0.45..0.55).contains(&beta.edges), "{spec}: {beta:?}");
            assert!(beta.vertices < 0.17, "{spec}: {beta:?}");
        }
        // Without hubs there is less to add up, and a mesh along its curve has hardly a border at all.
        let [hubs, none] = ["kronecker:14x2", "uniform:16384x2"].map(|spec| half(spec, Numbering::Random).vertices);
        assert!(none > 1.5 * hubs, "{none} beside {hubs}");
        assert!(half("box:20", Numbering::Curve).vertices < 0.02);
    }

    #[test]
    fn numberings_are_what_they_are_called() {
        let mesh = generate::generate("kronecker:8", 1).unwrap();
        let graph = Graph::from_cells(&mesh).unwrap();
        let degrees = |numbering: Numbering| -> Vec<usize> {
            numbering.of(&mesh, &graph).order().iter().map(|&v| graph.degree(v)).collect()
        };
        let (high, low) = (degrees(Numbering::High), degrees(Numbering::Low));
        assert!(high.is_sorted_by(|a, b| a >= b) && low.is_sorted() && high[0] > 10 * high[128]);
        assert!(!degrees(Numbering::Random).is_sorted());
    }
}
