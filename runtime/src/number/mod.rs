//! Numbers: what a program computes with.
//!
//! A program is generic over a [`Real`] and its [`Real::Int`], an [`Integer`]. The same text then runs on plain numbers
//! (`f32`, `f64`, [`Int`]), on [`lanes`] of them side by side in the registers of a CPU, and on symbols, whose trace is the
//! shader of a GPU. Every operation has one defined result, so all of them agree to the last bit; what a GPU may round
//! otherwise is said there.

mod array;
mod int;
mod ints;
pub mod lanes;
mod plain;
mod precision;
pub mod random;
mod real;
#[cfg(test)]
mod tests;

pub(crate) use array::array;
pub(crate) use int::TOO_FAR;
pub use int::{Int, Integer};
pub(crate) use ints::Ints;
#[cfg(any(test, feature = "all-widths"))]
pub(crate) use precision::Other;
pub(crate) use precision::Widest;
pub(crate) use precision::with_number;
pub use precision::{Lanes, Number, Precision};
pub use real::{Kind, Length, Part, Real, Record};

pub(crate) mod sealed {
    /// What only this crate can implement: engines rely on what its numbers do, also where they are `unsafe`.
    pub trait Sealed {}
}
