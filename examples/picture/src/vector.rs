//! Vectors of three `f32`.

/// A vector, or a color in linear light.
pub(super) type Vector = [f32; 3];

#[inline]
pub(super) fn add(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

#[inline]
pub(super) fn sub(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[inline]
pub(super) fn mul(a: Vector, b: Vector) -> Vector {
    [a[0] * b[0], a[1] * b[1], a[2] * b[2]]
}

#[inline]
pub(super) fn scale(a: Vector, s: f32) -> Vector {
    [a[0] * s, a[1] * s, a[2] * s]
}

/// `a` at 0, `b` at 1.
#[inline]
pub(super) fn mix(a: Vector, b: Vector, t: f32) -> Vector {
    add(scale(a, 1.0 - t), scale(b, t))
}

#[inline]
pub(super) fn dot(a: Vector, b: Vector) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[inline]
pub(super) fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[inline]
pub(super) fn length(a: Vector) -> f32 {
    dot(a, a).sqrt()
}

/// The vector of length 1 in the same direction; up for one too short to have a direction.
#[inline]
pub(super) fn unit(a: Vector) -> Vector {
    let l = length(a);
    if l > 1e-30 && l.is_finite() { scale(a, 1.0 / l) } else { [0.0, 0.0, 1.0] }
}

/// Sum of `a[k]` times `w[k]`.
#[inline]
pub(super) fn blend(a: [Vector; 3], w: Vector) -> Vector {
    add(add(scale(a[0], w[0]), scale(a[1], w[1])), scale(a[2], w[2]))
}

/// 0 below `low`, 1 above `high`, an S-shaped curve between them.
#[inline]
pub(super) fn smoothstep(low: f32, high: f32, x: f32) -> f32 {
    let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// What the corners of a triangle have.
#[inline]
pub(super) fn corners(of: &[Vector], [a, b, c]: [u32; 3]) -> [Vector; 3] {
    [of[a as usize], of[b as usize], of[c as usize]]
}
