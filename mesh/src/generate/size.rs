//! How large a generated mesh is, and which are too large.

use crate::cell::CellKind;
use crate::error::{Error, Result};

/// How large a generated mesh is. Of `random` this is the most: how many edges there are depends on where points fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Vertices.
    pub vertices: usize,
    /// Cells.
    pub cells: usize,
    /// Corners of all cells together.
    pub corners: usize,
}

/// What a generator is about to make, checked before it allocates.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) counts: &'a [usize],
    /// The smallest valid count.
    pub(super) least: usize,
    pub(super) vertices: u128,
    pub(super) cells: u128,
    pub(super) kind: CellKind,
}

/// Larger than any mesh whose corners are counted in 32 bits needs to be; more is surely a typo.
const MOST_GIB: u128 = 32;

impl Wanted<'_> {
    pub(super) fn check(&self) -> Result<Size> {
        let Wanted { name, counts, least, vertices, cells, kind } = *self;
        let numbers: Vec<String> = counts.iter().map(usize::to_string).collect();
        let spec = format!("{name}:{}", numbers.join("x"));
        if counts.iter().any(|&n| n < least) {
            return Err(Error::Invalid(format!("mesh `{spec}`: every number must be at least {least}")));
        }
        // A point is three doubles; a cell its corners, their end and its kind.
        let corners = cells.saturating_mul(kind.corners() as u128);
        let bytes = [vertices.saturating_mul(24), corners.saturating_mul(4), cells.saturating_mul(5)];
        let bytes = bytes.into_iter().fold(0, u128::saturating_add);
        if vertices > 1 << 31 || corners >= 1 << 32 || bytes > MOST_GIB << 30 {
            // Such numbers are read as a magnitude: all their digits would hide it.
            let [v, c, gib] = [vertices as f64, cells as f64, bytes as f64 / (1u64 << 30) as f64];
            return Err(Error::Invalid(format!(
                "mesh `{spec}` is too large: {v:.2e} vertices, {c:.2e} cells, {gib:.1} GiB, but at most 2^31 vertices, \
                 2^32 corners of cells and {MOST_GIB} GiB are supported: use smaller numbers"
            )));
        }
        // All three fit by the limits above.
        Ok(Size { vertices: vertices as usize, cells: cells as usize, corners: corners as usize })
    }
}

/// Product of counts, each less by `less`, that saturates instead of wrapping around.
pub(super) fn product(counts: &[usize], less: usize) -> u128 {
    counts.iter().fold(1, |all, &n| all.saturating_mul(n.saturating_sub(less) as u128))
}
