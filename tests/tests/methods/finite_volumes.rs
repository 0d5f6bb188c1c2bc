//! Finite volumes on a dual mesh.

use super::*;
use meshweft::mesh::Dual;

vertex! { pub struct Cell<R> { shared density: R, volume: R } }
record! { pub struct Parameters<R> { dt: R } }
stars! {
    /// How much flows out of this cell a second.
    Faces[1]: R;
}

/// Upwind advection on the dual of a mesh: what leaves one cell enters the next.
#[derive(Clone)]
pub(crate) struct Advection {
    edges: Vec<[u32; 2]>,
    flow: Vec<f64>,
    volumes: Vec<f64>,
    dt: f64,
    /// Where along x the cells end that are full at first.
    front: f64,
}

impl Advection {
    /// By a wind of unit speed along x.
    pub(crate) fn along_x(dual: &Dual, front: f64) -> Advection {
        let flow = dual.faces.iter().map(|face| face.area * face.normal[0]).collect();
        let edges = dual.faces.iter().map(|face| face.cells).collect();
        Advection { edges, flow, volumes: dual.volumes.clone(), dt: 0.002, front }
    }
}

kernels! {
    for Advection: Cell, Parameters;
    update Transport |p, own, around| {
        let out = around.sum(Faces, |[other], flow| {
            flow * R::select(flow.greater(R::lit(0.0)), own.density, other.density)
        });
        Cell { density: own.density - p.dt * out / own.volume, ..own }
    };
    sum Content("content", "kg") |_, own, _| own.density * own.volume;
    min Least("least", "kg/m^3") |_, own, _| own.density;
}

impl Program for Advection {
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { dt: self.dt }
    }
    fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
        let flow = self.flow.clone();
        stars.add(Faces, self.edges.clone(), move |i: Incidence<2>| match i.corner {
            0 => flow[i.element],
            _ => -flow[i.element],
        });
        Ok(())
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Cell<f64> {
        let density = if mesh.points()[v as usize][0] < self.front { 1.0 } else { 0.0 };
        Cell { density, volume: self.volumes[v as usize] }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.jacobi(Transport, 1);
    }
}

#[test]
fn finite_volumes_on_a_dual_mesh_keep_their_content_and_sign_and_drift_with_the_wind() {
    let dual = generate("box:7", 2).unwrap().dual().unwrap();
    let program = Advection::along_x(&dual, 0.3);
    let center = |simulation: &Simulation<Advection, f64>| {
        let mass =
            values(simulation, "density").into_iter().zip(&dual.volumes).map(|(density, volume)| density * volume);
        mass.zip(dual.mesh.points()).map(|(mass, p)| mass * p[0]).sum::<f64>()
    };
    let [mut start, mut end] = [0, 40].map(|steps| after(steps, &dual.mesh, &program, Order::COLOR));
    assert!((start.metric("content").unwrap() - end.metric("content").unwrap()).abs() < 1e-12);
    assert!(end.metric("least").unwrap() >= 0.0);
    // Content times the wind's unit speed, while none of it has reached the far wall.
    let drift = center(&end) - center(&start);
    let expected = start.metric("content").unwrap() * 40.0 * program.dt;
    assert!((drift / expected - 1.0).abs() < 0.1, "{drift} {expected}");
    on_gpu(40, &dual.mesh, &program, Order::COLOR, 1e-5);
}
