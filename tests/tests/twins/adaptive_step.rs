use super::*;

vertex! { struct Falling<R> { height: R, speed: R } }
record! { struct Parameters<R> { dt: R } }
struct Fall {
    dt: f64,
}

kernels! {
    for Fall: Falling, Parameters;
    map Move |p, own| {
        let speed = own.speed + p.dt;
        Falling { speed, height: own.height - speed * p.dt }
    };
    max Fastest("fastest", "m/s") |_, own, _| own.speed;
}

impl Program for Fall {
    fn time_step(&self) -> f64 {
        self.dt
    }
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { dt: self.dt }
    }
    fn initial(&self, _: &Mesh, _: u32) -> Falling<f64> {
        Falling { height: 100.0, speed: 1.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Move);
    }
}

#[test]
fn adaptive_step() {
    let adapt = |fall: &mut dyn AnySimulation| {
        let fastest = fall.metrics()?[0].value;
        fall.program_mut().downcast_mut::<Fall>().unwrap().dt = 0.05 / fastest;
        Ok(())
    };
    check_all("adaptive_step", |mesh| (mesh, Fall { dt: 0.1 }), adapt);
}
