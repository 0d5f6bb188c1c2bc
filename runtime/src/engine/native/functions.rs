//! Functions that machine code calls: those of a real, of 32 and of 64 bits.

use crate::number::Real;

/// The address of a function of 32 bits, and of the one of 64.
pub(super) type Function = [fn() -> usize; 2];

macro_rules! functions {
    ($($name:ident |$($x:ident),*| $value:expr),* $(,)?) => {
        $(pub(super) const $name: Function = {
            extern "C" fn single($($x: f32),*) -> f32 { $value }
            extern "C" fn double($($x: f64),*) -> f64 { $value }
            [|| single as *const () as usize, || double as *const () as usize]
        };)*
    };
}
functions! {
    EXP |x| Real::exp(x), LN |x| Real::ln(x), SIN |x| Real::sin(x), COS |x| Real::cos(x), ACOS |x| Real::acos(x),
    TANH |x| Real::tanh(x), POW |x, y| Real::pow(x, y), ATAN2 |y, x| Real::atan2(y, x), REM |x, y| Real::rem(x, y),
}
