//! State that several threads write at once: the only unsafe code of the project.
//!
//! What makes it sound is the verified [`Schedule`](crate::Schedule): while a vertex is updated, no neighbor of it is
//! (`Schedule::verify`), and every vertex is updated by one thread at a time. So a real that is written is read and
//! written by nobody else until the engine's own synchronization (the end of a parallel loop, or the acquire-release
//! counters of a task) has passed the write on. Debug builds check this at every access with an owner tag a vertex.
//!
//! Two things keep a program inside of that argument, whatever safe code it is: a fold reads only vertices that were
//! added to the star it names, because the star's shape is asserted ([`Row`](crate::layout::Row)); and a record reaches
//! only its own reals, because their number is asserted here.

#![expect(unsafe_code, reason = "disjoint writes to one slice, justified by a verified schedule")]

use crate::layout::{State, shared_stride};
use crate::program::{Float, Record};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicBool, Ordering};

/// A real that threads take turns at.
#[repr(transparent)]
struct Turn<T>(UnsafeCell<T>);

// SAFETY: a `Turn` is only reached through `Cells`, whose users update neighbors never at the same time; see above.
unsafe impl<T: Send> Sync for Turn<T> {}

/// A state opened for disjoint writes.
pub(crate) struct Cells<'a, T> {
    len: usize,
    /// Where neighbors are read.
    source: &'a [Turn<T>],
    /// Where shared state is written: the source itself in place, another array when double-buffered.
    target: &'a [Turn<T>],
    private: &'a [Turn<T>],
    #[cfg(debug_assertions)]
    updating: Vec<AtomicBool>,
    #[cfg(debug_assertions)]
    in_place: bool,
    state: PhantomData<&'a mut State<T>>,
}

/// Views a slice that is borrowed mutably as one of cells.
fn turns<T>(slice: &mut [T]) -> &[Turn<T>] {
    // SAFETY: `Turn<T>` has the layout of `T` (both wrappers are transparent), and the mutable borrow, which lasts as
    // long as the result, lets nobody else see the slice.
    unsafe { &*(std::ptr::from_mut(slice) as *const [Turn<T>]) }
}

impl<'a, T: Float> Cells<'a, T> {
    /// Opens a state for updates in place.
    pub(crate) fn in_place(state: &'a mut State<T>) -> Cells<'a, T> {
        let shared = turns(&mut state.shared);
        Cells::new(state.len, shared, shared, turns(&mut state.private), true)
    }

    /// Opens a state for updates that read `shared` and write `next`.
    pub(crate) fn double_buffered(state: &'a mut State<T>) -> Cells<'a, T> {
        Cells::new(state.len, turns(&mut state.shared), turns(&mut state.next), turns(&mut state.private), false)
    }

    fn new(
        len: usize,
        source: &'a [Turn<T>],
        target: &'a [Turn<T>],
        private: &'a [Turn<T>],
        in_place: bool,
    ) -> Cells<'a, T> {
        #[cfg(not(debug_assertions))]
        let _ = in_place;
        Cells {
            len,
            source,
            target,
            private,
            #[cfg(debug_assertions)]
            updating: (0..len).map(|_| AtomicBool::new(false)).collect(),
            #[cfg(debug_assertions)]
            in_place,
            state: PhantomData,
        }
    }

    /// Real `i` of the shared state, which lies `stride` reals a vertex.
    #[inline(always)]
    pub(crate) fn leaf(&self, i: usize, stride: usize) -> T {
        #[cfg(debug_assertions)]
        assert!(
            !self.in_place || !self.updating[i / stride].load(Ordering::Acquire),
            "vertex {} is read while it is updated",
            i / stride
        );
        let _ = stride;
        // SAFETY: no neighbor of the vertex that reads is being updated (module documentation).
        unsafe { *self.source[i].0.get() }
    }

    /// The state of vertex `v`, which is about to be updated by this thread.
    #[inline(always)]
    pub(crate) fn load<S: Record<T>, Q: Record<T>>(&self, v: usize) -> (S, Q) {
        let at = v * shared_stride(S::LEN);
        let shared = S::build(|k| {
            own::<T, S>(k);
            // SAFETY: only this thread updates `v` now (module documentation).
            unsafe { *self.source[at + k].0.get() }
        });
        let private = Q::build(|k| {
            own::<T, Q>(k);
            // SAFETY: as above; private state is reached through its vertex alone.
            unsafe { *self.private[k * self.len + v].0.get() }
        });
        #[cfg(debug_assertions)]
        assert!(!self.updating[v].swap(true, Ordering::AcqRel), "vertex {v} is updated twice at a time");
        (shared, private)
    }

    /// Ends the update of vertex `v` that [`Cells::load`] began.
    #[inline(always)]
    pub(crate) fn store<S: Record<T>, Q: Record<T>>(&self, v: usize, shared: S, private: Q) {
        let at = v * shared_stride(S::LEN);
        shared.each(|k, x| {
            own::<T, S>(k);
            // SAFETY: only this thread updates `v` now, and no neighbor reads it (module documentation).
            unsafe { *self.target[at + k].0.get() = x }
        });
        private.each(|k, x| {
            own::<T, Q>(k);
            // SAFETY: as above; private state is reached through its vertex alone.
            unsafe { *self.private[k * self.len + v].0.get() = x }
        });
        #[cfg(debug_assertions)]
        self.updating[v].store(false, Ordering::Release);
    }
}

/// Asserts that real `k` belongs to the record; it folds away for records that count their reals right.
#[inline(always)]
fn own<T: Float, S: Record<T>>(k: usize) {
    assert!(k < S::LEN, "a record has its own reals only");
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "vertex 1 is read while it is updated")]
    fn a_read_during_an_update_is_caught() {
        let mut state = State::<f32>::new(2, 1, 0);
        let cells = Cells::in_place(&mut state);
        let _: (f32, ()) = cells.load(1);
        cells.leaf(1, 1);
    }

    #[test]
    #[should_panic(expected = "vertex 0 is updated twice at a time")]
    fn a_second_update_at_a_time_is_caught() {
        let mut state = State::<f32>::new(2, 1, 0);
        let cells = Cells::in_place(&mut state);
        let _: (f32, ()) = cells.load(0);
        let _: (f32, ()) = cells.load(0);
    }

    #[test]
    fn double_buffering_reads_the_old_while_the_new_is_written() {
        let mut state = State::<f64>::new(2, 1, 1);
        state.next = state.shared.clone();
        let cells = Cells::double_buffered(&mut state);
        let (x, y): (f64, f64) = cells.load(1);
        assert_eq!(cells.leaf(1, 1), 0.0);
        cells.store(1, x + 1.0, y + 2.0);
        assert_eq!(cells.leaf(1, 1), 0.0);
        assert_eq!((state.next[1], state.private[1]), (1.0, 2.0));
    }
}
