//! Data of elements.

use super::packed::Packed;
use crate::number::{Number, Precision, with_number};
use crate::program::Kind;
use bytes::Bytes;
use std::ops::Range;

/// Data of elements in the precision of the state, which is known when they are read: what lays them out is compiled once.
#[derive(Clone)]
pub(crate) struct Data {
    pub(super) precision: Precision,
    bytes: Bytes,
}

impl Data {
    /// `reals`: shape [elements × kinds × width], where `width` numbers of each kind follow each other. Cost O(reals).
    pub(super) fn new(precision: Precision, kinds: &[Kind], width: usize, reals: Vec<f64>) -> Data {
        with_number!(precision, T => {
            let mut numbers: Vec<T> = reals.iter().map(|&x| T::from_f64(x)).collect();
            if kinds.contains(&Kind::Integer) {
                let rows = numbers.chunks_mut(width).zip(reals.chunks(width)).zip(kinds.iter().cycle());
                let integers = rows.filter(|(_, kind)| **kind == Kind::Integer);
                integers.flat_map(|((to, from), _)| to.iter_mut().zip(from)).for_each(|(to, &x)| *to = Kind::Integer.encode(x));
            }
            Data::of(numbers)
        })
    }

    /// As they are.
    pub(crate) fn of<T: Number>(numbers: Vec<T>) -> Data {
        Data { precision: T::PRECISION, bytes: Packed::from(numbers).into_bytes() }
    }

    /// The numbers.
    ///
    /// # Panics
    /// If they are others than `T`.
    #[inline(always)]
    pub(crate) fn numbers<T: Number>(&self) -> &[T] {
        assert!(self.precision == T::PRECISION, "data are in the precision of the state");
        bytemuck::cast_slice(&self.bytes)
    }

    /// Some numbers of some data, one run after the other; all are of that precision.
    ///
    /// # Panics
    /// If they are not, or a run ends behind its data.
    pub(super) fn gather<'a>(precision: Precision, runs: impl Iterator<Item = (&'a Data, Range<usize>)>) -> Data {
        with_number!(precision, T => {
            let mut numbers = Vec::<T>::new();
            runs.for_each(|(data, run)| numbers.extend_from_slice(&data.numbers()[run]));
            Data::of(numbers)
        })
    }

    /// The bits of the numbers: one word each in 32 bits, two in 64.
    pub(crate) fn words(&self) -> &[u32] {
        bytemuck::cast_slice(&self.bytes)
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.precision.bytes()
    }

    /// Bytes that they take.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// What [`pack`](super::packed::pack) moves.
    pub(super) fn bytes(&mut self) -> &mut Bytes {
        &mut self.bytes
    }

    /// Whether all of them that are no integers are finite.
    pub(super) fn is_finite(&self, kinds: &[Kind], width: usize) -> bool {
        with_number!(self.precision, T => {
            if !kinds.contains(&Kind::Integer) {
                return self.numbers::<T>().iter().fold(true, |all, x| all & x.finite());
            }
            let rows = self.numbers::<T>().chunks_exact(width).zip(kinds.iter().cycle());
            rows.fold(true, |all, (x, &kind)| all & (kind == Kind::Integer || x.iter().all(|x| x.finite())))
        })
    }
}
