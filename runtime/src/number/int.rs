//! Integers: labels, counts, hashes. Beside reals in a program, or in their place.

use super::lanes::{Lanes, TABLE, holds};
use super::real::{Number, Real};
use super::sealed::Sealed;
use num_traits::{One, Zero};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

/// An integer of 32 bits with a sign that wraps around, beside the reals of a program: its [`Real::Int`].
///
/// As [`Real`] it may be one integer, several side by side, or a symbol: comparisons give a mask that also selects among
/// reals. Every operation has one result, the same on CPUs and GPUs.
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
/// Constants are `R::Int::lit(1)`. Where the type is [`Int`] itself write `Int(1)`: as a [`Real`] it has a `lit` too.
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
/// It is the [`Real::Int`] of plain numbers, and a number type of its own:
/// `Simulation::builder(mesh, program).precision::<Int>()` runs a program on integers. Constants, parameters, data and the
/// start are then rounded toward zero and kept in range. A quotient is rounded toward zero; what is divided by zero stays as
/// it is. [`Real::rem`] has the sign of the divisor; the remainder by zero is the number itself. [`Real::sqrt`] is the root
/// rounded down, of a negative number zero. [`Real::exp`], [`Real::ln`], [`Real::pow`] and the functions of angles are
/// computed in 64 bits, rounded toward zero and kept in range, zero for NaN; a GPU refuses kernels that use them.
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

/// Integers side by side, with masks `M`: those of the reals that they stand beside, or their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ints<const N: usize, M = Truths<N>>([Int; N], PhantomData<M>);

/// A mask that is made and asked lane by lane.
pub trait Truth<const N: usize>:
    Copy + Debug + PartialEq + Send + Sync + 'static + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self>
{
    /// Lane `i` is `f(i)`.
    fn from_fn(f: impl Fn(usize) -> bool) -> Self;
    /// Lane `i`.
    fn lane(self, i: usize) -> bool;
}

/// One truth value a lane, as it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truths<const N: usize>([bool; N]);

impl<const N: usize> Truth<N> for Truths<N> {
    #[inline(always)]
    fn from_fn(f: impl Fn(usize) -> bool) -> Self {
        Truths(std::array::from_fn(f))
    }
    #[inline(always)]
    fn lane(self, i: usize) -> bool {
        self.0[i]
    }
}

impl<const N: usize> BitAnd for Truths<N> {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Truths(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
}

impl<const N: usize> BitOr for Truths<N> {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Truths(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

impl<const N: usize> Not for Truths<N> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Truths(self.0.map(Not::not))
    }
}

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
        impl<const N: usize, M> $trait for Ints<N, M> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Ints::of(std::array::from_fn(|i| self.0[i].$method(other.0[i])))
            }
        }
        $(
            impl $assign for Int {
                #[inline(always)]
                fn $assign_method(&mut self, other: Int) {
                    *self = self.$method(other);
                }
            }
            impl<const N: usize, M: Copy> $assign for Ints<N, M> {
                #[inline(always)]
                fn $assign_method(&mut self, other: Self) {
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

/// What is computed in 64 bits.
macro_rules! in_64_bits {
    ($($function:ident $libm:path),*) => {
        $(fn $function(self) -> Int {
            <Int as Real>::lit($libm(self.to_f64()))
        })*
        fn pow(self, exponent: Int) -> Int {
            <Int as Real>::lit(libm::pow(self.to_f64(), exponent.to_f64()))
        }
        fn atan2(self, x: Int) -> Int {
            <Int as Real>::lit(libm::atan2(self.to_f64(), x.to_f64()))
        }
    };
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

impl Real for Int {
    type Mask = bool;
    type Int = Int;
    #[inline(always)]
    fn lit(value: f64) -> Int {
        // Rounds toward zero and stays in range; NaN is zero.
        Int(value as i32)
    }
    fn sqrt(self) -> Int {
        Int(self.0.max(0).isqrt())
    }
    #[inline(always)]
    fn abs(self) -> Int {
        Int(self.0.wrapping_abs())
    }
    #[inline(always)]
    fn floor(self) -> Int {
        self
    }
    in_64_bits!(exp libm::exp, ln libm::log, sin libm::sin, cos libm::cos, acos libm::acos, tanh libm::tanh);
    #[inline(always)]
    fn rem(self, other: Int) -> Int {
        if other.0 == 0 {
            return self;
        }
        let rest = self.0.wrapping_rem(other.0);
        Int(if rest != 0 && (rest < 0) != (other.0 < 0) { rest + other.0 } else { rest })
    }
    #[inline(always)]
    fn less(self, other: Int) -> bool {
        self < other
    }
    #[inline(always)]
    fn at_most(self, other: Int) -> bool {
        self <= other
    }
    #[inline(always)]
    fn equals(self, other: Int) -> bool {
        self == other
    }
    #[inline(always)]
    fn select(mask: bool, yes: Int, no: Int) -> Int {
        if mask { yes } else { no }
    }
    #[inline(always)]
    fn from_int(integer: Int) -> Int {
        integer
    }
    #[inline(always)]
    fn to_int(self) -> Int {
        self
    }
    #[inline(always)]
    fn hold_int(integer: Int) -> Int {
        integer
    }
    #[inline(always)]
    fn held_int(self) -> Int {
        self
    }
}

impl Number for Int {
    type Half = Ints<8>;
    type Full = Ints<16>;
    const NAME: &'static str = "i32";
    const BYTES: usize = 4;
    #[inline(always)]
    fn from_f64(value: f64) -> Int {
        <Int as Real>::lit(value)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.0.into()
    }
    fn canonical_bits(self) -> u64 {
        u64::from(self.0.cast_unsigned())
    }
    #[inline(always)]
    fn finite(self) -> bool {
        true
    }
}

impl<const N: usize, M> Ints<N, M> {
    #[inline(always)]
    pub(super) fn of(integers: [Int; N]) -> Self {
        Ints(integers, PhantomData)
    }
    #[inline(always)]
    pub(super) fn into_array(self) -> [Int; N] {
        self.0
    }
    #[inline(always)]
    fn each(self, f: impl Fn(Int) -> Int) -> Self {
        Ints::of(self.0.map(f))
    }
}

impl<const N: usize, M: Truth<N>> Ints<N, M> {
    #[inline(always)]
    fn compare(self, other: Self, f: impl Fn(Int, Int) -> bool) -> M {
        M::from_fn(|i| f(self.0[i], other.0[i]))
    }
    #[inline(always)]
    fn choose(mask: M, yes: Self, no: Self) -> Self {
        Ints::of(std::array::from_fn(|i| if mask.lane(i) { yes.0[i] } else { no.0[i] }))
    }
}

impl<const N: usize, M> Neg for Ints<N, M> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.each(Int::neg)
    }
}

impl<const N: usize> Zero for Ints<N> {
    #[inline(always)]
    fn zero() -> Self {
        Ints::of([Int(0); N])
    }
    #[inline(always)]
    fn is_zero(&self) -> bool {
        self.0.iter().all(Int::is_zero)
    }
}

impl<const N: usize> One for Ints<N> {
    #[inline(always)]
    fn one() -> Self {
        Ints::of([Int(1); N])
    }
}

impl<const N: usize, M> Sealed for Ints<N, M> {}

impl<const N: usize, M: Truth<N>> Integer for Ints<N, M> {
    type Mask = M;
    #[inline(always)]
    fn lit(value: i32) -> Self {
        Ints::of([Int(value); N])
    }
    #[inline(always)]
    fn shift_left(self, bits: u32) -> Self {
        self.each(|x| x.shift_left(bits))
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Self {
        self.each(|x| x.shift_right(bits))
    }
    #[inline(always)]
    fn shift_right_logical(self, bits: u32) -> Self {
        self.each(|x| x.shift_right_logical(bits))
    }
    #[inline(always)]
    fn less(self, other: Self) -> M {
        self.compare(other, |a, b| a < b)
    }
    #[inline(always)]
    fn equals(self, other: Self) -> M {
        self.compare(other, |a, b| a == b)
    }
    #[inline(always)]
    fn select(mask: M, yes: Self, no: Self) -> Self {
        Self::choose(mask, yes, no)
    }
}

/// Functions of each lane by itself.
macro_rules! lane_by_lane {
    ($($function:ident)*, $($binary:ident)*) => {
        $(fn $function(self) -> Self {
            self.each(Real::$function)
        })*
        $(fn $binary(self, other: Self) -> Self {
            Ints::of(std::array::from_fn(|i| Real::$binary(self.0[i], other.0[i])))
        })*
    };
}

impl<const N: usize> Real for Ints<N> {
    type Mask = Truths<N>;
    type Int = Self;
    #[inline(always)]
    fn lit(value: f64) -> Self {
        Ints::of([<Int as Real>::lit(value); N])
    }
    lane_by_lane!(sqrt abs floor exp ln sin cos acos tanh, pow atan2 rem);
    #[inline(always)]
    fn less(self, other: Self) -> Truths<N> {
        self.compare(other, |a, b| a < b)
    }
    #[inline(always)]
    fn at_most(self, other: Self) -> Truths<N> {
        self.compare(other, |a, b| a <= b)
    }
    #[inline(always)]
    fn equals(self, other: Self) -> Truths<N> {
        self.compare(other, |a, b| a == b)
    }
    #[inline(always)]
    fn select(mask: Truths<N>, yes: Self, no: Self) -> Self {
        Self::choose(mask, yes, no)
    }
    #[inline(always)]
    fn from_int(integer: Self) -> Self {
        integer
    }
    #[inline(always)]
    fn to_int(self) -> Self {
        self
    }
    #[inline(always)]
    fn hold_int(integer: Self) -> Self {
        integer
    }
    #[inline(always)]
    fn held_int(self) -> Self {
        self
    }
}

impl<const N: usize> Lanes for Ints<N> {
    type Scalar = Int;
    const WIDTH: usize = N;
    #[inline(always)]
    fn load(from: &[Int]) -> Self {
        Ints::of(from[..N].try_into().expect("as many numbers as lanes"))
    }
    #[inline(always)]
    fn store(self, to: &mut [Int]) {
        to[..N].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn from_fn(f: impl FnMut(usize) -> Int) -> Self {
        Ints::of(std::array::from_fn(f))
    }
    #[inline(always)]
    fn pick(table: &[Int], ids: &[u16], scale: usize, offset: usize) -> Self {
        assert!(holds(table, TABLE, scale, offset), "a row for every index");
        let ids = &ids[..N];
        Ints::of(std::array::from_fn(|i| table[ids[i] as usize * scale + offset]))
    }
    #[inline(always)]
    fn pick_quads(table: &[Int], ids: &[u16], scale: usize, offset: usize) -> [Self; 4] {
        assert!(holds(table, 4 * TABLE, scale, offset), "a row for every index");
        let ids = &ids[..N];
        std::array::from_fn(|k| Ints::of(std::array::from_fn(|i| table[4 * (ids[i] as usize * scale + offset) + k])))
    }
    #[inline(always)]
    fn load_quads(rows: &[Int], scale: usize, offset: usize) -> [Self; 4] {
        assert!(holds(rows, 4 * N, scale, offset), "a row for every lane");
        std::array::from_fn(|k| Ints::of(std::array::from_fn(|i| rows[4 * (scale * i + offset) + k])))
    }
    #[inline(always)]
    fn store_quads(quads: [Self; 4], rows: &mut [Int], scale: usize, offset: usize) {
        assert!(holds(rows, 4 * N, scale, offset), "a row for every lane");
        for i in 0..N {
            for (k, quad) in quads.iter().enumerate() {
                rows[4 * (scale * i + offset) + k] = quad.0[i];
            }
        }
    }
}
