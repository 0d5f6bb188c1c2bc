//! STL, ASCII and binary, read only.
//!
//! Points that are exactly equal become one; nothing is welded by distance. Normals and attribute bytes are dropped. The
//! solids of an ASCII file with more than one become groups.
//!
//! Source: 3D Systems, "StereoLithography Interface Specification" (1989).

use std::collections::HashMap;
use std::path::Path;

use super::binary::{Binary, Order};
use super::draft::Draft;
use super::text::{BYTE_ORDER_MARK, Text, shown};
use crate::cell::CellKind;
use crate::error::Result;

const HEADER: usize = 80;
/// Normal, three corners, two attribute bytes.
const FACET: usize = 50;

/// Joins equal points. The map hashes with a random key, so that no file can choose colliding points.
#[derive(Default)]
struct Weld {
    known: HashMap<[u64; 3], u32>,
}

impl Weld {
    fn point(&mut self, draft: &mut Draft, point: [f64; 3]) -> Result<u32, String> {
        let point = point.map(|x| x + 0.0); // -0 and 0 are one place
        let next = u32::try_from(draft.points.len()).map_err(|_| "more than 2^32 points: split the mesh")?;
        Ok(*self.known.entry(point.map(f64::to_bits)).or_insert_with(|| {
            draft.points.push(point);
            next
        }))
    }
}

/// Whether the bytes are as many as the header of a binary file says.
pub(super) fn fits(bytes: &[u8]) -> bool {
    let facets = bytes.get(HEADER..HEADER + 4).map(|n| u32::from_le_bytes([n[0], n[1], n[2], n[3]]) as usize);
    facets.is_some_and(|n| n.checked_mul(FACET) == Some(bytes.len() - HEADER - 4))
}

pub(super) fn parse(name: &Path, bytes: &[u8]) -> Result<Draft> {
    // Many binary files start with "solid" too, but a text has no zero byte.
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let is_text = text.trim_ascii_start().get(..5).is_some_and(|w| w.eq_ignore_ascii_case(b"solid"))
        && !bytes[..bytes.len().min(1024)].contains(&0);
    match is_text && !fits(bytes) {
        true => parse_text(name, bytes),
        false => parse_binary(name, bytes),
    }
}

fn parse_binary(name: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut file = Binary::new(name, bytes, 0, Order::Little);
    file.take(HEADER, "the header of a binary STL file")?;
    let start = file.clone();
    let count = file.u32("the number of facets")?;
    file.check_count(count.into(), "facets", FACET)?;
    if count as usize * FACET != file.left() {
        let message = format!("the header says {count} facets, but the file has room for {}", file.left() / FACET);
        return Err(start.error(message));
    }
    let (mut draft, mut weld) = (Draft::new(bytes.len()), Weld::default());
    for facet in 0..count {
        let place = file.clone();
        let numbers = file.take(FACET, "a facet")?[12..48].as_chunks::<4>().0;
        let x = |k: usize| f64::from(f32::from_le_bytes(numbers[k]));
        let mut corners = [0; 3];
        for (k, corner) in corners.iter_mut().enumerate() {
            let point = [x(3 * k), x(3 * k + 1), x(3 * k + 2)];
            if point.iter().any(|x| !x.is_finite()) {
                return Err(place.error(format!("facet {facet} has a coordinate that is not finite: {point:?}")));
            }
            *corner = weld.point(&mut draft, point).map_err(|message| place.error(message))?;
        }
        draft.cell(CellKind::Triangle, &corners).map_err(|message| place.error(message))?;
    }
    Ok(draft)
}

fn parse_text(name: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut text = Text::new(name, bytes);
    let (mut draft, mut weld) = (Draft::new(bytes.len()), Weld::default());
    let mut solids: Vec<(&[u8], u32)> = Vec::new(); // name and first cell
    while let Some(word) = text.word() {
        if !word.eq_ignore_ascii_case(b"solid") {
            return Err(text.error(format!("{} found where `solid` or the end should be", shown(word))));
        }
        solids.push((text.rest_of_line(), draft.cell_count() as u32));
        loop {
            let word = text.need("`facet` or `endsolid`")?;
            if word.eq_ignore_ascii_case(b"endsolid") {
                text.rest_of_line();
                break;
            }
            if !word.eq_ignore_ascii_case(b"facet") {
                return Err(text.error(format!("{} found where `facet` or `endsolid` should be", shown(word))));
            }
            expect(&mut text, "normal")?;
            (0..3).try_for_each(|_| text.number::<f64>("a number of the normal").map(drop))?;
            expect(&mut text, "outer")?;
            expect(&mut text, "loop")?;
            let mut corners = [0; 3];
            for corner in &mut corners {
                expect(&mut text, "vertex")?;
                let point = [text.coordinate()?, text.coordinate()?, text.coordinate()?];
                *corner = weld.point(&mut draft, point).map_err(|message| text.error(message))?;
            }
            expect(&mut text, "endloop")?;
            expect(&mut text, "endfacet")?;
            draft.cell(CellKind::Triangle, &corners).map_err(|message| text.error(message))?;
        }
    }
    if solids.len() > 1 {
        let ends = solids.iter().skip(1).map(|s| s.1).chain([draft.cell_count() as u32]);
        for (&(solid, start), end) in solids.iter().zip(ends.collect::<Vec<_>>()) {
            let solid = String::from_utf8_lossy(solid);
            draft.group(&solid, 2, (start..end).collect()).map_err(|message| text.error(message))?;
        }
    }
    Ok(draft)
}

fn expect(text: &mut Text, keyword: &str) -> Result<()> {
    let word = text.need(&format!("`{keyword}`"))?;
    match word.eq_ignore_ascii_case(keyword.as_bytes()) {
        true => Ok(()),
        false => Err(text.error(format!("{} found where `{keyword}` should be", shown(word)))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fails, fuzz, parsed};
    use super::super::{Format, parse};
    use super::*;

    fn text(solids: &[&str]) -> String {
        let facet = |z: i32| {
            format!(
                "facet normal 0 0 1\n outer loop\n  vertex 0 -0.0 {z}\n  vertex 1 0 0\n  vertex 0 1 0\n endloop\nendfacet\n"
            )
        };
        solids.iter().map(|s| format!("solid {s}\n{}{}endsolid {s}\n", facet(0), facet(1))).collect()
    }

    fn binary(count: u32, facets: &[[f32; 9]]) -> Vec<u8> {
        let mut bytes = b"solid but binary".to_vec();
        bytes.resize(HEADER, 0);
        bytes.extend(count.to_le_bytes());
        for facet in facets {
            bytes.extend([0; 12]);
            bytes.extend(facet.iter().flat_map(|x| x.to_le_bytes()));
            bytes.extend([0; 2]);
        }
        bytes
    }

    const FACETS: [[f32; 9]; 2] =
        [[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, -0.0, 0.0, 1.0]];

    #[test]
    fn equal_points_are_one() {
        let mesh = parsed(Format::Stl, text(&["one"]));
        assert_eq!(mesh.points(), [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        assert_eq!(mesh.cells().all_corners(), [0, 1, 2, 3, 1, 2]);
        assert!(mesh.groups().is_empty());
        let mesh = parsed(Format::Stl, binary(2, &FACETS));
        assert_eq!((mesh.points().len(), mesh.cells().all_corners()), (4, &[0, 1, 2, 1, 2, 3][..]));
    }

    #[test]
    fn an_ascii_file_may_start_with_a_byte_order_mark() {
        assert_eq!(parsed(Format::Stl, format!("\u{feff}{}", text(&["one"]))), parsed(Format::Stl, text(&["one"])));
    }

    #[test]
    fn several_solids_are_groups() {
        let mesh = parsed(Format::Stl, text(&["in let", "wall"]));
        assert_eq!(mesh.group("in let").unwrap().cells, [0, 1]);
        assert_eq!(mesh.group("wall").unwrap().cells, [2, 3]);
    }

    #[test]
    fn errors_say_where() {
        fails(Format::Stl, binary(3, &FACETS), "a: byte 84: 3 facets do not fit in the 100 bytes left");
        fails(Format::Stl, binary(1, &FACETS), "a: byte 80: the header says 1 facets");
        fails(Format::Stl, binary(u32::MAX, &FACETS), "a: byte 84: 4294967295 facets do not fit");
        fails(Format::Stl, &binary(2, &FACETS)[..50], "a: byte 0: the header of a binary STL");
        let mut bad = FACETS;
        bad[1][4] = f32::NAN;
        fails(Format::Stl, binary(2, &bad), "a: byte 134: facet 1 has a coordinate that is not finite");
        fails(Format::Stl, text(&["a"]).replace("vertex 1 0", "vertex inf 0"), "a:5: coordinate inf is not finite");
        fails(Format::Stl, text(&["a"]).replace("endloop", "vertex 1 2 3"), "a:7: \"vertex\" found where `endloop`");
        fails(Format::Stl, &text(&["a"])[..40], "a:4: the file ends where `vertex` should be");
        fails(Format::Stl, "", "a: byte 0: ");
    }

    #[test]
    fn survives_mutations() {
        fuzz(Format::Stl, text(&["one", "two"]).as_bytes());
        fuzz(Format::Stl, &binary(2, &FACETS));
        assert!(parse(Format::Stl, Path::new("a"), b"solid").is_err());
    }
}
