//! Sorting in parallel by numbers: one pass by their leading bits, then small sorts that stay in cache.
//!
//! Chunks of the input are each sorted into buckets by one thread; then each bucket is gathered from all chunks, sorted,
//! and written to its place. The buckets alone decide what goes where, so that the result depends neither on the number
//! of threads nor on that of chunks. Memory: one copy of the items beside the result.

use crate::parallel;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Items a bucket that sorting is tuned for: they fit into a first-level cache, and the buckets are few enough for the
/// counters of a chunk to do so too.
const BUCKET: usize = 1 << 10;
/// The most buckets, as a power of two: more could not be written to side by side.
const MOST_BUCKETS: u32 = 12;
/// Fewer items are not worth another chunk.
const LEAST_CHUNK: usize = 1 << 15;
/// Buckets of more items, which equal leading bits can cause, are worth several threads.
const HUGE: usize = 1 << 16;

/// Sorts the items `item(0)`, ..., `item(n - 1)` so that `number` ascends, and writes what `write` makes of them.
///
/// `write` gets items of the same bucket in no order, and as many places to write to: it sorts them.
pub(crate) fn sort_into<T: Copy + Send + Sync, U: Copy + Default + Send>(
    n: usize,
    item: impl Fn(usize) -> T + Sync,
    number: impl Fn(&T) -> u64 + Sync,
    write: impl Fn(&mut [T], &mut [U]) + Sync,
) -> Vec<U> {
    let ends = parallel::map(parallel::ranges(n, LEAST_CHUNK), |range| {
        range.map(|i| number(&item(i))).fold((u64::MAX, 0), |(low, high), x| (low.min(x), high.max(x)))
    });
    let (low, high) = ends.into_iter().fold((u64::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    let bits = (n / BUCKET).max(2).ilog2().min(MOST_BUCKETS); // one at least, to shift by fewer than 64
    let range_bits = u64::BITS - high.saturating_sub(low).leading_zeros();
    let shift = range_bits.saturating_sub(bits);
    let buckets = if n == 0 { 0 } else { ((high - low) >> shift) as usize + 1 };

    let chunks: Vec<(Vec<u32>, Vec<T>)> = parallel::map(parallel::ranges(n, LEAST_CHUNK), |range| {
        let bucket = |item: &T| ((number(item) - low) >> shift) as usize;
        let mut starts = vec![0u32; buckets + 1];
        range.clone().for_each(|i| starts[bucket(&item(i)) + 1] += 1);
        (0..buckets).for_each(|b| starts[b + 1] += starts[b]);
        let mut next = starts.clone();
        let mut items = vec![item(range.start); range.len()];
        for i in range {
            let item = item(i);
            let at = &mut next[bucket(&item)];
            items[*at as usize] = item;
            *at += 1;
        }
        (starts, items)
    });

    let mut out = vec![U::default(); n];
    let mut rest = &mut out[..];
    let mut places = Vec::with_capacity(buckets);
    for b in 0..buckets {
        let size = chunks.iter().map(|(starts, _)| (starts[b + 1] - starts[b]) as usize).sum();
        let (own, others) = rest.split_at_mut(size);
        places.push(own);
        rest = others;
    }
    parallel::each((0..).step_by(8).zip(places.chunks_mut(8)), |(first, places)| {
        let mut bucket = Vec::new();
        for (b, out) in (first..).zip(places) {
            bucket.clear();
            for (starts, items) in &chunks {
                bucket.extend_from_slice(&items[starts[b] as usize..starts[b + 1] as usize]);
            }
            write(&mut bucket, out);
        }
    });
    out
}

/// Sorts one bucket, with the help of other threads if it is huge.
pub(crate) fn sort_bucket<T: Ord + Send>(items: &mut [T]) {
    match items.len() {
        0..=HUGE => items.sort_unstable(),
        _ => items.par_sort_unstable(),
    }
}

/// Groups values by row: returns where each of the `rows` starts (and the end), and the values, row after row.
///
/// `ends(i)`: the rows and values of item `i` of `count`. A counting sort: each of a few chunks counts the values that it
/// has for each row, and then knows where to write them. Within a row, values are in the order of the items, so that the
/// result does not depend on the chunks. Memory: the result, and 4 bytes a row and chunk.
///
/// # Panics
/// If a row does not exist. There must be fewer than 2^32 values.
///
/// ```
/// let corners = [[0, 2], [2, 1], [2, 0]];
/// let (starts, edges) = meshweft_mesh::group(3, 3, |e| corners[e].map(|v| (v, e as u32)));
/// assert_eq!((starts, edges), (vec![0, 2, 3, 6], vec![0, 2, 1, 0, 1, 2]));
/// ```
pub fn group<const K: usize>(
    rows: usize,
    count: usize,
    ends: impl Fn(usize) -> [(u32, u32); K] + Sync,
) -> (Vec<u32>, Vec<u32>) {
    /// More would take more memory for their counts than they save time.
    const MOST_CHUNKS: usize = 8;
    const LEAST_CHUNK: usize = 1 << 16;
    debug_assert!(count.saturating_mul(K) <= u32::MAX as usize, "starts fit into 32 bits");
    let chunk = count.div_ceil(rayon::current_num_threads().min(MOST_CHUNKS)).max(LEAST_CHUNK);
    let items_of = |c: usize| c * chunk..count.min((c + 1) * chunk);
    let mut places: Vec<Vec<u32>> = parallel::map(0..count.div_ceil(chunk), |c| {
        let mut counts = vec![0u32; rows];
        items_of(c).for_each(|i| ends(i).into_iter().for_each(|(row, _)| counts[row as usize] += 1));
        counts
    });
    let mut starts = Vec::with_capacity(rows + 1);
    let mut end = 0;
    starts.push(0);
    for row in 0..rows {
        for place in &mut places {
            (place[row], end) = (end, end + place[row]);
        }
        starts.push(end);
    }
    let values = scatter(K * count, |slots| {
        parallel::each(places.into_iter().enumerate(), |(c, mut places)| {
            for (row, value) in items_of(c).flat_map(&ends) {
                let place = &mut places[row as usize];
                slots[*place as usize].store(value, Ordering::Relaxed);
                *place += 1;
            }
        });
    });
    (starts, values)
}

/// An array of `n` numbers, each of which `fill` stores once, from any thread.
///
/// Atomics are how threads may write to scattered places without locks, and relaxed ones cost nothing.
pub(crate) fn scatter(n: usize, fill: impl FnOnce(&[AtomicU32])) -> Vec<u32> {
    let slots: Vec<AtomicU32> = (0..n).into_par_iter().map(|_| AtomicU32::new(0)).collect();
    fill(&slots);
    slots.into_iter().map(AtomicU32::into_inner).collect()
}

/// What a row of a graph holds in place of a vertex that was there before: no vertex has this id.
pub(crate) const NONE: u32 = u32::MAX;

/// Sorts the neighbors of a vertex and puts [`NONE`] in the place of each repeat.
pub(crate) fn sort_row(row: &mut [u32]) {
    match row.len() {
        0..=1 => {}
        2..=16 => sort_padded::<16>(row),
        17..=32 => sort_padded::<32>(row),
        _ => {
            row.sort_unstable();
            let mut last = NONE;
            for u in row {
                match *u == last {
                    true => *u = NONE,
                    false => last = *u,
                }
            }
        }
    }
}

/// The place of an element is the number of those before it. Counting them all takes no branches, which a processor would
/// guess wrong half of the time, and a few vector instructions.
fn sort_padded<const N: usize>(row: &mut [u32]) {
    let mut padded = [NONE; N];
    padded[..row.len()].copy_from_slice(row);
    let mut sorted = [NONE; N];
    for &x in &*row {
        let before: u32 = padded.iter().map(|&y| u32::from(y < x)).sum();
        sorted[before as usize % N] = x;
    }
    row.copy_from_slice(&sorted[..row.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[u64]) {
        let sorted = sort_into(
            numbers.len(),
            |i| numbers[i],
            |&x| x,
            |bucket, out| {
                sort_bucket(bucket);
                out.copy_from_slice(bucket);
            },
        );
        let mut expected = numbers.to_vec();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn numbers_of_any_spread_are_sorted() {
        let mixed = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for n in [0, 1, 2, 1000, 100_000] {
            check(&(0..n).map(mixed).collect::<Vec<_>>());
            check(&(0..n).map(|i| mixed(i) % 7).collect::<Vec<_>>());
            check(&(0..n).map(|_| u64::MAX).collect::<Vec<_>>());
            check(&(0..n).map(|i| if i % 1000 == 0 { mixed(i) } else { i % 3 }).collect::<Vec<_>>());
        }
        check(&[u64::MAX, 0, u64::MAX - 1, 1]);
    }

    #[test]
    fn groups_hold_the_values_of_their_row_in_order() {
        for (rows, count) in [(0, 0), (3, 0), (1, 5), (1000, 200_000)] {
            let ends =
                |i: usize| [(i * 7919 % rows, i), ((i * 31 + 5) % rows, i + 1)].map(|(r, v)| (r as u32, v as u32));
            let (starts, values) = group(rows, count, ends);
            assert_eq!((starts.len(), values.len()), (rows + 1, 2 * count));
            let mut expected: Vec<(u32, u32)> = (0..count).flat_map(ends).collect();
            expected.sort_by_key(|end| end.0); // stable
            let row_of = |i: usize| starts.partition_point(|&start| start as usize <= i) as u32 - 1;
            let grouped = values.iter().enumerate().map(|(i, &value)| (row_of(i), value));
            assert!(grouped.eq(expected));
        }
    }

    #[test]
    fn rows_of_any_length_are_sorted() {
        for n in 0..70u32 {
            let mut row: Vec<u32> = (0..n).map(|i| i.wrapping_mul(2_654_435_761) % 50).collect();
            let mut expected = row.clone();
            expected.sort_unstable();
            for i in (1..expected.len()).rev() {
                if expected[i] == expected[i - 1] {
                    expected[i] = NONE;
                }
            }
            sort_row(&mut row);
            assert_eq!(row, expected);
        }
    }
}
