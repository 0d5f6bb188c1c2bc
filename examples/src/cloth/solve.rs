//! The vertex's own 3×3 system: gradient and Hessian of every energy it takes part in.

use super::{Bends, Cloth, Hinges, Node, Triangles};
use meshweft::nalgebra::Vector3;
use meshweft::{Given, Kernel, Neighbors, Real, Update};
use meshweft_physics::{Contact, Plane, System, bending};

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
        let resistance = inertia * p.air.resistance(p.dt);
        let at = own.position;
        let mut system = System { force: (own.target - at) * resistance, ..System::at_rest(resistance) };
        system = around
            .fold(Triangles, system, |system, [b, c], rest| p.membrane.add(system, at, [b.position, c.position], rest));
        if PRESSURE {
            let push = around.sum(Triangles, |[b, c], _| (b.position - at).cross(&(c.position - at)));
            // The volume grows by a sixth of this sum for each meter that the vertex moves along it.
            system.force += push * (p.pressure * R::lit(1.0 / 6.0));
        }
        if WHOLE {
            let (pull, weight) = around.sum(Bends, |[other], weight| ((other.position - at) * weight, weight));
            system = bending::add_flat(p.bend, system, pull, weight);
            system = around.fold(Hinges, system, |system, [b, c, d], crease| {
                crease.add(p.bend, system, at, [b.position, c.position, d.position])
            });
            let obstacles = &p.obstacles;
            let contact = Contact {
                stiffness: obstacles.stiffness * inertia,
                friction: obstacles.friction,
                // Sliding slower than this is smoothed to sticking, m.
                slip: p.dt * R::lit(1e-3),
            };
            let (zero, one) = (R::lit(0.0), R::lit(1.0));
            let ground = Plane { normal: Vector3::new(zero, zero, one), offset: obstacles.ground };
            let moved = at - own.before;
            system = contact.add(system, obstacles.ball.touch(at), moved);
            system = contact.add(system, ground.touch(at), moved);
        }
        let step = system.solve() * (p.relaxation * own.free);
        Node { position: at + step, ..own }
    }
}
