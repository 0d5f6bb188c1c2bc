//! What an engine walks.

use super::{Shape, State, Tile};
use crate::number::{Number, Precision};
use crate::program::StarShape;
use meshweft_mesh::{Graph, parallel};
use meshweft_schedule::{Order, depths, waves};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Tasks, with everything that their updates read besides the state: all of a mesh, or the share of one host and the *ghosts*
/// around it, tasks of other hosts of which only the vertices that it reads are here.
pub(crate) struct Domain {
    /// Of state and of data of stars.
    pub(crate) precision: Precision,
    pub(crate) shape: Shape,
    /// Vertices of a group.
    pub(crate) width: usize,
    /// Which tasks are joined by an edge.
    pub(crate) graph: Graph,
    /// How its tasks were made.
    pub(crate) order: Order,
    pub(crate) stars: Vec<StarShape>,
    pub(crate) tiles: Vec<Tile>,
    /// Tiles of task `t`: `tasks[t]..tasks[t + 1]`.
    pub(super) tasks: Vec<u32>,
    /// Where parts start among the tasks, and along the curve of the whole mesh, and the ends.
    pub(crate) parts: Vec<[u32; 2]>,
    /// Slots at which runs of the schedule start, and the end of them all: what updates a tile slot by slot waits between two.
    pub(crate) runs: Vec<u32>,
    /// From slots to places in the order; a padding lane has that of its vertex.
    pub(super) place_of: Vec<u32>,
    /// Slots of its own vertices in the order of the curve.
    pub(crate) along_curve: Vec<u32>,
    /// How many predecessors each task has in a row, in the whole mesh.
    pub(crate) depths: Vec<u32>,
    /// What makes it a share; none of a whole mesh.
    pub(crate) share: Option<Share>,
    /// Stars whose elements are projected: those as the vertices of a domain of their own, which name its corners by slots of this one.
    pub(crate) elements: BTreeMap<usize, Arc<Domain>>,
}

/// What a share of a mesh knows of the rest.
pub(crate) struct Share {
    /// Vertices of the whole mesh.
    pub(crate) vertices: usize,
    /// Numbers along the curve of the vertices of [`Domain::along_curve`].
    pub(crate) numbers: Vec<u32>,
    /// Numbers of the tasks in the whole mesh, ascending.
    pub(crate) names: Vec<u32>,
    /// For each task, the slots of its vertices if it is a ghost; empty if it is not. Of a ghost of elements, which of
    /// [`Share::corners`] it has.
    pub(crate) ghosts: Vec<Range<u32>>,
    /// Of elements, the slots of corners of ghosts.
    pub(crate) corners: Vec<u32>,
    /// What other hosts read of its own tasks.
    pub(crate) links: Vec<Link>,
}

/// What one other host reads of a share, and what is read of it.
pub(crate) struct Link {
    /// Which of the shares the other host has.
    pub(crate) with: u32,
    /// Own tasks at the border, ascending, and the slots of them that are read there.
    pub(crate) sent: Vec<(u32, Vec<u32>)>,
    /// Tasks of the other host that are read here, ascending.
    pub(crate) received: Vec<u32>,
}

impl Domain {
    /// Number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.place_of.len()
    }

    /// A state of zeros, elements included.
    #[cfg(feature = "cluster")]
    pub(crate) fn zeros<T: Number>(&self) -> State<T> {
        State { elements: self.elements_of_zeros(), ..State::zeros(self.slots(), self.shape) }
    }

    /// Elements of zeros, by star.
    pub(crate) fn elements_of_zeros<T: Number>(&self) -> BTreeMap<usize, State<T>> {
        let zeros = |elements: &Domain| State::zeros(elements.slots(), elements.shape);
        self.elements.iter().map(|(&star, elements)| (star, zeros(elements))).collect()
    }

    /// Bytes of the state of all slots, and of elements.
    #[cfg(feature = "cluster")]
    pub(crate) fn state_bytes(&self) -> usize {
        let own =
            self.slots() * (super::shared_stride(self.shape.shared) + self.shape.private) * self.precision.bytes();
        own + self.elements.values().map(|elements| elements.state_bytes()).sum::<usize>()
    }

    /// A whole mesh with other tiles, of which tasks are joined otherwise.
    pub(super) fn with(&self, tiles: Vec<Tile>, graph: Graph) -> Domain {
        assert!(self.share.is_none(), "a share is carved out of the whole");
        Domain {
            depths: depths(&graph, self.is_double_buffered()),
            graph,
            tiles,
            stars: self.stars.clone(),
            tasks: self.tasks.clone(),
            parts: self.parts.clone(),
            runs: self.runs.clone(),
            place_of: self.place_of.clone(),
            along_curve: self.along_curve.clone(),
            share: None,
            elements: self.elements.clone(),
            ..*self
        }
    }

    /// Whether elements of some star come and go.
    pub(crate) fn changes(&self) -> bool {
        self.stars.iter().any(|star| star.changes)
    }

    /// Whether sweeps read the old values of all neighbors.
    pub(crate) fn is_double_buffered(&self) -> bool {
        self.order.key.is_double_buffered()
    }

    /// Where [`waves`] of its tasks start, each of one part, and the end.
    pub(crate) fn waves(&self) -> Vec<u32> {
        let mut waves = waves(&self.graph, self.is_double_buffered());
        waves.extend(self.parts.iter().map(|part| part[0]));
        waves.sort_unstable();
        waves.dedup();
        waves
    }

    /// The tasks of a part; all of them for none.
    pub(crate) fn tasks_in(&self, part: Option<u32>) -> Range<u32> {
        let Some(part) = part else { return 0..self.graph.len() as u32 };
        match self.parts.get(part as usize..part as usize + 2) {
            Some(ends) => ends[0][0]..ends[1][0],
            None => 0..0,
        }
    }

    /// The part of a task.
    pub(crate) fn part_of(&self, t: u32) -> u32 {
        self.parts.partition_point(|part| part[0] <= t) as u32 - 1
    }

    /// Vertices of the whole mesh that measures look at: those of the first part.
    pub(crate) fn measured(&self) -> usize {
        self.parts[1][1] as usize
    }

    /// The slots of them are the first so many.
    #[cfg(feature = "gpu")]
    pub(crate) fn measured_slots(&self) -> usize {
        let tasks = self.tasks_in(Some(0));
        self.slots_of_tiles(self.tiles_of(tasks.start as usize..tasks.end as usize)).end
    }

    /// How many of its own they are: the first along the curve.
    pub(crate) fn measured_here(&self) -> usize {
        let all = self.measured();
        self.share.as_ref().map_or(all, |share| share.numbers.partition_point(|&number| (number as usize) < all))
    }

    /// The places of all slots; a padding lane has that of its vertex.
    pub(crate) fn place_of(&self) -> &[u32] {
        &self.place_of
    }

    /// The place in the order of the vertex in `slot`.
    pub(crate) fn place(&self, slot: usize) -> usize {
        self.place_of[slot] as usize
    }

    /// Places of the vertices in some slots; padding does not count.
    pub(crate) fn places(&self, slots: Range<usize>) -> impl Iterator<Item = usize> + Clone {
        let places = slots.map(|slot| self.place(slot));
        let before = std::iter::once(usize::MAX).chain(places.clone());
        places.zip(before).filter(|(own, before)| own != before).map(|(own, _)| own)
    }

    /// Slots of padding: each repeats the one before it.
    pub(crate) fn padding(&self) -> Vec<u32> {
        (1..self.slots()).filter(|&slot| self.place(slot) == self.place(slot - 1)).map(|slot| slot as u32).collect()
    }

    /// Vertices of the whole mesh.
    pub(crate) fn vertices(&self) -> usize {
        self.share.as_ref().map_or(self.along_curve.len(), |share| share.vertices)
    }

    /// Where the slots of the tasks of a whole mesh start, and the end.
    #[cfg(feature = "cluster")]
    pub(super) fn starts(&self) -> Vec<u32> {
        let start = |t: usize| self.slots_of_tiles(self.tiles_of(t..t + 1)).start as u32;
        (0..self.graph.len()).map(start).chain([self.slots() as u32]).collect()
    }

    /// Slots of each of its own tasks.
    pub(crate) fn own_slots(&self) -> Vec<Range<usize>> {
        let tasks = (0..self.graph.len()).filter(|&t| !self.is_ghost(t as u32));
        tasks.map(|t| self.slots_of_tiles(self.tiles_of(t..t + 1))).collect()
    }

    /// The number along the curve of the `i`-th vertex of [`Domain::along_curve`].
    pub(crate) fn number(&self, i: usize) -> u32 {
        self.share.as_ref().map_or(i as u32, |share| share.numbers[i])
    }

    /// Whether a task belongs to another host.
    pub(crate) fn is_ghost(&self, t: u32) -> bool {
        self.share.as_ref().is_some_and(|share| !share.ghosts[t as usize].is_empty())
    }

    /// Tiles of some consecutive tasks.
    pub(crate) fn tiles_of(&self, tasks: Range<usize>) -> Range<usize> {
        self.tasks[tasks.start] as usize..self.tasks[tasks.end] as usize
    }

    /// Slots of some consecutive tiles.
    pub(crate) fn slots_of_tiles(&self, tiles: Range<usize>) -> Range<usize> {
        match &self.tiles[tiles] {
            [] => 0..0,
            tiles => tiles[0].own().start..tiles[tiles.len() - 1].own().end,
        }
    }

    /// Bytes that a sweep reads of the layout: what tells it who the neighbors are, and the data of stars.
    pub(crate) fn round_bytes(&self) -> usize {
        self.tiles.iter().map(Tile::bytes).sum()
    }

    /// Visits every vertex of a layout of rows, as its tile and its number there, in the order or backward.
    pub(crate) fn each_vertex(&self, backward: bool, mut visit: impl FnMut(&Tile, usize)) {
        let each = |tile: &Tile| {
            let n = tile.own().len();
            (0..n).for_each(|i| visit(tile, if backward { n - 1 - i } else { i }));
        };
        match backward {
            false => self.tiles.iter().for_each(each),
            true => self.tiles.iter().rev().for_each(each),
        }
    }

    /// Whether some vertex keeps its state.
    pub(crate) fn is_fixed_anywhere(&self) -> bool {
        self.tiles.iter().any(|tile| tile.marks().contains(&true))
    }

    /// Changes every tile, given the places of its slots, before anybody walks the domain. In parallel.
    pub(super) fn each_tile(domain: &mut Arc<Domain>, change: impl Fn(&mut Tile, &[u32]) + Sync) {
        let Domain { tiles, place_of, .. } = Arc::get_mut(domain).expect("nobody walks a domain that is being made");
        parallel::each(tiles, |tile| {
            let own = tile.own();
            change(tile, &place_of[own]);
        });
    }
}

/// The task of a slot, by where the slots of tasks start.
#[cfg(feature = "cluster")]
pub(super) fn task_of(starts: &[u32], slot: u32) -> u32 {
    starts.partition_point(|&start| start <= slot) as u32 - 1
}
