//! Stars of vertices that are updated one by one.

use super::data::Data;
use super::incidences::Source;
use super::opened::Opened;
use super::packed::Packed;
use super::shared_stride;
use crate::number::{Number, Precision, array};
use crate::program::{Kernels, Neighbors, Record, SharedOf, Star, StarPlan, check_shape};
use bytes::Bytes;
use std::ops::Range;

/// One star of the vertices of a tile of rows: the elements of vertex `i` of the tile are `offsets[i]..offsets[i + 1]`.
#[derive(Clone)]
pub(crate) struct Rows {
    /// Other vertices and reals of data of each element.
    pub(super) shape: (usize, usize),
    pub(crate) offsets: Packed<u32>,
    /// Slots of the other vertices.
    pub(crate) others: Packed<u32>,
    pub(crate) data: Data,
}

impl Rows {
    /// The star of the vertices at `places`.
    pub(super) fn new(source: &Source, places: &[u32], precision: Precision) -> Rows {
        let StarPlan { corners, data_len, .. } = *source.plan;
        let mut offsets = vec![0u32];
        offsets.extend(places.iter().scan(0, |end, &place| {
            *end += source.incidences.degree(place) as u32;
            Some(*end)
        }));
        let elements = offsets[places.len()] as usize;
        let mut others = Vec::with_capacity(elements * (corners - 1));
        let mut reals = Vec::with_capacity(elements * data_len);
        for &place in places {
            source.others(place, |slot| others.push(slot));
            source.data(place, &mut reals);
        }
        let data = Data::new(precision, &source.plan.kinds, 1, reals);
        Rows::of((corners - 1, data_len), offsets, others, data)
    }

    pub(crate) fn of(shape: (usize, usize), offsets: Vec<u32>, others: Vec<u32>, data: Data) -> Rows {
        Rows { shape, offsets: offsets.into(), others: others.into(), data }
    }

    /// The lists of some stars, of numbers `T`.
    #[inline(always)]
    pub(crate) fn open<T: Number>(stars: &[Rows]) -> Opened<RowStar<'_, T>> {
        let nothing = RowStar { shape: (0, 0), offsets: &[], others: &[], data: &[] };
        Opened::new(stars, nothing, |i| {
            let Rows { shape, offsets, others, data } = &stars[i];
            RowStar { shape: *shape, offsets, others, data: data.numbers() }
        })
    }

    /// Other vertices and reals of data of each element.
    pub(crate) fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// Elements of vertex `i` of the tile.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }

    /// What [`pack`](super::packed::pack) moves.
    pub(super) fn lists(&mut self) -> [&mut Bytes; 3] {
        [self.offsets.bytes(), self.others.bytes(), self.data.bytes()]
    }

    pub(super) fn bytes(&self) -> usize {
        (self.offsets.len() + self.others.len()) * 4 + self.data.size()
    }
}

/// The lists of a [`Rows`].
#[derive(Clone, Copy)]
pub(crate) struct RowStar<'a, T> {
    shape: (usize, usize),
    offsets: &'a [u32],
    others: &'a [u32],
    data: &'a [T],
}

/// The neighbors of one vertex of a tile of rows; `leaf(i)` reads real `i` of the shared state.
pub(crate) struct Row<'a, T, F> {
    /// Which vertex of the tile.
    pub(crate) row: usize,
    pub(crate) stars: &'a [RowStar<'a, T>],
    pub(crate) leaf: F,
}

impl<P: Kernels, T: Number, F: Fn(usize) -> T> Neighbors<P, T> for Row<'_, T, F> {
    #[inline(always)]
    fn fold<const N: usize, E: Star<N>, A: Record<T>>(
        &self,
        _star: E,
        init: A,
        f: impl Fn(A, [SharedOf<P, T>; N], E::Data<T>) -> A,
    ) -> A {
        let star = &self.stars[E::INDEX];
        let len = <E::Data<T> as Record<T>>::LEN;
        check_shape::<T, N, E>(star.shape);
        let (start, end) = (star.offsets[self.row] as usize, star.offsets[self.row + 1] as usize);
        let others = &star.others[start * N..end * N];
        let data = &star.data[start * len..end * len];
        (0..end - start).fold(init, |gathered, j| {
            let reals = <SharedOf<P, T> as Record<T>>::LEN;
            let nothing = <SharedOf<P, T> as Record<T>>::build(|_| T::lit(0.0));
            let shared = array::<_, N>(nothing, |i| {
                let u = others[j * N + i] as usize * shared_stride(reals);
                Record::build(|k| {
                    assert!(k < reals, "a record asks for its own reals only");
                    (self.leaf)(u + k)
                })
            });
            f(gathered, shared, E::Data::build(|k| data[j * len + k]))
        })
    }
}
