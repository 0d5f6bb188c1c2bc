//! A state vertex by vertex, in the order of the mesh.

use crate::error::{Error, Result};
use crate::layout::{Layout, View};
use crate::number::{Kind, Number};
use crate::program::Fields;

/// A state vertex by vertex, in the order of the mesh, whatever the order in which it lies. Or one of elements that are projected,
/// which are the vertices of a layout of their own, in the order in which they were added.
pub(super) struct Vertices<'a, T> {
    /// The star whose elements they are.
    pub(super) star: Option<&'a str>,
    pub(super) state: View<'a, T>,
    pub(super) layout: &'a Layout,
    /// Its parts, shared ones first.
    pub(super) fields: &'a Fields,
}

impl<T: Number> Vertices<'_, T> {
    fn count(&self) -> u32 {
        self.layout.places.len() as u32
    }

    /// The error of the first vertex that is not finite after `step`. Cost O(reals), in parallel where all are finite.
    pub(super) fn fault(&self, step: u64) -> Option<Error> {
        let Vertices { star, state, layout, fields } = self;
        let kinds = fields.kinds();
        if kinds.iter().all(|&kind| kind == Kind::Real) && state.is_finite() {
            return None;
        }
        (0..self.count()).find_map(|v| {
            let slot = layout.slot(v);
            let is_fault = |&k: &usize| kinds[k] == Kind::Real && !state.real(slot, k).finite();
            let k = (0..kinds.len()).find(is_fault)?;
            let (field, value) = (fields.name(k).0.into(), state.real(slot, k).to_f64());
            Some(match star.map(str::to_owned) {
                None => Error::Diverged { vertex: v, is_cell: false, place: None, step, field, value },
                Some(star) => Error::Element { star, element: v, step, field, value },
            })
        })
    }

    /// Hashes all values.
    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) {
        let kinds = self.fields.kinds();
        let mut bytes = Vec::new();
        for v in 0..self.count() {
            let slot = self.layout.slot(v);
            for (k, &kind) in kinds.iter().enumerate() {
                bytes.extend_from_slice(&bits(kind, self.state.real(slot, k)).to_le_bytes()[..T::BYTES]);
            }
            if bytes.len() >= 1 << 16 {
                hasher.update(&bytes);
                bytes.clear();
            }
        }
        hasher.update(&bytes);
    }

    /// Compares it with another of the same mesh and program, both after `step`.
    ///
    /// # Errors
    /// The first value that differs.
    pub(super) fn compare(&self, other: &Vertices<T>, step: u64) -> Result<()> {
        assert_eq!(self.count(), other.count(), "runs on one mesh");
        let kinds = self.fields.kinds();
        for v in 0..self.count() {
            for (k, &kind) in kinds.iter().enumerate() {
                let [left, right] = [self, other].map(|of| of.state.real(of.layout.slot(v), k));
                if bits(kind, left) != bits(kind, right) {
                    let (field, component) = self.fields.name(k);
                    let (field, [left, right]) = (field.into(), [left, right].map(|x| kind.decode(x)));
                    return Err(match self.star.map(str::to_owned) {
                        None => Error::Mismatch { vertex: v, step, field, component, left, right },
                        Some(star) => Error::ElementMismatch { star, element: v, step, field, left, right },
                    });
                }
            }
        }
        Ok(())
    }
}

/// The bits that decide whether two values are the same.
fn bits<T: Number>(kind: Kind, x: T) -> u64 {
    match kind {
        Kind::Real => x.canonical_bits(),
        Kind::Integer => u64::from((kind.decode(x) as i32).cast_unsigned()),
    }
}
