//! Several independent vertices at once: the number type that SIMD engines will run programs on.

use meshweft::{Float, Real};
use num_traits::{One, Zero};
use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

/// `W` numbers that are computed with side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lanes<T, const W: usize>(pub [T; W]);

/// One truth value a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mask<const W: usize>(pub [bool; W]);

impl<T: Copy, const W: usize> Lanes<T, W> {
    fn map(self, f: impl Fn(T) -> T) -> Self {
        Lanes(self.0.map(f))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:tt),*) => {$(
        impl<T: Float, const W: usize> $trait for Lanes<T, W> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Lanes(std::array::from_fn(|i| self.0[i] $op other.0[i]))
            }
        }
        impl<T: Float, const W: usize> $assign for Lanes<T, W> {
            fn $assign_method(&mut self, other: Self) {
                *self = *self $op other;
            }
        }
    )*};
}
operators!(
    Add add AddAssign add_assign +,
    Sub sub SubAssign sub_assign -,
    Mul mul MulAssign mul_assign *,
    Div div DivAssign div_assign /
);

impl<T: Float, const W: usize> Neg for Lanes<T, W> {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(|x| -x)
    }
}

impl<T: Float, const W: usize> Zero for Lanes<T, W> {
    fn zero() -> Self {
        Self::lit(0.0)
    }
    fn is_zero(&self) -> bool {
        self.0.iter().all(|x| *x == T::lit(0.0))
    }
}

impl<T: Float, const W: usize> One for Lanes<T, W> {
    fn one() -> Self {
        Self::lit(1.0)
    }
}

impl<const W: usize> BitAnd for Mask<W> {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Mask(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
}

impl<const W: usize> BitOr for Mask<W> {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Mask(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

impl<const W: usize> Not for Mask<W> {
    type Output = Self;
    fn not(self) -> Self {
        Mask(self.0.map(|b| !b))
    }
}

impl<T: Float, const W: usize> Real for Lanes<T, W> {
    type Mask = Mask<W>;
    fn lit(value: f64) -> Self {
        Lanes([T::lit(value); W])
    }
    fn sqrt(self) -> Self {
        self.map(T::sqrt)
    }
    fn abs(self) -> Self {
        self.map(T::abs)
    }
    fn exp(self) -> Self {
        self.map(T::exp)
    }
    fn sin(self) -> Self {
        self.map(T::sin)
    }
    fn cos(self) -> Self {
        self.map(T::cos)
    }
    fn less(self, other: Self) -> Mask<W> {
        Mask(std::array::from_fn(|i| self.0[i] < other.0[i]))
    }
    fn select(mask: Mask<W>, yes: Self, no: Self) -> Self {
        Lanes(std::array::from_fn(|i| if mask.0[i] { yes.0[i] } else { no.0[i] }))
    }
}
