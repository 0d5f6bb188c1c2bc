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

use crate::layout::{Lookup, QUADS, Shape, State, View, ViewMut, gather_rows, scatter_rows, shared_stride};
use crate::number::lanes::{pick_slots, prefetch};
use crate::number::{Lanes, Number, Real, array};
use crate::program::Record;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::sync::OnceLock;
#[cfg(any(test, debug_assertions))]
use std::sync::atomic::{AtomicBool, Ordering};

/// Halo slots that are fetched ahead: enough to hide a read of main memory behind the copies in between.
const AHEAD: usize = 64;

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
        let State { shape, len, shared, private } = state;
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
        // SAFETY: no neighbor of the ghost runs now, and arrivals come one at a time (the walk's inequality).
        let (cells, mut has_changed) = (unsafe { self.open(from, from == to) }, false);
        cells.begin(slots.clone());
        // Where slots are as long as what is sent of them, all are one piece: too few reals for a call of `memcpy` each.
        let (pieces, reals) = if reals == stride { (1, slots.len() * reals) } else { (slots.len(), reals) };
        for (i, bits) in (0..pieces).zip(bits.chunks_exact((reals * T::BYTES).max(1))) {
            let at = (slots.start + i) * stride;
            // SAFETY: no neighbor of the ghost runs now, and arrivals come one at a time (the walk's inequality).
            has_changed |= bytemuck::cast_slice::<T, u8>(unsafe { read(&cells.source[at..at + reals]) }) != bits;
            // SAFETY: as above.
            bytemuck::cast_slice_mut(unsafe { write(&cells.target[at..at + reals]) }).copy_from_slice(bits);
        }
        cells.end(slots);
        Some(has_changed)
    }

    /// Gives a ghost the same shared state in array `to` as in `from`, as [`Memory::unpack`] writes what has come.
    pub(super) fn keep(&self, slots: Range<usize>, from: usize, to: usize) {
        if from == to {
            return;
        }
        // SAFETY: no neighbor of the ghost runs now, and arrivals come one at a time (the walk's inequality).
        let (stride, cells) = (shared_stride(self.shape.shared), unsafe { self.open(from, false) });
        let reals = slots.start * stride..slots.end * stride;
        cells.begin(slots.clone());
        // SAFETY: no neighbor of the ghost runs now, and arrivals come one at a time (the walk's inequality).
        unsafe { write(&cells.target[reals.clone()]) }.copy_from_slice(unsafe { read(&cells.source[reals]) });
        cells.end(slots);
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

    /// Opens the state for updates that read array `source` of the shared state, and write it, or the other one.
    ///
    /// # Safety
    /// While the result is alive the thread that has it reaches only slots that are its own by the schedule (module documentation):
    /// it writes slots of tasks that it runs, which no other thread reads or writes meanwhile, and reads slots that no other
    /// thread writes meanwhile.
    #[inline(always)]
    pub(super) unsafe fn open(&self, source: usize, in_place: bool) -> Cells<'_, T> {
        let target = if in_place { source } else { 1 - source };
        let (private, bits) = (&*self.private, self.shape.width.trailing_zeros());
        Cells { memory: self, source: self.array(source), target: self.array(target), private, bits, in_place }
    }
}

/// A state opened for disjoint writes.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a, T> {
    memory: &'a Memory<T>,
    /// Where neighbors are read.
    source: &'a [Turn<T>],
    /// Where shared state is written: the source itself in place, another array when double-buffered.
    target: &'a [Turn<T>],
    /// Here and not behind `memory`, so that nobody has to look there again after each write.
    private: &'a [Turn<T>],
    /// Slots of a group are two to the power of this.
    bits: u32,
    in_place: bool,
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

impl<T: Number> Cells<'_, T> {
    /// Where reals of some slots lie, for machine code: shared ones as they are read and as they are written, and private ones.
    #[cfg(feature = "jit")]
    pub(super) fn places(&self, slots: Range<usize>) -> [*mut T; 3] {
        let Shape { shared, private, .. } = self.memory.shape;
        let stride = shared_stride(shared);
        [(self.source, stride), (self.target, stride), (self.private, private)].map(|(turns, reals)| {
            let turns = &turns[slots.start * reals..slots.end * reals];
            turns.as_ptr().cast_mut().cast()
        })
    }

    /// Slots.
    #[cfg(feature = "jit")]
    pub(super) fn len(&self) -> usize {
        self.memory.len
    }

    /// Asks for the private state of a group ahead of its turn.
    #[cfg(feature = "jit")]
    pub(super) fn prefetch_group(&self, group: usize) {
        self.prefetch_private(group, self.memory.shape.private);
    }

    /// Marks slots as being updated by this thread. Nothing in a release build.
    #[inline(always)]
    pub(super) fn begin(&self, slots: Range<usize>) {
        #[cfg(any(test, debug_assertions))]
        for slot in slots {
            assert!(!self.memory.updating[slot].swap(true, Ordering::AcqRel), "slot {slot} is updated twice at a time");
        }
        #[cfg(not(any(test, debug_assertions)))]
        let _ = slots;
    }

    /// Takes back the mark. Nothing in a release build.
    #[inline(always)]
    pub(super) fn end(&self, slots: Range<usize>) {
        #[cfg(any(test, debug_assertions))]
        slots.for_each(|slot| self.memory.updating[slot].store(false, Ordering::Release));
        #[cfg(not(any(test, debug_assertions)))]
        let _ = slots;
    }

    /// Marks the corners of some elements as being updated by this thread; the same one twice in sequence is one. Nothing in a release
    /// build.
    #[inline(always)]
    pub(super) fn begin_each(&self, slots: &[u32]) {
        #[cfg(any(test, debug_assertions))]
        slots.chunk_by(|a, b| a == b).for_each(|same| self.begin(same[0] as usize..same[0] as usize + 1));
        #[cfg(not(any(test, debug_assertions)))]
        let _ = slots;
    }

    /// Takes back the marks. Nothing in a release build.
    #[inline(always)]
    pub(super) fn end_each(&self, slots: &[u32]) {
        #[cfg(any(test, debug_assertions))]
        slots.iter().for_each(|&slot| self.end(slot as usize..slot as usize + 1));
        #[cfg(not(any(test, debug_assertions)))]
        let _ = slots;
    }

    /// Checks that a slot that is read is not being written. Nothing in a release build.
    #[inline(always)]
    fn at_rest(&self, slot: usize) {
        #[cfg(any(test, debug_assertions))]
        assert!(
            !self.in_place || !self.memory.updating[slot].load(Ordering::Acquire),
            "slot {slot} is read while it is updated"
        );
        #[cfg(not(any(test, debug_assertions)))]
        let _ = slot;
    }

    /// Real `i` of the shared state, which lies `stride` reals a slot.
    #[inline(always)]
    pub(super) fn leaf(&self, i: usize, stride: usize) -> T {
        self.at_rest(i / stride);
        // SAFETY: no neighbor of the vertex that reads is being updated (module documentation).
        unsafe { *self.source[i].0.get() }
    }

    /// Where real `k` of the private state of a slot lies.
    #[inline(always)]
    fn private_index<Q: Record<T>>(&self, slot: usize, k: usize) -> usize {
        own::<T, Q>(k);
        (((slot >> self.bits) * Q::LEN + k) << self.bits) + (slot & ((1 << self.bits) - 1))
    }

    /// The shared state of `slot`, which belongs to the task of this thread.
    #[inline(always)]
    pub(super) fn look_shared<S: Record<T>>(&self, slot: usize) -> S {
        let at = slot * shared_stride(S::LEN);
        S::build(|k| {
            own::<T, S>(k);
            // SAFETY: only this thread runs the task of `slot` now (module documentation).
            unsafe { *self.source[at + k].0.get() }
        })
    }

    /// The state of `slot`, which belongs to the task of this thread.
    #[inline(always)]
    pub(super) fn look<S: Record<T>, Q: Record<T>>(&self, slot: usize) -> (S, Q) {
        let shared = self.look_shared(slot);
        let private = Q::build(|k| {
            // SAFETY: as above; private state is reached through its slot alone.
            unsafe { *self.private[self.private_index::<Q>(slot, k)].0.get() }
        });
        (shared, private)
    }

    /// The same of a slot that is about to be updated by this thread.
    #[inline(always)]
    pub(super) fn load<S: Record<T>, Q: Record<T>>(&self, slot: usize) -> (S, Q) {
        self.begin(slot..slot + 1);
        self.look(slot)
    }

    /// Writes the shared state of a slot that only this thread updates now.
    #[inline(always)]
    pub(super) fn store_one<S: Record<T>>(&self, slot: usize, shared: S) {
        let at = slot * shared_stride(S::LEN);
        shared.each(|k, x| {
            own::<T, S>(k);
            // SAFETY: only this thread updates `slot` now, and no neighbor reads it (module documentation).
            unsafe { *self.target[at + k].0.get() = x }
        });
    }

    /// The shared state of some slots that only this thread updates now.
    #[inline(always)]
    pub(super) fn take<L: Lanes<Scalar = T>, S: Record<L>>(&self, slots: &[u32]) -> S {
        let (slots, stride) = (&slots[..L::WIDTH], shared_stride(S::LEN));
        self.hold(slots, stride);
        if stride <= 2 || stride > QUADS {
            return S::build(|k| {
                own::<L, S>(k);
                // SAFETY: only this thread updates the slots now (module documentation).
                L::from_fn(|lane| unsafe { *self.target[slots[lane] as usize * stride + k].0.get() })
            });
        }
        let mut quads = [[L::lit(0.0); 4]; QUADS / 4];
        for quad in 0..stride / 4 {
            // SAFETY: the slots are there, and only this thread updates them now (module documentation).
            quads[quad] = L::take_quads(|lane| unsafe { quad_of(self.target, slots[lane], stride, quad) });
        }
        S::build(|k| quads[k / 4][k % 4])
    }

    /// Writes it; the same slot twice gets the same.
    #[inline(always)]
    pub(super) fn put_each<L: Lanes<Scalar = T>, S: Record<L>>(&self, slots: &[u32], shared: S) {
        let (slots, stride) = (&slots[..L::WIDTH], shared_stride(S::LEN));
        self.hold(slots, stride);
        if stride > 2 && stride <= QUADS {
            let mut quads = [[L::lit(0.0); 4]; QUADS / 4];
            shared.each(|k, x| quads[k / 4][k % 4] = x);
            for quad in 0..stride / 4 {
                // SAFETY: the slots are there, and only this thread updates them now (module documentation).
                L::put_quads(quads[quad], |lane| unsafe { quad_of(self.target, slots[lane], stride, quad) });
            }
            return;
        }
        shared.each(|k, x| {
            own::<L, S>(k);
            let mut lanes = [T::from_f64(0.0); 16];
            x.store(&mut lanes);
            for (lane, &slot) in slots.iter().enumerate() {
                // SAFETY: only this thread updates the slots now, and nobody else reads them (module documentation).
                unsafe { *self.target[slot as usize * stride + k].0.get() = lanes[lane] }
            }
        });
    }

    /// Asserts that the target has some slots, in one comparison for all.
    #[inline(always)]
    fn hold(&self, slots: &[u32], stride: usize) {
        let end = (self.target.len() / stride.max(1)).min(u32::MAX as usize) as u32;
        assert!(slots.iter().fold(true, |all, &slot| all & (slot < end)), "a corner has a slot");
    }

    /// Gives padding the shared state of the slot before it.
    pub(super) fn pad(&self, slots: &[u32]) {
        let stride = shared_stride(self.memory.shape.shared);
        for &slot in slots {
            let at = slot as usize * stride;
            for i in at..at + stride {
                // SAFETY: only this thread updates the slots now, and nobody else reads them (module documentation).
                unsafe { *self.target[i].0.get() = *self.source[i - stride].0.get() }
            }
        }
    }

    /// Writes the state of a slot that only this thread updates now.
    #[inline(always)]
    pub(super) fn put<S: Record<T>, Q: Record<T>>(&self, slot: usize, shared: S, private: Q) {
        self.begin(slot..slot + 1);
        self.store(slot, 0..0, shared, private);
    }

    /// Ends the update of `slot` that [`Cells::load`] began, and gives its clones the same state.
    #[inline(always)]
    pub(super) fn store<S: Record<T>, Q: Record<T>>(&self, slot: usize, clones: Range<usize>, shared: S, private: Q) {
        for slot in std::iter::once(slot).chain(clones) {
            self.store_one(slot, shared);
            private.each(|k, x| {
                // SAFETY: as above; private state is reached through its slot alone.
                unsafe { *self.private[self.private_index::<Q>(slot, k)].0.get() = x }
            });
        }
        self.end(slot..slot + 1);
    }

    /// Copies the shared state of a tile, which is about to be updated by this thread, and that of its halo: `stride` reals a slot.
    #[inline(always)]
    pub(super) fn fetch(&self, own: Range<usize>, halo: &[u32], stride: usize, table: &mut [T]) {
        self.begin(own.clone());
        self.gather(own, halo, stride, table);
    }

    /// Copies the shared state of a tile that belongs to the task of this thread, and that of its halo.
    #[inline(always)]
    pub(super) fn gather(&self, own: Range<usize>, halo: &[u32], stride: usize, table: &mut [T]) {
        let (first, rest) = table.split_at_mut(own.len() * stride);
        // SAFETY: only this thread updates the tile now (module documentation).
        first.copy_from_slice(unsafe { read(&self.source[own.start * stride..own.end * stride]) });
        let mut rest = rest;
        for (i, &slot) in halo.iter().enumerate() {
            if let Some(&ahead) = halo.get(i + AHEAD) {
                prefetch(self.source, ahead as usize * stride);
            }
            let slot = slot as usize;
            self.at_rest(slot);
            // SAFETY: no neighbor of the tile is being updated (module documentation).
            let reals = unsafe { read(&self.source[slot * stride..(slot + 1) * stride]) };
            let (place, after) = std::mem::take(&mut rest).split_at_mut(stride);
            rest = after;
            // Too few for a call of `memmove`; and quads, or the compiler may move them real by real.
            let (quads, few) = reals.as_chunks::<4>();
            let (to_quads, to_few) = place.as_chunks_mut::<4>();
            quads.iter().enumerate().for_each(|(k, quad)| to_quads[k] = *quad);
            few.iter().enumerate().for_each(|(k, real)| to_few[k] = *real);
        }
    }

    /// Ends the update of a tile; in place, this is where its shared state is written back.
    #[inline(always)]
    pub(super) fn release(&self, own: Range<usize>, stride: usize, table: &[T]) {
        if self.in_place {
            // SAFETY: only this thread updates the tile now, and nobody else reads it (module documentation).
            unsafe { write(&self.target[own.start * stride..own.end * stride]) }
                .copy_from_slice(&table[..own.len() * stride]);
        }
        self.end(own);
    }

    /// The shared state of a group that this thread updates.
    #[inline(always)]
    pub(super) fn load_shared<L: Lanes<Scalar = T>, S: Record<L>>(&self, group: usize) -> S {
        let reals = L::WIDTH * shared_stride(S::LEN);
        // SAFETY: only this thread updates the group now (module documentation).
        gather_rows(unsafe { read(&self.source[group * reals..(group + 1) * reals]) })
    }

    /// Writes the shared state of a group that this thread updates.
    #[inline(always)]
    pub(super) fn store_shared<L: Lanes<Scalar = T>, S: Record<L>>(&self, group: usize, shared: S) {
        let reals = L::WIDTH * shared_stride(S::LEN);
        // SAFETY: only this thread updates the group now, and nobody else reads it (module documentation).
        scatter_rows(shared, unsafe { write(&self.target[group * reals..(group + 1) * reals]) });
    }

    /// The private state of a group that this thread updates.
    #[inline(always)]
    pub(super) fn load_private<L: Lanes<Scalar = T>, Q: Record<L>>(&self, group: usize) -> Q {
        let reals = L::WIDTH * Q::LEN;
        // SAFETY: only this thread updates the group now; private state is reached through its group alone.
        let row = unsafe { read(&self.private[group * reals..(group + 1) * reals]) };
        Q::build(|k| L::load(&row[k * L::WIDTH..]))
    }

    /// Writes the private state of a group that this thread updates.
    #[inline(always)]
    pub(super) fn store_private<L: Lanes<Scalar = T>, Q: Record<L>>(&self, group: usize, private: Q) {
        let reals = L::WIDTH * Q::LEN;
        // SAFETY: only this thread updates the group now; private state is reached through its group alone.
        let row = unsafe { write(&self.private[group * reals..(group + 1) * reals]) };
        private.each(|k, x| x.store(&mut row[k * L::WIDTH..]));
    }

    /// Real `k` of the state of a group that this thread updates, shared reals first.
    pub(super) fn load_real<L: Lanes<Scalar = T>>(&self, group: usize, k: usize) -> L {
        let Shape { shared, private, .. } = self.memory.shape;
        let stride = shared_stride(shared);
        match k.checked_sub(shared) {
            None => {
                let rows = &self.source[group * L::WIDTH * stride..][..L::WIDTH * stride];
                // SAFETY: only this thread updates the group now (module documentation).
                let rows = unsafe { read(rows) };
                L::from_fn(|i| rows[i * stride + k])
            }
            Some(k) => {
                let at = (group * private + k) * L::WIDTH;
                // SAFETY: only this thread updates the group now; private state is reached through its group alone.
                L::load(unsafe { read(&self.private[at..at + L::WIDTH]) })
            }
        }
    }

    /// Writes it.
    pub(super) fn store_real<L: Lanes<Scalar = T>>(&self, group: usize, k: usize, x: L) {
        let Shape { shared, private, .. } = self.memory.shape;
        let stride = shared_stride(shared);
        match k.checked_sub(shared) {
            None => {
                let mut lanes = [T::from_f64(0.0); 16];
                x.store(&mut lanes);
                let rows = &self.target[group * L::WIDTH * stride..][..L::WIDTH * stride];
                // SAFETY: only this thread updates the group now, and nobody else reads it (module documentation).
                let rows = unsafe { write(rows) };
                (0..L::WIDTH).for_each(|i| rows[i * stride + k] = lanes[i]);
            }
            Some(k) => {
                let at = (group * private + k) * L::WIDTH;
                // SAFETY: only this thread updates the group now; private state is reached through its group alone.
                x.store(unsafe { write(&self.private[at..at + L::WIDTH]) });
            }
        }
    }

    /// Real `k` of the state of `slot`, shared reals first, which belongs to the task of this thread.
    pub(super) fn look_real(&self, slot: usize, k: usize) -> T {
        let cell = match k.checked_sub(self.memory.shape.shared) {
            None => &self.source[self.memory.shape.shared_index(slot, k)],
            Some(k) => &self.private[self.memory.shape.private_index(slot, k)],
        };
        // SAFETY: only this thread runs the task of `slot` now (module documentation).
        unsafe { *cell.0.get() }
    }

    /// Ends the update of `slot` that [`Cells::begin`] began, and gives its clones the same reals, shared ones first.
    pub(super) fn store_reals(&self, slot: usize, clones: Range<usize>, reals: &[T]) {
        let shape = self.memory.shape;
        for slot in std::iter::once(slot).chain(clones) {
            for (k, &x) in reals.iter().enumerate() {
                let cell = match k.checked_sub(shape.shared) {
                    None => &self.target[shape.shared_index(slot, k)],
                    Some(k) => &self.private[shape.private_index(slot, k)],
                };
                // SAFETY: only this thread updates `slot` now, and no neighbor reads it (module documentation).
                unsafe { *cell.0.get() = x }
            }
        }
        self.end(slot..slot + 1);
    }

    /// Asks for the shared state of a slot ahead of its turn.
    #[inline(always)]
    pub(super) fn prefetch_shared<S: Record<T>>(&self, slot: usize) {
        prefetch(self.source, slot * shared_stride(S::LEN));
    }

    /// Asks for all of it.
    #[inline(always)]
    pub(super) fn prefetch<S: Record<T>, Q: Record<T>>(&self, slot: usize) {
        self.prefetch_shared::<S>(slot);
        (0..Q::LEN).for_each(|k| prefetch(self.private, self.private_index::<Q>(slot, k)));
    }

    /// Asks for the private state of a group ahead of its turn; `reals` of each vertex.
    #[inline(always)]
    pub(super) fn prefetch_private(&self, group: usize, reals: usize) {
        let row = self.memory.shape.width * reals;
        (0..row).step_by(64 / T::BYTES).for_each(|i| prefetch(self.private, group * row + i));
    }
}

/// Neighbors are looked up where they lie.
impl<L: Lanes> Lookup<L> for Cells<'_, L::Scalar> {
    type Name = u32;

    #[inline(always)]
    fn records<S: Record<L>>(&self, slots: &[u32]) -> S {
        let (slots, stride) = (&slots[..L::WIDTH], shared_stride(S::LEN));
        slots.iter().for_each(|&slot| self.at_rest(slot as usize));
        let end = (self.source.len().min(i32::MAX as usize) / stride.max(1)) as u32;
        // One comparison for all, or the compiler would make a branch of each.
        assert!(slots.iter().fold(true, |all, &slot| all & (slot < end)), "a neighbor has a slot");
        // SAFETY: real `k` of a slot lies in the array by the assertion, as `k` is less than the stride, and no neighbor of the vertex that
        // reads is being updated (module documentation).
        let real = |k: usize| unsafe { pick_slots(self.source.as_ptr().cast::<L::Scalar>().add(k), slots, stride) };
        if S::LEN > QUADS {
            return S::build(|k| {
                own::<L, S>(k);
                real(k)
            });
        }
        if stride <= 2 {
            let reals = [0, 1].map(|k| if k < S::LEN { real(k) } else { L::lit(0.0) });
            return S::build(|k| reals[k]);
        }
        let mut quads = [[L::lit(0.0); 4]; QUADS / 4];
        for quad in 0..stride / 4 {
            // SAFETY: as above.
            quads[quad] = L::take_quads(|lane| unsafe { quad_of(self.source, slots[lane], stride, quad) });
        }
        S::build(|k| quads[k / 4][k % 4])
    }

    #[inline(always)]
    fn reals(&self, slots: &[u32], stride: usize, k: usize) -> L {
        slots.iter().for_each(|&slot| self.at_rest(slot as usize));
        let end = (self.source.len().min(i32::MAX as usize) / stride.max(1)) as u32;
        assert!(
            k < stride && slots[..L::WIDTH].iter().all(|&slot| slot < end),
            "a neighbor has a slot and its own reals"
        );
        // SAFETY: real `k` of a slot lies in the array by the assertion, and no neighbor of the vertex that reads is being updated (module
        // documentation).
        unsafe { pick_slots(self.source.as_ptr().cast::<L::Scalar>().add(k), slots, stride) }
    }

    #[inline(always)]
    fn quads(&self, slots: &[u32], quads: usize, quad: usize) -> [L; 4] {
        array(L::lit(0.0), |part| self.reals(slots, 4 * quads, 4 * quad + part))
    }
}

/// Four reals of a slot.
///
/// # Safety
/// The slot is there, `quad` is below a quarter of the stride, and nobody writes to them but this thread.
#[inline(always)]
unsafe fn quad_of<T>(shared: &[Turn<T>], slot: u32, stride: usize, quad: usize) -> &[Cell<T>; 4] {
    // SAFETY: by the caller's promise; `Turn<T>` and `Cell<T>` have the layout of `UnsafeCell<T>`.
    unsafe { &*shared.as_ptr().add(slot as usize * stride + 4 * quad).cast() }
}

/// Asserts that real `k` belongs to the record; it folds away for records that count their reals right.
#[inline(always)]
fn own<T: Real, S: Record<T>>(k: usize) {
    assert!(k < S::LEN, "a record has its own reals only");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory<Q: Record<f32>>(len: usize, width: usize, private: Q) -> Memory<f32> {
        Memory::new(State::of(len, width, |_| (0.0f32, private)))
    }

    #[test]
    #[should_panic(expected = "slot 1 is read while it is updated")]
    fn a_read_during_an_update_is_caught() {
        let memory = memory(2, 1, ());
        // SAFETY: there is one thread.
        let cells = unsafe { memory.open(0, true) };
        let _: (f32, ()) = cells.load(1);
        cells.leaf(1, 1);
    }

    #[test]
    #[should_panic(expected = "slot 0 is updated twice at a time")]
    fn a_second_update_at_a_time_is_caught() {
        let memory = memory(2, 1, ());
        // SAFETY: there is one thread.
        let cells = unsafe { memory.open(0, true) };
        let _: (f32, ()) = cells.load(0);
        let _: (f32, ()) = cells.load(0);
    }

    #[test]
    #[should_panic(expected = "slot 9 is read while it is updated")]
    fn a_halo_that_is_being_updated_is_caught() {
        let memory = memory(16, 8, ());
        // SAFETY: there is one thread.
        let cells = unsafe { memory.open(0, true) };
        cells.fetch(8..16, &[], 1, &mut [0.0; 8]);
        cells.fetch(0..8, &[9], 1, &mut [0.0; 9]);
    }

    #[test]
    fn double_buffering_reads_the_old_while_the_new_is_written() {
        let memory = memory(2, 1, 0.0);
        // SAFETY: there is one thread.
        let cells = unsafe { memory.open(0, false) };
        let (x, y): (f32, f32) = cells.load(1);
        assert_eq!(cells.leaf(1, 1), 0.0);
        cells.store(1, 2..2, x + 1.0, y + 2.0);
        assert_eq!(cells.leaf(1, 1), 0.0);
        // SAFETY: there is one thread.
        let view = unsafe { memory.view(1) };
        assert_eq!((view.shared[1], view.private[1]), (1.0, 2.0));
    }
}
