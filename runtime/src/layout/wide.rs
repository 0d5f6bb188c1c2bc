//! The neighbors of vertices that are updated side by side.

use super::ell::OpenEll;
use super::shared_stride;
use crate::number::{Lanes, Number};
use crate::program::{Kernels, Neighbors, Record, SharedOf, Star, check_shape};
use bytemuck::Pod;
use std::cell::LazyCell;
use std::marker::PhantomData;

/// Where the shared state of neighbors is looked up.
pub(crate) trait Lookup<L: Lanes> {
    /// What names a vertex.
    type Name: Pod;

    /// The records of as many vertices as there are lanes.
    fn records<S: Record<L>>(&self, names: &[Self::Name]) -> S;

    /// Real `k` of each; reals lie `stride` a vertex.
    fn reals(&self, names: &[Self::Name], stride: usize, k: usize) -> L;

    /// Reals `4 quad` to `4 quad + 3` of each; `quads` lie a vertex.
    fn quads(&self, names: &[Self::Name], quads: usize, quad: usize) -> [L; 4];
}

/// A table of a tile's own slots and its halo.
impl<L: Lanes> Lookup<L> for &[L::Scalar] {
    type Name = u16;

    #[inline(always)]
    fn records<S: Record<L>>(&self, names: &[u16]) -> S {
        gather(self, names)
    }

    #[inline(always)]
    fn reals(&self, names: &[u16], stride: usize, k: usize) -> L {
        pick_row(self, names, stride, k)
    }

    #[inline(always)]
    fn quads(&self, names: &[u16], quads: usize, quad: usize) -> [L; 4] {
        L::pick_quads(self, names, quads, quad)
    }
}

/// One that is put together when somebody looks: not every kernel does.
impl<'a, L: Lanes, F: FnOnce() -> &'a [L::Scalar]> Lookup<L> for &LazyCell<&'a [L::Scalar], F> {
    type Name = u16;

    #[inline(always)]
    fn records<S: Record<L>>(&self, names: &[u16]) -> S {
        let table: &[L::Scalar] = self;
        gather(table, names)
    }

    #[inline(always)]
    fn reals(&self, names: &[u16], stride: usize, k: usize) -> L {
        pick_row(self, names, stride, k)
    }

    #[inline(always)]
    fn quads(&self, names: &[u16], quads: usize, quad: usize) -> [L; 4] {
        L::pick_quads(self, names, quads, quad)
    }
}

/// The neighbors of the vertices of one group of a tile.
pub(crate) struct WideRows<'a, L: Lanes, U: Lookup<L>, V: Lookup<L, Name = u32>> {
    /// Which group of the tile.
    pub(crate) group: usize,
    pub(crate) stars: &'a [OpenEll<'a, U::Name, L::Scalar>],
    pub(crate) lookup: U,
    /// Stars that change; empty if none has elements here.
    pub(crate) changing: &'a [OpenEll<'a, u32, L::Scalar>],
    /// Where the neighbors in those are looked up.
    pub(crate) far: V,
    /// A turn, and that of each vertex, where the outcome of those alone counts that have this one.
    pub(crate) which: Option<(u8, &'a [u8])>,
    pub(crate) lanes: PhantomData<L>,
}

impl<P: Kernels, L: Lanes, U: Lookup<L>, V: Lookup<L, Name = u32>> Neighbors<P, L> for WideRows<'_, L, U, V> {
    #[inline(always)]
    fn fold<const N: usize, E: Star<N>, A: Record<L>>(
        &self,
        _star: E,
        init: A,
        f: impl Fn(A, [SharedOf<P, L>; N], E::Data<L>) -> A,
    ) -> A {
        if !E::CHANGES {
            return fold::<P, L, U, N, E, A>(&self.stars[E::INDEX], (self.group, None), &self.lookup, init, f);
        }
        match self.changing.get(E::INDEX).filter(|star| !star.columns.is_empty()) {
            Some(star) => fold::<P, L, V, N, E, A>(star, (self.group, self.which), &self.far, init, f),
            None => init,
        }
    }
}

/// Folds over the elements of a star around the vertices of a group. `which`: as in [`WideRows`].
#[inline(always)]
fn fold<P: Kernels, L: Lanes, U: Lookup<L>, const N: usize, E: Star<N>, A: Record<L>>(
    star: &OpenEll<U::Name, L::Scalar>,
    (group, which): (usize, Option<(u8, &[u8])>),
    lookup: &U,
    init: A,
    f: impl Fn(A, [SharedOf<P, L>; N], E::Data<L>) -> A,
) -> A {
    let len = <E::Data<L> as Record<L>>::LEN;
    check_shape::<L, N, E>(star.shape);
    let (start, mut end) = (star.columns[group] as usize, star.columns[group + 1] as usize);
    if let Some((turn, turns)) = which {
        // Those with the most elements have their turn late, and others need not wait for them in each.
        let degrees = star.degrees[group * L::WIDTH..][..L::WIDTH].iter().zip(turns);
        end = start + degrees.map(|(&degree, &its)| if its == turn { degree } else { 0 }).max().unwrap_or(0) as usize;
    }
    let full = star.full[group] as usize;
    let others = &star.others[start * N * L::WIDTH..end * N * L::WIDTH];
    let reals = &star.data[start * len * L::WIDTH..end * len * L::WIDTH];
    // Elements of each vertex, as numbers to compare with.
    let degrees = if full == end - start {
        L::lit(0.0)
    } else {
        let degrees = &star.degrees[group * L::WIDTH..][..L::WIDTH];
        L::from_fn(|lane| L::Scalar::from_f64(f64::from(degrees[lane])))
    };
    let mut gathered = init;
    // One call of `f` for whole and broken columns, or the compiler would not inline it.
    for j in 0..end - start {
        // A loop over what is there already: `array::from_fn` of three large records is no longer inlined.
        let other = |i: usize| lookup.records(&others[(j * N + i) * L::WIDTH..][..L::WIDTH]);
        let first = if N == 0 { Record::build(|_| L::lit(0.0)) } else { other(0) };
        let mut shared = [first; N];
        for i in 1..N {
            shared[i] = other(i);
        }
        let data = E::Data::build(|k| L::load(&reals[(j * len + k) * L::WIDTH..][..L::WIDTH]));
        let more = f(gathered, shared, data);
        gathered = if j < full {
            more
        } else {
            // Some vertices have no more: what they gathered stays as it is.
            let mask = L::lit(j as f64).less(degrees);
            more.zip(gathered, &mut |new, old| L::select(mask, new, old))
        };
    }
    gathered
}

/// Reads real `k` of the records at the places `ids` of a table, which lie `stride` reals apart.
#[inline(always)]
fn pick_row<L: Lanes>(table: &[L::Scalar], ids: &[u16], stride: usize, k: usize) -> L {
    match stride {
        1 => pick_apart::<L, 1>(table, ids, 0),
        2 => pick_apart::<L, 2>(table, ids, k),
        4 => pick_apart::<L, 4>(table, ids, k),
        8 => pick_apart::<L, 8>(table, ids, k),
        _ => L::pick(table, ids, stride, k),
    }
}

/// The same where the compiler knows how far they lie apart. A function of its own for each, or it would make one of all.
#[inline(never)]
fn pick_apart<L: Lanes, const STRIDE: usize>(table: &[L::Scalar], ids: &[u16], k: usize) -> L {
    L::pick(table, ids, STRIDE, k)
}

/// Reals of a record that are read and written in quads; the rest of a longer one goes real by real.
pub(crate) const QUADS: usize = 32;

/// Reads the records at the places `ids` of a table.
///
/// Here and below the quads are put together before the record is, and taken apart after it: the compiler inlines the
/// closure of a record only while it is small.
#[inline(always)]
fn gather<L: Lanes, S: Record<L>>(table: &[L::Scalar], ids: &[u16]) -> S {
    let stride = shared_stride(S::LEN);
    if stride <= 2 || stride > QUADS {
        return S::build(|k| L::pick(table, ids, stride, k));
    }
    let mut quads = [[L::lit(0.0); 4]; QUADS / 4];
    for quad in 0..stride / 4 {
        quads[quad] = L::pick_quads(table, ids, stride / 4, quad);
    }
    S::build(|k| quads[k / 4][k % 4])
}

/// Reads the records of consecutive vertices.
#[inline(always)]
pub(crate) fn gather_rows<L: Lanes, S: Record<L>>(rows: &[L::Scalar]) -> S {
    let stride = shared_stride(S::LEN);
    if stride == 1 {
        return S::build(|_| L::load(rows));
    }
    if stride == 2 {
        let pairs = rows[..2 * L::WIDTH].as_chunks::<2>().0;
        let reals = [L::from_fn(|i| pairs[i][0]), L::from_fn(|i| pairs[i][1])];
        return S::build(|k| reals[k]);
    }
    if stride > QUADS {
        return S::build(|k| L::from_fn(|i| rows[stride * i + k]));
    }
    let mut quads = [[L::lit(0.0); 4]; QUADS / 4];
    for quad in 0..stride / 4 {
        quads[quad] = L::load_quads(rows, stride / 4, quad);
    }
    S::build(|k| quads[k / 4][k % 4])
}

/// Writes the records of consecutive vertices.
#[inline(always)]
pub(crate) fn scatter_rows<L: Lanes, S: Record<L>>(record: S, rows: &mut [L::Scalar]) {
    let stride = shared_stride(S::LEN);
    if stride == 1 {
        return record.each(|_, x| x.store(rows));
    }
    if stride == 2 {
        let mut lanes = [[L::Scalar::from_f64(0.0); 16]; 2];
        record.each(|k, x| x.store(&mut lanes[k]));
        let pairs = rows[..2 * L::WIDTH].as_chunks_mut::<2>().0;
        return pairs.iter_mut().enumerate().for_each(|(i, pair)| *pair = [lanes[0][i], lanes[1][i]]);
    }
    if stride > QUADS {
        return record.each(|k, x| {
            let mut lanes = [L::Scalar::from_f64(0.0); 16];
            x.store(&mut lanes);
            (0..L::WIDTH).for_each(|i| rows[stride * i + k] = lanes[i]);
        });
    }
    let mut quads = [[L::lit(0.0); 4]; QUADS / 4];
    record.each(|k, x| quads[k / 4][k % 4] = x);
    for quad in 0..stride / 4 {
        L::store_quads(quads[quad], rows, stride / 4, quad);
    }
}
