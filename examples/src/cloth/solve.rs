//! The vertex's own 3×3 system: gradient and Hessian of every energy it takes part in.

use super::symmetric::Symmetric;
use super::{Bends, Cloth, Crease, Hinges, Node, Parameters, Rest, Triangles};
use meshweft::nalgebra::Vector3;
use meshweft::{Given, Kernel, Length, Neighbors, Real, SharedOf, Update, record};

/// What a vertex sees of another.
type Other<R> = SharedOf<Cloth, R>;

record! {
    /// Force on a vertex and how fast it changes with its position.
    struct System<R> {
        /// Minus the gradient, N.
        force: Vector3<R>,
        /// The Hessian, N/m.
        hessian: Symmetric<R>,
    }
}

/// One Newton step of one vertex: of the membrane alone, `WHOLE` with bending and contact, or with `PRESSURE` besides.
pub struct Solve<const WHOLE: bool, const PRESSURE: bool>;

impl<const WHOLE: bool, const PRESSURE: bool> Kernel for Solve<WHOLE, PRESSURE> {
    const NAME: &'static str = match (WHOLE, PRESSURE) {
        (false, _) => "SolveMembrane",
        (true, false) => "Solve",
        (true, true) => "SolveBalloon",
    };
}

impl<const WHOLE: bool, const PRESSURE: bool> Update<Cloth> for Solve<WHOLE, PRESSURE> {
    #[inline(always)]
    fn update<R: Real>(p: &Given<Cloth, R>, own: Node<R>, around: &impl Neighbors<Cloth, R>) -> Node<R> {
        let inertia = own.mass / (p.dt * p.dt);
        // The air resists in proportion to the new velocity: it adds to the inertia.
        let resistance = inertia * (R::lit(1.0) + p.drag * p.dt);
        let mut system =
            System { force: (own.target - own.position) * resistance, hessian: Symmetric::diagonal(resistance) };
        let at = own.position;
        system = around.fold(Triangles, system, |system, others, rest| membrane(p, system, at, others, rest));
        if PRESSURE {
            let push = around.sum(Triangles, |[b, c], _| (b.position - at).cross(&(c.position - at)));
            // The volume grows by a sixth of this sum for each meter that the vertex moves along it.
            system.force += push * (p.pressure * R::lit(1.0 / 6.0));
        }
        if WHOLE {
            // Flat hinges pull along straight lines, and stiffen by minus what they pull with in all: weights of a hinge sum to zero.
            let (pull, weight) = around.sum(Bends, |[other], weight| ((other.position - at) * weight, weight));
            system.force -= pull * p.bend;
            system.hessian = system.hessian.plus_diagonal(-(p.bend * weight));
            system = around.fold(Hinges, system, |system, others, crease| hinge(p, system, at, others, crease));
            system = contact(p, system, own, inertia);
        }
        let step = system.hessian.solve(system.force) * (p.relaxation * own.free);
        Node { position: at + step, ..own }
    }
}

/// The deformation gradient's two columns, and the stress in the rest plane: entries 00, 11, 01, N/m.
#[inline(always)]
fn strain<R: Real>(
    p: &Parameters<R>,
    at: Vector3<R>,
    [b, c]: [Other<R>; 2],
    rest: Rest<R>,
) -> ([Vector3<R>; 2], [R; 3], [R; 3]) {
    let (e1, e2) = (b.position - at, c.position - at);
    let m = rest.inverse;
    let (u, w) = (e1 * m.x + e2 * m.z, e1 * m.y + e2 * m.w);
    let (half, one) = (R::lit(0.5), R::lit(1.0));
    let green = [half * (u.dot(&u) - one), half * (w.dot(&w) - one), half * u.dot(&w)];
    let trace = p.lambda * (green[0] + green[1]);
    let two_mu = p.mu + p.mu;
    ([u, w], green, [two_mu * green[0] + trace, two_mu * green[1] + trace, two_mu * green[2]])
}

/// Adds a triangle: `force -= A F S g`, `H += A ((g·S g)₊ I + μ |g|² F Fᵀ + (μ + λ) (F g)(F g)ᵀ)`, with `g` the gradient of
/// the vertex's hat function.
#[inline(always)]
fn membrane<R: Real>(
    p: &Parameters<R>,
    system: System<R>,
    at: Vector3<R>,
    others: [Other<R>; 2],
    rest: Rest<R>,
) -> System<R> {
    let ([u, w], _, stress) = strain(p, at, others, rest);
    let m = rest.inverse;
    let (g0, g1) = (-(m.x + m.z), -(m.y + m.w));
    let a = rest.area;
    let (s0, s1) = ((stress[0] * g0 + stress[2] * g1) * a, (stress[2] * g0 + stress[1] * g1) * a);
    let force = system.force - (u * s0 + w * s1);
    let geometric = (g0 * s0 + g1 * s1).max(R::lit(0.0));
    // F M Fᵀ with the 2×2 matrix M = A (μ |g|² I + (μ + λ) g gᵀ), as F (F M)ᵀ.
    let (h0, h1) = (g0 * a, g1 * a);
    let (shear, stretch) = (p.mu * (g0 * h0 + g1 * h1), p.mu + p.lambda);
    let (m0, m1, m2) = (shear + stretch * (g0 * h0), stretch * (g0 * h1), shear + stretch * (g1 * h1));
    let hessian = system.hessian.plus_diagonal(geometric).plus_products([u, w], [u * m0 + w * m1, u * m1 + w * m2]);
    System { force, hessian }
}

/// `A (μ E:E + λ/2 (tr E)²)`.
pub(super) fn membrane_energy<R: Real>(p: &Parameters<R>, at: Vector3<R>, others: [Other<R>; 2], rest: Rest<R>) -> R {
    let (_, e, s) = strain(p, at, others, rest);
    R::lit(0.5) * rest.area * (e[0] * s[0] + e[1] * s[1] + R::lit(2.0) * e[2] * s[2])
}

/// The curvature across a hinge, and its length.
#[inline(always)]
fn curvature<R: Real>(at: Vector3<R>, [b, c, d]: [Other<R>; 3], crease: Crease<R>) -> (Vector3<R>, R) {
    let k = crease.weights;
    // Differences from the vertex itself: the weights sum to zero, and differences keep their digits.
    let (b, c, d) = (b.position - at, c.position - at, d.position - at);
    let sum = b * k.y + c * k.z + d * k.w;
    (sum, sum.length())
}

/// Adds a curved or slender hinge of energy `½ B (|L| - l₀)²`. The Hessian is bounded from above by `B k² I`, which is taken for it.
#[inline(always)]
fn hinge<R: Real>(
    p: &Parameters<R>,
    system: System<R>,
    at: Vector3<R>,
    others: [Other<R>; 3],
    crease: Crease<R>,
) -> System<R> {
    let (sum, length) = curvature(at, others, crease);
    // A flat hinge has no direction to bend back to; a tiny length keeps the quotient finite.
    let share = R::lit(1.0) - crease.rest / length.max(R::lit(1e-12));
    let stiffness = p.bend * crease.weights.x;
    System {
        force: system.force - sum * (stiffness * share),
        hessian: system.hessian.plus_diagonal(stiffness * crease.weights.x),
    }
}

/// What flat hinges that join two vertices add to `½ B |L|²`, seen from both of them: `-½ B w |x - y|²`.
pub(super) fn bend_energy<R: Real>(p: &Parameters<R>, at: Vector3<R>, [other]: [Other<R>; 1], weight: R) -> R {
    let apart = other.position - at;
    R::lit(-0.5) * p.bend * weight * apart.dot(&apart)
}

/// `½ B (|L| - l₀)²`.
pub(super) fn hinge_energy<R: Real>(p: &Parameters<R>, at: Vector3<R>, others: [Other<R>; 3], crease: Crease<R>) -> R {
    let (_, length) = curvature(at, others, crease);
    let bent = length - crease.rest;
    R::lit(0.5) * p.bend * bent * bent
}

/// Adds ball and ground.
#[inline(always)]
fn contact<R: Real>(p: &Parameters<R>, system: System<R>, own: Node<R>, inertia: R) -> System<R> {
    let obstacles = &p.obstacles;
    let (zero, one) = (R::lit(0.0), R::lit(1.0));
    let from_center = own.position - obstacles.center;
    let distance = from_center.length().max(R::lit(1e-9));
    let ball = (from_center * (one / distance), obstacles.radius - distance);
    let ground = (Vector3::new(zero, zero, one), obstacles.ground - own.position.z);
    let stiffness = obstacles.stiffness * inertia;
    let moved = own.position - own.before;
    // Sliding slower than this is smoothed to sticking, m.
    let slip = p.dt * R::lit(1e-3);
    [ball, ground].into_iter().fold(system, |system, (normal, depth)| {
        let touching = zero.less(depth);
        let stiffness = R::select(touching, stiffness, zero);
        let pressure = stiffness * depth;
        let along = moved - normal * normal.dot(&moved);
        let slide = along.length();
        // Coulomb's force over the slide: μ N / |slide|, smoothed to μ N (2 - r) / slip for r = |slide| / slip below 1.
        let smoothed = (R::lit(2.0) - slide / slip) / slip;
        let rate = R::select(slide.less(slip), smoothed, one / slide.max(slip));
        let friction = obstacles.friction * pressure * rate;
        System {
            force: system.force + normal * pressure - along * friction,
            // Friction acts in the tangent plane: I - n nᵀ.
            hessian: system.hessian.plus_diagonal(friction).plus_outer(stiffness - friction, normal),
        }
    })
}
