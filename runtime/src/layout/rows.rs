//! The neighbors of a vertex that is updated by itself.

use super::ell::OpenEll;
use super::shared_stride;
use crate::number::{Number, array};
use crate::program::{Kernels, Neighbors, Record, SharedOf, Star, check_shape};

/// The neighbors of one vertex of a tile of rows; `leaf(i)` reads real `i` of the shared state.
pub(crate) struct Row<'a, T, F> {
    /// Which vertex of the tile.
    pub(crate) row: usize,
    pub(crate) stars: &'a [OpenEll<'a, u32, T>],
    /// Stars that change; empty if none has elements here.
    pub(crate) changing: &'a [OpenEll<'a, u32, T>],
    pub(crate) leaf: F,
}

impl<T: Number, F: Fn(usize) -> T> Row<'_, T, F> {
    /// Elements of a star, whose elements have so many other vertices.
    pub(crate) fn len(&self, star: usize, others: usize) -> usize {
        let star = &self.stars[star];
        assert_eq!(star.shape.0, others, "a star was added with other elements");
        (star.columns[self.row + 1] - star.columns[self.row]) as usize
    }

    /// Real `k` of other vertex `i` of element `j`; reals lie `stride` a vertex.
    pub(crate) fn other(&self, star: usize, (j, i): (usize, usize), stride: usize, k: usize) -> T {
        let star = &self.stars[star];
        assert!(k < stride, "a record has its own reals only");
        let at = (star.columns[self.row] as usize + j) * star.shape.0 + i;
        (self.leaf)(star.others[at] as usize * stride + k)
    }

    /// Real `k` of the data of element `j`.
    pub(crate) fn data(&self, star: usize, j: usize, k: usize) -> T {
        let star = &self.stars[star];
        star.data[(star.columns[self.row] as usize + j) * star.shape.1 + k]
    }
}

impl<P: Kernels, T: Number, F: Fn(usize) -> T> Neighbors<P, T> for Row<'_, T, F> {
    #[inline(always)]
    fn fold<const N: usize, E: Star<N>, A: Record<T>>(
        &self,
        _star: E,
        init: A,
        f: impl Fn(A, [SharedOf<P, T>; N], E::Data<T>) -> A,
    ) -> A {
        let star = if E::CHANGES {
            match self.changing.get(E::INDEX).filter(|star| !star.columns.is_empty()) {
                Some(star) => star,
                None => return init,
            }
        } else {
            &self.stars[E::INDEX]
        };
        let len = <E::Data<T> as Record<T>>::LEN;
        check_shape::<T, N, E>(star.shape);
        let (start, end) = (star.columns[self.row] as usize, star.columns[self.row + 1] as usize);
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
