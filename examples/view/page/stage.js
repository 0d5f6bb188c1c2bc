// The mesh in space: what is drawn, from where, and what lies under the pointer.

import * as three from "./three.min.js";
import { section } from "./section.js";

/** Normals of larger surfaces come from the screen: triangles then look flat. */
const MOST_SMOOTH = 400000;

const VERTEX = `
attribute float value;
varying vec3 vPlace, vNormal, vWorld;
varying float vValue;
void main() {
  vec4 place = modelViewMatrix * vec4(position, 1.0);
  vPlace = place.xyz; vWorld = position; vValue = value;
  vNormal = normalMatrix * normal;
  gl_PointSize = 5.0;
  gl_Position = projectionMatrix * place;
}`;

const FRAGMENT = `
uniform sampler2D map;
uniform float low, high, lit, smoothly, plain, fade;
uniform vec3 color, backColor;
uniform vec4 plane;
varying vec3 vPlace, vNormal, vWorld;
varying float vValue;
void main() {
  if (dot(plane.xyz, vWorld) > plane.w) discard;
  vec3 base = gl_FrontFacing ? color : backColor;
  if (plain < 0.5) {
    float t = high > low ? (vValue - low) / (high - low) : 0.5;
    base = isnan(vValue) ? vec3(0.62) : texture2D(map, vec2(clamp(t, 0.0, 1.0) * 255.0 / 256.0 + 0.5 / 256.0, 0.5)).rgb;
  }
  if (lit > 0.5) {
    vec3 toward = normalize(-vPlace);
    vec3 normal = smoothly > 0.5 ? normalize(vNormal) : normalize(cross(dFdx(vPlace), dFdy(vPlace)));
    if (dot(normal, toward) < 0.0) normal = -normal;
    float lamp = max(dot(normal, normalize(vec3(-0.45, 0.65, 0.62))), 0.0);
    float shine = pow(max(dot(normal, normalize(vec3(-0.3, 0.45, 1.0))), 0.0), 40.0);
    base = base * (0.5 + 0.5 * lamp + 0.12 * dot(normal, toward)) + 0.06 * shine;
  }
  gl_FragColor = vec4(base, fade);
}`;

export class Stage {
  constructor(canvas) {
    this.canvas = canvas;
    this.renderer = new three.WebGLRenderer({ canvas, antialias: true, alpha: true });
    this.scene = new three.Scene();
    this.camera = new three.PerspectiveCamera(32, 1, 0.01, 100);
    this.camera.up.set(0, 0, 1);
    this.controls = new three.OrbitControls(this.camera, canvas);
    this.controls.addEventListener("change", () => this.touch());
    this.shared = {
      map: { value: null }, low: { value: 0 }, high: { value: 1 }, plain: { value: 1 },
      plane: { value: new three.Vector4(0, 0, 0, 1) },
      color: { value: new three.Color(0.30, 0.45, 0.69) }, backColor: { value: new three.Color(0.62, 0.68, 0.78) },
    };
    this.cut = null;
    this.sizes = [0, 0];
  }

  touch() { this.dirty = true; }

  material(own) {
    const uniforms = { ...this.shared };
    for (const [name, value] of Object.entries({ lit: 1, smoothly: 0, fade: 1, ...own })) uniforms[name] = { value };
    return new three.ShaderMaterial({
      uniforms, vertexShader: VERTEX, fragmentShader: FRAGMENT, side: three.DoubleSide, transparent: uniforms.fade.value < 1,
    });
  }

  /** Builds what is drawn of a mesh. */
  /** Draws another mesh; `stays`: the camera and what is shown do. */
  build(model, stays = false) {
    const shown = stays && [this.faces.visible, this.wires.visible, this.dots.visible];
    this.scene.clear();
    this.model = model;
    const count = model.vertices.length;
    this.position = new three.BufferAttribute(new Float32Array(model.places), 3).setUsage(three.DynamicDrawUsage);
    this.value = new three.BufferAttribute(new Float32Array(count), 1).setUsage(three.DynamicDrawUsage);
    const shape = (index) => {
      const geometry = new three.BufferGeometry();
      geometry.setAttribute("position", this.position);
      geometry.setAttribute("value", this.value);
      if (index) geometry.setIndex(new three.BufferAttribute(index, 1));
      geometry.boundingSphere = new three.Sphere(new three.Vector3(), Infinity);
      return geometry;
    };
    const add = (thing) => { thing.frustumCulled = false; this.scene.add(thing); return thing; };
    const hasFaces = model.triangles.length > 0;
    this.smooth = hasFaces && !model.solid && model.triangles.length <= 3 * MOST_SMOOTH;
    const faces = shape(model.triangles);
    if (this.smooth) {
      this.normal = new three.BufferAttribute(new Float32Array(3 * count), 3).setUsage(three.DynamicDrawUsage);
      faces.setAttribute("normal", this.normal);
    }
    this.faces = add(new three.Mesh(faces, this.material({ smoothly: this.smooth ? 1 : 0 })));
    Object.assign(this.faces.material, { polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 1 });
    this.wires = add(new three.LineSegments(shape(model.edges), this.material({ lit: 0, fade: hasFaces ? 0.35 : 1 })));
    if (hasFaces) {
      // Wires have a color of their own.
      this.wires.material.uniforms.plain = { value: 1 };
      this.wires.material.uniforms.color = this.wires.material.uniforms.backColor = { value: new three.Color(0, 0, 0) };
    }
    this.wires.visible = this.showsLines = !hasFaces && model.isPlaced;
    this.dots = add(new three.Points(shape(null), this.material({ lit: 0 })));
    this.dots.visible = !hasFaces;
    this.inner = { places: new Float32Array(0), values: new Float32Array(0) };
    this.slice = add(new three.Mesh(new three.BufferGeometry(), this.material({ lit: 0 })));
    // Which side of a triangle is in front means nothing here.
    this.slice.material.uniforms.color = this.slice.material.uniforms.backColor;
    this.slice.material.uniforms.plane = { value: new three.Vector4(0, 0, 0, 1) };
    this.mark = add(new three.Points(new three.BufferGeometry(), new three.PointsMaterial({
      size: 9, sizeAttenuation: false, depthTest: false, color: 0xe0483e,
    })));
    this.mark.geometry.setAttribute("position", new three.BufferAttribute(new Float32Array(3), 3));
    this.mark.visible = false;
    this.mark.renderOrder = 2;
    this.addProps(model);
    this.placesMoved();
    if (stays) [this.faces.visible, this.wires.visible, this.dots.visible] = shown;
    else this.home();
  }

  addProps({ props, center }) {
    this.props = new three.Group();
    const [x, y, z] = center;
    const ball = props.filter((prop) => prop.ball);
    for (const { ball: at, radius } of ball) {
      const uniforms = { color: new three.Color(0.66, 0.62, 0.58), backColor: new three.Color(0.66, 0.62, 0.58) };
      // A little smaller, so that it is not seen through what lies on it.
      const thing = new three.Mesh(new three.SphereGeometry(0.985 * radius, 64, 40), this.material({ smoothly: 1, ...uniforms }));
      thing.material.uniforms.plain = { value: 1 };
      thing.material.uniforms.plane = { value: new three.Vector4(0, 0, 0, 1) };
      thing.position.set(at[0] - x, at[1] - y, at[2] - z);
      this.props.add(thing);
    }
    const ground = props.findLast((prop) => prop.ground !== undefined);
    if (ground) {
      const size = 6 * this.box().radius;
      this.grid = new three.GridHelper(size, 24, 0x808890, 0x808890);
      Object.assign(this.grid.material, { transparent: true, opacity: 0.25 });
      this.grid.rotation.x = Math.PI / 2;
      this.grid.position.z = ground.ground - z;
      this.props.add(this.grid);
    }
    this.scene.add(this.props);
  }

  /** The middle and the ends of what is drawn now. */
  box() {
    const [low, high] = [[Infinity, Infinity, Infinity], [-Infinity, -Infinity, -Infinity]];
    const places = this.position.array, count = 3 * this.model.skin;
    for (let i = 0; i < count; i++) {
      const x = places[i], k = i % 3;
      if (x < low[k]) low[k] = x;
      if (x > high[k]) high[k] = x;
    }
    if (!low.every(Number.isFinite)) return { low: [0, 0, 0], high: [1, 1, 1], radius: 1 };
    const radius = 0.5 * Math.hypot(...high.map((x, k) => x - low[k])) || 1;
    return { low, high, radius };
  }

  /** Sees the whole from the front right and above. */
  home() {
    let { low, high, radius } = this.box();
    const [x, y, z] = this.model.center;
    for (const { ball: at, radius: r } of this.model.props.filter((prop) => prop.ball)) {
      [at[0] - x, at[1] - y, at[2] - z].forEach((c, k) => { low[k] = Math.min(low[k], c - r); high[k] = Math.max(high[k], c + r); });
      radius = 0.5 * Math.hypot(...high.map((c, k) => c - low[k]));
    }
    const ground = this.model.props.find((prop) => prop.ground !== undefined);
    if (ground) {
      low[2] = Math.min(low[2], ground.ground - z);
      radius = 0.5 * Math.hypot(...high.map((c, k) => c - low[k]));
    }
    const isFlat = high[2] - low[2] < 0.1 * radius;
    const [around, above] = [-62, isFlat ? 52 : 26].map((degrees) => degrees * Math.PI / 180);
    const middle = new three.Vector3(...low.map((c, k) => 0.5 * (c + high[k])));
    const aspect = Math.min(1, this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight));
    const far = 1.02 * radius / Math.sin(this.camera.fov * Math.PI / 360) / aspect;
    const toward = new three.Vector3(Math.cos(around) * Math.cos(above), Math.sin(around) * Math.cos(above), Math.sin(above));
    this.controls.target.copy(middle);
    this.camera.position.copy(middle).addScaledVector(toward, far);
    this.camera.near = far / 200;
    this.camera.far = 40 * far;
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.touch();
  }

  /** Takes in a state. */
  apply({ points, values }) {
    if (points) {
      this.position.array.set(points);
      this.position.clearUpdateRanges();
      this.position.addUpdateRange(0, points.length);
      this.position.needsUpdate = true;
    }
    this.shared.plain.value = values ? 0 : 1;
    if (values) {
      this.value.array.set(values);
      this.value.clearUpdateRanges();
      this.value.addUpdateRange(0, values.length);
      this.value.needsUpdate = true;
    }
    if (points) this.placesMoved();
    this.updateCut();
    this.updateMark();
    this.touch();
  }

  placesMoved() {
    if (!this.smooth) return;
    const [places, normals, corners] = [this.position.array, this.normal.array, this.model.triangles];
    normals.fill(0);
    for (let i = 0; i < corners.length; i += 3) {
      const a = 3 * corners[i], b = 3 * corners[i + 1], c = 3 * corners[i + 2];
      const ux = places[b] - places[a], uy = places[b + 1] - places[a + 1], uz = places[b + 2] - places[a + 2];
      const vx = places[c] - places[a], vy = places[c + 1] - places[a + 1], vz = places[c + 2] - places[a + 2];
      const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
      normals[a] += x; normals[a + 1] += y; normals[a + 2] += z;
      normals[b] += x; normals[b + 1] += y; normals[b + 2] += z;
      normals[c] += x; normals[c + 1] += y; normals[c + 2] += z;
    }
    // Lengths are made one where they are used; so small ones must not vanish on the way.
    const size = 1 / (this.box().radius ** 2);
    for (let i = 0; i < normals.length; i++) normals[i] *= size;
    this.normal.needsUpdate = true;
  }

  /** Leaves out what lies behind a plane across an axis, at a share of the box; `null` for nothing. */
  setCut(cut) {
    this.cut = cut;
    this.updateCut();
    this.touch();
  }

  updateCut() {
    const slice = this.slice;
    if (!this.cut) {
      this.shared.plane.value.set(0, 0, 0, 1);
      slice.visible = false;
      return;
    }
    const { axis, at, flip } = this.cut;
    const { low, high } = this.box();
    const level = low[axis] + at * (high[axis] - low[axis]);
    const sign = flip ? -1 : 1;
    const normal = [0, 1, 2].map((k) => (k === axis ? sign : 0));
    this.shared.plane.value.set(...normal, sign * level);
    slice.visible = this.model.tets.length > 0;
    if (!slice.visible) return;
    const [places, count] = [this.position.array, this.model.vertices.length];
    this.distances ??= new Float32Array(count);
    for (let v = 0; v < count; v++) this.distances[v] = sign * (places[3 * v + axis] - level);
    const used = section(this.model.tets, this.distances, places, this.value.array, this.inner);
    const geometry = slice.geometry;
    if (geometry.getAttribute("position")?.array !== this.inner.places) {
      geometry.dispose();
      slice.geometry = new three.BufferGeometry();
      slice.geometry.setAttribute("position", new three.BufferAttribute(this.inner.places, 3).setUsage(three.DynamicDrawUsage));
      slice.geometry.setAttribute("value", new three.BufferAttribute(this.inner.values, 1).setUsage(three.DynamicDrawUsage));
    }
    for (const name of ["position", "value"]) slice.geometry.getAttribute(name).needsUpdate = true;
    slice.geometry.setDrawRange(0, used / 3);
  }

  setMap(colors) {
    const bytes = new Uint8Array(1024);
    for (let i = 0; i < 256; i++) bytes.set([colors[3 * i], colors[3 * i + 1], colors[3 * i + 2], 255], 4 * i);
    const texture = new three.DataTexture(bytes, 256, 1);
    texture.minFilter = texture.magFilter = three.LinearFilter;
    texture.needsUpdate = true;
    this.shared.map.value?.dispose();
    this.shared.map.value = texture;
    this.touch();
  }

  setRange(low, high) {
    [this.shared.low.value, this.shared.high.value] = [low, high];
    this.touch();
  }

  setWires(color) {
    if (this.model?.triangles.length) this.wires.material.uniforms.color.value.set(color);
    this.touch();
  }

  /** The place in the list of vertices of what is nearest to a point of the screen; −1 if nothing is there. */
  under(x, y) {
    const { width, height } = this.canvas.getBoundingClientRect();
    const pointer = new three.Vector2(2 * x / width - 1, 1 - 2 * y / height);
    const places = this.position.array;
    const at = (v) => new three.Vector3(places[3 * v], places[3 * v + 1], places[3 * v + 2]);
    if (this.faces.visible && this.model.triangles.length) {
      const ray = new three.Raycaster();
      ray.setFromCamera(pointer, this.camera);
      const plane = this.shared.plane.value;
      const isLeft = ({ point: p }) => plane.x * p.x + plane.y * p.y + plane.z * p.z <= plane.w;
      const hit = ray.intersectObject(this.faces, false).find(isLeft);
      if (!hit) return -1;
      const corners = [hit.face.a, hit.face.b, hit.face.c];
      const far = corners.map((v) => at(v).distanceTo(hit.point));
      return corners[far.indexOf(Math.min(...far))];
    }
    let [best, nearest] = [-1, 14];
    for (let v = 0; v < this.model.skin; v++) {
      const p = at(v).project(this.camera);
      const off = Math.hypot((p.x - pointer.x) * width / 2, (p.y - pointer.y) * height / 2);
      if (off < nearest && p.z < 1) [best, nearest] = [v, off];
    }
    return best;
  }

  /** Marks a vertex by its place in the list; −1 for none. */
  setMark(place) {
    this.marked = place;
    this.mark.visible = place >= 0;
    this.updateMark();
    this.touch();
  }

  updateMark() {
    if (!this.mark?.visible) return;
    const spot = this.mark.geometry.getAttribute("position");
    spot.array.set(this.position.array.subarray(3 * this.marked, 3 * this.marked + 3));
    spot.needsUpdate = true;
    this.mark.geometry.boundingSphere = null;
  }

  /** Draws, if anything has changed. Returns whether it has. */
  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width !== this.sizes[0] || height !== this.sizes[1]) {
      this.sizes = [width, height];
      this.renderer.setPixelRatio(Math.min(2, devicePixelRatio));
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / Math.max(1, height);
      this.camera.updateProjectionMatrix();
      this.dirty = true;
    }
    if (!this.dirty) return false;
    this.dirty = false;
    this.renderer.render(this.scene, this.camera);
    return true;
  }
}
