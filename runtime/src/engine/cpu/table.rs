//! What a thread writes down while it works.

use crate::number::Number;
use std::cell::RefCell;
use std::thread::LocalKey;

/// Whole cache lines, so that a quad never lies in two.
type Lines = RefCell<Vec<wide::f64x8>>;

thread_local! {
    /// The table of the tile that it works on.
    pub(super) static TILE: Lines = const { RefCell::new(Vec::new()) };
    /// What it has measured.
    pub(super) static VALUES: Lines = const { RefCell::new(Vec::new()) };
}

/// Lends so many numbers of the thread's. What they are is left from the last time. A kernel that itself runs another simulation
/// gets others.
pub(super) fn with<T: Number, A>(whose: &'static LocalKey<Lines>, reals: usize, work: impl FnOnce(&mut [T]) -> A) -> A {
    let mut lines = whose.take();
    let count = (reals * T::BYTES).div_ceil(size_of::<wide::f64x8>());
    if lines.len() < count {
        // Pages of a fresh allocation are only there once they are touched; a tile touches as many as it needs.
        lines = bytemuck::allocation::zeroed_vec(count);
    }
    let result = work(&mut bytemuck::cast_slice_mut(&mut lines)[..reals]);
    whose.set(lines);
    result
}
