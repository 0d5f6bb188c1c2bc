//! Sets of slots.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bitmap by slot, 64 to a word.
pub(super) struct Bitmap(pub(super) Box<[AtomicU64]>);

impl Bitmap {
    pub(super) fn new(slots: usize) -> Bitmap {
        Bitmap((0..slots.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline(always)]
    pub(super) fn has(&self, slot: u32) -> bool {
        self.0[slot as usize / 64].load(Relaxed) >> (slot % 64) & 1 == 1
    }

    pub(super) fn set(&self, slot: u32) {
        self.0[slot as usize / 64].fetch_or(1 << (slot % 64), Relaxed);
    }

    /// Clears the word of a slot.
    pub(super) fn clear(&self, slot: u32) {
        self.0[slot as usize / 64].store(0, Relaxed);
    }

    pub(super) fn copy(&self, from: &Bitmap) {
        self.0.iter().zip(&from.0).for_each(|(word, from)| word.store(from.load(Relaxed), Relaxed));
    }
}

/// The slots of the bits of a word.
pub(super) fn slots(word: usize, mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let slot = (64 * word) as u32 + bits.trailing_zeros();
        (bits != 0).then(|| {
            bits &= bits - 1;
            slot
        })
    })
}
