//! What a thread does with a tile where the kernel is a tape. See [`tile`](super::tile), which does the same with a compiled one.
//!
//! An operation of a tape is done for [`BATCH`] groups at once where so many are independent of each other: those of a run of the
//! schedule, and all where nobody reads what is written.

use super::cells::Cells;
use super::table;
use super::tile::Visit;
use crate::engine::taped::{Groups, Machine, Single, Taped};
use crate::layout::{Ell, Form, Lookup, OpenEll, Row, Tile, WideRows};
use crate::number::lanes::TABLE;
use crate::number::{Kind, Lanes, Number};
use crate::program::hold;
use meshweft_schedule::Rule;
use std::array;
use std::cell::LazyCell;
use std::marker::PhantomData;
use std::ops::Range;

/// Groups at once, at most: with 16 lanes 64 vertices an operation. See `docs/perf/decisions/tapes.md`.
const BATCH: usize = 4;

/// Updates the vertices of a tile. Tells whether all came out finite.
pub(in crate::engine) fn update<T: Number, L: Lanes<Scalar = T>>(
    kernel: &Taped,
    visit: &Visit<T>,
    tile: &Tile,
) -> bool {
    let (cells, own, stride) = (visit.cells, tile.own(), kernel.shared.1);
    match &tile.form {
        Form::Rows { vertices, stars } => {
            let opened = Ell::open(stars);
            update_rows(kernel, visit, tile, *vertices as usize, opened.stars())
        }
        Form::Spread { stars } => {
            let opened = Ell::open(stars);
            in_batches::<L>(kernel, visit, tile, &mut |batch| {
                let slots = batch.slots(tile);
                cells.begin(slots.clone());
                batch.update_here(visit, tile, opened.stars());
                cells.end(slots);
            })
        }
        Form::Wide { halo, stars } => table::with(&table::TILE, TABLE * stride, |table| {
            let opened = Ell::open(stars);
            cells.fetch(own.clone(), halo, stride, table);
            let is_finite = in_batches::<L>(kernel, visit, tile, &mut |batch| {
                batch.update_in_table(visit, tile, opened.stars(), table);
            });
            cells.release(own.clone(), stride, table);
            is_finite
        }),
    }
}

/// Updates the vertices of a tile by a map: none reads another.
pub(in crate::engine) fn map<T: Number, L: Lanes<Scalar = T>>(kernel: &Taped, visit: &Visit<T>, tile: &Tile) -> bool {
    if visit.domain.width == 1 {
        return update_rows(kernel, visit, tile, tile.own().len(), &[]);
    }
    in_batches::<L>(kernel, visit, tile, &mut |batch| batch.update_here(visit, tile, &[]))
}

/// Measures the vertices of a tile. `values`: one for each of its slots; what is left over is not written.
pub(in crate::engine) fn measure<T: Number, L: Lanes<Scalar = T>>(
    kernel: &Taped,
    visit: &Visit<T>,
    tile: &Tile,
    values: &mut [T],
) {
    let (cells, own, stride) = (visit.cells, tile.own(), kernel.shared.1);
    match &tile.form {
        Form::Rows { vertices, stars } => {
            let opened = Ell::open(visit.seen(stars));
            let mut machine = Machine::new(&kernel.listing, visit.uniform, visit.round, |x| x);
            for (i, value) in values[..*vertices as usize].iter_mut().enumerate() {
                look(kernel, &mut machine, visit, tile, i, opened.stars());
                [*value] = machine.output(0);
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
    let mut work = Work::<L, 1>::new(kernel, visit);
    for (group, values) in values.chunks_exact_mut(L::WIDTH).enumerate() {
        work.group = group;
        work.run(tile, opened.stars(), lookup, &|_, k| visit.cells.load_real(first + group, k));
        work.machine.output(0)[0].store(values);
    }
}

/// Some groups of a tile that are updated at once.
trait Batch<L: Lanes> {
    /// Their slots.
    fn slots(&self, tile: &Tile) -> Range<usize>;
    /// Updates them where they are.
    fn update_here(&mut self, visit: &Visit<L::Scalar>, tile: &Tile, stars: &[OpenEll<u32, L::Scalar>]);
    /// Updates them in a table of the tile and its halo.
    fn update_in_table(
        &mut self,
        visit: &Visit<L::Scalar>,
        tile: &Tile,
        stars: &[OpenEll<u16, L::Scalar>],
        table: &mut [L::Scalar],
    );
}

/// Updates a tile, several groups at once where none reads another. Tells whether all came out finite.
fn in_batches<L: Lanes>(
    kernel: &Taped,
    visit: &Visit<L::Scalar>,
    tile: &Tile,
    update: &mut dyn FnMut(&mut dyn Batch<L>),
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
    let mut many = Work::<L, BATCH>::new(kernel, visit);
    let mut single = Work::<L, 1>::new(kernel, visit);
    for batch in batches {
        let slots = own.start + batch.start * L::WIDTH..own.start + batch.end * L::WIDTH;
        visit.before(slots.clone());
        if batch.len() == BATCH {
            many.group = batch.start;
            update(&mut many);
        } else {
            for group in batch {
                single.group = group;
                update(&mut single);
            }
        }
        visit.after(slots);
    }
    (many.probe + single.probe).is_zero()
}

/// Runs a kernel on some groups of a tile at once.
struct Work<'a, L: Lanes, const B: usize> {
    kernel: &'a Taped,
    machine: Machine<'a, L, B>,
    /// The first of them.
    group: usize,
    /// Their new reals, shared ones first.
    new: Vec<[L; B]>,
    /// Zero as long as all that was updated is finite.
    probe: L,
}

impl<'a, L: Lanes, const B: usize> Work<'a, L, B> {
    fn new(kernel: &'a Taped, visit: &Visit<L::Scalar>) -> Work<'a, L, B> {
        let splat = |x| L::from_fn(|_| x);
        let machine = Machine::new(&kernel.listing, visit.uniform, visit.round, splat);
        Work { kernel, machine, group: 0, new: Vec::with_capacity(kernel.kinds.len()), probe: L::lit(0.0) }
    }

    /// Runs it. `own`: real `k` of the `i`-th group, shared ones first.
    fn run<U: Lookup<L> + Copy>(
        &mut self,
        tile: &Tile,
        stars: &[OpenEll<U::Name, L::Scalar>],
        lookup: U,
        own: &impl Fn(usize, usize) -> L,
    ) {
        let vertex = |i: usize| {
            let first = tile.own().start + (self.group + i) * L::WIDTH;
            let numbers = tile.numbers(first..first + L::WIDTH);
            if numbers.is_empty() { L::lit(0.0) } else { L::from_fn(|lane| hold(numbers[lane])) }
        };
        let rows = array::from_fn(|i| WideRows { group: self.group + i, stars, lookup, lanes: PhantomData::<L> });
        self.machine.visit(&Groups { rows, own, shared: self.kernel.shared, vertex: array::from_fn(vertex) });
    }

    /// The same; then [`Work::new`] has the new state, or the old one in the lanes of vertices that are fixed.
    fn update<U: Lookup<L> + Copy>(
        &mut self,
        tile: &Tile,
        stars: &[OpenEll<U::Name, L::Scalar>],
        lookup: U,
        own: impl Fn(usize, usize) -> L,
    ) {
        self.run(tile, stars, lookup, &own);
        self.new.clear();
        self.new.extend((0..self.kernel.kinds.len()).map(|k| self.machine.output(k)));
        for i in 0..B {
            let first = tile.own().start + (self.group + i) * L::WIDTH;
            let Some(fixed) = tile.fixed(first..first + L::WIDTH) else { continue };
            let is_fixed = |lane: usize| L::Scalar::from_f64(f64::from(u8::from(fixed[lane])));
            let is_fixed = L::lit(0.0).less(L::from_fn(is_fixed));
            self.new.iter_mut().enumerate().for_each(|(k, new)| new[i] = L::select(is_fixed, own(i, k), new[i]));
        }
        for (new, &kind) in self.new.iter().zip(&self.kernel.kinds) {
            if kind == Kind::Real {
                new.iter().for_each(|&x| self.probe += x * L::lit(0.0));
            }
        }
    }
}

impl<L: Lanes, const B: usize> Batch<L> for Work<'_, L, B> {
    fn slots(&self, tile: &Tile) -> Range<usize> {
        let first = tile.own().start + self.group * L::WIDTH;
        first..first + B * L::WIDTH
    }

    fn update_here(&mut self, visit: &Visit<L::Scalar>, tile: &Tile, stars: &[OpenEll<u32, L::Scalar>]) {
        let (cells, first) = (visit.cells, tile.own().start / L::WIDTH + self.group);
        self.update(tile, stars, cells, |i, k| cells.load_real(first + i, k));
        for (k, new) in self.new.iter().enumerate() {
            new.iter().enumerate().for_each(|(i, &x)| cells.store_real(first + i, k, x));
        }
    }

    fn update_in_table(
        &mut self,
        visit: &Visit<L::Scalar>,
        tile: &Tile,
        stars: &[OpenEll<u16, L::Scalar>],
        table: &mut [L::Scalar],
    ) {
        let (cells, (shared, stride)) = (visit.cells, self.kernel.shared);
        let (first, place) = (tile.own().start / L::WIDTH + self.group, self.group * L::WIDTH * stride);
        let at = move |i: usize, lane: usize, k: usize| place + (i * L::WIDTH + lane) * stride + k;
        let old: &[L::Scalar] = table;
        self.update(tile, stars, old, |i, k| match k < shared {
            true => L::from_fn(|lane| old[at(i, lane, k)]),
            false => cells.load_real(first + i, k),
        });
        let in_table = if visit.rule == Rule::AtOnce { 0 } else { shared };
        for (k, new) in self.new.iter().enumerate() {
            for (i, &x) in new.iter().enumerate() {
                if k < in_table {
                    let mut lanes = [L::Scalar::from_f64(0.0); 16];
                    x.store(&mut lanes);
                    (0..L::WIDTH).for_each(|lane| table[at(i, lane, k)] = lanes[lane]);
                } else {
                    cells.store_real(first + i, k, x);
                }
            }
        }
    }
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
    let row = Row { row: i, stars, leaf: |i| cells.leaf(i, kernel.shared.1) };
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
        visit.before(slot..slot + 1);
        cells.begin(slot..slot + 1);
        look(kernel, &mut machine, visit, tile, i, stars);
        let is_fixed = tile.fixed(slot..slot + 1).is_some();
        let real = |k| if is_fixed { cells.look_real(slot, k) } else { machine.output(k)[0] };
        reals.clear();
        reals.extend((0..kernel.kinds.len()).map(real));
        finite &= kernel.are_finite(&reals);
        let padding = if i + 1 == vertices { slot + 1..own.end } else { 0..0 };
        cells.store_reals(slot, padding, &reals);
        visit.after(slot..slot + 1);
    }
    finite
}
