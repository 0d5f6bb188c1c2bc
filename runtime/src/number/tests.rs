//! Every function gives the same bits on lanes as on scalars [C5]; random numbers are as random as they claim.

use super::lanes::{F32x8, F32x16, F64x4, F64x8};
use super::*;

/// Ordinary numbers and every special one; exact in 32 bits.
fn numbers() -> Vec<f64> {
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 3.4028234663852886e38, 1.401298464324817e-45];
    let integers = [1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 2_147_483_648.0, -2_147_483_648.0, 2_147_483_520.0, 1e20];
    let ordinary =
        [0.3, -0.7, 1.5, 2.5, -2.5, 7.9, 88.0, -103.0, 1e-5, 123.456, 16_777_217.0, 0.999_999_94, -0.999_999_94];
    special.into_iter().chain(integers).chain(ordinary).map(|x: f64| f64::from(x as f32)).collect()
}

type Unary<R> = (&'static str, fn(R) -> R);
type Binary<R> = (&'static str, fn(R, R) -> R);

fn unary<R: Real>() -> Vec<Unary<R>> {
    vec![
        ("neg", |x| -x),
        ("sqrt", R::sqrt),
        ("abs", R::abs),
        ("floor", R::floor),
        ("exp", R::exp),
        ("ln", R::ln),
        ("sin", R::sin),
        ("cos", R::cos),
        ("acos", R::acos),
        ("tanh", R::tanh),
        ("sign", R::sign),
        ("powi 0", |x| x.powi(0)),
        ("powi 7", |x| x.powi(7)),
        ("powi -3", |x| x.powi(-3)),
        ("to_int", |x| R::from_int(x.to_int())),
        ("hold_int", |x| R::from_int(R::hold_int(x.to_int()).held_int())),
        ("shifts", |x| {
            let i = x.to_int();
            R::from_int(
                (i.shift_left(3) ^ i.shift_right(5)) + (i.shift_right_logical(7) & -i) * (i | R::Int::lit(5)) - i,
            )
        }),
        ("uniform", |x| random::uniform([x.to_int(), R::Int::lit(1), R::Int::lit(2), R::Int::lit(3)])),
        ("normal", |x| random::normal([x.to_int(), R::Int::lit(1), R::Int::lit(2), R::Int::lit(3)])),
    ]
}

fn binary<R: Real>() -> Vec<Binary<R>> {
    fn truth<R: Real>(mask: R::Mask) -> R {
        R::select(mask, R::lit(1.0), R::lit(-1.0))
    }
    fn of_integers<R: Real>(x: R, y: R, mask: impl Fn(R::Int, R::Int) -> R::Mask) -> R {
        // One mask selects among integers and among reals.
        let mask = mask(x.to_int(), y.to_int());
        R::from_int(R::Int::select(mask, R::Int::lit(5), R::Int::lit(7))) + truth(mask)
    }
    vec![
        ("+", |x, y| x + y),
        ("-", |x, y| x - y),
        ("*", |x, y| x * y),
        ("/", |x, y| x / y),
        ("min", R::min),
        ("max", R::max),
        ("rem", R::rem),
        ("pow", R::pow),
        ("atan2", R::atan2),
        ("less", |x, y| truth(x.less(y))),
        ("greater", |x, y| truth(x.greater(y))),
        ("at_most", |x, y| truth(x.at_most(y))),
        ("at_least", |x, y| truth(x.at_least(y))),
        ("equals", |x, y| truth(x.equals(y))),
        ("masks", |x, y| truth((x.less(y) | x.equals(y)) & !y.equals(R::lit(2.0)))),
        ("less of integers", |x, y| of_integers(x, y, R::Int::less)),
        ("greater of integers", |x, y| of_integers(x, y, R::Int::greater)),
        ("at_most of integers", |x, y| of_integers(x, y, R::Int::at_most)),
        ("at_least of integers", |x, y| of_integers(x, y, R::Int::at_least)),
        ("equals of integers", |x, y| of_integers(x, y, R::Int::equals)),
    ]
}

/// Compares the lanes of `wide` with what `one` is for each.
fn compare<L: Lanes>(name: &str, wide: L, inputs: &[f64], one: impl Fn(f64) -> L::Scalar) {
    let mut lanes = vec![L::Scalar::from_f64(0.0); L::WIDTH];
    wide.store(&mut lanes);
    for (lane, &x) in lanes.into_iter().zip(inputs) {
        let (lane, one) = (lane, one(x));
        // The sign of a zero counts, the bits of a NaN do not.
        let bits = |x: L::Scalar| (x.canonical_bits(), (L::Scalar::from_f64(1.0) / x).canonical_bits());
        assert_eq!(bits(lane), bits(one), "{name} of {x:e} on {} lanes: {lane:?} and {one:?}", L::WIDTH);
    }
}

fn check<L: Lanes>() {
    let scalar = |x: f64| L::Scalar::from_f64(x);
    let numbers = numbers();
    let packs: Vec<Vec<f64>> =
        (0..numbers.len()).map(|i| (0..L::WIDTH).map(|k| numbers[(i + k) % numbers.len()]).collect()).collect();
    for pack in &packs {
        let wide = L::from_fn(|i| scalar(pack[i]));
        for ((name, on_lanes), (_, on_scalars)) in unary::<L>().into_iter().zip(unary::<L::Scalar>()) {
            compare(name, on_lanes(wide), pack, |x| on_scalars(scalar(x)));
        }
        for &y in &numbers {
            for ((name, on_lanes), (_, on_scalars)) in binary::<L>().into_iter().zip(binary::<L::Scalar>()) {
                let other = L::from_fn(|_| scalar(y));
                compare(name, on_lanes(wide, other), pack, |x| on_scalars(scalar(x), scalar(y)));
            }
        }
    }
}

#[test]
fn every_function_gives_the_same_bits_on_lanes_as_on_scalars() {
    check::<F32x8>();
    check::<F32x16>();
    check::<F64x4>();
    check::<F64x8>();
    check::<<Int as Number>::Half>();
    check::<<Int as Number>::Full>();
}

#[test]
fn special_values_are_those_of_the_table() {
    let nan = f64::NAN;
    for (name, found, expected) in [
        ("ln 0", Real::ln(0.0), f64::NEG_INFINITY),
        ("ln -1", Real::ln(-1.0), nan),
        ("acos 2", Real::acos(2.0), nan),
        ("acos -1", Real::acos(-1.0), std::f64::consts::PI),
        ("atan2 0 -1", Real::atan2(0.0, -1.0), std::f64::consts::PI),
        ("tanh inf", Real::tanh(f64::INFINITY), 1.0),
        ("pow 0 0", Real::pow(0.0, 0.0), 1.0),
        ("pow -8 1/3", Real::pow(-8.0, 1.0 / 3.0), nan),
        ("rem -1 3", Real::rem(-1.0, 3.0), 2.0),
        ("rem 1 -3", Real::rem(1.0, -3.0), -2.0),
        ("rem 1 0", Real::rem(1.0, 0.0), nan),
        ("floor -0.5", Real::floor(-0.5), -1.0),
        ("sign NaN", Real::sign(nan), nan),
        ("sign -7", Real::sign(-7.0), -1.0),
        ("sign -0", 1.0 / Real::sign(-0.0), f64::NEG_INFINITY),
        ("powi min", Real::powi(1.0, i32::MIN), 1.0),
    ] {
        assert_eq!(Number::canonical_bits(found), Number::canonical_bits(expected), "{name}: {found}");
    }
    assert!(!(Real::equals(nan, nan) | Real::at_most(nan, 1.0) | Real::at_least(nan, 1.0) | Real::greater(nan, 1.0)));
    let int = |a: i32, b: i32| Real::rem(Int(a), Int(b)).0;
    assert_eq!([int(7, 3), int(-7, 3), int(7, -3), int(-7, -3), int(7, 0), int(i32::MIN, -1)], [1, 2, -2, -1, 7, 0]);
    assert_eq!(
        [Real::ln(Int(0)), Real::ln(Int(-1)), Real::ln(Int(3)), Real::pow(Int(2), Int(40))].map(|x| x.0),
        [i32::MIN, 0, 1, i32::MAX]
    );
    assert_eq!((Int(-8).shift_right(1), Int(-8).shift_right_logical(1)), (Int(-4), Int(0x7fff_fffc)));
}

#[test]
fn integers_keep_their_bits_in_the_slot_of_a_real() {
    for bits in (0..32).map(|k| 1 << k).chain([0, -1, i32::MIN, i32::MAX, 0x7f80_0001, 0x7fc0_0000, -0x40_0000]) {
        assert_eq!(<f32 as Real>::hold_int(Int(bits)).held_int(), Int(bits));
        assert_eq!(<f64 as Real>::hold_int(Int(bits)).held_int(), Int(bits));
        assert_eq!(<f64 as Real>::hold_int(Int(bits)), f64::from(bits));
        let lanes = Integer::lit(bits);
        assert_eq!(F32x16::hold_int(lanes).held_int(), lanes);
        let lanes = Integer::lit(bits);
        assert_eq!(F64x4::hold_int(lanes).held_int(), lanes);
    }
}

/// pcg4d as its authors wrote it, on unsigned words.
fn pcg4d(v: [u32; 4]) -> [u32; 4] {
    let [mut x, mut y, mut z, mut w] = v.map(|v| v.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    for round in 0..2 {
        x = x.wrapping_add(y.wrapping_mul(w));
        y = y.wrapping_add(z.wrapping_mul(x));
        z = z.wrapping_add(x.wrapping_mul(y));
        w = w.wrapping_add(y.wrapping_mul(z));
        if round == 0 {
            [x, y, z, w] = [x, y, z, w].map(|v| v ^ (v >> 16));
        }
    }
    [x, y, z, w]
}

#[test]
fn hashes_are_those_of_pcg4d() {
    let hash = |v: [u32; 4]| random::hash(v.map(|v| Int(v.cast_signed()))).map(|i| i.0.cast_unsigned());
    for i in 0..1000u32 {
        let v = [i, i.wrapping_mul(0x9e37_79b9), !i, 7];
        assert_eq!(hash(v), pcg4d(v));
    }
    // Known values, computed by a second implementation.
    assert_eq!(hash([0, 0, 0, 0]), [0x0f02_f829, 0x2d56_8769, 0x32b0_c43b, 0xd325_48ea]);
    assert_eq!(hash([1, 2, 3, 4]), [0x3622_cd16, 0xf114_71d8, 0xe110_9b3f, 0x02b9_4c2f]);
}

#[test]
fn uniform_numbers_are_uniform_and_the_same_in_every_precision() {
    const N: i32 = 1 << 16;
    let counters = |i: i32| [i, i >> 8, 42, 0].map(Int);
    let draws: Vec<f64> = (0..N).map(|i| random::uniform::<f64>(counters(i))).collect();
    for (i, &x) in draws.iter().enumerate() {
        assert_eq!(f64::from(random::uniform::<f32>(counters(i as i32))), x);
        assert!((0.0..1.0).contains(&x));
    }
    let moment = |k: i32| draws.iter().map(|x| f64::powi(*x, k)).sum::<f64>() / f64::from(N);
    // Four standard deviations of the mean of N draws: 4 sqrt(variance / N).
    for (k, variance) in [(1, 1.0 / 12.0), (2, 4.0 / 45.0), (3, 9.0 / 112.0)] {
        let bound = 4.0 * f64::sqrt(variance / f64::from(N));
        assert!((moment(k) - 1.0 / f64::from(k + 1)).abs() < bound, "moment {k}: {}", moment(k));
    }
    // Chi-square of 256 cells has mean 255 and deviation sqrt(510) = 22.6: five deviations.
    let mut cells = [0u32; 256];
    draws.iter().for_each(|x| cells[(x * 256.0) as usize] += 1);
    let expected = f64::from(N) / 256.0;
    let chi_square: f64 = cells.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    assert!((255.0 - 113.0..255.0 + 113.0).contains(&chi_square), "{chi_square}");
    // Every bit from the eighth on of every word is set in half of the hashes, for neighbors in each counter. The lowest five
    // bits are not, along the third counter.
    for counter in 0..4 {
        let mut set = [[0u32; 32]; 4];
        for i in 0..N {
            let mut v = [3, 1, 4, 1].map(Int);
            v[counter] = Int(i);
            for (word, set) in random::hash(v).into_iter().zip(&mut set) {
                (0..32).for_each(|bit| set[bit] += u32::from(word.0 >> bit & 1 == 1));
            }
        }
        let bound = 5.0 * f64::sqrt(f64::from(N) / 4.0);
        assert!(
            set.iter().flat_map(|word| &word[8..]).all(|&n| (f64::from(n) - f64::from(N / 2)).abs() < bound),
            "counter {counter}"
        );
    }
}

#[test]
fn normal_numbers_have_the_moments_of_a_normal_distribution() {
    const N: i32 = 1 << 16;
    let draws: Vec<f64> = (0..N).map(|i| random::normal::<f64>([i, 1, 2, 3].map(Int))).collect();
    let moment = |k: i32| draws.iter().map(|x| f64::powi(*x, k)).sum::<f64>() / f64::from(N);
    // Variances of x, x², x³, x⁴ are 1, 2, 15, 96; four deviations of their means.
    for (k, expected, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
        let bound = 4.0 * f64::sqrt(variance / f64::from(N));
        assert!((moment(k) - expected).abs() < bound, "moment {k}: {}", moment(k));
    }
    assert!(draws.iter().all(|x| x.abs() < 5.8));
    let single = random::normal::<f32>([5, 1, 2, 3].map(Int));
    assert!((f64::from(single) - draws[5]).abs() < 1e-5);
}
