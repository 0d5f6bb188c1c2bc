// What the run sends, as src/model.rs and src/message.rs lay it out.

const NONE = 0xffffffff;

/** What is told once: names, and the shape of the mesh. */
export function decodeModel(buffer) {
  const [, version, textBytes, vertices, skin, triangles, edges, tets] = new Uint32Array(buffer, 0, 8);
  if (version !== 1) throw new Error(`messages of version ${version}, of which this page knows nothing`);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 32, textBytes)));
  let at = 32 + textBytes;
  const take = (Kind, count) => { const list = new Kind(buffer, at, count); at += 4 * count; return list; };
  const model = {
    ...about, skin,
    vertices: take(Uint32Array, vertices),
    triangles: take(Uint32Array, 3 * triangles),
    edges: take(Uint32Array, 2 * edges),
    tets: take(Uint32Array, 4 * tets),
    places: take(Float32Array, 3 * vertices),
  };
  model.isPlaced = model.moves || vertices < 2 || model.places.some((x) => x !== 0);
  if (!model.isPlaced) spread(model.places);
  return model;
}

/** Gives points that have no places some on a disk, in the order of their numbers: each has the same room. */
function spread(places) {
  const count = places.length / 3, turn = Math.PI * (3 - Math.sqrt(5));
  for (let i = 0; i < count; i++) {
    const radius = Math.sqrt((i + 0.5) / count);
    places.set([radius * Math.cos(turn * i), radius * Math.sin(turn * i), 0], 3 * i);
  }
}

/** A state: places and values of the vertices that are shown, and what was measured. */
export function decodeFrame(buffer) {
  const [, field, component, points, values, measures] = new Uint32Array(buffer, 0, 6);
  const [step, time, rate, ...metrics] = new Float64Array(buffer, 24, 3 + measures);
  const at = 48 + 8 * measures;
  return {
    step, time, rate, metrics,
    field: field === NONE ? -1 : field,
    component: component === NONE ? -1 : component,
    points: points ? new Float32Array(buffer, at, 3 * points) : null,
    values: values ? new Float32Array(buffer, at + 12 * points, values) : null,
  };
}

export const kind = (buffer) => new Uint32Array(buffer, 0, 1)[0];

/** A number in four digits, or as many as are asked for. */
export function short(x, digits = 4) {
  if (!Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  if (x !== 0 && (size >= 10 ** Math.max(5, digits) || size < 1e-3)) return x.toExponential(digits - 1).replace("e+", "e");
  return String(Number(x.toPrecision(digits)));
}

/** How many digits tell the numbers of a range apart. */
export function digitsOf(low, high) {
  const most = Math.max(Math.abs(low), Math.abs(high));
  return high > low ? Math.min(Math.max(Math.ceil(Math.log10(most / (high - low))) + 3, 4), 9) : 4;
}
