//! The series of VTU or PVTU files and the PVD file that lists them.

use super::config::Config;
use super::frame::{Frame, Moment};
use crate::Run;
use anyhow::Result;
use meshweft::Order;
use meshweft_mesh::{Field, Mesh, io};
use std::fmt::Write;
use std::path::PathBuf;

/// States written so far.
pub(super) struct Series {
    folder: PathBuf,
    name: &'static str,
    /// Digits of a step in a file name: the same for all, so that names sort by time.
    digits: usize,
    /// What is written: the whole mesh, unless hosts write pieces of it.
    mesh: Option<Mesh>,
    /// Fields that are of its cells: all, where vertices stand for cells.
    cell_fields: Vec<String>,
    /// Whether its points move: cells that are drawn one by one, each with points of its own, stay where they are.
    moves: bool,
    /// The fields that are; `None` is all.
    wanted: Option<Vec<String>>,
    /// The order of the run: with program and mesh, the whole identity of what is written.
    order: Order,
    /// Simulated seconds and name of each file.
    files: Vec<(f64, String)>,
    /// Pieces that those files name.
    pieces: Vec<PathBuf>,
    /// Files that a loss of power may still take.
    pub(super) fresh: Vec<PathBuf>,
}

impl Series {
    /// A series that has these files, with the time of each.
    pub(super) fn new(config: &Config, run: &Run, files: Vec<(f64, String)>) -> Series {
        let digits = config.steps.to_string().len().max(6);
        let mesh = (!config.pieces).then(|| run.mesh().written().into_owned());
        let of_cells = run.mesh().primal().is_some();
        let state = run.fields().into_iter().map(|part| part.name);
        let cell_fields = state.filter(|name| of_cells || run.is_of_cells(name)).collect();
        let look = run.look();
        let moves = !look.is_exaggerated && (!of_cells || look.raised.is_some());
        let (folder, name, order) = (config.folder.clone(), config.name, run.schedule().order());
        let wanted = config.fields.clone();
        Series {
            folder,
            name,
            digits,
            mesh,
            cell_fields,
            moves,
            wanted,
            order,
            files,
            pieces: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Writes a state.
    pub(super) fn push(&mut self, frame: Frame) -> Result<()> {
        let Frame { moment, points, fields, cells } = frame;
        let stem = self.stem(moment);
        let Some(mesh) = &mut self.mesh else { return Ok(()) };
        if self.moves {
            mesh.set_points(points)?;
        }
        if let Some(cells) = cells {
            *mesh = mesh.with_cells(cells)?;
        }
        let is_wanted = |field: &Field| self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&field.name));
        fields.into_iter().filter(is_wanted).try_for_each(|field| match self.cell_fields.contains(&field.name) {
            true => mesh.set_cell_field(field),
            false => mesh.set_point_field(field),
        })?;
        let file = format!("{stem}.vtu");
        io::write(&self.folder.join(&file), mesh)?;
        self.list(moment, file)
    }

    /// Has hosts write their pieces of the state.
    pub(super) fn push_pieces(&mut self, moment: Moment, run: &mut Run) -> Result<()> {
        let stem = self.stem(moment);
        let files = run.write_drawn(&self.folder, &stem)?;
        self.pieces.extend(files.into_iter().skip(1));
        self.list(moment, format!("{stem}.pvtu"))
    }

    /// The name of the files of a step, without its end.
    fn stem(&self, moment: Moment) -> String {
        format!("{}_{:02$}", self.name, moment.step, self.digits)
    }

    /// Adds a file to the list, behind itself: at no time does the list name a file that is not there.
    fn list(&mut self, moment: Moment, file: String) -> Result<()> {
        self.fresh.push(self.folder.join(&file));
        self.files.push((moment.time, file));
        self.write_index()
    }

    /// Writes the list.
    pub(super) fn write_index(&self) -> Result<()> {
        io::replace(&self.index(), |out| out.write_all(self.text().as_bytes()))?;
        Ok(())
    }

    /// Simulated seconds and name of each file.
    pub(super) fn files(&self) -> &[(f64, String)] {
        &self.files
    }

    /// Paths of all files, the list first.
    pub(super) fn into_files(self) -> Vec<PathBuf> {
        let mut paths = vec![self.index()];
        paths.extend(self.files.iter().map(|(_, file)| self.folder.join(file)));
        paths.extend(self.pieces);
        paths
    }

    pub(super) fn index(&self) -> PathBuf {
        self.folder.join(format!("{}.pvd", self.name))
    }

    /// The list in the format of ParaView. Names of examples and steps need no escapes in XML.
    fn text(&self) -> String {
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
