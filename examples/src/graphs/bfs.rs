//! Breadth-first search.

use super::checks::{self, tree};
use super::{DIRECTED, GRAPH, Links, ORDER, SOURCE, is_directed};
use anyhow::Result;
use meshweft::{Int, Integer, Order, Program, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::{Check, Column, Example, Info, Look, Settings};
use meshweft_mesh::{Field, Mesh};

vertex! {
    /// A vertex of the search.
    pub struct Node<R> {
        /// Edges from the source, the fewest; 2^31 - 1 where no way leads.
        shared level: R::Int,
        /// Its own id.
        shared id: R::Int,
        /// The vertex before it on a shortest way, the source itself there; -1 where no way leads.
        parent: R::Int,
    }
}
record! {
    /// Where the search starts.
    pub struct Start<R> {
        /// An id.
        source: R::Int,
    }
}
stars! {
    /// Edges to here.
    pub Edges[1];
}

/// The level of what is not reached.
const NONE: i32 = i32::MAX;

/// Breadth-first search: a step is a whole search.
///
/// The parent of a vertex is the first of its neighbors on the level before, in the order of the curve.
#[derive(Clone, Debug)]
pub struct Bfs {
    links: Links,
    source: u32,
}

kernels! {
    for Bfs: Node, Start;

    /// Forgets what was found before.
    map Begin |p, own| {
        let here = own.id.equals(p.source);
        let level = R::Int::select(here, R::Int::lit(0), R::Int::lit(NONE));
        Node { level, parent: R::Int::select(here, own.id, R::Int::lit(-1)), ..own }
    };

    /// Goes a level further.
    relax Visit(Edges: R::Int) {
        held |own| own.level;
        offer |_, from, ()| from.level + R::Int::lit(1);
        take |_, own, level, from| Node { level, parent: from.id, ..own };
    }

    /// How many vertices are reached.
    sum Reached("reached", "") |_, own, _| R::select(own.level.less(R::Int::lit(NONE)), R::lit(1.0), R::lit(0.0));

    /// How far away the last of them is.
    max Deepest("deepest level", "") |_, own, _| {
        R::select(own.level.less(R::Int::lit(NONE)), R::from_int(own.level), R::lit(0.0))
    };
}

impl Program for Bfs {
    fn parameters(&self, _time: f64) -> Start<f64> {
        Start { source: Int(self.source as i32) }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        self.links.add(stars, Edges, |_| ());
        Ok(())
    }

    fn initial(&self, _mesh: &Mesh, v: u32) -> Node<f64> {
        Node { level: Int(NONE), id: Int(v as i32), parent: Int(-1) }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Begin);
        stages.fixpoint(Visit, self.links.vertices + 1);
    }
}

impl Example for Bfs {
    const INFO: Info = Info {
        name: "bfs",
        about: "breadth-first search: levels and parents of all vertices from one, direction-optimizing",
        mesh: GRAPH,
        steps: 1,
        order: Some(ORDER),
        settings: &[SOURCE, DIRECTED],
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: Order) -> Result<Bfs> {
        let links = Links::new(mesh, is_directed(settings), false)?;
        let source = links.source(mesh, settings.number("source"))?;
        Ok(Bfs { links, source })
    }

    fn look(&self) -> Look {
        Look { color: Some("level"), label: "level", ..Look::default() }
    }

    fn table(&self) -> Vec<Column> {
        vec![
            Column { field: "level", is_vertex: false, nothing: Some((f64::from(NONE), "-1")) },
            Column { field: "parent", is_vertex: true, nothing: Some((-1.0, "-1")) },
        ]
    }

    fn judge(&self, fields: &[Field]) -> Result<Vec<Check>> {
        tree(&self.links, self.source, fields)
    }

    fn checks() -> Result<Vec<Check>> {
        checks::all::<Bfs>(&[("directed", "true"), ("directed", "false")])
    }
}
