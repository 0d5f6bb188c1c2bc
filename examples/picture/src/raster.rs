//! Rows of samples, each with the nearest primitive there.
//!
//! Primitives are sorted into bands of rows, and bands are drawn in parallel: no sample depends on their order.

use std::ops::Range;

use super::vector::Vector;

/// Samples along the side of a pixel.
pub(super) const GRID: usize = 3;
/// Samples of a pixel.
pub(super) const SAMPLES: usize = GRID * GRID;
/// Samples of a row that are drawn at once.
pub(super) const LANES: usize = 8;

/// No primitive at a sample.
pub(super) const NOTHING: u32 = u32::MAX;

/// The numbers of the primitives that touch each band, in ascending order.
pub(super) struct Bands(Vec<Vec<u32>>);

impl Bands {
    /// Sorts the primitives `0..count` into bands of `rows` rows each, of `height` in all. `extent(i)` is the range of y
    /// that primitive i can touch, None to leave it out.
    pub fn sort(height: usize, rows: usize, count: usize, extent: impl Fn(usize) -> Option<[f32; 2]>) -> Bands {
        let mut bands: Vec<Vec<u32>> = vec![Vec::new(); height.div_ceil(rows)];
        for i in 0..count {
            if let Some([low, high]) = extent(i).filter(|&[low, high]| high >= 0.0 && low <= height as f32) {
                let first = low.max(0.0) as usize / rows;
                let last = (high as usize / rows).min(bands.len() - 1);
                bands[first.min(last)..=last].iter_mut().for_each(|band| band.push(i as u32));
            }
        }
        Bands(bands)
    }

    /// The primitives of a band.
    pub fn primitives(&self, band: usize) -> &[u32] {
        &self.0[band]
    }
}

/// Some rows of samples, row after row.
pub(super) struct Band<'a> {
    /// Samples of a row: a multiple of [`LANES`].
    pub width: usize,
    /// Numbers of the rows.
    pub rows: Range<usize>,
    /// What is there, shape [rows × width].
    pub samples: &'a mut [Sample],
}

/// A primitive and its nearness in one number, so that the larger of two samples is the one to show: the nearer, and of
/// equally near primitives the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sample(u64);

impl Sample {
    /// A primitive at a nearness; one that is not above 0 is nothing.
    #[inline]
    pub fn new(near: f32, id: u32) -> Sample {
        Sample(if near > 0.0 { u64::from(near.to_bits()) << 32 | u64::from(!id) } else { 0 })
    }

    /// Larger is nearer, 0 is nothing.
    #[inline]
    pub fn near(self) -> f32 {
        f32::from_bits((self.0 >> 32) as u32)
    }

    /// Number of the primitive, or [`NOTHING`].
    #[inline]
    pub fn id(self) -> u32 {
        !(self.0 as u32)
    }
}

impl Band<'_> {
    /// Puts a primitive at a sample if nothing there is as near.
    #[inline]
    pub fn put(&mut self, x: usize, y: usize, near: f32, id: u32) {
        let sample = &mut self.samples[(y - self.rows.start) * self.width + x];
        *sample = Sample::new(near, id).max(*sample);
    }

    /// Puts a primitive at samples of a row, as near as `near` says for their columns: 0 leaves a sample as it is.
    #[inline]
    pub fn row(&mut self, y: usize, columns: Range<usize>, id: u32, near: impl Fn(f32) -> f32) {
        let row = &mut self.samples[(y - self.rows.start) * self.width..][..self.width];
        for x in columns {
            row[x] = Sample::new(near(x as f32 + 0.5), id).max(row[x]);
        }
    }

    /// Samples of this band whose centers lie between the coordinates: columns and rows.
    #[inline]
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
    /// Corners are snapped to 1/16 of a sample, and sides are computed in integers below 2⁵³: exact, so two triangles that
    /// share a side leave no sample between them empty.
    pub fn triangle(&mut self, [a, mut b, mut c]: [Vector; 3], id: u32) {
        let round = |x: f32| (f64::from(x.clamp(-1e6, 1e6)) * 16.0 + 0.5).floor();
        let snap = |p: Vector| [round(p[0]), round(p[1])];
        let (p, mut q, mut r) = (snap(a), snap(b), snap(c));
        let side =
            |p: [f64; 2], q: [f64; 2], at: [f64; 2]| (q[0] - p[0]) * (at[1] - p[1]) - (q[1] - p[1]) * (at[0] - p[0]);
        if side(p, q, r) < 0.0 {
            std::mem::swap(&mut q, &mut r);
            std::mem::swap(&mut b, &mut c);
        }
        let area = side(p, q, r);
        if area == 0.0 {
            return;
        }
        // Sample x has its center at 16 x + 8.
        let range = |k: usize, within: Range<usize>| {
            let (low, high) = (p[k].min(q[k]).min(r[k]), p[k].max(q[k]).max(r[k]));
            let first = (((low - 8.0) / 16.0).ceil().max(0.0) as usize).max(within.start);
            let last = ((((high - 8.0) / 16.0).floor() + 1.0).max(0.0) as usize).min(within.end);
            first..last
        };
        let (columns, rows) = (range(0, 0..self.width), range(1, self.rows.clone()));
        if columns.is_empty() {
            return;
        }
        let rate = [a[2] / area as f32, b[2] / area as f32, c[2] / area as f32];
        let step = [(q, r), (r, p), (p, q)].map(|(p, q)| -16.0 * (q[1] - p[1]));
        let (first, last) = (columns.start / LANES, columns.end.div_ceil(LANES));
        for y in rows {
            let at = [16.0 * (first * LANES) as f64 + 8.0, 16.0 * y as f64 + 8.0];
            let mut e = [side(q, r, at), side(r, p, at), side(p, q, at)];
            let row = (y - self.rows.start) * self.width;
            let row = row + first * LANES..row + last * LANES;
            for samples in self.samples[row].as_chunks_mut::<LANES>().0 {
                // Simple loops without branches: each is done at once by the registers of most processors.
                let mut own = [0.0; LANES];
                for i in 0..LANES {
                    let x = i as f64;
                    let (a, b, c) = (e[0] + x * step[0], e[1] + x * step[1], e[2] + x * step[2]);
                    let nearness = a as f32 * rate[0] + b as f32 * rate[1] + c as f32 * rate[2];
                    own[i] = if a.min(b).min(c) >= 0.0 { nearness } else { 0.0 };
                }
                for i in 0..LANES {
                    samples[i] = Sample::new(own[i], id).max(samples[i]);
                }
                (0..3).for_each(|k| e[k] += LANES as f64 * step[k]);
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
        let mut samples = vec![Sample::default(); 104 * 100];
        for (b, samples) in samples.chunks_mut(104 * 32).enumerate() {
            let mut band = Band { width: 104, rows: 32 * b..32 * b + samples.len() / 104, samples };
            (0..37).for_each(|i| band.triangle([center, rim[i], rim[(i + 1) % 37]], i as u32));
        }
        for (i, id) in samples.iter().map(|sample| sample.id()).enumerate() {
            let r = ((i % 104) as f32 - 49.5).hypot((i / 104) as f32 - 49.5);
            assert!(r > 44.0 || id != NOTHING, "hole at {i}");
            assert!(r < 46.0 || id == NOTHING, "spill at {i}");
        }
    }

    #[test]
    fn wild_coordinates_are_survived() {
        let wild = [[1e30, -1e30, 1.0], [f32::MAX, 3.0, 1.0], [-1e38, 1e38, 1.0]];
        let mut band = Band { width: 40, rows: 0..40, samples: &mut [Sample::default(); 1600] };
        band.triangle(wild, 0);
        band.line([wild[0], wild[2]], [1.0, 2.0], 1);
        band.line([wild[1], wild[1]], [1.0, 2.0], 1);
    }

    #[test]
    fn a_primitive_is_in_each_band_that_it_touches() {
        let extents = [Some([5.0, 25.0]), None, Some([-9.0, -1.0]), Some([f32::NEG_INFINITY, 0.0]), Some([31.0, 1e9])];
        let bands = Bands::sort(32, 10, 5, |i| extents[i]);
        assert_eq!([0, 1, 2, 3].map(|b| bands.primitives(b)), [&[0, 3][..], &[0], &[0], &[4]]);
    }
}
