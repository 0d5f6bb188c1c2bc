// Leap of the example spring, as one would write it by hand.
fn update(place: Place, own: Shared, body: Private) -> New {
    let p = parameters();
    let springs = things_0(place);
    var force = vec3f(0.0);
    for (var j = 0u; j < springs.count; j++) {
        let d = own.half - other_0(springs, j, 0u).half;
        force += d * ((p.rest - length(d)) * p.stiffness);
    }
    let velocity = (body.velocity + (force - body.velocity * p.damping) * p.dt) * body.free;
    let position = body.position + velocity * p.dt;
    return New(Shared(position + velocity * (0.5 * p.dt)), Private(position, velocity, body.free));
}
