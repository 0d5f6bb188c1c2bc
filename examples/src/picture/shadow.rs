//! How much of a light a point sees.

use rayon::prelude::*;

use super::raster::{Band, Layer};
use super::vector::{Vector, add, cross, dot, scale, unit};

/// Texels along a side of the map.
const SIDE: usize = 768;
/// Places looked at to find casters, and to see how much of the light they leave.
const SEARCH: usize = 14;
const LOOKS: usize = 26;
/// Added to the coordinate along the light, so that what casts a shadow is never at the 0 of an empty texel.
const LIFT: f32 = 16.0;
/// Casters farther than this from the middle of the scene cast no shadow: they would take the texels of the others.
const REACH: f32 = 4.0;
/// Widest penumbra, in scene space.
const WIDEST: f32 = 0.22;

/// Distances from a far light to what it shines on, on a grid across its direction.
pub(super) struct ShadowMap {
    axes: [Vector; 3], // across, along, and to the light
    corner: [f32; 2],
    texels: f32, // per unit of scene space
    spread: f32, // width of a penumbra per distance between caster and receiver
    layer: Layer,
}

impl ShadowMap {
    /// The shadows of triangles and balls (center, radius) under the light from `direction`; None without casters.
    ///
    /// `spread` is the apparent size of the light: 0.1 a lamp, 1 a bright sky.
    pub fn new(
        direction: Vector,
        spread: f32,
        points: &[Vector],
        triangles: &[[u32; 3]],
        balls: &[(Vector, f32)],
    ) -> Option<ShadowMap> {
        let side = if direction[2].abs() > 0.9 { [1.0, 0.0, 0.0] } else { [0.0, 0.0, 1.0] };
        let u = unit(cross(side, direction));
        let axes = [u, cross(direction, u), direction];
        let reachable = |p: &Vector| dot(*p, *p) < REACH * REACH;
        let corners = triangles.iter().flatten().map(|&v| points[v as usize]).filter(reachable).map(|p| (p, 0.0));
        let balls: Vec<(Vector, f32)> = balls.iter().copied().filter(|(c, r)| reachable(c) && *r < REACH).collect();
        let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
        for (p, r) in corners.chain(balls.iter().copied()) {
            for k in 0..2 {
                low[k] = low[k].min(dot(p, axes[k]) - r);
                high[k] = high[k].max(dot(p, axes[k]) + r);
            }
        }
        if low[0] > high[0] {
            return None;
        }
        let width = (high[0] - low[0]).max(high[1] - low[1]).max(1e-3);
        let texels = (SIDE - 8) as f32 / width; // four empty texels all around, so that a clamped read finds no caster
        let corner = low.map(|x| x - 4.0 / texels);
        let mut map = ShadowMap { axes, corner, texels, spread, layer: Layer::new(SIDE, SIDE) };

        let seen: Vec<Vector> = points.par_iter().map(|&p| map.texel(p)).collect();
        let mut layer = std::mem::replace(&mut map.layer, Layer::new(0, 0));
        let corners = |i: usize| triangles[i].map(|v| seen[v as usize]);
        let extent = |i: usize| {
            let p = corners(i);
            let near = triangles[i].iter().all(|&v| reachable(&points[v as usize]));
            near.then(|| [p[0][1].min(p[1][1]).min(p[2][1]), p[0][1].max(p[1][1]).max(p[2][1])])
        };
        layer.draw(triangles.len(), extent, |i, band| band.triangle(corners(i), 0));
        let round = |i: usize| (map.texel(balls[i].0), balls[i].1);
        let extent = |i: usize| {
            let (c, r) = round(i);
            Some([c[1] - r * texels, c[1] + r * texels])
        };
        layer.draw(balls.len(), extent, |i, band| {
            let (center, radius) = round(i);
            ball(band, center, radius, texels);
        });
        map.layer = layer;
        Some(map)
    }

    /// Direction to the light.
    pub fn direction(&self) -> Vector {
        self.axes[2]
    }

    /// Texel coordinates and nearness to the light.
    fn texel(&self, p: Vector) -> Vector {
        let [u, v, w] = self.axes.map(|axis| dot(p, axis));
        [(u - self.corner[0]) * self.texels, (v - self.corner[1]) * self.texels, w + LIFT]
    }

    /// The part of the light, 0 to 1, that reaches a point of a surface with the given normal.
    ///
    /// Casters near the point give a sharp shadow, far ones a soft one (percentage-closer soft shadows, Fernando 2005).
    /// `spin`, cosine and sine of an angle that differs from pixel to pixel, turns the places looked at: the few levels
    /// that they can tell apart become a grain too fine to see instead of bands.
    pub fn visibility(&self, p: Vector, normal: Vector, spin: [f32; 2]) -> f32 {
        // Two texels off the surface, and tilted with it: otherwise it would cast a shadow on itself.
        let q = self.texel(add(p, scale(normal, 2.0 / self.texels)));
        let steep = dot(normal, self.axes[2]).max(0.25);
        let tilt = [0, 1].map(|k| (-dot(normal, self.axes[k]) / steep).clamp(-3.0, 3.0) / self.texels);
        let radius = (WIDEST * self.spread.sqrt()).min(WIDEST) * self.texels;
        let outside = |x: f32| x < -radius || x > SIDE as f32 + radius;
        if outside(q[0]) || outside(q[1]) {
            return 1.0;
        }
        // What rises at less than 4 degrees over the surface is the surface itself, a little curved.
        let gentle = 0.07 / self.texels;
        let receiver = |[u, v]: [f32; 2]| q[2] + 1e-3 + tilt[0] * u + tilt[1] * v + gentle * (u.abs() + v.abs());

        let (mut blockers, mut distance) = (0, 0.0);
        for offset in disk::<SEARCH>(radius, spin) {
            let caster = self.at((q[0] + offset[0]) as i32, (q[1] + offset[1]) as i32);
            if caster > receiver(offset) {
                blockers += 1;
                distance += caster - q[2];
            }
        }
        if blockers == 0 {
            return 1.0;
        }
        let penumbra = self.spread * distance / blockers as f32 * self.texels;
        let lit = disk::<LOOKS>(penumbra.clamp(2.0, radius.max(2.0)), spin)
            .map(|offset| self.lit(q[0] + offset[0], q[1] + offset[1], receiver(offset)))
            .sum::<f32>();
        lit / LOOKS as f32
    }

    /// Whether a texel shows the light past `receiver`, interpolated between the four texels around it.
    fn lit(&self, x: f32, y: f32, receiver: f32) -> f32 {
        let last = (SIDE - 2) as f32;
        let (x, y) = ((x - 0.5).clamp(0.0, last), (y - 0.5).clamp(0.0, last));
        let (i, j) = (x as usize, y as usize);
        let (fx, fy) = (x - i as f32, y - j as f32);
        let row = |j: usize| {
            let open = |near: f32| if near > receiver { 0.0 } else { 1.0 };
            let [left, right] = [0, 1].map(|k| open(self.layer.near[j * SIDE + i + k]));
            left * (1.0 - fx) + right * fx
        };
        let (above, below) = (row(j), row(j + 1));
        above * (1.0 - fy) + below * fy
    }

    fn at(&self, i: i32, j: i32) -> f32 {
        let last = SIDE as i32 - 1;
        self.layer.near[j.clamp(0, last) as usize * SIDE + i.clamp(0, last) as usize]
    }
}

/// Puts the half of a ball that faces the light.
fn ball(band: &mut Band, center: Vector, radius: f32, texels: f32) {
    let r = radius * texels;
    let (columns, rows) = band.inside([center[0] - r, center[0] + r], [center[1] - r, center[1] + r]);
    for y in rows {
        for x in columns.clone() {
            let offset = [x as f32 + 0.5 - center[0], y as f32 + 0.5 - center[1]];
            let height2 = r * r - offset[0] * offset[0] - offset[1] * offset[1];
            if height2 >= 0.0 {
                band.put(x, y, center[2] + height2.sqrt() / texels, 0);
            }
        }
    }
}

/// `N` offsets spread evenly over a disk (Vogel's spiral), the first one in the direction of `spoke`.
fn disk<const N: usize>(radius: f32, mut spoke: [f32; 2]) -> impl Iterator<Item = [f32; 2]> {
    const TURN: [f32; 2] = [-0.737_368_9, 0.675_490_3]; // cosine and sine of the golden angle
    (0..N).map(move |i| {
        let r = radius * ((i as f32 + 0.5) / N as f32).sqrt();
        let offset = [spoke[0] * r, spoke[1] * r];
        spoke = [spoke[0] * TURN[0] - spoke[1] * TURN[1], spoke[0] * TURN[1] + spoke[1] * TURN[0]];
        offset
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ball_shades_what_is_below_it_and_not_itself() {
        let (up, spin) = ([0.0, 0.0, 1.0], [1.0, 0.0]);
        let map = ShadowMap::new(up, 0.1, &[], &[], &[([0.0, 0.0, 0.5], 0.3)]).unwrap();
        assert!(map.visibility([0.0, 0.0, 0.0], up, spin) < 0.05);
        assert!(map.visibility([0.6, 0.0, 0.0], up, spin) > 0.99);
        assert!(map.visibility([0.0, 0.0, 0.8], up, spin) > 0.99);
    }

    #[test]
    fn nothing_casts_no_shadow() {
        assert!(ShadowMap::new([0.0, 0.0, 1.0], 0.1, &[], &[], &[]).is_none());
        assert!(ShadowMap::new([0.0, 0.0, 1.0], 0.1, &[[1e5; 3]; 3], &[[0, 1, 2]], &[]).is_none());
    }
}
