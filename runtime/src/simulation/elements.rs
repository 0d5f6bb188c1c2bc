//! The state of elements that are projected.

use super::core::{Core, locate};
use super::fields::read_part;
use crate::error::{Error, Result};
use crate::number::{Kind, Number};
use meshweft_mesh::Field;

impl<T: Number> Core<T> {
    /// How many reals all of them have.
    pub(super) fn element_len(&self) -> usize {
        self.layout.elements.values().map(|elements| elements.places.len() * elements.shape.private).sum()
    }

    /// The reals of all: star after star, in the order in which elements were added.
    pub(super) fn element_reals(&self) -> Vec<T> {
        let mut reals = Vec::with_capacity(self.element_len());
        for (&star, elements) in &self.layout.elements {
            let (state, len) = (self.engine.elements(star), elements.shape.private);
            let slots = (0..elements.places.len()).map(|element| elements.slot(element as u32));
            reals.extend(slots.flat_map(|slot| (0..len).map(move |k| state.real(slot, k))));
        }
        reals
    }

    /// Replaces them.
    pub(super) fn set_element_reals(&mut self, mut reals: &[T]) {
        for (&star, elements) in &self.layout.elements {
            let (own, rest) = reals.split_at(elements.places.len() * elements.shape.private);
            reals = rest;
            self.engine.edit_elements(star, &mut |mut state| {
                for (element, own) in own.chunks_exact(elements.shape.private.max(1)).enumerate() {
                    for slot in elements.slots_of(element as u32) {
                        own.iter().enumerate().for_each(|(k, &x)| state.set(slot, k, x));
                    }
                }
            });
        }
    }

    /// What each of them is.
    pub(super) fn element_kinds(&self) -> impl Iterator<Item = Kind> {
        let kinds = |(star, fields): (&usize, &crate::program::Fields)| {
            let (count, kinds) = (self.layout.elements[star].places.len(), fields.kinds());
            std::iter::repeat_n(kinds, count).flatten()
        };
        self.table.projected.iter().flat_map(kinds)
    }

    /// The error of the first that is not finite after `step`.
    pub(super) fn find_element_fault(&self, step: u64) -> Option<Error> {
        for (&star, fields) in &self.table.projected {
            let (elements, state) = (&self.layout.elements[&star], self.engine.elements(star));
            for element in 0..elements.places.len() as u32 {
                let slot = elements.slot(element);
                let reals: Vec<T> = (0..elements.shape.private).map(|k| state.real(slot, k)).collect();
                if let Some((field, value)) = fields.first_not_finite(&reals) {
                    let (star, field) = (self.layout.stars[star].name.clone(), field.into());
                    return Some(Error::Element { star, element, step, field, value });
                }
            }
        }
        None
    }

    /// One part of the state of the elements of a star.
    pub(super) fn read_element(&self, star: &str, name: &str) -> Result<Field> {
        let of_name = |index: &usize| self.layout.stars[*index].name == star;
        let Some(index) = self.layout.elements.keys().copied().find(of_name) else {
            return Err(Error::Invalid(format!("star {star:?} has no elements that are projected")));
        };
        // What a panic has left is not read.
        self.reals()?;
        let (first, part) = locate(&self.table.projected[&index], "element field", name)?;
        Ok(read_part(self.engine.elements(index), &self.layout.elements[&index], first, part))
    }
}
