//! What a page is told once: names, units, colors, and the shape of the mesh.

use crate::shape::Shape;
use axum::body::Bytes;
use meshweft_mesh::{Field, Means, Mesh};
use meshweft_picture::{ColorMap, Prop};
use serde_json::{Value, json};

/// The first number of the message, and the version of all messages.
const KIND: u32 = 1;
const VERSION: u32 = 1;

/// What a page is told once.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// What is shown: the name of a program or a file.
    pub name: String,
    /// More of it, in a line.
    pub about: String,
    /// What can color the mesh.
    pub fields: Vec<Quantity>,
    /// The one that does at first, as a place in `fields`; none is a plain color.
    pub color: Option<usize>,
    /// The colors of that one.
    pub map: ColorMap,
    /// What is measured.
    pub metrics: Vec<Metric>,
    /// What was measured before, over simulated seconds.
    pub history: Vec<(f64, Vec<f64>)>,
    /// Whether its points move: frames then have them.
    pub moves: bool,
    /// Where its points are at first, shape [n × 3].
    pub points: Vec<[f64; 3]>,
    /// What of it is drawn.
    pub shape: Shape,
    /// Cells of the mesh.
    pub cells: usize,
    /// What can be set while the run goes on.
    pub dials: Vec<Dial>,
    /// Things around it.
    pub props: Vec<Prop>,
    /// What there is to play.
    pub span: Span,
}

/// What there is to play.
#[derive(Clone, Debug, Default)]
pub enum Span {
    /// A run that goes on.
    #[default]
    Run,
    /// States with these times.
    States(Vec<f64>),
}

/// A number or several of each vertex.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantity {
    /// Its name.
    pub name: String,
    /// What the colors mean, with the unit.
    pub label: String,
    /// Numbers a vertex.
    pub components: usize,
}

/// A number of the whole state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Its unit; empty for a pure number.
    pub unit: String,
}

/// A number that can be set while the run goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dial {
    /// Its name.
    pub name: String,
    /// What it means, in a line.
    pub about: String,
    /// Its unit; empty for a pure number.
    pub unit: String,
    /// Its value when the mesh is described.
    pub value: f64,
}

impl Model {
    /// Where the origin of what is sent lies: single precision is finest there.
    pub(crate) fn center(&self) -> [f64; 3] {
        let finite = self.points.iter().filter(|p| p.iter().all(|x| x.is_finite()));
        let ends = finite.fold(None, |ends: Option<[[f64; 3]; 2]>, p| {
            let [low, high] = ends.unwrap_or([*p; 2]);
            let at = |k: usize| (low[k].min(p[k]), high[k].max(p[k]));
            Some([std::array::from_fn(|k| at(k).0), std::array::from_fn(|k| at(k).1)])
        });
        ends.map_or([0.0; 3], |[low, high]| std::array::from_fn(|k| 0.5 * low[k] + 0.5 * high[k]))
    }

    /// The message: numbers of 32 bits, little-endian.
    ///
    /// | what | how many |
    /// |---|---|
    /// | kind 1, version 1, bytes of the text, vertices, vertices of the skin, triangles, edges, tets | 8 |
    /// | names, units and colors as JSON, filled up with spaces | bytes of the text, a multiple of 4 |
    /// | the vertices, by their numbers in the mesh | vertices |
    /// | corners of triangles, ends of edges, corners of tets, as places in that list | 3, 2 and 4 each |
    /// | places of the vertices less `center`, as floats | 3 × vertices |
    pub(crate) fn encode(&self) -> Bytes {
        let shape = &self.shape;
        let mut text = self.text().to_string().into_bytes();
        text.resize(text.len().next_multiple_of(4), b' ');
        let counts = [shape.vertices.len(), shape.skin, shape.triangles.len(), shape.edges.len(), shape.tets.len()];
        let head = [KIND, VERSION, text.len() as u32].into_iter().chain(counts.map(|n| n as u32));
        let lists = [&shape.vertices[..], shape.triangles.as_flattened(), shape.edges.as_flattened()];
        let lists = lists.into_iter().flatten().chain(shape.tets.as_flattened());
        let center = self.center();
        let places = shape.vertices.iter().map(|&v| self.points[v as usize]);
        let places = places.flat_map(|p| (0..3).map(move |k| (p[k] - center[k]) as f32));
        let mut all: Vec<u8> = head.flat_map(u32::to_le_bytes).collect();
        all.extend(text);
        all.extend(lists.flat_map(|x| x.to_le_bytes()));
        all.extend(places.flat_map(f32::to_le_bytes));
        all.into()
    }

    fn text(&self) -> Value {
        let prop = |prop: &Prop| match *prop {
            Prop::Ball { center, radius } => json!({ "ball": center, "radius": radius }),
            Prop::Ground { height } => json!({ "ground": height }),
        };
        let field = |f: &Quantity| json!({ "name": f.name, "label": f.label, "components": f.components });
        let metric = |m: &Metric| json!({ "name": m.name, "unit": m.unit });
        let dial = |d: &Dial| json!({ "name": d.name, "about": d.about, "unit": d.unit });
        let times = match &self.span {
            Span::Run => Value::Null,
            Span::States(times) => json!(times),
        };
        json!({
            "name": self.name,
            "about": self.about,
            "points": self.points.len(),
            "cells": self.cells,
            "solid": self.shape.solid,
            "moves": self.moves,
            "center": self.center(),
            "fields": self.fields.iter().map(field).collect::<Vec<_>>(),
            "metrics": self.metrics.iter().map(metric).collect::<Vec<_>>(),
            "history": self.history,
            "dials": self.dials.iter().map(dial).collect::<Vec<_>>(),
            "color": self.color,
            "map": name(self.map),
            "maps": ColorMap::ALL.iter().map(|&map| (name(map).to_string(), ramp(map))).collect::<serde_json::Map<_, _>>(),
            "props": self.props.iter().map(prop).collect::<Vec<_>>(),
            "times": times,
        })
    }
}

fn name(map: ColorMap) -> &'static str {
    match map {
        ColorMap::Viridis => "viridis",
        ColorMap::Coolwarm => "coolwarm",
        ColorMap::Plasma => "plasma",
        ColorMap::Water => "water",
    }
}

/// 256 colors of three bytes, from the lower end of a map to its upper one.
fn ramp(map: ColorMap) -> Value {
    let colors = (0..256).flat_map(|i| map.color(i as f32 / 255.0)).map(|x| (255.0 * x).round() as u8);
    json!(colors.collect::<Vec<u8>>())
}

/// The fields of a mesh by vertex: those of its points, and means of those of its cells, NaN at a vertex of none.
pub fn fields_of(mesh: &Mesh) -> Vec<Field> {
    let (mut fields, mut means) = (mesh.point_fields().to_vec(), None);
    for field in mesh.cell_fields().iter().filter(|field| mesh.point_field(&field.name).is_none()) {
        fields.push(means.get_or_insert_with(|| Means::at_points(mesh)).of(field));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_what_its_head_says() {
        let mesh = meshweft_mesh::generate::generate("box:3", 1).unwrap();
        let model = Model { points: mesh.points().to_vec(), shape: Shape::of(&mesh), ..Model::default() };
        let message = model.encode();
        let word = |i: usize| u32::from_le_bytes(message[4 * i..4 * i + 4].try_into().unwrap()) as usize;
        assert_eq!((word(0), word(1), word(3), word(4)), (1, 1, 27, 26));
        let numbers = word(3) + 3 * word(5) + 2 * word(6) + 4 * word(7) + 3 * word(3);
        assert_eq!(message.len(), 32 + word(2) + 4 * numbers);
        let text: Value = serde_json::from_slice(&message[32..32 + word(2)]).unwrap();
        assert_eq!(text["maps"]["viridis"].as_array().unwrap().len(), 768);
    }

    #[test]
    fn a_vertex_has_the_mean_of_its_cells() {
        let mut mesh = meshweft_mesh::generate::generate("sheet:2x2", 1).unwrap();
        mesh.set_cell_field(Field { name: "mark".into(), components: 1, values: vec![1.0, 3.0] }).unwrap();
        let fields = fields_of(&mesh);
        let mut values = fields[0].values.clone();
        values.sort_by(f64::total_cmp);
        assert_eq!(values, [1.0, 2.0, 2.0, 3.0]);
    }
}
