//! VTK's legacy file, ASCII and binary, read only.
//!
//! Read: versions up to 5.1 with `UNSTRUCTURED_GRID` or `POLYDATA`; SCALARS, COLOR_SCALARS, VECTORS, NORMALS, TENSORS,
//! TENSORS6, TEXTURE_COORDINATES, ids and FIELD arrays become fields. Lookup tables, metadata and field data of the
//! whole file are skipped, arrays of strings left out with a note. Structured and rectilinear grids are refused. A note
//! says that a file ends between two sections, where it may have been cut. Cell types: see `vtk_cells`.
//!
//! Source: VTK user's guide, "VTK file formats"; for versions 5.x, `vtkDataReader` of VTK 9.

use std::path::Path;

use super::binary::{Binary, Order, Scalar};
use super::draft::Draft;
use super::text::{Text, number, shown};
use super::vtk_cells;
use crate::error::{Error, Result, shown_name};

/// The type of an array.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    Number(Scalar),
    /// Packed into bytes in binary files.
    Bit,
    String,
}

/// Whose data follow.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    File,
    Points,
    Cells,
}

/// Cells as offsets into corners; the types follow from the section or from CELL_TYPES.
struct List {
    offsets: Vec<i64>,
    connectivity: Vec<i64>,
}

struct Reader<'a> {
    text: Text<'a>,
    is_binary: bool,
    /// Cells in the new form: `OFFSETS` and `CONNECTIVITY`.
    has_offsets: bool,
    owner: Owner,
    /// Number of points or cells of the owner.
    count: usize,
    /// Whether data of the owner have been found.
    has_data: bool,
    draft: Draft,
    fields: Vec<(Owner, String, usize, Vec<f64>)>,
}

pub(super) fn parse(name: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut reader = Reader::start(name, bytes)?;
    if !reader.keyword(b"DATASET") {
        return Err(reader.text.error("`DATASET` should follow the first lines"));
    }
    let kind = reader.text.word_in_line().unwrap_or(b"").to_ascii_uppercase();
    match &kind[..] {
        b"UNSTRUCTURED_GRID" | b"POLYDATA" => {}
        other => {
            return Err(reader.text.error(format!(
                "dataset {} is not supported: convert it to an unstructured grid and save as .vtu",
                shown(other)
            )));
        }
    }
    let mut lists: [Option<List>; 4] = [None, None, None, None]; // in the order in which cell data count them
    let mut types: Option<Vec<i64>> = None;
    let mut has_points = false;
    while let Some(word) = reader.text.word() {
        let word = word.to_ascii_uppercase();
        let list = match &word[..] {
            b"POINTS" if !has_points => {
                has_points = true;
                reader.points()?;
                continue;
            }
            b"CELL_TYPES" if types.is_none() => {
                let count = reader.text.number_in_line("the number of cell types")?;
                types = Some(reader.integers(Type::Number(Scalar::I32), count)?);
                continue;
            }
            b"CELLS" | b"VERTICES" => 0,
            b"LINES" => 1,
            b"POLYGONS" => 2,
            b"TRIANGLE_STRIPS" => 3,
            _ => {
                reader.attribute(&word)?;
                continue;
            }
        };
        if lists[list].is_some() || (word == b"CELLS") != (kind == b"UNSTRUCTURED_GRID") {
            return Err(reader.text.error(format!("{} does not belong here", shown(&word))));
        }
        lists[list] = Some(reader.list()?);
    }
    reader.note_empty();
    if !has_points {
        return Err(reader.text.error("the file ends without POINTS: it was cut short"));
    }
    reader.finish(&kind, lists, types)
}

impl<'a> Reader<'a> {
    /// Reads the first three lines.
    fn start(name: &'a Path, bytes: &'a [u8]) -> Result<Reader<'a>> {
        let mut text = Text::new(name, bytes);
        let first = text.rest_of_line();
        let version = first
            .strip_prefix(b"# vtk DataFile Version ")
            .ok_or_else(|| text.error("a VTK file starts with `# vtk DataFile Version`; rename XML files to .vtu"))?;
        let version: f64 = number(version)
            .filter(|v| (1.0..=5.1).contains(v))
            .ok_or_else(|| text.error(format!("version {} is not supported, only up to 5.1", shown(version))))?;
        text.next_line();
        text.next_line(); // a title
        let is_binary = match text.word_in_line() {
            Some(b"ASCII") => false,
            Some(b"BINARY") => true,
            other => return Err(text.error(format!("{} is neither ASCII nor BINARY", shown(other.unwrap_or(b""))))),
        };
        if is_binary {
            text.count_bytes();
        }
        let (draft, fields, owner) = (Draft::new(bytes.len()), Vec::new(), Owner::File);
        let has_offsets = version >= 5.0;
        Ok(Reader { text, is_binary, has_offsets, owner, count: 0, has_data: false, draft, fields })
    }

    /// Moves behind the next word if it is `word`.
    fn keyword(&mut self, word: &[u8]) -> bool {
        let before = self.text.at();
        let found = self.text.word().is_some_and(|w| w.eq_ignore_ascii_case(word));
        if !found {
            self.text.seek(before);
        }
        found
    }

    fn points(&mut self) -> Result<()> {
        let count: usize = self.text.number_in_line("the number of points")?;
        let kind = self.scalar_type()?;
        let values = self.floats(kind, count, 3)?;
        self.draft.points = values.as_chunks::<3>().0.to_vec();
        match self.draft.points.iter().position(|p| p.iter().any(|x| !x.is_finite())) {
            Some(v) => {
                let point = self.draft.points[v];
                Err(self.text.error(format!("point {v} has a coordinate that is not finite: {point:?}")))
            }
            None => Ok(()),
        }
    }

    fn list(&mut self) -> Result<List> {
        let first: usize = self.text.number_in_line("a number of cells or offsets")?;
        let size: usize = self.text.number_in_line("a number of corners")?;
        if self.has_offsets {
            if first == 0 {
                return Ok(List { offsets: Vec::new(), connectivity: Vec::new() });
            }
            let mut array = |word: &str, count: usize| {
                if !self.keyword(word.as_bytes()) {
                    return Err(self.text.error(format!("`{word}` should follow the number of cells")));
                }
                let kind = self.scalar_type()?;
                self.integers(kind, count)
            };
            return Ok(List { offsets: array("OFFSETS", first)?, connectivity: array("CONNECTIVITY", size)? });
        }
        let mut connectivity = self.integers(Type::Number(Scalar::I32), size)?;
        let mut offsets = vec![0];
        // Each cell is its number of corners and then the corners, which move to the front here.
        let (mut from, mut to) = (0, 0);
        for c in 0..first {
            let n = connectivity.get(from).and_then(|&n| usize::try_from(n).ok());
            let n = n.filter(|&n| n < connectivity.len() - from).ok_or_else(|| {
                self.text.error(format!("cell {c} of {first} does not fit in the {size} numbers of the section"))
            })?;
            connectivity.copy_within(from + 1..from + 1 + n, to);
            (from, to) = (from + 1 + n, to + n);
            offsets.push(to as i64);
        }
        if from != size {
            return Err(self.text.error(format!("{first} cells take {from} numbers, but the section says {size}")));
        }
        connectivity.truncate(to);
        Ok(List { offsets, connectivity })
    }

    /// One section of data, of which `word` is the keyword.
    fn attribute(&mut self, word: &[u8]) -> Result<()> {
        self.has_data |= !matches!(word, b"POINT_DATA" | b"CELL_DATA" | b"METADATA" | b"LOOKUP_TABLE");
        match word {
            b"POINT_DATA" | b"CELL_DATA" => {
                self.note_empty();
                self.has_data = false;
                self.owner = if word == b"POINT_DATA" { Owner::Points } else { Owner::Cells };
                self.count = self.text.number_in_line("the number of points or cells with data")?;
                if self.owner == Owner::Points && self.count != self.draft.points.len() {
                    let (count, points) = (self.count, self.draft.points.len());
                    return Err(self.text.error(format!("data for {count} points, but there are {points}")));
                }
                Ok(())
            }
            b"METADATA" => {
                self.skip_metadata();
                Ok(())
            }
            b"FIELD" => self.field_arrays(),
            b"LOOKUP_TABLE" => {
                self.name()?;
                let count = self.text.number_in_line("the number of colors")?;
                self.floats(Type::Number(Scalar::U8), count, 4).map(drop)
            }
            b"SCALARS" => {
                let (name, kind) = (self.name()?, self.scalar_type()?);
                let components = match self.text.word_in_line() {
                    None => 1,
                    Some(word) => number(word)
                        .ok_or_else(|| self.text.error(format!("{} is not a number of components", shown(word))))?,
                };
                if self.keyword(b"LOOKUP_TABLE") {
                    self.name()?;
                }
                self.field(name, kind, components)
            }
            b"COLOR_SCALARS" => {
                let name = self.name()?;
                let components = self.text.number_in_line("the number of colors")?;
                let scalar = if self.is_binary { Scalar::U8 } else { Scalar::F32 };
                self.field(name, Type::Number(scalar), components)
            }
            b"TEXTURE_COORDINATES" => {
                let name = self.name()?;
                let components = self.text.number_in_line("the dimension of the texture")?;
                let kind = self.scalar_type()?;
                self.field(name, kind, components)
            }
            _ => {
                let components = match word {
                    b"VECTORS" | b"NORMALS" => 3,
                    b"TENSORS" => 9,
                    b"TENSORS6" => 6,
                    b"GLOBAL_IDS" | b"PEDIGREE_IDS" | b"EDGE_FLAGS" => 1,
                    _ => return Err(self.text.error(format!("{} starts no section of a VTK file", shown(word)))),
                };
                let (name, kind) = (self.name()?, self.scalar_type()?);
                self.field(name, kind, components)
            }
        }
    }

    fn field_arrays(&mut self) -> Result<()> {
        self.name()?;
        let mut left: usize = self.text.number_in_line("the number of arrays")?;
        while left > 0 {
            let name = self.text.need("the name of an array")?;
            if name == b"METADATA" {
                self.skip_metadata();
                continue;
            }
            left -= 1;
            let name = unescaped(name);
            let components: usize = self.text.number_in_line("the number of components")?;
            let tuples: usize = self.text.number_in_line("the number of tuples")?;
            let kind = self.scalar_type()?;
            if kind == Type::String {
                if self.owner != Owner::File {
                    let note = format!("array {} holds strings and is left out", shown_name(&name));
                    self.draft.note(self.text.error(note));
                }
                let count = components.saturating_mul(tuples);
                self.skip_strings(count)?;
                continue;
            }
            if self.owner != Owner::File && tuples != self.count {
                let count = self.count;
                let name = shown_name(&name);
                return Err(self.text.error(format!("array {name} has {tuples} tuples for {count} points or cells")));
            }
            let values = self.floats(kind, tuples, components)?;
            if self.owner != Owner::File {
                self.fields.push((self.owner, name, components, values));
            }
        }
        Ok(())
    }

    fn field(&mut self, name: String, kind: Type, components: usize) -> Result<()> {
        if self.owner == Owner::File {
            return Err(self.text.error("data before POINT_DATA or CELL_DATA"));
        }
        let values = self.floats(kind, self.count, components)?;
        self.fields.push((self.owner, name, components, values));
        Ok(())
    }

    fn name(&mut self) -> Result<String> {
        let word = self.text.word_in_line();
        word.map(unescaped).ok_or_else(|| self.text.error("a name is missing"))
    }

    fn scalar_type(&mut self) -> Result<Type> {
        let word = self.text.word_in_line().unwrap_or(b"");
        Ok(Type::Number(match &word.to_ascii_lowercase()[..] {
            b"char" | b"signed_char" => Scalar::I8,
            b"unsigned_char" => Scalar::U8,
            b"short" => Scalar::I16,
            b"unsigned_short" => Scalar::U16,
            b"int" | b"vtkidtype" => Scalar::I32, // ids are stored in 32 bits whatever they are in memory
            b"unsigned_int" => Scalar::U32,
            b"long" | b"vtktypeint64" => Scalar::I64,
            b"unsigned_long" | b"vtktypeuint64" => Scalar::U64,
            b"float" => Scalar::F32,
            b"double" => Scalar::F64,
            b"bit" => return Ok(Type::Bit),
            b"string" | b"utf8_string" => return Ok(Type::String),
            _ => return Err(self.text.error(format!("{} is no type of VTK", shown(word)))),
        }))
    }

    /// The next `tuples * components` numbers.
    fn floats(&mut self, kind: Type, tuples: usize, components: usize) -> Result<Vec<f64>> {
        let count = self.product(tuples, components)?;
        match (kind, self.is_binary) {
            (Type::String, _) => Err(self.text.error("strings found where numbers should be")),
            (_, false) => self.words(count),
            (Type::Number(scalar), true) => Ok(scalar.floats(Order::Big, self.take(count, scalar.size())?)),
            (Type::Bit, true) => {
                let bytes = self.take(count.div_ceil(8), 1)?;
                Ok((0..count).map(|i| f64::from(bytes[i / 8] >> (7 - i % 8) & 1)).collect())
            }
        }
    }

    /// The next `count` numbers, which must be integers.
    fn integers(&mut self, kind: Type, count: usize) -> Result<Vec<i64>> {
        match kind {
            Type::Number(scalar) if scalar.is_integer() => match self.is_binary {
                true => Ok(scalar.integers(Order::Big, self.take(count, scalar.size())?)),
                false => self.words(count),
            },
            _ => Err(self.text.error("cells need integers")),
        }
    }

    fn words<T: std::str::FromStr>(&mut self, count: usize) -> Result<Vec<T>> {
        let count = self.text.check_count(count as u64, "numbers", 2)?;
        (0..count).map(|_| self.text.number("a number")).collect()
    }

    /// The bytes of `count` numbers, which start on the next line.
    fn take(&mut self, count: usize, size: usize) -> Result<&'a [u8]> {
        self.text.next_line();
        let mut file = Binary::new(self.text.name(), self.text.bytes(), self.text.at(), Order::Big);
        let bytes = file.take(self.product(count, size)?, "an array")?;
        self.text.seek(file.at());
        Ok(bytes)
    }

    fn product(&self, a: usize, b: usize) -> Result<usize> {
        a.checked_mul(b).ok_or_else(|| self.text.error(format!("{a} times {b} numbers do not fit in any file")))
    }

    /// Strings are lines in ASCII files, and in binary ones have a length in front, whose two highest bits are its size.
    fn skip_strings(&mut self, count: usize) -> Result<()> {
        let count = self.text.check_count(count as u64, "strings", 1)?;
        self.text.next_line();
        if !self.is_binary {
            let all = (0..count).all(|_| self.text.next_line());
            return if all { Ok(()) } else { Err(self.text.error("the file ends within strings")) };
        }
        let mut file = Binary::new(self.text.name(), self.text.bytes(), self.text.at(), Order::Big);
        for _ in 0..count {
            let first = file.clone().take(1, "a string")?[0];
            let size = [8, 4, 2, 1][usize::from(first >> 6)];
            let length = file.take(size, "the length of a string")?.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
            let length = length & !(0b11 << (8 * size - 2));
            let length = file.check_count(length, "bytes of a string", 1)?;
            file.take(length, "a string")?;
        }
        self.text.seek(file.at());
        Ok(())
    }

    /// Metadata end at an empty line.
    fn skip_metadata(&mut self) {
        while self.text.next_line() && !self.text.rest_of_line().is_empty() {}
    }

    /// Notes that POINT_DATA or CELL_DATA is followed by none.
    fn note_empty(&mut self) {
        let section = match self.owner {
            Owner::Points => "POINT_DATA",
            Owner::Cells => "CELL_DATA",
            Owner::File => return,
        };
        if !self.has_data {
            self.draft.note(self.text.error(format!("no data follow {section}: was the file cut short?")));
        }
    }

    fn finish(mut self, kind: &[u8], lists: [Option<List>; 4], types: Option<Vec<i64>>) -> Result<Draft> {
        let error = |message: String| -> Error { self.text.error(message) };
        if lists.iter().all(Option::is_none) && types.is_none() && !self.draft.points.is_empty() {
            self.draft.note(error("no cells follow the points: was the file cut short?".into()));
        }
        if kind == b"UNSTRUCTURED_GRID" {
            match (lists.into_iter().next().flatten(), types) {
                (Some(list), Some(types)) => {
                    vtk_cells::add(&mut self.draft, 0, &types, &list.offsets, &list.connectivity).map_err(error)?;
                }
                (None, None) => {}
                _ => return Err(error("CELLS and CELL_TYPES go together, but one is missing".into())),
            }
        } else {
            for (list, number) in lists.into_iter().zip([2, 4, 7, 6]) {
                if let Some(List { offsets, connectivity }) = list {
                    let types = vec![number; offsets.len().saturating_sub(1)];
                    vtk_cells::add(&mut self.draft, 0, &types, &offsets, &connectivity).map_err(error)?;
                }
            }
        }
        for (owner, name, components, values) in self.fields {
            match owner {
                Owner::Points => self.draft.point_field(&name, components, values),
                _ => self.draft.cell_field(&name, components, values),
            }
            .map_err(error)?;
        }
        Ok(self.draft)
    }
}

/// A name without the `%20` that stands for a blank, and its like.
fn unescaped(word: &[u8]) -> String {
    let mut name = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, others)) = rest.split_first() {
        let code = others.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match code {
            Some(code) if first == b'%' => {
                name.push(code);
                rest = &others[2..];
            }
            _ => {
                name.push(first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::testing::{fails, fuzz, noted, parsed};
    use crate::cell::CellKind;

    const OLD: &str = "# vtk DataFile Version 2.0\na title\nASCII\nDATASET UNSTRUCTURED_GRID\nFIELD FieldData 2\n\
        TIME 1 1 double\n0.5\ns 1 1 string\nhi%20there\nPOINTS 4 float\n0 0 0 1 0 0\n0 1 0 0 0 1\n\
        CELLS 2 9\n4 0 1 2 3\n3 0 1 2\nCELL_TYPES 2\n10 5\nCELL_DATA 2\nSCALARS id int\nLOOKUP_TABLE default\n4 5\n\
        POINT_DATA 4\nSCALARS my%20heat double 1\nLOOKUP_TABLE default\n0 1 2 nan\n\
        VECTORS wind float\n1 2 3 4 5 6 7 8 9 10 11 12\nMETADATA\nINFORMATION 0\n\n\
        FIELD more 2\na 2 4 int\n1 2 3 4 5 6 7 8\nMETADATA\nCOMPONENT_NAMES\nx\n\nb 1 4 bit\n0 1 0 1\n";

    fn poly() -> String {
        "# vtk DataFile Version 5.1\nt\nASCII\nDATASET POLYDATA\nPOINTS 6 float\n0 0 0 1 0 0 2 1 0 1 2 0 0 1 0 3 3 3\n\
         POLYGONS 3 8\nOFFSETS vtktypeint64\n0 5 8\nCONNECTIVITY vtktypeint64\n0 1 2 3 4 0 1 2\n\
         LINES 2 3\nOFFSETS vtktypeint64\n0 3\nCONNECTIVITY vtktypeint64\n0 1 2\n\
         VERTICES 2 1\nOFFSETS vtktypeint64\n0 1\nCONNECTIVITY vtktypeint64\n5\n\
         TRIANGLE_STRIPS 2 4\nOFFSETS vtktypeint64\n0 4\nCONNECTIVITY vtktypeint64\n0 1 4 3\n\
         CELL_DATA 5\nSCALARS c float\nLOOKUP_TABLE default\n1 2 3 4 5\n"
            .into()
    }

    /// A tet with a scalar, a string and bits.
    fn binary() -> Vec<u8> {
        let mut bytes = b"# vtk DataFile Version 5.1\nt\nBINARY\nDATASET UNSTRUCTURED_GRID\nFIELD f 1\n".to_vec();
        bytes.extend(b"s 1 1 string\n\xc8hi there\nPOINTS 4 double\n");
        let points = [0.0f64, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        bytes.extend(points.iter().flat_map(|x| x.to_be_bytes()));
        bytes.extend(b"\nCELLS 2 4\nOFFSETS vtktypeint64\n");
        bytes.extend([0i64, 4].iter().flat_map(|x| x.to_be_bytes()));
        bytes.extend(b"\nCONNECTIVITY vtktypeint64\n");
        bytes.extend([0i64, 1, 2, 3].iter().flat_map(|x| x.to_be_bytes()));
        bytes.extend(b"\nCELL_TYPES 1\n\x00\x00\x00\x0a\nPOINT_DATA 4\nSCALARS heat short \nLOOKUP_TABLE default\n");
        bytes.extend([1i16, -2, 3, 4].iter().flat_map(|x| x.to_be_bytes()));
        bytes.extend(b"\nFIELD FieldData 1\nbits 1 4 bit\nP\n");
        bytes
    }

    #[test]
    fn reads_cells_and_fields() {
        let mesh = parsed(Format::Vtk, OLD);
        assert_eq!(mesh.cells().counts(), [(CellKind::Triangle, 1), (CellKind::Tet, 1)]);
        assert_eq!(mesh.cell_fields()[0].values, [4.0, 5.0]);
        assert_eq!(mesh.point_field("my heat").unwrap().values[..3], [0.0, 1.0, 2.0]);
        assert_eq!(mesh.point_field("wind").unwrap().components, 3);
        assert_eq!(mesh.point_field("a").unwrap().components, 2);
        assert_eq!(mesh.point_field("b").unwrap().values, [0.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn reads_polydata_in_the_order_of_its_cell_data() {
        let mesh = parsed(Format::Vtk, poly());
        let cells: Vec<_> = mesh.cells().iter().map(|(_, c)| c.to_vec()).collect();
        let expected: [&[u32]; 9] =
            [&[5], &[0, 1], &[1, 2], &[0, 1, 2], &[0, 2, 3], &[0, 3, 4], &[0, 1, 2], &[0, 1, 4], &[4, 1, 3]];
        assert_eq!(cells, expected);
        assert_eq!(mesh.cell_fields()[0].values, [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 5.0, 5.0]);
    }

    #[test]
    fn a_file_that_ends_between_sections_is_noted() {
        let ends = |before: &str| noted(Format::Vtk, &OLD[..OLD.find(before).unwrap()]).1;
        assert_eq!(ends("CELLS"), ["a:13: no cells follow the points: was the file cut short?"]);
        assert_eq!(ends("SCALARS id"), ["a:19: no data follow CELL_DATA: was the file cut short?"]);
        assert_eq!(ends("SCALARS my"), ["a:23: no data follow POINT_DATA: was the file cut short?"]);
        assert_eq!((ends("CELL_DATA"), noted(Format::Vtk, OLD).1), (vec![], vec![]));
        let gap = OLD.replace("SCALARS id int\nLOOKUP_TABLE default\n4 5\n", "");
        assert_eq!(noted(Format::Vtk, gap).1, ["a:19: no data follow CELL_DATA: was the file cut short?"]);
    }

    #[test]
    fn strings_are_left_out_with_a_note() {
        let text = format!("{OLD}FIELD more 1\ns 1 4 string\na\nb\nc\nd\n");
        assert_eq!(noted(Format::Vtk, text).1, ["a:41: array \"s\" holds strings and is left out"]);
    }

    #[test]
    fn cells_of_higher_order_lose_the_nodes_between_their_corners() {
        let text = "# vtk DataFile Version 2.0\nt\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 7 float\n\
            9 9 9 0 0 0 5 0 0 1 0 0 5 5 0 0 1 0 0 5 0\nCELLS 2 10\n6 1 3 5 2 4 6\n2 2 1\nCELL_TYPES 2\n22 3\n\
            POINT_DATA 7\nSCALARS a float 1\nLOOKUP_TABLE default\n0 1 2 3 4 5 6\n";
        fuzz(Format::Vtk, text.as_bytes());
        let (mesh, notes) = noted(Format::Vtk, text);
        // The node that another cell has as a corner stays.
        assert_eq!(mesh.point_field("a").unwrap().values, [0.0, 1.0, 2.0, 3.0, 5.0]);
        assert_eq!((mesh.points()[2], mesh.points()[4]), ([5.0, 0.0, 0.0], [0.0, 1.0, 0.0]));
        assert_eq!(mesh.cells().all_corners(), [1, 3, 4, 2, 1]);
        assert_eq!(notes, ["a: cells of higher order (1) are read by their corners; points between (2) are left out"]);
    }

    #[test]
    fn reads_binary() {
        let mesh = parsed(Format::Vtk, binary());
        assert_eq!(mesh.points()[3], [0.0, 0.0, 1.0]);
        assert_eq!(mesh.cells().corners(0), [0, 1, 2, 3]);
        assert_eq!(mesh.point_field("heat").unwrap().values, [1.0, -2.0, 3.0, 4.0]);
        assert_eq!(mesh.point_field("bits").unwrap().values, [0.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn errors_say_where() {
        let with = |from: &str, to: &str| OLD.replace(from, to);
        fails(Format::Vtk, with("Version 2.0", "Version 6.0"), "a:1: version \"6.0\" is not supported");
        fails(Format::Vtk, with("ASCII", "TEXT"), "a:3: \"TEXT\" is neither");
        fails(Format::Vtk, with("UNSTRUCTURED_GRID", "STRUCTURED_GRID"), "a:4: dataset \"STRUCTURED_GRID\" is not");
        fails(Format::Vtk, with("POINTS 4", "POINTS 2147483648"), "a:10: 6442450944 numbers do not fit");
        fails(Format::Vtk, with("POINTS 4", "POINTS 9223372036854775808"), "a:10: 9223372036854775808 times 3 numbers");
        fails(Format::Vtk, with("POINTS 4", "POINTS -1"), "a:10: \"-1\" is not the number of points");
        fails(Format::Vtk, with("1 0 0\n0 1", "1 0 inf\n0 1"), "a:12: point 1 has a coordinate that is not finite");
        fails(Format::Vtk, with("4 0 1 2 3\n", "4 0 1 2 4\n"), "a:40: cell 0: there is no point 4 among 4");
        fails(Format::Vtk, with("4 0 1 2 3\n", "4 0 1 2 -1\n"), "a:40: cell 0: there is no point -1");
        fails(Format::Vtk, with("4 0 1 2 3\n", "9 0 1 2 3\n"), "a:15: cell 0 of 2 does not fit in the 9 numbers");
        fails(Format::Vtk, with("4 0 1 2 3\n", "-4 0 1 2 3\n"), "a:15: cell 0 of 2 does not fit");
        fails(Format::Vtk, with("CELLS 2", "CELLS 1"), "a:15: 1 cells take 5 numbers");
        fails(Format::Vtk, with("\n10 5\n", "\n24 5\n"), "a:40: cell 0: a tet (type 24) has 4 corners");
        fails(Format::Vtk, with("\n10 5\n", "\n72 5\n"), "a:40: cell 0: a hex (type 72) has 4 corners");
        fails(Format::Vtk, with("\n10 5\n", "\n42 5\n"), "a:40: cell 0: cell type 42 is not supported: polyhedra");
        fails(Format::Vtk, with("\n10 5\n", "\n12 5\n"), "a:40: cell 0: a hex (type 12) has 4 corners");
        fails(Format::Vtk, with("POINT_DATA 4", "POINT_DATA 5"), "a:22: data for 5 points, but there are 4");
        fails(
            Format::Vtk,
            with("CELL_DATA 2\nSCALARS id int\nLOOKUP_TABLE default\n4 5", "CELL_DATA 1\nSCALARS id int\n4"),
            "a:39: field \"id\" has 1",
        );
        fails(Format::Vtk, with("a 2 4 int", "a 2 3 int"), "a:32: array \"a\" has 3 tuples for 4");
        fails(Format::Vtk, with("VECTORS wind float", "VECTORS wind quad"), "a:26: \"quad\" is no type");
        fails(Format::Vtk, with("VECTORS", "VECTOR"), "a:26: \"VECTOR\" starts no section");
        fails(Format::Vtk, "<VTKFile", "a:1: a VTK file starts with");
        let bytes = binary();
        fails(Format::Vtk, &bytes[..160], "a: byte 111: an array should take 96 bytes, but the file ends after 49");
        let offset = poly().replace("0 5 8", "0 9 8");
        fails(Format::Vtk, offset, "a:31: cell 0: offsets 0 to 9 do not fit in 8 corners");
    }

    #[test]
    fn values_over_huge_polygons_do_not_multiply() {
        let corners = "0 1 2 ".repeat(7000);
        let values = "1 ".repeat(200);
        let text = format!(
            "# vtk DataFile Version 3.0\nt\nASCII\nDATASET POLYDATA\nPOINTS 3 float\n0 0 0 1 0 0 0 1 0\n\
             POLYGONS 1 21001\n21000 {corners}\nCELL_DATA 1\nFIELD f 1\na 200 1 float\n{values}\n"
        );
        fails(Format::Vtk, text, "a:13: field \"a\" over polygons of too many corners");
    }

    #[test]
    fn survives_mutations() {
        fuzz(Format::Vtk, OLD.as_bytes());
        fuzz(Format::Vtk, poly().as_bytes());
        fuzz(Format::Vtk, &binary());
    }
}
