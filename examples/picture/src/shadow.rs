//! How much of a light a point sees.

use meshweft_mesh::parallel;

use super::raster::{Band, Bands, LANES, Sample};
use super::vector::{Vector, add, corners, cross, dot, scale, unit};

/// Texels along a side of the map.
const SIDE: usize = 768;
/// Places looked at to find casters, and to see how much of the light they leave: multiples of what registers hold.
const SEARCH: usize = 16;
const LOOKS: usize = 32;
/// Penumbras from so many texels on are too wide to tell texels apart: the places looked at see one each, not four.
const SOFT: f32 = 8.0;
/// Texels along a side of a block, and blocks along a side of the map.
const BLOCK: usize = 16;
const BLOCKS: usize = SIDE / BLOCK;
/// Rows of the map that are drawn together.
const BAND: usize = 32;
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
    texels: f32,       // per unit of scene space
    spread: f32,       // width of a penumbra per distance between caster and receiver
    near: Vec<f32>,    // shape [SIDE × SIDE]; 0 where there is nothing
    highest: Vec<f32>, // nearest caster that a search from a block of texels can find, shape [BLOCKS × BLOCKS]
    search: Disk<SEARCH>,
    looks: Disk<LOOKS>,
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
        let ends = triangles.iter().flatten().map(|&v| points[v as usize]).filter(reachable).map(|p| (p, 0.0));
        let balls: Vec<(Vector, f32)> = balls.iter().copied().filter(|(c, r)| reachable(c) && *r < REACH).collect();
        let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
        for (p, r) in ends.chain(balls.iter().copied()) {
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
        let near = vec![0.0; SIDE * SIDE];
        let (highest, search, looks) = (Vec::new(), Disk::new(), Disk::new());
        let mut map = ShadowMap { axes, corner, texels, spread, near, highest, search, looks };

        let seen = parallel::collect(points.len(), |v| map.texel(points[v]));
        let texels_of = |i: usize| corners(&seen, triangles[i]);
        let round: Vec<(Vector, f32)> = balls.iter().map(|&(center, radius)| (map.texel(center), radius)).collect();
        let extent = |i: usize| match triangles.get(i) {
            Some(triangle) => {
                let p = texels_of(i);
                let near = triangle.iter().all(|&v| reachable(&points[v as usize]));
                near.then(|| [p[0][1].min(p[1][1]).min(p[2][1]), p[0][1].max(p[1][1]).max(p[2][1])])
            }
            None => {
                let (center, radius) = round[i - triangles.len()];
                Some([center[1] - radius * texels, center[1] + radius * texels])
            }
        };
        let bands = Bands::sort(SIDE, BAND, triangles.len() + round.len(), extent);
        parallel::each(map.near.chunks_mut(SIDE * BAND).enumerate(), |(b, near)| {
            let rows = b * BAND..b * BAND + near.len() / SIDE;
            let mut samples = vec![Sample::default(); near.len()];
            let mut band = Band { width: SIDE, rows, samples: &mut samples };
            for &i in bands.primitives(b) {
                match round.get((i as usize).wrapping_sub(triangles.len())) {
                    None => band.triangle(texels_of(i as usize), i),
                    Some(&(center, radius)) => ball(&mut band, center, radius, texels),
                }
            }
            near.iter_mut().zip(&samples).for_each(|(near, sample)| *near = sample.near());
        });
        map.highest = nearest_around(&map.near, map.radius());
        Some(map)
    }

    /// How far casters are looked for, in texels.
    fn radius(&self) -> f32 {
        (WIDEST * self.spread.sqrt()).min(WIDEST) * self.texels
    }

    /// Direction to the light.
    pub fn direction(&self) -> Vector {
        self.axes[2]
    }

    /// Texel coordinates and nearness to the light.
    fn texel(&self, p: Vector) -> Vector {
        let [u, v, w] = [dot(p, self.axes[0]), dot(p, self.axes[1]), dot(p, self.axes[2])];
        [(u - self.corner[0]) * self.texels, (v - self.corner[1]) * self.texels, w + LIFT]
    }

    /// The part of the light, 0 to 1, that reaches a point of a surface with the given normal.
    ///
    /// Casters near the point give a sharp shadow, far ones a soft one (percentage-closer soft shadows, Fernando 2005).
    /// The places looked at are turned from `pixel` to pixel: the few levels that they can tell apart become a grain too fine to
    /// see instead of bands.
    pub fn visibility(&self, p: Vector, normal: Vector, pixel: [usize; 2]) -> f32 {
        // Two texels off the surface, and tilted with it: otherwise it would cast a shadow on itself.
        let q = self.texel(add(p, scale(normal, 2.0 / self.texels)));
        let steep = dot(normal, self.axes[2]).max(0.25);
        let slope = |axis: Vector| (-dot(normal, axis) / steep).clamp(-3.0, 3.0) / self.texels;
        let tilt = [slope(self.axes[0]), slope(self.axes[1])];
        let radius = self.radius();
        let outside = |x: f32| x < -radius || x > SIDE as f32 + radius;
        if outside(q[0]) || outside(q[1]) {
            return 1.0;
        }
        let lowest = q[2] + 1e-3 - (tilt[0].abs() + tilt[1].abs()) * radius;
        let [column, row] = [q[0], q[1]].map(|x| texel(x) as usize / BLOCK);
        if self.highest[row * BLOCKS + column] <= lowest {
            return 1.0;
        }
        // What rises at less than 4 degrees over the surface is the surface itself, a little curved.
        let receiver = Receiver { q, tilt, gentle: 0.07 / self.texels, spin: spin_at(pixel) };
        let (near, limits) = self.look(&self.search, &receiver, radius);
        let (mut blockers, mut distances) = (0, [0.0; LANES]);
        for (near, limits) in near.as_chunks::<LANES>().0.iter().zip(limits.as_chunks::<LANES>().0) {
            for i in 0..LANES {
                let blocks = near[i] > limits[i];
                blockers += u32::from(blocks);
                distances[i] += if blocks { near[i] - q[2] } else { 0.0 };
            }
        }
        if blockers == 0 {
            return 1.0;
        }
        let distance = distances.iter().sum::<f32>() / blockers as f32;
        let penumbra = (self.spread * distance * self.texels).clamp(2.0, radius.max(2.0));
        match penumbra < SOFT {
            true => self.sharp(&receiver, penumbra),
            false => {
                let (near, limits) = self.look(&self.looks, &receiver, penumbra);
                let lit: u32 = (0..LOOKS).map(|i| u32::from(near[i] <= limits[i])).sum();
                lit as f32 / LOOKS as f32
            }
        }
    }

    /// The nearest casters at places of a disk around a receiver, and the nearness above which each is in front of it. Not inlined:
    /// compilers then compare them one by one.
    #[inline(never)]
    fn look<const N: usize>(&self, disk: &Disk<N>, receiver: &Receiver, radius: f32) -> ([f32; N], [f32; N]) {
        // In two loops, so that the first is done several at once.
        let (mut texels, mut limits) = ([0; N], [0.0; N]);
        for i in 0..N {
            let [x, y, limit] = disk.at(i, receiver, radius);
            (texels[i], limits[i]) = (texel(y) * SIDE as u32 + texel(x), limit);
        }
        (texels.map(|at| self.near[at as usize]), limits)
    }

    /// The part of the light that reaches a receiver past casters close to it: at each place looked at, whether a texel shows the
    /// light is interpolated between the four texels around it.
    fn sharp(&self, receiver: &Receiver, penumbra: f32) -> f32 {
        let last = (SIDE - 2) as f32;
        let (mut texels, mut limits, mut rest) = ([0; LOOKS], [0.0; LOOKS], [[0.0; LOOKS]; 2]);
        for i in 0..LOOKS {
            let [x, y, limit] = self.looks.at(i, receiver, penumbra);
            let [x, y] = [(x - 0.5).clamp(0.0, last), (y - 0.5).clamp(0.0, last)];
            let [column, row] = [x as u32, y as u32];
            (texels[i], limits[i]) = (row * SIDE as u32 + column, limit);
            (rest[0][i], rest[1][i]) = (x - column as f32, y - row as f32);
        }
        let mut near = [[0.0; LOOKS]; 4];
        for i in 0..LOOKS {
            let square = &self.near[texels[i] as usize..][..SIDE + 2];
            (near[0][i], near[1][i]) = (square[0], square[1]);
            (near[2][i], near[3][i]) = (square[SIDE], square[SIDE + 1]);
        }
        let mut lit = [0.0; LANES];
        for i in 0..LOOKS {
            let [x, y] = [rest[0][i], rest[1][i]];
            let [a, b, c, d] = near.map(|near| if near[i] > limits[i] { 0.0 } else { 1.0 });
            lit[i % LANES] += (a * (1.0 - x) + b * x) * (1.0 - y) + (c * (1.0 - x) + d * x) * y;
        }
        lit.iter().sum::<f32>() / LOOKS as f32
    }
}

/// The largest value of `near` within `radius` texels, and a little farther, of each block of texels.
fn nearest_around(near: &[f32], radius: f32) -> Vec<f32> {
    let mut blocks = vec![0.0f32; BLOCKS * BLOCKS];
    for (y, row) in near.chunks_exact(SIDE).enumerate() {
        for (x, texels) in row.as_chunks::<BLOCK>().0.iter().enumerate() {
            let block = &mut blocks[y / BLOCK * BLOCKS + x];
            *block = texels.iter().fold(*block, |most, &near| most.max(near));
        }
    }
    let reach = (radius / BLOCK as f32) as usize + 2;
    // The largest along lines of blocks, then along lines of those: what comes out is turned, and the second time back.
    let along = |blocks: &[f32]| -> Vec<f32> {
        let of = |i: usize| {
            let (x, line) = (i / BLOCKS, &blocks[i % BLOCKS * BLOCKS..][..BLOCKS]);
            line[x.saturating_sub(reach)..(x + reach + 1).min(BLOCKS)]
                .iter()
                .fold(0.0, |most: f32, &near| most.max(near))
        };
        (0..BLOCKS * BLOCKS).map(of).collect()
    };
    along(&along(&blocks))
}

/// The row or column of texels at a coordinate, the nearest one outside of the map.
#[inline]
fn texel(x: f32) -> u32 {
    (x.max(0.0) as u32).min(SIDE as u32 - 1)
}

/// Cosine and sine of an angle that differs a lot between neighboring pixels (interleaved gradient noise, Jimenez 2014).
fn spin_at([x, y]: [usize; 2]) -> [f32; 2] {
    let turn = (52.982_918 * (0.067_110_56 * x as f32 + 0.005_837_15 * y as f32).fract()).fract();
    let (sin, cos) = (turn * std::f32::consts::TAU).sin_cos();
    [cos, sin]
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

/// A place whose light is asked for, and the plane of the surface there.
struct Receiver {
    /// In texels, and nearness to the light.
    q: Vector,
    /// Nearness per texel along the surface, and that of a slope that casts no shadow.
    tilt: [f32; 2],
    gentle: f32,
    /// Cosine and sine of the angle by which disks are turned.
    spin: [f32; 2],
}

/// Places spread evenly over the unit disk (Vogel's spiral).
struct Disk<const N: usize> {
    u: [f32; N],
    v: [f32; N],
}

impl<const N: usize> Disk<N> {
    fn new() -> Disk<N> {
        const TURN: f32 = 2.399_963; // the golden angle
        let polar = |i: usize| (((i as f32 + 0.5) / N as f32).sqrt(), (TURN * i as f32).sin_cos());
        let along = |f: fn((f32, (f32, f32))) -> f32| std::array::from_fn(|i| f(polar(i)));
        Disk { u: along(|(r, (_, cos))| r * cos), v: along(|(r, (sin, _))| r * sin) }
    }

    /// Where place `i` of a disk around a receiver is, in texels, and the nearness of the surface there.
    #[inline]
    fn at(&self, i: usize, receiver: &Receiver, radius: f32) -> Vector {
        let Receiver { q, tilt, gentle, spin } = receiver;
        let x = (self.u[i] * spin[0] - self.v[i] * spin[1]) * radius;
        let y = (self.u[i] * spin[1] + self.v[i] * spin[0]) * radius;
        [q[0] + x, q[1] + y, q[2] + 1e-3 + tilt[0] * x + tilt[1] * y + gentle * (x.abs() + y.abs())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ball_shades_what_is_below_it_and_not_itself() {
        let (up, pixel) = ([0.0, 0.0, 1.0], [0, 0]);
        let map = ShadowMap::new(up, 0.1, &[], &[], &[([0.0, 0.0, 0.5], 0.3)]).unwrap();
        assert!(map.visibility([0.0, 0.0, 0.0], up, pixel) < 0.05);
        assert!(map.visibility([0.6, 0.0, 0.0], up, pixel) > 0.99);
        assert!(map.visibility([0.0, 0.0, 0.8], up, pixel) > 0.99);
    }

    #[test]
    fn nothing_casts_no_shadow() {
        assert!(ShadowMap::new([0.0, 0.0, 1.0], 0.1, &[], &[], &[]).is_none());
        assert!(ShadowMap::new([0.0, 0.0, 1.0], 0.1, &[[1e5; 3]; 3], &[[0, 1, 2]], &[]).is_none());
    }
}
