//! Cuts the order into spans of vertices that are updated alike, and gives every vertex its slot.

use crate::number::lanes::TABLE;
use crate::program::CORNERS;
use meshweft_mesh::parallel;
use meshweft_schedule::Schedule;
use std::ops::Range;

/// A vertex with more incident elements than this, and than four times the mean, is updated by itself: it would hold up the
/// others of its group.
const HIGH_DEGREE: usize = 64;

/// Vertices of a group may have so many times the elements that they have in the mean.
const EVEN: usize = 2;

/// Which forms tiles may have. No result depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forms {
    /// Whichever is quickest on cores.
    Any,
    /// Tables and rows, as GPUs read them.
    Tables,
    /// Rows alone: some kernel looks at few elements of a vertex.
    Rows,
    /// No tables.
    #[cfg(test)]
    Spread,
}

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

/// Cuts the order. `starts`: for each star, where the elements around the vertex at each place start in a list of them, and the end.
pub(super) fn cut(schedule: &Schedule, starts: &[&[u32]], width: usize, forms: Forms) -> Cut {
    let n = schedule.permutation().len();
    // The limit is four times the mean, which is rounded up.
    let limit = |starts: &[u32]| HIGH_DEGREE.max(4 * (starts[n] as usize).div_ceil(n.max(1)));
    let stars: Vec<(&[u32], usize)> = starts.iter().map(|&starts| (starts, limit(starts))).collect();
    let degree = |starts: &[u32], place: usize| (starts[place + 1] - starts[place]) as usize;
    // Even a tile of one group must find room for all that its vertices read.
    let room = (TABLE / width - 1) / (CORNERS - 1);
    let stands_alone = |place: usize| {
        width == 1
            || forms == Forms::Rows
            || stars.iter().map(|(starts, _)| degree(starts, place)).sum::<usize>() > room
            || stars.iter().any(|&(starts, limit)| degree(starts, place) > limit)
    };
    let alone = parallel::collect(n, stands_alone);
    let alone = |place: u32| alone[place as usize];
    // High-degree vertices that stand side by side in an order by degree fill the lanes of a group as well as any.
    let even = |v: u32, end: u32| {
        let group = v..end.min(v + width as u32);
        let is_even = |starts: &&[u32]| {
            let most = group.clone().map(|place| degree(starts, place as usize)).max().unwrap_or(0);
            let all = (starts[group.end as usize] - starts[group.start as usize]) as usize;
            most <= usize::from(u16::MAX) && most * width <= EVEN * all
        };
        let can = forms == Forms::Any && width > 1 && group.len() == width && group.clone().any(alone);
        (can && starts.iter().all(is_even)).then_some(group)
    };
    let mut cutter =
        Cutter { width, spans: Vec::new(), open: None, slots: vec![0; n], place_of: Vec::with_capacity(n) };
    let mut tasks = vec![0];
    let mut runs = schedule.runs().windows(2).map(|w| w[0]..w[1]).peekable();
    for task in schedule.tasks().windows(2) {
        while let Some(run) = runs.next_if(|run| run.end <= task[1]) {
            let mut v = run.start;
            while v < run.end {
                if let Some(group) = even(v, run.end) {
                    v = group.end;
                    cutter.group(group);
                } else if alone(v) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::Graph;

    /// Vertices in wide spans, of so many elements each.
    fn wide(degrees: &[u32], forms: Forms) -> Vec<u32> {
        let graph = Graph::from_edges(degrees.len(), &[]).unwrap();
        let schedule = Schedule::new(&graph, meshweft_schedule::Order::JACOBI, 1 << 20).unwrap();
        let mut starts = vec![0];
        starts.extend(degrees.iter().scan(0, |end, degree| {
            *end += degree;
            Some(*end)
        }));
        let Cut { spans, place_of, .. } = cut(&schedule, &[&starts], 8, forms);
        let slots = spans.iter().filter(|span| span.is_wide).flat_map(|span| span.slots.clone());
        let mut places: Vec<u32> = slots.map(|slot| place_of[slot as usize]).collect();
        places.dedup();
        places
    }

    #[test]
    fn hubs_side_by_side_fill_a_group() {
        // One far above its neighbors, eight alike, and many others.
        let mut degrees = vec![9000, 800, 790, 780, 770, 760, 750, 740, 730];
        degrees.resize(4009, 2);
        assert_eq!(wide(&degrees, Forms::Tables), (9..4009).collect::<Vec<_>>());
        assert_eq!(wide(&degrees, Forms::Any), (1..4009).collect::<Vec<_>>());
        assert_eq!(wide(&degrees, Forms::Rows), [0; 0]);
        // More than 16 bits can count.
        degrees[1..9].fill(70_000);
        assert_eq!(wide(&degrees, Forms::Any), (9..4009).collect::<Vec<_>>());
    }
}
