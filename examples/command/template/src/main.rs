//! NAME: a program of one's own, with everything that the `meshweft` command has.
//!
//! `cargo run -- run NAME` makes a film, a ParaView series and a table in out/NAME; `cargo run -- run NAME --verify` runs the
//! serial oracle beside it; `cargo run -- verify NAME` runs the acceptance test below.

use anyhow::Result;
use meshweft::{Mesh, Order, Program, Simulation, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::cli::{self, Programs};
use meshweft_command::{Check, Entry, Example, Info, Kind, Look, Setting, Settings, Tolerance};
use std::process::ExitCode;

vertex! {
    /// A vertex of the mesh. Neighbors read what is shared.
    pub struct Node<R> {
        /// Concentration, 1/m².
        shared concentration: R,
    }
}

record! {
    /// Numbers that all vertices read.
    pub struct Parameters<R> {
        /// Share of the difference that is exchanged along an edge in a step.
        rate: R,
    }
}

stars! {
    /// Edges to the neighbors.
    pub Edges[1];
}

/// Diffusion along the edges of a mesh.
pub struct Diffusion {
    rate: f64,
    /// Where the mesh is halved, along x.
    middle: f64,
}

impl Diffusion {
    fn of(mesh: &Mesh, rate: f64) -> Diffusion {
        let [low, high] = mesh.bounds();
        Diffusion { rate, middle: (low[0] + high[0]) / 2.0 }
    }
}

kernels! {
    for Diffusion: Node, Parameters;

    /// Takes a share of the difference from every neighbor, all at once.
    update Exchange |p, own, around| {
        let flow = around.sum(Edges, |[other], ()| other.concentration - own.concentration);
        Node { concentration: own.concentration + p.rate * flow }
    };

    /// What there is in all: the exchange keeps it.
    sum Content("content", "") |_, own, _| own.concentration;
}

impl Program for Diffusion {
    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { rate: self.rate }
    }

    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        stars.add(Edges, mesh.edges(), |_| ());
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        Node { concentration: if mesh.points()[v as usize][0] < self.middle { 1.0 } else { 0.0 } }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.jacobi(Exchange, 1);
    }
}

impl Example for Diffusion {
    const INFO: Info = Info {
        name: "NAME",
        about: "concentration spreads along the edges of a mesh",
        mesh: "sheet:64",
        steps: 300,
        settings: &[Setting {
            name: "rate",
            about: "share of the difference that is exchanged in a step; above 0.1 it may oscillate",
            kind: Kind::Number { default: 0.05, unit: "", range: [0.0, 1.0] },
        }],
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: Order) -> Result<Diffusion> {
        Ok(Diffusion::of(mesh, settings.number("rate")))
    }

    /// What can be changed in the page of `--view`, while it runs.
    const LIVE: &'static [&'static str] = &["rate"];

    fn change(&mut self, settings: &Settings, _order: Order) -> Result<()> {
        self.rate = settings.number("rate");
        Ok(())
    }

    fn look(&self) -> Look {
        Look { color: Some("concentration"), label: "concentration", ..Look::default() }
    }

    fn checks() -> Result<Vec<Check>> {
        let mesh = meshweft::mesh::generate::generate("sheet:20", 1)?;
        let program = Diffusion::of(&mesh, 0.05);
        let mut run = Simulation::builder(mesh, program).precision::<f64>().build()?;
        let before = run.metric("content")?;
        for _ in 0..100 {
            run.step()?;
        }
        Ok(vec![Check {
            name: "content after 100 steps over that before".into(),
            measured: run.metric("content")? / before,
            expected: 1.0,
            tolerance: Tolerance::Absolute(1e-12),
            unit: "",
            source: "what one end of an edge takes the other one gives",
        }])
    }
}

/// The programs of this command.
static PROGRAMS: Programs = Programs::of(&[Entry::of::<Diffusion>()]);

fn main() -> ExitCode {
    cli::main(&PROGRAMS)
}
