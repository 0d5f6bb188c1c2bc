//! The series of VTU files and the PVD file that lists them.

use super::Frame;
use crate::Run;
use anyhow::Result;
use meshweft::Order;
use meshweft_mesh::{Field, Mesh, io};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// States written so far.
pub(super) struct Series {
    folder: PathBuf,
    name: &'static str,
    /// Digits of a step in a file name: the same for all, so that names sort by time.
    digits: usize,
    mesh: Mesh,
    /// The order of the run: with program and mesh, the whole identity of what is written.
    order: Order,
    /// Simulated seconds and name of each file.
    files: Vec<(f64, String)>,
}

impl Series {
    /// A series without files, for at most `steps` steps.
    pub(super) fn new(folder: &Path, name: &'static str, steps: u64, run: &dyn Run) -> Series {
        let digits = steps.to_string().len().max(6);
        let (mesh, order) = (run.mesh().clone(), run.schedule().order());
        Series { folder: folder.to_owned(), name, digits, mesh, order, files: Vec::new() }
    }

    /// Writes a state, and then the list with it: at no time does the list name a file that is not there.
    pub(super) fn push(&mut self, frame: &Frame, fields: Vec<Field>) -> Result<()> {
        self.mesh.set_points(frame.points.clone())?;
        for field in fields {
            self.mesh.set_point_field(field)?;
        }
        let file = format!("{}_{:02$}.vtu", self.name, frame.step, self.digits);
        io::write(&self.folder.join(&file), &self.mesh)?;
        self.files.push((frame.time, file));
        io::replace(&self.index(), |out| out.write_all(self.list().as_bytes()))?;
        Ok(())
    }

    /// Paths of all files, the list first.
    pub(super) fn into_files(self) -> Vec<PathBuf> {
        let mut paths = vec![self.index()];
        paths.extend(self.files.iter().map(|(_, file)| self.folder.join(file)));
        paths
    }

    fn index(&self) -> PathBuf {
        self.folder.join(format!("{}.pvd", self.name))
    }

    /// The list in the format of ParaView. Names of examples and steps need no escapes in XML.
    fn list(&self) -> String {
        let mut text = format!(
            "<?xml version=\"1.0\"?>\n<!-- {} in order {} -->\n<VTKFile type=\"Collection\" version=\"0.1\">\n<Collection>\n",
            self.name, self.order
        );
        for (time, file) in &self.files {
            let _ = writeln!(text, "<DataSet timestep=\"{time}\" group=\"\" part=\"0\" file=\"{file}\"/>");
        }
        text.push_str("</Collection>\n</VTKFile>\n");
        text
    }
}
