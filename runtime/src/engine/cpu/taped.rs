//! What a thread does with a tile where the kernel is a tape. See [`tile`](super::tile), which does the same with a compiled one.
//!
//! An operation of a tape is done for [`BATCH`] groups at once where so many are independent of each other: those of a run of the
//! schedule, and all where nobody reads what is written.

use super::memory::Cells;
use super::table;
use super::tile::{AHEAD, Turn, Visit};
use crate::engine::taped::{Groups, Machine, Single, Taped};
use crate::layout::{Ell, Form, Lookup, OpenEll, Row, Tile};
use crate::number::lanes::TABLE;
use crate::number::{Kind, Lanes, Number};
use crate::program::hold;
use meshweft_schedule::Rule;
use std::cell::LazyCell;
use std::ops::Range;

/// Groups at once, at most: with 16 lanes 64 vertices an operation. See `docs/perf/decisions/tapes.md`.
const BATCH: usize = 4;

/// Updates the vertices of a tile. Tells whether all came out finite.
pub(in crate::engine) fn update<T: Number, L: Lanes<Scalar = T>>(
    kernel: &Taped,
    visit: &Visit<T>,
    tile: &Tile,
) -> bool {
    #[cfg(feature = "jit")]
    if let Some(is_finite) = super::native::update::<T, L>(kernel, visit, tile) {
        return is_finite;
    }
    let (cells, own, stride) = (visit.cells, tile.own(), kernel.shared.1);
    match &tile.form {
        Form::Rows { vertices, stars } => {
            let opened = Ell::open(stars);
            update_rows(kernel, visit, tile, *vertices as usize, opened.stars())
        }
        Form::Spread { stars } => {
            let opened = Ell::open(stars);
            in_batches::<L>(kernel, visit, tile, |work| {
                let slots = work.slots(tile);
                cells.begin(slots.clone());
                work.update_here(visit, tile, opened.stars());
                cells.end(slots);
            })
        }
        Form::Wide { halo, stars } => table::with(&table::TILE, TABLE * stride, |table| {
            let opened = Ell::open(stars);
            cells.fetch(own.clone(), halo, stride, table);
            let is_finite = in_batches::<L>(kernel, visit, tile, |work| {
                work.update_in_table(visit, tile, opened.stars(), table);
            });
            cells.release(own.clone(), stride, table);
            is_finite
        }),
    }
}

/// Updates the vertices of a tile by a map: none reads another.
pub(in crate::engine) fn map<T: Number, L: Lanes<Scalar = T>>(kernel: &Taped, visit: &Visit<T>, tile: &Tile) -> bool {
    #[cfg(feature = "jit")]
    if let Some(is_finite) = super::native::map::<T, L>(kernel, visit, tile) {
        return is_finite;
    }
    if visit.domain.width == 1 {
        return update_rows(kernel, visit, tile, tile.own().len(), &[]);
    }
    in_batches::<L>(kernel, visit, tile, |work| work.update_here(visit, tile, &[]))
}

/// Measures the vertices of a tile. `values`: one for each of its slots; what is left over is not written.
pub(in crate::engine) fn measure<T: Number, L: Lanes<Scalar = T>>(
    kernel: &Taped,
    visit: &Visit<T>,
    tile: &Tile,
    values: &mut [T],
) {
    #[cfg(feature = "jit")]
    if super::native::measure::<T, L>(kernel, visit, tile, values).is_some() {
        return;
    }
    let (cells, own, stride) = (visit.cells, tile.own(), kernel.shared.1);
    match &tile.form {
        Form::Rows { vertices, stars } => {
            let opened = Ell::open(visit.seen(stars));
            let mut machine = Machine::new(&kernel.listing, visit.uniform, visit.round, |x| x);
            for (i, value) in values[..*vertices as usize].iter_mut().enumerate() {
                look(kernel, &mut machine, visit, tile, i, opened.stars());
                *value = machine.real(0)[0];
            }
        }
        Form::Wide { halo, stars } => table::with(&table::TILE, TABLE * stride, |table| {
            let table = LazyCell::new(|| {
                cells.gather(own.clone(), halo, stride, table);
                &*table
            });
            measure_groups::<T, L, _>(kernel, visit, tile, stars, &table, values);
        }),
        Form::Spread { stars } => measure_groups::<T, L, _>(kernel, visit, tile, stars, cells, values),
    }
}

fn measure_groups<T: Number, L: Lanes<Scalar = T>, U: Lookup<L> + Copy>(
    kernel: &Taped,
    visit: &Visit<T>,
    tile: &Tile,
    stars: &[Ell<U::Name>],
    lookup: U,
    values: &mut [T],
) {
    let opened = Ell::open(visit.seen(stars));
    let first = tile.own().start / L::WIDTH;
    let mut work = Work::<L>::new(kernel, visit);
    for (batch, values) in values.chunks_mut(BATCH * L::WIDTH).enumerate() {
        work.groups = batch * BATCH..batch * BATCH + values.len() / L::WIDTH;
        work.run(tile, opened.stars(), lookup, &|group, k| visit.cells.load_real(first + group, k));
        for (i, values) in values.chunks_exact_mut(L::WIDTH).enumerate() {
            work.machine.real(0)[i].store(values);
        }
    }
}

/// Updates a tile, several groups at once where none reads another. Tells whether all came out finite.
fn in_batches<L: Lanes>(
    kernel: &Taped,
    visit: &Visit<L::Scalar>,
    tile: &Tile,
    mut update: impl FnMut(&mut Work<L>),
) -> bool {
    let own = tile.own();
    let group = |slot: usize| (slot - own.start) / L::WIDTH;
    let mut cuts = vec![0];
    if visit.rule != Rule::AtOnce && visit.rule != Rule::Alone {
        let runs = &visit.domain.runs;
        let inside = runs.partition_point(|&run| run as usize <= own.start)
            ..runs.partition_point(|&run| (run as usize) < own.end);
        cuts.extend(runs[inside].iter().map(|&run| group(run as usize)));
    }
    cuts.push(group(own.end));
    let starts =
        cuts.windows(2).flat_map(|run| (run[0]..run[1]).step_by(BATCH).map(|start| start..run[1].min(start + BATCH)));
    let mut batches: Vec<Range<usize>> = starts.collect();
    if visit.rule == Rule::Backward {
        batches.reverse();
    }
    let mut work = Work::<L>::new(kernel, visit);
    for batch in batches {
        let slots = own.start + batch.start * L::WIDTH..own.start + batch.end * L::WIDTH;
        visit.before(&Turn::whole(slots.clone()));
        work.groups = batch;
        update(&mut work);
        visit.after(&Turn::whole(slots));
    }
    work.probe.is_zero()
}

/// Runs a kernel on some groups of a tile at once.
struct Work<'a, L: Lanes> {
    kernel: &'a Taped,
    machine: Machine<'a, L, BATCH>,
    /// At most [`BATCH`] of them. Where there are fewer, the last is there several times: what is done to it twice is the same.
    groups: Range<usize>,
    /// Zero as long as all that was updated is finite.
    probe: L,
}

impl<'a, L: Lanes> Work<'a, L> {
    fn new(kernel: &'a Taped, visit: &Visit<L::Scalar>) -> Work<'a, L> {
        let splat = |x| L::from_fn(|_| x);
        let machine = Machine::new(&kernel.listing, visit.uniform, visit.round, splat);
        Work { kernel, machine, groups: 0..0, probe: L::lit(0.0) }
    }

    fn group(&self, i: usize) -> usize {
        (self.groups.start + i).min(self.groups.end - 1)
    }

    /// Runs it. `own`: real `k` of a group, shared ones first.
    fn run<U: Lookup<L> + Copy>(
        &mut self,
        tile: &Tile,
        stars: &[OpenEll<U::Name, L::Scalar>],
        lookup: U,
        own: &impl Fn(usize, usize) -> L,
    ) {
        let vertex = |group: usize| {
            let first = tile.own().start + group * L::WIDTH;
            let numbers = tile.numbers(first..first + L::WIDTH);
            if numbers.is_empty() { L::lit(0.0) } else { L::from_fn(|lane| hold(numbers[lane])) }
        };
        let mut groups = [0; BATCH];
        let mut numbers = [L::lit(0.0); BATCH];
        for i in 0..BATCH {
            groups[i] = self.group(i);
            numbers[i] = vertex(groups[i]);
        }
        let (shared, vertex) = (self.kernel.shared, numbers);
        self.machine.visit(&Groups { groups, stars, lookup, own, shared, vertex });
    }

    fn slots(&self, tile: &Tile) -> Range<usize> {
        let first = tile.own().start;
        first + self.groups.start * L::WIDTH..first + self.groups.end * L::WIDTH
    }

    /// Which lanes of each group are of vertices that are fixed, if some are.
    fn fixed(&self, tile: &Tile) -> Option<[L::Mask; BATCH]> {
        tile.fixed(self.slots(tile))?;
        let mut masks = [L::lit(0.0).less(L::lit(0.0)); BATCH];
        for (i, group) in self.groups.clone().enumerate() {
            let first = tile.own().start + group * L::WIDTH;
            if let Some(fixed) = tile.fixed(first..first + L::WIDTH) {
                let is_fixed = |lane: usize| L::Scalar::from_f64(f64::from(u8::from(fixed[lane])));
                masks[i] = L::lit(0.0).less(L::from_fn(is_fixed));
            }
        }
        Some(masks)
    }

    fn update_here(&mut self, visit: &Visit<L::Scalar>, tile: &Tile, stars: &[OpenEll<u32, L::Scalar>]) {
        let (cells, first) = (visit.cells, tile.own().start / L::WIDTH);
        self.run(tile, stars, cells, &|group, k| cells.load_real(first + group, k));
        let fixed = self.fixed(tile);
        for k in 0..self.kernel.kinds.len() {
            for i in 0..self.groups.len() {
                let at = first + self.groups.start + i;
                let new = self.made(k, i, fixed.as_ref(), || cells.load_real(at, k));
                cells.store_real(at, k, new);
            }
        }
    }

    fn update_in_table(
        &mut self,
        visit: &Visit<L::Scalar>,
        tile: &Tile,
        stars: &[OpenEll<u16, L::Scalar>],
        table: &mut [L::Scalar],
    ) {
        let (cells, first, (shared, stride)) = (visit.cells, tile.own().start / L::WIDTH, self.kernel.shared);
        let ahead = self.groups.start + AHEAD..self.groups.end + AHEAD;
        let private = self.kernel.kinds.len() - shared;
        for group in if visit.rule == Rule::Backward { 0..0 } else { ahead } {
            visit.prefetch_stars(stars, group, L::WIDTH);
            cells.prefetch_private(first + group, private, visit.touches);
        }
        let old: &[L::Scalar] = table;
        self.run(tile, stars, old, &|group, k| match k < shared {
            true => row(old, group, stride, k),
            false => cells.load_real(first + group, k),
        });
        let fixed = self.fixed(tile);
        let in_table = if visit.rule == Rule::AtOnce { 0 } else { shared };
        for k in 0..self.kernel.kinds.len() {
            for i in 0..self.groups.len() {
                let group = self.groups.start + i;
                let old = || match k < shared {
                    true => row(table, group, stride, k),
                    false => cells.load_real(first + group, k),
                };
                let new = self.made(k, i, fixed.as_ref(), old);
                match k < in_table {
                    true => store_row(new, table, group, stride, k),
                    false => cells.store_real(first + group, k, new),
                }
            }
        }
    }

    /// New real `k` of the `i`-th group: the old one in lanes of vertices that are fixed.
    #[inline(always)]
    fn made(&mut self, k: usize, i: usize, fixed: Option<&[L::Mask; BATCH]>, old: impl Fn() -> L) -> L {
        let mut new = self.machine.real(k)[i];
        if let Some(fixed) = fixed {
            new = L::select(fixed[i], old(), new);
        }
        if self.kernel.kinds[k] == Kind::Real {
            self.probe += new * L::lit(0.0);
        }
        new
    }
}

/// Real `k` of the vertices of a group in a table.
#[inline(always)]
fn row<L: Lanes>(table: &[L::Scalar], group: usize, stride: usize, k: usize) -> L {
    let rows = &table[group * L::WIDTH * stride..][..L::WIDTH * stride];
    if stride == 1 { L::load(rows) } else { L::from_fn(|lane| rows[lane * stride + k]) }
}

#[inline(always)]
fn store_row<L: Lanes>(new: L, table: &mut [L::Scalar], group: usize, stride: usize, k: usize) {
    let rows = &mut table[group * L::WIDTH * stride..][..L::WIDTH * stride];
    if stride == 1 {
        return new.store(rows);
    }
    let mut lanes = [L::Scalar::from_f64(0.0); 16];
    new.store(&mut lanes);
    (0..L::WIDTH).for_each(|lane| rows[lane * stride + k] = lanes[lane]);
}

/// Runs a kernel on one vertex of a tile of rows.
fn look<'a, T: Number>(
    kernel: &'a Taped,
    machine: &mut Machine<'a, T, 1>,
    visit: &Visit<T>,
    tile: &Tile,
    i: usize,
    stars: &[OpenEll<u32, T>],
) {
    let (cells, slot): (Cells<T>, _) = (visit.cells, tile.own().start + i);
    let vertex = hold(tile.numbers(slot..slot + 1).first().copied().unwrap_or(0));
    let row = Row { row: i, stars, changing: &[], leaf: |i| cells.leaf(i, kernel.shared.1) };
    machine.visit(&Single { row, own: |k| cells.look_real(slot, k), shared: kernel.shared, vertex });
}

/// Updates vertices one by one.
fn update_rows<T: Number>(
    kernel: &Taped,
    visit: &Visit<T>,
    tile: &Tile,
    vertices: usize,
    stars: &[OpenEll<u32, T>],
) -> bool {
    let (cells, own) = (visit.cells, tile.own());
    let mut machine = Machine::new(&kernel.listing, visit.uniform, visit.round, |x| x);
    let (mut finite, mut reals) = (true, Vec::with_capacity(kernel.kinds.len()));
    for i in 0..vertices {
        let i = if visit.rule == Rule::Backward { vertices - 1 - i } else { i };
        let slot = own.start + i;
        visit.before(&Turn::whole(slot..slot + 1));
        cells.begin(slot..slot + 1);
        look(kernel, &mut machine, visit, tile, i, stars);
        let is_fixed = tile.fixed(slot..slot + 1).is_some();
        let real = |k| if is_fixed { cells.look_real(slot, k) } else { machine.real(k)[0] };
        reals.clear();
        reals.extend((0..kernel.kinds.len()).map(real));
        finite &= kernel.are_finite(&reals);
        let padding = if i + 1 == vertices { slot + 1..own.end } else { 0..0 };
        cells.store_reals(slot, padding, &reals);
        visit.after(&Turn::whole(slot..slot + 1));
    }
    finite
}
