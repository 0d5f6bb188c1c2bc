//! The values of all vertices.

use crate::program::{Float, Record};

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

impl<T: Float> State<T> {
    pub(crate) fn new(len: usize, width: usize, shared_len: usize, private_len: usize) -> State<T> {
        let zero = T::from_f64(0.0);
        State {
            len,
            width,
            shared: vec![zero; len * shared_stride(shared_len)],
            next: Vec::new(),
            private: vec![zero; len * private_len],
        }
    }

    /// Where real `k` of the private state of `slot` lies.
    pub(crate) fn private_index<Q: Record<T>>(&self, slot: usize, k: usize) -> usize {
        (slot / self.width * Q::LEN + k) * self.width + slot % self.width
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
