//! Chunks: runs of whole tiles whose arrays fit into one binding each.

use super::{PIECE, Part, cut_runs, is_walked, is_walked_whole};
use crate::layout::{Domain, Form, Tile};
use crate::program::StarShape;
use meshweft_shaders::Harness;
use meshweft_shaders::layout::{self as shaders, ALONE, Range as Record, Star};
use std::ops::Range;

/// A run of whole tiles with its arrays.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) groups: Range<u32>,
    /// Everything that is an integer, array after array.
    pub(crate) words: Vec<u32>,
    /// Data of stars, as the words of their numbers.
    pub(crate) reals: Vec<u32>,
    /// Where the arrays start, but not yet what is visited.
    pub(crate) range: Record,
    pub(crate) stars: Vec<Star>,
}

impl Chunk {
    /// The arrays of some parts in sequence, which have all groups from `first` on, to the end of the domain if they are the
    /// `last`: those of tiles, and of ghosts between them.
    pub(super) fn new(
        domain: &Domain,
        parts: &[Part],
        (harness, joined): (&Harness, &[u32]),
        first: u32,
        is_last: bool,
    ) -> Chunk {
        let tiles = parts.first().map_or(0, |part| part.tiles.start)..parts.last().map_or(0, |part| part.tiles.end);
        let width = domain.width;
        let start = first as usize * width;
        let end = if is_last { domain.slots() } else { domain.slots_of_tiles(tiles.clone()).end.max(start) };
        let slots = start..end;
        let groups = first..(end / width) as u32;
        let mut words = Vec::new();
        let mut range = Record { slot0: slots.start as u32, ..Record::default() };
        range.counts = words.len() as u32;
        for places in domain.place_of()[slots.clone()].chunks(width) {
            words.push(1 + places.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32);
        }
        range.numbers = words.len() as u32;
        let own = &domain.tiles[tiles];
        if own.iter().any(|tile| !tile.numbers(tile.own()).is_empty()) {
            each_of(own, &slots, |len, tile| match tile {
                Some(tile) => words.extend(tile.numbers(tile.own())),
                None => words.resize(words.len() + len, 0),
            });
        }
        range.fixed = words.len() as u32;
        if harness.fixed {
            // An element has a mark for each corner.
            let marks = own.iter().map(|tile| tile.marks().len() / tile.own().len()).max().unwrap_or(1);
            let mut bits = vec![0u32; (slots.len() * marks).div_ceil(32)];
            for tile in own {
                ((tile.own().start - slots.start) * marks..)
                    .zip(tile.marks())
                    .for_each(|(i, &is_fixed)| bits[i / 32] |= u32::from(is_fixed) << (i % 32));
            }
            words.extend(bits);
        }
        push_tasks(domain, parts, (harness, joined), &mut words, &mut range);
        let (mut stars, mut reals) = (Vec::new(), Vec::new());
        for star in 0..domain.stars.len() {
            stars.push(match domain.stars[star].changes {
                true => push_changing(own, &slots, (star, domain), (&mut words, &mut reals)),
                false => push_star(own, &slots, star, harness, (&mut words, &mut reals)),
            });
        }
        Chunk { groups, words, reals, range, stars }
    }
}

/// Bytes that a part takes: words, reals, private state. Never less than it will take.
pub(super) fn size(domain: &Domain, part: &Part, harness: &Harness) -> [u64; 3] {
    let name_bytes = if harness.table.is_some() { 2 } else { 4 };
    let (mut words, mut reals, mut slots) = (64u64, 0u64, part.ghosts as u64);
    words += slots * (10 + 6 * domain.stars.len() as u64);
    for tile in &domain.tiles[part.tiles.clone()] {
        let own = tile.own().len() as u64;
        let groups = own / domain.width as u64;
        slots += own;
        words += 4 * (shaders::Tile::WORDS as u64 + 4 + groups) + 4 * own;
        // Numbers, and bits of those that are fixed.
        words += 5 * own;
        for (star, (others, data)) in domain.stars.iter().map(StarShape::lengths).enumerate() {
            let (others, data) = (others as u64, data as u64);
            let elements = match &tile.form {
                Form::Wide { halo, stars } => {
                    let elements = u64::from(stars[star].columns[groups as usize]) * u64::from(harness.width);
                    words += elements * others * name_bytes + 4 * (groups + halo.len() as u64) + 2 * own;
                    elements
                }
                Form::Spread { stars } => {
                    let elements = u64::from(stars[star].columns[groups as usize]) * u64::from(harness.width);
                    words += elements * others * 4 + 4 * groups + 2 * own;
                    elements
                }
                Form::Rows { stars, .. } => {
                    let elements = stars[star].columns.last().map_or(0, |&end| u64::from(end));
                    words += elements * others * 4 + 14 * own;
                    elements
                }
            };
            reals += elements * data * 4;
            if domain.stars[star].changes {
                let changing = tile.changing.as_ref().and_then(|changing| changing.star(star));
                let [names, numbers] = changing.map_or([0; 2], |star| [star.others.len(), star.data.words().len()]);
                words += 4 * (names as u64 + groups) + 8 * own;
                reals += 4 * numbers as u64;
            }
        }
    }
    [words, reals, slots * domain.shape.private as u64 * 4]
}

/// Appends the tiles of all parts that are walked, and which part has which.
fn push_tasks(
    domain: &Domain,
    parts: &[Part],
    (harness, joined): (&Harness, &[u32]),
    words: &mut Vec<u32>,
    range: &mut Record,
) {
    let mut starts = vec![0];
    let mut tiles = Vec::new();
    for part in parts {
        match &part.walked {
            Some(cuts) => tiles.push(sequence(domain, part, (cuts, joined), words)),
            // A ghost has no pieces.
            None if domain.share.is_some() && part.tiles.is_empty() => continue,
            None if domain.share.is_some() && !is_walked_whole(domain, &domain.tiles[part.tiles.clone()]) => {
                for tile in &domain.tiles[part.tiles.clone()] {
                    for first in tile.own().step_by(PIECE) {
                        tiles.push(push_piece(tile, first, words));
                        starts.push(tiles.len() as u32);
                    }
                }
                continue;
            }
            None if is_walked(domain) => {
                tiles.extend(
                    domain.tiles[part.tiles.clone()]
                        .iter()
                        .map(|tile| push_tile(domain, tile, (harness, joined), words)),
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

/// A piece of a tile without edges inside, as a tile.
fn push_piece(tile: &Tile, first: usize, words: &mut Vec<u32>) -> shaders::Tile {
    let end = tile.own().end.min(first + PIECE);
    let runs = words.len() as u32;
    words.extend([first as u32, end as u32]);
    shaders::Tile {
        first: first as u32,
        own: (end - first) as u32,
        runs,
        run_count: 1,
        wide: u32::from(matches!(tile.form, Form::Wide { .. })),
        ..shaders::Tile::default()
    }
}

/// Small waves in sequence: one tile without a table, with a run for each wave.
fn sequence(domain: &Domain, part: &Part, (cuts, joined): (&[usize], &[u32]), words: &mut Vec<u32>) -> shaders::Tile {
    let own = domain.slots_of_tiles(part.tiles.clone());
    let runs = words.len() as u32;
    let mut starts: Vec<u32> = cuts[..cuts.len() - 1].iter().map(|&tile| domain.tiles[tile].slots.start).collect();
    starts.push(own.end as u32);
    words.extend(cut_runs(&starts, joined));
    let run_count = words.len() as u32 - runs - 1;
    shaders::Tile { first: own.start as u32, own: own.len() as u32, runs, run_count, ..shaders::Tile::default() }
}

/// A tile of the domain, with its halo if it has a table.
fn push_tile(
    domain: &Domain,
    tile: &Tile,
    (harness, joined): (&Harness, &[u32]),
    words: &mut Vec<u32>,
) -> shaders::Tile {
    let own = tile.own();
    let first_outside = words.len() as u32;
    if let (Form::Wide { halo, .. }, true) = (&tile.form, harness.table.is_some()) {
        words.extend_from_slice(halo);
    }
    let outside = words.len() as u32 - first_outside;
    let runs = words.len() as u32;
    words.extend(cut_runs(&run_starts(domain, tile), joined));
    shaders::Tile {
        first: own.start as u32,
        own: own.len() as u32,
        halo: first_outside,
        outside,
        runs,
        run_count: words.len() as u32 - runs - 1,
        wide: u32::from(matches!(tile.form, Form::Wide { .. })),
        unused: 0,
    }
}

/// Where the runs of a tile start, in slots, and where the last one ends.
fn run_starts(domain: &Domain, tile: &Tile) -> Vec<u32> {
    let Range { start, end } = tile.slots;
    let inside = domain.runs.partition_point(|&run| run <= start)..domain.runs.partition_point(|&run| run < end);
    [&[start], &domain.runs[inside], &[end]].concat()
}

/// Visits the tiles that lie in some slots, and no tile where ghosts lie between them, with the number of slots of each.
fn each_of<'a>(tiles: &'a [Tile], slots: &Range<usize>, mut visit: impl FnMut(usize, Option<&'a Tile>)) {
    let mut at = slots.start;
    for tile in tiles {
        if at < tile.own().start {
            visit(tile.own().start - at, None);
        }
        visit(tile.own().len(), Some(tile));
        at = tile.own().end;
    }
    if at < slots.end {
        visit(slots.end - at, None);
    }
}

/// Appends the arrays of one star of some tiles, which lie in `slots`.
fn push_star(
    tiles: &[Tile],
    slots: &Range<usize>,
    star: usize,
    harness: &Harness,
    (words, reals): (&mut Vec<u32>, &mut Vec<u32>),
) -> Star {
    let mut at = Star { columns: words.len() as u32, ..Star::default() };
    let (mut column, mut lanes) = (0, 0);
    let mut degrees = Vec::with_capacity(slots.len());
    each_of(tiles, slots, |len, tile| {
        let groups = len / harness.width as usize;
        let mut side_by_side = |columns: &[u32], own: &[u16]| {
            words.extend(columns[..groups].iter().map(|first| column + first));
            column += columns[groups];
            degrees.extend_from_slice(own);
        };
        match tile.map(|tile| &tile.form) {
            Some(Form::Wide { stars, .. }) => side_by_side(&stars[star].columns, &stars[star].degrees),
            Some(Form::Spread { stars }) => side_by_side(&stars[star].columns, &stars[star].degrees),
            Some(Form::Rows { .. }) => {
                words.extend((0..groups as u32).map(|group| ALONE | (lanes + group * harness.width)));
                lanes += len as u32;
                degrees.resize(degrees.len() + len, 0);
            }
            None => {
                words.resize(words.len() + groups, column);
                degrees.resize(degrees.len() + len, 0);
            }
        }
    });
    at.degrees = words.len() as u32;
    push_halves(words, degrees.into_iter());
    at.names = words.len() as u32;
    if harness.table.is_some() {
        // Places in a table take half a word.
        at.names *= 2;
        push_halves(
            words,
            tiles.iter().flat_map(|tile| match &tile.form {
                Form::Wide { stars, .. } => stars[star].others.iter().copied(),
                _ => [].iter().copied(),
            }),
        );
    } else {
        tiles.iter().for_each(|tile| match &tile.form {
            Form::Wide { halo, stars } => {
                let own = tile.own();
                words.extend(stars[star].others.iter().map(|&name| match (name as usize).checked_sub(own.len()) {
                    None => (own.start + name as usize) as u32,
                    Some(outside) => halo.get(outside).copied().unwrap_or(0),
                }));
            }
            Form::Spread { stars } => words.extend_from_slice(&stars[star].others),
            Form::Rows { .. } => {}
        });
    }
    at.data = reals.len() as u32;
    tiles.iter().for_each(|tile| match &tile.form {
        Form::Wide { stars, .. } => reals.extend_from_slice(stars[star].data.words()),
        Form::Spread { stars } => reals.extend_from_slice(stars[star].data.words()),
        Form::Rows { .. } => {}
    });
    push_rows(tiles, star, (words, reals), &mut at);
    at
}

/// Appends the arrays of a changing star, around each vertex a row: of pairs of first element and number of elements, then names, then
/// data. Its columns send all vertices there.
fn push_changing(
    tiles: &[Tile],
    slots: &Range<usize>,
    (star, domain): (usize, &Domain),
    (words, reals): (&mut Vec<u32>, &mut Vec<u32>),
) -> Star {
    let ((others, data), width) = (domain.stars[star].lengths(), domain.width);
    let mut at = Star { columns: words.len() as u32, ..Star::default() };
    words.extend((0..slots.len()).step_by(width).map(|first| ALONE | first as u32));
    at.rows = words.len() as u32;
    words.resize(words.len() + 2 * slots.len(), 0);
    (at.row_names, at.row_data) = (words.len() as u32, reals.len() as u32);
    let mut first = 0;
    for tile in tiles {
        let Some(star) = tile.changing.as_ref().and_then(|changing| changing.star(star)) else { continue };
        let (vertices, width) = tile.groups(width);
        for (i, slot) in tile.own().enumerate() {
            // The lanes left over are padding, copies of the last vertex.
            let i = i.min(vertices - 1);
            let columns = star.columns_of(i, width);
            let row = at.rows as usize + 2 * (slot - slots.start);
            (words[row], words[row + 1]) = (first, columns.len() as u32);
            first += columns.len() as u32;
            let lane = i % width;
            let numbers = star.data.words();
            words.extend((columns.start * others..columns.end * others).map(|row| star.others[row * width + lane]));
            reals.extend((columns.start * data..columns.end * data).map(|row| numbers[row * width + lane]));
        }
    }
    at
}

/// Appends what high-degree vertices have: pairs of first element and number of elements, then names, then data.
fn push_rows(tiles: &[Tile], star: usize, (words, reals): (&mut Vec<u32>, &mut Vec<u32>), at: &mut Star) {
    let rows = || {
        tiles.iter().filter_map(|tile| match &tile.form {
            Form::Rows { vertices, stars } => Some((tile.slots.len(), *vertices as usize, &stars[star])),
            _ => None,
        })
    };
    at.rows = words.len() as u32;
    let mut first = 0;
    for (slots, vertices, star) in rows() {
        for i in 0..slots {
            // The lanes left over are padding, copies of the last vertex.
            let ends = &star.columns[i.min(vertices - 1)..];
            words.extend([first + ends[0], ends[1] - ends[0]]);
        }
        first += star.columns[vertices];
    }
    at.row_names = words.len() as u32;
    rows().for_each(|(_, _, star)| words.extend_from_slice(&star.others));
    at.row_data = reals.len() as u32;
    rows().for_each(|(_, _, star)| reals.extend_from_slice(star.data.words()));
}

/// Two 16-bit numbers a word, the first in the lower half.
fn push_halves(words: &mut Vec<u32>, mut halves: impl Iterator<Item = u16>) {
    while let Some(low) = halves.next() {
        words.push(u32::from(low) | u32::from(halves.next().unwrap_or(0)) << 16);
    }
}
