//! The values of all vertices.

use crate::number::Number;
use crate::program::Record;
use meshweft_mesh::parallel;
use std::collections::BTreeMap;

/// Reals from one vertex's shared state to the next: three and more take a multiple of four, so that a neighbor is
/// read in aligned quads.
pub(crate) const fn shared_stride(len: usize) -> usize {
    if len <= 2 { len } else { len.next_multiple_of(4) }
}

/// The state of all vertices, by slot.
///
/// Shared state lies vertex after vertex, because it is read at random; private state lies group after group, in a group
/// real after real, because it is read in order and side by side.
#[derive(Clone)]
pub(crate) struct State<T> {
    pub(crate) shape: Shape,
    /// Number of slots.
    pub(crate) len: usize,
    pub(crate) shared: Vec<T>,
    pub(crate) private: Vec<T>,
    /// By star, that of elements that are projected.
    pub(crate) elements: BTreeMap<usize, State<T>>,
}

/// How many reals a vertex has, and how they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Vertices of a group.
    pub(crate) width: usize,
    pub(crate) shared: usize,
    pub(crate) private: usize,
}

impl Shape {
    /// Where real `k` of the shared state of `slot` lies.
    #[inline(always)]
    pub(crate) fn shared_index(self, slot: usize, k: usize) -> usize {
        slot * shared_stride(self.shared) + k
    }

    /// Where real `k` of the private state of `slot` lies.
    #[inline(always)]
    pub(crate) fn private_index(self, slot: usize, k: usize) -> usize {
        private_index(self.width, self.private, slot, k)
    }
}

/// The state, to read.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T> {
    pub(crate) shape: Shape,
    pub(crate) shared: &'a [T],
    pub(crate) private: &'a [T],
}

/// What changes a state.
pub(crate) type Edit<'a, T> = dyn FnMut(ViewMut<'_, T>) + 'a;

/// The state, to change.
pub(crate) struct ViewMut<'a, T> {
    pub(crate) shape: Shape,
    pub(crate) shared: &'a mut [T],
    pub(crate) private: &'a mut [T],
}

impl<T: Number> State<T> {
    /// The state of `len` slots, from the reals of each slot, shared ones first. In parallel.
    pub(crate) fn new(len: usize, shape: Shape, initial: impl Fn(usize, &mut Vec<T>) + Sync) -> State<T> {
        /// Groups that are filled as one piece of work.
        const PIECE: usize = 1 << 9;
        let State { mut shared, mut private, .. } = State::zeros(len, shape);
        let (width, stride) = (shape.width, shared_stride(shape.shared));
        let starts: Vec<usize> = (0..len).step_by(PIECE * width).chain([len]).collect();
        let scaled = |by: usize| starts.iter().map(|start| start * by).collect::<Vec<_>>();
        let (shared_cuts, private_cuts) = (scaled(stride), scaled(shape.private));
        let work = pieces(&mut shared, &shared_cuts).zip(pieces(&mut private, &private_cuts));
        parallel::each(work.zip(starts.windows(2)), |((shared, private), slots)| {
            let mut reals = Vec::with_capacity(shape.shared + shape.private);
            for i in 0..slots[1] - slots[0] {
                reals.clear();
                initial(slots[0] + i, &mut reals);
                let (own, rest) = reals.split_at(shape.shared);
                shared[i * stride..][..shape.shared].copy_from_slice(own);
                rest.iter().enumerate().for_each(|(k, &x)| private[private_index(width, shape.private, i, k)] = x);
            }
        });
        State { shape, len, shared, private, elements: BTreeMap::new() }
    }

    /// The same from records.
    #[cfg(test)]
    pub(crate) fn of<S: crate::program::Record<T>, Q: crate::program::Record<T>>(
        len: usize,
        width: usize,
        initial: impl Fn(usize) -> (S, Q) + Sync,
    ) -> State<T> {
        State::new(len, Shape { width, shared: S::LEN, private: Q::LEN }, |slot, reals| {
            let (shared, private) = initial(slot);
            shared.each(|_, x| reals.push(x));
            private.each(|_, x| reals.push(x));
        })
    }

    /// A state of zeros.
    pub(crate) fn zeros(len: usize, shape: Shape) -> State<T> {
        let (shared, private) = (len * shared_stride(shape.shared), len * shape.private);
        let [shared, private] = [shared, private].map(|reals| vec![T::from_f64(0.0); reals]);
        State { shape, len, shared, private, elements: BTreeMap::new() }
    }

    pub(crate) fn view(&self) -> View<'_, T> {
        View { shape: self.shape, shared: &self.shared, private: &self.private }
    }

    pub(crate) fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut { shape: self.shape, shared: &mut self.shared, private: &mut self.private }
    }

    /// Replaces the shared reals of a slot.
    pub(crate) fn set_shared(&mut self, slot: usize, reals: &[T]) {
        let at = self.shape.shared_index(slot, 0);
        self.shared[at..at + reals.len()].copy_from_slice(reals);
    }

    /// Replaces the reals of a slot, shared ones first; shared ones in `next` if there is one.
    pub(crate) fn set(&mut self, slot: usize, reals: &[T], next: Option<&mut Vec<T>>) {
        let shape = self.shape;
        let (shared, private) = reals.split_at(shape.shared);
        let at = shape.shared_index(slot, 0);
        next.unwrap_or(&mut self.shared)[at..at + shape.shared].copy_from_slice(shared);
        private.iter().enumerate().for_each(|(k, &x)| self.private[shape.private_index(slot, k)] = x);
    }
}

impl<T: Number> View<'_, T> {
    pub(crate) fn shared<S: Record<T>>(&self, slot: usize) -> S {
        S::build(|k| self.shared[self.shape.shared_index(slot, k)])
    }

    pub(crate) fn private<Q: Record<T>>(&self, slot: usize) -> Q {
        Q::build(|k| self.private[self.shape.private_index(slot, k)])
    }

    /// Real `k` of a slot, shared ones first.
    #[inline(always)]
    pub(crate) fn real(&self, slot: usize, k: usize) -> T {
        match k.checked_sub(self.shape.shared) {
            None => self.shared[self.shape.shared_index(slot, k)],
            Some(k) => self.private[self.shape.private_index(slot, k)],
        }
    }

    /// A copy of it.
    pub(crate) fn to_state(self) -> State<T> {
        let len = match shared_stride(self.shape.shared) {
            0 => self.private.len().checked_div(self.shape.private).unwrap_or(0),
            stride => self.shared.len() / stride,
        };
        let (shared, private) = (self.shared.to_vec(), self.private.to_vec());
        State { shape: self.shape, len, shared, private, elements: BTreeMap::new() }
    }

    /// The state of some slots, which follow each other there.
    #[cfg(feature = "cluster")]
    pub(super) fn of(&self, slots: &[u32]) -> State<T> {
        let mut state = State::zeros(slots.len(), self.shape);
        let mut reals = Vec::new();
        for (local, &slot) in slots.iter().enumerate() {
            reals.clear();
            reals.extend((0..self.shape.shared + self.shape.private).map(|k| self.real(slot as usize, k)));
            state.set(local, &reals, None);
        }
        state
    }

    /// Whether all values are finite. In parallel.
    pub(crate) fn is_finite(&self) -> bool {
        let finite = |reals: &[T]| reals.iter().fold(true, |all, x| all & x.finite());
        let pieces = self.shared.chunks(1 << 14).chain(self.private.chunks(1 << 14));
        parallel::map(pieces, finite).into_iter().all(|finite| finite)
    }
}

impl<T: Number> ViewMut<'_, T> {
    /// Replaces real `k` of a slot, shared ones first.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: usize, k: usize, x: T) {
        match k.checked_sub(self.shape.shared) {
            None => self.shared[self.shape.shared_index(slot, k)] = x,
            Some(k) => self.private[self.shape.private_index(slot, k)] = x,
        }
    }
}

#[inline(always)]
fn private_index(width: usize, len: usize, slot: usize, k: usize) -> usize {
    (slot / width * len + k) * width + slot % width
}

/// Cuts a slice into the pieces `cuts[i]..cuts[i + 1]`.
fn pieces<'a, A>(mut slice: &'a mut [A], cuts: &'a [usize]) -> impl Iterator<Item = &'a mut [A]> {
    cuts.windows(2).map(move |w| {
        let (piece, rest) = std::mem::take(&mut slice).split_at_mut(w[1] - w[0]);
        slice = rest;
        piece
    })
}
