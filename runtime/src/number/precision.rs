//! The numbers that state is stored as, and packs of them: each is defined by the other, since a precision names the packs
//! that registers hold of it.

use super::int::Int;
use super::real::Real;
use std::cell::Cell;

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
    const NAME: &'static str = Self::PRECISION.name();
    /// Bytes of one number.
    const BYTES: usize = size_of::<Self>();
    /// Which one it is.
    #[doc(hidden)]
    const PRECISION: Precision;

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

/// A type of numbers as a value, for what is compiled once for all of them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    F32,
    F64,
    I32,
}

/// An expression in which `$number` is the type of a precision.
macro_rules! with_number {
    ($precision:expr, $number:ident => $body:expr) => {
        match $precision {
            $crate::number::Precision::F32 => {
                type $number = f32;
                $body
            }
            $crate::number::Precision::F64 => {
                type $number = f64;
                $body
            }
            $crate::number::Precision::I32 => {
                type $number = $crate::number::Int;
                $body
            }
        }
    };
}
pub(crate) use with_number;

impl Precision {
    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
            Precision::I32 => "i32",
        }
    }

    /// Bytes of one number.
    pub(crate) fn bytes(self) -> usize {
        with_number!(self, T => T::BYTES)
    }

    /// Whether `value` is finite once it is rounded.
    pub(crate) fn holds(self, value: f64) -> bool {
        with_number!(self, T => T::from_f64(value).finite())
    }
}

/// The packs of a build: kernels are compiled for the widest registers of the processor that it is for.
#[cfg(target_feature = "avx512f")]
pub(crate) type Widest<T> = <T as Number>::Full;
#[cfg(not(target_feature = "avx512f"))]
pub(crate) type Widest<T> = <T as Number>::Half;
/// The other ones, which tests and the feature `all-widths` add.
#[cfg(all(target_feature = "avx512f", any(test, feature = "all-widths")))]
pub(crate) type Other<T> = <T as Number>::Half;
#[cfg(all(not(target_feature = "avx512f"), any(test, feature = "all-widths")))]
pub(crate) type Other<T> = <T as Number>::Full;

/// Rows of a table that [`Lanes::pick`] and [`Lanes::pick_quads`] read: one for every 16-bit index.
#[doc(hidden)]
pub const TABLE: usize = 1 << 16;

/// A pack of [`Lanes::WIDTH`] numbers that are computed with side by side.
///
/// ```
/// use meshweft::{Lanes, Real, lanes::F32x8};
/// let x = F32x8::load(&[1.0, 4.0, 9.0, 16.0, 25.0, 36.0, 49.0, 64.0]);
/// let mut roots = [0.0; 8];
/// (x.sqrt() * F32x8::lit(0.5)).store(&mut roots);
/// assert_eq!(roots[2], 1.5);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a pack of lanes",
    note = "the packs are `F32x8`, `F32x16`, `F64x4` and `F64x8` of `meshweft::lanes`"
)]
pub trait Lanes: Real {
    /// The number in each lane.
    type Scalar: Number;
    /// Number of lanes.
    const WIDTH: usize;

    /// The first [`Lanes::WIDTH`] numbers.
    ///
    /// # Panics
    /// If there are fewer.
    fn load(from: &[Self::Scalar]) -> Self;

    /// Writes the first [`Lanes::WIDTH`] numbers.
    ///
    /// # Panics
    /// If there is room for fewer.
    fn store(self, to: &mut [Self::Scalar]);

    /// Lane `i` is `f(i)`.
    fn from_fn(f: impl FnMut(usize) -> Self::Scalar) -> Self;

    /// Lane `i` is the number at `scale ids[i] + offset`.
    ///
    /// # Panics
    /// If `ids` are fewer than lanes, `table` is shorter than `scale` [`TABLE`], or `offset` is not below `scale`.
    #[doc(hidden)]
    fn pick(table: &[Self::Scalar], ids: &[u16], scale: usize, offset: usize) -> Self;

    /// The four numbers from `4 (scale ids[i] + offset)` on for every lane `i`: pack `k` of the result has number `k` of each.
    ///
    /// # Panics
    /// If `ids` are fewer than lanes, `table` is shorter than `4 scale` [`TABLE`], or `offset` is not below `scale`.
    #[doc(hidden)]
    fn pick_quads(table: &[Self::Scalar], ids: &[u16], scale: usize, offset: usize) -> [Self; 4];

    /// The same for consecutive rows: lane `i` has the four numbers from `4 (scale i + offset)` on.
    ///
    /// # Panics
    /// If `rows` are shorter than `4 scale` times the lanes, or `offset` is not below `scale`.
    #[doc(hidden)]
    fn load_quads(rows: &[Self::Scalar], scale: usize, offset: usize) -> [Self; 4];

    /// Writes what [`Lanes::load_quads`] reads.
    ///
    /// # Panics
    /// As there.
    #[doc(hidden)]
    fn store_quads(quads: [Self; 4], rows: &mut [Self::Scalar], scale: usize, offset: usize);

    /// The four numbers that lie at `row(i)` for every lane `i`.
    #[doc(hidden)]
    fn take_quads<'a>(row: impl Fn(usize) -> &'a [Cell<Self::Scalar>; 4]) -> [Self; 4];

    /// Writes them. Lanes that share a row have the same numbers.
    #[doc(hidden)]
    fn put_quads<'a>(quads: [Self; 4], row: impl Fn(usize) -> &'a [Cell<Self::Scalar>; 4]);
}

/// Whether `offset` is below `scale` and a slice has `rows` times `scale` numbers. What does not fit into a `usize` is longer
/// than any slice: a product that wrapped around would let indices past the end through.
#[inline(always)]
pub(super) fn holds<A>(slice: &[A], rows: usize, scale: usize, offset: usize) -> bool {
    offset < scale && rows.checked_mul(scale).is_some_and(|numbers| slice.len() >= numbers)
}
