//! State that several threads write at once.
//!
//! What makes it sound is the verified [`Schedule`](crate::Schedule) and the inequality that every walk waits for
//! ([`is_ready`](meshweft_schedule::is_ready)): while a task runs, no neighbor of it does (unless double-buffered, where neighbors
//! read another array than is written), and every task is run by one thread at a time. So a real that is written is read
//! and written by nobody else until the walk's own synchronization (the acquire-release epochs of tasks) has passed the write
//! on. The halo of a tile belongs to neighbors of its task. Debug builds and the tests of this crate check this at
//! every access with an owner tag a slot.
//! Elements of changing stars join tasks in the graph of the domain that a walk goes by (`layout/renewal.rs`), so the inequality holds for
//! them, too; both are replaced together, between walks. A tile that has some writes each of its groups through, so they
//! may read any slot that is not of a neighbor under way.
//! A search from a frontier ([`relaxation`](super::relaxation)) reads others of the frontier alone and writes those to the other array;
//! any other vertex is read and written in place by the one thread that has its tile, or that it was listed by.
//! What another host has come to is written to its ghosts under the same inequality, one arrival at a time
//! ([`Arrivals`](super::border::Arrivals)); the share that says which slots those are was checked when it was read.
//! Elements that are projected are tasks in a schedule of their own, of the graph that joins those that share a corner: so while one
//! is, nobody else reads or writes its corners.
//! Between walks only the engine's owner reaches the state: a thread that comes late to a walk finds no task left, and
//! touches nothing.
//!
//! Two things keep a program inside of that argument, whatever safe code it is: a fold reads only vertices that were
//! added to the star it names, because the star's shape is asserted ([`Row`](crate::layout::Row)); and a record reaches
//! only its own reals, because their number is asserted here. A measure taken while others still update is given no star at all.

#![expect(unsafe_code, reason = "disjoint writes to one slice, justified by a verified schedule")]

mod cells;

use crate::layout::{Shape, State, View, ViewMut, shared_stride};
use crate::number::Number;
pub(super) use cells::Cells;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::OnceLock;
#[cfg(any(test, debug_assertions))]
use std::sync::atomic::{AtomicBool, Ordering};

/// A real that threads take turns at.
#[repr(transparent)]
struct Turn<T>(UnsafeCell<T>);

// SAFETY: a `Turn` is only reached through `Cells`, whose users update neighbors never at the same time; see above.
unsafe impl<T: Send> Sync for Turn<T> {}

/// The state of all slots, and what walks write besides.
pub(super) struct Memory<T> {
    shape: Shape,
    len: usize,
    /// Which of the two holds the present state, a walk knows by the rounds it has done.
    shared: [OnceLock<Box<[Turn<T>]>>; 2],
    private: Box<[Turn<T>]>,
    /// A measured value for each slot, once something is measured whose values must wait for others.
    values: OnceLock<Box<[Turn<T>]>>,
    #[cfg(any(test, debug_assertions))]
    updating: Vec<AtomicBool>,
}

/// Hands reals over to threads.
fn turns<T>(reals: Vec<T>) -> Box<[Turn<T>]> {
    let reals = Box::into_raw(reals.into_boxed_slice());
    // SAFETY: `Turn<T>` has the layout of `T` (both wrappers are transparent), and the box is ours.
    unsafe { Box::from_raw(reals as *mut [Turn<T>]) }
}

impl<T: Number> Memory<T> {
    pub(super) fn new(state: State<T>) -> Memory<T> {
        let State { shape, len, shared, private, .. } = state;
        Memory {
            shape,
            len,
            shared: [OnceLock::from(turns(shared)), OnceLock::new()],
            private: turns(private),
            values: OnceLock::new(),
            #[cfg(any(test, debug_assertions))]
            updating: (0..len).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// The state between walks. `current`: which array holds it.
    ///
    /// # Safety
    /// Nobody writes to the state while the result is alive: no walk and no search is under way.
    pub(super) unsafe fn view(&self, current: usize) -> View<'_, T> {
        // SAFETY: by the caller's promise.
        let [shared, private] = unsafe { [read(self.array(current)), read(&self.private)] };
        View { shape: self.shape, shared, private }
    }

    /// The state between walks, to change it.
    ///
    /// # Safety
    /// Nobody else reads or writes the state while the result is alive: no walk and no search is under way, and whoever asks has the
    /// engine to itself.
    pub(super) unsafe fn view_mut(&self, current: usize) -> ViewMut<'_, T> {
        // SAFETY: by the caller's promise.
        let [shared, private] = unsafe { [write(self.array(current)), write(&self.private)] };
        ViewMut { shape: self.shape, shared, private }
    }

    /// The bits of the state of some slots, while the thread that asks runs their task. `source`: which array holds the shared
    /// state.
    pub(super) fn copy(&self, slots: Range<usize>, source: usize) -> [Vec<u8>; 2] {
        let shared = shared_stride(self.shape.shared);
        let of = |turns: &[Turn<T>], reals: usize| {
            // SAFETY: nobody else writes to the slots of a task, and the thread that runs it is not just updating them.
            bytemuck::cast_slice(unsafe { read(&turns[slots.start * reals..slots.end * reals]) }).to_vec()
        };
        [of(self.array(source), shared), of(&self.private, self.shape.private)]
    }

    /// Appends the bits of the shared state in `array` of some slots of a task, while the thread that asks runs it.
    pub(super) fn pack(&self, slots: &[u32], array: usize, bits: &mut Vec<u8>) {
        let (reals, stride, array) = (self.shape.shared, shared_stride(self.shape.shared), self.array(array));
        let start = bits.len();
        bits.resize(start + slots.len() * reals * T::BYTES, 0);
        for (&slot, bits) in slots.iter().zip(bits[start..].chunks_exact_mut((reals * T::BYTES).max(1))) {
            let at = slot as usize * stride;
            // SAFETY: nobody else writes to the slots of a task, and the thread that runs it is not just updating them.
            let own = bytemuck::cast_slice(unsafe { read(&array[at..at + reals]) });
            // Real by real: too few for a call of `memcpy`.
            bits.chunks_exact_mut(T::BYTES)
                .zip(own.chunks_exact(T::BYTES))
                .for_each(|(to, from)| to.copy_from_slice(from));
        }
    }

    /// Writes the bits of the shared state of a ghost to array `to`, while no task beside it reads or writes that, as the walk
    /// has made sure. Tells whether that differs from array `from`; none if they are not as many as they must be.
    pub(super) fn unpack(&self, slots: Range<usize>, from: usize, to: usize, bits: &[u8]) -> Option<bool> {
        let (reals, stride) = (self.shape.shared, shared_stride(self.shape.shared));
        if bits.len() != slots.len() * reals * T::BYTES {
            return None;
        }
        let ([source, target], mut has_changed) = ([from, to].map(|which| self.array(which)), false);
        self.begin(slots.clone());
        // Where slots are as long as what is sent of them, all are one piece: too few reals for a call of `memcpy` each.
        let (pieces, reals) = if reals == stride { (1, slots.len() * reals) } else { (slots.len(), reals) };
        for (i, bits) in (0..pieces).zip(bits.chunks_exact((reals * T::BYTES).max(1))) {
            let at = (slots.start + i) * stride;
            // SAFETY: no neighbor of the ghost runs now, and arrivals come one at a time (the walk's inequality).
            has_changed |= bytemuck::cast_slice::<T, u8>(unsafe { read(&source[at..at + reals]) }) != bits;
            // SAFETY: as above.
            bytemuck::cast_slice_mut(unsafe { write(&target[at..at + reals]) }).copy_from_slice(bits);
        }
        self.end(slots);
        Some(has_changed)
    }

    /// The same of some slots that need not lie together, in one array.
    pub(super) fn unpack_each(&self, slots: &[u32], array: usize, bits: &[u8]) -> Option<bool> {
        let bytes = self.shape.shared * T::BYTES;
        if bits.len() != slots.len() * bytes {
            return None;
        }
        let mut has_changed = false;
        for (&slot, bits) in slots.iter().zip(bits.chunks_exact(bytes.max(1))) {
            has_changed |= self.unpack(slot as usize..slot as usize + 1, array, array, bits)?;
        }
        Some(has_changed)
    }

    /// Gives a ghost the same shared state in array `to` as in `from`, as [`Memory::unpack`] writes what has come.
    pub(super) fn keep(&self, slots: Range<usize>, from: usize, to: usize) {
        if from == to {
            return;
        }
        let (stride, [source, target]) = (shared_stride(self.shape.shared), [from, to].map(|which| self.array(which)));
        let reals = slots.start * stride..slots.end * stride;
        self.begin(slots.clone());
        // SAFETY: no neighbor of the ghost runs now, and arrivals come one at a time (the walk's inequality).
        unsafe { write(&target[reals.clone()]) }.copy_from_slice(unsafe { read(&source[reals]) });
        self.end(slots);
    }

    /// Marks slots as being updated by this thread. Nothing in a release build.
    #[inline(always)]
    fn begin(&self, slots: Range<usize>) {
        #[cfg(any(test, debug_assertions))]
        for slot in slots {
            assert!(!self.updating[slot].swap(true, Ordering::AcqRel), "slot {slot} is updated twice at a time");
        }
        #[cfg(not(any(test, debug_assertions)))]
        let _ = slots;
    }

    /// Takes back the mark. Nothing in a release build.
    #[inline(always)]
    fn end(&self, slots: Range<usize>) {
        #[cfg(any(test, debug_assertions))]
        slots.for_each(|slot| self.updating[slot].store(false, Ordering::Release));
        #[cfg(not(any(test, debug_assertions)))]
        let _ = slots;
    }

    /// Whether the bits that [`Memory::pack`] gave of some slots are those of a copy of all slots from `first` on.
    pub(super) fn is_same(&self, slots: &[u32], bits: &[u8], first: usize, copy: &[u8]) -> bool {
        let (len, stride) = (self.shape.shared * T::BYTES, shared_stride(self.shape.shared) * T::BYTES);
        let before = |slot: u32| &copy[(slot as usize - first) * stride..][..len];
        slots.iter().enumerate().all(|(i, &slot)| bits[i * len..(i + 1) * len] == *before(slot))
    }

    /// Takes back the marks that a walk which panicked has left. Nothing in a release build.
    pub(super) fn forget_marks(&self) {
        #[cfg(any(test, debug_assertions))]
        self.updating.iter().for_each(|mark| mark.store(false, Ordering::Release));
    }

    fn array(&self, which: usize) -> &[Turn<T>] {
        self.shared[which].get_or_init(|| turns(vec![T::from_f64(0.0); self.len * shared_stride(self.shape.shared)]))
    }

    /// What was measured, of each slot.
    ///
    /// # Safety
    /// Nobody writes measured values while the result is alive: whoever measured them is done.
    pub(super) unsafe fn values(&self) -> &[T] {
        // SAFETY: by the caller's promise.
        unsafe { read(self.value_cells()) }
    }

    /// Writes what was measured of some slots, from `first` on, that this thread has taken.
    pub(super) fn measured(&self, first: usize, values: &[T]) {
        let cells = &self.value_cells()[first..];
        // SAFETY: each slot belongs to one tile and to one leaf, and each of these is measured by one thread.
        cells.iter().zip(values).for_each(|(cell, x)| unsafe { *cell.0.get() = *x });
    }

    fn value_cells(&self) -> &[Turn<T>] {
        self.values.get_or_init(|| turns(vec![T::from_f64(0.0); self.len]))
    }
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
