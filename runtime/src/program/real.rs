//! The number type a program is written over.

use super::lanes::{F32x8, F32x16, F64x4, F64x8, Lanes};
use nalgebra::{ClosedAddAssign, ClosedDivAssign, ClosedMulAssign, ClosedSubAssign, SVector};
use num_traits::{One, Zero};
use std::ops::{BitAnd, BitOr, Neg, Not};

/// A number, a register of independent numbers, or a symbol: what an update computes with.
///
/// An update that is generic over `Real` runs unchanged as the scalar oracle (`f32`, `f64`), on SIMD lanes, and as a
/// recording from which a shader is written. So it has no `if` on values: it computes both sides and [`Real::select`]s.
/// Every function has one defined result: `+ - * /` and `sqrt` are rounded as IEEE 754 says, and the transcendental
/// ones come from `libm`, so no platform's library changes a bit. There is no fused multiply-add.
///
/// ```
/// use meshweft::Real;
/// fn clamp_below<R: Real>(x: R, low: R) -> R {
///     R::select(x.less(low), low, x)
/// }
/// assert_eq!(clamp_below(-1.0_f32, 0.0), 0.0);
/// assert_eq!(clamp_below(2.0_f64, 0.0), 2.0);
/// ```
pub trait Real:
    nalgebra::Scalar
    + Copy
    + Send
    + Sync
    + Zero
    + One
    + ClosedAddAssign
    + ClosedSubAssign
    + ClosedMulAssign
    + ClosedDivAssign
    + Neg<Output = Self>
{
    /// The result of a comparison.
    type Mask: Copy + BitAnd<Output = Self::Mask> + BitOr<Output = Self::Mask> + Not<Output = Self::Mask>;

    /// The constant `value`, rounded to this precision.
    fn lit(value: f64) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// e to the power of `self`.
    fn exp(self) -> Self;
    /// Sine of an angle in radians.
    fn sin(self) -> Self;
    /// Cosine of an angle in radians.
    fn cos(self) -> Self;
    /// Whether `self < other`; false if either is no number.
    fn less(self, other: Self) -> Self::Mask;
    /// `yes` where the mask holds, else `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// The smaller of both; `self` where they compare equal or one is no number.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(other.less(self), other, self)
    }

    /// The larger of both; `self` where they compare equal or one is no number.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(self.less(other), other, self)
    }
}

/// A plain number: what state is stored as.
pub trait Number: Real<Mask = bool> + PartialOrd + bytemuck::Pod {
    /// As many of them as 256 bits hold.
    type Half: Lanes<Scalar = Self>;
    /// As many of them as 512 bits hold.
    type Full: Lanes<Scalar = Self>;
    /// The word for the precision: `f32`, `f64` or `i32`.
    const NAME: &'static str;
    /// Bytes of one number.
    const BYTES: usize;

    /// Rounds to this precision.
    fn from_f64(value: f64) -> Self;
    /// The exact value.
    fn to_f64(self) -> f64;
    /// The bits, with one pattern for both zeros and one for everything that is no number.
    fn canonical_bits(self) -> u64;
    /// Whether this is neither infinite nor no number.
    fn finite(self) -> bool;
}

macro_rules! float {
    ($float:ident, $half:ident, $full:ident, $sqrt:path, $exp:path, $sin:path, $cos:path) => {
        impl Real for $float {
            type Mask = bool;
            #[inline(always)]
            fn lit(value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $sqrt(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $float::abs(self)
            }
            #[inline]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline]
            fn sin(self) -> Self {
                $sin(self)
            }
            #[inline]
            fn cos(self) -> Self {
                $cos(self)
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn select(mask: bool, yes: Self, no: Self) -> Self {
                if mask { yes } else { no }
            }
        }

        impl Number for $float {
            type Half = $half;
            type Full = $full;
            const NAME: &'static str = stringify!($float);
            const BYTES: usize = size_of::<$float>();
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn canonical_bits(self) -> u64 {
                if self.is_nan() { $float::NAN.to_bits().into() } else { (self + 0.0).to_bits().into() }
            }
            #[inline(always)]
            fn finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}
float!(f32, F32x8, F32x16, f32::sqrt, libm::expf, libm::sinf, libm::cosf);
float!(f64, F64x4, F64x8, f64::sqrt, libm::exp, libm::sin, libm::cos);

/// Lengths of static vectors over any [`Real`]; `nalgebra`'s own need a number that can be compared and ordered.
pub trait Length<R> {
    /// The Euclidean length.
    fn length(&self) -> R;
}

impl<R: Real, const N: usize> Length<R> for SVector<R, N> {
    #[inline(always)]
    fn length(&self) -> R {
        self.dot(self).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_have_one_bit_pattern_and_so_do_non_numbers() {
        assert_eq!((-0.0f32).canonical_bits(), 0.0f32.canonical_bits());
        assert_eq!((-f64::NAN).canonical_bits(), f64::NAN.canonical_bits());
        assert_ne!(1.0f64.canonical_bits(), 2.0f64.canonical_bits());
    }

    #[test]
    fn min_and_max_keep_self_on_ties() {
        assert!(Real::max(-0.0f32, 0.0).is_sign_negative());
        assert!(Real::min(0.0f32, -0.0).is_sign_positive());
        assert_eq!(Real::max(1.0f64, f64::NAN), 1.0);
    }
}
