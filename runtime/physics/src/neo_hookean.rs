//! Solids of tets that resist shear and change of volume, also turned inside out.

use super::system::System;
use meshweft::nalgebra::Vector3;
use meshweft::{Real, record};

record! {
    /// A stable neo-Hookean solid: energy density `μ/2 (|F|² - 3) - μ (J - 1) + λ/2 (J - 1)²`, `J = det F`.
    ///
    /// For linear tets the energy is a sum of two kinds of terms, and a vertex needs no more of its tets than this:
    ///
    /// - `μ/2 ∫|F|²` is quadratic: `½ μ Σ w |x - y|²` over edges, with the weights `w` of linear finite elements
    ///   ([`Laplacian`](meshweft::mesh::Laplacian)), of either sign. So all tets at an edge act as one spring of no length.
    /// - `J` of a tet is linear in each of its corners: `J = (x_b - x_a)·s / d`, with `s` the area vector of the facet across from the corner
    ///   times 2, and `d` six times the volume at rest.
    ///
    /// The energy is thus a quadratic function of one vertex, convex for all shapes of the tets around it: its Hessian is exact, and an
    /// update finds the least energy that this vertex can reach.
    ///
    /// Source: Smith, de Goes and Kim, "Stable neo-Hookean flesh simulation", 2018, equation 13, without the barrier at the origin (a tet
    /// that is pressed to less than a sixth of its size in all directions may stay so).
    pub struct NeoHookean<R> {
        /// Shear modulus, N/m².
        mu: R,
        /// What resists change of volume, N/m²: the first Lamé parameter of small strains plus `mu`.
        lambda: R,
    }
}

impl NeoHookean<f64> {
    /// The solid that has Young's modulus, N/m², and Poisson's ratio, below 1/2, where strains are small.
    ///
    /// ```
    /// use meshweft_physics::NeoHookean;
    /// assert_eq!(NeoHookean::of(3.0, 0.0), NeoHookean { mu: 1.5, lambda: 1.5 });
    /// ```
    pub fn of(young: f64, poisson: f64) -> NeoHookean<f64> {
        let mu = young / (2.0 * (1.0 + poisson));
        NeoHookean { mu, lambda: young * poisson / ((1.0 + poisson) * (1.0 - 2.0 * poisson)) + mu }
    }
}

impl<R: Real> NeoHookean<R> {
    /// `1 + μ/λ`: the ratio of volumes at which a tet pushes at none of its corners by `J` alone.
    #[inline(always)]
    pub fn free_ratio(&self) -> R {
        R::lit(1.0) + self.mu / self.lambda
    }

    /// Adds a tet to the sums `Σ (J - r) s` (force) and `Σ s sᵀ / d` (Hessian) of a vertex at `at`, both without the factor `λ/6`.
    ///
    /// `free_ratio`: `r`; `others`: such that the volume is positive at rest; `inverse`: `1 / d`, 1/m³. Cost: 45 operations.
    #[inline(always)]
    pub fn gather(sums: System<R>, free_ratio: R, at: Vector3<R>, [b, c, d]: [Vector3<R>; 3], inverse: R) -> System<R> {
        let across = (c - b).cross(&(d - b));
        let slope = across * inverse;
        let ratio = (b - at).dot(&slope);
        System { force: sums.force + across * (ratio - free_ratio), hessian: sums.hessian.plus_outer(inverse, across) }
    }

    /// What a solid pulls a vertex with. `pull` and `weight`: the sums over edges of `w (x - at)` and of `w`, m; `tets`: what
    /// [`NeoHookean::gather`] made of its tets.
    #[inline(always)]
    pub fn system(&self, (pull, weight): (Vector3<R>, R), tets: System<R>) -> System<R> {
        let sixth = self.lambda * R::lit(1.0 / 6.0);
        System {
            force: pull * self.mu + tets.force * sixth,
            hessian: tets.hessian.scaled(sixth).plus_diagonal(self.mu * weight),
        }
    }

    /// The energy of an edge, `½ μ w |x - y|²`, J: what tets have of `μ/2 |F|²`.
    #[inline(always)]
    pub fn edge_energy(&self, at: Vector3<R>, other: Vector3<R>, weight: R) -> R {
        let apart = other - at;
        R::lit(0.5) * self.mu * weight * apart.dot(&apart)
    }

    /// The energy of a tet but that of its edges, J: zero at rest with them.
    #[inline(always)]
    pub fn tet_energy(&self, at: Vector3<R>, [b, c, d]: [Vector3<R>; 3], inverse: R) -> R {
        let grown = (b - at).dot(&(c - b).cross(&(d - b))) * inverse - R::lit(1.0);
        let density = R::lit(0.5) * self.lambda * grown * grown - self.mu * (grown + R::lit(1.5));
        density / (inverse * R::lit(6.0))
    }
}

/// Six times the volume of a tet, m³: positive if its last three corners turn counterclockwise, seen from the first one.
///
/// ```
/// use meshweft_physics::determinant;
/// assert_eq!(determinant([[0.0; 3], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]), 6.0);
/// ```
pub fn determinant(corners: [[f64; 3]; 4]) -> f64 {
    let [a, b, c, d] = corners.map(Vector3::from);
    (b - a).dot(&(c - b).cross(&(d - b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft::mesh::{CellKind, Cells, Laplacian, Mesh};
    use meshweft::nalgebra::Matrix3;

    const REST: [[f64; 3]; 4] = [[0.0, 0.1, 0.0], [1.0, 0.0, 0.2], [0.1, 0.9, 0.0], [0.2, 0.3, 1.1]];

    fn edges() -> Vec<([u32; 2], f64)> {
        let mesh = Mesh::new(REST.to_vec(), Cells::of(CellKind::Tet, vec![0, 1, 2, 3])).unwrap();
        let laplacian = Laplacian::of(&mesh).unwrap();
        laplacian.edges.into_iter().zip(laplacian.weights).collect()
    }

    fn energy(solid: &NeoHookean<f64>, [a, others @ ..]: [Vector3<f64>; 4]) -> f64 {
        let all = [a, others[0], others[1], others[2]];
        let of_edges: f64 =
            edges().iter().map(|([i, j], w)| solid.edge_energy(all[*i as usize], all[*j as usize], *w)).sum();
        of_edges + solid.tet_energy(a, others, 1.0 / determinant(REST))
    }

    #[test]
    fn the_energy_is_that_of_the_density_for_any_shape() {
        let solid = NeoHookean::of(2.0, 0.4);
        let corners = REST.map(Vector3::from);
        assert!(energy(&solid, corners).abs() < 1e-12);
        // The last one is inside out.
        for (f, turned) in
            [(Matrix3::new(1.2, 0.3, 0.0, -0.1, 0.8, 0.2, 0.0, 0.4, 1.5), 1.0), (-Matrix3::identity(), -1.0)]
        {
            let j: f64 = f.determinant();
            assert_eq!(j.signum(), turned);
            let density = 0.5 * solid.mu * (f.norm_squared() - 3.0) - solid.mu * (j - 1.0)
                + 0.5 * solid.lambda * (j - 1.0) * (j - 1.0);
            let whole = density * determinant(REST) / 6.0;
            assert!((energy(&solid, corners.map(|x| f * x)) - whole).abs() < 1e-12 * whole.abs());
        }
    }

    #[test]
    fn one_update_finds_the_least_energy_of_its_vertex_also_inside_out() {
        let solid = NeoHookean::of(2.0, 0.45);
        let moved = [[0.3, 0.4, 1.9], [1.0, 0.1, 0.2], [0.0, 0.9, 0.1], [0.2, 0.3, 0.9]].map(Vector3::from);
        let [at, others @ ..] = moved;
        let tets = NeoHookean::gather(System::at_rest(0.0), solid.free_ratio(), at, others, 1.0 / determinant(REST));
        let of_edges = |sum: (Vector3<f64>, f64), ([i, j], w): &([u32; 2], f64)| match i {
            0 => (sum.0 + (moved[*j as usize] - at) * *w, sum.1 + w),
            _ => sum,
        };
        let shear = edges().iter().fold((Vector3::zeros(), 0.0), of_edges);
        let system = solid.system(shear, tets);
        let total = |x: Vector3<f64>| energy(&solid, [x, others[0], others[1], others[2]]);
        let least = at + system.solve();
        for axis in 0..3 {
            let shift = Vector3::ith(axis, 1e-5);
            assert!(((total(at + shift) - total(at - shift)) / 2e-5 + system.force[axis]).abs() < 1e-7);
            assert!(total(least + shift) > total(least) && total(least - shift) > total(least));
        }
    }
}
