//! Lanes: several independent vertices side by side in the registers of a CPU.
//!
//! A program runs on lanes unchanged, because it is generic over [`Real`]. Every lane computes exactly what a plain float
//! would: the operations are the same ones, rounded alike, and nothing is ever added across lanes (claim C5). Functions that
//! registers have no exact instruction for (`exp`, `sin`, `pow` ...) are taken lane by lane from `libm`.
//!
//! Besides arithmetic a lane pack knows how to get into registers: from a row of numbers, and from places in a table that
//! a list of 16-bit indices names. The latter, and the hint to fetch memory ahead, have `unsafe` blocks: both are safe
//! whatever their arguments, and say why.
//!
//! Integers side by side are plain arrays in a file of their own: their operations have no vector form here.

#![expect(unsafe_code, reason = "vector loads from a table whose size is asserted, and prefetch hints")]

use super::array::array;
use super::int::Int;
use super::ints::{Ints, Truth};
pub use super::precision::Lanes;
#[doc(hidden)]
pub use super::precision::TABLE;
use super::precision::holds;
use super::real::Real;
use super::sealed::Sealed;
use num_traits::{One, Zero};
use std::cell::Cell;
use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

// SAFETY: an `Int` is nothing but its `i32`, of which every bit pattern is a number.
unsafe impl bytemuck::Zeroable for Int {}
// SAFETY: as above; it has no padding, and no place to change through a shared reference.
unsafe impl bytemuck::Pod for Int {}

/// Asks the CPU to fetch the cache line that `slice[index]` lies in, into the second-level cache: the first holds too
/// little to be filled ahead. A hint: it changes no result.
#[inline(always)]
pub(crate) fn prefetch<A>(slice: &[A], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that a program could see and never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(slice.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// Lane `i` is the number at `base + scale ids[i]`.
///
/// # Safety
/// Each of them can be read, and `scale ids[i]` is less than 2^31.
#[inline(always)]
pub(crate) unsafe fn pick_slots<L: Lanes>(base: *const L::Scalar, ids: &[u32], scale: usize) -> L {
    #[cfg(target_feature = "avx512f")]
    {
        use std::arch::x86_64::*;
        use std::mem::transmute;
        if let (Ok(ids), 4) = (<[u32; 16]>::try_from(&ids[..L::WIDTH]), size_of::<L::Scalar>()) {
            // SAFETY: the instructions exist where this is compiled, and by the caller's promise.
            let bits: [u32; 16] = unsafe {
                let at = _mm512_mullo_epi32(transmute::<[u32; 16], __m512i>(ids), _mm512_set1_epi32(scale as i32));
                transmute(_mm512_i32gather_epi32::<4>(at, base.cast()))
            };
            return L::load(bytemuck::cast_slice(&bits));
        }
        if let (Ok(ids), 8) = (<[u32; 8]>::try_from(&ids[..L::WIDTH]), size_of::<L::Scalar>()) {
            // SAFETY: as above.
            let bits: [u64; 8] = unsafe {
                let at = _mm256_mullo_epi32(transmute::<[u32; 8], __m256i>(ids), _mm256_set1_epi32(scale as i32));
                transmute(_mm512_i32gather_epi64::<8>(at, base.cast()))
            };
            return L::load(bytemuck::cast_slice(&bits));
        }
    }
    // SAFETY: by the caller's promise.
    L::from_fn(|i| unsafe { base.add(ids[i] as usize * scale).read() })
}

macro_rules! lanes {
    ($(#[$meta:meta])* $name:ident, $vector:path, $float:ident, $width:literal, $quads:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[repr(transparent)]
        pub struct $name($vector);

        lanes!(@ $name, Add add +, AddAssign add_assign);
        lanes!(@ $name, Sub sub -, SubAssign sub_assign);
        lanes!(@ $name, Mul mul *, MulAssign mul_assign);
        lanes!(@ $name, Div div /, DivAssign div_assign);

        impl Neg for $name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                $name(-self.0)
            }
        }

        impl Zero for $name {
            #[inline(always)]
            fn zero() -> Self {
                Self::lit(0.0)
            }
            #[inline(always)]
            fn is_zero(&self) -> bool {
                self.0.to_array().iter().all(|x| *x == 0.0)
            }
        }

        impl One for $name {
            #[inline(always)]
            fn one() -> Self {
                Self::lit(1.0)
            }
        }

        impl $name {
            #[inline]
            fn each(self, f: impl Fn($float) -> $float) -> Self {
                let lanes = self.0.to_array();
                Self::from_fn(|i| f(lanes[i]))
            }
        }

        impl Sealed for $name {}

        impl Real for $name {
            type Mask = Mask<$vector>;
            type Int = Ints<$width, Mask<$vector>>;
            #[inline(always)]
            fn lit(value: f64) -> Self {
                $name(<$vector>::splat($float::lit(value)))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $name(self.0.sqrt())
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $name(self.0.abs())
            }
            lanes!(@ floor exp ln sin cos acos tanh, pow atan2);
            #[inline(always)]
            fn less(self, other: Self) -> Self::Mask {
                Mask(self.0.simd_lt(other.0))
            }
            #[inline(always)]
            fn at_most(self, other: Self) -> Self::Mask {
                Mask(self.0.simd_le(other.0))
            }
            #[inline(always)]
            fn equals(self, other: Self) -> Self::Mask {
                Mask(self.0.simd_eq(other.0))
            }
            #[inline(always)]
            fn select(mask: Self::Mask, yes: Self, no: Self) -> Self {
                $name(mask.0.select(yes.0, no.0))
            }
            #[inline(always)]
            fn from_int(integer: Self::Int) -> Self {
                let lanes = integer.into_array();
                Self::from_fn(|i| $float::from_int(lanes[i]))
            }
            #[inline(always)]
            fn to_int(self) -> Self::Int {
                let lanes = self.0.to_array();
                Ints::by_lane(|i| lanes[i].to_int())
            }
            #[inline(always)]
            fn hold_int(integer: Self::Int) -> Self {
                let lanes = integer.into_array();
                Self::from_fn(|i| $float::hold_int(lanes[i]))
            }
            #[inline(always)]
            fn held_int(self) -> Self::Int {
                let lanes = self.0.to_array();
                Ints::by_lane(|i| lanes[i].held_int())
            }
        }

        impl Truth<$width> for Mask<$vector> {
            #[inline(always)]
            fn from_fn(f: impl Fn(usize) -> bool) -> Self {
                let lane = |i| $float::from_bits(if f(i) { !0 } else { 0 });
                Mask(array::<_, $width>(0.0, lane).into())
            }
            #[inline(always)]
            fn lane(self, i: usize) -> bool {
                self.0.to_array()[i].to_bits() != 0
            }
        }

        impl Lanes for $name {
            type Scalar = $float;
            const WIDTH: usize = $width;
            #[inline(always)]
            fn load(from: &[$float]) -> Self {
                let row: [$float; $width] = from[..$width].try_into().expect("as many numbers as lanes");
                $name(row.into())
            }
            #[inline(always)]
            fn store(self, to: &mut [$float]) {
                *to.first_chunk_mut().expect("room for as many numbers as lanes") = self.0.to_array();
            }
            #[inline(always)]
            fn from_fn(f: impl FnMut(usize) -> $float) -> Self {
                $name(array::<_, $width>(0.0, f).into())
            }
            #[inline(always)]
            fn pick(table: &[$float], ids: &[u16], scale: usize, offset: usize) -> Self {
                let id = lanes!(@ ids ids, $width);
                assert!(holds(table, TABLE, scale, offset), "a row for every index");
                // SAFETY: an index is below TABLE, so its number lies in the table by the assertion.
                Self::from_fn(|i| unsafe { *table.get_unchecked(id(i) * scale + offset) })
            }
            #[inline(always)]
            fn pick_quads(table: &[$float], ids: &[u16], scale: usize, offset: usize) -> [Self; 4] {
                let id = lanes!(@ ids ids, $width);
                assert!(holds(table, 4 * TABLE, scale, offset), "a row for every index");
                let quads = table.as_ptr().cast::<[$float; 4]>();
                // SAFETY: an index is below TABLE, so its quad lies in the table by the assertion.
                let [a, b, c, d] = unsafe { $quads::load(|i| quads.add(id(i) * scale + offset)) };
                [$name(a), $name(b), $name(c), $name(d)]
            }
            #[inline(always)]
            fn load_quads(rows: &[$float], scale: usize, offset: usize) -> [Self; 4] {
                assert!(holds(rows, 4 * $width, scale, offset), "a row for every lane");
                let quads = rows.as_ptr().cast::<[$float; 4]>();
                // SAFETY: a lane is below the width, so its quad lies in the rows by the assertion.
                let [a, b, c, d] = unsafe { $quads::load(|i| quads.add(i * scale + offset)) };
                [$name(a), $name(b), $name(c), $name(d)]
            }
            #[inline(always)]
            fn store_quads(packs: [Self; 4], rows: &mut [$float], scale: usize, offset: usize) {
                assert!(holds(rows, 4 * $width, scale, offset), "a row for every lane");
                let quads = rows.as_mut_ptr().cast::<[$float; 4]>();
                // SAFETY: a lane is below the width, so its quad lies in the rows by the assertion.
                let [$name(a), $name(b), $name(c), $name(d)] = packs;
                unsafe { $quads::store([a, b, c, d], |i| quads.add(i * scale + offset)) }
            }
            #[inline(always)]
            fn take_quads<'a>(row: impl Fn(usize) -> &'a [Cell<$float>; 4]) -> [Self; 4] {
                // SAFETY: cells lie as their numbers do, and nobody writes to these meanwhile: they are of this thread.
                let [a, b, c, d] = unsafe { $quads::load(|i| std::ptr::from_ref(row(i)).cast()) };
                [$name(a), $name(b), $name(c), $name(d)]
            }
            #[inline(always)]
            fn put_quads<'a>(packs: [Self; 4], row: impl Fn(usize) -> &'a [Cell<$float>; 4]) {
                let [$name(a), $name(b), $name(c), $name(d)] = packs;
                // SAFETY: cells lie as their numbers do, and may be written through a shared reference by their thread.
                unsafe { $quads::store([a, b, c, d], |i| std::ptr::from_ref(row(i)).cast_mut().cast()) }
            }
        }
    };
    // Indices of lanes by their number. Where registers have 512 bits four come in one load: those cores load less than they shift.
    (@ ids $ids:ident, $width:literal) => {{
        let ids: &[u16; $width] = $ids.first_chunk().expect("as many indices as lanes");
        let fours: [u64; $width / 4] = bytemuck::cast(*ids);
        move |i: usize| {
            let at = if cfg!(target_endian = "big") { 3 - i % 4 } else { i % 4 };
            if cfg!(target_feature = "avx512f") { usize::from((fours[i / 4] >> (16 * at)) as u16) } else { ids[i].into() }
        }
    }};
    (@ $($function:ident)*, $($binary:ident)*) => {
        $(
            #[inline]
            fn $function(self) -> Self {
                self.each(Real::$function)
            }
        )*
        $(
            #[inline]
            fn $binary(self, other: Self) -> Self {
                let (lanes, other) = (self.0.to_array(), other.0.to_array());
                Self::from_fn(|i| Real::$binary(lanes[i], other[i]))
            }
        )*
    };
    (@ $name:ident, $trait:ident $method:ident $op:tt, $assign:ident $assign_method:ident) => {
        impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                $name(self.0 $op other.0)
            }
        }
        impl $assign for $name {
            #[inline(always)]
            fn $assign_method(&mut self, other: Self) {
                *self = *self $op other;
            }
        }
    };
}

/// One truth value a lane: all bits of it are set, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mask<V>(V);

impl<V: BitAnd<Output = V>> BitAnd for Mask<V> {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Mask(self.0 & other.0)
    }
}

impl<V: BitOr<Output = V>> BitOr for Mask<V> {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Mask(self.0 | other.0)
    }
}

impl<V: Not<Output = V>> Not for Mask<V> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Mask(!self.0)
    }
}

lanes!(
    /// Eight numbers of 32 bits: a register of 256 bits.
    F32x8, wide::f32x8, f32, 8, f32x8
);
lanes!(
    /// Sixteen numbers of 32 bits: a register of 512 bits, or two of 256.
    F32x16, wide::f32x16, f32, 16, f32x16
);
lanes!(
    /// Four numbers of 64 bits: a register of 256 bits.
    F64x4, wide::f64x4, f64, 4, f64x4
);
lanes!(
    /// Eight numbers of 64 bits: a register of 512 bits, or two of 256.
    F64x8, wide::f64x8, f64, 8, f64x8
);

/// Quads of numbers, read from and written to one row a lane.
#[allow(unused_macros, reason = "for CPUs without a better way to turn rows into columns")]
macro_rules! plain {
    ($name:ident, $float:ident, $width:literal) => {
        mod $name {
            use super::array;
            use wide::$name as Vector;

            /// # Safety
            /// `row(i)` can be read for every lane `i`.
            #[inline(always)]
            pub(super) unsafe fn load(row: impl Fn(usize) -> *const [$float; 4]) -> [Vector; 4] {
                // SAFETY: by the caller's promise.
                let rows: [_; $width] = array([0.0; 4], |i| unsafe { row(i).read() });
                let column = |k: usize| Vector::from(array::<_, $width>(0.0, |i| rows[i][k]));
                [column(0), column(1), column(2), column(3)]
            }

            /// # Safety
            /// `row(i)` can be written for every lane `i`.
            #[inline(always)]
            pub(super) unsafe fn store(packs: [Vector; 4], row: impl Fn(usize) -> *mut [$float; 4]) {
                let [a, b, c, d] = packs;
                let [a, b, c, d] = [a.to_array(), b.to_array(), c.to_array(), d.to_array()];
                for i in 0..$width {
                    // SAFETY: by the caller's promise.
                    unsafe { row(i).write([a[i], b[i], c[i], d[i]]) }
                }
            }
        }
    };
}

plain!(f64x4, f64, 4);
#[cfg(not(target_feature = "avx512f"))]
plain!(f64x8, f64, 8);
#[cfg(not(target_feature = "avx512f"))]
plain!(f32x16, f32, 16);
#[cfg(not(target_feature = "avx"))]
plain!(f32x8, f32, 8);

/// Register `g` of four holds the rows of lanes `g`, `g + 4`, `g + 8`, `g + 12`, so that rows turn into columns, and
/// columns into rows, within each quarter.
#[cfg(target_feature = "avx512f")]
mod f32x16 {
    use std::arch::x86_64::*;
    use std::mem::transmute;
    use wide::f32x16 as Vector;

    #[inline(always)]
    fn turn(packs: [Vector; 4]) -> [Vector; 4] {
        // SAFETY: the instructions exist where this is compiled; a vector is nothing but its register.
        unsafe {
            let [a, b, c, d] = transmute::<[Vector; 4], [__m512; 4]>(packs);
            let (ab, cd) = (_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
            let (ef, gh) = (_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
            let [ab, cd, ef, gh] = transmute::<[__m512; 4], [__m512d; 4]>([ab, cd, ef, gh]);
            let (x, y) = (_mm512_unpacklo_pd(ab, cd), _mm512_unpackhi_pd(ab, cd));
            let (z, w) = (_mm512_unpacklo_pd(ef, gh), _mm512_unpackhi_pd(ef, gh));
            transmute::<[__m512d; 4], [Vector; 4]>([x, y, z, w])
        }
    }

    /// # Safety
    /// `row(i)` can be read for every lane `i`.
    #[inline(always)]
    pub(super) unsafe fn load(row: impl Fn(usize) -> *const [f32; 4]) -> [Vector; 4] {
        let rows = |g: usize| {
            // SAFETY: by the caller's promise, and as in `turn`.
            unsafe {
                let first = _mm512_castps128_ps512(_mm_loadu_ps(row(g).cast()));
                let second = _mm512_insertf32x4::<1>(first, _mm_loadu_ps(row(g + 4).cast()));
                let third = _mm512_insertf32x4::<2>(second, _mm_loadu_ps(row(g + 8).cast()));
                transmute::<__m512, Vector>(_mm512_insertf32x4::<3>(third, _mm_loadu_ps(row(g + 12).cast())))
            }
        };
        turn([rows(0), rows(1), rows(2), rows(3)])
    }

    /// # Safety
    /// `row(i)` can be written for every lane `i`.
    #[inline(always)]
    pub(super) unsafe fn store(packs: [Vector; 4], row: impl Fn(usize) -> *mut [f32; 4]) {
        for (g, rows) in turn(packs).into_iter().enumerate() {
            // SAFETY: by the caller's promise, and as in `turn`.
            unsafe {
                let rows = transmute::<Vector, __m512>(rows);
                _mm_storeu_ps(row(g).cast(), _mm512_castps512_ps128(rows));
                _mm_storeu_ps(row(g + 4).cast(), _mm512_extractf32x4_ps::<1>(rows));
                _mm_storeu_ps(row(g + 8).cast(), _mm512_extractf32x4_ps::<2>(rows));
                _mm_storeu_ps(row(g + 12).cast(), _mm512_extractf32x4_ps::<3>(rows));
            }
        }
    }
}

/// The same with halves: register `g` holds the rows of lanes `g` and `g + 4`.
#[cfg(target_feature = "avx")]
mod f32x8 {
    use std::arch::x86_64::*;
    use std::mem::transmute;
    use wide::f32x8 as Vector;

    #[inline(always)]
    fn turn(packs: [Vector; 4]) -> [Vector; 4] {
        // SAFETY: the instructions exist where this is compiled; a vector is nothing but its register.
        unsafe {
            let [a, b, c, d] = transmute::<[Vector; 4], [__m256; 4]>(packs);
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ef, gh) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            let [ab, cd, ef, gh] = transmute::<[__m256; 4], [__m256d; 4]>([ab, cd, ef, gh]);
            let (x, y) = (_mm256_unpacklo_pd(ab, cd), _mm256_unpackhi_pd(ab, cd));
            let (z, w) = (_mm256_unpacklo_pd(ef, gh), _mm256_unpackhi_pd(ef, gh));
            transmute::<[__m256d; 4], [Vector; 4]>([x, y, z, w])
        }
    }

    /// # Safety
    /// `row(i)` can be read for every lane `i`.
    #[inline(always)]
    pub(super) unsafe fn load(row: impl Fn(usize) -> *const [f32; 4]) -> [Vector; 4] {
        let rows = |g: usize| {
            // SAFETY: by the caller's promise, and as in `turn`.
            unsafe {
                let first = _mm256_castps128_ps256(_mm_loadu_ps(row(g).cast()));
                transmute::<__m256, Vector>(_mm256_insertf128_ps::<1>(first, _mm_loadu_ps(row(g + 4).cast())))
            }
        };
        turn([rows(0), rows(1), rows(2), rows(3)])
    }

    /// # Safety
    /// `row(i)` can be written for every lane `i`.
    #[inline(always)]
    pub(super) unsafe fn store(packs: [Vector; 4], row: impl Fn(usize) -> *mut [f32; 4]) {
        for (g, rows) in turn(packs).into_iter().enumerate() {
            // SAFETY: by the caller's promise, and as in `turn`.
            unsafe {
                let rows = transmute::<Vector, __m256>(rows);
                _mm_storeu_ps(row(g).cast(), _mm256_castps256_ps128(rows));
                _mm_storeu_ps(row(g + 4).cast(), _mm256_extractf128_ps::<1>(rows));
            }
        }
    }
}

/// The same with halves of 64-bit numbers: register `g` holds the rows of lanes `g` and `g + 4`.
#[cfg(target_feature = "avx512f")]
mod f64x8 {
    use std::arch::x86_64::*;
    use std::mem::transmute;
    use wide::f64x8 as Vector;

    #[inline(always)]
    fn turn(packs: [Vector; 4]) -> [Vector; 4] {
        // SAFETY: the instructions exist where this is compiled; a vector is nothing but its register.
        unsafe {
            let [a, b, c, d] = transmute::<[Vector; 4], [__m512d; 4]>(packs);
            let (ab, cd) = (_mm512_unpacklo_pd(a, b), _mm512_unpacklo_pd(c, d));
            let (ef, gh) = (_mm512_unpackhi_pd(a, b), _mm512_unpackhi_pd(c, d));
            // Of each half the first pair of both, or the second.
            let firsts = |x, y| _mm512_permutex2var_pd(x, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), y);
            let seconds = |x, y| _mm512_permutex2var_pd(x, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), y);
            transmute::<[__m512d; 4], [Vector; 4]>([firsts(ab, cd), firsts(ef, gh), seconds(ab, cd), seconds(ef, gh)])
        }
    }

    /// # Safety
    /// `row(i)` can be read for every lane `i`.
    #[inline(always)]
    pub(super) unsafe fn load(row: impl Fn(usize) -> *const [f64; 4]) -> [Vector; 4] {
        let rows = |g: usize| {
            // SAFETY: by the caller's promise, and as in `turn`.
            unsafe {
                let first = _mm512_castpd256_pd512(_mm256_loadu_pd(row(g).cast()));
                transmute::<__m512d, Vector>(_mm512_insertf64x4::<1>(first, _mm256_loadu_pd(row(g + 4).cast())))
            }
        };
        turn([rows(0), rows(1), rows(2), rows(3)])
    }

    /// # Safety
    /// `row(i)` can be written for every lane `i`.
    #[inline(always)]
    pub(super) unsafe fn store(packs: [Vector; 4], row: impl Fn(usize) -> *mut [f64; 4]) {
        for (g, rows) in turn(packs).into_iter().enumerate() {
            // SAFETY: by the caller's promise, and as in `turn`.
            unsafe {
                let rows = transmute::<Vector, __m512d>(rows);
                _mm256_storeu_pd(row(g).cast(), _mm512_castpd512_pd256(rows));
                _mm256_storeu_pd(row(g + 4).cast(), _mm512_extractf64x4_pd::<1>(rows));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Number;

    fn check<L: Lanes>() {
        let number = |i: usize| L::Scalar::from_f64(i as f64);
        for scale in 1..3 {
            let table: Vec<L::Scalar> = (0..4 * TABLE * scale).map(number).collect();
            let ids: Vec<u16> = (0..L::WIDTH as u16).map(|i| i.wrapping_mul(40_503).wrapping_sub(1)).collect();
            for offset in 0..scale {
                let picked = L::pick(&table, &ids, scale, offset);
                assert!(picked == L::from_fn(|i| number(ids[i] as usize * scale + offset)), "{} lanes", L::WIDTH);
                let found = L::pick_quads(&table, &ids, scale, offset);
                let rows = L::load_quads(&table, scale, offset);
                for k in 0..4 {
                    let at = |row: usize| number(4 * (row * scale + offset) + k);
                    assert!(found[k] == L::from_fn(|i| at(ids[i] as usize)), "{} lanes, number {k}", L::WIDTH);
                    assert!(rows[k] == L::from_fn(at), "{} lanes, number {k}", L::WIDTH);
                }
                let mut copy = vec![number(0); 4 * L::WIDTH * scale];
                L::store_quads(rows, &mut copy, scale, offset);
                let quad = |i: usize| i / 4 % scale == offset;
                assert!(copy.iter().enumerate().all(|(i, x)| *x == if quad(i) { table[i] } else { number(0) }));
            }
        }
    }

    #[test]
    fn quads_are_read_and_turned_at_every_width() {
        check::<F32x8>();
        check::<F32x16>();
        check::<F64x4>();
        check::<F64x8>();
    }

    #[test]
    fn slots_are_picked_at_every_width() {
        fn check<L: Lanes>() {
            for scale in 1..5 {
                let numbers: Vec<L::Scalar> = (0..1000 * scale).map(|i| L::Scalar::from_f64(i as f64)).collect();
                let ids: Vec<u32> = (0..L::WIDTH as u32).map(|i| i * 7919 % 1000).collect();
                for offset in 0..scale {
                    // SAFETY: all ids are below 1000.
                    let picked: L = unsafe { pick_slots(numbers.as_ptr().add(offset), &ids, scale) };
                    assert!(picked == L::from_fn(|i| numbers[ids[i] as usize * scale + offset]), "{} lanes", L::WIDTH);
                }
            }
        }
        check::<F32x8>();
        check::<F32x16>();
        check::<F64x4>();
        check::<F64x8>();
        check::<Ints<8>>();
        check::<Ints<16>>();
    }

    #[test]
    #[should_panic(expected = "a row for every index")]
    fn a_short_table_is_refused() {
        F32x16::pick_quads(&[0.0; 400], &[0; 16], 1, 0);
    }

    #[test]
    fn strides_whose_products_wrap_around_are_refused() {
        fn check<L: Lanes>() {
            let none: &[L::Scalar] = &[];
            let x = [L::lit(0.0); 4];
            // Times 2^16 rows, or 32 and more numbers, each of them is 0 or little to 64 bits.
            for scale in [1 << 46, 1 << 48, 1 << 59, 1 << 62, usize::MAX] {
                for offset in [0, scale - 1] {
                    let refused = |name: &str, work: &dyn Fn()| {
                        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_err();
                        let word = panic.downcast_ref::<&str>().expect("a message");
                        assert!(word.starts_with("a row for every"), "{name}, {scale}: {word}");
                    };
                    refused("pick", &|| _ = L::pick(none, &[1; 16], scale, offset));
                    refused("pick_quads", &|| _ = L::pick_quads(none, &[1; 16], scale, offset));
                    refused("load_quads", &|| _ = L::load_quads(none, scale, offset));
                    refused("store_quads", &|| L::store_quads(x, &mut [], scale, offset));
                }
            }
        }
        check::<F32x8>();
        check::<F32x16>();
        check::<F64x4>();
        check::<F64x8>();
        check::<Ints<8>>();
        check::<Ints<16>>();
    }

    #[test]
    fn signs_of_zero_and_nan_are_those_of_floats() {
        let x = F32x8::from_fn(|i| [0.0, -0.0, f32::NAN, 1.0][i % 4]);
        assert!((-x).0.to_array()[0].is_sign_negative());
        assert!(!x.abs().0.to_array()[1].is_sign_negative());
        let picked = Real::max(x, F32x8::lit(0.5)).0.to_array();
        assert_eq!((picked[0], picked[3]), (0.5, 1.0));
        assert!(picked[2].is_nan());
    }
}
