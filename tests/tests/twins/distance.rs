use super::*;

vertex! { struct Node<R> { shared distance: R } }
struct Distance;

kernels! {
    for Distance: Node;
    quiet update Reach |_, own, around| {
        let distance = around.fold(Springs, own.distance, |least, [other], length| {
            least.min(other.distance + length)
        });
        Node { distance }
    };
}

impl Program for Distance {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        lengths(mesh, stars)
    }
    fn initial(&self, _: &Mesh, v: u32) -> Node<f64> {
        Node { distance: if v == 0 { 0.0 } else { 1000.0 } }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Reach, 1);
    }
}

#[test]
fn distance() {
    check("distance", || Distance);
}
