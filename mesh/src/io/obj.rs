//! Wavefront OBJ, read and written.
//!
//! Read: `v` (extra color or weight numbers are checked and dropped), `f` (more than four corners become a fan of
//! triangles), `l` (edges) and `p` (vertex cells); corners as `v`, `v/vt`, `v//vn` or `v/vt/vn`, negative ones counted
//! from the last point; lines continued by a backslash. Normals, texture coordinates, names, groups and materials are
//! dropped. Free-form curves and surfaces are refused. Written: points, triangles, quads, edges and vertex cells.
//!
//! Source: Wavefront, Advanced Visualizer manual, appendix B1, "Object files (.obj)".

use std::io::{self, Write};
use std::path::Path;

use super::draft::Draft;
use super::text::{Text, number, shown};
use crate::cell::{CellKind, Cells};
use crate::error::Result;
use crate::mesh::Mesh;

/// Statements without geometry.
const DROPPED: [&[u8]; 20] = [
    b"vt",
    b"vn",
    b"vp",
    b"g",
    b"o",
    b"s",
    b"mg",
    b"usemtl",
    b"mtllib",
    b"usemap",
    b"maplib",
    b"bevel",
    b"c_interp",
    b"d_interp",
    b"lod",
    b"shadow_obj",
    b"trace_obj",
    b"call",
    b"csh",
    b"tech",
];
const FREE_FORM: [&[u8]; 14] = [
    b"cstype", b"deg", b"bmat", b"step", b"curv", b"curv2", b"surf", b"parm", b"trim", b"hole", b"scrv", b"sp", b"end",
    b"con",
];

/// Whether a word starts a statement.
pub(super) fn is_keyword(word: &[u8]) -> bool {
    matches!(word, b"v" | b"f" | b"l" | b"p") || DROPPED.contains(&word) || FREE_FORM.contains(&word)
}

pub(super) fn parse(name: &Path, bytes: &[u8]) -> Result<Draft> {
    let text = Text::new(name, bytes).with_comments(b'#');
    let highest = (0, text.clone());
    let mut file = File { text, points: Vec::new(), corners: Vec::new(), elements: Vec::new(), highest };
    loop {
        file.statement()?;
        if !file.text.next_line() {
            break;
        }
    }
    file.finish(Draft::new(bytes.len()))
}

/// What the statements say, put together at the end: faces may come before their points.
struct File<'a> {
    text: Text<'a>,
    points: Vec<[f64; 3]>,
    corners: Vec<u32>,
    /// Keyword and number of corners of each.
    elements: Vec<(u8, usize)>,
    /// The highest point that a corner names, counted from 1, and where.
    highest: (usize, Text<'a>),
}

impl File<'_> {
    fn statement(&mut self) -> Result<()> {
        let text = &mut self.text;
        match word(text) {
            None => Ok(()),
            Some(b"v") => self.point(),
            Some(keyword @ (b"f" | b"l" | b"p")) => self.element(keyword),
            Some(keyword) if DROPPED.contains(&keyword) => {
                while word(text).is_some() {}
                Ok(())
            }
            Some(keyword) if FREE_FORM.contains(&keyword) => Err(text
                .error(format!("free-form geometry ({}) is not supported: export polygons instead", shown(keyword)))),
            Some(other) => Err(text.error(format!("{} starts no statement of an OBJ file", shown(other)))),
        }
    }

    fn point(&mut self) -> Result<()> {
        let text = &mut self.text;
        self.points.push([coordinate(text)?, coordinate(text)?, coordinate(text)?]);
        let mut extra = 0;
        while let Some(word) = word(text) {
            extra += 1;
            if number::<f64>(word).is_none() || extra > 4 {
                return Err(text.error(format!("{} is too much for the coordinates of a point", shown(word))));
            }
        }
        Ok(())
    }

    fn element(&mut self, keyword: &[u8]) -> Result<()> {
        let before = self.corners.len();
        while let Some(word) = word(&mut self.text) {
            let v = corner(word, self.points.len()).map_err(|message| self.text.error(message))?;
            self.corners.push(v);
            if v as usize + 1 > self.highest.0 {
                self.highest = (v as usize + 1, self.text.clone());
            }
        }
        let count = self.corners.len() - before;
        let least = match keyword[0] {
            b'f' => 3,
            b'l' => 2,
            _ => 1,
        };
        if count < least {
            return Err(self.text.error(format!("{} needs {least} corners, has {count}", shown(keyword))));
        }
        self.elements.push((keyword[0], count));
        Ok(())
    }

    fn finish(self, mut draft: Draft) -> Result<Draft> {
        let (highest, place) = self.highest;
        if highest > self.points.len() {
            return Err(place.error(format!("corner {highest} is no point: the file has {}", self.points.len())));
        }
        draft.points = self.points;
        let mut rest = &self.corners[..];
        for (keyword, count) in self.elements {
            let (element, others) = rest.split_at(count);
            rest = others;
            let added = match keyword {
                b'f' => draft.polygon(element),
                b'l' => draft.pieces(CellKind::Edge, element.windows(2)),
                _ => draft.pieces(CellKind::Vertex, element.chunks(1)),
            };
            added.map_err(|message| self.text.error(message))?;
        }
        Ok(draft)
    }
}

/// The next word of this statement; a backslash at the end of a line continues it on the next.
fn word<'a>(text: &mut Text<'a>) -> Option<&'a [u8]> {
    loop {
        match text.word_in_line()? {
            b"\\" => text.next_line(),
            word => return Some(word),
        };
    }
}

fn coordinate(text: &mut Text) -> Result<f64> {
    let word = word(text).ok_or_else(|| text.error("a point needs 3 coordinates"))?;
    match number::<f64>(word) {
        Some(x) if x.is_finite() => Ok(x),
        _ => Err(text.error(format!("{} is not a finite coordinate", shown(word)))),
    }
}

/// The point of a corner such as `7`, `7/1/2` or `-1`, counted from 0.
fn corner(word: &[u8], points: usize) -> Result<u32, String> {
    let first = word.split(|&b| b == b'/').next().unwrap_or(word);
    let v = match number::<i64>(first) {
        None | Some(0) => -1,
        Some(v) if v > 0 => v - 1,
        Some(v) => points as i64 + v,
    };
    u32::try_from(v).map_err(|_| {
        format!("{} is no corner: points count from 1, or from -1 backwards, and {points} came before", shown(word))
    })
}

pub(super) fn write(out: &mut impl Write, mesh: &Mesh) -> io::Result<()> {
    for [x, y, z] in mesh.points() {
        writeln!(out, "v {x:?} {y:?} {z:?}")?; // the shortest digits that read back as the same bits
    }
    let cells: &Cells = mesh.cells();
    for (kind, corners) in cells.iter() {
        out.write_all(match kind {
            CellKind::Vertex => b"p",
            CellKind::Edge => b"l",
            _ => b"f",
        })?;
        corners.iter().try_for_each(|&v| write!(out, " {}", u64::from(v) + 1))?;
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fails, fuzz, mixed_surface, parsed};
    use super::super::{Format, parse};
    use super::*;

    const SAMPLE: &str = "# a comment\nmtllib none.mtl\no thing\nv 0 0 0\nv 1 0 0 # right\nv 1 1 0 0.5 0.5 0.5\n\
        v 0 1 0\nvn 0 0 1\nvt 0 0\nf 1/1/1 2//1 \\\n 3/1\nf -4 -3 -2 -1\nl 1 2 3\np 4\n";

    #[test]
    fn reads_faces_lines_and_points() {
        let mesh = parsed(Format::Obj, SAMPLE);
        assert_eq!(mesh.points().len(), 4);
        let cells: Vec<_> = mesh.cells().iter().collect();
        assert_eq!(cells[0], (CellKind::Triangle, &[0, 1, 2][..]));
        assert_eq!(cells[1], (CellKind::Quad, &[0, 1, 2, 3][..]));
        assert_eq!(cells[2..4], [(CellKind::Edge, &[0, 1][..]), (CellKind::Edge, &[1, 2][..])]);
        assert_eq!(cells[4], (CellKind::Vertex, &[3][..]));
    }

    #[test]
    fn a_pentagon_becomes_a_fan_and_points_may_follow() {
        let mesh = parsed(Format::Obj, "f 1 2 3 4 5\r\nv 0 0 0\r\nv 1 0 0\r\nv 2 1 0\r\nv 1 2 0\r\nv 0 1 0\r\n");
        assert_eq!(mesh.cells().all_corners(), [0, 1, 2, 0, 2, 3, 0, 3, 4]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(parsed(Format::Obj, format!("\u{feff}{}", &SAMPLE[12..])), parsed(Format::Obj, SAMPLE));
        assert_eq!(parsed(Format::Obj, "\u{feff}v 0 0 0\n").points().len(), 1);
        fails(Format::Obj, "\u{feff}x 0 0 0\n", "a:1: \"x\" starts no statement");
    }

    #[test]
    fn writes_what_it_reads() {
        let mesh = mixed_surface();
        let mut bytes = Vec::new();
        write(&mut bytes, &mesh).unwrap();
        let again = parse(Format::Obj, Path::new("a.obj"), &bytes).unwrap();
        assert_eq!((again.points(), again.cells()), (mesh.points(), mesh.cells()));
    }

    #[test]
    fn errors_say_where() {
        fails(Format::Obj, "v 0 0 0\nf 1 1 2\nv 0 0\n", "a:3: a point needs 3 coordinates");
        fails(Format::Obj, "v 0 0 0\nf 1 1 2\n", "a:2: corner 2 is no point");
        fails(Format::Obj, "v 0 0 0\nf 1 0 1\n", "a:2: \"0\" is no corner");
        fails(Format::Obj, "v 0 0 0\nf 1 -2 1\n", "a:2: \"-2\" is no corner");
        fails(Format::Obj, "v 0 0 0\nf 1 9223372036854775808 1\n", "a:2: \"9223372036854775808\" is no corner");
        fails(Format::Obj, "v 0 0 0\nf 1 2147483648 1\n", "a:2: corner 2147483648 is no point");
        fails(Format::Obj, "v 0 nan 0\n", "a:1: \"nan\" is not a finite coordinate");
        fails(Format::Obj, "v 0 1e999 0\n", "a:1: \"1e999\" is not a finite coordinate");
        fails(Format::Obj, "v 0 0 0\n\nf 1 1\n", "a:3: \"f\" needs 3 corners, has 2");
        fails(Format::Obj, "surf 0 1\n", "a:1: free-form geometry");
        fails(Format::Obj, "<html>\n", "a:1: \"<html>\" starts no statement");
    }

    #[test]
    fn survives_mutations() {
        fuzz(Format::Obj, SAMPLE.as_bytes());
    }
}
