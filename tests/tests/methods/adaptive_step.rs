//! The porous medium equation, with steps chosen by what is measured.

use super::*;

vertex! { pub struct Gas<R> { shared u: R } }
record! { pub struct Clock<R> { time: R, dt: R, fastest: R, steps: R } }

/// The porous medium equation `u' = Δ u²`, which spreads the faster the denser it is.
#[derive(Clone)]
struct Porous;

kernels! {
    for Porous: Gas, (), Clock;
    max Fastest |_, own, around| around.sum(Edges, |[other], ()| other.u + own.u);
    scalar Choose |p| {
        let g = p.globals;
        let dt = (R::lit(0.9) / g.fastest).min(R::lit(1.0) - g.time);
        Clock { dt, time: g.time + dt, steps: g.steps + R::lit(1.0), ..g }
    };
    update Spread |p, own, around| {
        let flow = around.sum(Edges, |[other], ()| other.u * other.u - own.u * own.u);
        Gas { u: own.u + p.globals.dt * flow }
    };
    test Arrived |p| p.globals.time.at_least(R::lit(1.0));
    sum Mass("mass", "kg") |_, own, _| own.u;
    min Least("least", "kg") |_, own, _| own.u;
}

impl Program for Porous {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        add_edges(mesh, stars)
    }
    fn initial(&self, _: &Mesh, v: u32) -> Gas<f64> {
        Gas { u: if (28..36).contains(&v) { 20.0 } else { 0.0 } }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.until(Arrived, 10_000, |stages| {
            stages.reduce(Fastest, |g| &mut g.fastest);
            stages.scalar(Choose);
            stages.jacobi(Spread, 1);
        });
    }
}

#[test]
fn steps_chosen_by_what_is_measured_arrive_in_time_and_keep_mass_and_sign() {
    let mesh = generate("chain:64", 1).unwrap();
    let mut simulation = after(1, &mesh, &Porous, Order::BLOCKED);
    let clock = simulation.globals().unwrap();
    assert!((simulation.metric("mass").unwrap() - 160.0).abs() < 1e-10);
    assert!(simulation.metric("least").unwrap() >= 0.0);
    assert!((clock.time - 1.0).abs() < 1e-12 && simulation.rounds() == clock.steps as u64);
    // The first step would have been 0.9 / 80: as it thins out, steps get longer.
    assert!((20..88).contains(&simulation.rounds()), "{clock:?}");
    // The same by hand: maxima do not depend on an order, and sums of two neighbors only on which is first.
    let (mut u, mut time) = ((0..64).map(|v| Porous.initial(&mesh, v).u).collect::<Vec<f64>>(), 0.0);
    while time < 1.0 {
        let around = |v: usize| [v.wrapping_sub(1), v + 1].into_iter().filter(|&w| w < 64);
        let fastest = (0..64).map(|v| around(v).map(|w| u[w] + u[v]).sum::<f64>()).fold(0.0, f64::max);
        let dt = f64::min(0.9 / fastest, 1.0 - time);
        let flow = |v: usize| around(v).map(|w| u[w] * u[w] - u[v] * u[v]).sum::<f64>();
        u = (0..64).map(|v| u[v] + dt * flow(v)).collect();
        time += dt;
    }
    assert!(distance(&values(&simulation, "u"), &u) < 1e-12);
    on_gpu(1, &mesh, &Porous, Order::BLOCKED, 1e-4);
}
