//! The light that comes from what a sample shows.

use super::camera::View;
use super::figure::{Figure, Item};
use super::raster::{GRID, NOTHING, SAMPLES, nearest_on_line};
use super::shadow::ShadowMap;
use super::vector::{Vector, add, blend, corners, dot, mix, mul, scale, smoothstep, sub, unit};

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

/// Pixels along a side of a square in which a surface sees the same part of the sky, whose edge is soft.
const SQUARE: usize = 2;

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
    /// Adds a sample at a place.
    pub fn add(&mut self, at: [f32; 2]) {
        self.samples += 1.0;
        self.sum = [self.sum[0] + at[0], self.sum[1] + at[1]];
    }

    fn middle(&self) -> [f32; 2] {
        self.sum.map(|x| x / self.samples)
    }
}

/// Light from a pixel that takes the color of the field between three points.
pub(super) struct Tint {
    pub corners: [u32; 3],
    /// Shares of the corners.
    pub weights: Vector,
    /// What the color is multiplied by.
    pub times: Vector,
}

/// A color before light falls on it.
#[derive(Clone, Copy)]
enum Base {
    /// Its own.
    Own(Vector),
    /// That of the field between three points by their weights.
    Field([u32; 3], Vector),
}

/// What comes from a thing: its color times the one, and the other whatever its color.
struct Glow {
    base: Base,
    times: Vector,
    plus: Vector,
}

/// A place of a surface: its color, where it is, the direction to the eye, and its normal on the side of the eye.
#[derive(Clone, Copy)]
struct Surface {
    base: Base,
    p: Vector,
    to_eye: Vector,
    normal: Vector,
    /// Whether it is the face of a cut.
    face: bool,
}

/// What is on hand while pixels are looked at, row after row.
pub(super) struct Workbench {
    /// What its samples show.
    pub parts: Vec<Part>,
    /// Those that are surfaces, with their samples and the numbers of their patches.
    surfaces: Vec<(Surface, f32, usize)>,
    patches: Vec<Patch>,
    /// The patch whose light was found last, of each square of pixels in these rows.
    squares: Vec<Option<Patch>>,
}

impl Workbench {
    /// An empty one, for rows of so many pixels.
    pub fn new(width: usize) -> Workbench {
        let squares = vec![None; width.div_ceil(SQUARE)];
        Workbench { parts: Vec::new(), surfaces: Vec::new(), patches: Vec::new(), squares }
    }

    /// Goes on to row `y`. The first row of a bench is the first of its squares, so what is found does not depend on bands.
    pub fn turn_to(&mut self, y: usize) {
        if y.is_multiple_of(SQUARE) {
            self.squares.fill(None);
        }
    }
}

/// Parts of a pixel that are near each other and face the same way: sums over their samples, and the light there.
#[derive(Clone, Copy, Default)]
struct Patch {
    p: Vector,
    normal: Vector,
    samples: f32,
    lights: Lights,
}

impl Patch {
    /// Whether a surface is no more than two pixels and 25 degrees off.
    fn takes(&self, p: Vector, normal: Vector, view: &View) -> bool {
        let off = sub(self.p, scale(p, self.samples));
        let depth = dot(sub(view.eye, p), view.axes[2]);
        let near = 2.0 * GRID as f32 * depth * self.samples / view.focal;
        dot(self.normal, normal) > 0.9 * self.samples && dot(off, off) < near * near
    }

    fn add(&mut self, p: Vector, normal: Vector, samples: f32) {
        self.p = add(self.p, scale(p, samples));
        self.normal = add(self.normal, scale(normal, samples));
        self.samples += samples;
    }
}

/// The parts of the key light and of the sky that a place sees, 0 to 1.
#[derive(Clone, Copy, Default)]
struct Lights {
    key: f32,
    sky: f32,
}

/// A row of the background: light, darker toward the bottom and the corners. `y`, and what it takes, are 0 to 1 across the picture.
pub(super) fn background(y: f32) -> impl Fn(f32) -> Vector {
    let row = mix(TOP, BOTTOM, smoothstep(0.0, 1.1, y));
    move |x| {
        let corner = (x - 0.5).powi(2) + (y - 0.45).powi(2);
        scale(row, 1.0 - 0.16 * corner)
    }
}

impl Figure {
    /// Color of the ground under a sample, given the background there; the background itself where the ray misses it.
    fn ground_color(&self, [x, y]: [f32; 2], pixel: [usize; 2], behind: Vector, square: &mut Option<Patch>) -> Vector {
        let hit = |x: f32, y: f32| {
            let height = self.ground?;
            let inverse = self.view.plane_inverse_depth(height, [x, y]);
            let ray = self.view.ray(x, y);
            (inverse > 1e-4).then(|| add(self.view.eye, scale(ray, 1.0 / inverse)))
        };
        let Some(p) = hit(x, y) else { return behind };
        let fade = 1.0 - smoothstep(1.1, 3.2, (p[0] * p[0] + p[1] * p[1]).sqrt());
        if fade <= 0.0 {
            return behind;
        }
        let up = [0.0, 0.0, 1.0];
        let Lights { key, sky } = self.lights(p, up, pixel, square);
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

    /// Light from a pixel that shows the parts on the workbench, in front of the background `behind`. What depends on colors of
    /// the field is left to `tints`.
    pub fn pixel_light(
        &self,
        bench: &mut Workbench,
        pixel: [usize; 2],
        behind: Vector,
        tints: &mut Vec<Tint>,
    ) -> Vector {
        let mut light = [0.0; 3];
        let mut gather = |Glow { base, times, plus }: Glow, samples: f32| {
            let share = samples / SAMPLES as f32;
            match base {
                Base::Own(color) => light = add(light, scale(add(mul(color, times), plus), share)),
                Base::Field(corners, weights) => {
                    light = add(light, scale(plus, share));
                    tints.push(Tint { corners, weights, times: scale(times, share) });
                }
            }
        };
        let Workbench { parts, surfaces, patches, squares } = bench;
        let square = &mut squares[pixel[0] / SQUARE];
        surfaces.clear();
        patches.clear();
        for part in parts.iter() {
            let [x, y] = part.middle();
            let surface = match (part.id, self.item(part.id)) {
                (NOTHING, _) => {
                    let base = Base::Own(self.ground_color([x, y], pixel, behind, square));
                    gather(Glow { base, times: [1.0; 3], plus: [0.0; 3] }, part.samples);
                    continue;
                }
                (_, Item::Edge(i)) => {
                    gather(self.edge(i, x, y, behind), part.samples);
                    continue;
                }
                (_, Item::Dot(i)) => {
                    gather(self.dot_at(i, x, y, behind), part.samples);
                    continue;
                }
                (_, Item::Triangle(i)) => self.triangle(i, x, y),
                (_, Item::Ball(i)) => self.ball(i, x, y),
            };
            // Most triangles of a pixel are parts of one surface: they see the same part of each light.
            let takes = |patch: &Patch| patch.takes(surface.p, surface.normal, &self.view);
            let k = patches.iter().position(takes).unwrap_or(patches.len());
            if k == patches.len() {
                patches.push(Patch::default());
            }
            patches[k].add(surface.p, surface.normal, part.samples);
            surfaces.push((surface, part.samples, k));
        }
        for patch in patches.iter_mut() {
            patch.lights = self.lights(scale(patch.p, 1.0 / patch.samples), unit(patch.normal), pixel, square);
        }
        for (surface, samples, k) in surfaces.iter() {
            gather(self.lit(surface, &patches[*k].lights), *samples);
        }
        light
    }

    fn ball(&self, i: usize, x: f32, y: f32) -> Surface {
        // The mean of samples may lie beside the ball.
        let near = self.ball_nearness(i, x, y);
        let depth = if near > 0.0 { 1.0 / near } else { self.view.distance };
        let p = add(self.view.eye, scale(self.view.ray(x, y), depth));
        Surface {
            base: Base::Own(BALL),
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
        let base = match self.plain {
            Some(color) if !front => Base::Own(mix(color, LINING, 0.45)),
            Some(color) => Base::Own(color),
            None => Base::Field(t, w),
        };
        Surface { base, p, to_eye, normal, face: i >= self.first_face }
    }

    fn edge(&self, i: usize, x: f32, y: f32, behind: Vector) -> Glow {
        let (ends, radius) = self.line(i);
        let (t, across) = nearest_on_line(ends, x, y);
        let inverse = ends[0][2] * (1.0 - t) + ends[1][2] * t;
        let share = t * ends[1][2] / inverse; // t runs evenly over the picture, the share evenly along the edge
        let [a, b] = self.edges[i];
        let field = Base::Field([a, b, b], [1.0 - share, share, 0.0]);
        if !self.triangles.is_empty() {
            // A wire over a surface is a dark line, except over black.
            let base = self.plain.map_or(field, Base::Own);
            return Glow { base, times: [0.9 - 0.6 * self.wire; 3], plus: [0.02 * self.wire; 3] };
        }
        // Rods of the color of their ends would swallow the dots.
        let base = self.plain.map_or(field, |color| Base::Own(mix(color, [0.12, 0.13, 0.15], 0.5)));
        let r = radius[0] + (radius[1] - radius[0]) * t;
        self.rounded(base, across, r, inverse, behind)
    }

    fn dot_at(&self, i: usize, x: f32, y: f32, behind: Vector) -> Glow {
        let v = self.dots[i];
        let s = self.screen[v as usize];
        let base = self.plain.map_or(Base::Field([v; 3], [1.0, 0.0, 0.0]), Base::Own);
        self.rounded(base, [x - s[0], y - s[1]], self.dot_radius * self.size_at(s[2]), s[2], behind)
    }

    /// Something thin and round, `across` samples off its axis; far away it fades into the background.
    fn rounded(&self, base: Base, across: [f32; 2], radius: f32, inverse: f32, behind: Vector) -> Glow {
        let [u, v] = across.map(|x| (x / radius).clamp(-1.0, 1.0));
        let [right, above, back] = self.view.axes;
        let out = (1.0 - u * u - v * v).max(0.0).sqrt();
        let normal = unit(add(add(scale(right, u), scale(above, -v)), scale(back, out)));
        let key = (dot(normal, self.view.key_light) * 0.5 + 0.5) * 0.75;
        let light = add(scale(KEY, key), add(scale(SKY, 0.75 + 0.25 * normal[2]), scale(FILL, 0.9)));
        let haze = 0.45 * self.view.haze(inverse);
        Glow { base, times: scale(light, 1.1 * (1.0 - haze)), plus: scale(behind, haze) }
    }

    /// How much of each light a place of a surface sees: as much as what is known of its square, except in the penumbra of the key
    /// light, which may be as narrow as a pixel.
    fn lights(&self, p: Vector, normal: Vector, pixel: [usize; 2], square: &mut Option<Patch>) -> Lights {
        let key = || seen(&self.key, p, normal, pixel);
        match square {
            Some(known) if known.takes(p, normal, &self.view) => match known.lights {
                Lights { key: 0.0 | 1.0, .. } => known.lights,
                Lights { sky, .. } => Lights { key: key(), sky },
            },
            _ => {
                let lights = Lights { key: key(), sky: seen(&self.sky, p, normal, pixel.map(|x| x / SQUARE)) };
                *square = Some(Patch { p, normal, samples: 1.0, lights });
                lights
            }
        }
    }

    /// A surface under all lights.
    fn lit(&self, &Surface { base, to_eye, normal, face, .. }: &Surface, lights: &Lights) -> Glow {
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
        let (times, gloss) = match self.plain {
            Some(_) => (sum, 1.0),
            None if face => (mix(sum, [1.0; 3], 0.65), 0.0),
            None => (mix(sum, [1.0; 3], 0.14), 0.15),
        };
        let glance = (1.0 - dot(normal, to_eye).clamp(0.0, 1.0)).powi(4);
        let shine = key * 0.08 * dot(normal, unit(add(light, to_eye))).max(0.0).powi(24) + 0.05 * glance * open;
        Glow { base, times, plus: [gloss * shine; 3] }
    }
}

/// How much of a light reaches the point; all of it where nothing casts shadows.
fn seen(map: &Option<ShadowMap>, p: Vector, normal: Vector, pixel: [usize; 2]) -> f32 {
    match map {
        Some(map) if dot(normal, map.direction()) > 0.0 => map.visibility(p, normal, pixel),
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
