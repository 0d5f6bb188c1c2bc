//! Whom tasks of elements reach: what the hosts of a mesh have of elements that are projected.
//!
//! A task of elements belongs to the host of its first corner. What it has done to a corner is told to the host of that vertex, and to
//! every other that projects elements there: those have it as a ghost. So whoever projects an element finds its corners as all
//! elements before it have left them, whichever hosts these are of. Ghosts have no elements of their own, and wait for each other as own
//! tasks do, so that what is told of a vertex comes in order.

use super::domain::{Domain, Link, Share, task_of};
use super::{Form, State, Tile};
use crate::number::Number;
use meshweft_mesh::Graph;
use std::collections::BTreeMap;

/// Which host projects which elements of a star, and who is told.
pub(super) struct Reach<'a> {
    domain: &'a Domain,
    /// Of each task, the vertices' task of its first corner.
    anchors: Vec<u32>,
    /// The host of each task.
    owners: Vec<u32>,
    /// The slots of the corners of each task, ascending.
    corners: Vec<Vec<u32>>,
    /// Slots of vertices and other hosts that project elements there, ascending.
    far: Vec<(u32, u32)>,
    /// For each task, the other hosts that are told, and of which corners, ascending.
    told: Vec<BTreeMap<u32, Vec<u32>>>,
}

impl<'a> Reach<'a> {
    /// `task`: of vertices, by slot; `hosts`: of these tasks. Cost O(corners log(corners)).
    pub(super) fn new(domain: &'a Domain, task: impl Fn(u32) -> u32, hosts: &[u32]) -> Reach<'a> {
        let count = domain.graph.len();
        let host = |slot: u32| hosts[task(slot) as usize];
        let anchors: Vec<u32> = anchors(domain).into_iter().map(&task).collect();
        let owners: Vec<u32> = anchors.iter().map(|&anchor| hosts[anchor as usize]).collect();
        let ascending = |t: usize| {
            let tiles = &domain.tiles[domain.tiles_of(t..t + 1)];
            let mut corners: Vec<u32> = tiles.iter().flat_map(corners_of).copied().collect();
            corners.sort_unstable();
            corners.dedup();
            corners
        };
        let corners: Vec<Vec<u32>> = (0..count).map(ascending).collect();
        let of_others = |t: usize| {
            let own = owners[t];
            corners[t].iter().filter(move |&&slot| host(slot) != own).map(move |&slot| (slot, own))
        };
        let mut far: Vec<(u32, u32)> = (0..count).flat_map(of_others).collect();
        far.sort_unstable();
        far.dedup();
        let told = |t: usize| {
            let mut told: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for &slot in &corners[t] {
                let start = far.partition_point(|pair| pair.0 < slot);
                let others = far[start..].iter().take_while(|pair| pair.0 == slot).map(|pair| pair.1);
                for host in others.chain([host(slot)]).filter(|&host| host != owners[t]) {
                    told.entry(host).or_default().push(slot);
                }
            }
            told
        };
        let told = (0..count).map(told).collect();
        Reach { domain, anchors, owners, corners, far, told }
    }

    /// Slots of vertices of others that a host projects elements at.
    pub(super) fn of_others(&self, host: u32) -> impl Iterator<Item = u32> {
        self.far.iter().filter(move |pair| pair.1 == host).map(|pair| pair.0)
    }

    /// Tasks of vertices, the lower number first, of which one has the first corner of a task of elements and the other another corner of
    /// it.
    pub(super) fn pairs(&self, task: impl Fn(u32) -> u32) -> Vec<[u32; 2]> {
        let mut pairs = Vec::new();
        for (&anchor, corners) in self.anchors.iter().zip(&self.corners) {
            pairs.extend(
                corners.iter().map(|&slot| task(slot)).filter(|&t| t != anchor).map(|t| [anchor.min(t), anchor.max(t)]),
            );
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    fn own(&self, host: u32) -> impl Iterator<Item = usize> {
        (0..self.owners.len()).filter(move |&t| self.owners[t] == host)
    }

    /// The state of the elements of a host, from that of all.
    pub(super) fn state<T: Number>(&self, host: u32, whole: &State<T>) -> State<T> {
        let slots = |t: usize| self.domain.slots_of_tiles(self.domain.tiles_of(t..t + 1)).map(|slot| slot as u32);
        whole.view().of(&self.own(host).flat_map(slots).collect::<Vec<_>>())
    }

    /// The share of a host. `first`: the number of the first task among those of the whole; `name`: of the slot of a vertex in the share.
    pub(super) fn share(&self, host: u32, first: u32, name: &impl Fn(u32) -> u32) -> Domain {
        let whole = self.domain;
        let is_here = |t: &u32| self.owners[*t as usize] == host || self.told[*t as usize].contains_key(&host);
        let here: Vec<u32> = (0..self.owners.len() as u32).filter(is_here).collect();
        let (mut tiles, mut tasks, mut ghosts, mut corners) = (Vec::new(), vec![0], Vec::new(), Vec::new());
        let (mut place_of, mut runs, mut links) = (Vec::new(), Vec::new(), BTreeMap::<u32, Link>::new());
        let link = |with: u32| Link { with, sent: Vec::new(), received: Vec::new() };
        for (local, &t) in (0..).zip(&here) {
            let (task, start) = (t as usize, corners.len() as u32);
            if self.owners[task] != host {
                let with = self.owners[task];
                corners.extend(self.told[task][&host].iter().map(|&slot| name(slot)));
                ghosts.push(start..corners.len() as u32);
                links.entry(with).or_insert_with(|| link(with)).received.push(local);
            } else {
                let range = whole.tiles_of(task..task + 1);
                let slots = whole.slots_of_tiles(range.clone());
                let shifted = |slot: u32| slot - slots.start as u32 + place_of.len() as u32;
                let [from, to] = [slots.start, slots.end].map(|at| whole.runs.partition_point(|&run| run < at as u32));
                runs.extend(whole.runs[from..to].iter().map(|&run| shifted(run)));
                tiles.extend(whole.tiles[range].iter().map(|tile| {
                    let mut tile = tile.clone();
                    tile.slots = shifted(tile.slots.start)..shifted(tile.slots.end);
                    tile.form.rename(&[], name);
                    tile
                }));
                place_of.extend_from_slice(&whole.place_of[slots]);
                ghosts.push(0..0);
                for (&with, told) in &self.told[task] {
                    let told = told.iter().map(|&slot| name(slot)).collect();
                    links.entry(with).or_insert_with(|| link(with)).sent.push((local, told));
                }
            }
            tasks.push(tiles.len() as u32);
        }
        runs.push(place_of.len() as u32);
        let joined = (0..).zip(&here).flat_map(|(local, &t)| {
            let later = whole.graph.neighbors(t).iter().filter(move |&&u| u > t);
            later.filter_map(|u| here.binary_search(u).ok()).map(move |other| [local, other as u32]).collect::<Vec<_>>()
        });
        let graph = Graph::from_edges(here.len(), &joined.collect::<Vec<_>>()).expect("tasks of a share are numbered");
        let share = Share {
            vertices: whole.along_curve.len(),
            numbers: Vec::new(),
            names: here.iter().map(|&t| first + t).collect(),
            ghosts,
            corners,
            links: links.into_values().collect(),
        };
        Domain {
            precision: whole.precision,
            shape: whole.shape,
            width: whole.width,
            graph,
            order: whole.order,
            stars: whole.stars.clone(),
            tiles,
            tasks,
            parts: vec![[0; 2], [here.len() as u32, whole.along_curve.len() as u32]],
            runs,
            place_of,
            along_curve: Vec::new(),
            depths: here.iter().map(|&t| whole.depths[t as usize]).collect(),
            share: Some(share),
            elements: BTreeMap::new(),
        }
    }
}

/// The hosts of the tasks of elements, by star. `owners`: of tasks of vertices.
pub(crate) fn owners_of_elements(domain: &Domain, owners: &[u32]) -> BTreeMap<usize, Vec<u32>> {
    let starts = domain.starts();
    let of_task = |slot: u32| owners[task_of(&starts, slot) as usize];
    let of_star = |elements: &Domain| anchors(elements).into_iter().map(of_task).collect();
    domain.elements.iter().map(|(&star, elements)| (star, of_star(elements))).collect()
}

/// Of each task of elements, the slot of the first corner of its first element.
fn anchors(elements: &Domain) -> Vec<u32> {
    let first = |t: usize| elements.tiles[elements.tiles_of(t..t + 1)].iter().flat_map(corners_of).next();
    (0..elements.graph.len()).map(|t| *first(t).expect("a task has elements")).collect()
}

/// The slots of the corners of the elements of a tile, the first of the first element before all others.
pub(super) fn corners_of(tile: &Tile) -> &[u32] {
    let (Form::Rows { stars, .. } | Form::Spread { stars }) = &tile.form else {
        unreachable!("elements name their corners by slots")
    };
    &stars[0].others
}
