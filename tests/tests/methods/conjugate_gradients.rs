//! Conjugate gradients for a Poisson problem (Hestenes and Stiefel 1952).

use super::*;

vertex! { pub struct Row<R> { shared p: R, x: R, r: R, ap: R } }
record! { pub struct Dots<R> { rr: R, pap: R, next: R } }

#[derive(Clone)]
struct Poisson {
    tolerance: f64,
}

kernels! {
    for Poisson: Row, (), Dots;
    update Apply |_, own, around| {
        let (sum, degree) = around.sum(Edges, |[other], ()| (other.p, R::lit(1.0)));
        Row { ap: degree * own.p - sum, ..own }
    };
    sum Square |_, own, _| own.r * own.r;
    sum Curvature |_, own, _| own.p * own.ap;
    map Descend |p, own| {
        let alpha = p.globals.rr / p.globals.pap;
        Row { x: own.x + alpha * own.p, r: own.r - alpha * own.ap, ..own }
    };
    map Turn |p, own| Row { p: own.r + p.globals.next / p.globals.rr * own.p, ..own };
    scalar Accept |p| Dots { rr: p.globals.next, ..p.globals };
    test Converged[tolerance] |p| p.globals.next.at_most(tolerance * tolerance);
}

impl Program for Poisson {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        add_edges(mesh, stars)
    }
    fn initial(&self, mesh: &Mesh, v: u32) -> Row<f64> {
        let b = if mesh.boundary()[v as usize] { 0.0 } else { 1.0 + f64::from(v % 5) };
        Row { p: b, x: 0.0, r: b, ap: 0.0 }
    }
    fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
        mesh.boundary()[v as usize]
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.reduce(Square, |g| &mut g.rr);
        stages.reduce(Square, |g| &mut g.next);
        stages.until(Converged { tolerance: self.tolerance }, 1000, |stages| {
            stages.sweep(Apply, 1);
            stages.reduce(Curvature, |g| &mut g.pap);
            stages.map(Descend);
            stages.reduce(Square, |g| &mut g.next);
            stages.map(Turn);
            stages.scalar(Accept);
        });
    }
}

#[test]
fn conjugate_gradients_solve_a_poisson_problem() {
    let mesh = generate("sheet:13", 4).unwrap();
    let fixed = mesh.boundary();
    let b = (0..fixed.len()).map(|v| Poisson { tolerance: 0.0 }.initial(&mesh, v as u32).r).collect();
    let exact = solve(laplacian(&mesh, &fixed), b);
    for order in Order::ALL {
        let solved = after(1, &mesh, &Poisson { tolerance: 1e-11 }, order);
        on_gpu(1, &mesh, &Poisson { tolerance: 1e-4 }, order, 1e-3);
        assert!(distance(&values(&solved, "x"), &exact) < 1e-11, "{order}");
        // In exact arithmetic as many rounds as unknowns; with that many eigenvalues far fewer.
        assert!((10..80).contains(&solved.rounds()), "{} rounds", solved.rounds());
        assert!(solved.globals().unwrap().next <= 1e-22);
    }
}
