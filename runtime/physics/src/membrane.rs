//! Membranes of triangles.

use super::system::System;
use meshweft::nalgebra::{Vector3, Vector4};
use meshweft::{Real, record};

record! {
    /// A St. Venant–Kirchhoff membrane in plane stress.
    pub struct Membrane<R> {
        /// First Lamé parameter, N/m.
        lambda: R,
        /// Second Lamé parameter, N/m.
        mu: R,
    }
}

record! {
    /// A triangle at rest, seen from one corner.
    pub struct Panel<R> {
        /// Inverse of the matrix of the two edges from the corner, in the triangle's plane: entries 00, 01, 10, 11, 1/m.
        inverse: Vector4<R>,
        /// Area, m².
        area: R,
    }
}

/// Triangles flatter than this share of their first edge do nothing: their stiffness would grow without bound, and the
/// sweeps would no longer converge.
const FLATTEST: f64 = 1e-3;

impl Panel<f64> {
    /// A triangle of these corners at rest, seen from the first. One of hardly any area does nothing.
    pub fn at_rest(corners: [[f64; 3]; 3]) -> Panel<f64> {
        let [a, b, c] = corners;
        let [a, b, c] = [Vector3::from(a), Vector3::from(b), Vector3::from(c)];
        let (e1, e2) = (b - a, c - a);
        // In the plane: e1 = (l, 0), e2 = (p, q).
        let l = e1.norm();
        let p = e1.dot(&e2) / l;
        let q = (e2 - e1 * (p / l)).norm();
        let inverse = Vector4::new(1.0 / l, -p / (l * q), 0.0, 1.0 / q);
        if inverse.iter().all(|x| x.is_finite()) && q > FLATTEST * l && l > FLATTEST * q {
            Panel { inverse, area: 0.5 * l * q }
        } else {
            Panel { inverse: Vector4::zeros(), area: 0.0 }
        }
    }
}

impl<R: Real> Panel<R> {
    /// How the triangle is stretched when its corners are there: the two columns of the deformation gradient, of unit length at rest.
    #[inline(always)]
    pub fn stretch(&self, at: Vector3<R>, [b, c]: [Vector3<R>; 2]) -> [Vector3<R>; 2] {
        let (e1, e2) = (b - at, c - at);
        let m = self.inverse;
        [e1 * m.x + e2 * m.z, e1 * m.y + e2 * m.w]
    }
}

impl Membrane<f64> {
    /// The membrane of Young's modulus times thickness, N/m, and Poisson's ratio, below 1.
    ///
    /// Source: Timoshenko and Goodier, Theory of Elasticity, 1970, section 10.
    pub fn of(young: f64, poisson: f64) -> Membrane<f64> {
        Membrane { lambda: young * poisson / (1.0 - poisson * poisson), mu: young / (2.0 * (1.0 + poisson)) }
    }
}

impl<R: Real> Membrane<R> {
    /// Adds a triangle to a vertex at `at`: `force -= A F S g`, `H += A ((g·S g)₊ I + μ |g|² F Fᵀ + (μ + λ) (F g)(F g)ᵀ)`, with `g` the
    /// gradient of the vertex's hat function. The Hessian lacks the part that compression would make indefinite.
    #[inline(always)]
    pub fn add(&self, system: System<R>, at: Vector3<R>, others: [Vector3<R>; 2], rest: Panel<R>) -> System<R> {
        let ([u, w], _, stress) = self.strain(at, others, rest);
        let m = rest.inverse;
        let (g0, g1) = (-(m.x + m.z), -(m.y + m.w));
        let a = rest.area;
        let (s0, s1) = ((stress[0] * g0 + stress[2] * g1) * a, (stress[2] * g0 + stress[1] * g1) * a);
        let force = system.force - (u * s0 + w * s1);
        let geometric = (g0 * s0 + g1 * s1).max(R::lit(0.0));
        // F M Fᵀ with the 2×2 matrix M = A (μ |g|² I + (μ + λ) g gᵀ), as F (F M)ᵀ.
        let (h0, h1) = (g0 * a, g1 * a);
        let (shear, stretch) = (self.mu * (g0 * h0 + g1 * h1), self.mu + self.lambda);
        let (m0, m1, m2) = (shear + stretch * (g0 * h0), stretch * (g0 * h1), shear + stretch * (g1 * h1));
        let hessian = system.hessian.plus_diagonal(geometric).plus_products([u, w], [u * m0 + w * m1, u * m1 + w * m2]);
        System { force, hessian }
    }

    /// The energy of a triangle, `A (μ E:E + λ/2 (tr E)²)`, J.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::{Membrane, Panel};
    /// let panel = Panel::at_rest([[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
    /// let membrane = Membrane { lambda: 0.0, mu: 2.0 };
    /// // Stretched to twice its length along x: E is 3/2 there.
    /// let energy = membrane.energy(Vector3::zeros(), [Vector3::x() * 2.0, Vector3::y()], panel);
    /// assert_eq!(energy, 0.5 * 2.0 * 1.5 * 1.5);
    /// ```
    #[inline(always)]
    pub fn energy(&self, at: Vector3<R>, others: [Vector3<R>; 2], rest: Panel<R>) -> R {
        let (_, e, s) = self.strain(at, others, rest);
        R::lit(0.5) * rest.area * (e[0] * s[0] + e[1] * s[1] + R::lit(2.0) * e[2] * s[2])
    }

    /// The deformation gradient's two columns, strain, and the stress in the rest plane: entries 00, 11, 01, N/m.
    #[inline(always)]
    fn strain(&self, at: Vector3<R>, others: [Vector3<R>; 2], rest: Panel<R>) -> ([Vector3<R>; 2], [R; 3], [R; 3]) {
        let [u, w] = rest.stretch(at, others);
        let (half, one) = (R::lit(0.5), R::lit(1.0));
        let green = [half * (u.dot(&u) - one), half * (w.dot(&w) - one), half * u.dot(&w)];
        let trace = self.lambda * (green[0] + green[1]);
        let two_mu = self.mu + self.mu;
        ([u, w], green, [two_mu * green[0] + trace, two_mu * green[1] + trace, two_mu * green[2]])
    }
}
