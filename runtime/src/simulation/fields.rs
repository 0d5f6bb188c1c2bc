//! The state by the names of its parts, and by vertex.

use crate::error::{Error, Result};
use crate::layout::{Layout, View};
use crate::number::{Number, Part};
use meshweft_mesh::{Field, Mesh, parallel};
use std::ops::Range;
use std::sync::Arc;

/// A shared part of the state where it lies. See [`Simulation::view`](crate::Simulation::view).
pub struct FieldView<'a, T> {
    pub(super) state: View<'a, T>,
    pub(super) layout: &'a Layout,
    pub(super) first: usize,
    pub(super) components: usize,
    pub(super) rows: Range<u32>,
}

impl<T: Number> FieldView<'_, T> {
    /// The components of vertex `v` of the mesh; of cell `v`, if the field is [of cells](crate::Program::of_cells).
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn vertex(&self, v: u32) -> &[T] {
        let row = self.rows.clone().nth(v as usize).expect("a vertex of the mesh");
        let at = self.state.shape.shared_index(self.layout.slot(row), self.first);
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
    /// The slot of each vertex of the mesh, or of each cell, shape `[vertices]`. It never changes.
    pub slots: Vec<u32>,
}

/// Which vertices have the values of a field, for each part of the state.
///
/// # Errors
/// Fields of cells that are no fields, or of which the program has no vertices.
pub(super) fn rows(of_cells: &[String], mesh: &Mesh, fields: &[Part], starts: &[u32]) -> Result<Arc<[Range<u32>]>> {
    let (vertices, cells) = (mesh.points().len() as u32, mesh.cells().len() as u32);
    let own = starts.get(1).copied().unwrap_or(vertices)..starts.get(2).copied().unwrap_or(vertices);
    if let Some(name) = of_cells.iter().find(|name| fields.iter().all(|part| part.name != **name)) {
        let known: Vec<&str> = fields.iter().map(|part| &part.name[..]).collect();
        return Err(Error::Program(format!("`of_cells` names field {name:?}, which is none of {}", known.join(", "))));
    }
    if let Some(name) = of_cells.first().filter(|_| mesh.primal().is_some()) {
        return Err(Error::Program(format!(
            "field {name} is of cells, but vertices stand for cells here: it is a field like all others"
        )));
    }
    if let Some(name) = of_cells.first().filter(|_| own.len() as u32 != cells) {
        return Err(Error::Program(format!(
            "field {name} is of cells, of which the mesh has {cells}, and part 1 has {} vertices: `Program::parts` says one a cell",
            own.len()
        )));
    }
    let of = |part: &Part| if of_cells.contains(&part.name) { own.clone() } else { 0..vertices };
    Ok(fields.iter().map(of).collect())
}

/// Reads a part of a state whose first real is `first`, of these vertices: shape [vertices × components].
pub(super) fn read_part<T: Number>(
    state: View<'_, T>,
    (layout, rows): (&Layout, Range<u32>),
    first: usize,
    part: &Part,
) -> Field {
    let Part { name, components, kind } = part;
    let mut values = vec![0.0; rows.len() * components];
    let piece = parallel::size(rows.len(), 1 << 10);
    let pieces = rows.step_by(piece).zip(values.chunks_mut((piece * components).max(1)));
    parallel::each(pieces, |(start, values)| {
        for (v, values) in (start..).zip(values.chunks_exact_mut(*components)) {
            let slot = layout.slot(v);
            // Where the first real lies is a division, and the others are a stride away.
            let (reals, at, stride) = match first.checked_sub(state.shape.shared) {
                None => (state.shared, state.shape.shared_index(slot, first), 1),
                Some(k) => (state.private, state.shape.private_index(slot, k), state.shape.width),
            };
            values.iter_mut().enumerate().for_each(|(k, value)| *value = kind.decode(reals[at + k * stride]));
        }
    });
    Field { name: name.clone(), components: *components, values }
}

/// Reads all parts of a state, likewise.
pub(super) fn read_parts<T: Number>(
    state: View<'_, T>,
    (layout, rows): (&Layout, &[Range<u32>]),
    parts: &[Part],
) -> Vec<Field> {
    let firsts = parts.iter().scan(0, |next, part| {
        *next += part.components;
        Some(*next - part.components)
    });
    let each = firsts.zip(parts).zip(rows);
    each.map(|((first, part), rows)| read_part(state, (layout, rows.clone()), first, part)).collect()
}
