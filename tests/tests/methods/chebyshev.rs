//! Jacobi accelerated by Chebyshev polynomials.

use super::*;

vertex! { pub struct Height<R> { shared x: R, last: R } }

/// Jacobi for the mean of the neighbors, accelerated if its spectral radius is given.
#[derive(Clone)]
struct Accelerated {
    radius: f64,
    rounds: usize,
}

kernels! {
    for Accelerated: Height;
    update Relax[omega] |_, own, around| {
        let (sum, degree) = around.sum(Edges, |[other], ()| (other.x, R::lit(1.0)));
        Height { x: own.last + omega * (sum / degree - own.last), last: own.x }
    };
}

impl Program for Accelerated {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        add_edges(mesh, stars)
    }
    fn initial(&self, _: &Mesh, v: u32) -> Height<f64> {
        let x = if self.is_end(v) { 0.0 } else { 1.0 + f64::from(v % 3) };
        Height { x, last: x }
    }
    fn fixed(&self, _: &Mesh, v: u32) -> bool {
        self.is_end(v)
    }
    fn step(&self, stages: &mut Stages<Self>) {
        let square = self.radius * self.radius;
        let omegas = std::iter::successors(Some(1.0), |&omega| match omega {
            1.0 if square > 0.0 => Some(2.0 / (2.0 - square)),
            _ => Some(4.0 / (4.0 - square * omega)),
        });
        omegas.take(self.rounds).for_each(|omega| stages.jacobi(Relax { omega }, 1));
    }
}

impl Accelerated {
    fn is_end(&self, v: u32) -> bool {
        v == 0 || v == 20
    }
}

#[test]
fn chebyshev_weights_shrink_the_error_as_fast_as_their_polynomial() {
    let mesh = generate("chain:21", 1).unwrap();
    let radius = f64::cos(std::f64::consts::PI / 20.0);
    let error = |radius, rounds| {
        let x = values(&after(1, &mesh, &Accelerated { radius, rounds }, Order::BLOCKED), "x");
        x.iter().map(|x| x * x).sum::<f64>().sqrt()
    };
    let polynomial = f64::cosh(40.0 * f64::acosh(1.0 / radius));
    let (start, plain, accelerated) = (error(0.0, 0), error(0.0, 40), error(radius, 40));
    assert!(accelerated <= start / polynomial * 1.000_001, "{accelerated} {}", start / polynomial);
    assert!(plain > 50.0 * accelerated, "{plain} {accelerated}");
    on_gpu(1, &mesh, &Accelerated { radius, rounds: 40 }, Order::BLOCKED, 1e-5);
}
