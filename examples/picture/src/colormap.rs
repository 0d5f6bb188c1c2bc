//! Colors of numbers, and the two ways to write a color down.

use std::sync::{LazyLock, OnceLock};

use super::vector::Vector;

/// A map from numbers to colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorMap {
    /// Dark blue over green to yellow, of even perceptual steps: any quantity.
    #[default]
    Viridis,
    /// Dark blue over red to yellow, of even perceptual steps: heat, energy, density. Nowhere so dark that shapes vanish.
    Plasma,
    /// Blue over gray to red: signed quantities, gray at the middle of the range.
    Coolwarm,
    /// Sand at the lower end, then light to dark blue: depths of water, 0 where it is dry.
    Water,
}

/// The sRGB color of NaN, and of what is not there.
pub(super) const MISSING: [f32; 3] = [0.62; 3];

/// Coefficients of t^0 to t^6 for red, green and blue. Fits of the maps of Smith and van der Walt (matplotlib, CC0) by
/// Matt Zucker, <https://www.shadertoy.com/view/WlfXRN> (CC0).
const VIRIDIS: [[f32; 3]; 7] = [
    [0.277_727_33, 0.005_407_345, 0.334_099_8],
    [0.105_093_04, 1.404_613_5, 1.384_590_2],
    [-0.330_861_84, 0.214_847_56, 0.095_095_165],
    [-4.634_230_6, -5.799_101, -19.332_441],
    [6.228_27, 14.179_933, 56.690_55],
    [4.776_385, -13.745_145, -65.353_035],
    [-5.435_456, 4.645_852_6, 26.312_435],
];
const PLASMA: [[f32; 3]; 7] = [
    [0.058_732_344, 0.023_336_709, 0.543_340_2],
    [2.176_514_6, 0.238_383_42, 0.753_960_46],
    [-2.689_460_5, -7.455_851, 3.110_8],
    [6.130_348, 42.346_188, -28.518_855],
    [-11.107_436, -82.666_31, 60.139_848],
    [10.023_066, 71.413_62, -54.072_187],
    [-3.658_713_8, -22.931_535, 18.191_908],
];
/// Every other entry of the 33 in K. Moreland, Diverging Color Maps for Scientific Visualization, 2009.
const COOLWARM: [[u8; 3]; 17] = [
    [59, 76, 192],
    [77, 104, 215],
    [98, 130, 234],
    [119, 154, 247],
    [141, 176, 254],
    [163, 194, 255],
    [184, 208, 249],
    [204, 217, 238],
    [221, 221, 221],
    [236, 211, 197],
    [245, 196, 173],
    [247, 177, 148],
    [244, 154, 123],
    [236, 127, 99],
    [222, 96, 77],
    [203, 62, 56],
    [180, 4, 38],
];

/// Of lightness that falls evenly from the second on.
const WATER: [[u8; 3]; 9] = [
    [203, 182, 143],
    [158, 206, 209],
    [112, 188, 205],
    [72, 164, 196],
    [45, 138, 184],
    [29, 111, 168],
    [20, 84, 148],
    [13, 59, 122],
    [8, 36, 92],
];

impl ColorMap {
    /// All maps, in the order of their numbers.
    pub const ALL: [ColorMap; 4] = [ColorMap::Viridis, ColorMap::Plasma, ColorMap::Coolwarm, ColorMap::Water];

    /// The sRGB color, 0 to 1 a channel, at `t`, which is clamped to 0 to 1. NaN is gray.
    pub fn color(self, t: f32) -> [f32; 3] {
        if t.is_nan() {
            return MISSING;
        }
        let t = t.clamp(0.0, 1.0);
        let fit = |c: &[[f32; 3]; 7], k: usize| c.iter().rev().fold(0.0, |sum, c| sum * t + c[k]).clamp(0.0, 1.0);
        match self {
            ColorMap::Viridis => std::array::from_fn(|k| fit(&VIRIDIS, k)),
            ColorMap::Plasma => std::array::from_fn(|k| fit(&PLASMA, k)),
            ColorMap::Coolwarm => between(&COOLWARM, t),
            ColorMap::Water => between(&WATER, t),
        }
    }

    /// A range that shows `values`: their least and largest, made symmetric around 0 for [`ColorMap::Coolwarm`].
    /// Values that are not finite do not count; 0 to 1 if none is left. Call it over the whole run, not every frame.
    pub fn range_of(self, values: &[f64]) -> [f64; 2] {
        let ends = values.iter().filter(|x| x.is_finite()).fold(None, |ends: Option<[f64; 2]>, &x| {
            Some(ends.map_or([x; 2], |[low, high]| [low.min(x), high.max(x)]))
        });
        match (self, ends) {
            (_, None) => [0.0, 1.0],
            (ColorMap::Coolwarm, Some([low, high])) => {
                let most = high.max(-low);
                [-most, most]
            }
            (_, Some(ends)) => ends,
        }
    }
}

/// The color at `t`, 0 to 1, between those of a table.
fn between(table: &[[u8; 3]], t: f32) -> [f32; 3] {
    let x = t * (table.len() - 1) as f32;
    let i = (x as usize).min(table.len() - 2);
    let f = x - i as f32;
    std::array::from_fn(|k| (f32::from(table[i][k]) * (1.0 - f) + f32::from(table[i + 1][k]) * f) / 255.0)
}

/// Where `value` lies in `range`: 0 at its lower end, 1 at its upper; the middle if the range has no width.
#[inline]
pub(super) fn place_in(range: [f64; 2], value: f64) -> f32 {
    let width = range[1] - range[0];
    match value {
        _ if value.is_nan() => f32::NAN,
        _ if width == 0.0 || !width.is_finite() => 0.5,
        _ => ((value - range[0]) / width).clamp(0.0, 1.0) as f32,
    }
}

/// From sRGB, 0 to 1, to linear light.
pub(super) fn to_linear(srgb: [f32; 3]) -> Vector {
    srgb.map(|x| if x <= 0.04045 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) })
}

/// From sRGB bytes to linear light.
pub(super) fn bytes_to_linear(srgb: [u8; 3]) -> Vector {
    to_linear(srgb.map(|x| f32::from(x) / 255.0))
}

/// From linear light to sRGB bytes.
#[inline]
pub(super) fn to_bytes(linear: Vector) -> [u8; 3] {
    linear.map(|x| BYTES[(x.clamp(0.0, 1.0) * LAST_BYTE + 0.5) as usize])
}

/// Index of the last entry of [`BYTES`]: near black, where sRGB is steepest, five entries share a byte.
const LAST_BYTE: f32 = 16383.0;

/// The byte of every amount of light, because a power for every pixel would cost as much as all its shading.
static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let byte = |i: u32| {
        let x = i as f32 / LAST_BYTE;
        let srgb = if x <= 0.003_130_8 { 12.92 * x } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
        (srgb * 255.0 + 0.5) as u8
    };
    (0..=LAST_BYTE as u32).map(byte).collect()
});

/// Colors of a map from its lower end to its upper one, in linear light: finer than a picture can show.
pub(super) fn ramp(map: ColorMap) -> &'static [Vector] {
    RAMPS[map as usize].get_or_init(|| (0..1024).map(|i| to_linear(map.color(i as f32 / 1023.0))).collect())
}

/// What [`ramp`] has made so far, because the powers of a map cost as much as a twentieth of a picture.
static RAMPS: [OnceLock<Vec<Vector>>; ColorMap::ALL.len()] = [const { OnceLock::new() }; ColorMap::ALL.len()];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_agree_with_published_colors() {
        let cases = [
            (ColorMap::Viridis, 0.0, [68, 1, 84]),
            (ColorMap::Viridis, 0.5, [33, 145, 140]),
            (ColorMap::Viridis, 1.0, [253, 231, 37]),
            (ColorMap::Plasma, 0.0, [13, 8, 135]),
            (ColorMap::Plasma, 0.5, [204, 71, 120]),
            (ColorMap::Plasma, 1.0, [240, 249, 33]),
            (ColorMap::Coolwarm, 0.0, [59, 76, 192]),
            (ColorMap::Coolwarm, 0.53125, [229, 216, 209]),
            (ColorMap::Coolwarm, 1.0, [180, 4, 38]),
        ];
        for (map, t, expected) in cases {
            let color = map.color(t).map(|x| x * 255.0);
            let off = (0..3).map(|k| (color[k] - expected[k] as f32).abs()).fold(0.0, f32::max);
            assert!(off < 5.0, "{map:?} at {t}: {color:?}, expected {expected:?}"); // the fits are off by up to 1.5 %
        }
    }

    #[test]
    fn bytes_survive_linear_light() {
        (0..=255u8).for_each(|x| assert_eq!(to_bytes(bytes_to_linear([x; 3])), [x; 3]));
    }

    #[test]
    fn ranges_ignore_what_is_not_finite() {
        assert_eq!(ColorMap::Viridis.range_of(&[f64::NAN, 2.0, f64::INFINITY, -1.0]), [-1.0, 2.0]);
        assert_eq!(ColorMap::Coolwarm.range_of(&[1.0, -3.0]), [-3.0, 3.0]);
        assert_eq!(ColorMap::Plasma.range_of(&[]), [0.0, 1.0]);
        assert!(place_in([0.0, 1.0], f64::NAN).is_nan());
        assert_eq!(place_in([2.0, 2.0], 7.0), 0.5);
    }
}
