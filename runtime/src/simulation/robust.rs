//! Attacks: what a program, a host or the numbers can do wrong is an error that says what to do, and never a memory bug.

use super::tests::{refusal, says};
use super::*;
use crate::conformance::orders;
use crate::number::Real;
use crate::program::{Incidence, Stars, Vertex};
use crate::{Error, Kind, Mesh, Part, kernels, record, stars, vertex};
use meshweft_mesh::generate::generate;
use meshweft_schedule::Order;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Every CPU engine.
const ENGINES: [Backend; 3] = [Backend::Serial, Backend::Cpu { threads: 1 }, Backend::Cpu { threads: 3 }];

stars! { Edges[1]: R; }
vertex! { pub struct Point<R> { shared heat: R, flow: R } }
record! { pub struct Push<R> { push: R } }
record! { pub struct Mean<R> { mean: R } }

/// Heat that spreads along edges; everything about it can be made wrong.
#[derive(Clone)]
struct Toy {
    dt: f64,
    push: f64,
    start: f64,
    weight: f64,
    rate: f64,
    mean: f64,
}

const TOY: Toy = Toy { dt: 0.5, push: 0.25, start: 1.0, weight: 1.0, rate: 0.125, mean: 0.0 };

kernels! {
    for Toy: Point, Push, Mean;
    update Blur[rate] |p, own, around| {
        let flow = around.sum(Edges, |[other], weight| (other.heat - own.heat) * weight);
        Point { heat: own.heat + rate * flow + p.push + p.globals.mean, flow }
    };
    map Shake |p, own| Point { heat: own.heat + p.uniform(1), ..own };
    sum Heat("heat", "J") |_, own, _| own.heat;
    sum Scaled[by] |_, own, _| own.heat * by;
    scalar Spoil[by] |_| Mean { mean: by / R::lit(0.0) };
}

impl Program for Toy {
    fn time_step(&self) -> f64 {
        self.dt
    }
    fn parameters(&self, _: f64) -> Push<f64> {
        Push { push: self.push }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        let weight = self.weight;
        stars.add(Edges, mesh.edges(), move |i: Incidence<2>| if i.element == 1 { weight } else { 1.0 });
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Point<f64> {
        Point { heat: if v == 2 { self.start } else { f64::from(v % 7) }, flow: 0.0 }
    }
    fn globals(&self) -> Mean<f64> {
        Mean { mean: self.mean }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Shake);
        stages.sweep(Blur { rate: self.rate }, 2);
    }
}

fn build<P: Program>(program: P, backend: Backend) -> Simulation<P> {
    Simulation::builder(generate("sheet:9", 1).unwrap(), program).backend(backend).audit(true).build().unwrap()
}

fn fault<A>(result: Result<A>) -> String {
    result.err().expect("an error").to_string()
}

/// A program of one kernel over `Point`, whatever it does.
macro_rules! one_kernel {
    ($name:ident, |$p:pat_param, $own:pat_param, $around:pat_param| $kernel:expr) => {
        #[derive(Clone)]
        struct $name;
        kernels! { for $name: Point; update Attack |$p, $own, $around| $kernel; }
        impl Program for $name {
            fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
                stars.add(Edges, mesh.edges(), |_| 1.0);
                Ok(())
            }
            fn initial(&self, _: &Mesh, v: u32) -> Point<f64> {
                Point { heat: f64::from(v), flow: 0.0 }
            }
            fn step(&self, stages: &mut Stages<Self>) {
                stages.sweep(Attack, 2);
            }
        }
    };
}

mod kernels;
mod numbers;
mod records;
