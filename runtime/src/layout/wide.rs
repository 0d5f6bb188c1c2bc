//! Stars of vertices that are updated side by side.

use super::data::Data;
use super::incidences::Source;
use super::opened::Opened;
use super::packed::Packed;
use super::shared_stride;
use crate::number::lanes::prefetch;
use crate::number::{Lanes, Number, Precision};
use crate::program::{Kernels, Neighbors, Record, SharedOf, Star, StarPlan, check_shape};
use bytemuck::Pod;
use bytes::Bytes;
use std::cell::LazyCell;
use std::marker::PhantomData;
use std::ops::Range;

/// One star of vertices that are updated side by side, as sliced ELL: element `j` of all vertices of a group lies side by side. Other
/// vertices are named by `N`: places in a table, or slots.
#[derive(Clone)]
pub(crate) struct Wide<N> {
    /// Other vertices and reals of data of each element.
    pub(super) shape: (usize, usize),
    /// Columns of group `g` of the tile: `columns[g]..columns[g + 1]`, as many as its vertex with the most elements has.
    pub(crate) columns: Packed<u32>,
    /// Columns in which every vertex of the group has an element.
    pub(super) full: Packed<u16>,
    /// Elements of each slot.
    pub(crate) degrees: Packed<u16>,
    /// Shape [columns × others × width].
    pub(crate) others: Packed<N>,
    /// Shape [columns × reals × width].
    pub(crate) data: Data,
}

impl<N: Pod + Default + Send> Wide<N> {
    /// The star of the slots whose vertices are at `places`. `name`: the name of a slot.
    pub(super) fn new(
        source: &Source,
        places: &[u32],
        (width, precision): (usize, Precision),
        name: impl Fn(u32) -> N,
    ) -> Wide<N> {
        let StarPlan { corners, data_len, .. } = *source.plan;
        let degrees: Vec<u16> = places.iter().map(|&place| source.incidences.degree(place) as u16).collect();
        let groups = degrees.chunks_exact(width);
        let full: Vec<u16> = groups.clone().map(|degrees| degrees.iter().copied().min().unwrap_or(0)).collect();
        let mut columns = vec![0u32];
        columns.extend(groups.scan(0, |end, degrees| {
            *end += u32::from(degrees.iter().copied().max().unwrap_or(0));
            Some(*end)
        }));
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
        Wide::of((corners - 1, data_len), columns, full, degrees, others, data)
    }

    /// One of these lists.
    pub(super) fn of(
        shape: (usize, usize),
        columns: Vec<u32>,
        full: Vec<u16>,
        degrees: Vec<u16>,
        others: Vec<N>,
        data: Data,
    ) -> Wide<N> {
        let (columns, full, degrees) = (columns.into(), full.into(), degrees.into());
        Wide { shape, columns, full, degrees, others: others.into(), data }
    }

    /// Its lists, to be packed.
    pub(super) fn lists(&mut self) -> impl Iterator<Item = &mut Bytes> {
        let Wide { columns, full, degrees, others, data, .. } = self;
        [columns.bytes(), full.bytes(), degrees.bytes(), others.bytes(), data.bytes()].into_iter()
    }

    pub(super) fn bytes(&self) -> usize {
        let lengths = (self.full.len() + self.degrees.len()) * 2 + self.columns.len() * 4;
        lengths + self.others.len() * size_of::<N>() + self.data.size()
    }
}

impl<N: Pod> Wide<N> {
    /// The lists of some stars, of numbers `T`.
    #[inline(always)]
    pub(crate) fn open<T: Number>(stars: &[Wide<N>]) -> Opened<WideStar<'_, N, T>> {
        let nothing = WideStar { shape: (0, 0), columns: &[], full: &[], degrees: &[], others: &[], data: &[] };
        Opened::new(stars, nothing, |i| {
            let Wide { shape, columns, full, degrees, others, data } = &stars[i];
            WideStar { shape: *shape, columns, full, degrees, others, data: data.numbers() }
        })
    }
}

/// The lists of a [`Wide`].
#[derive(Clone, Copy)]
pub(crate) struct WideStar<'a, N, T> {
    shape: (usize, usize),
    columns: &'a [u32],
    full: &'a [u16],
    degrees: &'a [u16],
    others: &'a [N],
    data: &'a [T],
}

impl<N, T> WideStar<'_, N, T> {
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

/// Where the shared state of neighbors is looked up.
pub(crate) trait Lookup<L: Lanes> {
    /// What names a vertex.
    type Name: Pod;

    /// The records of as many vertices as there are lanes.
    fn records<S: Record<L>>(&self, names: &[Self::Name]) -> S;
}

/// A table of a tile's own slots and its halo.
impl<L: Lanes> Lookup<L> for &[L::Scalar] {
    type Name = u16;

    #[inline(always)]
    fn records<S: Record<L>>(&self, names: &[u16]) -> S {
        gather(self, names)
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
}

/// The neighbors of the vertices of one group of a tile.
pub(crate) struct WideRows<'a, L: Lanes, U: Lookup<L>> {
    /// Which group of the tile.
    pub(crate) group: usize,
    pub(crate) stars: &'a [WideStar<'a, U::Name, L::Scalar>],
    pub(crate) lookup: U,
    pub(crate) lanes: PhantomData<L>,
}

impl<P: Kernels, L: Lanes, U: Lookup<L>> Neighbors<P, L> for WideRows<'_, L, U> {
    #[inline(always)]
    fn fold<const N: usize, E: Star<N>, A: Record<L>>(
        &self,
        _star: E,
        init: A,
        f: impl Fn(A, [SharedOf<P, L>; N], E::Data<L>) -> A,
    ) -> A {
        let star = &self.stars[E::INDEX];
        let len = <E::Data<L> as Record<L>>::LEN;
        check_shape::<L, N, E>(star.shape);
        let (start, end) = (star.columns[self.group] as usize, star.columns[self.group + 1] as usize);
        let full = star.full[self.group] as usize;
        let others = &star.others[start * N * L::WIDTH..end * N * L::WIDTH];
        let reals = &star.data[start * len * L::WIDTH..end * len * L::WIDTH];
        // Elements of each vertex, as numbers to compare with.
        let degrees = if full == end - start {
            L::lit(0.0)
        } else {
            let degrees = &star.degrees[self.group * L::WIDTH..][..L::WIDTH];
            L::from_fn(|lane| L::Scalar::from_f64(f64::from(degrees[lane])))
        };
        let mut gathered = init;
        // One call of `f` for whole and broken columns, or the compiler would not inline it.
        for j in 0..end - start {
            // A loop over what is there already: `array::from_fn` of three large records is no longer inlined.
            let other = |i: usize| self.lookup.records(&others[(j * N + i) * L::WIDTH..][..L::WIDTH]);
            let mut shared = [other(0); N];
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
