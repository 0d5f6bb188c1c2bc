//! Ascending lists of ids, in as few bytes as the time for it allows.
//!
//! A list says itself in which [`Form`] it is:
//!
//! ```text
//! form, with the highest bit set if the ids are those that are missing | number of ids | what follows by form
//! plain:   each id in four bytes
//! bitmap:  first byte of the map, number of bytes | the map
//! packed:  width, 128 gaps of so many bits | ... | width, gaps of the last ones          (S4-BP128)
//! rice:    bits, the low bits of 256 gaps, the rest of each in unary | ...         (nothing but a mark where all of them are 0)
//! ```
//!
//! A gap is that to the id before, less one. Of a list that has more than half of all ids, packed and rice have those that are missing.
//! Rice's code of gaps that are spread as by chance is within some hundredths of their entropy; 128 gaps that have as many bits as the
//! largest of them take about a bit more each, and are unpacked several times as fast.
//!
//! Sources: Lemire and Boytsov, "Decoding billions of integers per second through vectorization", 2015; Rice and Plaunt, "Adaptive
//! variable-length coding", 1971.

#[cfg(test)]
mod tests;

use crate::codec::{BLOCK, pack_bits, unpack_bits};
use crate::wire::Reader;
use bitpacking::{BitPacker, BitPacker4x};

/// How a list of ids is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each in four bytes.
    Plain,
    /// A bit for each id of the range that they lie in.
    Bitmap,
    /// 128 gaps in as many bits each as the largest of them has.
    Packed,
    /// Gaps in Rice's code.
    Rice,
}

impl Form {
    /// All forms, each at the place of its number.
    pub const ALL: [Form; 4] = [Form::Plain, Form::Bitmap, Form::Packed, Form::Rice];
}

/// Ids of a group that share the number of low bits.
const GROUP: usize = 2 * BLOCK;
/// Bytes before what follows by form.
const HEAD: usize = 5;
/// Marks a list of missing ids.
const MISSING: u8 = 0x80;

/// A list that is to be written.
pub struct List<'a> {
    ids: &'a [u32],
    /// Those that are not in it, if these are fewer.
    missing: Option<Vec<u32>>,
    /// Bytes that it takes in each form.
    pub bytes: [usize; Form::ALL.len()],
}

impl<'a> List<'a> {
    /// Finds out what a list of ascending ids below `end` takes. Cost O(ids).
    pub fn new(ids: &'a [u32], end: u32) -> List<'a> {
        let missing = (ids.len() > end as usize / 2).then(|| missing(ids, end));
        let shorter = missing.as_deref().unwrap_or(ids);
        let mut gaps = Gaps::new(shorter);
        let (mut packed, mut rice) = (0, 0);
        while let Some(group) = gaps.next() {
            rice += 1 + rice_bytes(group, low_bits(group));
            packed += group.chunks(BLOCK).map(|gaps| 1 + (gaps.len() * width(gaps)).div_ceil(8)).sum::<usize>();
        }
        let bitmap = map_of(ids).len() + 8;
        List { ids, missing, bytes: [4 * ids.len(), bitmap, packed, rice].map(|bytes| HEAD + bytes) }
    }

    /// Appends the list in that form.
    pub fn write(&self, form: Form, out: &mut Vec<u8>) {
        let is_short = matches!(form, Form::Packed | Form::Rice);
        let (ids, mark) = match &self.missing {
            Some(missing) if is_short => (&missing[..], MISSING),
            _ => (self.ids, 0),
        };
        out.push(form as u8 | mark);
        out.extend((ids.len() as u32).to_le_bytes());
        match form {
            Form::Plain => out.extend_from_slice(bytemuck::cast_slice(ids)),
            Form::Bitmap => {
                let map = map_of(ids);
                out.extend([map.start as u32, map.len() as u32].iter().flat_map(|x| x.to_le_bytes()));
                let start = out.len();
                out.resize(start + map.len(), 0);
                ids.iter().for_each(|&id| out[start + id as usize / 8 - map.start] |= 1 << (id % 8));
            }
            Form::Packed => pack(ids, out),
            Form::Rice => {
                let mut gaps = Gaps::new(ids);
                while let Some(group) = gaps.next() {
                    write_rice(group, out);
                }
            }
        }
    }
}

/// Appends a list of ids as they are, without a thought about its length.
pub fn write_plain(ids: &[u32], out: &mut Vec<u8>) {
    List { ids, missing: None, bytes: [0; Form::ALL.len()] }.write(Form::Plain, out);
}

/// Reads a list of ids below `end` and in which form it was, and goes on behind it. None if it is malformed; it takes no more memory
/// than all ids would.
pub fn read(from: &mut Reader, end: u32) -> Option<(Form, Vec<u32>)> {
    let (head, count) = (from.byte()?, from.number()?);
    if count > end {
        return None;
    }
    let (form, count) = (*Form::ALL.get(usize::from(head & !MISSING))?, count as usize);
    let mut ids = Vec::with_capacity(count);
    match form {
        Form::Plain => {
            ids.extend(from.bytes(4 * count)?.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id)));
        }
        Form::Bitmap => {
            let first = from.number()?;
            let map = from.text()?;
            if u64::from(first) + map.len() as u64 > u64::from(end.div_ceil(8)) {
                return None;
            }
            for (i, word) in map.chunks(8).enumerate() {
                let mut whole = [0; 8];
                whole[..word.len()].copy_from_slice(word);
                ids.extend(ones(u64::from_le_bytes(whole)).map(|bit| 8 * first + 64 * i as u32 + bit));
                if ids.len() > count {
                    return None;
                }
            }
        }
        Form::Packed => unpack(from, count, &mut ids)?,
        Form::Rice => {
            let (mut gaps, mut next) = ([0; GROUP], 0u32);
            while ids.len() < count {
                let group = &mut gaps[..GROUP.min(count - ids.len())];
                read_rice(from, group)?;
                ids.extend(group.iter().map(|gap| {
                    let id = next.wrapping_add(*gap);
                    next = id.wrapping_add(1);
                    id
                }));
            }
        }
    }
    let is_sound = ids.len() == count && ids.is_sorted_by(|a, b| a < b) && ids.last().is_none_or(|&last| last < end);
    let ids = is_sound.then_some(ids)?;
    Some((form, if head & MISSING == 0 { ids } else { missing(&ids, end) }))
}

/// The ids below `end` that are not in a list.
fn missing(ids: &[u32], end: u32) -> Vec<u32> {
    let mut missing = Vec::with_capacity((end as usize).saturating_sub(ids.len()));
    let mut next = 0;
    for &id in ids {
        missing.extend(next..id);
        next = id + 1;
    }
    missing.extend(next..end);
    missing
}

/// The bytes of a bitmap of all ids that a list takes.
fn map_of(ids: &[u32]) -> std::ops::Range<usize> {
    match (ids.first(), ids.last()) {
        (Some(&first), Some(&last)) => first as usize / 8..last as usize / 8 + 1,
        _ => 0..0,
    }
}

/// The numbers of the bits of a word that are set.
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros();
        (bits != 0).then(|| {
            bits &= bits - 1;
            bit
        })
    })
}

/// The gaps of a list, a group at a time.
struct Gaps<'a> {
    ids: &'a [u32],
    /// The id before, and one.
    before: u32,
    group: [u32; GROUP],
}

impl Gaps<'_> {
    fn new(ids: &[u32]) -> Gaps<'_> {
        Gaps { ids, before: 0, group: [0; GROUP] }
    }

    fn next(&mut self) -> Option<&[u32]> {
        let (own, rest) = self.ids.split_at(self.ids.len().min(GROUP));
        self.ids = rest;
        let last = *own.last()?;
        self.group[0] = own[0] - self.before;
        self.group[1..].iter_mut().zip(own.windows(2)).for_each(|(gap, pair)| *gap = pair[1] - pair[0] - 1);
        self.before = last + 1;
        Some(&self.group[..own.len()])
    }
}

/// The bits of the largest of some numbers.
fn width(words: &[u32]) -> usize {
    32 - words.iter().fold(0, |all, word| all | word).leading_zeros() as usize
}

fn pack(ids: &[u32], out: &mut Vec<u8>) {
    let (packer, mut before) = (BitPacker4x::new(), None);
    let (blocks, last) = ids.as_chunks::<BLOCK>();
    for block in blocks {
        let width = packer.num_bits_strictly_sorted(before, block);
        out.push(width);
        let start = out.len();
        out.resize(start + BLOCK / 8 * usize::from(width), 0);
        packer.compress_strictly_sorted(before, block, &mut out[start..], width);
        before = Some(block[BLOCK - 1]);
    }
    let mut next = before.map_or(0, |before| before + 1);
    let gaps: Vec<u32> = last.iter().map(|&id| id - std::mem::replace(&mut next, id + 1)).collect();
    if !gaps.is_empty() {
        let width = width(&gaps);
        out.push(width as u8);
        pack_bits(&gaps, width as u32, out);
    }
}

fn unpack(from: &mut Reader, count: usize, ids: &mut Vec<u32>) -> Option<()> {
    let (packer, mut before) = (BitPacker4x::new(), None);
    ids.resize(count, 0);
    for block in ids.chunks_mut(BLOCK) {
        let width = from.byte().filter(|width| *width <= 32)?;
        let own = from.bytes((block.len() * usize::from(width)).div_ceil(8))?;
        if block.len() == BLOCK {
            packer.decompress_strictly_sorted(before, own, block, width);
        } else {
            unpack_bits(own, width.into(), block)?;
            let mut next = before.map_or(0u32, |before: u32| before.wrapping_add(1));
            for id in &mut *block {
                *id = id.wrapping_add(next);
                next = id.wrapping_add(1);
            }
        }
        before = block.last().copied();
    }
    Some(())
}

/// Marks a group of numbers in Rice's code, and one there that are all 0: a run of ids.
const RICE: u8 = 0x80;
const RUN: u8 = 0xff;

/// Appends numbers in any order: of 256 at a time all in as many bits as the largest has, or in Rice's code, whichever is less.
pub fn write_numbers(numbers: &[u32], out: &mut Vec<u8>) {
    for group in numbers.chunks(GROUP) {
        let (low, width) = (low_bits(group), width(group));
        if rice_bytes(group, low) < (group.len() * width).div_ceil(8) {
            out.push(RICE);
            write_rice(group, out);
        } else {
            out.push(width as u8);
            group.chunks(BLOCK).for_each(|block| pack_bits(block, width as u32, out));
        }
    }
}

/// Reads as many numbers as there is room for, and goes on behind them. None if there are not as many.
pub fn read_numbers(from: &mut Reader, numbers: &mut [u32]) -> Option<()> {
    for group in numbers.chunks_mut(GROUP) {
        match from.byte()? {
            RICE => read_rice(from, group)?,
            width @ 0..=32 => {
                for block in group.chunks_mut(BLOCK) {
                    let own = from.bytes((block.len() * usize::from(width)).div_ceil(8))?;
                    unpack_bits(own, width.into(), block)?;
                }
            }
            _ => return None,
        }
    }
    Some(())
}

/// How many low bits of each gap of a group are written as they are.
fn low_bits(gaps: &[u32]) -> u32 {
    let sum: u64 = gaps.iter().map(|&gap| u64::from(gap)).sum();
    // About seven tenths of the mean, or the next smaller one.
    let near = (7 * sum / (10 * gaps.len() as u64)).max(1).ilog2();
    (near.saturating_sub(1)..=(near + 1).min(31)).min_by_key(|&low| rice_bytes(gaps, low)).unwrap_or(near)
}

fn rice_bytes(gaps: &[u32], low: u32) -> usize {
    if width(gaps) == 0 {
        return 0;
    }
    let unary = gaps.iter().map(|&gap| u64::from(gap >> low)).sum::<u64>() as usize + gaps.len();
    gaps.chunks(BLOCK).map(|gaps| (gaps.len() * low as usize).div_ceil(8)).sum::<usize>() + unary.div_ceil(8)
}

fn write_rice(gaps: &[u32], out: &mut Vec<u8>) {
    if width(gaps) == 0 {
        return out.push(RUN);
    }
    let low = low_bits(gaps);
    out.push(low as u8);
    let mask = (1 << low) - 1;
    for gaps in gaps.chunks(BLOCK) {
        let mut lows = [0; BLOCK];
        lows.iter_mut().zip(gaps).for_each(|(own, gap)| *own = gap & mask);
        pack_bits(&lows[..gaps.len()], low, out);
    }
    // A one behind as many zeros as the rest says.
    let (mut word, mut filled) = (0u64, 0);
    for gap in gaps {
        filled += gap >> low;
        while filled >= 64 {
            out.extend(word.to_le_bytes());
            (word, filled) = (0, filled - 64);
        }
        word |= 1 << filled;
        filled += 1;
        if filled == 64 {
            out.extend(word.to_le_bytes());
            (word, filled) = (0, 0);
        }
    }
    out.extend(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Reads a group of as many as there is room for.
fn read_rice(from: &mut Reader, gaps: &mut [u32]) -> Option<()> {
    let low = from.byte().filter(|low| *low < 32 || *low == RUN)?;
    if low == RUN {
        gaps.fill(0);
        return Some(());
    }
    let count = gaps.len();
    for gaps in gaps.chunks_mut(BLOCK) {
        let own = from.bytes((gaps.len() * usize::from(low)).div_ceil(8))?;
        unpack_bits(own, low.into(), gaps)?;
    }
    let (mut found, mut zeros) = (0, 0u32);
    while found < count {
        let rest = from.0;
        let (word, bytes) = match rest.first_chunk::<8>() {
            Some(word) => (u64::from_le_bytes(*word), 8),
            None => {
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                (u64::from_le_bytes(word), rest.len())
            }
        };
        if bytes == 0 {
            return None;
        }
        let (mut used, mut last) = (bytes, 0);
        for bit in ones(word) {
            gaps[found] |= zeros.wrapping_add(bit - last) << low;
            (found, zeros, last) = (found + 1, 0, bit + 1);
            if found == count {
                used = last.div_ceil(8) as usize;
                break;
            }
        }
        zeros = zeros.wrapping_add(8 * bytes as u32 - last);
        from.bytes(used)?;
    }
    Some(())
}
