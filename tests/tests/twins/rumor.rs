use super::*;

vertex! { struct Person<R> { shared steps: R::Int } }
struct Rumor;

kernels! {
    for Rumor: Person;
    quiet update Tell |_, own, around| {
        let steps: R::Int = around.fold(Edges, own.steps, |least: R::Int, [other], ()| {
            let steps = other.steps + R::Int::lit(1);
            R::Int::select(steps.less(least), steps, least)
        });
        Person { steps }
    };
}

impl Program for Rumor {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        edges(mesh, stars)
    }
    fn initial(&self, _: &Mesh, v: u32) -> Person<f64> {
        Person { steps: Int(if v == 0 { 0 } else { 1 << 30 }) }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.fixpoint(Tell, 1000);
    }
}

#[test]
fn rumor() {
    check("rumor", || Rumor);
}
