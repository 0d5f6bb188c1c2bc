//! The state of elements that are projected.

use super::core::{Core, locate};
use super::fields::read_part;
use super::vertices::Vertices;
use crate::engine::Audit;
use crate::error::{Error, Result};
use crate::number::Number;
use meshweft_mesh::Field;

impl<T: Number> Core<T> {
    /// How many reals all of them have.
    pub(super) fn element_len(&self) -> usize {
        self.layout.elements.values().map(|elements| elements.places.len() * elements.shape.private).sum()
    }

    /// The reals of all: star after star, in the order in which elements were added.
    pub(super) fn element_reals(&self) -> Result<Vec<T>> {
        let mut reals = Vec::with_capacity(self.element_len());
        for (&star, elements) in &self.layout.elements {
            let (state, len) = (self.engine.elements(star)?, elements.shape.private);
            let slots = (0..elements.places.len()).map(|element| elements.slot(element as u32));
            reals.extend(slots.flat_map(|slot| (0..len).map(move |k| state.real(slot, k))));
        }
        Ok(reals)
    }

    /// Replaces them.
    pub(super) fn set_element_reals(&mut self, mut reals: &[T]) -> Result<()> {
        for (&star, elements) in &self.layout.elements {
            let (own, rest) = reals.split_at(elements.places.len() * elements.shape.private);
            reals = rest;
            self.engine.edit_elements(star, &mut |mut state| {
                for (element, own) in own.chunks_exact(elements.shape.private.max(1)).enumerate() {
                    for slot in elements.slots_of(element as u32) {
                        own.iter().enumerate().for_each(|(k, &x)| state.set(slot, k, x));
                    }
                }
            })?;
        }
        Ok(())
    }

    /// Their state, star after star.
    pub(super) fn by_element(&self) -> Result<Vec<Vertices<'_, T>>> {
        self.table
            .projected
            .iter()
            .map(|(star, fields)| {
                Ok(Vertices {
                    star: Some(&*self.layout.stars[*star].name),
                    state: self.engine.elements(*star)?,
                    layout: &self.layout.elements[star],
                    fields,
                })
            })
            .collect()
    }

    /// Checks that the elements of a star were projected once a round and in order.
    ///
    /// # Errors
    /// They were not.
    pub(super) fn check_elements(&self, star: usize, audit: &Audit) -> Result<()> {
        let (name, elements) = (&self.layout.stars[star].name, &self.layout.elements[&star]);
        let of = |place: u32| elements.vertex_at(place);
        if let Some((v, u)) = audit.breach() {
            let [v, u] = [v, u].map(of);
            return Err(Error::Internal(format!("elements {v} and {u} of star {name} were projected out of order")));
        }
        let rounds = audit.rounds();
        match audit.miscounted(rounds) {
            None => Ok(()),
            Some((place, count)) => {
                let element = of(place as u32);
                Err(Error::Internal(format!(
                    "element {element} of star {name} was projected {count} times in {rounds} rounds"
                )))
            }
        }
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
        let layout = &self.layout.elements[&index];
        Ok(read_part(self.engine.elements(index)?, (layout, 0..layout.places.len() as u32), first, part))
    }
}
