//! What a run leaves in its folder: a ParaView series, a history and a film.
//!
//! | file | what it is |
//! |---|---|
//! | `NAME_000100.vtu` | mesh and all state after 100 steps |
//! | `NAME.pvd` | the series of those files with their times, for ParaView |
//! | `NAME.csv` | the measured quantities at each frame of the film, and how often loops went round since the one before |
//! | `NAME.changes.csv` | the settings that were changed while the run went on, if any were |
//! | `NAME.svg` | curves of what is in `NAME.csv` |
//! | `NAME.png`, `NAME.gif` | the last state, and the way there |
//!
//! Programs on graphs leave a table in `NAME.csv` instead: what came out for each vertex. A mesh whose points all lie at one place has
//! nothing to be shown, neither as a series nor as a film.
//!
//! With pieces, the series has `NAME_000100.pvtu` instead, which names `NAME_000100.1.vtu` and so on: each host has written its own
//! piece of the state, which is never gathered, so nothing is drawn either.
//!
//! Every file but the history is written under another name and renamed when it is whole; the history grows by whole
//! lines. So whatever ends a run, what is there can be opened. Files of an earlier run of the same name are removed
//! first, and what killed ones left half-written; nothing else in the folder is touched. The folder is locked meanwhile: it belongs
//! to one run at a time. Pictures are drawn when the run is over, and from a file without a name until then: the run does not wait
//! for them, and the scale of colors and the view can fit all of it.

mod config;
pub(crate) mod copies;
mod film;
mod frame;
mod history;
mod lock;
mod series;
mod vertices;

use crate::Run;
use anyhow::{Context, Result, bail};
pub use config::{Config, Style, checkpoints};
use film::Film;
pub(crate) use film::scale;
use frame::{Frame, Moment};
use history::History;
pub use history::Trouble;
use lock::Lock;
use meshweft::{Checkpoint, Metric};
use meshweft_mesh::{Field, io, mean_edge_length};
use serde::{Deserialize, Serialize};
use series::Series;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Waits for the fields of a state.
type Coming = Box<dyn FnOnce() -> Result<Vec<Field>>>;

/// A state that is to be written once it is here.
struct Due {
    moment: Moment,
    /// Whether it belongs to the film, and to the series.
    film: bool,
    series: bool,
    state: Coming,
}

/// The folder of a run while it goes on.
pub struct Output {
    config: Config,
    series: Option<Series>,
    /// Of what was measured, unless there is to be a table of vertices.
    history: Option<History>,
    /// Whether settings were changed.
    is_changed: bool,
    film: Option<Film>,
    /// What is written while the run goes on.
    due: Option<Due>,
    /// The last steps of which there is a frame, and a state.
    framed: Option<u64>,
    stated: Option<u64>,
    spent: Duration,
    /// Until all is written.
    _lock: Lock,
}

/// What a run has left so far: what it takes to go on with its files in another process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Left {
    /// Steps from one frame of the film and line of the history to the next, and from one state of the series to the next.
    pub every: u64,
    /// See there.
    pub state_every: u64,
    /// Bytes of the history, and iterations of loops since its last row.
    history: u64,
    #[serde(default)]
    iterated: Vec<u64>,
    /// Simulated seconds and name of each file of the series.
    series: Vec<(f64, String)>,
    /// Simulated seconds of each frame of the film.
    frames: Vec<f64>,
    /// What those frames show.
    #[serde(default)]
    shows: String,
    /// The last steps of which there is a frame, and a state.
    framed: Option<u64>,
    stated: Option<u64>,
}

/// What a finished run left.
#[derive(Clone, Debug)]
pub struct Files {
    /// All files, in the order of the table in the [module](self)'s documentation.
    pub paths: Vec<PathBuf>,
    /// Steps from one state of the series to the next.
    pub state_every: u64,
    /// Seconds that the run was held up by series, history and frames.
    pub saving_s: f64,
    /// Seconds spent on drawing, when it was over.
    pub drawing_s: f64,
    /// What is not as it should be in what was measured.
    pub troubles: Vec<Trouble>,
}

/// Checks that a folder can be made and written to, and that no other run writes to it. Leaves nothing behind.
///
/// # Errors
/// A path below something that is no folder, or a folder that may not be written to or belongs to another run.
pub fn check(folder: &Path) -> Result<()> {
    let mut known = folder;
    while !known.as_os_str().is_empty() && !known.exists() {
        known = known.parent().unwrap_or(Path::new(""));
    }
    let known = if known.as_os_str().is_empty() { Path::new(".") } else { known };
    if !known.is_dir() {
        bail!(
            "cannot write to {}: {} is a file, not a folder; choose another with --out",
            folder.display(),
            known.display()
        );
    }
    let cannot = || format!("cannot write to {} (choose another folder with --out)", folder.display());
    io::probe(known).with_context(cannot)?;
    if folder.is_dir() {
        Lock::take(folder)?;
    }
    Ok(())
}

impl Output {
    /// Makes the folder, locks it, and removes what an earlier run of the same name left in it, and what killed ones did.
    ///
    /// # Errors
    /// A folder that cannot be made or written to, or belongs to another run.
    pub fn create(config: Config, run: &mut Run) -> Result<Output> {
        Output::begin(config, run, None)
    }

    /// The same, but goes on with the files that another process has `left`.
    ///
    /// # Errors
    /// As [`Output::create`].
    pub fn resume(config: Config, run: &mut Run, left: &Left) -> Result<Output> {
        Output::begin(config, run, Some(left))
    }

    fn begin(config: Config, run: &mut Run, left: Option<&Left>) -> Result<Output> {
        let clock = Instant::now();
        if let Some(column) = run.table().iter().find(|column| run.is_of_cells(column.field)) {
            bail!("the table of vertices has a column {}, which is a field of cells", column.field);
        }
        let parts = run.fields();
        if let Some(part) = parts.iter().find(|part| config.pieces && run.is_of_cells(&part.name)) {
            bail!("field {} is of cells: such a state is written as a whole, without --pieces", part.name);
        }
        let (folder, name) = (&config.folder, config.name);
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let lock = Lock::take(folder)?;
        let (goes_on, left) = (left.is_some(), left.cloned().unwrap_or_default());
        let is_kept = |file: &str| match file.rsplit_once('.') {
            Some((_, "csv" | "svg" | "png" | "gif" | "pvd")) => goes_on,
            // Pieces have a number more than the file that names them.
            Some((stem, _)) => {
                left.series.iter().any(|(_, kept)| kept == file || kept.split('.').next() == stem.split('.').next())
            }
            None => false,
        };
        clear(&config, &lock, goes_on, is_kept)?;
        let has_place = has_place(run);
        let is_there = |file: &&(f64, String)| is_ours(name, &file.1) && folder.join(&file.1).is_file();
        let files = left.series.iter().filter(is_there).cloned().collect();
        let series = (has_place || config.pieces).then(|| Series::new(&config, run, files));
        let missing = left.series.iter().filter(|file| !is_there(file)).count();
        if missing > 0 {
            eprintln!(
                "warning: {missing} of the states before are not in {}: the series goes on without them",
                folder.display()
            );
        }
        let metrics = run.metrics()?;
        let resumed = History::resume(folder, name, (left.history, &left.iterated), (&metrics, run));
        let history = match (run.table().is_empty(), resumed) {
            (true, None) => {
                if left.history > 0 {
                    eprintln!("warning: {name}.csv is not what it was: it begins anew in {}", folder.display());
                }
                Some(History::new(folder, name, &metrics, run)?)
            }
            (true, resumed) => resumed,
            _ => None,
        };
        let has_film = config.pictures && !config.pieces && has_place;
        let film = if has_film { Some(Film::new(&config, run, (&left.shows, &left.frames))?) } else { None };
        if let (true, Some(series)) = (goes_on, &series) {
            series.write_index()?;
        }
        let (framed, stated, spent) = (left.framed, left.stated, clock.elapsed());
        Ok(Output { config, series, history, is_changed: false, film, due: None, framed, stated, spent, _lock: lock })
    }

    /// What it takes to go on in another process, with all that is due after the steps so far; and the files that a loss of power may
    /// still take, to be synchronized.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn left(&mut self, run: &Run) -> Result<(Left, Vec<PathBuf>)> {
        self.catch_up(run)?;
        let mut fresh = Vec::new();
        fresh.extend(self.history.as_ref().map(|history| history.path().to_owned()));
        fresh.extend(self.config.frames().filter(|_| self.film.is_some()));
        if let Some(series) = self.series.as_mut().filter(|series| !series.fresh.is_empty()) {
            fresh.append(&mut series.fresh);
            fresh.push(series.index());
        }
        let left = Left {
            every: self.config.every,
            state_every: self.config.state_every,
            history: self.history.as_ref().map_or(0, History::bytes),
            iterated: self.history.as_ref().map(|history| history.iterated(run)).unwrap_or_default(),
            series: self.series.as_ref().map(|series| series.files().to_vec()).unwrap_or_default(),
            frames: self.film.as_ref().map(|film| film.times().to_vec()).unwrap_or_default(),
            shows: self.film.as_ref().map(Film::shows).unwrap_or_default(),
            framed: self.framed,
            stated: self.stated,
        };
        Ok((left, fresh))
    }

    /// Saves what is due after this step. Where the run goes on by itself, on other hosts or a GPU, files are written while it does:
    /// ask for the next steps, and call [`Output::catch_up`] before waiting for them.
    ///
    /// # Errors
    /// A file that cannot be written. Those of earlier steps stay.
    pub fn save(&mut self, run: &mut Run) -> Result<()> {
        /// Steps that are asked for before a file is written: they keep others busy meanwhile.
        const AHEAD: u64 = 128;
        let step = run.steps();
        let is_late = |due: &Due| !run.is_pending() || self.is_due(step) || step >= due.moment.step + AHEAD;
        if self.due.as_ref().is_some_and(is_late) {
            let clock = Instant::now();
            self.catch_up(run)?;
            self.spent += clock.elapsed();
        }
        if self.is_due(step) {
            let clock = Instant::now();
            let metrics = run.metrics()?;
            let take = |run: &mut Run| -> Result<Coming> {
                let snapshot = run.snapshot()?;
                Ok(Box::new(|| Ok(snapshot.fields()?)))
            };
            self.ask(run, &metrics, step.is_multiple_of(self.config.state_every), take)?;
            self.spent += clock.elapsed();
        }
        Ok(())
    }

    /// Writes what is left to write of a step before, while later ones are under way.
    ///
    /// # Errors
    /// A file that cannot be written. Those of earlier steps stay.
    pub fn catch_up(&mut self, run: &Run) -> Result<()> {
        let Some(Due { moment, film, series, state }) = self.due.take() else { return Ok(()) };
        let fields = state()?;
        let frame = Frame::of(run, moment, fields)?;
        if let Some(film) = self.film.as_mut().filter(|_| film) {
            show(film, &frame, run)?;
        }
        match &mut self.series {
            Some(all) if series => all.push(frame),
            _ => Ok(()),
        }
    }

    /// Notes which settings were changed so far, as text of lines: none if none were.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn note_changes(&mut self, text: Option<String>) -> Result<()> {
        let path = self.changes();
        self.is_changed = text.is_some();
        match text {
            Some(text) => drop(io::replace(&path, |out| out.write_all(text.as_bytes()))?),
            // Of a run that is gone on with from before they were.
            None => drop(std::fs::remove_file(path)),
        }
        Ok(())
    }

    fn changes(&self) -> PathBuf {
        self.config.folder.join(format!("{}.changes.csv", self.config.name))
    }

    /// Whether something is saved after a step.
    pub fn is_due(&self, step: u64) -> bool {
        step.is_multiple_of(self.config.every)
    }

    /// Saves the state after this step, whether it is due or not, and returns the measured quantities.
    ///
    /// # Errors
    /// A file that cannot be written. Those of earlier steps stay.
    pub fn save_now(&mut self, run: &mut Run) -> Result<Vec<Metric>> {
        let clock = Instant::now();
        self.catch_up(run)?;
        let metrics = run.metrics()?;
        // What is read of the run next is this state too, and it comes once.
        let take = |run: &mut Run| -> Result<Coming> {
            let fields = run.state()?;
            Ok(Box::new(|| Ok(fields)))
        };
        self.ask(run, &metrics, true, take)?;
        self.catch_up(run)?;
        self.spent += clock.elapsed();
        Ok(metrics)
    }

    /// Adds a line to the history, and asks for what else is to be written of this step.
    fn ask(
        &mut self,
        run: &mut Run,
        metrics: &[Metric],
        state: bool,
        take: impl FnOnce(&mut Run) -> Result<Coming>,
    ) -> Result<()> {
        let moment = Moment { step: run.steps(), time: run.time() };
        let new = self.framed.replace(moment.step) != Some(moment.step);
        let series = state && self.stated.replace(moment.step) != Some(moment.step) && self.series.is_some();
        if let Some(history) = self.history.as_mut().filter(|_| new) {
            history.push(moment, metrics, run)?;
        }
        let film = new && self.film.is_some();
        if let Some(all) = self.series.as_mut().filter(|_| series && self.config.pieces) {
            all.push_pieces(moment, run)?;
        } else if film || series {
            self.due = Some(Due { moment, film, series, state: take(run)? });
        }
        Ok(())
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.config.folder
    }

    /// Time that the run was held up so far by saving.
    pub fn spent(&self) -> Duration {
        self.spent
    }

    /// Number of pictures that [`Output::finish`] draws.
    pub fn pictures(&self) -> usize {
        self.film.as_ref().map_or(0, Film::pictures)
    }

    /// Writes what is left, and draws the pictures. `goes_on` is asked after each; once it says no, the film is left out.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn finish(mut self, run: &Run, goes_on: &mut dyn FnMut() -> bool) -> Result<Files> {
        self.catch_up(run)?;
        let clock = Instant::now();
        let changes = self.is_changed.then(|| self.changes());
        let mut paths = self.series.map(Series::into_files).unwrap_or_default();
        paths.extend(self.history.as_ref().map(|history| history.path().to_owned()));
        paths.extend(changes);
        let mut troubles = Vec::new();
        if let Some(history) = self.history {
            let rows = history.rows()?;
            let edge = || mean_edge_length(run.mesh(), &run.mesh().edges());
            troubles.extend(history.troubles(&rows, (edge, run.precision())));
            if self.config.pictures && !self.config.pieces {
                paths.extend(history.draw(self.config.name, &rows)?);
            }
        }
        let columns = run.table();
        if !columns.is_empty() && (!self.config.pieces || run.hosts().is_empty()) {
            let table = self.config.folder.join(format!("{}.csv", self.config.name));
            vertices::write(&table, run.mesh(), columns, &run.state()?)?;
            paths.push(table);
        }
        if let Some(film) = self.film {
            let picture = self.config.folder.join(format!("{}.png", self.config.name));
            let animation = self.config.folder.join(format!("{}.gif", self.config.name));
            if film.draw(&picture, &animation, self.config.threads, goes_on)? {
                paths.extend([picture, animation]);
            } else {
                paths.push(picture);
            }
        }
        // Where there is no checkpoint, nobody goes on with its frames; the folder goes if that was all in it.
        let folder = self.config.checkpoints();
        if self.config.resumable && !Checkpoint::is_any(&folder) {
            let _ = std::fs::remove_file(folder.join(config::FRAMES_FILE));
            let _ = std::fs::remove_dir(folder);
        }
        Ok(Files {
            paths,
            state_every: self.config.state_every,
            saving_s: self.spent.as_secs_f64(),
            drawing_s: clock.elapsed().as_secs_f64(),
            troubles,
        })
    }
}

/// Whether a mesh has something to be shown: not all of its points lie at one place.
fn has_place(run: &Run) -> bool {
    let [low, high] = run.mesh().bounds();
    low != high || run.mesh().points().len() == 1
}

/// Adds a frame to a film.
fn show(film: &mut Film, frame: &Frame, run: &Run) -> Result<()> {
    match run.table().iter().any(|column| column.nothing.is_some()) {
        true => film.push(run, &frame.drawable(run.table())),
        false => film.push(run, frame),
    }
}

/// Removes what an earlier run has left in a folder, but the files that are kept, and with them its checkpoints where it is gone on with; and
/// what killed ones have left.
fn clear(config: &Config, lock: &Lock, goes_on: bool, is_kept: impl Fn(&str) -> bool) -> Result<()> {
    let folder = &config.folder;
    let clear = || {
        remove_earlier(folder, config.name, is_kept)?;
        if !goes_on {
            Checkpoint::remove_all(&config.checkpoints())?;
            let _ = std::fs::remove_file(config.checkpoints().join(config::FRAMES_FILE));
            let _ = std::fs::remove_dir(config.checkpoints());
        }
        if lock.is_held() { io::sweep(folder) } else { Ok(()) }
    };
    clear().with_context(|| format!("cannot clear the folder {}", folder.display()))
}

/// Whether that is the name of a file of a series.
fn is_ours(name: &str, file: &str) -> bool {
    let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('_'));
    let stem = rest.and_then(|rest| rest.strip_suffix(".vtu").or_else(|| rest.strip_suffix(".pvtu")));
    let (step, host) = stem.map_or(("", None), |stem| stem.split_once('.').map_or((stem, None), |(a, b)| (a, Some(b))));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    step.len() >= 6 && is_number(step) && host.is_none_or(is_number)
}

/// Removes the files of an earlier run but those that are kept, the index before what it names.
fn remove_earlier(folder: &Path, name: &str, is_kept: impl Fn(&str) -> bool) -> std::io::Result<()> {
    let mut files =
        ["pvd", "csv", "changes.csv", "history.csv", "svg", "png", "gif"].map(|end| format!("{name}.{end}")).to_vec();
    for entry in std::fs::read_dir(folder)? {
        files.extend(entry?.file_name().into_string().ok().filter(|file| is_ours(name, file)));
    }
    for file in files.into_iter().filter(|file| !is_kept(file)) {
        match std::fs::remove_file(folder.join(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_cells_are_of_cells_in_the_series_and_color_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = crate::means::run(meshweft_mesh::generate::generate("sheet:5", 1).unwrap());
        let pieces = Config { pieces: true, ..Config::new(folder.path(), "means", 1, &run) };
        let refused = Output::create(pieces, &mut run).map(drop).unwrap_err().to_string();
        assert!(refused.starts_with("field mean is of cells: such a state is written as a whole"), "{refused}");
        let mut output = Output::create(Config::new(folder.path(), "means", 1, &run), &mut run).unwrap();
        run.step().unwrap();
        output.save_now(&mut run).unwrap();
        output.finish(&run, &mut || true).unwrap();
        let written = io::read(&folder.path().join("means_000001.vtu")).unwrap();
        let field = run.field("mean").unwrap();
        assert_eq!((written.cell_field("mean"), written.point_field("mean")), (Some(&field), None));
        assert!(written.point_field("height").is_some() && folder.path().join("means.png").is_file());
        // Points are raised by the mean of the cells around them: of a slope, inside of the sheet, by the slope.
        let center = run.mesh().points().iter().position(|p| p[0] == 0.5 && p[1] == 0.5).unwrap();
        let raised = run.points(&run.state().unwrap()).unwrap()[center];
        assert!((raised[2] - 0.5).abs() < 1e-12, "{raised:?}");
        let drawn = run.at_drawn(field);
        assert_eq!((drawn.values.len(), drawn.values[center]), (25, raised[2]));
    }

    #[test]
    fn only_files_of_an_earlier_run_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let ours = [
            "flow.pvd",
            "flow.svg",
            "flow.png",
            "flow.gif",
            "flow.csv",
            "flow.changes.csv",
            "flow.history.csv",
            "flow_000000.vtu",
            "flow_1000000.vtu",
            "flow_000000.pvtu",
            "flow_000000.12.vtu",
        ];
        let other = [
            "flow_1.vtu",
            "flow_00000x.vtu",
            "flows_000000.vtu",
            "tide.pvd",
            "tide.csv",
            "flow.vtu",
            "notes.txt",
            "flow_000000..vtu",
            "flow_000000.a.vtu",
            "flow_000000.1.2.vtu",
            "flow_.1.vtu",
        ];
        ours.iter().chain(&other).for_each(|name| std::fs::write(folder.path().join(name), "").unwrap());
        remove_earlier(folder.path(), "flow", |file| file == "flow_1000000.vtu").unwrap();
        assert!(ours.iter().all(|name| folder.path().join(name).exists() == (*name == "flow_1000000.vtu")));
        assert!(other.iter().all(|name| folder.path().join(name).exists()));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_found_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        check(&folder.path().join("a/b/c")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        std::fs::write(folder.path().join("file"), "").unwrap();
        for path in ["file", "file/a", "file/a/b"] {
            let error = check(&folder.path().join(path)).unwrap_err().to_string();
            assert!(error.contains("is a file, not a folder"), "{error}");
        }
    }
}
