use super::*;

vertex! {
    struct Point<R> {
        shared position: Vector3<R>,
        velocity: Vector3<R>,
        before: Vector3<R>,
        target: Vector3<R>,
    }
}
record! { struct Parameters<R> { mass: R, stiffness: R, gravity: Vector3<R>, dt: R } }
struct Cloth {
    held: Vec<bool>,
}

fn solve<R: Real>(m: Matrix3<R>, v: Vector3<R>) -> Vector3<R> {
    let [a, b, c] = [0, 1, 2].map(|j| m.column(j).into_owned());
    let bc = b.cross(&c);
    Vector3::new(v.dot(&bc), v.dot(&c.cross(&a)), v.dot(&a.cross(&b))) / a.dot(&bc)
}

kernels! {
    for Cloth: Point, Parameters;
    map Predict |p, own| {
        let target = own.position + own.velocity * p.dt + p.gravity * (p.dt * p.dt);
        Point { before: own.position, target, position: target, ..own }
    };
    update Descend |p, own, around| {
        let identity = Matrix3::<R>::identity();
        let inertia = p.mass / (p.dt * p.dt);
        let (force, hessian) = around.sum(Springs, |[other], rest| {
            let along = own.position - other.position;
            let length = along.length();
            let unit = along / length;
            let squeezed = (rest / length).min(R::lit(1.0));
            let nn = Matrix3::from_fn(|i, j| unit[i] * unit[j]);
            let hessian = (nn + (identity - nn) * (R::lit(1.0) - squeezed)) * p.stiffness;
            (unit * (p.stiffness * (rest - length)), hessian)
        });
        let force = force - (own.position - own.target) * inertia;
        Point { position: own.position + solve(hessian + identity * inertia, force), ..own }
    };
    map Finish |p, own| Point { velocity: (own.position - own.before) / p.dt, ..own };
}

impl Program for Cloth {
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { mass: 0.01, stiffness: 200.0, gravity: Vector3::new(0.0, 0.0, -9.81), dt: 1.0 / 60.0 }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        lengths(mesh, stars)
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
        let zero = Vector3::zeros();
        Point { position: mesh.points()[v as usize].into(), velocity: zero, before: zero, target: zero }
    }
    fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
        self.held[v as usize] && mesh.points()[v as usize][1] > 0.5
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Predict);
        stages.sweep(Descend, 5);
        stages.map(Finish);
    }
}

#[test]
fn descent_cloth() {
    let prepare = |mesh: Mesh| {
        let held = mesh.boundary();
        (mesh, Cloth { held })
    };
    check_all("descent_cloth", prepare, |_| Ok(()));
}
