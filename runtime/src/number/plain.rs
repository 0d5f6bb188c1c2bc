//! Plain numbers as what a program computes with: floats of 32 and 64 bits, and integers in their place.

use super::int::Int;
use super::ints::Ints;
use super::lanes::{F32x8, F32x16, F64x4, F64x8};
use super::precision::{Number, Precision};
use super::real::Real;
use super::sealed::Sealed;

macro_rules! float {
    ($float:ident, $precision:ident, $half:ident, $full:ident, |$int:ident| $hold:expr, |$slot:ident| $held:expr, {$($function:ident $libm:path),*}, $pow:path, $atan2:path) => {
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
            const PRECISION: Precision = Precision::$precision;
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
    f32, F32, F32x8, F32x16,
    |integer| f32::from_bits(integer.0.cast_unsigned()),
    |slot| Int(slot.to_bits().cast_signed()),
    { exp libm::expf, ln libm::logf, sin libm::sinf, cos libm::cosf, acos libm::acosf, tanh libm::tanhf },
    libm::powf, libm::atan2f
);
float!(
    f64, F64, F64x4, F64x8,
    |integer| integer.0.into(),
    |slot| Int(slot as i32),
    { exp libm::exp, ln libm::log, sin libm::sin, cos libm::cos, acos libm::acos, tanh libm::tanh },
    libm::pow, libm::atan2
);

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
    const PRECISION: Precision = Precision::I32;
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
