use super::*;

vertex! { struct Walker<R> { position: R, heads: R } }
struct Walk;

kernels! {
    for Walk: Walker;
    map Wander |p, own| {
        let is_head = p.uniform(1).less(R::lit(0.5));
        Walker { position: own.position + p.normal(2), heads: own.heads + R::select(is_head, R::lit(1.0), R::lit(0.0)) }
    };
}

impl Program for Walk {
    fn initial(&self, _: &Mesh, _: u32) -> Walker<f64> {
        Walker { position: 0.0, heads: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Wander);
    }
}

#[test]
fn random_walk() {
    check("random_walk", || Walk);
}
