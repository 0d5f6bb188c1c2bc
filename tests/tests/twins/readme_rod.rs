use super::*;

vertex! { struct Point<R> { shared temperature: R } }
struct Rod;

kernels! {
    for Rod: Point;
    update Relax |_, own, around| {
        let flow = around.sum(Edges, |[other], ()| other.temperature - own.temperature);
        Point { temperature: own.temperature + R::lit(0.1) * flow }
    };
}

impl Program for Rod {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        edges(mesh, stars)
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
        Point { temperature: mesh.points()[v as usize][0] }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Relax, 4);
    }
}

#[test]
fn readme_rod() {
    check("readme_rod", || Rod);
}
