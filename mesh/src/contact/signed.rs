//! How far points are from a closed surface, and on which side.

use super::distance::{FARTHEST, point_triangle};
use super::surface::Surface;
use super::tree::{self, Order, Tree};
use crate::error::{Error, Result};
use crate::measure::{add, cross, dot, scaled, sub};

/// The signed distance from a closed surface of triangles: negative inside.
///
/// The sign is that of the pseudonormal of the closest face, edge or corner: Bærentzen and Aanæs, "Signed distance computation using the
/// angle weighted pseudonormal" (2005). So it is right for every surface that is closed, oriented outward, and does not pass through itself.
/// Triangles without an area have no side: their neighbors decide.
pub struct SignedDistance {
    triangles: Vec<[[f64; 3]; 3]>,
    /// Of each triangle: those of its face, of the edges that face corners 0, 1 and 2, and of the corners.
    normals: Vec<[[f64; 3]; 7]>,
    tree: Tree,
    bounds: tree::Bounds,
}

/// In its direction, of length 1; 0 where there is none.
fn unit(a: [f64; 3]) -> [f64; 3] {
    let largest = a.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    if largest == 0.0 {
        return a;
    }
    // Squares of the smallest numbers would be 0.
    let a = a.map(|x| x / largest);
    scaled(1.0 / dot(a, a).sqrt(), a)
}

impl SignedDistance {
    /// Gets ready to measure distances from a surface.
    ///
    /// `points`: shape `[n × 3]`. `triangles`: shape [triangles × 3], counterclockwise as seen from outside. Cost O(n log n).
    ///
    /// # Errors
    /// A surface that is not closed, or oriented in different ways, which names an edge; none at all; what [`Surface::new`] refuses.
    ///
    /// ```
    /// use meshweft_mesh::{contact::SignedDistance, generate::generate};
    /// let sphere = generate("sphere:16", 0)?;
    /// let ball = SignedDistance::new(sphere.points(), &sphere.triangles())?;
    /// let (distance, normal) = ball.at([1.5, 0.0, 0.0]);
    /// assert!((distance - 1.0).abs() < 1e-3 && normal[0] > 0.999);
    /// assert!(ball.at([0.1, 0.1, 0.0]).0 < 0.0);
    /// let open = SignedDistance::new(sphere.points(), &sphere.triangles()[1..]);
    /// assert!(open.is_err());
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn new(points: &[[f64; 3]], triangles: &[[u32; 3]]) -> Result<SignedDistance> {
        Surface::new(points, triangles, &[], &[])?;
        if triangles.is_empty() {
            return Err(Error::Invalid("a surface without triangles has no inside: give some".into()));
        }
        let sides = |t: usize| [0, 1, 2].map(|i| [triangles[t][(i + 1) % 3], triangles[t][(i + 2) % 3]]);
        let mut edges: Vec<([u32; 2], usize)> =
            (0..triangles.len()).flat_map(|t| sides(t).map(|side| (side, t))).collect();
        edges.sort_unstable();
        if let Some(pair) = edges.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let ([a, b], s, t) = (pair[0].0, pair[0].1, pair[1].1);
            return Err(Error::Invalid(format!(
                "triangles {s} and {t} both go from vertex {a} to {b}: orient all triangles the same way, two at each edge"
            )));
        }
        let across = |[a, b]: [u32; 2]| edges.binary_search_by_key(&[b, a], |edge| edge.0).ok().map(|i| edges[i].1);
        if let Some(&([a, b], t)) = edges.iter().find(|edge| across(edge.0).is_none()) {
            return Err(Error::Invalid(format!(
                "the surface is not closed: triangle {t} has no neighbor at the edge of vertices {a} and {b}"
            )));
        }
        let corners = |t: usize| triangles[t].map(|v| points[v as usize]);
        let faces: Vec<[f64; 3]> = (0..triangles.len())
            .map(|t| {
                let [a, b, c] = corners(t);
                unit(cross(sub(b, a), sub(c, a)))
            })
            .collect();
        let mut at_vertices = vec![[0.0; 3]; points.len()];
        for t in 0..triangles.len() {
            let p = corners(t);
            for i in 0..3 {
                let [one, other] = [1, 2].map(|k| unit(sub(p[(i + k) % 3], p[i])));
                let turned = cross(one, other);
                let angle = libm::atan2(dot(turned, turned).sqrt(), dot(one, other));
                let sum = &mut at_vertices[triangles[t][i] as usize];
                *sum = add(*sum, scaled(angle, faces[t]));
            }
        }
        // The sides of a triangle without an area are those of others too, and it has no normal.
        let wide: Vec<usize> = (0..triangles.len()).filter(|&t| faces[t] != [0.0; 3]).collect();
        if wide.is_empty() {
            return Err(Error::Invalid("no triangle of the surface has an area: it has no inside".into()));
        }
        let normals = wide.iter().map(|&t| {
            let [a, b, c] =
                sides(t).map(|side| add(faces[t], faces[across(side).expect("all edges have two triangles")]));
            let [u, v, w] = triangles[t].map(|v| at_vertices[v as usize]);
            [faces[t], a, b, c, u, v, w].map(unit)
        });
        let normals = normals.collect();
        let bounds = triangles.iter().flatten().map(|&v| [points[v as usize]; 2]).reduce(tree::wider);
        let bounds = bounds.expect("there are triangles");
        let around = |i: usize| tree::bounds(corners(wide[i]));
        let origin = corners(wide[0])[0];
        let boxes = |i: usize| tree::outward(around(i), 0.0, origin);
        let tree = Tree::new(Order::new(wide.len(), &around, &|i| triangles[wide[i]]), &boxes, origin);
        Ok(SignedDistance { triangles: wide.iter().map(|&t| corners(t)).collect(), normals, tree, bounds })
    }

    /// The distance of a point in meters, negative inside, and the direction in which it grows: of length 1, away from the surface outside and
    /// toward it inside, the pseudonormal on it.
    ///
    /// Of several points of the surface that are as close, that of the first triangle counts. For a point that is not finite, or beyond
    /// 1e30, nothing is a number. Cost O(log n) for most points.
    pub fn at(&self, point: [f64; 3]) -> (f64, [f64; 3]) {
        let found = |t: u32| point_triangle(point, self.triangles[t as usize]);
        let finite = point.iter().all(|x| x.abs() <= FARTHEST);
        let nearest = finite.then(|| self.tree.nearest(point, |t| found(t).squared)).flatten();
        let Some((squared, t)) = nearest else { return (f64::NAN, [f64::NAN; 3]) };
        let ([a, b, c], [u, v, w]) = (self.triangles[t as usize], found(t).weights);
        let feature = match [u, v, w].map(|weight| weight > 0.0) {
            [true, true, true] => 0,
            [false, true, true] => 1,
            [true, false, true] => 2,
            [true, true, false] => 3,
            [true, false, false] => 4,
            [false, true, false] => 5,
            _ => 6,
        };
        let normal = self.normals[t as usize][feature];
        let gap = sub(sub(point, a), add(scaled(v, sub(b, a)), scaled(w, sub(c, a))));
        // Far away all triangles are as close, by rounding.
        let outside = (0..3).any(|k| point[k] < self.bounds[0][k] || point[k] > self.bounds[1][k]);
        let sign = if dot(gap, normal) < 0.0 && !outside { -1.0 } else { 1.0 };
        let direction = if gap == [0.0; 3] { normal } else { scaled(sign, unit(gap)) };
        (sign * squared.sqrt(), direction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contact::testing::Random;
    use crate::generate::generate;

    /// A cube from -1 to 1 without its corner at (1, 1, 1), which is a cube from 0: it has edges and a corner that point inward.
    fn notched() -> (Vec<[f64; 3]>, Vec<[u32; 3]>) {
        let id = |x: i32, y: i32, z: i32| ((x + 1) * 9 + (y + 1) * 3 + z + 1) as u32;
        let points = (0..27).map(|i| [i / 9, i / 3 % 3, i % 3].map(|x| f64::from(x - 1))).collect();
        let solid = |x: i32, y: i32, z: i32| [x, y, z].iter().all(|x| (-1..1).contains(x)) && [x, y, z] != [0, 0, 0];
        let mut triangles = Vec::new();
        for cell in 0..8 {
            let (x, y, z) = (cell / 4 - 1, cell / 2 % 2 - 1, cell % 2 - 1);
            for (axis, step) in [(0, -1), (0, 1), (1, -1), (1, 1), (2, -1), (2, 1)] {
                let mut beside = [x, y, z];
                beside[axis] += step;
                if !solid(x, y, z) || solid(beside[0], beside[1], beside[2]) {
                    continue;
                }
                let corner = |u: i32, v: i32| {
                    let mut p = [x, y, z];
                    p[axis] += i32::from(step > 0);
                    (p[(axis + 1) % 3], p[(axis + 2) % 3]) = (p[(axis + 1) % 3] + u, p[(axis + 2) % 3] + v);
                    id(p[0], p[1], p[2])
                };
                let mut square = [corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)];
                if step < 0 {
                    square.reverse();
                }
                let [a, b, c, d] = square;
                triangles.extend([[a, b, c], [a, c, d]]);
            }
        }
        (points, triangles)
    }

    #[test]
    fn distances_from_a_notched_cube_are_those_of_its_formula() {
        let (points, triangles) = notched();
        let surface = SignedDistance::new(&points, &triangles).unwrap();
        let mut random = Random::new(2);
        for i in 0..20_000 {
            let mut p = random.point().map(|x| 1.5 * x);
            if i % 2 == 0 {
                p = p.map(|x| (x * 4.0).round() / 4.0); // many are on it, or as close to several faces
            }
            // Signs of distances of a cube with half width `half` at `middle`.
            let cube = |middle: f64, half: f64| {
                p.map(|x| (x - middle).abs() - half).into_iter().fold(f64::NEG_INFINITY, f64::max)
            };
            let (whole, notch) = (cube(0.0, 1.0), cube(0.5, 0.5));
            let inside = whole < 0.0 && notch > 0.0;
            let (distance, direction) = surface.at(p);
            let brute = triangles.iter().map(|t| point_triangle(p, t.map(|v| points[v as usize])).squared);
            assert_eq!(distance.abs(), brute.fold(f64::INFINITY, f64::min).sqrt(), "{p:?}");
            assert!(distance == 0.0 || (distance < 0.0) == inside, "{p:?}: {distance}");
            assert!((dot(direction, direction) - 1.0).abs() < 1e-14, "{p:?}: {direction:?}");
            // Along the direction, the closest point of the surface is where the distance says.
            let foot = sub(p, scaled(distance, direction));
            assert!(surface.at(foot).0.abs() < 1e-14, "{p:?}");
        }
    }

    #[test]
    fn open_and_twisted_surfaces_name_an_edge() {
        let tet = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]];
        let points = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        assert_eq!(SignedDistance::new(&points, &tet).unwrap().at([0.1; 3]).0, -0.1);
        let check = |triangles: &[[u32; 3]], points: &[[f64; 3]], expected: &str| {
            let error = SignedDistance::new(points, triangles).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&tet[..3], &points, "triangle 0 has no neighbor at the edge of vertices 0 and 2");
        check(&[tet[0], tet[1], tet[2], [0, 2, 3]], &points, "triangles 0 and 3 both go from vertex 0 to 2");
        check(&[], &points, "without triangles");
        check(&tet, &[[1.0; 3]; 4], "no triangle of the surface has an area");
        check(&tet, &points[..3], "vertices [0, 1, 3]");
    }

    #[test]
    fn any_point_has_an_answer() {
        let sphere = generate("sphere:4", 0).unwrap();
        let surface = SignedDistance::new(sphere.points(), &sphere.triangles()).unwrap();
        assert_eq!(surface.at([FARTHEST, 0.0, 0.0]).0, FARTHEST);
        for p in [[f64::NAN, 0.0, 0.0], [f64::INFINITY; 3], [0.0, 0.0, -1e200]] {
            assert!(surface.at(p).0.is_nan());
        }
        // Far from where a box in 32 bits has digits, and some triangles have no area.
        let mut points: Vec<[f64; 3]> = sphere.points().iter().map(|p| [p[0] + 1e9, p[1] - 1e9, p[2]]).collect();
        let [a, b, _] = sphere.triangles()[7];
        points[a as usize] = points[b as usize];
        let far = SignedDistance::new(&points, &sphere.triangles()).unwrap();
        assert!((far.at([1e9, -1e9, 0.0]).0 + 0.5).abs() < 0.05);
        assert!((far.at([1e9, 1.0 - 1e9, 0.0]).0 - 0.5).abs() < 0.05);
    }
}
