//! A mesh while it is being read: every element is checked as it arrives.

use std::path::Path;

use super::bounds::{Budget, FILLED};
use crate::cell::{CellKind, Cells};
use crate::error::{Error, Place, Result, shown_name};
use crate::mesh::{Field, Group, Mesh};

/// More fields than any real file has. Adding one looks for its name among all, so there must be a limit.
const MAX_FIELDS: usize = 4096;
/// The same for groups.
const MAX_GROUPS: usize = 16_384;
/// More notes than these would hide one another.
const MAX_NOTES: usize = 16;

/// Collects points, cells, fields and groups. Its messages lack the place, which the caller adds.
pub(super) struct Draft {
    pub(super) points: Vec<[f64; 3]>,
    cells: Cells,
    /// Cells that each element of the file became: more than one for polygons that were cut.
    parts: Vec<u32>,
    /// Values of fields that may still be repeated or filled in.
    filled: Budget,
    point_fields: Vec<Field>,
    cell_fields: Vec<Field>,
    groups: Vec<Group>,
    /// Cells of which only the corners were taken.
    curved: usize,
    /// Their other points.
    between: Vec<u32>,
    notes: Vec<String>,
}

impl Draft {
    /// Nothing yet, of a file of so many bytes.
    pub(super) fn new(bytes: usize) -> Draft {
        Draft {
            points: Vec::new(),
            cells: Cells::new(),
            parts: Vec::new(),
            filled: FILLED.of(bytes),
            point_fields: Vec::new(),
            cell_fields: Vec::new(),
            groups: Vec::new(),
            curved: 0,
            between: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Notes something that the reader leaves out, in the words of an error at that place.
    pub(super) fn note(&mut self, note: Error) {
        let note = note.to_string();
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Number of cells so far.
    pub(super) fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// Turns an index of the file into a point, which must already be there.
    pub(super) fn corner(&self, index: i64) -> Result<u32, String> {
        match usize::try_from(index) {
            Ok(v) if v < self.points.len() => Ok(v as u32),
            _ => Err(format!("there is no point {index} among {} points counted from 0", self.points.len())),
        }
    }

    /// Adds one element as one cell.
    pub(super) fn cell(&mut self, kind: CellKind, corners: &[u32]) -> Result<(), String> {
        self.pieces(kind, [corners])
    }

    /// Adds one element as one cell; `nodes` are its corners and, if it is of higher order, the points between them,
    /// which are left out.
    pub(super) fn curved(&mut self, kind: CellKind, nodes: &[u32]) -> Result<(), String> {
        let (corners, between) = nodes.split_at(kind.corners().min(nodes.len()));
        if !between.is_empty() {
            self.curved += 1;
            self.between.extend_from_slice(between);
        }
        self.cell(kind, corners)
    }

    /// Whether so many more corners can be counted.
    pub(super) fn has_room(&self, corners: usize) -> bool {
        self.cells.all_corners().len().saturating_add(corners) <= u32::MAX as usize
    }

    /// Adds many elements as one cell each, for which there [is room](Draft::has_room).
    pub(super) fn cells(&mut self, kind: CellKind, corners: Vec<u32>) {
        self.parts.resize(self.parts.len() + corners.len() / kind.corners(), 1);
        self.cells.extend(kind, corners);
    }

    /// Adds one element as one polygon: triangle, quad, or a fan of triangles.
    pub(super) fn polygon(&mut self, corners: &[u32]) -> Result<(), String> {
        match corners.len() {
            0..3 => Err(format!("a polygon needs 3 corners, this one has {}", corners.len())),
            3 => self.cell(CellKind::Triangle, corners),
            4 => self.cell(CellKind::Quad, corners),
            n => self.pieces(CellKind::Triangle, (2..n).map(|k| [corners[0], corners[k - 1], corners[k]])),
        }
    }

    /// Adds one element as several cells of one kind.
    pub(super) fn pieces<C: AsRef<[u32]>>(
        &mut self,
        kind: CellKind,
        cells: impl IntoIterator<Item = C>,
    ) -> Result<(), String> {
        let before = self.cells.len();
        for corners in cells {
            // `Cells` counts corners in 32 bits.
            if self.cells.all_corners().len() + kind.corners() > u32::MAX as usize {
                return Err(format!("more than {} corners of cells: split the mesh", u32::MAX));
            }
            self.cells.push(kind, corners.as_ref());
        }
        self.parts.push((self.cells.len() - before) as u32);
        Ok(())
    }

    /// Adds a field over the points.
    pub(super) fn point_field(&mut self, name: &str, components: usize, values: Vec<f64>) -> Result<(), String> {
        push_field(&mut self.point_fields, self.points.len(), "points", name, components, values)
    }

    /// Adds a field over the elements of the file; the cells of a cut polygon all get its values.
    pub(super) fn cell_field(&mut self, name: &str, components: usize, values: Vec<f64>) -> Result<(), String> {
        push_field(&mut self.cell_fields, self.parts.len(), "cells", name, components, values)?;
        if self.parts.iter().any(|&n| n != 1) {
            let repeated = self.cells.len().saturating_mul(components) as u64;
            self.filled.take(repeated, "values", "cut them into triangles").map_err(|message| {
                format!("field {} over polygons of too many corners: {message}", shown_name(name))
            })?;
            let field = self.cell_fields.last_mut().expect("just added");
            field.values = self
                .parts
                .iter()
                .zip(field.values.chunks_exact(components))
                .flat_map(|(&n, values)| std::iter::repeat_n(values, n as usize).flatten())
                .copied()
                .collect();
        }
        Ok(())
    }

    /// Takes room for the values of a field that are filled in because it has only some of the points or cells.
    pub(super) fn fill(&mut self, name: &str, what: &str, values: usize) -> Result<(), String> {
        let taken = self.filled.take(values as u64, "values", "leave it out");
        taken.map_err(|message| format!("field {} has values for too few {what}: {message}", shown_name(name)))
    }

    /// Cells that became of the elements with a value other than 0.
    pub(super) fn cells_marked(&self, marks: &[f64]) -> Vec<u32> {
        let parts = self.parts.iter().zip(marks).flat_map(|(&n, &mark)| std::iter::repeat_n(mark, n as usize));
        parts.enumerate().filter(|&(_, mark)| mark != 0.0).map(|(c, _)| c as u32).collect()
    }

    /// Adds a group of cells.
    pub(super) fn group(&mut self, name: &str, dimension: usize, cells: Vec<u32>) -> Result<(), String> {
        if self.groups.len() == MAX_GROUPS {
            return Err(format!("more than {MAX_GROUPS} groups: merge some"));
        }
        self.groups.push(Group { name: name.to_owned(), dimension, cells });
        Ok(())
    }

    /// The mesh, checked as a whole; `say` gets a line for each kind of data that was left out.
    pub(super) fn finish(mut self, name: &Path, say: &mut dyn FnMut(&str)) -> Result<Mesh> {
        self.leave_out_between(name);
        self.notes.iter().for_each(|note| say(note));
        let build = || {
            let mut mesh = Mesh::new(self.points, self.cells)?;
            self.point_fields.into_iter().try_for_each(|field| mesh.set_point_field(field))?;
            self.cell_fields.into_iter().try_for_each(|field| mesh.set_cell_field(field))?;
            self.groups.into_iter().try_for_each(|group| mesh.add_group(group))?;
            Ok(mesh)
        };
        build().map_err(|error| match error {
            Error::Invalid(message) => Error::file(name, Place::Whole, message),
            other => other,
        })
    }

    /// Removes the points between the corners of cells of higher order, unless they are corners of others.
    fn leave_out_between(&mut self, name: &Path) {
        if self.curved == 0 {
            return;
        }
        let mut keeps = vec![true; self.points.len()];
        self.between.iter().for_each(|&v| keeps[v as usize] = false);
        self.cells.all_corners().iter().for_each(|&v| keeps[v as usize] = true);
        let before = self.points.len();
        let mut next = 0;
        let places: Vec<u32> = keeps.iter().map(|&kept| (next, next += u32::from(kept)).0).collect();
        let mut cells = Cells::new();
        for (kind, corners) in self.cells.iter() {
            let corners: Vec<u32> = corners.iter().map(|&v| places[v as usize]).collect();
            cells.push(kind, &corners);
        }
        self.cells = cells;
        self.points = kept(&self.points, 1, &keeps);
        self.point_fields.iter_mut().for_each(|field| field.values = kept(&field.values, field.components, &keeps));
        let (curved, points) = (self.curved, before - self.points.len());
        let message = format!(
            "cells of higher order ({curved}) are read by their corners; points between ({points}) are left out"
        );
        self.note(Error::file(name, Place::Whole, message));
    }
}

/// Those runs of `stride` values that are marked.
fn kept<T: Copy>(values: &[T], stride: usize, keeps: &[bool]) -> Vec<T> {
    values.chunks_exact(stride).zip(keeps).filter(|(_, keeps)| **keeps).flat_map(|(run, _)| run).copied().collect()
}

fn push_field(
    fields: &mut Vec<Field>,
    count: usize,
    what: &str,
    name: &str,
    components: usize,
    values: Vec<f64>,
) -> Result<(), String> {
    if components == 0 || count.checked_mul(components) != Some(values.len()) {
        let n = values.len();
        let name = shown_name(name);
        return Err(format!("field {name} has {n} values of {components} components for {count} {what}"));
    }
    if fields.len() == MAX_FIELDS {
        return Err(format!("more than {MAX_FIELDS} fields over the {what}: remove those not needed"));
    }
    fields.push(Field { name: name.to_owned(), components, values });
    Ok(())
}
