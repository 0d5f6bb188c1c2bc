//! Time steps that a step chooses, and that end where a run is to end.

use super::graphs::engines;
#[cfg(feature = "cluster")]
use super::graphs::hosts;
#[cfg(feature = "gpu")]
use crate::conformance::gpu_or_skip;
use crate::number::Number;
use crate::{Backend, Mesh, Program, Result, Simd, Simulation, Stages, kernels, record, stars, vertex};
use meshweft_mesh::generate::generate;

vertex! { struct Gas<R> { shared u: R } }
stars! { Edges[1]; }
record! { struct Longest<R> { dt: R } }
record! { struct Chosen<R> { fastest: R, dt: R } }

/// The porous medium equation `u' = Δ u²`, which spreads the faster the denser it is.
struct Porous {
    longest: f64,
    /// The time step is this more.
    more: f64,
}

kernels! {
    for Porous: Gas, Longest, Chosen;
    max Fastest |_, own, around| around.sum(Edges, |[other], ()| other.u + own.u);
    scalar Choose[more] |p| Chosen { dt: (R::lit(0.5) / p.globals.fastest).min(p.dt) + more, ..p.globals };
    update Spread |p, own, around| {
        let flow = around.sum(Edges, |[other], ()| other.u * other.u - own.u * own.u);
        Gas { u: own.u + p.globals.dt * flow }
    };
}

impl Program for Porous {
    fn time_step(&self) -> f64 {
        self.longest
    }
    fn set_time_step(&mut self, dt: f64) -> bool {
        self.longest = dt;
        true
    }
    fn parameters(&self, _: f64) -> Longest<f64> {
        Longest { dt: self.longest }
    }
    fn globals(&self) -> Chosen<f64> {
        Chosen { fastest: 0.0, dt: 0.0 }
    }
    fn initial(&self, _: &Mesh, v: u32) -> Gas<f64> {
        Gas { u: if (12..18).contains(&v) { 20.0 } else { 0.0 } }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.reduce(Fastest, |g| &mut g.fastest);
        stages.scalar(Choose { more: self.more });
        stages.jacobi(Spread, 1);
        stages.lasts(|g| &mut g.dt);
    }
}

fn porous(backend: Backend, simd: Simd, more: f64) -> Simulation<Porous, f64> {
    let program = Porous { longest: 0.02, more };
    let builder = Simulation::builder(generate("chain:30", 1).unwrap(), program).backend(backend).simd(simd);
    builder.precision::<f64>().build().unwrap()
}

fn run<T: Number>(mut gas: Simulation<Porous, T>, until: f64) -> Result<(Vec<f64>, u64, f64)> {
    while gas.time() < until {
        gas.step_until(until)?;
    }
    Ok((gas.field("u")?.values, gas.steps(), gas.time()))
}

#[test]
fn time_is_the_sum_of_steps_that_say_how_long_they_last_and_ends_where_it_is_to_end() {
    let (mut u, mut time, mut steps) = (vec![0.0; 30], 0.0, 0);
    u[12..18].fill(20.0);
    while time < 0.3 {
        let around = |v: usize| [v.wrapping_sub(1), v + 1].into_iter().filter(|&w| w < 30);
        let fastest = (0..30).map(|v| around(v).map(|w| u[w] + u[v]).sum::<f64>()).fold(0.0, f64::max);
        let dt = f64::min(0.5 / fastest, f64::min(0.02, 0.3 - time));
        let flow = |v: usize| around(v).map(|w| u[w] * u[w] - u[v] * u[v]).sum::<f64>();
        u = (0..30).map(|v| u[v] + dt * flow(v)).collect();
        (time, steps) = (time + dt, steps + 1);
    }
    let expected = run(porous(Backend::Serial, Simd::Off, 0.0), 0.3).unwrap();
    let off = expected.0.iter().zip(&u).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    // Longer steps as it thins out, the last of them cut short.
    assert!(off < 1e-11 && (steps, 0.3) == (expected.1, expected.2) && (16..60).contains(&steps), "{off} {expected:?}");
    for (backend, simd) in engines() {
        assert_eq!(run(porous(backend, simd, 0.0), 0.3).unwrap(), expected);
    }
    #[cfg(feature = "cluster")]
    for count in [2, 3] {
        assert_eq!(run(porous(hosts(count), Simd::Off, 0.0), 0.3).unwrap(), expected);
    }
    // The same from a checkpoint, which is in the middle.
    let mut gas = porous(Backend::Serial, Simd::Off, 0.0);
    (0..7).for_each(|_| gas.step_until(0.3).unwrap());
    let mut again = porous(Backend::Cpu { threads: 2 }, Simd::Bits256, 0.0);
    again.restore(&gas.save().unwrap()).unwrap();
    assert_eq!(run(again, 0.3).unwrap(), expected);
    #[cfg(feature = "gpu")]
    if let Some(backend) = gpu_or_skip() {
        let mesh = generate("chain:30", 1).unwrap();
        let gas = Simulation::builder(mesh, Porous { longest: 0.02, more: 0.0 }).backend(backend).build().unwrap();
        let (u, steps, time) = run(gas, 0.3).unwrap();
        let off = u.iter().zip(&expected.0).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-3 && steps.abs_diff(expected.1) <= 1 && time == 0.3, "{off} {steps} {time}");
    }
}

#[test]
fn a_step_that_lasts_no_time_is_an_error_that_names_the_global() {
    let mut gas = porous(Backend::Serial, Simd::Off, -1.0);
    let error = gas.step().unwrap_err().to_string();
    assert!(error.contains("step 1 lasts -0.99") && error.contains("by global dt"), "{error}");
}
