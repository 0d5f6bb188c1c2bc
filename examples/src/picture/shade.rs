//! The color of what a sample shows, in linear light.

use super::camera::View;
use super::colormap::{MISSING, place_in, to_linear};
use super::figure::{Figure, Item, corners};
use super::raster::{NOTHING, nearest_on_line};
use super::shadow::ShadowMap;
use super::vector::{Vector, add, blend, dot, length, mix, mul, scale, smoothstep, sub, unit};
use super::{Coloring, GRID, SAMPLES};

/// Light from above, opposite the key light, and back from the ground; each times the color of the surface.
const KEY: Vector = [0.66, 0.64, 0.60];
const SKY: Vector = [0.33, 0.35, 0.38];
const FILL: Vector = [0.13, 0.14, 0.16];
const BOUNCE: Vector = [0.17, 0.16, 0.15];
/// Color of balls: a matte, slightly warm gray.
const BALL: Vector = [0.56, 0.52, 0.47];
/// Color that the back of plain cloth takes on.
const LINING: Vector = [0.87, 0.76, 0.58];
/// Colors of the background at the top and the bottom.
const TOP: Vector = [0.955, 0.965, 0.973];
const BOTTOM: Vector = [0.708, 0.753, 0.807];

/// Samples of a pixel that show the same primitive.
#[derive(Clone, Copy, Default)]
pub(super) struct Part {
    /// The primitive, or [`NOTHING`].
    pub id: u32,
    /// How many they are.
    pub samples: f32,
    /// The sum of their places.
    pub sum: [f32; 2],
}

impl Part {
    fn middle(&self) -> [f32; 2] {
        self.sum.map(|x| x / self.samples)
    }
}

/// A place of a surface: its color, where it is, the direction to the eye, and its normal on the side of the eye.
#[derive(Clone, Copy)]
struct Surface {
    base: Vector,
    p: Vector,
    to_eye: Vector,
    normal: Vector,
    /// Whether it is the face of a cut.
    face: bool,
}

/// Parts of a pixel that are near each other and face the same way: sums over their samples.
#[derive(Clone, Copy, Default)]
struct Patch {
    p: Vector,
    normal: Vector,
    samples: f32,
}

impl Patch {
    /// Whether a surface is no more than two pixels and 25 degrees off.
    fn takes(&self, surface: &Surface, view: &View) -> bool {
        let off = length(sub(scale(self.p, 1.0 / self.samples), surface.p));
        let depth = dot(sub(view.eye, surface.p), view.axes[2]);
        let alike = dot(self.normal, surface.normal) > 0.9 * self.samples;
        alike && view.samples_of(off, 1.0 / depth) < 2.0 * GRID as f32
    }

    fn add(&mut self, surface: &Surface, samples: f32) {
        self.p = add(self.p, scale(surface.p, samples));
        self.normal = add(self.normal, scale(surface.normal, samples));
        self.samples += samples;
    }
}

/// The parts of the key light and of the sky that a place sees, 0 to 1.
#[derive(Clone, Copy, Default)]
struct Lights {
    key: f32,
    sky: f32,
}

/// The background: light, darker toward the bottom and the corners. `x` and `y` are 0 to 1 across the picture.
#[inline]
pub(super) fn background(x: f32, y: f32) -> Vector {
    let corner = (x - 0.5).powi(2) + (y - 0.45).powi(2);
    scale(mix(TOP, BOTTOM, smoothstep(0.0, 1.1, y)), 1.0 - 0.16 * corner)
}

impl Figure<'_> {
    /// Color of the ground under a sample, given the background there; the background itself where the ray misses it.
    fn ground_color(&self, x: f32, y: f32, pixel: [usize; 2], behind: Vector) -> Vector {
        let hit = |x: f32, y: f32| {
            let height = self.ground?;
            let inverse = self.view.plane_inverse_depth(height, [x, y]);
            let ray = self.view.ray(x, y);
            (inverse > 1e-4).then(|| add(self.view.eye, scale(ray, 1.0 / inverse)))
        };
        let Some(p) = hit(x, y) else { return behind };
        let fade = 1.0 - smoothstep(1.1, 3.2, p[0].hypot(p[1]));
        if fade <= 0.0 {
            return behind;
        }
        let up = [0.0, 0.0, 1.0];
        let Lights { key, sky } = self.lights(p, up, spin_at(pixel));
        let dark = 1.0 - (1.0 - 0.52 * (1.0 - key)) * (1.0 - 0.42 * (1.0 - sky));
        let lines = match (hit(x + GRID as f32, y), hit(x, y + GRID as f32)) {
            (Some(right), Some(below)) => {
                let spacing = self.grid;
                let cover = |k: usize| {
                    let footprint = (right[k] - p[k]).abs() + (below[k] - p[k]).abs();
                    line_cover(p[k], spacing, 0.0035, footprint)
                };
                cover(0).max(cover(1))
            }
            _ => 0.0,
        };
        let shade = mix([1.0; 3], [0.10, 0.12, 0.17], dark * 0.9);
        let grid = 1.0 - 0.20 * lines;
        mix(behind, mul(behind, scale(shade, grid)), fade)
    }

    /// Color of a pixel that shows `parts` in front of the background `behind`.
    pub fn pixel_color(&self, parts: &[Part], pixel: [usize; 2], behind: Vector) -> Vector {
        let mut color = [0.0; 3];
        let (mut surfaces, mut patches, mut count) = ([None; SAMPLES], [Patch::default(); SAMPLES], 0);
        for (part, slot) in parts.iter().zip(&mut surfaces) {
            let [x, y] = part.middle();
            let own = match (part.id, self.item(part.id)) {
                (NOTHING, _) => self.ground_color(x, y, pixel, behind),
                (_, Item::Edge(i)) => self.edge_color(i, x, y, behind),
                (_, Item::Dot(i)) => self.dot_color(i, x, y, behind),
                (_, Item::Triangle(i)) => {
                    *slot = Some(self.triangle(i, x, y));
                    continue;
                }
                (_, Item::Ball(i)) => {
                    *slot = Some(self.ball(i, x, y));
                    continue;
                }
            };
            color = add(color, scale(own, part.samples));
        }
        // Most triangles of a pixel are parts of one surface: they see the same part of each light.
        let mut patch_of = [0; SAMPLES];
        for ((part, surface), k) in parts.iter().zip(&surfaces).zip(&mut patch_of) {
            let Some(surface) = surface else { continue };
            *k = patches[..count].iter().position(|patch| patch.takes(surface, &self.view)).unwrap_or(count);
            count = count.max(*k + 1);
            patches[*k].add(surface, part.samples);
        }
        let mut lights = [Lights::default(); SAMPLES];
        for (lights, patch) in lights.iter_mut().zip(&patches[..count]) {
            *lights = self.lights(scale(patch.p, 1.0 / patch.samples), unit(patch.normal), spin_at(pixel));
        }
        for ((part, surface), &k) in parts.iter().zip(&surfaces).zip(&patch_of) {
            if let Some(surface) = surface {
                color = add(color, scale(self.lit(surface, &lights[k]), part.samples));
            }
        }
        scale(color, 1.0 / SAMPLES as f32)
    }

    fn ball(&self, i: usize, x: f32, y: f32) -> Surface {
        let depth = self.ball_depth(i, x, y).unwrap_or(self.view.distance);
        let p = add(self.view.eye, scale(self.view.ray(x, y), depth));
        Surface {
            base: BALL,
            p,
            to_eye: unit(sub(self.view.eye, p)),
            normal: unit(sub(p, self.balls[i].0)),
            face: false,
        }
    }

    fn triangle(&self, i: usize, x: f32, y: f32) -> Surface {
        let t = self.triangles[i];
        let s = corners(&self.screen, t);
        let w = perspective_weights(s, x, y);
        let p = blend(corners(&self.points, t), w);
        let normal = unit(blend(self.normals[i], w));
        let to_eye = unit(sub(self.view.eye, p));
        // Winding on the screen, not the normal, tells the side: it is the same all over the triangle.
        let front = (s[1][0] - s[0][0]) * (s[2][1] - s[0][1]) < (s[1][1] - s[0][1]) * (s[2][0] - s[0][0]);
        let normal = if front { normal } else { scale(normal, -1.0) };
        // Past the outline of a coarse mesh an interpolated normal looks away from the eye: bend it back.
        let toward = dot(normal, to_eye);
        let normal = if toward < 0.02 { unit(add(normal, scale(to_eye, 0.02 - toward))) } else { normal };
        let base = match self.coloring {
            Coloring::Plain(_) if !front => mix(self.ramp[0], LINING, 0.45),
            _ => self.base_color(&t, &w),
        };
        Surface { base, p, to_eye, normal, face: i >= self.first_face }
    }

    fn edge_color(&self, i: usize, x: f32, y: f32, behind: Vector) -> Vector {
        let (ends, radius) = self.line(i);
        let (t, across) = nearest_on_line(ends, x, y);
        let inverse = ends[0][2] * (1.0 - t) + ends[1][2] * t;
        let share = t * ends[1][2] / inverse; // t runs evenly over the picture, the share evenly along the edge
        let base = self.base_color(&self.edges[i], &[1.0 - share, share]);
        if !self.triangles.is_empty() {
            // A wire over a surface is a dark line, except over black.
            return mix(scale(base, 0.9), add(scale(base, 0.3), [0.02; 3]), self.wire);
        }
        // Rods of the color of their ends would swallow the dots.
        let base = if let Coloring::Plain(_) = self.coloring { mix(base, [0.12, 0.13, 0.15], 0.5) } else { base };
        let r = radius[0] + (radius[1] - radius[0]) * t;
        self.rounded(base, across, r, inverse, behind)
    }

    fn dot_color(&self, i: usize, x: f32, y: f32, behind: Vector) -> Vector {
        let v = self.dots[i];
        let s = self.screen[v as usize];
        let base = self.base_color(&[v], &[1.0]);
        self.rounded(base, [x - s[0], y - s[1]], self.dot_radius * self.size_at(s[2]), s[2], behind)
    }

    /// Something thin and round, `across` samples off its axis; far away it fades into the background.
    fn rounded(&self, base: Vector, across: [f32; 2], radius: f32, inverse: f32, behind: Vector) -> Vector {
        let [u, v] = across.map(|x| (x / radius).clamp(-1.0, 1.0));
        let [right, above, back] = self.view.axes;
        let out = (1.0 - u * u - v * v).max(0.0).sqrt();
        let normal = unit(add(add(scale(right, u), scale(above, -v)), scale(back, out)));
        let key = (dot(normal, self.view.key_light) * 0.5 + 0.5) * 0.75;
        let light = add(scale(KEY, key), add(scale(SKY, 0.75 + 0.25 * normal[2]), scale(FILL, 0.9)));
        mix(mul(base, scale(light, 1.1)), behind, 0.45 * self.view.haze(inverse))
    }

    /// The plain color, that of the field between points, by the weights of the points, or that of the heaviest point. One
    /// point without a number grays all of it.
    fn base_color(&self, corners: &[u32], weights: &[f32]) -> Vector {
        let (values, range, map) = match self.coloring {
            Coloring::Plain(_) => return self.ramp[0],
            Coloring::Scalar { values, range, map, .. } => (values, range, map),
            Coloring::Kinds { of, .. } => {
                let heaviest = corners.iter().zip(weights).max_by(|a, b| a.1.total_cmp(b.1));
                let kind = heaviest.and_then(|(&v, _)| self.ramp.get(*of.get(v as usize)? as usize));
                return kind.copied().unwrap_or(to_linear(MISSING));
            }
        };
        let mut place = 0.0;
        for (&v, w) in corners.iter().zip(weights) {
            place += place_in(*range, values.get(v as usize).copied().unwrap_or(f64::NAN)) * w;
        }
        if place.is_nan() {
            return to_linear(map.color(place));
        }
        let last = self.ramp.len() - 1;
        self.ramp[((place * last as f32 + 0.5) as usize).min(last)]
    }

    /// How much of each light a place of a surface sees.
    fn lights(&self, p: Vector, normal: Vector, spin: [f32; 2]) -> Lights {
        Lights { key: seen(&self.key, p, normal, spin), sky: seen(&self.sky, p, normal, spin) }
    }

    /// A surface under all lights.
    fn lit(&self, &Surface { base, to_eye, normal, face, .. }: &Surface, lights: &Lights) -> Vector {
        let light = self.view.key_light;
        let key = dot(normal, light).max(0.0) * lights.key;
        // A wall sees half of the sky whatever is above it, so that the map counts less the steeper the surface is.
        let open = 0.45 + 0.55 * smoothstep(-0.05, 0.6, normal[2]) * lights.sky;
        let fill = dot(normal, self.view.fill_light) * 0.5 + 0.5;
        let height = normal[2] * 0.5 + 0.5;
        let sum = add(
            add(scale(KEY, key), scale(SKY, height * open)),
            add(scale(FILL, fill), scale(BOUNCE, (1.0 - height) * 0.9)),
        );
        // A field must be readable by the colors of its bar, in the shade and under a highlight.
        let (sum, gloss) = match self.coloring {
            Coloring::Plain(_) => (sum, 1.0),
            Coloring::Scalar { .. } | Coloring::Kinds { .. } if face => (mix(sum, [1.0; 3], 0.65), 0.0),
            Coloring::Scalar { .. } | Coloring::Kinds { .. } => (mix(sum, [1.0; 3], 0.14), 0.15),
        };
        let glance = (1.0 - dot(normal, to_eye).clamp(0.0, 1.0)).powi(4);
        let shine = key * 0.08 * dot(normal, unit(add(light, to_eye))).max(0.0).powi(24) + 0.05 * glance * open;
        add(mul(base, sum), [gloss * shine; 3])
    }
}

/// Cosine and sine of an angle that differs a lot between neighboring pixels (interleaved gradient noise, Jimenez 2014).
fn spin_at([x, y]: [usize; 2]) -> [f32; 2] {
    let turn = (52.982_918 * (0.067_110_56 * x as f32 + 0.005_837_15 * y as f32).fract()).fract();
    let (sin, cos) = (turn * std::f32::consts::TAU).sin_cos();
    [cos, sin]
}

/// How much of a light reaches the point; all of it where nothing casts shadows.
fn seen(map: &Option<ShadowMap>, p: Vector, normal: Vector, spin: [f32; 2]) -> f32 {
    match map {
        Some(map) if dot(normal, map.direction()) > 0.0 => map.visibility(p, normal, spin),
        Some(_) => 0.0,
        None => 1.0,
    }
}

/// Weights of the corners (x, y, inverse depth) at a sample, as seen in perspective; a sample outside is moved inside.
fn perspective_weights(s: [Vector; 3], x: f32, y: f32) -> Vector {
    let side = |a: Vector, b: Vector| (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]);
    let area = (s[1][0] - s[0][0]) * (s[2][1] - s[0][1]) - (s[1][1] - s[0][1]) * (s[2][0] - s[0][0]);
    let weight = |a: Vector, b: Vector, own: Vector| (side(a, b) * area.signum()).max(0.0) * own[2];
    let w = [weight(s[1], s[2], s[0]), weight(s[2], s[0], s[1]), weight(s[0], s[1], s[2])];
    let sum = w[0] + w[1] + w[2];
    if sum > 0.0 && sum.is_finite() { scale(w, 1.0 / sum) } else { [1.0 / 3.0; 3] }
}

/// Part of a footprint around `x` that a line of the given width covers, of lines at all multiples of `spacing`.
fn line_cover(x: f32, spacing: f32, width: f32, footprint: f32) -> f32 {
    let away = (x - (x / spacing).round() * spacing).abs();
    let footprint = footprint.max(1e-6);
    let cover = (0.5 * (width + footprint) - away).clamp(0.0, width.min(footprint)) / footprint;
    cover * (1.0 - smoothstep(0.2, 0.5, footprint / spacing)) // lines closer than two pixels would only be noise
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_space_and_not_of_the_picture() {
        // The middle of the picture lies nearer to the far end of an edge seen from its near end.
        let w = perspective_weights([[0.0, 0.0, 1.0], [10.0, 0.0, 0.25], [0.0, 10.0, 1.0]], 5.0, 0.0);
        assert!((w[0] - 0.8).abs() < 1e-6 && (w[1] - 0.2).abs() < 1e-6, "{w:?}");
        assert_eq!(perspective_weights([[0.0; 3]; 3], 1.0, 2.0), [1.0 / 3.0; 3]);
    }
}
