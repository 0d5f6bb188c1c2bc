use super::*;

vertex! { struct Site<R> { shared label: R::Int } }
record! { struct Parameters<R> { chance: R } }
struct Percolation;

kernels! {
    for Percolation: Site, Parameters;
    map Open |p, _| Site { label: R::Int::select(p.uniform(7).less(p.chance), p.vertex(), R::Int::lit(-1)) };
    quiet update Join |_, own, around| {
        let label: R::Int = around.fold(Edges, own.label, |label: R::Int, [other], ()| {
            let joins = R::Int::lit(0).at_most(other.label) & other.label.less(label);
            R::Int::select(joins, other.label, label)
        });
        Site { label }
    };
}

impl Program for Percolation {
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { chance: 0.6 }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        edges(mesh, stars)
    }
    fn initial(&self, _: &Mesh, _: u32) -> Site<f64> {
        Site { label: Int(0) }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Open);
        stages.fixpoint(Join, 10_000);
    }
}

#[test]
fn percolation() {
    check("percolation", || Percolation);
}
