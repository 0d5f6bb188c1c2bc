// Relax of the example heat, as one would write it by hand.
fn update(place: Place, own: Shared, body: Private) -> New {
    let spread = parameters().spread;
    let edges = things_0(place);
    var flow = 0.0;
    var total = 0.0;
    for (var j = 0u; j < edges.count; j++) {
        let weight = data_0(edges, j).value_;
        flow += weight * other_0(edges, j, 0u).temperature;
        total += weight;
    }
    if body.mass <= 0.0 {
        return New(own, body);
    }
    return New(Shared((body.mass * body.before + spread * flow) / (body.mass + spread * total)), body);
}
