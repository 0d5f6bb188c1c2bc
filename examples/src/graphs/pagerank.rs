//! PageRank.

use super::checks::{self, ranks};
use super::{DIRECTED, GRAPH, Links, ORDER, is_directed};
use anyhow::{Result, bail};
use meshweft::{Order, Program, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::{Check, Column, Example, Info, Kind, Look, Precision, Setting, Settings};
use meshweft_mesh::{Field, Mesh};

vertex! {
    /// A page.
    pub struct Page<R> {
        /// The part of its rank that it gives for each unit of the weight of an edge.
        shared share: R,
        /// Its rank: the chance that a walker who follows edges at random is here.
        rank: R,
        /// By how much that changed in the last round.
        change: R,
        /// One over the sum of the weights of its edges to others and to itself; 0 if it has none.
        per_weight: R,
        /// The weight of its edge to itself.
        loops: R,
    }
}
record! {
    /// What the walker does.
    pub struct Surfing<R> {
        /// The chance to follow an edge.
        damping: R,
        /// The chance to be at a page by a jump.
        jump: R,
        /// One over the number of pages.
        each: R,
    }
}
record! {
    /// What a round measures.
    pub struct Measured<R> {
        /// The sum of all changes.
        change: R,
        /// The rank of pages without edges.
        dangling: R,
    }
}
stars! {
    /// Edges to here, if all count the same.
    pub Edges[1];
    /// Edges to here and their weights, if not.
    pub Weights[1]: R;
}

/// PageRank (Brin and Page 1998): a step runs until the ranks change no more.
///
/// Pages without edges give their rank to all, as in networkx.
#[derive(Clone, Debug)]
pub struct PageRank {
    links: Links,
    damping: f64,
    tolerance: f64,
    rounds: usize,
    /// Of each page: see [`Page`].
    per_weight: Vec<f64>,
    loops: Vec<f64>,
}

kernels! {
    for PageRank: Page, Surfing, Measured;

    /// Follows edges once.
    update Surf |p, own, around| {
        let inflow = around.sum(Edges, |[from], ()| from.share) + around.sum(Weights, |[from], weight| from.share * weight);
        let followed = inflow + own.loops * own.share + p.globals.dangling * p.each;
        let rank = p.jump + p.damping * followed;
        Page { share: rank * own.per_weight, rank, change: (rank - own.rank).abs(), ..own }
    };

    /// The sum of all changes.
    sum Change |_, own, _| own.change;

    /// The rank of pages without edges.
    sum Dangling |_, own, _| R::select(own.per_weight.equals(R::lit(0.0)), own.rank, R::lit(0.0));

    /// The sum of all ranks.
    sum Total("total", "") |_, own, _| own.rank;

    /// The largest rank.
    max Largest("largest", "") |_, own, _| own.rank;

    /// Whether ranks have come to rest.
    test Settled[tolerance] |p| p.globals.change.at_most(tolerance);
}

impl Program for PageRank {
    fn parameters(&self, _time: f64) -> Surfing<f64> {
        let each = 1.0 / self.links.vertices.max(1) as f64;
        Surfing { damping: self.damping, jump: (1.0 - self.damping) * each, each }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let links = self.links.clone();
        let [plain, weighted] = if links.weights.is_empty() { [true, false] } else { [false, true] };
        self.links.only_if(plain).add(stars, Edges, |_| ());
        self.links.only_if(weighted).add(stars, Weights, move |edge| links.weight(edge));
        Ok(())
    }

    fn initial(&self, _mesh: &Mesh, v: u32) -> Page<f64> {
        let (rank, per_weight) = (1.0 / self.links.vertices as f64, self.per_weight[v as usize]);
        Page { share: rank * per_weight, rank, change: 0.0, per_weight, loops: self.loops[v as usize] }
    }

    fn globals(&self) -> Measured<f64> {
        Measured { change: f64::from(f32::MAX), dangling: 0.0 }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        let has_dangling = self.per_weight.contains(&0.0);
        let dangling = |stages: &mut Stages<Self>| {
            if has_dangling {
                stages.reduce(Dangling, |found| &mut found.dangling);
            }
        };
        dangling(stages);
        stages.until(Settled { tolerance: self.tolerance }, self.rounds, |stages| {
            stages.jacobi(Surf, 1);
            // Both right after the update, while ranks are in a cache.
            stages.reduce(Change, |found| &mut found.change);
            dangling(stages);
        });
    }
}

impl Example for PageRank {
    const INFO: Info = Info {
        name: "pagerank",
        about: "PageRank: the chance to be at a vertex for a walker who follows edges at random, and jumps now and then",
        mesh: GRAPH,
        steps: 1,
        order: Some(ORDER),
        precision: Precision::F64,
        settings: &[
            DIRECTED,
            Setting {
                name: "weighted",
                about: "whether edges count by the weights of the file, if it has some",
                kind: Kind::Choice(&["true", "false"]),
            },
            Setting::number("damping", "chance to follow an edge instead of a jump", 0.85, "", [0.0, 1.0]),
            Setting::number(
                "tolerance",
                "the sum of all changes in a round at which it stops; in f32 ranks do not settle below some 1e-7",
                1e-10,
                "",
                [0.0, 2.0],
            ),
            Setting::number("rounds", "rounds a step, at most", 1000.0, "", [1.0, 1e6]),
        ],
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: Order) -> Result<PageRank> {
        let links = Links::new(mesh, is_directed(settings), settings.choice("weighted") == "true")?;
        if let Some(e) = links.weights.iter().position(|&w| w < 0.0) {
            let ([from, to], weight) = (links.edges[e], links.weights[e]);
            bail!("the edge from vertex {from} to {to} has weight {weight}: no chance is negative");
        }
        let per_weight = links.out_weights().into_iter().map(|sum| if sum > 0.0 { 1.0 / sum } else { 0.0 }).collect();
        let mut loops = vec![0.0; links.vertices];
        links.loops.iter().for_each(|&(v, weight)| loops[v as usize] = weight);
        let [damping, tolerance] = ["damping", "tolerance"].map(|name| settings.number(name));
        Ok(PageRank { links, damping, tolerance, rounds: settings.count("rounds"), per_weight, loops })
    }

    fn look(&self) -> Look {
        Look { color: Some("rank"), label: "rank", ..Look::default() }
    }

    fn table(&self) -> Vec<Column> {
        vec![Column { field: "rank", is_vertex: false, nothing: None }]
    }

    fn judge(&self, fields: &[Field]) -> Result<Vec<Check>> {
        ranks(&self.links, self.damping, self.tolerance, fields)
    }

    fn checks() -> Result<Vec<Check>> {
        checks::all::<PageRank>(&[("directed", "true"), ("directed", "false")])
    }
}
