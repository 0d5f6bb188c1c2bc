// solve of the example cloth, as one would write it by hand: membrane and pressure in one loop, matrices for what is
// symmetric.
struct System {
    force: vec3f,
    hessian: mat3x3f,
}

fn outer(a: vec3f, b: vec3f) -> mat3x3f {
    return mat3x3f(a * b.x, a * b.y, a * b.z);
}

fn diagonal(s: f32) -> mat3x3f {
    return mat3x3f(vec3f(s, 0.0, 0.0), vec3f(0.0, s, 0.0), vec3f(0.0, 0.0, s));
}

fn touch(p: Parameters, system: System, normal: vec3f, depth: f32, moved: vec3f, inertia: f32) -> System {
    if depth <= 0.0 {
        return system;
    }
    let stiffness = p.obstacles_stiffness * inertia;
    let pressure = stiffness * depth;
    let along = moved - normal * dot(normal, moved);
    let slide = length(along);
    let slip = 1e-3 * p.dt;
    let rate = select(1.0 / max(slide, slip), (2.0 - slide / slip) / slip, slide < slip);
    let friction = p.obstacles_friction * pressure * rate;
    return System(
        system.force + normal * pressure - along * friction,
        system.hessian + diagonal(friction) + outer(normal, normal * (stiffness - friction)),
    );
}

fn update(place: Place, own: Shared, body: Private) -> New {
    let p = parameters();
    let inertia = body.mass / (p.dt * p.dt);
    let resistance = inertia * (1.0 + p.drag * p.dt);
    var system = System((body.target_ - own.position) * resistance, diagonal(resistance));
    var push = vec3f(0.0);
    let triangles = things_0(place);
    for (var j = 0u; j < triangles.count; j++) {
        let rest = data_0(triangles, j);
        let e1 = other_0(triangles, j, 0u).position - own.position;
        let e2 = other_0(triangles, j, 1u).position - own.position;
        push += cross(e1, e2);
        let m = rest.inverse;
        let u = e1 * m.x + e2 * m.z;
        let w = e1 * m.y + e2 * m.w;
        let green = vec3f(0.5 * (dot(u, u) - 1.0), 0.5 * (dot(w, w) - 1.0), 0.5 * dot(u, w));
        let trace = p.lambda * (green.x + green.y);
        let stress = 2.0 * p.mu * green + vec3f(trace, trace, 0.0);
        let g = -vec2f(m.x + m.z, m.y + m.w);
        let s = vec2f(stress.x * g.x + stress.z * g.y, stress.z * g.x + stress.y * g.y) * rest.area;
        system.force -= u * s.x + w * s.y;
        let h = g * rest.area;
        let shear = p.mu * dot(g, h);
        let stretch = p.mu + p.lambda;
        let m0 = shear + stretch * (g.x * h.x);
        let m1 = stretch * (g.x * h.y);
        let m2 = shear + stretch * (g.y * h.y);
        system.hessian += diagonal(max(dot(g, s), 0.0)) + outer(u, u * m0 + w * m1) + outer(w, u * m1 + w * m2);
    }
    system.force += push * (p.pressure / 6.0);
    let hinges = things_1(place);
    for (var j = 0u; j < hinges.count; j++) {
        let crease = data_1(hinges, j);
        let k = crease.weights;
        let sum = (other_1(hinges, j, 0u).position - own.position) * k.y
            + (other_1(hinges, j, 1u).position - own.position) * k.z
            + (other_1(hinges, j, 2u).position - own.position) * k.w;
        let stiffness = p.bend * k.x;
        system.force -= sum * (stiffness * (1.0 - crease.rest / max(length(sum), 1e-12)));
        system.hessian += diagonal(stiffness * k.x);
    }
    let from_center = own.position - p.obstacles_center;
    let distance = max(length(from_center), 1e-9);
    let moved = own.position - body.before;
    system = touch(p, system, from_center / distance, p.obstacles_radius - distance, moved, inertia);
    system = touch(p, system, vec3f(0.0, 0.0, 1.0), p.obstacles_ground - own.position.z, moved, inertia);
    let h = system.hessian;
    let inverse = transpose(mat3x3f(cross(h[1], h[2]), cross(h[2], h[0]), cross(h[0], h[1])));
    let step = inverse * system.force / dot(h[0], cross(h[1], h[2]));
    return New(Shared(own.position + step * (p.relaxation * body.free)), body);
}
