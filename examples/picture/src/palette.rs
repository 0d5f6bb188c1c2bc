//! 255 colors for all frames of an animation.

use std::sync::atomic::{AtomicU8, Ordering};

/// The index that leaves a pixel as it was.
pub(super) const TRANSPARENT: u8 = 255;
/// Colors besides the transparent one.
const COLORS: usize = TRANSPARENT as usize;
/// Bits a channel that the census tells apart.
const BITS: u32 = 5;
/// Bits a channel of the colors whose nearest palette color is looked for: finer than the palette.
const FINE: u32 = 7;

/// How often colors occur.
pub(super) struct Census {
    bins: Vec<[u64; 4]>, // number of pixels, and sums of their red, green and blue
}

impl Census {
    pub fn new() -> Census {
        Census { bins: vec![[0; 4]; 1 << (3 * BITS)] }
    }

    /// Adds the pixels of a picture.
    pub fn count(&mut self, rgb: &[u8]) {
        for p in rgb.chunks_exact(3) {
            let bin = p.iter().fold(0, |bin, &x| bin << BITS | usize::from(x >> (8 - BITS)));
            self.bins[bin][0] += 1;
            (0..3).for_each(|k| self.bins[bin][k + 1] += u64::from(p[k]));
        }
    }

    /// Cuts the colors into boxes, always the box with the largest spread, at the mean of its longest side; the colors
    /// of the palette are the means of the boxes (Wu 1991, simplified).
    pub fn palette(&self) -> Palette {
        // The root of the count: the large plain background may not take the colors of the small mesh.
        let colors = self.bins.iter().filter(|bin| bin[0] > 0);
        let colors: Vec<Color> = colors
            .map(|bin| {
                let mean = std::array::from_fn(|k| bin[k + 1] as f32 / bin[0] as f32);
                Color { mean, weight: (bin[0] as f32).sqrt() }
            })
            .collect();
        let mut boxes = vec![Cut::of(colors)];
        while boxes.len() < COLORS {
            let widest = (0..boxes.len()).max_by(|&a, &b| boxes[a].spread.total_cmp(&boxes[b].spread).then(b.cmp(&a)));
            let Some(i) = widest.filter(|&i| boxes[i].spread > 0.0) else { break };
            let Cut { colors, axis, mean, .. } = boxes.swap_remove(i);
            let (low, high): (Vec<Color>, Vec<Color>) = colors.into_iter().partition(|c| c.mean[axis] < mean[axis]);
            if low.is_empty() || high.is_empty() {
                boxes.push(Cut { spread: 0.0, ..Cut::of(if low.is_empty() { high } else { low }) });
                continue;
            }
            boxes.extend([Cut::of(low), Cut::of(high)]);
        }
        Palette { colors: boxes.iter().map(|b| b.mean.map(|x| (x + 0.5) as u8)).collect() }
    }
}

#[derive(Clone, Copy)]
struct Color {
    mean: [f32; 3],
    weight: f32,
}

/// Some colors, their mean, the axis along which they differ most and by how much.
struct Cut {
    colors: Vec<Color>,
    mean: [f32; 3],
    axis: usize,
    spread: f32,
}

impl Cut {
    fn of(colors: Vec<Color>) -> Cut {
        let weight: f32 = colors.iter().map(|c| c.weight).sum::<f32>().max(1e-6);
        let mean = std::array::from_fn(|k| colors.iter().map(|c| c.mean[k] * c.weight).sum::<f32>() / weight);
        let spread: [f32; 3] =
            std::array::from_fn(|k| colors.iter().map(|c| (c.mean[k] - mean[k]).powi(2) * c.weight).sum());
        let axis = (0..3).fold(0, |best, k| if spread[k] > spread[best] { k } else { best });
        Cut { mean, axis, spread: if colors.len() > 1 { spread[axis] } else { 0.0 }, colors }
    }
}

/// At most 255 colors.
pub(super) struct Palette {
    colors: Vec<[u8; 3]>,
}

impl Palette {
    /// Red, green and blue of 256 colors; unused ones are black.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.colors.concat();
        bytes.resize(3 * (COLORS + 1), 0);
        bytes
    }

    /// Room to remember the nearest palette color of every color, for calls of [`Palette::dither`].
    pub fn empty_memory() -> Vec<AtomicU8> {
        (0..1usize << (3 * FINE)).map(|_| AtomicU8::new(TRANSPARENT)).collect()
    }

    /// The index of a palette color for every pixel of a picture of `width` columns.
    ///
    /// The pattern of the dither stands still and a pixel depends on nothing but its own color, so what does not move
    /// does not flicker, and equal pixels of two frames get equal indices.
    pub fn dither(&self, rgb: &[u8], width: usize, memory: &[AtomicU8]) -> Vec<u8> {
        let pixel = |(i, p): (usize, &[u8])| {
            let nudge = threshold(i % width, i / width);
            let color: [u8; 3] = std::array::from_fn(|k| (f32::from(p[k]) + nudge).clamp(0.0, 255.0) as u8);
            let slot = &memory[color.iter().fold(0, |slot, &x| slot << FINE | usize::from(x >> (8 - FINE)))];
            // Threads may look for the same color at once; they find the same index, so the order does not matter.
            match slot.load(Ordering::Relaxed) {
                TRANSPARENT => {
                    let index = self.nearest(color.map(|x| x >> (8 - FINE) << (8 - FINE)));
                    slot.store(index, Ordering::Relaxed);
                    index
                }
                index => index,
            }
        };
        rgb.chunks_exact(3).enumerate().map(pixel).collect()
    }

    fn nearest(&self, color: [u8; 3]) -> u8 {
        // The eye tells greens apart best and blues worst.
        let apart = |c: &[u8; 3]| -> i32 {
            (0..3).map(|k| [3, 5, 2][k] * (i32::from(c[k]) - i32::from(color[k])).pow(2)).sum()
        };
        (0..self.colors.len()).min_by_key(|&i| apart(&self.colors[i])).unwrap_or(0) as u8
    }
}

/// Entry of the 8 × 8 Bayer matrix at a pixel, from about -3 to 3: half the usual distance of palette colors.
fn threshold(x: usize, y: usize) -> f32 {
    let rank = (0..3).fold(0, |rank, bit| {
        let (a, b) = (x >> bit & 1, y >> bit & 1);
        rank << 2 | (a ^ b) << 1 | b
    });
    (rank as f32 + 0.5) / 64.0 * 6.0 - 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_colors_are_kept() {
        let mut census = Census::new();
        census.count(&[[255u8, 0, 0], [0, 255, 0], [9, 9, 200]].concat());
        let mut colors = census.palette().colors;
        colors.sort();
        assert_eq!(colors, [[0, 255, 0], [9, 9, 200], [255, 0, 0]]);
    }

    #[test]
    fn the_bayer_matrix_is_balanced() {
        let sum: f32 = (0..64).map(|i| threshold(i % 8, i / 8)).sum();
        assert!(sum.abs() < 1e-4);
        let mut ranks: Vec<i32> = (0..64).map(|i| (threshold(i % 8, i / 8) * 1000.0) as i32).collect();
        ranks.sort_unstable();
        ranks.dedup();
        assert_eq!(ranks.len(), 64);
    }
}
