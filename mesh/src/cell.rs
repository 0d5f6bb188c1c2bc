//! The kinds of cells a mesh is made of, and a flat list of them.

use rayon::prelude::*;

/// The shape of one cell. Corners are numbered as in VTK's linear cells, but for the wedge, whose triangles turn the other
/// way: its first three corners are clockwise seen from outside. Readers and writers turn it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CellKind {
    /// One point.
    Vertex,
    /// A line between two points.
    Edge,
    /// Three corners.
    Triangle,
    /// Four corners in cyclic order.
    Quad,
    /// Four corners: a triangle and an apex.
    Tet,
    /// Five corners: a quad and an apex.
    Pyramid,
    /// Six corners: two triangles.
    Wedge,
    /// Eight corners: two quads.
    Hex,
}

impl CellKind {
    /// Every kind, in the order of their declaration.
    pub const ALL: [CellKind; 8] = [
        CellKind::Vertex,
        CellKind::Edge,
        CellKind::Triangle,
        CellKind::Quad,
        CellKind::Tet,
        CellKind::Pyramid,
        CellKind::Wedge,
        CellKind::Hex,
    ];

    /// Number of corners.
    pub const fn corners(self) -> usize {
        match self {
            CellKind::Vertex => 1,
            CellKind::Edge => 2,
            CellKind::Triangle => 3,
            CellKind::Quad | CellKind::Tet => 4,
            CellKind::Pyramid => 5,
            CellKind::Wedge => 6,
            CellKind::Hex => 8,
        }
    }

    /// Topological dimension, 0 to 3.
    pub const fn dimension(self) -> usize {
        match self {
            CellKind::Vertex => 0,
            CellKind::Edge => 1,
            CellKind::Triangle | CellKind::Quad => 2,
            _ => 3,
        }
    }

    /// The word used in messages and tables.
    pub const fn name(self) -> &'static str {
        match self {
            CellKind::Vertex => "vertex",
            CellKind::Edge => "edge",
            CellKind::Triangle => "triangle",
            CellKind::Quad => "quad",
            CellKind::Tet => "tet",
            CellKind::Pyramid => "pyramid",
            CellKind::Wedge => "wedge",
            CellKind::Hex => "hex",
        }
    }

    /// Pairs of corner numbers that are joined by an edge of the cell.
    pub const fn edges(self) -> &'static [[u8; 2]] {
        match self {
            CellKind::Vertex => &[],
            CellKind::Edge => &[[0, 1]],
            CellKind::Triangle => &[[0, 1], [1, 2], [2, 0]],
            CellKind::Quad => &[[0, 1], [1, 2], [2, 3], [3, 0]],
            CellKind::Tet => &[[0, 1], [1, 2], [2, 0], [0, 3], [1, 3], [2, 3]],
            CellKind::Pyramid => &[[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [1, 4], [2, 4], [3, 4]],
            CellKind::Wedge => &[[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [1, 4], [2, 5]],
            CellKind::Hex => {
                &[[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6], [6, 7], [7, 4], [0, 4], [1, 5], [2, 6], [3, 7]]
            }
        }
    }

    /// Corner numbers of the facets: the cells of one dimension less that bound this one, outward by the right-hand rule.
    pub const fn facets(self) -> &'static [&'static [u8]] {
        match self {
            CellKind::Vertex => &[],
            CellKind::Edge => &[&[0], &[1]],
            CellKind::Triangle => &[&[0, 1], &[1, 2], &[2, 0]],
            CellKind::Quad => &[&[0, 1], &[1, 2], &[2, 3], &[3, 0]],
            CellKind::Tet => &[&[0, 2, 1], &[0, 1, 3], &[1, 2, 3], &[0, 3, 2]],
            CellKind::Pyramid => &[&[0, 3, 2, 1], &[0, 1, 4], &[1, 2, 4], &[2, 3, 4], &[3, 0, 4]],
            CellKind::Wedge => &[&[0, 2, 1], &[3, 4, 5], &[0, 1, 4, 3], &[1, 2, 5, 4], &[2, 0, 3, 5]],
            CellKind::Hex => {
                &[&[0, 3, 2, 1], &[4, 5, 6, 7], &[0, 1, 5, 4], &[1, 2, 6, 5], &[2, 3, 7, 6], &[3, 0, 4, 7]]
            }
        }
    }
}

/// A flat list of cells of any kinds: cell `c` has the corners `corners[offsets[c]..offsets[c + 1]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    kinds: Vec<CellKind>,
    ends: Vec<u32>,
    corners: Vec<u32>,
}

impl Cells {
    /// An empty list.
    pub fn new() -> Cells {
        Cells::default()
    }

    /// Cells of one kind; `corners` holds `kind.corners()` vertex ids a cell.
    ///
    /// # Panics
    /// If the number of corners is no multiple of `kind.corners()`.
    pub fn of(kind: CellKind, corners: Vec<u32>) -> Cells {
        let n = kind.corners();
        assert!(corners.len().is_multiple_of(n), "a {} has {n} corners", kind.name());
        let count = corners.len() / n;
        Cells { kinds: vec![kind; count], ends: (1..=count).into_par_iter().map(|c| (c * n) as u32).collect(), corners }
    }

    /// Appends one cell.
    ///
    /// # Panics
    /// If the number of corners is not that of the kind.
    pub fn push(&mut self, kind: CellKind, corners: &[u32]) {
        assert_eq!(corners.len(), kind.corners(), "corners of a {}", kind.name());
        self.kinds.push(kind);
        self.corners.extend_from_slice(corners);
        self.ends.push(u32::try_from(self.corners.len()).expect("fewer than 2^32 corners"));
    }

    /// Appends cells of one kind; `corners` holds `kind.corners()` vertex ids a cell.
    ///
    /// # Panics
    /// If the number of corners is no multiple of `kind.corners()`, or there are 2^32 corners in all.
    pub fn extend(&mut self, kind: CellKind, corners: Vec<u32>) {
        let n = kind.corners();
        assert!(corners.len().is_multiple_of(n), "a {} has {n} corners", kind.name());
        let (start, count) = (self.corners.len(), corners.len() / n);
        assert!(start + corners.len() <= u32::MAX as usize, "fewer than 2^32 corners");
        self.kinds.resize(self.kinds.len() + count, kind);
        self.ends.par_extend((1..=count).into_par_iter().map(|c| (start + c * n) as u32));
        match start {
            0 => self.corners = corners,
            _ => self.corners.extend_from_slice(&corners),
        }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kind of cell `c`.
    pub fn kind(&self, c: usize) -> CellKind {
        self.kinds[c]
    }

    /// The vertex ids of cell `c`, in the order of its corners.
    pub fn corners(&self, c: usize) -> &[u32] {
        let start = if c == 0 { 0 } else { self.ends[c - 1] as usize };
        &self.corners[start..self.ends[c] as usize]
    }

    /// All cells in turn: kind and corners.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (CellKind, &[u32])> + '_ {
        (0..self.len()).map(|c| (self.kind(c), self.corners(c)))
    }

    /// All corners of all cells, cell after cell.
    pub fn all_corners(&self) -> &[u32] {
        &self.corners
    }

    /// Corners of the cells of one kind, cell after cell: shape [cells of the kind × corners].
    pub fn corners_of(&self, kind: CellKind) -> Vec<u32> {
        self.iter().filter(|(k, _)| *k == kind).flat_map(|(_, corners)| corners.iter().copied()).collect()
    }

    /// Number of cells of each kind that occurs, in the order of [`CellKind::ALL`].
    pub fn counts(&self) -> Vec<(CellKind, usize)> {
        let mut counts = [0usize; CellKind::ALL.len()];
        self.kinds.iter().for_each(|&k| counts[k as usize] += 1);
        CellKind::ALL.into_iter().zip(counts).filter(|&(_, n)| n > 0).collect()
    }
}
