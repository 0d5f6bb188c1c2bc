//! The number type a program is written over.

use super::int::{Int, Integer};
use super::lanes::{F32x8, F32x16, F64x4, F64x8, Lanes};
use super::sealed::Sealed;
use crate::program::Record;
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
///
/// A number type that may be eight numbers or a symbol takes some other words than a float does:
///
/// | instead of | write |
/// |---|---|
/// | `2.0 * x`, `1.0 - x` | `R::lit(2.0) * x`, `R::lit(1.0) - x` |
/// | `if a < b { x } else { y }` | `R::select(a.less(b), x, y)` |
/// | `a == b`, `a.is_zero()` | [`a.equals(b)`](Real::equals), `a.equals(R::lit(0.0))`: a [`Real::Mask`] |
/// | <code>p &#124;&#124; q</code>, `p && q`, `!p` of comparisons | <code>p &#124; q</code>, `p & q`, `!p` of masks |
/// | `x.max(0.0)` | `x.max(R::lit(0.0))` |
/// | `x % y` | [`x.rem(y)`](Real::rem), which is never negative where `y` is positive |
/// | `v.norm()`, `v.normalize()` | [`v.length()`](Length::length), [`v.unit()`](Length::unit) |
/// | `n as f32`, `x as i32` | [`R::from_int(n)`](Real::from_int), [`x.to_int()`](Real::to_int) |
///
/// `==` and `is_zero()` do compile, since `nalgebra` needs them, but on lanes they would ask all lanes at once. A program
/// that uses them on values is refused when it is traced.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number that a program computes with",
    label = "needs `R: Real`",
    note = "write kernels and records over `R: Real`; constants are `R::lit(1.0)`, integers are `R::Int`"
)]
pub trait Real:
    Sealed
    + nalgebra::Scalar
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

    /// The integer beside this real: a label, a count, a random number.
    type Int: Integer<Mask = Self::Mask> + Record<Self>;

    /// The constant `value`, rounded to this precision.
    fn lit(value: f64) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// The largest integer that is not above `self`.
    fn floor(self) -> Self;
    /// e to the power of `self`.
    fn exp(self) -> Self;
    /// The natural logarithm: minus infinity of zero, NaN of a negative number.
    fn ln(self) -> Self;
    /// `self` to the power of `exponent`, as C's `pow`. Where the exponent is a constant integer, [`Real::powi`] is faster.
    fn pow(self, exponent: Self) -> Self;
    /// Sine of an angle in radians.
    fn sin(self) -> Self;
    /// Cosine of an angle in radians.
    fn cos(self) -> Self;
    /// The angle in radians whose cosine is `self`, from 0 to π; NaN beyond -1 and 1.
    fn acos(self) -> Self;
    /// The angle in radians from the positive x axis to the point (`x`, `self`), from -π to π.
    fn atan2(self, x: Self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The remainder `self - other * floor(self / other)`, each operation rounded: it has the sign of `other`.
    ///
    /// ```
    /// use meshweft::{Int, Real};
    /// assert_eq!((Real::rem(-1.0, 3.0), Real::rem(Int(-1), Int(3))), (2.0, Int(2)));
    /// ```
    #[inline(always)]
    fn rem(self, other: Self) -> Self {
        self - other * (self / other).floor()
    }
    /// Whether `self < other`; false if either is NaN.
    fn less(self, other: Self) -> Self::Mask;
    /// Whether `self <= other`; false if either is NaN.
    fn at_most(self, other: Self) -> Self::Mask;
    /// Whether `self == other`; false if either is NaN. Both zeros are equal.
    fn equals(self, other: Self) -> Self::Mask;
    /// `yes` where the mask holds, else `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// The nearest real: exact up to 2^24 in 32 bits. Beyond that a GPU may take the other neighbor.
    ///
    /// ```
    /// use meshweft::{Int, Integer, Real};
    /// fn half<R: Real>(count: R::Int) -> R {
    ///     R::from_int(count + R::Int::lit(1)) * R::lit(0.5)
    /// }
    /// assert_eq!(half::<f32>(Int(4)), 2.5);
    /// ```
    fn from_int(integer: Self::Int) -> Self;
    /// The integer nearest to it towards zero, kept in range; zero of NaN.
    ///
    /// ```
    /// use meshweft::{Int, Real};
    /// assert_eq!([-1.9, 3e9, f64::NAN].map(Real::to_int), [Int(-1), Int(i32::MAX), Int(0)]);
    /// ```
    fn to_int(self) -> Self::Int;

    /// An integer in the slot of a real, as state stores it: its bits in 32 bits, its value in 64.
    #[doc(hidden)]
    fn hold_int(integer: Self::Int) -> Self;
    /// The integer that [`Real::hold_int`] put there.
    #[doc(hidden)]
    fn held_int(self) -> Self::Int;

    /// Whether `self > other`; false if either is NaN.
    #[inline(always)]
    fn greater(self, other: Self) -> Self::Mask {
        other.less(self)
    }

    /// Whether `self >= other`; false if either is NaN.
    #[inline(always)]
    fn at_least(self, other: Self) -> Self::Mask {
        other.at_most(self)
    }

    /// The smaller of both; `self` where they compare equal or one is NaN.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(other.less(self), other, self)
    }

    /// The larger of both; `self` where they compare equal or one is NaN.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(self.less(other), other, self)
    }

    /// 1 of a positive number, -1 of a negative one; zeros and NaN stay what they are.
    #[inline(always)]
    fn sign(self) -> Self {
        let zero = Self::lit(0.0);
        Self::select(zero.less(self), Self::lit(1.0), Self::select(self.less(zero), Self::lit(-1.0), self))
    }

    /// `self` to the power of a constant integer, by multiplications alone.
    ///
    /// The factors are the squares `self`, `self²`, `self⁴` ... of the bits of the exponent, multiplied from the lowest
    /// bit up; a negative exponent takes the reciprocal of the product. So the bits are the same everywhere.
    ///
    /// ```
    /// use meshweft::Real;
    /// assert_eq!((Real::powi(3.0_f32, 5), Real::powi(2.0_f64, -2), Real::powi(0.0_f64, 0)), (243.0, 0.25, 1.0));
    /// ```
    #[inline(always)]
    fn powi(self, exponent: i32) -> Self {
        let (mut bits, mut square, mut power) = (exponent.unsigned_abs(), self, Self::lit(1.0));
        while bits > 0 {
            if bits & 1 == 1 {
                power *= square;
            }
            bits >>= 1;
            if bits > 0 {
                square = square * square;
            }
        }
        if exponent < 0 { Self::lit(1.0) / power } else { power }
    }
}

/// A plain number: what state is stored as.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number that state is stored as",
    note = "the precisions are `f32`, `f64` and `meshweft::Int`"
)]
pub trait Number: Real<Mask = bool, Int = Int> + PartialOrd + bytemuck::Pod {
    /// As many of them as 256 bits hold.
    #[doc(hidden)]
    type Half: Lanes<Scalar = Self>;
    /// As many of them as 512 bits hold.
    #[doc(hidden)]
    type Full: Lanes<Scalar = Self>;
    /// The word for the precision: `f32`, `f64` or `i32`.
    const NAME: &'static str;
    /// Bytes of one number.
    const BYTES: usize;

    /// Rounds to this precision.
    fn from_f64(value: f64) -> Self;
    /// The exact value.
    fn to_f64(self) -> f64;
    /// The bits, with one pattern for both zeros and one for every NaN.
    #[doc(hidden)]
    fn canonical_bits(self) -> u64;
    /// Whether this is neither infinite nor NaN.
    fn finite(self) -> bool;
}

macro_rules! float {
    ($float:ident, $half:ident, $full:ident, |$int:ident| $hold:expr, |$slot:ident| $held:expr, {$($function:ident $libm:path),*}, $pow:path, $atan2:path) => {
        impl Sealed for $float {}

        impl Real for $float {
            type Mask = bool;
            type Int = Int;
            #[inline(always)]
            fn lit(value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $float::sqrt(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $float::abs(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $float::floor(self)
            }
            $(
                #[inline]
                fn $function(self) -> Self {
                    $libm(self)
                }
            )*
            #[inline]
            fn pow(self, exponent: Self) -> Self {
                $pow(self, exponent)
            }
            #[inline]
            fn atan2(self, x: Self) -> Self {
                $atan2(self, x)
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn at_most(self, other: Self) -> bool {
                self <= other
            }
            #[inline(always)]
            fn equals(self, other: Self) -> bool {
                self == other
            }
            #[inline(always)]
            fn select(mask: bool, yes: Self, no: Self) -> Self {
                if mask { yes } else { no }
            }
            #[inline(always)]
            fn from_int(integer: Int) -> Self {
                integer.0 as $float
            }
            #[inline(always)]
            fn to_int(self) -> Int {
                // Rounds toward zero, stays in range, and takes NaN to zero.
                Int(self as i32)
            }
            #[inline(always)]
            fn hold_int($int: Int) -> Self {
                $hold
            }
            #[inline(always)]
            fn held_int(self) -> Int {
                let $slot = self;
                $held
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
float!(
    f32, F32x8, F32x16,
    |integer| f32::from_bits(integer.0.cast_unsigned()),
    |slot| Int(slot.to_bits().cast_signed()),
    { exp libm::expf, ln libm::logf, sin libm::sinf, cos libm::cosf, acos libm::acosf, tanh libm::tanhf },
    libm::powf, libm::atan2f
);
float!(
    f64, F64x4, F64x8,
    |integer| integer.0.into(),
    |slot| Int(slot as i32),
    { exp libm::exp, ln libm::log, sin libm::sin, cos libm::cos, acos libm::acos, tanh libm::tanh },
    libm::pow, libm::atan2
);

/// Lengths of static vectors over any [`Real`]; `nalgebra`'s own need a number that can be compared and ordered.
///
/// ```
/// use meshweft::{Length, nalgebra::Vector2};
/// let v = Vector2::new(3.0_f32, 4.0);
/// assert_eq!((v.length(), v.unit().y), (5.0, 0.8));
/// ```
pub trait Length<R> {
    /// The Euclidean length.
    fn length(&self) -> R;
    /// The vector over its length: NaN of the zero vector.
    fn unit(&self) -> Self;
}

impl<R: Real, const N: usize> Length<R> for SVector<R, N> {
    #[inline(always)]
    fn length(&self) -> R {
        self.dot(self).sqrt()
    }
    #[inline(always)]
    fn unit(&self) -> Self {
        *self / self.length()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_have_one_bit_pattern_and_so_does_nan() {
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
