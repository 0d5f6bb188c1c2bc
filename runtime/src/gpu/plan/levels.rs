//! Levels: the tasks of a share that a device may visit at the same time, and those of them at the border.

use super::{Plan, Walk, lists};
use crate::layout::Domain;
use meshweft_schedule::Rule;

/// Tasks of which no edge joins two, or which read what nobody writes. All hosts take levels in one order, so of all that are
/// left somewhere the first waits for nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// Tasks beside ghosts, and all others.
    pub(crate) border: Vec<u32>,
    pub(crate) inside: Vec<u32>,
}

/// Levels with their dispatches.
pub(crate) struct Planned {
    pub(crate) level: Level,
    pub(crate) border: Walk,
    pub(crate) inside: Walk,
}

/// The own tasks of a domain, level after level: by how many predecessors in a row they have in the whole mesh where a rule orders
/// neighbors, else all at once.
pub(super) fn levels(domain: &Domain, rule: Rule) -> Vec<Level> {
    let depth = |t: u32| match rule {
        Rule::Alone | Rule::AtOnce => 0,
        Rule::InOrder | Rule::Backward => domain.depths[t as usize],
    };
    let mut own: Vec<u32> = (0..domain.graph.len() as u32).filter(|&t| !domain.is_ghost(t)).collect();
    own.sort_by_key(|&t| (depth(t), t));
    let is_inside = |t: u32| domain.graph.neighbors(t).iter().all(|&u| !domain.is_ghost(u));
    let same = own.chunk_by(|&t, &u| depth(t) == depth(u));
    let level = |tasks: &[u32]| {
        let (inside, border) = tasks.iter().partition(|&&t| is_inside(t));
        Level { border, inside }
    };
    let mut levels: Vec<Level> = same.map(level).collect();
    if rule == Rule::Backward {
        levels.reverse();
    }
    levels
}

impl Plan {
    /// The levels of a share under a rule, and what of a part is visited there, or all. Ranges and list become longer.
    pub(crate) fn levels(&mut self, domain: &Domain, (part, rule): (Option<u32>, Rule)) -> Vec<Planned> {
        let planned = |level: Level| {
            let mut visit = |tasks: &Vec<u32>| {
                let pieces = |&t: &u32| self.pieces[t as usize]..self.pieces[t as usize + 1];
                let waves = lists(&[tasks.iter().flat_map(pieces).collect()], &self.cuts);
                let waves = self.within(waves, part);
                Walk { rounds: 1, dispatches: waves.iter().map(|wave| self.dispatch(wave, rule)).collect() }
            };
            Planned { border: visit(&level.border), inside: visit(&level.inside), level }
        };
        levels(domain, rule).into_iter().map(planned).collect()
    }
}
