use super::*;

vertex! { struct Point<R> { shared height: R, speed: R } }
record! { struct Parameters<R> { stiffness: R } }
struct Wave {
    held: Vec<bool>,
}

kernels! {
    for Wave: Point, Parameters;
    update Kick[dt] |p, own, around| {
        let pull = around.sum(Edges, |[other], ()| other.height - own.height);
        Point { speed: own.speed + dt * p.stiffness * pull, ..own }
    };
    map Drift[dt] |_, own| Point { height: own.height + dt * own.speed, ..own };
}

impl Program for Wave {
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { stiffness: 0.2 }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        edges(mesh, stars)
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
        let [x, y, _] = mesh.points()[v as usize].map(|x| x - 0.5);
        Point { height: (0.1 - x * x - y * y).max(0.0), speed: 0.0 }
    }
    fn fixed(&self, _: &Mesh, v: u32) -> bool {
        self.held[v as usize]
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.jacobi(Kick { dt: 0.5 }, 1);
        stages.map(Drift { dt: 0.5 });
    }
}

#[test]
fn wave() {
    let prepare = |mesh: Mesh| {
        let held = mesh.boundary();
        (mesh, Wave { held })
    };
    check_all("wave", prepare, |_| Ok(()));
}
