//! PLY, ASCII and binary of either byte order; written as binary, little end first.
//!
//! Read: `vertex` (x, y, z; all other scalar properties become point fields), `face` (more than four corners become a
//! fan of triangles), `edge`, and tets as `tet`, `tetra`, `tetrahedron` or `tetrahedra`; scalar properties of cells
//! become cell fields, NaN where only others have them. Other elements and list properties are left out with a note.
//! `tristrips` are refused, and so is anything behind the last element. Written: points, triangles, quads, edges and
//! point fields, those of several components as `name_0`, `name_1`, .... Vertex cells, cell fields and groups are not
//! written.
//!
//! Source: Turk, "The PLY polygon file format" (1994).

use std::io::{self, Write};
use std::path::Path;

use super::binary::{Binary, Order, Scalar};
use super::draft::Draft;
use super::text::{Text, shown};
use crate::cell::CellKind;
use crate::error::{Error, Result};
use crate::mesh::Mesh;

struct Element<'a> {
    name: &'a [u8],
    count: u64,
    properties: Vec<Property<'a>>,
}

struct Property<'a> {
    name: &'a [u8],
    /// Type of the length in front of a list.
    length: Option<Scalar>,
    scalar: Scalar,
}

/// Where the numbers come from.
enum Source<'a> {
    Ascii(Text<'a>),
    Binary(Binary<'a>),
}

impl Source<'_> {
    fn float(&mut self, scalar: Scalar) -> Result<f64> {
        match self {
            Source::Ascii(text) => text.number("a number"),
            Source::Binary(file) => file.float(scalar, "a property"),
        }
    }

    fn integer(&mut self, scalar: Scalar) -> Result<i64> {
        match self {
            Source::Ascii(text) => text.number("an integer"),
            Source::Binary(file) => file.integer(scalar, "a property"),
        }
    }

    fn check_count(&self, count: u64, what: &str, scalar: Scalar) -> Result<usize> {
        match self {
            Source::Ascii(text) => text.check_count(count, what, 2),
            Source::Binary(file) => file.check_count(count, what, scalar.size()),
        }
    }

    fn end_element(&mut self) -> Result<()> {
        match self {
            Source::Ascii(text) => text.end_line("an element with the properties of the header"),
            Source::Binary(_) => Ok(()),
        }
    }

    /// Refuses what the header does not count; blanks at the end are ignored.
    fn end(&mut self) -> Result<()> {
        match self {
            Source::Ascii(text) => text.end("the elements that the header counts"),
            Source::Binary(file) => {
                let place = file.clone();
                let rest = file.take(file.left(), "the rest")?;
                match rest.trim_ascii().is_empty() {
                    true => Ok(()),
                    false => Err(place.error(format!(
                        "{} bytes lie behind the elements that the header counts: a count is wrong",
                        rest.len()
                    ))),
                }
            }
        }
    }

    fn error(&self, message: impl Into<String>) -> Error {
        match self {
            Source::Ascii(text) => text.error(message),
            Source::Binary(file) => file.error(message),
        }
    }
}

/// What the elements of a name are.
fn shape(element: &[u8]) -> Option<Shape> {
    match element {
        b"face" => Some(Shape::Polygon),
        b"edge" => Some(Shape::Edge),
        b"tet" | b"tetra" | b"tetrahedron" | b"tetrahedra" => Some(Shape::Tet),
        _ => None,
    }
}

/// The cells that an element can be.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Polygon,
    Edge,
    Tet,
}

pub(super) fn parse(name: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut text = Text::new(name, bytes);
    let (order, elements) = header(&mut text)?;
    let mut source = match order {
        None => Source::Ascii(text),
        Some(order) => Source::Binary(Binary::new(name, bytes, text.at(), order)),
    };
    let mut draft = Draft::new(bytes.len());
    let mut parts: Vec<Part> = Vec::new();
    for element in &elements {
        check_element(&source, element)?;
        match (element.name, shape(element.name)) {
            (b"vertex", _) => read_vertices(&mut source, element, &mut draft)?,
            (_, Some(shape)) => parts.push(read_cells(&mut source, element, shape, &mut draft)?),
            (b"tristrips", _) => {
                return Err(source.error("triangle strips are not supported: export plain triangles"));
            }
            (other, None) => {
                for _ in 0..element.count {
                    for property in &element.properties {
                        skip(&mut source, property)?;
                    }
                    source.end_element()?;
                }
                draft.note(source.error(format!("elements {} ({}) are left out", shown(other), element.count)));
            }
        }
    }
    source.end()?;
    for (k, part) in parts.iter().enumerate() {
        for (field, _) in &part.fields {
            if parts[..k].iter().any(|earlier| earlier.fields.iter().any(|f| f.0 == *field)) {
                continue;
            }
            let has = |part: &&Part| part.fields.iter().any(|f| f.0 == *field);
            let missing = parts.iter().filter(|part| !has(part)).map(|part| part.count).sum();
            let values = parts.iter().flat_map(|part| match part.fields.iter().find(|f| f.0 == *field) {
                Some((_, values)) => values.clone(),
                None => vec![f64::NAN; part.count],
            });
            let name = String::from_utf8_lossy(field);
            let room = draft.fill(&name, "cells", missing);
            let added = room.and_then(|()| draft.cell_field(&name, 1, values.collect()));
            added.map_err(|message| source.error(message))?;
        }
    }
    Ok(draft)
}

/// Reads up to the first byte behind the header; no byte order means ASCII.
fn header<'a>(text: &mut Text<'a>) -> Result<(Option<Order>, Vec<Element<'a>>)> {
    if text.rest_of_line() != b"ply" {
        return Err(text.error("a PLY file starts with the line `ply`"));
    }
    let mut order = None;
    let mut elements: Vec<Element> = Vec::new();
    loop {
        if !text.next_line() {
            return Err(text.error("the header has no end: `end_header` is missing"));
        }
        match text.word_in_line() {
            None | Some(b"comment" | b"obj_info") => {}
            Some(b"format") => {
                order = Some(match text.word_in_line() {
                    Some(b"ascii") => None,
                    Some(b"binary_little_endian") => Some(Order::Little),
                    Some(b"binary_big_endian") => Some(Order::Big),
                    other => return Err(text.error(format!("{} is no PLY format", shown(other.unwrap_or(b""))))),
                });
            }
            Some(b"element") => {
                let name = text.word_in_line().ok_or_else(|| text.error("an element needs a name"))?;
                if elements.iter().any(|e| e.name == name) || elements.len() == 100 {
                    return Err(text.error(format!("element {} comes twice or is one too many", shown(name))));
                }
                let count = text.number_in_line(&format!("a number of elements {}", shown(name)))?;
                elements.push(Element { name, count, properties: Vec::new() });
            }
            Some(b"property") => {
                let mut scalar = || -> Result<(Option<Scalar>, &'a [u8])> {
                    let word = text.word_in_line().unwrap_or(b"");
                    Ok((scalar(word), word))
                };
                let (length, scalar) = match scalar()? {
                    (None, b"list") => (Some(scalar()?), scalar()?),
                    simple => (None, simple),
                };
                for (known, word) in length.iter().chain([&scalar]) {
                    if known.is_none() {
                        return Err(text.error(format!("{} is no type of PLY", shown(word))));
                    }
                }
                let length = length.and_then(|(length, _)| length);
                if length.is_some_and(|length| !length.is_integer()) {
                    return Err(text.error("the length of a list must be an integer"));
                }
                let name = text.word_in_line().ok_or_else(|| text.error("a property needs a name"))?;
                let scalar = scalar.0.expect("checked above");
                let element = elements.last_mut().ok_or_else(|| text.error("a property before any element"))?;
                element.properties.push(Property { name, length, scalar });
            }
            Some(b"end_header") => break,
            Some(other) => return Err(text.error(format!("{} starts no line of a PLY header", shown(other)))),
        }
    }
    text.next_line();
    match order {
        Some(order) => Ok((order, elements)),
        None => Err(text.error("the header has no line `format`")),
    }
}

fn scalar(word: &[u8]) -> Option<Scalar> {
    Some(match word {
        b"char" | b"int8" => Scalar::I8,
        b"uchar" | b"uint8" => Scalar::U8,
        b"short" | b"int16" => Scalar::I16,
        b"ushort" | b"uint16" => Scalar::U16,
        b"int" | b"int32" => Scalar::I32,
        b"uint" | b"uint32" => Scalar::U32,
        b"float" | b"float32" => Scalar::F32,
        b"double" | b"float64" => Scalar::F64,
        _ => return None,
    })
}

/// Refuses counts that the file cannot hold; elements that take no bytes could otherwise be counted forever.
fn check_element(source: &Source, element: &Element) -> Result<()> {
    let what = format!("elements {}", shown(element.name));
    if element.properties.is_empty() && element.count > 0 {
        return Err(source.error(format!("{} {what} have no property", element.count)));
    }
    match source {
        Source::Ascii(text) => text.check_count(element.count, &what, 2 * element.properties.len()),
        Source::Binary(file) => {
            let least = element.properties.iter().map(|p| p.length.unwrap_or(p.scalar).size()).sum();
            file.check_count(element.count, &what, least)
        }
    }
    .map(drop)
}

fn read_vertices(source: &mut Source, element: &Element, draft: &mut Draft) -> Result<()> {
    let axis = |name: &[u8]| element.properties.iter().position(|p| p.name == name && p.length.is_none());
    let [Some(x), Some(y), Some(z)] = [axis(b"x"), axis(b"y"), axis(b"z")] else {
        return Err(source.error("the vertices lack a property x, y or z"));
    };
    let mut columns = vec![Vec::new(); element.properties.len()];
    draft.points.reserve(element.count as usize);
    for v in 0..element.count {
        let mut point = [0.0; 3];
        for (k, property) in element.properties.iter().enumerate() {
            if property.length.is_some() {
                skip(source, property)?;
                continue;
            }
            let value = source.float(property.scalar)?;
            match [x, y, z].iter().position(|&axis| axis == k) {
                Some(_) if !value.is_finite() => {
                    return Err(source.error(format!("vertex {v} has the coordinate {value}, which is not finite")));
                }
                Some(axis) => point[axis] = value,
                None => columns[k].push(value),
            }
        }
        source.end_element()?;
        draft.points.push(point);
    }
    note_lists(source, element, |_| false, draft);
    for (k, (property, values)) in element.properties.iter().zip(columns).enumerate() {
        if property.length.is_none() && ![x, y, z].contains(&k) {
            let name = String::from_utf8_lossy(property.name);
            draft.point_field(&name, 1, values).map_err(|message| source.error(message))?;
        }
    }
    Ok(())
}

/// The scalar properties of cells.
struct Part<'a> {
    count: usize,
    fields: Vec<(&'a [u8], Vec<f64>)>,
}

/// Notes the lists of an element that are not read.
fn note_lists(source: &Source, element: &Element, is_read: impl Fn(&Property) -> bool, draft: &mut Draft) {
    for property in element.properties.iter().filter(|p| p.length.is_some() && !is_read(p) && element.count > 0) {
        let (list, owner) = (shown(property.name), shown(element.name));
        draft.note(source.error(format!("the list {list} of elements {owner} is left out")));
    }
}

fn read_cells<'a>(source: &mut Source, element: &Element<'a>, shape: Shape, draft: &mut Draft) -> Result<Part<'a>> {
    let is_corner = |p: &Property| match shape {
        Shape::Edge => p.length.is_none() && matches!(p.name, b"vertex1" | b"vertex2"),
        _ => p.length.is_some() && matches!(p.name, b"vertex_indices" | b"vertex_index"),
    };
    let (wanted, names) = if shape == Shape::Edge { (2, "vertex1 and vertex2") } else { (1, "list vertex_indices") };
    let mut corner_properties = element.properties.iter().filter(|p| is_corner(p));
    if corner_properties.clone().count() != wanted || !corner_properties.all(|p| p.scalar.is_integer()) {
        let what = shown(element.name);
        return Err(source.error(format!("elements {what} need the integer property {names}")));
    }
    let mut columns = vec![Vec::new(); element.properties.len()];
    let mut corners = Vec::new();
    for c in 0..element.count {
        corners.clear();
        for (k, property) in element.properties.iter().enumerate() {
            if is_corner(property) {
                for _ in 0..list_length(source, property)? {
                    let index = source.integer(property.scalar)?;
                    let corner = draft.corner(index);
                    corners.push(corner.map_err(|message| {
                        source.error(format!("{} {c}: {message}", String::from_utf8_lossy(element.name)))
                    })?);
                }
            } else if property.length.is_some() {
                skip(source, property)?;
            } else {
                columns[k].push(source.float(property.scalar)?);
            }
        }
        source.end_element()?;
        let added = match shape {
            Shape::Polygon => draft.polygon(&corners),
            Shape::Edge => draft.cell(CellKind::Edge, &corners),
            Shape::Tet if corners.len() == 4 => draft.cell(CellKind::Tet, &corners),
            Shape::Tet => Err(format!("a tet has 4 corners, this one has {}", corners.len())),
        };
        added.map_err(|message| source.error(format!("{} {c}: {message}", String::from_utf8_lossy(element.name))))?;
    }
    note_lists(source, element, is_corner, draft);
    let fields = element.properties.iter().zip(columns).filter(|(p, _)| !is_corner(p) && p.length.is_none());
    let fields: Vec<_> = fields.map(|(p, values)| (p.name, values)).collect();
    if fields.len() > 4096 {
        return Err(source.error(format!("{} scalar properties are too many: remove some", fields.len())));
    }
    Ok(Part { count: element.count as usize, fields })
}

/// Number of numbers of a property: the length of a list, or 1.
fn list_length(source: &mut Source, property: &Property) -> Result<usize> {
    let Some(length) = property.length else { return Ok(1) };
    let length = source.integer(length)?;
    let length = u64::try_from(length).map_err(|_| source.error(format!("{length} is no length of a list")))?;
    source.check_count(length, "numbers of a list", property.scalar)
}

fn skip(source: &mut Source, property: &Property) -> Result<()> {
    for _ in 0..list_length(source, property)? {
        source.float(property.scalar)?;
    }
    Ok(())
}

pub(super) fn write(out: &mut impl Write, mesh: &Mesh) -> io::Result<()> {
    let faces = || mesh.cells().iter().filter(|(kind, _)| kind.dimension() == 2);
    let edges = || mesh.cells().iter().filter(|(kind, _)| kind.dimension() == 1);
    writeln!(out, "ply\nformat binary_little_endian 1.0\nelement vertex {}", mesh.points().len())?;
    ["x", "y", "z"].iter().try_for_each(|axis| writeln!(out, "property double {axis}"))?;
    for field in mesh.point_fields() {
        let name = property_name(&field.name);
        for k in 0..field.components {
            match field.components {
                1 => writeln!(out, "property double {name}")?,
                _ => writeln!(out, "property double {name}_{k}")?,
            }
        }
    }
    // `int` and not `uint`: many readers know nothing else for corners, and ids above 2^31 are refused before.
    writeln!(out, "element face {}\nproperty list uchar int vertex_indices", faces().count())?;
    if edges().next().is_some() {
        writeln!(out, "element edge {}\nproperty int vertex1\nproperty int vertex2", edges().count())?;
    }
    writeln!(out, "end_header")?;
    for (v, point) in mesh.points().iter().enumerate() {
        point.iter().try_for_each(|x| out.write_all(&x.to_le_bytes()))?;
        for field in mesh.point_fields() {
            let values = &field.values[v * field.components..(v + 1) * field.components];
            values.iter().try_for_each(|x| out.write_all(&x.to_le_bytes()))?;
        }
    }
    for (_, corners) in faces() {
        out.write_all(&[corners.len() as u8])?;
        corners.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
    }
    edges().flat_map(|(_, corners)| corners).try_for_each(|v| out.write_all(&v.to_le_bytes()))
}

/// A word that no coordinate is called.
fn property_name(field: &str) -> String {
    match field {
        "" | "x" | "y" | "z" => format!("{field}_"),
        _ => field.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fails, fuzz, mixed_surface, noted, parsed};
    use super::super::{Format, parse};
    use super::*;
    use crate::mesh::Field;

    const SAMPLE: &str = "ply\nformat ascii 1.0\ncomment made by hand\nelement vertex 5\nproperty float x\n\
        property float y\nproperty double z\nproperty uchar red\nelement face 2\nproperty float heat\n\
        property list uchar int vertex_indices\nelement edge 1\nproperty int vertex1\nproperty int vertex2\n\
        element junk 1\nproperty list int short stuff\nend_header\n0 0 0 255\n1 0 0 0\n2 1 0 1\n1 2 0 2\n0 1 0 3\n\
        0.5 3 0 1 2\n1.5 5 0 1 2 3 4\n4 0\n2 7 8\n";

    fn binary(order: Order) -> Vec<u8> {
        let mut bytes = format!(
            "ply\nformat binary_{}_endian 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n\
             element face 1\nproperty list uchar uint vertex_index\nend_header\n",
            if order == Order::Big { "big" } else { "little" }
        )
        .into_bytes();
        let mut put = |b: [u8; 4]| match order {
            Order::Little => bytes.extend(b.iter().rev()),
            Order::Big => bytes.extend(b),
        };
        [0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5].into_iter().for_each(|x| put(x.to_be_bytes()));
        bytes.push(3);
        let mut put = |b: [u8; 4]| match order {
            Order::Little => bytes.extend(b.iter().rev()),
            Order::Big => bytes.extend(b),
        };
        [0u32, 1, 2].into_iter().for_each(|v| put(v.to_be_bytes()));
        bytes
    }

    #[test]
    fn reads_elements_and_properties() {
        let mesh = parsed(Format::Ply, SAMPLE);
        assert_eq!(mesh.points()[2], [2.0, 1.0, 0.0]);
        assert_eq!(mesh.point_field("red").unwrap().values, [255.0, 0.0, 1.0, 2.0, 3.0]);
        assert_eq!(mesh.cells().counts(), [(CellKind::Edge, 1), (CellKind::Triangle, 4)]);
        assert_eq!(mesh.cells().corners(4), [4, 0]);
        let heat = &mesh.cell_fields()[0];
        assert_eq!((&heat.values[..4], heat.values[4].is_nan()), (&[0.5, 1.5, 1.5, 1.5][..], true));
    }

    #[test]
    fn reads_tets_and_notes_what_it_leaves_out() {
        let text = "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n\
            element material 1\nproperty int red\nelement face 1\nproperty list uchar int vertex_indices\n\
            property list uchar float texcoord\nelement tetrahedra 1\nproperty list uchar int vertex_indices\n\
            property float heat\nend_header\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n7\n3 0 2 1 0\n4 0 1 2 3 0.5\n";
        fuzz(Format::Ply, text.as_bytes());
        let (mesh, notes) = noted(Format::Ply, text);
        assert_eq!(mesh.cells().counts(), [(CellKind::Triangle, 1), (CellKind::Tet, 1)]);
        assert_eq!(mesh.cells().corners(1), [0, 1, 2, 3]);
        assert_eq!(mesh.cell_fields()[0].values[1], 0.5);
        let expected = [
            "a:20: elements \"material\" (1) are left out",
            "a:21: the list \"texcoord\" of elements \"face\" is left out",
        ];
        assert_eq!(notes, expected);
        fails(Format::Ply, text.replace("4 0 1 2 3 0.5", "3 0 1 2 0.5"), "a:22: tetrahedra 0: a tet has 4 corners");
        assert_eq!(noted(Format::Ply, binary(Order::Little)).1, [""; 0]);
    }

    #[test]
    fn values_of_a_few_cells_do_not_fill_fields_over_many() {
        let names: String = (0..3000).map(|k| format!("property uchar p{k}\n")).collect();
        let text = format!(
            "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n\
             element face 1\nproperty list uchar int vertex_indices\n{names}element edge 20000\nproperty int vertex1\n\
             property int vertex2\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2{}\n{}",
            " 1".repeat(3000),
            "0 1\n".repeat(20_000)
        );
        fails(
            Format::Ply,
            text,
            "a:23017: field \"p223\" has values for too few cells: 20000 values are more than a file",
        );
    }

    #[test]
    fn more_than_the_header_counts_is_refused() {
        let text = SAMPLE.replace("face 2", "face 1").replace("edge 1", "edge 0").replace("junk 1", "junk 0");
        fails(Format::Ply, text, "a:24: \"1.5\" found behind the elements that the header counts");
        let mut bytes = binary(Order::Little);
        parsed(Format::Ply, [&bytes[..], b"\r\n"].concat());
        let length = bytes.len();
        bytes.extend([3, 0, 0]);
        fails(Format::Ply, bytes, &format!("a: byte {length}: 3 bytes lie behind the elements"));
    }

    #[test]
    fn reads_both_byte_orders() {
        for order in [Order::Little, Order::Big] {
            let mesh = parsed(Format::Ply, binary(order));
            assert_eq!(mesh.points()[2], [0.0, 1.0, 0.5]);
            assert_eq!(mesh.cells().corners(0), [0, 1, 2]);
        }
    }

    #[test]
    fn writes_what_it_reads() {
        let mesh = mixed_surface();
        let mut bytes = Vec::new();
        write(&mut bytes, &mesh).unwrap();
        let again = parse(Format::Ply, Path::new("a"), &bytes).unwrap();
        assert_eq!(again.points(), mesh.points());
        assert_eq!(again.cells().counts(), [(CellKind::Edge, 1), (CellKind::Triangle, 1), (CellKind::Quad, 1)]);
        assert_eq!(again.point_field("heat"), mesh.point_field("heat"));
        assert_eq!(again.point_field("wind_speed_2").unwrap().values, [2.0, 5.0, 8.0, 11.0, 14.0]);
    }

    #[test]
    fn fields_do_not_pass_for_coordinates() {
        let mut mesh = mixed_surface();
        for name in ["", "x"] {
            mesh.set_point_field(Field { name: name.into(), components: 1, values: vec![9.0; 5] }).unwrap();
        }
        let mut bytes = Vec::new();
        write(&mut bytes, &mesh).unwrap();
        let again = parsed(Format::Ply, &bytes);
        assert_eq!(again.points(), mesh.points());
        assert!(["_", "x_"].iter().all(|name| again.point_field(name).is_some()));
    }

    #[test]
    fn errors_say_where() {
        let with = |from: &str, to: &str| SAMPLE.replace(from, to);
        fails(Format::Ply, with("vertex 5", "vertex -1"), "a:4: \"-1\" is not a number of elements");
        fails(Format::Ply, with("vertex 5", "vertex 2147483648"), "a:18: 2147483648 elements \"vertex\" do not fit");
        fails(Format::Ply, with("vertex 5", "vertex 9223372036854775808"), "a:18: 9223372036854775808 elements");
        fails(
            Format::Ply,
            with("junk 1\nproperty list int short stuff", "junk 9"),
            "a:24: 9 elements \"junk\" have no",
        );
        fails(Format::Ply, with("2 1 0 1", "2 1 inf 1"), "a:20: vertex 2 has the coordinate inf");
        fails(Format::Ply, with("0.5 3 0 1 2", "0.5 3 0 1 5"), "a:23: face 0: there is no point 5 among 5");
        fails(Format::Ply, with("0.5 3 0 1 2", "0.5 3 0 1 -1"), "a:23: face 0: there is no point -1");
        fails(Format::Ply, with("0.5 3 0 1 2", "0.5 2 0 1"), "a:23: face 0: a polygon needs 3 corners");
        fails(Format::Ply, with("0.5 3 0 1 2", "0.5 3 0 1 2 4"), "a:23: \"4\" is too much");
        fails(Format::Ply, with("0.5 3 0 1 2", "0.5 2147483648 0 1"), "a:23: 2147483648 numbers of a list");
        fails(Format::Ply, with("double z", "quad z"), "a:7: \"quad\" is no type");
        fails(Format::Ply, with("double z", "double w"), "a:18: the vertices lack");
        fails(Format::Ply, with("end_header", "end"), "a:17: \"end\" starts no line");
        fails(
            Format::Ply,
            with("list uchar int vertex_i", "list uchar float vertex_i"),
            "a:22: elements \"face\" need",
        );
        fails(Format::Ply, with("element junk", "element tristrips"), "a:25: triangle strips");
        fails(Format::Ply, &SAMPLE[..40], "a:3: the header has no end");
        let many: String = (0..5000).map(|k| format!("property uchar p{k}\n")).collect();
        let header = with("vertex 5", "vertex 0").replace("property uchar red\n", &many);
        fails(Format::Ply, header, "a:5017: more than 4096 fields over the points");
        let bytes = binary(Order::Little);
        fails(Format::Ply, &bytes[..bytes.len() - 1], "a: byte 205: 3 numbers of a list do not fit in the 11 bytes");
        fails(Format::Ply, &bytes[..bytes.len() - 14], "a: byte 168: 3 elements \"vertex\" do not fit in the 35 bytes");
    }

    #[test]
    fn survives_mutations() {
        fuzz(Format::Ply, SAMPLE.as_bytes());
        fuzz(Format::Ply, &binary(Order::Big));
    }
}
