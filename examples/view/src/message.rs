//! What goes over a connection while a mesh is shown: frames to a page, and what a page asks for.

use crate::shape::Shape;
use axum::body::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The first number of the message of a frame.
const KIND: u32 = 2;

/// A state as it is shown.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Steps taken so far, or the place in a series.
    pub step: u64,
    /// Simulated seconds.
    pub time: f64,
    /// Where the points are, shape [n × 3]; empty if they are where they were described to be.
    pub points: Vec<[f64; 3]>,
    /// The fields that were wanted, by their places in the model: values of shape [n × components].
    pub fields: Vec<(usize, Vec<f64>)>,
    /// What was measured, as listed in the model; empty if that was not wanted.
    pub metrics: Vec<f64>,
    /// How long that took, of the time that the run was held up.
    pub measuring: Duration,
    /// Rows of a small table beside the mesh, the first of which is its head; nothing if it has not changed.
    pub table: Vec<Vec<String>>,
    /// What could not be shown, and why.
    pub trouble: Option<String>,
}

/// What a page wants to see.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wish {
    /// The field that colors, and which of its numbers; the length if none is named.
    pub(crate) field: Option<usize>,
    pub(crate) component: Option<usize>,
    /// A vertex of which all values are told.
    pub(crate) pick: Option<u32>,
    /// Whether what is inside of a solid is shown.
    pub(crate) inside: bool,
    /// Whether measures are shown.
    pub(crate) metrics: bool,
}

/// What a page asks for: any of these.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Request {
    /// It has drawn what it was sent.
    pub(crate) ready: bool,
    /// What it wants to see. Field −1 is none, component −1 the length, vertex −1 none.
    pub(crate) field: Option<i32>,
    pub(crate) component: Option<i32>,
    pub(crate) pick: Option<i64>,
    pub(crate) inside: Option<bool>,
    pub(crate) metrics: Option<bool>,
    /// What the run is to do: pause or go on; take some steps and pause; take at most so many steps a second, 0 for any number.
    pub(crate) pause: Option<bool>,
    pub(crate) step: Option<u32>,
    pub(crate) pace: Option<f64>,
    /// A number that is to be set, as a place in those of the model, and its value.
    pub(crate) set: Option<(usize, f64)>,
    /// The place in a series that is to be shown.
    pub(crate) at: Option<usize>,
}

impl Request {
    /// Reads one; nothing if it is none.
    pub(crate) fn parse(text: &str) -> Option<Request> {
        serde_json::from_str(text).ok()
    }

    /// Changes a wish.
    pub(crate) fn apply(&self, wish: &mut Wish) {
        if let Some(field) = self.field {
            wish.field = usize::try_from(field).ok();
        }
        if let Some(component) = self.component {
            wish.component = usize::try_from(component).ok();
        }
        if let Some(vertex) = self.pick {
            wish.pick = u32::try_from(vertex).ok();
        }
        wish.inside = self.inside.unwrap_or(wish.inside);
        wish.metrics = self.metrics.unwrap_or(wish.metrics);
    }
}

/// What encoding a frame takes of what is shown.
#[derive(Debug, Default)]
pub(crate) struct Fixed {
    pub(crate) shape: Shape,
    pub(crate) center: [f64; 3],
    /// Vertices of the mesh.
    pub(crate) points: usize,
    /// Components of each field.
    pub(crate) components: Vec<usize>,
    /// Names of them.
    pub(crate) names: Vec<String>,
}

impl Frame {
    /// The message, little-endian.
    ///
    /// | bytes | what |
    /// |---|---|
    /// | 0 | kind 2, as all numbers up to byte 24 of 32 bits |
    /// | 4, 8 | the field and the component of the colors, `u32::MAX` for none and for the length |
    /// | 12, 16, 20 | how many points, values and measures there are |
    /// | 24, 32, 40 | step, time, and steps a second at which the run goes, in 64 bits |
    /// | 48 | measures in 64 bits, then places less `center`, shape [points × 3], and values, in 32 bits |
    pub(crate) fn encode(&self, fixed: &Fixed, wish: &Wish, rate: f64) -> Bytes {
        let shape = &fixed.shape;
        let shown = &shape.vertices[..if wish.inside { shape.vertices.len() } else { shape.skin }];
        let moved = self.points.len() == fixed.points && !self.points.is_empty();
        let values = wish.field.and_then(|field| Some((field, self.field(fixed, field)?)));
        let components = values.map_or(1, |(field, _)| fixed.components[field]);
        let component = wish.component.filter(|&k| k < components);
        let count = |is_there: bool| if is_there { shown.len() as u32 } else { 0 };
        let number = |x: Option<usize>| x.map_or(u32::MAX, |x| x as u32);
        let head = [
            KIND,
            number(values.map(|(field, _)| field)),
            number(component),
            count(moved),
            count(values.is_some()),
            self.metrics.len() as u32,
        ];
        let floats = if moved { 3 } else { 0 } + usize::from(values.is_some());
        let mut all = Vec::with_capacity(48 + 8 * self.metrics.len() + 4 * floats * shown.len());
        all.extend(head.into_iter().flat_map(u32::to_le_bytes));
        let long = [self.step as f64, self.time, rate];
        all.extend(long.iter().chain(&self.metrics).flat_map(|x| x.to_le_bytes()));
        if moved {
            let [x, y, z] = fixed.center;
            for &v in shown {
                let p = self.points[v as usize];
                all.extend_from_slice(&((p[0] - x) as f32).to_le_bytes());
                all.extend_from_slice(&((p[1] - y) as f32).to_le_bytes());
                all.extend_from_slice(&((p[2] - z) as f32).to_le_bytes());
            }
        }
        if let Some((_, values)) = values {
            for &v in shown {
                let own = &values[components * v as usize..components * (v as usize + 1)];
                let value = match (component, own) {
                    (Some(k), _) => own[k],
                    (None, [value]) => *value,
                    (None, _) => own.iter().map(|x| x * x).sum::<f64>().sqrt(),
                };
                all.extend_from_slice(&(value as f32).to_le_bytes());
            }
        }
        all.into()
    }

    /// All values of a vertex, as text.
    pub(crate) fn values_of(&self, fixed: &Fixed, vertex: u32) -> Value {
        let v = vertex as usize;
        let values = |&(field, ref values): &(usize, Vec<f64>)| {
            let parts = *fixed.components.get(field)?;
            // JSON has no numbers that are not finite.
            let own = values.get(parts * v..parts * (v + 1))?;
            let own: Vec<Value> =
                own.iter().map(|x| if x.is_finite() { json!(x) } else { json!(x.to_string()) }).collect();
            Some(json!({ "name": fixed.names[field], "values": own }))
        };
        let at = self.points.get(v).filter(|_| self.points.len() == fixed.points);
        json!({
            "pick": vertex, "step": self.step, "at": at, "fields": self.fields.iter().filter_map(values).collect::<Vec<_>>(),
        })
    }

    /// The values of a field, if they are those of all vertices.
    fn field(&self, fixed: &Fixed, field: usize) -> Option<&[f64]> {
        let (_, values) = self.fields.iter().find(|(known, _)| *known == field)?;
        (values.len() == fixed.points * fixed.components.get(field)?).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_garbage_is_none() {
        let request = Request::parse(r#"{"ready":true,"field":2,"component":-1,"pick":7}"#).unwrap();
        let mut wish = Wish { component: Some(1), metrics: true, ..Wish::default() };
        request.apply(&mut wish);
        assert_eq!(wish, Wish { field: Some(2), pick: Some(7), metrics: true, ..Wish::default() });
        for garbage in [
            "",
            "{",
            "[7]",
            "7",
            r#"{"delete":true}"#,
            r#"{"step":-1}"#,
            r#"{"at":1e99}"#,
            r#"{"set":[0]}"#,
            r#"{"set":[0,null]}"#,
            "\u{0}",
        ] {
            assert!(Request::parse(garbage).is_none(), "{garbage}");
        }
    }

    #[test]
    fn frames_have_what_was_wished_and_survive_wrong_sizes() {
        let mesh = meshweft_mesh::generate::generate("box:3", 1).unwrap();
        let fixed = Fixed {
            shape: Shape::of(&mesh),
            center: [1.0; 3],
            points: 27,
            components: vec![1, 3],
            names: vec!["heat".into(), "flow".into()],
        };
        let flow: Vec<f64> = (0..81).map(|i| if i % 3 == 0 { 3.0 } else { 4.0 * f64::from(i % 3 == 1) }).collect();
        let frame = Frame {
            step: 9,
            time: 0.5,
            points: mesh.points().to_vec(),
            fields: vec![(0, vec![2.0; 26]), (1, flow)],
            metrics: vec![7.0],
            ..Frame::default()
        };
        let word = |bytes: &[u8], i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap());
        let last = |bytes: &[u8]| f32::from_le_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
        let wish = |field, component, inside| Wish { field, component, inside, ..Wish::default() };
        let length = frame.encode(&fixed, &wish(Some(1), None, false), 0.0);
        assert_eq!((word(&length, 0), word(&length, 3), word(&length, 4), word(&length, 5)), (2, 26, 26, 1));
        assert_eq!((length.len(), last(&length)), (48 + 8 + 26 * 16, 5.0));
        assert_eq!(last(&frame.encode(&fixed, &wish(Some(1), Some(1), true), 0.0)), 4.0);
        // A field that is not there, has too few values, or no such component.
        for (field, values) in [(Some(0), 0), (Some(9), 0), (None, 0), (Some(1), 27)] {
            let bytes = frame.encode(&fixed, &wish(field, Some(9), true), 0.0);
            assert_eq!((word(&bytes, 3), word(&bytes, 4)), (27, values), "{field:?}");
        }
        assert_eq!(frame.values_of(&fixed, 26)["fields"][0]["values"], json!([3.0, 4.0, 0.0]));
        assert_eq!(frame.values_of(&fixed, u32::MAX)["fields"], json!([]));
    }
}
