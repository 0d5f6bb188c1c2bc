//! Writes VTU with its arrays appended as raw bytes, and the index of several such files.

use std::io::{self, Write};

use quick_xml::escape::escape;

use super::super::vtk_cells;
use crate::error::shown_name;
use crate::mesh::{Group, Mesh};

/// Refuses names that XML cannot hold.
pub(in crate::io) fn check_names(mesh: &Mesh) -> Result<(), String> {
    let fields = mesh.point_fields().iter().chain(mesh.cell_fields()).map(|f| &f.name);
    match fields.chain(mesh.groups().iter().map(|g| &g.name)).find(|name| !name.chars().all(is_xml)) {
        Some(name) => {
            Err(format!("{} has a character that XML cannot hold: rename the field or group", shown_name(name)))
        }
        None => Ok(()),
    }
}

fn is_xml(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Writes the mesh with everything it has; names must have passed [`check_names`].
pub(in crate::io) fn write(out: &mut impl Write, mesh: &Mesh) -> io::Result<()> {
    let (points, cells) = (mesh.points(), mesh.cells());
    let corner_count = cells.all_corners().len();
    let mut offset = 0;
    let mut array = |out: &mut dyn Write, kind: &str, size: usize, name: &str, components: usize, count: usize| {
        let at = offset;
        offset += 8 + (size * components * count) as u64; // a header of 8 bytes, then the numbers
        let name = escape(name);
        writeln!(
            out,
            r#"<DataArray type="{kind}" Name="{name}" NumberOfComponents="{components}" format="appended" offset="{at}"/>"#
        )
    };
    writeln!(
        out,
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" \
         header_type=\"UInt64\">\n<UnstructuredGrid>\n<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">\n<PointData>",
        points.len(),
        cells.len()
    )?;
    for field in mesh.point_fields() {
        array(out, "Float64", 8, &field.name, field.components, points.len())?;
    }
    writeln!(out, "</PointData>\n<CellData>")?;
    for field in mesh.cell_fields() {
        array(out, "Float64", 8, &field.name, field.components, cells.len())?;
    }
    for group in mesh.groups() {
        array(out, "UInt8", 1, &name_of(group), 1, cells.len())?;
    }
    writeln!(out, "</CellData>\n<Points>")?;
    array(out, "Float64", 8, "Points", 3, points.len())?;
    writeln!(out, "</Points>\n<Cells>")?;
    array(out, "Int64", 8, "connectivity", 1, corner_count)?;
    array(out, "Int64", 8, "offsets", 1, cells.len())?;
    array(out, "UInt8", 1, "types", 1, cells.len())?;
    write!(out, "</Cells>\n</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_")?;

    for field in mesh.point_fields().iter().chain(mesh.cell_fields()) {
        put(out, field.values.iter().map(|x| x.to_le_bytes()))?;
    }
    for group in mesh.groups() {
        let mut marks = vec![[0]; cells.len()];
        group.cells.iter().for_each(|&c| marks[c as usize] = [1]);
        put(out, marks.into_iter())?;
    }
    out.write_all(&(24 * points.len() as u64).to_le_bytes())?;
    points.iter().flatten().try_for_each(|x| out.write_all(&x.to_le_bytes()))?;
    out.write_all(&(8 * corner_count as u64).to_le_bytes())?;
    for (kind, corners) in cells.iter() {
        let order = vtk_cells::type_of(kind).1;
        order.iter().try_for_each(|&k| out.write_all(&i64::from(corners[k]).to_le_bytes()))?;
    }
    let mut end = 0;
    let ends = cells.iter().map(|(kind, _)| {
        end += kind.corners() as i64;
        end.to_le_bytes()
    });
    put(out, ends)?;
    put(out, cells.iter().map(|(kind, _)| [vtk_cells::type_of(kind).0]))?;
    writeln!(out, "\n</AppendedData>\n</VTKFile>")
}

/// Writes the index of pieces that each have the fields and groups of `like`, whose names must have passed [`check_names`].
pub(in crate::io) fn write_index(out: &mut impl Write, like: &Mesh, pieces: &[String]) -> io::Result<()> {
    let array = |out: &mut dyn Write, kind: &str, name: &str, components: usize| {
        writeln!(out, r#"<PDataArray type="{kind}" Name="{}" NumberOfComponents="{components}"/>"#, escape(name))
    };
    writeln!(
        out,
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"PUnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" \
         header_type=\"UInt64\">\n<PUnstructuredGrid GhostLevel=\"0\">\n<PPointData>"
    )?;
    for field in like.point_fields() {
        array(out, "Float64", &field.name, field.components)?;
    }
    writeln!(out, "</PPointData>\n<PCellData>")?;
    for field in like.cell_fields() {
        array(out, "Float64", &field.name, field.components)?;
    }
    for group in like.groups() {
        array(out, "UInt8", &name_of(group), 1)?;
    }
    writeln!(out, "</PCellData>\n<PPoints>")?;
    array(out, "Float64", "Points", 3)?;
    writeln!(out, "</PPoints>")?;
    for piece in pieces {
        writeln!(out, r#"<Piece Source="{}"/>"#, escape(piece))?;
    }
    writeln!(out, "</PUnstructuredGrid>\n</VTKFile>")
}

/// The cell array that a group is stored as.
fn name_of(group: &Group) -> String {
    format!("group.{}.{}", group.dimension, group.name)
}

/// Writes numbers behind the header that says how many bytes they take.
fn put<const N: usize>(out: &mut impl Write, mut numbers: impl ExactSizeIterator<Item = [u8; N]>) -> io::Result<()> {
    out.write_all(&((N * numbers.len()) as u64).to_le_bytes())?;
    numbers.try_for_each(|number| out.write_all(&number))
}
