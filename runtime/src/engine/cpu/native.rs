//! What a thread does with a tile where the kernel is machine code. See [`tile`](super::tile), which does the same with a compiled one.
//!
//! The machine code reads and writes the state as [`Cells`](super::cells) would, under the same rules; what it reads by is asserted here.

#![expect(unsafe_code, reason = "machine code reads and writes state that a verified schedule keeps apart")]

use super::table;
use super::tile::{AHEAD, Turn, Visit};
use crate::engine::native::{Frame, Native, StarFrame};
use crate::engine::taped::Taped;
use crate::layout::{Ell, Form, OpenEll, Tile};
use crate::number::lanes::TABLE;
use crate::number::{Lanes, Number};
use bytemuck::Pod;
use meshweft_schedule::Rule;
use std::ops::Range;
use std::ptr::{null, null_mut};

/// Updates the vertices of a tile. Tells whether all came out finite; none if the kernel is no machine code.
pub(super) fn update<T: Number, L: Lanes<Scalar = T>>(kernel: &Taped, visit: &Visit<T>, tile: &Tile) -> Option<bool> {
    let (cells, own, stride) = (visit.cells, tile.own(), kernel.shared.1);
    match &tile.form {
        Form::Rows { .. } => None,
        Form::Spread { stars } => {
            let code = kernel.native::<T, L>(size_of::<u32>())?;
            let opened = Ell::open(stars);
            let stars = opened.stars();
            let [source, target, _] = cells.places(own.clone());
            let table = known(visit, stars);
            cells.begin(own.clone());
            let work = Work { code, visit, tile, stars, table, shared: source, to_shared: target, values: null_mut() };
            let is_finite = work.run::<L>(own.len() / L::WIDTH);
            cells.end(own);
            Some(is_finite)
        }
        Form::Wide { halo, stars } => {
            let code = kernel.native::<T, L>(size_of::<u16>())?;
            table::with(&table::TILE, TABLE * stride, |table| {
                let opened = Ell::open(stars);
                cells.fetch(own.clone(), halo, stride, table);
                let [_, target, _] = cells.places(own.clone());
                let names = table.as_mut_ptr();
                let to_shared = if visit.rule == Rule::AtOnce { target } else { names };
                let (stars, values) = (opened.stars(), null_mut());
                let work = Work { code, visit, tile, stars, table: names, shared: names, to_shared, values };
                let is_finite = work.run::<L>(own.len() / L::WIDTH);
                cells.release(own.clone(), stride, table);
                Some(is_finite)
            })
        }
    }
}

/// Updates the vertices of a tile by a map: none reads another.
pub(super) fn map<T: Number, L: Lanes<Scalar = T>>(kernel: &Taped, visit: &Visit<T>, tile: &Tile) -> Option<bool> {
    if visit.domain.width == 1 {
        return None;
    }
    let code = kernel.native::<T, L>(size_of::<u32>())?;
    let (own, stars): (_, &[OpenEll<u32, T>]) = (tile.own(), &[]);
    let [shared, to_shared, _] = visit.cells.places(own.clone());
    let work = Work { code, visit, tile, stars, table: null(), shared, to_shared, values: null_mut() };
    Some(work.run::<L>(own.len() / L::WIDTH))
}

/// Measures the vertices of a tile.
pub(super) fn measure<T: Number, L: Lanes<Scalar = T>>(
    kernel: &Taped,
    visit: &Visit<T>,
    tile: &Tile,
    values: &mut [T],
) -> Option<()> {
    let (cells, own, stride) = (visit.cells, tile.own(), kernel.shared.1);
    let [shared, to_shared, _] = cells.places(own.clone());
    let groups = (values.len() / L::WIDTH).min(own.len() / L::WIDTH);
    let values = values.as_mut_ptr();
    match &tile.form {
        Form::Rows { .. } => return None,
        Form::Spread { stars } => {
            let code = kernel.native::<T, L>(size_of::<u32>())?;
            let opened = Ell::open(visit.seen(stars));
            let (stars, table) = (opened.stars(), known(visit, opened.stars()));
            Work { code, visit, tile, stars, table, shared, to_shared, values }.run::<L>(groups);
        }
        Form::Wide { halo, stars } => {
            let code = kernel.native::<T, L>(size_of::<u16>())?;
            let opened = Ell::open(visit.seen(stars));
            let stars = opened.stars();
            if code.needs.stars.is_empty() {
                Work { code, visit, tile, stars, table: null(), shared, to_shared, values }.run::<L>(groups);
                return Some(());
            }
            table::with(&table::TILE, TABLE * stride, |table| {
                cells.gather(own.clone(), halo, stride, table);
                let table = table.as_ptr();
                Work { code, visit, tile, stars, table, shared, to_shared, values }.run::<L>(groups);
            });
        }
    }
    Some(())
}

/// The shared state by slots, in which all names of others lie.
fn known<T: Number>(visit: &Visit<T>, stars: &[OpenEll<u32, T>]) -> *const T {
    let end = visit.cells.len();
    // One comparison for all, or the compiler would make a branch of each.
    let are_known = |star: &OpenEll<u32, T>| star.others.iter().fold(true, |all, &slot| all & ((slot as usize) < end));
    assert!(stars.iter().all(are_known), "a neighbor has a slot");
    visit.cells.places(0..0)[0]
}

struct Work<'a, T, N> {
    code: &'a Native,
    visit: &'a Visit<'a, T>,
    tile: &'a Tile,
    stars: &'a [OpenEll<'a, N, T>],
    table: *const T,
    shared: *const T,
    to_shared: *mut T,
    values: *mut T,
}

impl<T: Number, N: Pod> Work<'_, T, N> {
    /// Runs it on the first groups of the tile. Tells whether all came out finite.
    fn run<L: Lanes<Scalar = T>>(&self, groups: usize) -> bool {
        let Work { visit, tile, .. } = *self;
        let (own, uniform, needs) = (tile.own(), visit.uniform, &self.code.needs);
        assert!(uniform.parameters.len() >= needs.parameters && uniform.globals.len() >= needs.globals);
        let stars = self.star_frames::<L>(groups);
        let counters = uniform.counters(visit.round);
        let mut probe = [T::from_f64(0.0); 4];
        let numbers = tile.numbers(own.clone());
        let zeros = vec![0; if needs.numbers && numbers.is_empty() { own.len() } else { 0 }];
        let numbers = if numbers.is_empty() { &zeros } else { numbers };
        let [_, _, private] = visit.cells.places(own.clone());
        let frame = Frame {
            parameters: uniform.parameters.as_ptr().cast(),
            globals: uniform.globals.as_ptr().cast(),
            settings: uniform.settings.as_ptr().cast(),
            counters: counters.as_ptr().cast(),
            table: self.table.cast(),
            stars: stars.as_ptr(),
            shared: self.shared.cast(),
            to_shared: self.to_shared.cast(),
            private: private.cast_const().cast(),
            to_private: private.cast(),
            probe: probe.as_mut_ptr().cast(),
            values: self.values.cast(),
            numbers: numbers.as_ptr(),
            fixed: tile.fixed(own.clone()).map_or(null(), <[bool]>::as_ptr),
        };
        // One by one where somebody watches the order.
        let step = if visit.audit.is_some() { 1 } else { AHEAD };
        let backward = visit.rule == Rule::Backward;
        for i in (0..groups).step_by(step) {
            let some = i..groups.min(i + step);
            let some = if backward { groups - some.end..groups - some.start } else { some };
            self.prefetch::<L>(if backward { 0..0 } else { some.end..groups.min(some.end + step) });
            let slots = own.start + some.start * L::WIDTH..own.start + some.end * L::WIDTH;
            visit.before(&Turn::whole(slots.clone()));
            let (first, sign) = if backward { (some.end - 1, -1) } else { (some.start, 1) };
            // SAFETY: the lists of stars were asserted to be long enough, names lie in the table (sixteen bits of it, or slots that were
            // asserted), own places are those of the tile, and who reads and writes them when is as for `Cells`.
            unsafe { self.code.run(&frame, first, some.len(), sign) };
            visit.after(&Turn::whole(slots));
        }
        probe.iter().all(|x| *x == T::from_f64(0.0))
    }

    /// The lists of all stars, which are as long as what is looked at.
    fn star_frames<L: Lanes>(&self, groups: usize) -> Vec<StarFrame> {
        let needs = &self.code.needs.stars;
        assert!(self.stars.len() >= needs.len(), "a measure looks at stars that it did not look at on symbols");
        let frame = |(star, need): (&OpenEll<N, T>, &Option<(usize, usize)>)| {
            if let &Some((others, reals)) = need {
                assert!(star.shape.0 == others && star.shape.1 >= reals, "a star was added with other elements");
                let columns = star.columns[groups] as usize * L::WIDTH;
                let are_there = star.full.len() >= groups && star.degrees.len() >= groups * L::WIDTH;
                assert!(
                    are_there && star.others.len() >= columns * others && star.data.len() >= columns * star.shape.1
                );
                debug_assert!(star.columns.is_sorted());
            }
            StarFrame {
                columns: star.columns.as_ptr(),
                full: star.full.as_ptr(),
                degrees: star.degrees.as_ptr(),
                others: star.others.as_ptr().cast(),
                data: star.data.as_ptr().cast(),
                data_step: (star.shape.1 * L::WIDTH * size_of::<T>()) as u64,
            }
        };
        self.stars.iter().zip(needs).map(frame).collect()
    }

    /// Asks for what some groups read.
    fn prefetch<L: Lanes>(&self, groups: Range<usize>) {
        let first = self.tile.own().start / L::WIDTH;
        for group in groups {
            self.visit.prefetch_stars(self.stars, group, L::WIDTH);
            let cells = self.visit.cells;
            cells.prefetch_private(first + group, cells.privates(), self.visit.touches);
        }
    }
}
