use super::*;
use meshweft::mesh::CellKind;

vertex! { struct Sum<R> { shared x: R, of: [R; 4] } }
stars! {
    Quads[3]: R;
    Pyramids[4]: R;
    Wedges[5]: R;
    Hexes[7]: R;
}
struct Corners;

kernels! {
    for Corners: Sum;
    update Add |_, own, around| {
        let quads = around.sum(Quads, |o, w| w * (o[0].x + R::lit(10.0) * o[1].x + R::lit(100.0) * o[2].x));
        let pyramids = around.sum(Pyramids, |o, w| w * weigh(o.map(|other| other.x)));
        let wedges = around.sum(Wedges, |o, w| w * weigh(o.map(|other| other.x)));
        let hexes = around.sum(Hexes, |o, w| w * weigh(o.map(|other| other.x)));
        Sum { x: own.x * R::lit(0.5) + quads / R::lit(4096.0), of: [quads, pyramids, wedges, hexes] }
    };
}

fn weigh<R: Real, const N: usize>(values: [R; N]) -> R {
    values.into_iter().rev().fold(R::lit(0.0), |sum, x| sum * R::lit(3.0) + x)
}

/// The first corners of each hex, whatever shape they have.
fn some<const K: usize>(mesh: &Mesh) -> Vec<[u32; K]> {
    let hexes = mesh.cells().corners_of(CellKind::Hex);
    hexes.as_chunks::<8>().0.iter().map(|hex| std::array::from_fn(|k| hex[k])).collect()
}

fn weight<const K: usize>(i: &Incidence<K>) -> f64 {
    f64::from(i.vertices[0] % 5) + i.corner as f64
}

impl Program for Corners {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add_cells(Quads, CellKind::Quad, some::<4>(mesh), |i| weight(&i));
        stars.add(Pyramids, some::<5>(mesh), |i| weight(&i));
        stars.add(Wedges, some::<6>(mesh), |i| weight(&i));
        stars.add(Hexes, some::<8>(mesh), |i| weight(&i));
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Sum<f64> {
        Sum { x: f64::from(v % 11), of: [0.0; 4] }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Add, 1);
    }
}

#[test]
fn elements() {
    check("elements", || Corners);
}
