//! Stars of vertices that are updated one by one.

use super::shared_stride;
use super::tiles::{Form, Source, Tile};
use crate::number::Number;
use crate::program::{Kernels, Kind, Neighbors, Record, SharedOf, Star, StarPlan, check_shape};
use rayon::prelude::*;

/// One star in rows: the things around the vertex of row `r` are `offsets[r]..offsets[r + 1]`.
pub(crate) struct Rows<T> {
    /// Other vertices and reals of data of each thing.
    shape: (usize, usize),
    pub(crate) offsets: Vec<u32>,
    /// Slots of the other vertices.
    pub(crate) others: Vec<u32>,
    pub(crate) data: Vec<T>,
}

impl<T: Number> Rows<T> {
    /// The rows of all tiles of rows, in their order.
    pub(super) fn new(source: &Source, tiles: &[Tile], place_of: &[u32], width: usize) -> Rows<T> {
        let mut places = Vec::new();
        for tile in tiles {
            if let Form::Rows { vertices, .. } = tile.form {
                let start = tile.groups.start as usize * width;
                places.extend(&place_of[start..start + vertices as usize]);
            }
        }
        let StarPlan { corners, data_len, .. } = *source.plan;
        let mut offsets = vec![0u32];
        offsets.extend(places.iter().scan(0, |end, &place| {
            *end += source.incidences.degree(place) as u32;
            Some(*end)
        }));
        let others = places
            .par_chunks(1024)
            .flat_map_iter(|places| {
                let mut others = Vec::new();
                places.iter().for_each(|&place| source.others(place, |slot| others.push(slot)));
                others
            })
            .collect();
        let data = places
            .par_chunks(1024)
            .flat_map_iter(|places| {
                let mut reals = Vec::new();
                places.iter().for_each(|&place| source.data(place, &mut reals));
                reals.into_iter().zip(source.plan.kinds.iter().cycle()).map(|(x, kind)| kind.encode(x))
            })
            .collect();
        Rows { shape: (corners - 1, data_len), offsets, others, data }
    }

    /// Whether all data are finite.
    pub(super) fn is_finite(&self, plan: &StarPlan) -> bool {
        let kinds = plan.kinds.iter().cycle();
        self.data.iter().zip(kinds).all(|(x, &kind)| kind == Kind::Integer || x.finite())
    }

    pub(super) fn bytes(&self) -> usize {
        (self.offsets.len() + self.others.len()) * 4 + self.data.len() * T::BYTES
    }
}

/// The neighbors of the vertex of one row; `leaf(i)` reads real `i` of the shared state.
pub(crate) struct Row<'a, T, F> {
    pub(crate) row: usize,
    pub(crate) stars: &'a [Rows<T>],
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
            let shared: [SharedOf<P, T>; N] = std::array::from_fn(|i| {
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
