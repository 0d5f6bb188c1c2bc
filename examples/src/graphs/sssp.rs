//! Shortest ways from one vertex.

use super::checks::{self, ways};
use super::{DIRECTED, GRAPH, Links, ORDER, SOURCE, is_directed};
use anyhow::{Result, ensure};
use meshweft::{Int, Integer, Order, Program, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::{Check, Column, Example, Info, Look, Precision, Settings};
use meshweft_mesh::{Field, Mesh};

vertex! {
    /// A vertex of the search.
    pub struct Node<R> {
        /// The length of the shortest way from the source; the largest real of 32 bits where none leads.
        shared distance: R,
        /// Its own id.
        shared id: R::Int,
        /// The vertex before it on that way, the source itself there; -1 where none leads.
        parent: R::Int,
    }
}
record! {
    /// Where ways start.
    pub struct Start<R> {
        /// An id.
        source: R::Int,
    }
}
stars! {
    /// Edges to here, and how long they are.
    pub Edges[1]: R;
}

/// The distance of what is not reached.
const NONE: f64 = f32::MAX as f64;

/// Shortest ways by Bellman and Ford's rounds, of which each looks at what has changed in the one before: a step finds them all.
#[derive(Clone, Debug)]
pub struct Sssp {
    links: Links,
    source: u32,
}

kernels! {
    for Sssp: Node, Start;

    /// Forgets what was found before.
    map Begin |p, own| {
        let here = own.id.equals(p.source);
        let distance = R::select(here, R::lit(0.0), R::lit(NONE));
        Node { distance, parent: R::Int::select(here, own.id, R::Int::lit(-1)), ..own }
    };

    /// Goes along one more edge.
    relax Relax(Edges: R) {
        held |own| own.distance;
        offer |_, from, length| from.distance + length;
        take |_, own, distance, from| Node { distance, parent: from.id, ..own };
    }

    /// How many vertices are reached.
    sum Reached("reached", "") |_, own, _| R::select(own.distance.less(R::lit(NONE)), R::lit(1.0), R::lit(0.0));

    /// How far away the last of them is.
    max Farthest("farthest", "") |_, own, _| R::select(own.distance.less(R::lit(NONE)), own.distance, R::lit(0.0));
}

impl Program for Sssp {
    fn parameters(&self, _time: f64) -> Start<f64> {
        Start { source: Int(self.source as i32) }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let links = self.links.clone();
        self.links.add(stars, Edges, move |edge| links.weight(edge));
        Ok(())
    }

    fn initial(&self, _mesh: &Mesh, v: u32) -> Node<f64> {
        Node { distance: NONE, id: Int(v as i32), parent: Int(-1) }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Begin);
        stages.fixpoint(Relax, self.links.vertices + 1);
    }
}

impl Example for Sssp {
    const INFO: Info = Info {
        name: "sssp",
        about: "shortest ways: distances of all vertices from one, by the weights of edges",
        mesh: GRAPH,
        steps: 1,
        order: Some(ORDER),
        precision: Precision::F64,
        settings: &[SOURCE, DIRECTED],
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: Order) -> Result<Sssp> {
        let links = Links::new(mesh, is_directed(settings), true)?;
        if let Some(e) = links.weights.iter().position(|&w| w < 0.0) {
            let ([from, to], weight) = (links.edges[e], links.weights[e]);
            anyhow::bail!("the edge from vertex {from} to {to} has weight {weight}: no length is negative");
        }
        let most = links.weights.iter().copied().fold(1.0, f64::max);
        ensure!(
            most * (links.vertices as f64) < NONE,
            "a weight of {most} is too large for ways of {} edges: scale the weights down",
            links.vertices
        );
        let source = links.source(mesh, settings.number("source"))?;
        Ok(Sssp { links, source })
    }

    fn look(&self) -> Look {
        Look { color: Some("distance"), label: "distance", ..Look::default() }
    }

    fn table(&self) -> Vec<Column> {
        vec![
            Column { field: "distance", is_vertex: false, nothing: Some((NONE, "inf")) },
            Column { field: "parent", is_vertex: true, nothing: Some((-1.0, "-1")) },
        ]
    }

    fn judge(&self, fields: &[Field]) -> Result<Vec<Check>> {
        ways(&self.links, self.source, fields)
    }

    fn checks() -> Result<Vec<Check>> {
        checks::all::<Sssp>(&[("directed", "true"), ("directed", "false")])
    }
}
