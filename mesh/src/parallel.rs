//! Loops on all cores, compiled once.
//!
//! Rayon compiles its machinery anew for every closure: 6,000 lines of LLVM's code each, which was more than half of this crate. Here it hands
//! out numbers of pieces, and what works on a piece is called through a pointer. So there are fewer pieces than elements: items of
//! [`each`] and [`map`] are to be worth microseconds.

use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;

/// Fewer elements are not worth a piece.
const LEAST: usize = 1 << 10;

/// Calls `work` with each of the items, which may be parts of an array that it writes to.
///
/// ```
/// let mut rows = [0; 6];
/// meshweft_mesh::parallel::each(rows.chunks_mut(3).enumerate(), |(row, values)| values.fill(row));
/// assert_eq!(rows, [0, 0, 0, 1, 1, 1]);
/// ```
pub fn each<I: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) + Sync) {
    each_of(items.into_iter().collect(), &work);
}

fn each_of<I: Send>(items: Vec<I>, work: &(dyn Fn(I) + Sync)) {
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    tasks(items.len(), &|i| {
        // Taken first: `work` may wait for other items, and this thread works on some of them meanwhile.
        let item = items[i].lock().ok().and_then(|mut item| item.take());
        item.into_iter().for_each(work);
    });
}

/// Calls `work` for each number below `count`.
fn tasks(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().with_max_len(1).for_each(work);
}

/// What `work` makes of the items, in their order.
///
/// ```
/// let words = ["colour", "by", "degree"];
/// assert_eq!(meshweft_mesh::parallel::map(words, str::len), [6, 2, 6]);
/// ```
pub fn map<I: Send, R: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) -> R + Sync) -> Vec<R> {
    map_of(items.into_iter().collect(), &work)
}

fn map_of<I: Send, R: Send>(items: Vec<I>, work: &(dyn Fn(I) -> R + Sync)) -> Vec<R> {
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    each(items.into_iter().zip(&mut results), |(item, result)| *result = Some(work(item)));
    results.into_iter().flatten().collect()
}

/// The numbers below `len` in runs of `least` or more, a few for each thread.
///
/// ```
/// let sums = meshweft_mesh::parallel::map(meshweft_mesh::parallel::ranges(1000, 10), |range| range.sum::<usize>());
/// assert_eq!(sums.into_iter().sum::<usize>(), 499_500);
/// ```
pub fn ranges(len: usize, least: usize) -> impl Iterator<Item = Range<usize>> {
    let size = size(len, least);
    (0..len).step_by(size).map(move |start| start..len.min(start + size))
}

fn size(len: usize, least: usize) -> usize {
    len.div_ceil(8 * rayon::current_num_threads()).max(least).max(1)
}

/// Sets each element to what `value` says of its place.
pub fn fill<T: Send>(elements: &mut [T], value: impl Fn(usize) -> T + Sync) {
    let size = size(elements.len(), LEAST);
    each((0..).step_by(size).zip(elements.chunks_mut(size)), |(start, part)| {
        part.iter_mut().zip(start..).for_each(|(element, place)| *element = value(place));
    });
}

/// The values of the places below `len`.
///
/// ```
/// assert_eq!(meshweft_mesh::parallel::collect(4, |i| i * i), [0, 1, 4, 9]);
/// ```
pub fn collect<T: Clone + Default + Send>(len: usize, value: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut values = vec![T::default(); len];
    fill(&mut values, value);
    values
}

/// The first place below `len` of which `test` is true.
///
/// ```
/// assert_eq!(meshweft_mesh::parallel::first(100, |i| i * i > 50), Some(8));
/// ```
pub fn first(len: usize, test: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    map(ranges(len, LEAST), |mut range| range.find(|&i| test(i))).into_iter().flatten().next()
}

/// The places below `len` of which `test` is true, ascending.
///
/// ```
/// assert_eq!(meshweft_mesh::parallel::filter(10, |i| i % 4 == 1), [1, 5, 9]);
/// ```
pub fn filter(len: usize, test: impl Fn(usize) -> bool + Sync) -> Vec<u32> {
    let parts = map(ranges(len, LEAST), |range| range.filter(|&i| test(i)).map(|i| i as u32).collect::<Vec<_>>());
    parts.concat()
}
