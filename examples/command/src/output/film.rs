//! Pictures of a run: the last state as a PNG, all frames as an animated GIF.
//!
//! Frames are kept as numbers: in a file that has no name and so is gone with the process, whatever ends it, or beside the
//! checkpoints of a run that may go on in another. Drawing starts when all of them are known: the view fits every place that the mesh goes to, and one scale of colors suits the
//! whole run.

mod beside;

use super::config::{Config, Style};
use super::frame::Frame;
use crate::example::{find, magnitude};
use crate::{Look, Run};
use anyhow::{Context, Result, bail};
use meshweft_mesh::{CellKind, Cells, Means, Mesh};
use meshweft_picture::{Animation, Camera, ColorMap, Coloring, Exposure, Mean, Picture, Prop, Scene, Skin, Up, render};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// About how long the animation is, in hundredths of a second.
const LENGTH_CS: usize = 500;
/// Frames of the animation: of more states only every second, third and so on is drawn.
const MOST_FRAMES: usize = 120;
/// Triangles of pictures that are drawn at the same time: each takes 100 bytes of memory.
const AT_ONCE: usize = 2_000_000;
/// Graphs with more edges are drawn as dots.
const MOST_EDGES: usize = 3_000_000;

/// The frames of a run, and what is drawn of its mesh.
pub(super) struct Film {
    name: String,
    /// Whether its frames have a time.
    has_time: bool,
    look: Look,
    style: Style,
    color: Color,
    /// The points that can be seen, and those that cuts have made.
    shown: Vec<u32>,
    cuts: Vec<Mean>,
    /// Corners and ends, numbered as in `shown`, and behind these as in `cuts`.
    triangles: Vec<[u32; 3]>,
    faces: Vec<[u32; 3]>,
    edges: Vec<[u32; 2]>,
    /// The kind of cells of which each frame has its own, if it has.
    apart: Option<CellKind>,
    /// Corners of those in a frame.
    corners: usize,
    /// The points of a mesh that stays where it is.
    still: Option<Vec<[f64; 3]>>,
    file: File,
    /// What is kept of each frame.
    shows: String,
    times: Vec<f64>,
    bounds: [[f64; 3]; 2],
    /// The least and the largest color of each frame that has a finite one.
    ranges: Vec<[f64; 2]>,
}

/// What the mesh is colored by.
#[derive(Clone)]
enum Color {
    Plain,
    /// A field of the state.
    State(String),
    /// A number of each vertex that stays.
    Still(String, Vec<f64>),
}

impl Color {
    /// The field that is asked for, or that of the look.
    fn new(wanted: Option<&str>, run: &Run) -> Result<Color> {
        let mesh = run.mesh();
        let Some(name) = wanted.or(run.look().color).filter(|&name| name != "none") else { return Ok(Color::Plain) };
        if run.fields().iter().any(|part| part.name == name) {
            return Ok(Color::State(name.to_string()));
        }
        // Fields of cells that vertices stand for are fields of the vertices.
        let cells = mesh.primal().and_then(|primal| primal.cell_field(name));
        if let Some(field) = mesh.point_field(name).or(cells) {
            return Ok(Color::Still(name.to_string(), (0..mesh.points().len()).map(|v| magnitude(field, v)).collect()));
        }
        let Some(field) = mesh.cell_field(name) else {
            let state = run.fields().into_iter().map(|part| part.name);
            let of_cells = mesh.primal().unwrap_or(mesh).cell_fields();
            let of_mesh = mesh.point_fields().iter().chain(of_cells).map(|field| field.name.clone());
            // Names in files may hold anything.
            let shown = |name: String| name.chars().take(60).collect::<String>().escape_debug().to_string();
            let known: Vec<String> = state.chain(of_mesh).map(shown).collect();
            bail!(
                "there is no field {name:?} to color pictures by: one of {}, or none for a plain color",
                known.join(", ")
            );
        };
        let means = Means::at_points(mesh);
        let mean = |v| means.mean(v, |c| magnitude(field, c as usize));
        Ok(Color::Still(name.to_string(), (0..mesh.points().len()).map(mean).collect()))
    }
}

impl Film {
    /// A film without frames, or with the first of those that a run has left which was stopped: one for each of the times that
    /// it left, unless its file has been touched, or these are to show something else.
    ///
    /// # Errors
    /// A color by a field that is not there; a file that cannot be made or read.
    pub(super) fn new(config: &Config, run: &Run, (left, times): (&str, &[f64])) -> Result<Film> {
        let (mesh, look, mut style) = (run.drawn(), run.look().clone(), config.style.clone());
        style.view = style.view.or(look.view);
        let color = Color::new(style.color.as_deref(), run)?;
        let toward = camera(mesh.bounds(), &style).toward();
        let Skin { mut triangles, mut faces, mut cuts } = Skin::of(mesh, style.section.unwrap_or(look.section), toward);
        let apart = look.cells.as_ref().and_then(|_| mesh.cells().iter().next()).map(|(kind, _)| kind);
        let corners = apart.map_or(0, |_| mesh.cells().all_corners().len());
        if apart.is_some() {
            // Each frame has its own.
            (triangles, faces, cuts) = Default::default();
        }
        let mut edges = mesh.cells().corners_of(CellKind::Edge).as_chunks().0.to_vec();
        if edges.len() > MOST_EDGES {
            edges.clear();
        }
        let vertices = mesh.points().len() as u32;
        let mut seen = vec![triangles.is_empty(); vertices as usize];
        let drawn = triangles.iter().chain(&faces).flatten().chain(edges.iter().flatten()).filter(|&&v| v < vertices);
        drawn.for_each(|&v| seen[v as usize] = true);
        let shown: Vec<u32> = (0..vertices).filter(|&v| seen[v as usize]).collect();
        let mut number = vec![0; seen.len()];
        shown.iter().zip(0..).for_each(|(&v, i)| number[v as usize] = i);
        for v in triangles.iter_mut().chain(&mut faces).flatten().chain(edges.iter_mut().flatten()) {
            *v = if *v < vertices { number[*v as usize] } else { *v - vertices + shown.len() as u32 };
        }
        let field = match &color {
            Color::Plain => "",
            Color::State(name) | Color::Still(name, _) => name,
        };
        // Cuts are made toward the camera.
        let seen_from = (!cuts.is_empty()).then_some(toward);
        let shows = format!("{field:?} {} {} {seen_from:?}", shown.len(), cuts.len());
        let times = if times.is_empty() || left == shows { times } else { &[] };
        if left != shows && !left.is_empty() {
            eprintln!("warning: pictures are to show something else than before: the film begins here");
        }
        let file = file(config, !times.is_empty())?;
        let moves = look.positions.is_some() || look.raised.is_some();
        let (name, still, kept, ranges) = (config.name.to_string(), None, Vec::new(), Vec::new());
        let mut film = Film {
            name,
            has_time: true,
            bounds: Film::around(&look),
            look,
            style,
            color,
            shown,
            cuts,
            triangles,
            faces,
            edges,
            apart,
            corners,
            still,
            file,
            shows,
            times: kept,
            ranges,
        };
        film.still = (!moves).then(|| film.points(mesh.points()));
        film.find(times)?;
        Ok(film)
    }

    /// What holds all that is around the mesh.
    fn around(look: &Look) -> [[f64; 3]; 2] {
        look.props.iter().fold([[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]], with_prop)
    }

    /// Takes in the first frames of the file, if all of them are there.
    fn find(&mut self, times: &[f64]) -> Result<()> {
        let bytes = times.len() as u64 * self.frame_bytes();
        if self.file.metadata()?.len() < bytes {
            eprintln!("warning: the frames before are not all there any more: the film begins here");
            return Ok(());
        }
        self.file.set_len(bytes)?;
        for (frame, &time) in times.iter().enumerate() {
            let numbers = self.read(frame)?;
            let [moved, colors, _] = self.parts(&numbers);
            self.see(moved.as_chunks().0.iter().copied(), colors.iter().copied());
            self.times.push(time);
        }
        if let Some(still) = self.still.take() {
            self.see(still.iter().copied(), []);
            self.still = Some(still);
        }
        Ok(())
    }

    /// Has the view hold these points, and the scale of colors these colors.
    fn see(&mut self, points: impl IntoIterator<Item = [f64; 3]>, colors: impl IntoIterator<Item = f64>) {
        self.bounds = self.look.window.unwrap_or_else(|| points.into_iter().fold(self.bounds, with_point));
        let widened = |[low, high]: [f64; 2], x: f64| [low.min(x), high.max(x)];
        let range = colors.into_iter().fold([f64::INFINITY, f64::NEG_INFINITY], widened);
        if range.iter().all(|x| x.is_finite()) {
            self.ranges.push(range);
        }
    }

    /// What its frames show: those that show something else are no part of it.
    pub(super) fn shows(&self) -> String {
        self.shows.clone()
    }

    /// The times of its frames.
    pub(super) fn times(&self) -> &[f64] {
        &self.times
    }

    /// A number of all that is shown, given one of each point.
    fn numbers(&self, number: impl Fn(u32) -> f64) -> Vec<f64> {
        self.shown.iter().map(|&v| number(v)).chain(self.cuts.iter().map(|cut| cut.mean(&number))).collect()
    }

    /// Where all that is shown is.
    fn points(&self, points: &[[f64; 3]]) -> Vec<[f64; 3]> {
        let own = self.shown.iter().map(|&v| points[v as usize]);
        own.chain(self.cuts.iter().map(|cut| cut.place(points))).collect()
    }

    /// Keeps a frame.
    pub(super) fn push(&mut self, run: &Run, frame: &Frame) -> Result<()> {
        let points = self.points(&frame.points);
        let colors: Vec<f64> = match &self.color {
            Color::Plain => Vec::new(),
            Color::State(name) => {
                let field = find(&frame.fields, name)?;
                let magnitude = run.drawn_magnitude(field);
                self.numbers(|i| magnitude(i as usize))
            }
            Color::Still(_, numbers) => self.numbers(|i| run.drawn_number(i as usize, |v| numbers[v as usize])),
        };
        self.see(points.iter().copied(), colors.iter().copied());
        let moved = points.as_flattened().iter().filter(|_| self.still.is_none());
        let corners: Vec<f64> = frame.cells.iter().flat_map(Cells::all_corners).map(|&v| f64::from(v)).collect();
        let bytes: Vec<u8> = moved.chain(&colors).chain(&corners).flat_map(|x| x.to_le_bytes()).collect();
        let end = self.times.len() as u64 * self.frame_bytes();
        let write = self.file.seek(SeekFrom::Start(end)).and_then(|_| self.file.write_all(&bytes));
        write.context("cannot keep a frame of the animation (--no-pictures does without)")?;
        self.times.push(frame.moment.time);
        Ok(())
    }

    /// Pictures to draw: the last state in large, and the frames of the animation.
    pub(super) fn pictures(&self) -> usize {
        1 + self.drawn().count()
    }

    /// The frames of the animation. The last state is always one.
    fn drawn(&self) -> impl Iterator<Item = usize> + use<> {
        let (frames, stride) = (self.times.len(), self.times.len().div_ceil(MOST_FRAMES).max(1));
        let first = frames.saturating_sub(1) % stride;
        (first..frames).step_by(stride)
    }

    /// Draws the PNG and then the GIF on so many threads, 0 for one per core, unless `goes_on` says no before the GIF is done.
    /// Returns whether it is. The pictures do not depend on the threads.
    pub(super) fn draw(
        mut self,
        picture: &Path,
        animation: &Path,
        threads: usize,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let Some(last) = self.times.len().checked_sub(1) else { return Ok(false) };
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start threads to draw")?;
        let (camera, size) = (camera(self.bounds, &self.style), self.style.film);
        let numbers = self.read(last)?;
        let (large, exposure) = pool.install(|| {
            let large = self.paint(last, &numbers, |scene| render(scene, &camera, self.style.picture));
            // Where the mesh stands still, what hides what and how it is lit does, too.
            let expose = |scene: &Scene| self.still.is_some().then(|| Exposure::new(scene, &camera, size));
            (large, self.paint(last, &numbers, expose))
        });
        let draw = |scene: &Scene| match &exposure {
            Some(exposure) => exposure.develop(scene),
            None => render(scene, &camera, size),
        };
        // One thread compresses the picture while others are at the film.
        let mut written = Ok(());
        let done = pool.in_place_scope(|scope| {
            scope.spawn(|_| written = large.write_png(picture));
            self.animate(&pool, draw, animation, goes_on)
        });
        written?;
        done
    }

    /// Draws the GIF with `draw`, as [`Film::draw`] says.
    fn animate(
        &mut self,
        pool: &ThreadPool,
        draw: impl Fn(&Scene) -> Picture + Sync,
        animation: &Path,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let drawn: Vec<usize> = self.drawn().collect();
        let delay_cs = (LENGTH_CS / drawn.len()).clamp(4, 25) as u16;
        let mut film = Animation::new(delay_cs);
        // What of a picture cannot be shared among threads is done beside that of another.
        let together = (AT_ONCE / (self.triangles.len() + self.faces.len() + 1)).clamp(1, pool.current_num_threads());
        for frames in drawn.chunks(together) {
            for _ in frames {
                if !goes_on() {
                    return Ok(false);
                }
            }
            let numbers = frames.iter().map(|&frame| self.read(frame)).collect::<Result<Vec<_>>>()?;
            let paint = |(&frame, numbers): (&usize, &Vec<f64>)| self.paint(frame, numbers, &draw);
            pool.install(|| film.push(&frames.par_iter().zip(&numbers).map(paint).collect::<Vec<_>>()))
                .map_err(named)?;
        }
        pool.install(|| film.finish(animation))?;
        Ok(true)
    }

    /// Reads the numbers of a frame back.
    fn read(&mut self, frame: usize) -> Result<Vec<f64>> {
        let mut bytes = vec![0; self.frame_bytes() as usize];
        let read = self.file.seek(SeekFrom::Start(frame as u64 * self.frame_bytes()));
        read.and_then(|_| self.file.read_exact(&mut bytes)).context("cannot read a frame of the animation back")?;
        Ok(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
    }

    /// The ends of the scale of colors. Where a state is what the run is after, they are those of the last.
    fn range(&self) -> [f64; 2] {
        let from = if self.look.is_steady { self.ranges.len().saturating_sub(1) } else { 0 };
        scale(self.map(), &self.ranges[from..])
    }

    /// Makes with `draw` what a frame of these numbers shows.
    fn paint<T>(&self, frame: usize, numbers: &[f64], draw: impl FnOnce(&Scene) -> T) -> T {
        let [moved, values, corners] = self.parts(numbers);
        let coloring = match &self.color {
            Color::Plain => Coloring::default(),
            Color::State(name) | Color::Still(name, _) => {
                let label = if self.look.color == Some(name) { self.look.label } else { name };
                Coloring::Scalar { label, values, range: self.range(), map: self.map() }
            }
        };
        let apart = self.apart.map(|kind| {
            let cells = Cells::of(kind, corners.iter().map(|&v| v as u32).collect());
            Mesh::new(moved.as_chunks().0.to_vec(), cells).map(|mesh| mesh.surface()).unwrap_or_default()
        });
        let scene = Scene {
            points: self.still.as_deref().unwrap_or(moved.as_chunks().0),
            triangles: apart.as_deref().unwrap_or(&self.triangles),
            faces: &self.faces,
            edges: &self.edges,
            coloring,
            props: self.look.props.clone(),
            caption: &self.caption(self.times[frame]),
        };
        draw(&scene)
    }

    /// The map of the look for its field; for another one by whether it has both signs.
    fn map(&self) -> ColorMap {
        match &self.color {
            Color::State(name) if self.look.color == Some(name) => self.look.map,
            _ if self.ranges.iter().any(|range| range[0] < 0.0) && self.ranges.iter().any(|range| range[1] > 0.0) => {
                ColorMap::Coolwarm
            }
            _ => ColorMap::Viridis,
        }
    }

    /// Points that are drawn.
    fn places(&self) -> usize {
        self.shown.len() + self.cuts.len()
    }

    /// Bytes of a frame in the file.
    fn frame_bytes(&self) -> u64 {
        let numbers = if self.still.is_some() { 0 } else { 3 } + usize::from(!matches!(self.color, Color::Plain));
        8 * (numbers * self.places() + self.corners) as u64
    }

    /// Points, colors and corners of cells among the numbers of a frame.
    fn parts<'a>(&self, numbers: &'a [f64]) -> [&'a [f64]; 3] {
        let (moved, others) = numbers.split_at(if self.still.is_some() { 0 } else { 3 * self.places() });
        let (colors, corners) = others.split_at(others.len() - self.corners);
        [moved, colors, corners]
    }

    /// The name and the time, with the same number of decimals in all frames so that the text stands still.
    fn caption(&self, time: f64) -> String {
        if !self.has_time {
            return self.name.clone();
        }
        if self.look.is_steady {
            return format!("{}  step {time}", self.name);
        }
        let end = self.times.last().copied().unwrap_or(0.0);
        let time = match end {
            0.0 => "0".to_string(),
            end if !(1e-3..1e6).contains(&end) => format!("{time:.2e}"),
            end => format!("{time:.*}", (2.0 - end.log10().floor()).clamp(0.0, 6.0) as usize),
        };
        format!("{}  t = {time} s", self.name)
    }
}

/// The numbers at the ends of the scale of colors, given the least and the largest of each state: how far it goes from the least value
/// (or, with two signs, from zero) is the geometric mean of how far a state goes on average and how far the farthest goes.
///
/// A field that fades or bursts for a moment would be dull for most of the run if the scale held all its values; those beyond the
/// scale have the color of its end.
pub(crate) fn scale(map: ColorMap, ranges: &[[f64; 2]]) -> [f64; 2] {
    let signed = map == ColorMap::Coolwarm;
    let least = ranges.iter().fold(f64::INFINITY, |least, range| least.min(range[0]));
    let reach = |&[low, high]: &[f64; 2]| if signed { low.abs().max(high.abs()) } else { high - least };
    let mean = ranges.iter().map(reach).sum::<f64>() / ranges.len() as f64;
    let most = ranges.iter().map(reach).fold(0.0, f64::max);
    let reach = mean.sqrt() * most.sqrt();
    // Without a state nothing here is finite, and the map takes its own range.
    map.range_of(&if signed { [0.0, reach] } else { [least, least + reach] })
}

/// The file for frames: that of before, if there is one to go on with.
fn file(config: &Config, goes_on: bool) -> Result<File> {
    let Some(path) = config.frames() else {
        let folder = &config.folder;
        return tempfile::tempfile_in(folder).with_context(|| format!("cannot write to {}", folder.display()));
    };
    let cannot = || format!("cannot write to {}", path.display());
    let is_there = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
    if !(goes_on && is_there) {
        std::fs::create_dir_all(config.checkpoints()).with_context(cannot)?;
        let _ = std::fs::remove_file(&path);
        return File::options().read(true).write(true).create_new(true).open(&path).with_context(cannot);
    }
    File::options().read(true).write(true).open(&path).with_context(cannot)
}

/// The camera that shows a box.
fn camera(bounds: [[f64; 3]; 2], style: &Style) -> Camera {
    let camera = Camera::framing(bounds, Up::Z);
    match style.view {
        Some([azimuth_deg, elevation_deg]) => camera.seen_from(azimuth_deg, elevation_deg),
        None => camera,
    }
}

/// An error whose message names the file already.
fn named(error: std::io::Error) -> anyhow::Error {
    anyhow::Error::msg(error.to_string())
}

fn with_point([low, high]: [[f64; 3]; 2], p: [f64; 3]) -> [[f64; 3]; 2] {
    [std::array::from_fn(|k| low[k].min(p[k])), std::array::from_fn(|k| high[k].max(p[k]))]
}

fn with_prop(bounds: [[f64; 3]; 2], prop: &Prop) -> [[f64; 3]; 2] {
    match *prop {
        Prop::Ball { center, radius } => {
            with_point(with_point(bounds, center.map(|x| x - radius)), center.map(|x| x + radius))
        }
        // A floor has no sides: only its height must be seen.
        Prop::Ground { height } => {
            let [mut low, mut high] = bounds;
            (low[2], high[2]) = (low[2].min(height), high[2].max(height));
            [low, high]
        }
    }
}
