//! Chunks: runs of whole tiles whose arrays fit into one binding each.

use super::{Part, groups_of, is_walked};
use crate::layout::{Form, Layout, Tile};
use crate::number::Number;
use meshweft_shaders::Harness;
use meshweft_shaders::layout::{self as shaders, ALONE, Range, Star};

/// A run of whole tiles with its arrays.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) groups: std::ops::Range<u32>,
    /// Everything that is an integer, array after array.
    pub(crate) words: Vec<u32>,
    /// Data of stars, as the words of their numbers.
    pub(crate) reals: Vec<u32>,
    /// Where the arrays start, but not yet what is visited.
    pub(crate) range: Range,
    pub(crate) stars: Vec<Star>,
}

impl Chunk {
    /// The arrays of some parts in sequence.
    pub(super) fn new<T: Number>(layout: &Layout<T>, parts: &[Part], harness: &Harness) -> Chunk {
        let tiles = parts.first().map_or(0, |part| part.tiles.start)..parts.last().map_or(0, |part| part.tiles.end);
        let groups = groups_of(layout, &tiles);
        let width = layout.width;
        let slots = groups.start as usize * width..groups.end as usize * width;
        let mut words = Vec::new();
        let mut range = Range { slot0: slots.start as u32, ..Range::default() };
        range.counts = words.len() as u32;
        for places in layout.place_of()[slots.clone()].chunks(width) {
            words.push(1 + places.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32);
        }
        range.numbers = words.len() as u32;
        words.extend(layout.numbers(slots.clone()));
        range.fixed = words.len() as u32;
        if harness.fixed {
            let mut bits = vec![0u32; slots.len().div_ceil(32)];
            let fixed = layout.fixed(slots).unwrap_or(&[]);
            fixed.iter().enumerate().for_each(|(i, &is_fixed)| bits[i / 32] |= u32::from(is_fixed) << (i % 32));
            words.extend(bits);
        }
        push_tasks(layout, parts, harness, &mut words, &mut range);
        let (mut stars, mut reals) = (Vec::new(), Vec::new());
        for star in 0..layout.wide.len() {
            stars.push(push_star(layout, star, &tiles, harness, (&mut words, &mut reals)));
        }
        Chunk { groups, words, reals, range, stars }
    }
}

/// Bytes that a part takes: words, reals, private state. Never less than it will take.
pub(super) fn size<T: Number>(layout: &Layout<T>, part: &Part, harness: &Harness) -> [u64; 3] {
    let name_bytes = if harness.table.is_some() { 2 } else { 4 };
    let (mut words, mut reals, mut slots) = (64u64, 0u64, 0u64);
    for tile in &layout.tiles[part.tiles.clone()] {
        let own = layout.own(tile).len() as u64;
        slots += own;
        words += 4 * (shaders::Tile::WORDS as u64 + 4 + tile.groups.len() as u64) + 4 * own;
        // Numbers, and bits of those that are fixed.
        words += 5 * own;
        for (wide, rows) in layout.wide.iter().zip(&layout.rows) {
            let (others, data) = (wide.shape.0 as u64, wide.shape.1 as u64);
            match &tile.form {
                Form::Wide { halo } => {
                    let columns = u64::from(wide.columns[tile.groups.end as usize])
                        - u64::from(wide.columns[tile.groups.start as usize]);
                    let things = columns * u64::from(harness.width);
                    words +=
                        things * others * name_bytes + 4 * (tile.groups.len() as u64 + halo.len() as u64) + 2 * own;
                    reals += things * data * 4;
                }
                Form::Rows { first_row, vertices } => {
                    let (first, end) = (*first_row as usize, (*first_row + *vertices) as usize);
                    let things = u64::from(rows.offsets[end] - rows.offsets[first]);
                    words += things * others * 4 + 14 * own;
                    reals += things * data * 4;
                }
            }
        }
    }
    [words, reals, slots * layout.shape.private as u64 * 4]
}

/// Appends the tiles of all parts that are walked, and which part has which.
fn push_tasks<T: Number>(
    layout: &Layout<T>,
    parts: &[Part],
    harness: &Harness,
    words: &mut Vec<u32>,
    range: &mut Range,
) {
    let mut starts = vec![0];
    let mut tiles = Vec::new();
    for part in parts {
        match &part.walked {
            Some(cuts) => tiles.push(sequence(layout, part, cuts, words)),
            None if is_walked(layout.schedule.order()) => {
                tiles.extend(
                    layout.tiles[part.tiles.clone()].iter().map(|tile| push_tile(layout, tile, harness, words)),
                );
            }
            // Visited slot by slot.
            None => {}
        }
        starts.push(tiles.len() as u32);
    }
    range.tiles = words.len() as u32;
    words.extend(tiles.iter().flat_map(shaders::Tile::words));
    range.tasks = words.len() as u32;
    words.extend(starts);
}

/// Small waves in sequence: one tile without a table, with a run for each wave.
fn sequence<T: Number>(layout: &Layout<T>, part: &Part, cuts: &[usize], words: &mut Vec<u32>) -> shaders::Tile {
    let own = slots_of(layout, &part.tiles);
    let runs = words.len() as u32;
    words.extend(cuts[..cuts.len() - 1].iter().map(|&tile| layout.own(&layout.tiles[tile]).start as u32));
    words.push(own.end);
    let run_count = cuts.len() as u32 - 1;
    shaders::Tile { first: own.start, own: own.end - own.start, runs, run_count, ..shaders::Tile::default() }
}

fn slots_of<T>(layout: &Layout<T>, tiles: &std::ops::Range<usize>) -> std::ops::Range<u32> {
    let (groups, width) = (groups_of(layout, tiles), layout.width as u32);
    groups.start * width..groups.end * width
}

/// A tile of the layout, with its halo if it has a table.
fn push_tile<T: Number>(layout: &Layout<T>, tile: &Tile, harness: &Harness, words: &mut Vec<u32>) -> shaders::Tile {
    let own = layout.own(tile);
    let halo = words.len() as u32;
    if let (Form::Wide { halo }, true) = (&tile.form, harness.table.is_some()) {
        words.extend(&layout.halo[halo.start as usize..halo.end as usize]);
    }
    let outside = words.len() as u32 - halo;
    let runs = words.len() as u32;
    words.extend(run_starts(layout, tile));
    shaders::Tile {
        first: own.start as u32,
        own: own.len() as u32,
        halo,
        outside,
        runs,
        run_count: words.len() as u32 - runs - 1,
        wide: u32::from(matches!(tile.form, Form::Wide { .. })),
        unused: 0,
    }
}

/// Where the runs of a tile start, in slots, and where the last one ends.
fn run_starts<T: Number>(layout: &Layout<T>, tile: &Tile) -> Vec<u32> {
    let own = layout.own(tile);
    // No group of a wide tile crosses a run; of rows, every vertex may begin one. Clones have the place of their vertex.
    let step = if matches!(tile.form, Form::Wide { .. }) { layout.width } else { 1 };
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
    tiles: &std::ops::Range<usize>,
    harness: &Harness,
    (words, reals): (&mut Vec<u32>, &mut Vec<u32>),
) -> Star {
    let wide = &layout.wide[star];
    let groups = groups_of(layout, tiles);
    let (groups, width) = (groups.start as usize..groups.end as usize, layout.width);
    let (others, data) = wide.shape;
    let first_column = wide.columns[groups.start];
    let columns = first_column as usize..wide.columns[groups.end] as usize;

    let mut at = Star { columns: words.len() as u32, ..Star::default() };
    words.extend(wide.columns[groups.clone()].iter().map(|column| column - first_column));
    at.degrees = words.len() as u32;
    let slots = groups.start * width..groups.end * width;
    match wide.degrees.get(slots.clone()) {
        Some(degrees) => push_halves(words, degrees),
        // No vertex is updated side by side with others.
        None => push_halves(words, &vec![0; slots.len()]),
    }
    at.names = words.len() as u32;
    if harness.table.is_some() {
        // Places in a table take half a word.
        at.names *= 2;
        push_halves(words, &wide.others[columns.start * others * width..columns.end * others * width]);
    } else {
        layout.tiles[tiles.clone()].iter().for_each(|tile| push_slots(layout, star, tile, words));
    }
    at.data = reals.len() as u32;
    let wide_data = &wide.data[columns.start * data * width..columns.end * data * width];
    reals.extend_from_slice(bytemuck::cast_slice(wide_data));
    push_rows(layout, star, tiles, (words, reals), &mut at);
    at
}

/// Appends the names of the neighbors in a tile, as slots.
fn push_slots<T: Number>(layout: &Layout<T>, star: usize, tile: &Tile, words: &mut Vec<u32>) {
    let (wide, width) = (&layout.wide[star], layout.width);
    let Form::Wide { halo } = &tile.form else { return };
    let own = layout.own(tile);
    let halo = &layout.halo[halo.start as usize..halo.end as usize];
    let ends = [tile.groups.start, tile.groups.end].map(|group| wide.columns[group as usize] as usize);
    let names = &wide.others[ends[0] * wide.shape.0 * width..ends[1] * wide.shape.0 * width];
    words.extend(names.iter().map(|&name| match (name as usize).checked_sub(own.len()) {
        None => (own.start + name as usize) as u32,
        Some(outside) => halo.get(outside).copied().unwrap_or(0),
    }));
}

/// Appends what high-degree vertices have: pairs of first element and number of elements, then names, then data.
fn push_rows<T: Number>(
    layout: &Layout<T>,
    star: usize,
    tiles: &std::ops::Range<usize>,
    (words, reals): (&mut Vec<u32>, &mut Vec<u32>),
    at: &mut Star,
) {
    let rows = &layout.rows[star];
    let (others, data) = layout.wide[star].shape;
    let first_group = groups_of(layout, tiles).start;
    at.rows = words.len() as u32;
    let mut lanes = 0u32;
    let mut all_rows: Option<std::ops::Range<usize>> = None;
    for tile in &layout.tiles[tiles.clone()] {
        let Form::Rows { first_row, vertices } = tile.form else { continue };
        let range = first_row as usize..(first_row + vertices) as usize;
        all_rows = Some(all_rows.map_or(range.clone(), |all| all.start..range.end));
        for group in tile.groups.clone() {
            words[(at.columns + group - first_group) as usize] = ALONE | lanes;
            lanes += layout.width as u32;
        }
        for i in 0..layout.own(tile).len() {
            // The lanes left over are padding, copies of the last vertex.
            let row = first_row as usize + i.min(vertices as usize - 1);
            let count = rows.offsets[row + 1] - rows.offsets[row];
            words.extend([rows.offsets[row], count]);
        }
    }
    let Some(range) = all_rows else { return };
    let [first, last] = [rows.offsets[range.start], rows.offsets[range.end]];
    words[at.rows as usize..].chunks_exact_mut(2).for_each(|pair| pair[0] -= first);
    at.row_names = words.len() as u32;
    words.extend(&rows.others[first as usize * others..last as usize * others]);
    at.row_data = reals.len() as u32;
    reals.extend_from_slice(bytemuck::cast_slice(&rows.data[first as usize * data..last as usize * data]));
}

/// Two 16-bit numbers a word, the first in the lower half.
fn push_halves(words: &mut Vec<u32>, halves: &[u16]) {
    let (pairs, rest) = halves.as_chunks::<2>();
    words.extend(pairs.iter().map(|&[low, high]| u32::from(low) | u32::from(high) << 16));
    words.extend(rest.iter().map(|&half| u32::from(half)));
}
