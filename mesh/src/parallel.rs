//! Loops on all cores, compiled once.
//!
//! Rayon compiles its machinery anew for every closure: 6,000 lines of LLVM's code each, which was more than half of this crate. Here it hands
//! out numbers of pieces, and what works on a piece is called through a pointer. So there are fewer pieces than elements: items of
//! [`each`] and [`map`] are to be worth microseconds.

use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

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
        let item = items[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        work(item.expect("each number comes once"));
    });
}

/// Calls `work` for each number below `count`.
fn tasks(count: usize, work: &(dyn Fn(usize) + Sync)) {
    // What is for one thread is for this one: another would have to wake.
    match count.min(rayon::current_num_threads()) {
        0..=1 => (0..count).for_each(work),
        _ => (0..count).into_par_iter().with_max_len(1).for_each(work),
    }
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
    results.into_iter().map(|result| result.expect("all items have been worked on")).collect()
}

/// What `work` makes of the numbers below `count`, in their order. `scratch` is made a few times for each thread, and comes as it
/// was left.
///
/// ```
/// let next = |seen: &mut Vec<usize>, i| {
///     seen.push(i);
///     seen[seen.len() - 1] + 1
/// };
/// assert_eq!(meshweft_mesh::parallel::map_with(3, Vec::new, next), [1, 2, 3]);
/// ```
pub fn map_with<S, R: Send>(
    count: usize,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> R + Sync,
) -> Vec<R> {
    let runs = map(ranges(count, 1), |range| {
        let mut scratch = scratch();
        range.map(|i| work(&mut scratch, i)).collect::<Vec<R>>()
    });
    runs.into_iter().flatten().collect()
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

/// How long the runs of [`ranges`] are, but for the last.
pub fn size(len: usize, least: usize) -> usize {
    len.div_ceil(8 * rayon::current_num_threads()).max(least).max(1)
}

/// Sets each element to what `value` says of its place.
///
/// ```
/// let mut squares = [0; 4];
/// meshweft_mesh::parallel::fill(&mut squares, |i| i * i);
/// assert_eq!(squares, [0, 1, 4, 9]);
/// ```
pub fn fill<T: Send>(elements: &mut [T], value: impl Fn(usize) -> T + Sync) {
    let size = size(elements.len(), LEAST);
    each((0..).step_by(size).zip(elements.chunks_mut(size)), |(start, part)| {
        part.iter_mut().zip(start..).for_each(|(element, place)| *element = value(place));
    });
}

/// The values of the places below `len`, shape `[len]`. Memory: the result, which each thread touches first where it writes.
///
/// ```
/// assert_eq!(meshweft_mesh::parallel::collect(4, |i| i * i), [0, 1, 4, 9]);
/// ```
pub fn collect<T: Clone + Default + Send>(len: usize, value: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut values = vec![T::default(); len];
    fill(&mut values, value);
    values
}

/// The first place below `len` of which `test` is true. Each run is tested up to its first: quick where there is none.
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
    concat(map(ranges(len, LEAST), |range| range.filter(|&i| test(i)).map(|i| i as u32).collect()))
}

/// The parts one behind the other. Memory: the result beside the parts.
///
/// ```
/// assert_eq!(meshweft_mesh::parallel::concat(vec![vec![3, 1], vec![], vec![2]]), [3, 1, 2]);
/// ```
pub fn concat<T: Copy + Default + Send + Sync>(parts: Vec<Vec<T>>) -> Vec<T> {
    let mut all = vec![T::default(); parts.iter().map(Vec::len).sum()];
    let mut rest = &mut all[..];
    let mut places = Vec::with_capacity(parts.len());
    for part in &parts {
        let (own, others) = rest.split_at_mut(part.len());
        places.push(own);
        rest = others;
    }
    each(places.into_iter().zip(&parts), |(place, part)| place.copy_from_slice(part));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn loops_are_those_of_iterators_on_any_number_of_threads() {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for len in [0, 1, 1023, 1024, 1025, 100_003] {
                let odd = |i: usize| i.wrapping_mul(2_654_435_761) % 3 == 1;
                let all: Vec<usize> = (0..len).collect();
                pool.install(|| {
                    assert_eq!(ranges(len, 7).flatten().collect::<Vec<_>>(), all);
                    assert_eq!(map(0..len.min(2000), |i| i), all[..len.min(2000)]);
                    assert_eq!(map_with(len.min(2000), || 1, |one, i| i * *one), all[..len.min(2000)]);
                    assert_eq!(collect(len, |i| i), all);
                    assert_eq!(filter(len, odd), (0..len).filter(|&i| odd(i)).map(|i| i as u32).collect::<Vec<_>>());
                    for wanted in [0, 1023, 1024, 50_000] {
                        let place = Some(wanted).filter(|&wanted| wanted < len);
                        assert_eq!(first(len, |i| i >= wanted), place);
                    }
                });
            }
        }
    }

    #[test]
    fn a_loop_within_a_loop_ends_and_a_panic_comes_out() {
        let calls = AtomicUsize::new(0);
        each(0..50, |_| each(0..50, |_| _ = calls.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(calls.into_inner(), 2500);
        assert!(catch_unwind(|| each(0..50, |i| assert_ne!(i, 20))).is_err());
    }
}
