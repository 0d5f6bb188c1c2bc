//! The threads of this machine.

use super::cells::Cells;
use super::{Audit, Engine, Job, all_finite, reduce, table, tasks};
use crate::error::{Error, Result};
use crate::layout::{Kind, Layout, Row, Tile, WideRows, gather_rows, scatter_rows, shared_stride};
use crate::program::lanes::TABLE;
use crate::program::{Kernel, Lanes, Map, Number, PrivateOf, Program, Record, Reduce, SharedOf, splat};
use crate::schedule::Plan;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Groups that a thread takes at a time where no neighbors are read.
const GROUPS: usize = 64;
/// Groups whose rows are fetched ahead while one is updated, some ten kilobytes: measured, docs/perf/notes.md.
const AHEAD: usize = 8;

/// Walks schedules on a pool of threads of its own.
pub(crate) struct Cpu {
    pool: ThreadPool,
    /// How often a worker yields while it waits for another.
    yields: u32,
}

impl Cpu {
    /// A pool of `threads`; 0 takes one for each core.
    pub(crate) fn new(threads: usize) -> Result<Cpu> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("meshweft-{i}"))
            .build()
            .map_err(|e| Error::Invalid(format!("cannot start {threads} threads: {e}")))?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let yields = if pool.current_num_threads() > cores { 0 } else { tasks::YIELDS };
        Ok(Cpu { pool, yields })
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Works through `range`, on all threads if there is enough of it. Not generic: programs have dozens of kernels, and each would
    /// bring its own copy of the thread pool's code.
    fn each(&self, range: Range<usize>, work: &(dyn Fn(usize) + Sync)) {
        if range.len() == 1 || self.threads() == 1 {
            range.for_each(work);
        } else {
            self.pool.install(|| range.into_par_iter().for_each(work));
        }
    }

    /// Works through one range after the other.
    fn each_in_turn(&self, ranges: &mut (dyn Iterator<Item = Range<usize>> + Send), work: &(dyn Fn(usize) + Sync)) {
        // All from inside the pool: to enter it for each range would wake a thread each time.
        self.pool.install(|| ranges.for_each(|range| self.each(range, work)));
    }

    /// Works through a list; not generic in its work, as `each`.
    fn each_of<A: Send>(&self, list: Vec<A>, work: &(dyn Fn(A) + Sync)) {
        self.pool.install(|| list.into_par_iter().for_each(work));
    }

    /// `value(i)` for all `i` below `count`.
    fn collect(&self, count: usize, value: &(dyn Fn(usize) -> f64 + Sync)) -> Vec<f64> {
        self.pool.install(|| (0..count).into_par_iter().map(value).collect())
    }

    fn map_lanes<P: Program, T: Number, K: Map<P>, L: Lanes<Scalar = T>>(&self, job: &mut Job<P, T>) {
        let finite = AtomicBool::new(true);
        let parameters: P::Parameters<L> = splat(job.parameters);
        let groups = job.layout.slots() / L::WIDTH;
        let cells = Cells::in_place(job.state);
        self.each(0..groups.div_ceil(GROUPS), &|chunk| {
            let mut probe = L::lit(0.0);
            for group in chunk * GROUPS..groups.min((chunk + 1) * GROUPS) {
                let (shared, private) = (cells.load_shared::<L, _>(group), cells.load_private::<L, _>(group));
                let (shared, private) = K::update(&parameters, shared, private);
                probe = probe + spoilt(&shared) + spoilt(&private);
                cells.store_private::<L, _>(group, private);
                cells.store_shared::<L, _>(group, shared);
            }
            if !probe.is_zero() {
                finite.store(false, Ordering::Relaxed);
            }
        });
        job.finite &= finite.into_inner();
    }

    fn sweep_lanes<P: Program, T: Number, K: Kernel<P>, L: Lanes<Scalar = T>>(
        &self,
        job: &mut Job<P, T>,
        rounds: usize,
    ) {
        let layout = job.layout;
        let walk = Walk::<P, T, L>::new(job, Cells::in_place);
        match layout.schedule.plan() {
            Plan::Phases { offsets } => {
                let phases = (0..rounds).flat_map(|_| 1..offsets.len());
                let mut tiles = phases.map(|phase| layout.tiles_of(phase - 1..phase));
                self.each_in_turn(&mut tiles, &|tile| walk.tile::<K, true>(&layout.tiles[tile]));
            }
            Plan::Tasks { graph, .. } => tasks::run(&self.pool, self.yields, graph, rounds, &|task| {
                layout.tiles[layout.tiles_of(task..task + 1)].iter().for_each(|tile| walk.tile::<K, true>(tile));
            }),
        }
        let finite = walk.finite.into_inner();
        job.finite &= finite;
    }

    fn jacobi_lanes<P: Program, T: Number, K: Kernel<P>, L: Lanes<Scalar = T>>(
        &self,
        job: &mut Job<P, T>,
        rounds: usize,
    ) {
        job.state.next.resize(job.state.shared.len(), T::from_f64(0.0));
        let layout = job.layout;
        for _ in 0..rounds {
            let walk = Walk::<P, T, L>::new(job, Cells::double_buffered);
            self.each(0..layout.tiles.len(), &|tile| walk.tile::<K, false>(&layout.tiles[tile]));
            let finite = walk.finite.into_inner();
            let state = &mut *job.state;
            std::mem::swap(&mut state.shared, &mut state.next);
            job.finite &= finite;
        }
    }

    fn measure_lanes<P: Program, T: Number, K: Reduce<P>, L: Lanes<Scalar = T>>(&self, job: &Job<P, T>) -> f64 {
        let (layout, state) = (job.layout, &*job.state);
        let wide: P::Parameters<L> = splat(job.parameters);
        let stride = shared_stride(<SharedOf<P, T>>::LEN);
        let mut values = vec![T::from_f64(0.0); layout.slots()];
        // Tiles cover all slots in order, so each fills its own piece.
        let mut rest = &mut values[..];
        let pieces: Vec<(&Tile, &mut [T])> = layout
            .tiles
            .iter()
            .map(|tile| {
                let (piece, others) = std::mem::take(&mut rest).split_at_mut(layout.own(tile).len());
                rest = others;
                (tile, piece)
            })
            .collect();
        self.each_of(pieces, &|(tile, values)| match &tile.kind {
            Kind::Rows { first_row, vertices } => {
                for i in 0..*vertices as usize {
                    let slot = layout.own(tile).start + i;
                    let row =
                        Row { row: *first_row as usize + i, stars: &layout.rows, leaf: |i: usize| state.shared[i] };
                    values[i] = K::measure(&job.parameters, state.shared(slot), state.private(slot), &row);
                }
            }
            Kind::Wide { halo } => table::with(TABLE * stride, |table| {
                let own = layout.own(tile);
                let halo = &layout.halo[halo.start as usize..halo.end as usize];
                let (first, rest) = table.split_at_mut(own.len() * stride);
                first.copy_from_slice(&state.shared[own.start * stride..own.end * stride]);
                for (&slot, place) in halo.iter().zip(rest.chunks_exact_mut(stride.max(1))) {
                    place[..stride].copy_from_slice(&state.shared[slot as usize * stride..][..stride]);
                }
                let table = &*table;
                for (i, values) in values.chunks_exact_mut(L::WIDTH).enumerate() {
                    let group = tile.groups.start as usize + i;
                    let shared = gather_rows::<L, SharedOf<P, L>>(&table[i * L::WIDTH * stride..]);
                    let first = group * L::WIDTH * <PrivateOf<P, T>>::LEN;
                    let private = <PrivateOf<P, L>>::build(|k| L::load(&state.private[first + k * L::WIDTH..]));
                    let row = WideRows { group, stars: &layout.wide, table, lanes: PhantomData::<L> };
                    K::measure(&wide, shared, private, &row).store(values);
                }
            }),
        });
        reduce::tree(K::COMBINE, layout, &|slot| values[slot].to_f64(), &|leaves, leaf| self.collect(leaves, leaf))
    }
}

/// Calls a method for the width of the layout. A layout of rows alone takes any width: it is never asked for.
macro_rules! by_width {
    ($self:ident, $job:ident, $method:ident::<$program:ident, $float:ident, $kernel:ident>($($argument:expr),*)) => {
        if $job.layout.width == <$float as Number>::Full::WIDTH {
            $self.$method::<$program, $float, $kernel, <$float as Number>::Full>($($argument),*)
        } else {
            $self.$method::<$program, $float, $kernel, <$float as Number>::Half>($($argument),*)
        }
    };
}

impl Engine for Cpu {
    fn map<P: Program, T: Number, K: Map<P>>(&self, job: &mut Job<P, T>) {
        if job.layout.width > 1 {
            return by_width!(self, job, map_lanes::<P, T, K>(job));
        }
        let finite = AtomicBool::new(true);
        let (len, parameters) = (job.state.len, job.parameters);
        let cells = Cells::in_place(job.state);
        self.each(0..len.div_ceil(GROUPS), &|chunk| {
            let mut all = true;
            for slot in chunk * GROUPS..len.min((chunk + 1) * GROUPS) {
                let (shared, private) = cells.load(slot);
                let (shared, private) = K::update(&parameters, shared, private);
                all &= all_finite(&shared) & all_finite(&private);
                cells.store(slot, 0..0, shared, private);
            }
            if !all {
                finite.store(false, Ordering::Relaxed);
            }
        });
        job.finite &= finite.into_inner();
    }

    fn sweep<P: Program, T: Number, K: Kernel<P>>(&self, job: &mut Job<P, T>, rounds: usize) {
        if job.layout.schedule.is_double_buffered() {
            return self.jacobi::<P, T, K>(job, rounds);
        }
        by_width!(self, job, sweep_lanes::<P, T, K>(job, rounds));
    }

    fn jacobi<P: Program, T: Number, K: Kernel<P>>(&self, job: &mut Job<P, T>, rounds: usize) {
        by_width!(self, job, jacobi_lanes::<P, T, K>(job, rounds));
    }

    fn measure<P: Program, T: Number, K: Reduce<P>>(&self, job: &Job<P, T>) -> f64 {
        by_width!(self, job, measure_lanes::<P, T, K>(job))
    }
}

/// Zero in each lane whose numbers are all finite, no number in the others.
#[inline(always)]
fn spoilt<L: Lanes, A: Record<L>>(record: &A) -> L {
    let mut probe = L::lit(0.0);
    record.each(|_, x| probe += x * L::lit(0.0));
    probe
}

/// What updating the tiles of a layout needs.
struct Walk<'a, P: Program, T: Number, L: Lanes<Scalar = T>> {
    layout: &'a Layout<T>,
    cells: Cells<'a, T>,
    audit: Option<&'a Audit>,
    parameters: P::Parameters<T>,
    wide: P::Parameters<L>,
    finite: AtomicBool,
}

impl<'a, P: Program, T: Number, L: Lanes<Scalar = T>> Walk<'a, P, T, L> {
    fn new<'j: 'a>(
        job: &'a mut Job<'j, P, T>,
        open: impl FnOnce(&'a mut crate::layout::State<T>) -> Cells<'a, T>,
    ) -> Self {
        Walk {
            layout: job.layout,
            audit: job.audit,
            parameters: job.parameters,
            wide: splat(job.parameters),
            cells: open(job.state),
            finite: AtomicBool::new(true),
        }
    }

    /// Updates the vertices of a tile; `IN_PLACE` or double-buffered.
    #[inline(always)]
    fn tile<K: Kernel<P>, const IN_PLACE: bool>(&self, tile: &Tile) {
        let finite = match &tile.kind {
            Kind::Wide { halo } => self.wide_tile::<K, IN_PLACE>(tile, halo),
            Kind::Rows { first_row, vertices } => {
                self.rows_tile::<K, IN_PLACE>(tile, *first_row as usize, *vertices as usize)
            }
        };
        if !finite {
            self.finite.store(false, Ordering::Relaxed);
        }
    }

    #[inline(never)]
    fn rows_tile<K: Kernel<P>, const IN_PLACE: bool>(&self, tile: &Tile, first_row: usize, vertices: usize) -> bool {
        let stride = shared_stride(<SharedOf<P, T>>::LEN);
        let own = self.layout.own(tile);
        let mut finite = true;
        for i in 0..vertices {
            let slot = own.start + i;
            self.watch_before::<IN_PLACE>(slot..slot + 1);
            let (shared, private) = self.cells.load(slot);
            let leaf = |i| self.cells.leaf(i, stride);
            let row = Row { row: first_row + i, stars: &self.layout.rows, leaf };
            let (shared, private) = K::update(&self.parameters, shared, private, &row);
            finite &= all_finite(&shared) & all_finite(&private);
            let clones = if i + 1 == vertices { slot + 1..own.end } else { 0..0 };
            self.cells.store(slot, clones, shared, private);
            self.watch_after::<IN_PLACE>(slot..slot + 1);
        }
        finite
    }

    #[inline(never)]
    fn wide_tile<K: Kernel<P>, const IN_PLACE: bool>(&self, tile: &Tile, halo: &Range<u32>) -> bool {
        let layout = self.layout;
        let own = layout.own(tile);
        let halo = &layout.halo[halo.start as usize..halo.end as usize];
        table::with(TABLE * shared_stride(<SharedOf<P, T>>::LEN), |table| {
            self.cells.fetch::<SharedOf<P, T>>(own.clone(), halo, table);
            let mut probe = L::lit(0.0);
            for group in tile.groups.start as usize..tile.groups.end as usize {
                layout.wide.iter().for_each(|star| star.prefetch(group + AHEAD, L::WIDTH));
                self.cells.prefetch_private(group + AHEAD, <PrivateOf<P, T>>::LEN);
                let first = group * L::WIDTH;
                self.watch_before::<IN_PLACE>(first..first + L::WIDTH);
                let stride = shared_stride(<SharedOf<P, T>>::LEN);
                let at = (first - own.start) * stride..(first + L::WIDTH - own.start) * stride;
                let shared = gather_rows::<L, SharedOf<P, L>>(&table[at.clone()]);
                let private = self.cells.load_private::<L, PrivateOf<P, L>>(group);
                let row = WideRows { group, stars: &layout.wide, table: &*table, lanes: PhantomData::<L> };
                let (shared, private) = K::update(&self.wide, shared, private, &row);
                probe = probe + spoilt(&shared) + spoilt(&private);
                // Private state first, right after it was read: what did not change is then not written at all.
                self.cells.store_private::<L, _>(group, private);
                if IN_PLACE {
                    scatter_rows::<L, _>(shared, &mut table[at]);
                } else {
                    self.cells.store_shared::<L, _>(group, shared);
                }
                self.watch_after::<IN_PLACE>(first..first + L::WIDTH);
            }
            self.cells.release::<SharedOf<P, T>>(own.clone(), table);
            probe.is_zero()
        })
    }

    /// Places of the vertices in some slots; clones do not count.
    fn places(&self, slots: Range<usize>) -> impl Iterator<Item = usize> + Clone {
        let places = slots.map(|slot| self.layout.place(slot));
        let before = std::iter::once(usize::MAX).chain(places.clone());
        places.zip(before).filter(|(own, before)| own != before).map(|(own, _)| own)
    }

    #[inline(always)]
    fn watch_before<const IN_PLACE: bool>(&self, slots: Range<usize>) {
        if IN_PLACE && let Some(audit) = self.audit {
            audit.before(self.places(slots));
        }
    }

    #[inline(always)]
    fn watch_after<const IN_PLACE: bool>(&self, slots: Range<usize>) {
        match self.audit {
            Some(audit) if IN_PLACE => audit.after(self.places(slots)),
            Some(audit) => self.places(slots).for_each(|place| audit.count(place)),
            None => (),
        }
    }
}
