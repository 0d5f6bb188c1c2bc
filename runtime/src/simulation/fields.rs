//! The state by the names of its parts, and by vertex.

use super::Simulation;
use crate::error::{Error, Result};
use crate::layout::{State, shared_stride};
use crate::program::{Number, Part, PrivateOf, Program, Record, SharedOf};
use meshweft_mesh::Field;

impl<P: Program, T: Number> Simulation<P, T> {
    /// Names the parts of the state that can be read and written: shared ones first, then private ones.
    pub fn fields(&self) -> Vec<Part> {
        let mut parts = <SharedOf<P, T>>::parts("");
        parts.extend(<PrivateOf<P, T>>::parts(""));
        parts
    }

    /// Reads one part of the state, in the order of the mesh's vertices: shape [vertices × components].
    ///
    /// # Errors
    /// An unknown name; the message lists those there are.
    pub fn field(&self, name: &str) -> Result<Field> {
        let (location, components) = self.locate(name)?;
        let state = self.state()?;
        let mut values = Vec::with_capacity(self.vertices() as usize * components);
        for v in 0..self.vertices() {
            let slot = self.layout.slot(v);
            values.extend((0..components).map(|k| self.real(state, location, slot, k).to_f64()));
        }
        Ok(Field { name: name.into(), components, values })
    }

    /// Writes one part of the state, in the order of the mesh's vertices. Values are rounded to the precision.
    ///
    /// # Errors
    /// An unknown name, a wrong number of values, or one that is not finite (names the vertex).
    pub fn set_field(&mut self, name: &str, values: &[f64]) -> Result<()> {
        let (location, components) = self.locate(name)?;
        let n = self.vertices() as usize;
        if values.len() != n * components {
            let given = values.len();
            return Err(Error::Invalid(format!("{name} takes {n} × {components} values, {given} were given")));
        }
        if let Some(i) = values.iter().position(|&x| !T::from_f64(x).finite()) {
            let (v, x) = (i / components, values[i]);
            return Err(Error::Invalid(format!(
                "{name} of vertex {v} would be {x}, which is not a finite {}",
                T::NAME
            )));
        }
        self.state_mut()?;
        let Some(state) = self.state.get_mut() else { unreachable!("it has just been read") };
        for (v, value) in values.chunks_exact(components).enumerate() {
            for slot in self.layout.slots_of(v as u32) {
                for (k, &x) in value.iter().enumerate() {
                    *real_mut::<P, T>(state, location, slot, k) = T::from_f64(x);
                }
            }
        }
        Ok(())
    }

    /// The state of vertex `v` of the mesh.
    ///
    /// # Errors
    /// A GPU that failed, or a state on one that is not finite.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn vertex(&self, v: u32) -> Result<(SharedOf<P, T>, PrivateOf<P, T>)> {
        Ok(self.vertex_of(self.state()?, v))
    }

    pub(super) fn vertex_of(&self, state: &State<T>, v: u32) -> (SharedOf<P, T>, PrivateOf<P, T>) {
        let slot = self.layout.slot(v);
        (state.shared(slot), state.private(slot))
    }

    /// Replaces the state of vertex `v` of the mesh.
    ///
    /// # Errors
    /// As [`Simulation::vertex`].
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn set_vertex(&mut self, v: u32, shared: SharedOf<P, T>, private: PrivateOf<P, T>) -> Result<()> {
        let slots = self.layout.slots_of(v);
        let state = self.state_mut()?;
        for slot in slots {
            state.set_shared(slot, shared);
            state.set_private(slot, private);
        }
        Ok(())
    }

    /// The part and component of real `k` of shared and private state together.
    pub(super) fn name_of(&self, mut k: usize) -> (String, usize) {
        for part in self.fields() {
            if k < part.components {
                return (part.name, k);
            }
            k -= part.components;
        }
        unreachable!("real {k} lies in some part")
    }

    /// Whether a part is shared, the number of its first real, and its components.
    fn locate(&self, name: &str) -> Result<((bool, usize), usize)> {
        for (is_shared, parts) in [(true, <SharedOf<P, T>>::parts("")), (false, <PrivateOf<P, T>>::parts(""))] {
            let mut first = 0;
            for part in parts {
                if part.name == name {
                    return Ok(((is_shared, first), part.components));
                }
                first += part.components;
            }
        }
        let names: Vec<_> = self.fields().into_iter().map(|p| p.name).collect();
        Err(Error::Invalid(format!("unknown field {name:?}: one of {}", names.join(", "))))
    }

    fn real(&self, state: &State<T>, location: (bool, usize), slot: usize, k: usize) -> T {
        let i = index::<P, T>(state, location, slot, k);
        if location.0 { state.shared[i] } else { state.private[i] }
    }
}

/// Where a real of a part lies: in shared or private state, by the number of the part's first real.
fn index<P: Program, T: Number>(state: &State<T>, (is_shared, first): (bool, usize), slot: usize, k: usize) -> usize {
    match is_shared {
        true => slot * shared_stride(<SharedOf<P, T>>::LEN) + first + k,
        false => state.private_index::<PrivateOf<P, T>>(slot, first + k),
    }
}

fn real_mut<P: Program, T: Number>(state: &mut State<T>, location: (bool, usize), slot: usize, k: usize) -> &mut T {
    let i = index::<P, T>(state, location, slot, k);
    if location.0 { &mut state.shared[i] } else { &mut state.private[i] }
}
