//! The tags of VTK's XML file, read before any array is decoded.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::super::binary::{Order, Scalar};
use super::super::text::{line_of, shown};
use super::outline::{Array, Compressor, Data, Dataset, Encoding, Lattice, Outline, Piece, Section, Storage};
use crate::error::{Error, Result};

/// Reads the tags up to the appended data, which need not be valid XML.
pub(super) fn outline(name: &Path, bytes: &[u8]) -> Result<Outline> {
    let mut tags = Tags { name, bytes, reader: Reader::from_reader(bytes), section: None };
    let (dataset, storage) = match tags.next()? {
        Some(tag) if tag.kind() == "VTKFile" => root(&tag)?,
        other => {
            let at = other.map_or(0, |tag| tag.start);
            return Err(tags.error(at, "VTK's XML starts with the tag <VTKFile>"));
        }
    };
    let mut outline = Outline { dataset, storage, pieces: Vec::new(), skipped: Vec::new() };
    while let Some(tag) = tags.next()? {
        match (tag.kind(), outline.dataset) {
            ("VTKFile", _) => return Err(tag.error("the tag <VTKFile> comes twice: keep one")),
            ("ImageData", Dataset::Image(_)) => outline.dataset = Dataset::Image(lattice(&tag)?),
            ("Piece", dataset) => outline.pieces.push(piece(&tag, dataset)?),
            ("DataArray" | "Array", _) => {
                let (Some(piece), Some(section)) = (outline.pieces.last_mut(), tags.section) else { continue };
                let name = tag.attribute("Name")?.unwrap_or_default();
                match scalar(&tag.attribute("type")?.unwrap_or_default()) {
                    Some(scalar) => piece.arrays.push(array(&mut tags, &tag, section, name, scalar)?),
                    None => outline.skipped.push((tag.start, name)),
                }
            }
            ("AppendedData", _) => {
                outline.storage.appended = Some(appended(&tag)?);
                break; // nothing behind the data matters
            }
            _ => {}
        }
    }
    match outline.pieces.is_empty() {
        true => Err(tags.error(bytes.len(), "the file has no <Piece>")),
        false => Ok(outline),
    }
}

/// The kind of mesh and how its arrays are stored, of the tag around everything.
fn root(tag: &Tag) -> Result<(Dataset, Storage)> {
    let datasets = [
        ("UnstructuredGrid", Dataset::Unstructured),
        ("ImageData", Dataset::Image(Lattice { origin: [0.0; 3], axes: [[0.0; 3]; 3] })),
        ("RectilinearGrid", Dataset::Rectilinear),
        ("StructuredGrid", Dataset::Structured),
    ];
    let dataset = tag.choice("type", "", datasets, "convert it to an unstructured grid")?;
    let orders = [("LittleEndian", Order::Little), ("BigEndian", Order::Big)];
    let order = tag.choice("byte_order", "LittleEndian", orders, "it is LittleEndian or BigEndian")?;
    let headers = [("UInt32", Scalar::U32), ("UInt64", Scalar::U64)];
    let header = tag.choice("header_type", "UInt32", headers, "it is UInt32 or UInt64")?;
    let compressors = [
        ("", None),
        ("vtkZLibDataCompressor", Some(Compressor::Zlib)),
        ("vtkLZ4DataCompressor", Some(Compressor::Lz4)),
    ];
    let compressor = tag.choice("compressor", "", compressors, "save with zlib, lz4 or none")?;
    Ok((dataset, Storage { order, header, compressor, appended: None }))
}

fn lattice(tag: &Tag) -> Result<Lattice> {
    let origin = tag.list("Origin")?.unwrap_or([0.0; 3]);
    let spacing = tag.list("Spacing")?.unwrap_or([1.0; 3]);
    let turned = tag.list("Direction")?.unwrap_or([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    Ok(Lattice { origin, axes: [0, 1, 2].map(|row| [0, 1, 2].map(|k| turned[3 * row + k] * spacing[k])) })
}

fn piece(tag: &Tag, dataset: Dataset) -> Result<Piece> {
    if dataset != Dataset::Unstructured {
        let piece = tag.list("Extent")?.and_then(|extent| Piece::of_grid(extent, tag.start));
        return piece
            .ok_or_else(|| tag.error("the piece lacks its Extent: first and last point along each of three axes"));
    }
    let (Some(points), Some(cells)) = (tag.count("NumberOfPoints")?, tag.count("NumberOfCells")?) else {
        return Err(tag.error("the piece lacks NumberOfPoints or NumberOfCells"));
    };
    Ok(Piece { points, cells, first: [0; 3], size: [0; 3], at: tag.start, arrays: Vec::new() })
}

fn array(tags: &mut Tags, tag: &Tag, section: Section, name: String, scalar: Scalar) -> Result<Array> {
    let components = tag.count("NumberOfComponents")?.unwrap_or(1).max(1);
    let components = usize::try_from(components).unwrap_or(usize::MAX);
    let (format, offset) = (tag.attribute("format")?, tag.count("offset")?);
    let data = match (format.as_deref(), tag.is_empty) {
        (Some("appended"), _) => Data::Appended(
            offset.ok_or_else(|| tag.error(format!("array {} lacks its offset", shown(name.as_bytes()))))?,
        ),
        (None | Some("ascii"), false) => Data::Ascii(tags.text(tag)?),
        (Some("binary"), false) => Data::Inline(tags.text(tag)?),
        (None | Some("ascii" | "binary"), true) => Data::Ascii(tag.end..tag.end),
        (Some(other), _) => return Err(tag.unknown("format", other, "it is ascii, binary or appended")),
    };
    Ok(Array { section, name, scalar, components, at: tag.start, data })
}

/// Encoding and start of the appended data.
fn appended(tag: &Tag) -> Result<(Encoding, usize)> {
    let encodings = [("raw", Encoding::Raw), ("base64", Encoding::Base64)];
    let encoding = tag.choice("encoding", "base64", encodings, "it is raw or base64")?;
    let blanks = tag.bytes[tag.end..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    match tag.bytes.get(tag.end + blanks) {
        Some(b'_') => Ok((encoding, tag.end + blanks + 1)),
        _ => Err(tag.error("appended data start with an underscore")),
    }
}

/// The tags of a file, one after the other.
struct Tags<'a> {
    name: &'a Path,
    bytes: &'a [u8],
    reader: Reader<&'a [u8]>,
    /// The section that the last tag opened or lies in.
    section: Option<Section>,
}

impl<'a> Tags<'a> {
    /// Offset of the next byte to read.
    fn at(&self) -> usize {
        self.bytes.len() - self.reader.get_ref().len()
    }

    /// An error at the line that holds the byte at `at`.
    fn error(&self, at: usize, message: impl Into<String>) -> Error {
        Error::file(self.name, line_of(self.bytes, at), message)
    }

    /// The next event, and where it starts.
    fn event(&mut self) -> Result<(usize, Event<'a>)> {
        let start = self.at();
        match self.reader.read_event() {
            Ok(event) => Ok((start, event)),
            Err(e) => Err(self.error(start, broken(&e.to_string()))),
        }
    }

    /// The next tag that opens an element; none where the file's own ends.
    fn next(&mut self) -> Result<Option<Tag<'a>>> {
        loop {
            let (start, event) = self.event()?;
            let (xml, is_empty) = match event {
                Event::Start(xml) => (xml, false),
                Event::Empty(xml) => (xml, true),
                Event::End(xml) => match xml.name().as_ref() {
                    "VTKFile" => return Ok(None),
                    other => {
                        self.section = self.section.filter(|_| Section::named(other).is_none());
                        continue;
                    }
                },
                Event::DocType(_) => {
                    return Err(self.error(start, "document types are not accepted: remove <!DOCTYPE>"));
                }
                Event::Eof => return Err(self.error(start, "the file ends within its tags: it was cut short")),
                _ => continue,
            };
            let tag = Tag { name: self.name, bytes: self.bytes, xml, is_empty, start, end: self.at() };
            if !is_empty {
                self.section = Section::named(tag.kind()).or(self.section);
            }
            return Ok(Some(tag));
        }
    }

    /// Where the text of the element that `tag` has just opened lies in the file; elements within it, such as statistics,
    /// are skipped.
    fn text(&mut self, tag: &Tag) -> Result<Range<usize>> {
        let mut text = tag.end..tag.end;
        let mut depth = 1u64;
        while depth > 0 {
            let (before, event) = self.event()?;
            let after = self.at();
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth -= 1,
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) if depth > 1 => {}
                Event::Text(_) if self.bytes[before..after].trim_ascii().is_empty() => {}
                Event::Text(_) if text.is_empty() => text = before..after,
                Event::Empty(_) | Event::Comment(_) | Event::PI(_) => {}
                Event::Eof => {
                    let kind = shown(tag.kind().as_bytes());
                    return Err(self.error(tag.end, format!("element {kind} has no end: the file was cut short")));
                }
                _ => return Err(self.error(before, "the numbers of an array must be one plain text")),
            }
        }
        Ok(text)
    }
}

/// A tag that opens an element.
struct Tag<'a> {
    name: &'a Path,
    bytes: &'a [u8],
    xml: BytesStart<'a>,
    /// Whether the element ends with it.
    is_empty: bool,
    /// Where it lies in the file.
    start: usize,
    end: usize,
}

impl Tag<'_> {
    /// The name of the element.
    fn kind(&self) -> &str {
        self.xml.name().into_inner()
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::file(self.name, line_of(self.bytes, self.start), message)
    }

    fn unknown(&self, key: &str, value: &str, way_out: &str) -> Error {
        self.error(format!("{key} {} is not supported: {way_out}", shown(value.as_bytes())))
    }

    fn wrong(&self, key: &str, value: &str, wanted: &str) -> Error {
        self.error(format!("{} is no value of {key}: it must be {wanted}", shown(value.as_bytes())))
    }

    fn attribute(&self, key: &str) -> Result<Option<String>> {
        let found = self.xml.try_get_attribute(key).map_err(quick_xml::Error::from);
        let value = found.and_then(|a| a.map(|a| a.normalized_value(XmlVersion::Implicit1_0)).transpose());
        let value = value.map_err(|e| self.error(broken(&e.to_string())))?;
        Ok(value.map(|value| value.into_owned()))
    }

    /// What the word of an attribute stands for, or the word `default` without it.
    fn choice<T, const N: usize>(&self, key: &str, default: &str, known: [(&str, T); N], way_out: &str) -> Result<T> {
        let value = self.attribute(key)?;
        let value = value.as_deref().unwrap_or(default);
        let found = known.into_iter().find(|(word, _)| *word == value);
        found.map(|(_, meaning)| meaning).ok_or_else(|| self.unknown(key, value, way_out))
    }

    fn count(&self, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.attribute(key)? else { return Ok(None) };
        value.trim().parse().map(Some).map_err(|_| self.wrong(key, &value, "a count"))
    }

    /// The numbers of an attribute that has `N` of them.
    fn list<T: FromStr, const N: usize>(&self, key: &str) -> Result<Option<[T; N]>> {
        let Some(value) = self.attribute(key)? else { return Ok(None) };
        let words = value.split_ascii_whitespace().take(N + 1);
        let numbers: Option<Vec<T>> = words.map(|word| word.parse().ok()).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        numbers.map(Some).ok_or_else(|| self.wrong(key, &value, &format!("{N} numbers")))
    }
}

/// What the XML reader says, which may quote the file.
fn broken(message: &str) -> String {
    const LONGEST: usize = 200;
    let message: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect();
    format!("broken XML: {message}")
}

fn scalar(name: &str) -> Option<Scalar> {
    Some(match name {
        "Int8" => Scalar::I8,
        "UInt8" => Scalar::U8,
        "Int16" => Scalar::I16,
        "UInt16" => Scalar::U16,
        "Int32" => Scalar::I32,
        "UInt32" => Scalar::U32,
        "Int64" => Scalar::I64,
        "UInt64" => Scalar::U64,
        "Float32" => Scalar::F32,
        "Float64" => Scalar::F64,
        _ => return None,
    })
}
