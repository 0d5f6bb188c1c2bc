//! What a file may become in memory: the one rule of all readers.
//!
//! A count of items that have bytes of their own is held against the bytes that are left of the file, before memory is
//! allocated for them: [`Text::check_count`](super::text::Text::check_count) and
//! [`Binary::check_count`](super::binary::Binary::check_count). Each becomes at most 64 times its bytes.
//!
//! A few have none: points that only the extent of a grid or the size of a matrix gives, numbers that are
//! unpacked from compressed ones, values that are repeated or filled in. Of these any file may have some, and some more
//! for each of its bytes: an [`Allowance`]. All of them are listed here.

/// So many items for any file, so many more for each of its bytes, but never more than the last.
pub(super) struct Allowance {
    free: u64,
    per_byte: u64,
    most: u64,
}

/// A grid of a hundred points along each axis needs no byte beyond its tags: 24 MiB of points, three times that with cells.
const FREE_POINTS: u64 = 1 << 20;
/// Points are numbered in 32 bits.
const MOST_POINTS: u64 = u32::MAX as u64 - 1;

/// Points of an image or a rectilinear grid. A scan of one byte a point that shrinks to a tenth has 10 points a byte.
pub(super) const GRID_POINTS: Allowance = Allowance { free: FREE_POINTS, per_byte: 32, most: MOST_POINTS };
/// Vertices of a matrix, with edges or without. Files of real graphs have several bytes a vertex.
pub(super) const VERTICES: Allowance = Allowance { free: FREE_POINTS, per_byte: 4, most: MOST_POINTS };
/// Numbers, of 8 bytes each, of stored points and cells. They hardly shrink: the hexes of a regular grid grow sevenfold when
/// read, equally spaced points of a line, the most regular there are, fifteenfold (zlib at its best, as measured).
pub(super) const SKELETON: Allowance = Allowance { free: 1 << 17, per_byte: 4, most: u64::MAX };
/// Values of fields that are stored compressed, or in a place that other arrays share. Constant ones shrink to nothing, so
/// that dozens of them make a file grow a hundredfold, each as long as the skeleton allows. But zlib could grow a file a
/// thousandfold.
pub(super) const FIELDS: Allowance = Allowance { free: 1 << 21, per_byte: 16, most: u64::MAX };
/// Values that readers repeat for the pieces of cut polygons, or fill in where a field has some points or cells alone.
/// Real fields have most points, or all cells of one kind or dimension, and real polygons few corners.
pub(super) const FILLED: Allowance = FIELDS;

impl Allowance {
    /// What a file of so many bytes may have.
    pub(super) fn of(&self, bytes: usize) -> Budget {
        let most = self.free.saturating_add(self.per_byte.saturating_mul(bytes as u64)).min(self.most);
        Budget { left: most }
    }
}

/// What is left of an allowance.
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// Takes room for `count` of `what`, before memory is allocated for them; `way_out` ends the message if there is none.
    pub(super) fn take(&mut self, count: u64, what: &str, way_out: &str) -> Result<(), String> {
        let left = self.left;
        self.left = left.checked_sub(count).ok_or_else(|| {
            format!("{count} {what} are more than a file of this size can plausibly hold, at most {left}: {way_out}")
        })?;
        Ok(())
    }
}

/// The message about a count that the file is too short for.
pub(super) fn too_many(count: u64, what: &str, left: usize) -> String {
    format!("{count} {what} do not fit in the {left} bytes left of the file: it was cut short or the count is wrong")
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::testing::{fails, parsed};
    use super::*;

    #[test]
    fn a_budget_is_what_the_bytes_allow_and_no_more() {
        for (allowance, bytes, most) in [
            (&GRID_POINTS, 100, (1 << 20) + 3200),
            (&VERTICES, 0, 1 << 20),
            (&VERTICES, 1 << 40, u64::from(u32::MAX) - 1),
        ] {
            let mut budget = allowance.of(bytes);
            budget.take(most - 1, "points", "").unwrap();
            let error = budget.take(2, "points", "save fewer").unwrap_err();
            assert_eq!(error, "2 points are more than a file of this size can plausibly hold, at most 1: save fewer");
            assert!(budget.take(1, "points", "").is_ok() && budget.take(1, "points", "").is_err());
        }
        assert!(FIELDS.of(usize::MAX).take(u64::MAX, "values", "").is_ok());
    }

    /// Every count that a format has, with nothing behind it: each would take gigabytes if it were not checked.
    #[test]
    fn a_count_alone_allocates_nothing() {
        let (many, most) = (u32::MAX, i64::MAX);
        let ply = |vertices: u32, more: &str| {
            let axes = "property char x\nproperty char y\nproperty char z\n";
            format!("ply\nformat binary_little_endian 1.0\nelement vertex {vertices}\n{axes}{more}end_header\n")
        };
        let gmsh = |version: &str, tail: &str| format!("$MeshFormat\n{version} 0 8\n$EndMeshFormat\n{tail}");
        let nodes = "$Nodes\n1\n1 0 0 0\n$EndNodes\n$Elements\n0\n$EndElements\n";
        let vtk = |tail: &str| format!("# vtk DataFile Version 5.1\nt\nASCII\nDATASET POLYDATA\n{tail}");
        let vtk_binary = |tail: &str| vtk(tail).replace("ASCII", "BINARY");
        let grid = |kind: &str, extent: &str, tail: &str| {
            format!("<VTKFile type=\"{kind}\"><{kind}><Piece Extent=\"{extent}\">{tail}</Piece></{kind}></VTKFile>")
        };
        let piece = |points: u32, cells: u32, tail: &str| {
            format!(
                "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid><Piece NumberOfPoints=\"{points}\" \
                 NumberOfCells=\"{cells}\">{tail}</Piece></UnstructuredGrid><AppendedData encoding=\"raw\">_"
            )
        };
        let array = |kind: &str, name: &str, components: u32| {
            format!(
                "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" format=\"appended\" \
                 offset=\"0\"/>"
            )
        };
        let market = |sizes: &str| format!("%%MatrixMarket matrix coordinate pattern general\n{sizes}\n");
        let stl = [&[0; 80][..], &many.to_le_bytes()].concat();
        let list = ply(0, "element face 1\nproperty list uint char vertex_indices\n");
        let list = [list.as_bytes(), &many.to_le_bytes()].concat();
        let cases: Vec<(Format, Vec<u8>, &str)> = [
            (Format::Obj, format!("v 0 0 0\nf 1 1 {many}\n"), "a:2: corner 4294967295 is no point: the file has 1"),
            (Format::Ply, ply(many, ""), "a: byte 121: 4294967295 elements \"vertex\" do not fit in the 0"),
            (Format::Gmsh, gmsh("2.2", &format!("$Nodes\n{many}\n")), "a:5: 4294967295 nodes do not fit"),
            (Format::Gmsh, gmsh("4.1", &format!("$Nodes\n{many} 1 1 1\n")), "a:5: 4294967295 blocks of nodes do not"),
            (Format::Gmsh, gmsh("4.1", &format!("$Entities\n{many} 0 0 0\n")), "a:5: 4294967295 entities do not"),
            (Format::Gmsh, gmsh("2.2", &format!("$PhysicalNames\n{many}\n")), "a:5: 4294967295 physical names do not"),
            (
                Format::Gmsh,
                gmsh("2.2", &nodes.replace("$Elements\n0", &format!("$Elements\n{many}"))),
                "a:9: 4294967295 elements do not fit",
            ),
            (
                Format::Gmsh,
                gmsh("2.2", &format!("{nodes}$NodeData\n0\n0\n3\n0\n1\n{many}\n")),
                "a:17: 4294967295 values do not fit",
            ),
            (Format::TetGen, format!("{many} 3\n"), "a:1: 4294967295 points do not fit"),
            (Format::TetGen, format!("0 3 {many}\n"), "a:1: 4294967295 attributes and markers do not fit"),
            (Format::Vtk, vtk(&format!("POINTS {many} float\n")), "a:5: 12884901885 numbers do not fit"),
            (
                Format::Vtk,
                vtk_binary(&format!("POINTS {many} bit\n")),
                "a: byte 75: an array should take 1610612736 bytes, but the file ends after 0",
            ),
            (
                Format::Vtk,
                vtk(&format!("POLYGONS {most} 0\nOFFSETS long\n")),
                "a:6: 9223372036854775807 numbers do not",
            ),
            (Format::Vtk, vtk(&format!("LOOKUP_TABLE t {many}\n")), "a:5: 17179869180 numbers do not fit"),
            (Format::Vtk, vtk(&format!("FIELD f 1\ns {many} 1 string\n")), "a:6: 4294967295 strings do not fit"),
            (
                Format::Vtu,
                piece(many, 0, &format!("<Points>{}</Points>", array("Float32", "p", 3))),
                "a:1: array \"p\": 12884901885 numbers are more than a file of this size",
            ),
            (
                Format::Vtu,
                piece(0, many, &format!("<Cells>{}</Cells>", array("UInt8", "offsets", 1))),
                "a:1: array \"offsets\": 4294967295 numbers are more than a file of this size",
            ),
            (
                Format::Vtu,
                piece(0, 0, "").replace("\"0\"", &format!("\"{many}\"")),
                "a:1: the piece lacks the array of its 4294967295 points",
            ),
            (
                Format::VtkGrid,
                grid("ImageData", "0 1023 0 1023 0 1023", ""),
                "a:1: 1073741824 points of a grid are more than a file of this size can plausibly hold, at most 1051",
            ),
            (Format::VtkGrid, grid("ImageData", &format!("0 {most} 0 0 0 0"), ""), "a:1: the piece lacks its Extent"),
            (
                Format::VtkGrid,
                grid("RectilinearGrid", &format!("0 {many} 0 0 0 0"), &{
                    let axes = array("Int8", "x", 1).repeat(3).replace("\"appended\" offset=\"0\"", "\"ascii\"");
                    format!("<Coordinates>{axes}</Coordinates>")
                }),
                "a:1: array \"x\" has 0 numbers and not 4294967296",
            ),
            (
                Format::VtkGrid,
                grid("StructuredGrid", &format!("0 {many} 0 0 0 0"), ""),
                "a:1: the piece lacks the array of its 4294967296 points",
            ),
            (
                Format::MatrixMarket,
                market(&format!("{many} {many} 0")),
                "a:2: 4294967295 vertices are more than a file of this size can plausibly hold, at most 1048",
            ),
            (Format::MatrixMarket, market(&format!("3 3 {many}")), "a:2: 4294967295 entries do not fit"),
            (Format::Metis, format!("{many} 0\n"), "a:1: 4294967295 vertices do not fit in the 1 bytes left"),
            (Format::Metis, format!("1 {most}\n\n"), "a:1: 18446744073709551614 ends of edges do not fit"),
        ]
        .map(|(format, text, start)| (format, text.into_bytes(), start))
        .into_iter()
        .chain([
            (Format::Stl, stl, "a: byte 84: 4294967295 facets do not fit in the 0 bytes left"),
            (Format::Ply, list, "a: byte 170: 4294967295 numbers of a list do not fit in the 0 bytes left"),
        ])
        .collect();
        for (format, bytes, start) in &cases {
            fails(*format, bytes, start);
        }
        // Lists of edges have no counts, and an id however large is one vertex.
        let edge_lists =
            [(Format::EdgeList, "0 9007199254740992\n"), (Format::WeightedEdgeList, "9007199254740992 0 1\n")];
        for (format, text) in edge_lists {
            assert_eq!(parsed(format, text).points().len(), 2);
        }
        let known: Vec<Format> = cases.iter().map(|case| case.0).chain(edge_lists.map(|(format, _)| format)).collect();
        assert!(Format::ALL.iter().all(|format| known.contains(format)), "a reader has no case");
    }
}
