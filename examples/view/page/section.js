// A plane through a solid: the polygons in which it meets the tets, with the values there.

/**
 * Cuts tets. `distances`: of each vertex from the plane. Returns how many numbers of `out.places` are in use: corners of triangles,
 * which `out.values` has the values of.
 */
export function section(tets, distances, places, values, out) {
  let count = 0;
  const room = (corners) => {
    if (3 * (count + corners) > out.places.length) {
      const [bigPlaces, bigValues] = [new Float32Array(6 * (count + corners)), new Float32Array(2 * (count + corners))];
      bigPlaces.set(out.places);
      bigValues.set(out.values);
      out.places = bigPlaces;
      out.values = bigValues;
    }
  };
  const add = (a, b) => {
    const t = distances[a] / (distances[a] - distances[b]);
    for (let k = 0; k < 3; k++) out.places[3 * count + k] = places[3 * a + k] * (1 - t) + places[3 * b + k] * t;
    out.values[count] = values ? values[a] * (1 - t) + values[b] * t : 0;
    count++;
  };
  const front = new Uint32Array(4), back = new Uint32Array(4);
  for (let i = 0; i < tets.length; i += 4) {
    let f = 0, b = 0;
    for (let k = 0; k < 4; k++) {
      const v = tets[i + k];
      if (distances[v] > 0) front[f++] = v; else back[b++] = v;
    }
    if (f === 0 || b === 0) continue;
    room(6);
    if (f === 1) for (let k = 0; k < 3; k++) add(front[0], back[k]);
    else if (b === 1) for (let k = 0; k < 3; k++) add(back[0], front[k]);
    else {
      const [p, q] = front, [r, s] = back;
      add(p, r); add(p, s); add(q, s);
      add(p, r); add(q, s); add(q, r);
    }
  }
  return 3 * count;
}
