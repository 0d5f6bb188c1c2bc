// Functions of floats to a few units in the last place, where WGSL's own may be off by much more (2^-11 and worse), and what
// integers need. A module takes the paragraphs whose first words it names, and those that they name in turn: callees stand
// before callers, and each paragraph declares what belongs together.
//
// Unless said otherwise a function is that of FreeBSD's msun, by Ian Lance Taylor after Sun's fdlibm (1993), as the crate
// `libm` and so the CPUs compute it; where only divisions and roots are rounded otherwise on a GPU, results differ by those
// roundings alone. Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunPro, a Sun Microsystems,
// Inc. business. Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is
// preserved.

// NaN and infinity, from a float that is not known before: WGSL has no literals of either, and refuses constants that are.
fn nan_exact(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u);
}
fn infinity_exact(x: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(x) & 0u) | 0x7f800000u);
}
fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// The upper half of a float's digits: products of two such are exact.
fn upper_half(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}

fn power_of_two(n: i32) -> f32 {
    return bitcast<f32>(u32(n + 127) << 23u);
}

// Exponential: reduction by parts of the constant (Cody and Waite, Software Manual for the Elementary Functions, 1980), then a
// Taylor polynomial, which on the reduced interval is exact to less than a float's rounding.
fn exp_exact(x: f32) -> f32 {
    // Beyond these the result is infinite, or less than half of the smallest float.
    let limited = clamp(x, -104.0, 89.0);
    let n = round(limited * 1.44269504f);
    let r = (limited - n * 0.693359375f) + n * 2.12194440e-4f;
    let p = 1.0 + r * (1.0 + r * (0.5 + r * (0.16666667f + r * (0.041666668f + r * (0.008333334f + r * (0.0013888889f + r * 0.00019841270f))))));
    // In two factors: either alone may leave the range of normal floats.
    let half = i32(n) / 2;
    // A clamp may lose a NaN.
    return select(p * power_of_two(half) * power_of_two(i32(n) - half), x, is_nan(x));
}

// Sine and cosine, likewise. Quarter turns nearest to an angle, and what is left of it: exact to a float below 10^5 in size.
struct Turned {
    quarters: i32,
    rest: f32,
}
fn turned(x: f32) -> Turned {
    let n = round(x * 0.63661977f);
    let rest = ((x - n * 1.5703125f) - n * 4.8375129699707031e-4f) - n * 7.5497899548918821e-8f;
    return Turned(i32(clamp(n, -1e9, 1e9)), rest);
}
fn sine_of_rest(r: f32) -> f32 {
    let s = r * r;
    return r + r * s * (-0.16666667f + s * (0.008333334f + s * (-0.00019841270f + s * 2.7557319e-6f)));
}
fn cosine_of_rest(r: f32) -> f32 {
    let s = r * r;
    return 1.0 - s * (0.5 - s * (0.041666668f - s * (0.0013888889f - s * (2.4801587e-5f - s * 2.7557319e-7f))));
}
fn sine_of(t: Turned) -> f32 {
    let value = select(sine_of_rest(t.rest), cosine_of_rest(t.rest), (t.quarters & 1) != 0);
    return select(value, -value, (t.quarters & 2) != 0);
}

fn sin_exact(x: f32) -> f32 {
    return sine_of(turned(x));
}

fn cos_exact(x: f32) -> f32 {
    let t = turned(x);
    return sine_of(Turned(t.quarters + 1, t.rest));
}

// By how much the bits of a subnormal float are shifted to those of a normal one; nothing for others. A device may take subnormal
// numbers for zero in arithmetic and comparisons, but not as integers.
fn shift_of_subnormal(bits: u32) -> u32 {
    return select(0u, countLeadingZeros(bits) - 8u, bits < 0x00800000u);
}

// Natural logarithm: e_logf.c. x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), then a series in f / (2 + f).
fn ln_exact(x: f32) -> f32 {
    let given = bitcast<u32>(x);
    let shift = shift_of_subnormal(given);
    let bits = (given << shift) + (0x3f800000u - 0x3f3504f3u);
    let k = f32(i32(bits >> 23u) - 127 - i32(shift));
    let f = bitcast<f32>((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let r = z * (0.66666662693f + w * 0.28498786688f) + w * (0.40000972152f + w * 0.24279078841f);
    let half_square = 0.5 * f * f;
    let result = s * (half_square + r) + k * 9.0580006145e-06f - half_square + f + k * 6.9313812256e-01f;
    if is_nan(x) || given == 0x7f800000u {
        return x;
    }
    if (given << 1u) == 0u {
        return -infinity_exact(x);
    }
    if given >> 31u == 1u {
        return nan_exact(x);
    }
    return result;
}

// The logarithm of a positive finite float, by its bits, to base 2, as the sum of a float with half of the digits and a small one.
struct Log2 {
    high: f32,
    low: f32,
}
fn log2_of(given: u32, is_next_to_one: bool) -> Log2 {
    if is_next_to_one {
        let t = bitcast<f32>(given) - 1.0;
        let w = (t * t) * (0.5 - t * (0.333333333333f - t * 0.25));
        let u = 1.4426879883f * t;
        let v = t * 7.0526075433e-06f - w * 1.4426950216f;
        let high = upper_half(u + v);
        return Log2(high, v - (high - u));
    }
    let shift = shift_of_subnormal(given);
    var bits = i32(given << shift);
    var n = (bits >> 23u) - 127 - i32(shift);
    let j = bits & 0x007fffff;
    bits = j | 0x3f800000;
    // Whether the base of the series is 3/2, between sqrt(3/2) and sqrt(3), or 1.
    let is_upper = j > 0x1cc471 && j < 0x5db3d7;
    if j >= 0x5db3d7 {
        n += 1;
        bits -= 0x00800000;
    }
    let base = select(1.0, 1.5, is_upper);
    let log_high = select(0.0, 5.84960938e-01f, is_upper);
    let log_low = select(0.0, 1.56322085e-06f, is_upper);
    let a = bitcast<f32>(bits);
    // s = (a - base) / (a + base) in two parts.
    let u = a - base;
    let v = 1.0 / (a + base);
    let s = u * v;
    let s_high = upper_half(s);
    let t_high = bitcast<f32>((((bitcast<u32>(bits) >> 1u) & 0xfffff000u) | 0x20000000u) + 0x00400000u + select(0u, 0x00200000u, is_upper));
    let t_low = a - (t_high - base);
    let s_low = v * ((u - s_high * t_high) - s_high * t_low);
    let square = s * s;
    var r = square * square * (6.0000002384e-01f + square * (4.2857143283e-01f + square * (3.3333334327e-01f + square * (2.7272811532e-01f + square * (2.3066075146e-01f + square * 2.0697501302e-01f)))));
    r += s_low * (s_high + s);
    let high_square = s_high * s_high;
    let three_high = upper_half(3.0 + high_square + r);
    let three_low = r - ((three_high - 3.0) - high_square);
    let product = s_high * three_high;
    let rest = s_low * three_high + three_low * s;
    let p_high = upper_half(product + rest);
    let p_low = rest - (p_high - product);
    let z_high = 9.6191406250e-01f * p_high;
    let z_low = -1.1736857402e-04f * p_high + p_low * 9.6179670095e-01f + log_low;
    let t = f32(n);
    let high = upper_half(((z_high + z_low) + log_high) + t);
    return Log2(high, z_low - (((high - t) - log_high) - z_high));
}

// Power: e_powf.c. The logarithm to base 2 and its product with the exponent are sums of two floats, so that the power of a
// large result keeps its digits.
fn pow_exact(x: f32, y: f32) -> f32 {
    let sign_x = bitcast<u32>(x) >> 31u;
    let ix = bitcast<i32>(x) & 0x7fffffff;
    let iy = bitcast<i32>(y) & 0x7fffffff;
    let is_negative = bitcast<i32>(y) < 0;
    let one = 0x3f800000;
    let infinite = 0x7f800000;
    if iy == 0 || bitcast<i32>(x) == one {
        return 1.0;
    }
    if ix > infinite || iy > infinite {
        return nan_exact(x);
    }
    if bitcast<i32>(y) == one {
        return x;
    }
    // Whether the exponent is no integer (0), an odd one (1), an even one (2).
    var parity = 0;
    if iy >= 0x4b800000 {
        parity = 2;
    } else if iy >= one {
        let shift = u32(23 - ((iy >> 23u) - 127));
        let j = iy >> shift;
        if (j << shift) == iy {
            parity = 2 - (j & 1);
        }
    }
    if iy == infinite {
        if ix == one {
            return 1.0;
        }
        return select(0.0, infinity_exact(x), (ix > one) != is_negative);
    }
    let is_odd_of_negative = sign_x == 1u && parity == 1;
    if ix == 0 || ix == infinite {
        let size = select(0.0, infinity_exact(x), (ix == 0) == is_negative);
        return select(size, -size, is_odd_of_negative);
    }
    if sign_x == 1u && parity == 0 {
        return nan_exact(x);
    }
    let sign = select(1.0, -1.0, is_odd_of_negative);
    if ix == one {
        return sign;
    }
    // Where the exponent is that large, all but bases next to one leave the range of floats; those stay below 2^27 2^-20.
    let too_far = iy > 0x4d000000 && (ix < 0x3f7ffff8 || ix > 0x3f800007);
    let grows = (ix > one) != is_negative;
    if too_far {
        return sign * select(0.0, infinity_exact(x), grows);
    }
    let log = log2_of(u32(ix), iy > 0x4d000000);
    // (y1 + y2) (t1 + t2)
    let y1 = upper_half(y);
    let low = (y - y1) * log.high + y * log.low;
    let high = y1 * log.high;
    let z = low + high;
    if z >= 128.0 && (z > 128.0 || low + 4.2995665694e-08f > z - high) {
        return sign * infinity_exact(x);
    }
    if z < -150.0 {
        return sign * 0.0;
    }
    // 2^n 2^(what is left)
    let n = select(0.0, floor(z + 0.5), abs(z) > 0.5);
    let rest = high - n;
    let t = bitcast<f32>(bitcast<u32>(low + rest) & 0xffff8000u);
    let u = t * 6.93145752e-01f;
    let v = (low - (t - rest)) * 6.9314718246e-01f + t * 1.42860654e-06f;
    let r = u + v;
    let w = v - (r - u);
    let s = r * r;
    let p = r - s * (1.6666667163e-01f + s * (-2.7777778450e-03f + s * (6.6137559770e-05f + s * (-1.6533901999e-06f + s * 4.1381369442e-08f))));
    let q = 1.0 - (((r * p) / (p - 2.0) - (w + r * w)) - r);
    // In two factors: either alone may leave the range of normal floats.
    let half = i32(n) / 2;
    return sign * (q * power_of_two(half) * power_of_two(i32(n) - half));
}

// Angle of a cosine: e_acosf.c.
fn acos_exact(x: f32) -> f32 {
    let size = abs(x);
    if is_nan(x) || size > 1.0 {
        return nan_exact(x);
    }
    if size < 0.5 {
        return 1.5707962513f - (x - (7.5497894159e-08f - x * acos_series(x * x)));
    }
    let z = (1.0 - size) * 0.5;
    let s = sqrt(z);
    if x < 0.0 {
        return 2.0 * (1.5707962513f - (s + (acos_series(z) * s - 7.5497894159e-08f)));
    }
    if z == 0.0 {
        return 0.0;
    }
    let high = upper_half(s);
    let rest = (z - high * high) / (s + high);
    return 2.0 * (high + (acos_series(z) * s + rest));
}
fn acos_series(z: f32) -> f32 {
    return z * (1.6666586697e-01f + z * (-4.2743422091e-02f + z * -8.6563630030e-03f)) / (1.0 + z * -7.0662963390e-01f);
}

// Angle of a point: e_atan2f.c and s_atanf.c, with the smaller coordinate over the larger, so that no quotient overflows.
fn atan2_exact(y: f32, x: f32) -> f32 {
    if is_nan(x) || is_nan(y) {
        return nan_exact(x);
    }
    let larger = max(abs(x), abs(y));
    let is_infinite = bitcast<u32>(larger) == 0x7f800000u;
    // Quotients of very large and very small floats may be off: both are moved into the middle first.
    let scale = select(select(1.0, 16777216.0, larger < 1e-25), 5.9604645e-8f, larger > 1e25);
    let scaled = larger * scale;
    var quotient = (min(abs(x), abs(y)) * scale) / select(scaled, 1.0, scaled == 0.0);
    if is_infinite {
        quotient = select(0.0, 1.0, abs(x) == abs(y));
    }
    var angle = atan_below_one(quotient);
    if abs(y) > abs(x) {
        angle = 1.5707962513f - (angle - 7.5497894159e-08f);
    }
    if (bitcast<u32>(x) >> 31u) == 1u {
        angle = 3.1415927410f - (angle + 8.7422776573e-08f);
    }
    return select(angle, -angle, (bitcast<u32>(y) >> 31u) == 1u);
}
fn atan_below_one(x: f32) -> f32 {
    var high = 0.0;
    var low = 0.0;
    var r = x;
    if x >= 0.6875 {
        high = 7.8539812565e-01f;
        low = 3.7748947079e-08f;
        r = (x - 1.0) / (x + 1.0);
    } else if x >= 0.4375 {
        high = 4.6364760399e-01f;
        low = 5.0121582440e-09f;
        r = (2.0 * x - 1.0) / (2.0 + x);
    }
    let z = r * r;
    let w = z * z;
    let s = z * (3.3333328366e-01f + w * (1.4253635705e-01f + w * 6.1687607318e-02f)) + w * (-1.9999158382e-01f + w * -1.0648017377e-01f);
    return high - ((r * s - low) - r);
}

// Hyperbolic tangent: a polynomial for small numbers, else by the exponential; tanhf.c of Moshier's Cephes (1989).
fn tanh_exact(x: f32) -> f32 {
    let size = abs(x);
    if size < 0.625 {
        let z = x * x;
        return x + x * z * (-3.33332819422e-1f + z * (1.33314422036e-1f + z * (-5.37397155531e-2f + z * (2.06390887954e-2f + z * -5.70498872745e-3f))));
    }
    // From 10 on it is one to the last bit.
    let value = 1.0 - 2.0 / (exp_exact(2.0 * min(size, 10.0)) + 1.0);
    return select(select(value, -value, x < 0.0), x, is_nan(x));
}

// x - y floor(x / y) by IEEE's quotient: a GPU's may be on the wrong side of an integer, where the remainder jumps.
fn rem_exact(x: f32, y: f32) -> f32 {
    let n = floor(x / y);
    let rest = x - y * n;
    // Parts of y that the quotient is above and below n; what is less than its rounding is none.
    let part = rest / y;
    let rounding = (abs(n) + 1.0) * 1.1920929e-7f;
    let nearest = select(select(n, n - 1.0, part < -rounding), n + 1.0, part >= 1.0 - rounding);
    return x - y * nearest;
}

// The integer nearest to a float towards zero, kept in range; zero of NaN.
fn integer_of(x: f32) -> i32 {
    let limited = i32(clamp(x, -2147483648.0, 2147483520.0));
    return select(select(limited, 2147483647, x >= 2147483648.0), 0, is_nan(x));
}

// The bits of an integer, where a record has a float.
fn slot_of(x: i32) -> f32 {
    return bitcast<f32>(x);
}

// The root of an integer, rounded down; zero of a negative one.
fn sqrt_integer(x: i32) -> i32 {
    let y = max(x, 0);
    // A float's root is off by one at most; 46340 is the root of the largest number.
    var root = min(i32(sqrt(f32(y))), 46340);
    if root * root > y {
        root -= 1;
    }
    if root < 46340 && (root + 1) * (root + 1) <= y {
        root += 1;
    }
    return root;
}

// The remainder that has the sign of the divisor; by zero the number itself.
fn rem_integer(x: i32, y: i32) -> i32 {
    if y == 0 {
        return x;
    }
    let rest = x % y;
    return select(rest, rest + y, rest != 0 && (rest < 0) != (y < 0));
}
