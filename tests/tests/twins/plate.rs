use super::*;

vertex! { struct Point<R> { shared temperature: R } }
struct Plate {
    held: Vec<bool>,
}

kernels! {
    for Plate: Point;
    update Relax |_, _, around| {
        let (sum, count) = around.sum(Edges, |[other], ()| (other.temperature, R::lit(1.0)));
        Point { temperature: sum / count }
    };
}

impl Program for Plate {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        edges(mesh, stars)
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
        let [x, y, _] = mesh.points()[v as usize];
        Point { temperature: x * y }
    }
    fn fixed(&self, _: &Mesh, v: u32) -> bool {
        self.held[v as usize]
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Relax, 5);
    }
}

#[test]
fn plate() {
    let prepare = |mesh: Mesh| {
        let held = mesh.boundary();
        (mesh, Plate { held })
    };
    check_all("plate", prepare, |_| Ok(()));
}
