//! The state as files, a piece a host.

use super::any::AnySimulation;
use super::core::Core;
use crate::error::{Error, Result};
use crate::number::Number;
use crate::piece::{Frame, Piece, Placement, check_name, file_name};
use meshweft_mesh::io::write_index;
use std::path::{Path, PathBuf};

impl<T: Number> Core<T> {
    /// See [`AnySimulation::write_pieces`].
    pub(super) fn pieces(&mut self, folder: &Path, name: &str, placement: &Placement) -> Result<Vec<PathBuf>> {
        check_name(name)?;
        placement.check(&self.fields.0)?;
        if self.mesh.primal().is_some() {
            return Err(Error::Invalid("a mesh of cells is written as a whole, not in pieces".into()));
        }
        if let Some(part) = self.fields.0.iter().find(|part| self.is_of_cells(&part.name)) {
            let name = &part.name;
            return Err(Error::Invalid(format!(
                "field {name} is of cells: such a state is written as a whole, not in pieces"
            )));
        }
        self.wait()?;
        // Workers may well have other working folders.
        let whole = std::path::absolute(folder).map_err(|error| meshweft_mesh::Error::io(folder, error))?;
        let frame = Frame { folder: &whole, name, placement, before: 0 };
        let written = match self.engine.remote() {
            Some(hosts) => hosts.write_pieces(&self.mesh, &frame)?,
            None => write_whole(self, &frame).map(|()| 1..2)?,
        };
        let pieces: Vec<String> = written.map(|piece| file_name(name, piece)).collect();
        let mut like = Piece::of(&self.mesh, &[], &[])?;
        like.fill(&self.fields.0, placement, |_, _| T::from_f64(0.0))?;
        let index = folder.join(format!("{name}.pvtu"));
        std::fs::create_dir_all(folder).map_err(|error| meshweft_mesh::Error::io(folder, error))?;
        write_index(&index, like.mesh(), &pieces)?;
        Ok(std::iter::once(index).chain(pieces.iter().map(|piece| folder.join(piece))).collect())
    }
}

/// Writes all of the mesh as one piece.
fn write_whole<T: Number>(core: &Core<T>, frame: &Frame) -> Result<()> {
    let [vertices, cells]: [Vec<u32>; 2] =
        [core.mesh.points().len(), core.mesh.cells().len()].map(|count| (0..count as u32).collect());
    let mut piece = Piece::of(&core.mesh, &vertices, &cells)?;
    let state = core.reals()?;
    piece.fill(&core.fields.0, frame.placement, |v, k| state.real(core.layout.slot(v as u32), k))?;
    piece.write(&frame.folder.join(file_name(frame.name, frame.before + 1)), &|| {})
}
