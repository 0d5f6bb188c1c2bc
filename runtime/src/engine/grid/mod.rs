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

use super::code::Pass;
use super::interpreter::Host;
use crate::error::Result;
use crate::layout::{Blocks, Domain};
use crate::number::Number;
use crate::program::{Given, Kernels, Kind, PrivateOf, Record, Relax, SharedOf, Star, StarShape, Vertex, less};
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

    /// The best offers of all hosts of the row for the vertices of this one.
    ///
    /// # Errors
    /// As above.
    fn fold(&mut self, offers: Offers<T>, less: Less<T>) -> Result<Offers<T>>;

    /// Whether something holds on any host.
    ///
    /// # Errors
    /// As above.
    fn any(&mut self, own: bool) -> Result<bool>;
}

/// A host's place in the grid.
pub(crate) struct Grid<T> {
    blocks: Arc<Blocks<T>>,
    /// What neighbors see of the vertices of the column, as all of the column know it: shape [vertices × reals].
    known: Vec<T>,
    /// By star, what searches work with.
    searches: BTreeMap<usize, Arc<Block>>,
    /// For each own vertex its slots, of which all but the first are padding.
    slots: Vec<Range<u32>>,
    /// The stars of the program.
    stars: Vec<StarShape>,
    is_fixed: Vec<bool>,
}

impl<T: Number> Grid<T> {
    pub(crate) fn new(blocks: Blocks<T>, domain: &Domain<T>) -> Grid<T> {
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
        Grid {
            blocks: Arc::new(blocks),
            known: vec![T::from_f64(0.0); sources * domain.shape.shared],
            searches: BTreeMap::new(),
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
    host: &mut dyn Host<T>,
    sides: &mut dyn Sides<T>,
    pass: &Pass<T>,
    most: u32,
) -> Result<(u32, bool)> {
    let star = <K::Along as Star<1>>::INDEX;
    let blocks = grid.blocks.clone();
    let rows = blocks.star(star).expect("the star is cut in blocks");
    let block = grid.searches.entry(star).or_insert_with(|| Arc::new(Block::new(rows, blocks.numbers.len()))).clone();
    let given: Given<P, T> = pass.uniform.given(0, 0);
    let mut own = Own::<P, T>::new(grid, host)?;
    let search = Arc::new(Search::<P, T, K>::new(blocks, block, pass.uniform.clone()));
    let (mut frontier, mut is_finite): (Vec<u32>, bool) =
        (own.holding(|own| less(K::held(own), K::nothing::<T>())), true);
    // Integers that are equal are the same, so it does not matter then whose offer is taken.
    let is_forgotten = <K::Key<T>>::kind(0) == Kind::Integer && trace::maker::<P, K>(&grid.stars) == Maker::Forgotten;
    let mut rounds = most;
    for round in 0..most {
        let states: Vec<T> = frontier.iter().flat_map(|&i| own.reals(i)).collect();
        let changed = sides.expand(&frontier, &states, &mut grid.known)?;
        let mut offers = search.relax(host, changed, &grid.known);
        if is_forgotten {
            offers.forget();
        }
        let offers = sides.fold(offers, |a, b| less::<T, K::Key<T>>(Record::build(|_| a), Record::build(|_| b)))?;
        let reals = <SharedOf<P, T>>::LEN;
        frontier.clear();
        for (k, &i) in offers.ids.iter().enumerate() {
            let (offer, by) = (K::Key::<T>::build(|_| offers.keys[k]), offers.from[k] as usize * reals);
            let (shared, private) = own.vertices[i as usize];
            if grid.is_fixed[i as usize] || !less(offer, K::held(&shared)) {
                continue;
            }
            let from = SharedOf::<P, T>::build(|real| offers.states[by + real]);
            let taken = K::take(&given, Vertex::join(shared, private), offer, from).split();
            is_finite &= (taken.0.probe() + taken.1.probe()).finite();
            own.vertices[i as usize] = taken;
            frontier.push(i);
        }
        own.note(&frontier);
        if !sides.any(!frontier.is_empty())? {
            rounds = round + 1;
            break;
        }
    }
    own.write(grid, host)?;
    Ok((rounds, is_finite))
}

/// The vertices of this host, along the curve.
struct Own<P: Kernels, T: Number> {
    vertices: Vec<(SharedOf<P, T>, PrivateOf<P, T>)>,
    has_changed: Vec<bool>,
}

impl<P: Kernels, T: Number> Own<P, T> {
    fn new(grid: &Grid<T>, host: &dyn Host<T>) -> Result<Own<P, T>> {
        let view = host.view()?;
        let of = |slots: &Range<u32>| (view.shared(slots.start as usize), view.private(slots.start as usize));
        Ok(Own { vertices: grid.slots.iter().map(of).collect(), has_changed: vec![false; grid.slots.len()] })
    }

    /// Those of which something holds.
    fn holding(&self, holds: impl Fn(&SharedOf<P, T>) -> bool) -> Vec<u32> {
        (0..).zip(&self.vertices).filter(|(_, vertex)| holds(&vertex.0)).map(|(i, _)| i).collect()
    }

    /// What neighbors see of one.
    fn reals(&self, i: u32) -> Vec<T> {
        let mut reals = Vec::with_capacity(<SharedOf<P, T>>::LEN);
        self.vertices[i as usize].0.each(|_, x| reals.push(x));
        reals
    }

    fn note(&mut self, changed: &[u32]) {
        changed.iter().for_each(|&i| self.has_changed[i as usize] = true);
    }

    /// Gives the host what has changed.
    fn write(&self, grid: &Grid<T>, host: &mut dyn Host<T>) -> Result<()> {
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
