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

    /// The sum of both.
    #[inline(always)]
    pub fn plus(self, b: Self) -> Self {
        let a = self;
        Symmetric {
            xx: a.xx + b.xx,
            yy: a.yy + b.yy,
            zz: a.zz + b.zz,
            xy: a.xy + b.xy,
            xz: a.xz + b.xz,
            yz: a.yz + b.yz,
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

impl Symmetric<f64> {
    /// The largest eigenvalue, and a unit eigenvector whose largest component is positive, with the bits of any machine.
    ///
    /// Source: the cyclic Jacobi method, Golub and Van Loan, Matrix Computations, 2013, section 8.5.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::Symmetric;
    /// let (value, along) = Symmetric::diagonal(2.0).plus_outer(5.0, Vector3::new(0.0, -0.6, 0.8)).principal();
    /// assert!((value - 7.0).abs() < 1e-12 && (along - Vector3::new(0.0, -0.6, 0.8)).norm() < 1e-12);
    /// ```
    pub fn principal(self) -> (f64, Vector3<f64>) {
        let Symmetric { xx, yy, zz, xy, xz, yz } = self;
        let (mut a, mut vectors) =
            ([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        // It converges quadratically: after six rounds nothing is left beside the diagonal.
        for _ in 0..6 {
            for [p, q] in [[0, 1], [0, 2], [1, 2]] {
                if a[p][q] == 0.0 {
                    continue;
                }
                let tau = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                let s = t * c;
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let [of_p, of_q] = [a[p], a[q]];
                for k in 0..3 {
                    (a[p][k], a[q][k]) = (c * of_p[k] - s * of_q[k], s * of_p[k] + c * of_q[k]);
                }
                for row in &mut vectors {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
            }
        }
        let largest = (1..3).fold(0, |best, k| if a[k][k] > a[best][best] { k } else { best });
        let along = Vector3::from(vectors.map(|row| row[largest]));
        let leading = along.iter().fold(0.0f64, |lead, &x| if x.abs() > lead.abs() { x } else { lead });
        (a[largest][largest], along * leading.signum())
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
        let (value, along) = a.principal();
        assert!((a.times(along) - along * value).norm() < 1e-13 * value && (along.norm() - 1.0).abs() < 1e-14);
        assert!(value > 15.0, "3 times 5.25 along the vector alone");
        assert!((a.times(x) - (x * 2.25 + Vector3::new(1.0, -2.0, 0.5) * 3.0 * 3.3)).norm() < 1e-14);
    }
}
