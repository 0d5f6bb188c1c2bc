//! Gray–Scott reaction and diffusion, with noise.

use super::*;

vertex! { pub struct Reagents<R> { shared u: R, shared v: R } }

#[derive(Clone)]
pub(crate) struct GrayScott {
    pub(crate) noise: f64,
}

const F: f64 = 0.037;
const K: f64 = 0.06;

kernels! {
    for GrayScott: Reagents;
    update React[noise] |p, own, around| {
        let (lu, lv) = around.sum(Edges, |[other], ()| (other.u - own.u, other.v - own.v));
        let reaction = own.u * own.v * own.v;
        Reagents {
            u: own.u + R::lit(0.08) * lu - reaction + R::lit(F) * (R::lit(1.0) - own.u) + noise * p.normal(1),
            v: own.v + R::lit(0.04) * lv + reaction - R::lit(F + K) * own.v + noise * p.normal(2),
        }
    };
    sum U("u", "mol") |_, own, _| own.u;
}

impl Program for GrayScott {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        add_edges(mesh, stars)
    }
    fn initial(&self, _: &Mesh, v: u32) -> Reagents<f64> {
        if v.is_multiple_of(9) { Reagents { u: 0.5, v: 0.25 } } else { Reagents { u: 1.0, v: 0.0 } }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.jacobi(React { noise: self.noise }, 1);
    }
}

#[test]
fn noise_has_the_same_bits_on_any_threads_and_the_size_that_was_asked_for() {
    let mesh = generate("quads:20", 1).unwrap();
    let [quiet, noisy] = [0.0, 1e-3].map(|noise| after(60, &mesh, &GrayScott { noise }, Order::BLOCKED));
    // One step's noise, vertex by vertex.
    let [before, after] = [0.0, 1e-3].map(|noise| after(1, &mesh, &GrayScott { noise }, Order::BLOCKED));
    let noise = values(&after, "u").into_iter().zip(values(&before, "u")).map(|(a, b)| (a - b) / 1e-3);
    let square = noise.map(|x| x * x).sum::<f64>() / 400.0;
    // The variance of 400 normal squares is 2 / 400: five deviations.
    assert!((square - 1.0).abs() < 5.0 * f64::sqrt(2.0 / 400.0), "{square}");
    let [a, b] = [quiet, noisy].map(|mut simulation| simulation.metric("u").unwrap());
    assert!(a != b && (a - b).abs() < 20.0, "{a} {b}");
    on_gpu(60, &mesh, &GrayScott { noise: 1e-3 }, Order::BLOCKED, 1e-4);
}
