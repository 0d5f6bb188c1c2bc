//! The number type a program is written over, and the records that are made of it: each is defined by the other, since an
//! integer beside a real is stored in the slot of one.

use super::int::Integer;
use super::sealed::Sealed;
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

/// A plain value of [`Record::LEN`] leaves, reals or integers: `R` or [`R::Int`](Real::Int), a static vector or matrix of
/// reals, an array or a tuple of records, or a struct made by [`record!`](crate::record).
///
/// An integer is stored in the slot of a real: by its bits in 32 bits, by its value in 64. [`Record::kind`] tells which
/// leaves are integers.
///
/// ```
/// use meshweft::{Record, record};
/// use nalgebra::Vector3;
/// record! {
///     /// A point mass.
///     pub struct Body<R> { position: Vector3<R>, mass: R, label: R::Int }
/// }
/// let body = Body::<f64>::build(|k| k as f64);
/// assert_eq!((<Body<f64> as Record<f64>>::LEN, body.position.z, body.mass, body.label.0), (5, 2.0, 3.0, 4));
/// assert_eq!(<Body<f64> as Record<f64>>::parts("")[0].name, "position");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a record of reals `{R}`",
    note = "a record is `R`, `R::Int`, a static nalgebra vector or matrix of `R`, an array or tuple of records, or a struct \
            made by `record!`"
)]
pub trait Record<R: Real>: Copy + Send + Sync {
    /// Number of leaves.
    const LEN: usize;

    /// Puts a record together; `leaf(k)` gives leaf `k`, asked in ascending order.
    fn build(leaf: impl FnMut(usize) -> R) -> Self;

    /// Takes a record apart; `leaf(k, x)` receives leaf `k`, in ascending order.
    fn each(&self, leaf: impl FnMut(usize, R));

    /// Combines two records leaf by leaf. Leaves may be integers: `f` chooses one of both, it does not compute.
    fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self;

    /// Names the parts, in the order of the leaves; `name` is that of the whole, empty at the top.
    fn parts(name: &str) -> Vec<Part>;

    /// What leaf `k` is.
    fn kind(k: usize) -> Kind;

    /// Zero if all reals are finite, else NaN. Integers do not count: their bits may look like those of NaN.
    #[inline(always)]
    fn probe(&self) -> R {
        let (mut sum, zero) = (R::lit(0.0), R::lit(0.0));
        self.each(|k, x| {
            if Self::kind(k) == Kind::Real {
                sum += x * zero;
            }
        });
        sum
    }
}

/// What a leaf of a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A real.
    Real,
    /// An integer in the slot of a real.
    Integer,
}

/// One named part of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name, such as `position`.
    pub name: String,
    /// Leaves it consists of: 1 a scalar, 3 a vector, 9 a 3×3 matrix (column after column).
    pub components: usize,
    /// What they are.
    pub kind: Kind,
}

impl Part {
    /// The part that so many leaves of one kind are. A vector of no reals is none.
    pub(crate) fn new(name: &str, components: usize, kind: Kind) -> Vec<Part> {
        let name = if name.is_empty() { "value" } else { name };
        if components == 0 { Vec::new() } else { vec![Part { name: name.into(), components, kind }] }
    }
}

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
