//! The state as files, a piece a host.

use super::Simulation;
use crate::error::Result;
use crate::number::Number;
use crate::piece::{Frame, Piece, Placement, check_name, file_name};
use crate::program::Program;
use meshweft_mesh::io::write_index;
use std::path::{Path, PathBuf};

impl<P: Program, T: Number> Simulation<P, T> {
    /// Writes the mesh with its fields, and all parts of the state, as pieces for ParaView: `NAME.1.vtu`, `NAME.2.vtu` and so on, one
    /// for each host that holds a part of the state, and `NAME.pvtu`, which names them and is what to open.
    ///
    /// Each host writes its own piece, to `folder` as its own disk has it, and this one the `.pvtu`: nobody gathers the state. A worker
    /// that joined by a token writes to a [folder of its own](crate::Worker::folder), whatever `folder` is. Where hosts share
    /// no disk, copy the pieces beside the `.pvtu`. A simulation on one host writes one piece.
    ///
    /// Every cell is in one piece, with all of its corners, so points at a cut are in several pieces, with the same bits in each. The
    /// field `vertex` says which vertex of the mesh a point is, unless mesh or state have a field of that name.
    ///
    /// Returns the paths of the `.pvtu` and of all pieces, as if they all lay in `folder`.
    ///
    /// ```
    /// # use meshweft::{Mesh, Placement, Program, Real, Simulation, Stages, kernels, vertex};
    /// # use meshweft::mesh::{generate::generate, io};
    /// # vertex! { pub struct Height<R> { shared height: R } }
    /// # struct Flat;
    /// # kernels! { for Flat: Height; }
    /// # impl Program for Flat {
    /// #     fn initial(&self, _: &Mesh, v: u32) -> Height<f64> { Height { height: f64::from(v) } }
    /// #     fn step(&self, _: &mut Stages<Self>) {}
    /// # }
    /// let mut flat = Simulation::builder(generate("sheet:3", 1)?, Flat).build()?;
    /// let folder = tempfile::tempdir()?;
    /// let files = flat.write_pieces(folder.path(), "flat_000000", &Placement::default())?;
    /// assert_eq!(files, ["flat_000000.pvtu", "flat_000000.1.vtu"].map(|name| folder.path().join(name)));
    /// assert_eq!(io::read(&files[1])?.point_field("height"), Some(&flat.field("height")?));
    /// assert!(flat.write_pieces(folder.path(), "../flat", &Placement::default()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A name with folders; a placement by fields that the state does not have; a disk that takes nothing: that of another host
    /// ends the run, and is named. Otherwise as [`Simulation::wait`].
    pub fn write_pieces(&mut self, folder: &Path, name: &str, placement: &Placement) -> Result<Vec<PathBuf>> {
        check_name(name)?;
        placement.check(&self.parts)?;
        self.wait()?;
        // Workers may well have other working folders.
        let whole = std::path::absolute(folder).map_err(|error| meshweft_mesh::Error::io(folder, error))?;
        let frame = Frame { folder: &whole, name, placement };
        let hosts = match self.engine.write_pieces(&self.mesh, &frame)? {
            Some(hosts) => hosts,
            None => self.write_whole(&frame).map(|()| 1)?,
        };
        let pieces: Vec<String> = (1..=hosts).map(|host| file_name(name, host)).collect();
        let mut like = Piece::of(&self.mesh, &[], &[])?;
        like.fill(&self.parts, placement, |_, _| T::from_f64(0.0))?;
        let index = folder.join(format!("{name}.pvtu"));
        std::fs::create_dir_all(folder).map_err(|error| meshweft_mesh::Error::io(folder, error))?;
        write_index(&index, like.mesh(), &pieces)?;
        Ok(std::iter::once(index).chain(pieces.iter().map(|piece| folder.join(piece))).collect())
    }

    /// Writes all of the mesh as one piece.
    fn write_whole(&self, frame: &Frame) -> Result<()> {
        let [vertices, cells]: [Vec<u32>; 2] =
            [self.mesh.points().len(), self.mesh.cells().len()].map(|count| (0..count as u32).collect());
        let mut piece = Piece::of(&self.mesh, &vertices, &cells)?;
        let state = self.state()?;
        piece.fill(&self.parts, frame.placement, |v, k| state.real(self.layout.slot(v as u32), k))?;
        piece.write(&frame.folder.join(file_name(frame.name, 1)), &|| {})
    }
}
