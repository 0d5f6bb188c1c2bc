//! States of a mesh as one model, in the binary file of glTF 2.0: for Blender, and for pages that turn it.
//!
//! The first state is the shape; each later one is a *morph target*, the differences from the first, and an animation blends from one to
//! the next. So between two states the places, normals and colors are means of theirs. glTF's vertical axis is y, and colors are linear.
//!
//! A vertex on a crease of the first state, or between triangles that are turned against each other, is there once for each normal.
//!
//! Source: Khronos, glTF 2.0 Specification (ISO/IEC 12113:2022), sections 3.7.2.2 and 3.11, and 4.4 for the container.

use std::io;
use std::path::Path;

use meshweft_mesh::io::replace;
use serde_json::{Value, json};

use super::colormap::{ColorMap, bytes_to_linear, place_in, to_linear};
use super::figure::CREASE;
use super::scene::PLAIN;
use super::vector::{Vector, add, corners, cross, dot, sub, unit};

/// States of a mesh that other programs play.
#[derive(Clone, Debug, Default)]
pub struct Model<'a> {
    /// What it is called there.
    pub name: &'a str,
    /// Corners and ends, as numbers of points: edges are drawn where there are no triangles, and points where there are neither.
    pub triangles: &'a [[u32; 3]],
    /// See there.
    pub edges: &'a [[u32; 2]],
    /// The states in the order of time, one at least.
    pub keys: Vec<Key>,
    /// The colors of values and the ends of their scale, if the states have values.
    pub colors: Option<(ColorMap, [f64; 2])>,
}

/// A state of a [`Model`].
#[derive(Clone, Debug, Default)]
pub struct Key {
    /// When it is shown, in seconds.
    pub time_s: f64,
    /// Where the points are. Shape [points × 3].
    pub points: Vec<[f64; 3]>,
    /// The value of each point, if they have a color.
    pub values: Vec<f64>,
}

impl Model<'_> {
    /// Bytes that each state takes a vertex of the file.
    pub const STATE_BYTES: usize = 12 + 12 + 8;

    /// Writes a `.glb`, replacing a file of that name.
    ///
    /// # Errors
    /// A file that cannot be written, or of more than 4 GiB.
    ///
    /// ```
    /// use meshweft_picture::{Key, Model};
    /// let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    /// let model = Model { name: "one", triangles: &[[0, 1, 2]], keys: vec![Key { points, ..Key::default() }], ..Model::default() };
    /// let path = tempfile::tempdir()?.path().with_extension("glb");
    /// model.write(&path)?;
    /// assert_eq!(std::fs::read(path)?[..4], *b"glTF");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let (head, body) = self.parts();
        let mut head = head.to_string().into_bytes();
        head.resize(head.len().next_multiple_of(4), b' ');
        let word = |n: usize| u32::try_from(n).map(u32::to_le_bytes).map_err(|_| io::ErrorKind::FileTooLarge);
        let all = word(12 + 8 + head.len() + 8 + body.len())?;
        let (head_bytes, body_bytes) = (word(head.len())?, word(body.len())?);
        let written = replace(path, |out| {
            let chunks = [&b"glTF\x02\0\0\0"[..], &all, &head_bytes, b"JSON", &head, &body_bytes, b"BIN\0", &body];
            chunks.into_iter().try_for_each(|chunk| out.write_all(chunk))
        });
        written.map(drop).map_err(io::Error::other)
    }

    /// The description, and the numbers that it describes.
    fn parts(&self) -> (Value, Vec<u8>) {
        let mut buffer = Buffer::default();
        let count = self.keys.first().map_or(0, |first| first.points.len() as u32);
        let (mode, vertices, indices) = if !self.triangles.is_empty() {
            let (vertices, triangles) = creased(&upright(&self.keys[0].points), self.triangles);
            (4, vertices, triangles.into_flattened())
        } else if !self.edges.is_empty() {
            (1, (0..count).collect(), self.edges.as_flattened().to_vec())
        } else {
            (0, (0..count).collect(), (0..count).collect())
        };
        let list =
            buffer.push(&indices, |i| i.to_le_bytes(), json!({ "componentType": 5125, "type": "SCALAR" }), 34963);
        let triangles = if mode == 4 { indices.as_chunks().0 } else { &[] };
        let (mut base, mut targets) = (None, Vec::new());
        for key in &self.keys {
            let points = upright(&vertices.iter().map(|&v| key.points[v as usize]).collect::<Vec<_>>());
            let state = State { normals: normals(&points, triangles), points, colors: self.colors_of(key, &vertices) };
            match &base {
                None => base = Some((buffer.state(&state, false), state)),
                Some((_, base)) => targets.push(buffer.state(&state.less(base), true)),
            }
        }
        let attributes = base.map(|(attributes, _)| attributes).unwrap_or_default();
        let mut primitive = json!({ "attributes": attributes, "indices": list, "mode": mode, "material": 0 });
        let mut mesh = json!({ "name": self.name });
        let mut animations = Vec::new();
        if !targets.is_empty() {
            let names: Vec<String> = self.keys[1..].iter().map(|key| format!("{} s", key.time_s)).collect();
            mesh["weights"] = json!(vec![0.0; targets.len()]);
            mesh["extras"] = json!({ "targetNames": names });
            animations.push(self.animation(&mut buffer));
            primitive["targets"] = targets.into();
        }
        mesh["primitives"] = json!([primitive]);
        let plain = if self.colors.is_some() { [1.0; 3] } else { bytes_to_linear(PLAIN) };
        let look = json!({ "baseColorFactor": [plain[0], plain[1], plain[2], 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.7 });
        let mut head = json!({
            "asset": { "version": "2.0", "generator": "Meshweft" },
            "scene": 0,
            "scenes": [{ "nodes": [0] }],
            "nodes": [{ "mesh": 0, "name": self.name }],
            "meshes": [mesh],
            "materials": [{ "pbrMetallicRoughness": look, "doubleSided": true }],
            "buffers": [{ "byteLength": buffer.bytes.len() }],
            "bufferViews": buffer.views,
            "accessors": buffer.accessors,
        });
        if !animations.is_empty() {
            head["animations"] = animations.into();
        }
        (head, buffer.bytes)
    }

    /// The linear color of each vertex in a state.
    fn colors_of(&self, key: &Key, vertices: &[u32]) -> Vec<Vector> {
        let Some((map, range)) = self.colors else { return Vec::new() };
        vertices.iter().map(|&v| to_linear(map.color(place_in(range, key.values[v as usize])))).collect()
    }

    /// Blends from each state to the next.
    fn animation(&self, buffer: &mut Buffer) -> Value {
        let mut times: Vec<[f32; 1]> = self.keys.iter().map(|key| [key.time_s as f32]).collect();
        // Times that are equal in single precision must ascend all the same.
        (1..times.len()).for_each(|k| times[k][0] = times[k][0].max(times[k - 1][0].next_up()));
        let weight = |k: usize, target: usize| [if k == target + 1 { 1.0 } else { 0.0 }];
        let weights: Vec<[f32; 1]> =
            (0..times.len()).flat_map(|k| (0..times.len() - 1).map(move |target| weight(k, target))).collect();
        let (input, output) = (buffer.floats(&times, 0), buffer.floats(&weights, 0));
        json!({
            "name": self.name,
            "samplers": [{ "input": input, "output": output, "interpolation": "LINEAR" }],
            "channels": [{ "sampler": 0, "target": { "node": 0, "path": "weights" } }],
        })
    }
}

/// What a state says of the vertices, or how it differs from the first.
struct State {
    points: Vec<Vector>,
    normals: Vec<Vector>,
    colors: Vec<Vector>,
}

impl State {
    /// How it differs from another one.
    fn less(&self, other: &State) -> State {
        let less = |a: &[Vector], b: &[Vector]| a.iter().zip(b).map(|(a, b)| sub(*a, *b)).collect();
        State {
            points: less(&self.points, &other.points),
            normals: less(&self.normals, &other.normals),
            colors: less(&self.colors, &other.colors),
        }
    }
}

/// The numbers of a file, and what it says of them.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    views: Vec<Value>,
    accessors: Vec<Value>,
    /// The list of zeros for all vertices, which takes no bytes.
    zeros: Option<usize>,
}

impl Buffer {
    /// Adds a list; returns its number. `use_of`: what of a GPU it is for, 0 for nothing.
    fn push<T: Copy, const N: usize>(
        &mut self,
        list: &[T],
        bytes: impl Fn(T) -> [u8; N],
        mut kind: Value,
        use_of: u32,
    ) -> usize {
        let mut view = json!({ "buffer": 0, "byteOffset": self.bytes.len(), "byteLength": N * list.len() });
        if use_of > 0 {
            view["target"] = use_of.into();
        }
        self.bytes.extend(list.iter().flat_map(|x| bytes(*x)));
        kind["bufferView"] = self.views.len().into();
        kind["count"] = list.len().into();
        self.views.push(view);
        self.accessors.push(kind);
        self.accessors.len() - 1
    }

    /// Adds numbers with their least and largest.
    fn floats<const K: usize>(&mut self, rows: &[[f32; K]], use_of: u32) -> usize {
        let ends =
            |pick: fn(f32, f32) -> f32| rows.iter().copied().reduce(|a, b| std::array::from_fn(|k| pick(a[k], b[k])));
        let kind = json!({
            "componentType": 5126,
            "type": if K == 1 { "SCALAR" } else { "VEC3" },
            "min": ends(f32::min).map(|row| row.to_vec()),
            "max": ends(f32::max).map(|row| row.to_vec()),
        });
        let first = self.bytes.len();
        let number = self.push(rows, |_| [], kind, use_of);
        self.bytes.extend(rows.as_flattened().iter().flat_map(|x| x.to_le_bytes()));
        let view = self.views.len() - 1;
        self.views[view]["byteLength"] = (self.bytes.len() - first).into();
        number
    }

    /// What says that nothing moves. It must be said: three.js draws no states that differ by color alone.
    fn zeros(&mut self, count: usize) -> usize {
        let none = [0.0; 3];
        *self.zeros.get_or_insert_with(|| {
            self.accessors
                .push(json!({ "componentType": 5126, "type": "VEC3", "count": count, "min": none, "max": none }));
            self.accessors.len() - 1
        })
    }

    /// Adds what there is of a state; returns its attributes. Colors have 16 bits, with a sign where they are differences.
    fn state(&mut self, state: &State, is_difference: bool) -> Value {
        let mut attributes = json!({});
        for (name, rows) in [("POSITION", &state.points), ("NORMAL", &state.normals)] {
            if is_difference && !rows.is_empty() && rows.as_flattened().iter().all(|x| *x == 0.0) {
                attributes[name] = self.zeros(rows.len()).into();
            } else if !rows.is_empty() {
                attributes[name] = self.floats(rows, 34962).into();
            }
        }
        if !state.colors.is_empty() {
            let (code, one, alpha) = if is_difference { (5122, 32767.0, 0) } else { (5123, 65535.0, 65535) };
            let words = |color: Vector| -> [u8; 8] {
                let [r, g, b] = color.map(|x| ((x * one).round() as i32 as u16).to_le_bytes());
                let [low, high] = u16::to_le_bytes(alpha);
                [r[0], r[1], g[0], g[1], b[0], b[1], low, high]
            };
            let kind = json!({ "componentType": code, "type": "VEC4", "normalized": true });
            attributes["COLOR_0"] = self.push(&state.colors, words, kind, 34962).into();
        }
        attributes
    }
}

/// Points with y up instead of z.
fn upright(points: &[[f64; 3]]) -> Vec<Vector> {
    points.iter().map(|&[x, y, z]| [x as f32, z as f32, -y as f32]).collect()
}

/// The number of the point of each vertex, and the triangles between vertices: each point once for every normal that it needs.
fn creased(points: &[Vector], triangles: &[[u32; 3]]) -> (Vec<u32>, Vec<[u32; 3]>) {
    // The vertices of each point, with the normal of the first triangle of each.
    let mut copies: Vec<Vec<(u32, Vector)>> = vec![Vec::new(); points.len()];
    let mut vertices = Vec::new();
    let mut vertex = |v: u32, normal: Vector| {
        let known = copies[v as usize].iter().find(|(_, first)| dot(*first, normal) >= CREASE).map(|(copy, _)| *copy);
        known.unwrap_or_else(|| {
            let copy = vertices.len() as u32;
            copies[v as usize].push((copy, normal));
            vertices.push(v);
            copy
        })
    };
    let mut turned = |&triangle: &[u32; 3]| {
        let normal = unit(area(points, triangle));
        triangle.map(|v| vertex(v, normal))
    };
    let triangles = triangles.iter().map(&mut turned).collect();
    (vertices, triangles)
}

/// Twice the area of a triangle, along its normal.
fn area(points: &[Vector], triangle: [u32; 3]) -> Vector {
    let [a, b, c] = corners(points, triangle);
    cross(sub(b, a), sub(c, a))
}

/// The normals of vertices: means over their triangles, weighted by area. None without triangles.
fn normals(points: &[Vector], triangles: &[[u32; 3]]) -> Vec<Vector> {
    if triangles.is_empty() {
        return Vec::new();
    }
    let mut sums = vec![[0.0; 3]; points.len()];
    for &triangle in triangles {
        let area = area(points, triangle);
        triangle.iter().for_each(|&v| sums[v as usize] = add(sums[v as usize], area));
    }
    sums.into_iter().map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::generate::generate;

    /// The numbers that an accessor names.
    fn numbers(head: &Value, body: &[u8], accessor: &Value) -> Vec<f32> {
        let view = &head["bufferViews"]
            [head["accessors"][accessor.as_u64().unwrap() as usize]["bufferView"].as_u64().unwrap() as usize];
        let [first, count] = ["byteOffset", "byteLength"].map(|name| view[name].as_u64().unwrap() as usize);
        body[first..first + count].as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }

    #[test]
    fn later_states_are_differences_that_an_animation_blends() {
        let raised = |z: f64, values: [f64; 3]| Key {
            time_s: z,
            points: vec![[0.0, 0.0, z], [1.0, 0.0, z], [0.0, 1.0, z]],
            values: values.to_vec(),
        };
        let keys = vec![raised(0.0, [0.0; 3]), raised(1.0, [0.0, 0.5, 1.0]), raised(3.0, [f64::NAN; 3])];
        let colors = Some((ColorMap::Viridis, [0.0, 1.0]));
        let model = Model { triangles: &[[0, 1, 2]], keys, colors, ..Model::default() };
        let (head, body) = model.parts();
        let primitive = &head["meshes"][0]["primitives"][0];
        let list = |accessor: &Value| numbers(&head, &body, accessor);
        assert_eq!(list(&primitive["attributes"]["POSITION"]), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0]);
        assert_eq!(list(&primitive["attributes"]["NORMAL"])[..3], [0.0, 1.0, 0.0], "z is up, which glTF calls y");
        assert_eq!(list(&primitive["targets"][1]["POSITION"])[..3], [0.0, 3.0, 0.0]);
        let sampler = &head["animations"][0]["samplers"][0];
        assert_eq!(list(&sampler["input"]), [0.0, 1.0, 3.0]);
        assert_eq!(list(&sampler["output"]), [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
        assert_eq!(head["buffers"][0]["byteLength"], body.len());
    }

    #[test]
    fn creases_have_a_normal_for_each_side_and_bends_one() {
        let count = |spec: &str| {
            let mesh = generate(spec, 1).unwrap();
            creased(&upright(mesh.points()), &mesh.surface()).0.len()
        };
        assert_eq!((count("torus:32"), generate("torus:32", 1).unwrap().points().len()), (1024 / 2, 1024 / 2));
        assert_eq!(count("hexes:3"), 6 * 9);
    }

    #[test]
    fn what_stands_still_takes_bytes_for_its_colors_alone() {
        let mesh = generate("chain:3", 1).unwrap();
        let edges = mesh.edges();
        let key = |value: f64| Key { points: mesh.points().to_vec(), values: vec![value; 3], ..Key::default() };
        let keys = vec![key(0.0), key(1.0)];
        let model = Model { edges: &edges, keys, colors: Some((ColorMap::Plasma, [0.0, 1.0])), ..Model::default() };
        let (head, body) = model.parts();
        let primitive = &head["meshes"][0]["primitives"][0];
        assert_eq!(primitive["mode"], 1);
        let zeros = &head["accessors"][primitive["targets"][0]["POSITION"].as_u64().unwrap() as usize];
        assert_eq!((&zeros["count"], &zeros["bufferView"]), (&json!(3), &Value::Null));
        assert_eq!(body.len(), 4 * 4 + 3 * (12 + 8 + 8) + 2 * 4 + 2 * 4);
    }
}
