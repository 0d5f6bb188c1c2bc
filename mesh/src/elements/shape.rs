//! Shape functions: a cell is a product of simplices, and its nodes are products of corners and middles of edges of these.

use crate::cell::CellKind;

/// Corners of the simplices whose product a kind is, and the corners of the kind in terms of those: a bit for each corner of a simplex.
struct Product {
    simplices: &'static [usize],
    corners: &'static [[u8; 3]],
}

/// Of a pyramid the four upper corners of a hex are one: its apex.
fn product(kind: CellKind) -> Product {
    const ANY: u8 = 3;
    let (simplices, corners): (&[usize], &[[u8; 3]]) = match kind {
        CellKind::Vertex => (&[], &[[0; 3]]),
        CellKind::Edge => (&[2], &[[1, 0, 0], [2, 0, 0]]),
        CellKind::Triangle => (&[3], &[[1, 0, 0], [2, 0, 0], [4, 0, 0]]),
        CellKind::Quad => (&[2, 2], &[[1, 1, 0], [2, 1, 0], [2, 2, 0], [1, 2, 0]]),
        CellKind::Tet => (&[4], &[[1, 0, 0], [2, 0, 0], [4, 0, 0], [8, 0, 0]]),
        CellKind::Pyramid => (&[2, 2, 2], &[[1, 1, 1], [2, 1, 1], [2, 2, 1], [1, 2, 1], [ANY, ANY, 2]]),
        CellKind::Wedge => (&[3, 2], &[[1, 1, 0], [2, 1, 0], [4, 1, 0], [1, 2, 0], [2, 2, 0], [4, 2, 0]]),
        CellKind::Hex => {
            (&[2, 2, 2], &[[1, 1, 1], [2, 1, 1], [2, 2, 1], [1, 2, 1], [1, 1, 2], [2, 1, 2], [2, 2, 2], [1, 2, 2]])
        }
    };
    Product { simplices, corners }
}

/// A simplex cut in the middles of its edges: corners of the parts, as bits of the corners that they lie between.
fn cut(corners: usize) -> &'static [&'static [u8]] {
    match corners {
        2 => &[&[1, 3], &[3, 2]],
        3 => &[&[1, 3, 5], &[3, 2, 6], &[5, 6, 4], &[3, 6, 5]],
        _ => &[
            &[1, 3, 5, 9],
            &[3, 2, 6, 10],
            &[5, 6, 4, 12],
            &[9, 10, 12, 8],
            &[5, 10, 3, 6],
            &[5, 10, 6, 12],
            &[5, 10, 12, 9],
            &[5, 10, 9, 3],
        ],
    }
}

/// A function's value at a place, and its slope there.
pub(super) type Function = (f64, [f64; 3]);

/// The nodes of an element, and where it is looked at.
pub(super) struct Shape {
    /// The corners that each node lies in the middle of. Those that are corners come first, as the kind has them.
    pub(super) nodes: Vec<Vec<u8>>,
    /// Cells between the nodes that fill the element: their corners among the nodes.
    pub(super) parts: Vec<Vec<u8>>,
    /// Points at which products of shape functions are summed up, and those of their slopes.
    pub(super) values: Vec<Sample>,
    pub(super) slopes: Vec<Sample>,
    /// Where slopes are looked up for each node: there, or of degree 1 in the middle.
    pub(super) at_nodes: Vec<Sample>,
}

/// A point of an element.
pub(super) struct Sample {
    /// Its share of the element as it is before it is brought to its place.
    pub(super) weight: f64,
    /// Weights of the corners there, and how they change along up to three axes of the element.
    pub(super) corners: Vec<Function>,
    /// The same of the nodes.
    pub(super) nodes: Vec<Function>,
}

impl Shape {
    /// None of a pyramid of degree 2.
    pub(super) fn new(kind: CellKind, degree: usize) -> Option<Shape> {
        let Product { simplices, corners } = product(kind);
        let masks: Vec<[u8; 3]> = match degree {
            1 => corners.to_vec(),
            _ if kind == CellKind::Pyramid => return None,
            _ => middles(simplices, corners),
        };
        let is_in = |corner: &[u8; 3], mask: &[u8; 3]| (0..simplices.len()).all(|k| corner[k] & mask[k] == corner[k]);
        let nodes = |mask: &[u8; 3]| (0..corners.len() as u8).filter(|&c| is_in(&corners[c as usize], mask)).collect();
        let place = |mask: [u8; 3]| masks.iter().position(|other| *other == mask).expect("a node") as u8;
        let parts = match degree {
            1 => vec![(0..corners.len() as u8).collect()],
            _ => pieces(simplices).map(|piece| corners.iter().map(|c| place(piece(*c))).collect()).collect(),
        };
        let sample = |at: &[[f64; 4]; 3], weight: f64| Sample {
            weight,
            corners: corners.iter().map(|mask| function(simplices, mask, at, 1)).collect(),
            nodes: masks.iter().map(|mask| function(simplices, mask, at, degree)).collect(),
        };
        let summed = |exact: usize| points(simplices, exact).iter().map(|(at, weight)| sample(at, *weight)).collect();
        let is_simplex = simplices.len() == 1;
        let at_nodes = masks.iter().map(|mask| sample(&if degree == 1 { middle(simplices) } else { at(mask) }, 0.0));
        Some(Shape {
            nodes: masks.iter().map(nodes).collect(),
            parts,
            values: summed(degree + 1),
            slopes: summed(if is_simplex { degree } else { degree + 1 }),
            at_nodes: at_nodes.collect(),
        })
    }
}

/// The nodes of degree 2: products of corners and middles. Corners come first, then by how many corners they lie between.
fn middles(simplices: &[usize], corners: &[[u8; 3]]) -> Vec<[u8; 3]> {
    let of = |k: usize| -> Vec<u8> {
        let corners = simplices.get(k).copied().unwrap_or(0);
        (0..1u8 << corners).filter(|mask| corners == 0 || (1..=2).contains(&mask.count_ones())).collect()
    };
    let [first, second, third] = [0, 1, 2].map(of);
    let mut masks = corners.to_vec();
    for &c in &third {
        for &b in &second {
            masks.extend(first.iter().map(|&a| [a, b, c]).filter(|mask| !corners.contains(mask)));
        }
    }
    masks[corners.len()..].sort_by_key(|mask| mask.map(u8::count_ones).iter().sum::<u32>());
    masks
}

/// The products of the parts of the simplices: each takes a corner of the kind to one of its own.
fn pieces(simplices: &[usize]) -> impl Iterator<Item = impl Fn([u8; 3]) -> [u8; 3]> {
    let cuts: Vec<&[&[u8]]> = simplices.iter().map(|&n| cut(n)).collect();
    let count = cuts.iter().map(|cut| cut.len()).product();
    (0..count).map(move |piece| {
        let mut rest = piece;
        let chosen: Vec<&[u8]> = cuts
            .iter()
            .map(|cut| {
                let own = cut[rest % cut.len()];
                rest /= cut.len();
                own
            })
            .collect();
        move |corner: [u8; 3]| {
            let mut mask = corner;
            chosen.iter().zip(&mut mask).for_each(|(part, mask)| *mask = part[mask.trailing_zeros() as usize]);
            mask
        }
    })
}

/// A node's function at a place, given by its barycentric coordinates in each simplex, and its slopes along the axes of the element.
fn function(simplices: &[usize], mask: &[u8; 3], at: &[[f64; 4]; 3], degree: usize) -> Function {
    let (mut value, mut slopes, mut first) = (1.0, [0.0; 3], 0);
    for (k, &corners) in simplices.iter().enumerate() {
        // By each barycentric coordinate.
        let (own, by) = factor(mask[k], &at[k], degree);
        slopes[..first].iter_mut().for_each(|slope| *slope *= own);
        (1..corners).for_each(|i| slopes[first + i - 1] = value * (by[i] - by[0]));
        value *= own;
        first += corners - 1;
    }
    (value, slopes)
}

fn factor(mask: u8, at: &[f64; 4], degree: usize) -> (f64, [f64; 4]) {
    let is_in = |i: usize| mask >> i & 1 == 1;
    let mut by = [0.0; 4];
    if degree == 1 {
        (0..4).filter(|&i| is_in(i)).for_each(|i| by[i] = 1.0);
        return ((0..4).filter(|&i| is_in(i)).map(|i| at[i]).sum(), by);
    }
    let i = mask.trailing_zeros() as usize;
    let j = 7 - mask.leading_zeros() as usize;
    if i == j {
        by[i] = 4.0 * at[i] - 1.0;
        return (at[i] * (2.0 * at[i] - 1.0), by);
    }
    (by[i], by[j]) = (4.0 * at[j], 4.0 * at[i]);
    (4.0 * at[i] * at[j], by)
}

/// The middle, by barycentric coordinates.
fn middle(simplices: &[usize]) -> [[f64; 4]; 3] {
    let mut at = [[0.0; 4]; 3];
    simplices.iter().zip(&mut at).for_each(|(&n, at)| at[..n].fill(1.0 / n as f64));
    at
}

/// The place of a node.
fn at(mask: &[u8; 3]) -> [[f64; 4]; 3] {
    mask.map(|mask| std::array::from_fn(|i| f64::from(mask >> i & 1) / f64::from(mask.count_ones().max(1))))
}

/// Points and weights that sum up polynomials of degree `2 exact - 1` without error, in each simplex.
///
/// Source: Stroud, Approximate Calculation of Multiple Integrals, 1971, section 2.4: products of Gauss–Jacobi rules.
fn points(simplices: &[usize], exact: usize) -> Vec<([[f64; 4]; 3], f64)> {
    let mut all = vec![([[0.0; 4]; 3], 1.0)];
    for (k, &corners) in simplices.iter().enumerate() {
        let own = simplex(corners, exact);
        let with = |(at, weight): ([[f64; 4]; 3], f64)| {
            own.iter().map(move |&(place, share)| {
                let mut at = at;
                at[k] = place;
                (at, weight * share)
            })
        };
        all = all.into_iter().flat_map(with).collect();
    }
    all
}

fn simplex(corners: usize, exact: usize) -> Vec<([f64; 4], f64)> {
    let mut all = vec![([0.0; 4], 1.0, 1.0)];
    // What is left for the other coordinates is what the rule of the next has as weight.
    for axis in (1..corners).rev() {
        let own = GAUSS_JACOBI[axis - 1][exact - 1];
        let with = |(at, rest, weight): ([f64; 4], f64, f64)| {
            own.iter().map(move |&[x, share]| {
                let mut at = at;
                at[axis] = rest * x;
                (at, rest * (1.0 - x), weight * share)
            })
        };
        all = all.into_iter().flat_map(with).collect();
    }
    all.into_iter()
        .map(|(mut at, rest, weight)| {
            at[0] = rest;
            (at, weight)
        })
        .collect()
}

/// Points between 0 and 1 and their weights, for `∫ (1 - x)^k f(x) dx`: by `k`, by how many less 1.
const GAUSS_JACOBI: [[&[[f64; 2]]; 3]; 3] = [
    [
        &[[0.5, 1.0]],
        &[[0.2113248654051871, 0.5], [0.7886751345948129, 0.5]],
        &[
            [0.11270166537925831, 0.2777777777777778],
            [0.5, 0.4444444444444444],
            [0.8872983346207417, 0.2777777777777778],
        ],
    ],
    [
        &[[0.3333333333333333, 0.5]],
        &[[0.1550510257216822, 0.31804138174397717], [0.6449489742783178, 0.18195861825602283]],
        &[
            [0.08858795951270394, 0.20093191373895963],
            [0.4094668644407347, 0.22924110635958625],
            [0.787659461760847, 0.06982697990145412],
        ],
    ],
    [
        &[[0.25, 0.3333333333333333]],
        &[[0.12251482265544138, 0.2325474512535079], [0.5441518440112253, 0.10078588207982543]],
        &[
            [0.07299402407314973, 0.15713636106488663],
            [0.34700376603835187, 0.14624626925986603],
            [0.7050022098884984, 0.029950703008580697],
        ],
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = (CellKind, usize, Shape)> {
        let kinds = CellKind::ALL.into_iter().filter(|kind| kind.dimension() > 0);
        kinds.flat_map(|kind| [1, 2].into_iter().filter_map(move |d| Some((kind, d, Shape::new(kind, d)?))))
    }

    #[test]
    fn functions_add_up_to_one_and_are_one_at_their_own_node() {
        for (kind, degree, shape) in all() {
            for sample in shape.values.iter().chain(&shape.slopes) {
                let sum = |of: &dyn Fn(&Function) -> f64| sample.nodes.iter().map(of).sum::<f64>();
                assert!((sum(&|node| node.0) - 1.0).abs() < 1e-14, "{kind:?} {degree}");
                assert!((0..3).all(|k| sum(&|node| node.1[k]).abs() < 1e-14), "{kind:?} {degree}");
            }
            if degree == 2 {
                for (i, sample) in shape.at_nodes.iter().enumerate() {
                    assert!((0..shape.nodes.len()).all(|j| sample.nodes[j].0 == f64::from(u8::from(i == j))));
                }
            }
        }
    }

    #[test]
    fn rules_sum_polynomials_up_without_error() {
        for corners in [2, 3, 4] {
            for exact in 1..=3 {
                for power in 0..2 * exact as i32 {
                    let expected: f64 = (1..corners).map(|k| 1.0 / f64::from(power + k)).product();
                    for axis in 0..corners as usize {
                        let rule = simplex(corners as usize, exact);
                        let sum: f64 = rule.iter().map(|(at, weight)| weight * at[axis].powi(power)).sum();
                        assert!(
                            (sum / expected - 1.0).abs() < 1e-14,
                            "{corners} {exact} {power} {axis}: {sum} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn slopes_are_differences() {
        for (kind, degree, _) in all() {
            let Product { simplices, corners } = product(kind);
            let masks = if degree == 1 { corners.to_vec() } else { middles(simplices, corners) };
            let (mut axis, middle) = (0, middle(simplices));
            for (k, &n) in simplices.iter().enumerate() {
                for i in 1..n {
                    let moved = |by: f64| {
                        let mut at = middle;
                        at[k][i] += by;
                        at[k][0] -= by;
                        at
                    };
                    for mask in &masks {
                        let value = |by: f64| function(simplices, mask, &moved(by), degree).0;
                        let slope = function(simplices, mask, &middle, degree).1[axis];
                        assert!((slope - (value(1e-3) - value(-1e-3)) / 2e-3).abs() < 1e-9, "{kind:?} {degree}");
                    }
                    axis += 1;
                }
            }
        }
    }
}
