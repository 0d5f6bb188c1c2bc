//! What a thread reaches of the memory while it walks.

#![expect(unsafe_code, reason = "disjoint reads and writes by the argument of the module above")]

use super::{Memory, Turn, read, write};
use crate::engine::touches::Touches;
use crate::layout::{Lookup, QUADS, Shape, gather_rows, scatter_rows, shared_stride};
use crate::number::lanes::{pick_slots, prefetch};
use crate::number::{Lanes, Number, Real, array};
use crate::program::Record;
use std::cell::Cell;
use std::ops::Range;
#[cfg(any(test, debug_assertions))]
use std::sync::atomic::Ordering;

/// Halo slots that are fetched ahead: enough to hide a read of main memory behind the copies in between.
const AHEAD: usize = 64;

/// A state opened for disjoint writes.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Cells<'a, T> {
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

impl<T: Number> Memory<T> {
    /// Opens the state for updates that read array `source` of the shared state, and write it, or the other one.
    ///
    /// # Safety
    /// While the result is alive the thread that has it reaches only slots that are its own by the schedule (module documentation):
    /// it writes slots of tasks that it runs, which no other thread reads or writes meanwhile, and reads slots that no other
    /// thread writes meanwhile.
    #[inline(always)]
    pub(in crate::engine::cpu) unsafe fn open(&self, source: usize, in_place: bool) -> Cells<'_, T> {
        let target = if in_place { source } else { 1 - source };
        let (private, bits) = (&*self.private, self.shape.width.trailing_zeros());
        Cells { memory: self, source: self.array(source), target: self.array(target), private, bits, in_place }
    }
}

impl<T: Number> Cells<'_, T> {
    /// Where reals of some slots lie, for machine code: shared ones as they are read and as they are written, and private ones.
    #[cfg(feature = "jit")]
    pub(in crate::engine::cpu) fn places(&self, slots: Range<usize>) -> [*mut T; 3] {
        let Shape { shared, private, .. } = self.memory.shape;
        let stride = shared_stride(shared);
        [(self.source, stride), (self.target, stride), (self.private, private)].map(|(turns, reals)| {
            let turns = &turns[slots.start * reals..slots.end * reals];
            turns.as_ptr().cast_mut().cast()
        })
    }

    /// Slots.
    #[cfg(feature = "jit")]
    pub(in crate::engine::cpu) fn len(&self) -> usize {
        self.memory.len
    }

    /// Private reals of a vertex.
    #[cfg(feature = "jit")]
    pub(in crate::engine::cpu) fn privates(&self) -> usize {
        self.memory.shape.private
    }

    /// See [`Memory::begin`].
    #[inline(always)]
    pub(in crate::engine::cpu) fn begin(&self, slots: Range<usize>) {
        self.memory.begin(slots);
    }

    /// See [`Memory::end`].
    #[inline(always)]
    pub(in crate::engine::cpu) fn end(&self, slots: Range<usize>) {
        self.memory.end(slots);
    }

    /// Marks the corners of some elements as being updated by this thread; the same one twice in sequence is one. Nothing in a release
    /// build.
    #[inline(always)]
    pub(in crate::engine::cpu) fn begin_each(&self, slots: &[u32]) {
        #[cfg(any(test, debug_assertions))]
        slots.chunk_by(|a, b| a == b).for_each(|same| self.begin(same[0] as usize..same[0] as usize + 1));
        #[cfg(not(any(test, debug_assertions)))]
        let _ = slots;
    }

    /// Takes back the marks. Nothing in a release build.
    #[inline(always)]
    pub(in crate::engine::cpu) fn end_each(&self, slots: &[u32]) {
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
    pub(in crate::engine::cpu) fn leaf(&self, i: usize, stride: usize) -> T {
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
    pub(in crate::engine::cpu) fn look_shared<S: Record<T>>(&self, slot: usize) -> S {
        let at = slot * shared_stride(S::LEN);
        S::build(|k| {
            own::<T, S>(k);
            // SAFETY: only this thread runs the task of `slot` now (module documentation).
            unsafe { *self.source[at + k].0.get() }
        })
    }

    /// The state of `slot`, which belongs to the task of this thread.
    #[inline(always)]
    pub(in crate::engine::cpu) fn look<S: Record<T>, Q: Record<T>>(&self, slot: usize) -> (S, Q) {
        let shared = self.look_shared(slot);
        let private = Q::build(|k| {
            // SAFETY: as above; private state is reached through its slot alone.
            unsafe { *self.private[self.private_index::<Q>(slot, k)].0.get() }
        });
        (shared, private)
    }

    /// The same of a slot that is about to be updated by this thread.
    #[inline(always)]
    pub(in crate::engine::cpu) fn load<S: Record<T>, Q: Record<T>>(&self, slot: usize) -> (S, Q) {
        self.begin(slot..slot + 1);
        self.look(slot)
    }

    /// Writes the shared state of a slot that only this thread updates now.
    #[inline(always)]
    pub(in crate::engine::cpu) fn store_one<S: Record<T>>(&self, slot: usize, shared: S) {
        let at = slot * shared_stride(S::LEN);
        shared.each(|k, x| {
            own::<T, S>(k);
            // SAFETY: only this thread updates `slot` now, and no neighbor reads it (module documentation).
            unsafe { *self.target[at + k].0.get() = x }
        });
    }

    /// The shared state of some slots that only this thread updates now.
    #[inline(always)]
    pub(in crate::engine::cpu) fn take<L: Lanes<Scalar = T>, S: Record<L>>(&self, slots: &[u32]) -> S {
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
    pub(in crate::engine::cpu) fn put_each<L: Lanes<Scalar = T>, S: Record<L>>(&self, slots: &[u32], shared: S) {
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
    pub(in crate::engine::cpu) fn pad(&self, slots: &[u32]) {
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
    pub(in crate::engine::cpu) fn put<S: Record<T>, Q: Record<T>>(&self, slot: usize, shared: S, private: Q) {
        self.begin(slot..slot + 1);
        self.store(slot, 0..0, shared, private);
    }

    /// Ends the update of `slot` that [`Cells::load`] began, and gives its clones the same state.
    #[inline(always)]
    pub(in crate::engine::cpu) fn store<S: Record<T>, Q: Record<T>>(
        &self,
        slot: usize,
        clones: Range<usize>,
        shared: S,
        private: Q,
    ) {
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
    pub(in crate::engine::cpu) fn fetch(&self, own: Range<usize>, halo: &[u32], stride: usize, table: &mut [T]) {
        self.begin(own.clone());
        self.gather(own, halo, stride, table);
    }

    /// Copies the shared state of a tile that belongs to the task of this thread, and that of its halo.
    #[inline(always)]
    pub(in crate::engine::cpu) fn gather(&self, own: Range<usize>, halo: &[u32], stride: usize, table: &mut [T]) {
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
    pub(in crate::engine::cpu) fn release(&self, own: Range<usize>, stride: usize, table: &[T]) {
        if self.in_place {
            // SAFETY: only this thread updates the tile now, and nobody else reads it (module documentation).
            unsafe { write(&self.target[own.start * stride..own.end * stride]) }
                .copy_from_slice(&table[..own.len() * stride]);
        }
        self.end(own);
    }

    /// The shared state of a group that this thread updates.
    #[inline(always)]
    pub(in crate::engine::cpu) fn load_shared<L: Lanes<Scalar = T>, S: Record<L>>(&self, group: usize) -> S {
        let reals = L::WIDTH * shared_stride(S::LEN);
        // SAFETY: only this thread updates the group now (module documentation).
        gather_rows(unsafe { read(&self.source[group * reals..(group + 1) * reals]) })
    }

    /// Writes the shared state of a group that this thread updates.
    #[inline(always)]
    pub(in crate::engine::cpu) fn store_shared<L: Lanes<Scalar = T>, S: Record<L>>(&self, group: usize, shared: S) {
        let reals = L::WIDTH * shared_stride(S::LEN);
        // SAFETY: only this thread updates the group now, and nobody else reads it (module documentation).
        scatter_rows(shared, unsafe { write(&self.target[group * reals..(group + 1) * reals]) });
    }

    /// The private state of a group that this thread updates.
    #[inline(always)]
    pub(in crate::engine::cpu) fn load_private<L: Lanes<Scalar = T>, Q: Record<L>>(&self, group: usize) -> Q {
        let reals = L::WIDTH * Q::LEN;
        // SAFETY: only this thread updates the group now; private state is reached through its group alone.
        let row = unsafe { read(&self.private[group * reals..(group + 1) * reals]) };
        Q::build(|k| L::load(&row[k * L::WIDTH..]))
    }

    /// Writes the private state of a group that this thread updates.
    #[inline(always)]
    pub(in crate::engine::cpu) fn store_private<L: Lanes<Scalar = T>, Q: Record<L>>(&self, group: usize, private: Q) {
        let reals = L::WIDTH * Q::LEN;
        // SAFETY: only this thread updates the group now; private state is reached through its group alone.
        let row = unsafe { write(&self.private[group * reals..(group + 1) * reals]) };
        private.each(|k, x| x.store(&mut row[k * L::WIDTH..]));
    }

    /// Real `k` of the state of a group that this thread updates, shared reals first.
    pub(in crate::engine::cpu) fn load_real<L: Lanes<Scalar = T>>(&self, group: usize, k: usize) -> L {
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
    pub(in crate::engine::cpu) fn store_real<L: Lanes<Scalar = T>>(&self, group: usize, k: usize, x: L) {
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
    pub(in crate::engine::cpu) fn look_real(&self, slot: usize, k: usize) -> T {
        let cell = match k.checked_sub(self.memory.shape.shared) {
            None => &self.source[self.memory.shape.shared_index(slot, k)],
            Some(k) => &self.private[self.memory.shape.private_index(slot, k)],
        };
        // SAFETY: only this thread runs the task of `slot` now (module documentation).
        unsafe { *cell.0.get() }
    }

    /// Ends the update of `slot` that [`Cells::begin`] began, and gives its clones the same reals, shared ones first.
    pub(in crate::engine::cpu) fn store_reals(&self, slot: usize, clones: Range<usize>, reals: &[T]) {
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
    pub(in crate::engine::cpu) fn prefetch_shared<S: Record<T>>(&self, slot: usize) {
        prefetch(self.source, slot * shared_stride(S::LEN));
    }

    /// Asks for all of it.
    #[inline(always)]
    pub(in crate::engine::cpu) fn prefetch<S: Record<T>, Q: Record<T>>(&self, slot: usize) {
        self.prefetch_shared::<S>(slot);
        (0..Q::LEN).for_each(|k| prefetch(self.private, self.private_index::<Q>(slot, k)));
    }

    /// Asks for what is touched of the private state of a group ahead of its turn; `reals` of each vertex.
    #[inline(always)]
    pub(in crate::engine::cpu) fn prefetch_private(&self, group: usize, reals: usize, touches: Touches) {
        let width = self.memory.shape.width;
        let touched = (0..reals).filter(|&k| touches.real(k));
        touched.for_each(|k| prefetch(self.private, (group * reals + k) * width));
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
    use crate::layout::State;

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
