//! What a thread does with a tile.

use super::memory::Cells;
use super::table;
use crate::engine::Audit;
use crate::engine::touches::Touches;
use crate::layout::{
    Changing, Domain, Ell, Form, Lookup, OpenEll, Opened, Row, Tile, WideRows, gather_rows, scatter_rows, shared_stride,
};
use crate::number::lanes::TABLE;
use crate::number::{Lanes, Number};
use crate::program::{
    Given, Kernels, Kind, Map, PrivateOf, Record, Reduce, SharedOf, Uniform, Update, Vertex, VertexOf,
};
use meshweft_schedule::Rule;
use std::cell::LazyCell;
use std::marker::PhantomData;
use std::ops::Range;

/// Groups whose rows are fetched ahead while one is updated, some ten kilobytes: measured, docs/perf/decisions/prefetch.md.
pub(super) const AHEAD: usize = 8;

/// What the update of a tile reads and writes.
pub(crate) struct Visit<'a, T> {
    pub(in crate::engine) domain: &'a Domain,
    /// The state, open for the tile's task.
    pub(super) cells: Cells<'a, T>,
    /// That of vertices: another, if the tile is one of elements.
    pub(super) vertices: Cells<'a, T>,
    pub(super) uniform: &'a Uniform<T>,
    pub(super) audit: Option<&'a Audit>,
    pub(super) rule: Rule,
    /// Of the stage.
    pub(super) round: u32,
    /// What the kernel touches.
    pub(super) touches: Touches,
    /// Whether neighbors may be looked at: those of a measure that was traced to look at none may be under way.
    pub(super) sees: bool,
}

/// Updates the vertices of a tile. Tells whether all came out finite.
pub(in crate::engine) fn update<P: Kernels, T: Number, K: Update<P>, L: Lanes<Scalar = T>>(
    visit: &Visit<T>,
    tile: &Tile,
) -> bool {
    match &tile.form {
        Form::Wide { halo, stars } => update_wide::<P, T, K, L>(visit, tile, halo, stars),
        Form::Spread { stars } => update_spread::<P, T, K, L>(visit, tile, stars),
        Form::Rows { vertices, stars } => update_rows::<P, T, K>(visit, tile, *vertices as usize, stars),
    }
}

#[inline(never)]
fn update_rows<P: Kernels, T: Number, K: Update<P>>(
    visit: &Visit<T>,
    tile: &Tile,
    vertices: usize,
    stars: &[Ell<u32>],
) -> bool {
    let stride = shared_stride(<SharedOf<P, T>>::LEN);
    let (cells, own) = (visit.cells, tile.own());
    let (opened, changing) = (Ell::open(stars), Changing::open(&tile.changing));
    let stars = opened.stars();
    let mut finite = true;
    for i in 0..vertices {
        let i = if visit.rule == Rule::Backward { vertices - 1 - i } else { i };
        let slot = own.start + i;
        visit.before(&Turn::whole(slot..slot + 1));
        let (shared, private) = cells.load::<SharedOf<P, T>, PrivateOf<P, T>>(slot);
        let row = Row { row: i, stars, changing: changing.stars(), leaf: |i| cells.leaf(i, stride) };
        let (shared, private) = {
            let given = visit.given::<P>(tile, slot);
            let new = K::update(&given, Vertex::join(shared, private), &row).split();
            if tile.fixed(slot..slot + 1).is_some() { (shared, private) } else { new }
        };
        finite &= (shared.probe() + private.probe()).finite();
        let padding = if i + 1 == vertices { slot + 1..own.end } else { 0..0 };
        cells.store(slot, padding, shared, private);
        visit.after(&Turn::whole(slot..slot + 1));
    }
    finite
}

#[inline(never)]
fn update_wide<P: Kernels, T: Number, K: Update<P>, L: Lanes<Scalar = T>>(
    visit: &Visit<T>,
    tile: &Tile,
    halo: &[u32],
    stars: &[Ell<u16>],
) -> bool {
    let (cells, mut given) = (visit.cells, visit.uniform.splat::<P, L>(visit.round));
    let in_place = visit.rule != Rule::AtOnce;
    let backward = visit.rule == Rule::Backward;
    let own = tile.own();
    let (opened, changing) = (Ell::open(stars), Changing::open(&tile.changing));
    let stars = opened.stars();
    let stride = shared_stride(<SharedOf<P, T>>::LEN);
    // Neighbors in changing stars are read of the state, wherever they lie.
    let through = in_place && tile.changing.is_some();
    table::with(&table::TILE, TABLE * stride, |table| {
        cells.gather(own.clone(), halo, stride, table);
        if !through {
            cells.begin(own.clone());
        }
        let mut probe = L::lit(0.0);
        let (groups, first_group) = (own.len() / L::WIDTH, own.start / L::WIDTH);
        for i in 0..groups {
            let (group, ahead) = match backward {
                false => (i, i + AHEAD),
                true => (groups - 1 - i, (groups - 1 - i).saturating_sub(AHEAD)),
            };
            visit.prefetch_stars(stars, ahead, L::WIDTH);
            cells.prefetch_private(first_group + ahead, <PrivateOf<P, T>>::LEN, visit.touches);
            let first = own.start + group * L::WIDTH;
            let at = (first - own.start) * stride..(first + L::WIDTH - own.start) * stride;
            for turn in visit.turns(tile, first..first + L::WIDTH) {
                visit.before(&turn);
                let shared = gather_rows::<L, SharedOf<P, L>>(&table[at.clone()]);
                let private = cells.load_private::<L, PrivateOf<P, L>>(first_group + group);
                let (changing, lanes) = (changing.stars(), PhantomData::<L>);
                let which = turn.which;
                let row = WideRows { group, stars, lookup: &*table, changing, far: cells, which, lanes };
                given.visit(tile.numbers(first..first + L::WIDTH));
                let new: VertexOf<P, L> = K::update(&given, Vertex::join(shared, private), &row);
                let (shared, private) = turn.keep(tile, (shared, private), new.split());
                probe = probe + shared.probe() + visit.probe(&private);
                // Private state first, right after it was read: what did not change is then not written at all.
                cells.store_private::<L, _>(first_group + group, private);
                if in_place {
                    scatter_rows::<L, _>(shared, &mut table[at.clone()]);
                } else {
                    cells.store_shared::<L, _>(first_group + group, shared);
                }
                if through {
                    cells.begin(first..first + L::WIDTH);
                    cells.store_shared::<L, _>(first_group + group, shared);
                    cells.end(first..first + L::WIDTH);
                }
                visit.after(&turn);
            }
        }
        if !through {
            cells.release(own.clone(), stride, table);
        }
        probe.is_zero()
    })
}

#[inline(never)]
fn update_spread<P: Kernels, T: Number, K: Update<P>, L: Lanes<Scalar = T>>(
    visit: &Visit<T>,
    tile: &Tile,
    stars: &[Ell<u32>],
) -> bool {
    let (cells, mut given) = (visit.cells, visit.uniform.splat::<P, L>(visit.round));
    let own = tile.own();
    let groups = own.len() / L::WIDTH;
    let (opened, changing) = (Ell::open(stars), Changing::open(&tile.changing));
    let stars = opened.stars();
    let mut probe = L::lit(0.0);
    for i in 0..groups {
        let group = if visit.rule == Rule::Backward { groups - 1 - i } else { i };
        let first = own.start + group * L::WIDTH;
        let (slots, at) = (first..first + L::WIDTH, first / L::WIDTH);
        for turn in visit.turns(tile, slots.clone()) {
            visit.before(&turn);
            // Lanes that are left over look where others of their group do, which may be joined with one whose turn it is.
            if turn.which.is_none() {
                cells.begin(slots.clone());
            }
            let (shared, private) =
                (cells.load_shared::<L, SharedOf<P, L>>(at), cells.load_private::<L, PrivateOf<P, L>>(at));
            let (changing, lanes) = (changing.stars(), PhantomData::<L>);
            let row = WideRows { group, stars, lookup: cells, changing, far: cells, which: turn.which, lanes };
            given.visit(tile.numbers(slots.clone()));
            let new: VertexOf<P, L> = K::update(&given, Vertex::join(shared, private), &row);
            if turn.which.is_some() {
                cells.begin(slots.clone());
            }
            let (shared, private) = turn.keep(tile, (shared, private), new.split());
            probe = probe + shared.probe() + private.probe();
            cells.store_private::<L, _>(at, private);
            cells.store_shared::<L, _>(at, shared);
            cells.end(slots.clone());
            visit.after(&turn);
        }
    }
    probe.is_zero()
}

/// Updates the vertices of a tile by a map: none reads another.
pub(in crate::engine) fn map<P: Kernels, T: Number, K: Map<P>, L: Lanes<Scalar = T>>(
    visit: &Visit<T>,
    tile: &Tile,
) -> bool {
    if visit.domain.width == 1 {
        return map_rows::<P, T, K>(visit, tile);
    }
    let (cells, mut given) = (visit.cells, visit.uniform.splat::<P, L>(visit.round));
    let mut probe = L::lit(0.0);
    for group in tile.own().start / L::WIDTH..tile.own().end / L::WIDTH {
        let (shared, private) = (cells.load_shared::<L, _>(group), cells.load_private::<L, _>(group));
        let first = group * L::WIDTH;
        given.visit(tile.numbers(first..first + L::WIDTH));
        let new: VertexOf<P, L> = K::map(&given, Vertex::join(shared, private));
        let (shared, private) = Turn::whole(first..first + L::WIDTH).keep(tile, (shared, private), new.split());
        probe = probe + shared.probe() + private.probe();
        cells.store_private::<L, _>(group, private);
        cells.store_shared::<L, _>(group, shared);
    }
    probe.is_zero()
}

fn map_rows<P: Kernels, T: Number, K: Map<P>>(visit: &Visit<T>, tile: &Tile) -> bool {
    let cells = visit.cells;
    let mut finite = true;
    for slot in tile.own() {
        let (shared, private) = cells.load::<SharedOf<P, T>, PrivateOf<P, T>>(slot);
        let new: VertexOf<P, T> = K::map(&visit.given(tile, slot), Vertex::join(shared, private));
        let (shared, private) = if tile.fixed(slot..slot + 1).is_some() { (shared, private) } else { new.split() };
        finite &= (shared.probe() + private.probe()).finite();
        cells.store(slot, 0..0, shared, private);
    }
    finite
}

/// Measures the vertices of a tile. `values`: one for each of its slots; what is left over is not written.
pub(in crate::engine) fn measure<P: Kernels, T: Number, K: Reduce<P>, L: Lanes<Scalar = T>>(
    visit: &Visit<T>,
    tile: &Tile,
    values: &mut [T],
) {
    let stride = shared_stride(<SharedOf<P, T>>::LEN);
    let (cells, own) = (visit.cells, tile.own());
    match &tile.form {
        Form::Rows { vertices, stars } => {
            let (opened, changing) = (Ell::open(visit.seen(stars)), visit.changing(tile));
            let stars = opened.stars();
            let value = |i: usize| {
                let (shared, private) = cells.look::<SharedOf<P, T>, PrivateOf<P, T>>(own.start + i);
                let row = Row { row: i, stars, changing: changing.stars(), leaf: |i| cells.leaf(i, stride) };
                K::measure(&visit.given::<P>(tile, own.start + i), Vertex::join(shared, private), &row)
            };
            values.iter_mut().zip((0..*vertices as usize).map(value)).for_each(|(measured, value)| *measured = value);
        }
        Form::Wide { halo, stars } => table::with(&table::TILE, TABLE * stride, |table| {
            let table = LazyCell::new(|| {
                cells.gather(own.clone(), halo, stride, table);
                &*table
            });
            measure_groups::<P, T, K, L, _>(visit, tile, stars, &table, values);
        }),
        Form::Spread { stars } => measure_groups::<P, T, K, L, _>(visit, tile, stars, cells, values),
    }
}

fn measure_groups<P: Kernels, T: Number, K: Reduce<P>, L: Lanes<Scalar = T>, U: Lookup<L> + Copy>(
    visit: &Visit<T>,
    tile: &Tile,
    stars: &[Ell<U::Name>],
    lookup: U,
    values: &mut [T],
) {
    let (cells, own) = (visit.cells, tile.own());
    let mut given = visit.uniform.splat::<P, L>(visit.round);
    let (opened, changing) = (Ell::open(visit.seen(stars)), visit.changing(tile));
    let stars = opened.stars();
    for (group, values) in values.chunks_exact_mut(L::WIDTH).enumerate() {
        let first = own.start + group * L::WIDTH;
        let (shared, private) = (
            cells.load_shared::<L, SharedOf<P, L>>(first / L::WIDTH),
            cells.load_private::<L, PrivateOf<P, L>>(first / L::WIDTH),
        );
        let (changing, lanes) = (changing.stars(), PhantomData::<L>);
        let row = WideRows { group, stars, lookup, changing, far: cells, which: None, lanes };
        given.visit(tile.numbers(first..first + L::WIDTH));
        K::measure(&given, Vertex::join(shared, private), &row).store(values);
    }
}

/// The vertices of a group that are updated at the same time: all of them, unless changing stars join some.
pub(super) struct Turn<'a> {
    slots: Range<usize>,
    /// Which turn it is, and when each slot has its own, if it is not that of all.
    which: Option<(u8, &'a [u8])>,
}

impl<'a> Turn<'a> {
    /// That of all.
    #[inline(always)]
    pub(super) fn whole(slots: Range<usize>) -> Turn<'a> {
        Turn { slots, which: None }
    }

    /// Visits the slots that have it, padding among them.
    #[inline(always)]
    fn each_slot(&self, visit: impl FnMut(usize)) {
        match self.which {
            None => self.slots.clone().for_each(visit),
            Some((turn, turns)) => {
                self.slots.clone().zip(turns).filter(|of| *of.1 == turn).map(|of| of.0).for_each(visit)
            }
        }
    }

    /// The new state, or the old one in the lanes of vertices that are fixed or have another turn.
    #[inline(always)]
    fn keep<L: Lanes, S: Record<L>, Q: Record<L>>(
        &self,
        tile: &Tile,
        (old_shared, old_private): (S, Q),
        (shared, private): (S, Q),
    ) -> (S, Q) {
        let fixed = tile.fixed(self.slots.clone());
        if fixed.is_none() && self.which.is_none() {
            return (shared, private);
        }
        let stays = |lane: usize| {
            fixed.is_some_and(|fixed| fixed[lane]) || self.which.is_some_and(|(turn, turns)| turns[lane] != turn)
        };
        let stays = L::lit(0.0).less(L::from_fn(|lane| L::Scalar::from_f64(f64::from(u8::from(stays(lane))))));
        let mut keep = |old, new| L::select(stays, old, new);
        (old_shared.zip(shared, &mut keep), old_private.zip(private, &mut keep))
    }
}

impl<T: Number> Visit<'_, T> {
    /// What is around a vertex. A measure that looks further than it did on symbols finds no star, and panics.
    #[inline(always)]
    pub(super) fn seen<'a, S>(&self, stars: &'a [S]) -> &'a [S] {
        if self.sees { stars } else { &[] }
    }

    /// Zero if what the kernel touches of the private state of some vertices is finite. The rest was, and stays out of the cache.
    #[inline(always)]
    fn probe<L: Lanes<Scalar = T>, Q: Record<L>>(&self, private: &Q) -> L {
        let mut probe = L::lit(0.0);
        private.each(|k, x| {
            if Q::kind(k) == Kind::Real && self.touches.real(k) {
                probe += x * L::lit(0.0);
            }
        });
        probe
    }

    /// Asks for the rows of a group ahead of its turn.
    #[inline(always)]
    pub(super) fn prefetch_stars<N>(&self, stars: &[OpenEll<N, T>], group: usize, width: usize) {
        stars
            .iter()
            .enumerate()
            .filter(|(i, _)| self.touches.star(*i))
            .for_each(|(_, star)| star.prefetch(group, width));
    }

    #[inline(always)]
    pub(super) fn given<P: Kernels>(&self, tile: &Tile, slot: usize) -> Given<P, T> {
        self.uniform.given(tile.numbers(slot..slot + 1).first().copied().unwrap_or(0), self.round)
    }

    /// Changing stars around a vertex; a measure that looks at no neighbors is given none.
    #[inline(always)]
    fn changing<'t>(&self, tile: &'t Tile) -> Opened<OpenEll<'t, u32, T>> {
        Changing::open(if self.sees { &tile.changing } else { &None })
    }

    /// The turns of a group, in the order in which they are had.
    #[inline(always)]
    pub(super) fn turns<'t>(&self, tile: &'t Tile, slots: Range<usize>) -> impl Iterator<Item = Turn<'t>> {
        let start = tile.own().start;
        let is_ordered = matches!(self.rule, Rule::InOrder | Rule::Backward);
        let turns = Changing::turns(&tile.changing, slots.start - start..slots.end - start).filter(|_| is_ordered);
        let count = turns.map_or(1, |turns| 1 + turns.iter().max().map_or(0, |&last| last));
        let backward = self.rule == Rule::Backward;
        (0..count).map(move |i| {
            let turn = if backward { count - 1 - i } else { i };
            Turn { slots: slots.clone(), which: turns.map(|turns| (turn, turns)) }
        })
    }

    #[inline(always)]
    pub(super) fn before(&self, turn: &Turn) {
        if let Some(audit) = self.audit {
            self.watch(turn, |places| audit.before(self.rule, places.iter().copied()));
        }
    }

    #[inline(always)]
    pub(super) fn after(&self, turn: &Turn) {
        if let Some(audit) = self.audit {
            self.watch(turn, |places| audit.after(self.rule, places.iter().copied()));
        }
    }

    /// Calls a function with the places of a turn; padding does not count.
    #[cold]
    fn watch(&self, turn: &Turn, watch: impl FnOnce(&[usize])) {
        let mut places = Vec::new();
        turn.each_slot(|slot| places.push(self.domain.place(slot)));
        places.dedup();
        watch(&places);
    }
}
