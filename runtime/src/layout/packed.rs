//! Memory that many tiles share.

use bytemuck::Pod;
use bytes::Bytes;
use memmap2::MmapMut;
use meshweft_mesh::parallel;
use std::marker::PhantomData;
use std::ops::Deref;

/// A list that does not change any more. [`pack`] lays many of them into one piece of memory.
#[derive(Clone)]
pub(crate) struct Packed<A> {
    bytes: Bytes,
    numbers: PhantomData<A>,
}

impl<A: Pod> Deref for Packed<A> {
    type Target = [A];

    #[inline(always)]
    fn deref(&self) -> &[A] {
        bytemuck::cast_slice(&self.bytes)
    }
}

/// A list of its own.
struct Alone<A>(Vec<A>);

impl<A: Pod> AsRef<[u8]> for Alone<A> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl<A: Pod + Send> From<Vec<A>> for Packed<A> {
    fn from(list: Vec<A>) -> Packed<A> {
        // A list of nothing has its place, too.
        const NOTHING: &[u128] = &[];
        let nothing = || Bytes::from_static(bytemuck::cast_slice(NOTHING));
        let bytes = if list.is_empty() { nothing() } else { Bytes::from_owner(Alone(list)) };
        Packed { bytes, numbers: PhantomData }
    }
}

impl<A> Packed<A> {
    /// The list without its type.
    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// What [`pack`] moves.
    pub(super) fn bytes(&mut self) -> &mut Bytes {
        &mut self.bytes
    }
}

/// Moves lists into one piece of memory, on large pages where the system grants them: a sweep reads all of it, and on pages of
/// 4 KiB a tenth of its time went into finding them (docs/perf/decisions/large-pages.md). Less than a large page is left where it is, and so is
/// all of it if the system has no memory for a copy. Cost: a copy, in parallel, and the memory of both until it is made.
pub(super) fn pack(lists: Vec<&mut Bytes>) {
    /// Lists start at a cache line.
    const LINE: usize = 64;
    /// A large page.
    const PAGE: usize = 2 << 20;
    let room: usize = lists.iter().map(|list| list.len().next_multiple_of(LINE)).sum();
    if room < PAGE {
        return;
    }
    let Ok(mut memory) = MmapMut::map_anon(room) else { return };
    // A system that has no large pages says so, which changes nothing.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    let mut rest = &mut memory[..];
    let places = lists.iter().map(|list| {
        let (place, after) = std::mem::take(&mut rest).split_at_mut(list.len().next_multiple_of(LINE));
        rest = after;
        (&mut place[..list.len()], list)
    });
    // By all threads: most of the time goes into pages that are touched for the first time.
    parallel::each(places, |(place, list)| place.copy_from_slice(list));
    let memory = Bytes::from_owner(memory);
    let mut start = 0;
    for list in lists.into_iter().filter(|list| !list.is_empty()) {
        let len = list.len();
        *list = memory.slice(start..start + len);
        start += len.next_multiple_of(LINE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_stay_what_they_are_packed_or_not() {
        for most in [10, 100_000] {
            let mut halves: Vec<Packed<u16>> =
                (0..40).map(|i| (0..most + i).map(|x| (x * 7 + i) as u16).collect::<Vec<_>>().into()).collect();
            let mut wholes: Vec<Packed<f64>> = (0..40)
                .map(|i| (0..i * most / 40).map(|x| x as f64 + f64::from(i)).collect::<Vec<_>>().into())
                .collect();
            let lists = |halves: &[Packed<u16>], wholes: &[Packed<f64>]| -> (Vec<Vec<u16>>, Vec<Vec<f64>>) {
                (halves.iter().map(|list| list.to_vec()).collect(), wholes.iter().map(|list| list.to_vec()).collect())
            };
            let before = lists(&halves, &wholes);
            let kept = halves[3].clone();
            pack(halves.iter_mut().map(Packed::bytes).chain(wholes.iter_mut().map(Packed::bytes)).collect());
            assert_eq!(lists(&halves, &wholes), before);
            assert_eq!(kept[..], before.0[3][..]);
            let ends =
                |list: &Packed<u16>| [0, (2 * list.len()).next_multiple_of(64)].map(|at| list.as_ptr() as usize + at);
            let is_packed = halves.windows(2).all(|pair| ends(&pair[0])[1] == ends(&pair[1])[0]);
            assert_eq!(is_packed, most == 100_000);
        }
    }
}
