// Exponential, sine and cosine of floats to a few units in the last place: WGSL's own may be off by 2^-11.
//
// Reduction by parts of the constant (Cody and Waite, Software Manual for the Elementary Functions, 1980), then Taylor
// polynomials, which on the reduced intervals are exact to less than a float's rounding.

fn exp_exact(x: f32) -> f32 {
    // Beyond these the result is infinite, or less than half of the smallest float.
    let limited = clamp(x, -104.0, 89.0);
    let n = round(limited * 1.44269504f);
    let r = (limited - n * 0.693359375f) + n * 2.12194440e-4f;
    let p = 1.0 + r * (1.0 + r * (0.5 + r * (0.16666667f + r * (0.041666668f + r * (0.008333334f + r * (0.0013888889f + r * 0.00019841270f))))));
    // In two factors: either alone may leave the range of normal floats.
    let half = i32(n) / 2;
    // A clamp may lose what is no number.
    let is_number = (bitcast<u32>(x) & 0x7fffffffu) <= 0x7f800000u;
    return select(x, p * power_of_two(half) * power_of_two(i32(n) - half), is_number);
}

fn power_of_two(n: i32) -> f32 {
    return bitcast<f32>(u32(n + 127) << 23u);
}

// Quarter turns nearest to an angle, and what is left of it: exact to a float below 10^5 in size.
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

// The root of a whole number, rounded down; zero of a negative one.
fn sqrt_whole(x: i32) -> i32 {
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
