//! TetGen's `.node` and `.ele` files, read only; Triangle's files of the same names in two dimensions, too.
//!
//! Indices count from 0 or 1, whichever the first point says. Point attributes become the fields `attribute_0`,
//! `attribute_1`, ...; the boundary marker becomes the field `boundary_marker`; region attributes become cell fields
//! `attribute_0`, .... Of second-order elements (10 nodes a tet, 6 a triangle) the corners are read; `.face`, `.edge` and
//! `.neigh` files are not.
//!
//! Source: Si, "TetGen user's manual", section 5.2, file formats.

use std::path::Path;

use super::draft::Draft;
use super::text::Text;
use crate::cell::CellKind;
use crate::error::{Error, Place, Result};

/// Reads the points of a `.node` file and, if given, the cells of its `.ele` file.
pub(super) fn parse(nodes: (&Path, &[u8]), elements: Option<(&Path, &[u8])>) -> Result<Draft> {
    let mut draft = Draft::new(nodes.1.len() + elements.map_or(0, |(_, bytes)| bytes.len()));
    let base = read_nodes(&mut draft, &mut Text::new(nodes.0, nodes.1).with_comments(b'#'))?;
    if let Some((name, bytes)) = elements {
        read_elements(&mut draft, &mut Text::new(name, bytes).with_comments(b'#'), base)?;
    }
    Ok(draft)
}

/// Returns the index of the first point.
fn read_nodes(draft: &mut Draft, text: &mut Text) -> Result<i64> {
    let count = text.count("points", 6)?; // an index, two coordinates, and blanks
    let dimension: u32 = text.number_in_line("the dimension, 2 or 3")?;
    if !(2..=3).contains(&dimension) {
        return Err(text.error(format!("dimension {dimension} is neither 2 nor 3")));
    }
    let (attributes, markers) = (optional_count(text)?, optional_count(text)?);
    if markers > 1 {
        return Err(text.error(format!("{markers} boundary markers a point: 0 or 1 is allowed")));
    }
    text.end_line("the first line of a .node file")?;
    let mut columns = columns(text, count, attributes.saturating_add(markers))?;
    let mut base = 0;
    draft.points.reserve(count);
    for v in 0..count {
        let index: i64 = text.number("the index of a point")?;
        if v == 0 {
            base = index;
        }
        check_index(text, index, base, v, "point")?;
        let (x, y) = (text.coordinate()?, text.coordinate()?);
        draft.points.push([x, y, if dimension == 3 { text.coordinate()? } else { 0.0 }]);
        for column in &mut columns {
            column.push(text.number("an attribute or the boundary marker of the point")?);
        }
        text.end_line("a point")?;
    }
    end(text, count, "points")?;
    for (k, values) in columns.into_iter().enumerate() {
        let name = if k < attributes { format!("attribute_{k}") } else { "boundary_marker".to_owned() };
        draft.point_field(&name, 1, values).map_err(|message| text.error(message))?;
    }
    Ok(base)
}

fn read_elements(draft: &mut Draft, text: &mut Text, base: i64) -> Result<()> {
    let count = text.count("cells", 8)?; // an index, three corners, and blanks
    let nodes: usize = text.number_in_line("the number of nodes a cell")?;
    let kind = match nodes {
        3 | 6 => CellKind::Triangle,
        4 | 10 => CellKind::Tet,
        n => return Err(text.error(format!("cells of {n} nodes: only 3 or 6 (triangles) and 4 or 10 (tets) exist"))),
    };
    let attributes = optional_count(text)?;
    text.end_line("the first line of an .ele file")?;
    let mut columns = columns(text, count, attributes)?;
    let mut corners = Vec::with_capacity(10);
    for c in 0..count {
        let index: i64 = text.number("the index of a cell")?;
        check_index(text, index, base, c, "cell")?;
        corners.clear();
        for _ in 0..nodes {
            let v: i64 = text.number("the index of a corner")?;
            let corner = v.checked_sub(base).and_then(|v| draft.corner(v).ok());
            corners.push(corner.ok_or_else(|| {
                let last = draft.points.len() as i64 + base - 1;
                text.error(format!("corner {v} is no point of the .node file: they go from {base} to {last}"))
            })?);
        }
        draft.curved(kind, &corners).map_err(|message| text.error(message))?;
        for column in &mut columns {
            column.push(text.number("an attribute of the cell")?);
        }
        text.end_line("a cell")?;
    }
    end(text, count, "cells")?;
    for (k, values) in columns.into_iter().enumerate() {
        draft.cell_field(&format!("attribute_{k}"), 1, values).map_err(|message| text.error(message))?;
    }
    Ok(())
}

/// A count at the end of a first line, which may be left out.
fn optional_count(text: &mut Text) -> Result<usize> {
    let mut ahead = text.clone();
    match ahead.word_in_line() {
        Some(_) => text.number_in_line("a number of attributes or markers"),
        None => Ok(0),
    }
}

/// Empty columns of numbers, unless the text cannot hold them.
fn columns(text: &Text, rows: usize, columns: usize) -> Result<Vec<Vec<f64>>> {
    let values = (rows.max(1) as u64).saturating_mul(columns as u64);
    text.check_count(values, "attributes and markers", 2)?;
    Ok(vec![Vec::new(); columns])
}

/// Refuses lines that the first line does not count.
fn end(text: &mut Text, count: usize, what: &str) -> Result<()> {
    text.end(&format!("the {count} {what} that the first line counts"))
}

fn check_index(text: &Text, index: i64, base: i64, row: usize, what: &str) -> Result<()> {
    if !(0..=1).contains(&base) {
        return Err(text.error(format!("the first {what} has index {index}: it must be 0 or 1")));
    }
    match base + row as i64 {
        due if due == index => Ok(()),
        due => Err(text.error(format!("{what} {index} found where {what} {due} should be: they must be in order"))),
    }
}

/// The error for bytes that hold only half of a mesh.
pub(super) fn half(name: &Path) -> Error {
    Error::file(name, Place::Whole, "an .ele file has no points: give its .node file too, as `read` does")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fails, mutations};
    use super::super::{Format, parse_tetgen, read};
    use super::*;
    use crate::mesh::Mesh;

    const NODES: &str = "# points\n5 3 1 1\n1 0 0 0 20.5 1\n2 1 0 0 21 1\n\n3 0 1 0 22 0 # inside\n\
        4 0 0 1 23 1\n5 1 1 1 24 -1\n";
    const CELLS: &str = "2 4 1\n1 1 2 3 4 7\n2 2 3 4 5 8\n# end\n";

    fn both(nodes: &str, cells: &str) -> Result<Mesh> {
        parse_tetgen((Path::new("a.node"), nodes.as_bytes()), (Path::new("a.ele"), cells.as_bytes()))
    }

    fn both_noted(nodes: &str, cells: &str) -> (Mesh, Vec<String>) {
        let mut notes = Vec::new();
        let draft = parse((Path::new("a.node"), nodes.as_bytes()), Some((Path::new("a.ele"), cells.as_bytes())));
        let mesh = draft.unwrap().finish(Path::new("a.node"), &mut |note| notes.push(note.to_owned())).unwrap();
        (mesh, notes)
    }

    #[track_caller]
    fn both_fail(nodes: &str, cells: &str, start: &str) {
        let error = both(nodes, cells).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }

    #[test]
    fn reads_points_cells_and_fields() {
        let mesh = both(NODES, CELLS).unwrap();
        assert_eq!(mesh.cells().all_corners(), [0, 1, 2, 3, 1, 2, 3, 4]);
        assert_eq!(mesh.point_field("attribute_0").unwrap().values, [20.5, 21.0, 22.0, 23.0, 24.0]);
        assert_eq!(mesh.point_field("boundary_marker").unwrap().values, [1.0, 1.0, 0.0, 1.0, -1.0]);
        assert_eq!(mesh.cell_fields()[0].values, [7.0, 8.0]);
    }

    #[test]
    fn counts_from_zero_and_in_two_dimensions() {
        let mesh = both("3 2\n0 0 0\n1 1 0\n2 0 1\n", "1 3 0\n0 0 1 2\n").unwrap();
        assert_eq!(mesh.cells().corners(0), [0, 1, 2]);
        assert_eq!(mesh.points()[2], [0.0, 1.0, 0.0]);
    }

    #[test]
    fn second_order_cells_lose_the_nodes_between_their_corners() {
        let nodes = "6 2 1\n0 0 0 0\n1 5 0 1\n2 1 0 2\n3 5 5 3\n4 0 1 4\n5 6 6 5\n";
        let cells = "1 6\n0 0 2 4 1 3 5\n";
        mutations(cells.as_bytes(), |bytes| both(nodes, &String::from_utf8_lossy(bytes)).is_ok());
        let (mesh, notes) = both_noted(nodes, cells);
        assert_eq!(
            (mesh.points(), mesh.cells().corners(0)),
            (&[[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]][..], &[0, 1, 2][..])
        );
        assert_eq!(mesh.point_field("attribute_0").unwrap().values, [0.0, 2.0, 4.0]);
        assert_eq!(
            notes,
            ["a.node: cells of higher order (1) are read by their corners; points between (3) are left out"]
        );
    }

    #[test]
    fn either_file_finds_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let (node, ele) = (folder.path().join("box.1.node"), folder.path().join("box.1.ele"));
        std::fs::write(&node, NODES).unwrap();
        let error = read(&node).unwrap_err().to_string();
        assert!(error.contains("box.1.ele"), "{error}");
        std::fs::write(&ele, CELLS).unwrap();
        assert_eq!(read(&node).unwrap(), read(&ele).unwrap());
        assert_eq!(read(&ele).unwrap(), both(NODES, CELLS).unwrap());
    }

    #[test]
    fn errors_say_where() {
        both_fail(&NODES.replace("5 3 1 1", "2147483648 3 1 1"), CELLS, "a.node:2: 2147483648 points do not fit");
        both_fail(&NODES.replace("5 3 1 1", "-1 3 1 1"), CELLS, "a.node:2: \"-1\" is not a number of points");
        both_fail(&NODES.replace("5 3 1 1", "5 3 9223372036854775807 1"), CELLS, "a.node:2: ");
        // One more than this many attributes would count as none.
        both_fail("3 3 18446744073709551615 1\n1 0 0 0\n", CELLS, "a.node:1: 18446744073709551615 attributes");
        both_fail(&NODES.replace("5 3 1 1", "6 3 1 1"), CELLS, "a.node:9: the file ends where the index of a point");
        both_fail(&NODES.replace("5 3 1 1", "5 4 1 1"), CELLS, "a.node:2: dimension 4");
        both_fail(&NODES.replace("2 1 0 0", "2 1 nan 0"), CELLS, "a.node:4: coordinate NaN is not finite");
        both_fail(&NODES.replace("3 0 1 0", "7 0 1 0"), CELLS, "a.node:6: point 7 found where point 3 should be");
        both_fail(&NODES.replace("1 0 0 0", "5 0 0 0"), CELLS, "a.node:3: the first point has index 5");
        both_fail(NODES, &CELLS.replace("2 3 4 5", "2 3 4 6"), "a.ele:3: corner 6 is no point");
        both_fail(NODES, &CELLS.replace("2 3 4 5", "2 3 4 0"), "a.ele:3: corner 0 is no point");
        both_fail(NODES, &CELLS.replace("2 4 1", "2 5 1"), "a.ele:1: cells of 5 nodes");
        both_fail(&format!("{NODES}6 0 0 2 25 1\n"), CELLS, "a.node:9: \"6\" found behind the 5 points");
        both_fail(NODES, &format!("{CELLS}3 1 2 3 5 9\n"), "a.ele:5: \"3\" found behind the 2 cells");
        both_fail(NODES, &CELLS.replace("4 7", "4 7 7"), "a.ele:2: \"7\" is too much for a cell");
        fails(Format::TetGen, "x", "a:1: \"x\" is not a number of points");
    }

    #[test]
    fn survives_mutations() {
        mutations(NODES.as_bytes(), |bytes| both(&String::from_utf8_lossy(bytes), CELLS).is_ok());
        mutations(CELLS.as_bytes(), |bytes| both(NODES, &String::from_utf8_lossy(bytes)).is_ok());
    }
}
