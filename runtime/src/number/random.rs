//! Random numbers that depend on their counters alone: the same for every engine, order and number of threads.
//!
//! A counter-based generator has no state: the number that vertex `v` draws in step `n` is a hash of both, of a seed, and
//! of which draw it is. So vertices can be updated in any order, a step can be repeated, and CPUs and GPUs agree.
//!
//! ```
//! use meshweft::{Int, Integer, Real, random};
//! /// Whether a vertex decays in a step, with probability `p`.
//! fn decays<R: Real>(vertex: R::Int, step: R::Int, seed: R::Int, p: R) -> R::Mask {
//!     random::uniform::<R>([vertex, step, seed, R::Int::lit(0)]).less(p)
//! }
//! let decayed = (0..1000).filter(|&v| decays::<f32>(Int(v), Int(7), Int(1), 0.25)).count();
//! assert!((200..300).contains(&decayed), "{decayed}");
//! assert_eq!(decays::<f32>(Int(3), Int(7), Int(1), 0.25), decays::<f64>(Int(3), Int(7), Int(1), 0.25));
//! ```

use super::int::Integer;
use super::real::Real;

/// Four random words from four counters, such as vertex, step, seed and draw: `pcg4d` of Jarzynski and Olano, "Hash
/// Functions for GPU Rendering", Journal of Computer Graphics Techniques 9(3), 2020.
///
/// The four words can be used as four draws. Of each take the upper bits, as [`uniform`] does: the lowest five or so repeat
/// themselves along a sequence of one counter.
///
/// ```
/// use meshweft::{Int, random};
/// assert_ne!(random::hash([0, 0, 0, 0].map(Int)), random::hash([1, 0, 0, 0].map(Int)));
/// ```
#[inline(always)]
pub fn hash<I: Integer>(counters: [I; 4]) -> [I; 4] {
    let mix = |[mut x, mut y, mut z, mut w]: [I; 4]| {
        x = x + y * w;
        y = y + z * x;
        z = z + x * y;
        w = w + y * z;
        [x, y, z, w]
    };
    let spread = |v| v * I::lit(1_664_525) + I::lit(1_013_904_223);
    let fold = |v: I| v ^ v.shift_right_logical(16);
    let [x, y, z, w] = counters;
    let [x, y, z, w] = mix([spread(x), spread(y), spread(z), spread(w)]);
    mix([fold(x), fold(y), fold(z), fold(w)])
}

/// A random number, uniform in [0, 1): a multiple of 2^-24, the same in every precision. Zero on integers.
///
/// ```
/// use meshweft::{Int, random};
/// let counters = [17, 4, 0, 0].map(Int);
/// assert_eq!(f64::from(random::uniform::<f32>(counters)), random::uniform::<f64>(counters));
/// ```
#[inline(always)]
pub fn uniform<R: Real>(counters: [R::Int; 4]) -> R {
    unit(hash(counters)[0])
}

/// A random number, normal with mean 0 and variance 1, by the method of Box and Muller (1958). It is at most 5.8 in size.
///
/// Its bits are the same on all CPUs; a GPU differs by what its logarithm and cosine are rounded to.
///
/// ```
/// use meshweft::{Int, random};
/// let mean = (0..10_000).map(|v| random::normal::<f64>([v, 0, 0, 0].map(Int))).sum::<f64>() / 10_000.0;
/// assert!(mean.abs() < 0.03, "{mean}");
/// ```
#[inline(always)]
pub fn normal<R: Real>(counters: [R::Int; 4]) -> R {
    let [radius, angle, ..] = hash(counters);
    // One minus a number below one is never zero, whose logarithm is infinite.
    let square = R::lit(-2.0) * (R::lit(1.0) - unit::<R>(radius)).ln();
    square.sqrt() * (R::lit(std::f64::consts::TAU) * unit(angle)).cos()
}

/// The upper 24 bits of a word as a fraction: what a float of 32 bits holds exactly.
#[inline(always)]
fn unit<R: Real>(word: R::Int) -> R {
    R::from_int(word.shift_right_logical(8)) * R::lit(1.0 / f64::from(1 << 24))
}
