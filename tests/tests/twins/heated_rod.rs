use super::*;

vertex! { struct Point<R> { shared temperature: R, change: R } }
stars! { Weights[1]: R; }
record! { struct Parameters<R> { source: R, length: R } }
struct Rod;

kernels! {
    for Rod: Point, Parameters;
    update Relax |p, own, around| {
        let (flow, weight) = around.sum(Weights, |[other], w| (w * other.temperature, w));
        let temperature = (p.source * p.length + flow) / weight;
        Point { temperature, change: (temperature - own.temperature).abs() }
    };
}

impl Program for Rod {
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { source: 8.0, length: 1.0 / 20.0 }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        let x: Vec<f64> = mesh.points().iter().map(|p| p[0]).collect();
        let over = move |i: Incidence<2>| 1.0 / (x[i.vertices[0] as usize] - x[i.vertices[1] as usize]).abs();
        stars.add(Weights, mesh.edges(), over);
        Ok(())
    }
    fn initial(&self, _: &Mesh, _: u32) -> Point<f64> {
        Point { temperature: 0.0, change: 0.0 }
    }
    fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
        let x = mesh.points()[v as usize][0];
        x <= 0.0 || x >= 1.0
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Relax, 20);
    }
}

#[test]
fn heated_rod() {
    check("heated_rod", || Rod);
}
