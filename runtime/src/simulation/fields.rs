//! The state by the names of its parts, and by vertex.

use crate::layout::{Layout, View};
use crate::number::{Number, Part};
use meshweft_mesh::Field;

/// A shared part of the state where it lies. See [`Simulation::view`](crate::Simulation::view).
pub struct FieldView<'a, T> {
    pub(super) state: View<'a, T>,
    pub(super) layout: &'a Layout,
    pub(super) first: usize,
    pub(super) components: usize,
}

impl<T: Number> FieldView<'_, T> {
    /// The components of vertex `v` of the mesh.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn vertex(&self, v: u32) -> &[T] {
        let at = self.state.shape.shared_index(self.layout.slot(v), self.first);
        &self.state.shared[at..at + self.components]
    }
}

/// A shared part of the state where it lies on a GPU. See [`AnySimulation::device_field`](crate::AnySimulation::device_field).
#[cfg(feature = "gpu")]
#[derive(Clone, Debug)]
pub struct DeviceField {
    /// The device that runs the simulation.
    pub device: wgpu::Device,
    /// Its queue. What is submitted to it sees the state after all steps so far.
    pub queue: wgpu::Queue,
    /// The shared state of all slots, words of 32 bits: a storage buffer that can be copied from.
    pub buffer: wgpu::Buffer,
    /// Where the part begins in the words of a slot.
    pub first: usize,
    /// Number of its words: floats, or the bits of integers.
    pub components: usize,
    /// Words from one slot to the next.
    pub stride: usize,
    /// The slot of each vertex of the mesh, shape `[vertices]`. It never changes.
    pub slots: Vec<u32>,
}

/// Reads a part of a state whose first real is `first`, of so many vertices in the order of the mesh's: shape [vertices × components].
pub(super) fn read_part<T: Number>(
    state: View<'_, T>,
    (layout, vertices): (&Layout, usize),
    first: usize,
    part: &Part,
) -> Field {
    let Part { name, components, kind } = part;
    let mut values = Vec::with_capacity(vertices * components);
    for v in 0..vertices as u32 {
        let slot = layout.slot(v);
        // Where the first real lies is a division, and the others are a stride away.
        let (reals, at, stride) = match first.checked_sub(state.shape.shared) {
            None => (state.shared, state.shape.shared_index(slot, first), 1),
            Some(k) => (state.private, state.shape.private_index(slot, k), state.shape.width),
        };
        values.extend((0..*components).map(|k| kind.decode(reals[at + k * stride])));
    }
    Field { name: name.clone(), components: *components, values }
}

/// Reads all parts of a state, likewise.
pub(super) fn read_parts<T: Number>(state: View<'_, T>, of: (&Layout, usize), parts: &[Part]) -> Vec<Field> {
    let firsts = parts.iter().scan(0, |next, part| {
        *next += part.components;
        Some(*next - part.components)
    });
    firsts.zip(parts).map(|(first, part)| read_part(state, of, first, part)).collect()
}
