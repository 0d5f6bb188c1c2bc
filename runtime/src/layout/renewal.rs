//! The domain with other elements of changing stars.

use super::changing::Changing;
use super::ell::Ell;
use super::incidences::{Incidences, Names, Whole};
use super::{Domain, Layout, Tile, check_elements};
use crate::error::Result;
use crate::program::StarPlan;
use meshweft_mesh::{Graph, Permutation, parallel};
use std::sync::Arc;

impl Layout {
    /// The domain with these elements of changing stars, whose vertices go by their numbers along the curve. `before`: one in which some of
    /// these stars, by their indices, have the same elements with the same data.
    ///
    /// Cost O(vertices + elements), in parallel.
    ///
    /// # Errors
    /// An element of a vertex that does not exist; data that are not finite.
    pub(crate) fn renewed(&self, plans: &[StarPlan], before: Option<(&Domain, Vec<usize>)>) -> Result<Domain> {
        check_elements(self.places.len(), plans)?;
        let same = before.as_ref().map_or(&[][..], |(_, same)| same);
        let is_new = |plan: &&StarPlan| !plan.elements().is_empty() && !same.contains(&plan.index);
        let plans: Vec<&StarPlan> = plans.iter().filter(is_new).collect();
        let order = self.schedule.permutation();
        let numbers = Permutation::identity(if plans.is_empty() { 0 } else { self.places.len() });
        let names = Names { places: order, curve: &numbers, slots: &self.slots, along_curve: &self.along_curve };
        let stars: Vec<Whole> = plans.iter().map(|plan| Whole::new(plan, order)).collect::<Result<_>>()?;
        let known = |t: usize| before.as_ref().and_then(|(domain, _)| domain.tiles[t].changing.as_deref());
        let found = parallel::map(0..self.tiles.len(), |t| {
            let kept = same.iter().filter_map(|&star| Some((star, known(t)?.star(star)?)));
            self.around(&self.tiles[t], kept.collect(), &stars, names)
        });
        let mut joined: Vec<[u32; 2]> = Vec::new();
        let mut tiles = self.tiles.clone();
        for (tile, around) in tiles.iter_mut().zip(found) {
            let Some((changing, tasks)) = around? else { continue };
            tile.changing = Some(Arc::new(changing));
            joined.extend(tasks);
        }
        let known = |pair: &[u32; 2]| self.graph.neighbors(pair[0]).binary_search(&pair[1]).is_ok();
        joined.retain(|pair| !known(pair));
        let tasks = self.graph.len() as u32;
        joined.extend((0..tasks).flat_map(|t| self.graph.predecessors(t).iter().map(move |&u| [u, t])));
        Ok(self.domain.with(tiles, Graph::from_edges(tasks as usize, &joined)?))
    }

    /// What changing stars hold around the vertices of a tile, and pairs of tasks that this joins; none if that is nothing.
    /// `kept`: stars whose elements are known already.
    fn around(
        &self,
        tile: &Tile,
        kept: Vec<(usize, &Ell<u32>)>,
        stars: &[Whole],
        names: Names,
    ) -> Result<Option<(Changing, Vec<[u32; 2]>)>> {
        let own = tile.own();
        let places = &self.place_of()[own.clone()];
        let range = places[0]..places[places.len() - 1] + 1;
        let has_some = |star: &&Whole| {
            let starts = star.starts();
            starts[range.start as usize] < starts[range.end as usize]
        };
        if kept.is_empty() && !stars.iter().any(|star| has_some(&star)) {
            return Ok(None);
        }
        let width = if tile.is_wide() { self.width } else { 1 };
        let places = &places[..tile.updated()];
        let mut changing = Changing::nothing(self.stars.len(), self.precision);
        let mut joined = Vec::new();
        let task = self.task_of(own.start as u32);
        let with = self.slots_of_tiles(self.tiles_of(task as usize..task as usize + 1));
        let mut rows = Incidences::default();
        for star in stars.iter().filter(has_some) {
            rows.fill(star, range.clone(), names);
            let source = star.source(&rows, names);
            let ell = Ell::new(&source, places, (width, self.precision), |slot| slot);
            if !ell.data.is_finite(&source.plan.kinds, width) {
                return Err(super::not_finite(source.plan, self.precision));
            }
            changing.stars[source.plan.index] = ell;
        }
        kept.into_iter().for_each(|(star, ell)| changing.stars[star] = ell.clone());
        for (_, ell) in changing.stars() {
            for group in 0..places.len() / width {
                ell.each_other(group, width, |_, u| {
                    if !with.contains(&(u as usize)) {
                        let other = self.task_of(u);
                        if joined.last() != Some(&[task.min(other), task.max(other)]) {
                            joined.push([task.min(other), task.max(other)]);
                        }
                    }
                });
            }
        }
        joined.sort_unstable();
        joined.dedup();
        if width > 1 {
            changing.take_turns(places, own.start, width);
        }
        Ok(Some((changing, joined)))
    }

    /// The task of a slot.
    fn task_of(&self, slot: u32) -> u32 {
        let tile = self.tiles.partition_point(|tile| tile.slots.end <= slot) as u32;
        self.tasks.partition_point(|&first| first <= tile) as u32 - 1
    }
}

impl Domain {
    /// The places of vertices that elements of changing stars join, in pairs.
    pub(crate) fn changing_pairs(&self) -> Vec<[u32; 2]> {
        let mut pairs = Vec::new();
        self.each_changing_pair(|own, other| pairs.push([own, other].map(|slot| self.place_of[slot])));
        pairs
    }

    /// For each slot the last one before it that an element of a changing star joins with it, counted from 1; 0 for none.
    pub(crate) fn joined_before(&self) -> Vec<u32> {
        let mut before = vec![0; self.slots()];
        self.each_changing_pair(|own, other| {
            let (first, last) = (own.min(other) as u32, own.max(other));
            before[last] = before[last].max(first + 1);
        });
        before
    }

    /// Visits the slots of vertices that elements of changing stars join.
    fn each_changing_pair(&self, mut visit: impl FnMut(usize, usize)) {
        for tile in &self.tiles {
            let Some(changing) = &tile.changing else { continue };
            let width = if tile.is_wide() { self.width } else { 1 };
            for (_, ell) in changing.stars() {
                for group in 0..ell.columns.len() - 1 {
                    ell.each_other(group, width, |lane, slot| {
                        visit(tile.slots.start as usize + group * width + lane, slot as usize);
                    });
                }
            }
        }
    }
}
