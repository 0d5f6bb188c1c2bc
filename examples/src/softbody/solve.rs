//! The vertex's own 3×3 system: gradient and Hessian of every energy it takes part in.

use super::{Edge, Edges, Gaps, Links, Node, Parts, Softbody, Tets};
use meshweft::{Given, Kernel, Neighbors, Real, SharedOf, Update};
use meshweft_physics::{Corridor, NeoHookean, System};

/// One Newton step of one vertex: of the solid alone, with obstacles (`CONTACT`), with gaps that stay open besides (`TOUCHING`), or with what
/// may tear besides (`TEARING`).
pub struct Solve<const CONTACT: bool, const TOUCHING: bool, const TEARING: bool>;

impl<const CONTACT: bool, const TOUCHING: bool, const TEARING: bool> Kernel for Solve<CONTACT, TOUCHING, TEARING> {
    const NAME: &'static str = match (CONTACT, TOUCHING, TEARING) {
        (false, ..) => "SolveSolid",
        (true, false, _) => "Solve",
        (true, true, false) => "SolveTouching",
        (true, true, true) => "SolveTearing",
    };
}

impl<const CONTACT: bool, const TOUCHING: bool, const TEARING: bool> Update<Softbody>
    for Solve<CONTACT, TOUCHING, TEARING>
{
    #[inline(always)]
    fn update<R: Real>(p: &Given<Softbody, R>, own: Node<R>, around: &impl Neighbors<Softbody, R>) -> Node<R> {
        let inertia = own.mass / (p.dt * p.dt);
        let resistance = inertia * p.air.resistance(p.dt);
        let (at, mut relaxation) = (own.position, p.relaxation);
        let pull =
            |[other]: [SharedOf<Softbody, R>; 1], edge: Edge<R>| ((other.position - at) * edge.weight, edge.weight);
        let mut shear = around.sum(Edges, pull);
        if TEARING {
            let (more, besides) = around.sum(Links, pull);
            shear = (shear.0 + more, shear.1 + besides);
        }
        let free_ratio = p.solid.free_ratio();
        let gather = |sums, [b, c, d]: [SharedOf<Softbody, R>; 3], inverse| {
            NeoHookean::gather(sums, free_ratio, at, [b.position, c.position, d.position], inverse)
        };
        let mut tets = around.fold(Tets, System::at_rest(R::lit(0.0)), gather);
        if TEARING {
            tets = around.fold(Parts, tets, gather);
        }
        let moved = at - own.before;
        let solid = p.solid.system(shear, tets).damped(p.damping / p.dt, moved);
        let mut system = System { force: (own.target - at) * resistance, ..System::at_rest(resistance) }.plus(solid);
        if CONTACT {
            let contact = p.obstacles.contact(inertia + p.solid.lambda * shear.1, p.dt);
            let [ball, ground, lid] = p.obstacles.touch(at);
            system = contact.add(system, ball, moved);
            system = contact.add(system, ground, moved);
            system = contact.add(system, lid, p.obstacles.by_lid(moved));
            let nearest = ball.distance.min(ground.distance).min(lid.distance);
            // More than the whole step would lift what lies off, again and again.
            relaxation = R::select(nearest.less(R::lit(0.0)), relaxation.min(R::lit(1.0)), relaxation);
            if TOUCHING {
                let corridor = Corridor { before: own.before, guess: own.guess, open: own.open, freedom: p.freedom };
                let place = |other: SharedOf<Softbody, R>| other.position;
                let position = corridor.step((around, Gaps), place, &contact, system, at, relaxation * own.free);
                return Node { position, ..own };
            }
        }
        let step = system.solve_robustly() * (relaxation * own.free);
        Node { position: at + step, ..own }
    }
}
