// Kick of the example wave, as one would write it by hand.
fn update(place: Place, own: Shared, body: Private) -> New {
    let p = parameters();
    let edges = things_0(place);
    var pull = 0.0;
    for (var j = 0u; j < edges.count; j++) {
        pull += data_0(edges, j).value_ * (other_0(edges, j, 0u).displacement - own.displacement);
    }
    let acceleration = p.tension * body.mobility * pull - p.damping * body.velocity;
    return New(own, Private(body.velocity + p.dt * acceleration, body.mobility));
}
