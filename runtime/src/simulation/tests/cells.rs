//! Fields of cells: which are the values of a part.

use super::says;
use crate::program::{Program, Stages, Stars};
use crate::{Backend, Mesh, Order, Placement, Simulation, kernels, stars, vertex};
use meshweft_mesh::generate::generate;
use std::sync::Arc;

vertex! {
    /// Heights are of points, means of cells, and takes of both.
    struct Place<R> { shared height: R, shared mean: R, taken: R }
}

stars! { Corners[1]; }

/// What `of_cells` says, and how many vertices part 1 lacks.
struct Means(&'static [&'static str], usize);

kernels! {
    for Means: Place;
    update Take |_, own, around| Place { mean: around.sum(Corners, |[corner], ()| corner.height), ..own };
    map Count |_, own| Place { taken: own.taken + R::lit(1.0), ..own };
}

impl Program for Means {
    fn parts(&self, mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        vec![vec![[0.0; 3]; mesh.cells().len() - self.1], vec![[1.0; 3]; 2]]
    }
    fn of_cells(&self) -> Vec<&'static str> {
        self.0.to_vec()
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> crate::Result<()> {
        let cells = (mesh.points().len() as u32..).zip(mesh.triangles()).skip(self.1);
        let links = cells.flat_map(|(cell, corners)| corners.map(|v| [v, cell - self.1 as u32]));
        stars.add_directed(Corners, Arc::new(links.collect()), |_| ());
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Place<f64> {
        Place { height: f64::from(v), mean: 0.0, taken: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.on(1, |stages| {
            stages.sweep(Take, 1);
            stages.map(Count);
        });
    }
}

fn means(of_cells: &'static [&'static str], lacks: usize) -> crate::Result<Simulation<Means, f64>> {
    let mesh = generate("sheet:7x5", 1)?;
    Simulation::builder(mesh, Means(of_cells, lacks)).order(Order::BLOCKED).precision::<f64>().build()
}

#[test]
fn fields_of_cells_are_read_and_written_by_cell() {
    let mut run = means(&["mean", "taken"], 0).unwrap();
    run.step().unwrap();
    let [points, cells] = [run.mesh().points().len(), run.mesh().cells().len()];
    let sums: Vec<f64> = run.mesh().triangles().iter().map(|t| t.iter().map(|&v| f64::from(v)).sum()).collect();
    assert_eq!(run.field("mean").unwrap().values, sums);
    assert_eq!(run.field("taken").unwrap().values, vec![1.0; cells]);
    assert_eq!(run.field("height").unwrap().values.len(), points);
    let lengths = |fields: Vec<crate::mesh::Field>| fields.iter().map(|field| field.values.len()).collect::<Vec<_>>();
    assert_eq!(lengths(run.state().unwrap()), [points, cells, cells]);
    assert_eq!(lengths(run.snapshot().unwrap().fields().unwrap()), [points, cells, cells]);
    assert_eq!(run.view("mean").unwrap().vertex(3), [sums[3]]);
    let mut read = vec![0.0_f32; cells];
    run.read_into("mean", &mut read).unwrap();
    assert_eq!(f64::from(read[5]), sums[5]);
    assert!(run.is_of_cells("taken") && !run.is_of_cells("height") && !run.is_of_cells("nothing"));
    // What is written is where cells have it.
    run.set_field("mean", &sums.iter().map(|x| 2.0 * x).collect::<Vec<f64>>()).unwrap();
    assert_eq!(run.vertex(points as u32 + 4).unwrap().mean, 2.0 * sums[4]);
    assert_eq!(run.vertex(4).unwrap().mean, 0.0);
    let mut wrong = sums.clone();
    wrong[5] = f64::NAN;
    says(&run.set_field("mean", &wrong).unwrap_err().to_string(), "mean of cell 5 would be NaN");
    says(
        &run.set_field("mean", &vec![0.0; points]).unwrap_err().to_string(),
        &format!("mean takes {cells} × 1 values"),
    );
    // What diverges in a cell is told of as one.
    run.set_field("height", &vec![f64::MAX; points]).unwrap();
    says(&run.step().unwrap_err().to_string(), "mean of cell 0 is inf after step 2");
}

#[test]
fn hosts_have_the_cells_of_one_process() {
    let values = |backend| {
        let program = Means(&["mean"], 0);
        let built = Simulation::builder(generate("sheet:7x5", 1).unwrap(), program).backend(backend).build();
        let mut run = built.unwrap();
        run.step().unwrap();
        run.field("mean").unwrap().values
    };
    let alone = values(Backend::Serial);
    assert_eq!(values(Backend::Cpu { threads: 2 }), alone);
    #[cfg(feature = "cluster")]
    assert_eq!(values(Backend::Cluster(crate::Cluster::inside(2).unwrap())), alone);
}

#[test]
fn fields_of_cells_that_cannot_be_are_refused() {
    let refused = |of_cells, lacks| means(of_cells, lacks).map(drop).unwrap_err().to_string();
    says(&refused(&["mean", "flux"], 0), "`of_cells` names field \"flux\", which is none of height, mean, taken");
    says(&refused(&["mean"], 2), "field mean is of cells, of which the mesh has 48, and part 1 has 46 vertices");
    means(&[], 2).unwrap();
    let dual = generate("sheet:4", 1).unwrap().dual().unwrap().mesh;
    let error = Simulation::builder(dual, Means(&["mean"], 0)).build().map(drop).unwrap_err().to_string();
    says(&error, "field mean is of cells, but vertices stand for cells here");
    let folder = tempfile::tempdir().unwrap();
    let error = means(&["mean"], 0).unwrap().write_pieces(folder.path(), "a", &Placement::default()).unwrap_err();
    says(&error.to_string(), "field mean is of cells: such a state is written as a whole, not in pieces");
}
