//! What a run is to leave, where, and how it looks.

use crate::Run;
use meshweft_picture::{Section, Size};
use std::path::{Path, PathBuf};

/// What a run is to leave, and where.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder.
    pub folder: PathBuf,
    /// The name that files begin with.
    pub name: &'static str,
    /// Steps that the run is to take.
    pub steps: u64,
    /// Steps from one frame of the film and line of the history to the next.
    pub every: u64,
    /// Steps from one state of the series to the next: a multiple of `every`.
    pub state_every: u64,
    /// The fields that states have; `None` is all. Not with pieces.
    pub fields: Option<Vec<String>>,
    /// Whether pictures are drawn. Not with pieces.
    pub pictures: bool,
    /// Whether each host writes its own piece of the state.
    pub pieces: bool,
    /// How pictures look.
    pub style: Style,
    /// Threads that draw, 0 for one per core: the speed depends on them, no picture does.
    pub threads: usize,
    /// Whether another process may go on with the run: frames of the film then lie beside its checkpoints.
    pub resumable: bool,
}

/// How pictures look, beside what the [`Look`](crate::Look) of the example says.
#[derive(Clone, Debug, PartialEq)]
pub struct Style {
    /// Size of the picture of the last state.
    pub picture: Size,
    /// Size of the film.
    pub film: Size,
    /// Where the camera stands, as [`Camera::seen_from`](meshweft_picture::Camera::seen_from) takes it; `None` is the view of
    /// [`Camera::framing`](meshweft_picture::Camera::framing).
    pub view: Option<[f64; 2]>,
    /// How solids are cut open toward the camera; `None` is as the look says.
    pub section: Option<Section>,
    /// The field that gives the color: of the state, or of the points or the cells of the mesh; `none` is a plain color. `None` is
    /// that of the look.
    pub color: Option<String>,
}

impl Default for Style {
    fn default() -> Style {
        let picture = Size { width: 1280, height: 960 };
        let film = Size { width: 640, height: 480 };
        Style { picture, film, view: None, section: None, color: None }
    }
}

/// The file for the frames of a film beside checkpoints.
pub(super) const FRAMES_FILE: &str = "frames";
/// Frames of a film and lines of a history unless the user says how many.
pub(super) const FRAMES: u64 = 60;
/// Bytes of a series unless the user says how many states: each holds the whole mesh, so that a disk is soon full.
const SERIES_BYTES: u64 = 64 << 20;

impl Config {
    /// About 60 frames over the run, and as many of them as states as fit into 64 MiB before they are shrunk, but at least first and last.
    pub fn new(folder: &Path, name: &'static str, steps: u64, run: &Run) -> Config {
        let every = steps.div_ceil(FRAMES).max(1);
        let (mesh, vertices) = (run.mesh().primal().unwrap_or(run.mesh()), run.mesh().points().len());
        let places = |name: &str| if run.is_of_cells(name) { mesh.cells().len() } else { vertices };
        let numbers: usize = run.fields().iter().map(|part| part.components * places(&part.name)).sum();
        let cells = mesh.cells();
        let real = if run.precision() == "f64" { 8 } else { 4 };
        let bytes = real * (3 * mesh.points().len() + numbers) + 4 * cells.all_corners().len() + 5 * cells.len();
        let states = (SERIES_BYTES / (bytes as u64).max(1)).clamp(1, FRAMES);
        let state_every = every * steps.div_ceil(every).div_ceil(states).max(1);
        let folder = folder.to_owned();
        Config {
            folder,
            name,
            steps,
            every,
            state_every,
            fields: run.look().states.map(|names| names.iter().map(ToString::to_string).collect()),
            pictures: true,
            pieces: false,
            style: Style::default(),
            threads: 0,
            resumable: false,
        }
    }

    /// The folder of its checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        checkpoints(&self.folder)
    }

    /// The file for the frames of the film, if it is to have a name.
    pub(super) fn frames(&self) -> Option<PathBuf> {
        self.resumable.then(|| self.checkpoints().join(FRAMES_FILE))
    }
}

/// The folder of the checkpoints of a run that writes to a folder.
pub fn checkpoints(folder: &Path) -> PathBuf {
    folder.join("checkpoint")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_meshes_are_saved_less_often() {
        let plan = |spec: &str, steps| {
            let entry = crate::Entry::of::<crate::template::Diffusion>();
            let settings = crate::Settings::new(entry.info.settings);
            let mesh = meshweft_mesh::generate::generate(spec, 1).unwrap();
            let run = entry.start(mesh, &settings, &crate::Options::default()).unwrap();
            let config = Config::new(Path::new("out"), entry.info.name, steps, &run);
            (config.every, config.state_every)
        };
        assert_eq!(plan("torus:8", 600), (10, 10));
        let (every, state_every) = plan("torus:256x256", 600);
        assert!(every == 10 && state_every > every && state_every % every == 0, "{state_every}");
        // All of a few.
        assert_eq!(plan("torus:256x256", 6), (1, 1));
    }
}
