use super::*;

vertex! { struct Point<R> { shared temperature: R } }
stars! { Triangles[2]: (R, R, R); }
record! { struct Parameters<R> { diffusivity: R, dt: R } }
struct Heat;

kernels! {
    for Heat: Point, Parameters;
    update Conduct |p, own, around| {
        let (flow, area) = around.sum(Triangles, |[b, c], (area, next, last)| {
            (next * (b.temperature - own.temperature) + last * (c.temperature - own.temperature), area)
        });
        Point { temperature: own.temperature + p.dt * p.diffusivity * flow / area }
    };
}

impl Program for Heat {
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { diffusivity: 1.0, dt: 1e-3 }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        let points = mesh.points().to_vec();
        stars.add(Triangles, mesh.triangles(), move |i| {
            let [a, b, c] = i.vertices.map(|v| Vector3::from(points[v as usize]));
            let dot = |u: Vector3<f64>, v: Vector3<f64>| u.x * v.x + u.y * v.y + u.z * v.z;
            let normal = (b - a).cross(&(c - a));
            let twice = dot(normal, normal).sqrt();
            let half_cotangent = |at, u, v| 0.5 * dot(u - at, v - at) / twice;
            (twice / 6.0, half_cotangent(c, a, b), half_cotangent(b, a, c))
        });
        Ok(())
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
        Point { temperature: if mesh.points()[v as usize][0] > 0.0 { 1.0 } else { 0.0 } }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.jacobi(Conduct, 1);
    }
}

#[test]
fn explicit_heat() {
    check("explicit_heat", || Heat);
}
