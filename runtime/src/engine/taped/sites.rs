//! Where vertices find what they read.

use super::machine::{Cursor, Site};
use crate::layout::{Lookup, OpenEll, Row};
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
    fn shared(&self, k: usize, to: &mut [T; 1]) {
        *to = [(self.own)(k)];
    }

    fn private(&self, k: usize, to: &mut [T; 1]) {
        *to = [(self.own)(self.shared.0 + k)];
    }

    fn vertex(&self, to: &mut [T; 1]) {
        *to = [self.vertex];
    }

    fn begin(&self, star: usize, others: usize) -> (Cursor<1>, usize, usize) {
        let len = self.row.len(star, others);
        (Cursor { first: [0], columns: [len as u32], longest: 0 }, len, len)
    }

    fn other(&self, star: usize, _: &Cursor<1>, j: usize, (other, k): (usize, usize), to: &mut [T; 1]) {
        *to = [self.row.other(star, (j, other), self.shared.1, k)];
    }

    fn quad(&self, star: usize, at: &Cursor<1>, j: usize, (other, quad): (usize, usize), to: &mut [[T; 1]]) {
        (0..4).for_each(|part| self.other(star, at, j, (other, 4 * quad + part), &mut to[part]));
    }

    fn data(&self, star: usize, _: &Cursor<1>, j: usize, k: usize, to: &mut [T; 1]) {
        *to = [self.row.data(star, j, k)];
    }
}

/// Groups of vertices side by side, of which none reads another.
pub(crate) struct Groups<'a, L: Lanes, U: Lookup<L>, Q, const B: usize> {
    /// Which groups of the tile.
    pub(crate) groups: [usize; B],
    pub(crate) stars: &'a [OpenEll<'a, U::Name, L::Scalar>],
    pub(crate) lookup: U,
    /// Own reals of a group, shared ones first.
    pub(crate) own: Q,
    /// Shared reals of a vertex, and from one to the next.
    pub(crate) shared: (usize, usize),
    pub(crate) vertex: [L; B],
}

impl<L: Lanes, U: Lookup<L>, Q: Fn(usize, usize) -> L, const B: usize> Site<L, B> for Groups<'_, L, U, Q, B> {
    fn shared(&self, k: usize, to: &mut [L; B]) {
        (0..B).for_each(|i| to[i] = (self.own)(self.groups[i], k));
    }

    fn private(&self, k: usize, to: &mut [L; B]) {
        self.shared(self.shared.0 + k, to);
    }

    fn vertex(&self, to: &mut [L; B]) {
        *to = self.vertex;
    }

    fn begin(&self, star: usize, others: usize) -> (Cursor<B>, usize, usize) {
        let mut at = Cursor { first: [0; B], columns: [0; B], longest: 0 };
        let (mut most, mut full) = (0, usize::MAX);
        for (i, &group) in self.groups.iter().enumerate() {
            let (columns, own_full) = self.stars[star].columns(group, others);
            (at.first[i], at.columns[i]) = (columns.start as u32, columns.len() as u32);
            if columns.len() > most {
                at.longest = i;
            }
            (most, full) = (most.max(columns.len()), full.min(own_full));
        }
        (at, most, full)
    }

    fn has(&self, star: usize, j: usize) -> [L::Mask; B] {
        let has = |group: usize| {
            let degrees = self.stars[star].degrees(group, L::WIDTH);
            L::lit(j as f64).less(L::from_fn(|lane| L::Scalar::from_f64(f64::from(degrees[lane]))))
        };
        array(has(self.groups[0]), |i| has(self.groups[i]))
    }

    #[inline(always)]
    fn other(&self, star: usize, at: &Cursor<B>, j: usize, (other, k): (usize, usize), to: &mut [L; B]) {
        let (star, stride) = (&self.stars[star], self.shared.1);
        for i in 0..B {
            to[i] = self.lookup.reals(star.others(at.column(i, j), other, L::WIDTH), stride, k);
        }
    }

    #[inline(always)]
    fn quad(&self, star: usize, at: &Cursor<B>, j: usize, (other, quad): (usize, usize), to: &mut [[L; B]]) {
        let (star, quads) = (&self.stars[star], self.shared.1 / 4);
        let [a, b, c, d] = to else { unreachable!("a quad is four reals") };
        for i in 0..B {
            let names = star.others(at.column(i, j), other, L::WIDTH);
            [a[i], b[i], c[i], d[i]] = self.lookup.quads(names, quads, quad);
        }
    }

    #[inline(always)]
    fn data(&self, star: usize, at: &Cursor<B>, j: usize, k: usize, to: &mut [L; B]) {
        let star = &self.stars[star];
        for i in 0..B {
            to[i] = L::load(star.data(at.column(i, j), k, L::WIDTH));
        }
    }
}
