use super::*;

vertex! { struct Point<R> { shared temperature: R, shared conductivity: R, predicted: R } }
record! { struct Globals<R> { rate: R, dt: R, time: R } }
struct Rod;

const WEIGHT: f64 = 0.5 * 100.0 * 100.0;

kernels! {
    for Rod: Point, (), Globals;
    map Conduct |_, own| Point { conductivity: own.temperature, ..own };
    max Rate |_, own, around| {
        R::lit(WEIGHT) * around.sum(Edges, |[other], ()| own.conductivity + other.conductivity)
    };
    scalar Choose[share] |p| {
        let dt = share / p.globals.rate;
        Globals { dt, time: p.globals.time + dt, ..p.globals }
    };
    update Predict |p, own, around| {
        let flow = around.sum(Edges, |[other], ()| {
            (own.conductivity + other.conductivity) * (other.temperature - own.temperature)
        });
        let temperature = own.temperature + R::lit(0.5 * WEIGHT) * p.globals.dt * flow;
        Point { temperature, predicted: temperature, ..own }
    };
    update Relax |p, own, around| {
        let (flow, weight) = around.sum(Edges, |[other], ()| {
            let conductivity = own.conductivity + other.conductivity;
            (conductivity * other.temperature, conductivity)
        });
        let half = R::lit(0.5 * WEIGHT) * p.globals.dt;
        Point { temperature: (own.predicted + half * flow) / (R::lit(1.0) + half * weight), ..own }
    };
}

impl Program for Rod {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        edges(mesh, stars)
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
        let d = mesh.points()[v as usize][0] - 0.5;
        Point { temperature: (1.0 - 25.0 * (d * d)).max(0.0), conductivity: 0.0, predicted: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Conduct);
        stages.reduce(Rate, |g| &mut g.rate);
        stages.scalar(Choose { share: 4.0 });
        stages.jacobi(Predict, 1);
        stages.sweep(Relax, 10);
        stages.sweep_backward(Relax, 10);
    }
}

#[test]
fn heat_wave() {
    check("heat_wave", || Rod);
}
