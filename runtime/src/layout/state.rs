//! The values of all vertices.

use super::pieces;
use crate::program::{Number, Record};
use rayon::prelude::*;

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
    /// Number of slots.
    pub(crate) len: usize,
    /// Vertices of a group.
    pub(crate) width: usize,
    pub(crate) shared: Vec<T>,
    /// What a double-buffered sweep writes; empty until there is one.
    pub(crate) next: Vec<T>,
    pub(crate) private: Vec<T>,
}

impl<T: Number> State<T> {
    /// The state of `len` slots in groups of `width`, from that of each slot. In parallel.
    pub(crate) fn new<S: Record<T>, Q: Record<T>>(
        len: usize,
        width: usize,
        initial: impl Fn(usize) -> (S, Q) + Sync,
    ) -> State<T> {
        /// Groups that are filled as one piece of work.
        const PIECE: usize = 1 << 9;
        let (zero, stride) = (T::from_f64(0.0), shared_stride(S::LEN));
        let (mut shared, mut private) = (vec![zero; len * stride], vec![zero; len * Q::LEN]);
        let starts: Vec<usize> = (0..len).step_by(PIECE * width).chain([len]).collect();
        let scaled = |by: usize| starts.iter().map(|start| start * by).collect::<Vec<_>>();
        let (shared_cuts, private_cuts) = (scaled(stride), scaled(Q::LEN));
        let work: Vec<_> = pieces(&mut shared, &shared_cuts).zip(pieces(&mut private, &private_cuts)).collect();
        work.into_par_iter().zip(starts.par_windows(2)).for_each(|((shared, private), slots)| {
            for i in 0..slots[1] - slots[0] {
                let (s, q) = initial(slots[0] + i);
                s.each(|k, x| shared[i * stride + k] = x);
                q.each(|k, x| private[private_index::<T, Q>(width, i, k)] = x);
            }
        });
        State { len, width, shared, next: Vec::new(), private }
    }

    /// Whether all values are finite. In parallel.
    pub(crate) fn is_finite(&self) -> bool {
        let all =
            |reals: &[T]| reals.par_chunks(1 << 14).all(|reals| reals.iter().fold(true, |all, x| all & x.finite()));
        all(&self.shared) && all(&self.private)
    }

    /// Where real `k` of the private state of `slot` lies.
    pub(crate) fn private_index<Q: Record<T>>(&self, slot: usize, k: usize) -> usize {
        private_index::<T, Q>(self.width, slot, k)
    }

    pub(crate) fn shared<S: Record<T>>(&self, slot: usize) -> S {
        S::build(|k| self.shared[slot * shared_stride(S::LEN) + k])
    }

    pub(crate) fn private<Q: Record<T>>(&self, slot: usize) -> Q {
        Q::build(|k| self.private[self.private_index::<Q>(slot, k)])
    }

    pub(crate) fn set_shared<S: Record<T>>(&mut self, slot: usize, record: S) {
        record.each(|k, x| self.shared[slot * shared_stride(S::LEN) + k] = x);
    }

    pub(crate) fn set_private<Q: Record<T>>(&mut self, slot: usize, record: Q) {
        record.each(|k, x| {
            let i = self.private_index::<Q>(slot, k);
            self.private[i] = x;
        });
    }

    /// Bytes of all arrays.
    pub(crate) fn bytes(&self) -> usize {
        (self.shared.len() + self.next.len() + self.private.len()) * T::BYTES
    }
}

fn private_index<T: Number, Q: Record<T>>(width: usize, slot: usize, k: usize) -> usize {
    (slot / width * Q::LEN + k) * width + slot % width
}
