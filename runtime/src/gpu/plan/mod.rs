//! What a device will be asked to do, as plain data: chunks of arrays, and dispatches wave after wave.
//!
//! Made from a layout and a few limits, without a device; tests look at it without one, too.

mod chunk;
#[cfg(all(feature = "gpu", feature = "cluster"))]
mod levels;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::layout::{Domain, Form, Tile, shared_stride};
pub(crate) use chunk::Chunk;
use chunk::size;
#[cfg(all(feature = "gpu", feature = "cluster"))]
pub(crate) use levels::Planned;
use meshweft_mesh::Graph;
use meshweft_schedule::{Key, Order, Rule};
use meshweft_shaders::layout::Range as Record;
use meshweft_shaders::{Entry, Harness};
use std::ops::Range;
use std::sync::Arc;

/// What the device can do, and the size of records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes that one kernel can see of one array.
    pub(crate) binding_bytes: u64,
    /// Bytes of memory that a workgroup shares.
    pub(crate) workgroup_bytes: u32,
    /// The most invocations of a workgroup that pays.
    pub(crate) invocations: u32,
}

impl Limits {
    /// What WebGPU promises on every device.
    pub(crate) const PROMISED: Limits =
        Limits { binding_bytes: 128 << 20, workgroup_bytes: 16 << 10, invocations: 256 };
}

/// A part or all, a rule by which it is visited, and how often.
pub(crate) type Rounds = (Option<u32>, Rule, u32);

/// Everything about a layout that a device needs.
pub(crate) struct Plan {
    pub(crate) harness: Harness,
    /// At least one.
    pub(crate) chunks: Vec<Chunk>,
    /// One round in the order, wave after wave; empty where rounds overlap.
    waves: Vec<Wave>,
    /// Every slot once, in any order: as tasks where those have tables, and as slots.
    all: Vec<Wave>,
    each: Vec<Wave>,
    /// Where chunks start among the tasks of the schedule, or the pieces of a share, and the end: where those are walked.
    cuts: Vec<u32>,
    /// Pieces of task `t` of a share: `pieces[t]..pieces[t + 1]`.
    #[cfg(all(feature = "gpu", feature = "cluster"))]
    pieces: Vec<u32>,
    /// Records and lists of tasks of all walks so far.
    pub(crate) ranges: Vec<Vec<u32>>,
    pub(crate) list: Vec<u32>,
    walks: Vec<(Rounds, Arc<Walk>)>,
    /// Where parts of the graph start among tasks or pieces as [`Plan::cuts`] counts them, and among slots, and the ends.
    of_parts: Vec<[u32; 2]>,
}

/// Work of one chunk that may be done at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wave {
    chunk: usize,
    what: What,
}

/// What is visited.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// Slots, an invocation each.
    Slots(Range<u32>),
    /// Tasks of the chunk, a workgroup each.
    Tasks(Range<u32>),
    /// Some tasks of the chunk, a workgroup each.
    List(Vec<u32>),
}

/// Dispatches, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// How many rounds they make.
    pub(crate) rounds: u32,
    pub(crate) dispatches: Vec<Dispatch>,
}

/// One dispatch of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dispatch {
    pub(crate) chunk: usize,
    pub(crate) entry: Entry,
    /// Number of workgroups.
    pub(crate) groups: u32,
    /// Which of [`Plan::ranges`] it works on.
    pub(crate) range: u32,
}

/// Rounds that one walk overlaps at most: more make its lists longer, and little else.
const LONGEST: u32 = 64;

impl Plan {
    /// Plans for a domain.
    ///
    /// # Errors
    /// A task that no binding holds.
    pub(crate) fn new(domain: &Domain, limits: &Limits) -> Result<Plan> {
        let harness = Harness {
            width: domain.width as u32,
            rows: domain.changes() || domain.tiles.iter().any(|tile| matches!(tile.form, Form::Rows { .. })),
            fixed: domain.is_fixed_anywhere(),
            table: if has_walked_tasks(domain.order) { table(domain, limits) } else { None },
            phase_size: limits.invocations.min(64),
            walk_size: walk_size(domain, limits),
        };
        Plan::of(domain, limits, harness)
    }

    /// The same for kernels that were compiled for a domain with other elements of changing stars.
    pub(crate) fn of(domain: &Domain, limits: &Limits, harness: Harness) -> Result<Plan> {
        let joined = if domain.changes() { domain.joined_before() } else { Vec::new() };
        let parts = parts(domain, &harness, limits);
        let cuts = cut(domain, &parts, &harness, limits)?;
        let mut chunks: Vec<Chunk> = Vec::new();
        for cut in cuts.windows(2) {
            let (first, is_last) = (chunks.last().map_or(0, |chunk| chunk.groups.end), cut[1] == parts.len());
            chunks.push(Chunk::new(domain, &parts[cut[0]..cut[1]], (&harness, &joined), first, is_last));
        }
        let pieces = pieces(domain);
        let total = (domain.slots() / domain.width) as u32;
        let each = slots(&chunks, harness.width, 0..total);
        let all = match harness.table {
            // Ghosts are what other hosts say that they are.
            _ if domain.share.is_some() => {
                let all: Vec<u32> = (0..pieces.last().copied().unwrap_or(0)).collect();
                lists(&[all], &cuts.iter().map(|&cut| pieces[cut]).collect::<Vec<_>>())
            }
            None => each.clone(),
            Some(_) => {
                let all =
                    |(chunk, cut): (usize, &[usize])| Wave { chunk, what: What::Tasks(0..(cut[1] - cut[0]) as u32) };
                cuts.windows(2).enumerate().map(all).collect()
            }
        };
        let of_parts = of_parts(domain, &parts, &pieces);
        let cuts: Vec<u32> = match domain.share {
            None => cuts.into_iter().map(|cut| cut as u32).collect(),
            Some(_) => cuts.into_iter().map(|cut| pieces[cut]).collect(),
        };
        let each = if domain.share.is_some() { all.clone() } else { each };
        let waves = match domain.order.key {
            _ if domain.share.is_some() => all.clone(),
            Key::PriorityDag | Key::Own => Vec::new(),
            Key::Blocked { .. } => tasks(&domain.waves(), &cuts),
            _ => phases(domain, &parts, &cuts, &chunks, &joined),
        };
        let (ranges, list, walks) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Plan {
            harness,
            chunks,
            waves,
            all,
            each,
            cuts,
            #[cfg(all(feature = "gpu", feature = "cluster"))]
            pieces,
            ranges,
            list,
            walks,
            of_parts,
        })
    }

    /// The dispatches of as many of `rounds` rounds as are planned together, over a part or all. Planned once: ranges and list may become
    /// longer.
    pub(crate) fn walk(&mut self, domain: &Domain, (part, rule, rounds): Rounds) -> Arc<Walk> {
        let overlaps = overlaps(domain.order) && matches!(rule, Rule::InOrder | Rule::Backward);
        let rounds = if overlaps { rounds.min(LONGEST) } else { 1 };
        if let Some((_, walk)) = self.walks.iter().find(|(of, _)| *of == (part, rule, rounds)) {
            return walk.clone();
        }
        let waves = match rule {
            Rule::Alone => self.each.clone(),
            Rule::AtOnce => self.all.clone(),
            Rule::InOrder | Rule::Backward if overlaps => lists(&waves(&domain.graph, rule, rounds), &self.cuts),
            Rule::InOrder => self.waves.clone(),
            Rule::Backward => self.waves.iter().rev().cloned().collect(),
        };
        let dispatches = self.within(waves, part).iter().map(|wave| self.dispatch(wave, rule)).collect();
        let walk = Arc::new(Walk { rounds, dispatches });
        self.walks.push(((part, rule, rounds), walk.clone()));
        walk
    }

    /// What of some waves is of a part.
    fn within(&self, waves: Vec<Wave>, part: Option<u32>) -> Vec<Wave> {
        let Some(part) = part else { return waves };
        let Some([first, end]) = self.of_parts.get(part as usize..part as usize + 2).and_then(<[_]>::as_array) else {
            return Vec::new();
        };
        let clip = |range: &Range<u32>, own: Range<u32>| {
            let start = range.start.max(own.start);
            start..range.end.min(own.end).max(start)
        };
        let of_part = |Wave { chunk, what }: Wave| {
            let tasks = [first, end].map(|at| at[0].saturating_sub(self.cuts[chunk]));
            let what = match what {
                What::Slots(slots) => What::Slots(clip(&slots, first[1]..end[1])),
                What::Tasks(of_chunk) => What::Tasks(clip(&of_chunk, tasks[0]..tasks[1])),
                What::List(list) => {
                    What::List(list.into_iter().filter(|task| (tasks[0]..tasks[1]).contains(task)).collect())
                }
            };
            let is_empty = match &what {
                What::Slots(range) | What::Tasks(range) => range.is_empty(),
                What::List(list) => list.is_empty(),
            };
            (!is_empty).then_some(Wave { chunk, what })
        };
        waves.into_iter().filter_map(of_part).collect()
    }

    /// How vertices are visited under a rule, without repetitions.
    pub(crate) fn entries(&self, domain: &Domain, rule: Rule) -> Vec<Entry> {
        let waves = match rule {
            _ if overlaps(domain.order) && matches!(rule, Rule::InOrder | Rule::Backward) => return vec![Entry::Tasks],
            // What is visited how depends on the elements that there are.
            _ if domain.changes() => return vec![Entry::Phase, Entry::Tasks],
            Rule::Alone => &self.each,
            Rule::AtOnce => &self.all,
            _ => &self.waves,
        };
        let mut entries: Vec<Entry> = waves.iter().map(|wave| wave.what.entry()).collect();
        entries.sort();
        entries.dedup();
        entries
    }

    fn dispatch(&mut self, wave: &Wave, rule: Rule) -> Dispatch {
        let chunk = &self.chunks[wave.chunk];
        let (work, listed) = match &wave.what {
            What::Slots(work) | What::Tasks(work) => (work.clone(), 0),
            What::List(tasks) => {
                let first = self.list.len() as u32;
                self.list.extend(tasks);
                (first..self.list.len() as u32, 1)
            }
        };
        let backward = u32::from(rule == Rule::Backward);
        let record = Record { first: work.start, end: work.end, listed, backward, ..chunk.range };
        let entry = wave.what.entry();
        let len = work.end - work.start;
        let groups = if entry == Entry::Phase { len.div_ceil(self.harness.phase_size) } else { len };
        self.ranges.push(record.with_stars(&chunk.stars));
        Dispatch { chunk: wave.chunk, entry, groups, range: self.ranges.len() as u32 - 1 }
    }
}

impl What {
    fn entry(&self) -> Entry {
        match self {
            What::Slots(_) => Entry::Phase,
            What::Tasks(_) | What::List(_) => Entry::Tasks,
        }
    }
}

/// Whether a workgroup walks every task of an order: of the others it takes many to fill a device with one phase.
fn has_walked_tasks(order: Order) -> bool {
    overlaps(order) || matches!(order.key, Key::Blocked { .. })
}

/// Whether workgroups walk tasks, or pieces of them. Those of a share do, because what lies at its border waits for other hosts.
fn is_walked(domain: &Domain) -> bool {
    has_walked_tasks(domain.order) || domain.share.is_some()
}

/// Slots of a task without edges that one workgroup visits.
const PIECE: usize = if cfg!(test) { 32 } else { 256 };

/// Where the pieces of each task start among all, and the end: a workgroup each. Of tasks with edges inside there is one.
fn pieces(domain: &Domain) -> Vec<u32> {
    let mut ends = vec![0];
    for t in 0..domain.graph.len() {
        let tiles = &domain.tiles[domain.tiles_of(t..t + 1)];
        let pieces: usize = match is_walked_whole(domain, tiles) {
            true => usize::from(!tiles.is_empty()),
            false => tiles.iter().map(|tile| tile.own().len().div_ceil(PIECE)).sum(),
        };
        ends.push(ends[t] + pieces as u32);
    }
    ends
}

/// Whether one workgroup walks all of these tiles of a task of a share: there may be edges between them.
fn is_walked_whole(domain: &Domain, tiles: &[Tile]) -> bool {
    has_walked_tasks(domain.order) || tiles.iter().any(|tile| tile.changing.is_some())
}

/// Cuts runs of slots so that no changing star joins two of one. `starts`: where they start, and the end; `joined`: see
/// [`Domain::joined_before`].
fn cut_runs(starts: &[u32], joined: &[u32]) -> Vec<u32> {
    let mut cut = Vec::with_capacity(starts.len());
    for run in starts.windows(2) {
        let mut start = run[0];
        cut.push(start);
        for slot in if joined.is_empty() { 0..0 } else { run[0]..run[1] } {
            if joined[slot as usize] > start {
                start = slot;
                cut.push(start);
            }
        }
    }
    cut.extend(starts.last());
    cut
}

/// Whether the rounds of an order are planned together, because most of its tasks wait for the one before.
fn overlaps(order: Order) -> bool {
    matches!(order.key, Key::PriorityDag | Key::Own)
}

/// Slots of the largest table, if it fits.
fn table(domain: &Domain, limits: &Limits) -> Option<u32> {
    let slots = |tile: &Tile| match &tile.form {
        Form::Wide { halo, .. } => tile.own().len() + halo.len(),
        _ => 0,
    };
    let most = domain.tiles.iter().map(slots).max().unwrap_or(0);
    let bytes = most * domain.shape.shared.max(1) * 4;
    // A few words of workgroup memory are the kernels' own.
    let fits = bytes + 64 <= limits.workgroup_bytes as usize;
    (fits && most > 0).then_some(most as u32)
}

/// Invocations that walk a task: about as many as a run has slots, because the others have nothing to do.
fn walk_size(domain: &Domain, limits: &Limits) -> u32 {
    let runs = domain.runs.len().max(2) - 1;
    let mean = domain.slots().div_ceil(runs) as u32;
    let most = limits.invocations.min(256);
    mean.next_power_of_two().clamp((domain.width as u32).max(32).min(most), most)
}

/// Tiles that lie in one chunk.
struct Part {
    tiles: Range<usize>,
    /// The waves of the schedule that it belongs to.
    waves: Range<usize>,
    /// Of small waves in sequence, which one workgroup walks faster than that many dispatches are launched: the tiles at which
    /// they start, and the end.
    walked: Option<Vec<usize>>,
    /// Slots of a ghost.
    ghosts: usize,
}

/// The tasks of a schedule whose tasks are walked. Of the others each tile; but small waves in sequence are one part.
fn parts(domain: &Domain, harness: &Harness, limits: &Limits) -> Vec<Part> {
    /// Slots of a wave that a workgroup updates in a couple of strides.
    const SMALL: usize = 512;
    let part = |tiles, wave: usize, walked| Part { tiles, waves: wave..wave + 1, walked, ghosts: 0 };
    if is_walked(domain) {
        let tasks = domain.graph.len();
        let ghosts = |task: usize| domain.share.as_ref().map_or(0, |share| share.ghosts[task].len());
        let task = |task| Part {
            ghosts: ghosts(task).next_multiple_of(domain.width),
            ..part(domain.tiles_of(task..task + 1), 0, None)
        };
        return (0..tasks).map(task).collect();
    }
    let mut parts: Vec<Part> = Vec::new();
    for (wave, ends) in domain.waves().windows(2).enumerate() {
        let tiles = domain.tiles_of(ends[0] as usize..ends[1] as usize);
        let slots: usize = domain.tiles[tiles.clone()].iter().map(|tile| tile.own().len()).sum();
        if slots > SMALL || domain.is_double_buffered() {
            parts.extend(tiles.map(|tile| part(tile..tile + 1, wave, None)));
            continue;
        }
        let cuts = vec![tiles.start, tiles.end];
        let begins = |task: u32| domain.parts.iter().any(|part| part[0] == task);
        // What one workgroup walks lies in one chunk: several of them are to find room.
        let fits = |part: &Part| size(domain, part, harness).iter().all(|&bytes| bytes <= limits.binding_bytes / 4);
        match parts.last_mut() {
            // A stage may visit one part of the graph alone.
            Some(Part { tiles: last, waves, walked: Some(cuts), .. })
                if !begins(ends[0]) && fits(&part(last.start..tiles.end, wave, None)) =>
            {
                (last.end, waves.end) = (tiles.end, wave + 1);
                cuts.push(tiles.end);
            }
            _ => parts.push(part(tiles, wave, Some(cuts))),
        }
    }
    parts
}

fn groups_of(domain: &Domain, tiles: &Range<usize>) -> Range<u32> {
    let (slots, width) = (domain.slots_of_tiles(tiles.clone()), domain.width);
    (slots.start / width) as u32..(slots.end / width) as u32
}

/// Where parts of the graph start among the tasks or pieces that are walked, and among slots, and the ends.
fn of_parts(domain: &Domain, parts: &[Part], pieces: &[u32]) -> Vec<[u32; 2]> {
    let start = |&[task, _]: &[u32; 2]| {
        let tile = domain.tiles_of(task as usize..task as usize).start;
        let walked = match domain.share {
            Some(_) => pieces[task as usize],
            None => parts.partition_point(|part| part.tiles.start < tile) as u32,
        };
        let slot = domain.tiles.get(tile).map_or(domain.slots(), |tile| tile.own().start);
        [walked, slot as u32]
    };
    domain.parts.iter().map(start).collect()
}

/// The slots of some groups, cut where chunks are.
fn slots(chunks: &[Chunk], width: u32, groups: Range<u32>) -> Vec<Wave> {
    let mut waves = Vec::new();
    let mut start = groups.start;
    while start < groups.end {
        let chunk = chunks.partition_point(|chunk| chunk.groups.start <= start) - 1;
        let end = groups.end.min(chunks[chunk].groups.end);
        waves.push(Wave { chunk, what: What::Slots(start * width..end * width) });
        start = end;
    }
    waves
}

/// Waves of consecutive tasks, cut where chunks are.
fn tasks(waves: &[u32], cuts: &[u32]) -> Vec<Wave> {
    let mut found = Vec::new();
    for wave in waves.windows(2) {
        for (chunk, cut) in cuts.windows(2).enumerate() {
            let (start, end) = (wave[0].max(cut[0]), wave[1].min(cut[1]));
            if start < end {
                found.push(Wave { chunk, what: What::Tasks(start - cut[0]..end - cut[0]) });
            }
        }
    }
    found
}

/// Waves of phases: slots of large ones, and sequences of small ones that a workgroup walks.
fn phases(domain: &Domain, parts: &[Part], cuts: &[u32], chunks: &[Chunk], joined: &[u32]) -> Vec<Wave> {
    let mut number = 0;
    let mut found = Vec::new();
    for same in parts.chunk_by(|a, b| a.walked.is_none() && b.walked.is_none() && a.waves == b.waves) {
        let chunk = cuts.partition_point(|&cut| cut <= number) - 1;
        let task = number - cuts[chunk];
        number += same.len() as u32;
        match same[0].walked {
            None => {
                let tiles = same[0].tiles.start..same[same.len() - 1].tiles.end;
                for wave in slots(chunks, domain.width as u32, groups_of(domain, &tiles)) {
                    let What::Slots(Range { start, end }) = wave.what else { continue };
                    let runs = cut_runs(&[start, end], joined);
                    let of_run = |run: &[u32]| Wave { what: What::Slots(run[0]..run[1]), ..wave.clone() };
                    found.extend(runs.windows(2).map(of_run));
                }
            }
            Some(_) => found.push(Wave { chunk, what: What::Tasks(task..task + 1) }),
        }
    }
    found
}

/// In which wave each task runs each round, so that rounds overlap: one after the latest that it waits for. Returns the tasks of
/// each wave, in ascending order.
fn waves(graph: &Graph, rule: Rule, rounds: u32) -> Vec<Vec<u32>> {
    let n = graph.len() as u32;
    let mut ends = vec![0u32; graph.len()];
    let mut waves: Vec<Vec<u32>> = Vec::new();
    for _ in 0..rounds {
        for i in 0..n {
            let task = if rule == Rule::Backward { n - 1 - i } else { i };
            // Those that come first have their new wave already, the others that of the round before.
            let latest = graph.neighbors(task).iter().map(|&u| ends[u as usize]).max().unwrap_or(0);
            let wave = ends[task as usize].max(latest) as usize;
            ends[task as usize] = wave as u32 + 1;
            waves.resize(waves.len().max(wave + 1), Vec::new());
            waves[wave].push(task);
        }
    }
    waves.iter_mut().for_each(|tasks| tasks.sort_unstable());
    waves
}

/// Waves of any tasks, cut where chunks are.
fn lists(waves: &[Vec<u32>], cuts: &[u32]) -> Vec<Wave> {
    let mut found = Vec::new();
    for tasks in waves {
        for own in tasks.chunk_by(|a, b| chunk_of(cuts, *a) == chunk_of(cuts, *b)) {
            let chunk = chunk_of(cuts, own[0]);
            let own = own.iter().map(|task| task - cuts[chunk]).collect();
            found.push(Wave { chunk, what: What::List(own) });
        }
    }
    found
}

fn chunk_of(cuts: &[u32], task: u32) -> usize {
    cuts.partition_point(|&cut| cut <= task) - 1
}

/// Where chunks start among the parts, and the end.
fn cut(domain: &Domain, parts: &[Part], harness: &Harness, limits: &Limits) -> Result<Vec<usize>> {
    let mut cuts = vec![0];
    let mut sizes = [0u64; 3];
    for (number, part) in parts.iter().enumerate() {
        let own = size(domain, part, harness);
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
    Ok(cuts)
}

/// Bytes of the shared state of all slots.
pub(crate) fn shared_bytes(slots: usize, len: usize) -> u64 {
    slots as u64 * shared_stride(len) as u64 * 4
}
