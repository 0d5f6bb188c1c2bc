//! A grid of samples, each with the nearest primitive there: lines of samples are drawn in parallel.
//!
//! Primitives of a kind are sorted into bands of rows, and each band draws its primitives in the order of their numbers.
//! Between equally near primitives the first one stays, so the grid does not depend on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::vector::Vector;

/// Rows of a band: enough work for a task, enough bands for many cores.
const BAND: usize = 32;

/// No primitive at a sample.
pub(super) const NOTHING: u32 = u32::MAX;

/// The samples, row after row: shape [height × width].
pub(super) struct Layer {
    pub width: usize,
    pub height: usize,
    /// Nearness of what is there: larger is nearer, 0 is nothing.
    pub near: Vec<f32>,
    /// Number of the primitive, or [`NOTHING`].
    pub id: Vec<u32>,
}

/// Some rows of a layer.
pub(super) struct Band<'a> {
    pub width: usize,
    pub rows: Range<usize>,
    near: &'a mut [f32],
    id: &'a mut [u32],
}

impl Layer {
    /// Samples with nothing there.
    pub fn new(width: usize, height: usize) -> Layer {
        Layer { width, height, near: vec![0.0; width * height], id: vec![NOTHING; width * height] }
    }

    /// Draws the primitives `0..count`. `extent(i)` is the range of y that primitive i can touch, None to skip it;
    /// `paint(i, band)` puts it into the rows of a band.
    pub fn draw(
        &mut self,
        count: usize,
        extent: impl Fn(usize) -> Option<[f32; 2]> + Sync,
        paint: impl Fn(usize, &mut Band) + Sync,
    ) {
        let (width, height) = (self.width, self.height);
        let mut bins: Vec<Vec<u32>> = vec![Vec::new(); height.div_ceil(BAND)];
        for i in 0..count {
            if let Some([low, high]) = extent(i).filter(|&[low, high]| high >= 0.0 && low <= height as f32) {
                let first = low.max(0.0) as usize / BAND;
                let last = (high as usize / BAND).min(bins.len() - 1);
                bins[first.min(last)..=last].iter_mut().for_each(|bin| bin.push(i as u32));
            }
        }
        let rows = self.near.par_chunks_mut(BAND * width).zip(self.id.par_chunks_mut(BAND * width));
        rows.zip(bins).enumerate().for_each(|(b, ((near, id), bin))| {
            let rows = b * BAND..b * BAND + near.len() / width;
            let mut band = Band { width, rows, near, id };
            bin.iter().for_each(|&i| paint(i as usize, &mut band));
        });
    }
}

impl Band<'_> {
    /// Puts a primitive at a sample if nothing there is as near.
    #[inline]
    pub fn put(&mut self, x: usize, y: usize, near: f32, id: u32) {
        let i = (y - self.rows.start) * self.width + x;
        if near > self.near[i] {
            self.near[i] = near;
            self.id[i] = id;
        }
    }

    /// Samples of this band whose centers lie between the coordinates: columns and rows.
    pub fn inside(&self, [left, right]: [f32; 2], [top, bottom]: [f32; 2]) -> (Range<usize>, Range<usize>) {
        let range = |low: f32, high: f32, within: Range<usize>| {
            let first = ((low - 0.5).ceil().max(0.0) as usize).max(within.start);
            let last = (((high - 0.5).floor() + 1.0).max(0.0) as usize).min(within.end);
            first..last
        };
        (range(left, right, 0..self.width), range(top, bottom, self.rows.clone()))
    }

    /// Puts a triangle of corners (x, y, nearness).
    ///
    /// Corners are snapped to 1/16 of a sample and sides are computed in integers: exact, so two triangles that share
    /// a side leave no sample between them empty.
    pub fn triangle(&mut self, [a, mut b, mut c]: [Vector; 3], id: u32) {
        // To the nearest: a cast cuts toward 0, so the number is made positive first, without loss in double precision.
        let snap =
            |p: Vector| [p[0], p[1]].map(|x| (f64::from(x.clamp(-4e6, 4e6)) * 16.0 + 67_108_864.5) as i64 - 67_108_864);
        let (p, mut q, mut r) = (snap(a), snap(b), snap(c));
        let side =
            |p: [i64; 2], q: [i64; 2], at: [i64; 2]| (q[0] - p[0]) * (at[1] - p[1]) - (q[1] - p[1]) * (at[0] - p[0]);
        if side(p, q, r) < 0 {
            std::mem::swap(&mut q, &mut r);
            std::mem::swap(&mut b, &mut c);
        }
        let area = side(p, q, r);
        if area == 0 {
            return;
        }
        let ends = |k: usize| [p[k].min(q[k]).min(r[k]), p[k].max(q[k]).max(r[k])];
        let range = |[low, high]: [i64; 2], within: Range<usize>| {
            let first = (low + 7).div_euclid(16).max(within.start as i64); // sample x has its center at 16 x + 8
            let last = ((high - 8).div_euclid(16) + 1).min(within.end as i64);
            first..last
        };
        let columns = range(ends(0), 0..self.width);
        let rows = range(ends(1), self.rows.clone());
        if columns.is_empty() {
            return;
        }
        let step = [(q, r), (r, p), (p, q)].map(|(p, q)| -16 * (q[1] - p[1]));
        let rate = [a[2], b[2], c[2]].map(|z| z / area as f32);
        for y in rows {
            let at = [16 * columns.start + 8, 16 * y + 8];
            let mut e = [side(q, r, at), side(r, p, at), side(p, q, at)];
            for x in columns.clone() {
                if e[0] | e[1] | e[2] >= 0 {
                    let near = e[0] as f32 * rate[0] + e[1] as f32 * rate[1] + e[2] as f32 * rate[2];
                    self.put(x as usize, y as usize, near, id);
                }
                e = [e[0] + step[0], e[1] + step[1], e[2] + step[2]];
            }
        }
    }

    /// Puts a line with round ends between (x, y, nearness); `radius` in samples at both ends.
    pub fn line(&mut self, ends: [Vector; 2], radius: [f32; 2], id: u32) {
        let [a, b] = ends;
        let widest = radius[0].max(radius[1]);
        let (_, rows) = self.inside([0.0; 2], [a[1].min(b[1]) - widest, a[1].max(b[1]) + widest]);
        for y in rows {
            // The part of the axis that is near this row bounds the columns; a level line lies there as a whole.
            let [low, high] = [-widest, widest].map(|r| (y as f32 + 0.5 + r - a[1]) / (b[1] - a[1]));
            let t = if (b[1] - a[1]).abs() < 1e-3 { [0.0, 1.0] } else { [low.min(high), low.max(high)] };
            let x = t.map(|t| a[0] + (b[0] - a[0]) * t.clamp(0.0, 1.0));
            let (columns, _) = self.inside([x[0].min(x[1]) - widest, x[0].max(x[1]) + widest], [0.0; 2]);
            for x in columns {
                let (t, across) = nearest_on_line(ends, x as f32 + 0.5, y as f32 + 0.5);
                if across[0].hypot(across[1]) <= radius[0] + (radius[1] - radius[0]) * t {
                    self.put(x, y, a[2] + (b[2] - a[2]) * t, id);
                }
            }
        }
    }
}

/// The place on a line nearest to a sample: its share of the way, and the offset from there to the sample.
pub(super) fn nearest_on_line([a, b]: [Vector; 2], x: f32, y: f32) -> (f32, [f32; 2]) {
    let (d, p) = ([b[0] - a[0], b[1] - a[1]], [x - a[0], y - a[1]]);
    let length2 = d[0] * d[0] + d[1] * d[1];
    let t = if length2 > 0.0 { ((p[0] * d[0] + p[1] * d[1]) / length2).clamp(0.0, 1.0) } else { 0.0 };
    (t, [p[0] - d[0] * t, p[1] - d[1] * t])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fan_of_triangles_leaves_no_hole() {
        let center = [50.3, 49.1, 1.0];
        let rim: Vec<Vector> = (0..37)
            .map(|i| (i as f32 / 37.0 * std::f32::consts::TAU).sin_cos())
            .map(|(s, c)| [50.0 + 45.0 * c, 50.0 + 45.0 * s, 1.0])
            .collect();
        let mut layer = Layer::new(100, 100);
        layer.draw(37, |_| Some([0.0, 100.0]), |i, band| band.triangle([center, rim[i], rim[(i + 1) % 37]], i as u32));
        for (i, &id) in layer.id.iter().enumerate() {
            let r = ((i % 100) as f32 - 49.5).hypot((i / 100) as f32 - 49.5);
            assert!(r > 44.0 || id != NOTHING, "hole at {i}");
            assert!(r < 46.0 || id == NOTHING, "spill at {i}");
        }
    }

    #[test]
    fn wild_coordinates_are_survived() {
        let mut layer = Layer::new(40, 40);
        let wild = [[1e30, -1e30, 1.0], [f32::MAX, 3.0, 1.0], [-1e38, 1e38, 1.0]];
        layer.draw(
            1,
            |_| Some([-1e38, f32::MAX]),
            |_, band| {
                band.triangle(wild, 0);
                band.line([wild[0], wild[2]], [1.0, 2.0], 1);
                band.line([wild[1], wild[1]], [1.0, 2.0], 1);
            },
        );
    }
}
