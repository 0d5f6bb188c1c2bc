//! The vertex's own 3×3 system: gradient and Hessian of every energy it takes part in.

use super::{Bends, Cloth, Gaps, Hinges, Node, Triangles};
use meshweft::{Given, Kernel, Neighbors, Real, SharedOf, Update};
use meshweft_physics::{Corridor, System, bending};

/// One Newton step of one vertex: of the membrane alone, `WHOLE` with bending and obstacles, with `PRESSURE` besides, or with gaps that
/// stay open (`TOUCHING`).
pub struct Solve<const WHOLE: bool, const PRESSURE: bool, const TOUCHING: bool>;

impl<const WHOLE: bool, const PRESSURE: bool, const TOUCHING: bool> Kernel for Solve<WHOLE, PRESSURE, TOUCHING> {
    const NAME: &'static str = match (WHOLE, PRESSURE, TOUCHING) {
        (false, ..) => "SolveMembrane",
        (true, false, _) => "Solve",
        (true, true, false) => "SolveBalloon",
        (true, true, true) => "SolveTouching",
    };
}

impl<const WHOLE: bool, const PRESSURE: bool, const TOUCHING: bool> Update<Cloth> for Solve<WHOLE, PRESSURE, TOUCHING> {
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
            let contact = p.obstacles.contact(own.mass, p.dt);
            let moved = at - own.before;
            system = p.obstacles.touch(at).into_iter().fold(system, |system, touch| contact.add(system, touch, moved));
            if TOUCHING {
                let corridor = Corridor { before: own.before, guess: own.guess, freedom: p.freedom };
                let place = |other: SharedOf<Cloth, R>| other.position;
                let position = corridor.step((around, Gaps), place, &contact, system, at, p.relaxation * own.free);
                return Node { position, ..own };
            }
        }
        Node { position: at + system.solve() * (p.relaxation * own.free), ..own }
    }
}
