//! Relaxations on hosts that stand in a grid.
//!
//! A host of row r and column c has the edges from vertices that hosts of column c own to vertices that hosts of row r own
//! ([`Blocks`]). It is again rounds from a frontier, as on one host (`engine/cpu/relaxation`), in four parts:
//!
//! ```text
//!            column c                          row r
//!               │
//!  1 expand     ▼    the frontier of all owners in the column, with what has changed of their state
//!  2 relax      ■    each block finds the best offer for each vertex of the row, by threads
//!  3 fold       ■ ◄──► ■ ◄──► ■   the best of all blocks of the row comes to the owner
//!  4 take       ■    owners take what is less than what they hold: the next frontier
//! ```
//!
//! Who makes an offer is most of what a fold would carry: several bits for each, where the vertex is one or two and the offer nothing.
//! Where what neighbors see of a taker does not depend on it, as its level does not depend on its parent, offers are folded without it,
//! and the frontier goes on; who makes them is folded while blocks do the next round, and owners take the rest then.
//!
//! What goes where is the business of [`Sides`]. Offers are compared by key, then by the number along the curve of who makes them, and
//! each who offers is in one column alone: so the grid makes no difference. A block does not offer again what it has offered: a
//! vertex that has heard of an offer holds no more than that.
//!
//! Searches keep a copy of the state of owned vertices and write back what has changed, so they run beside any engine, also one that has
//! its state elsewhere.
//!
//! Source: Buluç and Madduri, "Parallel breadth-first search on distributed memory systems", 2011.

mod block;
mod offers;

pub(crate) use offers::{Less, Offers};

use super::store::Store;
use crate::error::{Error, Result};
use crate::layout::{Blocks, Domain};
use crate::number::Number;
use crate::program::{
    Given, Kernels, Kind, PrivateOf, Record, Relax, SharedOf, Star, StarShape, Uniform, Vertex, less,
};
use crate::trace::{self, Maker};
use block::{Block, Search};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What hosts of a grid tell each other in a search.
pub(crate) trait Sides<T> {
    /// Tells the hosts of the column which own vertices have changed, `ids`, and what neighbors see of them: shape [ids × reals].
    /// Returns those of the whole column, ascending. `known`: what all of the column know of its vertices, which is brought up to date.
    ///
    /// # Errors
    /// Another host was lost, or makes no sense.
    fn expand(&mut self, ids: &[u32], states: &[T], known: &mut [T]) -> Result<Vec<u32>>;

    /// Begins to find the best offers of all hosts of the row for the vertices of this one.
    fn begin_fold(&mut self, offers: Offers<T>) -> Folding<T>;

    /// Those offers. What was begun first ends first.
    ///
    /// # Errors
    /// As above.
    fn end_fold(&mut self, folding: Folding<T>, less: Less<T>) -> Result<Offers<T>>;

    /// Whether something holds on any host.
    ///
    /// # Errors
    /// As above.
    fn any(&mut self, own: bool) -> Result<bool>;
}

/// Offers of a row that are being brought together.
pub(crate) struct Folding<T> {
    /// The best that is known here for vertices of the group of hosts that this one is left with.
    pub(crate) offers: Offers<T>,
    /// That group, as far as offers were given away, and the group that they went to; none once this host is alone.
    pub(crate) halves: Option<[Range<usize>; 2]>,
}

/// A host's place in the grid.
pub(crate) struct Grid<T> {
    blocks: Arc<Blocks>,
    /// What neighbors see of the vertices of the column, as all of the column know it: shape [vertices × reals].
    known: Vec<T>,
    /// By star, the edges of its block by where they come from.
    outs: BTreeMap<usize, Arc<Block>>,
    /// For each own vertex its slots, of which all but the first are padding.
    slots: Vec<Range<u32>>,
    /// The stars of the program.
    stars: Vec<StarShape>,
    is_fixed: Vec<bool>,
}

impl<T: Number> Grid<T> {
    pub(crate) fn new(blocks: Blocks, domain: &Domain) -> Grid<T> {
        let places = domain.place_of();
        let with_padding = |&slot: &u32| {
            let after = places[slot as usize..].iter().take(domain.width);
            slot..slot + after.take_while(|&&place| place == places[slot as usize]).count() as u32
        };
        let mut fixed = vec![false; domain.slots()];
        for tile in &domain.tiles {
            if let Some(own) = tile.fixed(tile.own()) {
                fixed[tile.own()].copy_from_slice(own);
            }
        }
        let sources = blocks.numbers.len();
        let outs = blocks.stars.iter().map(|(star, rows)| (*star, Arc::new(Block::new(rows, sources)))).collect();
        Grid {
            blocks: Arc::new(blocks),
            known: vec![T::from_f64(0.0); sources * domain.shape.shared],
            outs,
            stars: domain.stars.clone(),
            slots: domain.along_curve.iter().map(with_padding).collect(),
            is_fixed: domain.along_curve.iter().map(|&slot| fixed[slot as usize]).collect(),
        }
    }

    /// Whether a star is cut in blocks.
    pub(crate) fn has(&self, star: usize) -> bool {
        self.blocks.star(star).is_some()
    }
}

/// Runs rounds of a relaxation until one changes nothing anywhere, `most` at most: how many, and whether all came out finite here.
/// `host`: what has the state of owned vertices.
///
/// # Errors
/// Those of [`Sides`] and of the host.
pub(in crate::engine) fn fixpoint<P: Kernels, T: Number, K: Relax<P>>(
    grid: &mut Grid<T>,
    host: &mut dyn Store<T>,
    sides: &mut dyn Sides<T>,
    uniform: &Uniform<T>,
    most: u32,
) -> Result<(u32, bool)> {
    let blocks = grid.blocks.clone();
    let block = grid.outs.get(&<K::Along as Star<1>>::INDEX).expect("the star is cut in blocks").clone();
    let given: Given<P, T> = uniform.given(0, 0);
    let mut own = Own::<P, T>::new(grid, host)?;
    let search = Arc::new(Search::<P, T, K>::new(blocks, block, uniform.clone()));
    let mut frontier: Vec<u32> = own.holding(|own| less(K::held(own), K::nothing::<T>()));
    // Of integers that are equal it does not matter which is taken; zeros may have two signs.
    let maker = match <K::Key<T>>::kind(0) {
        Kind::Integer => trace::maker::<P, K>(&grid.stars),
        Kind::Real => Maker::Shown,
    };
    let is_less: Less<T> = |a, b| less::<T, K::Key<T>>(Record::build(|_| a), Record::build(|_| b));
    let (mut rounds, mut states, mut late) = (most, Vec::new(), None);
    for round in 0..most {
        states.clear();
        frontier.iter().for_each(|&i| own.vertices[i as usize].0.each(|_, x| states.push(x)));
        let changed = sides.expand(&frontier, &states, &mut grid.known)?;
        let offers = search.relax(host, changed, &grid.known);
        if let Some(late) = late.take() {
            own.take_late::<K>(&given, late, sides, is_less)?;
        }
        // Neighbors see nothing of who offers: that may follow while they go on.
        let follows = (maker == Maker::Kept).then(|| offers.clone());
        let offers = if maker == Maker::Shown { offers } else { offers.forgotten() };
        let folding = sides.begin_fold(offers);
        let offers = sides.end_fold(folding, is_less)?;
        let taken = own.take::<K>(&given, &grid.is_fixed, &offers, follows.is_some());
        frontier.clear();
        frontier.extend(taken.iter().map(|taken| taken.vertex));
        if !sides.any(!frontier.is_empty())? {
            rounds = round + 1;
            break;
        }
        late = follows.map(|offers| (sides.begin_fold(offers), taken));
    }
    if let Some(late) = late {
        own.take_late::<K>(&given, late, sides, is_less)?;
    }
    own.write(grid, host)?;
    Ok((rounds, own.is_finite))
}

/// A vertex that has taken an offer.
struct Taken<P: Kernels, T: Number, K: Relax<P>> {
    vertex: u32,
    /// What neighbors saw of it before.
    before: SharedOf<P, T>,
    offer: K::Key<T>,
}

/// The vertices of this host, along the curve.
struct Own<P: Kernels, T: Number> {
    vertices: Vec<(SharedOf<P, T>, PrivateOf<P, T>)>,
    has_changed: Vec<bool>,
    is_finite: bool,
}

impl<P: Kernels, T: Number> Own<P, T> {
    fn new(grid: &Grid<T>, host: &dyn Store<T>) -> Result<Own<P, T>> {
        let view = host.view()?;
        let of = |slots: &Range<u32>| (view.shared(slots.start as usize), view.private(slots.start as usize));
        Ok(Own {
            vertices: grid.slots.iter().map(of).collect(),
            has_changed: vec![false; grid.slots.len()],
            is_finite: true,
        })
    }

    /// Those of which something holds.
    fn holding(&self, holds: impl Fn(&SharedOf<P, T>) -> bool) -> Vec<u32> {
        (0..).zip(&self.vertices).filter(|(_, vertex)| holds(&vertex.0)).map(|(i, _)| i).collect()
    }

    /// Vertices take what is less than they hold. `is_seen`: of that what neighbors see alone, which does not depend on who offers.
    fn take<K: Relax<P>>(
        &mut self,
        given: &Given<P, T>,
        is_fixed: &[bool],
        offers: &Offers<T>,
        is_seen: bool,
    ) -> Vec<Taken<P, T, K>> {
        let mut all = Vec::new();
        for (k, &vertex) in offers.ids.iter().enumerate() {
            let (offer, (before, private)) = (K::Key::<T>::build(|_| offers.keys[k]), self.vertices[vertex as usize]);
            if is_fixed[vertex as usize] || !less(offer, K::held(&before)) {
                continue;
            }
            let taken = K::take(given, Vertex::join(before, private), offer, offers.state(k)).split();
            self.is_finite &= (taken.0.probe() + if is_seen { T::from_f64(0.0) } else { taken.1.probe() }).finite();
            self.vertices[vertex as usize] = (taken.0, if is_seen { private } else { taken.1 });
            self.has_changed[vertex as usize] = true;
            all.push(Taken { vertex, before, offer });
        }
        all
    }

    /// The same vertices take the rest, now that it is known who offers.
    fn take_late<K: Relax<P>>(
        &mut self,
        given: &Given<P, T>,
        (folding, taken): (Folding<T>, Vec<Taken<P, T, K>>),
        sides: &mut dyn Sides<T>,
        less: Less<T>,
    ) -> Result<()> {
        let (offers, mut k) = (sides.end_fold(folding, less)?, 0);
        for Taken { vertex, before, offer } in taken {
            while offers.ids.get(k).is_some_and(|&id| id < vertex) {
                k += 1;
            }
            if offers.ids.get(k) != Some(&vertex) {
                return Err(Error::Cluster("an offer was taken that nobody makes".into()));
            }
            let private = &mut self.vertices[vertex as usize].1;
            *private = K::take(given, Vertex::join(before, *private), offer, offers.state(k)).split().1;
            self.is_finite &= private.probe().finite();
        }
        Ok(())
    }

    /// Gives the host what has changed.
    fn write(&self, grid: &Grid<T>, host: &mut dyn Store<T>) -> Result<()> {
        if !self.has_changed.contains(&true) {
            return Ok(());
        }
        host.change(&mut |mut view| {
            for ((slots, (shared, private)), _) in
                grid.slots.iter().zip(&self.vertices).zip(&self.has_changed).filter(|(_, has_changed)| **has_changed)
            {
                for slot in slots.clone() {
                    shared.each(|k, x| view.set(slot as usize, k, x));
                    private.each(|k, x| view.set(slot as usize, <SharedOf<P, T>>::LEN + k, x));
                }
            }
        })
    }
}
