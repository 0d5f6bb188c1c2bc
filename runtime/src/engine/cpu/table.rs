//! The table of the tile that a thread works on.

use crate::number::Number;
use std::cell::RefCell;

thread_local! {
    /// Whole cache lines, so that a quad never lies in two.
    static LINES: RefCell<Vec<wide::f64x8>> = const { RefCell::new(Vec::new()) };
}

/// Lends the thread's table of at least `reals` numbers. What it holds is left from the last time. A kernel that itself runs
/// another simulation gets a table of its own.
pub(super) fn with<T: Number, A>(reals: usize, work: impl FnOnce(&mut [T]) -> A) -> A {
    let mut lines = LINES.take();
    let count = (reals * T::BYTES).div_ceil(size_of::<wide::f64x8>());
    if lines.len() < count {
        // Pages of a fresh allocation are only there once they are touched; a tile touches as many as it needs.
        lines = bytemuck::allocation::zeroed_vec(count);
    }
    let result = work(&mut bytemuck::cast_slice_mut(&mut lines)[..reals]);
    LINES.set(lines);
    result
}
