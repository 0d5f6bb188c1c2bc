//! Solids cut open, so that a picture shows what is inside.
//!
//! The cut is made once, in the mesh at rest, by one or two planes through the middle of its box. Where it passes through cells it
//! makes points of its own, each a mean of vertices: they move with these and have the color that the field has between them.

use std::collections::HashMap;

use meshweft_mesh::{Cells, Mesh, parallel};

/// What is removed of a solid on the side of the camera. Meshes without solid cells stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Section {
    /// Nothing.
    None,
    /// The half in front of a plane.
    Half,
    /// The quarter in front of two planes.
    #[default]
    Quarter,
}

/// A mean of vertices of a cell: up to four with weights that are not 0, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    vertices: [u32; 4],
    weights: [f64; 4],
}

impl Mean {
    fn of_vertex(v: u32) -> Mean {
        Mean { vertices: [v; 4], weights: [1.0, 0.0, 0.0, 0.0] }
    }

    /// The vertices.
    pub fn vertices(&self) -> impl Iterator<Item = u32> {
        self.weighted().map(|(v, _)| v)
    }

    /// The mean of a number of each vertex.
    ///
    /// ```
    /// use meshweft_picture::{Section, Skin};
    /// let mesh = meshweft_mesh::generate::generate("box:3", 1)?;
    /// let skin = Skin::of(&mesh, Section::Half, [0.0, -1.0, 0.0]);
    /// // The box is cut between two layers of points, and each point of the cut lies in the plane.
    /// let middle = (mesh.bounds()[0][1] + mesh.bounds()[1][1]) / 2.0;
    /// assert!(skin.cuts.iter().any(|cut| (cut.mean(|v| mesh.points()[v as usize][1]) - middle).abs() < 1e-12));
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn mean(&self, number: impl Fn(u32) -> f64) -> f64 {
        self.weighted().map(|(v, weight)| weight * number(v)).sum()
    }

    /// Where it is, given the places of all vertices, shape [n × 3].
    pub fn place(&self, points: &[[f64; 3]]) -> [f64; 3] {
        std::array::from_fn(|k| self.mean(|v| points[v as usize][k]))
    }

    /// The vertex that counts most; of several, the first.
    pub fn nearest(&self) -> u32 {
        let heavier = |best: (u32, f64), next: (u32, f64)| if next.1 > best.1 { next } else { best };
        self.weighted().reduce(heavier).map_or(self.vertices[0], |(v, _)| v)
    }

    fn weighted(&self) -> impl Iterator<Item = (u32, f64)> {
        self.vertices.into_iter().zip(self.weights).filter(|&(_, weight)| weight != 0.0)
    }

    /// The mean of two at `t` of the way, if they have no more than four vertices together.
    fn between(&self, other: &Mean, t: f64) -> Option<Mean> {
        let mut all: Vec<(u32, f64)> = self.weighted().map(|(v, weight)| (v, weight * (1.0 - t))).collect();
        for (v, weight) in other.weighted() {
            match all.iter_mut().find(|(known, _)| *known == v) {
                Some((_, sum)) => *sum += weight * t,
                None => all.push((v, weight * t)),
            }
        }
        all.retain(|&(_, weight)| weight != 0.0);
        all.sort_unstable_by_key(|&(v, _)| v);
        let last = all.last()?.0;
        (all.len() <= 4).then(|| Mean {
            vertices: std::array::from_fn(|k| all.get(k).map_or(last, |&(v, _)| v)),
            weights: std::array::from_fn(|k| all.get(k).map_or(0.0, |&(_, weight)| weight)),
        })
    }

    /// What tells it from all others.
    fn key(&self) -> ([u32; 4], [u64; 4]) {
        (self.vertices, self.weights.map(f64::to_bits))
    }
}

/// The triangles that show a mesh.
#[derive(Clone, Debug, Default)]
pub struct Skin {
    /// Corners: vertices of the mesh, and behind their numbers those of `cuts`. Shape [triangles × 3].
    pub triangles: Vec<[u32; 3]>,
    /// The same of the faces of a cut.
    pub faces: Vec<[u32; 3]>,
    /// Points that are no vertices.
    pub cuts: Vec<Mean>,
}

impl Skin {
    /// The surface of a mesh, and for solids that are opened toward the camera the faces of the cut. `toward` points from the mesh to
    /// the camera. Cost: one pass over the cells, beside that of [`Mesh::surface`].
    pub fn of(mesh: &Mesh, section: Section, toward: [f64; 3]) -> Skin {
        let surface = mesh.surface();
        let count = if mesh.dimension() < 3 { 0 } else { [0, 1, 2][section as usize] };
        if count == 0 {
            return Skin { triangles: surface, ..Skin::default() };
        }
        let cut = Cut::new(mesh, count, toward);
        let mut points = Points { vertices: mesh.points().len() as u32, cuts: Vec::new(), known: HashMap::new() };
        let (mut triangles, mut faces) = (Vec::new(), Vec::new());
        for triangle in surface {
            let polygons = cut.outside(triangle.map(|v| cut.corner(v)).to_vec());
            polygons.iter().for_each(|polygon| triangles.extend(points.triangles(polygon)));
        }
        for tet in cut.cells(mesh).tets().iter() {
            (0..count).for_each(|k| faces.extend(points.triangles(&cut.face(*tet, k))));
        }
        Skin { triangles, faces, cuts: points.cuts }
    }
}

/// The planes, and on which side of them vertices lie: what is in front of all of them is removed.
struct Cut<'a> {
    points: &'a [[f64; 3]],
    count: usize,
    /// Axis of each plane, the sign of the side toward the camera, and the coordinate of the plane.
    planes: [(usize, f64, f64); 2],
}

/// A corner of a polygon, with its distances before the planes.
#[derive(Clone, Copy)]
struct Corner {
    mean: Mean,
    before: [f64; 2],
}

impl<'a> Cut<'a> {
    /// Planes across the axes along which the camera is farthest.
    fn new(mesh: &'a Mesh, count: usize, toward: [f64; 3]) -> Cut<'a> {
        let [low, high] = mesh.bounds();
        let mut axes = [0, 1, 2];
        axes.sort_by(|&a, &b| toward[b].abs().total_cmp(&toward[a].abs()));
        let plane = |k: usize| (k, toward[k].signum(), 0.5 * low[k] + 0.5 * high[k]);
        Cut { points: mesh.points(), count, planes: [plane(axes[0]), plane(axes[1])] }
    }

    fn corner(&self, v: u32) -> Corner {
        let p = &self.points[v as usize];
        let before = self.planes.map(|(axis, sign, at)| sign * (p[axis] - at));
        Corner { mean: Mean::of_vertex(v), before }
    }

    /// The solid cells that the planes pass through, as a mesh.
    fn cells(&self, mesh: &Mesh) -> Mesh {
        let is_cut = |c: usize| {
            let corners = mesh.cells().corners(c);
            let is_across = |k: usize| {
                let front = |v: &&u32| self.corner(**v).before[k] > 0.0;
                let in_front = corners.iter().filter(front).count();
                in_front > 0 && in_front < corners.len()
            };
            mesh.cells().kind(c).dimension() == 3 && (0..self.count).any(is_across)
        };
        let mut cells = Cells::new();
        for c in parallel::filter(mesh.cells().len(), is_cut) {
            cells.push(mesh.cells().kind(c as usize), mesh.cells().corners(c as usize));
        }
        Mesh::new(mesh.points().to_vec(), cells).expect("cells of a mesh are a mesh")
    }

    /// What is left of a polygon.
    fn outside(&self, polygon: Vec<Corner>) -> Vec<Vec<Corner>> {
        if self.count == 1 {
            return vec![clip(&polygon, 0, false)];
        }
        let straddles = |k: usize| polygon.iter().any(|c| c.before[k] > 0.0);
        if !(straddles(0) && straddles(1)) {
            return vec![polygon];
        }
        vec![clip(&polygon, 0, false), clip(&clip(&polygon, 0, true), 1, false)]
    }

    /// The part of a tet in plane `k` that borders on what is removed.
    fn face(&self, tet: [u32; 4], k: usize) -> Vec<Corner> {
        let corners = tet.map(|v| self.corner(v));
        let (front, back): (Vec<Corner>, Vec<Corner>) = corners.into_iter().partition(|c| c.before[k] > 0.0);
        let polygon = match (&front[..], &back[..]) {
            ([a], others) | (others, [a]) => others.iter().filter_map(|b| crossing(a, b, k)).collect(),
            ([a, b], [c, d]) => {
                [(a, c), (a, d), (b, d), (b, c)].iter().filter_map(|(p, q)| crossing(p, q, k)).collect()
            }
            _ => Vec::new(),
        };
        if self.count == 1 { polygon } else { clip(&polygon, 1 - k, true) }
    }
}

/// The part of a convex polygon in front of plane `k` or not in front of it.
fn clip(polygon: &[Corner], k: usize, front: bool) -> Vec<Corner> {
    let stays = |c: &Corner| (c.before[k] > 0.0) == front;
    let mut left = Vec::with_capacity(polygon.len() + 1);
    for (i, own) in polygon.iter().enumerate() {
        let next = &polygon[(i + 1) % polygon.len()];
        if stays(own) {
            left.push(*own);
        }
        if stays(own) != stays(next) {
            left.extend(crossing(own, next, k));
        }
    }
    left
}

/// Where the side between two corners on either side of plane `k` meets it. The same from both ends, to the bit.
fn crossing(a: &Corner, b: &Corner, k: usize) -> Option<Corner> {
    let (a, b) = if a.mean.key() <= b.mean.key() { (a, b) } else { (b, a) };
    let t = a.before[k] / (a.before[k] - b.before[k]);
    let t = if t.is_finite() { t.clamp(0.0, 1.0) } else { 0.5 };
    let mut before: [f64; 2] = std::array::from_fn(|j| a.before[j] * (1.0 - t) + b.before[j] * t);
    before[k] = 0.0;
    Some(Corner { mean: a.mean.between(&b.mean, t)?, before })
}

/// The points of a skin, each once.
struct Points {
    vertices: u32,
    cuts: Vec<Mean>,
    known: HashMap<([u32; 4], [u64; 4]), u32>,
}

impl Points {
    /// The triangles of a convex polygon. Corners that fall together leave none.
    fn triangles(&mut self, polygon: &[Corner]) -> Vec<[u32; 3]> {
        let corners: Vec<u32> = polygon.iter().map(|corner| self.number(&corner.mean)).collect();
        let fan = (2..corners.len()).map(|k| [corners[0], corners[k - 1], corners[k]]);
        fan.filter(|[a, b, c]| a != b && b != c && c != a).collect()
    }

    fn number(&mut self, mean: &Mean) -> u32 {
        if mean.weights[0] == 1.0 {
            return mean.vertices[0];
        }
        *self.known.entry(mean.key()).or_insert_with(|| {
            self.cuts.push(*mean);
            self.vertices + self.cuts.len() as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::generate::generate;

    /// Area of the triangles that `takes` takes.
    fn area(mesh: &Mesh, skin: &Skin, takes: impl Fn([[f64; 3]; 3]) -> bool) -> f64 {
        let n = mesh.points().len() as u32;
        let point = |v: u32| match v < n {
            true => mesh.points()[v as usize],
            false => skin.cuts[(v - n) as usize].place(mesh.points()),
        };
        let triangles = skin.triangles.iter().chain(&skin.faces).map(|t| t.map(point)).filter(|t| takes(*t));
        let area = |[a, b, c]: [[f64; 3]; 3]| {
            let (u, v): ([f64; 3], [f64; 3]) =
                (std::array::from_fn(|k| b[k] - a[k]), std::array::from_fn(|k| c[k] - a[k]));
            let n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
            0.5 * n.iter().map(|x| x * x).sum::<f64>().sqrt()
        };
        triangles.map(area).sum()
    }

    #[test]
    fn a_box_that_is_opened_has_the_area_of_its_shape() {
        // With an even number of layers the planes go through points, with an odd one through cells.
        for spec in ["box:4", "box:5", "bar:3", "hexes:4"] {
            let mesh = generate(spec, 1).unwrap();
            let [low, high] = mesh.bounds();
            let [x, y, z]: [f64; 3] = std::array::from_fn(|k| high[k] - low[k]);
            let whole = 2.0 * (x * y + y * z + z * x);
            let toward = [0.4, -0.8, 0.4];
            let check = |section: Section, expected: f64| {
                let skin = Skin::of(&mesh, section, toward);
                let found = area(&mesh, &skin, |_| true);
                assert!((found / expected - 1.0).abs() < 1e-9, "{spec} {section:?}: {found}, not {expected}");
            };
            check(Section::None, whole);
            check(Section::Half, whole - y * (x + z));
            // The quarter takes a quarter of top and bottom, and leaves as much wall as it takes.
            check(Section::Quarter, whole - 0.5 * x * y);
        }
    }

    #[test]
    fn the_inside_of_a_ball_is_seen_and_its_points_are_means() {
        let mesh = generate("ball:6", 1).unwrap();
        let skin = Skin::of(&mesh, Section::Quarter, [0.4, -0.8, 0.3]);
        let middle: [f64; 3] = std::array::from_fn(|k| 0.5 * (mesh.bounds()[0][k] + mesh.bounds()[1][k]));
        let flat = |k: usize| {
            area(&mesh, &skin, |t| t.iter().all(|p| (p[k] - middle[k]).abs() < 1e-9)) / std::f64::consts::FRAC_PI_2
        };
        let radius2 = (mesh.bounds()[1][2] - middle[2]).powi(2);
        for k in [0, 1] {
            assert!((flat(k) / radius2 - 1.0).abs() < 0.05, "a half disk, not {} of one", flat(k) / radius2);
        }
        assert!(skin.cuts.iter().all(|cut| (cut.mean(|_| 1.0) - 1.0).abs() < 1e-12));
        let weight = |cut: &Mean, v: u32| cut.mean(|u| f64::from(u8::from(u == v)));
        let is_heaviest = |cut: &Mean| cut.vertices().all(|v| weight(cut, v) <= weight(cut, cut.nearest()));
        assert!(skin.cuts.iter().all(is_heaviest));
    }

    #[test]
    fn what_is_no_solid_stays_as_it_is() {
        let mesh = generate("torus:6", 1).unwrap();
        let skin = Skin::of(&mesh, Section::Quarter, [1.0, 0.0, 0.0]);
        assert_eq!((skin.triangles, skin.cuts.len()), (mesh.surface(), 0));
    }
}
