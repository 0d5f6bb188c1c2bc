//! Constraints that elements satisfy one after the other by moving their corners: extended position-based dynamics.
//!
//! A constraint of value `C` and compliance `α` has the energy `C² / 2α`. In a time step of `dt` seconds it keeps a multiplier `λ`, zero at the
//! start, and each [projection](Constraint::step) goes on from where the others have left its corners:
//!
//! ```text
//! α' = α / dt²      Δλ = -(C + α' λ) / (Σ |∇C|² / m + α')      Δx = ∇C Δλ / m
//! ```
//!
//! At the end of many, `λ = -C / α'`: the corners are pulled as hard as the energy pulls, `λ / dt²` newtons along `∇C`. A compliance of 0 is
//! a constraint without give. Many short steps with one projection each do better than few with many.
//!
//! Sources: Macklin, Müller and Chentanez, "XPBD: position-based simulation of compliant constrained dynamics", 2016, equations 17 and 18;
//! Macklin, Storey, Lu, Terdiman, Chentanez, Jeschke and Müller, "Small steps in physics simulation", 2019.

use super::bending::Crease;
use super::neo_hookean::{NeoHookean, determinant};
use super::obstacle::Touch;
use meshweft::nalgebra::{Matrix3, Vector3};
use meshweft::{Length, Real, record};

/// Shorter than this is no direction, m; and less than this is divided by as if it were this much.
const TINY: f64 = 1e-15;

/// The least compliance of the first of two constraints that are solved at once, over what its corners give way by themselves.
const LEAST: f64 = 2.0;

/// A constraint at the `N` corners of an element, where they are now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraint<R, const N: usize> {
    /// What is to be zero.
    pub value: R,
    /// How fast the value grows as each corner moves.
    pub gradients: [Vector3<R>; N],
}

impl<R: Real> Constraint<R, 2> {
    /// Two points are to be `length` apart. Points in one place stay there: they have no direction.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::Constraint;
    /// // A weight of 2 kg at a rope of 1 m without give, which has fallen 10 cm too far.
    /// let rope = Constraint::distance([Vector3::zeros(), Vector3::z() * -1.1], 1.0);
    /// let ([_, up], multiplier) = rope.step([0.0, 0.5], 0.0, 0.0);
    /// assert!((up.z - 0.1_f64).abs() < 1e-15 && (multiplier + 0.2).abs() < 1e-15);
    /// ```
    #[inline(always)]
    pub fn distance([a, b]: [Vector3<R>; 2], length: R) -> Self {
        let apart = b - a;
        let now = apart.length();
        let along = apart * (R::lit(1.0) / now.max(R::lit(TINY)));
        Constraint { value: now - length, gradients: [-along, along] }
    }
}

impl<R: Real, const N: usize> Constraint<R, N> {
    /// What its gradients have in common with those of another one, in the metric of the masses.
    #[inline(always)]
    fn product(&self, other: &Self, inverse_masses: [R; N]) -> R {
        let of = |k: usize| self.gradients[k].dot(&other.gradients[k]) * inverse_masses[k];
        (1..N).fold(of(0), |sum, k| sum + of(k))
    }

    /// How far each corner moves, m, and the multiplier after it. `inverse_masses`: 1/kg, 0 where a corner is held; `compliance`: that of
    /// the energy over the time step squared; `multiplier`: what earlier projections of this time step have added up to.
    ///
    /// Momentum is kept if the gradients sum to zero, as those of all constraints here do.
    #[inline(always)]
    pub fn step(&self, inverse_masses: [R; N], compliance: R, multiplier: R) -> ([Vector3<R>; N], R) {
        let weight = self.product(self, inverse_masses) + compliance;
        let more = -(self.value + compliance * multiplier) / weight.max(R::lit(TINY));
        let mut moves = self.gradients;
        (0..N).for_each(|k| moves[k] *= more * inverse_masses[k]);
        (moves, multiplier + more)
    }

    /// By what factor [`step_both`](Constraint::step_both) takes compliances larger, this being the first of the two constraints: 1 where its
    /// own is at least twice what the corners give way by themselves, `Σ |∇C|² / m`. It falls with the square of the time step. Arguments are
    /// those of [`Constraint::step`].
    ///
    /// Twice is what was measured: bars that fall gained energy with once as much, and none with two or four times, at a Young's modulus of up to
    /// 4e10 N/m² and steps of up to 0.1 s.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::Constraint;
    /// let rope = Constraint::distance([Vector3::zeros(), Vector3::z()], 1.0);
    /// assert_eq!([1.0, 4.0, 100.0].map(|compliance| rope.softer([1.0, 1.0], compliance)), [4.0, 1.0, 1.0]);
    /// ```
    #[inline(always)]
    pub fn softer(&self, inverse_masses: [R; N], compliance: R) -> R {
        (self.product(self, inverse_masses) * R::lit(LEAST) / compliance).max(R::lit(1.0))
    }

    /// The same for two constraints of one element at once: their 2×2 system is solved.
    ///
    /// One after the other they would undo each other where their gradients point the same way, as those of shear and volume of a tet at
    /// rest do: only together do they leave it at rest. Compliances are above 0.
    ///
    /// Both are taken as [`softer`](Constraint::softer) where they are small: the system is linear, and does not know that gradients turn as
    /// corners move. Where constraints pull hard against each other it would step too far, and gain energy.
    #[inline(always)]
    pub fn step_both(
        [first, second]: &[Self; 2],
        inverse_masses: [R; N],
        compliances: [R; 2],
        multipliers: [R; 2],
    ) -> ([Vector3<R>; N], [R; 2]) {
        let own = first.product(first, inverse_masses);
        let softer = first.softer(inverse_masses, compliances[0]);
        let compliances = [compliances[0] * softer, compliances[1] * softer];
        let due = |c: &Self, k: usize| -(c.value + compliances[k] * multipliers[k]);
        let (one, two) = (due(first, 0), due(second, 1));
        let pivot = own + compliances[0];
        let common = first.product(second, inverse_masses);
        let share = common / pivot.max(R::lit(TINY));
        // Where gradients point the same way, rounding errors are left. They would be divided by next to nothing if compliances are, too; a
        // larger divisor makes the step shorter, and it ends in the same place.
        let whole = second.product(second, inverse_masses);
        let rest = (whole - share * common).max(whole * R::lit(1e-6)) + compliances[1];
        let more_two = (two - share * one) / rest.max(R::lit(TINY));
        let more_one = (one - common * more_two) / pivot.max(R::lit(TINY));
        let mut moves = first.gradients;
        (0..N).for_each(|k| moves[k] = (moves[k] * more_one + second.gradients[k] * more_two) * inverse_masses[k]);
        (moves, [multipliers[0] + more_one, multipliers[1] + more_two])
    }

    /// Its energy, `C² / 2α`, J. `compliance`: `α`, above 0.
    #[inline(always)]
    pub fn energy(&self, compliance: R) -> R {
        R::lit(0.5) * self.value * self.value / compliance
    }
}

record! {
    /// A tet at rest.
    pub struct Tet<R> {
        /// Inverse of the matrix whose columns are the edges from the first corner, 1/m.
        shape: Matrix3<R>,
        /// One over six times the volume, 1/m³.
        inverse: R,
    }
}

impl Tet<f64> {
    /// A tet of these corners at rest; `None` if it has no volume, or is inside out.
    pub fn at_rest(corners: [[f64; 3]; 4]) -> Option<Tet<f64>> {
        let [a, b, c, d] = corners.map(Vector3::from);
        let shape = Matrix3::from_columns(&[b - a, c - a, d - a]).try_inverse()?;
        let inverse = 1.0 / determinant(corners);
        (inverse > 0.0 && inverse.is_finite()).then_some(Tet { shape, inverse })
    }
}

impl<R: Real> Tet<R> {
    /// The two constraints whose energies are that of the solid, of shear and of volume, and their compliances in a step of 1 s:
    /// `√(F : F)` with `1 / μV`, and `J - 1 - μ/λ` with `1 / λV`, where `F` is the deformation, `J = det F` and `V` the volume at rest.
    ///
    /// Source: Macklin and Müller, "A constraint-based formulation of stable neo-Hookean materials", 2021.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::{Constraint, NeoHookean, Tet};
    /// let corners = [[0.0; 3], [1.0, 0.0, 0.0], [0.1, 1.0, 0.0], [0.0, 0.3, 1.0]];
    /// let (tet, solid) = (Tet::at_rest(corners).unwrap(), NeoHookean::of(1e5, 0.4));
    /// let (constraints, compliances) = tet.neo_hookean(&solid, corners.map(Vector3::from));
    /// // At rest nothing moves, although neither is zero by itself.
    /// let (moves, _) = Constraint::step_both(&constraints, [1.0; 4], compliances, [0.0; 2]);
    /// assert!(moves.iter().all(|m| m.norm() < 1e-12_f64) && constraints[0].value > 1.7);
    /// ```
    #[inline(always)]
    pub fn neo_hookean(&self, solid: &NeoHookean<R>, [a, b, c, d]: [Vector3<R>; 4]) -> ([Constraint<R, 4>; 2], [R; 2]) {
        let (b, c, d) = (b - a, c - a, d - a);
        let deformation = Matrix3::from_columns(&[b, c, d]) * self.shape;
        let shear = deformation.dot(&deformation).max(R::lit(TINY)).sqrt();
        // ∂√(F : F) / ∂F = F / √(F : F), and F is the edges times `shape`.
        let slopes = deformation * self.shape.transpose() * (R::lit(1.0) / shear);
        let of = |value: R, [b, c, d]: [Vector3<R>; 3]| Constraint { value, gradients: [-(b + c + d), b, c, d] };
        let shear =
            of(shear, [slopes.column(0).into_owned(), slopes.column(1).into_owned(), slopes.column(2).into_owned()]);
        let facets = [c.cross(&d) * self.inverse, d.cross(&b) * self.inverse, b.cross(&c) * self.inverse];
        let volume = of(b.dot(&facets[0]) - solid.free_ratio(), facets);
        let sixfold = self.inverse * R::lit(6.0);
        ([shear, volume], [sixfold / solid.mu, sixfold / solid.lambda])
    }

    /// The energy of the tet, J: zero at rest.
    #[inline(always)]
    pub fn energy(&self, solid: &NeoHookean<R>, corners: [Vector3<R>; 4]) -> R {
        let ([shear, volume], compliances) = self.neo_hookean(solid, corners);
        // Less than both constraints have at rest, 3/2 μV and (μ/λ)² λV / 2.
        let (grown, squared) = (volume.value + solid.free_ratio() - R::lit(1.0), shear.value * shear.value);
        R::lit(0.5) * (squared - R::lit(3.0)) / compliances[0] + R::lit(0.5) * grown * grown / compliances[1]
            - grown / compliances[0]
    }
}

impl<R: Real> Crease<R> {
    /// Bends a hinge back: how far its four corners move, m, and the multiplier after it, a vector. The first of them is that from which
    /// the crease is seen. `compliance`: one over the bending stiffness and the time step squared; inverse masses as of
    /// [`Constraint::step`].
    ///
    /// Three constraints at once, that the curvature be what it is at rest along its own direction. They are linear but for that direction, so
    /// a flat hinge is solved at once, and nothing is divided by the angle. Its energy is that of [`Crease::energy`].
    ///
    /// ```
    /// use meshweft::nalgebra::{Vector3, Vector4};
    /// use meshweft_physics::bending::Crease;
    /// // The diagonal of a unit square, one corner lifted: without give it is flat after one step.
    /// let crease = Crease { weights: Vector4::new(-1.0, -1.0, 1.0, 1.0), rest: 0.0 };
    /// let mut corners = [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.3], [0.0, 1.0, 0.0]].map(Vector3::from);
    /// let (moves, _) = crease.step(corners, [1.0; 4], 0.0, Vector3::zeros());
    /// (0..4).for_each(|k| corners[k] += moves[k]);
    /// let [a, b, c, d] = corners.map(|x: Vector3<f64>| x.z);
    /// assert!((a + b - c - d).abs() < 1e-15 && a > 0.07 && c < 0.23);
    /// ```
    #[inline(always)]
    pub fn step(
        self,
        [a, b, c, d]: [Vector3<R>; 4],
        inverse_masses: [R; 4],
        compliance: R,
        multiplier: Vector3<R>,
    ) -> ([Vector3<R>; 4], Vector3<R>) {
        let k = self.weights;
        let (sum, length) = self.curvature(a, [b, c, d]);
        let value = sum * (R::lit(1.0) - self.rest / length.max(R::lit(TINY)));
        let of = |i: usize| k[i] * k[i] * inverse_masses[i];
        let weight = of(0) + of(1) + of(2) + of(3) + compliance;
        let more = (value + multiplier * compliance) * (R::lit(-1.0) / weight.max(R::lit(TINY)));
        let push = |i: usize| more * (k[i] * inverse_masses[i]);
        ([push(0), push(1), push(2), push(3)], multiplier + more)
    }
}

record! {
    /// How an obstacle has pushed a vertex out so far in a time step: nothing at its start.
    pub struct Pushed<R> {
        /// How far along the normal, m: 0 or more.
        out: R,
        /// How far friction has held it back, m.
        back: Vector3<R>,
    }
}

impl<R: Real> Pushed<R> {
    /// Goes on: how far a vertex is moved now, m. Over all projections of a time step it is pushed out of the obstacle, never drawn to it, and
    /// held back by friction of Coulomb, up to its coefficient of the push. `moved`: how far it has moved since the step began, as the
    /// obstacle sees it, m.
    ///
    /// Source: the projected Gauss–Seidel method; Macklin, Müller, Chentanez and Kim, "Unified particle physics for real-time applications",
    /// 2014, section 6.1, for friction that moves points.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::{Pushed, Touch};
    /// let nothing = Pushed { out: 0.0, back: Vector3::zeros() };
    /// let touch = Touch { normal: Vector3::z(), distance: -0.1_f64 };
    /// // It sticks as long as the way along the surface is less than the friction allows, 0.4 of the depth.
    /// let (step, pushed) = nothing.step(touch, Vector3::x() * 0.03, 0.4);
    /// assert!((step - Vector3::new(-0.03, 0.0, 0.1)).norm() < 1e-15);
    /// assert!((nothing.step(touch, Vector3::x() * 9.0, 0.4).0 - Vector3::new(-0.04, 0.0, 0.1)).norm() < 1e-15);
    /// // What others have moved since, the rest of the friction undoes; and what was pushed too far comes back.
    /// let above = Touch { distance: 0.02, ..touch };
    /// assert!((pushed.step(above, Vector3::x() * 9.0, 0.4).0 - Vector3::new(-0.002, 0.0, -0.02)).norm() < 1e-15);
    /// assert_eq!(nothing.step(above, Vector3::x(), 0.4).0, Vector3::zeros());
    /// ```
    #[inline(always)]
    pub fn step(self, touch: Touch<R>, moved: Vector3<R>, friction: R) -> (Vector3<R>, Self) {
        let out = (self.out - touch.distance).max(R::lit(0.0));
        let back = self.back - (moved - touch.normal * touch.normal.dot(&moved));
        let most = friction * out;
        let back = back * (most / back.length().max(most).max(R::lit(TINY)));
        (touch.normal * (out - self.out) + (back - self.back), Pushed { out, back })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft::nalgebra::Vector4;

    const REST: [[f64; 3]; 4] = [[0.0, 0.1, 0.0], [1.0, 0.0, 0.2], [0.1, 0.9, 0.0], [0.2, 0.3, 1.1]];

    /// The last one is inside out.
    fn shapes() -> [[Vector3<f64>; 4]; 3] {
        let bent = Matrix3::new(1.2, 0.3, 0.0, -0.1, 0.8, 0.2, 0.0, 0.4, 1.5);
        [Matrix3::identity(), bent, -bent].map(|f| REST.map(|x| f * Vector3::from(x)))
    }

    fn check_gradients<const N: usize>(at: [Vector3<f64>; N], of: impl Fn([Vector3<f64>; N]) -> Constraint<f64, N>) {
        let gradients = of(at).gradients;
        assert!(gradients.iter().sum::<Vector3<f64>>().norm() < 1e-14);
        for (corner, axis) in (0..N).flat_map(|corner| (0..3).map(move |axis| (corner, axis))) {
            let moved = |by: f64| {
                let mut at = at;
                at[corner][axis] += by;
                of(at).value
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((slope - gradients[corner][axis]).abs() < 1e-8, "corner {corner}, axis {axis}: {slope}");
        }
    }

    #[test]
    fn gradients_are_slopes_of_the_values() {
        let (tet, solid) = (Tet::at_rest(REST).unwrap(), NeoHookean::of(2.0, 0.4));
        for shape in shapes() {
            (0..2).for_each(|k| check_gradients(shape, |at| tet.neo_hookean(&solid, at).0[k]));
        }
        check_gradients([REST[1], REST[3]].map(Vector3::from), |at| Constraint::distance(at, 0.7));
    }

    #[test]
    fn both_constraints_of_a_tet_have_the_energy_of_the_solid() {
        let (tet, solid) = (Tet::at_rest(REST).unwrap(), NeoHookean::of(2.0, 0.4));
        let both = |at| {
            let (constraints, compliances) = tet.neo_hookean(&solid, at);
            constraints[0].energy(compliances[0]) + constraints[1].energy(compliances[1])
        };
        let [rest, ..] = shapes();
        assert!(tet.energy(&solid, rest).abs() < 1e-14);
        for shape in shapes() {
            let volume = determinant(REST) / 6.0;
            let f = Matrix3::from_columns(&[shape[1] - shape[0], shape[2] - shape[0], shape[3] - shape[0]]) * tet.shape;
            let grown = f.determinant() - 1.0;
            let density =
                0.5 * solid.mu * (f.norm_squared() - 3.0) - solid.mu * grown + 0.5 * solid.lambda * grown * grown;
            assert!((tet.energy(&solid, shape) - density * volume).abs() < 1e-12);
            assert!((both(shape) - both(rest) - density * volume).abs() < 1e-12);
        }
    }

    /// The force on each corner that an energy has, by differences.
    fn forces(at: [Vector3<f64>; 4], energy: impl Fn([Vector3<f64>; 4]) -> f64) -> [Vector3<f64>; 4] {
        std::array::from_fn(|corner| {
            Vector3::from_fn(|axis, _| {
                let moved = |by: f64| {
                    let mut at = at;
                    at[corner][axis] += by;
                    energy(at)
                };
                (moved(-1e-6) - moved(1e-6)) / 2e-6
            })
        })
    }

    /// Projects an element until it is solved, in a step so short that its corners hardly move: they are moved by its forces.
    #[test]
    fn projections_end_where_corners_are_moved_by_the_force_of_the_energy() {
        let (dt, masses) = (1e-4, [1.0, 0.5, 0.0, 2.0]);
        let moved = |at: [Vector3<f64>; 4], step: &mut dyn FnMut([Vector3<f64>; 4]) -> [Vector3<f64>; 4]| {
            let mut now = at;
            for _ in 0..30 {
                let moves = step(now);
                (0..4).for_each(|k| now[k] += moves[k]);
            }
            std::array::from_fn::<_, 4, _>(|k| (now[k] - at[k]) / (dt * dt))
        };
        let same = |moved: [Vector3<f64>; 4], forces: [Vector3<f64>; 4]| {
            for k in 0..4 {
                assert!((moved[k] - forces[k] * masses[k]).norm() < 1e-5, "{k}: {} {}", moved[k], forces[k]);
            }
        };
        let [_, bent, inside_out] = shapes();
        let (tet, solid) = (Tet::at_rest(REST).unwrap(), NeoHookean::of(20.0, 0.4));
        for at in [bent, inside_out] {
            let mut multipliers = [0.0; 2];
            let solved = moved(at, &mut |now| {
                let (constraints, compliances) = tet.neo_hookean(&solid, now);
                let compliances = compliances.map(|alpha| alpha / (dt * dt));
                let moves;
                (moves, multipliers) = Constraint::step_both(&constraints, masses, compliances, multipliers);
                moves
            });
            same(solved, forces(at, |x| tet.energy(&solid, x)));
        }
        let crease = Crease { weights: Vector4::new(-1.0, -0.7, 0.8, 0.9), rest: 0.1 };
        let mut multiplier = Vector3::zeros();
        let solved = moved(bent, &mut |now| {
            let moves;
            (moves, multiplier) = crease.step(now, masses, 0.2 / (dt * dt), multiplier);
            moves
        });
        same(solved, forces(bent, |[a, b, c, d]| crease.energy(5.0, a, [b, c, d])));
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        let place = Vector3::new(0.3_f32, 0.2, 0.1);
        let (moves, multiplier) = Constraint::distance([place; 2], 1.0).step([0.0; 2], 0.0, 0.0);
        assert!(moves.iter().all(|m| *m == Vector3::zeros()) && multiplier.is_finite());
        let tet = Tet { shape: Matrix3::<f32>::identity(), inverse: 1.0 };
        let solid = NeoHookean { mu: 1.0_f32, lambda: 2.0 };
        let (constraints, compliances) = tet.neo_hookean(&solid, [place; 4]);
        let (moves, multipliers) = Constraint::step_both(&constraints, [1.0; 4], compliances, [0.0; 2]);
        assert!(moves.iter().all(|m| *m == Vector3::zeros()) && multipliers.iter().all(|x| x.is_finite()));
        assert_eq!(Tet::at_rest([[0.0; 3]; 4]), None);
    }
}
