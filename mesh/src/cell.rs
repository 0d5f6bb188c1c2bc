//! The kinds of cells a mesh is made of, and a flat list of them.

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

    /// The order of the corners of a turned cell that has `corner` first: corner `k` of it is `turn(corner)[k]` here.
    ///
    /// Turning keeps edges, facets and, but for the edge and the apex of a pyramid, the way round. An edge is reversed. Of
    /// a tet these are the three half turns. A hex turns about the axis through its first two facets, and by half turns
    /// that swap these; a wedge likewise. So all turns of a kind make up a group: two in a row are a third. No rotation
    /// takes the apex of a pyramid elsewhere: the apex is only moved to the front, before the base as it was.
    ///
    /// # Panics
    /// If the kind has no such corner.
    ///
    /// ```
    /// use meshweft_mesh::CellKind;
    /// assert_eq!(CellKind::Triangle.turn(1), [1, 2, 0]);
    /// assert_eq!(CellKind::Tet.turn(2), [2, 3, 0, 1]);
    /// assert_eq!(CellKind::Pyramid.turn(4), [4, 0, 1, 2, 3]);
    /// ```
    pub const fn turn(self, corner: usize) -> &'static [usize] {
        match self {
            CellKind::Vertex => [&[0]][corner],
            CellKind::Edge => [&[0, 1], &[1, 0]][corner],
            CellKind::Triangle => [&[0, 1, 2], &[1, 2, 0], &[2, 0, 1]][corner],
            CellKind::Quad => [&[0, 1, 2, 3], &[1, 2, 3, 0], &[2, 3, 0, 1], &[3, 0, 1, 2]][corner],
            CellKind::Tet => [&[0, 1, 2, 3], &[1, 0, 3, 2], &[2, 3, 0, 1], &[3, 2, 1, 0]][corner],
            CellKind::Pyramid => {
                [&[0, 1, 2, 3, 4], &[1, 2, 3, 0, 4], &[2, 3, 0, 1, 4], &[3, 0, 1, 2, 4], &[4, 0, 1, 2, 3]][corner]
            }
            CellKind::Wedge => [
                &[0, 1, 2, 3, 4, 5],
                &[1, 2, 0, 4, 5, 3],
                &[2, 0, 1, 5, 3, 4],
                &[3, 5, 4, 0, 2, 1],
                &[4, 3, 5, 1, 0, 2],
                &[5, 4, 3, 2, 1, 0],
            ][corner],
            CellKind::Hex => [
                &[0, 1, 2, 3, 4, 5, 6, 7],
                &[1, 2, 3, 0, 5, 6, 7, 4],
                &[2, 3, 0, 1, 6, 7, 4, 5],
                &[3, 0, 1, 2, 7, 4, 5, 6],
                &[4, 7, 6, 5, 0, 3, 2, 1],
                &[5, 4, 7, 6, 1, 0, 3, 2],
                &[6, 5, 4, 7, 2, 1, 0, 3],
                &[7, 6, 5, 4, 3, 2, 1, 0],
            ][corner],
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

    /// Gives back what memory has been set aside for more.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.kinds.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.corners.shrink_to_fit();
    }

    /// Cells of one kind; `corners` holds `kind.corners()` vertex ids a cell.
    ///
    /// # Panics
    /// If the number of corners is no multiple of `kind.corners()`.
    pub fn of(kind: CellKind, corners: Vec<u32>) -> Cells {
        let n = kind.corners();
        assert!(corners.len().is_multiple_of(n), "a {} has {n} corners", kind.name());
        let count = corners.len() / n;
        Cells { kinds: vec![kind; count], ends: (1..=count).map(|c| (c * n) as u32).collect(), corners }
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
        self.ends.extend((1..=count).map(|c| (start + c * n) as u32));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of the corners of a regular cell of each kind.
    fn places(kind: CellKind) -> Vec<[i32; 3]> {
        match kind {
            CellKind::Tet => vec![[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
            CellKind::Pyramid => vec![[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [1, 1, 1]],
            CellKind::Wedge => vec![[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1]],
            _ => vec![[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]],
        }
    }

    /// Six volumes of the tet of four corners.
    fn volume([a, b, c, d]: [[i32; 3]; 4]) -> i32 {
        let [[x0, x1, x2], [y0, y1, y2], [z0, z1, z2]] =
            [b, c, d].map(|p: [i32; 3]| -> [i32; 3] { std::array::from_fn(|k| p[k] - a[k]) });
        x0 * (y1 * z2 - y2 * z1) - x1 * (y0 * z2 - y2 * z0) + x2 * (y0 * z1 - y1 * z0)
    }

    /// Facets as corners from the smallest, which keeps their way round.
    fn facets(kind: CellKind, turn: &[usize]) -> Vec<Vec<usize>> {
        let turned = |facet: &&[u8]| {
            let mut facet: Vec<usize> = facet.iter().map(|&k| turn[k as usize]).collect();
            let least = (0..facet.len()).min_by_key(|&k| facet[k]).unwrap();
            facet.rotate_left(least);
            facet
        };
        let mut facets: Vec<_> = kind.facets().iter().map(turned).collect();
        facets.sort();
        facets
    }

    #[test]
    fn turns_put_a_corner_first_and_keep_the_shape() {
        for kind in CellKind::ALL {
            let n = kind.corners();
            for corner in 0..n {
                let turn = kind.turn(corner);
                let mut sorted = turn.to_vec();
                sorted.sort_unstable();
                assert_eq!((turn[0], sorted), (corner, (0..n).collect()), "{kind:?}");
                if (kind, corner) == (CellKind::Pyramid, 4) {
                    continue;
                }
                // Facets become facets, the same way round.
                if kind != CellKind::Edge {
                    assert_eq!(facets(kind, turn), facets(kind, kind.turn(0)), "{kind:?} {corner}");
                }
                if kind.dimension() == 3 {
                    // The corner, its neighbors in the base, and one above: their volume has the sign of the cell.
                    let places = places(kind);
                    let four = if n < 6 { [0, 1, 2, n - 1] } else { [0, 1, 2, n / 2] };
                    let before = volume(four.map(|k| places[k]));
                    assert_eq!(volume(four.map(|k| places[turn[k]])), before, "{kind:?} {corner}");
                }
                // Two turns are a turn.
                for next in (0..n).filter(|&next| (kind, next) != (CellKind::Pyramid, 4)) {
                    let both: Vec<usize> = kind.turn(next).iter().map(|&k| turn[k]).collect();
                    assert_eq!(both, kind.turn(both[0]), "{kind:?} {corner} {next}");
                }
            }
        }
    }
}
