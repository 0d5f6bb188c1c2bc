//! Where vertices find what they read.

use super::machine::Site;
use crate::layout::{Lookup, Row, WideRows};
use crate::number::{Lanes, Number, array};

/// One vertex.
pub(crate) struct Single<'a, T, F, Q> {
    pub(crate) row: Row<'a, T, F>,
    /// Its own reals, shared ones first.
    pub(crate) own: Q,
    /// Shared reals of a vertex, and from one to the next.
    pub(crate) shared: (usize, usize),
    pub(crate) vertex: T,
}

impl<T: Number, F: Fn(usize) -> T, Q: Fn(usize) -> T> Site<T, 1> for Single<'_, T, F, Q> {
    fn shared(&self, k: usize) -> [T; 1] {
        [(self.own)(k)]
    }

    fn private(&self, k: usize) -> [T; 1] {
        [(self.own)(self.shared.0 + k)]
    }

    fn vertex(&self) -> [T; 1] {
        [self.vertex]
    }

    fn columns(&self, star: usize, others: usize) -> (usize, usize) {
        let len = self.row.len(star, others);
        (len, len)
    }

    fn other(&self, star: usize, j: usize, other: usize, k: usize) -> [T; 1] {
        [self.row.other(star, (j, other), self.shared.1, k)]
    }

    fn data(&self, star: usize, j: usize, k: usize) -> [T; 1] {
        [self.row.data(star, j, k)]
    }
}

/// Groups of vertices side by side, of which none reads another.
pub(crate) struct Groups<'a, L: Lanes, U: Lookup<L>, Q, const B: usize> {
    pub(crate) rows: [WideRows<'a, L, U>; B],
    /// Own reals of a group, shared ones first.
    pub(crate) own: Q,
    /// Shared reals of a vertex, and from one to the next.
    pub(crate) shared: (usize, usize),
    pub(crate) vertex: [L; B],
}

impl<L: Lanes, U: Lookup<L>, Q: Fn(usize, usize) -> L, const B: usize> Site<L, B> for Groups<'_, L, U, Q, B> {
    fn shared(&self, k: usize) -> [L; B] {
        array(L::lit(0.0), |i| (self.own)(i, k))
    }

    fn private(&self, k: usize) -> [L; B] {
        array(L::lit(0.0), |i| (self.own)(i, self.shared.0 + k))
    }

    fn vertex(&self) -> [L; B] {
        self.vertex
    }

    fn columns(&self, star: usize, others: usize) -> (usize, usize) {
        let each = |i: usize| self.rows[i].columns(star, others);
        (1..B).map(each).fold(each(0), |(most, full), (columns, own)| (most.max(columns), full.min(own)))
    }

    fn has(&self, star: usize, j: usize) -> [L::Mask; B] {
        array(self.rows[0].has(star, j), |i| self.rows[i].has(star, j))
    }

    #[inline(always)]
    fn other(&self, star: usize, j: usize, other: usize, k: usize) -> [L; B] {
        array(L::lit(0.0), |i| self.rows[i].other(star, (j, other), self.shared.1, k))
    }

    #[inline(always)]
    fn data(&self, star: usize, j: usize, k: usize) -> [L; B] {
        array(L::lit(0.0), |i| self.rows[i].data(star, j, k))
    }
}
