//! Integers: labels, counts, hashes. Beside reals in a program, or in their place.

use super::sealed::Sealed;
use num_traits::{One, Zero};
use std::fmt::Debug;
use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

/// An integer of 32 bits with a sign that wraps around, beside the reals of a program: its
/// [`Real::Int`](crate::Real::Int).
///
/// As [`Real`](crate::Real) it may be one integer, several side by side, or a symbol: comparisons give a mask that also
/// selects among reals. Every operation has one result, the same on CPUs and GPUs.
///
/// ```
/// use meshweft::{Int, Integer, Real};
/// /// Whether a cell of the game of life is alive next.
/// fn next<R: Real>(alive: R::Int, neighbors: R::Int) -> R::Int {
///     let [one, two, three] = [1, 2, 3].map(R::Int::lit);
///     let stays = alive.equals(one) & neighbors.equals(two);
///     R::Int::select(stays | neighbors.equals(three), one, R::Int::lit(0))
/// }
/// assert_eq!([0, 1, 2, 3, 4].map(|n| next::<f32>(Int(1), Int(n)).0), [0, 0, 1, 1, 0]);
/// ```
///
/// Constants are `R::Int::lit(1)`. Where the type is [`Int`] itself write `Int(1)`: as a [`Real`](crate::Real) it has a
/// `lit` too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer of a program",
    note = "the integers beside `R: Real` are `R::Int`; constants are `R::Int::lit(1)`"
)]
pub trait Integer:
    Sealed
    + Copy
    + Debug
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
{
    /// The result of a comparison.
    type Mask: Copy + BitAnd<Output = Self::Mask> + BitOr<Output = Self::Mask> + Not<Output = Self::Mask>;

    /// The constant `value`.
    fn lit(value: i32) -> Self;
    /// All bits moved up by `bits`; zeros follow.
    ///
    /// # Panics
    /// If `bits` is not below 32, as the other shifts.
    fn shift_left(self, bits: u32) -> Self;
    /// All bits moved down by `bits`; copies of the sign follow: the quotient by 2^`bits`, rounded down.
    fn shift_right(self, bits: u32) -> Self;
    /// All bits moved down by `bits`; zeros follow.
    fn shift_right_logical(self, bits: u32) -> Self;
    /// Whether `self < other`.
    fn less(self, other: Self) -> Self::Mask;
    /// Whether `self == other`.
    fn equals(self, other: Self) -> Self::Mask;
    /// `yes` where the mask holds, else `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Whether `self > other`.
    #[inline(always)]
    fn greater(self, other: Self) -> Self::Mask {
        other.less(self)
    }

    /// Whether `self <= other`.
    #[inline(always)]
    fn at_most(self, other: Self) -> Self::Mask {
        !other.less(self)
    }

    /// Whether `self >= other`.
    #[inline(always)]
    fn at_least(self, other: Self) -> Self::Mask {
        !self.less(other)
    }
}

/// An integer of 32 bits that wraps around: every operation has one result, the same on CPUs and GPUs.
///
/// It is the [`Real::Int`](crate::Real::Int) of plain numbers, and a number type of its own:
/// `Simulation::builder(mesh, program).precision::<Int>()` runs a program on integers. Constants, parameters, data and the
/// start are then rounded toward zero and kept in range. A quotient is rounded toward zero; what is divided by zero stays as
/// it is. [`Real::rem`] has the sign of the divisor; the remainder by zero is the number itself. [`Real::sqrt`] is the root
/// rounded down, of a negative number zero. [`Real::exp`], [`Real::ln`], [`Real::pow`] and the functions of angles are
/// computed in 64 bits, rounded toward zero and kept in range, zero for NaN; a GPU refuses kernels that use them.
///
/// [`Real::rem`]: crate::Real::rem
/// [`Real::sqrt`]: crate::Real::sqrt
/// [`Real::exp`]: crate::Real::exp
/// [`Real::ln`]: crate::Real::ln
/// [`Real::pow`]: crate::Real::pow
///
/// ```
/// use meshweft::{Int, Real};
/// let hash = |x: Int| x * Int::lit(31.0) + Int::lit(7.0);
/// assert_eq!(hash(hash(Int(i32::MAX))), Int(i32::MAX.wrapping_mul(31).wrapping_add(7).wrapping_mul(31).wrapping_add(7)));
/// assert_eq!((Int(7) / Int(-2), Int(7) / Int(0), Int(48).sqrt()), (Int(-3), Int(7), Int(6)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Int(pub i32);

macro_rules! operators {
    ($($trait:ident $method:ident $(, $assign:ident $assign_method:ident)?, |$a:ident, $b:ident| $value:expr;)*) => {$(
        impl $trait for Int {
            type Output = Int;
            #[inline(always)]
            fn $method(self, other: Int) -> Int {
                let ($a, $b) = (self.0, other.0);
                Int($value)
            }
        }
        $(
            impl $assign for Int {
                #[inline(always)]
                fn $assign_method(&mut self, other: Int) {
                    *self = self.$method(other);
                }
            }
        )?
    )*};
}
operators! {
    Add add, AddAssign add_assign, |a, b| a.wrapping_add(b);
    Sub sub, SubAssign sub_assign, |a, b| a.wrapping_sub(b);
    Mul mul, MulAssign mul_assign, |a, b| a.wrapping_mul(b);
    Div div, DivAssign div_assign, |a, b| if b == 0 { a } else { a.wrapping_div(b) };
    BitAnd bitand, |a, b| a & b;
    BitOr bitor, |a, b| a | b;
    BitXor bitxor, |a, b| a ^ b;
}

impl Neg for Int {
    type Output = Int;
    #[inline(always)]
    fn neg(self) -> Int {
        Int(self.0.wrapping_neg())
    }
}

impl Zero for Int {
    #[inline(always)]
    fn zero() -> Int {
        Int(0)
    }
    #[inline(always)]
    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl One for Int {
    #[inline(always)]
    fn one() -> Int {
        Int(1)
    }
}

impl Sealed for Int {}

impl Integer for Int {
    type Mask = bool;
    #[inline(always)]
    fn lit(value: i32) -> Int {
        Int(value)
    }
    #[inline(always)]
    fn shift_left(self, bits: u32) -> Int {
        assert!(bits < 32, "{TOO_FAR}");
        Int(self.0 << bits)
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Int {
        assert!(bits < 32, "{TOO_FAR}");
        Int(self.0 >> bits)
    }
    #[inline(always)]
    fn shift_right_logical(self, bits: u32) -> Int {
        assert!(bits < 32, "{TOO_FAR}");
        Int((self.0.cast_unsigned() >> bits).cast_signed())
    }
    #[inline(always)]
    fn less(self, other: Int) -> bool {
        self < other
    }
    #[inline(always)]
    fn equals(self, other: Int) -> bool {
        self == other
    }
    #[inline(always)]
    fn select(mask: bool, yes: Int, no: Int) -> Int {
        if mask { yes } else { no }
    }
}

/// What a shift by too many bits says.
pub(crate) const TOO_FAR: &str = "an integer of 32 bits is shifted by less than 32";
