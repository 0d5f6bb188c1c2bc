//! Elements of four to eight corners.

use super::*;

vertex! { pub struct Sum<R> { shared x: R, of: [R; 4] } }
stars! {
    Quads[3]: R;
    Pyramids[4]: R;
    Wedges[5]: R;
    Hexes[7]: R;
}

/// Sums over the elements of each shape, every other corner with a weight of its own.
#[derive(Clone)]
struct Corners;

kernels! {
    for Corners: Sum;
    update Add |_, own, around| {
        let quads = around.sum(Quads, |o, w| w * (o[0].x + R::lit(10.0) * o[1].x + R::lit(100.0) * o[2].x));
        let pyramids = around.sum(Pyramids, |o, w| w * weigh(o.map(|other| other.x)));
        let wedges = around.sum(Wedges, |o, w| w * weigh(o.map(|other| other.x)));
        let hexes = around.sum(Hexes, |o, w| w * weigh(o.map(|other| other.x)));
        Sum { x: own.x, of: [quads, pyramids, wedges, hexes] }
    };
}

/// The `k`-th value has the weight `3^k`.
fn weigh<R: Real, const N: usize>(values: [R; N]) -> R {
    values.into_iter().rev().fold(R::lit(0.0), |sum, x| sum * R::lit(3.0) + x)
}

/// Elements of `K` corners of the hexes of a mesh: some of the corners of each.
fn pick<const K: usize>(mesh: &Mesh) -> Vec<[u32; K]> {
    let hexes = mesh.cells().corners_of(CellKind::Hex);
    hexes.as_chunks::<8>().0.iter().map(|hex| std::array::from_fn(|k| hex[k])).collect()
}

fn weight<const K: usize>(incidence: &Incidence<K>) -> f64 {
    f64::from(incidence.vertices[0] % 5) + incidence.corner as f64
}

impl Program for Corners {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add_cells(Quads, CellKind::Quad, pick::<4>(mesh), |i| weight(&i));
        stars.add(Pyramids, pick::<5>(mesh), |i| weight(&i));
        stars.add(Wedges, pick::<6>(mesh), |i| weight(&i));
        stars.add(Hexes, pick::<8>(mesh), |i| weight(&i));
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Sum<f64> {
        Sum { x: f64::from(v % 11), of: [0.0; 4] }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Add, 1);
    }
}

/// What every vertex gathers of the elements of one shape, by the turns of that shape. All of it is integers, so no order of
/// sums shows.
fn by_hand<const K: usize>(mesh: &Mesh, shape: CellKind, weigh: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut sums = vec![0.0; mesh.points().len()];
    for element in pick::<K>(mesh) {
        for corner in 0..K {
            let turned: Vec<u32> = shape.turn(corner).iter().map(|&k| element[k]).collect();
            let values: Vec<f64> = turned[1..].iter().map(|&v| f64::from(v % 11)).collect();
            sums[turned[0] as usize] += (f64::from(turned[0] % 5) + corner as f64) * weigh(&values);
        }
    }
    sums
}

#[test]
fn elements_of_four_to_eight_corners_are_gathered_in_their_turns() {
    let mesh = generate("hexes:5", 1).unwrap();
    let powers = |values: &[f64]| values.iter().rev().fold(0.0, |sum, x| sum * 3.0 + x);
    let expected = [
        by_hand::<4>(&mesh, CellKind::Quad, |x| x[0] + 10.0 * x[1] + 100.0 * x[2]),
        by_hand::<5>(&mesh, CellKind::Pyramid, powers),
        by_hand::<6>(&mesh, CellKind::Wedge, powers),
        by_hand::<8>(&mesh, CellKind::Hex, powers),
    ];
    for order in Order::ALL {
        let sums = values(&after(1, &mesh, &Corners, order), "of");
        for (v, sum) in sums.as_chunks::<4>().0.iter().enumerate() {
            assert_eq!(*sum, expected.each_ref().map(|values| values[v]), "{order}, vertex {v}");
        }
        on_gpu(1, &mesh, &Corners, order, 0.0);
    }
}
