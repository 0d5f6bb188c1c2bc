//! What the tags of a file say: where its points, cells and arrays are, and how they are stored.

use std::ops::Range;

use super::super::binary::{Order, Scalar};

/// What the tags say, before any array is decoded.
pub(super) struct Outline {
    pub(super) dataset: Dataset,
    pub(super) storage: Storage,
    pub(super) pieces: Vec<Piece>,
    /// Arrays over points or cells that are of no numbers: where, and their names.
    pub(super) skipped: Vec<(usize, String)>,
}

/// How points and cells are given.
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

/// How the arrays of a file are stored.
#[derive(Clone, Copy)]
pub(super) struct Storage {
    pub(super) order: Order,
    /// The type of the numbers in front of each array.
    pub(super) header: Scalar,
    pub(super) compressor: Option<Compressor>,
    /// Encoding and start of the appended data.
    pub(super) appended: Option<(Encoding, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Raw,
    Base64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compressor {
    Zlib,
    Lz4,
}

pub(super) struct Piece {
    pub(super) points: u64,
    pub(super) cells: u64,
    /// First point of a grid along each axis.
    pub(super) first: [i64; 3],
    /// Points of a grid along each axis.
    pub(super) size: [u64; 3],
    /// Where its tag starts in the file.
    pub(super) at: usize,
    pub(super) arrays: Vec<Array>,
}

/// One `DataArray`.
pub(super) struct Array {
    pub(super) section: Section,
    pub(super) name: String,
    pub(super) scalar: Scalar,
    pub(super) components: usize,
    /// Where its tag starts in the file.
    pub(super) at: usize,
    pub(super) data: Data,
}

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

/// Where the numbers of an array are.
pub(super) enum Data {
    Ascii(Range<usize>),
    Inline(Range<usize>),
    /// Offset into the appended data.
    Appended(u64),
}

impl Piece {
    /// The piece of a grid from the first to the last point along each axis.
    pub(super) fn of_grid(extent: [i64; 6], at: usize) -> Option<Piece> {
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

impl Section {
    /// The section that an element of this name holds.
    pub(super) fn named(name: &str) -> Option<Section> {
        match name {
            "Points" => Some(Section::Points),
            "Cells" => Some(Section::Cells),
            "PointData" => Some(Section::PointData),
            "CellData" => Some(Section::CellData),
            "Coordinates" => Some(Section::Coordinates),
            _ => None,
        }
    }
}
