//! The colors of the points of a scene, in linear light.

use std::borrow::Cow;

use meshweft_mesh::parallel;

use super::colormap::{MISSING, bytes_to_linear, place_in, ramp, to_linear};
use super::scene::Coloring;
use super::vector::Vector;

/// The colors of a scene, ready to be mixed.
pub(super) struct Pigments<'a> {
    /// The plain color, those of the map from end to end, or those of the kinds.
    colors: Cow<'static, [Vector]>,
    of: Of<'a>,
}

/// What gives a point its color.
enum Of<'a> {
    /// Nothing: all have the first.
    None,
    /// Its place along the map, 0 to 1.
    Places(Vec<f32>),
    /// The number of its kind.
    Kinds(&'a [u32]),
}

impl<'a> Pigments<'a> {
    /// The colors of a coloring. Cost: a pass over its numbers.
    pub fn new(coloring: &'a Coloring) -> Pigments<'a> {
        let (colors, of) = match *coloring {
            Coloring::Plain(color) => (vec![bytes_to_linear(color)].into(), Of::None),
            Coloring::Scalar { values, range, map, .. } => {
                (ramp(map).into(), Of::Places(parallel::collect(values.len(), |v| place_in(range, values[v]))))
            }
            Coloring::Kinds { of, kinds } => {
                (kinds.iter().map(|kind| bytes_to_linear(kind.1)).collect(), Of::Kinds(of))
            }
        };
        Pigments { colors, of }
    }

    /// The plain color, that of the field between three points by their weights, or that of the heaviest point. One point
    /// without a number grays all of it.
    #[inline]
    pub fn mix(&self, corners: &[u32; 3], weights: &Vector) -> Vector {
        let missing = || to_linear(MISSING);
        match &self.of {
            Of::None => self.colors[0],
            Of::Places(places) => {
                let mut place = 0.0;
                for (&v, w) in corners.iter().zip(weights) {
                    place += places.get(v as usize).copied().unwrap_or(f32::NAN) * w;
                }
                if place.is_nan() {
                    return missing();
                }
                let last = self.colors.len() - 1;
                self.colors[((place * last as f32 + 0.5) as usize).min(last)]
            }
            Of::Kinds(kinds) => {
                let heaviest = corners.iter().zip(weights).max_by(|a, b| a.1.total_cmp(b.1));
                let kind = heaviest.and_then(|(&v, _)| self.colors.get(*kinds.get(v as usize)? as usize));
                kind.copied().unwrap_or_else(missing)
            }
        }
    }
}
