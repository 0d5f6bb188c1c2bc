//! Symmetric 3×3 matrices, as a vertex's share of a Hessian.

use meshweft::nalgebra::Vector3;
use meshweft::{Real, record};

record! {
    /// A symmetric 3×3 matrix.
    pub struct Symmetric<R> {
        /// Row x, column x.
        xx: R,
        /// Row y, column y.
        yy: R,
        /// Row z, column z.
        zz: R,
        /// Row x, column y.
        xy: R,
        /// Row x, column z.
        xz: R,
        /// Row y, column z.
        yz: R,
    }
}

impl<R: Real> Symmetric<R> {
    /// `s` times the identity.
    #[inline(always)]
    pub fn diagonal(s: R) -> Self {
        let zero = R::lit(0.0);
        Symmetric { xx: s, yy: s, zz: s, xy: zero, xz: zero, yz: zero }
    }

    /// Adds `s` times the identity.
    #[inline(always)]
    pub fn plus_diagonal(self, s: R) -> Self {
        Symmetric { xx: self.xx + s, yy: self.yy + s, zz: self.zz + s, ..self }
    }

    /// Adds `s a aᵀ`.
    #[inline(always)]
    pub fn plus_outer(self, s: R, a: Vector3<R>) -> Self {
        let b = a * s;
        Symmetric {
            xx: self.xx + a.x * b.x,
            yy: self.yy + a.y * b.y,
            zz: self.zz + a.z * b.z,
            xy: self.xy + a.x * b.y,
            xz: self.xz + a.x * b.z,
            yz: self.yz + a.y * b.z,
        }
    }

    /// Adds `a pᵀ + b qᵀ`, which is to be symmetric.
    #[inline(always)]
    pub fn plus_products(self, [a, b]: [Vector3<R>; 2], [p, q]: [Vector3<R>; 2]) -> Self {
        Symmetric {
            xx: self.xx + (a.x * p.x + b.x * q.x),
            yy: self.yy + (a.y * p.y + b.y * q.y),
            zz: self.zz + (a.z * p.z + b.z * q.z),
            xy: self.xy + (a.x * p.y + b.x * q.y),
            xz: self.xz + (a.x * p.z + b.x * q.z),
            yz: self.yz + (a.y * p.z + b.y * q.z),
        }
    }

    /// All entries times `s`.
    #[inline(always)]
    pub fn scaled(self, s: R) -> Self {
        let Symmetric { xx, yy, zz, xy, xz, yz } = self;
        Symmetric { xx: xx * s, yy: yy * s, zz: zz * s, xy: xy * s, xz: xz * s, yz: yz * s }
    }

    /// The product with a vector.
    #[inline(always)]
    pub fn times(self, a: Vector3<R>) -> Vector3<R> {
        let Symmetric { xx, yy, zz, xy, xz, yz } = self;
        Vector3::new(xx * a.x + xy * a.y + xz * a.z, xy * a.x + yy * a.y + yz * a.z, xz * a.x + yz * a.y + zz * a.z)
    }

    /// Solves `self x = b` for `x` by cofactors; `self` is positive definite.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::Symmetric;
    /// assert_eq!(Symmetric::diagonal(4.0).solve(Vector3::new(8.0, 2.0, 0.0)), Vector3::new(2.0, 0.5, 0.0));
    /// ```
    #[inline(always)]
    pub fn solve(self, b: Vector3<R>) -> Vector3<R> {
        let Symmetric { xx, yy, zz, xy, xz, yz } = self;
        let (cxx, cxy, cxz) = (yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy);
        let (cyy, cyz, czz) = (xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy);
        let inverse = R::lit(1.0) / (xx * cxx + xy * cxy + xz * cxz);
        Vector3::new(
            (cxx * b.x + cxy * b.y + cxz * b.z) * inverse,
            (cxy * b.x + cyy * b.y + cyz * b.z) * inverse,
            (cxz * b.x + cyz * b.y + czz * b.z) * inverse,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solving_undoes_multiplying() {
        let a = Symmetric::diagonal(2.0f64).plus_outer(3.0, Vector3::new(1.0, -2.0, 0.5)).plus_diagonal(0.25);
        let x = Vector3::new(0.3, -1.0, 2.0);
        assert!((a.solve(a.times(x)) - x).norm() < 1e-14);
        assert!((a.times(x) - (x * 2.25 + Vector3::new(1.0, -2.0, 0.5) * 3.0 * 3.3)).norm() < 1e-14);
    }
}
