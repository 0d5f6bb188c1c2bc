//! VTU, VTK's XML file of an unstructured grid, read in all encodings but LZMA, written as appended raw data; and the
//! files of structured grids, VTI, VTR and VTS, read only. The type in the file counts, whatever its name ends in.
//!
//! Read: ASCII, inline and appended base64, appended raw; uncompressed, zlib and lz4; headers of 32 and 64 bits; both
//! byte orders; several pieces of an unstructured grid, which are joined. Arrays over points and cells become fields;
//! arrays of strings and bits are left out with a note, and field data without. Cell types: see `vtk_cells`. Document
//! types are refused and entities are not expanded. Arrays called `group.<dimension>.<name>` of bytes, as written here,
//! become groups.
//!
//! Written: little-endian, 64-bit headers, no compression, which ParaView, VTK and meshio read; and the index of several such
//! files, PVTU.
//!
//! Source: VTK user's guide, "VTK file formats", and "VTK XML formats" of its manual.

mod data;
mod grid;
mod numbers;
mod outline;
mod tags;
#[cfg(test)]
mod tests;
mod write;

use std::collections::HashMap;
use std::path::Path;

use self::data::Store;
use self::numbers::{floats, integers, stored};
use self::outline::{Data, Dataset, Piece, Section};
pub(super) use self::write::{Form, check_names, write, write_index};
use super::binary::{PIECE, Scalar};
use super::draft::Draft;
use super::vtk_cells::{self, Integers};
use crate::error::{Error, Place, Result, shown_name};
use crate::parallel;

pub(super) fn parse(name: &Path, bytes: &[u8]) -> Result<Draft> {
    let outline = tags::outline(name, bytes)?;
    let mut store = Store::new(name, bytes, outline.storage);
    let mut draft = Draft::new(bytes.len());
    for (at, array) in &outline.skipped {
        draft.note(store.error(*at, format!("array {} holds strings or bits and is left out", shown_name(array))));
    }
    let mut fields = Fields::default();
    for piece in &outline.pieces {
        let base = draft.points.len();
        if outline.dataset != Dataset::Unstructured && base > 0 {
            return Err(store.error(piece.at, "a grid of several pieces is not supported: save it as one"));
        }
        match outline.dataset {
            Dataset::Unstructured | Dataset::Structured => read_points(piece, &mut store, &mut draft)?,
            // Its other axes may have any number of places.
            _ if piece.points == 0 => {}
            Dataset::Rectilinear => grid::add_rectilinear(piece, &mut store, &mut draft)?,
            Dataset::Image(lattice) => grid::add_image(lattice, piece, &mut store, &mut draft)?,
        }
        match outline.dataset {
            Dataset::Unstructured => read_cells(piece, base, &mut store, &mut draft)?,
            _ => grid::add_cells(piece.size, &mut draft).map_err(|message| store.error(piece.at, message))?,
        }
        fields.read(piece, &mut store)?;
    }
    let cells = outline.pieces.iter().map(|piece| piece.cells).sum();
    fields.finish(cells, &mut draft).map_err(|message| Error::file(name, Place::Whole, message))?;
    Ok(draft)
}

/// The fields over points and those over cells, while pieces are joined.
#[derive(Default)]
struct Fields<'a> {
    all: [Vec<(&'a str, Joined)>; 2],
    /// Where the one of a name is; `true`: over cells.
    known: HashMap<(bool, &'a str), usize>,
}

/// A field while pieces are joined.
#[derive(Default)]
struct Joined {
    components: usize,
    values: Vec<f64>,
    is_bytes: bool,
}

impl<'a> Fields<'a> {
    /// Appends what a piece has of each field.
    fn read(&mut self, piece: &'a Piece, store: &mut Store) -> Result<()> {
        for array in &piece.arrays {
            let (of_cells, count) = match array.section {
                Section::PointData => (false, piece.points),
                Section::CellData => (true, piece.cells),
                _ => continue,
            };
            let values = floats(array, count, store)?;
            let all = &mut self.all[usize::from(of_cells)];
            let k = *self.known.entry((of_cells, &array.name)).or_insert(all.len());
            if k == all.len() {
                all.push((&array.name, Joined::default()));
            }
            let joined = &mut all[k].1;
            if joined.components > 0 && joined.components != array.components {
                let message = format!("array {} had another number of components before", shown_name(&array.name));
                return Err(store.error(array.at, message));
            }
            joined.is_bytes = array.scalar == Scalar::U8;
            joined.components = array.components;
            joined.values.extend(values);
        }
        Ok(())
    }

    /// Adds them to a mesh of so many cells.
    fn finish(self, cells: u64, draft: &mut Draft) -> Result<(), String> {
        let [of_points, of_cells] = self.all;
        for (name, Joined { components, values, .. }) in of_points {
            draft.point_field(name, components, values)?;
        }
        for (name, Joined { components, values, is_bytes }) in of_cells {
            match group_of(name).filter(|_| is_bytes && components == 1 && values.len() as u64 == cells) {
                Some((dimension, group)) => draft.group(group, dimension, draft.cells_marked(&values))?,
                None => draft.cell_field(name, components, values)?,
            }
        }
        Ok(())
    }
}

/// Dimension and name of the group that is stored as the cell array `name`.
fn group_of(name: &str) -> Option<(usize, &str)> {
    let (dimension, group) = name.strip_prefix("group.")?.split_once('.')?;
    Some((dimension.parse().ok().filter(|&d| d <= 3)?, group))
}

fn read_points(piece: &Piece, store: &mut Store, draft: &mut Draft) -> Result<()> {
    let Some(array) = piece.arrays.iter().find(|a| a.section == Section::Points) else {
        return match piece.points {
            0 => Ok(()),
            n => Err(store.error(piece.at, format!("the piece lacks the array of its {n} points"))),
        };
    };
    if array.components != 3 {
        return Err(store.error(array.at, format!("points need 3 components, not {}", array.components)));
    }
    let base = draft.points.len();
    match &array.data {
        Data::Ascii(_) => draft.points.extend_from_slice(floats(array, piece.points, store)?.as_chunks::<3>().0),
        _ => {
            let stored = stored(array, piece.points.saturating_mul(3), store)?;
            draft.points.resize(base + stored.len() / 3, [0.0; 3]);
            parallel::each(draft.points[base..].chunks_mut(PIECE).enumerate(), |(piece, points)| {
                let places = 3 * piece * PIECE..3 * (piece * PIECE + points.len());
                points.copy_from_slice(stored.floats(places).as_chunks::<3>().0);
            });
        }
    }
    let points = &draft.points[base..];
    if let Some(v) = parallel::first(points.len(), |v| points[v].iter().any(|x| !x.is_finite())) {
        let message = format!("point {v} has a coordinate that is not finite: {:?}", points[v]);
        return Err(store.error(array.at, message));
    }
    Ok(())
}

fn read_cells(piece: &Piece, base: usize, store: &mut Store, draft: &mut Draft) -> Result<()> {
    if piece.cells == 0 {
        return Ok(());
    }
    let mut read = |name: &str, count: u64| -> Result<(Integers, usize)> {
        let array = piece.arrays.iter().find(|a| a.section == Section::Cells && a.name == name);
        let array = array.ok_or_else(|| store.error(piece.at, format!("the piece lacks the array {name:?}")))?;
        if !array.scalar.is_integer() || array.components != 1 {
            return Err(store.error(array.at, format!("array {name:?} must hold single integers")));
        }
        Ok((integers(array, count, store)?, array.at))
    };
    let (ends, _) = read("offsets", piece.cells)?;
    let count = ends.len().checked_sub(1).map_or(0, |last| ends.piece(last..last + 1)[0]);
    let (types, _) = read("types", piece.cells)?;
    let (connectivity, at) = read("connectivity", u64::try_from(count).unwrap_or(u64::MAX))?;
    if vtk_cells::add_uniform(draft, base, &types, &ends, &connectivity) {
        return Ok(());
    }
    let [types, ends, connectivity] =
        [types, ends, connectivity].map(|integers| integers.piece(0..integers.len()).into_owned());
    let offsets = [&[0], &ends[..]].concat();
    vtk_cells::add(draft, base, &types, &offsets, &connectivity).map_err(|message| store.error(at, message))
}
