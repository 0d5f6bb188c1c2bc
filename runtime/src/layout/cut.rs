//! Cuts the order into spans of vertices that are updated alike, and gives every vertex its slot.

use crate::number::lanes::TABLE;
use crate::program::CORNERS;
use crate::schedule::Schedule;
use rayon::prelude::*;
use std::ops::Range;

/// A vertex with more incident elements than this, and than four times the mean, is updated by itself: it would hold up the
/// others of its group.
const HIGH_DEGREE: usize = 64;

/// Consecutive groups of a task that are updated alike: what a tile is made of.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// Its slots: whole groups.
    pub(super) slots: Range<u32>,
    /// Vertices in them: of a wide span every lane counts.
    pub(super) vertices: u32,
    /// Whether vertices are updated side by side.
    pub(super) is_wide: bool,
}

/// Where every vertex lies.
pub(super) struct Cut {
    pub(super) spans: Vec<Span>,
    /// Spans of task `t`: `tasks[t]..tasks[t + 1]`.
    pub(super) tasks: Vec<u32>,
    /// From places to slots.
    pub(super) slots: Vec<u32>,
    /// From slots to places; a padding lane has that of its vertex.
    pub(super) place_of: Vec<u32>,
}

/// Cuts the order. `starts`: for each star, where the elements around the vertex at each place start in a list of them, and the end;
/// `is_plain`: whether all vertices are updated one by one.
pub(super) fn cut(schedule: &Schedule, starts: &[&[u32]], width: usize, is_plain: bool) -> Cut {
    let n = schedule.permutation().len();
    // The limit is four times the mean, which is rounded up.
    let limit = |starts: &[u32]| HIGH_DEGREE.max(4 * (starts[n] as usize).div_ceil(n.max(1)));
    let stars: Vec<(&[u32], usize)> = starts.iter().map(|&starts| (starts, limit(starts))).collect();
    let degree = |starts: &[u32], place: usize| (starts[place + 1] - starts[place]) as usize;
    // Even a tile of one group must find room for all that its vertices read.
    let room = (TABLE / width - 1) / (CORNERS - 1);
    let stands_alone = |place: usize| {
        width == 1
            || is_plain
            || stars.iter().map(|(starts, _)| degree(starts, place)).sum::<usize>() > room
            || stars.iter().any(|&(starts, limit)| degree(starts, place) > limit)
    };
    let alone: Vec<bool> = (0..n).into_par_iter().map(stands_alone).collect();
    let alone = |place: u32| alone[place as usize];
    let mut cutter =
        Cutter { width, spans: Vec::new(), open: None, slots: vec![0; n], place_of: Vec::with_capacity(n) };
    let mut tasks = vec![0];
    let mut runs = schedule.runs().windows(2).map(|w| w[0]..w[1]).peekable();
    for task in schedule.tasks().windows(2) {
        while let Some(run) = runs.next_if(|run| run.end <= task[1]) {
            let mut v = run.start;
            while v < run.end {
                if alone(v) {
                    cutter.row(v);
                    v += 1;
                } else {
                    let end = run.end.min(v + width as u32);
                    let next = (v..end).find(|&u| alone(u)).unwrap_or(end);
                    cutter.group(v..next);
                    v = next;
                }
            }
        }
        cutter.close();
        tasks.push(cutter.spans.len() as u32);
    }
    Cut { spans: cutter.spans, tasks, slots: cutter.slots, place_of: cutter.place_of }
}

/// Spans as they are cut, vertex after vertex.
struct Cutter {
    width: usize,
    spans: Vec<Span>,
    /// The span that is not complete yet.
    open: Option<Span>,
    slots: Vec<u32>,
    place_of: Vec<u32>,
}

impl Cutter {
    /// Adds a group of vertices that are updated side by side.
    fn group(&mut self, places: Range<u32>) {
        self.add(places, true);
        self.fill();
    }

    /// Adds a vertex that is updated by itself.
    fn row(&mut self, place: u32) {
        self.add(place..place + 1, false);
    }

    fn add(&mut self, places: Range<u32>, is_wide: bool) {
        if self.open.as_ref().is_some_and(|open| open.is_wide != is_wide) {
            self.close();
        }
        let start = self.place_of.len() as u32;
        let open = self.open.get_or_insert(Span { slots: start..start, vertices: 0, is_wide });
        open.vertices += places.len() as u32;
        for place in places {
            self.slots[place as usize] = self.place_of.len() as u32;
            self.place_of.push(place);
        }
    }

    /// Fills the last group with padding: copies of its last vertex.
    fn fill(&mut self) {
        if let Some(&last) = self.place_of.last() {
            self.place_of.resize(self.place_of.len().next_multiple_of(self.width), last);
        }
    }

    fn close(&mut self) {
        self.fill();
        if let Some(mut span) = self.open.take() {
            span.slots.end = self.place_of.len() as u32;
            self.spans.push(span);
        }
    }
}
