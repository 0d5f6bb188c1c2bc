//! Tiles: what one thread works through.

use super::changing::Changing;
use super::cut::{Forms, Span};
#[cfg(feature = "cluster")]
use super::data::Data;
use super::ell::Ell;
use super::incidences::Source;
use super::packed::{Packed, pack};
use crate::number::Precision;
use crate::number::lanes::TABLE;
use crate::program::StarPlan;
use std::ops::Range;
use std::sync::Arc;

/// A tile reads the state itself if it would read what it copies no more often than this on average: measured, docs/perf/decisions/tiles.md.
const REUSE: usize = 8;

/// A piece of a task that one thread works through, with everything that it reads besides the state.
#[derive(Clone)]
pub(crate) struct Tile {
    /// The slots of its vertices: whole groups.
    pub(crate) slots: Range<u32>,
    /// Which slots keep their state, or of elements which corners, as [`Ell::others`] lie; empty if none does.
    pub(super) fixed: Vec<bool>,
    /// Numbers of the slots along the curve; empty if no kernel asks for them.
    pub(super) numbers: Vec<u32>,
    pub(crate) form: Form,
    /// Elements of changing stars around its vertices, if there are any now.
    pub(crate) changing: Option<Arc<Changing>>,
}

/// How the vertices of a tile are updated.
#[derive(Clone)]
pub(crate) enum Form {
    /// Group after group, from a table of the tile's own slots and its halo.
    Wide {
        /// Slots that it reads and does not own, in ascending order.
        halo: Packed<u32>,
        /// One for each star.
        stars: Vec<Ell<u16>>,
    },
    /// Group after group, from the state itself: neighbors lie all over it, so that copies would hardly be read twice.
    Spread {
        /// One for each star.
        stars: Vec<Ell<u32>>,
    },
    /// Vertex after vertex, from the state itself.
    Rows {
        /// Number of vertices: the lanes after them are padding, copies of the last.
        vertices: u32,
        /// One for each star.
        stars: Vec<Ell<u32>>,
    },
}

impl Form {
    /// Gives slots of others other names, and leaves out the elements of some stars.
    #[cfg(feature = "cluster")]
    pub(super) fn rename(&mut self, left_out: &[usize], name: &impl Fn(u32) -> u32) {
        let rename = |slots: &mut Packed<u32>| *slots = slots.iter().map(|&slot| name(slot)).collect::<Vec<_>>().into();
        match self {
            Form::Wide { halo, .. } => rename(halo),
            Form::Spread { stars } => stars.iter_mut().for_each(|star| rename(&mut star.others)),
            Form::Rows { vertices, stars } => {
                for (star, rows) in stars.iter_mut().enumerate() {
                    match left_out.contains(&star) {
                        true => {
                            *rows = Ell::rows(
                                rows.shape,
                                vec![0; *vertices as usize + 1],
                                Vec::new(),
                                Data::gather(rows.data.precision, std::iter::empty()),
                            )
                        }
                        false => rename(&mut rows.others),
                    }
                }
            }
        }
    }
}

impl Tile {
    /// The tiles of a span: as many as it takes for each to find what it reads in one table. `local` has a zero for each slot.
    pub(super) fn of(
        span: &Span,
        sources: &[Source],
        place_of: &[u32],
        (width, precision, forms): (usize, Precision, Forms),
        local: &mut [u16],
        tiles: &mut Vec<Tile>,
    ) {
        let (slots, (fixed, numbers)) = (span.slots.clone(), Default::default());
        let range = slots.start as usize..slots.end as usize;
        if !span.is_wide {
            let places = &place_of[range][..span.vertices as usize];
            let stars = sources.iter().map(|source| Ell::new(source, places, (1, precision), |slot| slot)).collect();
            let form = Form::Rows { vertices: span.vertices, stars };
            return tiles.push(Tile { slots, fixed, numbers, form, changing: None });
        }
        let (mut halo, mut reads) = (Vec::new(), 0);
        for &place in &place_of[range.clone()] {
            for source in sources {
                source.others(place, |u| {
                    reads += 1;
                    if !slots.contains(&u) && std::mem::replace(&mut local[u as usize], 1) == 0 {
                        halo.push(u);
                    }
                });
            }
        }
        halo.sort_unstable();
        let own = slots.len();
        let fits = own + halo.len() <= TABLE;
        let is_spread = match forms {
            Forms::Any => reads <= REUSE * halo.len() || !fits && own == width,
            #[cfg(test)]
            Forms::Spread => true,
            _ => false,
        };
        if is_spread || !fits {
            halo.iter().for_each(|&u| local[u as usize] = 0);
            if is_spread {
                let star = |source| Ell::new(source, &place_of[range.clone()], (width, precision), |slot| slot);
                return tiles.push(Tile {
                    slots,
                    fixed,
                    numbers,
                    form: Form::Spread { stars: sources.iter().map(star).collect() },
                    changing: None,
                });
            }
            assert!(own > width, "a group reads no more than a table holds");
            let middle = slots.start + (own / width / 2 * width) as u32;
            for slots in [slots.start..middle, middle..slots.end] {
                Tile::of(&Span { slots, ..span.clone() }, sources, place_of, (width, precision, forms), local, tiles);
            }
            return;
        }
        halo.iter().zip(own as u16..).for_each(|(&u, name)| local[u as usize] = name);
        let name = |u: u32| if slots.contains(&u) { (u - slots.start) as u16 } else { local[u as usize] };
        let stars =
            sources.iter().map(|source| Ell::new(source, &place_of[range.clone()], (width, precision), name)).collect();
        halo.iter().for_each(|&u| local[u as usize] = 0);
        tiles.push(Tile { slots, fixed, numbers, form: Form::Wide { halo: halo.into(), stars }, changing: None });
    }

    /// Lays what tiles read into one piece of memory.
    pub(super) fn pack<'a>(tiles: impl Iterator<Item = &'a mut Tile>) {
        let lists = tiles.flat_map(|tile| match &mut tile.form {
            Form::Wide { halo, stars } => {
                stars.iter_mut().flat_map(Ell::lists).chain([halo.bytes()]).collect::<Vec<_>>()
            }
            Form::Spread { stars } => stars.iter_mut().flat_map(Ell::lists).collect(),
            Form::Rows { stars, .. } => stars.iter_mut().flat_map(Ell::lists).collect(),
        });
        pack(lists.collect());
    }

    /// Whether its vertices are updated side by side.
    pub(super) fn is_wide(&self) -> bool {
        !matches!(self.form, Form::Rows { .. })
    }

    /// Slots that are updated, padding among them where vertices are side by side.
    pub(super) fn updated(&self) -> usize {
        match self.form {
            Form::Rows { vertices, .. } => vertices as usize,
            _ => self.slots.len(),
        }
    }

    /// How many of its slots are updated, and how many side by side, where groups are of `width`.
    pub(crate) fn groups(&self, width: usize) -> (usize, usize) {
        (self.updated(), if self.is_wide() { width } else { 1 })
    }

    /// The slots of the corners of element `i`, of a tile of elements one by one.
    pub(crate) fn corners(&self, i: usize) -> &[u32] {
        let Form::Rows { stars, .. } = &self.form else { unreachable!("the elements lie one by one") };
        let corners = stars[0].shape.0;
        &stars[0].others[i * corners..][..corners]
    }

    /// Its slots.
    #[inline(always)]
    pub(crate) fn own(&self) -> Range<usize> {
        self.slots.start as usize..self.slots.end as usize
    }

    /// Which of some of its slots keep their state; none if none of them does.
    #[inline(always)]
    pub(crate) fn fixed(&self, slots: Range<usize>) -> Option<&[bool]> {
        if self.fixed.is_empty() {
            None
        } else {
            Some(&self.fixed[self.within(slots)]).filter(|fixed| fixed.contains(&true))
        }
    }

    /// Marks of all that keeps its state: one a slot, of elements one a corner; none if nothing does.
    pub(crate) fn marks(&self) -> &[bool] {
        &self.fixed
    }

    /// Which corners of the elements of a group keep their state: corner after corner, `lanes` each; none if none of them does.
    #[inline(always)]
    pub(crate) fn fixed_corners(&self, group: usize, corners: usize, lanes: usize) -> Option<&[bool]> {
        if self.fixed.is_empty() {
            None
        } else {
            Some(&self.fixed[group * corners * lanes..][..corners * lanes]).filter(|fixed| fixed.contains(&true))
        }
    }

    /// The numbers along the curve of some of its slots; none if no kernel asks for them.
    #[inline(always)]
    pub(crate) fn numbers(&self, slots: Range<usize>) -> &[u32] {
        if self.numbers.is_empty() { &[] } else { &self.numbers[self.within(slots)] }
    }

    #[inline(always)]
    fn within(&self, slots: Range<usize>) -> Range<usize> {
        slots.start - self.slots.start as usize..slots.end - self.slots.start as usize
    }

    /// The first star whose data are not all finite.
    pub(super) fn non_finite(&self, plans: &[StarPlan], width: usize) -> Option<usize> {
        (0..plans.len()).find(|&star| match &self.form {
            Form::Wide { stars, .. } => !stars[star].data.is_finite(&plans[star].kinds, width),
            Form::Spread { stars } => !stars[star].data.is_finite(&plans[star].kinds, width),
            Form::Rows { stars, .. } => !stars[star].data.is_finite(&plans[star].kinds, 1),
        })
    }

    /// Bytes that an update of it reads besides the state.
    pub(crate) fn bytes(&self) -> usize {
        match &self.form {
            Form::Wide { halo, stars } => 4 * halo.len() + stars.iter().map(Ell::bytes).sum::<usize>(),
            Form::Spread { stars } => stars.iter().map(Ell::bytes).sum(),
            Form::Rows { stars, .. } => stars.iter().map(Ell::bytes).sum(),
        }
    }

    /// States that an update of it reads besides its own: the halo, and those of neighbors, lanes that are left over included.
    pub(crate) fn reads(&self) -> usize {
        match &self.form {
            Form::Wide { halo, stars } => halo.len() + stars.iter().map(|star| star.others.len()).sum::<usize>(),
            Form::Spread { stars } => stars.iter().map(|star| star.others.len()).sum(),
            Form::Rows { stars, .. } => stars.iter().map(|star| star.others.len()).sum(),
        }
    }

    /// Visits the slots of neighbors that its vertices read wherever they lie: none of a tile with a table.
    pub(crate) fn each_far_read(&self, visit: impl FnMut(u32)) {
        match &self.form {
            Form::Wide { .. } => {}
            Form::Spread { stars } => stars.iter().flat_map(|star| star.others.iter()).copied().for_each(visit),
            Form::Rows { stars, .. } => stars.iter().flat_map(|star| star.others.iter()).copied().for_each(visit),
        }
    }
}
