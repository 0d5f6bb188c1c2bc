//! Elements of stars that change.
//!
//! Vertices stay where they are: the order, the slots and the rows of all other stars do. An element that comes joins its vertices by
//! their places in the order, as any other does. Around the vertices of a tile such elements are rows of their own, that name
//! vertices by slot: what is near at the moment may lie anywhere in the state. They are made anew as a whole; all else of a tile is shared
//! with what it was before.
//!
//! Two vertices of one group may be joined, which are then no longer independent: such a group is updated in **turns**. In each turn it
//! is computed whole, and those vertices keep the outcome whose turn it is. A vertex has its turn after all those of its group before it in the
//! order that it is joined with.

use super::ell::{Ell, OpenEll};
use super::opened::Opened;
use crate::number::{Number, Precision};
use std::ops::Range;
use std::sync::Arc;

/// Elements of changing stars around the vertices of a tile.
pub(crate) struct Changing {
    /// One for each star of the program; of those without elements here, empty.
    pub(super) stars: Vec<Ell<u32>>,
    /// The turn of each slot; empty if all vertices of every group are independent.
    pub(super) turns: Vec<u8>,
}

impl Changing {
    /// No elements of so many stars.
    pub(super) fn nothing(stars: usize, precision: Precision) -> Changing {
        Changing { stars: (0..stars).map(|_| Ell::nothing(precision)).collect(), turns: Vec::new() }
    }

    /// The lists of all stars of a tile, of numbers `T`; none if it has no such elements.
    #[inline(always)]
    pub(crate) fn open<T: Number>(changing: &Option<Arc<Changing>>) -> Opened<OpenEll<'_, u32, T>> {
        Ell::open(changing.as_ref().map_or(&[], |changing| &changing.stars))
    }

    /// The elements of a star, if it has any here.
    pub(crate) fn star(&self, index: usize) -> Option<&Ell<u32>> {
        self.stars.get(index).filter(|star| !star.columns.is_empty())
    }

    /// The turns of some slots of the tile; none if they are independent of each other.
    #[inline(always)]
    pub(crate) fn turns(changing: &Option<Arc<Changing>>, slots: Range<usize>) -> Option<&[u8]> {
        let turns = &changing.as_ref().filter(|changing| !changing.turns.is_empty())?.turns[slots];
        Some(turns).filter(|turns| turns.iter().any(|&turn| turn > 0))
    }

    /// Stars that have elements here, with their ranks among those of the program.
    pub(super) fn stars(&self) -> impl Iterator<Item = (usize, &Ell<u32>)> {
        self.stars.iter().enumerate().filter(|(_, star)| !star.columns.is_empty())
    }

    /// The other vertices of all elements.
    #[cfg(feature = "cluster")]
    pub(super) fn others(&self) -> impl Iterator<Item = u32> {
        self.stars.iter().flat_map(|star| star.others.iter().copied())
    }

    /// The same where slots have other names.
    #[cfg(feature = "cluster")]
    pub(super) fn renamed(&self, name: &impl Fn(u32) -> u32) -> Changing {
        let renamed = |star: &Ell<u32>| Ell {
            others: star.others.iter().map(|&slot| name(slot)).collect::<Vec<_>>().into(),
            ..star.clone()
        };
        Changing { stars: self.stars.iter().map(renamed).collect(), turns: self.turns.clone() }
    }

    /// Finds the turns. `places`: of the slots of the tile, which begins at slot `start`.
    pub(super) fn take_turns(&mut self, places: &[u32], start: usize, width: usize) {
        let mut turns = vec![0u8; places.len()];
        for (group, turns) in turns.chunks_exact_mut(width).enumerate() {
            let first = group * width;
            let is_padding = |lane: usize| lane > 0 && places[first + lane] == places[first + lane - 1];
            // Pairs of lanes that are joined, the later one first: its turn comes after that of the other.
            let mut pairs = Vec::new();
            for ell in self.stars.iter().filter(|ell| !ell.columns.is_empty()) {
                ell.each_other(group, width, |lane, slot| {
                    let other = (slot as usize).wrapping_sub(start + first);
                    if other < width && !is_padding(lane) {
                        pairs.push((lane.max(other), lane.min(other)));
                    }
                });
            }
            pairs.sort_unstable();
            pairs.into_iter().for_each(|(after, before)| turns[after] = turns[after].max(turns[before] + 1));
            // Padding goes with its vertex.
            (1..width).filter(|&lane| is_padding(lane)).for_each(|lane| turns[lane] = turns[lane - 1]);
        }
        if turns.iter().any(|&turn| turn > 0) {
            self.turns = turns;
        }
    }
}
