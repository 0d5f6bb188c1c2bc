//! What a device will be asked to do, as plain data: chunks of arrays, and visits to their slots or tasks.
//!
//! Made from a layout and a few limits, without a device; tests look at it without one, too.

#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::layout::{Kind, Layout, Tile, shared_stride};
use crate::program::Number;
use crate::schedule::Plan as Order;
use meshweft_mesh::Graph;
use meshweft_shaders::{Harness, RANGE_WORDS, STAR_WORDS, TILE_WORDS};
use std::ops::Range;

/// What the device can do, and the size of records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes that one kernel can see of one array.
    pub(crate) binding_bytes: u64,
    /// Bytes of memory that a workgroup shares.
    pub(crate) workgroup_bytes: u32,
    /// The most invocations of a workgroup that pays.
    pub(crate) invocations: u32,
    /// Reals of a vertex.
    pub(crate) shared: usize,
    pub(crate) private: usize,
}

/// Everything about a layout that a device needs.
pub(crate) struct Plan {
    pub(crate) harness: Harness,
    pub(crate) chunks: Vec<Chunk>,
    /// One round of a sweep in place.
    pub(crate) sweep: Round,
    /// One round that reads old values: every slot once, in any order.
    pub(crate) all: Vec<Visit>,
    /// Number of tasks, if one workgroup walks them.
    pub(crate) tasks: u32,
    /// Every slot once, as slots even where tasks have tables: for updates that read no neighbors.
    pub(crate) each: Vec<Visit>,
}

/// How a round in place goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// One visit after the other.
    Visits(Vec<Visit>),
    /// Tasks as they become ready, wave after wave; rounds overlap.
    Waves,
}

/// One dispatch: work of one chunk that may be done at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) chunk: usize,
    pub(crate) what: What,
}

/// What is visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Slots, an invocation each.
    Slots(Range<u32>),
    /// Tasks of the chunk, a workgroup each.
    Tasks(Range<u32>),
}

/// A run of whole tiles with its arrays, which fit into one binding each.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) groups: Range<u32>,
    /// Everything that is a whole number, array after array.
    pub(crate) words: Vec<u32>,
    /// Data of stars, as the words of their numbers.
    pub(crate) reals: Vec<u32>,
    /// The uniform `Range`, but for what is visited.
    pub(crate) facts: Vec<u32>,
}

/// The task graph of waves: `Range.graph` points at it.
#[derive(Clone, Debug)]
pub(crate) struct Frontier {
    /// The words of the frontier at the start of a sweep.
    pub(crate) words: Vec<u32>,
    pub(crate) tasks: u32,
}

/// Places of a `Range` that change from visit to visit.
pub(crate) const FIRST: usize = 0;
pub(crate) const END: usize = 1;
pub(crate) const PARITY: usize = 6;
pub(crate) const ROUNDS: usize = 7;
const SLOT0: usize = 2;
const COUNTS: usize = 3;
const TASKS: usize = 4;
const TILES: usize = 5;
const GRAPH: usize = 8;

/// The mark of a column of vertices by themselves.
const ALONE: u32 = 1 << 31;

impl Plan {
    /// Plans for a layout.
    ///
    /// # Errors
    /// A tile that no binding holds; tasks in waves that need more than one chunk.
    pub(crate) fn new<T: Number>(layout: &Layout<T>, limits: &Limits) -> Result<Plan> {
        let mut harness = Harness {
            width: layout.width as u32,
            rows: layout.tiles.iter().any(|tile| matches!(tile.kind, Kind::Rows { .. })),
            table: None,
            phase_size: limits.invocations.min(64),
            walk_size: walk_size(layout, limits),
        };
        if matches!(layout.schedule.plan(), Order::Tasks { .. }) {
            let slots = |tile: &Tile| match &tile.kind {
                Kind::Wide { halo } => layout.own(tile).len() + halo.len(),
                Kind::Rows { .. } => 0,
            };
            let most = layout.tiles.iter().map(slots).max().unwrap_or(0);
            let bytes = most * limits.shared.max(1) * 4;
            // A few words of workgroup memory are the kernels' own.
            let fits = bytes + 64 <= limits.workgroup_bytes as usize;
            harness.table = (fits && most > 0).then_some(most as u32);
        }
        let parts = tasks_of(layout, &harness, limits);
        let waves = matches!(layout.schedule.order(), crate::schedule::Order::PriorityDag);
        let cuts = cut(layout, &parts, &harness, limits)?;
        if waves && cuts.len() > 2 {
            return Err(Error::Gpu(format!(
                "order priority-dag needs arrays of more than the {} bytes that a kernel can see; \
                 order blocked runs in pieces",
                limits.binding_bytes
            )));
        }
        let graph = match layout.schedule.plan() {
            Order::Tasks { graph, .. } if waves => Some(graph),
            _ => None,
        };
        let chunks: Vec<Chunk> =
            cuts.windows(2).map(|cut| Chunk::new(layout, &parts[cut[0]..cut[1]], &harness, graph)).collect();
        let starts: Vec<u32> = chunks.iter().map(|chunk| chunk.groups.start).collect();
        let chunk_of = |group: u32| starts.partition_point(|&start| start <= group) - 1;
        let width = harness.width;
        // Slots of some groups, cut where chunks are.
        let slots = |groups: Range<u32>| {
            let mut visits = Vec::new();
            let mut start = groups.start;
            while start < groups.end {
                let chunk = chunk_of(start);
                let end = groups.end.min(chunks[chunk].groups.end);
                visits.push(Visit { chunk, what: What::Slots(start * width..end * width) });
                start = end;
            }
            visits
        };
        let total = layout.tiles.last().map_or(0, |tile| tile.groups.end);
        let each = slots(0..total);
        let all = match harness.table {
            None => each.clone(),
            Some(_) => cuts
                .windows(2)
                .enumerate()
                .map(|(chunk, cut)| Visit { chunk, what: What::Tasks(0..(cut[1] - cut[0]) as u32) })
                .collect(),
        };
        let sweep = match layout.schedule.plan() {
            _ if waves => Round::Waves,
            Order::Phases { .. } => {
                let mut number = 0;
                let visits = parts.chunk_by(|a, b| a.phase == b.phase).flat_map(|phase| {
                    let chunk = cuts.partition_point(|&cut| cut <= number) - 1;
                    let task = (number - cuts[chunk]) as u32;
                    number += phase.len();
                    match phase[0].walked {
                        false => slots(groups_of(layout, &(phase[0].tiles.start..phase[phase.len() - 1].tiles.end))),
                        true => vec![Visit { chunk, what: What::Tasks(task..task + 1) }],
                    }
                });
                Round::Visits(visits.collect())
            }
            Order::Tasks { graph, .. } => Round::Visits(independent(graph, &cuts)),
        };
        Ok(Plan { harness, chunks, sweep, all, tasks: parts.len() as u32, each })
    }
}

/// Invocations that walk a task: about as many as a run has slots, because the others have nothing to do.
fn walk_size<T: Number>(layout: &Layout<T>, limits: &Limits) -> u32 {
    let runs = layout.schedule.runs().len().max(2) - 1;
    let mean = layout.slots().div_ceil(runs) as u32;
    let most = limits.invocations.min(256);
    mean.next_power_of_two().clamp((layout.width as u32).max(32).min(most), most)
}

/// Tiles that lie in one chunk.
struct Part {
    tiles: Range<usize>,
    /// Parts of one phase are visited together.
    phase: usize,
    /// Whether one workgroup walks it. Tasks always may be; of phases, runs of small ones are.
    walked: bool,
}

/// Tasks of a schedule of tasks. Of one of phases, each tile; but small phases in sequence are one part: one workgroup
/// walks them faster than that many dispatches are launched.
fn tasks_of<T: Number>(layout: &Layout<T>, harness: &Harness, limits: &Limits) -> Vec<Part> {
    let count = layout.schedule.parts();
    let tiles = |part: usize| layout.tiles_of(part..part + 1);
    let is_phases = matches!(layout.schedule.plan(), Order::Phases { .. });
    /// Slots of a phase that a workgroup updates in a couple of strides.
    const SMALL: usize = 512;
    let slots = |tiles: Range<usize>| layout.tiles[tiles].iter().map(|tile| layout.own(tile).len()).sum::<usize>();
    let small = |part: usize| slots(tiles(part)) <= SMALL;
    // What one workgroup walks lies in one chunk: several of them are to find room.
    let fits = |part: Part| size(layout, &part, harness, limits).iter().all(|&bytes| bytes <= limits.binding_bytes / 4);
    let mut parts: Vec<Part> = Vec::new();
    for part in 0..count {
        let walked = !is_phases || (small(part) && !layout.schedule.is_double_buffered());
        match parts.last_mut() {
            Some(last)
                if is_phases
                    && walked
                    && last.walked
                    && fits(Part { tiles: last.tiles.start..tiles(part).end, ..*last }) =>
            {
                last.tiles.end = tiles(part).end;
            }
            _ if walked => parts.push(Part { tiles: tiles(part), phase: part, walked }),
            _ => parts.extend(tiles(part).map(|tile| Part { tiles: tile..tile + 1, phase: part, walked })),
        }
    }
    parts
}

fn groups_of<T>(layout: &Layout<T>, tiles: &Range<usize>) -> Range<u32> {
    match layout.tiles.get(tiles.clone()) {
        Some([first, .., last]) => first.groups.start..last.groups.end,
        Some([only]) => only.groups.clone(),
        _ => 0..0,
    }
}

/// Visits to tasks: as many in sequence as have no edge between them, cut where chunks are.
fn independent(graph: &Graph, cuts: &[usize]) -> Vec<Visit> {
    let mut visits = Vec::new();
    for (chunk, cut) in cuts.windows(2).enumerate() {
        let mut start = cut[0];
        for task in cut[0]..=cut[1] {
            let waits = || graph.neighbors(task as u32).iter().any(|&u| (start..task).contains(&(u as usize)));
            if task > start && (task == cut[1] || waits()) {
                let tasks = (start - cut[0]) as u32..(task - cut[0]) as u32;
                visits.push(Visit { chunk, what: What::Tasks(tasks) });
                start = task;
            }
        }
    }
    visits
}

/// Where chunks start among the parts, and the end.
fn cut<T: Number>(layout: &Layout<T>, parts: &[Part], harness: &Harness, limits: &Limits) -> Result<Vec<usize>> {
    let mut cuts = vec![0];
    let mut sizes = [0u64; 3];
    for (number, part) in parts.iter().enumerate() {
        let own = size(layout, part, harness, limits);
        let sum: [u64; 3] = std::array::from_fn(|i| sizes[i] + own[i]);
        if let Some(bytes) = own.iter().find(|&&bytes| bytes > limits.binding_bytes) {
            return Err(Error::Gpu(format!(
                "a task takes {bytes} bytes, and a kernel can see {} of one array; order blocked has small ones",
                limits.binding_bytes
            )));
        }
        sizes = if sum.iter().any(|&bytes| bytes > limits.binding_bytes) {
            cuts.push(number);
            own
        } else {
            sum
        };
    }
    cuts.push(parts.len());
    if parts.is_empty() {
        cuts.truncate(1);
    }
    Ok(cuts)
}

/// Bytes that a part takes: words, reals, private state. Never less than it will take.
fn size<T: Number>(layout: &Layout<T>, part: &Part, harness: &Harness, limits: &Limits) -> [u64; 3] {
    let name_bytes = if harness.table.is_some() { 2 } else { 4 };
    let (mut words, mut reals, mut slots) = (64u64, 0u64, 0u64);
    for tile in &layout.tiles[part.tiles.clone()] {
        let own = layout.own(tile).len() as u64;
        slots += own;
        words += 4 * (TILE_WORDS as u64 + 4 + tile.groups.len() as u64) + 4 * own;
        for (wide, rows) in layout.wide.iter().zip(&layout.rows) {
            let (others, data) = (wide.shape.0 as u64, wide.shape.1 as u64);
            match &tile.kind {
                Kind::Wide { halo } => {
                    let columns = u64::from(wide.columns[tile.groups.end as usize])
                        - u64::from(wide.columns[tile.groups.start as usize]);
                    let things = columns * u64::from(harness.width);
                    words +=
                        things * others * name_bytes + 4 * (tile.groups.len() as u64 + halo.len() as u64) + 2 * own;
                    reals += things * data * 4;
                }
                Kind::Rows { first_row, vertices } => {
                    let (first, end) = (*first_row as usize, (*first_row + *vertices) as usize);
                    let things = u64::from(rows.offsets[end] - rows.offsets[first]);
                    words += things * others * 4 + 14 * own;
                    reals += things * data * 4;
                }
            }
        }
    }
    [words, reals, slots * limits.private as u64 * 4]
}

impl Chunk {
    /// The arrays of some parts in sequence.
    fn new<T: Number>(layout: &Layout<T>, parts: &[Part], harness: &Harness, graph: Option<&Graph>) -> Chunk {
        let tiles = parts.first().map_or(0, |part| part.tiles.start)..parts.last().map_or(0, |part| part.tiles.end);
        let groups = groups_of(layout, &tiles);
        let width = harness.width as usize;
        let slots = groups.start as usize * width..groups.end as usize * width;
        let own_tiles = &layout.tiles[tiles.clone()];
        let mut words = Vec::new();
        let mut reals = Vec::new();
        let mut facts = vec![0u32; RANGE_WORDS + STAR_WORDS * layout.wide.len().max(1)];
        facts[SLOT0] = slots.start as u32;

        facts[COUNTS] = words.len() as u32;
        for group in groups.clone() {
            let first = group as usize * width;
            let places = &layout.place_of()[first..first + width];
            words.push(1 + places.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32);
        }

        let mut halo_at = Vec::new();
        for tile in own_tiles {
            halo_at.push(words.len() as u32);
            if let (Kind::Wide { halo }, true) = (&tile.kind, harness.table.is_some()) {
                words.extend(&layout.halo[halo.start as usize..halo.end as usize]);
            }
        }

        let mut runs = Vec::new();
        for tile in own_tiles {
            runs.push(run_starts(layout, tile));
        }
        let mut runs_at = Vec::new();
        for starts in &runs {
            runs_at.push(words.len() as u32);
            words.extend(starts);
        }
        facts[TILES] = words.len() as u32;
        for (i, tile) in own_tiles.iter().enumerate() {
            let own = layout.own(tile);
            let outside = match &tile.kind {
                Kind::Wide { halo } if harness.table.is_some() => halo.len() as u32,
                _ => 0,
            };
            let wide = u32::from(matches!(tile.kind, Kind::Wide { .. }));
            let run_count = runs[i].len() as u32 - 1;
            words.extend([own.start as u32, own.len() as u32, halo_at[i], outside, runs_at[i], run_count, wide, 0]);
        }
        facts[TASKS] = words.len() as u32;
        words.extend(parts.iter().map(|part| (part.tiles.start - tiles.start) as u32));
        words.push((tiles.end - tiles.start) as u32);
        if let Some(graph) = graph {
            facts[GRAPH] = words.len() as u32;
            let mut end = 0;
            words.push(end);
            for task in 0..graph.len() as u32 {
                end += graph.neighbors(task).len() as u32;
                words.push(end);
            }
            (0..graph.len() as u32).for_each(|task| words.extend(graph.neighbors(task)));
        }
        for star in 0..layout.wide.len() {
            let facts = &mut facts[RANGE_WORDS + STAR_WORDS * star..][..STAR_WORDS];
            push_star(layout, star, own_tiles, &groups, harness, (&mut words, &mut reals), facts);
        }
        Chunk { groups, words, reals, facts }
    }
}

/// Where the runs of a tile start, in slots, and where the last one ends.
fn run_starts<T: Number>(layout: &Layout<T>, tile: &Tile) -> Vec<u32> {
    let own = layout.own(tile);
    // No group of a wide tile crosses a run; of rows, every vertex may begin one. Clones have the place of their vertex.
    let step = if matches!(tile.kind, Kind::Wide { .. }) { layout.width } else { 1 };
    let ends = &layout.schedule.runs()[1..];
    let mut run = ends.partition_point(|&end| end as usize <= layout.place(own.start));
    let mut starts = vec![own.start as u32];
    for slot in own.clone().step_by(step) {
        if layout.place(slot) >= ends[run] as usize {
            run += ends[run..].partition_point(|&end| end as usize <= layout.place(slot));
            starts.push(slot as u32);
        }
    }
    starts.push(own.end as u32);
    starts
}

/// Appends the arrays of one star.
fn push_star<T: Number>(
    layout: &Layout<T>,
    star: usize,
    tiles: &[Tile],
    groups: &Range<u32>,
    harness: &Harness,
    (words, reals): (&mut Vec<u32>, &mut Vec<u32>),
    facts: &mut [u32],
) {
    let (wide, rows) = (&layout.wide[star], &layout.rows[star]);
    let width = harness.width as usize;
    let (others, data) = wide.shape;
    let first_column = wide.columns[groups.start as usize];
    let columns = first_column as usize..wide.columns[groups.end as usize] as usize;

    facts[0] = words.len() as u32;
    let columns_at = words.len();
    words.extend(wide.columns[groups.start as usize..groups.end as usize].iter().map(|column| column - first_column));
    facts[1] = words.len() as u32;
    let slots = groups.start as usize * width..groups.end as usize * width;
    let no_degrees = vec![0u16; if wide.degrees.is_empty() { slots.len() } else { 0 }];
    let degrees = if wide.degrees.is_empty() { &no_degrees[..] } else { &wide.degrees[slots.clone()] };
    push_halves(words, degrees);

    let names = &wide.others[columns.start * others * width..columns.end * others * width];
    if harness.table.is_some() {
        facts[2] = 2 * words.len() as u32;
        push_halves(words, names);
    } else {
        facts[2] = words.len() as u32;
        for tile in tiles {
            let Kind::Wide { halo } = &tile.kind else { continue };
            let own = layout.own(tile);
            let halo = &layout.halo[halo.start as usize..halo.end as usize];
            let range =
                wide.columns[tile.groups.start as usize] as usize..wide.columns[tile.groups.end as usize] as usize;
            let names = &wide.others[range.start * others * width..range.end * others * width];
            words.extend(names.iter().map(|&name| match (name as usize).checked_sub(own.len()) {
                None => (own.start + name as usize) as u32,
                Some(outside) => halo.get(outside).copied().unwrap_or(0),
            }));
        }
    }
    facts[3] = reals.len() as u32;
    let wide_data = &wide.data[columns.start * data * width..columns.end * data * width];
    reals.extend_from_slice(bytemuck::cast_slice(wide_data));

    // Vertices by themselves: pairs of first thing and number of things, then names, then data.
    facts[4] = words.len() as u32;
    let mut lanes = 0u32;
    let mut all_rows: Option<Range<usize>> = None;
    for tile in tiles {
        let Kind::Rows { first_row, vertices } = tile.kind else { continue };
        let range = first_row as usize..(first_row + vertices) as usize;
        all_rows = Some(all_rows.map_or(range.clone(), |all| all.start..range.end));
        for group in tile.groups.clone() {
            words[columns_at + (group - groups.start) as usize] = ALONE | lanes;
            lanes += width as u32;
        }
        for i in 0..layout.own(tile).len() {
            // The lanes left over are clones of the last vertex.
            let row = first_row as usize + i.min(vertices as usize - 1);
            let count = rows.offsets[row + 1] - rows.offsets[row];
            words.extend([rows.offsets[row], count]);
        }
    }
    let Some(range) = all_rows else { return };
    let first = rows.offsets[range.start];
    let last = rows.offsets[range.end];
    let pairs = facts[4] as usize;
    words[pairs..].chunks_exact_mut(2).for_each(|pair| pair[0] -= first);
    facts[5] = words.len() as u32;
    words.extend(&rows.others[first as usize * others..last as usize * others]);
    facts[6] = reals.len() as u32;
    reals.extend_from_slice(bytemuck::cast_slice(&rows.data[first as usize * data..last as usize * data]));
}

/// Two 16-bit numbers a word, the first in the lower half.
fn push_halves(words: &mut Vec<u32>, halves: &[u16]) {
    let (pairs, rest) = halves.as_chunks::<2>();
    words.extend(pairs.iter().map(|&[low, high]| u32::from(low) | u32::from(high) << 16));
    words.extend(rest.iter().map(|&half| u32::from(half)));
}

impl Frontier {
    /// The start of a sweep in waves: ready are the tasks without predecessors.
    pub(crate) fn new(graph: &Graph) -> Frontier {
        let tasks = graph.len() as u32;
        let waits: Vec<u32> = (0..tasks).map(|task| graph.predecessors(task).len() as u32).collect();
        let mut ready: Vec<u32> = (0..tasks).filter(|&task| waits[task as usize] == 0).collect();
        let mut words = vec![0, ready.len() as u32];
        // The first wave reads the second list: publish.wgsl counts, it does not copy.
        ready.resize(tasks as usize, 0);
        words.extend(std::iter::repeat_n(0, tasks as usize));
        words.extend(ready);
        words.extend(waits);
        words.extend(std::iter::repeat_n(0, tasks as usize));
        Frontier { words, tasks }
    }
}

/// Waves of a sweep of `rounds`: the longest chain of tasks that wait for one another.
pub(crate) fn waves(graph: &Graph, rounds: usize) -> u32 {
    let mut ends = vec![0u32; graph.len()];
    for _ in 0..rounds {
        for task in 0..graph.len() {
            // Predecessors have their new wave already, successors that of the round before.
            let latest = graph.neighbors(task as u32).iter().map(|&u| ends[u as usize]).max().unwrap_or(0);
            ends[task] = ends[task].max(latest) + 1;
        }
    }
    ends.into_iter().max().unwrap_or(0)
}

/// Bytes of the shared state of all slots.
pub(crate) fn shared_bytes(slots: usize, len: usize) -> u64 {
    slots as u64 * shared_stride(len) as u64 * 4
}
