//! State that several threads write at once.
//!
//! What makes it sound is the verified [`Schedule`](crate::Schedule): while a vertex is updated, no neighbor of it is
//! (`Schedule::verify`), and every vertex is updated by one thread at a time. So a real that is written is read and
//! written by nobody else until the engine's own synchronization (the end of a parallel loop, or the acquire-release
//! counters of a task) has passed the write on. The same holds for whole tiles: the halo of a tile is written by none of
//! the tiles that may run beside it. Debug builds check this at every access with an owner tag a slot.
//!
//! Two things keep a program inside of that argument, whatever safe code it is: a fold reads only vertices that were
//! added to the star it names, because the star's shape is asserted ([`Row`](crate::layout::Row)); and a record reaches
//! only its own reals, because their number is asserted here.

#![expect(unsafe_code, reason = "disjoint writes to one slice, justified by a verified schedule")]

use crate::layout::{State, gather_rows, scatter_rows, shared_stride};
use crate::program::lanes::prefetch;
use crate::program::{Lanes, Number, Record};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Range;
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicBool, Ordering};

/// Halo slots that are fetched ahead: enough to hide a read of main memory behind the copies in between.
const AHEAD: usize = 24;

/// A real that threads take turns at.
#[repr(transparent)]
struct Turn<T>(UnsafeCell<T>);

// SAFETY: a `Turn` is only reached through `Cells`, whose users update neighbors never at the same time; see above.
unsafe impl<T: Send> Sync for Turn<T> {}

/// A state opened for disjoint writes.
pub(crate) struct Cells<'a, T> {
    /// Vertices of a group.
    width: usize,
    /// Where neighbors are read.
    source: &'a [Turn<T>],
    /// Where shared state is written: the source itself in place, another array when double-buffered.
    target: &'a [Turn<T>],
    private: &'a [Turn<T>],
    in_place: bool,
    #[cfg(debug_assertions)]
    updating: Vec<AtomicBool>,
    state: PhantomData<&'a mut State<T>>,
}

/// Views a slice that is borrowed mutably as one of cells.
fn turns<T>(slice: &mut [T]) -> &[Turn<T>] {
    // SAFETY: `Turn<T>` has the layout of `T` (both wrappers are transparent), and the mutable borrow, which lasts as
    // long as the result, lets nobody else see the slice.
    unsafe { &*(std::ptr::from_mut(slice) as *const [Turn<T>]) }
}

/// Reals that lie together, as plain numbers.
///
/// # Safety
/// Nobody writes them while the result is alive.
#[inline(always)]
unsafe fn read<T>(turns: &[Turn<T>]) -> &[T] {
    // SAFETY: `Turn<T>` has the layout of `T`, and by the caller's promise.
    unsafe { std::slice::from_raw_parts(turns.as_ptr().cast(), turns.len()) }
}

/// Reals that lie together, to be written.
///
/// # Safety
/// Nobody else reads or writes them while the result is alive.
#[inline(always)]
#[expect(clippy::mut_from_ref, reason = "what `UnsafeCell` is for")]
unsafe fn write<T>(turns: &[Turn<T>]) -> &mut [T] {
    // SAFETY: `Turn<T>` has the layout of `T`, its `UnsafeCell` allows the write, and by the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(turns.as_ptr().cast_mut().cast(), turns.len()) }
}

impl<'a, T: Number> Cells<'a, T> {
    /// Opens a state for updates in place.
    pub(crate) fn in_place(state: &'a mut State<T>) -> Cells<'a, T> {
        let shared = turns(&mut state.shared);
        Cells::new(state.len, state.width, shared, shared, turns(&mut state.private), true)
    }

    /// Opens a state for updates that read `shared` and write `next`.
    pub(crate) fn double_buffered(state: &'a mut State<T>) -> Cells<'a, T> {
        let (shared, next) = (turns(&mut state.shared), turns(&mut state.next));
        Cells::new(state.len, state.width, shared, next, turns(&mut state.private), false)
    }

    fn new(
        len: usize,
        width: usize,
        source: &'a [Turn<T>],
        target: &'a [Turn<T>],
        private: &'a [Turn<T>],
        in_place: bool,
    ) -> Cells<'a, T> {
        #[cfg(not(debug_assertions))]
        let _ = len;
        Cells {
            width,
            source,
            target,
            private,
            in_place,
            #[cfg(debug_assertions)]
            updating: (0..len).map(|_| AtomicBool::new(false)).collect(),
            state: PhantomData,
        }
    }

    /// Marks slots as being updated by this thread. Nothing in a release build.
    #[inline(always)]
    fn begin(&self, slots: Range<usize>) {
        #[cfg(debug_assertions)]
        for slot in slots {
            assert!(!self.updating[slot].swap(true, Ordering::AcqRel), "slot {slot} is updated twice at a time");
        }
        #[cfg(not(debug_assertions))]
        let _ = slots;
    }

    /// Takes back the mark. Nothing in a release build.
    #[inline(always)]
    fn end(&self, slots: Range<usize>) {
        #[cfg(debug_assertions)]
        slots.for_each(|slot| self.updating[slot].store(false, Ordering::Release));
        #[cfg(not(debug_assertions))]
        let _ = slots;
    }

    /// Checks that a slot that is read is not being written. Nothing in a release build.
    #[inline(always)]
    fn at_rest(&self, slot: usize) {
        #[cfg(debug_assertions)]
        assert!(
            !self.in_place || !self.updating[slot].load(Ordering::Acquire),
            "slot {slot} is read while it is updated"
        );
        #[cfg(not(debug_assertions))]
        let _ = slot;
    }

    /// Real `i` of the shared state, which lies `stride` reals a slot.
    #[inline(always)]
    pub(crate) fn leaf(&self, i: usize, stride: usize) -> T {
        self.at_rest(i / stride);
        // SAFETY: no neighbor of the vertex that reads is being updated (module documentation).
        unsafe { *self.source[i].0.get() }
    }

    /// Where real `k` of the private state of a slot lies.
    #[inline(always)]
    fn private_index<Q: Record<T>>(&self, slot: usize, k: usize) -> usize {
        own::<T, Q>(k);
        (slot / self.width * Q::LEN + k) * self.width + slot % self.width
    }

    /// The state of `slot`, which is about to be updated by this thread.
    #[inline(always)]
    pub(crate) fn load<S: Record<T>, Q: Record<T>>(&self, slot: usize) -> (S, Q) {
        let at = slot * shared_stride(S::LEN);
        let shared = S::build(|k| {
            own::<T, S>(k);
            // SAFETY: only this thread updates `slot` now (module documentation).
            unsafe { *self.source[at + k].0.get() }
        });
        let private = Q::build(|k| {
            // SAFETY: as above; private state is reached through its slot alone.
            unsafe { *self.private[self.private_index::<Q>(slot, k)].0.get() }
        });
        self.begin(slot..slot + 1);
        (shared, private)
    }

    /// Ends the update of `slot` that [`Cells::load`] began, and gives its clones the same state.
    #[inline(always)]
    pub(crate) fn store<S: Record<T>, Q: Record<T>>(&self, slot: usize, clones: Range<usize>, shared: S, private: Q) {
        for slot in std::iter::once(slot).chain(clones) {
            let at = slot * shared_stride(S::LEN);
            shared.each(|k, x| {
                own::<T, S>(k);
                // SAFETY: only this thread updates `slot` now, and no neighbor reads it (module documentation).
                unsafe { *self.target[at + k].0.get() = x }
            });
            private.each(|k, x| {
                // SAFETY: as above; private state is reached through its slot alone.
                unsafe { *self.private[self.private_index::<Q>(slot, k)].0.get() = x }
            });
        }
        self.end(slot..slot + 1);
    }

    /// Copies the shared state of a tile, which is about to be updated by this thread, and that of its halo.
    #[inline(always)]
    pub(crate) fn fetch<S: Record<T>>(&self, own: Range<usize>, halo: &[u32], table: &mut [T]) {
        let stride = shared_stride(S::LEN);
        self.begin(own.clone());
        let (first, rest) = table.split_at_mut(own.len() * stride);
        // SAFETY: only this thread updates the tile now (module documentation).
        first.copy_from_slice(unsafe { read(&self.source[own.start * stride..own.end * stride]) });
        for (i, (&slot, place)) in halo.iter().zip(rest.chunks_exact_mut(stride.max(1))).enumerate() {
            if let Some(&ahead) = halo.get(i + AHEAD) {
                prefetch(self.source, ahead as usize * stride);
            }
            let slot = slot as usize;
            self.at_rest(slot);
            // SAFETY: no neighbor of the tile is being updated (module documentation).
            place[..stride].copy_from_slice(unsafe { read(&self.source[slot * stride..(slot + 1) * stride]) });
        }
    }

    /// Ends the update of a tile; in place, this is where its shared state is written back.
    #[inline(always)]
    pub(crate) fn release<S: Record<T>>(&self, own: Range<usize>, table: &[T]) {
        let stride = shared_stride(S::LEN);
        if self.in_place {
            // SAFETY: only this thread updates the tile now, and nobody else reads it (module documentation).
            unsafe { write(&self.target[own.start * stride..own.end * stride]) }
                .copy_from_slice(&table[..own.len() * stride]);
        }
        self.end(own);
    }

    /// The shared state of a group that this thread updates.
    #[inline(always)]
    pub(crate) fn load_shared<L: Lanes<Scalar = T>, S: Record<L>>(&self, group: usize) -> S {
        let reals = L::WIDTH * shared_stride(S::LEN);
        // SAFETY: only this thread updates the group now (module documentation).
        gather_rows(unsafe { read(&self.source[group * reals..(group + 1) * reals]) })
    }

    /// Writes the shared state of a group that this thread updates.
    #[inline(always)]
    pub(crate) fn store_shared<L: Lanes<Scalar = T>, S: Record<L>>(&self, group: usize, shared: S) {
        let reals = L::WIDTH * shared_stride(S::LEN);
        // SAFETY: only this thread updates the group now, and nobody else reads it (module documentation).
        scatter_rows(shared, unsafe { write(&self.target[group * reals..(group + 1) * reals]) });
    }

    /// The private state of a group that this thread updates.
    #[inline(always)]
    pub(crate) fn load_private<L: Lanes<Scalar = T>, Q: Record<L>>(&self, group: usize) -> Q {
        let reals = L::WIDTH * Q::LEN;
        // SAFETY: only this thread updates the group now; private state is reached through its group alone.
        let row = unsafe { read(&self.private[group * reals..(group + 1) * reals]) };
        Q::build(|k| L::load(&row[k * L::WIDTH..]))
    }

    /// Writes the private state of a group that this thread updates.
    #[inline(always)]
    pub(crate) fn store_private<L: Lanes<Scalar = T>, Q: Record<L>>(&self, group: usize, private: Q) {
        let reals = L::WIDTH * Q::LEN;
        // SAFETY: only this thread updates the group now; private state is reached through its group alone.
        let row = unsafe { write(&self.private[group * reals..(group + 1) * reals]) };
        private.each(|k, x| x.store(&mut row[k * L::WIDTH..]));
    }

    /// Asks for the private state of a group ahead of its turn; `reals` of each vertex.
    #[inline(always)]
    pub(crate) fn prefetch_private(&self, group: usize, reals: usize) {
        let row = self.width * reals;
        (0..row).step_by(64 / T::BYTES).for_each(|i| prefetch(self.private, group * row + i));
    }
}

/// Asserts that real `k` belongs to the record; it folds away for records that count their reals right.
#[inline(always)]
fn own<T: Number, S: Record<T>>(k: usize) {
    assert!(k < S::LEN, "a record has its own reals only");
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "slot 1 is read while it is updated")]
    fn a_read_during_an_update_is_caught() {
        let mut state = State::new(2, 1, |_| (0.0f32, ()));
        let cells = Cells::in_place(&mut state);
        let _: (f32, ()) = cells.load(1);
        cells.leaf(1, 1);
    }

    #[test]
    #[should_panic(expected = "slot 0 is updated twice at a time")]
    fn a_second_update_at_a_time_is_caught() {
        let mut state = State::new(2, 1, |_| (0.0f32, ()));
        let cells = Cells::in_place(&mut state);
        let _: (f32, ()) = cells.load(0);
        let _: (f32, ()) = cells.load(0);
    }

    #[test]
    #[should_panic(expected = "slot 9 is read while it is updated")]
    fn a_halo_that_is_being_updated_is_caught() {
        let mut state = State::new(16, 8, |_| (0.0f32, ()));
        let cells = Cells::in_place(&mut state);
        cells.fetch::<f32>(8..16, &[], &mut [0.0; 8]);
        cells.fetch::<f32>(0..8, &[9], &mut [0.0; 9]);
    }

    #[test]
    fn double_buffering_reads_the_old_while_the_new_is_written() {
        let mut state = State::new(2, 1, |_| (0.0f64, 0.0));
        state.next = state.shared.clone();
        let cells = Cells::double_buffered(&mut state);
        let (x, y): (f64, f64) = cells.load(1);
        assert_eq!(cells.leaf(1, 1), 0.0);
        cells.store(1, 2..2, x + 1.0, y + 2.0);
        assert_eq!(cells.leaf(1, 1), 0.0);
        assert_eq!((state.next[1], state.private[1]), (1.0, 2.0));
    }
}
