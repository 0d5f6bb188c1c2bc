//! One star of the vertices of a tile.

use super::data::Data;
use super::incidences::Source;
use super::opened::Opened;
use super::packed::Packed;
use crate::number::lanes::prefetch;
use crate::number::{Number, Precision};
use crate::program::StarPlan;
use bytemuck::Pod;
use bytes::Bytes;
use std::ops::Range;

/// One star of the vertices of a tile, as sliced ELL: element `j` of all vertices of a group lies side by side. Groups of one vertex
/// are rows, one after the other (CSR). Other vertices are named by `N`: places in a table, or slots.
#[derive(Clone)]
pub(crate) struct Ell<N> {
    /// Other vertices and reals of data of each element.
    pub(crate) shape: (usize, usize),
    /// Columns of group `g` of the tile: `columns[g]..columns[g + 1]`, as many as its vertex with the most elements has.
    pub(crate) columns: Packed<u32>,
    /// Columns in which every vertex of the group has an element; empty where groups are single vertices, which have one in each.
    pub(super) full: Packed<u16>,
    /// Elements of each slot; as above.
    pub(crate) degrees: Packed<u16>,
    /// Shape [columns × others × width].
    pub(crate) others: Packed<N>,
    /// Shape [columns × reals × width].
    pub(crate) data: Data,
}

impl<N: Pod + Default + Send> Ell<N> {
    /// The star of the slots whose vertices are at `places`, in groups of `width`. `name`: the name of a slot.
    pub(super) fn new(
        source: &Source,
        places: &[u32],
        (width, precision): (usize, Precision),
        name: impl Fn(u32) -> N,
    ) -> Ell<N> {
        let StarPlan { corners, data_len, .. } = *source.plan;
        let degree = |&place: &u32| source.incidences.degree(place);
        let groups = || places.chunks_exact(width).map(|places| places.iter().map(degree));
        let mut columns = vec![0u32];
        columns.extend(groups().scan(0, |end, degrees| {
            *end += degrees.max().unwrap_or(0) as u32;
            Some(*end)
        }));
        let (mut full, mut degrees) = (Vec::new(), Vec::new());
        if width > 1 {
            // More elements stand alone.
            full.extend(groups().map(|degrees| degrees.min().unwrap_or(0) as u16));
            degrees.extend(places.iter().map(|place| degree(place) as u16));
        }
        let total = columns[columns.len() - 1] as usize * width;
        let mut others = vec![N::default(); total * (corners - 1)];
        let mut data = vec![0.0; total * data_len];
        let mut reals = Vec::new();
        for (slot, &place) in places.iter().enumerate() {
            let (start, lane) = (columns[slot / width] as usize, slot % width);
            let mut at = start * (corners - 1) * width + lane;
            source.others(place, |u| {
                others[at] = name(u);
                at += width;
            });
            reals.clear();
            source.data(place, &mut reals);
            for (k, &x) in reals.iter().enumerate() {
                data[(start * data_len + k) * width + lane] = x;
            }
        }
        // A lane that has no more elements reads what another of its group does: it may be read now, as any other slot may not.
        for (group, degrees) in degrees.chunks_exact(width).enumerate() {
            let longest = (0..width).max_by_key(|&lane| degrees[lane]).unwrap_or(0);
            let first = columns[group] as usize;
            for (lane, &degree) in degrees.iter().enumerate().filter(|&(lane, _)| lane != longest) {
                for row in (first + degree as usize) * (corners - 1)..columns[group + 1] as usize * (corners - 1) {
                    others[row * width + lane] = others[row * width + longest];
                }
            }
        }
        let data = Data::new(precision, &source.plan.kinds, width, data);
        Ell::of((corners - 1, data_len), columns, [full, degrees], others, data)
    }

    /// One of these lists. `counts`: see [`Ell::full`] and [`Ell::degrees`].
    pub(super) fn of(
        shape: (usize, usize),
        columns: Vec<u32>,
        counts: [Vec<u16>; 2],
        others: Vec<N>,
        data: Data,
    ) -> Ell<N> {
        let [full, degrees] = counts.map(Packed::from);
        Ell { shape, columns: columns.into(), full, degrees, others: others.into(), data }
    }

    /// Its lists, to be packed.
    pub(super) fn lists(&mut self) -> impl Iterator<Item = &mut Bytes> {
        let Ell { columns, full, degrees, others, data, .. } = self;
        [columns.bytes(), full.bytes(), degrees.bytes(), others.bytes(), data.bytes()].into_iter()
    }

    pub(super) fn bytes(&self) -> usize {
        let lengths = (self.full.len() + self.degrees.len()) * 2 + self.columns.len() * 4;
        lengths + self.others.len() * size_of::<N>() + self.data.size()
    }
}

impl Ell<u32> {
    /// No elements, and no vertices.
    pub(super) fn nothing(precision: Precision) -> Ell<u32> {
        Ell::rows((0, 0), Vec::new(), Vec::new(), Data::gather(precision, std::iter::empty()))
    }

    /// Visits the other vertices around those of a group of `width`, with the lane of the own one.
    pub(super) fn each_other(&self, group: usize, width: usize, mut visit: impl FnMut(usize, u32)) {
        for lane in 0..width {
            let columns = self.columns_of(group * width + lane, width);
            for row in columns.start * self.shape.0..columns.end * self.shape.0 {
                visit(lane, self.others[row * width + lane]);
            }
        }
    }

    /// The columns of the elements around one vertex of a tile.
    pub(crate) fn columns_of(&self, slot: usize, width: usize) -> Range<usize> {
        let (start, end) = (self.columns[slot / width] as usize, self.columns[slot / width + 1] as usize);
        start..if width > 1 { start + self.degrees[slot] as usize } else { end }
    }

    /// Rows, which say themselves where each starts, and the end.
    pub(crate) fn rows(shape: (usize, usize), starts: Vec<u32>, others: Vec<u32>, data: Data) -> Ell<u32> {
        Ell::of(shape, starts, Default::default(), others, data)
    }
}

impl<N: Pod> Ell<N> {
    /// Elements of vertex `i` of a tile, of which each is a group.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> Range<usize> {
        self.columns[i] as usize..self.columns[i + 1] as usize
    }

    /// The lists of some stars, of numbers `T`.
    #[inline(always)]
    pub(crate) fn open<T: Number>(stars: &[Ell<N>]) -> Opened<OpenEll<'_, N, T>> {
        let nothing = OpenEll { shape: (0, 0), columns: &[], full: &[], degrees: &[], others: &[], data: &[] };
        Opened::new(stars, nothing, |i| {
            let Ell { shape, columns, full, degrees, others, data } = &stars[i];
            OpenEll { shape: *shape, columns, full, degrees, others, data: data.numbers() }
        })
    }
}

/// The lists of an [`Ell`].
#[derive(Clone, Copy)]
pub(crate) struct OpenEll<'a, N, T> {
    pub(crate) shape: (usize, usize),
    pub(crate) columns: &'a [u32],
    pub(crate) full: &'a [u16],
    pub(crate) degrees: &'a [u16],
    pub(crate) others: &'a [N],
    pub(crate) data: &'a [T],
}

impl<N, T> OpenEll<'_, N, T> {
    /// The columns of a group, whose elements have so many other vertices, and in how many of them every vertex has an element.
    pub(crate) fn columns(&self, group: usize, others: usize) -> (Range<usize>, usize) {
        assert_eq!(self.shape.0, others, "a star was added with other elements");
        (self.columns[group] as usize..self.columns[group + 1] as usize, self.full[group] as usize)
    }

    /// How many elements each vertex of a group has.
    pub(crate) fn degrees(&self, group: usize, width: usize) -> &[u16] {
        &self.degrees[group * width..][..width]
    }

    /// The names of other vertex `i` of the elements in a column.
    #[inline(always)]
    pub(crate) fn others(&self, column: usize, i: usize, width: usize) -> &[N] {
        &self.others[(column * self.shape.0 + i) * width..][..width]
    }

    /// Real `k` of their data.
    #[inline(always)]
    pub(crate) fn data(&self, column: usize, k: usize, width: usize) -> &[T] {
        &self.data[(column * self.shape.1 + k) * width..][..width]
    }

    /// Asks for the lines of a group ahead of its turn.
    #[inline(always)]
    pub(crate) fn prefetch(&self, group: usize, width: usize) {
        let Some(&end) = self.columns.get(group + 1) else { return };
        let columns = self.columns[group] as usize..end as usize;
        let (others, reals) = self.shape;
        lines(self.others, columns.start * others * width..columns.end * others * width);
        lines(self.data, columns.start * reals * width..columns.end * reals * width);
    }
}

/// Asks for the lines of a range.
#[inline(always)]
fn lines<A>(slice: &[A], range: Range<usize>) {
    let mut i = range.start;
    while i < range.end {
        prefetch(slice, i);
        i += 64 / size_of::<A>();
    }
}
