//! A program with a field of cells, which tests run.

use crate::{Check, Entry, Example, Info, Look, Options, Precision, Run, Settings};
use anyhow::Result;
use meshweft::{Mesh, Order, Program, Stages, Stars, kernels, stars, vertex};

vertex! { pub(crate) struct Place<R> { shared height: R, shared mean: R } }
stars! { Corners[1]; }

/// The mean height of each triangle, in the middle of which a part has a vertex.
pub(crate) struct Means;

kernels! {
    for Means: Place;
    update Take |_, own, around| {
        Place { mean: around.sum(Corners, |[corner], ()| corner.height) / R::lit(3.0), ..own }
    };
}

impl Program for Means {
    fn parts(&self, mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        vec![vec![[0.0; 3]; mesh.cells().len()]]
    }

    fn of_cells(&self) -> Vec<&'static str> {
        vec!["mean"]
    }

    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        let cells = (mesh.points().len() as u32..).zip(mesh.triangles());
        let links: Vec<[u32; 2]> = cells.flat_map(|(cell, corners)| corners.map(|v| [v, cell])).collect();
        stars.add_directed(Corners, links.into(), |_| ());
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Place<f64> {
        Place { height: mesh.points().get(v as usize).map_or(0.0, |p| p[0]), mean: 0.0 }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.on(1, |stages| stages.sweep(Take, 1));
    }
}

impl Example for Means {
    const INFO: Info = Info { name: "means", mesh: "sheet:5", steps: 1, ..Info::DEFAULT };

    fn new(_: &mut Mesh, _: &Settings, _: Order) -> Result<Means> {
        Ok(Means)
    }

    fn look(&self) -> Look {
        Look { color: Some("mean"), raised: Some(("mean", 1.0)), ..Look::default() }
    }

    fn checks() -> Result<Vec<Check>> {
        Ok(Vec::new())
    }
}

/// A run of it in 64 bits.
pub(crate) fn run(mesh: Mesh) -> Run {
    let options = Options { precision: Precision::F64, ..Options::default() };
    Entry::of::<Means>().start(mesh, &Settings::new(&[]), &options).unwrap()
}
