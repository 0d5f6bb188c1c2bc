use super::*;

vertex! { struct Point<R> { shared position: Vector3<R>, shared velocity: Vector3<R> } }
record! { struct Parameters<R> { stiffness: R, damping: R, gravity: Vector3<R>, dt: R } }
struct Sheet {
    held: Vec<bool>,
}

kernels! {
    for Sheet: Point, Parameters;
    update Move |p, own, around| {
        let force = around.sum(Springs, |[other], rest| {
            let along = other.position - own.position;
            let length = along.length();
            along * (p.stiffness * (length - rest) / length) + (other.velocity - own.velocity) * p.damping
        });
        let velocity = own.velocity + (force + p.gravity) * p.dt;
        Point { velocity, position: own.position + velocity * p.dt }
    };
}

impl Program for Sheet {
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { stiffness: 500.0, damping: 0.5, gravity: Vector3::new(0.0, 0.0, -9.81), dt: 0.01 }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        lengths(mesh, stars)
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
        Point { position: mesh.points()[v as usize].into(), velocity: Vector3::zeros() }
    }
    fn fixed(&self, _: &Mesh, v: u32) -> bool {
        self.held[v as usize]
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Move, 1);
    }
}

#[test]
fn spring_sheet() {
    let prepare = |mesh: Mesh| {
        let held = mesh.boundary();
        (mesh, Sheet { held })
    };
    check_all("spring_sheet", prepare, |_| Ok(()));
}
