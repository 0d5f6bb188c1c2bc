use super::*;

vertex! { struct Point<R> { shared displacement: Vector2<R>, velocity: Vector2<R> } }
stars! { Triangles[2]: (R, Matrix2<R>, Matrix2<R>, Matrix2<R>); }
record! { struct Parameters<R> { dt: R, pull: Vector2<R> } }
struct Plate;

/// Lamé's parameters, N/m.
const FIRST: f64 = 1.0;
const SECOND: f64 = 0.5;

kernels! {
    for Plate: Point, Parameters;
    update Kick |p, own, around| {
        let (force, mass) = around.sum(Triangles, |[b, c], (area, at, next, last)| {
            (at * own.displacement + next * b.displacement + last * c.displacement, area)
        });
        Point { velocity: (own.velocity + (p.pull - force / mass) * p.dt) * R::lit(0.99), ..own }
    };
    map Drift |p, own| Point { displacement: own.displacement + own.velocity * p.dt, ..own };
}

impl Program for Plate {
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { dt: 0.02, pull: Vector2::new(0.1, 0.0) }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        let points = mesh.points().to_vec();
        stars.add(Triangles, mesh.triangles(), move |i| {
            let [a, b, c] = i.vertices.map(|v| Vector2::new(points[v as usize][0], points[v as usize][1]));
            let (u, v) = (b - a, c - a);
            let twice = u.x * v.y - u.y * v.x;
            let gradient = |u: Vector2<f64>, v: Vector2<f64>| Vector2::new(u.y - v.y, v.x - u.x) / twice;
            let stiffness = |g: Vector2<f64>, h: Vector2<f64>| {
                Matrix2::from_fn(|i, j| {
                    let ones = if i == j { g.x * h.x + g.y * h.y } else { 0.0 };
                    (FIRST * (g[i] * h[j]) + SECOND * (h[i] * g[j] + ones)) * (0.5 * twice)
                })
            };
            let [at_a, at_b, at_c] = [gradient(b, c), gradient(c, a), gradient(a, b)];
            (twice / 6.0, stiffness(at_a, at_a), stiffness(at_a, at_b), stiffness(at_a, at_c))
        });
        Ok(())
    }
    fn initial(&self, _: &Mesh, _: u32) -> Point<f64> {
        Point { displacement: Vector2::zeros(), velocity: Vector2::zeros() }
    }
    fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
        mesh.points()[v as usize][0] <= 0.0
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.jacobi(Kick, 1);
        stages.map(Drift);
    }
}

#[test]
fn elastic() {
    check("elastic", || Plate);
}
