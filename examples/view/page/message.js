// What the run sends, as src/model.rs and src/message.rs lay it out.

const NONE = 0xffffffff;

/** What is told once: names, and the shape of the mesh. */
export function decodeModel(buffer) {
  const [, version, textBytes, vertices, skin, triangles, edges, tets] = new Uint32Array(buffer, 0, 8);
  if (version !== 1) throw new Error(`messages of version ${version}, of which this page knows nothing`);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 32, textBytes)));
  let at = 32 + textBytes;
  const take = (Kind, count) => { const list = new Kind(buffer, at, count); at += 4 * count; return list; };
  return {
    ...about, skin,
    vertices: take(Uint32Array, vertices),
    triangles: take(Uint32Array, 3 * triangles),
    edges: take(Uint32Array, 2 * edges),
    tets: take(Uint32Array, 4 * tets),
    places: take(Float32Array, 3 * vertices),
  };
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

/** A number in four digits. */
export function short(x) {
  if (!Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  if (x !== 0 && (size >= 1e5 || size < 1e-3)) return x.toExponential(3).replace("e+", "e");
  return String(Number(x.toPrecision(4)));
}
