//! Pictures of a run: the last state as a PNG, all frames as an animated GIF.
//!
//! Frames are kept as numbers, in a file that has no name and so is gone with the process, whatever ends it. Drawing
//! starts when all of them are known: the view fits every place that the mesh goes to, and one scale of colors suits the
//! whole run.

use super::Frame;
use crate::picture::{Animation, Camera, ColorMap, Coloring, Picture, Prop, Scene, Size, Up, render};
use crate::{Look, Run};
use anyhow::{Context, Result};
use meshweft_mesh::CellKind;
use rayon::prelude::*;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Pixels of the last state.
const LARGE: Size = Size { width: 1280, height: 960 };
/// Pixels of a frame of the animation.
const SMALL: Size = Size { width: 640, height: 480 };
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
    name: &'static str,
    look: Look,
    /// The vertices that can be seen.
    shown: Vec<u32>,
    /// Corners and ends, numbered as in `shown`.
    triangles: Vec<[u32; 3]>,
    edges: Vec<[u32; 2]>,
    /// The points of a mesh that stays where it is.
    still: Option<Vec<[f64; 3]>>,
    file: File,
    times: Vec<f64>,
    bounds: [[f64; 3]; 2],
    /// The least and the largest color of each frame that has a finite one.
    ranges: Vec<[f64; 2]>,
}

impl Film {
    /// A film without frames, in an invisible file in `folder`.
    pub(super) fn new(folder: &Path, name: &'static str, run: &dyn Run) -> Result<Film> {
        let (mesh, look) = (run.mesh(), run.look());
        let mut triangles = mesh.surface();
        let mut edges = mesh.cells().corners_of(CellKind::Edge).as_chunks().0.to_vec();
        if edges.len() > MOST_EDGES {
            edges.clear();
        }
        let mut seen = vec![triangles.is_empty(); mesh.points().len()];
        triangles.iter().flatten().chain(edges.iter().flatten()).for_each(|&v| seen[v as usize] = true);
        let shown: Vec<u32> = (0..seen.len() as u32).filter(|&v| seen[v as usize]).collect();
        let mut number = vec![0; seen.len()];
        shown.iter().zip(0..).for_each(|(&v, i)| number[v as usize] = i);
        triangles.iter_mut().flatten().for_each(|v| *v = number[*v as usize]);
        edges.iter_mut().flatten().for_each(|v| *v = number[*v as usize]);
        let moves = look.positions.is_some() || look.lift != 0.0;
        let still = (!moves).then(|| shown.iter().map(|&v| mesh.points()[v as usize]).collect());
        let file = tempfile::tempfile_in(folder).with_context(|| format!("cannot write to {}", folder.display()))?;
        let bounds = look.props.iter().fold([[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]], with_prop);
        let (times, ranges) = (Vec::new(), Vec::new());
        Ok(Film { name, look, shown, triangles, edges, still, file, times, bounds, ranges })
    }

    /// Keeps a frame.
    pub(super) fn push(&mut self, frame: &Frame) -> Result<()> {
        let mut bytes: Vec<u8> = Vec::with_capacity(self.frame_bytes() as usize);
        let mut keep = |x: f64| bytes.extend_from_slice(&x.to_le_bytes());
        for &v in &self.shown {
            let p = frame.points[v as usize];
            self.bounds = with_point(self.bounds, p);
            if self.still.is_none() {
                p.into_iter().for_each(&mut keep);
            }
        }
        if let Some(colors) = &frame.colors {
            let mut range = [f64::INFINITY, f64::NEG_INFINITY];
            for &v in &self.shown {
                let x = colors[v as usize];
                keep(x);
                range = [range[0].min(x), range[1].max(x)];
            }
            if range.iter().all(|x| x.is_finite()) {
                self.ranges.push(range);
            }
        }
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
        let camera = Camera::framing(self.bounds, Up::Z);
        let numbers = self.numbers(last)?;
        pool.install(|| self.paint(last, &numbers, &camera, LARGE).write_png(picture))?;
        let drawn: Vec<usize> = self.drawn().collect();
        let delay_cs = (LENGTH_CS / drawn.len()).clamp(4, 25) as u16;
        let mut film = Animation::new(delay_cs);
        // What of a picture cannot be shared among threads is done beside that of another.
        let together = (AT_ONCE / (self.triangles.len() + 1)).clamp(1, pool.current_num_threads());
        for frames in drawn.chunks(together) {
            for _ in frames {
                if !goes_on() {
                    return Ok(false);
                }
            }
            let numbers = frames.iter().map(|&frame| self.numbers(frame)).collect::<Result<Vec<_>>>()?;
            let paint = |(&frame, numbers): (&usize, &Vec<f64>)| self.paint(frame, numbers, &camera, SMALL);
            pool.install(|| film.push(&frames.par_iter().zip(&numbers).map(paint).collect::<Vec<_>>()))
                .map_err(named)?;
        }
        pool.install(|| film.finish(animation))?;
        Ok(true)
    }

    /// Reads the numbers of a frame back.
    fn numbers(&mut self, frame: usize) -> Result<Vec<f64>> {
        let mut bytes = vec![0; self.frame_bytes() as usize];
        let read = self.file.seek(SeekFrom::Start(frame as u64 * self.frame_bytes()));
        read.and_then(|_| self.file.read_exact(&mut bytes)).context("cannot read a frame of the animation back")?;
        Ok(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
    }

    /// Draws a frame of these numbers.
    fn paint(&self, frame: usize, numbers: &[f64], camera: &Camera, size: Size) -> Picture {
        let (moved, values) = numbers.split_at(if self.still.is_some() { 0 } else { 3 * self.shown.len() });
        let coloring = match self.look.color {
            None => Coloring::default(),
            Some(_) => Coloring::Scalar { label: self.look.label, values, range: self.range(), map: self.look.map },
        };
        let scene = Scene {
            points: self.still.as_deref().unwrap_or(moved.as_chunks().0),
            triangles: &self.triangles,
            edges: &self.edges,
            coloring,
            props: self.look.props.clone(),
            caption: &self.caption(self.times[frame]),
        };
        render(&scene, camera, size)
    }

    /// The numbers at the ends of the scale of colors: how far it goes from the least value (or, with two signs, from
    /// zero) is the geometric mean of how far a frame goes on average and how far the farthest goes.
    ///
    /// A field that fades or bursts for a moment would be dull for most of the run if the scale held all its values;
    /// those beyond the scale have the color of its end.
    fn range(&self) -> [f64; 2] {
        let map = self.look.map;
        let signed = map == ColorMap::Coolwarm;
        let least = self.ranges.iter().fold(f64::INFINITY, |least, range| least.min(range[0]));
        let reach = |&[low, high]: &[f64; 2]| if signed { low.abs().max(high.abs()) } else { high - least };
        let mean = self.ranges.iter().map(reach).sum::<f64>() / self.ranges.len() as f64;
        let most = self.ranges.iter().map(reach).fold(0.0, f64::max);
        let reach = mean.sqrt() * most.sqrt();
        // Without a frame nothing here is finite, and the map takes its own range.
        map.range_of(&if signed { [0.0, reach] } else { [least, least + reach] })
    }

    /// Bytes of a frame in the file.
    fn frame_bytes(&self) -> u64 {
        let numbers = if self.still.is_some() { 0 } else { 3 } + usize::from(self.look.color.is_some());
        8 * (numbers * self.shown.len()) as u64
    }

    /// The name and the time, with the same number of decimals in all frames so that the text stands still.
    fn caption(&self, time: f64) -> String {
        let end = self.times.last().copied().unwrap_or(0.0);
        let time = match end {
            0.0 => "0".to_string(),
            end if !(1e-3..1e6).contains(&end) => format!("{time:.2e}"),
            end => format!("{time:.*}", (2.0 - end.log10().floor()).clamp(0.0, 6.0) as usize),
        };
        format!("{}  t = {time} s", self.name)
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
