//! A scene in front of a camera: everything that is known before the first pixel gets its color.

use meshweft_mesh::parallel;

use super::camera::View;
use super::colormap::bytes_to_linear;
use super::legend::round_step;
use super::raster::Band;
use super::scene::{Coloring, Prop, Scene};
use super::shadow::ShadowMap;
use super::vector::{Vector, add, corners, cross, dot, scale, smoothstep, sub, unit};

/// Cosine of 50 degrees: triangles at a steeper angle meet in a crease and keep normals of their own.
pub(super) const CREASE: f32 = 0.64;

/// What is drawn, in scene space and in samples.
pub(super) struct Figure {
    /// The color of all of the mesh in linear light, if no field gives it.
    pub plain: Option<Vector>,
    pub view: View,
    /// Points in scene space and as (x, y, inverse depth), shape [points]; zeros for points that cannot be seen.
    pub points: Vec<Vector>,
    pub screen: Vec<Vector>,
    /// Triangles and edges of points that can be seen, and the points drawn as dots.
    pub triangles: Vec<[u32; 3]>,
    /// Number of the first triangle that is the face of a cut.
    pub first_face: usize,
    pub edges: Vec<[u32; 2]>,
    pub dots: Vec<u32>,
    /// Normals at the corners, shape [triangles × 3].
    pub normals: Vec<[Vector; 3]>,
    /// Radius of lines and dots in the middle of the scene, in samples.
    pub line_radius: f32,
    pub dot_radius: f32,
    /// How dark wires over a surface are, 0 to 1: if they are dense they would hide it.
    pub wire: f32,
    /// Balls: center and radius.
    pub balls: Vec<(Vector, f32)>,
    /// Height of the ground, if it is below the camera: from below it would hide everything.
    pub ground: Option<f32>,
    /// Distance between the lines on the ground: 1, 2 or 5 times a power of ten in the units of the points.
    pub grid: f32,
    /// Shadows of the key light, and of the sky right above.
    pub key: Option<ShadowMap>,
    pub sky: Option<ShadowMap>,
}

/// What a primitive is, with its number among those of its kind.
pub(super) enum Item {
    Triangle(usize),
    Edge(usize),
    Dot(usize),
    Ball(usize),
}

impl Figure {
    /// Places the scene before the camera; `pixel` is the number of samples along the side of a pixel, of a picture of
    /// `area` pixels in which a thin line is `thin` pixels wide.
    pub fn new(scene: &Scene, view: View, pixel: f32, area: f32, thin: f32) -> Figure {
        let places = parallel::collect(scene.points.len(), |v| view.to_scene(&scene.points[v]));
        let screen = parallel::collect(places.len(), |v| places[v].and_then(|q| view.project(q)).unwrap_or_default());
        let points: Vec<Vector> = places.into_iter().map(Option::unwrap_or_default).collect();
        let visible = |v: &u32| screen.get(*v as usize).is_some_and(|s| s[2] > 0.0);
        let in_sight = |triangles: &[[u32; 3]]| -> Vec<[u32; 3]> {
            triangles.iter().filter(|t| t.iter().all(visible)).copied().collect()
        };
        let mut triangles = in_sight(scene.triangles);
        let first_face = triangles.len();
        triangles.extend(in_sight(scene.faces));
        let edges: Vec<[u32; 2]> = scene.edges.iter().filter(|e| e.iter().all(visible)).copied().collect();
        let dots: Vec<u32> = match scene.triangles.is_empty() {
            true => (0..points.len() as u32).filter(visible).collect(),
            false => Vec::new(),
        };
        let room = (area / dots.len().max(1) as f32).sqrt(); // pixels between dots spread evenly over the picture
        let share = if edges.is_empty() { 0.3 } else { 0.19 };
        let dot_radius = pixel * thin * (share * room / thin).clamp(1.0, 5.0);
        let line_radius = match scene.triangles.is_empty() {
            true => pixel * thin * (0.05 * room / thin).clamp(0.55, 1.5),
            false => pixel * thin * 0.5,
        };
        let plain = match scene.coloring {
            Coloring::Plain(color) => Some(bytes_to_linear(color)),
            Coloring::Scalar { .. } | Coloring::Kinds { .. } => None,
        };
        let wire = smoothstep(2.5, 16.0, mean_length(&screen, &edges) / (pixel * thin));
        let mut balls = Vec::new();
        let mut ground: Option<f32> = None;
        for prop in &scene.props {
            match *prop {
                Prop::Ball { center, radius } => {
                    let size = view.length_to_scene(radius);
                    balls.extend(view.to_scene(&center).filter(|_| size > 0.0 && size < 1e6).map(|c| (c, size)));
                }
                Prop::Ground { height } => {
                    // A little lower than it is, so that cloth that lies on it is in front of it.
                    let height = view.height_to_scene(height) - 2e-3;
                    ground = Some(height).filter(|h| h.abs() < 1e6 && *h < view.eye[2]).or(ground);
                }
            }
        }
        let normals = corner_normals(&points, &triangles);
        let grid = view.length_to_scene(round_step(view.length_from_scene(0.28)));
        let key = ShadowMap::new(view.key_light, 0.11, &points, &triangles, &balls);
        let sky = ShadowMap::new([0.0, 0.0, 1.0], 0.9, &points, &triangles, &balls);
        Figure {
            plain,
            view,
            points,
            screen,
            triangles,
            first_face,
            edges,
            dots,
            normals,
            line_radius,
            dot_radius,
            wire,
            balls,
            ground,
            grid,
            key,
            sky,
        }
    }

    /// Number of primitives: triangles, edges, dots and balls, in this order.
    pub fn primitives(&self) -> usize {
        self.triangles.len() + self.edges.len() + self.dots.len() + self.balls.len()
    }

    /// The rows that a primitive can touch, first and last; None for one beside the picture of `width` samples.
    pub fn extent(&self, id: usize, width: f32) -> Option<[f32; 2]> {
        let spread = |y: &[f32], margin: f32| {
            let low = y.iter().fold(f32::INFINITY, |m, y| m.min(*y)) - margin;
            let high = y.iter().fold(f32::NEG_INFINITY, |m, y| m.max(*y)) + margin;
            [low, high]
        };
        match self.item(id as u32) {
            Item::Triangle(i) => {
                let p = corners(&self.screen, self.triangles[i]);
                let beside = p.iter().all(|p| p[0] < 0.0) || p.iter().all(|p| p[0] > width);
                (!beside).then(|| spread(&p.map(|p| p[1]), 0.0))
            }
            Item::Edge(i) => {
                let ([a, b], r) = self.line(i);
                Some(spread(&[a[1], b[1]], r[0].max(r[1])))
            }
            Item::Dot(i) => {
                let (p, r) = self.dot(i);
                Some(spread(&[p[1]], r))
            }
            Item::Ball(_) => Some([0.0, f32::MAX]),
        }
    }

    /// Puts a primitive into the rows of a band.
    pub fn paint(&self, id: u32, band: &mut Band) {
        // What lies on a surface is in front of it.
        let raised = |[x, y, z]: Vector, by: f32| [x, y, z * by];
        match self.item(id) {
            Item::Triangle(i) => band.triangle(corners(&self.screen, self.triangles[i]), id),
            Item::Edge(i) => {
                let (ends, radius) = self.line(i);
                band.line(ends.map(|p| raised(p, 1.002)), radius, id);
            }
            Item::Dot(i) => {
                let (p, r) = self.dot(i);
                band.line([raised(p, 1.004); 2], [r, r], id);
            }
            Item::Ball(i) => self.paint_ball(i, id, band),
        }
    }

    /// What the primitive `id` is.
    #[inline]
    pub fn item(&self, id: u32) -> Item {
        let mut i = id as usize;
        if i < self.triangles.len() {
            return Item::Triangle(i);
        }
        i -= self.triangles.len();
        if i < self.edges.len() {
            return Item::Edge(i);
        }
        i -= self.edges.len();
        if i < self.dots.len() { Item::Dot(i) } else { Item::Ball(i - self.dots.len()) }
    }

    /// Ends and radii of an edge, in samples.
    pub fn line(&self, i: usize) -> ([Vector; 2], [f32; 2]) {
        let ends = self.edges[i].map(|v| self.screen[v as usize]);
        (ends, ends.map(|p| self.line_radius * self.size_at(p[2])))
    }

    /// Place and radius of a dot, in samples.
    pub fn dot(&self, i: usize) -> (Vector, f32) {
        let p = self.screen[self.dots[i] as usize];
        (p, self.dot_radius * self.size_at(p[2]))
    }

    /// How much larger lines and dots are at an inverse depth than in the middle of the scene.
    #[inline]
    pub fn size_at(&self, inverse_depth: f32) -> f32 {
        (inverse_depth * self.view.distance).clamp(0.6, 1.8)
    }

    /// The inverse of the depth at which the ray through a sample enters a ball; 0 where it misses it.
    #[inline]
    pub fn ball_nearness(&self, i: usize, x: f32, y: f32) -> f32 {
        let (center, radius) = self.balls[i];
        let (ray, to) = (self.view.ray(x, y), sub(center, self.view.eye));
        let (a, b) = (dot(ray, ray), dot(ray, to));
        let miss = sub(to, scale(ray, b / a)); // from the ray to the center: exact where b² - a c would cancel
        let half2 = (radius * radius - dot(miss, miss)) / a;
        let depth = b / a - half2.max(0.0).sqrt();
        if half2 >= 0.0 && depth > 0.02 { 1.0 / depth } else { 0.0 }
    }

    fn paint_ball(&self, i: usize, id: u32, band: &mut Band) {
        let (center, radius) = self.balls[i];
        // The outline of a ball is seen from the side: 1.1 times its size at the center and more when it is close.
        let whole = [0.0, band.width as f32];
        let columns = self.view.project(center).map_or(whole, |[x, _, inverse]| {
            let reach = self.view.samples_of(radius, inverse) * 1.1;
            if radius * inverse > 0.3 { whole } else { [x - reach - 2.0, x + reach + 2.0] }
        });
        let (columns, rows) = band.inside(columns, [0.0, f32::MAX]);
        for y in rows {
            band.row(y, columns.clone(), id, |x| self.ball_nearness(i, x, y as f32 + 0.5));
        }
    }
}

/// Mean length of edges in samples, of at most about a thousand of them; 0 without edges.
fn mean_length(screen: &[Vector], edges: &[[u32; 2]]) -> f32 {
    let some = edges.iter().step_by(edges.len() / 1000 + 1).map(|e| e.map(|v| screen[v as usize]));
    let (sum, count) = some.fold((0.0, 0), |(sum, count), [a, b]| (sum + (a[0] - b[0]).hypot(a[1] - b[1]), count + 1));
    sum / count.max(1) as f32
}

/// Normals at the corners of triangles: the mean over those triangles at the point that meet without a crease, weighted
/// by their area. Triangles may be turned either way. Shape [triangles × 3].
fn corner_normals(points: &[Vector], triangles: &[[u32; 3]]) -> Vec<[Vector; 3]> {
    let faces: Vec<(Vector, f32)> = parallel::collect(triangles.len(), |i| {
        let [a, b, c] = corners(points, triangles[i]);
        let n = cross(sub(b, a), sub(c, a));
        (unit(n), dot(n, n).sqrt())
    });
    let mut ends = vec![0u32; points.len() + 1];
    triangles.iter().flatten().for_each(|&v| ends[v as usize + 1] += 1);
    (1..ends.len()).for_each(|v| ends[v] += ends[v - 1]);
    let mut next = ends.clone();
    let mut around = vec![0u32; 3 * triangles.len()]; // triangles at each point: around[ends[v]..ends[v + 1]]
    for (i, t) in triangles.iter().enumerate() {
        for &v in t {
            around[next[v as usize] as usize] = i as u32;
            next[v as usize] += 1;
        }
    }
    let normal = |i: usize, v: u32| {
        let (own, _) = faces[i];
        let near = &around[ends[v as usize] as usize..ends[v as usize + 1] as usize];
        unit(near.iter().fold(scale(own, 1e-12), |sum, &j| {
            let (other, area) = faces[j as usize];
            let cosine = dot(own, other);
            if cosine.abs() < CREASE { sum } else { add(sum, scale(other, area * cosine.signum())) }
        }))
    };
    parallel::collect(triangles.len(), |i| triangles[i].map(|v| normal(i, v)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normals_are_smooth_on_a_bend_and_sharp_at_a_crease() {
        let points = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.2], [-1.0, 0.0, 0.2], [-0.2, 0.0, 1.0]];
        let bend = corner_normals(&points, &[[0, 2, 1], [0, 1, 3]]);
        assert!((bend[0][0][2].abs() - 1.0).abs() < 1e-5, "{bend:?}");
        let crease = corner_normals(&points, &[[0, 2, 1], [0, 1, 4]]);
        assert!(dot(crease[0][0], crease[1][0]).abs() < 0.5, "{crease:?}");
    }
}
