//! Writes VTU with its arrays appended as raw bytes, and the index of several such files.

use std::io::{self, Write};
use std::ops::Range;

use flate2::{Compression, write::ZlibEncoder};
use quick_xml::escape::escape;

use super::super::bounds::{Allowance, FIELDS, SKELETON};
use super::super::vtk_cells;
use crate::error::shown_name;
use crate::mesh::{Field, Group, Mesh};
use crate::parallel;

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

/// How the numbers of a file lie in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::io) enum Form {
    /// In 64 bits, as they are: pieces of a mesh are read together, and must have the same types.
    Plain,
    /// In as few bits as hold them without a loss, in blocks that zlib has shrunk: what all readers know.
    Packed,
}

/// Bytes of a block before it is shrunk: VTK reads whole blocks.
const BLOCK: usize = 1 << 15;

/// A block as zlib leaves it, at its quickest: slower levels shrink numbers no further.
fn shrunk(block: &[u8]) -> Vec<u8> {
    let mut out = ZlibEncoder::new(Vec::with_capacity(block.len()), Compression::fast());
    let written = out.write_all(block).and_then(|()| out.finish());
    written.expect("memory takes what is written")
}

/// An array as it lies in the file.
struct Array {
    tag: String,
    bytes: Vec<u8>,
}

impl Array {
    /// `number`: the bytes of number `i`.
    fn new<const N: usize>(
        (kind, name): (&str, &str),
        [components, count]: [usize; 2],
        form: Form,
        number: impl Fn(usize) -> [u8; N] + Sync,
    ) -> Array {
        let len = components * count;
        let raw = |range: Range<usize>| {
            let mut raw = Vec::with_capacity(N * range.len());
            range.for_each(|i| raw.extend_from_slice(&number(i)));
            raw
        };
        let bytes = match form {
            Form::Plain => [((N * len) as u64).to_le_bytes().to_vec(), raw(0..len)].concat(),
            Form::Packed => {
                let starts = (0..len).step_by(BLOCK / N);
                let blocks = parallel::map(starts, |start| shrunk(&raw(start..len.min(start + BLOCK / N))));
                let head = [blocks.len(), BLOCK, N * len % BLOCK].into_iter().chain(blocks.iter().map(Vec::len));
                head.flat_map(|n| (n as u64).to_le_bytes()).chain(blocks.iter().flatten().copied()).collect()
            }
        };
        let name = escape(name);
        let tag =
            format!(r#"<DataArray type="{kind}" Name="{name}" NumberOfComponents="{components}" format="appended""#);
        Array { tag, bytes }
    }

    fn reals(name: &str, components: usize, values: &[f64], form: Form) -> Array {
        let counts = [components, values.len() / components.max(1)];
        let is_single = |x: &f64| f64::from(*x as f32).to_bits() == x.to_bits();
        match form == Form::Packed && values.iter().all(is_single) {
            true => Array::new(("Float32", name), counts, form, |i| (values[i] as f32).to_le_bytes()),
            false => Array::new(("Float64", name), counts, form, |i| values[i].to_le_bytes()),
        }
    }

    /// `values` are not negative.
    fn integers(name: &str, values: &[i64], form: Form) -> Array {
        let counts = [1, values.len()];
        match form == Form::Packed && values.iter().all(|&x| x <= i64::from(i32::MAX)) {
            true => Array::new(("Int32", name), counts, form, |i| (values[i] as i32).to_le_bytes()),
            false => Array::new(("Int64", name), counts, form, |i| values[i].to_le_bytes()),
        }
    }

    fn bytes(name: &str, values: &[u8], form: Form) -> Array {
        Array::new(("UInt8", name), [1, values.len()], form, |i| [values[i]])
    }
}

/// Writes the mesh with everything it has; names must have passed [`check_names`].
pub(in crate::io) fn write(out: &mut impl Write, mesh: &Mesh, form: Form) -> io::Result<()> {
    let arrays = arrays(mesh, form);
    let bytes: usize = arrays.iter().flatten().map(|array| array.bytes.len()).sum();
    let (points, cells) = (mesh.points().len(), mesh.cells().len());
    let skeleton = 3 * points + 2 * cells + mesh.cells().all_corners().len();
    let per_point: usize = mesh.point_fields().iter().map(|field| field.components).sum();
    let per_cell = mesh.cell_fields().iter().map(|field| field.components).sum::<usize>() + mesh.groups().len();
    let fits = |allowance: Allowance, count: usize| allowance.of(bytes).take(count as u64, "numbers", "").is_ok();
    if form == Form::Packed && !(fits(SKELETON, skeleton) && fits(FIELDS, per_point * points + per_cell * cells)) {
        // It shrinks by more than a reader takes for plausible.
        return write(out, mesh, Form::Plain);
    }
    let packed = if form == Form::Packed { " compressor=\"vtkZLibDataCompressor\"" } else { "" };
    writeln!(
        out,
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" \
         header_type=\"UInt64\"{packed}>\n<UnstructuredGrid>\n<Piece NumberOfPoints=\"{points}\" NumberOfCells=\"{cells}\">"
    )?;
    let mut offset = 0;
    for (section, arrays) in ["PointData", "CellData", "Points", "Cells"].into_iter().zip(&arrays) {
        writeln!(out, "<{section}>")?;
        for array in arrays {
            writeln!(out, "{} offset=\"{offset}\"/>", array.tag)?;
            offset += array.bytes.len();
        }
        writeln!(out, "</{section}>")?;
    }
    write!(out, "</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_")?;
    arrays.iter().flatten().try_for_each(|array| out.write_all(&array.bytes))?;
    writeln!(out, "\n</AppendedData>\n</VTKFile>")
}

/// The arrays of points, cells, places and corners.
fn arrays(mesh: &Mesh, form: Form) -> [Vec<Array>; 4] {
    let cells = mesh.cells();
    let of_field = |field: &Field| Array::reals(&field.name, field.components, &field.values, form);
    let groups = mesh.groups().iter().map(|group| {
        let mut marks = vec![0; cells.len()];
        group.cells.iter().for_each(|&c| marks[c as usize] = 1);
        Array::bytes(&name_of(group), &marks, form)
    });
    let corners = cells.iter().flat_map(|(kind, corners)| {
        let order = vtk_cells::type_of(kind).1;
        order.iter().map(|&k| i64::from(corners[k]))
    });
    let mut end = 0;
    let ends = cells.iter().map(|(kind, _)| {
        end += kind.corners() as i64;
        end
    });
    let kinds = cells.iter().map(|(kind, _)| vtk_cells::type_of(kind).0);
    [
        mesh.point_fields().iter().map(of_field).collect(),
        mesh.cell_fields().iter().map(of_field).chain(groups).collect(),
        vec![Array::reals("Points", 3, mesh.points().as_flattened(), form)],
        vec![
            Array::integers("connectivity", &corners.collect::<Vec<_>>(), form),
            Array::integers("offsets", &ends.collect::<Vec<_>>(), form),
            Array::bytes("types", &kinds.collect::<Vec<_>>(), form),
        ],
    ]
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
