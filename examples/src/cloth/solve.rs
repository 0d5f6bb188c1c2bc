//! The vertex's own 3×3 system: gradient and Hessian of every energy it takes part in.

use super::{Bends, Cloth, Folds, Gaps, Hinges, Node, Pieces, Ties, Triangles};
use meshweft::{Given, Kernel, Neighbors, Real, SharedOf, Update};
use meshweft_physics::bending::{self, Crease};
use meshweft_physics::{Corridor, Panel, System};

/// One Newton step of one vertex: of the membrane alone, `WHOLE` with bending and obstacles, with `PRESSURE` besides, or with gaps that
/// stay open (`TOUCHING`), with what may tear besides (`TEARING`).
pub struct Solve<const WHOLE: bool, const PRESSURE: bool, const TOUCHING: bool, const TEARING: bool>;

impl<const WHOLE: bool, const PRESSURE: bool, const TOUCHING: bool, const TEARING: bool> Kernel
    for Solve<WHOLE, PRESSURE, TOUCHING, TEARING>
{
    const NAME: &'static str = match (WHOLE, PRESSURE, TOUCHING, TEARING) {
        (false, ..) => "SolveMembrane",
        (true, false, ..) => "Solve",
        (true, true, false, _) => "SolveBalloon",
        (true, true, true, false) => "SolveTouching",
        (true, true, true, true) => "SolveTearing",
    };
}

impl<const WHOLE: bool, const PRESSURE: bool, const TOUCHING: bool, const TEARING: bool> Update<Cloth>
    for Solve<WHOLE, PRESSURE, TOUCHING, TEARING>
{
    #[inline(always)]
    fn update<R: Real>(p: &Given<Cloth, R>, own: Node<R>, around: &impl Neighbors<Cloth, R>) -> Node<R> {
        let inertia = own.mass / (p.dt * p.dt);
        let resistance = inertia * p.air.resistance(p.dt);
        let at = own.position;
        let mut system = System { force: (own.target - at) * resistance, ..System::at_rest(resistance) };
        let stretch = |system, [b, c]: [SharedOf<Cloth, R>; 2], rest: Panel<R>| {
            p.membrane.add(system, at, [b.position, c.position], rest)
        };
        system = around.fold(Triangles, system, stretch);
        if TEARING {
            system = around.fold(Pieces, system, stretch);
        }
        if PRESSURE {
            let area = |[b, c]: [SharedOf<Cloth, R>; 2], _| (b.position - at).cross(&(c.position - at));
            let mut push = around.sum(Triangles, area);
            if TEARING {
                push += around.sum(Pieces, area);
            }
            // The volume grows by a sixth of this sum for each meter that the vertex moves along it.
            system.force += push * (p.pressure * R::lit(1.0 / 6.0));
        }
        if WHOLE {
            let fold = |system, [b, c, d]: [SharedOf<Cloth, R>; 3], crease: Crease<R>| {
                crease.add(p.bend, system, at, [b.position, c.position, d.position])
            };
            let tie = |[other]: [SharedOf<Cloth, R>; 1], weight| ((other.position - at) * weight, weight);
            let (mut pull, mut weight) = around.sum(Bends, tie);
            if TEARING {
                let (more, besides) = around.sum(Ties, tie);
                (pull, weight) = (pull + more, weight + besides);
            }
            system = bending::add_flat(p.bend, system, pull, weight);
            system = around.fold(Hinges, system, fold);
            if TEARING {
                system = around.fold(Folds, system, fold);
            }
            let contact = p.obstacles.contact(own.mass, p.dt);
            let moved = at - own.before;
            let [ball, ground] = p.obstacles.touch(at);
            system = contact.add(contact.add(system, ball, moved), ground, moved);
            if TOUCHING {
                let corridor = Corridor { before: own.before, guess: own.guess, open: own.open, freedom: p.freedom };
                let place = |other: SharedOf<Cloth, R>| other.position;
                let position = corridor.step((around, Gaps), place, &contact, system, at, p.relaxation * own.free);
                return Node { position, ..own };
            }
        }
        Node { position: at + system.solve() * (p.relaxation * own.free), ..own }
    }
}
