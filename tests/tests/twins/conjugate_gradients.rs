use super::*;

vertex! { struct Unknown<R> { shared p: R, shared x: R, shared r: R, shared q: R } }
record! { struct Globals<R> { rr: R, pq: R, old: R, alpha: R, beta: R } }
struct Poisson;

kernels! {
    for Poisson: Unknown, (), Globals;
    update Multiply |_, own, around| {
        Unknown { q: own.p + around.sum(Edges, |[other], ()| own.p - other.p), ..own }
    };
    sum Rr |_, own, _| own.r * own.r;
    sum Pq |_, own, _| own.p * own.q;
    scalar Step |p| Globals { alpha: p.globals.rr / p.globals.pq, old: p.globals.rr, ..p.globals };
    map Descend |p, own| Unknown { x: own.x + own.p * p.globals.alpha, r: own.r - own.q * p.globals.alpha, ..own };
    scalar Turn |p| Globals { beta: p.globals.rr / p.globals.old, ..p.globals };
    map Direct |p, own| Unknown { p: own.r + own.p * p.globals.beta, ..own };
    test Arrived |p| p.globals.rr.less(R::lit(1e-8));
}

impl Program for Poisson {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        edges(mesh, stars)
    }
    fn initial(&self, _: &Mesh, v: u32) -> Unknown<f64> {
        let b = f64::from(v % 7) - 3.0;
        Unknown { x: 0.0, r: b, p: b, q: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.reduce(Rr, |g| &mut g.rr);
        stages.until(Arrived, 200, |stages| {
            stages.jacobi(Multiply, 1);
            stages.reduce(Pq, |g| &mut g.pq);
            stages.scalar(Step);
            stages.map(Descend);
            stages.reduce(Rr, |g| &mut g.rr);
            stages.scalar(Turn);
            stages.map(Direct);
        });
    }
}

#[test]
fn conjugate_gradients() {
    check("conjugate_gradients", || Poisson);
}
