//! A scene in front of a camera: everything that is known before the first pixel gets its color.

use rayon::prelude::*;

use super::camera::View;
use super::colormap::{bytes_to_linear, ramp};
use super::raster::{Band, Layer};
use super::shadow::ShadowMap;
use super::vector::{Vector, add, cross, dot, scale, smoothstep, sub, unit};
use super::{Coloring, Prop, Scene};

/// Cosine of 50 degrees: triangles at a steeper angle meet in a crease and keep normals of their own.
const CREASE: f32 = 0.64;

/// What is drawn, in scene space and in samples.
pub(super) struct Figure<'a> {
    pub coloring: &'a Coloring<'a>,
    /// The plain color, or those of the map from end to end, in linear light.
    pub ramp: Vec<Vector>,
    pub view: View,
    /// Points in scene space and as (x, y, inverse depth), shape [points]; zeros for points that cannot be seen.
    pub points: Vec<Vector>,
    pub screen: Vec<Vector>,
    /// Triangles and edges of points that can be seen, and the points drawn as dots.
    pub triangles: Vec<[u32; 3]>,
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
    /// Shadows of the key light, and of the sky right above.
    pub key: Option<ShadowMap>,
    pub sky: Option<ShadowMap>,
}

/// What a primitive of the layer is, with its number among those of its kind.
pub(super) enum Item {
    Triangle(usize),
    Edge(usize),
    Dot(usize),
    Ball(usize),
}

impl<'a> Figure<'a> {
    /// Places the scene before the camera; `pixel` is the number of samples along the side of a pixel, of a picture of
    /// `area` pixels in which a thin line is `thin` pixels wide.
    pub fn new(scene: &'a Scene<'a>, view: View, pixel: f32, area: f32, thin: f32) -> Figure<'a> {
        let (points, screen): (Vec<Vector>, Vec<Vector>) = scene
            .points
            .par_iter()
            .map(|p| {
                let q = view.to_scene(p);
                (q.unwrap_or_default(), q.and_then(|q| view.project(q)).unwrap_or_default())
            })
            .unzip();
        let visible = |v: &u32| screen.get(*v as usize).is_some_and(|s| s[2] > 0.0);
        let triangles: Vec<[u32; 3]> = scene.triangles.iter().filter(|t| t.iter().all(visible)).copied().collect();
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
        let ramp = match scene.coloring {
            Coloring::Plain(color) => vec![bytes_to_linear(color)],
            Coloring::Scalar { map, .. } => ramp(map),
            Coloring::Kinds { kinds, .. } => kinds.iter().map(|kind| bytes_to_linear(kind.1)).collect(),
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
        let key = ShadowMap::new(view.key_light(), 0.11, &points, &triangles, &balls);
        let sky = ShadowMap::new([0.0, 0.0, 1.0], 0.9, &points, &triangles, &balls);
        Figure {
            coloring: &scene.coloring,
            ramp,
            view,
            points,
            screen,
            triangles,
            edges,
            dots,
            normals,
            line_radius,
            dot_radius,
            wire,
            balls,
            ground,
            key,
            sky,
        }
    }

    /// Draws everything but the ground.
    pub fn draw(&self, layer: &mut Layer) {
        let (width, height) = (layer.width as f32, layer.height as f32);
        let spread = |y: &[f32], margin: f32| {
            let low = y.iter().fold(f32::INFINITY, |m, y| m.min(*y)) - margin;
            let high = y.iter().fold(f32::NEG_INFINITY, |m, y| m.max(*y)) + margin;
            (high >= 0.0 && low <= height).then_some([low, high])
        };
        let corners = |i: usize| self.triangles[i].map(|v| self.screen[v as usize]);
        let extent = |i: usize| {
            let p = corners(i);
            let beside = p.iter().all(|p| p[0] < 0.0) || p.iter().all(|p| p[0] > width);
            spread(&p.map(|p| p[1]), 0.0).filter(|_| !beside)
        };
        layer.draw(self.triangles.len(), extent, |i, band| band.triangle(corners(i), i as u32));

        let base = self.triangles.len();
        let extent = |i: usize| {
            let ([a, b], r) = self.line(i);
            spread(&[a[1], b[1]], r[0].max(r[1]))
        };
        layer.draw(self.edges.len(), extent, |i, band| {
            let (ends, radius) = self.line(i);
            // In front of the triangles it belongs to.
            band.line(ends.map(|[x, y, z]| [x, y, z * 1.002]), radius, (base + i) as u32);
        });

        let base = base + self.edges.len();
        let dot = |i: usize| {
            let p = self.screen[self.dots[i] as usize];
            ([p[0], p[1], p[2] * 1.004], self.dot_radius * self.size_at(p[2]))
        };
        let extent = |i: usize| {
            let (p, r) = dot(i);
            spread(&[p[1]], r)
        };
        layer.draw(self.dots.len(), extent, |i, band| {
            let (p, r) = dot(i);
            band.line([p, p], [r, r], (base + i) as u32);
        });

        let base = base + self.dots.len();
        layer.draw(self.balls.len(), |_| Some([0.0, height]), |i, band| self.draw_ball(i, (base + i) as u32, band));
    }

    /// What the primitive `id` of the layer is.
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

    /// How much larger lines and dots are at an inverse depth than in the middle of the scene.
    pub fn size_at(&self, inverse_depth: f32) -> f32 {
        (inverse_depth * self.view.distance).clamp(0.6, 1.8)
    }

    /// The depth at which the ray through a sample enters a ball.
    pub fn ball_depth(&self, i: usize, x: f32, y: f32) -> Option<f32> {
        let (center, radius) = self.balls[i];
        let (ray, to) = (self.view.ray(x, y), sub(center, self.view.eye));
        let (a, b) = (dot(ray, ray), dot(ray, to));
        let miss = sub(to, scale(ray, b / a)); // from the ray to the center: exact where b² - a c would cancel
        let half2 = (radius * radius - dot(miss, miss)) / a;
        let depth = b / a - half2.max(0.0).sqrt();
        (half2 >= 0.0 && depth > 0.02).then_some(depth)
    }

    fn draw_ball(&self, i: usize, id: u32, band: &mut Band) {
        let (center, radius) = self.balls[i];
        // The outline of a ball is seen from the side: 1.1 times its size at the center and more when it is close.
        let whole = [0.0, band.width as f32];
        let columns = self.view.project(center).map_or(whole, |[x, _, inverse]| {
            let reach = self.view.samples_of(radius, inverse) * 1.1;
            if radius * inverse > 0.3 { whole } else { [x - reach - 2.0, x + reach + 2.0] }
        });
        let (columns, rows) = band.inside(columns, [0.0, f32::MAX]);
        for y in rows {
            for x in columns.clone() {
                if let Some(depth) = self.ball_depth(i, x as f32 + 0.5, y as f32 + 0.5) {
                    band.put(x, y, 1.0 / depth, id);
                }
            }
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
    let faces: Vec<(Vector, f32)> = triangles
        .par_iter()
        .map(|t| {
            let [a, b, c] = t.map(|v| points[v as usize]);
            let n = cross(sub(b, a), sub(c, a));
            (unit(n), dot(n, n).sqrt())
        })
        .collect();
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
    triangles.par_iter().enumerate().map(|(i, t)| t.map(|v| normal(i, v))).collect()
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
