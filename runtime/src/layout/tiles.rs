//! Tiles, and stars of vertices that are updated side by side.

use super::incidences::{Incidences, around};
use super::{pieces, shared_stride};
use crate::number::lanes::{TABLE, prefetch};
use crate::number::{Lanes, Number};
use crate::program::{CORNERS, Kernels, Kind, Neighbors, Record, SharedOf, Star, StarPlan, check_shape};
use crate::schedule::Schedule;
use meshweft_mesh::Permutation;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;

/// A vertex with more things around it than this, and than four times the mean, is updated by itself: it would hold up
/// the others of its group.
const HIGH_DEGREE: usize = 64;

/// A piece of a task: consecutive groups that one thread works through.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) groups: Range<u32>,
    pub(crate) form: Form,
}

/// How the vertices of a tile are updated.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Group after group, from a table of the tile's own slots and its halo.
    Wide {
        /// Where its halo lies in [`Layout::halo`](super::Layout::halo).
        halo: Range<u32>,
    },
    /// Vertex after vertex, from the state itself.
    Rows {
        /// The row of its first vertex.
        first_row: u32,
        /// Number of vertices: the lanes after them are clones of the last.
        vertices: u32,
    },
}

/// Where every vertex lies.
pub(super) struct Cut {
    pub(super) tiles: Vec<Tile>,
    /// Tiles of task `t`: `tasks[t]..tasks[t + 1]`.
    pub(super) tasks: Vec<u32>,
    pub(super) slots: Vec<u32>,
    pub(super) place_of: Vec<u32>,
}

/// Cuts the order into tiles. `offsets`: for each star, where the things around each vertex start. Halos are still empty.
pub(super) fn cut(schedule: &Schedule, offsets: &[&[u32]], width: usize) -> Cut {
    let n = schedule.permutation().len();
    // The limit is four times the mean, which is rounded up.
    let limit = |offsets: &[u32]| HIGH_DEGREE.max(4 * (offsets[n] as usize).div_ceil(n.max(1)));
    let stars: Vec<(&[u32], usize)> = offsets.iter().map(|offsets| (*offsets, limit(offsets))).collect();
    // Even a tile of one group must find room for all that its vertices read.
    let room = (TABLE / width - 1) / (CORNERS - 1);
    let stands_alone = |place: usize| {
        let degree = |offsets: &[u32]| (offsets[place + 1] - offsets[place]) as usize;
        width == 1
            || stars.iter().map(|(offsets, _)| degree(offsets)).sum::<usize>() > room
            || stars.iter().any(|&(offsets, limit)| degree(offsets) > limit)
    };
    let alone: Vec<bool> = (0..n).into_par_iter().map(stands_alone).collect();
    let alone = |place: u32| alone[place as usize];
    let mut cutter =
        Cutter { width, tiles: Vec::new(), open: None, slots: vec![0; n], place_of: Vec::with_capacity(n), rows: 0 };
    let mut tasks = vec![0];
    let mut runs = schedule.runs().windows(2).map(|w| w[0]..w[1]).peekable();
    for task in schedule.tasks().windows(2) {
        while let Some(run) = runs.next_if(|run| run.end <= task[1]) {
            let mut v = run.start;
            while v < run.end {
                if alone(v) {
                    cutter.row(v);
                    v += 1;
                } else {
                    let end = run.end.min(v + width as u32);
                    let next = (v..end).find(|&u| alone(u)).unwrap_or(end);
                    cutter.group(v..next);
                    v = next;
                }
            }
        }
        cutter.close();
        tasks.push(cutter.tiles.len() as u32);
    }
    Cut { tiles: cutter.tiles, tasks, slots: cutter.slots, place_of: cutter.place_of }
}

/// Tiles as they are cut, vertex after vertex.
struct Cutter {
    width: usize,
    tiles: Vec<Tile>,
    open: Option<Open>,
    slots: Vec<u32>,
    place_of: Vec<u32>,
    /// Vertices in tiles of rows so far.
    rows: u32,
}

/// A tile that is not complete yet.
struct Open {
    first_group: u32,
    vertices: u32,
    wide: bool,
}

impl Cutter {
    /// Adds a group of vertices that are updated side by side.
    fn group(&mut self, places: Range<u32>) {
        self.add(places, true);
        self.fill();
    }

    /// Adds a vertex that is updated by itself.
    fn row(&mut self, place: u32) {
        self.add(place..place + 1, false);
    }

    fn add(&mut self, places: Range<u32>, wide: bool) {
        if self.open.as_ref().is_some_and(|open| open.wide != wide) {
            self.close();
        }
        let first_group = (self.place_of.len() / self.width) as u32;
        let open = self.open.get_or_insert(Open { first_group, vertices: 0, wide });
        open.vertices += places.len() as u32;
        for place in places {
            self.slots[place as usize] = self.place_of.len() as u32;
            self.place_of.push(place);
        }
    }

    /// Fills the last group with clones of its last vertex.
    fn fill(&mut self) {
        if let Some(&last) = self.place_of.last() {
            self.place_of.resize(self.place_of.len().next_multiple_of(self.width), last);
        }
    }

    fn close(&mut self) {
        self.fill();
        let Some(Open { first_group, vertices, wide }) = self.open.take() else { return };
        let form = if wide {
            Form::Wide { halo: 0..0 }
        } else {
            self.rows += vertices;
            Form::Rows { first_row: self.rows - vertices, vertices }
        };
        self.tiles.push(Tile { groups: first_group..(self.place_of.len() / self.width) as u32, form });
    }
}

/// One star, and what names its vertices.
pub(super) struct Source<'a> {
    pub(super) plan: &'a StarPlan,
    pub(super) incidences: Incidences,
    pub(super) places: &'a Permutation,
    pub(super) slots: &'a [u32],
}

impl Source<'_> {
    /// Visits the slots of the other vertices around the one at `place`, thing after thing.
    #[inline(always)]
    pub(super) fn others(&self, place: u32, visit: impl FnMut(u32)) {
        match self.plan.corners {
            2 => self.incidences.others(place).iter().copied().for_each(visit),
            3 => self.others_of::<3>(place, visit),
            4 => self.others_of::<4>(place, visit),
            5 => self.others_of::<5>(place, visit),
            6 => self.others_of::<6>(place, visit),
            _ => self.others_of::<8>(place, visit),
        }
    }

    fn others_of<const K: usize>(&self, place: u32, mut visit: impl FnMut(u32)) {
        for &incidence in self.incidences.of(place) {
            for v in &around::<K>(self.plan, incidence)[1..] {
                visit(self.slots[self.places.rank()[*v as usize] as usize]);
            }
        }
    }

    /// Appends the data of the things around the vertex at `place`.
    pub(super) fn data(&self, place: u32, reals: &mut Vec<f64>) {
        match self.plan.corners {
            _ if self.plan.data_len == 0 => {}
            2 => self.data_of::<2>(place, reals),
            3 => self.data_of::<3>(place, reals),
            4 => self.data_of::<4>(place, reals),
            5 => self.data_of::<5>(place, reals),
            6 => self.data_of::<6>(place, reals),
            _ => self.data_of::<8>(place, reals),
        }
    }

    fn data_of<const K: usize>(&self, place: u32, reals: &mut Vec<f64>) {
        for &incidence in self.incidences.of(place) {
            let (element, corner) = (incidence as usize / K, incidence as usize % K);
            (self.plan.data)(element, corner, &around::<K>(self.plan, incidence), reals);
        }
    }
}

/// Finds what every wide tile reads outside of itself, and splits tiles that read more than a table holds.
pub(super) fn halos(
    tiles: &mut Vec<Tile>,
    tasks: &mut [u32],
    sources: &[Source],
    place_of: &[u32],
    width: usize,
) -> Vec<u32> {
    let found: Vec<Vec<(Tile, Vec<u32>)>> = tiles
        .par_iter()
        .map_init(
            || vec![false; place_of.len()],
            |seen, tile| {
                let mut found = Vec::new();
                split(tile, sources, place_of, width, seen, &mut found);
                found
            },
        )
        .collect();
    let mut ends = vec![0];
    ends.extend(found.iter().scan(0, |end, pieces| {
        *end += pieces.len() as u32;
        Some(*end)
    }));
    tasks.iter_mut().for_each(|task| *task = ends[*task as usize]);
    let mut halo = Vec::new();
    *tiles = found
        .into_iter()
        .flatten()
        .map(|(mut tile, outside)| {
            if let Form::Wide { halo: range } = &mut tile.form {
                *range = halo.len() as u32..(halo.len() + outside.len()) as u32;
            }
            halo.extend(outside);
            tile
        })
        .collect();
    halo
}

fn split(
    tile: &Tile,
    sources: &[Source],
    place_of: &[u32],
    width: usize,
    seen: &mut [bool],
    found: &mut Vec<(Tile, Vec<u32>)>,
) {
    if matches!(tile.form, Form::Rows { .. }) {
        return found.push((tile.clone(), Vec::new()));
    }
    let Range { start, end } = tile.groups;
    let own = start * width as u32..end * width as u32;
    let mut outside = Vec::new();
    for slot in own.clone() {
        for source in sources {
            source.others(place_of[slot as usize], |u| {
                if !own.contains(&u) && !std::mem::replace(&mut seen[u as usize], true) {
                    outside.push(u);
                }
            });
        }
    }
    outside.iter().for_each(|&u| seen[u as usize] = false);
    outside.sort_unstable();
    if own.len() + outside.len() <= TABLE {
        return found.push((tile.clone(), outside));
    }
    assert!(end - start > 1, "a group reads no more than a table holds");
    let middle = start + (end - start) / 2;
    for groups in [start..middle, middle..end] {
        split(&Tile { groups, form: tile.form.clone() }, sources, place_of, width, seen, found);
    }
}

/// One star of the vertices in wide tiles, as sliced ELL: thing `j` of all vertices of a group lies side by side.
pub(crate) struct Wide<T> {
    /// Other vertices and reals of data of each thing.
    pub(crate) shape: (usize, usize),
    /// Things of group `g`: `columns[g]..columns[g + 1]`, as many as its vertex with the most has.
    pub(crate) columns: Vec<u32>,
    /// Things that every vertex of the group has.
    full: Vec<u16>,
    /// Things of each slot.
    pub(crate) degrees: Vec<u16>,
    /// Places in the tile's table, shape [columns × others × width].
    pub(crate) others: Vec<u16>,
    /// Shape [columns × reals × width].
    pub(crate) data: Vec<T>,
    width: usize,
}

impl<T: Number> Wide<T> {
    pub(super) fn new(source: &Source, tiles: &[Tile], halo: &[u32], place_of: &[u32], width: usize) -> Wide<T> {
        let StarPlan { corners, data_len, .. } = *source.plan;
        let groups = place_of.len() / width;
        let is_wide = |tile: &Tile| matches!(tile.form, Form::Wide { .. });
        // Without wide tiles there is nothing to say about any slot.
        let mut degrees = vec![0u16; if tiles.iter().any(is_wide) { place_of.len() } else { 0 }];
        for tile in tiles.iter().filter(|tile| is_wide(tile)) {
            let slots = tile.groups.start as usize * width..tile.groups.end as usize * width;
            let places = &place_of[slots.clone()];
            let degree = |(slot, &place): (&mut u16, &u32)| *slot = source.incidences.degree(place) as u16;
            degrees[slots].iter_mut().zip(places).for_each(degree);
        }
        let ends = |degrees: &[u16]| {
            let ends = degrees.iter().fold((u16::MAX, 0), |(least, most), &d| (d.min(least), d.max(most)));
            (ends.0.min(ends.1), ends.1)
        };
        let (mut full, mut most): (Vec<u16>, Vec<u16>) = degrees.par_chunks(width).map(ends).unzip();
        full.resize(groups, 0);
        most.resize(groups, 0);
        let mut columns = vec![0u32];
        columns.extend(most.iter().scan(0, |end, &most| {
            *end += u32::from(most);
            Some(*end)
        }));
        let total = columns[groups] as usize * width;
        let mut others = vec![0u16; total * (corners - 1)];
        let mut data = vec![T::from_f64(0.0); total * data_len];
        // Tiles cover all groups in order, so each fills its own piece.
        let ends = |per_column: usize| -> Vec<usize> {
            let starts = tiles.iter().map(|tile| columns[tile.groups.start as usize] as usize * per_column);
            starts.chain([columns[groups] as usize * per_column]).collect()
        };
        let (other_ends, data_ends) = (ends((corners - 1) * width), ends(data_len * width));
        let work: Vec<_> =
            tiles.iter().zip(pieces(&mut others, &other_ends).zip(pieces(&mut data, &data_ends))).collect();
        work.into_par_iter().for_each_init(
            || vec![0u16; place_of.len()],
            |local, (tile, (others, data))| {
                let Form::Wide { halo: range } = &tile.form else { return };
                let own = tile.groups.start * width as u32..tile.groups.end * width as u32;
                let outside = &halo[range.start as usize..range.end as usize];
                outside.iter().zip(own.len()..).for_each(|(&slot, i)| local[slot as usize] = i as u16);
                let first = columns[tile.groups.start as usize] as usize;
                let mut reals = Vec::new();
                for slot in own.clone() {
                    let (group, lane) = (slot as usize / width, slot as usize % width);
                    let start = columns[group] as usize - first;
                    let place = place_of[slot as usize];
                    let mut at = start * (corners - 1) * width + lane;
                    source.others(place, |u| {
                        others[at] = if own.contains(&u) { (u - own.start) as u16 } else { local[u as usize] };
                        at += width;
                    });
                    reals.clear();
                    source.data(place, &mut reals);
                    for (k, &x) in reals.iter().enumerate() {
                        data[(start * data_len + k) * width + lane] = source.plan.kinds[k % data_len].encode(x);
                    }
                }
            },
        );
        Wide { shape: (corners - 1, data_len), columns, full, degrees, others, data, width }
    }

    /// Whether all data are finite. In parallel.
    pub(super) fn is_finite(&self, plan: &StarPlan) -> bool {
        let width = self.width;
        let columns = self.data.par_chunks_exact((plan.data_len * width).max(1));
        columns.all(|column| {
            let reals = column.chunks_exact(width).zip(&plan.kinds);
            reals.fold(true, |all, (x, &kind)| all & (kind == Kind::Integer || x.iter().all(|x| x.finite())))
        })
    }

    pub(super) fn bytes(&self) -> usize {
        let names = (self.full.len() + self.degrees.len() + self.others.len()) * 2 + self.columns.len() * 4;
        names + self.data.len() * T::BYTES
    }

    /// Asks for the lines of a group ahead of its turn.
    #[inline(always)]
    pub(crate) fn prefetch(&self, group: usize, width: usize) {
        let Some(&end) = self.columns.get(group + 1) else { return };
        let columns = self.columns[group] as usize..end as usize;
        let (others, reals) = self.shape;
        lines(&self.others, columns.start * others * width..columns.end * others * width);
        lines(&self.data, columns.start * reals * width..columns.end * reals * width);
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

/// The neighbors of the vertices of one group; `table` holds the shared state of the tile and its halo.
pub(crate) struct WideRows<'a, T, L> {
    pub(crate) group: usize,
    pub(crate) stars: &'a [Wide<T>],
    pub(crate) table: &'a [T],
    pub(crate) lanes: PhantomData<L>,
}

impl<P: Kernels, T: Number, L: Lanes<Scalar = T>> Neighbors<P, L> for WideRows<'_, T, L> {
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
        let data = &star.data[start * len * L::WIDTH..end * len * L::WIDTH];
        // Things of each vertex, as numbers to compare with.
        let degrees = if full == end - start {
            L::lit(0.0)
        } else {
            let degrees = &star.degrees[self.group * L::WIDTH..][..L::WIDTH];
            L::from_fn(|lane| T::from_f64(f64::from(degrees[lane])))
        };
        let mut gathered = init;
        // One call of `f` for whole and broken columns, or the compiler would not inline it.
        for j in 0..end - start {
            // A loop over what is there already: `array::from_fn` of three large records is no longer inlined.
            let other = |i: usize| gather(self.table, &others[(j * N + i) * L::WIDTH..][..L::WIDTH]);
            let mut shared = [other(0); N];
            for i in 1..N {
                shared[i] = other(i);
            }
            let thing = E::Data::build(|k| L::load(&data[(j * len + k) * L::WIDTH..][..L::WIDTH]));
            let more = f(gathered, shared, thing);
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
const QUADS: usize = 32;

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
    let mut reals = [L::lit(0.0); QUADS];
    for quad in 0..stride / 4 {
        reals[4 * quad..4 * quad + 4].copy_from_slice(&L::pick_quads(table, ids, stride / 4, quad));
    }
    S::build(|k| reals[k])
}

/// Reads the records of consecutive vertices.
#[inline(always)]
pub(crate) fn gather_rows<L: Lanes, S: Record<L>>(rows: &[L::Scalar]) -> S {
    let stride = shared_stride(S::LEN);
    if stride == 1 {
        return S::build(|_| L::load(rows));
    }
    if stride == 2 || stride > QUADS {
        return S::build(|k| L::from_fn(|i| rows[stride * i + k]));
    }
    let mut reals = [L::lit(0.0); QUADS];
    for quad in 0..stride / 4 {
        reals[4 * quad..4 * quad + 4].copy_from_slice(&L::load_quads(rows, stride / 4, quad));
    }
    S::build(|k| reals[k])
}

/// Writes the records of consecutive vertices.
#[inline(always)]
pub(crate) fn scatter_rows<L: Lanes, S: Record<L>>(record: S, rows: &mut [L::Scalar]) {
    let stride = shared_stride(S::LEN);
    if stride == 1 {
        return record.each(|_, x| x.store(rows));
    }
    if stride == 2 || stride > QUADS {
        return record.each(|k, x| {
            let mut lanes = [L::Scalar::from_f64(0.0); 16];
            x.store(&mut lanes);
            (0..L::WIDTH).for_each(|i| rows[stride * i + k] = lanes[i]);
        });
    }
    let mut reals = [L::lit(0.0); QUADS];
    record.each(|k, x| reals[k] = x);
    for quad in 0..stride / 4 {
        let packs = [reals[4 * quad], reals[4 * quad + 1], reals[4 * quad + 2], reals[4 * quad + 3]];
        L::store_quads(packs, rows, stride / 4, quad);
    }
}
