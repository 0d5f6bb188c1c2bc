//! Connected components.

use super::checks::{self, parts};
use super::{GRAPH, Links, ORDER};
use anyhow::Result;
use meshweft::{Int, Integer, Order, Program, Stages, Stars, kernels, stars, vertex};
use meshweft_command::{Check, Column, Example, Info, Look, Settings};
use meshweft_mesh::{Field, Mesh};

vertex! {
    /// A vertex and the component that it lies in.
    pub struct Member<R> {
        /// The smallest id of the component.
        shared component: R::Int,
        /// Its own id.
        id: R::Int,
    }
}
stars! {
    /// Edges, whichever way they go.
    pub Edges[1];
}

/// Connected components of the graph, whichever way its edges go: a step finds them all, by the smallest id, which spreads.
#[derive(Clone, Debug)]
pub struct Components {
    links: Links,
}

kernels! {
    for Components: Member;

    /// Takes the smallest of the neighbors' ids.
    relax Spread(Edges: R::Int) {
        held |own| own.component;
        offer |_, from, ()| from.component;
        take |_, own, component, _| Member { component, ..own };
    }

    /// How many components there are.
    sum Count("components", "") |_, own, _| R::select(own.component.equals(own.id), R::lit(1.0), R::lit(0.0));
}

impl Program for Components {
    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        self.links.add(stars, Edges, |_| ());
        Ok(())
    }

    fn initial(&self, _mesh: &Mesh, v: u32) -> Member<f64> {
        Member { component: Int(v as i32), id: Int(v as i32) }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.fixpoint(Spread, self.links.vertices + 1);
    }
}

impl Example for Components {
    const INFO: Info = Info {
        name: "components",
        about: "connected components: the smallest vertex that each can be reached from, whichever way edges go",
        mesh: GRAPH,
        steps: 1,
        order: Some(ORDER),
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, _settings: &Settings, _order: Order) -> Result<Components> {
        Ok(Components { links: Links::new(mesh, false, false)? })
    }

    fn look(&self) -> Look {
        Look { color: Some("component"), label: "component", ..Look::default() }
    }

    fn table(&self) -> Vec<Column> {
        vec![Column { field: "component", is_vertex: true, nothing: None }]
    }

    fn judge(&self, fields: &[Field]) -> Result<Vec<Check>> {
        parts(&self.links, fields)
    }

    fn checks() -> Result<Vec<Check>> {
        checks::all::<Components>(&[])
    }
}
