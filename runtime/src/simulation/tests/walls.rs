//! Elements that join a vertex to no other, such as faces of a boundary.

use super::graphs::engines;
#[cfg(feature = "cluster")]
use super::graphs::hosts;
#[cfg(feature = "gpu")]
use crate::conformance::gpu_or_skip;
use crate::conformance::orders;
use crate::{Backend, Mesh, Program, Result, Simd, Simulation, Stages, Stars, kernels, record, stars, vertex};
use meshweft_mesh::generate::generate;
use meshweft_schedule::Order;

vertex! { struct Cell<R> { shared heat: R, sum: R } }
record! { struct Wall<R> { conductance: R, outside: R } }
stars! {
    Walls[0]: Wall<R>;
    Edges[1];
}

/// Heat that flows between neighbors, and through walls: none, one, or several at a vertex.
#[derive(Clone)]
struct Room(Vec<[u32; 1]>);

fn wall(element: usize) -> Wall<f64> {
    Wall { conductance: 0.01 * (1 + element % 7) as f64, outside: 10.0 * (element % 5) as f64 }
}

kernels! {
    for Room: Cell;
    update Flow |_, own, around| {
        let inside = around.sum(Edges, |[other], ()| (other.heat - own.heat) * R::lit(0.05));
        let outside = around.fold(Walls, R::lit(0.0), |sum, [], wall| sum + wall.conductance * (wall.outside - own.heat));
        Cell { heat: own.heat + inside + outside, sum: own.sum + around.sum(Walls, |[], wall| wall.conductance) }
    };
    sum Lost |_, own, around| around.sum(Walls, |[], wall| wall.conductance * own.heat);
}

impl Program for Room {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add(Walls, self.0.clone(), |i| wall(i.element));
        stars.add(Edges, mesh.edges(), |_| ());
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Cell<f64> {
        Cell { heat: f64::from(v % 11), sum: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Flow, 2);
    }
}

fn room() -> (Mesh, Room) {
    // Every fifth vertex has a wall, every tenth two, and the first forty.
    let mesh = generate("sheet:17", 1).unwrap();
    let walls = (0..289).filter(|v| v % 5 == 0).chain((0..289).filter(|v| v % 10 == 0)).chain([0; 38]);
    (mesh, Room(walls.map(|v| [v]).collect()))
}

fn after(backend: Backend, simd: Simd, order: Order) -> (Vec<f64>, Vec<f64>, f64) {
    let (mesh, program) = room();
    let builder = Simulation::builder(mesh, program).backend(backend).simd(simd).order(order);
    let mut run = builder.precision::<f64>().build().unwrap();
    (0..3).for_each(|_| run.step().unwrap());
    let lost = run.measure(Lost).unwrap();
    (run.field("heat").unwrap().values, run.field("sum").unwrap().values, lost)
}

#[test]
fn what_is_around_one_vertex_alone_is_seen_by_every_engine() {
    for order in orders() {
        let expected = after(Backend::Serial, Simd::Off, order);
        let (mesh, Room(walls)) = room();
        let around =
            |v: usize| walls.iter().enumerate().filter(move |(_, wall)| wall[0] as usize == v).map(|(i, _)| wall(i));
        for v in 0..mesh.points().len() {
            // Six sweeps have added it up.
            let sum = 6.0 * around(v).map(|wall| wall.conductance).sum::<f64>();
            assert!((expected.1[v] - sum).abs() < 1e-12, "{order}: vertex {v}");
        }
        let lost = (0..mesh.points().len()).flat_map(|v| around(v).map(move |wall| (v, wall.conductance)));
        let lost: f64 = lost.map(|(v, conductance)| conductance * expected.0[v]).sum();
        assert!((expected.2 - lost).abs() < 1e-9 * lost, "{order}");
        for (backend, simd) in engines() {
            assert_eq!(after(backend, simd, order), expected, "{order}");
        }
        #[cfg(feature = "cluster")]
        for count in [2, 3] {
            assert_eq!(after(hosts(count), Simd::Bits256, order), expected, "{order}");
        }
        #[cfg(feature = "gpu")]
        if let Some(backend) = gpu_or_skip() {
            let (mesh, program) = room();
            let mut run = Simulation::builder(mesh, program).backend(backend).order(order).build().unwrap();
            (0..3).for_each(|_| run.step().unwrap());
            let heat = run.field("heat").unwrap().values;
            let off = heat.iter().zip(&expected.0).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-4, "{order}: {off}");
        }
    }
}
