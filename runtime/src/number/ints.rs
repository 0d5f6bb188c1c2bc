//! Integers side by side: plain arrays, since their operations have no vector form here.

use super::array::array;
use super::int::{Int, Integer};
use super::precision::{Lanes, TABLE, holds};
use super::real::Real;
use super::sealed::Sealed;
use num_traits::{One, Zero};
use std::cell::Cell;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

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
        Truths(array(false, f))
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
        Truths(array(false, |i| self.0[i] & other.0[i]))
    }
}

impl<const N: usize> BitOr for Truths<N> {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Truths(array(false, |i| self.0[i] | other.0[i]))
    }
}

impl<const N: usize> Not for Truths<N> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Truths(array(false, |i| !self.0[i]))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $(, $assign:ident $assign_method:ident)?;)*) => {$(
        impl<const N: usize, M> $trait for Ints<N, M> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Ints::by_lane(|i| self.0[i].$method(other.0[i]))
            }
        }
        $(
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
    Add add, AddAssign add_assign;
    Sub sub, SubAssign sub_assign;
    Mul mul, MulAssign mul_assign;
    Div div, DivAssign div_assign;
    BitAnd bitand;
    BitOr bitor;
    BitXor bitxor;
}

impl<const N: usize, M> Ints<N, M> {
    #[inline(always)]
    pub(super) fn by_lane(f: impl FnMut(usize) -> Int) -> Self {
        Ints::of(array(Int(0), f))
    }
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
        Ints::by_lane(|i| f(self.0[i]))
    }
}

impl<const N: usize, M: Truth<N>> Ints<N, M> {
    #[inline(always)]
    fn compare(self, other: Self, f: impl Fn(Int, Int) -> bool) -> M {
        M::from_fn(|i| f(self.0[i], other.0[i]))
    }
    #[inline(always)]
    fn choose(mask: M, yes: Self, no: Self) -> Self {
        Ints::by_lane(|i| if mask.lane(i) { yes.0[i] } else { no.0[i] })
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
            Ints::by_lane(|i| Real::$binary(self.0[i], other.0[i]))
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
        *to.first_chunk_mut().expect("room for as many numbers as lanes") = self.0;
    }
    #[inline(always)]
    fn from_fn(f: impl FnMut(usize) -> Int) -> Self {
        Self::by_lane(f)
    }
    #[inline(always)]
    fn pick(table: &[Int], ids: &[u16], scale: usize, offset: usize) -> Self {
        assert!(holds(table, TABLE, scale, offset), "a row for every index");
        let ids = &ids[..N];
        Self::from_fn(|i| table[ids[i] as usize * scale + offset])
    }
    #[inline(always)]
    fn pick_quads(table: &[Int], ids: &[u16], scale: usize, offset: usize) -> [Self; 4] {
        assert!(holds(table, 4 * TABLE, scale, offset), "a row for every index");
        let ids = &ids[..N];
        let column = |k| Self::from_fn(|i| table[4 * (ids[i] as usize * scale + offset) + k]);
        [column(0), column(1), column(2), column(3)]
    }
    #[inline(always)]
    fn load_quads(rows: &[Int], scale: usize, offset: usize) -> [Self; 4] {
        assert!(holds(rows, 4 * N, scale, offset), "a row for every lane");
        let column = |k| Self::from_fn(|i| rows[4 * (scale * i + offset) + k]);
        [column(0), column(1), column(2), column(3)]
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
    #[inline(always)]
    fn take_quads<'a>(row: impl Fn(usize) -> &'a [Cell<Int>; 4]) -> [Self; 4] {
        let column = |k: usize| Self::from_fn(|i| row(i)[k].get());
        [column(0), column(1), column(2), column(3)]
    }
    #[inline(always)]
    fn put_quads<'a>(quads: [Self; 4], row: impl Fn(usize) -> &'a [Cell<Int>; 4]) {
        (0..N).for_each(|i| (0..4).for_each(|k| row(i)[k].set(quads[k].0[i])));
    }
}
