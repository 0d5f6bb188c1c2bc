//! The tags of VTK's XML file, read before any array is decoded.

use std::ops::Range;
use std::path::Path;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::super::binary::{Order, Scalar};
use super::super::text::{line_of, shown};
use super::data::{Compressor, Encoding};
use crate::error::{Error, Result};

/// What an array is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Section {
    Points,
    Cells,
    PointData,
    CellData,
    /// Places along the axes of a rectilinear grid.
    Coordinates,
}

/// How points and cells are told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Dataset {
    Unstructured,
    Image(Lattice),
    Rectilinear,
    Structured,
}

/// The places of an image: point i, j, k lies at `origin` + `axes` · (i, j, k).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lattice {
    pub(super) origin: [f64; 3],
    /// Rows of the matrix: the directions, times the spacing along each.
    pub(super) axes: [[f64; 3]; 3],
}

/// One `DataArray`.
pub(super) struct Array {
    pub(super) section: Section,
    pub(super) name: String,
    pub(super) scalar: Scalar,
    pub(super) components: usize,
    /// Where its tag ends in the file.
    pub(super) at: usize,
    pub(super) data: Data,
}

pub(super) enum Data {
    Ascii(Range<usize>),
    Inline(Range<usize>),
    /// Offset into the appended data.
    Appended(u64),
}

pub(super) struct Piece {
    pub(super) points: u64,
    pub(super) cells: u64,
    /// First point of a grid along each axis.
    pub(super) first: [i64; 3],
    /// Points of a grid along each axis.
    pub(super) size: [u64; 3],
    pub(super) at: usize,
    pub(super) arrays: Vec<Array>,
}

/// What the tags say, before any array is decoded.
pub(super) struct Outline {
    pub(super) dataset: Dataset,
    pub(super) order: Order,
    pub(super) header: Scalar,
    pub(super) compressor: Option<Compressor>,
    pub(super) pieces: Vec<Piece>,
    /// Arrays over points or cells that are of no numbers: where, and their names.
    pub(super) skipped: Vec<(usize, String)>,
    /// Encoding and start of the appended data.
    pub(super) appended: Option<(Encoding, usize)>,
}

/// Reads the tags up to the appended data, which need not be valid XML.
pub(super) fn outline(name: &Path, bytes: &[u8]) -> Result<Outline> {
    let mut reader = Reader::from_reader(bytes);
    let error = |at: usize, message: String| Error::file(name, line_of(bytes, at), message);
    let mut outline = Outline {
        dataset: Dataset::Unstructured,
        order: Order::Little,
        header: Scalar::U32,
        compressor: None,
        pieces: Vec::new(),
        skipped: Vec::new(),
        appended: None,
    };
    let mut is_vtk = false;
    let mut section = None;
    loop {
        let before = bytes.len() - reader.get_ref().len();
        let event =
            reader.read_event().map_err(|e| error(before, format!("broken XML: {}", one_line(&e.to_string()))))?;
        let at = bytes.len() - reader.get_ref().len();
        let (tag, is_empty) = match &event {
            Event::Start(tag) => (tag, false),
            Event::Empty(tag) => (tag, true),
            Event::End(tag) => {
                if matches!(tag.name().as_ref(), "PointData" | "CellData" | "Points" | "Cells" | "Coordinates") {
                    section = None;
                }
                if tag.name().as_ref() == "VTKFile" {
                    break;
                }
                continue;
            }
            Event::DocType(_) => {
                return Err(error(before, "document types are not accepted: remove <!DOCTYPE>".into()));
            }
            Event::Eof => return Err(error(before, "the file ends within its tags: it was cut short".into())),
            _ => continue,
        };
        let attribute = |key: &str| -> Result<Option<String>> {
            let found = tag.try_get_attribute(key).map_err(quick_xml::Error::from);
            let value = found.and_then(|a| a.map(|a| a.normalized_value(XmlVersion::Implicit1_0)).transpose());
            let value = value.map_err(|e| error(before, format!("broken XML: {}", one_line(&e.to_string()))))?;
            Ok(value.map(|value| value.into_owned()))
        };
        let whole = |key: &str| -> Result<Option<u64>> {
            let value = attribute(key)?;
            let parsed = value.as_ref().map(|value| value.trim().parse::<u64>());
            parsed.transpose().map_err(|_| {
                let value = value.unwrap_or_default();
                error(before, format!("{} is no value of {key}: it must be a count", shown(value.as_bytes())))
            })
        };
        let unknown =
            |key: &str, value: &str| error(before, format!("{key} {} is not supported", shown(value.as_bytes())));
        let wrong = |key: &str, value: &str, count: usize| {
            error(before, format!("{} is no value of {key}: it must be {count} numbers", shown(value.as_bytes())))
        };
        match tag.name().as_ref() {
            "VTKFile" => {
                is_vtk = true;
                outline.dataset = match attribute("type")?.as_deref() {
                    Some("UnstructuredGrid") => Dataset::Unstructured,
                    Some("ImageData") => Dataset::Image(Lattice { origin: [0.0; 3], axes: [[0.0; 3]; 3] }),
                    Some("RectilinearGrid") => Dataset::Rectilinear,
                    Some("StructuredGrid") => Dataset::Structured,
                    other => {
                        let other = shown(other.unwrap_or("").as_bytes());
                        let message = format!("type {other} is not supported: convert it to an unstructured grid");
                        return Err(error(before, message));
                    }
                };
                outline.order = match attribute("byte_order")?.as_deref() {
                    None | Some("LittleEndian") => Order::Little,
                    Some("BigEndian") => Order::Big,
                    Some(other) => return Err(unknown("byte_order", other)),
                };
                outline.header = match attribute("header_type")?.as_deref() {
                    None | Some("UInt32") => Scalar::U32,
                    Some("UInt64") => Scalar::U64,
                    Some(other) => return Err(unknown("header_type", other)),
                };
                outline.compressor = match attribute("compressor")?.as_deref() {
                    None | Some("") => None,
                    Some("vtkZLibDataCompressor") => Some(Compressor::Zlib),
                    Some("vtkLZ4DataCompressor") => Some(Compressor::Lz4),
                    Some(other) => {
                        let other = shown(other.as_bytes());
                        let message = format!("compressor {other} is not supported: save with zlib, lz4 or none");
                        return Err(error(before, message));
                    }
                };
            }
            _ if !is_vtk => return Err(error(before, "VTK's XML starts with the tag <VTKFile>".into())),
            "ImageData" if matches!(outline.dataset, Dataset::Image(_)) => {
                let origin = list(&attribute, "Origin", &wrong)?.unwrap_or([0.0; 3]);
                let spacing = list(&attribute, "Spacing", &wrong)?.unwrap_or([1.0; 3]);
                let turned =
                    list(&attribute, "Direction", &wrong)?.unwrap_or([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
                let axes = [0, 1, 2].map(|row| [0, 1, 2].map(|k| turned[3 * row + k] * spacing[k]));
                outline.dataset = Dataset::Image(Lattice { origin, axes });
            }
            "Piece" if outline.dataset == Dataset::Unstructured => {
                let (points, cells) = (whole("NumberOfPoints")?, whole("NumberOfCells")?);
                let (Some(points), Some(cells)) = (points, cells) else {
                    return Err(error(before, "the piece lacks NumberOfPoints or NumberOfCells".into()));
                };
                let (first, size) = ([0; 3], [0; 3]);
                outline.pieces.push(Piece { points, cells, first, size, at: before, arrays: Vec::new() });
            }
            "Piece" => {
                let extent = list::<i64, 6>(&attribute, "Extent", &wrong)?;
                let piece = extent.and_then(|extent| Piece::of_grid(extent, before));
                let piece = piece.ok_or_else(|| {
                    error(before, "the piece lacks its Extent: first and last point along each of three axes".into())
                })?;
                outline.pieces.push(piece);
            }
            "Points" if !is_empty => section = Some(Section::Points),
            "Cells" if !is_empty => section = Some(Section::Cells),
            "PointData" if !is_empty => section = Some(Section::PointData),
            "CellData" if !is_empty => section = Some(Section::CellData),
            "Coordinates" if !is_empty => section = Some(Section::Coordinates),
            "DataArray" | "Array" => {
                let (Some(piece), Some(section)) = (outline.pieces.last_mut(), section) else { continue };
                let name = attribute("Name")?.unwrap_or_default();
                let Some(scalar) = scalar_of(&attribute("type")?.unwrap_or_default()) else {
                    outline.skipped.push((before, name));
                    continue;
                };
                let components = whole("NumberOfComponents")?.unwrap_or(1).max(1);
                let components = usize::try_from(components).unwrap_or(usize::MAX);
                let format = attribute("format")?;
                let offset = whole("offset")?;
                let data =
                    match (format.as_deref(), is_empty) {
                        (Some("appended"), _) => Data::Appended(offset.ok_or_else(|| {
                            error(before, format!("array {} lacks its offset", shown(name.as_bytes())))
                        })?),
                        (None | Some("ascii"), false) => Data::Ascii(content(&mut reader, bytes, at, tag, &error)?),
                        (Some("binary"), false) => Data::Inline(content(&mut reader, bytes, at, tag, &error)?),
                        (None | Some("ascii" | "binary"), true) => Data::Ascii(at..at),
                        (Some(other), _) => return Err(unknown("format", other)),
                    };
                piece.arrays.push(Array { section, name, scalar, components, at: before, data });
            }
            "AppendedData" => {
                let encoding = match attribute("encoding")?.as_deref() {
                    Some("raw") => Encoding::Raw,
                    None | Some("base64") => Encoding::Base64,
                    Some(other) => return Err(unknown("encoding", other)),
                };
                let blanks = bytes[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
                if bytes.get(at + blanks) != Some(&b'_') {
                    return Err(error(at, "appended data start with an underscore".into()));
                }
                outline.appended = Some((encoding, at + blanks + 1));
                break; // nothing behind the data matters
            }
            _ => {}
        }
    }
    match outline.pieces.is_empty() {
        true => Err(error(bytes.len(), "the file has no <Piece>".into())),
        false => Ok(outline),
    }
}

impl Piece {
    /// The piece of a grid from the first to the last point along each axis.
    fn of_grid(extent: [i64; 6], at: usize) -> Option<Piece> {
        let mut size = [0; 3];
        for (size, ends) in size.iter_mut().zip(extent.as_chunks::<2>().0) {
            *size = u64::try_from(ends[1].checked_sub(ends[0])?.checked_add(1)?).ok()?;
        }
        let product = |sizes: [u64; 3]| sizes[0].checked_mul(sizes[1])?.checked_mul(sizes[2]);
        let (points, cells) = match size.contains(&0) {
            true => (0, 0),
            // An axis of one point has no length: the cells have a dimension less.
            false => (product(size)?, product(size.map(|n| (n - 1).max(1)))?),
        };
        let first = [extent[0], extent[2], extent[4]];
        Some(Piece { points, cells, first, size, at, arrays: Vec::new() })
    }
}

/// Where the text of the element `tag` lies in the file; elements within it, such as statistics, are skipped.
fn content(
    reader: &mut Reader<&[u8]>,
    bytes: &[u8],
    start: usize,
    tag: &BytesStart,
    error: &impl Fn(usize, String) -> Error,
) -> Result<Range<usize>> {
    let mut text = start..start;
    let mut depth = 1u64;
    while depth > 0 {
        let before = bytes.len() - reader.get_ref().len();
        let event =
            reader.read_event().map_err(|e| error(before, format!("broken XML: {}", one_line(&e.to_string()))))?;
        let after = bytes.len() - reader.get_ref().len();
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) if depth > 1 => {}
            Event::Text(_) if bytes[before..after].trim_ascii().is_empty() => {}
            Event::Text(_) if text.is_empty() => text = before..after,
            Event::Empty(_) | Event::Comment(_) | Event::PI(_) => {}
            Event::Eof => {
                let tag = shown(tag.name().as_ref().as_bytes());
                return Err(error(start, format!("element {tag} has no end: the file was cut short")));
            }
            _ => return Err(error(before, "the numbers of an array must be one plain text".into())),
        }
    }
    Ok(text)
}

/// The numbers of an attribute that has `N` of them.
fn list<T: std::str::FromStr, const N: usize>(
    attribute: &impl Fn(&str) -> Result<Option<String>>,
    key: &str,
    wrong: &impl Fn(&str, &str, usize) -> Error,
) -> Result<Option<[T; N]>> {
    let Some(value) = attribute(key)? else { return Ok(None) };
    let numbers: Option<Vec<T>> = value.split_ascii_whitespace().take(N + 1).map(|word| word.parse().ok()).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    numbers.map(Some).ok_or_else(|| wrong(key, &value, N))
}

fn scalar_of(name: &str) -> Option<Scalar> {
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

/// A message of the XML reader, which may quote the file.
fn one_line(message: &str) -> String {
    const LONGEST: usize = 200;
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}
