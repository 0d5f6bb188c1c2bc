//! The shares of a mesh that hosts own.
//!
//! A share is carved out of the layout of the whole mesh, tile by tile: its tasks, tiles and slots keep their order, so a wide
//! tile only needs new names for its halo, and what a host computes is what one host would have computed. Around its own
//! tasks lie ghosts: those tasks of other hosts that hold a vertex which it reads, with no other vertices than these.
//!
//! Where hosts stand in a grid, stars that are only searched along are no part of a share: they are cut in blocks.

use super::blocks::{Blocks, Places};
use super::domain::{Domain, Link, Share, task_of};
use super::reach::Reach;
use super::{Form, Layout, State, Tile, View};
use crate::number::Number;
use meshweft_mesh::Graph;
use meshweft_schedule::depths;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Which host owns which tasks of a layout, and which vertices of others it reads.
pub(crate) struct Shares<'a> {
    layout: &'a Layout,
    /// That of the layout, or one with other elements of changing stars.
    whole: &'a Domain,
    /// The host of each task.
    owners: &'a [u32],
    /// Slots of each task, and the end.
    starts: Vec<u32>,
    /// For each host, the slots of others that it reads or must know of, ascending.
    ghosts: Vec<Vec<u32>>,
    /// Where vertices are in the grid of hosts, if they stand in one.
    places: Option<Places>,
    /// The tasks that wait for each other although some stars are left out, ascending; none if all are there.
    joined: Option<Vec<[u32; 2]>>,
    /// By star, who has the elements that are projected.
    elements: BTreeMap<usize, Reach<'a>>,
    /// Which tasks are joined, by stars or because elements reach from one to the other.
    graph: Cow<'a, Graph>,
    /// How many predecessors each task has there in a row.
    depths: Cow<'a, [u32]>,
}

impl<'a> Shares<'a> {
    /// `grid`: rows and columns of hosts, if they stand in a grid. Cost O(vertices + halos).
    ///
    /// # Panics
    /// If a task has no host, or a host that is not one of `hosts`.
    pub(crate) fn new(layout: &'a Layout, owners: &'a [u32], hosts: usize, grid: Option<[u32; 2]>) -> Shares<'a> {
        Shares::of(layout, &layout.domain, owners, (hosts, grid))
    }

    /// The same of a domain with other elements of changing stars.
    pub(crate) fn of(
        layout: &'a Layout,
        whole: &'a Domain,
        owners: &'a [u32],
        (hosts, grid): (usize, Option<[u32; 2]>),
    ) -> Shares<'a> {
        assert!(owners.len() == layout.graph.len() && owners.iter().all(|&host| (host as usize) < hosts));
        let starts = whole.starts();
        let grid = grid.filter(|_| !layout.searched.is_empty());
        let places = grid.map(|grid| Places::new(layout, owners, grid));
        let joined = places.is_some().then(Vec::new);
        let (ghosts, elements) = (vec![Vec::new(); hosts], BTreeMap::new());
        let (graph, depths) = (Cow::Borrowed(&whole.graph), Cow::Borrowed(&whole.depths[..]));
        let mut shares = Shares { layout, whole, owners, starts, ghosts, places, joined, elements, graph, depths };
        shares.join();
        shares.reach();
        for t in 0..owners.len() {
            let own = owners[t];
            let mut ghosts = std::mem::take(&mut shares.ghosts[own as usize]);
            for tile in &whole.tiles[whole.tiles_of(t..t + 1)] {
                each_read(tile, shares.left_out(), |slot| {
                    if owners[shares.task(slot) as usize] != own {
                        ghosts.push(slot);
                    }
                });
            }
            shares.ghosts[own as usize] = ghosts;
        }
        for host in 0..hosts {
            let mut ghosts = std::mem::take(&mut shares.ghosts[host]);
            ghosts.extend(shares.elements.values().flat_map(|reach| reach.of_others(host as u32)));
            ghosts.sort_unstable();
            ghosts.dedup();
            shares.add_unread(host as u32, &mut ghosts);
            shares.ghosts[host] = ghosts;
        }
        shares
    }

    /// The stars that are no part of shares.
    fn left_out(&self) -> &'a [usize] {
        if self.places.is_some() { &self.layout.searched } else { &[] }
    }

    /// The blocks of a host, if hosts stand in a grid and there is something to search along.
    pub(crate) fn blocks(&self, host: u32) -> Option<Blocks> {
        Some(self.places.as_ref()?.blocks(self.layout, host))
    }

    /// Finds which tasks are joined by a star that is part of shares, if some are not.
    fn join(&mut self) {
        let Some(mut joined) = self.joined.take() else { return };
        for t in 0..self.owners.len() {
            let start = joined.len();
            for tile in &self.whole.tiles[self.whole.tiles_of(t..t + 1)] {
                each_read(tile, self.left_out(), |slot| {
                    let (u, t) = (self.task(slot), t as u32);
                    joined.push([t.min(u), t.max(u)]);
                });
            }
            joined[start..].sort_unstable();
            joined.dedup();
        }
        joined.sort_unstable();
        joined.dedup();
        self.joined = Some(joined);
    }

    /// Finds who has which elements, and joins tasks that only they join: a host that does nothing but project elements at the vertices of a
    /// task would otherwise not be waited for.
    fn reach(&mut self) {
        let reach = |elements| Reach::new(elements, |slot| self.task(slot), self.owners);
        self.elements = self.whole.elements.iter().map(|(&star, elements)| (star, reach(elements))).collect();
        let pairs = self.elements.values().flat_map(|reach| reach.pairs(|slot| self.task(slot)));
        let of_two = |&[a, b]: &[u32; 2]| self.owners[a as usize] != self.owners[b as usize];
        let mut reached: Vec<[u32; 2]> = pairs.filter(of_two).collect();
        if let Some(joined) = &mut self.joined {
            joined.extend(&reached);
            joined.sort_unstable();
            joined.dedup();
        }
        reached.retain(|&[a, b]| self.graph.neighbors(a).binary_search(&b).is_err());
        if reached.is_empty() {
            return;
        }
        let later = |t: u32| self.graph.neighbors(t).iter().filter(move |&&u| u > t).map(move |&u| [t, u]);
        let edges: Vec<[u32; 2]> = (0..self.graph.len() as u32).flat_map(later).chain(reached).collect();
        let graph = Graph::from_edges(self.graph.len(), &edges).expect("tasks are numbered");
        self.depths = Cow::Owned(depths(&graph, self.whole.is_double_buffered()));
        self.graph = Cow::Owned(graph);
    }

    /// The tasks that wait for one, and for which it waits.
    fn neighbors(&self, t: u32) -> impl Iterator<Item = u32> {
        let waits =
            move |u: u32| self.joined.as_ref().is_none_or(|joined| joined.binary_search(&[t.min(u), t.max(u)]).is_ok());
        self.graph.neighbors(t).iter().copied().filter(move |&u| waits(u))
    }

    /// Adds a slot of each task that a host waits for and reads nothing of, as where a directed edge leads to it: its rounds must be
    /// told, too.
    fn add_unread(&self, host: u32, ghosts: &mut Vec<u32>) {
        let mut read: Vec<u32> = ghosts.iter().map(|&slot| self.task(slot)).collect();
        read.dedup();
        let is_own = |t: u32| self.owners[t as usize] == host;
        let own = (0..self.owners.len() as u32).filter(|&t| is_own(t));
        let waited_for = own.flat_map(|t| self.neighbors(t)).filter(|&u| !is_own(u));
        let before = ghosts.len();
        ghosts.extend(waited_for.filter(|u| read.binary_search(u).is_err()).map(|u| self.starts[u as usize]));
        if ghosts.len() > before {
            ghosts.sort_unstable();
            ghosts.dedup();
        }
    }

    /// The task of a slot.
    fn task(&self, slot: u32) -> u32 {
        task_of(&self.starts, slot)
    }

    /// Tasks of a host and its ghosts, ascending, with the slots that it knows of each.
    fn pieces(&self, host: u32) -> Vec<(u32, Piece<'_>)> {
        let ghosts = self.ghosts[host as usize].chunk_by(|&a, &b| self.task(a) == self.task(b));
        let ghosts = ghosts.map(|slots| (self.task(slots[0]), Piece::Ghost(slots)));
        let own = (0..self.owners.len() as u32).filter(|&t| self.owners[t as usize] == host);
        let own = own.map(|t| (t, Piece::Own(self.starts[t as usize]..self.starts[t as usize + 1])));
        let mut pieces: Vec<_> = ghosts.chain(own).collect();
        pieces.sort_by_key(|piece| piece.0);
        pieces
    }

    /// The slots of the layout that the slots of a share stand for; the padding of a ghost stands for its last vertex.
    pub(crate) fn slots(&self, host: u32) -> Vec<u32> {
        let mut slots = Vec::new();
        for (_, piece) in self.pieces(host) {
            match piece {
                Piece::Own(range) => slots.extend(range),
                Piece::Ghost(ghosts) => {
                    slots.extend_from_slice(ghosts);
                    let padded = slots.len().next_multiple_of(self.layout.width);
                    slots.resize(padded, ghosts[ghosts.len() - 1]);
                }
            }
        }
        slots
    }

    /// The state of the vertices of a share, from that of the whole.
    pub(crate) fn state<T: Number>(&self, host: u32, view: View<'_, T>) -> State<T> {
        view.of(&self.slots(host))
    }

    /// The state of the elements of a share, star after star, from that of the whole.
    pub(crate) fn elements<T: Number>(&self, host: u32, whole: &State<T>) -> Vec<State<T>> {
        self.elements.iter().map(|(star, reach)| reach.state(host, &whole.elements[star])).collect()
    }

    /// The share of a host. Cost O((its slots + its halos) log(its slots) + its tiles + the ghosts of all hosts).
    pub(crate) fn domain(&self, host: u32) -> Domain {
        let (schedule, whole) = (&self.layout.schedule, self.whole);
        let (pieces, slots) = (self.pieces(host), self.slots(host));
        // They ascend in both, but for the padding of ghosts, which follows what it repeats.
        let name = |slot: u32| slots.partition_point(|&other| other < slot) as u32;
        let (mut tiles, mut tasks, mut ghosts, mut along) = (Vec::new(), vec![0], Vec::new(), Vec::new());
        let mut runs = Vec::new();
        for (t, piece) in &pieces {
            ghosts.push(match piece {
                Piece::Own(own) => {
                    let range = whole.tiles_of(*t as usize..*t as usize + 1);
                    let [first, end] = [own.start, own.end].map(|at| whole.runs.partition_point(|&run| run < at));
                    runs.extend(whole.runs[first..end].iter().map(|&run| name(run)));
                    tiles.extend(whole.tiles[range].iter().map(|tile| renamed(tile, self.left_out(), &name)));
                    let (start, places) = (name(own.start), &whole.place_of[own.start as usize..own.end as usize]);
                    let vertices = (0..places.len()).filter(|&i| i == 0 || places[i] != places[i - 1]);
                    let order = schedule.permutation().order();
                    along.extend(vertices.map(|i| (order[places[i] as usize], start + i as u32)));
                    0..0
                }
                Piece::Ghost(read) => name(read[0])..name(read[0]) + read.len() as u32,
            });
            tasks.push(tiles.len() as u32);
        }
        runs.push(slots.len() as u32);
        along.sort_unstable();
        let names: Vec<u32> = pieces.iter().map(|piece| piece.0).collect();
        let share = Share {
            vertices: schedule.permutation().len(),
            numbers: along.iter().map(|pair| pair.0).collect(),
            links: self.links(host, &names, &name),
            ghosts,
            corners: Vec::new(),
            names: names.clone(),
        };
        let mut first = whole.graph.len() as u32;
        let of_star = |(&star, reach): (&usize, &Reach)| {
            let elements = reach.share(host, first, &name);
            first += whole.elements[&star].graph.len() as u32;
            (star, Arc::new(elements))
        };
        let elements = self.elements.iter().map(of_star).collect();
        Domain {
            precision: whole.precision,
            shape: whole.shape,
            width: whole.width,
            graph: self.graph(host, &names),
            order: whole.order,
            stars: whole.stars.clone(),
            tiles,
            tasks,
            parts: whole.parts.iter().map(|&[t, v]| [names.partition_point(|&u| u < t) as u32, v]).collect(),
            runs,
            place_of: slots.iter().map(|&slot| whole.place_of[slot as usize]).collect(),
            along_curve: along.iter().map(|pair| pair.1).collect(),
            depths: names.iter().map(|&t| self.depths[t as usize]).collect(),
            share: Some(share),
            elements,
        }
    }

    /// Which tasks of a share are joined by an edge, as far as it has one of the two. `names`: of its tasks, in the whole mesh.
    fn graph(&self, host: u32, names: &[u32]) -> Graph {
        let is_own = |t: u32| self.owners[t as usize] == host;
        let mut edges = Vec::new();
        for (local, &t) in (0..).zip(names) {
            let later = self.neighbors(t).filter(|&u| u > t && (is_own(t) || is_own(u)));
            edges.extend(later.filter_map(|u| Some([local, names.binary_search(&u).ok()? as u32])));
        }
        Graph::from_edges(names.len(), &edges).expect("tasks of a share are numbered")
    }

    fn links(&self, host: u32, names: &[u32], name: &impl Fn(u32) -> u32) -> Vec<Link> {
        let local = |t: u32| names.binary_search(&t).expect("a task at the border is known") as u32;
        let mut links = Vec::new();
        for (with, ghosts) in (0..).zip(&self.ghosts).filter(|(with, _)| *with != host) {
            let mine: Vec<u32> =
                ghosts.iter().copied().filter(|&slot| self.owners[self.task(slot) as usize] == host).collect();
            let sent = mine.chunk_by(|&a, &b| self.task(a) == self.task(b));
            let sent: Vec<_> = sent
                .map(|slots| (local(self.task(slots[0])), slots.iter().map(|&slot| name(slot)).collect()))
                .collect();
            let mut received: Vec<u32> = self.ghosts[host as usize].iter().map(|&slot| self.task(slot)).collect();
            received.dedup();
            received.retain(|&t| self.owners[t as usize] == with);
            if !sent.is_empty() || !received.is_empty() {
                links.push(Link { with, sent, received: received.into_iter().map(local).collect() });
            }
        }
        links
    }
}

/// What a host knows of a task.
enum Piece<'a> {
    /// All of its slots.
    Own(Range<u32>),
    /// Those that it reads.
    Ghost(&'a [u32]),
}

/// Visits the slots that a tile reads and does not own, but for some stars; some slots more than once.
fn each_read(tile: &Tile, left_out: &[usize], mut visit: impl FnMut(u32)) {
    tile.changing.iter().flat_map(|changing| changing.others()).for_each(&mut visit);
    match &tile.form {
        Form::Wide { halo, .. } => halo.iter().for_each(|&slot| visit(slot)),
        Form::Spread { stars } => stars.iter().flat_map(|star| &*star.others).for_each(|&slot| visit(slot)),
        Form::Rows { stars, .. } => {
            let read = stars.iter().enumerate().filter(|(star, _)| !left_out.contains(star));
            read.flat_map(|(_, rows)| &*rows.others).for_each(|&slot| visit(slot));
        }
    }
}

/// The same tile where slots have other names, in the same order, without the elements of some stars.
fn renamed(tile: &Tile, left_out: &[usize], name: &impl Fn(u32) -> u32) -> Tile {
    let mut tile = tile.clone();
    let start = name(tile.slots.start);
    tile.slots = start..start + tile.slots.len() as u32;
    tile.changing = tile.changing.map(|changing| Arc::new(changing.renamed(name)));
    tile.form.rename(left_out, name);
    tile
}
