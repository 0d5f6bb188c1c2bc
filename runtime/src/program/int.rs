//! Whole numbers as a number type: labels, counts, hashes.

use super::lanes::{Lanes, TABLE};
use super::real::{Number, Real};
use num_traits::{One, Zero};
use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

/// A whole number of 32 bits that wraps around: every operation has one result, the same on CPUs and GPUs.
///
/// `Simulation::builder(mesh, program).precision::<Int>()` runs a program on whole numbers. Constants, parameters, data and
/// the start are rounded toward zero and kept in range. A quotient is rounded toward zero; what is divided by zero stays as it is.
/// [`Real::sqrt`] is the root rounded down, of a negative number zero. [`Real::exp`], [`Real::sin`] and [`Real::cos`] are
/// rounded toward zero; a GPU refuses kernels that use them.
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

/// Whole numbers side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ints<const N: usize>([Int; N]);

/// A truth value for each of them.
#[derive(Clone, Copy, Debug)]
pub struct Truths<const N: usize>([bool; N]);

macro_rules! operators {
    ($($trait:ident $method:ident, $assign:ident $assign_method:ident, |$a:ident, $b:ident| $value:expr;)*) => {$(
        impl $trait for Int {
            type Output = Int;
            #[inline(always)]
            fn $method(self, other: Int) -> Int {
                let ($a, $b) = (self.0, other.0);
                Int($value)
            }
        }
        impl $assign for Int {
            #[inline(always)]
            fn $assign_method(&mut self, other: Int) {
                *self = self.$method(other);
            }
        }
        impl<const N: usize> $trait for Ints<N> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Ints(std::array::from_fn(|i| self.0[i].$method(other.0[i])))
            }
        }
        impl<const N: usize> $assign for Ints<N> {
            #[inline(always)]
            fn $assign_method(&mut self, other: Self) {
                *self = self.$method(other);
            }
        }
    )*};
}
operators! {
    Add add, AddAssign add_assign, |a, b| a.wrapping_add(b);
    Sub sub, SubAssign sub_assign, |a, b| a.wrapping_sub(b);
    Mul mul, MulAssign mul_assign, |a, b| a.wrapping_mul(b);
    Div div, DivAssign div_assign, |a, b| if b == 0 { a } else { a.wrapping_div(b) };
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

impl Real for Int {
    type Mask = bool;
    #[inline(always)]
    fn lit(value: f64) -> Int {
        // Rounds toward zero and stays in range; what is no number is zero.
        Int(value as i32)
    }
    fn sqrt(self) -> Int {
        Int(self.0.max(0).isqrt())
    }
    #[inline(always)]
    fn abs(self) -> Int {
        Int(self.0.wrapping_abs())
    }
    fn exp(self) -> Int {
        Int::lit(libm::exp(self.to_f64()))
    }
    fn sin(self) -> Int {
        Int::lit(libm::sin(self.to_f64()))
    }
    fn cos(self) -> Int {
        Int::lit(libm::cos(self.to_f64()))
    }
    #[inline(always)]
    fn less(self, other: Int) -> bool {
        self < other
    }
    #[inline(always)]
    fn select(mask: bool, yes: Int, no: Int) -> Int {
        if mask { yes } else { no }
    }
}

impl Number for Int {
    type Half = Ints<8>;
    type Full = Ints<16>;
    const NAME: &'static str = "i32";
    const BYTES: usize = 4;
    #[inline(always)]
    fn from_f64(value: f64) -> Int {
        Int::lit(value)
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

impl<const N: usize> Ints<N> {
    #[inline(always)]
    fn each(self, f: impl Fn(Int) -> Int) -> Self {
        Ints(self.0.map(f))
    }
}

impl<const N: usize> Neg for Ints<N> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.each(Int::neg)
    }
}

impl<const N: usize> Zero for Ints<N> {
    #[inline(always)]
    fn zero() -> Self {
        Ints([Int(0); N])
    }
    #[inline(always)]
    fn is_zero(&self) -> bool {
        self.0.iter().all(Int::is_zero)
    }
}

impl<const N: usize> One for Ints<N> {
    #[inline(always)]
    fn one() -> Self {
        Ints([Int(1); N])
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

impl<const N: usize> Real for Ints<N> {
    type Mask = Truths<N>;
    #[inline(always)]
    fn lit(value: f64) -> Self {
        Ints([Int::lit(value); N])
    }
    fn sqrt(self) -> Self {
        self.each(Real::sqrt)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.each(Real::abs)
    }
    fn exp(self) -> Self {
        self.each(Real::exp)
    }
    fn sin(self) -> Self {
        self.each(Real::sin)
    }
    fn cos(self) -> Self {
        self.each(Real::cos)
    }
    #[inline(always)]
    fn less(self, other: Self) -> Truths<N> {
        Truths(std::array::from_fn(|i| self.0[i] < other.0[i]))
    }
    #[inline(always)]
    fn select(mask: Truths<N>, yes: Self, no: Self) -> Self {
        Ints(std::array::from_fn(|i| if mask.0[i] { yes.0[i] } else { no.0[i] }))
    }
}

impl<const N: usize> Lanes for Ints<N> {
    type Scalar = Int;
    const WIDTH: usize = N;
    #[inline(always)]
    fn load(from: &[Int]) -> Self {
        Ints(from[..N].try_into().expect("as many numbers as lanes"))
    }
    #[inline(always)]
    fn store(self, to: &mut [Int]) {
        to[..N].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn from_fn(f: impl FnMut(usize) -> Int) -> Self {
        Ints(std::array::from_fn(f))
    }
    #[inline(always)]
    fn pick(table: &[Int], ids: &[u16], scale: usize, offset: usize) -> Self {
        assert!(offset < scale && table.len() >= TABLE * scale, "a row for every index");
        let ids = &ids[..N];
        Ints(std::array::from_fn(|i| table[ids[i] as usize * scale + offset]))
    }
    #[inline(always)]
    fn pick_quads(table: &[Int], ids: &[u16], scale: usize, offset: usize) -> [Self; 4] {
        assert!(offset < scale && table.len() >= 4 * TABLE * scale, "a row for every index");
        let ids = &ids[..N];
        std::array::from_fn(|k| Ints(std::array::from_fn(|i| table[4 * (ids[i] as usize * scale + offset) + k])))
    }
    #[inline(always)]
    fn load_quads(rows: &[Int], scale: usize, offset: usize) -> [Self; 4] {
        assert!(offset < scale && rows.len() >= 4 * scale * N, "a row for every lane");
        std::array::from_fn(|k| Ints(std::array::from_fn(|i| rows[4 * (scale * i + offset) + k])))
    }
    #[inline(always)]
    fn store_quads(quads: [Self; 4], rows: &mut [Int], scale: usize, offset: usize) {
        assert!(offset < scale && rows.len() >= 4 * scale * N, "a row for every lane");
        for i in 0..N {
            for (k, quad) in quads.iter().enumerate() {
                rows[4 * (scale * i + offset) + k] = quad.0[i];
            }
        }
    }
}
